//! `cargo xtask bench gsd`: the protocol of the GSD design text and more, next to the C library, its
//! Python package, the crate hoomd-gsd and plain `pread()` and `pwrite()`, in one run.
//!
//! | file | what is in it |
//! |---|---|
//! | `tasks` | the tasks and their sizes |

mod tasks;

use std::fs;
use std::path::{Path, PathBuf};

use super::report::{Promise, duration};
use super::rounds::{Arena, Bench, Contestant, Results};
use super::{Options, compile, driver, or_say, versions};
use crate::shell::{cargo, output, program, root, succeeds, target};
use crate::{Result, tools};
use tasks::{CLOSE, COMMIT, CRATE, DURABLE, FRAMES, LIBRARY, LOG, OPEN_LARGE, PLAIN, PYTHON};
use tasks::{SPILE, TASKS, TINY};

/// Frames a second that must be committed one by one.
const COMMITS: f64 = 100_000.0;

/// Who is far behind has a turn as often as this.
const SELDOM: usize = 4;

/// Two that do the same system calls are equally fast within this.
const NOISE: f64 = 0.95;

const HOW: &str = "\
Frames of the protocol have N positions (3 x float) and N orientations (4 x float); 100 MiB and 1 GiB of
them at scale 1. Tiny frames are one number of eight bytes. HOOMD frames have positions, velocities and four
logged quantities; everything else is taken from frame 0 or is a default.

- **spile** is `formats/gsd/examples/bench_gsd`: find a chunk, read it into memory that is used again. The system
  notes the time of access once an hour for it, and at every read for the others: as for them, reads at N = 32^2
  would take 4 % longer.
- **C library** is the `gsd.c` that comes with the Python package, compiled by this machine's compiler, driven
  by `benches/gsd/peer.c`; **Python** is its layers `fl` and, for HOOMD frames and logs, `hoomd`.
- **hoomd-gsd** is that crate, in `benches/gsd/hoomd-gsd`.
- **pread/pwrite** moves the same bytes with one system call for each chunk, from places it knows. For a durable
  commit it is one write and one `fdatasync`; for a commit without sync, the three writes it takes at least; for
  a close, writing and syncing 1.5 MiB, which is the most that spile has left to do.
- Chunks of 2 MiB and more are in memory with large pages, but for hoomd-gsd: NumPy asks for them, and copying
  into them is up to a tenth faster.
- A new file counts until it is closed and synced. Files are in memory, but for cold reads and durable commits,
  which are on the disk of the build; before a cold read the system is asked to forget the file.
- An open is opening and asking for the number of frames. Everything else has its file open already, but for
  cold reads: the C library's open lets the system read megabytes around the index ahead, so it is in their clock.
- Rates are bytes of the data, or frames, in a second; the contestants take turns, round after round, and the
  median counts. Each turn is a new process, which is not in its time: reading into some pages of memory is a tenth
  faster than into others, and a process gets the same ones again and again. Python and hoomd-gsd have one in
  four of the turns.
";

const BENCH: Bench = Bench {
    name: "gsd",
    files: 7.0e9,
    tasks: &TASKS,
    columns: &[PLAIN, LIBRARY, PYTHON, CRATE, SPILE],
    ratios: &[(SPILE, PLAIN), (SPILE, LIBRARY), (SPILE, PYTHON), (SPILE, CRATE)],
    cell,
    remark: |_| String::new(),
    promises,
    how: HOW,
};

/// Bytes or frames in a second, or how long it takes.
fn cell(results: &Results, task: &'static str, who: &'static str) -> String {
    let found = results.seconds(task, who).zip(results.bytes(task, who));
    let Some((seconds, amount)) = found else { return "-".into() };
    let rate = amount as f64 / seconds;
    match tasks::unit(task) {
        tasks::Unit::Bytes => format!("{:.2} GB/s", rate / 1e9),
        tasks::Unit::Frames if rate >= 1e6 => format!("{:.2} M/s", rate / 1e6),
        tasks::Unit::Frames => format!("{rate:.0}/s"),
        tasks::Unit::Time => duration(seconds),
    }
}

