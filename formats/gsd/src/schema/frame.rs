//! Frames read with all rules. What frames share is decoded once: the columns of frame 0 and those
//! of defaults.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use spile_core::convert;
use spile_core::error::{Error, Result};

use super::snapshot::{Column, Links, Particles, Snapshot};
use super::{FIELDS, Field, GROUPS, Trajectory, Values, check, count, texts};
use crate::read::{Chunk, File, STEP};
use crate::wire::Type;

/// Most bytes that are read at once for a frame, and how many of them may be of no use.
const TOGETHER: u64 = 1 << 20;
const GAP: u64 = 4 << 10;

/// The place of a chunk in the table.
const fn at(name: &str) -> usize {
    let mut k = 0;
    while k < FIELDS.len() {
        let (a, b) = (FIELDS[k].name.as_bytes(), name.as_bytes());
        let mut same = if a.len() == b.len() { 0 } else { usize::MAX };
        while same < a.len() && a[same] == b[same] {
            same += 1;
        }
        if same == a.len() {
            return k;
        }
        k += 1;
    }
    panic!("no chunk of this name")
}

/// What the name of a chunk means.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    /// A place in the table.
    Field(usize),
    /// A logged quantity, by its number among them.
    Log(usize),
    State,
    Other,
}

/// Decoded numbers.
#[derive(Clone, Debug)]
enum Numbers {
    Real(Column<f64>),
    Whole(Column<u32>),
    Signed(Column<i32>),
}

/// Elements of columns.
trait Element: Copy {
    fn decode(kind: Type, bytes: &[u8]) -> Vec<Self>;
    fn from_default(number: f64) -> Self;
    fn pack(column: Column<Self>) -> Numbers;
    fn unpack(numbers: &Numbers) -> Option<Column<Self>>;
}

impl Element for f64 {
    fn decode(kind: Type, bytes: &[u8]) -> Vec<Self> {
        let mut out = Vec::new();
        convert::to_f64(kind.dtype(), None, bytes, &mut out);
        out
    }

    fn from_default(number: f64) -> Self {
        number
    }

    fn pack(column: Column<Self>) -> Numbers {
        Numbers::Real(column)
    }

    fn unpack(numbers: &Numbers) -> Option<Column<Self>> {
        if let Numbers::Real(column) = numbers { Some(column.clone()) } else { None }
    }
}

impl Element for u32 {
    fn decode(_: Type, bytes: &[u8]) -> Vec<Self> {
        convert::decode(bytes)
    }

    fn from_default(number: f64) -> Self {
        number as Self
    }

    fn pack(column: Column<Self>) -> Numbers {
        Numbers::Whole(column)
    }

    fn unpack(numbers: &Numbers) -> Option<Column<Self>> {
        if let Numbers::Whole(column) = numbers { Some(column.clone()) } else { None }
    }
}

impl Element for i32 {
    fn decode(_: Type, bytes: &[u8]) -> Vec<Self> {
        convert::decode(bytes)
    }

    fn from_default(number: f64) -> Self {
        number as Self
    }

    fn pack(column: Column<Self>) -> Numbers {
        Numbers::Signed(column)
    }

    fn unpack(numbers: &Numbers) -> Option<Column<Self>> {
        if let Numbers::Signed(column) = numbers { Some(column.clone()) } else { None }
    }
}

/// One place of the table: what frame 0 has there, and what was made of it.
#[derive(Default)]
struct Place {
    first: Option<Chunk>,
    numbers: OnceLock<Numbers>,
    texts: OnceLock<Vec<String>>,
    /// The default for so many rows.
    default: Mutex<Option<(u64, Numbers)>>,
}

/// What the frames of a file share.
pub(super) struct Shared {
    /// By the numbers of names.
    meanings: Vec<Meaning>,
    /// Names of the logged quantities, and what frame 0 has of them.
    logs: Vec<(String, Option<Chunk>)>,
    places: Vec<Place>,
    counts: OnceLock<Vec<u64>>,
    /// Where the bytes of a frame were: memory that is new is slow.
    buffer: Mutex<Vec<u8>>,
}

