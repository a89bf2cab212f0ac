//! Siglent `.bin`: channels of an oscilloscope.
//!
//! Specification: "How to Extract Data from the Binary File of Siglent Oscilloscope", versions 0.1 to 6.0. Versions 1 and 4
//! were compared with files of instruments, the others are experimental. `FORMAT.md` lists the offsets and the decisions.
//!
//! | file | content |
//! |---|---|
//! | `wire` | versions of the header, and how they are recognised |
//! | `to_tree` | the old platform |
//! | `to_tree/fixed` | versions 0.1 to 5 |
//! | `to_tree/six` | version 6 |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! // Version 1: channel 1 with two samples, 25 V per division and 1 sample per second.
//! let mut bytes = vec![0; 0x800];
//! let mut quantity = |at: usize, value: f64| {
//!     bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
//!     bytes[at + 8] = 8;
//! };
//! quantity(0x10, 25.0);
//! quantity(0xd4, 1.0);
//! quantity(0xf8, 1.0);
//! bytes[0] = 1;
//! bytes[0xf4] = 2;
//! bytes.extend([128, 130]);
//!
//! let file = Dataset::open(&spile_siglent::Siglent, Source::memory(bytes), &OpenOptions::default())?;
//! assert_eq!(file.array("CH1")?.read::<Vec<f64>>("...")?, [0.0, 2.0]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod to_tree;
mod wire;

use spile_core::format::{Abilities, Checker, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

use wire::Version;

/// The Siglent format, for the registry.
pub struct Siglent;

static INFO: FormatInfo = FormatInfo {
    name: "siglent",
    title: "Siglent oscilloscope waveforms",
    users: "laboratories with Siglent oscilloscopes",
    specification: "How to Extract Data from the Binary File of Siglent Oscilloscope",
    extensions: &["bin"],
    read: Grade::Partial,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

impl Format for Siglent {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match Version::of(head.bytes, head.len) {
            Some(Version::Six) => 90,
            // There is no magic: flags, quantities and the length of the file have to fit.
            Some(Version::Fixed(_)) => 60,
            Some(Version::Old) => 15,
            None => 0,
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().checker(self)
    }
}

impl Checker for Siglent {}
