//! scda files on the ranks of an MPI job. The MPI calls are methods of a Python object over mpi4py, so that this module
//! does not link MPI.

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArray1, PyUntypedArray};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use spile::comm::{Comm, Ranks, Serial, Transport, gather_numbers};
use spile::dtype::DType;
use spile::error::{Error, Result as Done};
use spile::limits::Limits;
use spile::sink::Overwrite;
use spile::tree::{Attrs, Value};
use spile_scda::wire::{Breaks, Kind};
use spile_scda::{Checkpoint, Cursor, Elements, Field, Options, Restart, Writer};

use crate::failure::Result;
use crate::file::limits;
use crate::gsd::array_bytes;
use crate::value;

/// Flags of memory views.
const READ: c_int = 0x100;
const WRITE: c_int = 0x200;

/// [`Transport`] over a Python object; `_Ranks` in `scda.py` has its methods.
struct PythonRanks {
    calls: Py<PyAny>,
    rank: usize,
    size: usize,
}

/// A view of memory of Rust for one call.
///
/// # Safety
/// The object is not used after the memory is freed; it is released with [`release`].
#[allow(unsafe_code)]
unsafe fn view(
    py: Python<'_>,
    data: *mut u8,
    len: usize,
    flags: c_int,
) -> PyResult<Bound<'_, PyAny>> {
    let len = isize::try_from(len).unwrap_or(isize::MAX);
    // SAFETY: condition of this function; a null result is an exception.
    unsafe {
        Bound::from_owned_ptr_or_err(py, ffi::PyMemoryView_FromMemory(data.cast(), len, flags))
    }
}

/// Ends the access of Python to the memory of a view.
fn release(view: &Bound<'_, PyAny>) -> PyResult<()> {
    view.call_method0("release").map(drop)
}

fn io(error: PyErr) -> Error {
    Error::from(std::io::Error::other(error.to_string()))
}

impl PythonRanks {
    /// Calls a method with a view of bytes to be changed.
    #[allow(unsafe_code)]
    fn change(&self, name: &str, bytes: &mut [u8], more: Option<usize>) -> Done<()> {
        Python::attach(|py| {
            // SAFETY: the view is released before the function returns.
            let view = unsafe { view(py, bytes.as_mut_ptr(), bytes.len(), WRITE)? };
            let done = match more {
                Some(more) => self.calls.call_method1(py, name, (&view, more)),
                None => self.calls.call_method1(py, name, (&view,)),
            };
            release(&view).and(done.map(drop))
        })
        .map_err(io)
    }

    fn change_numbers(&self, name: &str, values: &mut [u64]) -> Done<()> {
        let mut bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.change(name, &mut bytes, None)?;
        for (value, raw) in values.iter_mut().zip(bytes.as_chunks().0) {
            *value = u64::from_ne_bytes(*raw);
        }
        Ok(())
    }

    /// Transfers bytes and returns their number.
    #[allow(unsafe_code)]
    fn transfer(
        &self,
        name: &str,
        file: &Py<PyAny>,
        offset: u64,
        (data, len): (*mut u8, usize),
        flags: c_int,
    ) -> Done<usize> {
        Python::attach(|py| {
            // SAFETY: the view is released before the function returns.
            let view = unsafe { view(py, data, len, flags)? };
            let done = self.calls.call_method1(py, name, (file, offset, &view));
            release(&view)?;
            done?.extract::<usize>(py)
        })
        .map_err(io)
    }

    fn write(&self, name: &str, file: &Py<PyAny>, offset: u64, bytes: &[u8]) -> Done<()> {
        // The view is read-only.
        let data = (bytes.as_ptr().cast_mut(), bytes.len());
        if self.transfer(name, file, offset, data, READ)? == bytes.len() {
            return Ok(());
        }
        let full = std::io::ErrorKind::StorageFull;
        Err(std::io::Error::new(full, "not all bytes were written").into())
    }
}

