//! Windows. Experimental: it compiles, and is tested only as far as Wine allows.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::os::windows::io::AsHandle as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The system removes the file when the last handle is closed, also after a kill.
const DELETE_ON_CLOSE: u32 = 0x0400_0000;
/// `ERROR_SHARING_VIOLATION`: another process has opened the file and does not share it.
const IN_USE: i32 = 32;
/// Time between two attempts to open a file that another process uses.
const POLL: Duration = Duration::from_millis(10);

pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    file.seek_write(bytes, offset)
}

pub(super) fn identity(meta: &Metadata) -> u64 {
    meta.creation_time()
}

pub(super) fn path_from_bytes(bytes: &[u8]) -> io::Result<&Path> {
    std::str::from_utf8(bytes).map(Path::new).map_err(|_| io::ErrorKind::InvalidInput.into())
}

pub(super) fn path_bytes(path: &Path) -> io::Result<&[u8]> {
    path.to_str().map(str::as_bytes).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

pub(super) fn standard_output() -> io::Result<File> {
    io::stdout().as_handle().try_clone_to_owned().map(File::from)
}

/// The owner of a new file is its writer.
pub(crate) fn copy_owner(_file: &File, _old: &Metadata) {}

/// New files have the permissions of their folder.
pub(crate) fn grant(_builder: &mut tempfile::Builder<'_, '_>, _mode: u32) {}

/// The lock of a file or folder: a file next to it that exists as long as its writer runs. Readers are not blocked.
pub(crate) struct WriteLock(#[expect(dead_code, reason = "closing it removes the file")] File);

impl WriteLock {
    /// `None` if another process has the lock and `wait` is false.
    fn of(path: &Path, wait: bool) -> io::Result<Option<Self>> {
        let name = lock_name(path);
        let mut options = OpenOptions::new();
        options.write(true).create(true).share_mode(0).custom_flags(DELETE_ON_CLOSE);
        loop {
            match options.open(&name) {
                // A lock that is being released cannot be opened for a moment.
                Err(e) if e.raw_os_error() == Some(IN_USE) || name.exists() => {
                    if !wait {
                        return Ok(None);
                    }
                    std::thread::sleep(POLL);
                }
                file => return file.map(|file| Some(Self(file))),
            }
        }
    }
}

/// Opens a file for reading and writing with its lock. `None` if another process has it and `wait` is false.
pub(crate) fn lock_file(path: &Path, wait: bool) -> io::Result<Option<(File, WriteLock)>> {
    let Some(lock) = WriteLock::of(path, wait)? else { return Ok(None) };
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    Ok(Some((file, lock)))
}

/// Waits for the lock of a file that is going to be replaced; `None` if there is no file.
pub(crate) fn lock_target(path: &Path) -> io::Result<Option<WriteLock>> {
    let lock = WriteLock::of(path, true)?;
    Ok(lock.filter(|_| path.exists()))
}

/// Flushes the file at `path` to disk, which needs the permission to write.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.sync_all()
}

/// Windows cannot exchange names.
pub(crate) fn exchange(_a: &Path, _b: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Renames a file or folder to a name that must not exist.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    if fs::symlink_metadata(to).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    fs::rename(from, to)
}

/// Windows cannot flush a folder; NTFS keeps its names in a journal.
pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// The lock that marks a folder as in use.
pub(crate) struct FolderLock(#[expect(dead_code, reason = "dropping it releases it")] WriteLock);

impl FolderLock {
    /// Waits for the lock.
    pub(crate) fn wait(folder: &Path) -> io::Result<Self> {
        let lock = WriteLock::of(folder, true)?;
        lock.map(Self).ok_or_else(|| io::ErrorKind::ResourceBusy.into())
    }

    /// Whether a process has the lock.
    pub(crate) fn is_taken(folder: &Path) -> bool {
        lock_name(folder).exists()
    }
}

/// The path of the lock of a file or folder.
fn lock_name(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    name.into()
}
