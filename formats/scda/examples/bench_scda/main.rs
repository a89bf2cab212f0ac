//! The work of `cargo xtask bench scda`, on ranks that are threads of this process.
//!
//! `bench RANKS` answers tasks on standard input; they are described in `work.rs`. Another kind of
//! job is another `main` around [`work::serve`], which knows its ranks as a `Comm` only.
#![forbid(unsafe_code)]

mod work;

use std::process::ExitCode;

use spile_core::comm::{Serial, Threads};

fn main() -> ExitCode {
    let ranks = std::env::args().nth(1).and_then(|word| word.parse().ok());
    let done = match ranks {
        None | Some(0) => Err("bench RANKS".into()),
        Some(1) => work::serve(&Serial),
        Some(ranks) => {
            Threads::run(ranks, |comm| work::serve(comm)).into_iter().collect::<Result<(), _>>()
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench: {why}");
            ExitCode::FAILURE
        }
    }
}