impl Transport for PythonRanks {
    type File = Py<PyAny>;

    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn broadcast(&self, root: usize, bytes: &mut [u8]) -> Done<()> {
        self.change("broadcast", bytes, Some(root))
    }

    fn max(&self, values: &mut [u64]) -> Done<()> {
        self.change_numbers("max", values)
    }

    fn xor(&self, values: &mut [u64]) -> Done<()> {
        self.change_numbers("xor", values)
    }

    fn sum_before(&self, values: &mut [u64; 2]) -> Done<()> {
        self.change_numbers("sum_before", values)
    }

    fn allgather(&self, mine: &[u8], all: &mut [u8]) -> Done<()> {
        let gathered = Python::attach(|py| -> PyResult<Vec<u8>> {
            let mine = PyBytes::new(py, mine);
            self.calls.call_method1(py, "allgather", (mine,))?.extract(py)
        });
        let gathered = gathered.map_err(io)?;
        if gathered.len() != all.len() {
            return Err(Error::argument("expected a message of every rank"));
        }
        all.copy_from_slice(&gathered);
        Ok(())
    }

    fn open(&self, path: &Path, write: bool) -> Done<Self::File> {
        Python::attach(|py| self.calls.call_method1(py, "open", (path, write))).map_err(io)
    }

    fn write_at_all(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Done<()> {
        self.write("write_at_all", file, offset, bytes)
    }

    fn write_at(&self, file: &Self::File, offset: u64, bytes: &[u8]) -> Done<()> {
        self.write("write_at", file, offset, bytes)
    }

    fn read_at_all(&self, file: &Self::File, offset: u64, buffer: &mut [u8]) -> Done<()> {
        let (len, data) = (buffer.len(), buffer.as_mut_ptr());
        let done = self.transfer("read_at_all", file, offset, (data, len), WRITE)?;
        if done == len {
            return Ok(());
        }
        let message = format!("unexpected end of file: expected {len} bytes, found {done}");
        Err(Error::truncated("core-eof", message))
    }

    fn close(&self, file: Self::File, keep: bool) -> Done<()> {
        Python::attach(|py| self.calls.call_method1(py, "close", (file, keep))).map_err(io)?;
        Ok(())
    }
}

enum State {
    Write(Box<Checkpoint<'static>>),
    Read(Box<Restart<'static>>),
}

struct Open {
    // Dropped before `comm`, which it borrows.
    state: State,
    comm: OwnComm,
}

/// A communicator that lives as long as the file.
struct OwnComm(*mut dyn Comm);

#[allow(unsafe_code)]
impl OwnComm {
    fn get(&self) -> &'static dyn Comm {
        // SAFETY: the communicator is freed when `self` is dropped; [`Open`] drops its users first.
        unsafe { &*self.0 }
    }
}

#[allow(unsafe_code)]
impl Drop for OwnComm {
    fn drop(&mut self) {
        // SAFETY: it is from a box and not used any more.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

// SAFETY: a mutex gives it to one thread at a time. Python objects are used with the GIL only; whether several threads may
// call MPI is a matter of the program, as for every call of mpi4py.
#[allow(unsafe_code)]
unsafe impl Send for Open {}

/// An scda file, open on all ranks of a job. All methods are collective.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct ScdaFile(Mutex<Option<Open>>);

/// Header of a section: type, user string, N, E, and whether the data are decoded.
type Header = (char, Vec<u8>, u64, u64, bool);

/// A field: name, type, shape, type of the section, N, compressed, names of dimensions, attributes.
type FieldRow<'py> =
    (String, Option<String>, Vec<u64>, char, u64, bool, Vec<String>, Bound<'py, PyDict>);

impl ScdaFile {
    fn lock(&self) -> MutexGuard<'_, Option<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `body` without the GIL, which the calls of MPI take.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&mut State, &'static dyn Comm) -> Done<T> + Send,
    ) -> Result<T> {
        let done = py.detach(|| {
            let mut open = self.lock();
            let Open { state, comm } =
                open.as_mut().ok_or_else(|| Error::argument("the file is closed"))?;
            body(state, comm.get())
        });
        Ok(done?)
    }

    fn write<T: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&mut Checkpoint<'static>) -> Done<T> + Send,
    ) -> Result<T> {
        self.with(py, |state, _| match state {
            State::Write(file) => body(file),
            State::Read(_) => Err(Error::argument("the file is open for reading")),
        })
    }

