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
//! use spile_core::{format::{Format, Reader}, limits::Limits, source::Source};
//!
//! let text = r#"<VTKFile type="ImageData"><ImageData WholeExtent="0 2 0 0 0 0"
//!     Origin="5 0 0" Spacing="0.5 1 1"><Piece Extent="0 2 0 0 0 0"><PointData>
//!     <DataArray type="Int16" Name="t" format="ascii">7 8 9</DataArray>
//!     </PointData></Piece></ImageData></VTKFile>"#;
//! let file = spile_vtk::Vtk.open(Source::memory(text.as_bytes()), &Limits::default())?;
//! let id = file.tree().find("PointData/t")?;
//! assert_eq!(file.tree().node(id).array.as_ref().unwrap().shape.to_string(), "3");
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

use spile_core::error::Result;
use spile_core::format::{Format, FormatInfo, Grade, Head, Reader, Score};
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

    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        let document = read::document(&source, limits)?;
        if document.root.attr("type") == Some("Collection") {
            return collection::open(self, &source, &document.root, limits);
        }
        Ok(Box::new(File::new(source, &document, limits)?))
    }

    fn check(&self, source: &Source, limits: &Limits, _strict: bool) -> Result<Report> {
        let mut report = Report::default();
        let opened = read::document(source, limits).and_then(|document| {
            if document.root.attr("type") == Some("Collection") {
                return collection::check(source, &document.root);
            }
            File::new(source.clone(), &document, limits)?.check(limits)
        });
        match opened {
            Ok(found) => report = found,
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        from_tree::write_tree(content, sink, limits)
    }
}
