//! The chunks of a frame after the fallback to frame 0.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use spile_core::{Error, Limits, Result, convert};

use super::fields::{COUNTS, FIELDS, Field, GROUPS, Kind};
use super::read::Decoded;
use super::{Values, strings};
use crate::read::{Chunk, File, HOOMD};
use crate::wire::Type;

/// Meaning of a chunk name.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    /// Position in [`FIELDS`].
    Field(usize),
    /// Position among the logged quantities.
    Log(usize),
    Other,
}

/// Number of members of each group of [`GROUPS`].
type Counts = [u64; GROUPS.len()];

/// The chunks of one frame. Of several chunks with the same name the last one is used.
pub(super) struct FrameChunks {
    /// By position in [`FIELDS`].
    pub(super) fields: Vec<Option<Chunk>>,
    /// By position among the logged quantities.
    pub(super) logs: Vec<Option<Chunk>>,
    /// Integrator state, and chunks that the schema does not define.
    pub(super) other: Vec<Chunk>,
}

impl FrameChunks {
    fn new(meanings: &[Meaning], logs: usize, chunks: Vec<Chunk>) -> Self {
        let (fields, logs) = (vec![None; FIELDS.len()], vec![None; logs]);
        let mut own = Self { fields, logs, other: Vec::new() };
        for chunk in chunks {
            match meanings.get(chunk.entry.id as usize) {
                Some(Meaning::Field(at)) => own.fields[*at] = Some(chunk),
                Some(Meaning::Log(at)) => own.logs[*at] = Some(chunk),
                Some(Meaning::Other) | None => own.other.push(chunk),
            }
        }
        own
    }
}

/// A file of the HOOMD schema.
pub struct Trajectory {
    file: File,
    /// By name id.
    meanings: Vec<Meaning>,
    /// Names of the logged quantities, without `log/`.
    pub(super) log_names: Vec<String>,
    first: FrameChunks,
    first_counts: OnceLock<Counts>,
    /// Decoded values that frames share, by position in [`FIELDS`].
    pub(super) decoded: Vec<Decoded>,
}

impl Trajectory {
    /// Fails if the schema of the file is not `hoomd`, or if frame 0 cannot be read.
    pub fn new(file: File) -> Result<Self> {
        let schema = &file.header().schema;
        if schema != HOOMD {
            let message = format!("expected schema \"{HOOMD}\", found \"{schema}\"");
            return Err(Error::argument(message));
        }
        let first = file.frame(0)?;
        Ok(Self::with_first_frame(file, first))
    }

    /// A trajectory with the given chunks of frame 0, for damaged files.
    pub(crate) fn with_first_frame(file: File, first: Vec<Chunk>) -> Self {
        let (mut meanings, mut log_names) = (Vec::new(), Vec::new());
        for id in 0..file.index.names.len() as u32 {
            let name = file.index.names.display(id);
            let field = FIELDS.iter().position(|field| field.name == &*name);
            meanings.push(match (field, name.strip_prefix("log/")) {
                (Some(at), _) => Meaning::Field(at),
                (None, Some(logged)) => {
                    log_names.push(logged.to_string());
                    Meaning::Log(log_names.len() - 1)
                }
                (None, None) => Meaning::Other,
            });
        }
        let first = FrameChunks::new(&meanings, log_names.len(), first);
        let decoded = FIELDS.iter().map(|_| Decoded::default()).collect();
        Self { file, meanings, log_names, first, first_counts: OnceLock::new(), decoded }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Number of frames.
    pub fn len(&self) -> Result<u64> {
        self.file.nframes()
    }

    /// There are no frames.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// The chunk that contains the values of `name` in a frame: its own, or that of frame 0. None if
    /// they are the default.
    pub fn chunk(&self, frame: u64, name: &str) -> Result<Option<Chunk>> {
        Ok(self.resolve(frame)?.chunks().remove(name))
    }

    /// Applies the fallback to the chunks of a frame.
    pub(crate) fn resolve(&self, frame: u64) -> Result<Resolved<'_>> {
        self.resolve_chunks(frame, self.file.frame(frame)?)
    }

    /// Applies the fallback to a frame that contains `chunks`.
    pub(crate) fn resolve_chunks(&self, frame: u64, chunks: Vec<Chunk>) -> Result<Resolved<'_>> {
        let own = FrameChunks::new(&self.meanings, self.log_names.len(), chunks);
        let first = if let Some(counts) = self.first_counts.get() {
            *counts
        } else {
            let counts = self.counts(frame, &self.first, [0; GROUPS.len()])?;
            *self.first_counts.get_or_init(|| counts)
        };
        let counts = self.counts(frame, &own, first)?;
        Ok(Resolved { trajectory: self, frame, own, counts, first })
    }

    /// Reads the chunks `<group>/N`; a missing one has the value in `counts`.
    fn counts(&self, frame: u64, chunks: &FrameChunks, mut counts: Counts) -> Result<Counts> {
        for (count, at) in counts.iter_mut().zip(COUNTS) {
            if let Some(chunk) = &chunks.fields[at] {
                *count = read_count(&self.file, frame, chunk)?;
            }
        }
        Ok(counts)
    }
}

