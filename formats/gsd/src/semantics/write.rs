//! Writing frames of the HOOMD schema. Chunks that a reader would get from frame 0 or from the defaults
//! are not written.

use std::collections::HashMap;
use std::path::Path;

use spile_core::{DType, Error, Limits, Overwrite, Result, convert};

use super::fields::{GROUPS, Kind, encode_names, is_default};
use super::{Links, Snapshot, Trajectory, Values, field, has_fallback, missing_value};
use crate::read::{HOOMD, STEP};
use crate::wire::{About, Type};
use crate::write::{Mode, Version, Writer};

/// Precision of real numbers in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// `float`, in all versions of the schema.
    #[default]
    Single,
    /// `double`, since schema 2.0.
    Double,
}

/// Appends frames of the HOOMD schema to a file.
pub struct TrajectoryWriter {
    writer: Writer,
    precision: Precision,
    /// Chunks of frame 0 that other frames fall back to.
    first: HashMap<String, Values>,
}

impl TrajectoryWriter {
    /// Creates a file, see [`Writer::create`].
    pub fn create(
        path: impl AsRef<Path>,
        overwrite: Overwrite,
        application: &str,
        precision: Precision,
        mode: Mode,
    ) -> Result<Self> {
        let schema_version = match precision {
            Precision::Single => 1 << 16 | 4,
            Precision::Double => 2 << 16,
        };
        let about = About { application: application.into(), schema: HOOMD.into(), schema_version };
        let writer = Writer::create(path, overwrite, Version::V2_1, &about, mode)?;
        Ok(Self { writer, precision, first: HashMap::new() })
    }

    /// Opens an existing file, see [`Writer::append`]. Fails if its schema is not `hoomd`.
    pub fn append(
        path: impl AsRef<Path>,
        precision: Precision,
        mode: Mode,
        limits: &Limits,
    ) -> Result<Self> {
        Self::from_writer(Writer::append(path, mode, limits)?, precision)
    }

    pub(crate) fn from_writer(mut writer: Writer, precision: Precision) -> Result<Self> {
        let trajectory = Trajectory::new(writer.reader()?.clone())?;
        let resolved = trajectory.resolve(0)?;
        let mut first = HashMap::new();
        for (name, chunk) in resolved.chunks().iter().filter(|(name, _)| has_fallback(name)) {
            first.insert(name.to_string(), resolved.values(chunk)?);
        }
        Ok(Self { writer, precision, first })
    }

    /// The writer of chunks.
    pub fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    /// Names of the logged quantities of frame 0, without `log/`.
    pub fn logged(&self) -> Vec<String> {
        self.first.keys().filter_map(|name| Some(name.strip_prefix("log/")?.into())).collect()
    }

    /// Writes a frame. A logged quantity that is not in `snapshot.log` falls back to frame 0. A quantity
    /// that is `None` there does not: it is written as NaN if frame 0 has it. On failure no part of the
    /// frame is kept, and the call can be repeated.
    pub fn write(&mut self, snapshot: &Snapshot) -> Result<()> {
        if let Err(error) = self.write_chunks(snapshot) {
            self.writer.discard_frame();
            if self.writer.nframes() == 0 {
                self.first.clear();
            }
            return Err(error);
        }
        self.writer.end_frame()
    }

    fn write_chunks(&mut self, snapshot: &Snapshot) -> Result<()> {
        for (name, values) in self.values(snapshot)? {
            if !has_fallback(&name) {
                self.writer.write_chunk(&name, values.kind, values.n, values.m, &values.bytes)?;
                continue;
            }
            let default = is_default(&name, &values);
            // Logged quantities are always written: gsd.hoomd cannot read frames without a logged string.
            let skip = match self.first.get(&name) {
                Some(first) => *first == values && !name.starts_with("log/"),
                None => default,
            };
            if self.writer.nframes() == 0 && !default {
                self.first.insert(name.clone(), values.clone());
            }
            if !skip || self.writer.nframes() == 0 && !default {
                self.writer.write_chunk(&name, values.kind, values.n, values.m, &values.bytes)?;
            }
        }
        Ok(())
    }

    /// The writer of chunks.
    pub(crate) fn into_writer(self) -> Writer {
        self.writer
    }

    /// Commits all frames, syncs and closes the file.
    pub fn close(self) -> Result<()> {
        self.writer.close()
    }

