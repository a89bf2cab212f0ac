//! The test program `ranks` under `mpirun`, on 1 to 4 processes.
#![cfg(feature = "mpi")]

#[path = "../../core/tests/support/machine.rs"]
mod machine;

use std::path::Path;

use machine::{Disk, mpirun, skipped};

/// Runs a task of `examples/ranks.rs` on `ranks` processes.
fn run(ranks: u32, arguments: &[&str]) {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().with_file_name("examples").join("ranks");
    let output = mpirun(ranks).arg(program).args(arguments).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stdout.trim() == "ok", "{ranks} ranks:\n{stdout}\n{stderr}");
}

#[test]
fn the_bytes_do_not_depend_on_the_ranks() {
    let folder = tempfile::tempdir().unwrap();
    for ranks in 1..=4 {
        run(ranks, &["property", folder.path().to_str().unwrap(), "25"]);
    }
}

#[test]
fn a_dump_of_many_ranks_has_the_bytes_of_one() {
    let folder = tempfile::tempdir().unwrap();
    for ranks in 1..=4 {
        run(ranks, &["dump", folder.path().to_str().unwrap()]);
    }
}

#[test]
fn a_job_on_three_processes_is_continued_on_two() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heat.scda");
    let file = file.to_str().unwrap();
    for (ranks, action) in [(3, "save"), (2, "restart"), (4, "restart"), (1, "restart")] {
        run(ranks, &["heat", file, action]);
    }
}

#[test]
fn corrupt_files_are_the_same_error_on_every_rank() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/scda/corrupt");
    for ranks in [1, 3] {
        run(ranks, &["corrupt", golden.to_str().unwrap()]);
    }
}

#[test]
fn an_invalid_argument_on_one_rank_is_an_error_on_all() {
    for ranks in [1, 2, 4] {
        let folder = tempfile::tempdir().unwrap();
        run(ranks, &["wrong", folder.path().to_str().unwrap()]);
    }
}

#[test]
fn a_full_disk_is_an_error_on_all_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let disk = match Disk::mount(folder.path(), 20) {
        Ok(disk) => disk,
        Err(why) => return skipped(&format!("no test file system: {why}")),
    };
    for ranks in [1, 2, 3] {
        run(ranks, &["full", disk.0.to_str().unwrap()]);
    }
}

#[test]
fn more_than_4_gib_of_one_rank() {
    if std::env::var_os("SPILE_LARGE").is_none() {
        return skipped(
            "more than 4 GiB of one rank: SPILE_LARGE=1 runs it, needs 10 GB of disk space",
        );
    }
    for ranks in [1, 2] {
        let folder = tempfile::tempdir().unwrap();
        run(ranks, &["large", folder.path().to_str().unwrap()]);
    }
}
