//! Zarr: a folder of chunked arrays.
//!
//! Specification: Zarr core version 3.0 with the codecs `bytes`, `transpose`, `gzip`, `zstd`, `blosc`,
//! `crc32c` and `sharding_indexed`; Zarr storage version 2. Version 3 is written. See `FORMAT.md`.
//!
//! | file | content |
//! |---|---|
//! | `wire` | metadata documents |
//! | `codec` | decoding of chunks |
//! | `chunks` | chunks of an array as a layout of core |
//! | `read` | an open store |
//! | `to_tree` | nodes of a store as a tree |
//! | `from_tree` | any dataset as a store |
//! | `write` | metadata documents and chunk files of a new store |
//!
//! ```
//! use spile_core::format::{Dataset, Format, open_as, write_file};
//! use spile_core::{dtype::DType, layout::*, limits::Limits, shape::*, sink::Overwrite, source::Source, tree::*};
//!
//! let limits = Limits::default();
//! let mut tree = Tree::new(&limits);
//! let layout = Layout::Inline([1, 2, 3, 4, 5, 6].into(), Order::C);
//! tree.add_array(ROOT, "counts", ArrayDesc::new(DType::U8, Shape::new([2, 3]), layout))?;
//! let content = Dataset::new(Source::memory([]), tree);
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("x.zarr");
//! write_file(&spile_zarr::Zarr, &content, &path, Overwrite::Never, &limits)?;
//! let store = open_as(&spile_zarr::Zarr, &path, &limits)?;
//! assert_eq!(store.tree().node(store.tree().find("counts")?).path, "counts");
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod chunks;
mod codec;
mod from_tree;
mod read;
mod to_tree;
mod wire;
mod write;

use spile_core::error::{Error, Result};
use spile_core::format::{Folder, Format, FormatInfo, Grade, Head, Reader, Score};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::FolderSink;
use spile_core::source::Source;

pub use read::Store;

/// The format, for the registry.
pub struct Zarr;

static INFO: FormatInfo = FormatInfo {
    name: "zarr",
    title: "Zarr store",
    users: "xarray, dask, climate and imaging",
    specification: "Zarr core 3.0, Zarr storage 2",
    extensions: &["zarr"],
    read: Grade::Partial,
    write: Grade::Complete,
    check: Grade::Partial,
    salvage: Grade::None,
};

impl Format for Zarr {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, _: Head<'_>) -> Score {
        // A store is a folder.
        0
    }

    fn open(&self, _: Source, _: &Limits) -> Result<Box<dyn Reader>> {
        Err(not_a_folder())
    }

    fn open_folder(&self, folder: &Folder, limits: &Limits) -> Result<Option<Box<dyn Reader>>> {
        let store = Store::open(folder.path(), limits)?;
        Ok(store.map(|store| Box::new(store) as Box<dyn Reader>))
    }

    fn check(&self, _: &Source, _: &Limits, _strict: bool) -> Result<Report> {
        Err(not_a_folder())
    }

    fn is_folder(&self) -> bool {
        true
    }

    fn write_folder(
        &self,
        content: &dyn Reader,
        folder: &FolderSink,
        limits: &Limits,
    ) -> Result<()> {
        from_tree::write_tree(content, folder, limits)
    }
}

fn not_a_folder() -> Error {
    Error::not_this_format("zarr-001", "expected a folder, found a file")
        .hint("open the folder that contains zarr.json, .zgroup or .zarray")
}
