//! An open file.

use std::path::PathBuf;

use numpy::ndarray::ArrayView1;
use numpy::{PyArray1, PyArrayMethods as _};
use pyo3::IntoPyObjectExt as _;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use spile::convert;
use spile::dtype::{DType, Kind};
use spile::error::Error;
use spile::interchange::Dimensions;
use spile::layout::{ArrayDesc, Coord, Layout};
use spile::limits::Limits;
use spile::read::{Array, Axes};
use spile::select::Selection;
use spile::shape::{Order, Shape};
use spile::source::Source;
use spile::tree::{Node, NodeId, ROOT};
use spile::wire::ByteOrder;
use spile::{Dataset, OpenOptions};

use crate::failure::Result;
use crate::hoomd::Trajectory;
use crate::object::source;
use crate::select::selection;
use crate::value;

/// An open file. Groups and arrays are known by their numbers; 0 is the root.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct File {
    pub(crate) dataset: Dataset,
    ids: Vec<NodeId>,
}

/// Limits with the caller's budget.
pub(crate) fn limits(max_memory: Option<u64>) -> Limits {
    let limits = Limits::default();
    max_memory.map_or(limits, |bytes| limits.with_memory(bytes))
}

#[pymethods]
impl File {
    /// Opens a path, or bytes, or a file of Python. With `mmap` arrays can be seen without a copy.
    #[staticmethod]
    #[pyo3(signature = (path, data=None, *, derived=false, mmap=false, max_memory=None))]
    fn open(
        py: Python<'_>,
        path: Option<PathBuf>,
        data: Option<&Bound<'_, PyAny>>,
        derived: bool,
        mmap: bool,
        max_memory: Option<u64>,
    ) -> Result<Self> {
        let options = OpenOptions::with_limits(limits(max_memory)).with_derived(derived);
        let source = match path {
            Some(path) if data.is_none() && path.is_dir() => {
                return py.detach(|| Ok(Self::new(spile::open_with(path, &options)?)));
            }
            Some(path) if data.is_none() && mmap => map(&path)?,
            path => source(py, path, data)?,
        };
        py.detach(|| Ok(Self::new(spile::REGISTRY.open(source, &options)?)))
    }

    /// Opens many files of one run as frames of one dataset.
    #[staticmethod]
    #[pyo3(signature = (name, paths, *, max_memory=None))]
    fn series(
        py: Python<'_>,
        name: PathBuf,
        paths: Vec<PathBuf>,
        max_memory: Option<u64>,
    ) -> Result<Self> {
        let options = OpenOptions::with_limits(limits(max_memory));
        py.detach(|| {
            let Some(first) = paths.first() else {
                return Err(Error::argument("a series needs at least one file").into());
            };
            let format = spile::REGISTRY.probe(&Source::open(first)?)?;
            Ok(Self::new(Dataset::open_series(format, &name, &paths, &options)?))
        })
    }

