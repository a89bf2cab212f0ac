//! Zarr: a folder of arrays, each cut into chunks that are files.
//!
//! Specification: Zarr core version 3.0 with the codecs `bytes`, `transpose`, `gzip`, `zstd`, `blosc`,
//! `crc32c` and `sharding_indexed`; Zarr storage version 2 is read, too. Written is version 3, one way:
//! see `FORMAT.md`.
//!
//! | file | what is in it |
//! |---|---|
//! | `wire` | the metadata documents |
//! | `codec` `blosc` | the bytes of a chunk, decoded |
//! | `chunks` | where the chunks of an array are |
//! | `read` | a folder as a tree |
//! | `write` | any tree as a folder |
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

mod blosc;
mod chunks;
mod codec;
mod read;
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
        // A store is a folder; no file is one.
        0
    }

    fn open(&self, _: Source, _: &Limits) -> Result<Box<dyn Reader>> {
        Err(no_file())
    }

    fn open_folder(&self, folder: &Folder, limits: &Limits) -> Result<Option<Box<dyn Reader>>> {
        let store = Store::open(folder.path(), limits)?;
        Ok(store.map(|store| Box::new(store) as Box<dyn Reader>))
    }

    fn check(&self, _: &Source, _: &Limits, _strict: bool) -> Result<Report> {
        Err(no_file())
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
        write::write_tree(content, folder, limits)
    }
}

fn no_file() -> Error {
    Error::not_this_format("zarr-001", "a Zarr store is a folder, not a file")
        .hint("name the folder that has zarr.json, .zgroup or .zarray in it")
}
