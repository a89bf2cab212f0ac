//! Positions of atoms as trajectories of molecular dynamics: XTC (GROMACS) and DCD (CHARMM, NAMD). These files are
//! written, not read.
//!
//! Specification: the XTC page of the GROMACS manual; the DCD plugin of VMD.
//!
//! | file | content |
//! |---|---|
//! | `plan` | positions, cells and steps of the frames of any dataset; losses |
//! | `xtc` | [`Xtc`]: positions rounded to three decimals, compressed |
//! | `dcd` | [`Dcd`]: positions in single precision |
#![forbid(unsafe_code)]

mod dcd;
mod plan;
mod xtc;

use spile_core::format::{Abilities, FormatInfo, Grade, Head, Score};
use spile_core::{Error, Format, OpenOptions, Parsed, Result, Source};

/// XTC files, for the registry.
pub struct Xtc;

/// DCD files, for the registry.
pub struct Dcd;

static XTC: FormatInfo = FormatInfo {
    name: "xtc",
    title: "XTC trajectory",
    users: "molecular dynamics (GROMACS, MDAnalysis, VMD)",
    specification: "XTC (GROMACS manual)",
    extensions: &["xtc"],
    read: Grade::None,
    write: Grade::Partial,
    check: Grade::None,
    salvage: Grade::None,
};

static DCD: FormatInfo = FormatInfo {
    name: "dcd",
    title: "DCD trajectory",
    users: "molecular dynamics (CHARMM, NAMD, VMD, MDAnalysis)",
    specification: "DCD (VMD)",
    extensions: &["dcd"],
    read: Grade::None,
    write: Grade::Partial,
    check: Grade::None,
    salvage: Grade::None,
};

fn not_read(name: &str) -> Result<Parsed> {
    Err(Error::not_this_format("xtc-001", format!("{name} files are written, not read")))
}

impl Format for Xtc {
    fn info(&self) -> &'static FormatInfo {
        &XTC
    }

    fn probe(&self, _: Head<'_>) -> Score {
        0
    }

    fn open(&self, _: Source, _: &OpenOptions) -> Result<Parsed> {
        not_read("XTC")
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self)
    }
}

impl Format for Dcd {
    fn info(&self) -> &'static FormatInfo {
        &DCD
    }

    fn probe(&self, _: Head<'_>) -> Score {
        0
    }

    fn open(&self, _: Source, _: &OpenOptions) -> Result<Parsed> {
        not_read("DCD")
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self)
    }
}
