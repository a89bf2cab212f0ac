//! The targets of verbs: one file each, with a function `run` for any input.
//!
//! A program includes this module beside `drive`.

pub mod c_abi;
pub mod convert;
pub mod diff;
pub mod gsd_append;
pub mod index;
pub mod inputs;
pub mod merge;
pub mod read;
pub mod salvage;
pub mod selections;
pub mod taf_ops;
pub mod writers;

/// Runs a target on an input.
pub type Target = fn(&[u8]);

/// The targets by name.
pub const ALL: [(&str, Target); 11] = [
    ("c_abi", c_abi::run),
    ("convert", convert::run),
    ("diff", diff::run),
    ("gsd_append", gsd_append::run),
    ("index", index::run),
    ("merge", merge::run),
    ("read", read::run),
    ("salvage", salvage::run),
    ("selections", selections::run),
    ("taf_ops", taf_ops::run),
    ("writers", writers::run),
];
