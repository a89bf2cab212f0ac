//! Columns of numbers in text files.
//!
//! There is no specification; `FORMAT.md` describes what is accepted.
//!
//! | file | content |
//! |---|---|
//! | `read` | one pass over the lines: position, number and width of the rows |
//! | `oscilloscope` | headers of the CSV files of oscilloscopes |
//! | `semantics` | a uniformly spaced first column; names and units of columns |
//! | `to_tree` | the model view; numbers are parsed when they are read |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let text = "time (s)\tvoltage (V)\n0.0\t1.5\n0.1\t1.25D+00\n";
//! let file = Dataset::open(&spile_columns::Columns, Source::memory(text), &OpenOptions::default())?;
//! assert_eq!(file.array("data")?.read::<Vec<f64>>("1, :")?, [0.1, 1.25]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod oscilloscope;
mod read;
mod semantics;
mod to_tree;

use spile_core::format::{Abilities, Checker, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

/// The format, for the registry.
pub struct Columns;

static INFO: FormatInfo = FormatInfo {
    name: "columns",
    title: "Columns of numbers in a text file",
    users: "everyone",
    specification: "none",
    extensions: &["txt", "csv", "dat", "tsv", "asc"],
    read: Grade::Complete,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

impl Format for Columns {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// The score is low: any text may contain rows of numbers.
    fn probe(&self, head: Head<'_>) -> Score {
        let complete = head.bytes.len() as u64 == head.len;
        read::looks_like_rows(head.bytes, complete)
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().checker(self)
    }
}

impl Checker for Columns {}
