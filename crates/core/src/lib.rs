//! The core of spile: a format crate describes where the bytes of a file are and what they mean; core
//! reads them.
//!
//! ```
//! use spile_core::{ArrayDesc, DType, Dataset, Extents, Layout, Limits, Order, ROOT, Shape, Source, Tree};
//!
//! // Six 16-bit integers after a two-byte header, first index fastest.
//! let source = Source::memory([b'h', b'i', 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]);
//! let mut tree = Tree::new(&Limits::default());
//! let layout = Layout::contiguous(2, 12, Order::F);
//! tree.add_array(ROOT, "data", ArrayDesc::new(DType::U16, Shape::new([2, 3]), layout))?;
//!
//! let dataset = Dataset::new(source, tree);
//! let last_row: Vec<f64> = dataset.array("data")?.read("1, :")?;
//! assert_eq!(last_row, [2.0, 4.0, 6.0]);
//! # Ok::<(), spile_core::Error>(())
//! ```
//!
//! A format crate parses metadata and returns a [`tree::Tree`]: names, attributes, element types, shapes,
//! coordinates, [semantics], and for every array a [`layout::Layout`] with its byte ranges and encoding.
//! Reading, slicing, byte order, transposing, scaling, decoding and threading are implemented here once
//! for all formats.
//!
//! | module | content |
//! |---|---|
//! | `dataset` | the handle on an open file |
//! | `source` `sink` | input (file, map, memory, several files); output (atomic files and folders) |
//! | `cancel` | cancellation of everything that the process reads and writes |
//! | `wire` | checked reads of fields in both byte orders; errors with offsets |
//! | `dtype` `shape` `select` | element types, shapes, slices |
//! | `layout` `tree` `frames` `semantics` | array descriptions; groups, arrays, attributes; the frame axis; meaning |
//! | `atoms` | atoms of a frame: positions, species, other quantities |
//! | `read` `plan` `store` `chunks` | reading arrays; read planning; chunked arrays |
//! | `computed` | arrays computed from others on reading |
//! | `convert` `reduce` `decimal` | conversion of elements; statistics, histograms, envelopes; decimal digits of wide floats |
//! | `format` `registry` | format traits; format detection |
//! | `metadata` | stored metadata, applied when a file is opened |
//! | `series` | the files of a run as one dataset |
//! | `recording` | the common tree of oscilloscope formats |
//! | `text_records` | text files record by record |
//! | `error` `report` `limits` | errors, findings, memory limits |
//! | `comm` | communicators of parallel jobs and shared files |
//! | `testkit` | the conformance suite of formats (feature `testkit`) |

pub mod atoms;
pub mod cancel;
pub mod chunks;
pub mod comm;
pub mod computed;
pub mod convert;
pub mod dataset;
pub mod decimal;
pub mod dtype;
pub mod error;
pub mod format;
pub mod frames;
pub mod layout;
pub mod limits;
pub mod metadata;
pub mod os;
pub mod physical;
mod plan;
pub mod read;
pub mod recording;
pub mod reduce;
pub mod registry;
pub mod report;
pub mod select;
pub mod semantics;
pub mod series;
pub mod shape;
pub mod sink;
pub mod source;
mod store;
pub mod text_records;
pub mod tree;
pub mod wire;

#[cfg(feature = "testkit")]
pub mod testkit;

pub use dataset::{Dataset, Frame};
pub use dtype::{DType, Kind};
pub use error::{Error, ErrorKind, Hint, Result};
pub use format::{Format, OpenOptions, Parsed};
pub use frames::{FrameAxis, FrameCell, FrameTable};
pub use layout::{ArrayDesc, Codec, Coord, Extent, Extents, Layout, Linear};
pub use limits::Limits;
pub use read::{Array, Axes};
pub use registry::Registry;
pub use report::{Finding, Report};
pub use select::{Selection, Slice};
pub use semantics::{Role, Semantics};
pub use shape::{Order, Shape};
pub use sink::{Overwrite, Sink};
pub use source::Source;
pub use tree::{Attrs, Node, NodeId, ROOT, Tree, Value};
pub use wire::{ByteOrder, Wire};
