//! `cargo xtask bench scda`: sections written and read, compared with C on the same bytes.
//!
//! | file | content |
//! |---|---|
//! | `tasks` | the jobs, the tasks and their sizes |
//! | `report` | the cells of the table, the targets, the method |

mod report;
mod tasks;

use std::path::{Path, PathBuf};

use super::harness::{Bench, Implementation, Setup};
use super::{Options, compile, driver, optional};
use crate::shell::{cargo, succeeds};
use crate::{Result, tools};
use tasks::{C, C_KEEPS, JOBS, MPI_ONE, MPI_TWO, ONE, TASKS, TWO_RANKS, TWO_THREADS};

const BENCH: Bench = Bench {
    name: "scda",
    files: 3.0e9,
    tasks: &TASKS,
    columns: &[C, ONE, TWO_THREADS, TWO_RANKS, MPI_ONE, MPI_TWO],
    ratios: &[(ONE, C), (TWO_THREADS, ONE), (TWO_RANKS, ONE)],
    cell: report::cell,
    note: report::note,
    targets: report::targets,
    method: report::METHOD,
};

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let driver = driver("scda")?;
        let peer = optional(C, peer(folder));
        let values = tasks::values(folder, options.scale);
        tasks::make_fields(&values)?;
        let mpi = optional("MPI", build_mpi());
        let mut setup = Setup::new(values);
        for job in JOBS.iter().filter(|job| !job.mpi || mpi.is_some()) {
            let driver = driver.clone();
            let one = Implementation::new(job.name, move || job.command(&driver));
            // Waiting MPI ranks use their processors and would disturb the others.
            setup.add(if job.mpi { one.restarted() } else { one });
        }
        // After the others: it uses the files that spile has written.
        setup.add_optional(peer.as_deref().map(|peer| Implementation::program(C, peer, &[])));
        // For information; slow.
        let keeps = |peer: PathBuf| Implementation::program(C_KEEPS, &peer, &["keep"]).once();
        setup.add_optional(peer.map(keeps));
        Ok(setup)
    })
}

/// Builds the driver for MPI, in the same folder as the other one.
fn build_mpi() -> Result<()> {
    tools::mpi()?;
    let args = ["build", "--release", "--package", "spile-mpi", "--features", "mpi"];
    if succeeds(cargo(&args).args(["--example", "bench_mpi"]))? {
        return Ok(());
    }
    Err("the example bench_mpi does not build".into())
}

/// Compiles the C program.
fn peer(folder: &Path) -> Result<PathBuf> {
    let compiled = || compile(folder.join("c"), &["benches/scda/peer.c", "-lz"]);
    compiled().or_else(|_| {
        tools::zlib()?;
        compiled()
    })
}
