//! Runs the tasks of `cargo xtask bench scda` with MPI. Tasks are read from standard input of rank 0.

#[cfg(feature = "mpi")]
#[path = "../../../formats/scda/examples/bench_scda/work.rs"]
mod work;

#[cfg(not(feature = "mpi"))]
fn main() {}

#[cfg(feature = "mpi")]
fn main() -> std::process::ExitCode {
    let done = spile_mpi::run(|comm| Ok(work::serve(comm)));
    match done.map_err(Into::into).flatten() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench: {why}");
            std::process::ExitCode::FAILURE
        }
    }
}
