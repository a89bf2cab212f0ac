//! Zarr: a folder of chunked arrays.
//!
//! Specification: Zarr core version 3.0 with the codecs of the specification and those of numcodecs; Zarr storage
//! version 2. Folders and zip archives are read, folders of version 3 are written. See `FORMAT.md`.
//!
//! | file | content |
//! |---|---|
//! | `wire` | metadata documents |
//! | `store` `zip` | keys of a store: files in folders, members of a zip archive |
//! | `read` | nodes of a store and the files of their chunks |
//! | `codec` `decode` | names of codecs; decoding of chunks |
//! | `chunks` | chunks of an array as a layout of core |
//! | `strings` | elements of variable length |
//! | `to_tree` | nodes of a store as a tree |
//! | `check` | all values of a store in a zip archive |
//! | `from_tree` | any dataset as a store |
//! | `grid` | chunks and shards of new arrays |
//! | `write` | metadata documents of a new store, and chunks that are slabs |
//! | `regions` | chunk files of a new store, written by threads or processes |
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

mod check;
mod chunks;
mod codec;
mod decode;
mod from_tree;
mod grid;
mod read;
mod regions;
mod store;
mod strings;
mod to_tree;
mod wire;
mod write;
mod zip;

use spile_core::error::{Error, Result};
use spile_core::format::{Abilities, Format, FormatInfo, Grade, Head, OpenOptions, Parsed, Score};
use spile_core::source::Source;

/// The format, for the registry.
pub struct Zarr;

/// Message about a file that is something else.
const NOT_A_STORE: &str = "expected a folder or a zip archive with a Zarr store";

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

    /// A store is a folder, or a zip archive, which is recognised if its first member is a metadata document.
    fn probe(&self, head: Head<'_>) -> Score {
        if !head.bytes.starts_with(&zip::LOCAL) {
            return 0;
        }
        let length = head.bytes.get(26..28).map(|n| usize::from(n[0]) | usize::from(n[1]) << 8);
        let name = length.and_then(|n| head.bytes.get(30..30 + n));
        let is_document = |name: &[u8]| {
            store::DOCUMENTS.iter().any(|document| name.ends_with(document.as_bytes()))
        };
        // Other archives may begin with a chunk.
        if name.is_some_and(is_document) { 100 } else { 10 }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        let mut magic = [0; 4];
        if source.read_at_most(0, &mut magic)? < 4 || magic != zip::LOCAL {
            return Err(Error::not_this_format("zarr-001", NOT_A_STORE)
                .hint("open the folder that contains zarr.json, .zgroup or .zarray"));
        }
        to_tree::open_zip(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().folder(self).folder_writer(self).checker(self)
    }
}