    #[getter]
    fn format(&self) -> &'static str {
        self.dataset.format().map_or("", |format| format.name)
    }

    #[getter]
    fn title(&self) -> &'static str {
        self.dataset.format().map_or("", |format| format.title)
    }

    #[getter]
    fn nbytes(&self) -> u64 {
        self.dataset.source().len()
    }

    /// Bytes that have been read so far.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.dataset.source().bytes_read()
    }

    /// What a person wants to know first.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        value::attrs(py, self.dataset.summary())
    }

    /// What was noticed while the file was opened: `(severity, code, object, message)`.
    fn findings(&self) -> Vec<(&'static str, &'static str, Option<String>, String)> {
        let findings = self.dataset.warnings().iter();
        let row =
            findings.map(|f| (f.severity.name(), f.code, f.object.clone(), f.message.clone()));
        row.collect()
    }

    /// Of all nodes at once: paths, numbers of their groups, whether they are arrays.
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let tree = self.dataset.tree();
        let nodes = || self.ids.iter().map(|id| tree.node(*id));
        let paths = PyList::new(py, nodes().map(|node| node.path.as_str()).collect::<Vec<_>>())?;
        let parents = PyList::new(py, nodes().map(|n| self.number(n.parent)).collect::<Vec<_>>())?;
        let arrays = PyList::new(py, nodes().map(|n| n.array.is_some()).collect::<Vec<_>>())?;
        PyTuple::new(py, [paths, parents, arrays])
    }

    /// The dimensions that arrays share, each with a name of its own, its length and its points; and
    /// by the number of an array, which of them it has.
    fn dimensions<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        let tree = self.dataset.tree();
        let dimensions = Dimensions::of(tree);
        let list = dimensions.list().iter();
        let list = list.map(|d| Ok((d.name.as_str(), d.len, self.points(py, &d.coord)?)));
        let list = PyList::new(py, list.collect::<Result<Vec<_>>>()?)?;
        let arrays = PyDict::new(py);
        for (number, id) in self.ids.iter().enumerate() {
            if tree.node(*id).array.is_some() {
                arrays.set_item(number, PyTuple::new(py, dimensions.array(*id))?)?;
            }
        }
        Ok((list, arrays).into_pyobject(py)?)
    }

    /// The number of what has this path, or this name of the format's own.
    fn find(&self, path: &str) -> Result<usize> {
        Ok(self.number(self.dataset.tree().find(path)?))
    }

    /// What is said about a node.
    fn attrs<'py>(&self, py: Python<'py>, number: usize) -> Result<Bound<'py, PyDict>> {
        Ok(value::attrs(py, &self.node(number)?.attrs)?)
    }

    /// The format's own name for a node.
    fn id(&self, number: usize) -> Result<Option<&str>> {
        Ok(self.node(number)?.id.as_deref())
    }

    /// Everything about an array but its values.
    fn array(&self, py: Python<'_>, number: usize) -> Result<ArrayInfo> {
        let (own, real) = self.desc(number)?;
        let coords = own.coords.iter().map(|coord| self.points(py, coord).map(Bound::unbind));
        let coords = coords.collect::<Result<Vec<_>>>()?;
        let frames = match &real.layout {
            Layout::PerFrame(table) => Some(table.len()),
            _ => None,
        };
        let semantics = own.semantics();
        Ok(ArrayInfo {
            dtype: real.dtype.to_string(),
            numpy: numpy_type(real),
            shape: PyTuple::new(py, real.shape.lengths())?.unbind(),
            dims: PyTuple::new(py, &own.dims)?.unbind(),
            coords: PyTuple::new(py, coords)?.unbind(),
            scaling: real.map.map(spile::layout::Linear::coefficients),
            frames,
            ragged: real.ragged().is_some(),
            fortran: real.order() == Order::F,
            role: semantics.role.name(),
            mesh: semantics.mesh.map(|id| self.dataset.tree().node(id).path.clone()),
            centring: semantics.centring.map(spile::semantics::Centring::name),
            component: semantics.component.as_ref().map(|c| (c.vector.clone(), c.index)),
            point_set: semantics.point_set.clone(),
            has_missing: !semantics.missing.is_none(),
        })
    }

    /// The lengths of an array in a frame; nothing where the frame does not have it.
    fn shape(&self, number: usize, frame: u64) -> Result<Option<Vec<u64>>> {
        let (own, _) = self.desc(number)?;
        let array = self.dataset.open_array_in_frame(own, frame)?;
        Ok(array.map(|array| array.shape().lengths().to_vec()))
    }

    /// The first length of an array in every frame, -1 where a frame does not have it, and whether the
    /// other lengths are the same everywhere.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        number: usize,
    ) -> Result<(Bound<'py, PyArray1<i64>>, bool)> {
        let (_, real) = self.desc(number)?;
        let Layout::PerFrame(table) = &real.layout else {
            return Err(Error::argument("this array has no frames").into());
        };
        let (rows, even) = py.detach(|| -> spile::error::Result<_> {
            let mut rows = Vec::with_capacity(self.dataset.limits().allow(table.len() * 8, "frames")? / 8);
            let mut even = true;
            for frame in 0..table.len() {
                let cell = table.cell(frame).map_err(|e| e.in_frame(frame))?;
                rows.push(
                    cell.as_ref()
                        .map_or(-1, |cell| cell.shape.lengths().first().map_or(1, |n| *n as i64)),
                );
                let rest = |shape: &Shape| shape.lengths().get(1..).map(<[u64]>::to_vec);
                even &= cell.is_none_or(|cell| rest(&cell.shape) == rest(&real.shape));
            }
            Ok((rows, even))
        })?;
        Ok((PyArray1::from_vec(py, rows), even))
    }

    /// Reads a part of an array: its bytes, its shape, whether the first index runs fastest. `physical`
    /// values are `float64`, with the linear map; `native` bytes are in the machine's order, others in
    /// the file's. Nothing where the frame does not have the array.
    #[pyo3(signature = (number, key, *, frame=None, physical=false, native=false))]
    fn read<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        key: &Bound<'py, PyAny>,
        frame: Option<u64>,
        physical: bool,
        native: bool,
    ) -> Result<Option<(Bound<'py, PyAny>, Bound<'py, PyTuple>, bool)>> {
        let selection = selection(key)?;
        let Some(array) = self.open_array(number, frame)? else { return Ok(None) };
        let selected = array.select(&selection, Axes::Stored)?;
        let shape = PyTuple::new(py, selected.shape().lengths())?;
        let fortran = array.order() == Order::F;
        let size = if physical { 8 } else { array.dtype().size() as u64 };
        let bytes = selected.count().saturating_mul(size);
        self.allow(bytes)?;
        // NumPy multiplies lengths even where one of them is zero.
        Shape::new(selected.shape().lengths().iter().map(|n| (*n).max(1)).collect::<Vec<_>>())
            .bytes(size as usize)?;
        if physical {
            let values = py.detach(|| physical_values(&array, &selection, bytes))?;
            return Ok(Some((PyArray1::from_vec(py, values).into_any(), shape, fortran)));
        }
        let room = py.import("numpy")?.call_method1("empty", (bytes, "u1"))?;
        {
            let room = room.cast::<PyArray1<u8>>().map_err(PyErr::from)?;
            let mut room = room.try_readwrite().map_err(PyErr::from)?;
            let room = room.as_slice_mut().map_err(PyErr::from)?;
            let order =
                if native { ByteOrder::NATIVE } else { stored_type(self.desc(number)?.1).order() };
            let word = array.dtype().word();
            py.detach(|| -> spile::error::Result<()> {
                selected.read_into(room)?;
                if word > 1 && order == ByteOrder::Big {
                    convert::swap(room, word);
                }
                Ok(())
            })
            .map_err(|e| self.place(e, number, frame))?;
        }
        Ok(Some((room, shape, fortran)))
    }

    /// The bytes of an array where they lie, read-only; nothing where they do not lie together in
    /// memory.
    #[pyo3(signature = (number, *, frame=None))]
    #[allow(unsafe_code)]
    fn view<'py>(
        &self,
        py: Python<'py>,
        number: usize,
        frame: Option<u64>,
    ) -> Result<Option<Bound<'py, PyArray1<u8>>>> {
        let Some(array) = self.open_array(number, frame)? else { return Ok(None) };
        let view = Bound::new(py, View(array))?;
        let Some(bytes) = view.get().0.view() else { return Ok(None) };
        let bytes = ArrayView1::from(bytes);
        // SAFETY: `view` owns the array, which owns the memory or the map that `bytes` lie in, and is
        // frozen; NumPy keeps it alive as long as the new array, which is made read-only below.
        let seen = unsafe { PyArray1::borrow_from_array(&bytes, view.clone().into_any()) };
        seen.readwrite().make_nonwriteable();
        Ok(Some(seen))
    }

    /// Bytes before each element and the total at the end, where elements have lengths of their own.
    fn offsets<'py>(&self, py: Python<'py>, number: usize) -> Result<Bound<'py, PyArray1<u64>>> {
        let (_, real) = self.desc(number)?;
        let starts = real.ragged().ok_or_else(|| Error::argument("all elements are as long"))?;
        Ok(PyArray1::from_slice(py, starts))
    }

    /// Steps and times of all frames, nothing where the file does not tell any.
    fn moments(&self, py: Python<'_>) -> Result<(Vec<Option<u64>>, Vec<Option<f64>>)> {
        let Some(axis) = self.dataset.tree().frames() else {
            return Ok((Vec::new(), Vec::new()));
        };
        Ok(py.detach(|| -> spile::error::Result<_> {
            self.dataset.limits().allow(axis.len().saturating_mul(32), "the frames")?;
            let steps = (0..axis.len()).map(|k| axis.step(k)).collect::<spile::error::Result<_>>();
            let times = (0..axis.len()).map(|k| axis.time(k)).collect::<spile::error::Result<_>>();
            Ok((steps?, times?))
        })?)
    }

    /// Number of frames; nothing where the file has no such axis.
    #[getter]
    fn frames(&self) -> Option<u64> {
        self.dataset.tree().frames().map(|axis| axis.len())
    }

    /// The file as a trajectory of the HOOMD schema.
    fn hoomd(&self, py: Python<'_>) -> Result<Trajectory> {
        py.detach(|| Ok(Trajectory::new(self.dataset.source(), self.dataset.limits())?))
    }
}

