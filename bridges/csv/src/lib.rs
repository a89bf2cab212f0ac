//! Tables in text: comma-separated values under a line of names in quotes, as RFC 4180 has them.
//!
//! `FORMAT.md` says what stands in the names, and how arrays of several dimensions and frames are laid out.
//!
//! | file | what is in it |
//! |---|---|
//! | `header` | the name of a column: path, component, units, type |
//! | `record` `value` | rows and fields; one field as a value |
//! | `scan` | one pass over the rows: how many, of what, where |
//! | `read` | the tree view; the values are parsed when they are asked for |
//! | `write` | any tree whose arrays have as many rows |
//!
//! ```
//! use spile_core::{format::Format, limits::Limits, read::*, select::Selection, source::Source};
//!
//! let text = "\"id\",\"x (m)\"\n1,0.5\n2,0.25\n";
//! let limits = Limits::default();
//! let file = spile_csv::Csv.open(Source::memory(text), &limits)?;
//! let x = file.tree().node(file.tree().find("x")?);
//! let array = Array::open(file.source(), file.tree(), x.array.as_ref().unwrap(), &limits)?;
//! assert_eq!(array.read_f64(&Selection::all(), Axes::Stored)?, [0.5, 0.25]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod header;
mod read;
mod record;
mod scan;
mod value;
mod write;

use spile_core::error::Result;
use spile_core::format::{Format, FormatInfo, Grade, Head, Reader, Score};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;

use read::File;

/// The format, for the registry.
pub struct Csv;

static INFO: FormatInfo = FormatInfo {
    name: "csv",
    title: "Table of comma-separated values",
    users: "everyone with a spreadsheet or pandas",
    specification: "RFC 4180",
    extensions: &["csv"],
    read: Grade::Partial,
    write: Grade::Partial,
    check: Grade::Partial,
    salvage: Grade::None,
};

impl Format for Csv {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// Names in quotes are a table; anything else may be columns of numbers.
    fn probe(&self, head: Head<'_>) -> Score {
        let binary = |b: &u8| *b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r');
        if head.bytes.first() != Some(&b'"') || head.bytes.iter().any(binary) {
            return 0;
        }
        match record::record_end(head.bytes) {
            Some((end, _)) if scan::names(&head.bytes[..end]).is_some() => 60,
            // A long line of names, or a file without rows.
            None if !head.bytes.contains(&b'\n') => 30,
            _ => 0,
        }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(File::open(source, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let mut report = Report::default();
        match File::open(source.clone(), limits) {
            Ok(file) if file.table.partial > 0 => {
                let (got, of) = (file.table.partial, file.table.cells.len());
                let message = format!("the last row has {got} of {of} fields; it is left out");
                report.warn("csv-010", message).at(file.table.end);
            }
            Ok(_) => {}
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        write::write_tree(content, sink, limits)
    }
}
