//! Development tasks, run as `cargo xtask <command>`.
//!
//! | file | content |
//! |---|---|
//! | `test` `step` | all steps of CI; their results and the summary |
//! | `doors` | dependency and source rules |
//! | `fuzz` | builds and runs the targets of `fuzz/` |
//! | `bench` | benchmarks against other implementations |
//! | `python` | wheel and tests of the Python package |
//! | `readme` | the table of formats in `README.md` |
//! | `book` | the documentation as a site |
//! | `gallery` | the pictures of `docs/gallery.md` |
//! | `dist` | release artefacts: programs, packages, wheels, the C library |
//! | `release` | versions, and what has to be true for a release |
//! | `targets` | compiles for other operating systems |
//! | `tools` `shell` | finds and installs required programs; runs programs |
#![forbid(unsafe_code)]

mod bench;
mod book;
mod dist;
mod doors;
mod fuzz;
mod gallery;
mod python;
mod readme;
mod release;
mod shell;
mod step;
mod targets;
mod test;
mod tools;

use std::process::ExitCode;

/// The error is a message for the terminal.
type Result<T> = std::result::Result<T, String>;

const HELP: &str = "\
cargo xtask <command>

  test [--all]             runs all steps of CI; installs required packages if possible;
                           --all tests conversions of all golden files instead of a selection
  python                   runs the tests of the Python package
  doors                    checks the dependency and source rules
  fuzz [SECONDS] [TARGET]...  runs all fuzz targets, or some, for SECONDS in total [default: 30]
      --hours N            runs for N hours in total
      --record             adds the executions to fuzz/ledger.toml
      --minimise           writes fuzz/corpus, which every test run replays
  bench NAME [OPTIONS]     measures spile and other implementations, writes docs/performance.md;
                           NAME is taf, scda, gsd, sdf, iotk, ops, digitizer or python
      --scale S            sizes; 1.0 is 10^9 samples or bytes [default: 1.0]
      --rounds N           rounds; values are medians [default: 5]
      --quick              runs every task once with small files, to test the benchmark
      --spile PATH         measures this program instead of building one (taf, digitizer)
      --keep               keeps the files
  dist [GROUP | TARGET]... builds release artefacts: programs (static for Linux, Windows, macOS), a Debian
                           package, wheels (manylinux2014), the source distribution, the C library;
                           GROUP is programs, debian, wheels, sdist or library
  release [X.Y.Z]          checks versions, changelog, licences and crates; with a number writes it first
  targets                  compiles for Linux (musl), Windows, macOS and WebAssembly with zig
  readme [--check]         writes (or compares) the table of formats in README.md
  book                     builds the documentation site in target/book
  gallery                  draws the pictures of docs/gallery.md
  help                     prints this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command; returns whether it succeeded.
fn run(args: &[&str]) -> Result<bool> {
    match args {
        [] | ["help" | "-h" | "--help"] => {
            print!("{HELP}");
            Ok(true)
        }
        ["test"] => Ok(test::run(false)),
        ["test", "--all"] => Ok(test::run(true)),
        ["python"] => python::run(),
        ["doors"] => doors::run(),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["bench", name, rest @ ..] => bench::run(name, rest),
        ["dist", rest @ ..] => dist::run(rest),
        ["release", rest @ ..] => release::run(rest),
        ["targets"] => Ok(targets::run()),
        ["book"] => book::run(),
        ["gallery"] => gallery::write(),
        ["readme"] => readme::run(false),
        ["readme", "--check"] => readme::run(true),
        _ => Err(format!("unknown command `{}`\n\n{HELP}", args.join(" "))),
    }
}
