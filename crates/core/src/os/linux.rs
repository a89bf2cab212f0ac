//! What only Linux offers; `portable.rs` has the same functions for other systems.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, MemfdFlags, Mode, OFlags};
use rustix::io::Errno;

/// An unnamed file in a folder; `None` if it could not be linked later.
pub(crate) fn unnamed_file(folder: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let file = File::from(rustix::fs::openat(CWD, folder, flags, mode).ok()?);
    handle(&file).exists().then_some(file)
}

/// Gives an unnamed file a name, which must not exist.
pub(crate) fn link_unnamed(file: &File, path: &Path) -> io::Result<()> {
    Ok(rustix::fs::linkat(CWD, handle(file), CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Path in `/proc` of an open file.
fn handle(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// A file in memory.
pub(crate) fn memory_file() -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("spile", MemfdFlags::CLOEXEC)?))
}

/// Fills the empty file `new` with the blocks of `old` without copying them.
pub(crate) fn share_blocks(new: &File, old: &File) -> io::Result<()> {
    Ok(rustix::fs::ioctl_ficlone(new, old)?)
}

/// Extends a file from `from` to `to` bytes with allocated blocks of zeros. Returns `false` if the file system does
/// not support it.
pub(crate) fn reserve(file: &File, from: u64, to: u64) -> io::Result<bool> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), from, to - from) {
        Err(Errno::OPNOTSUPP) => Ok(false),
        done => Ok(done.map(|()| true)?),
    }
}

/// Allocates blocks for the bytes `from..to` without changing the length, if the file system supports it. Fails only
/// if the disk is full.
pub(crate) fn set_aside(file: &File, from: u64, to: u64) -> io::Result<()> {
    let len = to.saturating_sub(from);
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, from, len) {
        Err(error @ (Errno::NOSPC | Errno::DQUOT)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Flushes the file system of a folder to disk; `false` if that is not possible.
pub(crate) fn sync_file_system(folder: &Path) -> bool {
    File::open(folder).is_ok_and(|folder| rustix::fs::syncfs(&folder).is_ok())
}
