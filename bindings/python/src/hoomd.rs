//! Frames and logs of the HOOMD schema, in the words of `gsd.hoomd`.

use std::sync::Arc;

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use spile::convert;
use spile::limits::Limits;
use spile::source::Source;
use spile_gsd::schema::{self, Snapshot, Values};

use crate::failure::Result;

/// A file of the HOOMD schema.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct Trajectory {
    inner: schema::Trajectory,
    /// Real numbers are stored as `float`, as all files were before schema 2.0.
    single: bool,
}

impl Trajectory {
    pub(crate) fn new(source: &Source, limits: &Limits) -> spile::error::Result<Self> {
        let file = spile_gsd::File::from_source(source, limits)?;
        let single = file.header().schema_version >> 16 < 2;
        Ok(Self { inner: schema::Trajectory::new(file)?, single })
    }
}

#[pymethods]
impl Trajectory {
    fn __len__(&self) -> Result<usize> {
        Ok(usize::try_from(self.inner.len()?).unwrap_or(usize::MAX))
    }

    /// A frame with everything filled in: what it lacks is that of frame 0, or the default.
    fn read(&self, py: Python<'_>, frame: u64) -> Result<Frame> {
        let snapshot = py.detach(|| self.inner.read(frame))?;
        Ok(Frame { snapshot: Arc::new(snapshot), single: self.single })
    }

    /// All logged quantities over all frames, in the order of the file; `None` marks frames without.
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

/// A frame.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct Frame {
    snapshot: Arc<Snapshot>,
    single: bool,
}

#[pymethods]
impl Frame {
    #[getter]
    fn step(&self) -> u64 {
        self.snapshot.step
    }

    #[getter]
    fn dimensions(&self) -> u8 {
        self.snapshot.dimensions
    }

    /// `gsd.hoomd` keeps step, dimensions and box there.
    #[getter]
    fn configuration(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    /// Lx, Ly, Lz, xy, xz, yz.
    #[getter]
    fn r#box<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        reals(py, &self.snapshot.box_, 1, self.single)
    }

    #[getter]
    fn particles(&self) -> Particles {
        Particles { snapshot: self.snapshot.clone(), single: self.single }
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
        reals(py, &self.snapshot.constraint_value, 1, self.single)
    }

    /// Logged quantities; what has no value here is left out.
    #[getter]
    fn log<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, values) in &self.snapshot.log {
            if let Some(values) = values {
                dict.set_item(name, elements(py, values)?)?;
            }
        }
        Ok(dict)
    }

    /// State of integrators.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, values) in &self.snapshot.state {
            dict.set_item(name, elements(py, values)?)?;
        }
        Ok(dict)
    }
}

impl Frame {
    fn links(&self, which: fn(&Snapshot) -> &schema::Links, width: usize) -> Links {
        Links { snapshot: self.snapshot.clone(), which, width }
    }
}

/// The particles of a frame.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct Particles {
    snapshot: Arc<Snapshot>,
    single: bool,
}

#[pymethods]
impl Particles {
    #[getter(N)]
    fn n(&self) -> u32 {
        self.snapshot.particles.n
    }

    #[getter]
    fn types(&self) -> Vec<String> {
        self.snapshot.particles.types.clone()
    }

    /// Shape of each type, as JSON.
    #[getter]
    fn type_shapes(&self) -> Vec<String> {
        self.snapshot.particles.type_shapes.clone()
    }

    #[getter]
    fn typeid<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.snapshot.particles.typeid)
    }

    #[getter]
    fn mass<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        reals(py, &self.snapshot.particles.mass, 1, self.single)
    }

    #[getter]
    fn charge<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        reals(py, &self.snapshot.particles.charge, 1, self.single)
    }

    #[getter]
    fn diameter<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        reals(py, &self.snapshot.particles.diameter, 1, self.single)
    }

    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i32>> {
        PyArray1::from_slice(py, &self.snapshot.particles.body)
    }

    #[getter]
    fn moment_inertia<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        reals(py, &self.snapshot.particles.moment_inertia, 3, self.single)
    }

    #[getter]
    fn position<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        reals(py, &self.snapshot.particles.position, 3, self.single)
    }

    #[getter]
    fn orientation<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        reals(py, &self.snapshot.particles.orientation, 4, self.single)
    }

    #[getter]
    fn velocity<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        reals(py, &self.snapshot.particles.velocity, 3, self.single)
    }

    #[getter]
    fn angmom<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        reals(py, &self.snapshot.particles.angmom, 4, self.single)
    }

    #[getter]
    fn image<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        table(PyArray1::from_slice(py, &self.snapshot.particles.image).into_any(), 3)
    }
}

/// Bonds, angles and all else that joins particles.
#[pyclass(frozen, module = "spile._spile")]
pub(crate) struct Links {
    snapshot: Arc<Snapshot>,
    which: fn(&Snapshot) -> &schema::Links,
    width: usize,
}

#[pymethods]
impl Links {
    #[getter(N)]
    fn n(&self) -> u32 {
        (self.which)(&self.snapshot).n
    }

    #[getter]
    fn types(&self) -> Vec<String> {
        (self.which)(&self.snapshot).types.clone()
    }

    #[getter]
    fn typeid<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &(self.which)(&self.snapshot).typeid)
    }

    /// Particles of each.
    #[getter]
    fn group<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyAny>> {
        let group = PyArray1::from_slice(py, &(self.which)(&self.snapshot).group);
        table(group.into_any(), self.width)
    }
}

/// Rows of `width` real numbers, in the precision that the file has.
fn reals<'py>(
    py: Python<'py>,
    values: &[f64],
    width: usize,
    single: bool,
) -> Result<Bound<'py, PyAny>> {
    let array = if single {
        PyArray1::from_iter(py, values.iter().map(|x| *x as f32)).into_any()
    } else {
        PyArray1::from_slice(py, values).into_any()
    };
    table(array, width)
}

fn table(array: Bound<'_, PyAny>, width: usize) -> Result<Bound<'_, PyAny>> {
    if width == 1 {
        return Ok(array);
    }
    Ok(array.call_method1("reshape", ((-1, width),))?)
}

/// The elements of a chunk.
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
