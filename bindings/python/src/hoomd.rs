//! Frames and logs in the HOOMD schema, with the names of `gsd.hoomd`.

use std::sync::Arc;

use numpy::{Element, PyArray1, PyArrayMethods as _, PyUntypedArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use spile::convert;
use spile::limits::Limits;
use spile::source::Source;
use spile_gsd::semantics::{self, Snapshot, Values};
use spile_gsd::wire::Type;

use crate::failure::Result;

/// A trajectory in the HOOMD schema.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct Trajectory {
    inner: Arc<semantics::Trajectory>,
}

impl Trajectory {
    pub(crate) fn new(source: &Source, limits: &Limits) -> spile::error::Result<Self> {
        let file = spile_gsd::File::from_source(source, limits)?;
        Ok(Self { inner: Arc::new(semantics::Trajectory::new(file)?) })
    }
}

#[pymethods]
impl Trajectory {
    fn __len__(&self) -> Result<usize> {
        Ok(usize::try_from(self.inner.len()?).unwrap_or(usize::MAX))
    }

    /// Reads a frame. Chunks that it lacks are taken from frame 0 or from the defaults of the schema.
    fn read(&self, py: Python<'_>, frame: u64) -> Result<Frame> {
        let snapshot = py.detach(|| self.inner.read(frame))?;
        Ok(Frame(Arc::new(Read { trajectory: self.inner.clone(), number: frame, snapshot })))
    }

    /// Steps and logged quantities of all frames, in file order; a logged quantity is
    /// `(values, frames without a value)`.
    fn log<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let log = py.detach(|| self.inner.read_log())?;
        let dict = PyDict::new(py);
        dict.set_item("configuration/step", PyArray1::from_vec(py, log.steps))?;
        for column in log.columns {
            let frames = column.bytes.len() as u64 / (column.width() * column.kind.size()).max(1);
            let mut shape = vec![frames];
            if column.shape != (1, 1) {
                shape.push(column.shape.0);
            }
            if column.shape.1 != 1 {
                shape.push(column.shape.1);
            }
            let dtype = column.kind.dtype().numpy();
            let bytes = PyArray1::from_vec(py, column.bytes);
            let array = bytes.call_method1("view", (dtype,))?.call_method1("reshape", (shape,))?;
            dict.set_item(format!("log/{}", column.name), (array, column.missing))?;
        }
        Ok(dict)
    }
}

/// A frame with its number and trajectory.
struct Read {
    trajectory: Arc<semantics::Trajectory>,
    number: u64,
    snapshot: Snapshot,
}

impl Read {
    /// Rows of `width` floating-point numbers, in the precision of the file.
    fn reals<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        values: &[f64],
        width: usize,
    ) -> Result<Bound<'py, PyAny>> {
        let chunk = self.trajectory.chunk(self.number, name)?;
        if chunk.is_some_and(|chunk| chunk.data.kind == Type::Double) {
            return table(PyArray1::from_slice(py, values), width);
        }
        let single: Vec<f32> = values.iter().map(|x| *x as f32).collect();
        table(PyArray1::from_vec(py, single), width)
    }
}

/// A frame of a trajectory.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct Frame(Arc<Read>);

#[pymethods]
impl Frame {
    #[getter]
    fn step(&self) -> u64 {
        self.0.snapshot.step
    }

    #[getter]
    fn dimensions(&self) -> u8 {
        self.0.snapshot.dimensions
    }

    /// The frame itself: in `gsd.hoomd`, step, dimensions and box are attributes of `configuration`.
    #[getter]
    fn configuration(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    /// Lx, Ly, Lz, xy, xz, yz.
    #[getter]
    fn r#box<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.0.reals(py, "configuration/box", &self.0.snapshot.box_, 1)
    }

    #[getter]
    fn particles(&self) -> Particles {
        Particles(self.0.clone())
    }

    #[getter]
    fn bonds(&self) -> Links {
        self.links(|s| &s.bonds, 2)
    }

    #[getter]
    fn angles(&self) -> Links {
        self.links(|s| &s.angles, 3)
    }

    #[getter]
    fn dihedrals(&self) -> Links {
        self.links(|s| &s.dihedrals, 4)
    }

    #[getter]
    fn impropers(&self) -> Links {
        self.links(|s| &s.impropers, 4)
    }

    #[getter]
    fn pairs(&self) -> Links {
        self.links(|s| &s.pairs, 2)
    }

    #[getter]
    fn constraints(&self) -> Links {
        self.links(|s| &s.constraints, 2)
    }

