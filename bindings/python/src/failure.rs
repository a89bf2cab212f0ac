//! Errors as Python exceptions: the kind chooses the class, the place is in its attributes.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use spile::error::{Error, ErrorKind, Hint};

/// What a function of this module fails with.
pub(crate) enum Failure {
    /// The library's own error.
    Spile(Error),
    /// One that Python raised.
    Python(PyErr),
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Spile(error)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Python(error) => error,
            Failure::Spile(error) => {
                Python::attach(|py| raised(py, &error).unwrap_or_else(|broken| broken))
            }
        }
    }
}

/// The classes are written in Python, where they have the bases that people catch.
fn class(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("spile.errors").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?.unbind())
}

/// A hint in the terms of Python.
pub(crate) fn render(hint: &Hint) -> String {
    match hint {
        Hint::ListObjects => "list(file) gives the names; file.arrays() all arrays".into(),
        Hint::RaiseMemory => "raise the limit with max_memory=, or select less".into(),
        Hint::SelectArrays => "choose arrays with select=".into(),
        Hint::SelectFrames => "choose frames with frames=, or index the first dimension".into(),
        Hint::Overwrite => "overwrite=True replaces it".into(),
        Hint::ChooseFormat(names) => format!("name the format with to=: {}", names.join(", ")),
        Hint::Operation { name, effect } => {
            format!("spile.{}(path) {effect}", name.replace(' ', ".").replace('-', "_"))
        }
        other => other.to_string(),
    }
}

fn raised(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let name = match (error.kind(), error.io_kind()) {
        (ErrorKind::Io, Some(std::io::ErrorKind::NotFound)) => "MissingError",
        (ErrorKind::Io, _) => "IoError",
        (ErrorKind::NotThisFormat, _) => "NotThisFormatError",
        (ErrorKind::Malformed, _) => "MalformedError",
        (ErrorKind::Truncated, _) => "TruncatedError",
        (ErrorKind::Unsupported, _) => "UnsupportedError",
        (ErrorKind::Limit, _) => "LimitError",
        (ErrorKind::Argument, _) => "ArgumentError",
        (ErrorKind::Exists, _) => "ExistsError",
    };
    let hint = error.suggestion().map(render);
    let words = match &hint {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    };
    let place = PyDict::new(py);
    place.set_item("code", Some(error.code()).filter(|code| !code.is_empty()))?;
    place.set_item("path", error.path().map(|path| path.to_string_lossy().into_owned()))?;
    place.set_item("format", error.format())?;
    place.set_item("object", error.object())?;
    place.set_item("frame", error.frame())?;
    place.set_item("offset", error.offset())?;
    place.set_item("hint", hint)?;
    let raised = class(py, name)?.bind(py).call((words,), Some(&place))?;
    Ok(PyErr::from_value(raised))
}
