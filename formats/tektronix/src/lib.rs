//! Tektronix `.isf` and `.wfm`: a channel of an oscilloscope, in one record or many fast frames.
//!
//! Specification: the programmer manuals of the instruments, *Reference Waveform File Format* (001-1378)
//! for `.wfm`; `FORMAT.md` says how they are read.
//!
//! | file | what is in it |
//! |---|---|
//! | `isf` `ascii` | a list of words and numbers, then a block of samples, or text |
//! | `wire` `wfm` | the structures of `WFM#001` to `WFM#003`; frames as records |
//! | `llwfm` | the `.wfm` of older instruments |
//! | `check` | sums that the files carry |
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

mod ascii;
mod check;
mod isf;
mod llwfm;
mod wfm;
mod wire;

use spile_core::error::{Error, Result};
use spile_core::format::{Format, FormatInfo, Grade, Head, Reader, Score};
use spile_core::limits::Limits;
use spile_core::recording::Recording;
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::wire::fetch;

/// The format, for the registry.
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

/// The kinds of files that the instruments write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Isf,
    Wfm,
    LlWfm,
}

impl Kind {
    /// What a file that begins like this is.
    fn of(head: &[u8]) -> Option<Self> {
        let text = head.strip_prefix(b":").unwrap_or(head);
        if wire::mark(head).is_some() {
            Some(Self::Wfm)
        } else if text.starts_with(llwfm::NAME) {
            Some(Self::LlWfm)
        } else if isf::begins(head) {
            Some(Self::Isf)
        } else {
            None
        }
    }

    fn find(source: &Source) -> Result<Self> {
        let head = fetch(source, 0, 32)?;
        Self::of(&head).ok_or_else(|| {
            let message = "begins neither like an .isf nor like a .wfm file";
            Error::not_this_format("tektronix-001", message).at(0)
        })
    }
}

fn open(source: Source, limits: &Limits) -> Result<Recording> {
    match Kind::find(&source)? {
        Kind::Isf => isf::open(source, limits),
        Kind::Wfm => wfm::open(source, limits),
        Kind::LlWfm => llwfm::open(source, limits),
    }
}

impl Format for Tektronix {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match Kind::of(head.bytes) {
            Some(Kind::Isf) => 90,
            Some(_) => 100,
            None => 0,
        }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(open(source, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        check::check(source, limits)
    }
}
