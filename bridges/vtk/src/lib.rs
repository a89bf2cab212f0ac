//! VTK's XML files: `.vti`, `.vtr`, `.vtu`, `.vtp`, and `.pvd` for a series of them.
//!
//! Specification: *VTK File Formats*, the XML formats, versions 0.1 to 2.2.
//!
//! | file | what is in it |
//! |---|---|
//! | `xml` | elements, attributes, and where text is |
//! | `data` | the numbers of a `DataArray`, however they are written |
//! | `read` | the tree view |
//! | `collection` | `.pvd`: files with their times, both ways |
//! | `grid` `cloud` | which arrays of any tree lie on one grid, or on points |
//! | `write` `on_grid` `on_points` `save` | a grid or points as a file |
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

mod cloud;
mod collection;
mod data;
mod grid;
mod on_grid;
mod on_points;
mod read;
mod save;
mod write;
mod xml;

use spile_core::error::{Error, Result};
use spile_core::format::{Format, FormatInfo, Grade, Head, Object, Reader, Region, Role, Score};
use spile_core::layout::Layout;
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::report::{Finding, Report};
use spile_core::sink::Sink;
use spile_core::source::Source;
use spile_core::tree::{Tree, Value};

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

impl File {
    /// What is wrong with the file, numbers that have to be decoded included.
    fn examined(mut self, limits: &Limits) -> Result<Report> {
        for stored in &self.stored {
            if matches!(stored.array.layout, Layout::Plain { .. }) {
                continue;
            }
            let array = Array::open(&self.source, &self.tree, &stored.array, limits);
            let read = array.and_then(|array| array.all()?.stream(|_, _| Ok(())));
            if let Err(error) = read {
                self.report.absorb(error.in_object(stored.path.clone()).at(stored.place.offset))?;
            }
        }
        Ok(self.report)
    }
}

impl Reader for File {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn summary(&self) -> Vec<(String, Value)> {
        vec![
            ("kind".into(), self.kind.clone().into()),
            ("version".into(), self.version.clone().into()),
            ("arrays".into(), (self.stored.len() as u64).into()),
        ]
    }

    fn findings(&self) -> &[Finding] {
        &self.report.findings
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut data: Vec<_> = self.stored.iter().collect();
        data.sort_by_key(|stored| (stored.place.offset, std::cmp::Reverse(stored.place.len)));
        let mut at = 0;
        let appended = self.appended.unwrap_or(self.source.len());
        let between = |from: u64, to: u64, each: &mut dyn FnMut(Region) -> Result<()>| {
            let middle = appended.clamp(from, to);
            for (offset, end, role, name) in
                [(from, middle, Role::Header, "XML"), (middle, to, Role::Unknown, "rest")]
            {
                if end > offset {
                    let (len, name, value) = (end - offset, name.into(), String::new());
                    each(Region { offset, len, role, name, value })?;
                }
            }
            Ok::<(), Error>(())
        };
        for stored in data {
            let (offset, len) = (stored.place.offset, stored.place.len);
            if offset < at || len == 0 {
                continue;
            }
            between(at, offset, each)?;
            let (name, value) = (stored.path.clone(), stored.kind.clone());
            each(Region { offset, len, role: Role::Data, name, value })?;
            at = offset + len;
        }
        between(at, self.source.len(), each)
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for stored in &self.stored {
            each(Object {
                path: stored.path.clone(),
                id: None,
                frame: None,
                kind: stored.kind.clone(),
                array: stored.array.clone(),
            })?;
        }
        Ok(())
    }
}

impl Format for Vtk {
    fn info(&self) -> &'static FormatInfo {
        &INFO
    }

    fn probe(&self, head: Head<'_>) -> Score {
        let has = |word: &[u8]| head.bytes.windows(word.len()).any(|part| part == word);
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
            File::new(source.clone(), &document, limits)?.examined(limits)
        });
        match opened {
            Ok(found) => report = found,
            Err(error) => report.absorb(error)?,
        }
        Ok(report)
    }

    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        write::write_tree(content, sink, limits)
    }
}
