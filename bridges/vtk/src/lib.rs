//! VTK files: legacy `.vtk`, and XML: `.vti`, `.vtr`, `.vts`, `.vtu`, `.vtp`; `.vtm` and `.pvtu`, ... for several of them, and `.pvd` for
//! a series of them.
//!
//! Specification: *VTK File Formats*, the legacy formats, versions 1.0 to 5.1, and the XML formats, versions 0.1 to 2.2.
//!
//! | file | content |
//! |---|---|
//! | `xml` | elements, attributes, and the byte ranges of text |
//! | `legacy` | legacy files as elements |
//! | `wire` | encodings of a `DataArray` |
//! | `to_tree` | the model view |
//! | `join` | files that consist of other files as one tree |
//! | `multiblock` | `.vtm`: all meshes and species |
//! | `collection` | `.pvd`: files with their times |
//! | `from_tree` | a tree as files: `blocks`, `find_grid` and `find_points` choose the arrays, `grid`, `points` and `vectors` arrange them |
//! | `write` | writer of files |
//! | `hdf` | VTKHDF: HDF5 files as the tree of an XML file |
//! | `check` | decodes all arrays |
//!
//! ```
//! use spile_core::{Dataset, OpenOptions, Source};
//!
//! let text = r#"<VTKFile type="ImageData"><ImageData WholeExtent="0 2 0 0 0 0"
//!     Origin="5 0 0" Spacing="0.5 1 1"><Piece Extent="0 2 0 0 0 0"><PointData>
//!     <DataArray type="Int16" Name="t" format="ascii">7 8 9</DataArray>
//!     </PointData></Piece></ImageData></VTKFile>"#;
//! let source = Source::memory(text.as_bytes());
//! let file = Dataset::open(&spile_vtk::Vtk, source, &OpenOptions::default())?;
//! assert_eq!(file.array("PointData/t")?.coord("x")?.read()?, [5.0, 5.5, 6.0]);
//! # Ok::<(), spile_core::error::Error>(())
//! ```
#![forbid(unsafe_code)]

mod check;
mod collection;
mod from_tree;
mod hdf;
mod join;
mod legacy;
mod multiblock;
mod to_tree;
mod wire;
mod write;
mod xml;

use spile_core::error::Result;
use spile_core::format::{Abilities, Format, FormatInfo, Grade, Head, OpenOptions, Parsed, Score};
use spile_core::source::Source;

pub use hdf::VtkHdf;

/// The format, for the registry.
pub struct Vtk;

static INFO: FormatInfo = FormatInfo {
    name: "vtk",
    title: "VTK",
    users: "everyone with ParaView, VisIt or pyvista",
    specification: "VTK XML 2.2, legacy 5.1",
    extensions: &[
        "vtm", "vti", "vtr", "vts", "vtu", "vtp", "pvd", "vtk", "pvti", "pvtr", "pvts", "pvtu",
        "pvtp",
    ],
    read: Grade::Partial,
    write: Grade::Partial,
    check: Grade::Partial,
    salvage: Grade::None,
};

impl Format for Vtk {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        let has = |tag: &[u8]| head.bytes.windows(tag.len()).any(|part| part == tag);
        let blank = head.bytes.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let xml = head.bytes[blank..].starts_with(b"<");
        let legacy = head.bytes.starts_with(legacy::SIGNATURE);
        if legacy || xml && has(b"<VTKFile") { 100 } else { 0 }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        to_tree::open(source, options)
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}
