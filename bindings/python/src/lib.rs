//! The extension module `spile._spile` of the Python package; the Python layer is in `python/spile`.
//!
//! The extension module opens, reads and writes files, and returns tuples, dictionaries and NumPy
//! arrays. The public classes, notebook representations and the xarray and dask integration are
//! written in Python.
//!
//! | file | content |
//! |---|---|
//! | `file` | open files: tree, arrays, zero-copy views |
//! | `array` | new NumPy arrays |
//! | `object` | paths, bytes and Python file objects as sources |
//! | `select` | Python indices to selections |
//! | `value` | attributes to and from Python |
//! | `failure` | errors as exceptions of `spile.errors` |
//! | `verbs` | info, check, diff, hash, convert, salvage; the command line |
//! | `parallel` | conversion by several processes |
//! | `scda` | scda files on the ranks of an MPI job |
//! | `gsd` | frames and chunks of GSD files |
//! | `write` | new files from arrays |
//! | `native` | native writers: scda sections, TAF operations |
//!
//! The GIL is released (`detach`) during I/O.
#![deny(unsafe_code)]
// PyO3 passes converted arguments by value. Tuples returned to the Python layer are unpacked there.
#![allow(clippy::needless_pass_by_value, clippy::type_complexity)]

mod array;
mod failure;
mod file;
mod gsd;
mod native;
mod object;
mod parallel;
mod particles;
mod scda;
mod select;
mod value;
mod verbs;
mod write;

use pyo3::prelude::*;

/// The module `spile._spile`.
#[pymodule(gil_used = false)]
fn _spile(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<file::File>()?;
    m.add_class::<file::ArrayInfo>()?;
    m.add_class::<gsd::GsdFile>()?;
    m.add_class::<parallel::Parallel>()?;
    m.add_class::<native::Sections>()?;
    m.add_class::<scda::ScdaFile>()?;
    for function in [
        wrap_pyfunction!(verbs::info, m)?,
        wrap_pyfunction!(verbs::check, m)?,
        wrap_pyfunction!(verbs::diff, m)?,
        wrap_pyfunction!(verbs::hash, m)?,
        wrap_pyfunction!(verbs::stat, m)?,
        wrap_pyfunction!(verbs::call, m)?,
        wrap_pyfunction!(verbs::convert, m)?,
        wrap_pyfunction!(verbs::salvage, m)?,
        wrap_pyfunction!(verbs::formats, m)?,
        wrap_pyfunction!(verbs::probe, m)?,
        wrap_pyfunction!(verbs::sample, m)?,
        wrap_pyfunction!(verbs::main, m)?,
        wrap_pyfunction!(particles::species, m)?,
        wrap_pyfunction!(particles::track, m)?,
        wrap_pyfunction!(particles::histogram, m)?,
        wrap_pyfunction!(particles::energies, m)?,
        wrap_pyfunction!(write::write, m)?,
        wrap_pyfunction!(native::taf::taf_create, m)?,
        wrap_pyfunction!(native::taf::taf_append, m)?,
        wrap_pyfunction!(native::taf::taf_replace, m)?,
        wrap_pyfunction!(native::taf::taf_backup, m)?,
        wrap_pyfunction!(native::taf::taf_probe, m)?,
        wrap_pyfunction!(native::taf::taf_summarize, m)?,
        wrap_pyfunction!(native::taf::taf_export, m)?,
        wrap_pyfunction!(native::taf::taf_crop, m)?,
        wrap_pyfunction!(native::taf::taf_permute, m)?,
        wrap_pyfunction!(native::taf::taf_grid, m)?,
        wrap_pyfunction!(native::taf::taf_comment, m)?,
    ] {
        m.add_function(function)?;
    }
    Ok(())
}