    fn read<T: Send>(
        &self,
        py: Python<'_>,
        body: impl FnOnce(&mut Restart<'static>) -> Done<T> + Send,
    ) -> Result<T> {
        self.with(py, |state, _| match state {
            State::Read(file) => body(file),
            State::Write(_) => Err(Error::argument("the file is open for writing")),
        })
    }
}

/// Attributes with non-negative integers as unsigned ones, as Rust and C programs write them.
fn unsigned(attrs: Attrs) -> Attrs {
    fn one(value: &Value) -> Value {
        match value {
            Value::Int(value) => u64::try_from(*value).map_or(Value::Int(*value), Value::UInt),
            Value::List(items) => Value::List(items.iter().map(one).collect()),
            other => other.clone(),
        }
    }
    attrs.iter().map(|(name, value)| (name.to_string(), one(value))).collect()
}

/// The communicator of `calls`; of one process without it.
fn communicator(calls: Option<(Py<PyAny>, usize, usize)>) -> OwnComm {
    let comm: Box<dyn Comm> = match calls {
        Some((calls, rank, size)) => Box::new(Ranks::new(PythonRanks { calls, rank, size })),
        None => Box::new(Serial),
    };
    OwnComm(Box::into_raw(comm))
}

#[pymethods]
impl ScdaFile {
    /// Creates a file. `calls` is an object with the MPI calls, its rank and number of ranks.
    #[staticmethod]
    #[allow(clippy::too_many_arguments, clippy::fn_params_excessive_bools)] // The options of the format.
    #[pyo3(signature = (calls, path, user, *, vendor, level, overwrite, mime, index, checksums))]
    fn create(
        py: Python<'_>,
        calls: Option<(Py<PyAny>, usize, usize)>,
        path: PathBuf,
        user: &[u8],
        vendor: Option<Vec<u8>>,
        level: u32,
        overwrite: bool,
        mime: bool,
        index: bool,
        checksums: bool,
    ) -> Result<Self> {
        let mut options = Options { level, index, checksums, ..Options::default() };
        options.overwrite = if overwrite { Overwrite::Replace } else { Overwrite::Never };
        options.breaks = if mime { Breaks::Mime } else { Breaks::Unix };
        options.vendor = vendor.unwrap_or(options.vendor);
        let open = py.detach(|| -> Done<_> {
            let comm = communicator(calls);
            let writer = Writer::create(comm.get(), &path, user, options)?;
            let state = State::Write(Box::new(Checkpoint::from_writer(writer)));
            Ok(Open { state, comm })
        })?;
        Ok(Self(Mutex::new(Some(open))))
    }

    /// Opens a file for reading; returns the file, its vendor string and its user string.
    #[staticmethod]
    #[pyo3(signature = (calls, path, max_memory))]
    fn open(
        py: Python<'_>,
        calls: Option<(Py<PyAny>, usize, usize)>,
        path: PathBuf,
        max_memory: Option<u64>,
    ) -> Result<(Self, Vec<u8>, Vec<u8>)> {
        let limits: Limits = limits(max_memory);
        let (open, vendor, user) = py.detach(|| -> Done<_> {
            let comm = communicator(calls);
            let cursor = Cursor::open(comm.get(), &path, &limits)?;
            let (vendor, user) = (cursor.header().vendor.clone(), cursor.header().user.clone());
            let state = State::Read(Box::new(Restart::from_cursor(comm.get(), cursor, &limits)));
            Ok((Open { state, comm }, vendor, user))
        })?;
        Ok((Self(Mutex::new(Some(open))), vendor, user))
    }

