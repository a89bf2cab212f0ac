//! Apache Arrow files and streams (IPC, Feather version 2).
//!
//! Specification: Arrow Columnar Format 1.5. Columns without compression, missing values and conversion are byte ranges
//! and are read in place; others are decoded record batch by record batch.
//!
//! | file | content |
//! |---|---|
//! | `wire` | structures of the file: footer, schema, record batches |
//! | `stream` | messages of a file without footer |
//! | `types` | types of columns |
//! | `read` | columns: positions of buffers, lengths of strings, dictionaries |
//! | `decode` | buffers of a record batch as elements |
//! | `to_tree` `from_tree` | columns as a tree; a dataset as a table |
//! | `write` | writer of files |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let opened = Dataset::open(&spile_arrow::Arrow, Source::memory("ARROW1\0\0"), &OpenOptions::default());
//! assert_eq!(opened.err().unwrap().code(), "arrow-002");
//! ```
#![forbid(unsafe_code)]

mod decode;
mod from_tree;
mod read;
mod stream;
mod to_tree;
mod types;
mod wire;
mod write;

use spile_core::format::{Abilities, Checker, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

/// The format, for the registry.
pub struct Arrow;

static INFO: FormatInfo = FormatInfo {
    name: "arrow",
    title: "Apache Arrow table (IPC file, Feather)",
    users: "everyone with pandas, polars, R",
    specification: "Arrow Columnar Format 1.5",
    extensions: &["arrow", "feather"],
    read: Grade::Partial,
    write: Grade::Partial,
    check: Grade::Partial,
    salvage: Grade::None,
};

impl Format for Arrow {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        let known = [wire::MAGIC, wire::FEATHER_1];
        let is_known = known.iter().any(|magic| head.bytes.starts_with(magic));
        if is_known || stream::is_stream(head.bytes) { 100 } else { 0 }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}

impl Checker for Arrow {}
