//! HDF5, and NetCDF-4, which is HDF5 with rules for names and dimensions.
//!
//! Specification: HDF5 File Format Specification 3.0, HDF5 Dimension Scale Specification, the
//! appendix "File Format Specifications" of the NetCDF Users Guide, CF conventions 1.11.
//!
//! | file | what is in it |
//! |---|---|
//! | `wire` | superblock, addresses, budget, checksum |
//! | `header` `group` `attribute` | object headers; links; attributes |
//! | `heap` `btree` `chunks` | heaps; B-trees; the indexes of chunks |
//! | `datatype` `space` | types; extents, filters, layouts |
//! | `dataset` `chunked` `codec` | a dataset as an array; its chunks; filters undone |
//! | `scales` | names and points of dimensions |
//! | `read` | bytes to tree |
//! | `write` | any tree as HDF5 or NetCDF-4; a file that points into another one |
//!
//! ```
//! use spile_core::format::{Dataset, Format, write_file};
//! use spile_core::{dtype::DType, layout::*, limits::Limits, shape::*, sink::Overwrite, tree::*};
//!
//! let limits = Limits::default();
//! let mut tree = Tree::new(&limits);
//! let layout = Layout::Inline([7, 8].into(), Order::C);
//! tree.add_array(ROOT, "x", ArrayDesc::new(DType::U8, Shape::new([2]), layout))?;
//! let content = Dataset::new(spile_core::source::Source::memory([]), tree);
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("x.h5");
//! write_file(&spile_hdf5::Hdf5, &content, &path, Overwrite::Never, &limits)?;
//! let file = spile_hdf5::Hdf5.open(spile_core::source::Source::open(&path)?, &limits)?;
//! assert_eq!(file.tree().arrays().next().unwrap().1.path, "x");
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod attribute;
mod btree;
mod chunked;
mod chunks;
mod codec;
#[cfg(test)]
mod damage;
mod dataset;
mod datatype;
mod group;
mod header;
mod heap;
mod read;
mod scales;
mod space;
mod wire;
mod write;

use spile_core::error::Result;
use spile_core::format::{Format, FormatInfo, Grade, Head, Reader, Score};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;

use read::File;
use write::Rules;
pub use write::{Indexed, Left, write_index};

/// HDF5, for the registry.
pub struct Hdf5;

/// NetCDF-4, for the registry.
pub struct NetCdf;

static HDF5: FormatInfo = FormatInfo {
    name: "hdf5",
    title: "HDF5",
    users: "everyone with h5py, MATLAB, IDL",
    specification: "HDF5 File Format Specification 3.0",
    extensions: &["h5", "hdf5"],
    read: Grade::Partial,
    write: Grade::Complete,
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
    write: Grade::Complete,
    check: Grade::Partial,
    salvage: Grade::None,
};

/// Where a signature is in the head of a file.
fn signature(head: Head<'_>) -> Option<usize> {
    let places = [0, 512, 1024, 2048];
    places
        .into_iter()
        .find(|at| head.bytes.get(*at..).is_some_and(|rest| rest.starts_with(wire::SIGNATURE)))
}

/// The name of the attribute that netCDF libraries leave in every file.
fn is_netcdf(head: Head<'_>) -> bool {
    let name = b"_NCProperties";
    head.bytes.windows(name.len()).any(|window| window == name)
}

fn check(source: &Source, limits: &Limits) -> Result<Report> {
    let mut report = Report::default();
    match File::open(source.clone(), limits) {
        Ok(file) => report.findings.extend_from_slice(file.findings()),
        Err(error) => report.absorb(error)?,
    }
    Ok(report)
}

impl Format for Hdf5 {
    fn info(&self) -> &'static FormatInfo {
        &HDF5
    }

    fn probe(&self, head: Head<'_>) -> Score {
        match signature(head) {
            Some(_) if is_netcdf(head) => 90,
            Some(_) => 100,
            None => 0,
        }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(File::open(source, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        check(source, limits)
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        write::write_tree(content, sink, Rules::Hdf5, limits)
    }
}

impl Format for NetCdf {
    fn info(&self) -> &'static FormatInfo {
        &NETCDF
    }

    fn probe(&self, head: Head<'_>) -> Score {
        if signature(head).is_some() { 100 } else { 0 }
    }

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        Ok(Box::new(File::open(source, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        check(source, limits)
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        write::write_tree(content, sink, Rules::NetCdf, limits)
    }
}