fn promises(results: &Results) -> Vec<Promise> {
    let mut all = Vec::new();
    for task in TASKS.iter().map(|task| task.name).filter(|name| tasks::is_cached_read(name)) {
        let text = format!("{task}: 0.95 times as fast as pread() or faster");
        all.push(results.faster(text, task, SPILE, PLAIN, 0.95));
    }
    for task in TASKS.iter().map(|task| task.name).filter(|name| *name != TINY) {
        if results.speed(task, SPILE, LIBRARY).is_some() {
            let text = format!("{task}: not behind the C library (0.95 or more)");
            all.push(results.faster(text, task, SPILE, LIBRARY, NOISE));
        }
    }
    let text = format!("{TINY}: 1.5 times as fast as the C library or faster");
    all.push(results.faster(text, TINY, SPILE, LIBRARY, 1.5));
    let text = format!("{CLOSE}: at most twice the time of writing and syncing what is left");
    all.push(results.faster(text, CLOSE, SPILE, PLAIN, 0.5));
    let rate = results.seconds(COMMIT, SPILE).zip(results.bytes(COMMIT, SPILE));
    all.push(Promise {
        text: format!("{COMMIT}: at least 100,000 frames a second"),
        found: rate.map(|(seconds, frames)| {
            let rate = frames as f64 / seconds;
            (format!("{rate:.0}"), rate >= COMMITS)
        }),
    });
    for task in FRAMES.into_iter().chain([LOG]) {
        let text = format!("{task}: 10 times as fast as Python or faster");
        all.push(results.faster(text, task, SPILE, PYTHON, 10.0));
    }
    all.push(results.within(format!("{OPEN_LARGE}: less than 1 ms"), OPEN_LARGE, SPILE, 0.001));
    let text = format!("{DURABLE}: at least half as fast as one write and one sync");
    all.push(results.faster(text, DURABLE, SPILE, PLAIN, 0.5 * NOISE));
    all
}

pub(super) fn run(options: &Options) -> Result<bool> {
    let disk = target().join("bench-gsd");
    let fine = BENCH.run(options, |folder| {
        fs::create_dir_all(&disk).map_err(|e| format!("{}: {e}", disk.display()))?;
        arena(folder, &disk, options.scale)
    });
    if !options.keep {
        let _ = fs::remove_dir_all(&disk);
    }
    fine
}

fn arena(folder: &Path, disk: &Path, scale: f64) -> Result<Arena> {
    let driver = driver("gsd")?;
    let plain = or_say("C", compile(folder.join("plain"), &["benches/gsd/peer.c"]));
    let python = or_say("Python", tools::python(&["gsd".into(), "numpy".into()]));
    let library = python.as_deref().and_then(|p| or_say("the C library", library(p, folder)));
    let hoomd = or_say("hoomd-gsd", hoomd_gsd());
    let words = tasks::words(folder, disk, scale);
    println!("making files at scale {scale}");
    let mut maker = Contestant::new(SPILE, {
        let driver = driver.clone();
        move || program(&driver)
    });
    for task in tasks::files(&words) {
        maker.ask(&task)?;
    }
    let versions = python.as_ref().map_or(String::new(), |p| versions(p, &["gsd", "numpy"]));
    let incomplete = plain.is_none() || python.is_none() || library.is_none();
    let programs = [(SPILE, Some(driver)), (PLAIN, plain), (LIBRARY, library), (CRATE, hoomd)];
    let mut contestants: Vec<Contestant> = programs
        .into_iter()
        .filter_map(|(name, path)| path.map(|path| Contestant::new(name, move || program(&path))))
        .map(Contestant::started_each_time)
        .map(|one| if one.name == CRATE { one.every(SELDOM) } else { one })
        .collect();
    if let Some(python) = python {
        let started = Contestant::new(PYTHON, move || {
            let mut command = program(&python);
            command.arg(root().join("benches/gsd/peer.py"));
            command
        });
        contestants.push(started.started_each_time().every(SELDOM));
    }
    Ok(Arena { contestants, words, incomplete, versions })
}

/// The C library: the package of Python brings its source.
fn library(python: &Path, folder: &Path) -> Result<PathBuf> {
    let code = "import gsd, os; print(os.path.dirname(gsd.__file__))";
    let home = output(program(python).args(["-c", code]))?;
    let home = home.trim();
    let (headers, source) = (format!("-I{home}"), format!("{home}/gsd.c"));
    let words = ["-w", "-DLIBRARY", &headers, "benches/gsd/peer.c", &source, "-lm"];
    compile(folder.join("library"), &words)
}

/// The crate hoomd-gsd, which nothing else here depends on.
fn hoomd_gsd() -> Result<PathBuf> {
    let home = target().join("hoomd-gsd");
    let mut build = cargo(&["build", "--release", "--quiet", "--locked"]);
    build.arg("--manifest-path").arg(root().join("benches/gsd/hoomd-gsd/Cargo.toml"));
    if succeeds(build.arg("--target-dir").arg(&home))? {
        return Ok(home.join("release/peer-hoomd-gsd"));
    }
    Err("it does not build".into())
}
