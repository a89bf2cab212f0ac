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
//! | `from_tree` | a dataset as a table |
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

mod compression;
mod from_tree;
mod heading;
mod read;
mod sniff;
mod to_tree;
mod value;
mod wire;

use compression::{Compression, from_utf16};
use spile_core::error::Result;
use spile_core::format::{
    Abilities, Checker, Format, FormatInfo, Grade, Head, OpenOptions, Parsed, Score,
};
use spile_core::source::Source;

/// The format, for the registry.
pub struct Csv;

static INFO: FormatInfo = FormatInfo {
    name: "csv",
    title: "Table of comma-separated values",
    users: "everyone with a spreadsheet or pandas",
    specification: "RFC 4180",
    extensions: &["csv", "csv.gz", "csv.zst"],
    read: Grade::Partial,
    write: Grade::Partial,
    check: Grade::Partial,
    salvage: Grade::None,
};

impl Format for Csv {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// Tables with names are recognised by columns of numbers or by quotes; see `sniff`.
    fn probe(&self, head: Head<'_>) -> Score {
        let complete = head.bytes.len() as u64 == head.len;
        let Some(compression) = Compression::of(head.bytes) else {
            let found = match from_utf16(head.bytes) {
                Some(text) => sniff::sniff(text.as_bytes(), complete),
                None => sniff::sniff(head.bytes, complete),
            };
            return found.map_or(0, |found| found.score);
        };
        // No other format reads compressed text. The first block of Zstandard or bzip2 may be longer than the head.
        let text = compression.beginning(head.bytes);
        if text.is_empty() && compression != Compression::Gzip {
            return 1;
        }
        sniff::sniff(&text, false).map_or(0, |found| found.score.max(1))
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}

impl Checker for Csv {}
