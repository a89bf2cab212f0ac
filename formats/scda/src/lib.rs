//! scda: one file for a parallel program, the same bytes on any number of processes.
//!
//! Specification: T. Griesbach and C. Burstedde, *scda: A Minimal, Serial-Equivalent Format for
//! Parallel I/O* (2023), version a0 with its compression convention; what is unclear there is
//! decided in `FORMAT.md`.
//!
//! | file | what is in it |
//! |---|---|
//! | `wire` | paddings, counts, the file header, raw sections |
//! | `digits` | counts, quickly |
//! | `codec` | the compression convention's algorithm |
//! | `read` | [`File`] and [`Section`]: sections decoded; the tree view |
//! | `write` `partition` | [`Writer`] and [`Cursor`]: sections written and read by all ranks of a job |
//! | `elements` | where a rank's elements come from and go to |
//! | `content` `recode` | bytes of sections and arrays as a stream; the same content in another encoding |
//! | `schema` `checkpoint` | named, typed fields as sections: [`Field`], [`Checkpoint`], [`Restart`] |
//! | `tree` | any tree as such fields |
//! | `check` `salvage` | the rules; what can be saved of a cut file |
//!
//! ```
//! use spile_core::{comm::{Comm, Threads}, limits::Limits};
//! use spile_scda::{Elements, File, Options, Writer};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("state.scda");
//! // Three ranks write six elements of four bytes; the file does not show how many they were.
//! let done = Threads::run(3, |comm| {
//!     let mut file = Writer::create(comm, &path, b"an example", Options::default())?;
//!     let mine = vec![comm.rank() as u8; 4 * (comm.rank() + 1)];
//!     file.array(b"ranks", &[1, 2, 3], 4, Elements::Contiguous(&mine), false)?;
//!     file.close()
//! });
//! assert!(done.iter().all(Result::is_ok));
//!
//! let file = File::open(&path, &Limits::default())?;
//! assert_eq!((file.sections()[0].count, file.sections()[0].size), (6, 4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod check;
mod checkpoint;
mod codec;
mod content;
mod digits;
mod elements;
mod partition;
mod read;
mod recode;
mod salvage;
mod schema;
mod tree;
pub mod wire;
mod write;

pub use checkpoint::{Checkpoint, Restart, Stored};
pub use codec::Encoder;
pub use content::Content;
pub use elements::{Elements, Fetch, Slots};
pub use partition::{Cursor, SectionHeader, split_evenly};
pub use read::{File, Section};
pub use recode::{Change, Coding, Recode, changes, recode};
pub use schema::Field;
pub use write::{Options, Writer};

use spile_core::description::Holds;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::format::{Format, FormatInfo, Grade, Head, Reader, Salvage, Score};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::source::Source;

/// The format, for the registry.
pub struct Scda;

static INFO: FormatInfo = FormatInfo {
    name: "scda",
    title: "Serial-equivalent parallel data",
    users: "HPC developers (p4est, libsc)",
    specification: "scda a0 (2023)",
    extensions: &["scda", "scd"],
    read: Grade::Complete,
    write: Grade::Complete,
    check: Grade::Complete,
    salvage: Grade::Complete,
};

impl Format for Scda {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match head.bytes {
            [b's', b'c', b'd', b'a', b't', b'a'..=b'f', _, b' ', ..] => 100,
            [b's', b'c', b'd', b'a', b't', ..] => 60,
            _ => 0,
        }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(File::from_source(source, true, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        check::check(source, limits, strict)
    }

    fn holds(&self) -> Option<Holds> {
        Some(Holds {
            rank: usize::MAX,
            order: Order::C,
            frames: false,
            dtype: |_| true,
            byte: DType::U8,
            name: |_| true,
            adds: &[],
        })
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        tree::write_tree(content, sink, limits)
    }

    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        salvage::salvage(source, target, limits)
    }
}