/// Reads a count of any integer type.
pub(super) fn read_count(file: &File, frame: u64, chunk: &Chunk) -> Result<u64> {
    let size = chunk.data.kind.size();
    if !chunk.data.kind.dtype().is_integer() {
        let message = format!("expected an integer type, found {}", chunk.data.kind.name());
        return Err(field_error(file, frame, chunk, "gsd-040", message));
    }
    let bad = |message: String| Err(field_error(file, frame, chunk, "gsd-041", message));
    if chunk.data.len < size {
        return bad("expected 1 element, found 0".into());
    }
    let mut bytes = [0; 8];
    let bytes = &mut bytes[..size as usize];
    file.source().read_exact_at(chunk.data.offset, bytes)?;
    let number = convert::element_f64(chunk.data.kind.dtype(), bytes);
    if !(0.0..=f64::from(u32::MAX)).contains(&number) {
        return bad(format!("expected a count, found {number}"));
    }
    Ok(number as u64)
}

/// Where the values of a field come from.
pub(super) enum Origin<'a> {
    Own(&'a Chunk),
    First(&'a Chunk),
    Default,
}

/// The chunks of a frame after the fallback to frame 0.
pub(crate) struct Resolved<'a> {
    pub(super) trajectory: &'a Trajectory,
    pub(super) frame: u64,
    pub(super) own: FrameChunks,
    pub(crate) counts: Counts,
    first: Counts,
}

impl Resolved<'_> {
    pub(crate) fn limits(&self) -> &Limits {
        self.trajectory.file().index.limits()
    }

    /// Origin of the field at a position in [`FIELDS`].
    pub(super) fn origin(&self, at: usize) -> Origin<'_> {
        let same = FIELDS[at].group().is_none_or(|k| self.counts[k] == self.first[k]);
        match (&self.own.fields[at], &self.trajectory.first.fields[at]) {
            (Some(own), _) => Origin::Own(own),
            (None, Some(first)) if same => Origin::First(first),
            _ => Origin::Default,
        }
    }

    /// The chunk of the field at a position in [`FIELDS`]; none if it has the default.
    pub(super) fn field(&self, at: usize) -> Option<&Chunk> {
        match self.origin(at) {
            Origin::Own(chunk) | Origin::First(chunk) => Some(chunk),
            Origin::Default => None,
        }
    }

    /// The chunk of a logged quantity.
    pub(super) fn log(&self, at: usize) -> Option<&Chunk> {
        self.own.logs[at].as_ref().or(self.trajectory.first.logs[at].as_ref())
    }

    /// All chunks by name.
    pub(crate) fn chunks(&self) -> HashMap<Arc<str>, Chunk> {
        let fields = (0..FIELDS.len()).filter_map(|at| self.field(at));
        let logs = (0..self.own.logs.len()).filter_map(|at| self.log(at));
        let all = fields.chain(logs).chain(&self.own.other);
        all.map(|chunk| (chunk.name.clone(), chunk.clone())).collect()
    }

    pub(crate) fn values(&self, chunk: &Chunk) -> Result<Values> {
        let (n, m) = (chunk.entry.n, chunk.entry.m);
        let bytes = self.trajectory.file.read_chunk(chunk)?;
        Ok(Values { kind: chunk.data.kind, n, m, bytes })
    }

    /// The strings of the field at a position in [`FIELDS`].
    pub(super) fn strings(&self, at: usize) -> Result<Vec<String>> {
        match self.field(at) {
            Some(chunk) => Ok(strings(&self.trajectory.file.read_chunk(chunk)?, chunk.entry.m)),
            None => Ok(FIELDS[at].default_names()),
        }
    }

    /// Number of rows that the field must have.
    pub(crate) fn rows(&self, field: &Field) -> u64 {
        field.group().map_or(field.rows, |group| self.counts[group])
    }

    /// Fails if type or size of the chunk of a field do not match the schema.
    pub(super) fn check(&self, chunk: &Chunk, field: &Field) -> Result<()> {
        let kind = chunk.data.kind;
        let error = |code, message| {
            Err(field_error(&self.trajectory.file, self.frame, chunk, code, message))
        };
        let (fits, expected) = match field.kind {
            Kind::Real => (matches!(kind, Type::Float | Type::Double), "float or double"),
            Kind::U8 => (kind == Type::UInt8, "uint8"),
            // The Python package writes particle indices as signed integers.
            Kind::U32 if field.name.ends_with("/group") => {
                (matches!(kind, Type::UInt32 | Type::Int32), "uint32 or int32")
            }
            Kind::U32 => (kind == Type::UInt32, "uint32"),
            Kind::U64 => (kind == Type::UInt64, "uint64"),
            Kind::I32 => (kind == Type::Int32, "int32"),
            Kind::Names => {
                (matches!(kind, Type::Int8 | Type::UInt8 | Type::Character), "int8 or character")
            }
        };
        if !fits {
            let message = format!("expected element type {expected}, found {}", kind.name());
            return error("gsd-040", message);
        }
        let (size, rows) = ((chunk.entry.n, chunk.entry.m), self.rows(field));
        if field.kind != Kind::Names && size != (rows, field.columns) {
            let message =
                format!("expected size {rows} x {}, found {} x {}", field.columns, size.0, size.1);
            return error("gsd-041", message);
        }
        Ok(())
    }
}

/// An error about the chunk of a frame, at the offset of its index entry.
pub(super) fn field_error(
    file: &File,
    frame: u64,
    chunk: &Chunk,
    code: &'static str,
    message: String,
) -> Error {
    Error::malformed(code, message)
        .in_object(format!("chunk \"{}\"", chunk.name))
        .in_frame(frame)
        .at(file.index.offset(chunk.number))
}
