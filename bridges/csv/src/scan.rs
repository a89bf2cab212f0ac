//! One pass over the records, in bounded memory: how many rows there are, of what, and where.

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::records::{Record, each_record};
use spile_core::source::Source;

use crate::header::Cell;
use crate::record::{Fields, record_end, unquoted};
use crate::value::Seen;

/// The longest record that is looked at.
const LONGEST: usize = 64 << 20;

/// Rows are decoded together up to about this many bytes of text.
const BLOCK: u64 = 256 << 10;

/// What was found.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) cells: Vec<Cell>,
    /// Where the rows begin and end.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) rows: u64,
    /// Where blocks of rows begin, and the rows before them.
    pub(crate) blocks: Vec<(u64, u64)>,
    pub(crate) seen: Vec<Seen>,
    /// Fields of a last row that is not whole.
    pub(crate) partial: usize,
    pub(crate) frames: Option<Frames>,
}

/// Rows that belong to frames: those with the same number in the first column.
#[derive(Default)]
pub(crate) struct Frames {
    /// Where each begins, and the rows before it.
    pub(crate) starts: Vec<(u64, u64)>,
    /// Which columns have nothing in a frame: one behind the other, frame by frame.
    pub(crate) empty: Vec<bool>,
    /// A column has something in a part of a frame.
    pub(crate) gaps: Vec<bool>,
    /// The fields of the second and third column in each frame, where they are the same in all of it.
    pub(crate) moments: [Option<Vec<Vec<u8>>>; 2],
}

/// A file begins with a line of names in quotes.
pub(crate) fn names(line: &[u8]) -> Option<Vec<Cell>> {
    let cell = |field: &[u8]| {
        let text = String::from_utf8(unquoted(field)?).ok()?;
        Some(Cell::parse(&text))
    };
    Fields(Some(line)).map(cell).collect()
}

pub(crate) fn scan(source: &Source, limits: &Limits) -> Result<Table> {
    let mut scan = Scan { limits, table: Table::default(), any: Vec::new() };
    let too_long =
        || Error::not_this_format("csv-002", format!("a row is longer than {LONGEST} bytes"));
    each_record(source, LONGEST, record_end, too_long, |record| scan.record(record))?;
    if scan.table.cells.is_empty() {
        return Err(no_names(0));
    }
    Ok(scan.finish())
}

fn no_names(at: u64) -> Error {
    let message = "a table begins with a line of names in quotes, separated by commas";
    Error::not_this_format("csv-001", message).at(at)
}

struct Scan<'a> {
    limits: &'a Limits,
    table: Table,
    /// What the columns have in this frame: something, nothing.
    any: Vec<[bool; 2]>,
}

impl Scan<'_> {
    fn record(&mut self, record: Record<'_>) -> Result<()> {
        let Record { offset: at, bytes: record, next, ended } = record;
        if self.table.cells.is_empty() {
            let cells = names(record).ok_or_else(|| no_names(at))?;
            self.table.seen = vec![Seen::default(); cells.len()];
            (self.table.start, self.table.end) = (next, next);
            if cells[0].path == "frame" && cells[0].index.is_empty() {
                let gaps = vec![false; cells.len()];
                let moments = [Some(Vec::new()), Some(Vec::new())];
                self.table.frames = Some(Frames { gaps, moments, ..Frames::default() });
            }
            self.any = vec![[false; 2]; cells.len()];
            self.table.cells = cells;
            return Ok(());
        }
        if record.is_empty() {
            return Ok(());
        }
        let (count, wanted) = (Fields(Some(record)).count(), self.table.cells.len());
        if count < wanted && !ended {
            // The program that wrote it was stopped.
            self.table.partial = count;
            return Ok(());
        }
        if count != wanted {
            let row = self.table.rows + 1;
            let message = format!("row {row} has {count} fields, not {wanted}");
            return Err(Error::malformed("csv-003", message).at(at));
        }
        self.frame(at, record)?;
        for (k, field) in Fields(Some(record)).enumerate() {
            self.table.seen[k].add(field);
            self.any[k][usize::from(field.is_empty())] = true;
        }
        if self.table.blocks.last().is_none_or(|(start, _)| at - start >= BLOCK) {
            self.table.blocks.push((at, self.table.rows));
        }
        self.table.rows += 1;
        self.table.end = next;
        Ok(())
    }

    /// Looks whether the row is of the same frame, the next one, or none.
    fn frame(&mut self, at: u64, record: &[u8]) -> Result<()> {
        let rows = self.table.rows;
        let Some(frames) = &mut self.table.frames else { return Ok(()) };
        let mut fields = Fields(Some(record));
        let text = std::str::from_utf8(fields.next().unwrap_or_default()).unwrap_or_default();
        let (number, known) = (text.parse::<u64>().ok(), frames.starts.len() as u64);
        let moments = [fields.next(), fields.next()];
        if known > 0 && number == Some(known - 1) {
            for (all, field) in frames.moments.iter_mut().zip(moments) {
                let same = all.as_ref().is_some_and(|all| {
                    all.last().map(Vec::as_slice) == Some(field.unwrap_or_default())
                });
                if !same {
                    *all = None;
                }
            }
            return Ok(());
        }
        if number != Some(known) {
            self.table.frames = None;
            return Ok(());
        }
        let held = (known + 1).saturating_mul(self.table.cells.len() as u64 + 128);
        self.limits.allow(held, "the frames")?;
        if known > 0 {
            self.close_frame();
        }
        if let Some(frames) = &mut self.table.frames {
            frames.starts.push((at, rows));
            for (all, field) in frames.moments.iter_mut().zip(moments) {
                let short = field.filter(|field| field.len() <= 32).map(<[u8]>::to_vec);
                *all = all.take().zip(short).map(|(mut all, field)| {
                    all.push(field);
                    all
                });
            }
        }
        Ok(())
    }

    /// Notes which columns had nothing.
    fn close_frame(&mut self) {
        let Some(frames) = &mut self.table.frames else { return };
        for (k, any) in self.any.iter_mut().enumerate() {
            frames.empty.push(*any == [false, true]);
            frames.gaps[k] |= *any == [true, true];
            *any = [false; 2];
        }
    }

    fn finish(mut self) -> Table {
        let begun = |frames: &Frames| !frames.starts.is_empty();
        if self.table.frames.as_ref().is_some_and(begun) {
            self.close_frame();
        }
        self.table
    }
}
