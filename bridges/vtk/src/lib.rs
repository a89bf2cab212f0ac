//! VTK XML files: `.vti`, `.vtr`, `.vts`, `.vtu`, `.vtp`, and `.pvd` for a series of them.
//!
//! Specification: *VTK File Formats*, the XML formats, versions 0.1 to 2.2.
//!
//! | file | content |
//! |---|---|
//! | `xml` | elements, attributes, and the byte ranges of text |
//! | `wire` | encodings of a `DataArray` |
//! | `read` | a file and its findings |
//! | `to_tree` | the model view |
//! | `collection` | `.pvd`: files with their times |
//! | `from_tree` | a tree as a file: `find_grid` and `find_points` choose the arrays, `grid` and `points` arrange them |
//! | `write` | writer of files |
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

mod collection;
mod from_tree;
mod read;
mod to_tree;
mod wire;
mod write;
mod xml;

use std::path::Path;

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::{
    Abilities, Checker, Format, FormatInfo, FormatWriter, Grade, Head, Loss, OpenOptions, Parsed,
    Score,
};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;

use read::File;

/// The format, for the registry.
pub struct Vtk;

static INFO: FormatInfo = FormatInfo {
    name: "vtk",
    title: "VTK XML",
    users: "everyone with ParaView, VisIt or pyvista",
    specification: "VTK XML 2.2",
    extensions: &["vti", "vtr", "vtu", "vtp", "vts", "pvd"],
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
        if xml && has(b"<VTKFile") { 100 } else { 0 }
    }

    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed> {
        let document = read::document(&source, &options.limits)?;
        if document.root.attr("type") == Some("Collection") {
            return collection::open(self, &source, &document.root, options);
        }
        let file = File::read(&source, document, &options.limits)?;
        Ok(file.parsed(source))
    }

    fn abilities(&self) -> Abilities<'_> {
        Abilities::default().writer(self).checker(self)
    }
}

impl Checker for Vtk {
    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let mut report = Report::default();
        let opened = read::document(source, limits).and_then(|document| {
            if document.root.attr("type") == Some("Collection") {
                return collection::check(source, &document.root);
            }
            File::read(source, document, limits)?.check(source, limits)
        });
        match opened {
            Ok(found) => report = found,
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }
}

impl FormatWriter for Vtk {
    fn losses(&self, content: &Dataset, path: &Path) -> Result<Vec<Loss>> {
        from_tree::losses(content, path)
    }

    fn write(&self, content: &Dataset, sink: &mut Sink) -> Result<Vec<Loss>> {
        from_tree::write_tree(content, sink)?;
        Ok(Vec::new())
    }
}
