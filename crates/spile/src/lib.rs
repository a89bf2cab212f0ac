//! spile opens the files that simulations and instruments leave behind.
//!
//! This crate is the front door: core's vocabulary under one name, and the registry of formats.
//!
//! ```no_run
//! use spile::{limits::Limits, read::{Array, Axes}};
//!
//! let limits = Limits::default();
//! let file = spile::open("signal.taf", &limits)?;
//! let (source, tree) = (file.reader.source(), file.reader.tree());
//! for (_, node, desc) in tree.arrays() {
//!     let array = Array::open(source, tree, desc, &limits)?;
//!     let window = array.read_f64(&"0:100".parse()?, Axes::Stored)?;
//!     println!("{} ({} {}): {window:?}", node.path, desc.dtype, desc.shape);
//! }
//! # Ok::<(), spile::error::Error>(())
//! ```
//!
//! # Where things are
//!
//! | crate | what is in it |
//! |---|---|
//! | `spile-core` | the model: source, tree, layout, and the one reader; re-exported here |
//! | `formats/*` | a crate a format: bytes to tree and back, in the format's own words |
//! | `spile-ops` | the verbs: info, list, stat, cat, hash, map, check |
//! | `spile-plot` | pictures: SVG, PNG, terminal |
//! | `spile-cli` | the program `spile`; the only one that prints |
//!
//! A format is added with a folder under `formats/`, a line in `formats.rs` and golden files.
#![forbid(unsafe_code)]

use std::path::Path;

pub use spile_core::{
    axes, comm, convert, dtype, error, format, frames, layout, limits, read, reduce, report,
    select, series, shape, sink, source, tree, wire,
};

/// Small files that point into others, so that other programs read those in place.
pub mod index {
    pub use spile_hdf5::{Indexed, Skipped, write_index as write_h5};
}

mod formats;
pub use formats::REGISTRY;

use error::Result;
use format::Opened;
use limits::Limits;

/// Opens a file in whatever format it is, or a folder with the dumps of a run. Reads metadata, no
/// array.
pub fn open(path: impl AsRef<Path>, limits: &Limits) -> Result<Opened> {
    REGISTRY.open_path(path, limits)
}
