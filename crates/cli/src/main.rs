//! The program `spile`; the implementation is in the library.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    spile_cli::main(std::env::args_os().collect()).into()
}
