//! SDF, the Self Describing Format of EPOCH, LARE and Odin: blocks of meshes, fields and particles.
//!
//! Specification: K. Bennett, *Description of the SDF file format for version 1.1* (2023).
//! Revisions up to 1.4 and ambiguities of the specification are described in `FORMAT.md`.
//!
//! | file | content |
//! |---|---|
//! | `wire` | file header, block header, data types; `wire/fields`: encoding and decoding of fields |
//! | `wire/block_type` `wire/meta` | block types and their metadata |
//! | `index` | list of blocks, from the summary or from the block headers |
//! | `read` | [`File`]: header and blocks; regions and objects of a dataset |
//! | `to_tree` | blocks to tree; `to_tree/paths`: path of a block; `to_tree/station`: tables |
//! | `semantics` | meshes, coordinates and meaning of variables |
//! | `semantics/derived` `semantics/surfaces` | optional arrays computed from others |
//! | `write` `parallel` | [`Writer`]: serial; [`SharedWriter`]: all ranks of an MPI job |
//! | `from_tree` | any dataset to SDF; `from_tree/other_formats`: arrays that were not SDF blocks |
//! | `from_tree/losses` | what writing a dataset does not keep |
//! | `series` | which files of a folder form one run |
//! | `archive` | unpacks embedded source code |
//! | `check` `salvage` | validation rules; recovery of blocks from unfinished and damaged files |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions};
//!
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/sdf/epoch3d_0001.sdf");
//! let file = Dataset::open_path(&spile_sdf::Sdf, path, &OpenOptions::default())?;
//! let ex = file.array("Electric Field/Ex")?;
//! assert_eq!((ex.shape().lengths(), ex.units()), (&[12, 10, 8][..], Some("V/m")));
//! let row: Vec<f64> = ex.read(":, 0, 0")?;
//! assert_eq!(row.len(), 12);
//! # Ok::<(), spile_core::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod archive;
mod check;
mod from_tree;
mod index;
mod parallel;
mod read;
mod salvage;
mod semantics;
mod series;
mod to_tree;
pub mod wire;
mod write;

pub use index::Block;
pub use parallel::{Part, SharedWriter};
pub use read::File;
pub use wire::block_type::BlockType;
pub use wire::meta::{
    Mesh, Meta, PlainVariable, PointMesh, PointVariable, RunInfo, Station, Stitched,
};
pub use write::{Data, Writer, write_file};

use std::path::{Path, PathBuf};

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::format::{
    Abilities, Capabilities, Checker, Folder, Format, FormatInfo, FormatWriter, Grade, Head, Loss,
    OpenOptions, Parsed, Salvage, Salvager, Score, Series,
};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::source::Source;

/// The SDF format, for the registry.
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

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        let file = File::from_source(source, &options.limits)?;
        to_tree::parse(file, options.derived)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self).salvager(self).series(self)
    }
}

impl FormatWriter for Sdf {
    fn capabilities(&self) -> Option<Capabilities> {
        Some(Capabilities {
            rank: from_tree::MAX_RANK,
            order: Order::F,
            frames: false,
            dtype: from_tree::is_exact_type,
            byte: DType::opaque(1),
            name: from_tree::is_block_name,
            adds: &[],
        })
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        from_tree::losses(content)
    }

    fn write(&self, content: &Dataset, sink: &mut Sink) -> Result<Vec<Loss>> {
        from_tree::write_tree(content, sink)?;
        Ok(Vec::new())
    }
}

impl Checker for Sdf {
    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        check::check(source, limits, strict)
    }
}

impl Salvager for Sdf {
    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        salvage::salvage(source, target, limits)
    }
}

impl Series for Sdf {
    fn members(&self, folder: &Folder) -> Vec<PathBuf> {
        series::members(folder)
    }
}
