//! Text tables: comma-separated values below a line of quoted column names (RFC 4180).
//!
//! `FORMAT.md` describes the column names, and how arrays of several dimensions and frames are stored.
//!
//! | file | content |
//! |---|---|
//! | `wire` | records, fields, quotes |
//! | `heading` | name of a column: path, index, units, type |
//! | `value` | type inference and parsing of fields |
//! | `read` | one pass over the rows: number, positions, kinds of fields |
//! | `to_tree` | the model view; values are parsed when they are read |
//! | `from_tree` | a tree whose arrays have the same number of rows as a table |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let text = "\"id\",\"x (m)\"\n1,0.5\n2,0.25\n";
//! let file = Dataset::open(&spile_csv::Csv, Source::memory(text), &OpenOptions::default())?;
//! assert_eq!(file.array("x")?.read::<Vec<f64>>(":")?, [0.5, 0.25]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod from_tree;
mod heading;
mod read;
mod to_tree;
mod value;
mod wire;

use std::path::Path;

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::{
    Abilities, Checker, Format, FormatInfo, FormatWriter, Grade, Head, Loss, OpenOptions, Parsed,
    Score,
};
use spile_core::limits::Limits;
use spile_core::recording;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;

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

    /// Quoted names are a table; anything else may be columns of numbers.
    fn probe(&self, head: Head<'_>) -> Score {
        let binary = |b: &u8| *b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r');
        if head.bytes.first() != Some(&b'"') || head.bytes.iter().any(binary) {
            return 0;
        }
        match wire::record_end(head.bytes) {
            Some((end, _)) if read::headings(&head.bytes[..end]).is_some() => 60,
            // A first line longer than the head, or a file without rows.
            None if !head.bytes.contains(&b'\n') => 30,
            _ => 0,
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, &options.limits)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}

impl Checker for Csv {
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        recording::report(to_tree::open(source.clone(), limits))
    }
}

impl FormatWriter for Csv {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        from_tree::losses(content)
    }

    fn write(&self, content: &Dataset, sink: &mut Sink) -> Result<Vec<Loss>> {
        from_tree::write_tree(content, sink)?;
        Ok(Vec::new())
    }
}
