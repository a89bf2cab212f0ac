//! The operations of spile on files of any format.
//!
//! Each module is one operation on a [`Dataset`](spile_core::Dataset). It returns data, or calls back row by
//! row where a file may have millions of rows, and never prints. The structs derive `Serialize`; their
//! fields are the JSON that `docs/json.md` describes.
//!
//! | module | content |
//! |---|---|
//! | `info` | summary of a file |
//! | `list` | the objects of a file |
//! | `stat` | statistics of arrays |
//! | `cat` | values as text, JSON or raw bytes |
//! | `hash` | digests of arrays and of the format's own objects |
//! | `content` | digest of the content, independent of the layout |
//! | `convert` | conversion to another format, and its losses |
//! | `parallel` | conversion by several processes |
//! | `energies` | time series of energies |
//! | `particles` | histograms and tracks of particles |
//! | `diff` | differences of two files |
//! | `index` | byte ranges of arrays as a virtual Zarr store |
//! | `map` | byte map of a file |
//! | `watch` | key figures of new frames |
//! | `spectrum` | power spectra and spectrograms of traces |
//! | `check` | checks against the specification |
//! | `formats` | the table of formats |
//! | `pick` | selection of objects, frames and parts of dimensions |
//! | `subset` | the selected part as a dataset |
//! | `json` | attributes, errors and elements as JSON |
//!
//! ```
//! use spile_core::{ArrayDesc, DType, Dataset, Layout, Limits, Order, Selection, Shape, Source, Tree};
//!
//! let limits = Limits::default();
//! let layout = Layout::Inline([1, 2, 3, 4].into(), Order::F);
//! let desc = ArrayDesc::new(DType::U8, Shape::new([2, 2]), layout);
//! let array = Dataset::of_bytes(Source::memory([]), &limits).open_array(&desc)?;
//!
//! let mut text = Vec::new();
//! spile_ops::cat::text(&array, &Selection::all(), spile_ops::cat::Values::Mapped, &mut text)?;
//! assert_eq!(text, b"1\t3\n2\t4\n");
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod cat;
pub mod check;
pub mod complex;
pub mod content;
pub mod convert;
pub mod diff;
pub mod energies;
pub mod formats;
pub mod hash;
pub mod index;
pub mod info;
pub mod json;
pub mod list;
pub mod map;
pub mod parallel;
pub mod particles;
pub mod pick;
pub mod spectrum;
pub mod stat;
pub mod subset;
pub mod watch;

pub use check::check;
pub use content::content;
pub use convert::convert;
pub use diff::diff;
pub use energies::energies;
pub use formats::formats;
pub use hash::hash;
pub use index::index;
pub use info::info;
pub use list::list;
pub use map::map;
pub use pick::Pick;
pub use stat::stat;
