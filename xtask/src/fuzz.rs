//! Builds the targets of `fuzz/` with coverage counters and runs them.
//!
//! cargo-fuzz is not needed: the counters are inserted by an LLVM pass of the stable compiler. All crates are
//! built with them, in `target/fuzz`.

mod corpus;
mod ledger;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::shell::{captured, cargo, files, output, program, root, succeeds, target};
use crate::step::{Counts, Outcome};
use crate::{Result, tools};
use ledger::Ledger;

const FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg",
    "fuzzing",
];

/// Limits per input.
const LIMITS: [&str; 2] = ["-timeout=5", "-rss_limit_mb=512"];

/// Longest input in bytes. Longer ones take longer and seldom reach more code.
const LONGEST: u64 = 16 << 10;

/// Lines of output that are printed when a target fails.
const SHOWN: usize = 25;

/// What `cargo xtask fuzz` is asked to do.
#[derive(Debug, Default, PartialEq)]
struct Request {
    /// Seconds, shared by all targets.
    seconds: u64,
    /// Names of targets; all if there are none.
    only: Vec<String>,
    /// Add the executions to the ledger.
    record: bool,
    /// Write the corpus.
    minimise: bool,
}

impl Request {
    /// Parses `[SECONDS] [TARGET]... [--hours N] [--record] [--minimise]`.
    fn parse(args: &[&str]) -> Result<Self> {
        let mut request = Self { seconds: 30, ..Self::default() };
        let mut args = args.iter();
        let mut is_first = true;
        while let Some(arg) = args.next() {
            match *arg {
                "--record" => request.record = true,
                "--minimise" => request.minimise = true,
                "--hours" => {
                    let hours = args.next().and_then(|text| text.parse::<f64>().ok());
                    let hours = hours.filter(|hours| (0.0..=10_000.0).contains(hours));
                    let hours = hours.ok_or("expected a number of hours after --hours")?;
                    request.seconds = (hours * 3600.0) as u64;
                }
                option if option.starts_with('-') => {
                    return Err(format!("unknown option `{option}`"));
                }
                text if is_first && text.bytes().all(|byte| byte.is_ascii_digit()) => {
                    request.seconds =
                        text.parse().map_err(|_| format!("too many seconds: `{text}`"))?;
                }
                name => request.only.push(name.to_string()),
            }
            is_first = false;
        }
        Ok(request)
    }
}

/// Runs `[SECONDS] [TARGET]... [--hours N] [--record] [--minimise]`.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let request = Request::parse(args)?;
    tools::cxx()?;
    let all = targets();
    if let Some(unknown) = request.only.iter().find(|name| !all.contains(name)) {
        return Err(format!("no target `{unknown}` in fuzz/src/bin"));
    }
    let wanted = |name: &String| request.only.is_empty() || request.only.contains(name);
    let targets: Vec<String> = all.into_iter().filter(wanted).collect();
    let folder = build()?;
    let counts = run_all(&folder, &targets, request.seconds, request.record)?;
    if request.minimise {
        for name in &targets {
            corpus::minimise(&folder, name)?;
        }
    }
    Ok(counts.failed == 0)
}

/// The step of `cargo xtask test`.
pub(crate) fn smoke(seconds: u64) -> Outcome {
    if let Err(why) = tools::cxx() {
        return Outcome::Skipped(why);
    }
    match build().and_then(|folder| run_all(&folder, &targets(), seconds, false)) {
        Ok(counts) => Outcome::Tests(counts, true),
        Err(why) => Outcome::Failed(why),
    }
}

/// The names of the programs in `fuzz/src/bin`.
fn targets() -> Vec<String> {
    let sources = files(&root().join("fuzz/src/bin"), "rs");
    sources.iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_string())).collect()
}

/// Runs the targets, one per core at a time; `seconds` is the sum over all targets.
fn run_all(folder: &Path, targets: &[String], seconds: u64, record: bool) -> Result<Counts> {
    let share = (seconds / targets.len().max(1) as u64).max(1);
    let next = AtomicUsize::new(0);
    let counts = Mutex::new(Counts::default());
    let work = || -> Result<()> {
        while let Some(name) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            let executions = run_target(folder, name, share)?;
            let mut counts = counts.lock().map_err(|e| e.to_string())?;
            counts.passed += u64::from(executions.is_some());
            counts.failed += u64::from(executions.is_none());
            if record {
                // Saved after every target: a long run may be interrupted.
                Ledger::read()?.add(name, executions, share).write()?;
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or(Err("a worker failed".into())))
    })?;
    counts.into_inner().map_err(|e| e.to_string())
}

/// Builds the targets; returns their folder.
fn build() -> Result<PathBuf> {
    let host = output(std::process::Command::new("rustc").arg("-vV"))?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let home = target().join("fuzz");
    let mut command =
        cargo(&["build", "--release", "--bins", "--manifest-path", "fuzz/Cargo.toml"]);
    // With `--target`, build scripts and macros have no counters.
    command.args(["--target", host]).arg("--target-dir").arg(&home);
    command.env("RUSTFLAGS", FLAGS.join(" ")).env_remove("CARGO_ENCODED_RUSTFLAGS");
    if !succeeds(&mut command)? {
        return Err("the fuzz targets do not build".into());
    }
    Ok(home.join(host).join("release"))
}

/// Runs a target; returns the number of executions, or none after a failure.
fn run_target(folder: &Path, name: &str, seconds: u64) -> Result<Option<u64>> {
    let home = target().join("fuzz");
    let (corpus, crashes) = (corpus::folder(name), home.join("crashes").join(name));
    create(&corpus)?;
    create(&crashes)?;
    let mut command = program(folder.join(name));
    command.args(LIMITS).arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-max_len={LONGEST}"));
    // Without a slash at the end this would be a prefix of file names.
    command.arg(format!("-artifact_prefix={}/", crashes.display()));
    command.args(["-verbosity=0", "-print_final_stats=1"]).arg(&corpus);
    command.args(corpus::inputs(name)?);
    let (success, text) = captured(&mut command)?;
    if success {
        let stat = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_whitespace().last()?.parse::<u64>().ok())
        };
        let runs = stat("stat::number_of_executed_units").unwrap_or(0);
        let new = stat("stat::new_units_added").unwrap_or(0);
        let each = runs / seconds.max(1);
        println!("{name}: {runs} inputs in {seconds} s ({each}/s), {new} with new coverage");
        return Ok(Some(runs));
    }
    let lines: Vec<&str> = text.lines().collect();
    let cause = |line: &&str| line.contains("panicked at") || line.contains("ERROR: libFuzzer");
    let start = lines.iter().position(cause).unwrap_or(lines.len().saturating_sub(SHOWN));
    let shown = lines[start..].iter().take(SHOWN).copied().collect::<Vec<_>>().join("\n");
    let mut kept = lines.iter().filter_map(|line| line.split_once("Test unit written to "));
    let kept = kept.next_back().map_or("not written", |(_, path)| path);
    println!("{shown}\n{name}: FAILED; input: {kept}");
    Ok(None)
}

fn create(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_long_run_are_understood() {
        let request = Request::parse(&["--hours", "0.5", "gsd_open", "--record"]).unwrap();
        let only = vec!["gsd_open".to_string()];
        assert_eq!(request, Request { seconds: 1800, only, record: true, minimise: false });
        assert_eq!(Request::parse(&[]).unwrap().seconds, 30);
        assert_eq!(Request::parse(&["7"]).unwrap().seconds, 7);
        assert!(Request::parse(&["--hours"]).is_err());
        assert!(Request::parse(&["--hour", "1"]).is_err());
    }
}
