//! Several files and folders in one command: folders are searched recursively, a file that fails does
//! not stop the others, and the exit status covers all files.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anstyle::Style;
use serde::Serialize;
use spile::OpenOptions;
use spile::error::{Error, Result};
use spile::format::Format;
use spile::source::Source;

use crate::context::{Context, Entry, expand};
use crate::exit::Exit;
use crate::print::{Align, Output, Table, style, text};
use crate::progress;

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
            let known = Source::open(&path)
                .and_then(|source| spile::REGISTRY.probe_within(&source, &options.limits));
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

/// The words of a report: the outcomes of files, and what others were.
pub(crate) struct Words {
    pub(crate) ok: &'static str,
    pub(crate) not_ok: &'static str,
    pub(crate) others: &'static str,
}

/// The row of a file: whether it is ok, and the cells after the first column, which has the outcome.
pub(crate) type Row<const N: usize> = (bool, [String; N]);

impl Batch {
    /// Calls `work` for every file and prints a table of the outcomes, or the totals as JSON. `work` returns
    /// `None` for a file that is skipped. The column `file` has the names of files that failed; files that
    /// are not ok have the style and the exit status `bad`.
    pub(crate) fn run<const N: usize>(
        self,
        columns: [(&'static str, Align); N],
        words: &Words,
        bad: (Style, Exit),
        context: &Context,
        out: &mut Output,
        mut work: impl FnMut(&Item, Entry<'_>, &mut Output) -> Result<Option<Row<N>>>,
    ) -> Result<Exit> {
        let mut tally = Tally { unknown: self.unknown, ..Tally::default() };
        let mut table = Table::new(&[&[("verdict", Align::Left)], &columns[..]].concat());
        let count = self.items.len() as u64;
        for (number, item) in self.items.into_iter().enumerate() {
            progress::set_file_number(number as u64, count);
            let done = item.and_then(|item| {
                let entry = Entry { path: &item.path, number, many: true };
                work(&item, entry, out).map_err(|e| e.with_path(&item.path))
            });
            let (verdict, cells) = match done {
                Ok(None) => {
                    tally.unknown += 1;
                    continue;
                }
                Ok(Some((true, cells))) => {
                    tally.ok += 1;
                    ((words.ok, style::GOOD), cells)
                }
                Ok(Some((false, cells))) => {
                    tally.not_ok += 1;
                    ((words.not_ok, bad.0), cells)
                }
                Err(error) => {
                    tally.failed += 1;
                    out.flush()?;
                    context.fail(&error);
                    let name = error.path().map(|path| path.to_string_lossy().into_owned());
                    let cell = |(column, _)| match column {
                        "file" => name.clone().unwrap_or_default(),
                        "first error" => error.message().to_string(),
                        _ => "-".to_string(),
                    };
                    (("failed", style::BAD), columns.map(cell))
                }
            };
            tally.files += 1;
            if context.json || context.quiet {
                continue;
            }
            let verdict = (verdict.0.to_string(), verdict.1);
            let cells = cells.into_iter().map(|cell| (cell, Style::new()));
            table.styled(std::iter::once(verdict).chain(cells), out)?;
        }
        if context.json {
            out.json(&tally)?;
        } else if !context.quiet {
            table.print(out)?;
            writeln!(out, "{}", tally.summary(words))?;
        }
        Ok(tally.exit(bad.1))
    }
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
    fn summary(&self, words: &Words) -> String {
        let parts = [(self.ok, words.ok), (self.not_ok, words.not_ok), (self.failed, "failed")];
        let parts: Vec<String> =
            parts.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
        let mut sentence = text::count(self.files, "file");
        if !parts.is_empty() {
            sentence = format!("{sentence}: {}", parts.join(", "));
        }
        match self.unknown {
            0 => sentence,
            n => format!("{sentence}; {} {}", text::count(n, "other"), words.others),
        }
    }
}
