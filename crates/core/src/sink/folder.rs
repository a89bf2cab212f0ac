//! A dataset that is a folder of files, put in its place as a whole.
//!
//! The files are written into a folder beside the target whose name begins with a dot and ends in
//! `.part`. [`FolderSink::commit`] brings all of them to the disk and gives the folder its name in one
//! step; what was there before is exchanged with it in the same step and then removed. A folder
//! cannot be without a name, so a killed writer leaves its `.part`; the next writer of the same target
//! finds that nobody holds it any more and removes it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;
use tempfile::TempDir;

use super::{Overwrite, Sink, exists, folder, follow};
use crate::error::{Error, Result};

/// The end of an unfinished folder's name.
const SUFFIX: &str = ".part";

/// Files that are brought to the disk one by one.
const FEW: usize = 8;

/// A folder being written.
pub struct FolderSink {
    /// As the user named it, for messages.
    path: PathBuf,
    /// What is replaced: no link.
    target: PathBuf,
    overwrite: Overwrite,
    part: TempDir,
    /// Tells others that the folder is in use.
    held: File,
}

impl FolderSink {
    /// Starts a new folder that appears under `path`, whole, when it is committed. Dropped before
    /// that, it leaves nothing behind.
    pub fn create(path: impl AsRef<Path>, overwrite: Overwrite) -> Result<Self> {
        let path = path.as_ref();
        let target = follow(path);
        if overwrite == Overwrite::Never && fs::symlink_metadata(&target).is_ok() {
            return Err(exists(path));
        }
        let Some(name) = target.file_name() else {
            return Err(Error::argument("names no folder to write").with_path(path));
        };
        let prefix = format!(".{}.", name.to_string_lossy());
        let start = || -> io::Result<(TempDir, File)> {
            clear(folder(&target), &prefix);
            let mut builder = tempfile::Builder::new();
            builder.prefix(&prefix).suffix(SUFFIX).permissions(Permissions::from_mode(0o777));
            let part = builder.tempdir_in(folder(&target))?;
            let held = File::open(part.path())?;
            // A file system without locks is no reason to refuse.
            let _ = rustix::fs::flock(&held, FlockOperation::LockExclusive);
            Ok((part, held))
        };
        let (part, held) = start().map_err(|e| Error::io(path, e))?;
        Ok(Self { path: path.to_path_buf(), target, overwrite, part, held })
    }

    /// The folder as the user named it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts a file of the folder, with the folders above it; `name` has slashes between its parts,
    /// none of which may lead out of the folder. The file needs no commit of its own.
    pub fn file(&self, name: &str) -> Result<Sink> {
        let inside = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
        if !name.split('/').all(inside) {
            let message = format!("\"{name}\" is no name of a file in a folder");
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
        Ok(Sink::inside(file, shown))
    }

    /// Makes the folder appear: flush everything to disk, give it its name, flush the folder above.
    pub fn commit(self) -> Result<()> {
        self.sync().and_then(|()| self.appear()).map_err(|e| self.io(e))?;
        let _ = File::open(folder(&self.target)).and_then(|folder| folder.sync_all());
        Ok(())
    }

    /// The same for a folder that will soon be removed: nothing waits for the disk.
    pub fn commit_unsynced(self) -> Result<()> {
        self.appear().map_err(|e| self.io(e))
    }

    fn io(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::AlreadyExists => exists(&self.path),
            _ => Error::io(&self.path, error),
        }
    }

    /// Brings all files to the disk. Many small ones are there fastest when the whole file system is
    /// asked: one by one each of them would wait for its own turn of the journal.
    fn sync(&self) -> io::Result<()> {
        let (mut files, mut folders) = (Vec::new(), vec![self.part.path().to_path_buf()]);
        list(self.part.path(), &mut files, &mut folders)?;
        if files.len() > FEW && rustix::fs::syncfs(&self.held).is_ok() {
            return Ok(());
        }
        for file in files {
            File::open(file)?.sync_all()?;
        }
        for folder in folders {
            // Some file systems cannot sync a folder; its files are safe without.
            let _ = File::open(folder)?.sync_all();
        }
        Ok(())
    }