/// Everything about an array but its values.
#[pyclass(frozen, get_all, module = "spile._spile")]
pub(crate) struct ArrayInfo {
    /// Element type as stored.
    dtype: String,
    /// Element type of NumPy; `None` where only `float64` can represent the values.
    numpy: Option<String>,
    shape: Py<PyTuple>,
    dims: Py<PyTuple>,
    /// Per dimension `None`, `(start, step)` or the number of an array.
    coords: Py<PyTuple>,
    /// Intercept and slope from stored to physical values.
    scaling: Option<(f64, f64)>,
    /// Number of frames; `None` for an array without frames.
    frames: Option<u64>,
    /// Elements have different lengths.
    ragged: bool,
    /// The first index runs fastest.
    fortran: bool,
    role: &'static str,
    /// Path of the mesh.
    mesh: Option<String>,
    centring: Option<&'static str>,
    /// Name of the vector and number of the component.
    component: Option<(String, u8)>,
    point_set: Option<String>,
    /// Some stored values mean missing.
    has_missing: bool,
}

impl File {
    fn new(dataset: Dataset) -> Self {
        let ids = dataset.tree().iter().map(|(id, _)| id);
        let ids = std::iter::once(ROOT).chain(ids).collect();
        Self { dataset, ids }
    }

    /// Numbers follow the order of the tree, and so do the tree's own names for nodes.
    fn number(&self, id: NodeId) -> usize {
        self.ids.binary_search(&id).unwrap_or_default()
    }

