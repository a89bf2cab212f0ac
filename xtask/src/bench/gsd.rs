//! `cargo xtask bench gsd`: the protocol of the GSD design document and more, compared with the C library, its
//! Python package, the crate hoomd-gsd and `pread()` and `pwrite()`.
//!
//! | file | content |
//! |---|---|
//! | `tasks` | the tasks and their sizes |

mod tasks;

use std::fs;
use std::path::{Path, PathBuf};

use super::harness::{Bench, Implementation, Results, Setup};
use super::target::{Target, duration};
use super::{Options, compile, driver, optional, versions};
use crate::shell::{cargo, output, program, root, succeeds, target as target_dir};
use crate::{Result, tools};
use tasks::{CLOSE, COMMIT, CRATE, DURABLE, FRAMES, LIBRARY, LOG, OPEN_LARGE, PLAIN, PYTHON};
use tasks::{SPILE, TASKS, TINY};

/// Required rate of committed frames, per second.
const COMMITS: f64 = 100_000.0;

/// Slow implementations are measured in one of so many repetitions.
const SELDOM: usize = 4;

/// Implementations with the same system calls are equally fast within this factor.
const NOISE: f64 = 0.95;

const METHOD: &str = "\
Frames of the protocol have N positions (3 x float) and N orientations (4 x float); 100 MiB and 1 GiB of
them at scale 1. Tiny frames contain one 8-byte integer. HOOMD frames have positions, velocities and four
logged quantities; other properties are those of frame 0 or defaults.

- **spile** is `formats/gsd/examples/bench_gsd`: finds a chunk and reads it into a reused buffer. The system updates the
  access time of its file once an hour, and at every read for the others; with that, reads at N = 32^2 would take
  4 % longer.
- **C library** is the `gsd.c` of the Python package, compiled with the local compiler and called by
  `benches/gsd/peer.c`; **Python** is `gsd.fl` and, for HOOMD frames and logs, `gsd.hoomd`.
- **hoomd-gsd** is that crate, in `benches/gsd/hoomd-gsd`.
- **pread/pwrite** transfers the same bytes with one system call per chunk, at known offsets. A durable commit is
  one write and one `fdatasync()`; a commit without sync is three writes, the minimum; a close is writing and syncing
  1.5 MiB, the most that spile has buffered.
- Chunks of 2 MiB and more are in huge pages, except for hoomd-gsd: NumPy requests them, and copies into them are
  up to 10 % faster.
- Writing a new file includes close and sync. Files are in memory, except for cold reads and durable commits, which use
  the disk of the build folder; before a cold read the file is removed from the page cache.
- Open includes reading the number of frames. All other tasks start with an open file, except cold reads: opening with
  the C library triggers read-ahead of megabytes around the index.
- Rates are bytes of data, or frames, per second. Implementations alternate; values are medians. Every repetition is a
  new process, whose start is not included: reads into some physical pages are 10 % faster than into
  others, and a process keeps its pages. Python and hoomd-gsd are measured in one of four repetitions.
";

const BENCH: Bench = Bench {
    name: "gsd",
    files: 7.0e9,
    tasks: &TASKS,
    columns: &[PLAIN, LIBRARY, PYTHON, CRATE, SPILE],
    ratios: &[(SPILE, PLAIN), (SPILE, LIBRARY), (SPILE, PYTHON), (SPILE, CRATE)],
    cell,
    note: |_| String::new(),
    targets,
    method: METHOD,
};

/// Bytes or frames per second, or the duration.
fn cell(results: &Results, task: &'static str, name: &'static str) -> String {
    let found = results.seconds(task, name).zip(results.bytes(task, name));
    let Some((seconds, amount)) = found else { return "-".into() };
    let rate = amount as f64 / seconds;
    match tasks::unit(task) {
        tasks::Unit::Bytes => format!("{:.2} GB/s", rate / 1e9),
        tasks::Unit::Frames if rate >= 1e6 => format!("{:.2} M/s", rate / 1e6),
        tasks::Unit::Frames => format!("{rate:.0}/s"),
        tasks::Unit::Time => duration(seconds),
    }
}

