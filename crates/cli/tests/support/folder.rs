//! The program as it is typed, in a folder of its own. Include this file with `#[path]`.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A golden file, or a folder of them.
pub(crate) fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden").join(name)
}

/// A command that is typed in `folder`.
pub(crate) fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spile"));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command
}

/// What came of it.
pub(crate) fn spile(folder: &Path, words: &[&str]) -> Output {
    command(folder, words).output().unwrap()
}

/// Standard output of a command that must succeed and say nothing on standard error.
#[track_caller]
pub(crate) fn good(folder: &Path, words: &[&str]) -> String {
    let done = spile(folder, words);
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!((done.status.code(), &*error), (Some(0), ""), "{words:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// Standard error of a command that must fail.
#[track_caller]
pub(crate) fn bad(folder: &Path, words: &[&str]) -> String {
    let done = spile(folder, words);
    assert_eq!(done.status.code(), Some(2), "{words:?}");
    String::from_utf8(done.stderr).unwrap()
}

/// A folder that is gone at the end of the test.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One with copies of golden files.
    pub(crate) fn with(files: &[&str]) -> Self {
        let folder = Self::new();
        for file in files {
            let name = file.rsplit('/').next().unwrap();
            fs::copy(golden(file), folder.path(name)).unwrap();
        }
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Everything in the folder, hidden or not.
    pub(crate) fn names(&self) -> Vec<String> {
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<String> =
            fs::read_dir(self.0.path()).unwrap().map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        command(self.0.path(), words)
    }

    pub(crate) fn spile(&self, words: &[&str]) -> Output {
        spile(self.0.path(), words)
    }

    #[track_caller]
    pub(crate) fn good(&self, words: &[&str]) -> String {
        good(self.0.path(), words)
    }

    #[track_caller]
    pub(crate) fn bad(&self, words: &[&str]) -> String {
        bad(self.0.path(), words)
    }

    #[track_caller]
    pub(crate) fn json(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.good(words)).unwrap()
    }
}
