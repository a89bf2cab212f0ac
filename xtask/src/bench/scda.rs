//! `cargo xtask bench scda`: sections written and read, next to what plain C does with the same
//! bytes, in one run.
//!
//! | file | what is in it |
//! |---|---|
//! | `tasks` | the jobs, the tasks and their sizes |
//! | `report` | the cells of the table, the promises, how it is measured |

mod report;
mod tasks;

use std::path::{Path, PathBuf};

use super::rounds::{Arena, Bench, Contestant};
use super::{Options, compile, driver, or_say};
use crate::shell::{cargo, program, succeeds};
use crate::{Result, tools};
use tasks::{C, C_KEEPS, JOBS, MPI_ONE, MPI_TWO, ONE, TASKS, TWO_RANKS, TWO_THREADS};

const BENCH: Bench = Bench {
    name: "scda",
    files: 3.0e9,
    tasks: &TASKS,
    columns: &[C, ONE, TWO_THREADS, TWO_RANKS, MPI_ONE, MPI_TWO],
    ratios: &[(ONE, C), (TWO_THREADS, ONE), (TWO_RANKS, ONE)],
    cell: report::cell,
    remark: report::remark,
    promises: report::promises,
    how: report::HOW,
};

pub(super) fn run(options: &Options) -> Result<bool> {
    BENCH.run(options, |folder| {
        let driver = driver("scda")?;
        let peer = or_say("C", peer(folder));
        let words = tasks::words(folder, options.scale);
        tasks::make_fields(&words)?;
        let mpi = or_say("MPI", build_mpi());
        let mut contestants = Vec::new();
        for job in JOBS.iter().filter(|job| !job.mpi || mpi.is_some()) {
            let driver = driver.clone();
            let one = Contestant::new(job.name, move || job.command(&driver));
            // Its ranks wait for each other without rest: nothing else could be measured meanwhile.
            contestants.push(if job.mpi { one.started_each_time() } else { one });
        }
        // Last: it does the same with files that spile has written.
        let incomplete = peer.is_none();
        if let Some(peer) = peer {
            let keeping = peer.clone();
            contestants.push(Contestant::new(C, move || program(&peer)));
            // For information, and it takes long.
            let keeps = Contestant::new(C_KEEPS, move || {
                let mut keeps = program(&keeping);
                keeps.arg("keep");
                keeps
            });
            contestants.push(keeps.once());
        }
        Ok(Arena { contestants, words, incomplete, versions: String::new() })
    })
}

/// The program that does spile's part as a process of MPI; it lies beside the other.
fn build_mpi() -> Result<()> {
    tools::mpi()?;
    let words = ["build", "--release", "--package", "spile-mpi", "--features", "mpi"];
    if succeeds(cargo(&words).args(["--example", "bench_mpi"]))? {
        return Ok(());
    }
    Err("the bench of spile-mpi does not build".into())
}

/// The program in C.
fn peer(folder: &Path) -> Result<PathBuf> {
    let compiled = || compile(folder.join("peer-in-c"), &["benches/scda/peer.c", "-lz"]);
    compiled().or_else(|_| {
        tools::zlib()?;
        compiled()
    })
}
