//! Logged quantities of all frames.

use spile_core::{Result, Source, convert};

use super::resolve::field_error;
use super::{Trajectory, Values};
use crate::index::Index;
use crate::read::STEP;
use crate::wire::Type;

/// All logged quantities of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Time step of each frame.
    pub steps: Vec<u64>,
    /// The quantities, in the order of the name list.
    pub columns: Vec<LogColumn>,
    /// Names of quantities, without `log/`, whose shape or type is not the same in all frames. They are
    /// not in `columns`.
    pub varying: Vec<String>,
}

/// A quantity over all frames.
#[derive(Clone, Debug, PartialEq)]
pub struct LogColumn {
    /// Name, without `log/`.
    pub name: String,
    /// Element type.
    pub kind: Type,
    /// Rows and columns per frame.
    pub shape: (u64, u64),
    /// Little-endian elements of all frames; zeros for missing frames.
    pub bytes: Vec<u8>,
    /// Frames without a value, because frame 0 has none either; ascending.
    pub missing: Vec<u64>,
}

impl LogColumn {
    /// Number of elements per frame.
    pub fn width(&self) -> u64 {
        self.shape.0 * self.shape.1
    }

    /// The elements of a frame; none if it has no value.
    pub fn values(&self, frame: u64) -> Option<Values> {
        let bytes = (self.width() * self.kind.size()) as usize;
        let at = usize::try_from(frame).ok()?.checked_mul(bytes)?;
        let bytes = self.bytes.get(at..at + bytes)?.to_vec();
        let present = self.missing.binary_search(&frame).is_err();
        present.then_some(Values { kind: self.kind, n: self.shape.0, m: self.shape.1, bytes })
    }

    /// The first element of each frame as `f64`; NaN for missing frames.
    pub fn first_elements(&self) -> Vec<f64> {
        let all =
            Values { kind: self.kind, n: self.shape.0, m: self.shape.1, bytes: self.bytes.clone() };
        let mut firsts: Vec<f64> =
            all.to_f64().into_iter().step_by(self.width().max(1) as usize).collect();
        for frame in &self.missing {
            if let Some(value) = firsts.get_mut(*frame as usize) {
                *value = f64::NAN;
            }
        }
        firsts
    }
}

