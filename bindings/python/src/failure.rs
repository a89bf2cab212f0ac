//! Errors as Python exceptions: the kind determines the class, the location is in its attributes.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use spile::error::{Error, ErrorKind, Hint};

/// Error of a function of the module.
pub(crate) enum Failure {
    /// An error of spile.
    Spile(Error),
    /// An exception raised by Python.
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

/// An exception class of `spile.errors`.
fn class(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("spile.errors").map(Bound::unbind))?;
    Ok(module.bind(py).getattr(name)?.unbind())
}

/// Operations that are functions of the Python package, by their names on the command line.
const FUNCTIONS: [(&str, &str); 9] = [
    ("check", "spile.check(path)"),
    ("convert", "spile.convert(path, output)"),
    ("info", "spile.info(path)"),
    ("salvage", "spile.salvage(path)"),
    ("taf adjust", "spile.taf.grid(path, dimension, ...)"),
    ("taf crop", "spile.taf.crop(path, dimension, ...)"),
    ("taf permute", "spile.taf.permute(path, order)"),
    ("taf read", "spile.open(path)[\"data\"][...]"),
    ("taf transpose", "spile.taf.transpose(path)"),
];

/// A hint in Python terms.
pub(crate) fn render(hint: &Hint) -> String {
    match hint {
        Hint::ListObjects => "list(file) returns the names, file.arrays() all arrays".into(),
        Hint::RaiseMemory => "raise the limit with max_memory=, or select less".into(),
        Hint::SelectArrays => "select arrays with select=".into(),
        Hint::SelectFrames => "select frames with frames=, or index the first dimension".into(),
        Hint::Overwrite => "overwrite=True replaces it".into(),
        Hint::ChooseFormat(names) => {
            let names = names.join(", ");
            format!("specify the format with to= (convert) or format= (create): {names}")
        }
        Hint::Operation { name, effect } => {
            match FUNCTIONS.iter().find(|(operation, _)| operation == name) {
                Some((_, call)) => format!("{call} {effect}"),
                None => format!("`python -m spile {name} FILE` {effect}"),
            }
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
    let message = match &hint {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    };
    let location = PyDict::new(py);
    location.set_item("code", Some(error.code()).filter(|code| !code.is_empty()))?;
    location.set_item("path", error.path().map(|path| path.to_string_lossy().into_owned()))?;
    location.set_item("format", error.format())?;
    location.set_item("object", error.object())?;
    location.set_item("frame", error.frame())?;
    location.set_item("offset", error.offset())?;
    location.set_item("hint", hint)?;
    let raised = class(py, name)?.bind(py).call((message,), Some(&location))?;
    Ok(PyErr::from_value(raised))
}
