//! Conversion by several processes; `python/spile/_parallel.py` distributes the work.

use std::path::PathBuf;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use pyo3::prelude::*;
use serde_json::json;
use spile::error::{Error, Result as Done};
use spile::format::WriteOptions;
use spile_ops::convert::{self as conversion, LossRow, target};
use spile_ops::parallel;
use spile_ops::subset::subset;

use crate::failure::Result;
use crate::file::File;
use crate::verbs::{overwrite, pick, text};

/// A conversion by several processes.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct Parallel {
    job: RwLock<parallel::Parallel>,
    /// The document of `spile convert --json`.
    #[pyo3(get)]
    document: String,
}

impl Parallel {
    fn job(&self) -> RwLockReadGuard<'_, parallel::Parallel> {
        self.job.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Parallel {
    #[new]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // The options of the command.
    #[pyo3(signature = (file, output, *, to, strict, overwrite_output, select, frames, slice, stored, compress, chunks, shards))]
    fn new(
        py: Python<'_>,
        file: &File,
        output: PathBuf,
        to: Option<String>,
        strict: bool,
        overwrite_output: bool,
        select: Vec<String>,
        frames: Option<String>,
        slice: Vec<String>,
        stored: bool,
        compress: Option<String>,
        chunks: Vec<(String, u64)>,
        shards: Vec<(String, u64)>,
    ) -> Result<Self> {
        let mut options = WriteOptions::default();
        (options.stored, options.chunks, options.shards) = (stored, chunks, shards);
        options.compression = compress.as_deref().map(str::parse).transpose()?;
        Ok(py.detach(|| -> Done<Self> {
            let format = target(&spile::REGISTRY, to.as_deref(), &output)?;
            let pick = pick(&select, frames.as_deref(), &slice)?;
            let all = pick.is_all();
            let content = if all { file.dataset.clone() } else { subset(&file.dataset, &pick)? };
            let plan = conversion::plan(format, &content, &output, &options)?;
            if strict && let Some(loss) = plan.losses.first() {
                let (lost, name, kind) = (plan.losses.len(), format.info().name, loss.kind.name());
                let message = format!(
                    "{lost} items cannot be written to {name}, first {kind} of {}",
                    loss.path
                );
                return Err(Error::argument(message));
            }
            let replace = overwrite(overwrite_output);
            let job = parallel::Parallel::new(format, &content, &output, &options, replace)?;
            let lost: Vec<LossRow<'_>> = plan.losses.iter().map(LossRow::from).collect();
            let document = text(&json!({
                "output": output.to_string_lossy(),
                "format": format.info().name,
                "written": true,
                "arrays": plan.arrays,
                "described": plan.flattened,
                "lost": lost,
                "contained": plan.contained,
                "differences": [],
            }))?;
            Ok(Self { job: RwLock::new(job), document })
        })?)
    }

    /// Writes metadata, or continues an earlier run of the same `request`. Returns the numbers and sizes of
    /// the missing files.
    fn prepare(&self, py: Python<'_>, request: &str) -> Result<Vec<(usize, u64)>> {
        Ok(py.detach(|| -> Done<_> {
            let mut job = self.job.write().unwrap_or_else(PoisonError::into_inner);
            let missing = job.prepare(request)?;
            let files = job.files();
            Ok(missing.into_iter().map(|number| (number, files[number].bytes)).collect())
        })?)
    }

    /// Writes the files with these numbers.
    fn write(&self, py: Python<'_>, numbers: Vec<usize>) -> Result<()> {
        for number in numbers {
            // Ctrl-C ends the work after a file.
            py.check_signals()?;
            py.detach(|| {
                let job = self.job();
                if number >= job.files().len() {
                    return Err(Error::argument(format!("there is no file {number}")));
                }
                job.write(number)
            })?;
        }
        Ok(())
    }

    /// Publishes the output.
    fn finish(&self, py: Python<'_>) -> Result<()> {
        Ok(py.detach(|| self.job().finish())?)
    }
}
