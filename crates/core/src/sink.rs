//! Bytes out.
//!
//! [`Sink::create`] writes to a file that has no name yet; [`Sink::commit`] flushes it to the disk
//! and puts it in its place. Until then the target is as it was, at any kill, crash or full disk;
//! afterwards it is whole. [`Sink::edit`] changes an existing file in place, for the few
//! operations whose order of writes makes that safe; each of them says why. [`FolderSink`] does for a
//! folder what `create` and `commit` do for a file.

mod folder;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, CWD, FallocateFlags, FlockOperation, Gid, Mode, OFlags, Uid};
use tempfile::{NamedTempFile, TempPath};

use crate::error::{Error, ErrorKind, Hint, Result};
use crate::source::Source;
#[cfg(feature = "testkit")]
use crate::testkit::faults::{self, Call};

pub use folder::FolderSink;

/// Bytes copied at once.
const COPY: u64 = 64 << 10;

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
    /// The file as the user named it, for messages.
    path: PathBuf,
    /// The file that is replaced: no link.
    target: PathBuf,
    pending: Option<Pending>,
    /// Where the sequential writer ([`io::Write`]) stands.
    cursor: AtomicU64,
}

/// A new file that has not appeared yet.
struct Pending {
    overwrite: Overwrite,
    /// Set where the file system cannot keep files without a name.
    name: Option<TempPath>,
}

impl Sink {
    /// Starts a new file that appears under `path`, whole, when it is committed. Dropped or
    /// killed before that, it leaves nothing behind: until then the file has no name, or, on file
    /// systems that need one, a name that begins with a dot and ends in `.part`.
    pub fn create(path: impl AsRef<Path>, overwrite: Overwrite) -> Result<Self> {
        Self::start(path.as_ref(), overwrite, unnamed)
    }

    /// The same for a file that other processes write, too: it has a name from the beginning,
    /// which is given back.
    pub fn create_named(path: impl AsRef<Path>, overwrite: Overwrite) -> Result<(Self, PathBuf)> {
        let sink = Self::start(path.as_ref(), overwrite, |_| None)?;
        let name = sink.pending.as_ref().and_then(|pending| pending.name.as_deref());
        let name = name.unwrap_or(&sink.target).to_path_buf();
        Ok((sink, name))
    }

