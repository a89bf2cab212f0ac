//! The core of spile: a format says where the bytes lie, core reads them.
//!
//! A format crate parses metadata and returns a [`tree::Tree`]: names, attributes, element types,
//! shapes, and for every array a [`layout::Layout`] that says which bytes of the file hold it and
//! how. Everything else (reading, slicing, byte order, transposing, scaling, decoding,
//! parallelism) is done here, once, for every format.
//!
//! | file | what is in it |
//! |---|---|
//! | `source` `sink` | bytes in (file, map, memory); bytes out (temporary file and rename, or edit) |
//! | `wire` | checked fields in both byte orders; every failure knows its offset |
//! | `dtype` `shape` `select` | element types, extents, slices |
//! | `layout` `tree` `frames` | where an array's bytes lie; groups, arrays, attributes; the time axis |
//! | `read` `plan` `store` | the one reader; how a selection becomes reads; where those go |
//! | `chunks` | arrays cut into chunks of a grid, and how they are read |
//! | `convert` `reduce` | elements to `f64` and text; statistics and envelopes in one pass |
//! | `decimal` | digits of numbers wider than `f64`, exactly, both ways |
//! | `format` | what a format offers; probing; the registry |
//! | `points` | the middle of cells, from their nodes |
//! | `records` | files of text, a line at a time |
//! | `table` | arrays with the same number of rows side by side, for formats that are tables |
//! | `series` | many files of one run as one dataset |
//! | `recording` | the one view that all formats of digitizers give |
//! | `flat` `description` `axes` | a tree as plain arrays, what it says as JSON, its shared dimensions: for other worlds' formats |
//! | `error` `report` `limits` | failures, findings, budgets |
//! | `comm` | the ranks of a parallel job and the file they share: one, threads, later MPI |
//! | `testkit` | the conformance suite that every format runs (feature `testkit`) |
//!
//! ```
//! use spile_core::{dtype::DType, layout::*, limits::Limits, read::*, select::Selection,
//!                  shape::*, source::Source, tree::*};
//!
//! // Six 16-bit numbers behind a two-byte header, first index fastest.
//! let bytes = [b'h', b'i', 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0];
//! let limits = Limits::default();
//! let mut tree = Tree::new(&limits);
//! let layout = Layout::Plain { extents: Extents::one(2, 12), order: Order::F };
//! let desc = ArrayDesc::new(DType::U16, Shape::new([2, 3]), layout);
//! tree.add_array(ROOT, "data", desc.clone())?;
//!
//! let array = Array::open(&Source::memory(bytes), &tree, &desc, &limits)?;
//! let last_row: Selection = "1, :".parse()?;
//! assert_eq!(array.read_f64(&last_row, Axes::Stored)?, [2.0, 4.0, 6.0]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```

pub mod axes;
pub mod chunks;
pub mod comm;
pub mod convert;
pub mod decimal;
pub mod description;
pub mod dtype;
pub mod error;
pub mod flat;
pub mod format;
pub mod frames;
pub mod layout;
pub mod limits;
mod plan;
pub mod points;
pub mod read;
pub mod recording;
pub mod records;
pub mod reduce;
pub mod report;
pub mod select;
pub mod series;
pub mod shape;
pub mod sink;
pub mod source;
mod store;
pub mod table;
pub mod tree;
pub mod wire;

#[cfg(feature = "testkit")]
pub mod testkit;
