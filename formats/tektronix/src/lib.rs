//! Tektronix `.isf` and `.wfm`: channels of an oscilloscope, as single records or as fast frames.
//!
//! Specification: the programmer manuals of the instruments, *Reference Waveform File Format* (001-1378)
//! for `.wfm`. `FORMAT.md` lists the offsets and the decisions on unclear points.
//!
//! | file | content |
//! |---|---|
//! | `wire` | on-disk structures: `isf` (preamble), `wfm` (`WFM#001` to `WFM#003`), `llwfm` (older instruments) |
//! | `read` | files of each kind as recordings; `isf_text` reads samples written as text |
//! | `check` | checksums |
//! | `semantics` | unit codes, storage types, trigger times |
//!
//! ```
//! use spile_core::{format::Format, limits::Limits, read::*, select::Selection, source::Source};
//!
//! let mut bytes = b":WFMPRE:BYT_NR 1;BN_FMT RI;BYT_OR MSB;NR_PT 2;XINCR 1E-9;YMULT 0.5;:CURVE #12".to_vec();
//! bytes.extend([10, 0xff]);
//! let limits = Limits::default();
//! let file = spile_tektronix::Tektronix.open(Source::memory(bytes), &limits)?;
//! let (_, _, desc) = file.tree().arrays().next().unwrap();
//! let array = Array::open(file.source(), file.tree(), desc, &limits)?;
//! assert_eq!(array.read_f64(&Selection::all(), Axes::Stored)?, [5.0, -0.5]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod check;
mod read;
mod semantics;
mod wire;

use spile_core::error::Result;
use spile_core::format::{Format, FormatInfo, Grade, Head, Reader, Score};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;

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
            None => 0,
        }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(read::open(source, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        check::check(source, limits)
    }
}
