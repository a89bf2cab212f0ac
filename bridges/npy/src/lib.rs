//! NumPy's `.npy`, an array with a short header, and `.npz`, a zip archive of such files.
//!
//! Specification: NEP 1 and the module `numpy.lib.format`, versions 1.0 to 3.0; for archives the subset of
//! PKWARE's APPNOTE.TXT that NumPy uses.
//!
//! | file | content |
//! |---|---|
//! | `wire` `structured` | the header and its dictionary; structured types |
//! | `utf32` | strings of 32-bit characters |
//! | `stream` | the bytes of a file, or of a stored or deflated member of an archive |
//! | `to_tree` `from_tree` | one array as a tree; the array of a tree as `.npy` |
//! | `check` | bytes after the array |
//! | `npz` | archives |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let mut bytes = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
//! bytes.extend(format!("{:<69}\n", "{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }").bytes());
//! bytes.extend([1, 0, 2, 0]);
//! let file = Dataset::open(&spile_npy::Npy, Source::memory(bytes), &OpenOptions::default())?;
//! assert_eq!(file.array("data")?.read::<Vec<i16>>(":")?, [1, 2]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod check;
mod from_tree;
mod npz;
mod stream;
mod structured;
mod to_tree;
mod utf32;
mod wire;

use spile_core::error::Result;
use spile_core::format::{Abilities, Format, FormatInfo, Grade, Head, OpenOptions, Parsed, Score};
use spile_core::source::Source;

/// `.npy` files, for the registry.
pub struct Npy;

/// `.npz` archives, for the registry.
pub struct Npz;

static NPY: FormatInfo = FormatInfo {
    name: "npy",
    title: "NumPy array",
    users: "everyone with Python",
    specification: "NEP 1",
    extensions: &["npy"],
    read: Grade::Partial,
    write: Grade::Complete,
    check: Grade::Partial,
    salvage: Grade::None,
};

static NPZ: FormatInfo = FormatInfo {
    name: "npz",
    title: "NumPy archive",
    users: "everyone with Python",
    specification: "numpy.savez, APPNOTE 6.3",
    extensions: &["npz"],
    read: Grade::Partial,
    write: Grade::Complete,
    check: Grade::Complete,
    salvage: Grade::Partial,
};

impl Format for Npy {
    fn info(&self) -> &'static FormatInfo {
        &NPY
    }

    fn probe(&self, head: Head<'_>) -> Score {
        if head.bytes.starts_with(wire::MAGIC) { 100 } else { 0 }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}

impl Format for Npz {
    fn info(&self) -> &'static FormatInfo {
        &NPZ
    }

    /// A zip archive is recognised if its first member is an array or the metadata.
    fn probe(&self, head: Head<'_>) -> Score {
        if head.bytes.starts_with(&npz::wire::END) {
            return 30;
        }
        let local = head.bytes.starts_with(&npz::wire::LOCAL);
        let length = head.bytes.get(26..28).map(|n| usize::from(n[0]) | usize::from(n[1]) << 8);
        let name = length.and_then(|n| head.bytes.get(30..30 + n));
        match name {
            Some(name) if local && name.ends_with(npz::ENDING.as_bytes()) => 100,
            Some(name) if local && name == npz::from_tree::DESCRIPTION.as_bytes() => 100,
            _ => 0,
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        npz::to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self).salvager(self)
    }
}
