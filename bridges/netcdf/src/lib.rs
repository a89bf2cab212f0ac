//! NetCDF classic: the formats CDF-1 (classic), CDF-2 (64-bit offset) and CDF-5 (64-bit data).
//!
//! Specification: NetCDF Users Guide, appendix "File Format Specifications" (classic format), and CF
//! conventions 1.11. NetCDF-4 files are HDF5 files: see the crate `spile-hdf5`.
//!
//! | file | content |
//! |---|---|
//! | `wire` | the header: dimensions, attributes, variables |
//! | `to_tree` | variables as arrays: byte ranges, records, coordinates, CF attributes; `map` and `hash --native` |
//! | `check` | deviations from the specification that do not change values |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! // One dimension x = 2 and the variable v(x) of type int.
//! let mut file = b"CDF\x01\0\0\0\0\0\0\0\x0a\0\0\0\x01\0\0\0\x01x\0\0\0\0\0\0\x02".to_vec();
//! file.extend(b"\0\0\0\0\0\0\0\0\0\0\0\x0b\0\0\0\x01\0\0\0\x01v\0\0\0\0\0\0\x01\0\0\0\0");
//! file.extend(b"\0\0\0\0\0\0\0\0\0\0\0\x04\0\0\0\x08\0\0\0\x50\0\0\0\x07\0\0\0\x08");
//! let dataset = Dataset::open(&spile_netcdf::Classic, Source::memory(file), &OpenOptions::default())?;
//! assert_eq!(dataset.array("v")?.read::<Vec<i32>>("")?, [7, 8]);
//! # Ok::<(), spile_core::Error>(())
//! ```
#![forbid(unsafe_code)]

mod check;
mod to_tree;
mod wire;

use spile_core::error::Result;
use spile_core::format::{
    Abilities, Checker, Format, FormatInfo, Grade, Head, OpenOptions, Parsed, Score,
};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;

/// NetCDF classic, for the registry.
pub struct Classic;

static INFO: FormatInfo = FormatInfo {
    name: "netcdf3",
    title: "NetCDF classic",
    users: "climate and ocean models, xarray, older plasma codes",
    specification: "NetCDF classic format: CDF-1, CDF-2, CDF-5",
    extensions: &["nc", "cdf", "nc3"],
    read: Grade::Complete,
    write: Grade::None,
    check: Grade::Complete,
    salvage: Grade::None,
};

impl Format for Classic {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match head.bytes {
            [b'C', b'D', b'F', 1 | 2 | 5, ..] => 100,
            _ => 0,
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().checker(self)
    }
}

impl Checker for Classic {
    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        check::check(source, limits, strict)
    }
}