impl Trajectory {
    /// Reads all logged quantities in one pass over the index. Quantities whose shape or type changes are
    /// listed in [`Log::varying`].
    pub fn read_log(&self) -> Result<Log> {
        let file = self.file();
        let index = &file.index;
        let limits = index.limits();
        index.require_complete()?;
        let frames = index.limited_frames()?;
        let mut names = file.find_matching_names("log/");
        // The steps are a column, too, except in 0.0.1, where they are in the entries.
        let first_version = index.form().is_v0_0_1();
        names.push(STEP.into());
        let mut columns: Vec<Option<LogColumn>> = vec![None; names.len()];
        // Column of each name id.
        let mut column_of = vec![None; index.names.len()];
        for (at, name) in names.iter().enumerate() {
            if let Some(id) =
                index.names.id(name.as_bytes()).filter(|_| !first_version || name != STEP)
            {
                column_of[id as usize] = Some(at);
            }
        }
        let mut memory = frames.saturating_mul(16);
        let mut steps = vec![0; limits.allow(memory, "the steps")? / 16];
        let mut filled = vec![0_u64; names.len()];
        let mut varies = vec![false; names.len()];
        let mut window = Window::new(file.source());
        let mut before = 0;
        index.scan(0..index.count, |k, entry| {
            // The columns are charged for `frames` rows and filled in ascending order.
            if entry.frame < before || entry.frame >= frames {
                return Err(index.order_error(k, before));
            }
            before = entry.frame;
            if first_version && let Some(step) = steps.get_mut(entry.frame as usize) {
                *step = entry.step;
            }
            let Some(at) = column_of.get(entry.id as usize).copied().flatten() else {
                return Ok(());
            };
            if varies[at] {
                return Ok(());
            }
            let data = index.locate(k, &entry)?;
            let size = (entry.n, entry.m);
            if names[at] == STEP && (data.kind, size) != (Type::UInt64, (1, 1)) {
                let found = format!("{} x {} {}", entry.n, entry.m, data.kind.name());
                let message = format!("expected 1 x 1 uint64, found {found}");
                let chunk = file.chunk(k, entry)?;
                return Err(field_error(file, entry.frame, &chunk, "gsd-040", message));
            }
            if columns[at].is_none() {
                // Plus eight bytes per missing frame.
                let each = data.len.saturating_add(8);
                memory = memory.saturating_add(frames.saturating_mul(each));
                limits.allow(memory, "the log")?;
            }
            let column = columns[at].get_or_insert_with(|| LogColumn {
                name: names[at].strip_prefix("log/").unwrap_or_default().to_string(),
                kind: data.kind,
                shape: size,
                bytes: Vec::new(),
                missing: Vec::new(),
            });
            fill(column, &mut filled[at], entry.frame);
            if data.kind == Type::Character
                && column.kind == data.kind
                && (size.1, column.shape.1) == (1, 1)
            {
                // Strings of different lengths: all have the length of the longest one.
                if size.0 > column.shape.0 {
                    let longest = longest(index, entry.id)?;
                    let old = column.shape.0 as usize;
                    memory = memory.saturating_add(frames.saturating_mul(longest));
                    limits.allow(memory, "the log")?;
                    let rows = column.bytes.chunks(old.max(1)).map(|row| padded(row, longest));
                    column.bytes = rows.flatten().collect();
                    column.shape.0 = longest;
                }
                let start = entry.frame * column.shape.0;
                column.bytes.truncate(start as usize);
                filled[at] = entry.frame + 1;
                window.append(data.offset, data.len, &mut column.bytes)?;
                column.bytes.resize((start + column.shape.0) as usize, 0);
                return Ok(());
            }
            if (data.kind, size) != (column.kind, column.shape) {
                (varies[at], columns[at]) = (true, None);
                return Ok(());
            }
            // A second chunk of the same frame replaces the first.
            column.bytes.truncate((entry.frame * data.len) as usize);
            filled[at] = entry.frame + 1;
            window.append(data.offset, data.len, &mut column.bytes)
        })?;
        for (column, filled) in columns.iter_mut().zip(&mut filled) {
            if let Some(column) = column {
                fill(column, filled, frames);
            }
        }
        if let Some(column) = columns.pop().flatten() {
            steps = convert::decode(&column.bytes);
        }
        let varying = names.iter().zip(&varies).filter(|(_, varies)| **varies);
        let varying = varying
            .map(|(name, _)| name.strip_prefix("log/").unwrap_or(name).to_string())
            .collect();
        Ok(Log { steps, columns: columns.into_iter().flatten().collect(), varying })
    }
}

/// Length of the longest chunk with name `id`.
fn longest(index: &Index, id: u32) -> Result<u64> {
    let mut longest = 0;
    index.scan(0..index.count, |_, entry| {
        longest = if entry.id == id { entry.n.max(longest) } else { longest };
        Ok(())
    })?;
    Ok(longest)
}

/// The bytes of `row`, followed by zeros up to `width`.
fn padded(row: &[u8], width: u64) -> impl Iterator<Item = u8> {
    row.iter().copied().chain(std::iter::repeat(0)).take(width as usize)
}

/// Bytes of the file after the last read, because the chunks of a frame are usually contiguous.
struct Window<'a> {
    source: &'a Source,
    bytes: Vec<u8>,
    start: u64,
    /// End of the last read.
    end: u64,
}

/// Bytes of a window.
const WINDOW: usize = 16 << 10;

impl<'a> Window<'a> {
    fn new(source: &'a Source) -> Self {
        Self { source, bytes: Vec::new(), start: 0, end: 0 }
    }

    /// Appends `len` bytes at `offset` to `out`.
    fn append(&mut self, offset: u64, len: u64, out: &mut Vec<u8>) -> Result<()> {
        let size = len as usize;
        let inside = |window: &Self| {
            let from = usize::try_from(offset.checked_sub(window.start)?).ok()?;
            Some(from..from + size).filter(|range| range.end <= window.bytes.len())
        };
        // Read a window only if this read is close to the last one.
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

/// Adds the value of frame 0, or a missing value, to all frames before `frame` without one.
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