    fn appear(&self) -> io::Result<()> {
        match self.overwrite {
            Overwrite::Never => self.rename(RenameFlags::NOREPLACE),
            Overwrite::Replace => self.replace(),
        }
    }

    fn rename(&self, flags: RenameFlags) -> io::Result<()> {
        let done = rustix::fs::renameat_with(CWD, self.part.path(), CWD, &self.target, flags);
        if done == Err(Errno::INVAL) && flags == RenameFlags::NOREPLACE {
            // This file system cannot promise it; whoever came first is still not replaced.
            if fs::symlink_metadata(&self.target).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            return fs::rename(self.part.path(), &self.target);
        }
        Ok(done?)
    }

    /// Puts the folder in the place of what is there, if anything is.
    fn replace(&self) -> io::Result<()> {
        let Ok(old) = fs::metadata(&self.target) else {
            return self.rename(RenameFlags::NOREPLACE);
        };
        if old.is_dir() {
            fs::set_permissions(self.part.path(), old.permissions())?;
        }
        match self.rename(RenameFlags::EXCHANGE) {
            Err(e) if e.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => self.put_aside(),
            // The old one has the unfinished one's name now.
            done => done.and_then(|()| remove(self.part.path())),
        }
    }

    /// The same in two steps, where the file system cannot exchange; the first is taken back when the
    /// second fails.
    fn put_aside(&self) -> io::Result<()> {
        let aside = self.part.path().with_extension("old");
        fs::rename(&self.target, &aside)?;
        if let Err(e) = fs::rename(self.part.path(), &self.target) {
            fs::rename(&aside, &self.target)?;
            return Err(e);
        }
        remove(&aside)
    }
}

/// Removes what killed writers of the same target have left. What cannot be removed does no harm.
fn clear(above: &Path, prefix: &str) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let ours = name.starts_with(prefix) && name.ends_with(SUFFIX);
        if ours
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(held) = File::open(entry.path())
            && rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive).is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Everything below `path`.
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
    fn a_folder_appears_whole_when_it_is_committed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let sink = write(&path, Overwrite::Never, b"1");
        assert!(!path.exists());
        sink.commit().unwrap();
        assert_eq!(fs::read(path.join("a/b/c")).unwrap(), b"1");
        assert_eq!(names(dir.path()), ["x"]);
        // As others see a folder that was made with mkdir.
        fs::create_dir(dir.path().join("plain")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&dir.path().join("plain")));
        let error = FolderSink::create(&path, Overwrite::Never).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Exists);
    }

    #[test]
    fn a_dropped_folder_leaves_no_trace_and_the_old_one_as_it_was() {
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
    fn replacing_takes_the_place_of_folders_links_and_files() {
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
        assert!(!path.join("more").exists(), "nothing of the old folder stays");
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
    fn two_steps_do_what_an_exchange_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        write(&path, Overwrite::Never, b"1").commit().unwrap();
        write(&path, Overwrite::Replace, b"2").put_aside().unwrap();
        assert_eq!(fs::read(path.join("top")).unwrap(), b"2");
        assert_eq!(names(dir.path()), ["x"]);
    }

    #[test]
    fn a_target_that_appears_meanwhile_is_not_lost() {
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
    fn what_a_killed_writer_leaves_is_removed_and_what_a_living_one_writes_is_not() {
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
    fn no_name_leads_out_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let sink = FolderSink::create(dir.path().join("x"), Overwrite::Never).unwrap();
        for name in ["", "../y", "/y", "a/../../y", "a//b", "a/./b", "a\0"] {
            assert_eq!(sink.file(name).err().unwrap().kind(), ErrorKind::Argument, "{name}");
        }
        sink.file("a").unwrap();
        assert!(sink.file("a").is_err(), "a file of the folder is written once");
    }
}