    /// Points of a dimension: nothing, `(start, step)` or the number of an array.
    fn points<'py>(&self, py: Python<'py>, coord: &Coord) -> Result<Bound<'py, PyAny>> {
        Ok(match coord {
            Coord::None => py.None().into_bound(py),
            Coord::Uniform { start, step } => (start, step).into_pyobject(py)?.into_any(),
            Coord::Node(id) => self.number(*id).into_bound_py_any(py)?,
        })
    }

    fn node(&self, number: usize) -> Result<&Node> {
        let id = self.ids.get(number);
        let id = id.ok_or_else(|| Error::argument(format!("there is no node {number}")))?;
        Ok(self.dataset.tree().node(*id))
    }

    /// An array as it is told, and the one whose bytes it has.
    fn desc(&self, number: usize) -> Result<(&ArrayDesc, &ArrayDesc)> {
        let node = self.node(number)?;
        let own = node.array.as_ref();
        let own = own.ok_or_else(|| Error::argument(format!("\"{}\" is a group", node.path)))?;
        Ok((own, self.dataset.tree().resolve(own)?))
    }

    fn open_array(&self, number: usize, frame: Option<u64>) -> Result<Option<Array>> {
        let (own, _) = self.desc(number)?;
        let array = match frame {
            Some(frame) => self.dataset.open_array_in_frame(own, frame),
            None => self.dataset.open_array(own).map(Some),
        };
        Ok(array.map_err(|e| self.place(e, number, frame))?)
    }

    fn place(&self, error: Error, number: usize, frame: Option<u64>) -> Error {
        let error = match self.node(number) {
            Ok(node) => error.in_object(format!("\"{}\"", node.path)),
            Err(_) => error,
        };
        let error = error.with_format(self.format());
        let error = frame.into_iter().fold(error, Error::in_frame);
        self.dataset.source().path().into_iter().fold(error, Error::with_path)
    }

    /// Whatever the file holds may be read; a few bytes that stand for very many must not take the
    /// machine down.
    fn allow(&self, bytes: u64) -> Result<()> {
        let most = self.dataset.limits().memory.max(self.nbytes().saturating_mul(8));
        self.dataset.limits().with_memory(most).allow(bytes, "the selection")?;
        Ok(())
    }
}

/// Keeps alive what a zero-copy array shows.
#[pyclass(frozen, module = "spile._spile")]
struct View(Array);

#[allow(unsafe_code)]
fn map(path: &std::path::Path) -> Result<Source> {
    // SAFETY: `mmap=True` is documented as the caller's word that nobody shortens or rewrites the file
    // while arrays of it are in use; the default is to read.
    Ok(unsafe { Source::map(path) }?)
}

/// The type of an array's bytes; what is not in the file as it is, is little-endian.
fn stored_type(array: &ArrayDesc) -> DType {
    match array.layout {
        Layout::Inline(..) | Layout::EncodedWhole { .. } | Layout::Fill(_) => {
            array.dtype.with_order(ByteOrder::Little)
        }
        _ => array.dtype,
    }
}

/// The type that NumPy gets the stored bytes as; nothing where only numbers of `float64` will do.
fn numpy_type(array: &ArrayDesc) -> Option<String> {
    if array.ragged().is_some() {
        return Some("|u1".into());
    }
    let dtype = stored_type(array);
    match (dtype.kind(), dtype.size()) {
        // Single bytes are for reading, not for wondering at.
        (Kind::Opaque, 1) => Some("|u1".into()),
        // True unless zero: the package compares.
        (Kind::Bool, size) => {
            DType::new(Kind::UInt, size as u32, dtype.order()).and_then(DType::numpy)
        }
        (Kind::Float, 16) => None,
        (Kind::Complex, size) if dtype.numpy().is_none() => Some(format!("|V{size}")),
        _ => dtype.numpy(),
    }
}

/// The selection as `float64`, whose bytes have been allowed.
fn physical_values(array: &Array, selection: &Selection, bytes: u64) -> Result<Vec<f64>> {
    let selected = array.select(selection, Axes::Stored)?;
    let mut out = Vec::with_capacity(bytes as usize / 8);
    let mut numbers = Vec::new();
    selected.stream(|_, block| {
        convert::to_physical(array.dtype(), array.map(), array.missing(), block, &mut numbers);
        out.extend_from_slice(&numbers);
        Ok(())
    })?;
    Ok(out)
}
