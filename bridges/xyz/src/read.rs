//! One pass over a file: where the rows of each frame are, and the values of its comment line.

use std::collections::HashMap;

use spile_core::error::{Error, Result};
use spile_core::limits::{Budget, Limits};
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::text_records::{Record, each_record};

use crate::wire::{self, DEFAULT_PROPERTIES, Info, Letter, Property, Values};

/// Longest line in bytes.
const LONGEST: usize = 64 << 20;

/// Upper bound of the memory of a frame without the values of its comment line, in bytes.
const FRAME_BYTES: u64 = 128;

/// Upper bound of the memory of a value of a comment line, without its text.
const VALUE_BYTES: u64 = 256;

/// A frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    /// First byte of the line with the number of atoms.
    pub(crate) offset: u64,
    /// First byte of the rows.
    pub(crate) start: u64,
    /// First byte after the rows.
    pub(crate) end: u64,
    /// Number of atoms.
    pub(crate) atoms: u64,
    /// Number of its list of columns in [`File::layouts`].
    pub(crate) layout: usize,
    pub(crate) step: Option<u64>,
    pub(crate) time: Option<f64>,
    /// Cell vectors as rows.
    pub(crate) cell: Option<[f64; 9]>,
    pub(crate) pbc: Option<[bool; 3]>,
}

/// The frames of a file.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) frames: Vec<Frame>,
    /// Different lists of columns, in the order of their first frames.
    pub(crate) layouts: Vec<Vec<Property>>,
    /// Length of the longest text of each property of a list of columns; 0 for other types.
    pub(crate) widths: Vec<Vec<usize>>,
    /// Keys of comment lines in the order of their first use, with the values by frame.
    pub(crate) infos: Vec<(String, Vec<(u64, Info)>)>,
    pub(crate) report: Report,
}

/// What the next line is.
enum Next {
    Count,
    Comment(Frame),
    Rows(Frame, u64),
}

struct Scan {
    file: File,
    budget: Budget,
    layouts: HashMap<String, usize>,
    infos: HashMap<String, usize>,
    next: Next,
    /// Warnings about surplus columns, and about cells, are given once.
    warned: (bool, bool),
}

/// Scans `source`. An incomplete last frame is a warning, unless it is the first.
pub(crate) fn scan(source: &Source, limits: &Limits) -> Result<File> {
    let mut scan = Scan {
        file: File::default(),
        budget: Budget::new(limits),
        layouts: HashMap::new(),
        infos: HashMap::new(),
        next: Next::Count,
        warned: (false, false),
    };
    let longest = LONGEST.min(usize::try_from(limits.memory / 4).unwrap_or(LONGEST)).max(4096);
    let too_long = || Error::not_this_format("xyz-002", "a line is longer than 64 MiB");
    each_record(source, 0, longest, wire::line_end, too_long, |record| scan.line(record))?;
    let open = match &scan.next {
        Next::Count => None,
        Next::Comment(frame) => Some((frame, 0)),
        Next::Rows(frame, rows) => Some((frame, *rows)),
    };
    if let Some((frame, rows)) = open {
        let message = format!("expected {} atoms, found {rows}", frame.atoms);
        if scan.file.frames.is_empty() {
            return Err(Error::truncated("xyz-003", message).in_frame(0).at(frame.offset));
        }
        let message = format!("the last frame is not read: {message}");
        let number = scan.file.frames.len() as u64;
        // Values of its comment line.
        for (_, values) in &mut scan.file.infos {
            values.retain(|(frame, _)| *frame < number);
        }
        scan.file.infos.retain(|(_, values)| !values.is_empty());
        scan.file.report.warn("xyz-010", message).in_frame(number).at(frame.offset);
    }
    if scan.file.frames.is_empty() {
        return Err(Error::not_this_format("xyz-001", "the file has no frames").at(0));
    }
    Ok(scan.file)
}

impl Scan {
    fn line(&mut self, record: Record<'_>) -> Result<()> {
        match std::mem::replace(&mut self.next, Next::Count) {
            Next::Count => self.count(record),
            Next::Comment(frame) => self.comment(frame, record),
            Next::Rows(frame, rows) => {
                self.row(&frame, rows, record)?;
                self.advance(Frame { end: record.next, ..frame }, rows + 1);
                Ok(())
            }
        }
    }

    /// Waits for the next row of a frame, or adds it if it is complete.
    fn advance(&mut self, frame: Frame, rows: u64) {
        if rows < frame.atoms {
            self.next = Next::Rows(frame, rows);
        } else {
            self.file.frames.push(frame);
        }
    }

