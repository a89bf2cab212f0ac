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
use spile::format::Folder;
use spile::interchange::structure::{angstroms, labelled_number};
use spile::interchange::{Dimensions, Variables};
use spile::layout::{ArrayDesc, Coord};
use spile::limits::Limits;
use spile::read::{Array, Axes};
use spile::select::Selection;
use spile::shape::{Order, Shape};
use spile::source::Source;
use spile::tree::{Node, NodeId, ROOT};
use spile::wire::ByteOrder;
use spile::{Dataset, OpenOptions};
use spile_iotk::records::{self, Template};
use spile_iotk::wire::record::Framing;

use crate::array;
use crate::failure::Result;
use crate::gsd::GsdFile;
use crate::object::source;
use crate::select::selection;
use crate::value;

/// An open file. Groups and arrays are identified by node numbers; 0 is the root.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct File {
    pub(crate) dataset: Dataset,
    ids: Vec<NodeId>,
}

/// The default limits, with `max_memory` bytes if given.
pub(crate) fn limits(max_memory: Option<u64>) -> Limits {
    let limits = Limits::default();
    max_memory.map_or(limits, |bytes| limits.with_memory(bytes))
}

#[pymethods]
impl File {
    /// Opens a path, a bytes object or a Python file object. `mmap` maps the file into memory, which
    /// allows zero-copy views.
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

    /// Opens the files of a run as one dataset; each file is a frame.
    #[staticmethod]
    #[pyo3(signature = (name, paths, *, derived=false, max_memory=None))]
    fn series(
        py: Python<'_>,
        name: PathBuf,
        paths: Vec<PathBuf>,
        derived: bool,
        max_memory: Option<u64>,
    ) -> Result<Self> {
        let options = OpenOptions::with_limits(limits(max_memory)).with_derived(derived);
        py.detach(|| {
            let Some(first) = paths.first() else {
                return Err(Error::argument("a series needs at least one file").into());
            };
            let format = spile::REGISTRY.probe_within(&Source::open(first)?, &options.limits)?;
            Ok(Self::new(Dataset::open_series(format, &name, &paths, &options)?))
        })
    }

    /// The files of each run in a folder, the run with most files first, and the pattern of their names.
    #[staticmethod]
    fn runs(path: PathBuf) -> Result<Vec<(String, Vec<PathBuf>)>> {
        let folder = Folder::open(path)?;
        let series = spile::REGISTRY.0.iter().filter_map(|format| format.abilities().series);
        let runs = series.map(|series| series.runs(&folder)).find(|runs| !runs.is_empty());
        Ok(runs.unwrap_or_default().into_iter().map(|run| (run.pattern, run.files)).collect())
    }

    /// Opens a Fortran unformatted file with the types of its records. `big` is the byte order and `marker` the
    /// size of the record markers; both are detected if `None`.
    #[staticmethod]
    #[pyo3(signature = (path, data, types, *, big=None, marker=None, max_memory=None))]
    fn records(
        py: Python<'_>,
        path: Option<PathBuf>,
        data: Option<&Bound<'_, PyAny>>,
        types: Option<&str>,
        big: Option<bool>,
        marker: Option<u64>,
        max_memory: Option<u64>,
    ) -> Result<Self> {
        let template = types.map_or_else(|| Ok(Template::default()), str::parse)?;
        let source = source(py, path, data)?;
        py.detach(|| {
            let given = if big.is_some() || marker.is_some() {
                let mut framing = Framing::detect(&source)?.unwrap_or_default();
                if let Some(big) = big {
                    framing.order = if big { ByteOrder::Big } else { ByteOrder::Little };
                }
                framing.marker = marker.unwrap_or(framing.marker);
                Some(framing)
            } else {
                None
            };
            let dataset = records::open(source.clone(), given, &template, &limits(max_memory));
            Ok(Self::new(dataset.map_err(|e| e.with_format("iotk").in_source(&source))?))
        })
    }

