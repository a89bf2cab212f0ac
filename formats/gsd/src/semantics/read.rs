//! Reading frames. Values that frames share, those of frame 0 and defaults, are decoded once.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use spile_core::convert::{self, Number};
use spile_core::{Error, Result};

use super::fields::{COUNTS, FIELDS, Field, GROUPS, position};
use super::resolve::{Origin, Resolved, Trajectory};
use super::snapshot::{Column, Links, Particles, Snapshot};
use super::{Values, strings};
use crate::read::{Chunk, STEP};
use crate::wire::Type;

/// Maximum number of bytes that are read at once for a frame, and of unused bytes among them.
const MAX_READ: u64 = 1 << 20;
const MAX_GAP: u64 = 4 << 10;

/// A column of any type.
type Shared = Box<dyn Any + Send + Sync>;

fn unpack<T: Number>(shared: &Shared) -> Option<Column<T>> {
    shared.downcast_ref::<Column<T>>().cloned()
}

/// Decodes numbers. Real numbers may have another precision; integers are of the same size.
fn decode<T: Number>(kind: Type, bytes: &[u8]) -> Vec<T> {
    if kind.size() == T::SIZE as u64 {
        return convert::decode(bytes);
    }
    let mut numbers = Vec::new();
    convert::to_f64(kind.dtype(), None, bytes, &mut numbers);
    numbers.into_iter().map(T::from_f64).collect()
}

/// Decoded values of a field that frames share.
#[derive(Default)]
pub(super) struct Decoded {
    /// Numbers of frame 0.
    first: OnceLock<Shared>,
    /// Strings of frame 0.
    strings: OnceLock<Vec<String>>,
    /// Defaults for a number of rows.
    default: Mutex<Option<(u64, Shared)>>,
}

impl Trajectory {
    /// Reads a frame. Missing chunks are taken from frame 0, or have the default of the schema.
    pub fn read(&self, frame: u64) -> Result<Snapshot> {
        let frames = self.len()?;
        if frame >= frames {
            return Err(Error::argument(format!("no frame {frame}; the file has {frames} frames")));
        }
        FrameReader::new(self.resolve(frame)?)?.snapshot()
    }
}

/// A frame that is being read.
struct FrameReader<'a> {
    resolved: Resolved<'a>,
    /// Bytes of the file from `start` on, with all chunks of the frame if they are contiguous.
    bytes: Vec<u8>,
    start: u64,
}

impl<'a> FrameReader<'a> {
    fn new(resolved: Resolved<'a>) -> Result<Self> {
        let own = &resolved.own;
        let (mut start, mut end, mut sum) = (u64::MAX, 0, 0_u64);
        for chunk in own.fields.iter().chain(&own.logs).flatten().chain(&own.other) {
            start = start.min(chunk.data.offset);
            end = end.max(chunk.data.offset + chunk.data.len);
            sum = sum.saturating_add(chunk.data.len);
        }
        // One read for all chunks if little else is between them.
        let span = end.saturating_sub(start);
        let mut bytes = Vec::new();
        if span > 0 && span <= MAX_READ && span <= sum.saturating_add(MAX_GAP) {
            bytes = resolved.trajectory.file().source().read_vec(start, span)?;
        }
        Ok(Self { resolved, bytes, start })
    }

    /// Checks that the values of the frame fit the memory limit. Defaults are not in the file, so a count
    /// of four bytes can require any amount of memory.
    fn check_limit(&self) -> Result<()> {
        let rows = |field: &Field| field.per.map_or(0, |_| self.resolved.rows(field));
        let numbers: u64 = FIELDS.iter().map(|field| rows(field) * field.columns).sum();
        let limits = self.resolved.limits();
        limits.allow(numbers * 8, "the frame").map(drop)
    }