    /// The numbers of all ranks.
    fn gather(&self, py: Python<'_>, mine: u64) -> Result<Vec<u64>> {
        self.with(py, |_, comm| gather_numbers(comm, mine))
    }

    #[pyo3(signature = (user, root, data))]
    fn inline(&self, py: Python<'_>, user: &[u8], root: usize, data: Option<&[u8]>) -> Result<()> {
        self.write(py, |file| {
            let data = data.unwrap_or_default();
            let checked = match data.len() {
                0 | 32 => Ok(()),
                len => Err(Error::argument(format!("expected 32 bytes, found {len}"))),
            };
            file.writer().prepare((), None::<()>, checked);
            file.writer().inline(user, root, data.first_chunk())
        })
    }

    #[pyo3(signature = (user, root, size, data, encode))]
    fn block(
        &self,
        py: Python<'_>,
        user: &[u8],
        root: usize,
        size: u64,
        data: Option<&[u8]>,
        encode: bool,
    ) -> Result<()> {
        self.write(py, |file| file.writer().block(user, root, size, data, encode))
    }

    fn array(
        &self,
        py: Python<'_>,
        user: &[u8],
        counts: Vec<u64>,
        size: u64,
        data: &Bound<'_, PyUntypedArray>,
        encode: bool,
    ) -> Result<()> {
        let data = array_bytes(data)?;
        self.write(py, |file| {
            file.writer().array(user, &counts, size, Elements::Contiguous(data), encode)
        })
    }

    fn varray(
        &self,
        py: Python<'_>,
        user: &[u8],
        counts: Vec<u64>,
        sizes: Vec<u64>,
        data: &Bound<'_, PyUntypedArray>,
        encode: bool,
    ) -> Result<()> {
        let data = array_bytes(data)?;
        self.write(py, |file| {
            file.writer().varray(user, &counts, &sizes, Elements::Contiguous(data), encode)
        })
    }

    fn group(&self, py: Python<'_>, path: &str, attrs: &Bound<'_, PyDict>) -> Result<()> {
        let attrs = unsigned(value::to_attrs(attrs)?);
        self.write(py, |file| file.group(path, attrs))
    }

    /// Writes a field; `lengths` are the numbers of items if they differ.
    #[allow(clippy::too_many_arguments)] // The description of a field.
    #[pyo3(signature = (name, dtype, shape, dims, attrs, compressed, counts, data, lengths))]
    fn field(
        &self,
        py: Python<'_>,
        name: &str,
        dtype: &str,
        shape: Vec<u64>,
        dims: Vec<String>,
        attrs: &Bound<'_, PyDict>,
        compressed: bool,
        counts: Vec<u64>,
        data: &Bound<'_, PyUntypedArray>,
        lengths: Option<Vec<u64>>,
    ) -> Result<()> {
        let kind = DType::from_numpy(dtype)
            .ok_or_else(|| Error::argument(format!("{dtype} cannot be stored in a field")))?;
        let mut field = Field::new(name, kind).shaped(&shape);
        field.attrs = unsigned(value::to_attrs(attrs)?);
        (field.dims, field.compressed) = (dims, compressed);
        let data = Elements::Contiguous(array_bytes(data)?);
        self.write(py, |file| match lengths {
            Some(lengths) => file.ragged_elements(&field, &counts, &lengths, data),
            None => file.elements(&field, &counts, data),
        })
    }

    /// Header of the next section; `None` at the end.
    fn next(&self, py: Python<'_>, decode: bool) -> Result<Option<Header>> {
        self.read(py, |file| {
            let header = file.cursor().next(decode)?;
            Ok(header.map(|h| (h.kind.letter(), h.user, h.count, h.size, h.decoded)))
        })
    }