    /// Atomic numbers, labels, positions and cell vectors in ångström of a frame; `None` without atoms.
    #[allow(clippy::type_complexity)] // A tuple for Python.
    fn atoms(
        &self,
        py: Python<'_>,
        frame: u64,
    ) -> Result<Option<(Vec<u32>, Vec<String>, Vec<f64>, Option<Vec<f64>>)>> {
        py.detach(|| {
            let Some(atoms) = self.dataset.atoms(frame)? else { return Ok(None) };
            let factor = angstroms(atoms.positions.units());
            let mut positions = atoms.positions.read::<Vec<f64>>("...")?;
            for value in &mut positions {
                *value *= factor;
            }
            let label = |k: u64| {
                let species = atoms.species.as_ref();
                let name = species.and_then(|s| s.name(usize::try_from(k).ok()?));
                name.unwrap_or("X").to_string()
            };
            let labels: Vec<String> = (0..atoms.count).map(label).collect();
            let numbers = labels.iter().map(|label| labelled_number(label)).collect();
            let cell = self.dataset.cell(frame)?.map(|cell| {
                let factor = angstroms(cell.units.as_deref());
                cell.vectors.as_flattened().iter().map(|value| factor * value).collect()
            });
            Ok(Some((numbers, labels, positions, cell)))
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

    /// Number of bytes read so far.
    #[getter]
    fn bytes_read(&self) -> u64 {
        self.dataset.source().bytes_read()
    }

    /// Key facts about the file, for display.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        value::attrs(py, self.dataset.summary())
    }

    /// Warnings collected while opening: `(severity, code, object, message)`.
    fn findings(&self) -> Vec<(&'static str, &'static str, Option<String>, String)> {
        let findings = self.dataset.warnings().iter();
        let row =
            findings.map(|f| (f.severity.name(), f.code, f.object.clone(), f.message.clone()));
        row.collect()
    }

    /// Three lists over all nodes: paths, parent numbers, and whether the node is an array.
    fn nodes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let tree = self.dataset.tree();
        let nodes = || self.ids.iter().map(|id| tree.node(*id));
        let paths = PyList::new(py, nodes().map(|node| node.path.as_str()).collect::<Vec<_>>())?;
        let parents = PyList::new(py, nodes().map(|n| self.number(n.parent)).collect::<Vec<_>>())?;
        let arrays = PyList::new(py, nodes().map(|n| n.array.is_some()).collect::<Vec<_>>())?;
        PyTuple::new(py, [paths, parents, arrays])
    }

    /// The dimensions shared by arrays as `(unique name, length, coordinate, attributes of a uniform
    /// coordinate)`, and a dictionary from array number to the indices of its dimensions in that list.
    fn dimensions<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyTuple>> {
        let tree = self.dataset.tree();
        let dimensions = Dimensions::of(tree);
        let variables = Variables::of_dimensions(tree, &dimensions);
        let list = dimensions.list().iter().enumerate().map(|(k, d)| {
            let attrs = value::attrs(py, &variables.dimension_attributes(k))?;
            Ok((d.name.as_str(), d.len, self.points(py, &d.coord)?, attrs))
        });
        let list = PyList::new(py, list.collect::<Result<Vec<_>>>()?)?;
        let arrays = PyDict::new(py);
        for (number, id) in self.ids.iter().enumerate() {
            if tree.node(*id).array.is_some() {
                arrays.set_item(number, PyTuple::new(py, dimensions.array(*id))?)?;
            }
        }
        Ok((list, arrays).into_pyobject(py)?)
    }

    /// Number of the node with this path or native identifier.
    fn find(&self, path: &str) -> Result<usize> {
        Ok(self.number(self.dataset.tree().find(path)?))
    }

    /// Attributes of a node.
    fn attrs<'py>(&self, py: Python<'py>, number: usize) -> Result<Bound<'py, PyDict>> {
        Ok(value::attrs(py, &self.node(number)?.attrs)?)
    }

    /// Native identifier of a node.
    fn id(&self, number: usize) -> Result<Option<&str>> {
        Ok(self.node(number)?.id.as_deref())
    }

    /// Description of an array.
    fn array(&self, py: Python<'_>, number: usize) -> Result<ArrayInfo> {
        let (own, real) = self.desc(number)?;
        let coords = own.coords.iter().map(|coord| self.points(py, coord).map(Bound::unbind));
        let coords = coords.collect::<Result<Vec<_>>>()?;
        let frames = real.layout.frames().map(|table| table.len());
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

    /// Shape of an array in a frame; `None` if the frame does not contain it.
    fn shape(&self, number: usize, frame: u64) -> Result<Option<Vec<u64>>> {
        let (own, _) = self.desc(number)?;
        let array = self.dataset.open_array_in_frame(own, frame)?;
        Ok(array.map(|array| array.shape().lengths().to_vec()))
    }

    /// Length of the first dimension in every frame (-1 if a frame does not contain the array), and
    /// whether the lengths of the other dimensions are the same in all frames.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        number: usize,
    ) -> Result<(Bound<'py, PyArray1<i64>>, bool)> {
        let (_, real) = self.desc(number)?;
        let Some(table) = real.layout.frames() else {
            return Err(Error::argument("the array has no frames").into());
        };
        let (rows, even) = py.detach(|| -> spile::error::Result<_> {
            let mut rows =
                Vec::with_capacity(self.dataset.limits().allow(table.len() * 8, "frames")? / 8);
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

    /// Reads a selection of an array: with `physical` the scaled values as `float64`, otherwise elements of the
    /// NumPy type `dtype`, in native byte order with `native` and in that of the file without. `None` if the
    /// frame does not contain the array.
    fn read<'py>(
        &self,
        number: usize,
        key: &Bound<'py, PyAny>,
        frame: Option<u64>,
        physical: bool,
        native: bool,
        dtype: &Bound<'py, PyAny>,
    ) -> Result<Option<Bound<'py, PyAny>>> {
        let py = key.py();
        let selection = selection(key)?;
        let Some(array) = self.open_array(number, frame)? else { return Ok(None) };
        let selected = array.select(&selection, Axes::Stored)?;
        let shape = selected.shape();
        let lengths = shape.lengths();
        let fortran = array.order() == Order::F;
        let size = if physical { 8 } else { array.dtype().size() as u64 };
        let bytes = selected.count().saturating_mul(size);
        self.allow(bytes)?;
        // NumPy multiplies lengths even where one of them is zero.
        Shape::new(lengths.iter().map(|n| (*n).max(1)).collect::<Vec<_>>()).bytes(size as usize)?;
        let shape = PyTuple::new(py, lengths)?;
        if physical {
            let values = py.detach(|| physical_values(&array, &selection, bytes))?;
            let order = PyDict::new(py);
            order.set_item("order", if fortran { "F" } else { "C" })?;
            let values = PyArray1::from_vec(py, values);
            return Ok(Some(values.call_method("reshape", (shape,), Some(&order))?));
        }
        if bytes == 0 {
            return Ok(Some(array::zeros(shape.as_any(), dtype)?));
        }
        let new = array::empty(shape.as_any(), dtype, fortran)?;
        let buffer = array::bytes_mut(&new);
        let order =
            if native { ByteOrder::NATIVE } else { stored_type(self.desc(number)?.1).order() };
        let word = array.dtype().word();
        py.detach(|| -> spile::error::Result<()> {
            selected.read_into(buffer)?;
            if word > 1 && order == ByteOrder::Big {
                convert::swap(buffer, word);
            }
            Ok(())
        })
        .map_err(|e| self.with_location(e, number, frame))?;
        Ok(Some(new.into_any()))
    }

    /// Read-only view of the bytes of an array; `None` if they are not contiguous in memory.
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
        // frozen. NumPy keeps it alive as long as the new array, which is made read-only below.
        let seen = unsafe { PyArray1::borrow_from_array(&bytes, view.clone().into_any()) };
        seen.readwrite().make_nonwriteable();
        Ok(Some(seen))
    }

    /// Byte offsets of the elements of a ragged array, followed by the total length.
    fn offsets<'py>(&self, py: Python<'py>, number: usize) -> Result<Bound<'py, PyArray1<u64>>> {
        let (_, real) = self.desc(number)?;
        let starts = real.ragged().ok_or_else(|| Error::argument("the array is not ragged"))?;
        Ok(PyArray1::from_slice(py, starts))
    }

    /// Steps and times of all frames; `None` where unknown.
    fn steps_and_times(&self, py: Python<'_>) -> Result<(Vec<Option<u64>>, Vec<Option<f64>>)> {
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

    /// Number of frames; `None` for files without frames.
    #[getter]
    fn frames(&self) -> Option<u64> {
        self.dataset.tree().frames().map(|axis| axis.len())
    }

    /// The frames and chunks of a GSD file.
    fn gsd(&self, py: Python<'_>) -> Result<GsdFile> {
        py.detach(|| Ok(GsdFile::from_source(self.dataset.source(), self.dataset.limits())?))
    }
}

