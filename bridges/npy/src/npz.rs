//! NumPy's `.npz`: a zip archive of `.npy` files.
//!
//! | file | content |
//! |---|---|
//! | `wire` | structures of the archive |
//! | `write` | writer of archives |
//! | `to_tree` `from_tree` | members as a tree; a tree as an archive |
//! | `check` `salvage` | checksums; recovery of archives without a directory |

mod check;
mod from_tree;
mod salvage;
mod to_tree;
mod wire;
mod write;

use std::path::Path;

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::{
    Abilities, Checker, Format, FormatInfo, FormatWriter, Grade, Head, Loss, OpenOptions, Parsed,
    Salvage, Salvager, Score,
};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;

/// Name suffix of members that are arrays.
const ENDING: &str = ".npy";

/// The format, for the registry.
pub struct Npz;

static INFO: FormatInfo = FormatInfo {
    name: "npz",
    title: "NumPy archive",
    users: "everyone with Python",
    specification: "numpy.savez, APPNOTE 6.3",
    extensions: &["npz"],
    read: Grade::Partial,
    write: Grade::Complete,
    check: Grade::Complete,
    salvage: Grade::Partial,
};

impl Format for Npz {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// A zip archive is recognised if its first member is an array or the metadata.
    fn probe(&self, head: Head<'_>) -> Score {
        if head.bytes.starts_with(&wire::END) {
            return 30;
        }
        let local = head.bytes.starts_with(&wire::LOCAL);
        let length = head.bytes.get(26..28).map(|n| usize::from(n[0]) | usize::from(n[1]) << 8);
        let name = length.and_then(|n| head.bytes.get(30..30 + n));
        match name {
            Some(name) if local && name.ends_with(ENDING.as_bytes()) => 100,
            Some(name) if local && name == from_tree::DESCRIPTION.as_bytes() => 100,
            _ => 0,
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, &options.limits)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self).salvager(self)
    }
}

impl Checker for Npz {
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        check::check(source, limits)
    }
}

impl FormatWriter for Npz {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        from_tree::losses(content)
    }

    fn write(&self, content: &Dataset, sink: &mut Sink) -> Result<Vec<Loss>> {
        from_tree::write_tree(content, sink)?;
        Ok(Vec::new())
    }
}

impl Salvager for Npz {
    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        salvage::salvage(source, target, limits)
    }
}
