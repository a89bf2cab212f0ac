//! The unfinished output of the process: temporary names, and files that are being modified.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use crate::{Error, Result};

static NAMES: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
static EDITS: AtomicUsize = AtomicUsize::new(0);

fn with_names<T>(work: impl FnOnce(&mut BTreeSet<PathBuf>) -> T) -> T {
    work(&mut NAMES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A temporary name. It is unfinished output until this is dropped.
pub(super) struct Name(PathBuf);

impl Name {
    pub(super) fn new(path: &Path) -> Self {
        // The name stays valid if the process changes its working folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        with_names(|names| names.insert(path.clone()));
        Self(path)
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        with_names(|names| names.remove(&self.0));
    }
}

/// A file that is being modified in place.
pub(super) struct Edit;

impl Edit {
    pub(super) fn new() -> Self {
        EDITS.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Edit {
    fn drop(&mut self) {
        EDITS.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Whether the process has temporary names or modifies a file in place.
pub fn has_unfinished() -> bool {
    EDITS.load(Ordering::SeqCst) > 0 || with_names(|names| !names.is_empty())
}

/// Removes all temporary names of the process. For programs that are about to exit: writers that still run fail.
pub fn remove_unfinished() {
    // A writer may add files while its folder is removed.
    for _ in 0..100 {
        let left: Vec<PathBuf> = with_names(|names| names.iter().cloned().collect());
        let removed = left.iter().filter(|path| {
            let folder = fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
            let done = if folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            done.is_ok() || fs::symlink_metadata(path).is_err()
        });
        if removed.count() == left.len() {
            return;
        }
    }
}

/// A temporary folder that is removed when it is dropped.
pub struct TemporaryFolder {
    folder: TempDir,
    _name: Name,
}

impl TemporaryFolder {
    /// Creates a folder with a hidden name in `parent`.
    pub fn create(parent: &Path) -> Result<Self> {
        let folder = tempfile::tempdir_in(parent).map_err(|e| Error::io(parent, e))?;
        let name = Name::new(folder.path());
        Ok(Self { folder, _name: name })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        // A failure to remove may be temporary: the folder itself tries it again.
        let _ = fs::remove_dir_all(self.folder.path());
    }
}
