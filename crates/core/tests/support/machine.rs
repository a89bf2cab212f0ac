//! Requirements of tests on the machine, and reports of skipped tests. Include this file with `#[path]`.
#![allow(dead_code)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Reports to `cargo xtask test` that a test was skipped.
pub(crate) fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    if let Some(list) = std::env::var_os("SPILE_SKIPPED") {
        let mut list = std::fs::OpenOptions::new().create(true).append(true).open(list).unwrap();
        writeln!(list, "{why}").unwrap();
    }
}

/// A tmpfs, unmounted on drop.
pub(crate) struct Disk(pub(crate) PathBuf);

impl Disk {
    /// Mounts a tmpfs of `megabytes` at a folder; the error is the message of `mount`.
    pub(crate) fn mount(at: &Path, megabytes: u32) -> Result<Self, String> {
        let options = format!("size={megabytes}m");
        let done = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(at)
            .output()
            .map_err(|e| format!("mount: {e}"))?;
        if done.status.success() {
            return Ok(Self(at.to_path_buf()));
        }
        Err(String::from_utf8_lossy(&done.stderr).trim().to_string())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

/// `mpirun` with a timeout for a job of `ranks` processes; the program is to be added.
pub(crate) fn mpirun(ranks: u32) -> Command {
    mpirun_of("", ranks)
}

/// The MPI libraries of the machine, as the endings of their programs: that of `mpicc`, which is empty, and on Debian
/// MPICH.
pub(crate) fn mpi_libraries() -> Vec<&'static str> {
    let all = ["", ".mpich"].into_iter();
    all.filter(|end| present(&format!("mpicc{end}")) && present(&format!("mpirun{end}"))).collect()
}

/// [`mpirun`] of one of the [`mpi_libraries`].
pub(crate) fn mpirun_of(library: &str, ranks: u32) -> Command {
    let name = format!("mpirun{library}");
    let mut command = Command::new(&name);
    let version = Command::new(&name).arg("--version").output();
    if version.is_ok_and(|version| String::from_utf8_lossy(&version.stdout).contains("Open MPI")) {
        // Other implementations allow root and oversubscription by default.
        command.args(["--allow-run-as-root", "--oversubscribe", "--timeout", "300"]);
    }
    command.env("MPIEXEC_TIMEOUT", "300").args(["-np", &ranks.to_string()]);
    command
}

/// Whether a program exists and succeeds with `--version`.
pub(crate) fn present(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