/// Description of an array.
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
    /// Linear scaling: value = intercept + slope * stored, as `(intercept, slope)`.
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
    /// Some stored values denote missing data.
    has_missing: bool,
}

impl File {
    fn new(dataset: Dataset) -> Self {
        let ids = dataset.tree().iter().map(|(id, _)| id);
        let ids = std::iter::once(ROOT).chain(ids).collect();
        Self { dataset, ids }
    }

    /// Number of a node. `ids` is in tree order and therefore sorted.
    fn number(&self, id: NodeId) -> usize {
        self.ids.binary_search(&id).unwrap_or_default()
    }

    /// Coordinate of a dimension: `None`, `(start, step)` or the number of an array.
    fn points<'py>(&self, py: Python<'py>, coord: &Coord) -> Result<Bound<'py, PyAny>> {
        Ok(match coord {
            Coord::None => py.None().into_bound(py),
            Coord::Uniform { start, step } => (start, step).into_pyobject(py)?.into_any(),
            Coord::Node(id) => self.number(*id).into_bound_py_any(py)?,
        })
    }

    fn node(&self, number: usize) -> Result<&Node> {
        let id = self.ids.get(number);
        let id = id.ok_or_else(|| Error::argument(format!("no node with number {number}")))?;
        Ok(self.dataset.tree().node(*id))
    }

    /// Description of an array, and the description of the array it refers to (itself, unless it is a
    /// reference).
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
        Ok(array.map_err(|e| self.with_location(e, number, frame))?)
    }

    fn with_location(&self, error: Error, number: usize, frame: Option<u64>) -> Error {
        let error = match self.node(number) {
            Ok(node) => error.in_object(format!("\"{}\"", node.path)),
            Err(_) => error,
        };
        let error = error.with_format(self.format());
        let error = frame.into_iter().fold(error, Error::in_frame);
        self.dataset.source().path().into_iter().fold(error, Error::with_path)
    }

    /// Checks the size of a result. Data stored in the file are always allowed; results much larger
    /// than the file (fill values, compressed data) are subject to the memory limit.
    fn allow(&self, bytes: u64) -> Result<()> {
        let most = self.dataset.limits().memory.max(self.nbytes().saturating_mul(8));
        self.dataset.limits().with_memory(most).allow(bytes, "the selection")?;
        Ok(())
    }
}

