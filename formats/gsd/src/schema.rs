//! The HOOMD schema: which chunks there are, what they mean, and what a frame has that does not
//! write them.
//!
//! A chunk that a frame does not have is that of frame 0; one for each particle or bond only if
//! there are as many of them. Where frame 0 does not have it either, there is a default. Logged
//! quantities fall back in the same way and have no default; the state of integrators, and what
//! the schema does not know, is in the frames that write it and in no other.
//!
//! | file | what is in it |
//! |---|---|
//! | this one | the table of chunks; [`Trajectory`] and [`Snapshot`]: frames read with all rules |
//! | `log` | logged quantities as columns |
//! | `save` | [`TrajectoryWriter`]: frames written with all rules |
//! | `validate` | findings |

mod log;
mod save;
mod validate;

use std::collections::{BTreeMap, HashMap};

use spile_core::convert;
use spile_core::error::{Error, Result};
use spile_core::tree::Value;

use crate::read::{Chunk, File, HOOMD, STEP};
use crate::wire::Type;

pub use log::{Log, LogColumn};
pub use save::{Precision, TrajectoryWriter};
pub(crate) use save::{default_values, no_value};
pub(crate) use validate::validate;

/// What the elements of a chunk are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `float`, or `double` since schema 2.0.
    Real,
    U8,
    U32,
    U64,
    I32,
    /// Names in rows, each filled up with NUL.
    Names,
}

/// A chunk of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) columns: u64,
    /// One row for each particle, bond, ...: the group that counts them.
    pub(crate) per: Option<&'static str>,
    /// Rows that are always there, where they are not counted.
    pub(crate) rows: u64,
    /// The columns of a row that nobody wrote.
    pub(crate) default: &'static [f64],
}

const fn one(name: &'static str, kind: Kind, rows: u64, default: &'static [f64]) -> Field {
    Field { name, kind, columns: 1, per: None, rows, default }
}

const fn each(
    name: &'static str,
    group: &'static str,
    kind: Kind,
    columns: u64,
    default: &'static [f64],
) -> Field {
    Field { name, kind, columns, per: Some(group), rows: 0, default }
}

/// The groups that count their members.
pub(crate) const GROUPS: [(&str, u64); 7] = [
    ("particles", 0),
    ("bonds", 2),
    ("angles", 3),
    ("dihedrals", 4),
    ("impropers", 4),
    ("pairs", 2),
    ("constraints", 2),
];

/// Every chunk of the schema but logs and state.
pub(crate) const FIELDS: [Field; 40] = [
    one(STEP, Kind::U64, 1, &[0.0]),
    one("configuration/dimensions", Kind::U8, 1, &[3.0]),
    one("configuration/box", Kind::Real, 6, &[1.0, 1.0, 1.0, 0.0, 0.0, 0.0]),
    one("particles/N", Kind::U32, 1, &[0.0]),
    one("particles/types", Kind::Names, 0, &[]),
    one("particles/type_shapes", Kind::Names, 0, &[]),
    each("particles/typeid", "particles", Kind::U32, 1, &[0.0]),
    each("particles/mass", "particles", Kind::Real, 1, &[1.0]),
    each("particles/charge", "particles", Kind::Real, 1, &[0.0]),
    each("particles/diameter", "particles", Kind::Real, 1, &[1.0]),
    each("particles/body", "particles", Kind::I32, 1, &[-1.0]),
    each("particles/moment_inertia", "particles", Kind::Real, 3, &[0.0; 3]),
    each("particles/position", "particles", Kind::Real, 3, &[0.0; 3]),
    each("particles/orientation", "particles", Kind::Real, 4, &[1.0, 0.0, 0.0, 0.0]),
    each("particles/velocity", "particles", Kind::Real, 3, &[0.0; 3]),
    each("particles/angmom", "particles", Kind::Real, 4, &[0.0; 4]),
    each("particles/image", "particles", Kind::I32, 3, &[0.0; 3]),
    one("bonds/N", Kind::U32, 1, &[0.0]),
    one("bonds/types", Kind::Names, 0, &[]),
    each("bonds/typeid", "bonds", Kind::U32, 1, &[0.0]),
    each("bonds/group", "bonds", Kind::U32, 2, &[0.0; 2]),
    one("angles/N", Kind::U32, 1, &[0.0]),
    one("angles/types", Kind::Names, 0, &[]),
    each("angles/typeid", "angles", Kind::U32, 1, &[0.0]),
    each("angles/group", "angles", Kind::U32, 3, &[0.0; 3]),
    one("dihedrals/N", Kind::U32, 1, &[0.0]),
    one("dihedrals/types", Kind::Names, 0, &[]),
    each("dihedrals/typeid", "dihedrals", Kind::U32, 1, &[0.0]),
    each("dihedrals/group", "dihedrals", Kind::U32, 4, &[0.0; 4]),
    one("impropers/N", Kind::U32, 1, &[0.0]),
    one("impropers/types", Kind::Names, 0, &[]),
    each("impropers/typeid", "impropers", Kind::U32, 1, &[0.0]),
    each("impropers/group", "impropers", Kind::U32, 4, &[0.0; 4]),
    one("pairs/N", Kind::U32, 1, &[0.0]),
    one("pairs/types", Kind::Names, 0, &[]),
    each("pairs/typeid", "pairs", Kind::U32, 1, &[0.0]),
    each("pairs/group", "pairs", Kind::U32, 2, &[0.0; 2]),
    one("constraints/N", Kind::U32, 1, &[0.0]),
    each("constraints/value", "constraints", Kind::Real, 1, &[0.0]),
    each("constraints/group", "constraints", Kind::U32, 2, &[0.0; 2]),
];

