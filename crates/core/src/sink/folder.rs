//! Atomic writes of datasets that are folders of files.
//!
//! The files are written to a temporary folder `.NAME.XXXXXX.part` next to the target.
//! [`FolderSink::commit`] flushes them to disk and renames the folder; an existing target is exchanged
//! with it atomically and then removed. A killed writer leaves its `.part` folder; the next writer of the
//! same target removes it when its lock is released. On file systems that cannot exchange names, an existing
//! target is renamed to `.NAME.XXXXXX.old` first; the next writer restores it if a kill came in between.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;
use tempfile::TempDir;

use super::{
    Overwrite, SUFFIX, Sink, exchange, exists, flush_folder, folder, follow, temporary_prefix,
    unfinished,
};
use crate::{Error, Result};

/// Up to this number of files are synced one by one.
const FEW: usize = 8;

/// Attempts to replace a target that other writers create and remove.
const ATTEMPTS: u32 = 1000;

/// A folder being written.
pub struct FolderSink {
    /// Path as given by the caller, for messages.
    path: PathBuf,
    /// Path to replace, with symbolic links resolved.
    target: PathBuf,
    overwrite: Overwrite,
    part: TempDir,
    /// Marks the temporary folder as unfinished output.
    _unfinished: unfinished::Name,
    /// Handle with the lock that marks the folder as in use.
    lock: File,
}

impl FolderSink {
    /// Creates a new folder that becomes visible at `path` when it is committed. If it is dropped before
    /// that, it is removed. Fails with `Exists` if `path` exists and may not be replaced.
    pub fn create(path: impl AsRef<Path>, overwrite: Overwrite) -> Result<Self> {
        let path = path.as_ref();
        let target = follow(path);
        if target.file_name().is_none() {
            return Err(Error::argument("the path has no folder name").with_path(path));
        }
        let prefix = temporary_prefix(&target);
        remove_stale(&target, &prefix);
        if overwrite == Overwrite::Never && fs::symlink_metadata(&target).is_ok() {
            return Err(exists(path));
        }
        let start = || -> io::Result<(TempDir, File)> {
            let mut builder = tempfile::Builder::new();
            builder.prefix(&prefix).suffix(SUFFIX).permissions(Permissions::from_mode(0o777));
            loop {
                let part = builder.tempdir_in(folder(&target))?;
                // File systems without locks are accepted.
                let locked = File::open(part.path()).inspect(|lock| {
                    let _ = rustix::fs::flock(lock, FlockOperation::LockExclusive);
                });
                // Another writer may have removed it before it was locked.
                if part.path().exists() {
                    return Ok((part, locked?));
                }
            }
        };
        let (part, lock) = start().map_err(|e| Error::io(path, e))?;
        let unfinished = unfinished::Name::new(part.path());
        let path = path.to_path_buf();
        Ok(Self { path, target, overwrite, part, _unfinished: unfinished, lock })
    }