    fn read_inline<'py>(
        &self,
        py: Python<'py>,
        root: usize,
    ) -> Result<Option<Bound<'py, PyBytes>>> {
        let bytes = self.read(py, |file| file.cursor().inline(root))?;
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }

    fn read_block<'py>(&self, py: Python<'py>, root: usize) -> Result<Option<Bound<'py, PyBytes>>> {
        let bytes = self.read(py, |file| file.cursor().block(root))?;
        Ok(bytes.map(|bytes| PyBytes::new(py, &bytes)))
    }

    fn read_array<'py>(
        &self,
        py: Python<'py>,
        counts: Vec<u64>,
    ) -> Result<Bound<'py, PyArray1<u8>>> {
        let bytes = self.read(py, |file| file.cursor().array(&counts))?;
        Ok(PyArray1::from_vec(py, bytes))
    }

    fn read_varray<'py>(
        &self,
        py: Python<'py>,
        counts: Vec<u64>,
    ) -> Result<(Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<u8>>)> {
        let (sizes, bytes) = self.read(py, |file| {
            let sizes = file.cursor().sizes(&counts)?;
            Ok((sizes, file.cursor().varray(&counts)?))
        })?;
        Ok((PyArray1::from_vec(py, sizes), PyArray1::from_vec(py, bytes)))
    }

    /// All fields.
    fn fields<'py>(&self, py: Python<'py>) -> Result<Vec<FieldRow<'py>>> {
        let fields = self.read(py, |file| {
            file.scan()?;
            Ok(file.fields().to_vec())
        })?;
        let row = |stored: spile_scda::Stored| -> Result<FieldRow<'py>> {
            let Field { name, dtype, shape, dims, attrs, compressed, .. } = stored.field;
            let attrs = value::attrs(py, &attrs)?;
            let letter = stored.kind.letter();
            Ok((name, dtype.numpy(), shape, letter, stored.count, compressed, dims, attrs))
        };
        fields.into_iter().map(row).collect()
    }

    /// Attributes of a group.
    fn attrs<'py>(&self, py: Python<'py>, path: &str) -> Result<Bound<'py, PyDict>> {
        let attrs = self.read(py, |file| {
            file.scan()?;
            Ok(file.attrs(path))
        })?;
        Ok(value::attrs(py, &attrs)?)
    }

    /// Bytes of this rank's elements of a field as stored, and the sizes of the elements of a ragged field.
    fn read_field<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        counts: Vec<u64>,
    ) -> Result<(Bound<'py, PyArray1<u8>>, Option<Bound<'py, PyArray1<u64>>>)> {
        let (bytes, sizes) = self.read(py, |file| {
            file.scan()?;
            let stored = file.find(name)?.clone();
            if stored.kind == Kind::Varray {
                let (sizes, bytes) = file.ragged_elements(&stored.field, &counts)?;
                return Ok((bytes, Some(sizes)));
            }
            Ok((file.elements(&stored.field, &counts)?, None))
        })?;
        let sizes = sizes.map(|sizes| PyArray1::from_vec(py, sizes));
        Ok((PyArray1::from_vec(py, bytes), sizes))
    }

    /// Completes the file.
    fn close(&self, py: Python<'_>) -> Result<()> {
        Ok(py.detach(|| -> Done<()> {
            let Some(Open { state, comm }) = self.lock().take() else { return Ok(()) };
            let closed = match state {
                State::Write(file) => file.close(),
                State::Read(file) => {
                    drop(file);
                    Ok(())
                }
            };
            drop(comm);
            closed
        })?)
    }

    /// Discards the file. `alone`: other ranks do not call this function, so that nothing is freed.
    fn abandon(&self, py: Python<'_>, alone: bool) {
        py.detach(|| {
            let open = self.lock().take();
            if alone { std::mem::forget(open) } else { drop(open) }
        });
    }
}
