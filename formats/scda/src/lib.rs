//! scda: a file format for parallel I/O whose bytes do not depend on the number of processes.
//!
//! Specification: T. Griesbach and C. Burstedde, *scda: A Minimal, Serial-Equivalent Format for
//! Parallel I/O* (2023), version a0 with its compression convention; `FORMAT.md` has
//! the decisions on unclear points.
//!
//! | file | content |
//! |---|---|
//! | `wire` | on-disk structures: paddings, count entries, file header, raw sections |
//! | `section` | [`Section`]: raw sections, or pairs of them that follow the compression convention |
//! | `codec` | the codec of the compression convention |
//! | `read` | [`File`]: list of sections |
//! | `read_parallel` | [`Cursor`]: collective reading on all ranks of a job |
//! | `write` | [`Writer`]: collective writing on all ranks of a job |
//! | `buffers` | [`Elements`], [`Slots`]: data of one rank in memory |
//! | `index` | index and checksums at the end of a file |
//! | `content` | [`Content`]: data of a section as a byte stream |
//! | `semantics` | named, typed fields: [`Field`], [`Checkpoint`], [`Restart`] |
//! | `to_tree` `from_tree` | a file as a tree; any dataset as scda |
//! | `recode` | [`recode`](fn@recode): change of compression and line breaks |
//! | `check` `salvage` | validation; recovery of truncated files |
//!
//! ```
//! use spile_core::{comm::{Comm, Threads}, limits::Limits};
//! use spile_scda::{Elements, File, Options, Writer};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("state.scda");
//! // Three ranks write six elements of four bytes.
//! let written = Threads::run(3, |comm| {
//!     let mut file = Writer::create(comm, &path, b"an example", Options::default())?;
//!     let mine = vec![comm.rank() as u8; 4 * (comm.rank() + 1)];
//!     file.array(b"ranks", &[1, 2, 3], 4, Elements::Contiguous(&mine), false)?;
//!     file.close()
//! });
//! assert!(written.iter().all(Result::is_ok));
//!
//! let file = File::open(&path, &Limits::default())?;
//! assert_eq!((file.sections()[0].count, file.sections()[0].size), (6, 4));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod buffers;
mod check;
mod codec;
mod content;
mod from_tree;
mod index;
mod prepared;
mod read;
mod read_parallel;
mod recode;
mod salvage;
mod section;
mod semantics;
mod to_tree;
pub mod wire;
mod write;

pub use buffers::{Elements, Fetch, Slots};
pub use codec::Encoder;
pub use content::Content;
pub use index::{Index, Part};
pub use read::File;
pub use read_parallel::{Cursor, split_evenly};
pub use recode::{Change, Coding, Recode, changes, recode};
pub use section::{Section, SectionHeader};
pub use semantics::checkpoint::Checkpoint;
pub use semantics::restart::{Restart, Stored};
pub use semantics::{Field, attrs_from_json, attrs_to_json};
pub use write::{Options, Writer};

use spile_core::format::{Abilities, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

/// The scda format, for the registry.
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

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self).salvager(self)
    }
}