/// A frame that lacks this chunk has that of frame 0.
pub(crate) fn falls_back(name: &str) -> bool {
    name.starts_with("log/") || field(name).is_some()
}

/// The row of the table for a chunk.
pub(crate) fn field(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == name)
}

/// The elements of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    /// Element type.
    pub kind: Type,
    /// Rows.
    pub n: u64,
    /// Columns.
    pub m: u64,
    /// Little-endian elements, row after row.
    pub bytes: Vec<u8>,
}

impl Values {
    /// The elements as numbers; integers of 64 bits are rounded.
    pub fn numbers(&self) -> Vec<f64> {
        let mut out = Vec::new();
        convert::to_f64(self.kind.dtype(), None, &self.bytes, &mut out);
        out
    }

    /// Rows as text, as types are stored.
    pub fn texts(&self) -> Vec<String> {
        let width = usize::try_from(self.m).unwrap_or(usize::MAX).max(1);
        let row = |bytes: &[u8]| {
            let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
            String::from_utf8_lossy(&bytes[..end]).into_owned()
        };
        self.bytes.chunks(width).map(row).collect()
    }
}

/// Everything in a frame that is counted in pairs, triples, ...
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Links {
    /// How many.
    pub n: u32,
    /// Names of the types.
    pub types: Vec<String>,
    /// Type of each.
    pub typeid: Vec<u32>,
    /// Particles of each, row after row.
    pub group: Vec<u32>,
}

/// The particles of a frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Particles {
    /// How many.
    pub n: u32,
    /// Names of the types.
    pub types: Vec<String>,
    /// Shape of each type, as JSON.
    pub type_shapes: Vec<String>,
    /// Type of each particle.
    pub typeid: Vec<u32>,
    /// Mass.
    pub mass: Vec<f64>,
    /// Charge.
    pub charge: Vec<f64>,
    /// Diameter.
    pub diameter: Vec<f64>,
    /// Body the particle belongs to; -1 for none.
    pub body: Vec<i32>,
    /// Moment of inertia, three numbers each.
    pub moment_inertia: Vec<f64>,
    /// Position, three numbers each.
    pub position: Vec<f64>,
    /// Orientation, a quaternion each.
    pub orientation: Vec<f64>,
    /// Velocity, three numbers each.
    pub velocity: Vec<f64>,
    /// Angular momentum, a quaternion each.
    pub angmom: Vec<f64>,
    /// Box images passed, three numbers each.
    pub image: Vec<i32>,
}