    /// Path as given by the caller.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a file in the folder, and its parent folders. `name` is a relative path with `/` as
    /// separator and without `.` or `..`. The file is committed with the folder. Fails if it exists.
    pub fn file(&self, name: &str) -> Result<Sink> {
        let inside = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
        if !name.split('/').all(inside) {
            let message = format!("invalid file name \"{name}\"");
            return Err(Error::argument(message).with_path(&self.path));
        }
        let path = self.part.path().join(name);
        let create = || -> io::Result<File> {
            let new = || OpenOptions::new().read(true).write(true).create_new(true).open(&path);
            match new() {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(folder(&path))?;
                    new()
                }
                other => other,
            }
        };
        let shown = self.path.join(name);
        let file = create().map_err(|e| Error::io(&shown, e))?;
        Ok(Sink::over(file, shown, 0))
    }

    /// Replaces this folder, which must be empty, by an existing one on the same file system, so that
    /// [`FolderSink::commit`] publishes that.
    pub fn adopt(&self, existing: &Path) -> Result<()> {
        fs::rename(existing, self.part.path()).map_err(|e| Error::io(existing, e))
    }

    /// Flushes all files to disk, renames the folder to its target and flushes the parent folder. Fails with
    /// `Exists` if the target was created in between and may not be replaced. On failure the target is
    /// unchanged.
    pub fn commit(self) -> Result<()> {
        self.publish()?.finish();
        Ok(())
    }

    /// Flushes all files to disk, renames the folder to its target and flushes the parent folder. What it
    /// replaced is kept until [`Published::finish`].
    pub(super) fn publish(self) -> Result<Published> {
        let replaced = self.sync().and_then(|()| self.swap()).map_err(|e| self.io(e))?;
        let flushed = flush_folder(&self.target);
        let published = Published { sink: self, replaced };
        match flushed {
            Ok(()) => Ok(published),
            Err(e) => {
                let error = published.sink.io(e);
                published.undo()?;
                Err(error)
            }
        }
    }

    fn io(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&self.path),
            _ => Error::io(&self.path, error),
        }
    }

    /// Flushes all files to disk. For many files one `syncfs` is faster than a journal commit per file.
    fn sync(&self) -> io::Result<()> {
        let (mut files, mut folders) = (Vec::new(), vec![self.part.path().to_path_buf()]);
        list(self.part.path(), &mut files, &mut folders)?;
        if files.len() > FEW && rustix::fs::syncfs(&self.lock).is_ok() {
            return Ok(());
        }
        for file in files {
            File::open(file)?.sync_all()?;
        }
        for folder in folders {
            // The folder that contains a name in it.
            flush_folder(&folder.join("_"))?;
        }
        Ok(())
    }

    /// Renames the folder to its target. Returns the path of what it replaced.
    fn swap(&self) -> io::Result<Option<PathBuf>> {
        match self.overwrite {
            Overwrite::Never => self.rename().map(|()| None),
            Overwrite::Replace => self.replace(),
        }
    }

    /// Renames the folder to its target, which must not exist.
    fn rename(&self) -> io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        let done = rustix::fs::renameat_with(CWD, self.part.path(), CWD, &self.target, flags);
        if done == Err(Errno::INVAL) {
            // Not supported by this file system: check, then rename.
            if fs::symlink_metadata(&self.target).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            return fs::rename(self.part.path(), &self.target);
        }
        Ok(done?)
    }

    /// Replaces the target, if it exists. Returns the path of what it replaced. Other writers may create or
    /// remove the target at the same time: the last one wins.
    fn replace(&self) -> io::Result<Option<PathBuf>> {
        let mut attempts = 0..ATTEMPTS;
        loop {
            attempts.next().ok_or(io::ErrorKind::ResourceBusy)?;
            let Ok(old) = fs::symlink_metadata(&self.target) else {
                match self.rename() {
                    Err(e) if e.kind() == io::ErrorKind::AlreadyExists => continue,
                    done => return done.map(|()| None),
                }
            };
            if old.is_dir() {
                fs::set_permissions(self.part.path(), old.permissions())?;
            }
            match exchange(self.part.path(), &self.target) {
                // The old target now has the temporary name.
                Ok(()) => return Ok(Some(self.part.path().to_path_buf())),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) if e.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                    return self.replace_in_two_steps().map(Some);
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Replaces the target in two steps, for file systems without exchange; the first is undone if the
    /// second fails. Returns the path of what it replaced.
    fn replace_in_two_steps(&self) -> io::Result<PathBuf> {
        let aside = self.part.path().with_extension("old");
        fs::rename(&self.target, &aside)?;
        if let Err(e) = fs::rename(self.part.path(), &self.target) {
            fs::rename(&aside, &self.target)?;
            return Err(e);
        }
        Ok(aside)
    }
}

/// A folder at its target, and what it replaced: one of them is removed by [`finish`](Published::finish) or
/// [`undo`](Published::undo).
pub(super) struct Published {
    sink: FolderSink,
    /// Path of what it replaced.
    replaced: Option<PathBuf>,
}

impl Published {
    /// Removes what the folder replaced. What cannot be removed is left for the next writer.
    pub(super) fn finish(self) {
        if let Some(old) = self.replaced {
            let _ = remove(&old);
        }
    }

    /// Removes the folder and restores what it replaced.
    pub(super) fn undo(self) -> Result<()> {
        let Self { sink, replaced } = self;
        let restore = || -> io::Result<()> {
            let Some(old) = replaced else { return remove(&sink.target) };
            if exchange(&old, &sink.target).is_err() {
                remove(&sink.target)?;
                return fs::rename(&old, &sink.target);
            }
            remove(&old)
        };
        restore().map_err(|e| sink.io(e))
    }
}

/// Removes temporary folders of killed writers of the same target, and restores a target that one of them has
/// renamed; failures are ignored.
fn remove_stale(target: &Path, prefix: &str) {
    for entry in fs::read_dir(folder(target)).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(prefix) {
            continue;
        }
        if name.ends_with(SUFFIX) && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if is_abandoned(&path) {
                let _ = fs::remove_dir_all(path);
            }
        } else if name.ends_with(".old") && is_abandoned(&path.with_extension("part")) {
            let flags = RenameFlags::NOREPLACE;
            if rustix::fs::renameat_with(CWD, &path, CWD, target, flags).is_err()
                && (target.exists() || fs::rename(&path, target).is_err())
            {
                let _ = remove(&path);
            }
        }
    }
}

