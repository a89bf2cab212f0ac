//! All steps of CI, with one build profile and one set of features, so that nothing is built twice.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::shell::{cargo, output, program, root, succeeds, watched};
use crate::step::{Counts, Outcome, Steps, count_tests};
use crate::{Result, book, doors, fuzz, python as package, readme, targets, tools};

/// The arguments of every build: other features would need another build. Only MPI may be unavailable.
fn build_args() -> &'static [&'static str] {
    static ALL: OnceLock<&[&str]> = OnceLock::new();
    ALL.get_or_init(|| match tools::mpi() {
        Ok(()) => &["--workspace", "--all-features"],
        Err(_) => &["--workspace"],
    })
}

/// Seconds of fuzzing, shared by all targets.
const FUZZ_SECONDS: u64 = 30;

/// Runs all steps; returns whether they passed. `all` tests conversions of all golden files.
pub(crate) fn run(all: bool) -> bool {
    let mut steps = Steps::default();
    steps.run("fmt", || Outcome::from_check(fmt()));
    // Tests that need a tool that is still missing are skipped, and counted.
    steps.run("mpi", || installed(tools::mpi()));
    steps.run("make", || installed(tools::make()));
    steps.run("fortran", || installed(tools::fortran()));
    steps.run("clippy", clippy);
    steps.run("doors", || Outcome::from_check(doors::run()));
    steps.run("targets", targets::core);
    steps.run("tests", tests);
    steps.run("doc tests", doc_tests);
    steps.run("readme", || Outcome::from_check(readme::run(true)));
    steps.run("links", || Outcome::from_check(book::check()));
    // These steps are slow.
    let broken = steps.failed();
    let unless_broken = |step: &dyn Fn() -> Outcome| {
        if broken { Outcome::Skipped("an earlier step failed".into()) } else { step() }
    };
    steps.run("fuzz", || unless_broken(&|| fuzz::smoke(FUZZ_SECONDS)));
    steps.run("interop", || unless_broken(&|| interop(all)));
    steps.run("python", || unless_broken(&python));
    println!("\n=== summary\n{}", steps.summary());
    !steps.failed()
}

fn installed(tool: Result<()>) -> Outcome {
    tool.map_or_else(Outcome::Skipped, |()| Outcome::Passed)
}

/// The fuzz targets are a separate workspace.
fn fmt() -> Result<bool> {
    let workspace = succeeds(&mut cargo(&["fmt", "--all", "--check"]))?;
    let fuzz = ["fmt", "--check", "--manifest-path", "fuzz/Cargo.toml"];
    Ok(succeeds(&mut cargo(&fuzz))? && workspace)
}

/// Warnings are not denied by `RUSTFLAGS`, which would need another build.
fn clippy() -> Outcome {
    let mut command = cargo(&["clippy", "--all-targets"]);
    Outcome::from_check(succeeds(command.args(build_args()).args(["--", "-D", "warnings"])))
}

fn tests() -> Outcome {
    let mut command = if tools::nextest() {
        cargo(&["nextest", "run", "--no-fail-fast", "--no-tests=pass"])
    } else {
        println!("cargo-nextest is not installed; using `cargo test`, which is slower");
        cargo(&["test", "--no-fail-fast", "--lib", "--bins", "--tests", "--examples"])
    };
    let list = crate::shell::target().join("skipped.txt");
    let _ = std::fs::remove_file(&list);
    with_skipped(counted(command.args(build_args()).env("SPILE_SKIPPED", &list)), &list)
}

/// Subtracts the tests that succeeded only because they cannot run on this machine. They write the reason
/// to `list`.
fn with_skipped(outcome: Outcome, list: &Path) -> Outcome {
    let reasons = std::fs::read_to_string(list).unwrap_or_default();
    for why in reasons.lines() {
        println!("skipped: {why}");
    }
    let skipped = reasons.lines().count() as u64;
    match outcome {
        Outcome::Tests(mut counts, success) => {
            counts.passed = counts.passed.saturating_sub(skipped);
            counts.skipped += skipped;
            Outcome::Tests(counts, success)
        }
        other => other,
    }
}

fn doc_tests() -> Outcome {
    counted(cargo(&["test", "--doc", "--no-fail-fast"]).args(build_args()))
}

fn counted(command: &mut std::process::Command) -> Outcome {
    match watched(command) {
        Ok((success, text)) => Outcome::Tests(count_tests(&text), success),
        Err(why) => Outcome::Failed(why),
    }
}

/// The program `spile`, built with the same features as the tests. Without `--tests` dev-dependencies would not
/// take part in the selection of features, and many packages would be built again.
pub(crate) fn spile() -> Result<PathBuf> {
    built("spile")
}

/// The module of the Python package, built with the same features as the tests.
pub(crate) fn built_python() -> Result<PathBuf> {
    built("libspile_python.so")
}

/// The path of a program or library.
fn built(name: &str) -> Result<PathBuf> {
    let success =
        succeeds(cargo(&["build", "--quiet", "--lib", "--bins", "--tests"]).args(build_args()))?;
    let path = crate::shell::target().join("debug").join(name);
    if !success || !path.is_file() {
        return Err(format!("`{name}` does not build"));
    }
    Ok(path)
}

/// Tests the Python package.
fn python() -> Outcome {
    match built_python() {
        Ok(module) => package::test(&module, &package::interop_packages()),
        Err(why) => Outcome::Failed(why),
    }
}

/// Runs the scripts of `tests/interop`, one test each, with the path of the program in `SPILE`. `all` sets
/// `SPILE_ALL`: scripts with a selection of cases run all of them.
fn interop(all: bool) -> Outcome {
    run_scripts(all).unwrap_or_else(|outcome| outcome)
}

fn run_scripts(all: bool) -> std::result::Result<Outcome, Outcome> {
    let spile = spile().map_err(Outcome::Failed)?;
    let python = tools::python(&package::interop_packages()).map_err(Outcome::Skipped)?;
    let mut counts = Counts::default();
    if let Err(why) = tools::strace() {
        println!("skipped: faults.py: {why}");
        counts.skipped += 1;
    }
    for script in crate::shell::files(&root().join("tests/interop"), "py") {
        let name = script.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = program(&python);
        command.arg(&script).env("SPILE", &spile);
        if all {
            command.env("SPILE_ALL", "1");
        }
        match output(&mut command) {
            Ok(_) => {
                println!("ok     {name}");
                counts.passed += 1;
            }
            Err(why) => {
                println!("FAILED {name}\n{why}");
                counts.failed += 1;
            }
        }
    }
    Ok(Outcome::Tests(counts, true))
}
