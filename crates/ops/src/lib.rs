//! The verbs of spile: what can be done with a file, whatever its format.
//!
//! Each file is one verb. A verb works on a [`Dataset`](spile_core::Dataset), returns data (or calls back
//! row by row where a file may have millions of them) and never prints. The structs derive `Serialize`: their fields are the JSON that `docs/json.md` describes.
//!
//! | file | verb |
//! |---|---|
//! | `info` | what a person wants to know first |
//! | `list` | the objects of a file |
//! | `stat` | statistics of its arrays |
//! | `cat` | its values: text, JSON, raw bytes |
//! | `hash` | sums of its arrays and of its format's own objects |
//! | `content` | the sum of what it says, whatever its layout |
//! | `convert` | a file as another format, and what that costs |
//! | `diff` | how two files differ |
//! | `index` | where its arrays lie, for readers of Zarr |
//! | `map` | which bytes are what |
//! | `watch` | what came with a frame |
//! | `check` | what is wrong with it |
//! | `formats` | the table of formats |
//! | `pick` | which objects and frames a verb looks at |
//! | `subset` | those as if they were all of the file |
//! | `json` | attributes, errors and elements as JSON |
//!
//! ```
//! use spile_core::{Dataset, dtype::DType, layout::*, limits::Limits, select::Selection,
//!                  shape::*, source::Source, tree::*};
//!
//! let limits = Limits::default();
//! let layout = Layout::Inline([1, 2, 3, 4].into(), Order::F);
//! let desc = ArrayDesc::new(DType::U8, Shape::new([2, 2]), layout);
//! let array = Dataset::new(Source::memory([]), Tree::new(&limits)).open_array(&desc)?;
//!
//! let mut text = Vec::new();
//! spile_ops::cat::text(&array, &Selection::all(), spile_ops::cat::Values::Mapped, &mut text)?;
//! assert_eq!(text, b"1\t3\n2\t4\n");
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod cat;
pub mod check;
pub mod content;
pub mod convert;
pub mod diff;
pub mod formats;
pub mod hash;
pub mod index;
pub mod info;
pub mod json;
pub mod list;
pub mod map;
pub mod pick;
pub mod stat;
pub mod subset;
pub mod watch;

pub use check::check;
pub use content::content;
pub use convert::convert;
pub use diff::diff;
pub use formats::formats;
pub use hash::hash;
pub use index::index;
pub use info::info;
pub use list::list;
pub use map::map;
pub use pick::Pick;
pub use stat::stat;
