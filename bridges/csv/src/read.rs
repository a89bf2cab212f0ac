//! One pass over the records in bounded memory: number and positions of rows, kinds of fields, frames.

use std::ops::Range;

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::text_records::{Record, Rows, each_record};

use crate::heading::Heading;
use crate::sniff::{Sniffed, sniff};
use crate::value::{Seen, Spelling, parse_real};
use crate::wire::Dialect;

/// Length of the longest record in bytes.
const LONGEST: u64 = 64 << 20;

/// Rows are decoded in blocks of about this many bytes of text.
const BLOCK: u64 = 256 << 10;

/// Bytes of the beginning from which the dialect is recognised; more if the first lines are longer.
const HEAD: u64 = 64 << 10;

/// Memory charged for a column: heading, statistics and tree node.
const COLUMN: u64 = 1 << 10;

/// Content of a file, without the values.
pub(crate) struct Table {
    pub(crate) dialect: Dialect,
    pub(crate) headings: Vec<Heading>,
    /// The lines above the names of the columns.
    pub(crate) title: String,
    pub(crate) rows: Rows,
    /// First byte of each block of rows, and the number of rows before it.
    pub(crate) blocks: Vec<(u64, u64)>,
    /// Kinds of fields, one item per column.
    pub(crate) seen: Vec<Seen>,
    /// Whether quoted numbers are numbers.
    pub(crate) quoted: bool,
    pub(crate) spelling: Spelling,
    pub(crate) frames: Option<Frames>,
    /// Whether the numbers of the first column increase, or decrease, from row to row.
    pub(crate) ordered: bool,
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

/// Scans all records of a file.
pub(crate) fn scan(source: &Source, limits: &Limits) -> Result<Table> {
    let longest = LONGEST.min(limits.memory);
    let too_long = || {
        let limit = limits.allow(LONGEST, "a row").err();
        let message = format!("row longer than {longest} bytes");
        limit.unwrap_or_else(|| Error::not_this_format("csv-002", message))
    };
    let sniffed = recognise(source, longest, too_long)?;
    let dialect = sniffed.dialect;
    let mut scan = Scan::new(source, limits, sniffed)?;
    let start = scan.table.rows.start;
    let end = |text: &[u8]| dialect.record_end(text);
    each_record(source, start, longest as usize, end, too_long, |record| scan.record(record))?;
    Ok(scan.finish())
}

/// Recognises the dialect and the names of the columns.
fn recognise(source: &Source, longest: u64, too_long: impl Fn() -> Error) -> Result<Sniffed> {
    let mut len = HEAD.min(longest);
    loop {
        let mut head = vec![0; len.min(source.len()) as usize];
        let got = source.read_at_most(0, &mut head)?;
        head.truncate(got);
        let complete = got as u64 == source.len();
        // The names and a few rows.
        if complete || memchr::memchr_iter(b'\n', &head).count() > 4 {
            let message = "expected a table with one record per line";
            return sniff(&head, complete)
                .ok_or_else(|| Error::not_this_format("csv-001", message).at(0));
        }
        if len == longest {
            return Err(too_long().at(0));
        }
        len = (4 * len).min(longest);
    }
}

struct Scan<'a> {
    source: &'a Source,
    limits: &'a Limits,
    table: Table,
    /// Fields of a row; one more than columns if rows end with a separator.
    width: usize,
    /// Byte ranges of the fields of the current row.
    fields: Vec<Range<usize>>,
    /// Whether the current frame has non-empty and empty fields, one item per column.
    any: Vec<[bool; 2]>,
    /// The last number of the first column.
    last: Option<f64>,
    rising: bool,
}

