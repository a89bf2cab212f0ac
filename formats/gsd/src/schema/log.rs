//! Logged quantities as columns.

use spile_core::error::{Error, Result};
use spile_core::source::Source;

use super::{Trajectory, Values, wrong};
use crate::read::{Chunk, File, STEP};
use crate::wire::{Entry, Type};

/// All logged quantities of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// The time step of each frame.
    pub steps: Vec<u64>,
    /// The quantities, in the order of their names in the file.
    pub columns: Vec<LogColumn>,
}

/// A quantity over all frames.
#[derive(Clone, Debug, PartialEq)]
pub struct LogColumn {
    /// Its name, without `log/`.
    pub name: String,
    /// Element type.
    pub kind: Type,
    /// Rows and columns in each frame.
    pub shape: (u64, u64),
    /// The elements, frame after frame; zeros where a frame has none.
    pub bytes: Vec<u8>,
    /// Frames that have no value, because frame 0 has none either.
    pub missing: Vec<u64>,
}

impl LogColumn {
    /// Elements of one frame.
    pub fn width(&self) -> u64 {
        self.shape.0 * self.shape.1
    }

    /// The elements of a frame; nothing where it has none.
    pub fn values(&self, frame: u64) -> Option<Values> {
        let bytes = (self.width() * self.kind.size()) as usize;
        let at = usize::try_from(frame).ok()?.checked_mul(bytes)?;
        let bytes = self.bytes.get(at..at + bytes)?.to_vec();
        let there = self.missing.binary_search(&frame).is_err();
        there.then_some(Values { kind: self.kind, n: self.shape.0, m: self.shape.1, bytes })
    }

    /// The first element of every frame as a number; NaN where a frame has none.
    pub fn numbers(&self) -> Vec<f64> {
        let all =
            Values { kind: self.kind, n: self.shape.0, m: self.shape.1, bytes: self.bytes.clone() };
        let mut firsts: Vec<f64> =
            all.numbers().into_iter().step_by(self.width().max(1) as usize).collect();
        for frame in &self.missing {
            if let Some(value) = firsts.get_mut(*frame as usize) {
                *value = f64::NAN;
            }
        }
        firsts
    }
}

impl Trajectory {
    /// All logged quantities as columns, in one pass over the index. A quantity whose shape or
    /// type changes from frame to frame is no column; read such frames one by one.
    pub fn read_log(&self) -> Result<Log> {
        let file = self.file();
        let index = &file.index;
        let limits = index.limits();
        index.require_whole()?;
        let frames = index.countable_frames(limits)?;
        let names = file.find_matching_names("log/");
        let mut columns: Vec<Option<LogColumn>> = vec![None; names.len()];
        // By the numbers of names: which column.
        let mut places = vec![None; index.names.len()];
        for (at, name) in names.iter().enumerate() {
            if let Some(id) = index.names.id(name.as_bytes()) {
                places[id as usize] = Some(at);
            }
        }
        let mut steps = Steps::new(file, frames)?;
        let mut held = frames.saturating_mul(8);
        let mut filled = vec![0_u64; names.len()];
        let mut window = Window::new(file.source());
        index.scan(0..index.count, |k, entry| {
            if index.form().is_first() || Some(entry.id) == steps.id {
                steps.add(k, entry, &mut window)?;
            }
            let Some(at) = places.get(entry.id as usize).copied().flatten() else { return Ok(()) };
            let place = index.place(k, &entry)?;
            if columns[at].is_none() {
                // Eight bytes for each frame that may be missing.
                let each = place.len.saturating_add(8);
                held = held.saturating_add(frames.saturating_mul(each));
                limits.allow(held, "the log")?;
            }
            let column = columns[at].get_or_insert_with(|| LogColumn {
                name: names[at]["log/".len()..].to_string(),
                kind: place.kind,
                shape: (entry.n, entry.m),
                bytes: Vec::new(),
                missing: Vec::new(),
            });
            fill(column, &mut filled[at], entry.frame);
            if (place.kind, (entry.n, entry.m)) != (column.kind, column.shape) {
                return Err(changed(column, &file.chunk(k, entry)?, index.offset(k)));
            }
            // A second chunk of the same frame replaces the first.
            column.bytes.truncate((entry.frame * place.len) as usize);
            filled[at] = entry.frame + 1;
            window.append(place.offset, place.len, &mut column.bytes)
        })?;
        for (column, filled) in columns.iter_mut().zip(&mut filled) {
            if let Some(column) = column {
                fill(column, filled, frames);
            }
        }
        Ok(Log { steps: steps.finish(frames), columns: columns.into_iter().flatten().collect() })
    }
}

