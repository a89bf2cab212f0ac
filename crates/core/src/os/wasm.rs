//! WebAssembly without files: sources are in memory or [`ReadAt`](crate::source::ReadAt), everything on files fails
//! with `Unsupported`.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn read_at(_file: &File, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
    unsupported()
}

pub(crate) fn write_at(_file: &File, _bytes: &[u8], _offset: u64) -> io::Result<usize> {
    unsupported()
}

pub(super) fn identity(_meta: &Metadata) -> u64 {
    0
}

pub(super) fn path_from_bytes(bytes: &[u8]) -> io::Result<&Path> {
    std::str::from_utf8(bytes).map(Path::new).map_err(|_| io::ErrorKind::InvalidInput.into())
}

pub(super) fn path_bytes(path: &Path) -> io::Result<&[u8]> {
    path.to_str().map(str::as_bytes).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

pub(super) fn standard_output() -> io::Result<File> {
    unsupported()
}

pub(crate) fn copy_owner(_file: &File, _old: &Metadata) {}

pub(crate) fn grant(_builder: &mut tempfile::Builder<'_, '_>, _mode: u32) {}

pub(crate) struct WriteLock;

pub(crate) fn lock_file(_path: &Path, _wait: bool) -> io::Result<Option<(File, WriteLock)>> {
    unsupported()
}

pub(crate) fn lock_target(_path: &Path) -> io::Result<Option<WriteLock>> {
    unsupported()
}

pub(crate) fn sync_file(_path: &Path) -> io::Result<()> {
    unsupported()
}

pub(crate) fn exchange(_a: &Path, _b: &Path) -> io::Result<()> {
    unsupported()
}

pub(crate) fn rename_new(_from: &Path, _to: &Path) -> io::Result<()> {
    unsupported()
}

pub(crate) fn sync_folder(_folder: &Path) -> io::Result<()> {
    unsupported()
}

pub(crate) struct FolderLock;

impl FolderLock {
    pub(crate) fn wait(_folder: &Path) -> io::Result<Self> {
        unsupported()
    }

    pub(crate) fn is_taken(_folder: &Path) -> bool {
        false
    }
}
