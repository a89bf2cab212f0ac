//! A file: its XML, the encoding of its arrays, and the model view.

use spile_core::metadata::Description;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::layout::{ArrayDesc, Extent, Layout};
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::report::{Finding, Report};
use spile_core::source::Source;
use spile_core::tree::{Tree, Value};
use spile_core::wire::ByteOrder;

use crate::to_tree::Builder;
use crate::wire::Encoding;
use crate::xml;

/// Prefix of the comment with the metadata that VTK cannot express.
pub(crate) const COMMENT: &[u8] = b" spile ";

/// An array of the file.
pub(crate) struct Stored {
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) extent: Extent,
    pub(crate) array: ArrayDesc,
}

/// An open file.
pub(crate) struct File {
    pub(crate) source: Source,
    pub(crate) tree: Tree,
    pub(crate) kind: String,
    pub(crate) version: String,
    pub(crate) stored: Vec<Stored>,
    /// First byte after the XML.
    pub(crate) appended: Option<u64>,
    pub(crate) report: Report,
}

/// Parses the XML of a file. Fails if the root is not `VTKFile`.
pub(crate) fn document(source: &Source, limits: &Limits) -> Result<xml::Document> {
    let document = xml::read(source, COMMENT, limits)?;
    if document.root.name != "VTKFile" {
        let message = format!("expected the root <VTKFile>, found <{}>", document.root.name);
        return Err(Error::not_this_format("vtk-001", message).at(document.root.at));
    }
    Ok(document)
}

impl File {
    /// Reads the arrays of a file. An array that cannot be read is reported, and the others are read.
    pub(crate) fn new(source: Source, document: &xml::Document, limits: &Limits) -> Result<Self> {
        let root = &document.root;
        let kind = root.attr("type").unwrap_or_default().to_string();
        let grid = root.child(&kind).filter(|grid| {
            let known = ["ImageData", "RectilinearGrid", "StructuredGrid", "UnstructuredGrid"];
            known.contains(&grid.name.as_str()) || grid.name == "PolyData"
        });
        let grid = grid.ok_or_else(|| {
            let message = format!("file type \"{kind}\" is not supported");
            Error::unsupported("vtk-006", message).in_object("VTKFile").at(root.at)
        })?;
        let order = match root.attr("byte_order") {
            None | Some("LittleEndian") => ByteOrder::Little,
            Some("BigEndian") => ByteOrder::Big,
            Some(other) => return Err(root.malformed(format!("unknown byte_order \"{other}\""))),
        };
        let header = match root.attr("header_type") {
            None | Some("UInt32") => 4,
            Some("UInt64") => 8,
            Some(other) => return Err(root.malformed(format!("unknown header_type \"{other}\""))),
        };
        let compressed = match root.attr("compressor") {
            None | Some("") => false,
            Some("vtkZLibDataCompressor") => true,
            Some(other) => {
                let message = format!("compressor {other} is not supported");
                return Err(Error::unsupported("vtk-006", message)
                    .in_object("VTKFile")
                    .at(root.at));
            }
        };
        let appended = match (document.appended, root.child("AppendedData")) {
            (Some(start), Some(element)) => {
                Some((start, element.attr("encoding") == Some("base64")))
            }
            _ => None,
        };
        let encoding = Encoding { source: &source, limits, order, header, compressed, appended };
        let (mut tree, stored, mut report) =
            Builder::new(&encoding, document.memory, limits).build(grid)?;
        // A program that rewrites the file may have dropped the comment, or changed the arrays.
        if let Some(comment) = &document.comment {
            let metadata = Description::parse(&comment[COMMENT.len()..], limits);
            match metadata.and_then(|metadata| metadata.dress(&source, &tree, limits)) {
                Ok(described) => tree = described,
                Err(error) if error.kind() == ErrorKind::Limit => return Err(error),
                Err(error) => {
                    let message = format!("metadata ignored: {}", error.message());
                    report.warn("vtk-011", message).in_object("comment").at(0);
                }
            }
        }
        let version = root.attr("version").unwrap_or_default().to_string();
        let appended = document.appended;
        Ok(Self { source, tree, kind, version, stored, appended, report })
    }
}

impl File {
    /// Decodes all arrays that are not raw. Returns the findings, including those of opening.
    pub(crate) fn check(mut self, limits: &Limits) -> Result<Report> {
        for stored in &self.stored {
            if matches!(stored.array.layout, Layout::Plain { .. }) {
                continue;
            }
            let array = Array::open(&self.source, &self.tree, &stored.array, limits);
            let read = array.and_then(|array| array.all()?.stream(|_, _| Ok(())));
            if let Err(error) = read {
                self.report
                    .absorb(error.in_object(stored.path.clone()).at(stored.extent.offset))?;
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
        data.sort_by_key(|stored| (stored.extent.offset, std::cmp::Reverse(stored.extent.len)));
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
            let (offset, len) = (stored.extent.offset, stored.extent.len);
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