impl Shared {
    pub(super) fn new(file: &File, first: &HashMap<Arc<str>, Chunk>) -> Self {
        let (mut meanings, mut logs) = (Vec::new(), Vec::new());
        for id in 0..file.index.names.len() as u32 {
            let name = file.index.names.text(id);
            let known = FIELDS.iter().position(|field| field.name == &*name);
            meanings.push(match (known, name.strip_prefix("log/")) {
                (Some(k), _) => Meaning::Field(k),
                (None, Some(short)) => {
                    logs.push((short.to_string(), first.get(&name).cloned()));
                    Meaning::Log(logs.len() - 1)
                }
                (None, None) if name.starts_with("state/") => Meaning::State,
                (None, None) => Meaning::Other,
            });
        }
        let place =
            |field: &Field| Place { first: first.get(field.name).cloned(), ..Place::default() };
        let (places, buffer) = (FIELDS.iter().map(place).collect(), Mutex::default());
        Self { meanings, logs, places, counts: OnceLock::new(), buffer }
    }

    fn buffer(&self) -> MutexGuard<'_, Vec<u8>> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The chunk that counts.
enum Found<'a> {
    Own(&'a Chunk),
    First(&'a Chunk),
    Default,
}

/// A frame on its way to a [`Snapshot`].
struct Frame<'a> {
    file: &'a File,
    shared: &'a Shared,
    number: u64,
    fields: Vec<Option<Chunk>>,
    logs: Vec<Option<Chunk>>,
    state: Vec<Chunk>,
    /// Bytes of the file from `start` on: all chunks of the frame, if they lie together.
    bytes: Vec<u8>,
    start: u64,
    /// Members of each group, and those of frame 0.
    counts: [u64; GROUPS.len()],
    first: &'a [u64],
}

impl Trajectory {
    /// A frame with everything filled in.
    pub fn read(&self, frame: u64) -> Result<Snapshot> {
        let frames = self.len()?;
        if frame >= frames {
            let message = format!("there is no frame {frame}; the file has {frames}");
            return Err(Error::argument(message));
        }
        let frame = Frame::new(self, frame)?;
        let snapshot = frame.snapshot();
        *self.shared.buffer() = frame.bytes;
        snapshot
    }
}

impl<'a> Frame<'a> {
    fn new(trajectory: &'a Trajectory, number: u64) -> Result<Self> {
        let (file, shared) = (&trajectory.file, &trajectory.shared);
        let mut fields = vec![None; FIELDS.len()];
        let mut logs = vec![None; shared.logs.len()];
        let mut state = Vec::new();
        let (mut start, mut end, mut sum) = (u64::MAX, 0, 0_u64);
        // Of two chunks of a name the last counts.
        file.index.each_of_frame(number, |k, entry| {
            let chunk = file.chunk(k, entry)?;
            start = start.min(chunk.place.offset);
            end = end.max(chunk.place.offset + chunk.place.len);
            sum = sum.saturating_add(chunk.place.len);
            match shared.meanings.get(entry.id as usize) {
                Some(Meaning::Field(at)) => fields[*at] = Some(chunk),
                Some(Meaning::Log(at)) => logs[*at] = Some(chunk),
                Some(Meaning::State) => state.push(chunk),
                Some(Meaning::Other) | None => {}
            }
            Ok(())
        })?;
        // One read for the frame where that is little more than what it needs.
        let span = end.saturating_sub(start);
        let together = span > 0 && span <= TOGETHER && span <= sum.saturating_add(GAP);
        let mut bytes = Vec::new();
        if together {
            file.source().require(start, span)?;
            bytes = take(&mut *shared.buffer());
            bytes.resize(span as usize, 0);
            file.source().read_exact_at(start, &mut bytes)?;
        }
        let places = GROUPS.map(|(group, _)| group_place(group));
        let number_in = |chunk: &Option<Chunk>| {
            chunk.as_ref().map(|chunk| count(file, number, chunk)).transpose()
        };
        let first = if let Some(known) = shared.counts.get() {
            known
        } else {
            let counted = places.iter().map(|at| number_in(&shared.places[*at].first));
            let counted: Result<Vec<u64>> = counted.map(|n| Ok(n?.unwrap_or(0))).collect();
            let counted = counted?;
            shared.counts.get_or_init(|| counted)
        };
        let mut counts = [0; GROUPS.len()];
        for (k, at) in places.into_iter().enumerate() {
            counts[k] = number_in(&fields[at])?.unwrap_or(first[k]);
        }
        Ok(Self { file, shared, number, fields, logs, state, bytes, start, counts, first })
    }

