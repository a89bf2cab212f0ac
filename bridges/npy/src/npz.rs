//! NumPy's `.npz`: a zip archive of `.npy` files.
//!
//! | file | content |
//! |---|---|
//! | `wire` | structures of the archive |
//! | `write` | writer of archives |
//! | `to_tree` `from_tree` | members as a tree; a tree as an archive |
//! | `check` `salvage` | checksums; recovery of archives without a directory |

mod check;
pub(crate) mod from_tree;
mod salvage;
pub(crate) mod to_tree;
pub(crate) mod wire;
mod write;

/// Name suffix of members that are arrays.
pub(crate) const ENDING: &str = ".npy";
