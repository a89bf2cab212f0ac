//! Builds the targets of `fuzz/` with coverage counters and runs them.
//!
//! cargo-fuzz is not needed: the counters are inserted by an LLVM pass of the stable compiler. All crates are
//! built with them, in `target/fuzz`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::shell::{captured, cargo, files, output, root, succeeds, target};
use crate::step::{Counts, Outcome};
use crate::{Result, tools};

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
const LIMITS: [&str; 3] = ["-timeout=5", "-rss_limit_mb=512", "-max_len=65536"];

/// Lines of output that are printed when a target fails.
const SHOWN: usize = 25;

/// Runs `[SECONDS] [TARGET]`.
pub(crate) fn run(args: &[&str]) -> Result<bool> {
    let (seconds, only) = match *args {
        [] => (30, None),
        [seconds] => (number(seconds)?, None),
        [seconds, target] => (number(seconds)?, Some(target)),
        _ => return Err("expected at most a number of seconds and a target".into()),
    };
    tools::cxx()?;
    let targets: Vec<String> =
        targets().into_iter().filter(|name| only.is_none_or(|only| only == name)).collect();
    if targets.is_empty() {
        return Err("no such target in fuzz/src/bin".into());
    }
    Ok(run_all(&targets, seconds)?.failed == 0)
}

/// The step of `cargo xtask test`.
pub(crate) fn smoke(seconds: u64) -> Outcome {
    if let Err(why) = tools::cxx() {
        return Outcome::Skipped(why);
    }
    match run_all(&targets(), seconds) {
        Ok(counts) => Outcome::Tests(counts, true),
        Err(why) => Outcome::Failed(why),
    }
}

fn number(text: &str) -> Result<u64> {
    text.parse().map_err(|_| format!("expected a number of seconds, found `{text}`"))
}

/// The names of the programs in `fuzz/src/bin`.
fn targets() -> Vec<String> {
    let sources = files(&root().join("fuzz/src/bin"), "rs");
    sources.iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_string())).collect()
}

/// Runs the targets, one per core at a time; `seconds` is the sum over all targets.
fn run_all(targets: &[String], seconds: u64) -> Result<Counts> {
    let folder = build()?;
    let share = (seconds / targets.len().max(1) as u64).max(1);
    let next = AtomicUsize::new(0);
    let counts = Mutex::new(Counts::default());
    let work = || -> Result<()> {
        while let Some(name) = targets.get(next.fetch_add(1, Ordering::Relaxed)) {
            let passed = run_target(&folder, name, share)?;
            let mut counts = counts.lock().map_err(|e| e.to_string())?;
            counts.passed += u64::from(passed);
            counts.failed += u64::from(!passed);
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

/// Runs a target; returns whether it found no failure.
fn run_target(folder: &Path, name: &str, seconds: u64) -> Result<bool> {
    let home = target().join("fuzz");
    let (corpus, crashes) = (home.join("corpus").join(name), home.join("crashes").join(name));
    for folder in [&corpus, &crashes] {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let mut command = crate::shell::program(folder.join(name));
    command.args(LIMITS).arg(format!("-max_total_time={seconds}"));
    // Without a slash at the end this would be a prefix of file names.
    command.arg(format!("-artifact_prefix={}/", crashes.display()));
    command.args(["-verbosity=0", "-print_final_stats=1"]).arg(&corpus).args(seeds(name));
    let (success, text) = captured(&mut command)?;
    if success {
        let stat = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_whitespace().last()).unwrap_or("?")
        };
        let (runs, new) = (stat("stat::number_of_executed_units"), stat("stat::new_units_added"));
        println!("{name}: {runs} inputs in {seconds} s, {new} with new coverage");
        return Ok(true);
    }
    let lines: Vec<&str> = text.lines().collect();
    let cause = |line: &&str| line.contains("panicked at") || line.contains("ERROR: libFuzzer");
    let start = lines.iter().position(cause).unwrap_or(lines.len().saturating_sub(SHOWN));
    let shown = lines[start..].iter().take(SHOWN).copied().collect::<Vec<_>>().join("\n");
    let mut kept = lines.iter().filter_map(|line| line.split_once("Test unit written to "));
    let kept = kept.next_back().map_or("not written", |(_, path)| path);
    println!("{shown}\n{name}: FAILED; input: {kept}");
    Ok(false)
}

/// Folders with seed inputs: those of the target, and the test files of its format.
fn seeds(name: &str) -> Vec<PathBuf> {
    let format = name.strip_suffix("_open").unwrap_or(name);
    let folders = [
        format!("fuzz/seeds/{name}"),
        format!("tests/golden/{format}"),
        format!("tests/bad/{format}"),
    ];
    folders.iter().map(|folder| root().join(folder)).filter(|folder| folder.is_dir()).collect()
}
