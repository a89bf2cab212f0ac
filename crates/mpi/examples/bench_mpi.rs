//! `cargo xtask bench scda` on MPI processes: runs the tasks from the standard input of rank 0.

#[cfg(feature = "mpi")]
#[path = "../../../formats/scda/examples/bench_scda/work.rs"]
mod work;

#[cfg(not(feature = "mpi"))]
fn main() {}

#[cfg(feature = "mpi")]
fn main() -> std::process::ExitCode {
    let result = spile_mpi::run(|comm| Ok(work::run_tasks(comm)));
    match result.map_err(Into::into).flatten() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("bench: {why}");
            std::process::ExitCode::FAILURE
        }
    }
}