fn targets(results: &Results) -> Vec<Target> {
    let names = || TASKS.iter().map(|task| task.name);
    let cached = names().filter(|name| tasks::is_cached_read(name));
    let mut all: Vec<Target> =
        cached.map(|task| results.faster(task, SPILE, PLAIN, NOISE)).collect();
    let compared = names().filter(|name| results.speed(name, SPILE, LIBRARY).is_some());
    for task in compared {
        let factor = if task == TINY { 1.5 } else { NOISE };
        all.push(results.faster(task, SPILE, LIBRARY, factor));
    }
    all.push(results.faster(CLOSE, SPILE, PLAIN, 0.5));
    let rate = results.seconds(COMMIT, SPILE).zip(results.bytes(COMMIT, SPILE));
    all.push(Target {
        text: format!("{COMMIT}: at least {COMMITS} frames per second"),
        found: rate.map(|(seconds, frames)| {
            let rate = frames as f64 / seconds;
            (format!("{rate:.0}"), rate >= COMMITS)
        }),
    });
    let python = FRAMES.into_iter().chain([LOG]);
    all.extend(python.map(|task| results.faster(task, SPILE, PYTHON, 10.0)));
    all.push(results.within(OPEN_LARGE, SPILE, 0.001));
    all.push(results.faster(DURABLE, SPILE, PLAIN, 0.475));
    all
}

pub(super) fn run(options: &Options) -> Result<bool> {
    let disk = target_dir().join("bench-gsd");
    let met = BENCH.run(options, |folder| {
        fs::create_dir_all(&disk).map_err(|e| format!("{}: {e}", disk.display()))?;
        setup(folder, &disk, options.scale)
    });
    if !options.keep {
        let _ = fs::remove_dir_all(&disk);
    }
    met
}

fn setup(folder: &Path, disk: &Path, scale: f64) -> Result<Setup> {
    let driver = driver("gsd")?;
    let plain = optional("C", compile(folder.join("plain"), &["benches/gsd/peer.c"]));
    let python = optional(PYTHON, tools::python(&["gsd".into(), "numpy".into()]));
    let library = python.as_deref().and_then(|p| optional(LIBRARY, library(p, folder)));
    let hoomd = optional(CRATE, hoomd_gsd());
    let values = tasks::values(folder, disk, scale);
    println!("creating files at scale {scale}");
    let mut spile = Implementation::program(SPILE, &driver, &[]).restarted();
    for task in tasks::files(&values) {
        spile.run(&task)?;
    }
    let mut setup = Setup::new(values);
    setup.add(spile);
    for (name, path) in [(PLAIN, plain), (LIBRARY, library)] {
        let peer = path.map(|path| Implementation::program(name, &path, &[]).restarted());
        setup.add_optional(peer);
    }
    let peer = |python| Implementation::program(PYTHON, python, &["benches/gsd/peer.py"]);
    setup.add_optional(python.as_deref().map(|python| peer(python).restarted().every(SELDOM)));
    if let Some(path) = hoomd {
        setup.add(Implementation::program(CRATE, &path, &[]).restarted().every(SELDOM));
    }
    setup.versions = python.map_or(String::new(), |p| versions(&p, &["gsd", "numpy"]));
    Ok(setup)
}

/// Compiles the C library from the source in the Python package.
fn library(python: &Path, folder: &Path) -> Result<PathBuf> {
    let code = "import gsd, os; print(os.path.dirname(gsd.__file__))";
    let home = output(program(python).args(["-c", code]))?;
    let home = home.trim();
    let (headers, source) = (format!("-I{home}"), format!("{home}/gsd.c"));
    let args = ["-w", "-DLIBRARY", &headers, "benches/gsd/peer.c", &source, "-lm"];
    compile(folder.join("library"), &args)
}

/// Builds the program with the crate hoomd-gsd, a separate workspace.
fn hoomd_gsd() -> Result<PathBuf> {
    let home = target_dir().join("hoomd-gsd");
    let mut build = cargo(&["build", "--release", "--quiet", "--locked"]);
    build.arg("--manifest-path").arg(root().join("benches/gsd/hoomd-gsd/Cargo.toml"));
    if succeeds(build.arg("--target-dir").arg(&home))? {
        return Ok(home.join("release/peer-hoomd-gsd"));
    }
    Err("hoomd-gsd does not build".into())
}
