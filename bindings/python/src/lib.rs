//! The compiled half of the Python package `spile`; the other half is `python/spile`.
//!
//! This half says what only Rust can say, with plain tuples, dictionaries and arrays of NumPy. What
//! people touch (mappings, pictures in notebooks, xarray, dask) is Python over it.
//!
//! | file | what is in it |
//! |---|---|
//! | `file` | an open file: its tree, its arrays, zero-copy views |
//! | `object` | paths, bytes and Python's own files as sources |
//! | `select` | Python's indices as selections |
//! | `value` | attributes both ways |
//! | `failure` | errors as the classes of `spile.errors` |
//! | `verbs` | info, check, diff, hash, convert, salvage; the command line |
//! | `hoomd` | frames and logs of GSD files with the HOOMD schema |
//! | `write` | new files from arrays |
//! | `native` | scda sections, TAF operations, GSD frames, in their formats' own words |
//!
//! Python is let go (`detach`) wherever a file is read or written.
#![deny(unsafe_code)]
// Arguments are what Python's objects are turned into; there is nobody to borrow them from. And the
// tuples that go back are taken apart by a line of Python each.
#![allow(clippy::needless_pass_by_value, clippy::type_complexity)]

mod failure;
mod file;
mod hoomd;
mod native;
mod object;
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
    m.add_class::<hoomd::Trajectory>()?;
    m.add_class::<hoomd::Frame>()?;
    m.add_class::<hoomd::Particles>()?;
    m.add_class::<hoomd::Links>()?;
    m.add_class::<native::Sections>()?;
    m.add_class::<native::Frames>()?;
    for function in [
        wrap_pyfunction!(verbs::info, m)?,
        wrap_pyfunction!(verbs::check, m)?,
        wrap_pyfunction!(verbs::diff, m)?,
        wrap_pyfunction!(verbs::hash, m)?,
        wrap_pyfunction!(verbs::convert, m)?,
        wrap_pyfunction!(verbs::salvage, m)?,
        wrap_pyfunction!(verbs::formats, m)?,
        wrap_pyfunction!(verbs::probe, m)?,
        wrap_pyfunction!(verbs::main, m)?,
        wrap_pyfunction!(write::write, m)?,
        wrap_pyfunction!(native::taf::taf_create, m)?,
        wrap_pyfunction!(native::taf::taf_append, m)?,
        wrap_pyfunction!(native::taf::taf_crop, m)?,
        wrap_pyfunction!(native::taf::taf_permute, m)?,
        wrap_pyfunction!(native::taf::taf_grid, m)?,
        wrap_pyfunction!(native::taf::taf_comment, m)?,
    ] {
        m.add_function(function)?;
    }
    Ok(())
}
