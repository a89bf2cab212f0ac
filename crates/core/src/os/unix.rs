//! POSIX systems.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::{CWD, Gid, RenameFlags, Uid};
use rustix::io::Errno;

#[inline]
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

#[inline]
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.write_at(bytes, offset)
}

pub(super) fn identity(meta: &Metadata) -> u64 {
    meta.ino()
}

#[allow(clippy::unnecessary_wraps, reason = "fails on Windows")]
pub(super) fn path_from_bytes(bytes: &[u8]) -> io::Result<&Path> {
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

#[allow(clippy::unnecessary_wraps, reason = "fails on Windows")]
pub(super) fn path_bytes(path: &Path) -> io::Result<&[u8]> {
    Ok(path.as_os_str().as_bytes())
}

pub(super) fn standard_output() -> io::Result<File> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from)
}

/// Whether `file` is the file at `path`; false if there is none.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let named = match fs::metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(false),
        named => named?,
    };
    let own = file.metadata()?;
    Ok((own.dev(), own.ino()) == (named.dev(), named.ino()))
}

/// Gives the owner of an old file to the new one. Only root may change the owner; other users own the file already.
pub(crate) fn copy_owner(file: &File, old: &Metadata) {
    let (user, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
    let _ = rustix::fs::fchown(file, Some(user), Some(group));
}

/// Makes new temporary names as accessible as files and folders usually are, within the umask.
pub(crate) fn grant(builder: &mut tempfile::Builder<'_, '_>, mode: u32) {
    builder.permissions(Permissions::from_mode(mode));
}

/// An exclusive advisory lock, released when this is dropped and when the process ends. Readers are not blocked.
pub(crate) struct WriteLock(#[expect(dead_code, reason = "closing it releases the lock")] File);

/// Opens a file for reading and writing with the exclusive lock. `None` if another process has it and `wait` is false.
/// File systems without locks are accepted.
pub(crate) fn lock_file(path: &Path, wait: bool) -> io::Result<Option<(File, WriteLock)>> {
    loop {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if wait {
            let _ = file.lock();
        } else if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Ok(None);
        }
        // The previous holder of the lock may have replaced the file.
        if is_at(&file, path)? {
            let lock = WriteLock(file.try_clone()?);
            return Ok(Some((file, lock)));
        }
    }
}

/// Waits for the exclusive lock of a file that is going to be replaced; `None` if there is no file. File systems
/// without locks are accepted.
pub(crate) fn lock_target(path: &Path) -> io::Result<Option<WriteLock>> {
    loop {
        let file = match File::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let _ = file.lock();
        if is_at(&file, path)? {
            return Ok(Some(WriteLock(file)));
        }
    }
}

/// Flushes the file at `path` to disk.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Exchanges two names atomically. Fails if one of them does not exist or the file system does not support it.
pub(crate) fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    Ok(rustix::fs::renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE)?)
}

/// Renames a file or folder to a name that must not exist.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not supported by this file system: check, then rename.
        Err(Errno::INVAL | Errno::NOTSUP) => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        done => Ok(done?),
    }
}

/// Flushes the names in a folder to disk.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    let opened = match File::open(folder) {
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

/// The lock that marks a folder as in use. The system releases it when the process ends.
pub(crate) struct FolderLock(#[expect(dead_code, reason = "closing it releases the lock")] File);

impl FolderLock {
    /// Waits for the lock. File systems without locks are accepted.
    pub(crate) fn wait(folder: &Path) -> io::Result<Self> {
        let file = File::open(folder)?;
        let _ = file.lock();
        Ok(Self(file))
    }

    /// Whether a process has the lock.
    pub(crate) fn is_taken(folder: &Path) -> bool {
        File::open(folder).map_or(folder.exists(), |file| file.try_lock().is_err())
    }
}
