//! spile opens, converts, compares and repairs simulation and instrument files: scda, SDF, TAF, GSD, IOTK,
//! oscilloscope formats, and the formats around them (HDF5, NetCDF, Zarr, Parquet, VTK, NumPy, CSV).
//!
//! ```no_run
//! let dataset = spile::open("0042.sdf")?; // the format is recognised by content; reads metadata only
//! for (_, node, array) in dataset.arrays() {
//!     println!("{} {} {}", node.path, array.dtype, array.shape);
//! }
//! let ex = dataset.array("Electric Field/Ex")?; // by path or native identifier
//! println!("{:?} in {:?}", ex.dims(), ex.units());
//! let x = ex.coord("X_Grid_mid")?.read()?;
//! let plane: Vec<f64> = ex.read("..., 10")?; // physical values in C order
//! # let _ = (x, plane);
//!
//! let trajectory = spile::open("trajectory.gsd")?;
//! let last: Vec<f64> = trajectory.frame(-1)?.array("particles/position")?.read("...")?;
//! # let _ = last;
//! # Ok::<(), spile::Error>(())
//! ```
//!
//! Every format is a cargo feature with its name, all on by default. With the feature `ndarray`, arrays are
//! also read as `ndarray::ArrayD`. With the feature `remote`, paths may be URLs: `https`, `s3`, `gs`, `az`.
//!
//! | crate | content |
//! |---|---|
//! | `spile-core` | the model and the one reader; re-exported here |
//! | `spile-interchange` | a dataset expressed in another model: plain arrays, tables, shared dimensions |
//! | `formats/*`, `bridges/*` | one format each |
//! | `spile-ops` | the verbs: info, list, stat, cat, hash, convert, diff, check |
//! | `spile-plot` | pictures: SVG, PNG, terminal |
//! | `spile-cli` | the program `spile` |
#![forbid(unsafe_code)]

use std::path::Path;

pub use spile_core::{
    Array, Dataset, Error, ErrorKind, Format, Frame, Hint, Limits, OpenOptions, Registry, Result,
    Selection, Source, cancel, chunks, comm, computed, convert, dataset, dtype, error, format,
    frames, layout, limits, metadata, os, read, recording, reduce, registry, report, select,
    semantics, series, shape, sink, source, tree, wire,
};
pub use spile_interchange as interchange;

/// Small files that point into others, so that other programs read those in place.
#[cfg(feature = "hdf5")]
pub mod index {
    pub use spile_hdf5::{Indexed, Skipped, write_index as write_h5};
}

mod formats;
pub use formats::REGISTRY;

/// Opens a file in whatever format it is, or a folder that is one dataset or run. Reads metadata only. With the
/// feature `remote`, the path may be a URL.
pub fn open(path: impl AsRef<Path>) -> Result<Dataset> {
    open_with(path, &OpenOptions::default())
}

/// Opens a file or folder with limits and options.
pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Dataset> {
    enable_urls();
    REGISTRY.open_path(path, options)
}

/// With the feature `remote`, everything that opens a path opens URLs from now on; [`open`] calls it.
pub fn enable_urls() {
    #[cfg(feature = "remote")]
    spile_remote::install();
}

/// The schemes of URLs that can be opened; empty without the feature `remote`.
pub fn url_schemes() -> &'static [&'static str] {
    #[cfg(feature = "remote")]
    return spile_remote::SCHEMES;
    #[cfg(not(feature = "remote"))]
    return &[];
}

/// The Rust examples of pages run as documentation tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/ARCHITECTURE.md")]
    struct Architecture;
}
