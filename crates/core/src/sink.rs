//! Output: atomic writes.
//!
//! [`Sink::create`] writes to an unnamed file; [`Sink::commit`] flushes it to disk and links it to the
//! target path. A kill, crash or full disk before that leaves the target unchanged. [`Sink::edit`]
//! modifies an existing file in place, for operations whose order of writes makes that safe.
//! [`FolderSink`] writes folders atomically.

mod commit;
mod folder;
mod names;
mod unfinished;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempPath;

#[cfg(feature = "testkit")]
use crate::testkit::faults::{self, Call};
use crate::{Error, ErrorKind, Result, Source, cancel, os};
use names::{exists, folder, follow, named};

pub use folder::FolderSink;
pub use names::sync_folder;
pub use unfinished::{TemporaryFolder, has_unfinished, remove_unfinished};

/// Suffix of temporary names.
const SUFFIX: &str = ".part";

/// Whether an existing target may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overwrite {
    /// Fail with `Exists`.
    Never,
    /// Replace it atomically.
    Replace,
}

/// A file being written, at any offset and from any thread, or sequentially through [`io::Write`].
pub struct Sink {
    file: File,
    /// Path as given by the caller, for messages.
    path: PathBuf,
    /// Path to replace, with symbolic links resolved.
    target: PathBuf,
    pending: Option<Pending>,
    /// Folders that are committed with the file.
    attached: Vec<FolderSink>,
    /// Folders that are removed after the commit.
    obsolete: Vec<PathBuf>,
    /// Lock of the file, or of the target while it is replaced.
    lock: Option<os::WriteLock>,
    /// The file is modified in place.
    _edit: Option<unfinished::Edit>,
    /// Position of the sequential writer ([`io::Write`]).
    cursor: AtomicU64,
    /// The file is a pipe or terminal: every write continues the previous one.
    stream: bool,
}

/// A new file before its commit.
struct Pending {
    overwrite: Overwrite,
    /// Temporary name, on file systems without unnamed files.
    name: Option<TempPath>,
    /// Marks that name as unfinished output.
    _unfinished: Option<unfinished::Name>,
}

impl Sink {
    /// Creates a new file that becomes visible at `path` when it is committed. If it is dropped or killed
    /// before that, no file remains: until the commit the file has no name or, on file systems without
    /// unnamed files, the name `.NAME.XXXXXX.part`. Fails with `Exists` if `path` exists and may not be
    /// replaced.
    pub fn create(path: impl AsRef<Path>, overwrite: Overwrite) -> Result<Self> {
        Self::start(path.as_ref(), overwrite, |path| os::unnamed_file(folder(path)))
    }

    /// Chooses a temporary name for a new file, which another library creates there; [`Sink::adopt`] continues with that
    /// file. Otherwise as [`Sink::create`]. Returns the name as well.
    pub fn create_named(path: impl AsRef<Path>, overwrite: Overwrite) -> Result<(Self, PathBuf)> {
        let sink = Self::start(path.as_ref(), overwrite, |_| None)?;
        let name = sink.pending.as_ref().and_then(|pending| pending.name.as_deref());
        let name = name.unwrap_or(&sink.target).to_path_buf();
        fs::remove_file(&name).map_err(|e| sink.io(e))?;
        Ok((sink, name))
    }

    /// Opens the file that was created at the name of [`Sink::create_named`]. It gets the permissions of the file to
    /// be replaced.
    pub fn adopt(&mut self) -> Result<()> {
        let name = self.pending.as_ref().and_then(|pending| pending.name.as_deref());
        let name = name.unwrap_or(&self.target);
        let adopt = || -> io::Result<File> {
            let file = OpenOptions::new().read(true).write(true).open(name)?;
            // Those of the first file at this name, which is still open.
            let first = self.file.metadata()?;
            file.set_permissions(first.permissions())?;
            os::copy_owner(&file, &first);
            Ok(file)
        };
        self.file = adopt().map_err(|e| self.io(e))?;
        Ok(())
    }

