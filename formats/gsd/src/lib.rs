//! GSD, the General Simulation Data format: trajectories of HOOMD-blue, frame by frame.
//!
//! Specification: the design text of version 0.0.1 (2014); the layouts of all later versions, and
//! what is unclear anywhere, are in `FORMAT.md`.
//!
//! | file | what is in it |
//! |---|---|
//! | `wire` | header, index entries and types of every version |
//! | `names` `index` | chunk names; entries found by bisection and checked before use |
//! | `read` `view` | [`File`]: frames and chunks; [`View`]: the tree view |
//! | `check` | the rules |
#![forbid(unsafe_code)]

mod assemble;
mod check;
mod index;
mod names;
pub mod ops;
mod read;
mod salvage;
pub mod schema;
mod view;
pub mod wire;
mod write;

pub use index::Place;
pub use read::{Chunk, File};
pub use view::View;
pub use write::{Commit, Mode, Version, Writer};

use spile_core::error::Result;
use spile_core::format::{Format, FormatInfo, Grade, Head, Reader, Salvage, Score};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;

/// The format, for the registry.
pub struct Gsd;

static INFO: FormatInfo = FormatInfo {
    name: "gsd",
    title: "General Simulation Data",
    users: "particle simulators (HOOMD-blue, OVITO)",
    specification: "GSD 0.0.1 (2014) to 2.1",
    extensions: &["gsd"],
    read: Grade::Complete,
    write: Grade::Partial,
    check: Grade::Complete,
    salvage: Grade::Complete,
};

impl Format for Gsd {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match head.bytes {
            [0xdf, 0x65, 0xdf, 0x65, ..] => 100,
            _ => 0,
        }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(View::new(File::from_source(&source, limits)?, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        check::check(source, limits, strict)
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        assemble::write_tree(content, sink, limits)
    }

    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        salvage::salvage(source, target, limits)
    }
}
