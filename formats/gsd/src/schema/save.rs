//! Frames of the HOOMD schema, written with its rules: what frame 0 or the default says already is
//! not written again.

use std::collections::HashMap;
use std::path::Path;

use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::sink::Overwrite;

use super::{GROUPS, Kind, Links, Snapshot, Trajectory, Values, falls_back, field};
use crate::read::{HOOMD, STEP};
use crate::wire::{About, Type};
use crate::write::{Mode, Version, Writer};

/// How real numbers are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precision {
    /// `float`, as all versions of the schema have it.
    #[default]
    Single,
    /// `double`, since schema 2.0.
    Double,
}

/// A file that frames of the HOOMD schema are added to.
pub struct TrajectoryWriter {
    writer: Writer,
    precision: Precision,
    first: HashMap<String, Values>,
}

impl TrajectoryWriter {
    /// Makes a new file.
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

    /// Opens an existing file.
    pub fn append(
        path: impl AsRef<Path>,
        precision: Precision,
        mode: Mode,
        limits: &Limits,
    ) -> Result<Self> {
        Self::on(Writer::append(path, mode, limits)?, precision)
    }

    pub(crate) fn on(mut writer: Writer, precision: Precision) -> Result<Self> {
        let trajectory = Trajectory::new(writer.reader()?.clone())?;
        let resolved = trajectory.resolve(0)?;
        let mut first = HashMap::new();
        for (name, chunk) in resolved.chunks.iter().filter(|(name, _)| falls_back(name)) {
            first.insert(name.to_string(), resolved.values(chunk)?);
        }
        Ok(Self { writer, precision, first })
    }

