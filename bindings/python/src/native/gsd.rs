//! Writer of GSD frames in the HOOMD schema.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use spile::error::Error;
use spile::sink::Overwrite;
use spile_gsd::Mode;
use spile_gsd::semantics::{Links, Precision, Snapshot, TrajectoryWriter, Values};
use spile_gsd::wire::TYPES;

use crate::failure::Result;
use crate::file::limits;

type Reals<'py> = PyReadonlyArray1<'py, f64>;

/// A GSD file open for writing.
#[pyclass(module = "spile._spile")]
pub(crate) struct Frames(Option<TrajectoryWriter>);

/// Type names, type index of each link, particle indices, particles per link.
#[derive(FromPyObject)]
struct LinksGiven<'py>(Vec<String>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>, usize);

/// NumPy type, rows, columns, little-endian bytes.
#[derive(FromPyObject)]
struct ValuesGiven<'py>(String, u64, u64, PyReadonlyArray1<'py, u8>);

#[pymethods]
impl Frames {
    /// Creates a file, or opens an existing one with `append`.
    #[new]
    #[pyo3(signature = (path, *, application, double=false, append=false, overwrite=false))]
    fn new(
        path: PathBuf,
        application: &str,
        double: bool,
        append: bool,
        overwrite: bool,
    ) -> Result<Self> {
        let precision = if double { Precision::Double } else { Precision::Single };
        let mode = Mode::default();
        let writer = if append {
            TrajectoryWriter::append(path, precision, mode, &limits(None))?
        } else {
            let replace = if overwrite { Overwrite::Replace } else { Overwrite::Never };
            TrajectoryWriter::create(path, replace, application, precision, mode)?
        };
        Ok(Self(Some(writer)))
    }

    /// Appends a frame. Missing values are the defaults of the schema.
    #[allow(clippy::too_many_arguments)] // The parts of the schema.
    fn write(
        &mut self,
        step: u64,
        dimensions: u8,
        r#box: [f64; 6],
        particles: u32,
        types: (Option<Vec<String>>, Option<Vec<String>>),
        reals: HashMap<String, Reals<'_>>,
        typeid: Option<PyReadonlyArray1<'_, u32>>,
        signed: HashMap<String, PyReadonlyArray1<'_, i32>>,
        links: HashMap<String, LinksGiven<'_>>,
        constraint_value: Option<Reals<'_>>,
        log: BTreeMap<String, ValuesGiven<'_>>,
        state: BTreeMap<String, ValuesGiven<'_>>,
    ) -> Result<()> {
        let mut frame = Snapshot::new(step, particles);
        (frame.dimensions, frame.box_) = (dimensions, r#box);
        let p = &mut frame.particles;
        if let Some(types) = types.0 {
            p.types = types;
        }
        if let Some(shapes) = types.1 {
            p.type_shapes = shapes;
        }
        for (name, values) in reals {
            let field = match name.as_str() {
                "mass" => &mut p.mass,
                "charge" => &mut p.charge,
                "diameter" => &mut p.diameter,
                "moment_inertia" => &mut p.moment_inertia,
                "position" => &mut p.position,
                "orientation" => &mut p.orientation,
                "velocity" => &mut p.velocity,
                "angmom" => &mut p.angmom,
                _ => return Err(unknown(&name)),
            };
            *field = numbers(&values)?.into();
        }
        if let Some(values) = typeid {
            p.typeid = numbers(&values)?.into();
        }
        for (name, values) in signed {
            let field = match name.as_str() {
                "body" => &mut p.body,
                "image" => &mut p.image,
                _ => return Err(unknown(&name)),
            };
            *field = numbers(&values)?.into();
        }
        for (name, given) in links {
            let field = match name.as_str() {
                "bonds" => &mut frame.bonds,
                "angles" => &mut frame.angles,
                "dihedrals" => &mut frame.dihedrals,
                "impropers" => &mut frame.impropers,
                "pairs" => &mut frame.pairs,
                "constraints" => &mut frame.constraints,
                _ => return Err(unknown(&name)),
            };
            let (typeid, group) = (numbers(&given.1)?, numbers(&given.2)?);
            let n = u32::try_from(group.len() / given.3.max(1)).unwrap_or(u32::MAX);
            *field = Links { n, types: given.0, typeid: typeid.into(), group: group.into() };
        }
        if let Some(values) = constraint_value {
            frame.constraint_value = numbers(&values)?.into();
        }
        for (name, given) in log {
            frame.log.insert(name, Some(given.values()?));
        }
        for (name, given) in state {
            frame.state.insert(name, given.values()?);
        }
        Ok(self.writer()?.write(&frame)?)
    }

    /// Flushes the frames to disk, so that readers see them.
    fn flush(&mut self) -> Result<()> {
        Ok(self.writer()?.writer().flush()?)
    }

    /// Completes and closes the file.
    fn close(&mut self) -> Result<()> {
        self.0.take().map_or(Ok(()), |writer| Ok(writer.close()?))
    }
}

impl Frames {
    fn writer(&mut self) -> Result<&mut TrajectoryWriter> {
        self.0.as_mut().ok_or_else(|| Error::argument("the file is closed").into())
    }
}

impl ValuesGiven<'_> {
    fn values(&self) -> Result<Values> {
        let kind = TYPES.into_iter().find(|kind| kind.dtype().numpy().as_ref() == Some(&self.0));
        let kind = kind.ok_or_else(|| {
            Error::argument(format!("GSD has no type for elements of type {}", self.0))
        })?;
        Ok(Values { kind, n: self.1, m: self.2, bytes: numbers(&self.3)? })
    }
}

fn numbers<T: numpy::Element + Copy>(array: &PyReadonlyArray1<'_, T>) -> Result<Vec<T>> {
    Ok(array.as_slice().map_err(PyErr::from)?.to_vec())
}

fn unknown(name: &str) -> crate::failure::Failure {
    Error::argument(format!("\"{name}\" is not part of the HOOMD schema")).into()
}
