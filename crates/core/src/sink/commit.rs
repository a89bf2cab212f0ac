//! Commit: a complete file, and the folders that belong to it, get their names.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use super::names::{exists, flush_folder, folder, temporary_prefix};
use super::{FolderSink, Overwrite, Pending, SUFFIX, Sink, unfinished};
use crate::Result;
use crate::os::{self, exchange};

impl Sink {
    /// Waits until no other writer that calls this function replaces the target, and keeps others from it until
    /// this sink is dropped. Returns whether the target exists; without it there is nothing to wait for.
    pub fn lock_target(&mut self) -> Result<bool> {
        self.lock = os::lock_target(&self.target).map_err(|e| self.io(e))?;
        Ok(self.lock.is_some())
    }

    /// Makes `folder` a part of the file: it is committed with it. If one of them cannot be, neither is.
    pub fn attach(&mut self, folder: FolderSink) {
        self.attached.push(folder);
    }

    /// Removes the folder at `path` after the commit, for folders that only the replaced file refers to. What cannot
    /// be removed is left.
    pub fn remove_after_commit(&mut self, path: PathBuf) {
        self.obsolete.push(path);
    }

    /// Flushes the file to disk, links it to the target path and flushes the folder. Attached folders are renamed
    /// to their targets immediately before. Fails with `Exists` if the target was created in between and may not
    /// be replaced; nothing is changed then.
    pub fn commit(mut self) -> Result<()> {
        if self.stream {
            return Ok(());
        }
        self.file.sync_all().map_err(|e| self.io(e))?;
        let mut folders = Vec::new();
        let mut done = Ok(());
        for folder in std::mem::take(&mut self.attached) {
            match folder.publish() {
                Ok(published) => folders.push(published),
                Err(error) => {
                    done = Err(error);
                    break;
                }
            }
        }
        let done = done.and_then(|()| self.finish());
        for folder in folders.into_iter().rev() {
            if done.is_ok() { folder.finish() } else { folder.undo()? }
        }
        if done.is_ok() {
            for folder in &self.obsolete {
                // A failure to remove may be temporary.
                let _ = fs::remove_dir_all(folder).or_else(|_| fs::remove_dir_all(folder));
            }
        }
        done
    }

    /// Links the flushed file to its target path and flushes the folder. On failure the target is unchanged.
    fn finish(&mut self) -> Result<()> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        self.publish(pending).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => exists(&self.path),
            _ => self.io(e),
        })
    }

    fn publish(&self, pending: Pending) -> io::Result<()> {
        let Pending { name, overwrite, _unfinished } = pending;
        if overwrite == Overwrite::Never {
            match name {
                Some(name) => name.persist_noclobber(&self.target).map_err(|e| e.error)?,
                None => self.link(&self.target)?,
            }
            return flush_folder(&self.target).inspect_err(|_| {
                let _ = fs::remove_file(&self.target);
            });
        }
        // A link cannot replace an existing file, a rename can.
        let name = match name {
            Some(name) => name,
            None => self.link_unused()?,
        };
        let _unfinished = unfinished::Name::new(&name);
        // The old file is kept until the new one is on disk.
        if exchange(&name, &self.target).is_ok() {
            let done = flush_folder(&self.target).and_then(|()| fs::remove_file(&name));
            return done.inspect_err(|_| {
                let _ = exchange(&name, &self.target);
            });
        }
        // There is no old file, or the file system cannot exchange names.
        fs::rename(&name, &self.target)?;
        // The temporary name no longer exists.
        let _ = name.keep();
        flush_folder(&self.target)
    }

    /// Links the file to an unused temporary name next to the target.
    fn link_unused(&self) -> io::Result<TempPath> {
        let prefix = temporary_prefix(&self.target);
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(SUFFIX);
        let made = builder.make_in(folder(&self.target), |path| self.link(path))?;
        Ok(made.into_temp_path())
    }

    fn link(&self, path: &Path) -> io::Result<()> {
        os::link_unnamed(&self.file, path)
    }
}
