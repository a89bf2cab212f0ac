//! Names of files and folders on disk: links, temporary names, flushing a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::SUFFIX;
#[cfg(feature = "testkit")]
use crate::testkit::faults::{self, Call};
use crate::{Error, ErrorKind, Hint, Result, os};

/// The target of a chain of symbolic links, whether it exists or not.
pub(super) fn follow(path: &Path) -> PathBuf {
    let mut at = path.to_path_buf();
    // The limit of Linux.
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&at) else { break };
        at = folder(&at).join(next);
    }
    at
}

pub(super) fn named(path: &Path) -> io::Result<NamedTempFile> {
    let prefix = temporary_prefix(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX);
    os::grant(&mut builder, 0o666);
    builder.tempfile_in(folder(path))
}

/// Start of the temporary names of the target `path`.
pub(super) fn temporary_prefix(path: &Path) -> String {
    format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Flushes the folder that contains `path` to disk, so that a name that was added, renamed or removed survives a
/// power failure.
pub fn sync_folder(path: &Path) -> Result<()> {
    flush_folder(path).map_err(|e| Error::io(folder(path), e))
}

pub(super) fn flush_folder(path: &Path) -> io::Result<()> {
    #[cfg(feature = "testkit")]
    if let Some((_, error)) = faults::strike(|| Call::SyncFolder) {
        return Err(error);
    }
    os::sync_folder(folder(path))
}

pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn exists(path: &Path) -> Error {
    Error::new(ErrorKind::Exists, "", "already exists; nothing was written")
        .with_path(path)
        .hint(Hint::Overwrite)
}
