//! Rigol `.wfm` and `.bin`: channels of an oscilloscope.
//!
//! Specification: none that covers all series. The `.bin` format is in the user's guides of the instruments; the
//! `.wfm` formats are known from files, and `FORMAT.md` lists the offsets and the decisions.
//!
//! | file | content |
//! |---|---|
//! | `wire` | which series a file is of, fields of a header by their offsets |
//! | `to_tree` | records that all series share |
//! | `to_tree/early` | DS1000B, DS1000C, DS1000D and DS1000E |
//! | `to_tree/ultravision` | DS1000Z, DS2000, DS4000 and DS6000 |
//! | `to_tree/dho` | DHO800 and DHO1000 `.wfm` |
//! | `to_tree/bin` | `.bin` of MSO5000, MSO7000, MSO8000 and DHO |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! // A DS1000C file: one channel of two samples, 1 V per division and 25 counts per division.
//! let mut bytes = vec![0; 256];
//! bytes[..4].copy_from_slice(&[0xa1, 0xa5, 0, 0]);
//! bytes[28] = 2;
//! bytes[44..48].copy_from_slice(&1_f32.to_le_bytes());
//! bytes[49] = 1;
//! bytes[52..56].copy_from_slice(&1_000_000_i32.to_le_bytes());
//! bytes[100..104].copy_from_slice(&1e6_f32.to_le_bytes());
//! bytes.extend([125, 100]);
//!
//! let file = Dataset::open(&spile_rigol::Rigol, Source::memory(bytes), &OpenOptions::default())?;
//! assert_eq!(file.array("CH1")?.read::<Vec<f64>>("...")?, [0.0, 1.0]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod to_tree;
mod wire;

use spile_core::format::{Abilities, Checker, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

use wire::Series;

/// The Rigol format, for the registry.
pub struct Rigol;

static INFO: FormatInfo = FormatInfo {
    name: "rigol",
    title: "Rigol oscilloscope waveforms",
    users: "laboratories with Rigol oscilloscopes",
    specification: "user's guides (.bin) and files of the instruments (.wfm)",
    extensions: &["wfm", "bin"],
    read: Grade::Partial,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

impl Format for Rigol {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match Series::of(head.bytes, head.len) {
            Some(Series::Bin) => 100,
            Some(Series::B | Series::Z | Series::UltraVision) => 95,
            Some(Series::C | Series::E | Series::Dho) => 80,
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

impl Checker for Rigol {}