/// A frame with everything filled in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Time step.
    pub step: u64,
    /// 2 or 3.
    pub dimensions: u8,
    /// Lx, Ly, Lz, xy, xz, yz.
    pub box_: [f64; 6],
    /// The particles.
    pub particles: Particles,
    /// Bonds, pairs of particles.
    pub bonds: Links,
    /// Angles, triples.
    pub angles: Links,
    /// Dihedrals, four each.
    pub dihedrals: Links,
    /// Impropers, four each.
    pub impropers: Links,
    /// Special pairs.
    pub pairs: Links,
    /// Distance constraints: pairs in `group`, no types.
    pub constraints: Links,
    /// Length of each constraint.
    pub constraint_value: Vec<f64>,
    /// Logged quantities by name, without `log/`. Nothing where neither the frame nor frame 0 has
    /// the quantity: the schema asks for it in frame 0, and then there is no value to fall back to.
    pub log: BTreeMap<String, Option<Values>>,
    /// State of integrators, by name, without `state/`.
    pub state: BTreeMap<String, Values>,
}

/// A file of the HOOMD schema.
pub struct Trajectory {
    file: File,
    first: HashMap<String, Chunk>,
}

impl Trajectory {
    /// Takes a file whose schema is `hoomd`.
    pub fn new(file: File) -> Result<Self> {
        let schema = &file.header().schema;
        if schema != HOOMD {
            return Err(Error::argument(format!("the schema is \"{schema}\", not \"{HOOMD}\"")));
        }
        let first = file.frame(0)?;
        Ok(Self::behind(file, first))
    }

    /// The same with the chunks that frame 0 has or, in a damaged file, had.
    pub(crate) fn behind(file: File, first: Vec<Chunk>) -> Self {
        Self { file, first: by_name(first) }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Number of frames.
    pub fn len(&self) -> Result<u64> {
        self.file.nframes()
    }

    /// No frames.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// A frame with everything filled in.
    pub fn read(&self, frame: u64) -> Result<Snapshot> {
        let frames = self.len()?;
        if frame >= frames {
            return Err(Error::argument(format!(
                "there is no frame {frame}; the file has {frames}"
            )));
        }
        let view = self.resolve(frame)?;
        view.allow_all()?;
        let mut out = Snapshot {
            step: view.one(STEP)? as u64,
            dimensions: view.one("configuration/dimensions")? as u8,
            particles: view.particles()?,
            bonds: view.links("bonds")?,
            angles: view.links("angles")?,
            dihedrals: view.links("dihedrals")?,
            impropers: view.links("impropers")?,
            pairs: view.links("pairs")?,
            constraints: view.links("constraints")?,
            constraint_value: view.reals("constraints/value")?,
            ..Snapshot::default()
        };
        let edges = view.reals("configuration/box")?;
        for (edge, value) in out.box_.iter_mut().zip(edges) {
            *edge = value;
        }
        // Exact where a number of 64 bits would be rounded.
        if let Some(step) = self.file.step(frame)? {
            out.step = step;
        }
        for name in self.file.find_matching_names("log/") {
            let value = view.chunks.get(&name).map(|chunk| view.values(chunk)).transpose()?;
            out.log.insert(name["log/".len()..].to_string(), value);
        }
        for (name, chunk) in &view.chunks {
            if let Some(short) = name.strip_prefix("state/") {
                out.state.insert(short.to_string(), view.values(chunk)?);
            }
        }
        Ok(out)
    }

    /// Where the values of a chunk come from that the frame does not have.
    pub(crate) fn instead(&self, frame: u64, name: &str) -> Result<Option<String>> {
        if !falls_back(name) {
            return Ok(None);
        }
        if self.resolve(frame)?.chunks.contains_key(name) {
            return Ok(Some("in the hoomd schema that of frame 0 counts here: --frame 0".into()));
        }
        let Some(field) = field(name) else {
            return Ok(Some("frame 0 does not have it either: there is no value here".into()));
        };
        let numbers = field.default.iter().map(f64::to_string).collect::<Vec<_>>().join(" ");
        let default = match (name, field.per) {
            ("particles/types", _) => "A".into(),
            ("particles/type_shapes", _) => "{}".into(),
            (_, Some(_)) => format!("{numbers} in each row"),
            (_, None) if numbers.is_empty() => "none".into(),
            (_, None) => numbers,
        };
        Ok(Some(format!("in the hoomd schema the default counts here: {default}")))
    }

    /// The chunks that a frame has or takes from frame 0.
    pub(crate) fn resolve(&self, frame: u64) -> Result<Resolved<'_>> {
        self.resolve_with(frame, self.file.frame(frame)?)
    }

