//! GSD files: frames and chunks, for `spile.gsd`.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use numpy::{
    PyArray1, PyArrayDescrMethods as _, PyUntypedArray, PyUntypedArrayMethods as _, npyffi,
};
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::sync::{MutexExt as _, PyOnceLock};
use pyo3::types::{PyDict, PyString};
use spile::error::Error;
use spile::limits::Limits;
use spile::sink::Overwrite;
use spile::source::Source;
use spile_gsd::semantics::Trajectory;
use spile_gsd::wire::{About, TYPES, Type};
use spile_gsd::{Chunk, Commit, File, Mode, Version, Writer};

use crate::array;
use crate::failure::Result;
use crate::file::limits;

/// Bytes that a thread reads at least.
const SHARE: usize = 1 << 20;

/// An open GSD file. Threads wait for each other, except while they read arrays.
#[pyclass(module = "spile._spile", frozen)]
pub(crate) struct GsdFile(Mutex<State>);

struct State {
    open: Option<Open>,
    /// The settings of a file that is open for reading; they have no effect.
    buffers: (usize, usize),
}

enum Open {
    Read(File),
    Write(Box<Writer>),
}

impl GsdFile {
    pub(crate) fn from_source(source: &Source, limits: &Limits) -> spile::error::Result<Self> {
        Ok(Self::new(Open::Read(File::from_source(source, limits)?)))
    }

    fn new(open: Open) -> Self {
        Self(Mutex::new(State { open: Some(open), buffers: (1 << 20, 1 << 14) }))
    }

    /// Waits for other threads without the lock of the interpreter.
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn writer(&mut self) -> Result<&mut Writer> {
        match self.open.as_mut() {
            Some(Open::Write(writer)) => Ok(writer),
            Some(Open::Read(_)) => Err(Error::argument("the file is open for reading only").into()),
            None => Err(closed()),
        }
    }

    /// The committed frames.
    fn reader(&mut self) -> Result<&File> {
        match self.open.as_mut() {
            Some(Open::Write(writer)) => Ok(writer.committed()?),
            Some(Open::Read(file)) => Ok(file),
            None => Err(closed()),
        }
    }

    fn find(&mut self, frame: i64, name: &str) -> Result<Option<Chunk>> {
        // There are no frames with negative numbers.
        let Ok(frame) = u64::try_from(frame) else { return Ok(None) };
        Ok(self.reader()?.find_chunk(frame, name)?)
    }

    /// Replaces the writer by the result of `change`. The file is closed if that fails.
    fn replace_writer(
        &mut self,
        change: impl FnOnce(Writer) -> spile::error::Result<Writer>,
    ) -> Result<()> {
        self.writer()?;
        if let Some(Open::Write(writer)) = self.open.take() {
            self.open = Some(Open::Write(Box::new(change(*writer)?)));
        }
        Ok(())
    }
}

fn closed() -> crate::failure::Failure {
    pyo3::exceptions::PyValueError::new_err("the file is not open").into()
}

