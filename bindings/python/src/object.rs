//! Sources of `spile.open`: a path, a bytes object or a seekable Python file object.

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::PyBytes;
use spile::error::Error;
use spile::source::{ReadAt, Source};

use crate::failure::Result;

/// Maximum number of bytes per call of `read`, which are copied once.
const PIECE: usize = 16 << 20;

/// A Python file object. It has one position; `lock` serialises access from several threads.
struct Object {
    file: Py<PyAny>,
    lock: Mutex<()>,
}

impl ReadAt for Object {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(PIECE);
        let read = Python::attach(|py| -> PyResult<usize> {
            // Waiting releases the GIL, which the other thread needs to finish.
            let _guard = self.lock.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
            let file = self.file.bind(py);
            file.call_method1("seek", (offset,))?;
            let bytes = file.call_method1("read", (wanted,))?;
            let bytes: Cow<'_, [u8]> = bytes.extract()?;
            let n = bytes.len().min(wanted);
            buffer[..n].copy_from_slice(&bytes[..n]);
            Ok(n)
        });
        read.map_err(io::Error::other)
    }
}

/// The source at `path`, or the bytes or file object `data`.
pub(crate) fn source(
    py: Python<'_>,
    path: Option<PathBuf>,
    data: Option<&Bound<'_, PyAny>>,
) -> Result<Source> {
    let Some(data) = data else {
        let path =
            path.ok_or_else(|| Error::argument("expected a path, bytes or a file object"))?;
        return Ok(py.detach(|| Source::open(path))?);
    };
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(Source::memory(bytes.as_bytes()));
    }
    let len = data.call_method1("seek", (0, 2))?.extract()?;
    let object = Object { file: data.clone().unbind(), lock: Mutex::new(()) };
    // A call takes long: it waits for the GIL, and may be a request to a server.
    Ok(Source::remote(path, len, Box::new(object), &[]))
}