/// Owner of the memory of a zero-copy array.
#[pyclass(frozen, module = "spile._spile")]
struct View(Array);

#[allow(unsafe_code)]
fn map(path: &std::path::Path) -> Result<Source> {
    // SAFETY: the documentation of `mmap=True` requires that the file is not truncated or modified
    // while its arrays are in use; the default is to read.
    Ok(unsafe { Source::map(path) }?)
}

/// Element type of the bytes of an array. Decoded and generated values are little-endian.
fn stored_type(array: &ArrayDesc) -> DType {
    let order = array.layout.is_always_little().then_some(ByteOrder::Little);
    order.map_or(array.dtype, |order| array.dtype.with_order(order))
}

/// NumPy type of the stored bytes; `None` if only `float64` can represent the values.
fn numpy_type(array: &ArrayDesc) -> Option<String> {
    if array.ragged().is_some() {
        return Some("|u1".into());
    }
    let dtype = stored_type(array);
    match (dtype.kind(), dtype.size()) {
        // Opaque single bytes are more useful as numbers.
        (Kind::Opaque, 1) => Some("|u1".into()),
        // The Python layer converts to bool: non-zero is true.
        (Kind::Bool, size) => {
            DType::new(Kind::UInt, size as u32, dtype.order()).and_then(DType::numpy)
        }
        (Kind::Float, 16) => None,
        (Kind::Complex, size) if dtype.numpy().is_none() => Some(format!("|V{size}")),
        _ => dtype.numpy(),
    }
}

/// The selection as physical values. The caller has checked `bytes` against the limits.
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
