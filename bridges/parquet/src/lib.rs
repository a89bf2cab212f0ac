//! Apache Parquet tables.
//!
//! Specification: parquet-format 2. Written are plain pages without compression, which are read in place;
//! compressed and dictionary-encoded pages of other writers are decoded.
//!
//! | file | content |
//! |---|---|
//! | `thrift` `wire` | encoding of the metadata; structures of the file |
//! | `read` | leaf columns and the positions of their pages |
//! | `levels` `rle` `decode` | missing values; decoding of pages |
//! | `to_tree` `from_tree` | columns as a tree; a tree whose arrays have the same number of rows as a table |
//! | `write` | writer of files |
//!
//! ```
//! use spile_core::{format::Format, limits::Limits, source::Source};
//!
//! let error = spile_parquet::Parquet.open(Source::memory("PAR1"), &Limits::default()).err().unwrap();
//! assert_eq!(error.code(), "parquet-002");
//! ```
#![forbid(unsafe_code)]

mod decode;
mod from_tree;
mod levels;
mod read;
mod rle;
mod thrift;
mod to_tree;
mod wire;
mod write;

use spile_core::error::Result;
use spile_core::format::{Format, FormatInfo, Grade, Head, Reader, Score};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;

use to_tree::File;

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
        if head.bytes.starts_with(wire::MAGIC) { 100 } else { 0 }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(File::open(source, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let mut report = Report::default();
        match File::open(source.clone(), limits) {
            Ok(file) => {
                report.findings.extend_from_slice(file.findings());
                file.verify(&mut report, limits)?;
            }
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        from_tree::write_tree(content, sink, limits)
    }
}