/// The steps of all frames, by the same rules as [`crate::File::step`], collected on the way.
struct Steps<'a> {
    file: &'a File,
    /// The number of the name of the chunk; none where the entries have the steps.
    id: Option<u32>,
    found: Vec<Option<u64>>,
}

impl<'a> Steps<'a> {
    fn new(file: &'a File, frames: u64) -> Result<Self> {
        let bytes = frames.saturating_mul(16);
        let count = file.index.limits().allow(bytes, "the steps")? / 16;
        let later = !file.index.form().is_first();
        let id = file.index.names.id(STEP.as_bytes()).filter(|_| later);
        Ok(Self { file, id, found: vec![None; count] })
    }

    fn add(&mut self, k: u64, entry: Entry, window: &mut Window<'_>) -> Result<()> {
        let mut step = Some(entry.step);
        if self.id.is_some() {
            let place = self.file.index.place(k, &entry)?;
            if place.kind != Type::UInt64 || place.len < 8 {
                let message = format!("{} x {} {}", entry.n, entry.m, place.kind.name());
                let chunk = self.file.chunk(k, entry)?;
                return Err(wrong(self.file, entry.frame, &chunk, "gsd-040", message));
            }
            let mut bytes = Vec::with_capacity(8);
            window.append(place.offset, 8, &mut bytes)?;
            step = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        }
        if let Some(found) = usize::try_from(entry.frame).ok().and_then(|k| self.found.get_mut(k)) {
            *found = step;
        }
        Ok(())
    }

    /// Frames that do not tell have the step of frame 0.
    fn finish(self, frames: u64) -> Vec<u64> {
        let first = self.found.first().copied().flatten().unwrap_or(0);
        let first = if self.file.index.form().is_first() { 0 } else { first };
        debug_assert_eq!(self.found.len() as u64, frames);
        self.found.into_iter().map(|step| step.unwrap_or(first)).collect()
    }
}

/// Bytes of the file around the last place that was asked for: what belongs to a frame mostly lies
/// close together.
struct Window<'a> {
    source: &'a Source,
    bytes: Vec<u8>,
    start: u64,
    /// Behind the last place.
    end: u64,
}

/// Bytes of a window.
const WINDOW: usize = 16 << 10;

impl<'a> Window<'a> {
    fn new(source: &'a Source) -> Self {
        Self { source, bytes: Vec::new(), start: 0, end: 0 }
    }

    /// Reads `len` bytes at `offset`, which are known to be there, to the end of `out`.
    fn append(&mut self, offset: u64, len: u64, out: &mut Vec<u8>) -> Result<()> {
        let size = len as usize;
        let inside = |window: &Self| {
            let from = usize::try_from(offset.checked_sub(window.start)?).ok()?;
            Some(from..from + size).filter(|range| range.end <= window.bytes.len())
        };
        // Worth a window only where another one of the kind is near.
        let near = offset.checked_sub(self.end).is_some_and(|gap| gap < WINDOW as u64 / 4);
        self.end = offset + len;
        if inside(self).is_none() && near && size <= WINDOW / 4 {
            self.bytes.resize(WINDOW, 0);
            let got = self.source.read_at_most(offset, &mut self.bytes)?;
            self.bytes.truncate(got);
            self.start = offset;
        }
        if let Some(range) = inside(self) {
            out.extend_from_slice(&self.bytes[range]);
            return Ok(());
        }
        let start = out.len();
        out.resize(start + size, 0);
        self.source.read_exact_at(offset, &mut out[start..])
    }
}

/// Gives frames up to `frame` what they do not have: the value of frame 0, or none.
fn fill(column: &mut LogColumn, filled: &mut u64, frame: u64) {
    let bytes = (column.width() * column.kind.size()) as usize;
    while *filled < frame {
        if *filled == 0 || column.missing.first() == Some(&0) {
            column.missing.push(*filled);
            column.bytes.resize(column.bytes.len() + bytes, 0);
        } else {
            column.bytes.extend_from_within(..bytes);
        }
        *filled += 1;
    }
}

fn changed(column: &LogColumn, chunk: &Chunk, offset: u64) -> Error {
    let message = format!(
        "{} x {} {} here, {} x {} {} before",
        chunk.entry.n,
        chunk.entry.m,
        chunk.place.kind.name(),
        column.shape.0,
        column.shape.1,
        column.kind.name()
    );
    Error::unsupported("gsd-042", message)
        .in_object(format!("chunk \"{}\"", chunk.name))
        .in_frame(chunk.entry.frame)
        .at(offset)
        .hint("read the frames of this quantity one by one")
}
