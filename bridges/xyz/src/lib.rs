//! XYZ and extended XYZ: atoms in text files, frame by frame.
//!
//! Specification: the extended XYZ specification of libAtoms; plain XYZ as XMol wrote it.
//!
//! | file | content |
//! |---|---|
//! | `wire` | comment lines: pairs of keys and values, the list of columns |
//! | `read` | one pass over the file: the byte range of each frame |
//! | `to_tree` | atoms, cells and values of comment lines as arrays per frame |
//! | `from_tree` | atoms of any dataset as extended XYZ |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let text = "2\nenergy=-1.5\nH 0 0 0\nH 0 0 0.74\n";
//! let file = Dataset::open(&spile_xyz::Xyz, Source::memory(text.as_bytes()), &OpenOptions::default())?;
//! let positions = file.frame(0)?.array("atoms/pos")?;
//! assert_eq!(positions.read::<Vec<f64>>("1, :")?, [0.0, 0.0, 0.74]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod from_tree;
mod read;
mod to_tree;
mod wire;

use spile_core::error::Result;
use spile_core::format::{
    Abilities, Checker, Format, FormatInfo, Grade, Head, OpenOptions, Parsed, Score,
};
use spile_core::source::Source;
use spile_core::text_records::{Records, is_float};

/// The format, for the registry.
pub struct Xyz;

static INFO: FormatInfo = FormatInfo {
    name: "xyz",
    title: "Extended XYZ",
    users: "everyone with ASE or OVITO",
    specification: "Extended XYZ (libAtoms), XYZ",
    extensions: &["xyz", "extxyz"],
    read: Grade::Complete,
    write: Grade::Partial,
    check: Grade::Partial,
    salvage: Grade::None,
};

impl Format for Xyz {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    /// A number of atoms, a line of any text, and rows with at least four fields.
    fn probe(&self, head: Head<'_>) -> Score {
        let mut lines = Records::new(head.bytes, wire::line_end);
        let count = lines.next().unwrap_or_default().trim_ascii();
        let is_count = (1..=18).contains(&count.len()) && count.iter().all(u8::is_ascii_digit);
        let binary = |b: &u8| *b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r');
        if !is_count || head.bytes.iter().any(binary) {
            return 0;
        }
        let comment = lines.next().unwrap_or_default();
        let has = |key: &[u8]| comment.windows(key.len()).any(|window| window == key);
        if has(b"Properties=") || has(b"Lattice=") {
            return 95;
        }
        let row: Vec<&[u8]> =
            lines.next().map(|line| wire::fields(line).collect()).unwrap_or_default();
        match row[..] {
            [_, x, y, z, ..] if [x, y, z].iter().all(|field| is_float(field)) => 70,
            [] if count == b"0" => 20,
            _ => 0,
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}

/// The findings are those of opening.
impl Checker for Xyz {}