    fn bytes(&self, chunk: &Chunk) -> Result<Cow<'_, [u8]>> {
        let from = chunk.data.offset.checked_sub(self.start);
        let present = from.and_then(|from| {
            let from = usize::try_from(from).ok()?;
            self.bytes.get(from..from.checked_add(usize::try_from(chunk.data.len).ok()?)?)
        });
        match present {
            Some(bytes) => Ok(bytes.into()),
            None => Ok(self.resolved.trajectory.file().read_chunk(chunk)?.into()),
        }
    }

    fn values(&self, chunk: &Chunk) -> Result<Values> {
        let (n, m) = (chunk.entry.n, chunk.entry.m);
        Ok(Values { kind: chunk.data.kind, n, m, bytes: self.bytes(chunk)?.into_owned() })
    }

    /// The bytes of the chunk of a field, after a check of type and size.
    fn checked_bytes(&self, at: usize, chunk: &Chunk) -> Result<Cow<'_, [u8]>> {
        self.resolved.check(chunk, &FIELDS[at])?;
        self.bytes(chunk)
    }

    fn column<T: Number>(&self, at: usize) -> Result<Column<T>> {
        let (field, decoded) = (&FIELDS[at], &self.resolved.trajectory.decoded[at]);
        let decode = |chunk: &Chunk| -> Result<Column<T>> {
            Ok(decode::<T>(chunk.data.kind, &self.checked_bytes(at, chunk)?).into())
        };
        match self.resolved.origin(at) {
            Origin::Own(chunk) => decode(chunk),
            Origin::First(chunk) => {
                if let Some(column) = decoded.first.get().and_then(unpack) {
                    return Ok(column);
                }
                let column = decode(chunk)?;
                decoded.first.get_or_init(|| Box::new(column.clone()));
                Ok(column)
            }
            Origin::Default => {
                let rows = field.per.map_or(1, |_| self.resolved.rows(field));
                let mut cached = decoded.default.lock().unwrap_or_else(PoisonError::into_inner);
                let known = cached.as_ref().filter(|(n, _)| *n == rows);
                if let Some(column) = known.and_then(|(_, shared)| unpack(shared)) {
                    return Ok(column);
                }
                let row: Vec<T> = field.default.iter().map(|n| T::from_f64(*n)).collect();
                let column: Column<T> = row.repeat(rows as usize).into();
                *cached = Some((rows, Box::new(column.clone())));
                Ok(column)
            }
        }
    }

    fn strings(&self, at: usize) -> Result<Vec<String>> {
        let first = &self.resolved.trajectory.decoded[at].strings;
        let decode = |chunk: &Chunk| -> Result<Vec<String>> {
            Ok(strings(&self.checked_bytes(at, chunk)?, chunk.entry.m))
        };
        match self.resolved.origin(at) {
            Origin::Own(chunk) => decode(chunk),
            Origin::First(chunk) => match first.get() {
                Some(strings) => Ok(strings.clone()),
                None => decode(chunk).inspect(|strings| drop(first.set(strings.clone()))),
            },
            Origin::Default => self.resolved.strings(at),
        }
    }

    fn step(&self) -> Result<u64> {
        const AT: usize = position(STEP);
        let file = self.resolved.trajectory.file();
        if file.index.form().is_v0_0_1() {
            return Ok(file.step(self.resolved.frame)?.unwrap_or(0));
        }
        let Some(chunk) = self.resolved.field(AT) else { return Ok(0) };
        let bytes = self.checked_bytes(AT, chunk)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
    }

    /// Bonds, angles and so on: `<group>/N` is followed in the table by types, type ids and members.
    fn links(&self, group: usize) -> Result<Links> {
        let at = COUNTS[group];
        Ok(Links {
            n: self.resolved.counts[group] as u32,
            types: self.strings(at + 1)?,
            typeid: self.column(at + 2)?,
            group: self.column(at + 3)?,
        })
    }

    fn particles(&self) -> Result<Particles> {
        Ok(Particles {
            n: self.resolved.counts[0] as u32,
            types: self.strings(const { position("particles/types") })?,
            type_shapes: self.strings(const { position("particles/type_shapes") })?,
            typeid: self.column(const { position("particles/typeid") })?,
            mass: self.column(const { position("particles/mass") })?,
            charge: self.column(const { position("particles/charge") })?,
            diameter: self.column(const { position("particles/diameter") })?,
            body: self.column(const { position("particles/body") })?,
            moment_inertia: self.column(const { position("particles/moment_inertia") })?,
            position: self.column(const { position("particles/position") })?,
            orientation: self.column(const { position("particles/orientation") })?,
            velocity: self.column(const { position("particles/velocity") })?,
            angmom: self.column(const { position("particles/angmom") })?,
            image: self.column(const { position("particles/image") })?,
        })
    }

    fn snapshot(&self) -> Result<Snapshot> {
        self.check_limit()?;
        let edges: Column<f64> = self.column(const { position("configuration/box") })?;
        let mut box_ = [0.0; 6];
        for (edge, value) in box_.iter_mut().zip(edges.iter()) {
            *edge = *value;
        }
        let dimensions: Column<f64> =
            self.column(const { position("configuration/dimensions") })?;
        let mut out = Snapshot {
            step: self.step()?,
            dimensions: dimensions.first().map_or(3, |n| *n as u8),
            box_,
            particles: self.particles()?,
            bonds: self.links(1)?,
            angles: self.links(2)?,
            dihedrals: self.links(3)?,
            impropers: self.links(4)?,
            pairs: self.links(5)?,
            constraints: Links {
                n: self.resolved.counts[GROUPS.len() - 1] as u32,
                types: Vec::new(),
                typeid: Column::default(),
                group: self.column(const { position("constraints/group") })?,
            },
            constraint_value: self.column(const { position("constraints/value") })?,
            log: BTreeMap::new(),
            state: BTreeMap::new(),
        };
        for (at, name) in self.resolved.trajectory.log_names.iter().enumerate() {
            let value = self.resolved.log(at).map(|chunk| self.values(chunk)).transpose()?;
            out.log.insert(name.clone(), value);
        }
        for chunk in &self.resolved.own.other {
            if let Some(name) = chunk.name.strip_prefix("state/") {
                out.state.insert(name.to_string(), self.values(chunk)?);
            }
        }
        Ok(out)
    }
}
