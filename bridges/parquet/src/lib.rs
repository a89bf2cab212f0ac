//! Apache Parquet, for tables: logged quantities, particles.
//!
//! Specification: parquet-format 2, of which this reads and writes plain pages without compression. Their
//! values lie there as they are, so they are read in place like those of any other format.
//!
//! | file | what is in it |
//! |---|---|
//! | `thrift` `wire` | the metadata: their encoding, and what the fields mean |
//! | `levels` | which rows have values |
//! | `column` `read` | where the pages of a column lie; columns to arrays |
//! | `write` | any tree that is a table |
//!
//! ```
//! use spile_core::{format::Format, limits::Limits, source::Source};
//!
//! let error = spile_parquet::Parquet.open(Source::memory("PAR1"), &Limits::default()).err().unwrap();
//! assert_eq!(error.code(), "parquet-002");
//! ```
#![forbid(unsafe_code)]

mod column;
mod hybrid;
mod levels;
mod packed;
mod read;
mod thrift;
mod wire;
mod write;

use spile_core::error::Result;
use spile_core::format::{Format, FormatInfo, Grade, Head, Reader, Score};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;

use read::File;

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
        write::write_tree(content, sink, limits)
    }
}
