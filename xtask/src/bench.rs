//! `cargo xtask bench`: spile against others, on the same files, in one run. What follows is
//! `bench taf`, against NumPy, h5py and plain C.
//!
//! | file | what is in it |
//! |---|---|
//! | `tasks` | the tasks, with every command line |
//! | `sample` | the files that are read |
//! | `contest` | running the contestants in turn |
//! | `report` | the table, the promises, its part of the page |
//! | `page` | `docs/performance.md` and its parts |
//! | `rounds` | what the benches of the other formats share |
//! | `scda` | `bench scda`, against plain C |
//! | `gsd` | `bench gsd`, against the C library, its Python package, hoomd-gsd and plain C |
//! | `iotk` | `bench iotk`, against gfortran and plain C |
//! | `ops` | `bench ops`, conversions and comparisons against plain C |
//! | `digitizer` | `bench digitizer`, files of oscilloscopes against plain C |
//! | `python` | `bench python`, against sdf-xarray, gsd.hoomd and NumPy |
//! | `sdf` | `bench sdf`, against sdf-xarray, sdfr and plain C |

mod contest;
mod digitizer;
mod gsd;
mod iotk;
mod ops;
mod page;
mod python;
mod report;
mod rounds;
mod sample;
mod scda;
mod sdf;
mod tasks;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::shell::{cargo, output, program, root, succeeds, target};
use crate::{Result, tools};
use contest::Arena;

/// More than this many threads of others spoil a measurement.
const BUSY: f64 = 0.2;

struct Options {
    scale: f64,
    rounds: usize,
    spile: Option<PathBuf>,
    keep: bool,
}

impl Options {
    fn parse(words: &[&str]) -> Result<Self> {
        let mut options = Self { scale: 1.0, rounds: 5, spile: None, keep: false };
        let mut rest = words.iter();
        while let Some(word) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{word} wants a value"));
            let bad = |value: &str| format!("`{value}` is not a value for {word}");
            match *word {
                "--scale" => {
                    let text = value()?;
                    let scale = text.parse().ok().filter(|s| (1e-4..=10.0).contains(s));
                    options.scale = scale.ok_or_else(|| bad(text))?;
                }
                "--rounds" => {
                    let text = value()?;
                    options.rounds =
                        text.parse().ok().filter(|n| *n > 0).ok_or_else(|| bad(text))?;
                }
                "--spile" => options.spile = Some(root().join(value()?)),
                "--keep" => options.keep = true,
                _ => return Err(format!("`{word}` is not an option of bench")),
            }
        }
        Ok(options)
    }
}

/// `bench scda`.
pub(crate) fn scda(words: &[&str]) -> Result<bool> {
    scda::run(&Options::parse(words)?)
}

/// `bench ops`.
pub(crate) fn ops(words: &[&str]) -> Result<bool> {
    ops::run(&Options::parse(words)?)
}

/// `bench digitizer`.
pub(crate) fn digitizer(words: &[&str]) -> Result<bool> {
    digitizer::run(&Options::parse(words)?)
}

/// `bench gsd`.
pub(crate) fn gsd(words: &[&str]) -> Result<bool> {
    gsd::run(&Options::parse(words)?)
}

/// `bench python`.
pub(crate) fn python(words: &[&str]) -> Result<bool> {
    python::run(&Options::parse(words)?)
}

/// `bench sdf`.
pub(crate) fn sdf(words: &[&str]) -> Result<bool> {
    sdf::run(&Options::parse(words)?)
}

/// `bench iotk`.
pub(crate) fn iotk(words: &[&str]) -> Result<bool> {
    iotk::run(&Options::parse(words)?)
}

/// `bench taf`.
pub(crate) fn taf(words: &[&str]) -> Result<bool> {
    let options = Options::parse(words)?;
    let folder = target().join("bench");
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let fine = measure(&options, &folder);
    if !options.keep {
        let _ = fs::remove_dir_all(&folder);
    }
    fine
}

