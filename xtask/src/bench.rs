//! `cargo xtask bench NAME`: measures spile and other implementations on the same files, in one run.
//!
//! | file | content |
//! |---|---|
//! | `table` | a benchmark as data, `benches/NAME/bench.toml`: implementations, tasks, targets |
//! | `programs` | builds the programs |
//! | `runner` | creates files and runs tasks |
//! | `results` | measurements, the table of results, targets |
//! | `page` | the sections of `docs/performance.md` |

mod page;
mod programs;
mod results;
mod runner;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::Result;
use crate::shell::{output, program, root, target as target_dir};
use programs::first_line;
use table::{Table, Values};

const BENCHES: [&str; 8] = ["taf", "scda", "gsd", "sdf", "iotk", "ops", "digitizer", "python"];

/// With more running threads of other programs, a warning is printed.
const BUSY: f64 = 0.2;

/// A file system in memory, so that the disk is not measured.
const MEMORY_FILES: &str = "/dev/shm";

struct Options {
    scale: f64,
    rounds: usize,
    /// Runs every task once with small files, to test the benchmark.
    quick: bool,
    spile: Option<PathBuf>,
    keep: bool,
}

impl Options {
    fn parse(args: &[&str]) -> Result<Self> {
        let mut options = Self { scale: 1.0, rounds: 5, quick: false, spile: None, keep: false };
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
                "--quick" => (options.quick, options.scale, options.rounds) = (true, 1e-3, 1),
                "--spile" => options.spile = Some(root().join(value()?)),
                "--keep" => options.keep = true,
                _ => return Err(format!("unknown option `{arg}`")),
            }
        }
        Ok(options)
    }
}

/// Runs a benchmark and writes its section of the page. Returns whether all targets are met; with `--quick`, whether
/// all tasks ran.
pub(crate) fn run(name: &str, args: &[&str]) -> Result<bool> {
    if !BENCHES.contains(&name) {
        return Err(format!("unknown benchmark `{name}`; expected {}", BENCHES.join(", ")));
    }
    let options = Options::parse(args)?;
    let table = Table::load(name)?;
    if options.spile.is_some() && !table.programs.iter().any(|one| one[1] == "spile") {
        return Err(format!("--spile is not an option of bench {name}"));
    }
    let folders = [
        ("dir", base_folder(table.files * options.scale).join("spile-bench")),
        ("disk", target_dir().join("spile-bench-disk")),
    ];
    let mut values = Values::new();
    for (name, folder) in &folders {
        // Left over from an interrupted run.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        values.insert((*name).into(), folder.to_string_lossy().into_owned());
    }
    values.extend(table.sizes.iter().map(|(size, full)| (size.clone(), full.at(options.scale))));
    let met = measure(name, &table, &options, values);
    if !options.keep {
        for (_, folder) in &folders {
            let _ = fs::remove_dir_all(folder);
        }
    }
    met
}

fn measure(name: &str, table: &Table, options: &Options, mut values: Values) -> Result<bool> {
    let versions = programs::build_all(table, options, &mut values)?;
    let busy = if options.quick { 0.0 } else { other_threads() };
    let (results, incomplete) = runner::measure(table, options, &mut values)?;
    let text = results.markdown(table)?;
    println!("\n{text}");
    let (targets, met) = results.targets(table);
    for line in targets.iter().filter(|_| !options.quick) {
        println!("{line}");
    }
    for problem in &results.problems {
        println!("problem: {problem}");
    }
    if options.quick {
        println!("quick: not a measurement");
        return Ok(results.problems.is_empty());
    }
    if !results.problems.is_empty() || incomplete {
        println!("docs/performance.md is not changed: the measurement is incomplete");
        return Ok(met && results.problems.is_empty());
    }
    let memory = Path::new(&values["dir"]).starts_with(MEMORY_FILES);
    let medium = if memory { "in memory (tmpfs)" } else { "on a disk" };
    let method = root().join(format!("benches/{name}/method.md"));
    let method = fs::read_to_string(&method).map_err(|e| format!("{}: {e}", method.display()))?;
    page::save(&format!(
        "# Performance: {name}\n\nMeasured by `cargo xtask bench {name} --scale {}`, {} rounds, \
         files {medium}. A ratio is the median of the ratios of single repetitions.\n\n\
         {}\n{text}\n\
         ## Targets: {name}\n\n```text\n{}\n```\n\n\
         ## Method: {name}\n\n{method}",
        options.scale,
        options.rounds,
        machine(&versions, busy),
        targets.join("\n"),
    ))?;
    Ok(met)
}

/// A folder for files of so many bytes, in memory if there is enough.
fn base_folder(bytes: f64) -> PathBuf {
    let free = output(program("df").args(["-k", "--output=avail", MEMORY_FILES]));
    let free = free.ok().and_then(|text| text.lines().nth(1)?.trim().parse::<f64>().ok());
    match free {
        Some(kib) if kib * 1024.0 > bytes => PathBuf::from(MEMORY_FILES),
        _ => {
            println!("{MEMORY_FILES} is too small; the files are on a disk, which may be slow");
            target_dir()
        }
    }
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

/// Hardware, compilers, date and load as a Markdown list; `versions` are those of the other
/// implementations.
fn machine(versions: &str, busy: f64) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once(':').map_or("unknown", |(_, value)| value.trim()).to_string()
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
        first_line(program("uname").args(["-s", "-r", "-m"])),
        first_line(program("rustc").arg("--version")),
        first_line(program(compiler).arg("--version")),
        first_line(program("date").args(["-u", "+%Y-%m-%d"])),
    )
}