    /// Length of each constraint.
    #[getter]
    fn constraint_value<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.0.reals(py, "constraints/value", &self.0.snapshot.constraint_value, 1)
    }

    /// Logged quantities that have a value in this frame.
    #[getter]
    fn log<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, values) in &self.0.snapshot.log {
            if let Some(values) = values {
                dict.set_item(name, elements(py, values)?)?;
            }
        }
        Ok(dict)
    }

    /// State of integrators (`state/...`).
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, values) in &self.0.snapshot.state {
            dict.set_item(name, elements(py, values)?)?;
        }
        Ok(dict)
    }
}

impl Frame {
    fn links(&self, which: fn(&Snapshot) -> &semantics::Links, width: usize) -> Links {
        Links { frame: self.0.clone(), which, width }
    }
}

/// The particles of a frame.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct Particles(Arc<Read>);

#[pymethods]
impl Particles {
    #[getter(N)]
    fn n(&self) -> u32 {
        self.0.snapshot.particles.n
    }

    #[getter]
    fn types(&self) -> Vec<String> {
        self.0.snapshot.particles.types.clone()
    }

    /// Shape of each type, as JSON.
    #[getter]
    fn type_shapes(&self) -> Vec<String> {
        self.0.snapshot.particles.type_shapes.clone()
    }

    #[getter]
    fn typeid<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.0.snapshot.particles.typeid)
    }

    #[getter]
    fn mass<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.0.reals(py, "particles/mass", &self.0.snapshot.particles.mass, 1)
    }

    #[getter]
    fn charge<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.0.reals(py, "particles/charge", &self.0.snapshot.particles.charge, 1)
    }

    #[getter]
    fn diameter<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.0.reals(py, "particles/diameter", &self.0.snapshot.particles.diameter, 1)
    }

    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        PyArray1::from_slice(py, &self.0.snapshot.particles.body)
    }

    #[getter]
    fn moment_inertia<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.0.reals(py, "particles/moment_inertia", &self.0.snapshot.particles.moment_inertia, 3)
    }

    #[getter]
    fn position<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.0.reals(py, "particles/position", &self.0.snapshot.particles.position, 3)
    }

    #[getter]
    fn orientation<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.0.reals(py, "particles/orientation", &self.0.snapshot.particles.orientation, 4)
    }

    #[getter]
    fn velocity<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.0.reals(py, "particles/velocity", &self.0.snapshot.particles.velocity, 3)
    }

    #[getter]
    fn angmom<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        self.0.reals(py, "particles/angmom", &self.0.snapshot.particles.angmom, 4)
    }

    #[getter]
    fn image<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        table(PyArray1::from_slice(py, &self.0.snapshot.particles.image), 3)
    }
}

/// Bonds, angles, dihedrals, impropers, pairs or constraints.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct Links {
    frame: Arc<Read>,
    which: fn(&Snapshot) -> &semantics::Links,
    width: usize,
}

#[pymethods]
impl Links {
    #[getter(N)]
    fn n(&self) -> u32 {
        (self.which)(&self.frame.snapshot).n
    }

    #[getter]
    fn types(&self) -> Vec<String> {
        (self.which)(&self.frame.snapshot).types.clone()
    }

    #[getter]
    fn typeid<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &(self.which)(&self.frame.snapshot).typeid)
    }

    /// Particle indices of each link, one row per link.
    #[getter]
    fn group<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let group = PyArray1::from_slice(py, &(self.which)(&self.frame.snapshot).group);
        table(group, self.width)
    }
}

/// Reshapes to rows of `width`; one-dimensional if `width` is 1.
fn table<T: Element>(array: Bound<'_, PyArray1<T>>, width: usize) -> Result<Bound<'_, PyAny>> {
    if width == 1 {
        return Ok(array.into_any());
    }
    let rows = array.len() / width;
    Ok(array.reshape([rows, width])?.into_any())
}

/// The elements of a chunk as an array.
fn elements<'py>(py: Python<'py>, values: &Values) -> Result<Bound<'py, PyAny>> {
    let mut bytes = values.bytes.clone();
    if cfg!(target_endian = "big") {
        convert::swap(&mut bytes, values.kind.dtype().word());
    }
    let array = PyArray1::from_vec(py, bytes);
    let array = array.call_method1("view", (values.kind.dtype().numpy(),))?;
    let shape = if values.m == 1 { vec![values.n] } else { vec![values.n, values.m] };
    Ok(array.call_method1("reshape", (shape,))?)
}
