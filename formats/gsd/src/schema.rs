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
//! | this one | the table of chunks; [`Trajectory`]: which chunks a frame has after all rules |
//! | `snapshot` `frame` | [`Snapshot`]: a frame with everything filled in; reading it |
//! | `log` | logged quantities as columns |
//! | `save` | [`TrajectoryWriter`]: frames written with all rules |
//! | `validate` | findings |

mod frame;
mod log;
mod save;
mod snapshot;
mod validate;

use std::collections::HashMap;
use std::sync::Arc;

use spile_core::convert;
use spile_core::error::{Error, Result};
use spile_core::tree::Value;

use crate::read::{Chunk, File, HOOMD, STEP};
use crate::wire::Type;

use frame::Shared;
pub use log::{Log, LogColumn};
pub use save::{Precision, TrajectoryWriter};
pub(crate) use save::{default_values, no_value};
pub use snapshot::{Column, Links, Particles, Snapshot};
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

/// What rows and columns of a chunk are, in words that a person knows.
pub(crate) fn dims(name: &str) -> [&'static str; 2] {
    const MEMBERS: [&str; 7] =
        ["particle", "bond", "angle", "dihedral", "improper", "pair", "constraint"];
    let member = |group: &str| {
        let known = GROUPS.iter().zip(MEMBERS).find(|((known, _), _)| *known == group);
        known.map(|(_, member)| member)
    };
    if let Some(logged) = name.strip_prefix("log/") {
        // Quantities of all particles are logged below the name of their group.
        let group = logged.split('/').next().unwrap_or_default();
        return [member(group).unwrap_or("value"), "component"];
    }
    match field(name) {
        Some(Field { kind: Kind::Names, .. }) => ["type", "letter"],
        Some(Field { per: Some("particles"), columns: 4, .. }) => ["particle", "quaternion"],
        Some(Field { per: Some("particles"), .. }) => ["particle", "xyz"],
        Some(Field { per: Some(group), .. }) => [member(group).unwrap_or("value"), "member"],
        Some(Field { name: "configuration/box", .. }) => ["box_part", "component"],
        _ => ["value", "component"],
    }
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
        texts(&self.bytes, self.m)
    }
}

/// Rows of `width` bytes as text, each up to its first NUL.
fn texts(bytes: &[u8], width: u64) -> Vec<String> {
    let width = usize::try_from(width).unwrap_or(usize::MAX).max(1);
    let row = |bytes: &[u8]| {
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    };
    bytes.chunks(width).map(row).collect()
}

/// A file of the HOOMD schema.
pub struct Trajectory {
    file: File,
    first: HashMap<Arc<str>, Chunk>,
    shared: Shared,
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
        let first = by_name(first);
        let shared = Shared::new(&file, &first);
        Self { file, first, shared }
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
            let first = match self.first.get(name.as_str()) {
                Some(chunk) => count(&self.file, frame, chunk)?,
                None => 0,
            };
            let here = match resolved.chunks.get(name.as_str()) {
                Some(chunk) => count(&self.file, frame, chunk)?,
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

fn by_name(chunks: Vec<Chunk>) -> HashMap<Arc<str>, Chunk> {
    // Of two chunks of a name the last counts, here too.
    chunks.into_iter().map(|chunk| (chunk.name.clone(), chunk)).collect()
}

/// A frame's chunks after the rules of falling back.
pub(crate) struct Resolved<'a> {
    file: &'a File,
    frame: u64,
    pub(crate) chunks: HashMap<Arc<str>, Chunk>,
    /// Members of each group, and whether frame 0 has as many.
    pub(crate) counts: HashMap<&'static str, (u64, bool)>,
}

impl Resolved<'_> {
    pub(crate) fn values(&self, chunk: &Chunk) -> Result<Values> {
        values(self.file, chunk)
    }

    /// Rows that a chunk of the table must have.
    pub(crate) fn rows(&self, field: &Field) -> u64 {
        field.per.map_or(field.rows, |group| self.counts[group].0)
    }

    /// A chunk of the table has the type and size that the schema gives it.
    pub(crate) fn check(&self, chunk: &Chunk, field: &Field) -> Result<()> {
        check(self.file, self.frame, chunk, field, self.rows(field))
    }
}

/// The same for whoever knows how many rows there must be.
fn check(file: &File, frame: u64, chunk: &Chunk, field: &Field, rows: u64) -> Result<()> {
    let kind = chunk.place.kind;
    let fits = match field.kind {
        Kind::Real => matches!(kind, Type::Float | Type::Double),
        Kind::U8 => kind == Type::UInt8,
        // The Python package writes particle numbers with a sign.
        Kind::U32 if field.name.ends_with("/group") => matches!(kind, Type::UInt32 | Type::Int32),
        Kind::U32 => kind == Type::UInt32,
        Kind::U64 => kind == Type::UInt64,
        Kind::I32 => kind == Type::Int32,
        Kind::Names => matches!(kind, Type::Int8 | Type::UInt8 | Type::Character),
    };
    if !fits {
        let message = format!("elements of type {} where others belong", kind.name());
        return Err(wrong(file, frame, chunk, "gsd-040", message));
    }
    let size = (chunk.entry.n, chunk.entry.m);
    if field.kind != Kind::Names && size != (rows, field.columns) {
        let message = format!("{} x {} instead of {rows} x {}", size.0, size.1, field.columns);
        return Err(wrong(file, frame, chunk, "gsd-041", message));
    }
    Ok(())
}

fn wrong(file: &File, frame: u64, chunk: &Chunk, code: &'static str, message: String) -> Error {
    Error::malformed(code, message)
        .in_object(format!("chunk \"{}\"", chunk.name))
        .in_frame(frame)
        .at(file.index.offset(chunk.number))
}

/// The elements of a chunk.
fn values(file: &File, chunk: &Chunk) -> Result<Values> {
    let (n, m) = (chunk.entry.n, chunk.entry.m);
    Ok(Values { kind: chunk.place.kind, n, m, bytes: file.read_chunk(chunk)? })
}

/// The number in a chunk that counts something, of whatever integer type.
fn count(file: &File, frame: u64, chunk: &Chunk) -> Result<u64> {
    let size = chunk.place.kind.size();
    let bad = |message: String| Err(wrong(file, frame, chunk, "gsd-041", message));
    if chunk.place.len < size {
        return bad("no element where there is one".into());
    }
    let mut bytes = [0; 8];
    let bytes = &mut bytes[..size as usize];
    file.source().read_exact_at(chunk.place.offset, bytes)?;
    let number = convert::element_f64(chunk.place.kind.dtype(), bytes);
    if !(0.0..=f64::from(u32::MAX)).contains(&number) {
        return bad(format!("{number} is no count"));
    }
    Ok(number as u64)
}

/// What a person wants to know first about a HOOMD file. What cannot be read is left out; `check`
/// tells about it.
pub(crate) fn summary(file: &File) -> Vec<(String, Value)> {
    let mut rows = Vec::new();
    let Ok(trajectory) = Trajectory::new(file.clone()) else { return rows };
    let Ok(first) = trajectory.resolve(0) else { return rows };
    if file.nchunks() > 0 {
        rows.push(("particles".into(), Value::UInt(first.counts["particles"].0)));
        let types = match first.chunks.get("particles/types") {
            Some(chunk) => first.values(chunk).map(|values| values.texts()),
            None => Ok(vec!["A".into()]),
        };
        if let Ok(types) = types {
            rows.push(("particle types".into(), types.join(", ").into()));
        }
        if let Ok(Some(step)) = file.last_step() {
            rows.push(("last step".into(), step.into()));
        }
    }
    rows
}
