//! TAF, the Thrifty Array Format: one numeric array of any size, designed for memory mapping.
//!
//! Specification: D. H. Dolan, *Thrifty Array Format (TAF) file specifications*, Sandia report
//! SAND2023-07387. `FORMAT.md` lists the decisions where the report is ambiguous.
//!
//! | file | content |
//! |---|---|
//! | `wire` | on-disk structures: opening and header |
//! | `read` | [`File`]: header, array, comments |
//! | `to_tree` | header and comments as a `Tree` |
//! | `from_tree` | any dataset with one array as TAF |
//! | `write` | header and elements into a sink |
//! | `metadata` | JSON metadata in the comments, for what the header cannot express |
//! | `journal` | changes that are safe against crashes |
//! | `check` | findings about readable files |
//! | `salvage` | recovery of truncated files |
//! | `ops` | operations of the report's Table 3-1 that create or modify files |
//!
//! ```
//! use spile_core::{limits::Limits, sink::Overwrite};
//! use spile_taf::{File, ops};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("example.taf");
//! ops::example(&path, 2, Overwrite::Never)?;
//!
//! let file = File::open(&path, &Limits::default())?;
//! assert_eq!(file.header().shape().to_string(), "101 x 3");
//! let (values, grids) = file.read(&"50, :".parse()?)?;
//! assert_eq!(grids[0], [0.5]);
//! assert_eq!(values, [0.5, 0.25, 0.125]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod check;
mod from_tree;
mod journal;
mod metadata;
pub mod ops;
mod read;
mod salvage;
mod to_tree;
pub mod wire;
mod write;

pub use metadata::metadata_line;
pub use read::File;

use spile_core::format::{Abilities, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

/// The TAF format, for the registry.
pub struct Taf;

static INFO: FormatInfo = FormatInfo {
    name: "taf",
    title: "Thrifty Array Format",
    users: "experimentalists with digitizers",
    specification: "SAND2023-07387",
    extensions: &["taf"],
    read: Grade::Complete,
    write: Grade::Complete,
    check: Grade::Complete,
    salvage: Grade::Complete,
};

impl Format for Taf {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// The magic is "TAF ", three bytes and a newline. Genome alignments with the same extension
    /// start with "#".
    fn probe(&self, head: Head<'_>) -> Score {
        match head.bytes {
            [b'T', b'A', b'F', b' ', _, _, _, b'\n', ..] => 100,
            [b'T', b'A', b'F', b' ', ..] => 60,
            _ => 0,
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self).salvager(self)
    }
}
