//! Systems other than Linux: what they do not offer is done in another way, see the table of [`crate::os`].

use std::fs::File;
use std::io;
use std::path::Path;

/// Unnamed files cannot be linked later.
pub(crate) fn unnamed_file(_folder: &Path) -> Option<File> {
    None
}

/// There are no unnamed files to link.
pub(crate) fn link_unnamed(_file: &File, _path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A temporary file that is removed when it is closed.
pub(crate) fn memory_file() -> io::Result<File> {
    tempfile::tempfile()
}

/// Blocks cannot be shared: the caller copies the bytes.
pub(crate) fn share_blocks(_new: &File, _old: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Not supported: the caller writes zeros, which allocates the blocks.
pub(crate) fn reserve(_file: &File, _from: u64, _to: u64) -> io::Result<bool> {
    Ok(false)
}

/// Does nothing: a full disk is found by the writes themselves.
pub(crate) fn set_aside(_file: &File, _from: u64, _to: u64) -> io::Result<()> {
    Ok(())
}

/// Files are flushed one by one.
pub(crate) fn sync_file_system(_folder: &Path) -> bool {
    false
}