#[pymethods]
impl GsdFile {
    /// Opens an existing file, with `write` also for appending frames.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf, write: bool) -> Result<Self> {
        let open = py.detach(|| -> spile::error::Result<_> {
            Ok(if write {
                Open::Write(Box::new(Writer::append(&path, Mode::default(), &limits(None))?))
            } else {
                Open::Read(File::open(&path, &limits(None))?)
            })
        })?;
        Ok(Self::new(open))
    }

    /// Creates a file of version 2.1 and opens it for writing.
    #[staticmethod]
    fn create(
        py: Python<'_>,
        path: PathBuf,
        overwrite: bool,
        application: String,
        schema: String,
        schema_version: u32,
    ) -> Result<Self> {
        let overwrite = if overwrite { Overwrite::Replace } else { Overwrite::Never };
        let about = About { application, schema, schema_version };
        let writer =
            py.detach(|| Writer::create(&path, overwrite, Version::V2_1, &about, Mode::default()))?;
        Ok(Self::new(Open::Write(Box::new(writer))))
    }

    /// Commits the completed frames and closes the file.
    fn close(&self, py: Python<'_>) -> Result<()> {
        match self.lock(py).open.take() {
            Some(Open::Write(writer)) => Ok(py.detach(|| writer.close())?),
            _ => Ok(()),
        }
    }

    #[getter]
    fn is_open(&self, py: Python<'_>) -> bool {
        self.lock(py).open.is_some()
    }

    /// Version of the format, application, schema, version of the schema.
    fn about(&self, py: Python<'_>) -> Result<(u32, String, String, u32)> {
        let state = self.lock(py);
        let header = match state.open.as_ref() {
            Some(Open::Write(writer)) => writer.header(),
            Some(Open::Read(file)) => file.header(),
            None => return Err(closed()),
        };
        let About { application, schema, schema_version } = header.about();
        Ok((header.version, application, schema, schema_version))
    }

    /// Number of committed frames.
    #[getter]
    fn frames(&self, py: Python<'_>) -> Result<u64> {
        match self.lock(py).open.as_ref() {
            Some(Open::Write(writer)) => Ok(writer.committed_frames()),
            Some(Open::Read(file)) => Ok(file.nframes()?),
            None => Err(closed()),
        }
    }

    /// Adds a chunk of a C-contiguous array with one or two dimensions to the current frame. If `unless`
    /// has the same type, shape and bytes, nothing is written. Returns whether the chunk was written.
    #[pyo3(signature = (name, data, unless=None))]
    fn write_chunk(
        &self,
        py: Python<'_>,
        name: &str,
        data: &Bound<'_, PyUntypedArray>,
        unless: Option<&Bound<'_, PyUntypedArray>>,
    ) -> Result<bool> {
        let mut state = self.lock(py);
        let writer = state.writer()?;
        let bytes = array_bytes(data)?;
        if let Some(other) = unless
            && data.shape() == other.shape()
            && data.dtype().is_equiv_to(&other.dtype())
            && bytes == array_bytes(other)?
        {
            return Ok(false);
        }
        let (n, m) = match *data.shape() {
            [n] => (n, 1),
            [n, m] => (n, m),
            _ => return Err(Error::argument("expected an array with one or two dimensions").into()),
        };
        if m == 0 {
            let object = format!("chunk \"{name}\"");
            return Err(Error::argument("expected at least one column").in_object(object).into());
        }
        writer.write_chunk(name, element_type(data)?, n as u64, m as u64, bytes)?;
        Ok(true)
    }

    /// Adds a chunk of text to the current frame.
    fn write_text(&self, py: Python<'_>, name: &str, text: &str) -> Result<()> {
        // A chunk without elements is not text for other readers.
        let bytes = if text.is_empty() { b"\0" } else { text.as_bytes() };
        let mut state = self.lock(py);
        Ok(state.writer()?.write_chunk(name, Type::Character, bytes.len() as u64, 1, bytes)?)
    }

    fn end_frame(&self, py: Python<'_>) -> Result<()> {
        let mut state = self.lock(py);
        let writer = state.writer()?;
        Ok(py.detach(|| writer.end_frame())?)
    }

    fn discard_frame(&self, py: Python<'_>) -> Result<()> {
        self.lock(py).writer()?.discard_frame();
        Ok(())
    }

    /// Commits the completed frames; with `durable` waits for the disk.
    fn commit(&self, py: Python<'_>, durable: bool) -> Result<()> {
        let mut state = self.lock(py);
        let writer = state.writer()?;
        py.detach(|| if durable { writer.flush() } else { writer.reader().map(drop) })?;
        Ok(())
    }

    /// Commits automatically after a number of frames, or after a time at the end of a frame.
    #[pyo3(signature = (frames=None, seconds=None))]
    fn set_commit(&self, py: Python<'_>, frames: Option<u64>, seconds: Option<f64>) -> Result<()> {
        let wrong = |message: &str| Err(Error::argument(message).into());
        let commit = match (frames, seconds) {
            (None, None) => Commit::OnFlush,
            (Some(0), None) => return wrong("expected at least one frame per commit"),
            (Some(frames), None) => Commit::Frames(frames),
            (None, Some(seconds)) => match Duration::try_from_secs_f64(seconds) {
                Ok(time) => Commit::Every(time),
                Err(_) => return wrong("expected a time of at least 0 s between commits"),
            },
            (Some(_), Some(_)) => {
                return wrong("expected a number of frames or a time between commits, found both");
            }
        };
        let mut state = self.lock(py);
        let writer = state.writer()?;
        let durable = writer.mode().durable;
        writer.set_mode(Mode { commit, durable });
        Ok(())
    }

    /// Bytes of data and number of index entries that are kept in memory.
    fn buffers(&self, py: Python<'_>) -> Result<(usize, usize)> {
        let state = self.lock(py);
        match state.open.as_ref() {
            Some(Open::Write(writer)) => Ok((writer.buffer_size(), writer.pending_limit())),
            Some(Open::Read(_)) => Ok(state.buffers),
            None => Err(closed()),
        }
    }

    fn set_buffers(&self, py: Python<'_>, bytes: usize, entries: usize) -> Result<()> {
        if bytes == 0 || entries == 0 {
            return Err(Error::argument("expected a buffer size of at least 1").into());
        }
        let mut state = self.lock(py);
        match state.open.as_mut() {
            Some(Open::Write(writer)) => {
                writer.set_buffer_size(bytes);
                writer.set_pending_limit(entries);
            }
            Some(Open::Read(_)) => state.buffers = (bytes, entries),
            None => return Err(closed()),
        }
        Ok(())
    }

    /// Removes all frames.
    fn truncate(&self, py: Python<'_>) -> Result<()> {
        let state = &mut *self.lock(py);
        py.detach(|| state.replace_writer(Writer::truncate))
    }

    /// Converts the file to version 2.1. Fails before all chunks are committed.
    fn upgrade(&self, py: Python<'_>) -> Result<()> {
        let state = &mut *self.lock(py);
        if !state.writer()?.is_flushed() {
            return Err(
                Error::argument("expected an upgrade after flush(), without open chunks").into()
            );
        }
        py.detach(|| state.replace_writer(Writer::upgrade))
    }

    /// Shows frames that another process has committed since the file was opened.
    fn refresh(&self, py: Python<'_>) -> Result<()> {
        match self.lock(py).open.as_mut() {
            Some(Open::Read(file)) => Ok(py.detach(|| file.refresh())?),
            Some(Open::Write(_)) => Ok(()),
            None => Err(closed()),
        }
    }

    fn chunk_exists(&self, py: Python<'_>, frame: i64, name: &str) -> Result<bool> {
        Ok(self.lock(py).find(frame, name)?.is_some())
    }

    /// An array, a string, or `None` if the frame does not contain the chunk.
    fn read_chunk<'py>(
        &self,
        py: Python<'py>,
        frame: i64,
        name: &str,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let mut state = self.lock(py);
        let Some(chunk) = state.find(frame, name)? else { return Ok(None) };
        let file = state.reader()?.clone();
        drop(state);
        Ok(read(py, &file, &[chunk])?.pop().map(|(_, values)| values))
    }

    /// All chunks of a frame by name.
    fn read_frame<'py>(&self, py: Python<'py>, frame: u64) -> Result<Bound<'py, PyDict>> {
        let file = self.lock(py).reader()?.clone();
        let chunks = file.frame(frame)?;
        let dict = PyDict::new(py);
        for (chunk, values) in read(py, &file, &chunks)? {
            dict.set_item(PyString::intern(py, &chunk.name), values)?;
        }
        Ok(dict)
    }

    /// Names of chunks that start with `prefix`.
    fn names(&self, py: Python<'_>, prefix: &str) -> Result<Vec<String>> {
        Ok(self.lock(py).reader()?.find_matching_names(prefix))
    }

    /// Steps and logged quantities of all frames, in file order, and the names of quantities whose shape
    /// or type changes. A logged quantity is `(values, frames without a value)`.
    fn log<'py>(&self, py: Python<'py>) -> Result<(Bound<'py, PyDict>, Vec<String>)> {
        let file = self.lock(py).reader()?.clone();
        let log = py.detach(|| Trajectory::new(file)?.read_log())?;
        let dict = PyDict::new(py);
        let frames = log.steps.len() as u64;
        dict.set_item("configuration/step", PyArray1::from_vec(py, log.steps))?;
        for column in log.columns {
            let mut shape = vec![frames];
            if column.shape != (1, 1) || column.kind == Type::Character {
                shape.push(column.shape.0);
            }
            if column.shape.1 != 1 {
                shape.push(column.shape.1);
            }
            let bytes = PyArray1::from_vec(py, column.bytes);
            let array = bytes.call_method1("view", (column.kind.dtype().numpy(),))?;
            let array = array.call_method1("reshape", (shape,))?;
            dict.set_item(format!("log/{}", column.name), (array, column.missing))?;
        }
        Ok((dict, log.varying))
    }
}

