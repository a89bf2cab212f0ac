//! GSD (General Simulation Data): the trajectory format of HOOMD-blue.
//!
//! Specification: the design text of version 0.0.1 (2014). `FORMAT.md` describes the layouts of all
//! versions and the decisions on unclear points.
//!
//! | file | content |
//! |---|---|
//! | `wire` | header, index entries and element types of every version |
//! | `names` `index` | name list; index: end, lookup, validation of entries |
//! | `read` | [`File`]: frames and chunks |
//! | `to_tree` | the file as a tree of arrays |
//! | `from_tree` | writes any dataset as GSD and lists what is lost |
//! | `write` | [`Writer`]: appends frames with atomic commits |
//! | `semantics` | the HOOMD schema: particles, bonds, logs |
//! | `ops` | upgrade, trim, merge, append |
//! | `check` `salvage` | checks of complete files; recovery of damaged files |
//!
//! ```
//! use spile_core::{limits::Limits, sink::Overwrite};
//! use spile_gsd::{File, Mode, Version, Writer, wire::{About, Type}};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("example.gsd");
//! let about =
//!     About { application: "example".into(), schema: "mine".into(), schema_version: 1 << 16 };
//! let mut file =
//!     Writer::create(&path, Overwrite::Never, Version::V2_1, &about, Mode::default())?;
//! for frame in 0_u64..3 {
//!     file.write_chunk("count", Type::UInt64, 1, 1, &frame.to_le_bytes())?;
//!     file.end_frame()?;
//! }
//! file.close()?;
//!
//! let file = File::open(&path, &Limits::default())?;
//! assert_eq!(file.nframes()?, 3);
//! let chunk = file.find_chunk(2, "count")?.ok_or("no such chunk")?;
//! assert_eq!(file.read_chunk(&chunk)?, 2_u64.to_le_bytes());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod check;
mod from_tree;
mod index;
mod names;
pub mod ops;
mod read;
mod salvage;
pub mod semantics;
mod to_tree;
pub mod wire;
mod write;

pub use index::DataRange;
pub use read::{Chunk, File};
pub use write::{Commit, Mode, Version, Writer};

use spile_core::format::{Abilities, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

/// The format, for the registry.
pub struct Gsd;

static INFO: FormatInfo = FormatInfo {
    name: "gsd",
    title: "General Simulation Data",
    users: "particle simulators (HOOMD-blue, OVITO)",
    specification: "GSD 0.0.1 (2014) to 2.1",
    extensions: &["gsd"],
    read: Grade::Complete,
    write: Grade::Complete,
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

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self).salvager(self).concatenator(self)
    }
}