    fn start(
        requested: &Path,
        overwrite: Overwrite,
        without_name: impl Fn(&Path) -> Option<File>,
    ) -> Result<Self> {
        // Links are resolved so that the rename replaces the target and not the link.
        let path = follow(requested);
        let mut old = None;
        if let Ok(meta) = fs::metadata(&path) {
            if overwrite == Overwrite::Never {
                return Err(exists(requested));
            }
            if !meta.is_file() {
                return Err(
                    Error::argument("not a regular file; nothing was written").with_path(requested)
                );
            }
            old = Some(meta);
        }
        if path.file_name().is_none() {
            return Err(Error::argument("the path has no file name").with_path(requested));
        }
        let start = || -> io::Result<(File, Option<TempPath>)> {
            let (file, name) = if let Some(file) = without_name(&path) {
                (file, None)
            } else {
                let (file, name) = named(&path)?.into_parts();
                (file, Some(name))
            };
            if let Some(old) = old {
                file.set_permissions(old.permissions())?;
                os::copy_owner(&file, &old);
            }
            Ok((file, name))
        };
        let (file, name) = start().map_err(|e| Error::io(requested, e))?;
        let unfinished = name.as_deref().map(unfinished::Name::new);
        let pending = Some(Pending { overwrite, name, _unfinished: unfinished });
        Ok(Self { target: path, pending, ..Self::over(file, requested.to_path_buf(), 0) })
    }

    /// Creates a copy of the file at `path` that replaces it when it is committed. The copy shares the
    /// blocks of the file (reflink) if the file system supports it. `None` if the bytes would have to be
    /// copied and are more than `largest`.
    pub fn copy_of(path: impl AsRef<Path>, largest: u64) -> Result<Option<Self>> {
        let path = path.as_ref();
        let old = File::open(path).map_err(|e| Error::io(path, e))?;
        let sink = Self::create(path, Overwrite::Replace)?;
        Ok(sink.clone_bytes(&old, largest).map_err(|e| sink.io(e))?.then_some(sink))
    }

