//! Tektronix `.isf` and `.wfm`: channels of an oscilloscope, as single records or as fast frames.
//!
//! Specification: the programmer manuals of the instruments, *Reference Waveform File Format* (001-1378)
//! for `.wfm`. `FORMAT.md` lists the offsets and the decisions on unclear points.
//!
//! | file | content |
//! |---|---|
//! | `wire` | on-disk structures: `isf` (preamble), `wfm` (`WFM#001` to `WFM#003`), `llwfm` (older instruments) |
//! | `to_tree` | files of each kind as recordings; `isf_text` reads samples written as text |
//! | `check` | checksums |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let mut bytes = b":WFMPRE:BYT_NR 1;BN_FMT RI;BYT_OR MSB;NR_PT 2;XINCR 1E-9;YMULT 0.5;:CURVE #12".to_vec();
//! bytes.extend([10, 0xff]);
//! let file = Dataset::open(&spile_tektronix::Tektronix, Source::memory(bytes), &OpenOptions::default())?;
//! let (id, ..) = file.arrays().next().unwrap();
//! let values: Vec<f64> = file.array_at(id)?.read("...")?;
//! assert_eq!(values, [5.0, -0.5]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod check;
mod to_tree;
mod wire;

use spile_core::format::{Abilities, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

use crate::wire::FileKind;

/// The Tektronix format, for the registry.
pub struct Tektronix;

static INFO: FormatInfo = FormatInfo {
    name: "tektronix",
    title: "Tektronix oscilloscope waveform",
    users: "laboratories with Tektronix oscilloscopes",
    specification: "Reference Waveform File Format, programmer manuals",
    extensions: &["wfm", "isf"],
    read: Grade::Partial,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

impl Format for Tektronix {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match FileKind::of(head.bytes) {
            Some(FileKind::Isf) => 90,
            Some(_) => 100,
            None if wire::is_generator(head.bytes) => 90,
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
