//! One pass over the records in bounded memory: number and positions of rows, kinds of fields, frames.

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::records::{Record, Rows, each_record};
use spile_core::source::Source;

use crate::heading::Heading;
use crate::value::Seen;
use crate::wire::{Fields, record_end, unquoted};

/// Length of the longest record in bytes.
const LONGEST: u64 = 64 << 20;

/// Rows are decoded in blocks of about this many bytes of text.
const BLOCK: u64 = 256 << 10;

/// Memory charged for a column: heading, statistics and tree node.
const COLUMN: u64 = 1 << 10;

/// Content of a file, without the values.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) headings: Vec<Heading>,
    pub(crate) rows: Rows,
    /// First byte of each block of rows, and the number of rows before it.
    pub(crate) blocks: Vec<(u64, u64)>,
    /// Kinds of fields, one item per column.
    pub(crate) seen: Vec<Seen>,
    pub(crate) frames: Option<Frames>,
}

/// Frames: consecutive rows with the same number in the first column.
#[derive(Default)]
pub(crate) struct Frames {
    /// First byte of each frame, and the number of rows before it.
    pub(crate) starts: Vec<(u64, u64)>,
    /// Whether a column is empty in a frame, indexed by frame, then column.
    pub(crate) empty: Vec<bool>,
    /// Whether a column has values in some rows of a frame and none in others.
    pub(crate) gaps: Vec<bool>,
    /// Fields of the second and third column, one per frame; `None` unless constant in every frame.
    pub(crate) moments: [Option<Vec<Vec<u8>>>; 2],
}

/// Parses the first record: quoted headings. `None` if a field is not quoted or not UTF-8.
pub(crate) fn headings(record: &[u8]) -> Option<Vec<Heading>> {
    let heading = |field: &[u8]| {
        let text = String::from_utf8(unquoted(field)?).ok()?;
        Some(Heading::parse(&text))
    };
    Fields(Some(record)).map(heading).collect()
}

/// Scans all records of a file.
pub(crate) fn scan(source: &Source, limits: &Limits) -> Result<Table> {
    let mut scan = Scan { limits, table: Table::default(), any: Vec::new() };
    let longest = LONGEST.min(limits.memory);
    let too_long = || {
        let limit = limits.allow(LONGEST, "a row").err();
        let message = format!("row longer than {longest} bytes");
        limit.unwrap_or_else(|| Error::not_this_format("csv-002", message))
    };
    each_record(source, longest as usize, record_end, too_long, |record| scan.record(record))?;
    if scan.table.headings.is_empty() {
        return Err(no_headings(0));
    }
    Ok(scan.finish())
}

fn no_headings(at: u64) -> Error {
    let message = "expected a first line of quoted column names separated by commas";
    Error::not_this_format("csv-001", message).at(at)
}

struct Scan<'a> {
    limits: &'a Limits,
    table: Table,
    /// Whether the current frame has non-empty and empty fields, one item per column.
    any: Vec<[bool; 2]>,
}

impl Scan<'_> {
    fn record(&mut self, record: Record<'_>) -> Result<()> {
        let Record { offset: at, bytes: record, next, ended } = record;
        if self.table.headings.is_empty() {
            return self.first(at, record, next);
        }
        if record.is_empty() {
            return Ok(());
        }
        let (found, rows) = (Fields(Some(record)).count() as u64, &mut self.table.rows);
        if found < rows.columns && !ended {
            // The writer was interrupted.
            rows.partial = Some(found);
            return Ok(());
        }
        if found != rows.columns {
            return Err(rows.wrong_width("csv-003", found).at(at));
        }
        self.frame(at, record)?;
        for (k, field) in Fields(Some(record)).enumerate() {
            self.table.seen[k].add(field);
            self.any[k][usize::from(field.is_empty())] = true;
        }
        if self.table.blocks.last().is_none_or(|(start, _)| at - start >= BLOCK) {
            // Every column has the decoded length of each block.
            let blocks = self.table.blocks.len() as u64 + 1;
            let bytes = blocks.saturating_mul(16 + 8 * self.table.rows.columns);
            self.limits.allow(bytes, "the blocks of rows")?;
            self.table.blocks.push((at, self.table.rows.count));
        }
        self.table.rows.push(next);
        Ok(())
    }

    /// Reads the headings.
    fn first(&mut self, at: u64, record: &[u8], next: u64) -> Result<()> {
        let columns = Fields(Some(record)).count();
        let bytes = (columns as u64).saturating_mul(COLUMN).saturating_add(4 * record.len() as u64);
        self.limits.allow(bytes, "the columns")?;
        let headings = headings(record).ok_or_else(|| no_headings(at))?;
        self.table.seen = vec![Seen::default(); columns];
        self.any = vec![[false; 2]; columns];
        self.table.rows =
            Rows { start: next, end: next, columns: columns as u64, ..Rows::default() };
        if headings[0].path == "frame" && headings[0].index.is_empty() {
            let moments = [Some(Vec::new()), Some(Vec::new())];
            let gaps = vec![false; columns];
            self.table.frames = Some(Frames { gaps, moments, ..Frames::default() });
        }
        self.table.headings = headings;
        Ok(())
    }

    /// Assigns a row to the current frame or the next one. A row of neither means that the first column
    /// does not number frames.
    fn frame(&mut self, at: u64, record: &[u8]) -> Result<()> {
        let Rows { count: rows, columns, .. } = self.table.rows;
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
        self.limits.allow((known + 1).saturating_mul(2 * columns + 192), "the frames")?;
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

    /// Records which columns are empty in the current frame.
    fn close_frame(&mut self) {
        let Some(frames) = &mut self.table.frames else { return };
        for (k, any) in self.any.iter_mut().enumerate() {
            frames.empty.push(*any == [false, true]);
            frames.gaps[k] |= *any == [true, true];
            *any = [false; 2];
        }
    }

    fn finish(mut self) -> Table {
        if self.table.frames.as_ref().is_some_and(|frames| !frames.starts.is_empty()) {
            self.close_frame();
        }
        self.table
    }
}
