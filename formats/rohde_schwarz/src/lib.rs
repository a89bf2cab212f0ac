//! Rohde & Schwarz RTx: waveforms as a description (`X.bin`, XML) and a file of samples (`X.Wfm.bin`).
//!
//! Specification: none; `FORMAT.md` lists the properties that are used and the decisions.
//!
//! | file | content |
//! |---|---|
//! | `wire` | properties of the description, header of the samples |
//! | `to_tree` | both files as a recording |
//!
//! Either file can be opened; the other one is in the same folder.
#![forbid(unsafe_code)]

mod to_tree;
mod wire;

use spile_core::format::{Abilities, Checker, FormatInfo, Grade, Head, Score};
use spile_core::{Format, OpenOptions, Parsed, Result, Source};

/// The Rohde & Schwarz format, for the registry.
pub struct RohdeSchwarz;

static INFO: FormatInfo = FormatInfo {
    name: "rohde_schwarz",
    title: "Rohde & Schwarz oscilloscope waveforms",
    users: "laboratories with Rohde & Schwarz RTx oscilloscopes",
    specification: "files of the instruments, .bin and .Wfm.bin",
    extensions: &["bin"],
    read: Grade::Partial,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

impl Format for RohdeSchwarz {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        if wire::is_description(head.bytes) {
            return 95;
        }
        // The header of the samples has no magic: only sizes that fit each other.
        Score::from(wire::Samples::plausible(head.bytes, head.len))
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().checker(self)
    }
}

impl Checker for RohdeSchwarz {}