/// Whether no writer has locked the folder, which may not exist.
fn is_abandoned(path: &Path) -> bool {
    File::open(path).map_or(!path.exists(), |lock| {
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
    })
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Appends all files and folders below `path`.
fn list(path: &Path, files: &mut Vec<PathBuf>, folders: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            folders.push(entry.path());
            list(&entry.path(), files, folders)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::error::ErrorKind;

    fn write(path: &Path, overwrite: Overwrite, text: &[u8]) -> FolderSink {
        let sink = FolderSink::create(path, overwrite).unwrap();
        sink.file("top").unwrap().write_all(text).unwrap();
        sink.file("a/b/c").unwrap().write_all(text).unwrap();
        sink
    }

    fn names(path: &Path) -> Vec<String> {
        let entries = fs::read_dir(path).unwrap();
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_folder_is_visible_with_all_files_after_commit() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let sink = write(&path, Overwrite::Never, b"1");
        assert!(!path.exists());
        sink.commit().unwrap();
        assert_eq!(fs::read(path.join("a/b/c")).unwrap(), b"1");
        assert_eq!(names(dir.path()), ["x"]);
        // The same mode as a folder made with mkdir.
        fs::create_dir(dir.path().join("plain")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&dir.path().join("plain")));
        let error = FolderSink::create(&path, Overwrite::Never).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Exists);
    }

    #[test]
    fn a_dropped_folder_is_removed_and_the_old_one_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        drop(write(&path, Overwrite::Never, b"1"));
        assert!(names(dir.path()).is_empty());
        write(&path, Overwrite::Never, b"1").commit().unwrap();
        drop(write(&path, Overwrite::Replace, b"2"));
        assert_eq!(fs::read(path.join("top")).unwrap(), b"1");
        assert_eq!(names(dir.path()), ["x"]);
    }

    #[test]
    fn folders_links_and_files_can_be_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        write(&path, Overwrite::Never, b"1").commit().unwrap();
        fs::write(path.join("more"), b"old").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("x", &link).unwrap();
        write(&link, Overwrite::Replace, b"2").commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(path.join("a/b/c")).unwrap(), b"2");
        assert!(!path.join("more").exists(), "files of the old folder are removed");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
        fs::remove_dir_all(&path).unwrap();
        fs::write(&path, b"a file").unwrap();
        write(&path, Overwrite::Replace, b"3").commit().unwrap();
        assert_eq!(fs::read(path.join("top")).unwrap(), b"3");
        let mut left = names(dir.path());
        left.sort();
        assert_eq!(left, ["link", "x"]);
    }

    #[test]
    fn replacing_in_two_steps_gives_the_same_result_as_an_exchange() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        write(&path, Overwrite::Never, b"1").commit().unwrap();
        let sink = write(&path, Overwrite::Replace, b"2");
        let replaced = Some(sink.replace_in_two_steps().unwrap());
        Published { sink, replaced }.finish();
        assert_eq!(fs::read(path.join("top")).unwrap(), b"2");
        assert_eq!(names(dir.path()), ["x"]);
    }

    #[test]
    fn undoing_restores_the_old_folder() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        write(&path, Overwrite::Never, b"1").publish().unwrap().undo().unwrap();
        assert!(names(dir.path()).is_empty());
        write(&path, Overwrite::Never, b"1").commit().unwrap();
        write(&path, Overwrite::Replace, b"2").publish().unwrap().undo().unwrap();
        assert_eq!(fs::read(path.join("top")).unwrap(), b"1");
        let sink = write(&path, Overwrite::Replace, b"2");
        let replaced = Some(sink.replace_in_two_steps().unwrap());
        Published { sink, replaced }.undo().unwrap();
        assert_eq!(fs::read(path.join("top")).unwrap(), b"1");
        assert_eq!(names(dir.path()), ["x"]);
    }

    #[test]
    fn a_target_created_before_the_commit_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let sink = write(&path, Overwrite::Never, b"1");
        // An empty folder would be replaced by a plain rename.
        fs::create_dir(&path).unwrap();
        assert_eq!(sink.commit().unwrap_err().kind(), ErrorKind::Exists);
        assert!(names(&path).is_empty());
        assert_eq!(names(dir.path()), ["x"]);
    }

    #[test]
    fn folders_of_killed_writers_are_removed_and_those_of_running_ones_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let dead = dir.path().join(".x.killed.part");
        fs::create_dir_all(dead.join("a")).unwrap();
        let first = write(&path, Overwrite::Never, b"1");
        assert!(!dead.exists());
        let second = write(&path, Overwrite::Never, b"2");
        first.commit().unwrap();
        assert_eq!(second.commit().unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(fs::read(path.join("top")).unwrap(), b"1");
    }

    #[test]
    fn a_target_renamed_by_a_killed_writer_is_restored() {
        let dir = tempfile::tempdir().unwrap();
        let (path, aside) = (dir.path().join("x"), dir.path().join(".x.killed.old"));
        write(&path, Overwrite::Never, b"1").commit().unwrap();
        fs::rename(&path, &aside).unwrap();
        let error = FolderSink::create(&path, Overwrite::Never).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Exists);
        assert_eq!(fs::read(path.join("top")).unwrap(), b"1");
        // The writer was killed after the second step.
        fs::create_dir(&aside).unwrap();
        write(&path, Overwrite::Replace, b"2").commit().unwrap();
        assert_eq!(names(dir.path()), ["x"]);
    }

    #[test]
    fn concurrent_writers_replace_a_folder_that_did_not_exist() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..20 {
            let path = dir.path().join("x");
            std::thread::scope(|scope| {
                for text in [b"1", b"2", b"3", b"4"] {
                    let path = &path;
                    scope.spawn(move || write(path, Overwrite::Replace, text).commit().unwrap());
                }
            });
            let top = fs::read(path.join("top")).unwrap();
            assert_eq!(fs::read(path.join("a/b/c")).unwrap(), top, "files of one writer");
            fs::remove_dir_all(&path).unwrap();
        }
    }

    #[cfg(feature = "testkit")]
    #[test]
    fn a_folder_that_cannot_be_flushed_is_an_error_and_the_old_one_stays() {
        use crate::testkit::faults::{Call, Fault, arm, disarm};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        for (overwrite, left) in [(Overwrite::Never, None), (Overwrite::Replace, Some(b"1"))] {
            if let Some(text) = left {
                write(&path, Overwrite::Never, text).commit().unwrap();
            }
            let sink = write(&path, overwrite, b"2");
            arm(None);
            sink.commit().unwrap();
            let calls = disarm();
            let last = calls.iter().rposition(|call| *call == Call::SyncFolder).unwrap();
            fs::remove_dir_all(&path).unwrap();
            if let Some(text) = left {
                write(&path, Overwrite::Never, text).commit().unwrap();
            }
            let sink = write(&path, overwrite, b"2");
            arm(Some(Fault { call: last, part: 0, lasting: false }));
            let error = sink.commit().unwrap_err();
            disarm();
            assert_eq!(error.kind(), ErrorKind::Io);
            assert_eq!(fs::read(path.join("top")).ok().as_deref(), left.map(|t| &t[..]));
            assert_eq!(names(dir.path()).len(), usize::from(left.is_some()));
        }
    }

    #[test]
    fn an_existing_folder_can_be_published() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("x"), dir.path().join("other"));
        write(&path, Overwrite::Never, b"1").commit().unwrap();
        write(&other, Overwrite::Never, b"2").commit().unwrap();
        let sink = FolderSink::create(&path, Overwrite::Replace).unwrap();
        sink.adopt(&other).unwrap();
        sink.commit().unwrap();
        assert_eq!(fs::read(path.join("a/b/c")).unwrap(), b"2");
        assert_eq!(names(dir.path()), ["x"]);
    }

    #[test]
    fn names_that_lead_out_of_the_folder_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let sink = FolderSink::create(dir.path().join("x"), Overwrite::Never).unwrap();
        for name in ["", "../y", "/y", "a/../../y", "a//b", "a/./b", "a\0"] {
            assert_eq!(sink.file(name).err().unwrap().kind(), ErrorKind::Argument, "{name}");
        }
        sink.file("a").unwrap();
        assert!(sink.file("a").is_err(), "a file can be created once");
    }
}
