//! HDF5, and NetCDF-4, which is HDF5 with rules for names and dimensions.
//!
//! Specification: HDF5 File Format Specification 3.0, HDF5 Dimension Scale Specification, the
//! appendix "File Format Specifications" of the NetCDF Users Guide, CF conventions 1.11.
//!
//! | file | content |
//! |---|---|
//! | `wire` | on-disk structures: superblock, object headers, messages, heaps, B-trees, chunk indexes |
//! | `to_tree` | groups, datasets, attributes and dimension scales as a tree |
//! | `from_tree` | any dataset as HDF5 or NetCDF-4; HDF5 files with external data |
//! | `write` | object headers, heaps and datatypes of a new file |
//!
//! ```
//! use spile_core::format::write_file;
//! use spile_core::{Dataset, Limits, OpenOptions, Source, dtype::DType, layout::*, shape::*, sink::Overwrite, tree::*};
//!
//! let mut tree = Tree::new(&Limits::default());
//! let layout = Layout::Inline([7, 8].into(), Order::C);
//! tree.add_array(ROOT, "x", ArrayDesc::new(DType::U8, Shape::new([2]), layout))?;
//! let content = Dataset::new(Source::memory([]), tree);
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("x.h5");
//! write_file(&spile_hdf5::Hdf5, &content, &path, Overwrite::Never)?;
//! let file = Dataset::open_path(&spile_hdf5::Hdf5, &path, &OpenOptions::default())?;
//! let values: Vec<f64> = file.array("x")?.read("")?;
//! assert_eq!(values, [7.0, 8.0]);
//! # Ok::<(), spile_core::Error>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(test)]
mod damage_tests;
mod from_tree;
mod to_tree;
mod wire;
mod write;

use spile_core::error::Result;
use spile_core::format::{
    Abilities, Checker, Format, FormatInfo, Grade, Head, OpenOptions, Parsed, Score,
};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;

use from_tree::Flavor;
pub use from_tree::{Indexed, Skipped, write_index};

/// HDF5, for the registry.
pub struct Hdf5;

/// NetCDF-4, for the registry.
pub struct NetCdf;

/// MATLAB MAT-files of version 7.3, for the registry.
pub struct Mat;

static MAT: FormatInfo = FormatInfo {
    name: "mat",
    title: "MATLAB 7.3 MAT-file",
    users: "everyone with MATLAB",
    specification: "HDF5 with MATLAB's attributes",
    extensions: &["mat"],
    read: Grade::Partial,
    write: Grade::Partial,
    check: Grade::Partial,
    salvage: Grade::None,
};

static HDF5: FormatInfo = FormatInfo {
    name: "hdf5",
    title: "HDF5",
    users: "everyone with h5py, MATLAB, IDL",
    specification: "HDF5 File Format Specification 3.0",
    extensions: &["h5", "hdf5"],
    read: Grade::Partial,
    write: Grade::Partial,
    check: Grade::Partial,
    salvage: Grade::None,
};

static NETCDF: FormatInfo = FormatInfo {
    name: "netcdf",
    title: "NetCDF-4",
    users: "everyone with xarray, climate and plasma tools",
    specification: "NetCDF Users Guide, CF conventions",
    extensions: &["nc", "nc4"],
    read: Grade::Partial,
    write: Grade::Partial,
    check: Grade::Partial,
    salvage: Grade::None,
};

/// Whether the head of a file contains an HDF5 signature.
fn has_signature(head: Head<'_>) -> bool {
    let starts = |at: usize| head.bytes.get(at..).is_some_and(|b| b.starts_with(wire::SIGNATURE));
    [0, 512, 1024, 2048].into_iter().any(starts)
}

/// Whether the head of a file contains the name of the attribute that netCDF libraries always write.
fn is_netcdf(head: Head<'_>) -> bool {
    let name = b"_NCProperties";
    head.bytes.windows(name.len()).any(|window| window == name)
}

impl Format for Hdf5 {
    fn info(&self) -> &'static FormatInfo {
        &HDF5
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match has_signature(head) {
            true if is_netcdf(head) => 90,
            true => 100,
            false => 0,
        }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(&Flavor::Hdf5).checker(self)
    }
}

/// The findings are those of reading all metadata.
impl Checker for Hdf5 {
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let mut report = Report::default();
        match to_tree::open(source.clone(), &limits.into()) {
            Ok(parsed) => report.findings = parsed.warnings,
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }
}

impl Format for NetCdf {
    fn info(&self) -> &'static FormatInfo {
        &NETCDF
    }

    fn probe(&self, head: Head<'_>) -> Score {
        if has_signature(head) { 100 } else { 0 }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(&Flavor::NetCdf).checker(&Hdf5)
    }
}

impl Format for Mat {
    fn info(&self) -> &'static FormatInfo {
        &MAT
    }

    fn probe(&self, head: Head<'_>) -> Score {
        let is_mat = head.bytes.starts_with(b"MATLAB 7.3 MAT-file");
        if is_mat && has_signature(head) { 100 } else { 0 }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::mat::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(&Hdf5)
    }
}
