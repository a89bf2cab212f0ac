//! Global options, opening files, errors and warnings.

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use spile::Dataset;
use spile::error::{Error, Hint, Result};
use spile::format::Folder;
use spile::limits::Limits;
use spile::report::Finding;
use spile::source::Source;
use spile::{Format, OpenOptions};
use spile_ops::json::Failure;

use crate::args::{Global, When};
use crate::exit::Exit;
use crate::hint;
use crate::interrupt;
use crate::print::{Output, paint, style, text, versioned};
use crate::progress;

/// The evaluated global options.
#[derive(Clone, Copy)]
#[allow(clippy::struct_excessive_bools)] // Flags of the command line.
pub(crate) struct Context {
    /// Limits for opening and reading files.
    pub(crate) limits: Limits,
    /// Print JSON.
    pub(crate) json: bool,
    /// Print only results and errors.
    pub(crate) quiet: bool,
    /// Print details.
    pub(crate) verbose: bool,
    /// Use colour on standard output.
    pub(crate) colour: bool,
    /// Use colour on standard error.
    pub(crate) error_colour: bool,
    /// Add derived arrays.
    pub(crate) derived: bool,
    /// Format of the input, if specified.
    pub(crate) from: Option<&'static dyn Format>,
    /// Show a progress bar.
    pub(crate) progress: bool,
    /// Width of the terminal in columns; `None` if standard output is not a terminal.
    pub(crate) width: Option<usize>,
}

/// A file argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// The file; `-` is standard input.
    pub(crate) path: &'a Path,
    /// Position among the files, from 0.
    pub(crate) number: usize,
    /// The command has several files.
    pub(crate) many: bool,
}

impl Entry<'_> {
    /// The path as text, as printed in JSON.
    pub(crate) fn name(&self) -> String {
        self.path.to_string_lossy().into_owned()
    }
}

