//! What tests need of the machine they run on, and how they tell that they did not get it. Include
//! this file with `#[path]`.
#![allow(dead_code)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tells `cargo xtask test` that a test could not run here.
pub(crate) fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    if let Some(list) = std::env::var_os("SPILE_SKIPPED") {
        let mut list = std::fs::OpenOptions::new().create(true).append(true).open(list).unwrap();
        writeln!(list, "{why}").unwrap();
    }
}

/// A file system in memory, unmounted at the end.
pub(crate) struct Disk(pub(crate) PathBuf);

impl Disk {
    /// Mounts `megabytes` at a folder, or says why that is not allowed.
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

/// `mpirun` for a job of `ranks` processes, to which the program is added. Nobody waits forever.
pub(crate) fn mpirun(ranks: u32) -> Command {
    let mut command = Command::new("mpirun");
    let about = Command::new("mpirun").arg("--version").output();
    if about.is_ok_and(|about| String::from_utf8_lossy(&about.stdout).contains("Open MPI")) {
        // As root, as containers are, and more processes than cores: others do not mind.
        command.args(["--allow-run-as-root", "--oversubscribe", "--timeout", "300"]);
    }
    command.env("MPIEXEC_TIMEOUT", "300").args(["-np", &ranks.to_string()]);
    command
}

/// A program that answers to `--version`.
pub(crate) fn present(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|answer| answer.status.success())
}
