//! Logged quantities as columns.

use spile_core::error::{Error, Result};

use super::{Trajectory, Values};
use crate::read::Chunk;
use crate::wire::Type;

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
        limits.allow(frames.saturating_mul(8), "the steps")?;
        let names = file.find_matching_names("log/");
        // By frame, for each quantity: where its elements are.
        let mut columns: Vec<Option<LogColumn>> = vec![None; names.len()];
        let numbers: Vec<Option<u32>> =
            names.iter().map(|name| index.names.id(name.as_bytes())).collect();
        let mut held = frames.saturating_mul(8);
        let mut filled = vec![0_u64; names.len()];
        index.scan(0..index.count, |k, entry| {
            let Some(at) = numbers.iter().position(|id| *id == Some(entry.id)) else {
                return Ok(());
            };
            let chunk = file.chunk(k, entry)?;
            if columns[at].is_none() {
                // Eight bytes for each frame that may be missing.
                let each = chunk.place.len.saturating_add(8);
                held = held.saturating_add(frames.saturating_mul(each));
                limits.allow(held, "the log")?;
            }
            let column = columns[at].get_or_insert_with(|| LogColumn {
                name: names[at]["log/".len()..].to_string(),
                kind: chunk.place.kind,
                shape: (entry.n, entry.m),
                bytes: Vec::new(),
                missing: Vec::new(),
            });
            fill(column, &mut filled[at], entry.frame);
            same(column, &chunk, index.offset(k))?;
            // A second chunk of the same frame replaces the first.
            let bytes = chunk.place.len as usize;
            column.bytes.truncate((entry.frame * chunk.place.len) as usize);
            let start = column.bytes.len();
            column.bytes.resize(start + bytes, 0);
            filled[at] = entry.frame + 1;
            file.source().read_exact_at(chunk.place.offset, &mut column.bytes[start..])
        })?;
        for (column, filled) in columns.iter_mut().zip(&mut filled) {
            if let Some(column) = column {
                fill(column, filled, frames);
            }
        }
        let steps = (0..frames).map(|frame| Ok(file.step(frame)?.unwrap_or(0)));
        let steps = steps.collect::<Result<Vec<_>>>()?;
        Ok(Log { steps, columns: columns.into_iter().flatten().collect() })
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

fn same(column: &LogColumn, chunk: &Chunk, offset: u64) -> Result<()> {
    let shape = (chunk.entry.n, chunk.entry.m);
    if (chunk.place.kind, shape) == (column.kind, column.shape) {
        return Ok(());
    }
    let message = format!(
        "{} x {} {} here, {} x {} {} before",
        shape.0,
        shape.1,
        chunk.place.kind.name(),
        column.shape.0,
        column.shape.1,
        column.kind.name()
    );
    Err(Error::unsupported("gsd-042", message)
        .in_object(format!("chunk \"{}\"", chunk.name))
        .in_frame(chunk.entry.frame)
        .at(offset)
        .hint("read the frames of this quantity one by one"))
}
