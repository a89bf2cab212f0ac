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
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let opened = Dataset::open(&spile_parquet::Parquet, Source::memory("PAR1"), &OpenOptions::default());
//! let error = opened.err().unwrap();
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

use std::path::Path;

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::{
    Abilities, Checker, Format, FormatInfo, FormatWriter, Grade, Head, Loss, OpenOptions, Parsed,
    Score,
};
use spile_core::limits::Limits;
use spile_core::report::{Report, Severity};
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

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        File::read(&source, &options.limits).map(|file| file.parsed(source))
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}

/// Codes of columns that are not supported.
const UNSUPPORTED: [&str; 3] = ["parquet-006", "parquet-020", "parquet-021"];

impl Checker for Parquet {
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let mut report = Report::default();
        match File::read(source, limits) {
            Ok(file) => {
                report.findings.clone_from(&file.warnings);
                // Columns that are not supported may be valid.
                for finding in report.findings.iter_mut().filter(|f| UNSUPPORTED.contains(&f.code))
                {
                    finding.severity = Severity::Warning;
                }
                file.columns.verify(source, limits, &mut report)?;
            }
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }
}

impl FormatWriter for Parquet {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        from_tree::losses(content)
    }

    fn write(&self, content: &Dataset, sink: &mut Sink) -> Result<Vec<Loss>> {
        from_tree::write_tree(content, sink)?;
        Ok(Vec::new())
    }
}
