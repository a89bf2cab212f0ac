//! Several files and folders in one command: folders are searched recursively, a file that fails does
//! not stop the others, and the exit status covers all files.

use std::path::{Path, PathBuf};

use serde::Serialize;
use spile::OpenOptions;
use spile::error::{Error, Result};
use spile::format::Format;
use spile::source::Source;

use crate::context::expand;
use crate::exit::Exit;
use crate::print::text;

/// A file of a batch.
pub(crate) struct Item {
    pub(crate) path: PathBuf,
    /// Path relative to the folder on the command line.
    pub(crate) relative: PathBuf,
    /// The format, if the path is a folder that is one dataset.
    pub(crate) folder: Option<&'static dyn Format>,
}

/// The files selected by the arguments of a command.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) items: Vec<Result<Item>>,
    /// A folder was searched.
    pub(crate) searched: bool,
    /// Files in searched folders with an unrecognised format.
    pub(crate) unknown: u64,
}

impl Batch {
    /// Expands patterns and searches folders, sorted by name. Hidden files and folders are skipped. A
    /// folder that is one dataset counts as one file.
    pub(crate) fn new(files: &[PathBuf], options: &OpenOptions) -> Self {
        let mut batch = Self::default();
        for path in files.iter().flat_map(|file| expand(file)) {
            match path.and_then(|path| Ok((spile::REGISTRY.folder_format(&path, options)?, path))) {
                Ok((None, path)) if path.is_dir() => {
                    batch.searched = true;
                    let before = batch.items.len();
                    batch.search(&path, &path, options);
                    // Success would be misleading if no file was examined.
                    if batch.items.len() == before {
                        let error =
                            Error::argument("the folder contains no file of a known format");
                        batch.items.push(Err(error.with_path(&path)));
                    }
                }
                Ok((folder, path)) => {
                    let relative = path.file_name().map(PathBuf::from).unwrap_or_default();
                    batch.items.push(Ok(Item { path, relative, folder }));
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
            // Links to folders may form a cycle.
            let Ok(meta) = std::fs::symlink_metadata(&path) else { continue };
            if hidden || (meta.is_symlink() && path.is_dir()) {
                continue;
            }
            let relative = path.strip_prefix(top).unwrap_or(&path).to_path_buf();
            if meta.is_dir() {
                match spile::REGISTRY.folder_format(&path, options) {
                    Ok(None) => self.search(top, &path, options),
                    Ok(folder) => self.items.push(Ok(Item { path, relative, folder })),
                    Err(error) => self.items.push(Err(error)),
                }
                continue;
            }
            let known = Source::open(&path).and_then(|source| spile::REGISTRY.probe(&source));
            if known.is_ok() {
                self.items.push(Ok(Item { path, relative, folder: None }));
            } else {
                self.unknown += 1;
            }
        }
    }
}

/// Number of files by outcome.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Tally {
    pub(crate) files: u64,
    pub(crate) ok: u64,
    /// Files with findings or losses.
    pub(crate) not_ok: u64,
    /// Files that could not be processed.
    pub(crate) failed: u64,
    /// Files in searched folders with an unrecognised format.
    pub(crate) unknown: u64,
}

impl Tally {
    /// The exit status: 0 if all files are ok, `bad` if some are not, 3 if some failed, 2 if all failed.
    pub(crate) fn exit(&self, bad: Exit) -> Exit {
        match (self.failed, self.ok + self.not_ok) {
            (0, _) if self.not_ok > 0 => bad,
            (0, _) => Exit::Yes,
            (_, 0) => Exit::Error,
            _ => Exit::Partial,
        }
    }

    /// One line, for example `12 files: 10 ok, 1 not ok, 1 failed; 3 others of unknown format`.
    pub(crate) fn summary(&self, good: &str, bad: &str, other: &str) -> String {
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
