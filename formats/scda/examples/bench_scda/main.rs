//! `cargo xtask bench scda` on ranks that are threads of this process.
//!
//! `bench RANKS` runs the tasks from standard input; `work.rs` describes them.
#![forbid(unsafe_code)]

mod work;

use std::process::ExitCode;

use spile_core::comm::{Serial, Threads};

fn main() -> ExitCode {
    let ranks = std::env::args().nth(1).and_then(|argument| argument.parse().ok());
    let done = match ranks {
        None | Some(0) => Err("bench RANKS".into()),
        Some(1) => work::run_tasks(&Serial),
        Some(ranks) => {
            Threads::run(ranks, |comm| work::run_tasks(comm)).into_iter().collect::<Result<(), _>>()
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