impl<'a> Scan<'a> {
    fn new(source: &'a Source, limits: &'a Limits, sniffed: Sniffed) -> Result<Self> {
        let Sniffed { dialect, headings, title, rows: start, width, .. } = sniffed;
        let columns = headings.len();
        let bytes = (columns as u64).saturating_mul(COLUMN).saturating_add(start.saturating_mul(4));
        limits.allow(bytes, "the columns")?;
        let is_frame = |own: &Heading| own.path == "frame" && own.index.is_empty();
        let frames = headings.first().is_some_and(is_frame).then(|| {
            let moments = [Some(Vec::new()), Some(Vec::new())];
            Frames { gaps: vec![false; columns], moments, ..Frames::default() }
        });
        let table = Table {
            dialect,
            headings,
            title,
            rows: Rows { start, end: start, columns: columns as u64, ..Rows::default() },
            blocks: Vec::new(),
            seen: vec![Seen::default(); columns],
            quoted: false,
            spelling: Spelling::default(),
            frames,
            ordered: true,
        };
        let any = vec![[false; 2]; columns];
        Ok(Self {
            source,
            limits,
            table,
            width,
            fields: Vec::with_capacity(width),
            any,
            last: None,
            rising: true,
        })
    }

    fn record(&mut self, record: Record<'_>) -> Result<()> {
        let Record { offset: at, bytes: record, next, ended } = record;
        let dialect = self.table.dialect;
        if dialect.is_skipped(record) {
            return Ok(());
        }
        let start = record.as_ptr() as usize;
        self.fields.clear();
        self.fields.extend(dialect.fields(record).map(|field| {
            let from = field.as_ptr() as usize - start;
            from..from + field.len()
        }));
        let (found, columns) = (self.fields.len(), self.any.len());
        if found < columns && !ended {
            // The writer was interrupted.
            self.table.rows.partial = Some(found as u64);
            return Ok(());
        }
        let beyond = self.fields.get(columns..).unwrap_or_default();
        let empty = beyond.iter().all(|range| record[range.clone()].trim_ascii().is_empty());
        if found < columns || found > self.width || !empty {
            return Err(self.table.rows.wrong_width("csv-003", self.source, found as u64, at));
        }
        self.frame(at, record)?;
        if self.table.ordered {
            self.order(&record[self.fields[0].clone()]);
        }
        let fields = self.fields[..columns].iter().map(|range| &record[range.clone()]);
        for ((field, seen), any) in fields.zip(&mut self.table.seen).zip(&mut self.any) {
            seen.add(field);
            any[usize::from(field.is_empty())] = true;
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

    /// Compares a field of the first column with the one before.
    fn order(&mut self, field: &[u8]) {
        let number =
            parse_real(field, Spelling { comma: true }).filter(|number| number.is_finite());
        let Some(number) = number else {
            self.table.ordered = false;
            return;
        };
        if let Some(last) = self.last {
            if self.table.rows.count == 1 {
                self.rising = number > last;
            }
            self.table.ordered = number != last && (number > last) == self.rising;
        }
        self.last = Some(number);
    }

    /// Assigns a row to the current frame or the next one. A row of neither means that the first column
    /// does not number frames.
    fn frame(&mut self, at: u64, record: &[u8]) -> Result<()> {
        let Rows { count: rows, columns, .. } = self.table.rows;
        let Some(frames) = &mut self.table.frames else { return Ok(()) };
        let mut fields = self.fields.iter().map(|range| &record[range.clone()]);
        let text = std::str::from_utf8(fields.next().unwrap_or_default()).unwrap_or_default();
        let (number, known) = (text.parse::<u64>().ok(), frames.starts.len() as u64);
        let moments = [fields.next(), fields.next()];
        if known > 0 && number == Some(known - 1) {
            for (all, field) in frames.moments.iter_mut().zip(moments) {
                all.take_if(|all| all.last().map(Vec::as_slice) != Some(field.unwrap_or_default()));
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
                match (all.as_mut(), field.filter(|field| field.len() <= 32)) {
                    (Some(all), Some(field)) => all.push(field.to_vec()),
                    _ => *all = None,
                }
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
        let table = &mut self.table;
        table.ordered &= table.rows.count > 1 && table.frames.is_none();
        table.quoted = Seen::are_all_quoted(&table.seen);
        table.spelling = Spelling { comma: Seen::have_commas(&table.seen) };
        self.table
    }
}
