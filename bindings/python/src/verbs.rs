//! The operations of the command line. Results are the JSON documents of `docs/json.md` without their
//! common header; the Python layer converts them to dictionaries.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use pyo3::prelude::*;
use serde::Serialize;
use serde_json::{Value as Json, json};
use spile::Dataset;
use spile::cancel;
use spile::error::{Error, Result as Done};
use spile::format::{HEAD_BYTES, Head, WriteOptions};
use spile::sink::{Overwrite, Sink};
use spile::source::Source;
use spile_ops::Pick;
use spile_ops::convert::{self as conversion, LossRow, target};
use spile_ops::diff::Rules;
use spile_ops::stat::More;
use spile_ops::subset::subset;

use crate::failure::{Result, render};
use crate::file::{File, limits};
use crate::object::source;

/// Interval between calls of `progress`.
const TICK: Duration = Duration::from_millis(100);

/// Runs `work` in another thread without the GIL. Meanwhile `progress` is called with the number of
/// bytes read so far and the size of the file. An exception raised by it, or Ctrl-C, cancels the work.
fn watched<T: Send>(
    py: Python<'_>,
    source: &Source,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce() -> Done<T> + Send,
) -> Result<T> {
    let call = || {
        Python::attach(|py| {
            py.check_signals()?;
            let read = source.bytes_read().min(source.len());
            progress.as_ref().map_or(Ok(()), |p| p.call1(py, (read, source.len())).map(drop))
        })
    };
    let (raised, done) = py.detach(|| {
        let (sender, receiver) = channel();
        std::thread::scope(|threads| {
            threads.spawn(move || sender.send(work()));
            let mut raised = Ok(());
            loop {
                match receiver.recv_timeout(TICK) {
                    Err(RecvTimeoutError::Timeout) if raised.is_ok() => {
                        raised = call();
                        source.stop(raised.is_err());
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(done) => return (raised.and_then(|()| call()), done),
                    Err(RecvTimeoutError::Disconnected) => {
                        let broken = Error::unsupported("core-panic", "internal error in spile");
                        return (raised, Err(broken.hint("please report it")));
                    }
                }
            }
        })
    });
    source.stop(false);
    raised?;
    Ok(done?)
}

pub(crate) fn text(value: &impl Serialize) -> Done<String> {
    serde_json::to_string(value).map_err(|e| Error::argument(e.to_string()))
}

/// Collects the rows of an operation that returns them one by one.
fn rows<T: Serialize>(
    verb: impl FnOnce(&mut dyn FnMut(T) -> Done<()>) -> Done<()>,
) -> Done<Vec<Json>> {
    let mut rows = Vec::new();
    verb(&mut |row| {
        rows.push(serde_json::to_value(row).map_err(|e| Error::argument(e.to_string()))?);
        Ok(())
    })?;
    Ok(rows)
}

pub(crate) fn pick(select: &[String], frames: Option<&str>, slices: &[String]) -> Done<Pick> {
    let pick = Pick::new(select)?.with_slices(slices)?;
    frames.map_or(Ok(pick.clone()), |frames| pick.with_frames(frames))
}

pub(crate) fn overwrite(allowed: bool) -> Overwrite {
    if allowed { Overwrite::Replace } else { Overwrite::Never }
}

/// `spile info`.
#[pyfunction]
pub(crate) fn info(file: &File) -> Result<String> {
    Ok(text(&spile_ops::info(&file.dataset)?)?)
}

/// `spile check`.
#[pyfunction]
#[pyo3(signature = (path, data, strict, max_memory, progress))]
pub(crate) fn check(
    py: Python<'_>,
    path: Option<PathBuf>,
    data: Option<&Bound<'_, PyAny>>,
    strict: bool,
    max_memory: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> Result<String> {
    let source = source(py, path, data)?;
    let limits = limits(max_memory);
    watched(py, &source, progress, || {
        let mut result = spile_ops::check(&spile::REGISTRY, &source, &limits, strict)?;
        for finding in &mut result.findings {
            finding.hint = finding.hint.take().map(|hint| render(&hint).into());
        }
        text(&result)
    })
}

/// `spile diff`.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // The options of the command.
#[pyo3(signature = (first, second, *, atol, rtol, ulp, nan_differs, values, select, ignore, map, frames, progress))]
pub(crate) fn diff(
    py: Python<'_>,
    first: &File,
    second: &File,
    atol: f64,
    rtol: f64,
    ulp: u64,
    nan_differs: bool,
    values: bool,
    select: Vec<String>,
    ignore: Vec<String>,
    map: Vec<(String, String)>,
    frames: Option<String>,
    progress: Option<Py<PyAny>>,
) -> Result<String> {
    if !(atol >= 0.0 && atol.is_finite() && rtol >= 0.0 && rtol.is_finite()) {
        return Err(Error::argument("atol and rtol must be finite and not negative").into());
    }
    let rules = Rules {
        atol,
        rtol,
        ulp,
        nan_equal: !nan_differs,
        values_only: values,
        pick: pick(&select, frames.as_deref(), &[])?,
        ignore: if ignore.is_empty() { None } else { Some(Pick::new(&ignore)?) },
        renamed: map,
    };
    let (one, two) = (&first.dataset, &second.dataset);
    watched(py, one.source(), progress, || text(&spile_ops::diff(one, two, &rules)?))
}

/// `spile hash`.
#[pyfunction]
#[pyo3(signature = (file, *, native, select, frames, progress))]
pub(crate) fn hash(
    py: Python<'_>,
    file: &File,
    native: bool,
    select: Vec<String>,
    frames: Option<String>,
    progress: Option<Py<PyAny>>,
) -> Result<String> {
    let dataset = &file.dataset;
    watched(py, dataset.source(), progress, || {
        if native {
            let objects = rows(|each| spile_ops::hash::native(dataset, each))?;
            return text(&json!({ "objects": objects }));
        }
        let pick = pick(&select, frames.as_deref(), &[])?;
        let arrays = rows(|each| spile_ops::hash(dataset, &pick, each))?;
        if pick.is_all() {
            let digest = spile_ops::content(dataset)?;
            return text(&json!({ "digest": digest, "arrays": arrays }));
        }
        text(&json!({ "arrays": arrays }))
    })
}

/// `spile convert`.
#[pyfunction]
#[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // The options of the command.
#[pyo3(signature = (file, output, *, to, dry_run, strict, verify, overwrite, select, frames, slice, stored, compress, chunks, shards, progress))]
pub(crate) fn convert(
    py: Python<'_>,
    file: &File,
    output: PathBuf,
    to: Option<String>,
    dry_run: bool,
    strict: bool,
    verify: bool,
    overwrite: bool,
    select: Vec<String>,
    frames: Option<String>,
    slice: Vec<String>,
    stored: bool,
    compress: Option<String>,
    chunks: Vec<(String, u64)>,
    shards: Vec<(String, u64)>,
    progress: Option<Py<PyAny>>,
) -> Result<String> {
    let mut options = WriteOptions::default();
    (options.stored, options.chunks, options.shards) = (stored, chunks, shards);
    options.compression = compress.as_deref().map(str::parse).transpose()?;
    let how = How { to, dry_run, strict, verify, overwrite, options };
    let dataset = &file.dataset;
    watched(py, dataset.source(), progress, || {
        let pick = pick(&select, frames.as_deref(), &slice)?;
        if pick.is_all() {
            return how.convert(dataset, &output);
        }
        how.convert(&subset(dataset, &pick)?, &output)
    })
}

/// Options of a conversion.
#[allow(clippy::struct_excessive_bools)] // The options of the command.
pub(crate) struct How {
    pub(crate) to: Option<String>,
    pub(crate) dry_run: bool,
    pub(crate) strict: bool,
    pub(crate) verify: bool,
    pub(crate) overwrite: bool,
    pub(crate) options: WriteOptions,
}

impl How {
    pub(crate) fn convert(&self, content: &Dataset, output: &Path) -> Done<String> {
        let format = target(&spile::REGISTRY, self.to.as_deref(), output)?;
        let mut plan = conversion::plan(format, content, output, &self.options)?;
        if self.strict
            && let Some(loss) = plan.losses.first()
        {
            let (lost, name) = (plan.losses.len(), format.info().name);
            let message = format!(
                "{lost} items cannot be written to {name}, first {} of {}",
                loss.kind.name(),
                loss.path
            );
            return Err(Error::argument(message)
                .hint("strict=False writes the file without them and lists them in \"lost\""));
        }
        let mut differences = Vec::new();
        if !self.dry_run {
            let replace = overwrite(self.overwrite);
            let options = &self.options;
            let found =
                spile_ops::convert(format, content, &plan, output, options, replace, self.strict)?;
            plan.losses.extend(found);
            if self.verify {
                let found = conversion::verify(format, content, &plan, output, options)?;
                differences = found.differences;
            }
        }
        let lost: Vec<LossRow<'_>> = plan.losses.iter().map(LossRow::from).collect();
        text(&json!({
            "output": output.to_string_lossy(),
            "format": format.info().name,
            "written": !self.dry_run,
            "arrays": plan.arrays,
            "described": plan.flattened,
            "lost": lost,
            "contained": plan.contained,
            "differences": differences,
        }))
    }
}

/// `spile salvage`.
#[pyfunction]
#[pyo3(signature = (path, output, overwrite_output, max_memory, progress))]
pub(crate) fn salvage(
    py: Python<'_>,
    path: PathBuf,
    output: PathBuf,
    overwrite_output: bool,
    max_memory: Option<u64>,
    progress: Option<Py<PyAny>>,
) -> Result<String> {
    let (source, limits) = (Source::open(&path)?, limits(max_memory));
    watched(py, &source, progress, || {
        let format = spile::REGISTRY.probe_within(&source, &limits)?;
        let mut sink = Sink::create(&output, overwrite(overwrite_output))?;
        let salvager = format.abilities().salvager.ok_or_else(|| {
            let name = format.info().name;
            Error::unsupported("", format!("salvaging {name} files is not supported"))
        })?;
        let saved = salvager
            .salvage(&source, &mut sink, &limits)
            .map_err(|e| e.with_path(&path).with_format(format.info().name))?;
        // Salvaging skips what cannot be read, so a cancelled run would end like a complete one.
        source.ensure_running()?;
        sink.commit()?;
        text(&json!({
            "output": output.to_string_lossy(),
            "kept": saved.kept,
            "lost": saved.lost,
        }))
    })
}

/// `spile formats`.
#[pyfunction]
pub(crate) fn formats() -> Result<String> {
    Ok(text(&spile_ops::formats(&spile::REGISTRY))?)
}

/// The format that recognises the first bytes of a file, and its score from 1 to 100; `None` if there
/// is none. The file name is ignored.
#[pyfunction]
pub(crate) fn probe(py: Python<'_>, path: PathBuf) -> Result<Option<(&'static str, u8)>> {
    Ok(py.detach(|| -> Done<_> {
        let source = Source::open(path)?;
        let mut bytes = [0; HEAD_BYTES];
        let read = source.read_at_most(0, &mut bytes)?;
        let head = Head { bytes: &bytes[..read], len: source.len() };
        let scored = spile::REGISTRY.0.iter().map(|f| (f.probe(head), f.info().name));
        let best = scored.max_by_key(|(score, _)| *score).filter(|(score, _)| *score > 0);
        Ok(best.map(|(score, name)| (name, score)))
    })?)
}

/// Writes a sample file to a folder and returns its path.
#[pyfunction]
pub(crate) fn sample(name: &str, folder: PathBuf) -> Result<OsString> {
    Ok(spile_cli::samples::write(name, &folder)?.into_os_string())
}

/// `spile stat`.
#[pyfunction]
#[pyo3(signature = (file, *, select, frames, components, bins, progress))]
pub(crate) fn stat(
    py: Python<'_>,
    file: &File,
    select: Vec<String>,
    frames: Option<String>,
    components: bool,
    bins: Option<usize>,
    progress: Option<Py<PyAny>>,
) -> Result<String> {
    let dataset = file.dataset.clone();
    let more = More { components, bins };
    watched(py, &dataset.source().clone(), progress, || {
        let pick = pick(&select, frames.as_deref(), &[])?;
        text(&rows(|each| spile_ops::stat(&dataset, &pick, more, each))?)
    })
}

/// Runs a command line without printing; returns its standard output. Ctrl-C cancels all reads and writes of the
/// process.
#[pyfunction]
#[allow(clippy::redundant_closure_for_method_calls, reason = "the method is not general enough")]
pub(crate) fn call(py: Python<'_>, args: Vec<OsString>) -> Result<String> {
    let (raised, done) = py.detach(|| {
        std::thread::scope(|threads| {
            let work = threads.spawn(move || spile_cli::call(args));
            let mut raised = Ok(());
            while !work.is_finished() {
                std::thread::sleep(Duration::from_millis(2));
                if raised.is_ok() {
                    raised = Python::attach(|py| py.check_signals());
                    cancel::stop_all(raised.is_err());
                }
            }
            (raised, work.join())
        })
    });
    cancel::stop_all(false);
    raised?;
    let broken = |_| Error::unsupported("core-panic", "internal error in spile");
    Ok(String::from_utf8_lossy(&done.map_err(broken)??).into_owned())
}

/// The command line `spile`; returns the exit status.
#[pyfunction]
pub(crate) fn main(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| spile_cli::main(args))
}
