//! Bytes out.
//!
//! [`Sink::create`] writes to a temporary file beside the target; [`Sink::commit`] flushes it to
//! the disk and renames it. Until then the target is as it was, at any kill, crash or full disk;
//! afterwards it is whole. [`Sink::edit`] changes an existing file in place, for the few
//! operations whose order of writes makes that safe; each of them says why.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::FallocateFlags;
use tempfile::{NamedTempFile, TempPath};

use crate::error::{Error, ErrorKind, Result};

/// Whether an existing target may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Fail with `Exists`.
    Never,
    /// Replace it, atomically.
    Replace,
}

/// A file being written, at any position and from any thread.
pub struct Sink {
    file: File,
    /// The file the user knows, for messages and for the rename.
    path: PathBuf,
    /// Set while the bytes are in a temporary file.
    temporary: Option<(TempPath, Overwrite)>,
    /// Where the sequential writer ([`io::Write`]) stands.
    cursor: AtomicU64,
}

impl Sink {
    /// Starts a new file that appears under `path`, whole, when it is committed. Dropped before
    /// that, it leaves nothing behind.
    pub fn create(path: impl AsRef<Path>, overwrite: Overwrite) -> Result<Self> {
        // A link is followed, so that the rename replaces what it points to and not the link.
        let asked = path.as_ref();
        let path = fs::canonicalize(asked).unwrap_or_else(|_| asked.to_path_buf());
        let mut mode = 0o666;
        if let Ok(meta) = fs::metadata(&path) {
            if overwrite == Overwrite::Never {
                return Err(exists(asked));
            }
            if !meta.is_file() {
                return Err(
                    Error::argument("is not a regular file; nothing was written").with_path(asked)
                );
            }
            mode = meta.permissions().mode();
        }
        let name = path
            .file_name()
            .ok_or_else(|| Error::argument("names no file to write").with_path(asked))?;
        let prefix = format!(".{}.", name.to_string_lossy());
        let temporary = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".part")
            .permissions(fs::Permissions::from_mode(mode))
            .tempfile_in(folder(&path))
            .map_err(|e| Error::io(asked, e))?;
        let (file, temp_path) = temporary.into_parts();
        Ok(Self { file, path, temporary: Some((temp_path, overwrite)), cursor: AtomicU64::new(0) })
    }

    /// Opens an existing file to change it in place; the sequential writer stands at its end.
    pub fn edit(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let open = || -> io::Result<(File, u64)> {
            let file = OpenOptions::new().read(true).write(true).open(path)?;
            let len = file.metadata()?.len();
            Ok((file, len))
        };
        let (file, len) = open().map_err(|e| Error::io(path, e))?;
        Ok(Self { file, path: path.into(), temporary: None, cursor: AtomicU64::new(len) })
    }

    /// The file the user knows.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes at a position; threads may do so at once.
    pub fn write_all_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|e| self.io(e).at(offset))
    }

    /// Cuts the file, or extends it with zeros that take no room.
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| self.io(e))
    }

    /// Makes the file `len` bytes long with disk blocks behind all of them, so that writing there
    /// cannot run out of space. Fails with the file as it was.
    pub fn reserve(&self, len: u64) -> Result<()> {
        let old = self.file.metadata().map_err(|e| self.io(e))?.len();
        if len <= old {
            return Ok(());
        }
        let reserved =
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), old, len - old) {
                Ok(()) => Ok(()),
                // This file system cannot; zeros written by hand take their blocks too.
                Err(rustix::io::Errno::OPNOTSUPP) => self.fill_with_zeros(old, len),
                Err(error) => Err(self.io(error.into())),
            };
        if reserved.is_err() {
            self.set_len(old)?;
        }
        reserved
    }

    fn fill_with_zeros(&self, from: u64, to: u64) -> Result<()> {
        let zeros = vec![0; 64 << 10];
        let mut at = from;
        while at < to {
            let part = (to - at).min(zeros.len() as u64);
            self.write_all_at(at, &zeros[..part as usize])?;
            at += part;
        }
        Ok(())
    }

    /// Waits until everything written so far is on the disk.
    pub fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| self.io(e))
    }

    /// Bytes written one after the other so far.
    pub fn position(&self) -> u64 {
        self.cursor.load(Ordering::Relaxed)
    }

    /// Moves the sequential writer.
    pub fn seek(&self, position: u64) {
        self.cursor.store(position, Ordering::Relaxed);
    }

    /// Makes the new file appear: flush to disk, rename, flush the folder.
    pub fn commit(mut self) -> Result<()> {
        self.file.sync_all().map_err(|e| self.io(e))?;
        if let Some((temporary, overwrite)) = self.temporary.take() {
            let renamed = match overwrite {
                Overwrite::Replace => temporary.persist(&self.path),
                Overwrite::Never => temporary.persist_noclobber(&self.path),
            };
            renamed.map_err(|e| match e.error.kind() {
                io::ErrorKind::AlreadyExists => exists(&self.path),
                _ => Error::io(&self.path, e.error),
            })?;
            // Some file systems cannot sync a folder; the file itself is safe by now.
            let _ = File::open(folder(&self.path)).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }

    fn io(&self, error: io::Error) -> Error {
        Error::io(&self.path, error)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let at = self.position();
        self.write_all_at(at, bytes)?;
        self.seek(at + bytes.len() as u64);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Copies a file to a name that must be free, sharing the blocks where the file system can.
pub fn copy_new(from: &Path, to: &Path) -> Result<()> {
    let source = File::open(from).map_err(|e| Error::io(from, e))?;
    let temporary = NamedTempFile::new_in(folder(to)).map_err(|e| Error::io(to, e))?;
    let meta = source.metadata().map_err(|e| Error::io(from, e))?;
    if rustix::fs::ioctl_ficlone(temporary.as_file(), &source).is_err() {
        // `io::copy` between files stays inside the kernel.
        io::copy(&mut &source, &mut temporary.as_file()).map_err(|e| Error::io(to, e))?;
    }
    let finish = || -> io::Result<()> {
        temporary.as_file().set_permissions(meta.permissions())?;
        temporary.as_file().sync_all()
    };
    finish().map_err(|e| Error::io(to, e))?;
    temporary.persist_noclobber(to).map_err(|e| Error::io(to, e.error))?;
    Ok(())
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn exists(path: &Path) -> Error {
    Error::new(ErrorKind::Exists, "", "exists already; nothing was written")
        .with_path(path)
        .hint("--overwrite replaces it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_appears_before_commit_and_everything_after() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let mut sink = Sink::create(&path, Overwrite::Never).unwrap();
        sink.write_all(b"hello").unwrap();
        assert!(!path.exists());
        sink.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello");
        let error = Sink::create(&path, Overwrite::Never).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Exists);
    }

    #[test]
    fn a_dropped_sink_leaves_no_trace() {
        let dir = tempfile::tempdir().unwrap();
        drop(Sink::create(dir.path().join("a"), Overwrite::Never).unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_target_that_appears_meanwhile_is_not_lost() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let sink = Sink::create(&path, Overwrite::Never).unwrap();
        fs::write(&path, b"theirs").unwrap();
        assert_eq!(sink.commit().unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
    }

    #[test]
    fn replacing_keeps_the_mode_and_follows_links() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, b"old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut sink = Sink::create(&link, Overwrite::Replace).unwrap();
        sink.write_all(b"new").unwrap();
        sink.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    }
}