/// Reads chunks as arrays and strings, large ones with several threads.
fn read<'py, 'c>(
    py: Python<'py>,
    file: &File,
    chunks: &'c [Chunk],
) -> Result<Vec<(&'c Chunk, Bound<'py, PyAny>)>> {
    let total: u64 = chunks.iter().map(|chunk| chunk.data.len).sum();
    file.limits().allow(total, "the chunks")?;
    let mut arrays = Vec::with_capacity(chunks.len());
    for chunk in chunks {
        arrays.push(new_array(py, chunk)?);
    }
    let mut parts: Vec<(u64, &mut [u8])> = Vec::with_capacity(chunks.len());
    for (chunk, array) in chunks.iter().zip(&arrays) {
        let mut at = chunk.data.offset;
        let mut rest = array::bytes_mut(array);
        while rest.len() > 2 * SHARE {
            let (head, tail) = rest.split_at_mut(SHARE);
            parts.push((at, head));
            (at, rest) = (at + SHARE as u64, tail);
        }
        parts.push((at, rest));
    }
    py.detach(|| file.read_parts(parts))?;
    let mut out = Vec::with_capacity(chunks.len());
    for (chunk, array) in chunks.iter().zip(arrays) {
        let values = if chunk.data.kind == Type::Character && chunk.entry.m == 1 {
            text(py, array::bytes_mut(&array))?.into_any()
        } else {
            array.into_any()
        };
        out.push((chunk, values));
    }
    Ok(out)
}