    fn count(&mut self, record: Record<'_>) -> Result<()> {
        let text = record.bytes.trim_ascii();
        if text.is_empty() && !self.file.frames.is_empty() {
            return Ok(());
        }
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<u64>().ok());
        let frame = self.file.frames.len() as u64;
        let Some(atoms) = number else {
            let message = "expected the number of atoms";
            return Err(match frame {
                0 => Error::not_this_format("xyz-001", message),
                _ => Error::malformed("xyz-003", message).in_frame(frame),
            }
            .at(record.offset));
        };
        self.budget.charge(FRAME_BYTES, "the frames of the file")?;
        self.next = Next::Comment(Frame { offset: record.offset, atoms, ..Frame::default() });
        Ok(())
    }

    fn comment(&mut self, mut frame: Frame, record: Record<'_>) -> Result<()> {
        let number = self.file.frames.len() as u64;
        let line = String::from_utf8_lossy(record.bytes);
        // Keys, values and their texts.
        let cost = (line.matches('=').count() as u64 + 1).saturating_mul(VALUE_BYTES);
        self.budget.charge(cost + 8 * line.len() as u64, "the values of comment lines")?;
        let mut layout = DEFAULT_PROPERTIES.to_string();
        for (key, info) in wire::pairs(&line) {
            match key.as_str() {
                "Properties" => layout = info.text,
                "Lattice" | "pbc" => {
                    let known = if key == "pbc" {
                        frame.pbc = logicals(&info);
                        frame.pbc.is_some()
                    } else {
                        frame.cell = reals(&info);
                        frame.cell.is_some()
                    };
                    if !known && !self.warned.1 {
                        self.warned.1 = true;
                        let message = format!("{key} is not read: {}", shortened(&info.text));
                        let finding = self.file.report.warn("xyz-012", message);
                        finding.in_frame(number).at(record.offset);
                    }
                }
                "step" | "Step" | "timestep" | "Timestep"
                    if frame.step.is_none() && step(&info).is_some() =>
                {
                    frame.step = step(&info);
                }
                "time" | "Time" if frame.time.is_none() && time(&info).is_some() => {
                    frame.time = time(&info);
                }
                _ => {
                    let infos = &mut self.file.infos;
                    let at = *self.infos.entry(key).or_insert_with_key(|key| {
                        infos.push((key.clone(), Vec::new()));
                        infos.len() - 1
                    });
                    let values = &mut infos[at].1;
                    // Of a key that is there twice the first value counts.
                    if values.last().is_none_or(|(frame, _)| *frame != number) {
                        values.push((number, info));
                    }
                }
            }
        }
        if frame.cell.is_some() && frame.pbc.is_none() {
            frame.pbc = Some([true; 3]);
        }
        frame.layout = if let Some(known) = self.layouts.get(&layout) {
            *known
        } else {
            let Some(properties) = wire::properties(&layout) else {
                let message = format!("invalid list of columns \"{}\"", shortened(&layout));
                let error = Error::malformed("xyz-005", message);
                return Err(error.in_frame(number).at(record.offset));
            };
            let cost = layout.len() + 96 * properties.len();
            self.budget.charge(2 * cost as u64, "the lists of columns")?;
            self.file.widths.push(vec![0; properties.len()]);
            self.file.layouts.push(properties);
            self.layouts.insert(layout, self.file.layouts.len() - 1);
            self.file.layouts.len() - 1
        };
        (frame.start, frame.end) = (record.next, record.next);
        self.advance(frame, 0);
        Ok(())
    }

    /// Notes the lengths of the texts of a row; the number of fields is checked in the first row.
    fn row(&mut self, frame: &Frame, row: u64, record: Record<'_>) -> Result<()> {
        let properties = &self.file.layouts[frame.layout];
        let number = self.file.frames.len() as u64;
        let mut fields = wire::fields(record.bytes);
        if row == 0 {
            let expected: usize = properties.iter().map(|property| property.columns).sum();
            let found = wire::fields(record.bytes).count();
            if found < expected {
                let message = format!("expected {expected} columns, found {found}");
                let error = Error::malformed("xyz-004", message);
                return Err(error.in_frame(number).at(record.offset));
            }
            if found > expected && !self.warned.0 {
                self.warned.0 = true;
                let message = format!("columns after the first {expected} are not read");
                self.file.report.warn("xyz-011", message).in_frame(number).at(record.offset);
            }
        }
        let Some(last) = properties.iter().rposition(|p| p.letter == Letter::Text) else {
            return Ok(());
        };
        let widths = &mut self.file.widths[frame.layout];
        for (property, width) in properties[..=last].iter().zip(widths) {
            let own = fields.by_ref().take(property.columns);
            if property.letter != Letter::Text {
                own.for_each(drop);
                continue;
            }
            *width = own.map(<[u8]>::len).fold(*width, usize::max);
        }
        Ok(())
    }
}

/// The first characters of a text from the file, for messages.
fn shortened(text: &str) -> String {
    text.chars().take(60).collect()
}

fn reals(info: &Info) -> Option<[f64; 9]> {
    match &info.values {
        Values::Reals(values) => values.as_slice().try_into().ok(),
        Values::Integers(values) => {
            let values: Vec<f64> = values.iter().map(|value| *value as f64).collect();
            values.try_into().ok()
        }
        _ => None,
    }
}

fn logicals(info: &Info) -> Option<[bool; 3]> {
    match &info.values {
        Values::Logicals(values) => values.as_slice().try_into().ok(),
        // As numbers.
        Values::Integers(values) => {
            let values: Vec<bool> = values.iter().map(|value| *value != 0).collect();
            values.try_into().ok()
        }
        _ => None,
    }
}

fn step(info: &Info) -> Option<u64> {
    let is_number = !matches!(info.values, Values::Text | Values::Logicals(_));
    info.text.parse().ok().filter(|_| is_number && info.lengths.is_empty())
}

fn time(info: &Info) -> Option<f64> {
    match (&info.values, &info.lengths[..]) {
        (Values::Integers(values), []) => values.first().map(|value| *value as f64),
        (Values::Reals(values), []) => values.first().copied(),
        _ => None,
    }
}
