//! Names of files and folders on disk: links, temporary names, flushing a folder.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use tempfile::NamedTempFile;

use super::SUFFIX;
#[cfg(feature = "testkit")]
use crate::testkit::faults::{self, Call};
use crate::{Error, ErrorKind, Hint, Result};

/// Whether `file` is the file at `path`; false if there is none.
pub(super) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let named = match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        named => named?,
    };
    let own = file.metadata()?;
    Ok((own.dev(), own.ino()) == (named.dev(), named.ino()))
}

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

/// An unnamed file in the folder of the target; `None` if it could not be linked later.
pub(super) fn unnamed(path: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let file = File::from(rustix::fs::openat(CWD, folder(path), flags, mode).ok()?);
    handle(&file).exists().then_some(file)
}

/// Path in `/proc` of an open file.
pub(super) fn handle(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

pub(super) fn named(path: &Path) -> io::Result<NamedTempFile> {
    let prefix = temporary_prefix(path);
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(SUFFIX).permissions(fs::Permissions::from_mode(0o666));
    builder.tempfile_in(folder(path))
}

/// Start of the temporary names of the target `path`.
pub(super) fn temporary_prefix(path: &Path) -> String {
    format!(".{}.", path.file_name().unwrap_or_default().to_string_lossy())
}

/// Exchanges two names atomically. Fails if one of them does not exist or the file system does not support it.
pub(super) fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
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
    let opened = match File::open(folder(path)) {
        // A folder that can be written but not read.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(()),
        opened => opened?,
    };
    match rustix::fs::fsync(&opened) {
        // Some file systems cannot sync a folder; its files are already on disk.
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        done => Ok(done?),
    }
}

pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

pub(super) fn exists(path: &Path) -> Error {
    Error::new(ErrorKind::Exists, "", "already exists; nothing was written")
        .with_path(path)
        .hint(Hint::Overwrite)
}
