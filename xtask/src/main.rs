//! The project's chores, run as `cargo xtask <command>`.
//!
//! | file | what is in it |
//! |---|---|
//! | `test` `step` | everything CI runs; how a step ends and what the summary says |
//! | `doors` | which crate may see which, and other rules of the house |
//! | `fuzz` | builds and runs the targets of `fuzz/` |
//! | `bench` | measures against NumPy, h5py and plain C |
//! | `readme` | the table of formats in `README.md` |
//! | `gallery` | the pictures of `docs/gallery.md` |
//! | `dist` | the static binary |
//! | `tools` `shell` | finding and installing what is needed; running programs |
#![forbid(unsafe_code)]

mod bench;
mod dist;
mod doors;
mod fuzz;
mod gallery;
mod python;
mod readme;
mod shell;
mod step;
mod test;
mod tools;

use std::process::ExitCode;

/// Why a chore could not be done, in words for the person at the terminal.
type Result<T> = std::result::Result<T, String>;

const HELP: &str = "\
cargo xtask <command>

  test                     all that CI runs; installs what it needs when it can
  python                   the tests of the Python package alone
  doors                    checks which crate sees which, and the other rules of the house
  fuzz [SECONDS] [TARGET]  runs every fuzz target, SECONDS in all (30), or one of them
  bench taf [OPTIONS]      measures against NumPy, h5py and plain C, writes docs/performance.md
  bench scda [OPTIONS]     measures against plain C, writes its part of docs/performance.md
  bench gsd [OPTIONS]      measures against the C library, its Python package, hoomd-gsd and plain C
  bench sdf [OPTIONS]      measures against sdf-xarray, sdfr and plain C, writes its part
  bench python [OPTIONS]   measures the package against sdf-xarray, gsd.hoomd and NumPy
  bench iotk [OPTIONS]     measures against gfortran and plain C, writes its part
  bench ops [OPTIONS]      measures conversions and comparisons against plain C, writes its part
  bench digitizer [OPTIONS] measures files of oscilloscopes against plain C, writes its part
      --scale S            sizes; 1.0 is 10^9 samples or bytes, taf needs 12 GB of memory (1.0)
      --rounds N           repetitions; the median counts (5)
      --spile PATH         measures this program instead of building one (taf)
      --keep               keeps the files (taf: in target/bench, others: in memory)
  dist                     builds the static binary, the C library and the wheel
  readme [--check]         rewrites (or compares) the table of formats in README.md
  gallery                  draws the pictures of docs/gallery.md
  help                     this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}

/// Does a chore; the answer is whether all is well.
fn run(words: &[&str]) -> Result<bool> {
    match words {
        [] | ["help" | "-h" | "--help"] => {
            print!("{HELP}");
            Ok(true)
        }
        ["test"] => Ok(test::run()),
        ["python"] => python::run(),
        ["doors"] => doors::run(),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["bench", "taf", rest @ ..] => bench::taf(rest),
        ["bench", "scda", rest @ ..] => bench::scda(rest),
        ["bench", "gsd", rest @ ..] => bench::gsd(rest),
        ["bench", "python", rest @ ..] => bench::python(rest),
        ["bench", "sdf", rest @ ..] => bench::sdf(rest),
        ["bench", "ops", rest @ ..] => bench::ops(rest),
        ["bench", "iotk", rest @ ..] => bench::iotk(rest),
        ["bench", "digitizer", rest @ ..] => bench::digitizer(rest),
        ["dist"] => dist::run(),
        ["gallery"] => gallery::write(),
        ["readme"] => readme::write(),
        ["readme", "--check"] => readme::check(),
        _ => Err(format!("`{}` is not a command\n\n{HELP}", words.join(" "))),
    }
}
