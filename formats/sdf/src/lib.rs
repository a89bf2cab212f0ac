//! SDF, the Self Describing Format of EPOCH, LARE and Odin: blocks of meshes, fields and particles.
//!
//! Specification: K. Bennett, *Description of the SDF file format for version 1.1* (2023).
//! Revisions up to 1.4 and ambiguities of the specification are described in `FORMAT.md`.
//!
//! | file | content |
//! |---|---|
//! | `wire` | file header, block header, data types; `wire/fields`: encoding and decoding of fields |
//! | `wire/block_type` `wire/meta` | block types and their metadata |
//! | `block` | [`Block`]: header and metadata, from the summary or from the block headers |
//! | `read` | [`File`]: file header and blocks |
//! | `to_tree` | file to tree, summary, regions; `to_tree/builder`: blocks to nodes |
//! | `to_tree/paths` `to_tree/station` | path of a block; tables of stations |
//! | `semantics` | meshes, coordinates and meaning of variables |
//! | `semantics/derived` `semantics/centred` `semantics/surfaces` | optional arrays computed from others |
//! | `write` `parallel` | [`Writer`]: serial; [`SharedWriter`]: all ranks of an MPI job |
//! | `from_tree` | any dataset to SDF; `from_tree/new_blocks`: arrays that were not read from SDF |
//! | `from_tree/groups` `from_tree/station` | blocks that are groups in the tree; stations |
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
mod block;
mod check;
mod from_tree;
mod parallel;
mod read;
mod salvage;
mod semantics;
mod series;
mod to_tree;
pub mod wire;
mod write;

pub use block::Block;
pub use parallel::{Part, SharedWriter};
pub use read::File;
pub use wire::block_type::BlockType;
pub use wire::meta::{
    Mesh, Meta, PlainVariable, PointMesh, PointVariable, RunInfo, Station, Stitched,
};
pub use write::{Writer, write_file};

use spile_core::format::{Abilities, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

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
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self).salvager(self).series(self)
    }
}