    /// The writer itself: flush, close.
    pub fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }

    /// The logged quantities of frame 0, without `log/`: a frame that does not write one has that
    /// of frame 0.
    pub fn logged(&self) -> Vec<String> {
        self.first.keys().filter_map(|name| Some(name.strip_prefix("log/")?.into())).collect()
    }

    /// Writes a frame. A logged quantity that is not in `snapshot.log` falls back to frame 0; one
    /// that is there without a value must not, and is written as NaN where frame 0 has it. A frame that
    /// cannot be written as a whole is not begun: it can be tried again.
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
            if !falls_back(&name) {
                self.writer.write_chunk(&name, values.kind, values.n, values.m, &values.bytes)?;
                continue;
            }
            let default = is_default(&name, &values);
            let skip = match self.first.get(&name) {
                Some(first) => *first == values,
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

    /// Commits, waits for the disk and closes the file.
    pub fn close(self) -> Result<()> {
        self.writer.close()
    }

    /// Every chunk of a frame, each with the size that the schema asks for.
    fn values(&self, s: &Snapshot) -> Result<Vec<(String, Values)>> {
        let mut out: Vec<(String, Values)> = Vec::new();
        let p = &s.particles;
        out.push((STEP.into(), whole(Type::UInt64, 1, s.step.to_le_bytes().to_vec())));
        out.push(("configuration/dimensions".into(), whole(Type::UInt8, 1, vec![s.dimensions])));
        let mut add = |name: &str, rows: u32, numbers: &[f64]| -> Result<()> {
            let values = self.encode(name, rows, numbers)?;
            out.push((name.to_string(), values));
            Ok(())
        };
        let reals = |v: &[u32]| -> Vec<f64> { v.iter().map(|x| f64::from(*x)).collect() };
        let signed = |v: &[i32]| -> Vec<f64> { v.iter().map(|x| f64::from(*x)).collect() };
        add("configuration/box", 6, &s.box_)?;
        add("particles/typeid", p.n, &reals(&p.typeid))?;
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
        for ((group, _), links) in GROUPS[1..].iter().zip(links) {
            if *group != "constraints" {
                add(&format!("{group}/typeid"), links.n, &reals(&links.typeid))?;
            }
            add(&format!("{group}/group"), links.n, &reals(&links.group))?;
        }
        add("constraints/value", s.constraints.n, &s.constraint_value)?;
        let mut count = |group: &str, n: u32| {
            out.push((format!("{group}/N"), whole(Type::UInt32, 1, n.to_le_bytes().to_vec())));
        };
        count("particles", p.n);
        for ((group, _), links) in GROUPS[1..].iter().zip(links) {
            count(group, links.n);
        }
        out.push(("particles/types".into(), texts(&p.types)));
        out.push(("particles/type_shapes".into(), texts(&p.type_shapes)));
        for ((group, _), links) in GROUPS[1..6].iter().zip(links) {
            out.push((format!("{group}/types"), texts(&links.types)));
        }
        for (name, values) in &s.log {
            let name = format!("log/{name}");
            match (values, self.first.get(&name)) {
                (Some(values), _) => out.push((name, values.clone())),
                (None, Some(first)) => {
                    let none = no_value(&name, first.kind, first.n, first.m)?;
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
            return Err(Error::argument(format!("\"{name}\" is no chunk of the schema")));
        };
        let rows = u64::from(rows);
        if numbers.len() as u64 != rows * field.columns {
            let message = format!("{} numbers are not {rows} x {}", numbers.len(), field.columns);
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

fn whole(kind: Type, n: u64, bytes: Vec<u8>) -> Values {
    Values { kind, n, m: 1, bytes }
}

/// Names in rows of the same length, a NUL behind the longest. Never one column: the Python
/// package takes that for something without columns.
fn texts(names: &[String]) -> Values {
    let width = names.iter().map(String::len).max().unwrap_or(0).max(1) + 1;
    let mut bytes = Vec::with_capacity(width * names.len());
    for name in names {
        bytes.extend_from_slice(name.as_bytes());
        bytes.resize(bytes.len() + width - name.len(), 0);
    }
    Values { kind: Type::Int8, n: names.len() as u64, m: width as u64, bytes }
}

/// A reader would come to the same values without the chunk.
fn is_default(name: &str, values: &Values) -> bool {
    match name {
        "particles/types" => values.texts() == ["A"],
        "particles/type_shapes" => values.texts() == ["{}"],
        _ => match field(name) {
            Some(field) if field.kind == Kind::Names => values.n == 0,
            Some(field) => {
                // Bit by bit: a negative zero is none that a reader would come to.
                let same = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
                let numbers = values.numbers();
                let rows = field.per.map_or(1, |_| values.n as usize);
                numbers.len() == rows * field.default.len()
                    && numbers.iter().zip(field.default.iter().cycle()).all(same)
            }
            None => false,
        },
    }
}

/// The values that a chunk of the table has where nobody wrote it.
pub(crate) fn default_values(
    name: &str,
    rows: u64,
    double: bool,
    limits: &Limits,
) -> Result<Option<Values>> {
    let Some(field) = field(name) else { return Ok(None) };
    let (kind, dtype) = match field.kind {
        Kind::Real if double => (Type::Double, DType::F64),
        Kind::Real => (Type::Float, DType::F32),
        Kind::U8 => (Type::UInt8, DType::U8),
        Kind::U32 => (Type::UInt32, DType::U32),
        Kind::U64 => (Type::UInt64, DType::U64),
        Kind::I32 => (Type::Int32, DType::I32),
        Kind::Names => {
            return Ok(Some(match name {
                "particles/types" => texts(&["A".into()]),
                "particles/type_shapes" => texts(&["{}".into()]),
                _ => texts(&[]),
            }));
        }
    };
    let row = field.default.len().max(1) as u64;
    let rows = if field.per.is_some() { rows } else { 1 };
    let size = dtype.size() as u64;
    let room = limits.allow(rows.saturating_mul(row * size), "a chunk of defaults")?;
    let mut one = Vec::new();
    convert::from_f64(dtype, None, field.default, &mut one);
    let bytes = one.repeat(room / one.len().max(1));
    Ok(Some(Values { kind, n: rows * row / field.columns, m: field.columns, bytes }))
}

/// What stands for a logged quantity in a frame that lacks it, so that it does not take the value
/// of frame 0. Only real numbers have such a value.
pub(crate) fn no_value(name: &str, kind: Type, n: u64, m: u64) -> Result<Values> {
    let one = match kind {
        Type::Float => f32::NAN.to_le_bytes().to_vec(),
        Type::Double => f64::NAN.to_le_bytes().to_vec(),
        _ => {
            let message = "some frames lack this quantity and would take the first frame's value";
            return Err(Error::unsupported("gsd-035", message)
                .in_object(format!("chunk \"{name}\""))
                .hint("put a frame without it first"));
        }
    };
    Ok(Values { kind, n, m, bytes: one.repeat((n * m) as usize) })
}
