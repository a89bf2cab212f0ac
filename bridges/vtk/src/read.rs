//! A file: its XML, the encoding of its arrays, and the model view.

use spile_core::Dataset;
use spile_core::error::{Error, Result};
use spile_core::format::{Native, Object, Parsed, Region, RegionKind};
use spile_core::layout::{ArrayDesc, Extent, Layout};
use spile_core::limits::Limits;
use spile_core::metadata::StoredMetadata;
use spile_core::report::{Report, Severity};
use spile_core::source::Source;
use spile_core::tree::{Attrs, Tree};
use spile_core::wire::ByteOrder;

use crate::to_tree::Builder;
use crate::wire::Encoding;
use crate::xml;

/// Codes of arrays that are not supported.
const UNSUPPORTED: [&str; 2] = ["vtk-006", "vtk-010"];

/// Prefix of the comment with the metadata that VTK cannot express.
pub(crate) const COMMENT: &[u8] = b" spile ";

/// An array of the file.
pub(crate) struct Stored {
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) extent: Extent,
    pub(crate) array: ArrayDesc,
}

/// Content of a file, without the values.
pub(crate) struct File {
    tree: Tree,
    summary: Attrs,
    report: Report,
    metadata: Option<StoredMetadata>,
    arrays: Arrays,
}

/// The arrays of a file.
struct Arrays {
    stored: Vec<Stored>,
    /// First byte after the XML.
    appended: Option<u64>,
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
    pub(crate) fn read(source: &Source, document: xml::Document, limits: &Limits) -> Result<Self> {
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
        let encoding = Encoding { source, limits, order, header, compressed, appended };
        let (tree, stored, report) =
            Builder::new(&encoding, document.memory, limits)?.build(grid)?;
        let version = root.attr("version").unwrap_or_default();
        let summary = Attrs::from([
            ("kind", kind.into()),
            ("version", version.into()),
            ("arrays", (stored.len() as u64).into()),
        ]);
        let metadata = document
            .comment
            .map(|comment| StoredMetadata::new(&comment[COMMENT.len()..], "comment").at(0));
        let arrays = Arrays { stored, appended: document.appended };
        Ok(Self { tree, summary, report, metadata, arrays })
    }

    pub(crate) fn parsed(self, source: Source) -> Parsed {
        let parsed = Parsed::new(source, self.tree).with_summary(self.summary);
        let parsed = parsed.with_warnings(self.report.findings).with_metadata(self.metadata);
        parsed.with_native(self.arrays)
    }

    /// Decodes all arrays that are not raw. Returns the findings, including those of opening.
    pub(crate) fn check(self, source: &Source, limits: &Limits) -> Result<Report> {
        let mut report = self.report;
        // Arrays that are not supported may be valid.
        for finding in report.findings.iter_mut().filter(|f| UNSUPPORTED.contains(&f.code)) {
            finding.severity = Severity::Warning;
        }
        let content = Dataset::new(source.clone(), Tree::new(limits));
        for stored in &self.arrays.stored {
            if matches!(stored.array.layout, Layout::Plain { .. }) {
                continue;
            }
            let array = content.open_array(&stored.array);
            let read = array.and_then(|array| array.all()?.stream(|_, _| Ok(())));
            if let Err(error) = read {
                report.absorb(error.in_object(stored.path.clone()).at(stored.extent.offset))?;
            }
        }
        Ok(report)
    }
}

impl Native for Arrays {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let end = dataset.source().len();
        let mut data: Vec<_> = self.stored.iter().collect();
        data.sort_by_key(|stored| (stored.extent.offset, std::cmp::Reverse(stored.extent.len)));
        let mut at = 0;
        let appended = self.appended.unwrap_or(end);
        let between = |from: u64, to: u64, each: &mut dyn FnMut(Region) -> Result<()>| {
            let middle = appended.clamp(from, to);
            for (offset, end, kind, name) in [
                (from, middle, RegionKind::Header, "XML"),
                (middle, to, RegionKind::Unknown, "rest"),
            ] {
                if end > offset {
                    let (len, name, value) = (end - offset, name.into(), String::new());
                    each(Region { offset, len, kind, name, value })?;
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
            each(Region { offset, len, kind: RegionKind::Data, name, value })?;
            at = offset + len;
        }
        between(at, end, each)
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
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
