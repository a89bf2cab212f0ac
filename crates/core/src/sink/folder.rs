//! Atomic writes of datasets that are folders of files.
//!
//! The files are written to a temporary folder `.NAME.XXXXXX.part` next to the target.
//! [`FolderSink::commit`] flushes them to disk and renames the folder; an existing target is exchanged
//! with it atomically and then removed. A killed writer leaves its `.part` folder; the next writer of the
//! same target removes it when its lock is released. On file systems that cannot exchange names, an existing
//! target is renamed to `.NAME.XXXXXX.old` first; the next writer restores it if a kill came in between.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::names::{exists, flush_folder, folder, follow, temporary_prefix};
use super::{Overwrite, SUFFIX, Sink, unfinished};
use crate::os::{FolderLock, exchange, rename_new};
use crate::{Error, Result, os};

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
    /// Marks the folder as in use.
    _lock: FolderLock,
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
        let start = || -> io::Result<(TempDir, FolderLock)> {
            let mut builder = tempfile::Builder::new();
            builder.prefix(&prefix).suffix(SUFFIX);
            os::grant(&mut builder, 0o777);
            loop {
                let part = builder.tempdir_in(folder(&target))?;
                let locked = FolderLock::wait(part.path());
                // Another writer may have removed it before it was locked.
                if part.path().exists() {
                    return Ok((part, locked?));
                }
            }
        };
        let (part, lock) = start().map_err(|e| Error::io(path, e))?;
        let unfinished = unfinished::Name::new(part.path());
        let path = path.to_path_buf();
        Ok(Self { path, target, overwrite, part, _unfinished: unfinished, _lock: lock })
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
        if files.len() > FEW && os::sync_file_system(self.part.path()) {
            return Ok(());
        }
        for file in files {
            os::sync_file(&file)?;
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
        rename_new(self.part.path(), &self.target)
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
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
                    ) =>
                {
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
            let exists = |e: io::Error| e.kind() == io::ErrorKind::AlreadyExists;
            if rename_new(&path, target).is_err_and(exists) {
                let _ = remove(&path);
            }
        }
    }
}

/// Whether no writer has locked the folder, which may not exist.
fn is_abandoned(path: &Path) -> bool {
    !FolderLock::is_taken(path)
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
mod tests;
