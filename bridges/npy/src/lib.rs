//! NumPy's `.npy`, an array with a short header, and `.npz`, a zip archive of such files.
//!
//! Specification: NEP 1 and the module `numpy.lib.format`, versions 1.0 to 3.0; for archives the subset of
//! PKWARE's APPNOTE.TXT that NumPy uses.
//!
//! | file | content |
//! |---|---|
//! | `wire` `structured` | the header and its dictionary; structured types |
//! | `utf32` | strings of 32-bit characters |
//! | `location` `inflate` | location of a `.npy` stream: file or member of an archive, stored or deflated |
//! | `to_tree` `from_tree` | one array as a tree; the array of a tree as `.npy` |
//! | `npz` | archives |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let mut bytes = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
//! bytes.extend(format!("{:<69}\n", "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }").bytes());
//! bytes.extend([1, 0, 2, 0]);
//! let file = Dataset::open(&spile_npy::Npy, Source::memory(bytes), &OpenOptions::default())?;
//! assert_eq!(file.array("data")?.read::<Vec<i16>>(":")?, [1, 2]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod from_tree;
mod inflate;
mod location;
pub mod npz;
mod structured;
mod to_tree;
mod utf32;
mod wire;

use std::path::Path;

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::{
    Abilities, Checker, Format, FormatInfo, FormatWriter, Grade, Head, Loss, OpenOptions, Parsed,
    Score,
};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;

pub use npz::Npz;

/// The format, for the registry.
pub struct Npy;

static INFO: FormatInfo = FormatInfo {
    name: "npy",
    title: "NumPy array",
    users: "everyone with Python",
    specification: "NEP 1",
    extensions: &["npy"],
    read: Grade::Partial,
    write: Grade::Complete,
    check: Grade::Partial,
    salvage: Grade::None,
};

impl Format for Npy {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        if head.bytes.starts_with(wire::MAGIC) { 100 } else { 0 }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        let (header, tree) = to_tree::read(&source, &options.limits)?;
        let summary = header.summary();
        Ok(Parsed::new(source, tree).with_summary(summary).with_native(header))
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}

impl Checker for Npy {
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let mut report = Report::default();
        match to_tree::read(source, limits) {
            Ok((header, _)) => {
                let end = header.end()?;
                if source.len() > end {
                    let more = source.len() - end;
                    report.warn("npy-010", format!("{more} bytes follow the array")).at(end);
                }
            }
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }
}

impl FormatWriter for Npy {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        from_tree::losses(content)
    }

    fn write(&self, content: &Dataset, sink: &mut Sink) -> Result<Vec<Loss>> {
        from_tree::write_tree(content, sink)?;
        Ok(Vec::new())
    }
}