    /// The same for a frame whose own chunks are known.
    pub(crate) fn resolve_with(&self, frame: u64, own: Vec<Chunk>) -> Result<Resolved<'_>> {
        let chunks = by_name(own);
        let mut resolved = Resolved { file: &self.file, frame, chunks, counts: HashMap::new() };
        for (group, _) in GROUPS {
            let name = format!("{group}/N");
            let first = match self.first.get(&name) {
                Some(chunk) => resolved.count(chunk)?,
                None => 0,
            };
            let here = match resolved.chunks.get(&name) {
                Some(chunk) => resolved.count(chunk)?,
                None => first,
            };
            resolved.counts.insert(group, (here, here == first));
        }
        for (name, chunk) in self.first.iter().filter(|(name, _)| falls_back(name)) {
            let counted = field(name).and_then(|field| field.per);
            let same = counted.is_none_or(|group| resolved.counts[group].1);
            if same && !resolved.chunks.contains_key(name) {
                resolved.chunks.insert(name.clone(), chunk.clone());
            }
        }
        Ok(resolved)
    }
}

fn by_name(chunks: Vec<Chunk>) -> HashMap<String, Chunk> {
    // Of two chunks of a name the last counts, here too.
    chunks.into_iter().map(|chunk| (chunk.name.clone(), chunk)).collect()
}

/// A frame's chunks after the rules of falling back.
pub(crate) struct Resolved<'a> {
    file: &'a File,
    frame: u64,
    pub(crate) chunks: HashMap<String, Chunk>,
    /// Members of each group, and whether frame 0 has as many.
    pub(crate) counts: HashMap<&'static str, (u64, bool)>,
}