/// The text in a chunk, without NUL bytes at its end.
fn text<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyString>> {
    let end = bytes.iter().rposition(|b| *b != 0).map_or(0, |k| k + 1);
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(error) => {
            let error = pyo3::exceptions::PyUnicodeDecodeError::new_utf8(py, &bytes[..end], error)?;
            Err(PyErr::from_value(error.into_any()))
        }
    }
}

/// An array for the elements of a chunk, not initialised; with one dimension if it has one column.
fn new_array<'py>(py: Python<'py>, chunk: &Chunk) -> Result<Bound<'py, PyUntypedArray>> {
    static TYPES_OF: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
    let dtypes = TYPES_OF.get_or_try_init(py, || -> PyResult<_> {
        let numpy = py.import("numpy")?;
        let dtype = |kind: &Type| {
            // As in gsd, tables of characters are bytes.
            let name = kind.dtype().numpy().filter(|_| *kind != Type::Character);
            Ok(numpy.call_method1("dtype", (name.unwrap_or_else(|| "i1".into()),))?.unbind())
        };
        TYPES.iter().map(dtype).collect()
    })?;
    let kind = TYPES.iter().position(|kind| *kind == chunk.data.kind).unwrap_or(0);
    let (n, m) = (chunk.entry.n, chunk.entry.m);
    let dtype = dtypes[kind].bind(py);
    let shape = if m == 1 { n.into_bound_py_any(py)? } else { (n, m).into_bound_py_any(py)? };
    Ok(array::empty(&shape, dtype, false)?)
}

/// The bytes of a C-contiguous array of little-endian numbers.
#[allow(unsafe_code)]
pub(crate) fn array_bytes<'a>(array: &'a Bound<'_, PyUntypedArray>) -> Result<&'a [u8]> {
    if !array.is_c_contiguous() {
        return Err(Error::argument("expected a C-contiguous array").into());
    }
    let len = array.len() * array.dtype().itemsize();
    if len == 0 {
        return Ok(&[]);
    }
    // SAFETY: a C-contiguous array has `len` bytes at `data`; it is alive as long as the reference. The
    // caller holds the GIL while it uses them.
    Ok(unsafe {
        let array: *mut npyffi::PyArrayObject = array.as_array_ptr();
        std::slice::from_raw_parts((*array).fields.data.cast::<u8>(), len)
    })
}

/// The GSD type of the elements of an array.
fn element_type(array: &Bound<'_, PyUntypedArray>) -> Result<Type> {
    let dtype = array.dtype();
    let native = if cfg!(target_endian = "little") { b'=' } else { b'<' };
    let little = [b'<', b'|', native].contains(&dtype.byteorder());
    let kind = match (dtype.kind(), dtype.itemsize()) {
        (b'u', 1) => Some(Type::UInt8),
        (b'u', 2) => Some(Type::UInt16),
        (b'u', 4) => Some(Type::UInt32),
        (b'u', 8) => Some(Type::UInt64),
        (b'i', 1) => Some(Type::Int8),
        (b'i', 2) => Some(Type::Int16),
        (b'i', 4) => Some(Type::Int32),
        (b'i', 8) => Some(Type::Int64),
        (b'f', 4) => Some(Type::Float),
        (b'f', 8) => Some(Type::Double),
        _ => None,
    };
    kind.filter(|_| little).ok_or_else(|| {
        pyo3::exceptions::PyValueError::new_err(format!("GSD has no elements of type {dtype}"))
            .into()
    })
}
