//! Calls that differ between operating systems, behind safe functions. No other module of the workspace uses interfaces
//! of one system, except MPI, the bindings and the signal handler of the command line.
//!
//! | promise | Linux | other Unix | Windows | WebAssembly |
//! |---|---|---|---|---|
//! | unfinished files have no name | `O_TMPFILE` | a temporary name | a temporary name | no files |
//! | a file is replaced atomically | exchange, or rename | exchange, or rename | rename | no files |
//! | a folder is replaced atomically | exchange | exchange | two renames; the next writer restores the old one | no files |
//! | writers of one file exclude each other | `flock` | `flock` | `NAME.lock`, removed when its writer ends | no files |
//! | names survive a power failure | `fsync` of the folder | `fsync` of the folder | left to the file system | no files |
//! | reserved space cannot run out | `fallocate` | zeros are written | zeros are written | no files |
//! | copies share blocks | `FICLONE` | bytes are copied | bytes are copied | no files |

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod portable;
#[cfg(unix)]
mod unix;
#[cfg(not(any(unix, windows)))]
mod wasm;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as optional;
#[cfg(not(target_os = "linux"))]
use portable as optional;
#[cfg(unix)]
use unix as system;
#[cfg(not(any(unix, windows)))]
use wasm as system;
#[cfg(windows)]
use windows as system;

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::SystemTime;

pub(crate) use optional::{
    link_unnamed, memory_file, reserve, set_aside, share_blocks, sync_file_system, unnamed_file,
};
pub(crate) use system::{
    FolderLock, WriteLock, copy_owner, exchange, grant, lock_file, lock_target, read_at,
    rename_new, sync_file, sync_folder, write_at,
};

/// Differs if a file was replaced or written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Differs if another file has the name: the inode, or the time of creation on systems without inodes.
    pub identity: u64,
    /// Length in bytes.
    pub len: u64,
    /// Time of the last modification; the epoch on systems that do not keep it.
    pub modified: SystemTime,
}

impl From<&Metadata> for Stamp {
    fn from(meta: &Metadata) -> Self {
        let modified = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
        Self { identity: system::identity(meta), len: meta.len(), modified }
    }
}

/// The path with these bytes, as a C program or another process passes them.
pub fn path_from_bytes(bytes: &[u8]) -> io::Result<&Path> {
    system::path_from_bytes(bytes)
}

/// The bytes of a path, for a C program or another process.
pub fn path_bytes(path: &Path) -> io::Result<&[u8]> {
    system::path_bytes(path)
}

/// Standard output as a file, without a buffer.
pub fn standard_output() -> io::Result<File> {
    system::standard_output()
}

/// Writes `bytes` at `offset`. Fails if not all could be written.
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match write_at(file, bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                bytes = &bytes[n..];
                offset += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