impl Resolved<'_> {
    pub(crate) fn values(&self, chunk: &Chunk) -> Result<Values> {
        let (n, m) = (chunk.entry.n, chunk.entry.m);
        Ok(Values { kind: chunk.place.kind, n, m, bytes: self.file.read_chunk(chunk)? })
    }

    /// The first element of a chunk.
    fn number(&self, chunk: &Chunk) -> Result<f64> {
        let size = chunk.place.kind.size();
        if chunk.place.len < size {
            return Err(self.wrong(chunk, "gsd-041", "no element where there is one".into()));
        }
        let bytes = self.file.source().read_vec(chunk.place.offset, size)?;
        Ok(convert::element_f64(chunk.place.kind.dtype(), &bytes))
    }

    /// How many there are, of whatever integer type.
    fn count(&self, chunk: &Chunk) -> Result<u64> {
        let number = self.number(chunk)?;
        if !(0.0..=f64::from(u32::MAX)).contains(&number) {
            return Err(self.wrong(chunk, "gsd-041", format!("{number} is no count")));
        }
        Ok(number as u64)
    }

    fn wrong(&self, chunk: &Chunk, code: &'static str, message: String) -> Error {
        let at = self.file.index.offset(chunk.number);
        Error::malformed(code, message)
            .in_object(format!("chunk \"{}\"", chunk.name))
            .in_frame(self.frame)
            .at(at)
    }

    /// Rows that a chunk of the table must have.
    pub(crate) fn rows(&self, field: &Field) -> u64 {
        field.per.map_or(field.rows, |group| self.counts[group].0)
    }

    /// A chunk of the table has the type and size that the schema gives it.
    pub(crate) fn check(&self, chunk: &Chunk, field: &Field) -> Result<()> {
        let kind = chunk.place.kind;
        let fits = match field.kind {
            Kind::Real => matches!(kind, Type::Float | Type::Double),
            Kind::U8 => kind == Type::UInt8,
            // The Python package writes particle numbers with a sign.
            Kind::U32 if field.name.ends_with("/group") => {
                matches!(kind, Type::UInt32 | Type::Int32)
            }
            Kind::U32 => kind == Type::UInt32,
            Kind::U64 => kind == Type::UInt64,
            Kind::I32 => kind == Type::Int32,
            Kind::Names => matches!(kind, Type::Int8 | Type::UInt8 | Type::Character),
        };
        if !fits {
            let message = format!("elements of type {} where others belong", kind.name());
            return Err(self.wrong(chunk, "gsd-040", message));
        }
        let (rows, size) = (self.rows(field), (chunk.entry.n, chunk.entry.m));
        if field.kind != Kind::Names && size != (rows, field.columns) {
            let message = format!("{} x {} instead of {rows} x {}", size.0, size.1, field.columns);
            return Err(self.wrong(chunk, "gsd-041", message));
        }
        Ok(())
    }

    /// The elements of a chunk of the table; nothing where it has its default.
    fn known(&self, name: &str) -> Result<Option<Values>> {
        let (Some(chunk), Some(field)) = (self.chunks.get(name), field(name)) else {
            return Ok(None);
        };
        self.check(chunk, field)?;
        self.values(chunk).map(Some)
    }

    /// Everything that is counted in this frame fits the budget, whether it is in the file or has
    /// to be made of defaults: a count is four bytes, what it asks for may be anything.
    fn allow_all(&self) -> Result<()> {
        let numbers = |field: &Field| field.per.map_or(0, |_| self.rows(field) * field.columns);
        let all: u64 = FIELDS.iter().map(numbers).fold(0, u64::saturating_add);
        self.file.index.limits().allow(all.saturating_mul(8), "the frame").map(drop)
    }

    fn reals(&self, name: &str) -> Result<Vec<f64>> {
        if let Some(values) = self.known(name)? {
            return Ok(values.numbers());
        }
        let Some(field) = field(name) else { return Ok(Vec::new()) };
        let rows = field.per.map_or(1, |_| self.rows(field));
        Ok(field.default.repeat(rows as usize))
    }

    fn one(&self, name: &str) -> Result<f64> {
        Ok(self.reals(name)?.first().copied().unwrap_or(0.0))
    }

    fn integers<T: convert::Number>(&self, name: &str, default: T) -> Result<Vec<T>> {
        match self.known(name)? {
            Some(values) => Ok(convert::decode(&values.bytes)),
            None => {
                let count = field(name).map_or(0, |field| self.rows(field) * field.columns);
                Ok(vec![default; count as usize])
            }
        }
    }

    fn names(&self, name: &str, default: &[&str]) -> Result<Vec<String>> {
        Ok(match self.known(name)? {
            Some(values) => values.texts(),
            None => default.iter().map(ToString::to_string).collect(),
        })
    }

    fn links(&self, group: &'static str) -> Result<Links> {
        let name = |part: &str| format!("{group}/{part}");
        Ok(Links {
            n: self.counts[group].0 as u32,
            types: self.names(&name("types"), &[])?,
            typeid: self.integers(&name("typeid"), 0)?,
            group: self.integers(&name("group"), 0)?,
        })
    }

    fn particles(&self) -> Result<Particles> {
        Ok(Particles {
            n: self.counts["particles"].0 as u32,
            types: self.names("particles/types", &["A"])?,
            type_shapes: self.names("particles/type_shapes", &["{}"])?,
            typeid: self.integers("particles/typeid", 0)?,
            mass: self.reals("particles/mass")?,
            charge: self.reals("particles/charge")?,
            diameter: self.reals("particles/diameter")?,
            body: self.integers("particles/body", -1)?,
            moment_inertia: self.reals("particles/moment_inertia")?,
            position: self.reals("particles/position")?,
            orientation: self.reals("particles/orientation")?,
            velocity: self.reals("particles/velocity")?,
            angmom: self.reals("particles/angmom")?,
            image: self.integers("particles/image", 0)?,
        })
    }
}

/// What a person wants to know first about a HOOMD file. What cannot be read is left out; `check`
/// tells about it.
pub(crate) fn summary(file: &File) -> Vec<(String, Value)> {
    let mut rows = Vec::new();
    let Ok(trajectory) = Trajectory::new(file.clone()) else { return rows };
    let Ok(first) = trajectory.resolve(0) else { return rows };
    if file.nchunks() > 0 {
        rows.push(("particles".into(), Value::UInt(first.counts["particles"].0)));
        if let Ok(types) = first.names("particles/types", &["A"]) {
            rows.push(("particle types".into(), types.join(", ").into()));
        }
        if let Ok(Some(step)) = file.last_step() {
            rows.push(("last step".into(), step.into()));
        }
    }
    rows
}
