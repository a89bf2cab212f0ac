//! `bench_scda RANKS`: runs the tasks of `work.rs` on ranks that are threads of this process. `bench_mpi` of
//! `crates/mpi` runs them with MPI.
#![forbid(unsafe_code)]

mod work;

use std::process::ExitCode;

use spile_core::comm::{Serial, Threads};

fn main() -> ExitCode {
    let ranks = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let done = match ranks {
        None | Some(0) => Err("expected the number of ranks".into()),
        Some(1) => work::serve(&Serial),
        Some(ranks) => {
            Threads::run(ranks, |comm| work::serve(comm)).into_iter().collect::<Result<(), _>>()
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench_scda: {why}");
            ExitCode::FAILURE
        }
    }
}
