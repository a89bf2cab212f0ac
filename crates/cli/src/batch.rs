//! Many files at once: folders are searched, one file that fails does not stop the rest, and the exit
//! says how it went with all of them.

use std::path::{Path, PathBuf};

use serde::Serialize;
use spile::error::{Error, Result};
use spile::format::Format;
use spile::OpenOptions;
use spile::source::Source;

use crate::context::expand;
use crate::exit::Exit;
use crate::print::text;

/// A file of a batch.
pub(crate) struct Item {
    pub(crate) path: PathBuf,
    /// Its place below the folder that was named.
    pub(crate) below: PathBuf,
    /// It is a folder, and a dataset of this format.
    pub(crate) folder: Option<&'static dyn Format>,
}

/// The files that a command line means.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<Result<Item>>,
    /// A folder was among them.
    pub(crate) searched: bool,
    /// Files of folders that are of no known format.
    pub(crate) unknown: u64,
}

impl Batch {
    /// Expands patterns and searches folders, in the order of names; what begins with a dot is hidden.
    /// A folder that is a dataset is like a file.
    pub(crate) fn new(files: &[PathBuf], options: &OpenOptions) -> Self {
        let mut batch = Self::default();
        for path in files.iter().flat_map(|file| expand(file)) {
            match path.and_then(|path| Ok((spile::REGISTRY.folder_format(&path, options)?, path))) {
                Ok((None, path)) if path.is_dir() => {
                    batch.searched = true;
                    let before = batch.items.len();
                    batch.search(&path, &path, options);
                    // Nothing wrong was found, but nothing was looked at either.
                    if batch.items.len() == before {
                        let error = Error::argument("no file of a known format is in it");
                        batch.items.push(Err(error.with_path(&path)));
                    }
                }
                Ok((folder, path)) => {
                    let below = path.file_name().map(PathBuf::from).unwrap_or_default();
                    batch.items.push(Ok(Item { path, below, folder }));
                }
                Err(error) => batch.items.push(Err(error)),
            }
        }
        batch
    }

    fn search(&mut self, top: &Path, folder: &Path, options: &OpenOptions) {
        let list = || -> std::io::Result<Vec<PathBuf>> {
            let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?
                .map(|e| Ok(e?.path()))
                .collect::<std::io::Result<_>>()?;
            paths.sort();
            Ok(paths)
        };
        let paths = match list() {
            Ok(paths) => paths,
            Err(e) => return self.items.push(Err(Error::io(folder, e))),
        };
        for path in paths {
            let hidden = path.file_name().is_some_and(|n| n.to_string_lossy().starts_with('.'));
            // A link to a folder may lead back here.
            let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
            if hidden || (meta.is_symlink() && path.is_dir()) {
                continue;
            }
            let below = path.strip_prefix(top).unwrap_or(&path).to_path_buf();
            if meta.is_dir() {
                match spile::REGISTRY.folder_format(&path, options) {
                    Ok(None) => self.search(top, &path, options),
                    Ok(folder) => self.items.push(Ok(Item { path, below, folder })),
                    Err(error) => self.items.push(Err(error)),
                }
                continue;
            }
            let known = Source::open(&path).and_then(|source| spile::REGISTRY.probe(&source));
            if known.is_ok() {
                self.items.push(Ok(Item { path, below, folder: None }));
            } else {
                self.unknown += 1;
            }
        }
    }
}

/// How it went with all of them.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Tally {
    pub(crate) files: u64,
    pub(crate) ok: u64,
    /// With findings, or with losses.
    pub(crate) not_ok: u64,
    /// Those with which nothing could be done.
    pub(crate) failed: u64,
    /// Files of folders that are of no known format.
    pub(crate) unknown: u64,
}

impl Tally {
    /// 0: all are good; `bad`: some are not; 3: some could not be looked at; 2: none could.
    pub(crate) fn exit(&self, bad: Exit) -> Exit {
        match (self.failed, self.ok + self.not_ok) {
            (0, _) if self.not_ok > 0 => bad,
            (0, _) => Exit::Yes,
            (_, 0) => Exit::Error,
            _ => Exit::Partial,
        }
    }

    /// `12 files: 10 ok, 1 not ok, 1 failed; 3 others are of no known format`.
    pub(crate) fn sentence(&self, good: &str, bad: &str, other: &str) -> String {
        let parts = [(self.ok, good), (self.not_ok, bad), (self.failed, "failed")];
        let parts: Vec<String> =
            parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
        let mut sentence = text::count(self.files, "file");
        if !parts.is_empty() {
            sentence = format!("{sentence}: {}", parts.join(", "));
        }
        match self.unknown {
            0 => sentence,
            n => format!("{sentence}; {} {other}", text::count(n, "other")),
        }
    }
}
