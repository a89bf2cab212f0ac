//! SDF, the Self Describing Format of EPOCH, LARE and Odin: blocks of meshes, fields and particles.
//!
//! Specification: K. Bennett, *Description of the SDF file format for version 1.1* (2023); the
//! revisions up to 1.4 and what is unclear are in `FORMAT.md`.
//!
//! | file | what is in it |
//! |---|---|
//! | `wire` `fields` | file header, block header, data types; reading and writing fields |
//! | `kind` `meta` | block types and their metadata |
//! | `index` | the blocks of a file: from its summary, or one by one |
//! | `read` | [`File`]: header and blocks; [`View`]: with the tree |
//! | `view` `place` `station` | the tree view; where a block goes in it; stations as tables |
//! | `coords` `derived` | where the points of variables are |
//! | `computed` `surfaces` | arrays that are computed from others, on demand |
//! | `write` `parallel` | [`Writer`]: blocks into a file; [`SharedWriter`]: by all ranks of a job |
//! | `convert` `said` `foreign` | any tree as SDF: nodes that were blocks, and others |
//! | `archive` | embedded source code unpacked |
//! | `check` `salvage` | the rules; what can be saved of unfinished and damaged files |
#![forbid(unsafe_code)]

pub mod archive;
mod check;
mod computed;
mod convert;
mod coords;
mod derived;
mod fields;
mod foreign;
mod index;
mod kind;
mod meta;
mod parallel;
mod place;
mod read;
mod said;
mod salvage;
mod station;
mod surfaces;
mod view;
pub mod wire;
mod write;

pub use index::Block;
pub use kind::BlockType;
pub use meta::{Mesh, Meta, PlainVariable, PointMesh, PointVariable, RunInfo, Station, Stitched};
pub use parallel::{Part, SharedWriter};
pub use read::{File, Options, View};
pub use write::{Data, Writer, write_file};

use spile_core::description::Holds;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::format::{Folder, Format, FormatInfo, Grade, Head, Reader, Salvage, Score};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::series;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::source::Source;

/// The format, for the registry.
pub struct Sdf;

static INFO: FormatInfo = FormatInfo {
    name: "sdf",
    title: "Self Describing Format",
    users: "plasma physicists (EPOCH, LARE, Odin)",
    specification: "SDF 1.1 (2023), revisions to 1.4",
    extensions: &["sdf"],
    read: Grade::Complete,
    write: Grade::Complete,
    check: Grade::Complete,
    salvage: Grade::Complete,
};

impl Format for Sdf {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match head.bytes {
            [b'S', b'D', b'F', b'1', 0x0f, 0x0e, 2, 1, ..]
            | [b'S', b'D', b'F', b'1', 1, 2, 0x0e, 0x0f, ..] => 100,
            [b'S', b'D', b'F', b'1', ..] => 60,
            _ => 0,
        }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(View::new(File::from_source(source, limits)?, Options::default())?))
    }

    fn open_derived(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        let file = File::from_source(source, limits)?;
        Ok(Box::new(View::new(file, Options { derived: true })?))
    }

    /// The dumps of a run, a frame each.
    fn open_folder(&self, folder: &Folder, limits: &Limits) -> Result<Option<Box<dyn Reader>>> {
        let files = folder.with_extension("sdf");
        if files.is_empty() {
            return Ok(None);
        }
        Ok(Some(Box::new(series::open(self, folder.path(), &files, limits)?)))
    }

    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        check::check(source, limits, strict)
    }

    fn holds(&self) -> Option<Holds> {
        Some(Holds {
            rank: foreign::MOST_DIMENSIONS,
            order: Order::F,
            frames: false,
            dtype: foreign::is_own_type,
            byte: DType::opaque(1),
            name: foreign::is_block_name,
            adds: &[],
        })
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        convert::write_tree(content, sink, limits)
    }

    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        salvage::salvage(source, target, limits)
    }
}
