//! `cargo xtask bench NAME`: measures spile and other implementations on the same files, in one run.
//!
//! | file | content |
//! |---|---|
//! | `harness` | implementations, tasks, repetitions, tables; used by every benchmark except `taf` |
//! | `target` | performance targets, medians, durations |
//! | `page` | the sections of `docs/performance.md` |
//! | `taf` | TAF, compared with NumPy, h5py and C |
//! | `scda` | scda, compared with C |
//! | `gsd` | GSD, compared with the C library, its Python package, hoomd-gsd and C |
//! | `sdf` | SDF, compared with sdf-xarray, sdfr and C |
//! | `iotk` | IOTK, compared with gfortran and C |
//! | `ops` | conversions and comparisons, compared with C |
//! | `digitizer` | oscilloscope files, compared with C |
//! | `python` | the Python package, compared with sdf-xarray, gsd.hoomd and NumPy |

mod digitizer;
mod gsd;
mod harness;
mod iotk;
mod ops;
mod page;
mod python;
mod scda;
mod sdf;
mod taf;
mod target;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::shell::{cargo, output, program, root, succeeds, target as target_dir};
use crate::{Result, tools};

/// With more running threads of other programs, a warning is printed.
const BUSY: f64 = 0.2;

struct Options {
    scale: f64,
    rounds: usize,
    spile: Option<PathBuf>,
    keep: bool,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self { scale: 1.0, rounds: 5, spile: None, keep: false };
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{arg}: expected a value"));
            let invalid = |value: &str| format!("{arg}: invalid value `{value}`");
            match *arg {
                "--scale" => {
                    let text = value()?;
                    let scale = text.parse().ok().filter(|s| (1e-4..=10.0).contains(s));
                    options.scale = scale.ok_or_else(|| invalid(text))?;
                }
                "--rounds" => {
                    let text = value()?;
                    options.rounds =
                        text.parse().ok().filter(|n| *n > 0).ok_or_else(|| invalid(text))?;
                }
                "--spile" => options.spile = Some(root().join(value()?)),
                "--keep" => options.keep = true,
                _ => return Err(format!("unknown option `{arg}`")),
            }
        }
        Ok(options)
    }
}

/// Runs a benchmark; returns whether all targets are met.
pub(crate) fn run(name: &str, args: &[&str]) -> Result<bool> {
    let run = match name {
        "taf" => taf::run,
        "scda" => scda::run,
        "gsd" => gsd::run,
        "sdf" => sdf::run,
        "iotk" => iotk::run,
        "ops" => ops::run,
        "digitizer" => digitizer::run,
        "python" => python::run,
        _ => return Err(format!("unknown benchmark `{name}`")),
    };
    run(&Options::parse(args)?)
}

/// Compiles a C program for this machine; `args` are its sources and libraries.
fn compile(path: PathBuf, args: &[&str]) -> Result<PathBuf> {
    let mut command = program(tools::cc()?);
    command.args(["-O3", "-march=native", "-o"]).arg(&path).args(args);
    output(&mut command).map(|_| path)
}

/// Builds the benchmark program of a format, an example of its crate.
fn driver(format: &str) -> Result<PathBuf> {
    example(&format!("spile-{format}"), &format!("bench_{format}"))
}

fn example(package: &str, example: &str) -> Result<PathBuf> {
    let args = ["build", "--release", "--package", package, "--example", example];
    if !succeeds(&mut cargo(&args))? {
        return Err(format!("{package}: the example {example} does not build"));
    }
    Ok(target_dir().join("release/examples").join(example))
}

/// Builds `spile`.
fn build() -> Result<PathBuf> {
    if !succeeds(&mut cargo(&["build", "--release", "--package", "spile-cli"]))? {
        return Err("spile-cli does not build".into());
    }
    Ok(target_dir().join("release/spile"))
}

/// Prints why an implementation is not available; the benchmark continues without it.
fn optional<T>(name: &str, found: Result<T>) -> Option<T> {
    found.map_err(|why| println!("{name}: not measured: {why}")).ok()
}

/// The average number of running threads of other programs during one second; prints a warning if
/// there are too many.
fn other_threads() -> f64 {
    let running = |_| {
        thread::sleep(Duration::from_millis(50));
        let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let field = text.split_whitespace().nth(3).and_then(|f| f.split('/').next()?.parse().ok());
        // This program is one of them.
        field.map_or(0.0, |n: f64| (n - 1.0).max(0.0))
    };
    let busy = (0..20).map(running).sum::<f64>() / 20.0;
    if busy > BUSY {
        println!("warning: {busy:.1} other threads are running; the results are not reliable");
    }
    busy
}

/// Versions of Python and of some packages, as text.
fn versions(python: &Path, packages: &[&str]) -> String {
    let code = "import sys; from importlib.metadata import version as v; \
                print('Python', ', '.join([sys.version.split()[0]] + [p + ' ' + v(p) for p in sys.argv[1:]]))";
    let text = output(program(python).args(["-c", code]).args(packages));
    text.map_or(String::new(), |text| text.trim().to_string())
}

/// Hardware, compilers, date and load as a Markdown list; `versions` are those of the other
/// implementations.
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