    fn start(
        asked: &Path,
        overwrite: Overwrite,
        without_name: impl Fn(&Path) -> Option<File>,
    ) -> Result<Self> {
        // A link is followed, so that the rename replaces what it points to and not the link.
        let path = follow(asked);
        let mut old = None;
        if let Ok(meta) = fs::metadata(&path) {
            if overwrite == Overwrite::Never {
                return Err(exists(asked));
            }
            if !meta.is_file() {
                return Err(
                    Error::argument("is not a regular file; nothing was written").with_path(asked)
                );
            }
            old = Some(meta);
        }
        if path.file_name().is_none() {
            return Err(Error::argument("names no file to write").with_path(asked));
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
                // Only root may give a file away; for others it is their own already.
                let (user, group) = (Uid::from_raw(old.uid()), Gid::from_raw(old.gid()));
                let _ = rustix::fs::fchown(&file, Some(user), Some(group));
            }
            Ok((file, name))
        };
        let (file, name) = start().map_err(|e| Error::io(asked, e))?;
        let asked = asked.to_path_buf();
        let pending = Some(Pending { overwrite, name });
        Ok(Self { file, path: asked, target: path, pending, cursor: AtomicU64::new(0) })
    }

    /// Opens an existing file to change it in place; the sequential writer stands at its end.
    ///
    /// The file is locked against others who edit it, until the sink is dropped: whoever wants to
    /// know the file before changing it reads it after this call. Readers are not kept out.
    pub fn edit(path: impl AsRef<Path>) -> Result<Self> {
        Self::edit_with(path.as_ref(), FlockOperation::LockExclusive)
    }

    /// The same for an editor that stays: where another one has the file already, this fails
    /// at once instead of waiting for it.
    pub fn edit_alone(path: impl AsRef<Path>) -> Result<Self> {
        Self::edit_with(path.as_ref(), FlockOperation::NonBlockingLockExclusive)
    }

    fn edit_with(path: &Path, lock: FlockOperation) -> Result<Self> {
        let open = || -> io::Result<(File, u64)> {
            loop {
                let file = OpenOptions::new().read(true).write(true).open(path)?;
                // A file system without locks is no reason to refuse.
                if rustix::fs::flock(&file, lock) == Err(rustix::io::Errno::WOULDBLOCK) {
                    let busy =
                        Error::new(ErrorKind::Io, "", "another program is writing this file")
                            .hint("wait until it is done; reading is possible meanwhile");
                    return Err(io::Error::from(busy));
                }
                // Whoever had the lock may have put a new file in this one's place.
                let (held, named) = (file.metadata()?, fs::metadata(path)?);
                if (held.dev(), held.ino()) == (named.dev(), named.ino()) {
                    return Ok((file, held.len()));
                }
            }
        };
        let (file, len) = open().map_err(|e| Error::io(path, e))?;
        let asked = path.to_path_buf();
        Ok(Self {
            file,
            target: asked.clone(),
            path: asked,
            pending: None,
            cursor: AtomicU64::new(len),
        })
    }

    /// A file of a folder that has not appeared yet.
    fn inside(file: File, path: PathBuf) -> Self {
        let (target, cursor) = (path.clone(), AtomicU64::new(0));
        Self { file, path, target, pending: None, cursor }
    }

    /// The file as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes at a position; threads may do so at once.
    pub fn write_all_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        #[cfg(feature = "testkit")]
        if let Some((written, error)) = faults::strike(|| Call::Write(offset, bytes.to_vec())) {
            let _ = self.file.write_all_at(&bytes[..written], offset);
            return Err(self.io(error).at(offset));
        }
        self.file.write_all_at(bytes, offset).map_err(|e| self.io(e).at(offset))
    }

    /// Cuts the file, or extends it with zeros that take no room.
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| self.io(e))
    }

    /// Makes the file `len` bytes long with disk blocks behind all of them, so that writing there
    /// cannot run out of space. Fails with the file as it was.
    pub fn reserve(&self, len: u64) -> Result<()> {
        #[cfg(feature = "testkit")]
        self.may_fail(Call::Reserve(len))?;
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

    /// Keeps disk blocks for the bytes up to `len`, without a change to the file's length, where the
    /// file system can do that. Only a full disk is an error.
    pub fn set_aside(&self, from: u64, len: u64) -> Result<()> {
        let flags = FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, from, len.saturating_sub(from)) {
            Err(error @ (rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT)) => {
                Err(self.io(error.into()))
            }
            _ => Ok(()),
        }
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

    /// Copies `len` bytes of `source` from `offset` on to where the sequential writer stands.
    pub fn copy_from(&mut self, source: &Source, mut offset: u64, len: u64) -> Result<()> {
        let end = offset.saturating_add(len);
        let mut buffer = vec![0; len.min(COPY) as usize];
        while offset < end {
            let part = &mut buffer[..(end - offset).min(COPY) as usize];
            source.read_exact_at(offset, part)?;
            self.write_all(part)?;
            offset += part.len() as u64;
        }
        Ok(())
    }

    /// Waits until everything written so far is on the disk.
    pub fn sync(&self) -> Result<()> {
        #[cfg(feature = "testkit")]
        self.may_fail(Call::Sync)?;
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

    /// Makes the new file appear: flush to disk, give it its name, flush the folder.
    pub fn commit(mut self) -> Result<()> {
        self.file.sync_all().map_err(|e| self.io(e))?;
        if let Some(pending) = self.pending.take() {
            self.appear(pending).map_err(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => exists(&self.path),
                _ => self.io(e),
            })?;
            // Some file systems cannot sync a folder; the file itself is safe by now.
            let _ = File::open(folder(&self.target)).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }

    fn appear(&self, pending: Pending) -> io::Result<()> {
        match (pending.name, pending.overwrite) {
            (Some(name), Overwrite::Replace) => name.persist(&self.target).map_err(|e| e.error),
            (Some(name), Overwrite::Never) => {
                name.persist_noclobber(&self.target).map_err(|e| e.error)
            }
            (None, Overwrite::Never) => self.link(&self.target),
            (None, Overwrite::Replace) => {
                // A link cannot replace; a rename can. The name in between is taken from a
                // temporary file so that it is free.
                let name = named(&self.target)?.into_temp_path();
                fs::remove_file(&name)?;
                self.link(&name)?;
                name.persist(&self.target).map_err(|e| e.error)
            }
        }
    }

    fn link(&self, path: &Path) -> io::Result<()> {
        rustix::fs::linkat(CWD, handle(&self.file), CWD, path, AtFlags::SYMLINK_FOLLOW)?;
        Ok(())
    }

    /// A call that writes no bytes and may be told to fail.
    #[cfg(feature = "testkit")]
    fn may_fail(&self, call: Call) -> Result<()> {
        faults::strike(|| call).map_or(Ok(()), |(_, error)| Err(self.io(error)))
    }

    fn io(&self, error: io::Error) -> Error {
        let full = error.kind() == io::ErrorKind::StorageFull;
        let error = Error::io(&self.path, error);
        if full && self.pending.is_some() {
            return error.hint("nothing was changed; free some space and run the command again");
        }
        error
    }
}

/// What a chain of links ends at, whether that exists or not.
fn follow(path: &Path) -> PathBuf {
    let mut at = path.to_path_buf();
    // As many links as the system follows.
    for _ in 0..40 {
        let Ok(next) = fs::read_link(&at) else { break };
        at = folder(&at).join(next);
    }
    at
}

/// A file without a name in the target's folder, if it can be given one later.
fn unnamed(path: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let mode = Mode::from_raw_mode(0o666);
    let file = File::from(rustix::fs::openat(CWD, folder(path), flags, mode).ok()?);
    handle(&file).exists().then_some(file)
}

/// Where the system shows an open file, with or without a name.
fn handle(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

fn named(path: &Path) -> io::Result<NamedTempFile> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .suffix(".part")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder(path))
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
    let sink = Sink::create(to, Overwrite::Never)?;
    let copy = || -> io::Result<()> {
        if rustix::fs::ioctl_ficlone(&sink.file, &source).is_err() {
            // `io::copy` between files stays inside the kernel.
            io::copy(&mut &source, &mut &sink.file)?;
        }
        sink.file.set_permissions(source.metadata()?.permissions())
    };
    copy().map_err(|e| sink.io(e))?;
    sink.commit()
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn exists(path: &Path) -> Error {
    Error::new(ErrorKind::Exists, "", "exists already; nothing was written")
        .with_path(path)
        .hint(Hint::Overwrite)
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
    fn a_link_to_nothing_gets_its_target() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        std::os::unix::fs::symlink("real", &link).unwrap();
        Sink::create(&link, Overwrite::Replace).unwrap().commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink() && real.exists());
    }

    #[test]
    fn editors_take_turns_and_find_the_file_that_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("count");
        fs::write(&path, b"").unwrap();
        std::thread::scope(|scope| {
            for k in 0..8 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..20 {
                        let edit = Sink::edit(path).unwrap();
                        let mut bytes = fs::read(path).unwrap();
                        bytes.push(k);
                        if k % 2 == 0 {
                            edit.write_all_at(0, &bytes).unwrap();
                        } else {
                            let mut new = Sink::create(path, Overwrite::Replace).unwrap();
                            new.write_all(&bytes).unwrap();
                            new.commit().unwrap();
                        }
                    }
                });
            }
        });
        assert_eq!(fs::read(&path).unwrap().len(), 160);
    }

    #[test]
    fn an_editor_that_stays_is_alone_and_readers_are_not_kept_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, b"old").unwrap();
        let edit = Sink::edit_alone(&path).unwrap();
        let second = Sink::edit_alone(&path).err().unwrap();
        assert_eq!(second.kind(), ErrorKind::Io);
        assert!(second.to_string().contains("another program is writing"), "{second}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        drop(edit);
        assert!(Sink::edit_alone(&path).is_ok());
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
