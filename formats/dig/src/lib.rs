//! NTS `.dig`: one channel of a transient digitizer.
//!
//! There is no published specification; `FORMAT.md` describes what is known.
//!
//! | file | content |
//! |---|---|
//! | `wire` | on-disk structures: eight lines of text before byte 1024 |
//! | `to_tree` | header and samples as a recording |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let mut bytes = vec![0; 768];
//! bytes.extend(b"system\ntime\n2\n8\n1e-9\n0\n0.5\n-1\n");
//! bytes.resize(1024, 0);
//! bytes.extend([2, 6]);
//! let file = Dataset::open(&spile_dig::Dig, Source::memory(bytes), &OpenOptions::default())?;
//! let (id, ..) = file.arrays().next().unwrap();
//! let values: Vec<f64> = file.array_at(id)?.read("...")?;
//! assert_eq!(values, [0.0, 2.0]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod to_tree;
mod wire;

pub use to_tree::SampleFormat;

use spile_core::format::{Abilities, Checker, FormatInfo, Grade, Head, Score};
use spile_core::{Dataset, Format, OpenOptions, Parsed, Result, Source};

/// Opens a file with samples of the given format, which the file does not store.
///
/// # Errors
/// Not such a file, or a file that ends inside the header or the samples.
pub fn open(source: Source, format: SampleFormat, options: &OpenOptions) -> Result<Dataset> {
    Dataset::from_parsed(&INFO, to_tree::open_as(source, format, options)?, options)
}

/// The NTS `.dig` format, for the registry.
pub struct Dig;

static INFO: FormatInfo = FormatInfo {
    name: "dig",
    title: "NTS transient digitizer record",
    users: "experimentalists with NTS digitizers",
    specification: "none",
    extensions: &["dig"],
    read: Grade::Partial,
    write: Grade::None,
    check: Grade::Partial,
    salvage: Grade::None,
};

impl Format for Dig {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// There is no magic. Six numeric lines before byte 1024 give a low score, because they can also be a column
    /// of numbers; samples that end exactly at the end of the file give a high one.
    fn probe(&self, head: Head<'_>) -> Score {
        match wire::Header::parse(head.bytes) {
            Ok(header) if header.end().is_some_and(|end| end == head.len) => 80,
            Ok(_) => 10,
            Err(_) => 0,
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().checker(self)
    }
}

impl Checker for Dig {}
