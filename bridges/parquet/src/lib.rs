//! Apache Parquet tables.
//!
//! Specification: parquet-format 2. Plain pages without compression are read in place; compressed and encoded
//! pages are decoded chunk by chunk.
//!
//! | file | content |
//! |---|---|
//! | `thrift` `wire` | encoding of the metadata; structures of the file |
//! | `schema` `types` | leaf columns and their types |
//! | `read` | positions of the pages of columns |
//! | `rle` `encodings` `compression` | runs of values and of missing values; encodings of pages |
//! | `stored` `decode` | plain values as elements; decoding of chunks |
//! | `to_tree` `from_tree` | columns as a tree; a tree whose arrays have the same number of rows as a table |
//! | `write` | writer of files |
//! | `check` | decoding of all columns |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let opened = Dataset::open(&spile_parquet::Parquet, Source::memory("PAR1"), &OpenOptions::default());
//! let error = opened.err().unwrap();
//! assert_eq!(error.code(), "parquet-002");
//! ```
#![forbid(unsafe_code)]

mod check;
mod compression;
mod decode;
mod encodings;
mod from_tree;
mod read;
mod rle;
mod schema;
mod stored;
mod thrift;
mod to_tree;
mod types;
mod wire;
mod write;

use spile_core::error::Result;
use spile_core::format::{Abilities, Format, FormatInfo, Grade, Head, OpenOptions, Parsed, Score};
use spile_core::source::Source;

/// The format, for the registry.
pub struct Parquet;

static INFO: FormatInfo = FormatInfo {
    name: "parquet",
    title: "Apache Parquet table",
    users: "everyone with pandas, Arrow, DuckDB",
    specification: "parquet-format 2",
    extensions: &["parquet"],
    read: Grade::Partial,
    write: Grade::Partial,
    check: Grade::Partial,
    salvage: Grade::None,
};

impl Format for Parquet {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        let known = [wire::MAGIC, wire::ENCRYPTED];
        if known.iter().any(|magic| head.bytes.starts_with(magic)) { 100 } else { 0 }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}