    /// The place among the groups of the one that a chunk has a row for each member of.
    fn group(field: &Field) -> Option<usize> {
        let name = field.per?;
        GROUPS.iter().position(|(group, _)| *group == name)
    }

    fn rows(&self, field: &Field) -> u64 {
        Self::group(field).map_or(field.rows, |group| self.counts[group])
    }

    /// Everything that is counted in this frame fits the budget, whether it is in the file or has
    /// to be made of defaults: a count is four bytes, what it asks for may be anything.
    fn allow_all(&self) -> Result<()> {
        let numbers = |field: &Field| field.per.map_or(0, |_| self.rows(field) * field.columns);
        let all: u64 = FIELDS.iter().map(numbers).sum();
        self.file.index.limits().allow(all * 8, "the frame").map(drop)
    }

    fn find(&self, at: usize) -> Found<'_> {
        let same = Self::group(&FIELDS[at]).is_none_or(|k| self.counts[k] == self.first[k]);
        match (&self.fields[at], &self.shared.places[at].first) {
            (Some(own), _) => Found::Own(own),
            (None, Some(first)) if same => Found::First(first),
            _ => Found::Default,
        }
    }

    /// The bytes of a chunk, which may be here already.
    fn bytes(&self, chunk: &Chunk) -> Result<Cow<'_, [u8]>> {
        let from = chunk.place.offset.checked_sub(self.start);
        let here = from.and_then(|from| {
            let from = usize::try_from(from).ok()?;
            self.bytes.get(from..from.checked_add(usize::try_from(chunk.place.len).ok()?)?)
        });
        match here {
            Some(bytes) => Ok(bytes.into()),
            None => Ok(self.file.read_chunk(chunk)?.into()),
        }
    }

    fn values(&self, chunk: &Chunk) -> Result<Values> {
        let (n, m) = (chunk.entry.n, chunk.entry.m);
        Ok(Values { kind: chunk.place.kind, n, m, bytes: self.bytes(chunk)?.into_owned() })
    }

    /// The elements of a chunk of the table, checked.
    fn known(&self, at: usize, chunk: &Chunk) -> Result<Cow<'_, [u8]>> {
        check(self.file, self.number, chunk, &FIELDS[at], self.rows(&FIELDS[at]))?;
        self.bytes(chunk)
    }

    fn decoded<T: Element>(&self, at: usize, chunk: &Chunk) -> Result<Column<T>> {
        Ok(T::decode(chunk.place.kind, &self.known(at, chunk)?).into())
    }

    fn column<T: Element>(&self, at: usize) -> Result<Column<T>> {
        let (field, place) = (&FIELDS[at], &self.shared.places[at]);
        match self.find(at) {
            Found::Own(chunk) => self.decoded(at, chunk),
            Found::First(chunk) => {
                if let Some(known) = place.numbers.get().and_then(T::unpack) {
                    return Ok(known);
                }
                let column: Column<T> = self.decoded(at, chunk)?;
                place.numbers.get_or_init(|| T::pack(column.clone()));
                Ok(column)
            }
            Found::Default => {
                let rows = field.per.map_or(1, |_| self.rows(field));
                let mut held = place.default.lock().unwrap_or_else(PoisonError::into_inner);
                let known = held.as_ref().filter(|(n, _)| *n == rows);
                if let Some(known) = known.and_then(|(_, numbers)| T::unpack(numbers)) {
                    return Ok(known);
                }
                let row: Vec<T> = field.default.iter().map(|n| T::from_default(*n)).collect();
                let column: Column<T> = row.repeat(rows as usize).into();
                *held = Some((rows, T::pack(column.clone())));
                Ok(column)
            }
        }
    }

    fn texts(&self, at: usize, default: &[&str]) -> Result<Vec<String>> {
        match self.find(at) {
            Found::Own(chunk) => Ok(texts(&self.known(at, chunk)?, chunk.entry.m)),
            Found::First(chunk) => {
                let known = &self.shared.places[at].texts;
                if known.get().is_none() {
                    let texts = texts(&self.known(at, chunk)?, chunk.entry.m);
                    known.get_or_init(|| texts);
                }
                Ok(known.get().cloned().unwrap_or_default())
            }
            Found::Default => Ok(default.iter().map(ToString::to_string).collect()),
        }
    }

    /// The step, to its last digit.
    fn step(&self) -> Result<u64> {
        const PLACE: usize = at(STEP);
        if self.file.index.form().is_first() {
            return Ok(self.file.step(self.number)?.unwrap_or(0));
        }
        match self.find(PLACE) {
            Found::Own(chunk) | Found::First(chunk) => {
                let bytes = self.known(PLACE, chunk)?;
                Ok(bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes)))
            }
            Found::Default => Ok(0),
        }
    }

    fn links(&self, group: &str) -> Result<Links> {
        let base = group_place(group);
        let k = GROUPS.iter().position(|(name, _)| *name == group).unwrap_or(0);
        Ok(Links {
            n: self.counts[k] as u32,
            types: self.texts(base + 1, &[])?,
            typeid: self.column(base + 2)?,
            group: self.column(base + 3)?,
        })
    }

    fn particles(&self) -> Result<Particles> {
        Ok(Particles {
            n: self.counts[0] as u32,
            types: self.texts(const { at("particles/types") }, &["A"])?,
            type_shapes: self.texts(const { at("particles/type_shapes") }, &["{}"])?,
            typeid: self.column(const { at("particles/typeid") })?,
            mass: self.column(const { at("particles/mass") })?,
            charge: self.column(const { at("particles/charge") })?,
            diameter: self.column(const { at("particles/diameter") })?,
            body: self.column(const { at("particles/body") })?,
            moment_inertia: self.column(const { at("particles/moment_inertia") })?,
            position: self.column(const { at("particles/position") })?,
            orientation: self.column(const { at("particles/orientation") })?,
            velocity: self.column(const { at("particles/velocity") })?,
            angmom: self.column(const { at("particles/angmom") })?,
            image: self.column(const { at("particles/image") })?,
        })
    }

    fn snapshot(&self) -> Result<Snapshot> {
        self.allow_all()?;
        let edges: Column<f64> = self.column(const { at("configuration/box") })?;
        let mut box_ = [0.0; 6];
        for (edge, value) in box_.iter_mut().zip(edges.iter()) {
            *edge = *value;
        }
        let dimensions: Column<f64> = self.column(const { at("configuration/dimensions") })?;
        let mut out = Snapshot {
            step: self.step()?,
            dimensions: dimensions.first().map_or(3, |n| *n as u8),
            box_,
            particles: self.particles()?,
            bonds: self.links("bonds")?,
            angles: self.links("angles")?,
            dihedrals: self.links("dihedrals")?,
            impropers: self.links("impropers")?,
            pairs: self.links("pairs")?,
            constraints: Links {
                n: self.counts[GROUPS.len() - 1] as u32,
                types: Vec::new(),
                typeid: Column::default(),
                group: self.column(const { at("constraints/group") })?,
            },
            constraint_value: self.column(const { at("constraints/value") })?,
            log: BTreeMap::new(),
            state: BTreeMap::new(),
        };
        for ((name, first), own) in self.shared.logs.iter().zip(&self.logs) {
            let chunk = own.as_ref().or(first.as_ref());
            let value = chunk.map(|chunk| self.values(chunk)).transpose()?;
            out.log.insert(name.clone(), value);
        }
        for chunk in &self.state {
            let name = chunk.name.strip_prefix("state/").unwrap_or_default();
            out.state.insert(name.to_string(), self.values(chunk)?);
        }
        Ok(out)
    }
}

/// The place in the table of the chunk that counts a group; its other chunks follow.
fn group_place(group: &str) -> usize {
    const PLACES: [usize; GROUPS.len()] = [
        at("particles/N"),
        at("bonds/N"),
        at("angles/N"),
        at("dihedrals/N"),
        at("impropers/N"),
        at("pairs/N"),
        at("constraints/N"),
    ];
    PLACES[GROUPS.iter().position(|(name, _)| *name == group).unwrap_or(0)]
}