impl Context {
    pub(crate) fn new(global: &Global) -> Self {
        let use_colour = |terminal: bool| match global.color {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                let disabled = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
                terminal && !disabled && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
            }
        };
        let terminal = io::stdout().is_terminal();
        let limits = Limits::default();
        Self {
            limits: global.max_memory.map_or(limits, |bytes| limits.with_memory(bytes)),
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose,
            derived: global.derived,
            from: global.from,
            colour: use_colour(terminal),
            error_colour: use_colour(io::stderr().is_terminal()),
            progress: io::stderr().is_terminal() && !global.quiet && !global.json,
            width: terminal.then(columns).flatten(),
        }
    }

    /// The source of a file; `-` is standard input, which is read into memory within the memory limit.
    pub(crate) fn source(&self, path: &Path) -> Result<Source> {
        if path != Path::new("-") {
            let source = Source::open(path)?;
            if self.progress {
                progress::watch(&source);
            }
            return Ok(source);
        }
        let mut bytes = Vec::new();
        let budget = self.limits.memory;
        io::stdin().lock().take(budget.saturating_add(1)).read_to_end(&mut bytes)?;
        self.limits.allow(bytes.len() as u64, "standard input")?;
        Ok(Source::memory(bytes))
    }

    /// Opens a file, a folder that is one dataset, or the files of a run that match a pattern, and prints its
    /// warnings. The format is recognised by content unless `--from` is given.
    pub(crate) fn open(&self, path: &Path) -> Result<Dataset> {
        if let Some((format, folder)) = self.pattern(path)? {
            let opened = Dataset::open_folder(format, &folder, &self.options())?;
            let dataset =
                opened.ok_or_else(|| Error::argument("no file of this pattern is a dataset"))?;
            self.print_warnings(path, dataset.warnings());
            return Ok(dataset);
        }
        let dataset = match (self.from, path.is_dir()) {
            (Some(format), true) => Dataset::open_path(format, path, &self.options())?,
            (Some(format), false) => Dataset::open(format, self.source(path)?, &self.options())?,
            (None, true) => spile::open_with(path, &self.options())?,
            (None, false) => spile::REGISTRY.open(self.source(path)?, &self.options())?,
        };
        if self.progress && path.is_dir() {
            progress::watch(dataset.source());
        }
        self.print_warnings(path, dataset.warnings());
        Ok(dataset)
    }

    /// The files that match a pattern, if they are several and of a format whose files form runs.
    fn pattern(&self, path: &Path) -> Result<Option<(&'static dyn Format, Folder)>> {
        let files = expand(path).into_iter().collect::<Result<Vec<PathBuf>>>()?;
        let [first, _, ..] = &files[..] else { return Ok(None) };
        let format = match self.from {
            Some(format) => format,
            None => spile::REGISTRY.probe(&Source::open(first)?)?,
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let folder = Folder::of_files(folder, files);
        Ok(format.abilities().series.map(|_| (format, folder)))
    }

    /// The datasets of an argument: itself, or one pattern for every run in a folder with several, and the files of
    /// a pattern that are not a run.
    fn datasets(&self, file: &Path) -> Vec<Result<PathBuf>> {
        let folder = match self.pattern(file) {
            Ok(Some((format, folder))) => Some((format, folder)),
            Ok(None) if file.is_dir() => self.folder_of_runs(file),
            Ok(None) => None,
            Err(error) => return vec![Err(error)],
        };
        let Some((format, folder)) = folder else { return expand(file) };
        let runs = format.abilities().series.map(|series| series.runs(&folder)).unwrap_or_default();
        if runs.len() <= 1 {
            return vec![Ok(file.to_path_buf())];
        }
        runs.iter().map(|run| Ok(folder.path().join(&run.pattern))).collect()
    }

    /// A folder with the files of runs, and their format.
    fn folder_of_runs(&self, path: &Path) -> Option<(&'static dyn Format, Folder)> {
        let folder = Folder::open(path).ok()?;
        let formats = spile::REGISTRY.0.iter().copied();
        let is_chosen = |format: &&'static dyn Format| {
            self.from.is_none_or(|from| from.info().name == format.info().name)
        };
        let has_runs = |format: &&'static dyn Format| {
            let series = format.abilities().series;
            series.is_some_and(|series| !series.runs(&folder).is_empty())
        };
        let format = formats.filter(is_chosen).find(has_runs)?;
        Some((format, folder))
    }

    /// The options for opening files.
    pub(crate) fn options(&self) -> OpenOptions {
        let options = OpenOptions::with_limits(self.limits).with_formats(spile::REGISTRY);
        options.with_derived(self.derived)
    }

    /// Prints the warnings collected while opening.
    pub(crate) fn print_warnings(&self, path: &Path, findings: &[Finding]) {
        for finding in findings {
            // The object of a folder may be the folder.
            let object = finding.object.as_ref().filter(|object| Path::new(object) != path);
            let object = object.map_or(String::new(), |object| format!("{object}: "));
            self.warn(path, &format!("{object}{}", finding.message));
            // An operation that repairs the file.
            if let Some(hint @ Hint::Operation { .. }) = &finding.hint
                && !self.quiet
                && !self.json
            {
                let word = paint(self.error_colour, style::GOOD, "hint:");
                let hint = hint::render(hint, Some(path));
                let _ = writeln!(io::stderr().lock(), "{word} {}", text::one_line(&hint));
            }
        }
    }

    /// Calls `work` for every file, with patterns expanded. A file that fails is reported and the others
    /// are still processed; the exit status is then partial success.
    pub(crate) fn each_file<E: Into<Exit>>(
        &self,
        files: &[PathBuf],
        out: &mut Output,
        work: impl FnMut(Entry<'_>, &mut Output) -> Result<E>,
    ) -> Result<Exit> {
        self.each_path(files.iter().flat_map(|file| expand(file)).collect(), out, work)
    }

    /// Calls `work` for every dataset as [`Context::each_file`] does. The files of a run that match a pattern are
    /// one dataset, and every run in a folder is one.
    pub(crate) fn each_dataset<E: Into<Exit>>(
        &self,
        files: &[PathBuf],
        out: &mut Output,
        mut work: impl FnMut(Entry<'_>, Dataset, &mut Output) -> Result<E>,
    ) -> Result<Exit> {
        let files = files.iter().flat_map(|file| self.datasets(file)).collect();
        self.each_path(files, out, |entry, out| work(entry, self.open(entry.path)?, out))
    }

    /// Calls `work` for every path as [`Context::each_file`] does, without expanding patterns.
    pub(crate) fn each_path<E: Into<Exit>>(
        &self,
        files: Vec<Result<PathBuf>>,
        out: &mut Output,
        mut work: impl FnMut(Entry<'_>, &mut Output) -> Result<E>,
    ) -> Result<Exit> {
        let many = files.len() > 1;
        let (mut worst, mut failed, mut done) = (Exit::Yes, false, false);
        for (number, file) in files.into_iter().enumerate() {
            let result = file.and_then(|path| {
                work(Entry { path: &path, number, many }, out).map_err(|e| e.with_path(&path))
            });
            let exit = match result {
                Ok(exit) => {
                    done = true;
                    exit.into()
                }
                // Further output would not be read.
                Err(error) if is_closed_pipe(&error) => return Err(error),
                Err(error) => {
                    out.flush()?;
                    failed = true;
                    self.fail(&error)
                }
            };
            worst = worst.max(exit);
        }
        Ok(if failed && done { Exit::Partial } else { worst })
    }

    /// Prints a warning on standard error.
    pub(crate) fn warn(&self, path: &Path, message: &str) {
        if !self.quiet && !self.json {
            let word = paint(self.error_colour, style::WARN, "warning:");
            let text = format!("{}: {message}", path.display());
            progress::hide();
            let _ = writeln!(io::stderr().lock(), "{word} {}", text::one_line(&text));
        }
    }

    /// Prints an error on standard error, as a line with an optional hint or as JSON, and returns the exit
    /// status.
    pub(crate) fn fail(&self, error: &Error) -> Exit {
        if is_closed_pipe(error) {
            return Exit::Yes;
        }
        // Everything fails after a signal, which the user knows.
        if interrupt::status().is_some() {
            return Exit::Error;
        }
        let message = if self.json {
            #[derive(Serialize)]
            struct Failed<'a> {
                error: Failure<'a>,
            }
            let hint = error.suggestion().map(|hint| hint::render(hint, error.path()));
            let error = Failure { hint, ..Failure::from(error) };
            versioned(&Failed { error }).unwrap_or_else(|e| e.to_string())
        } else {
            let word = paint(self.error_colour, style::BAD, "error:");
            let mut message = format!("{word} {}", text::one_line(&error.to_string()));
            if let Some(hint) = error.suggestion() {
                let word = paint(self.error_colour, style::GOOD, "hint:");
                let hint = hint::render(hint, error.path());
                message = format!("{message}\n{word} {}", text::one_line(&hint));
            }
            message
        };
        progress::hide();
        // A failure to write to standard error cannot be reported.
        let _ = writeln!(io::stderr().lock(), "{message}");
        Exit::Error
    }
}

/// Whether the reader of standard output has closed the pipe, which is not a failure.
fn is_closed_pipe(error: &Error) -> bool {
    error.io_kind() == Some(io::ErrorKind::BrokenPipe)
}

fn columns() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    (width.0 > 0).then_some(usize::from(width.0))
}

/// The files that match a pattern that the shell did not expand, sorted.
pub(crate) fn expand(file: &Path) -> Vec<Result<PathBuf>> {
    let pattern = file.to_str().filter(|text| text.contains(['*', '?', '[']));
    // File names may contain these characters.
    let Some(pattern) = pattern.filter(|_| !file.exists()) else {
        return vec![Ok(file.to_path_buf())];
    };
    let fail = |message: String| vec![Err(Error::argument(message).with_path(file))];
    let paths = match glob::glob(pattern) {
        Ok(paths) => paths,
        Err(e) => return fail(format!("invalid pattern: {e}")),
    };
    let found = paths.map(|found| {
        found.map_err(|e| {
            let path = e.path().to_path_buf();
            Error::io(path, e.into())
        })
    });
    let found: Vec<_> = found.collect();
    if found.is_empty() { fail("no file matches this pattern".into()) } else { found }
}
