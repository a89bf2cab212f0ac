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
//! use spile_core::format::write_file;
//! use spile_core::{Dataset, Limits, OpenOptions, Source, dtype::DType, layout::*, shape::*, sink::Overwrite, tree::*};
//!
//! let mut tree = Tree::new(&Limits::default());
//! let layout = Layout::Inline([1, 2, 3, 4, 5, 6].into(), Order::C);
//! tree.add_array(ROOT, "counts", ArrayDesc::new(DType::U8, Shape::new([2, 3]), layout))?;
//! let content = Dataset::new(Source::memory([]), tree);
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("x.zarr");
//! write_file(&spile_zarr::Zarr, &content, &path, Overwrite::Never)?;
//! let store = Dataset::open_path(&spile_zarr::Zarr, &path, &OpenOptions::default())?;
//! let row: Vec<f64> = store.array("counts")?.read("1, :")?;
//! assert_eq!(row, [4.0, 5.0, 6.0]);
//! # Ok::<(), spile_core::Error>(())
//! ```
#![forbid(unsafe_code)]

mod chunks;
mod codec;
mod from_tree;
mod read;
mod to_tree;
mod wire;
mod write;

use std::path::Path;

use spile_core::Dataset;
use spile_core::error::{Error, Result};
use spile_core::format::{
    Abilities, Folder, FolderFormat, FolderWriter, Format, FormatInfo, Grade, Head, Loss,
    OpenOptions, Parsed, Score,
};
use spile_core::sink::FolderSink;
use spile_core::source::Source;

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

    fn open(&self, _: Source, _: &OpenOptions) -> Result<Parsed> {
        Err(Error::not_this_format("zarr-001", "expected a folder, found a file")
            .hint("open the folder that contains zarr.json, .zgroup or .zarray"))
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().folder(self).folder_writer(self)
    }
}

impl FolderFormat for Zarr {
    fn open_folder(&self, folder: &Folder, options: &OpenOptions) -> Result<Option<Parsed>> {
        read::open(folder.path(), &options.limits)
    }
}

impl FolderWriter for Zarr {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        from_tree::losses(content)
    }

    fn write_folder(&self, content: &Dataset, folder: &FolderSink) -> Result<Vec<Loss>> {
        from_tree::write_tree(content, folder)?;
        Ok(Vec::new())
    }
}