    /// Fills the empty file with the bytes of `old`. Returns `false` if they would have to be copied and are
    /// more than `largest`.
    fn clone_bytes(&self, old: &File, largest: u64) -> io::Result<bool> {
        if os::share_blocks(&self.file, old).is_ok() {
            return Ok(true);
        }
        let len = old.metadata()?.len();
        if len > largest {
            return Ok(false);
        }
        // `io::copy` between files stays inside the kernel.
        let copied = io::copy(&mut &*old, &mut &self.file)?;
        if copied != len {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file has been shortened",
            ));
        }
        Ok(true)
    }

    /// A sink over an open file, with the sequential writer at byte `position`.
    fn over(file: File, path: PathBuf, position: u64) -> Self {
        let (target, cursor) = (path.clone(), AtomicU64::new(position));
        Self {
            file,
            path,
            target,
            pending: None,
            attached: Vec::new(),
            obsolete: Vec::new(),
            lock: None,
            _edit: None,
            cursor,
            stream: false,
        }
    }

    /// Opens an existing file to modify it in place; the sequential writer starts at its end.
    ///
    /// Waits for an exclusive advisory lock (`flock`), held until the sink is dropped. Read the file after
    /// this call to see its current content. Readers are not blocked.
    pub fn edit(path: impl AsRef<Path>) -> Result<Self> {
        Self::edit_with(path.as_ref(), true)
    }

    /// Opens an existing file to modify it in place, as [`Sink::edit`] does. Fails with `Io` if another
    /// process holds the lock, instead of waiting.
    pub fn edit_alone(path: impl AsRef<Path>) -> Result<Self> {
        Self::edit_with(path.as_ref(), false)
    }

    fn edit_with(path: &Path, wait: bool) -> Result<Self> {
        let locked = os::lock_file(path, wait).map_err(|e| Error::io(path, e))?;
        let Some((file, lock)) = locked else {
            return Err(Error::new(ErrorKind::Io, "", "another process is writing this file")
                .with_path(path)
                .hint("wait until it has finished; the file can be read meanwhile"));
        };
        let len = file.metadata().map_err(|e| Error::io(path, e))?.len();
        let edit = Some(unfinished::Edit::new());
        Ok(Self { lock: Some(lock), _edit: edit, ..Self::over(file, path.to_path_buf(), len) })
    }

    /// A pipe, terminal or other file that can only be written from its beginning to its end; `name` is used
    /// as its path in messages. Writes at another position than the end fail, and nothing is atomic.
    pub fn stream(file: File, name: impl Into<PathBuf>) -> Self {
        Self { stream: true, ..Self::over(file, name.into(), 0) }
    }

    /// A file in memory, without a name: [`Sink::source`] returns its bytes, and a commit changes nothing on disk.
    pub fn in_memory() -> Result<Self> {
        Ok(Self::over(os::memory_file()?, "memory".into(), 0))
    }

    /// Whether the file can only be written [from its beginning to its end](Sink::stream).
    pub fn is_stream(&self) -> bool {
        self.stream
    }

    /// Path as given by the caller.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes written so far, as a source.
    pub fn source(&self) -> Result<Source> {
        let file = self.file.try_clone().map_err(|e| self.io(e))?;
        Source::from_file(file, &self.path)
    }

    /// Writes `bytes` at `offset`; may be called from several threads at once.
    pub fn write_all_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        #[cfg(feature = "testkit")]
        if let Some((written, error)) = faults::strike(|| Call::Write(offset, bytes.to_vec())) {
            let _ = os::write_all_at(&self.file, &bytes[..written], offset);
            return Err(self.io(error).at(offset));
        }
        cancel::ensure_running().map_err(|e| e.with_path(&self.path))?;
        if self.stream {
            return self.append(offset, bytes);
        }
        os::write_all_at(&self.file, bytes, offset).map_err(|e| self.io(e).at(offset))
    }

    /// Writes `bytes` to a stream, whose end must be at `offset`.
    fn append(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        if offset != self.position() {
            let message = "a stream cannot be written in another order";
            return Err(Error::unsupported("", message).with_path(&self.path));
        }
        (&self.file).write_all(bytes).map_err(|e| self.io(e))?;
        self.seek(offset + bytes.len() as u64);
        Ok(())
    }

    /// Truncates the file, or extends it with a sparse range of zeros.
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| self.io(e))
    }

    /// Extends the file to `len` bytes and allocates their disk blocks, so that later writes there cannot
    /// run out of space. On failure the length is unchanged.
    pub fn reserve(&self, len: u64) -> Result<()> {
        #[cfg(feature = "testkit")]
        self.inject_fault(Call::Reserve(len))?;
        let old = self.file.metadata().map_err(|e| self.io(e))?.len();
        if len <= old {
            return Ok(());
        }
        let reserved = match os::reserve(&self.file, old, len) {
            Ok(true) => Ok(()),
            // Writing zeros allocates the blocks.
            Ok(false) => self.fill_with_zeros(old, len),
            Err(error) => Err(self.io(error)),
        };
        if reserved.is_err() {
            self.set_len(old)?;
        }
        reserved
    }

    /// Allocates disk blocks for the bytes `from..len` without changing the length of the file, if the
    /// file system supports it. Fails only if the disk is full.
    pub fn set_aside(&self, from: u64, len: u64) -> Result<()> {
        os::set_aside(&self.file, from, len).map_err(|e| self.io(e))
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

    /// Copies the `len` bytes at `offset` of `source` to the position of the sequential writer.
    pub fn copy_from(&mut self, source: &Source, offset: u64, len: u64) -> Result<()> {
        source.for_each_block(offset, len, |bytes| Ok(self.write_all(bytes)?))
    }

    /// Flushes everything written so far to disk.
    pub fn sync(&self) -> Result<()> {
        #[cfg(feature = "testkit")]
        self.inject_fault(Call::Sync)?;
        self.file.sync_data().map_err(|e| self.io(e))
    }

    /// Position of the sequential writer in bytes.
    pub fn position(&self) -> u64 {
        self.cursor.load(Ordering::Relaxed)
    }

    /// Moves the sequential writer.
    pub fn seek(&self, position: u64) {
        self.cursor.store(position, Ordering::Relaxed);
    }

    /// Fault injection for a call that writes no bytes.
    #[cfg(feature = "testkit")]
    fn inject_fault(&self, call: Call) -> Result<()> {
        faults::strike(|| call).map_or(Ok(()), |(_, error)| Err(self.io(error)))
    }

    fn io(&self, error: io::Error) -> Error {
        let full = error.kind() == io::ErrorKind::StorageFull;
        let error = Error::io(&self.path, error);
        if full && self.pending.is_some() {
            return error
                .hint("the target is unchanged; free some disk space and run the command again");
        }
        error
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

/// Copies a file to `to`, sharing its blocks (reflink) if the file system supports it. Fails with `Exists`
/// if `to` exists.
pub fn copy_new(from: &Path, to: &Path) -> Result<()> {
    let source = File::open(from).map_err(|e| Error::io(from, e))?;
    let sink = Sink::create(to, Overwrite::Never)?;
    let copy = || -> io::Result<()> {
        sink.clone_bytes(&source, u64::MAX)?;
        sink.file.set_permissions(source.metadata()?.permissions())
    };
    copy().map_err(|e| sink.io(e))?;
    sink.commit()
}

#[cfg(test)]
mod tests;