fn measure(options: &Options, folder: &Path) -> Result<bool> {
    let limit = compile(folder.join("limit"), &["benches/taf/limit.c"])?;
    let spile = or_say("spile", options.spile.clone().map_or_else(build, given));
    let python = or_say("NumPy and h5py", tools::python(&["numpy".into(), "h5py".into()]));
    println!("making files at scale {}", options.scale);
    let words = sample::make(folder, options.scale)?;
    let peers = root().join("benches/taf/peers.py");
    if let Some(python) = &python {
        output(program(python).arg(&peers).args(["pack", &words["u8"], &words["h5"]]))?;
    }
    let arena = Arena { words, limit, peers, python, spile };
    let busy = others();
    if busy > BUSY {
        println!("warning: {busy:.1} other threads are running; do not trust these numbers");
    }
    let results = contest::hold(&arena, options.rounds);

    println!("\n{}", report::table(&results));
    let promises = report::promises(&results);
    for promise in &promises {
        println!("{}", promise.line());
    }
    for problem in &results.problems {
        println!("problem: {problem}");
    }
    if results.has_spile() && results.problems.is_empty() {
        let python = arena.python.as_deref();
        let versions = python.map_or(String::new(), |p| versions(p, &["numpy", "h5py"]));
        let machine = machine(&versions, busy);
        page::save(&report::part(&machine, options.scale, options.rounds, &results))?;
    } else {
        println!("docs/performance.md is left alone: not everything was measured");
    }
    Ok(results.problems.is_empty() && promises.iter().all(report::Promise::holds))
}

/// A program in C, for this machine; `words` are its source and libraries.
fn compile(program_path: PathBuf, words: &[&str]) -> Result<PathBuf> {
    let mut command = program(tools::cc()?);
    command.args(["-O3", "-march=native", "-o"]).arg(&program_path).args(words);
    output(&mut command).map(|_| program_path)
}

/// The program that does spile's part of a bench, an example of the format's crate.
fn driver(format: &str) -> Result<PathBuf> {
    example(&format!("spile-{format}"), &format!("bench_{format}"))
}

fn example(package: &str, example: &str) -> Result<PathBuf> {
    let words = ["build", "--release", "--package", package, "--example", example];
    if !succeeds(&mut cargo(&words))? {
        return Err(format!("the bench of {package} does not build"));
    }
    Ok(target().join("release/examples").join(example))
}

fn build() -> Result<PathBuf> {
    if !succeeds(&mut cargo(&["build", "--release", "--package", "spile-cli"]))? {
        return Err("it does not build".into());
    }
    given(target().join("release/spile"))
}

fn given(path: PathBuf) -> Result<PathBuf> {
    if path.is_file() { Ok(path) } else { Err(format!("{} is not a program", path.display())) }
}

/// The bench goes on without a contestant, but not without a word.
fn or_say<T>(who: &str, found: Result<T>) -> Option<T> {
    found.map_err(|why| println!("{who}: not measured: {why}")).ok()
}

/// How many threads of other programs want a processor, over a second.
fn others() -> f64 {
    let running = |_| {
        thread::sleep(Duration::from_millis(50));
        let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let field = text.split_whitespace().nth(3).and_then(|f| f.split('/').next()?.parse().ok());
        // This program is one of them.
        field.map_or(0.0, |n: f64| (n - 1.0).max(0.0))
    };
    (0..20).map(running).sum::<f64>() / 20.0
}

/// Python and its packages, in words.
fn versions(python: &Path, packages: &[&str]) -> String {
    let code = "import sys; from importlib.metadata import version as v; \
                print('Python', ', '.join([sys.version.split()[0]] + [p + ' ' + v(p) for p in sys.argv[1:]]))";
    let text = output(program(python).args(["-c", code]).args(packages));
    text.map_or(String::new(), |text| text.trim().to_string())
}

/// Where and with what it was measured; `versions` are those of the other contestants.
fn machine(versions: &str, busy: f64) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or("unknown", |(_, value)| value.trim()).to_string()
    };
    let first = |text: Result<String>| {
        text.ok()
            .and_then(|text| Some(text.lines().next()?.to_string()))
            .unwrap_or("unknown".into())
    };
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let kib: f64 =
        field(&read("/proc/meminfo"), "MemTotal").replace(" kB", "").parse().unwrap_or(0.0);
    let versions = if versions.is_empty() { String::new() } else { format!("; {versions}") };
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    format!(
        "- {}, {cores} cores, {:.0} GiB of memory, {}\n- {}; {}{versions}\n- {}, {busy:.1} other threads running\n",
        field(&read("/proc/cpuinfo"), "model name"),
        kib / 1024.0 / 1024.0,
        first(output(program("uname").args(["-s", "-r", "-m"]))),
        first(output(program("rustc").arg("--version"))),
        first(output(program(compiler).arg("--version"))),
        first(output(program("date").args(["-u", "+%Y-%m-%d"]))),
    )
}