    /// All chunks of a frame, in the order in which they are written.
    fn values(&self, s: &Snapshot) -> Result<Vec<(String, Values)>> {
        let mut out: Vec<(String, Values)> = Vec::new();
        let p = &s.particles;
        out.push((STEP.into(), single(Type::UInt64, 1, s.step.to_le_bytes().to_vec())));
        out.push(("configuration/dimensions".into(), single(Type::UInt8, 1, vec![s.dimensions])));
        let mut add = |name: &str, rows: u32, numbers: &[f64]| -> Result<()> {
            let values = self.encode(name, rows, numbers)?;
            out.push((name.to_string(), values));
            Ok(())
        };
        let unsigned = |v: &[u32]| -> Vec<f64> { v.iter().map(|x| f64::from(*x)).collect() };
        let signed = |v: &[i32]| -> Vec<f64> { v.iter().map(|x| f64::from(*x)).collect() };
        add("configuration/box", 6, &s.box_)?;
        add("particles/typeid", p.n, &unsigned(&p.typeid))?;
        for (name, numbers) in [
            ("particles/mass", &p.mass),
            ("particles/charge", &p.charge),
            ("particles/diameter", &p.diameter),
            ("particles/moment_inertia", &p.moment_inertia),
            ("particles/position", &p.position),
            ("particles/orientation", &p.orientation),
            ("particles/velocity", &p.velocity),
            ("particles/angmom", &p.angmom),
        ] {
            add(name, p.n, numbers)?;
        }
        add("particles/body", p.n, &signed(&p.body))?;
        add("particles/image", p.n, &signed(&p.image))?;
        let links: [&Links; 6] =
            [&s.bonds, &s.angles, &s.dihedrals, &s.impropers, &s.pairs, &s.constraints];
        for (group, links) in GROUPS[1..].iter().zip(links) {
            if *group != "constraints" {
                add(&format!("{group}/typeid"), links.n, &unsigned(&links.typeid))?;
            }
            add(&format!("{group}/group"), links.n, &unsigned(&links.group))?;
        }
        add("constraints/value", s.constraints.n, &s.constraint_value)?;
        let mut count = |group: &str, n: u32| {
            out.push((format!("{group}/N"), single(Type::UInt32, 1, n.to_le_bytes().to_vec())));
        };
        count("particles", p.n);
        for (group, links) in GROUPS[1..].iter().zip(links) {
            count(group, links.n);
        }
        out.push(("particles/types".into(), encode_names(&p.types)));
        out.push(("particles/type_shapes".into(), encode_names(&p.type_shapes)));
        for (group, links) in GROUPS[1..6].iter().zip(links) {
            out.push((format!("{group}/types"), encode_names(&links.types)));
        }
        for (name, values) in &s.log {
            let name = format!("log/{name}");
            match (values, self.first.get(&name)) {
                (Some(values), _) => out.push((name, values.clone())),
                (None, Some(first)) => {
                    let none = missing_value(&name, first.kind, first.n, first.m)?;
                    out.push((name, none));
                }
                (None, None) => {}
            }
        }
        let state = s.state.iter();
        out.extend(state.map(|(name, values)| (format!("state/{name}"), values.clone())));
        Ok(out)
    }

    fn encode(&self, name: &str, rows: u32, numbers: &[f64]) -> Result<Values> {
        let Some(field) = field(name) else {
            return Err(Error::argument(format!("the HOOMD schema has no chunk \"{name}\"")));
        };
        let rows = u64::from(rows);
        if numbers.len() as u64 != rows * field.columns {
            let size = format!("{rows} x {}", field.columns);
            let message = format!("expected {size} numbers, found {}", numbers.len());
            return Err(Error::argument(message).in_object(format!("chunk \"{name}\"")));
        }
        let (kind, dtype) = match (field.kind, self.precision) {
            (Kind::Real, Precision::Single) => (Type::Float, DType::F32),
            (Kind::Real, Precision::Double) => (Type::Double, DType::F64),
            (Kind::I32, _) => (Type::Int32, DType::I32),
            _ => (Type::UInt32, DType::U32),
        };
        let mut bytes = Vec::new();
        convert::from_f64(dtype, None, numbers, &mut bytes);
        Ok(Values { kind, n: rows, m: field.columns, bytes })
    }
}

fn single(kind: Type, n: u64, bytes: Vec<u8>) -> Values {
    Values { kind, n, m: 1, bytes }
}
