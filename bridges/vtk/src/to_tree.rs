//! The elements of a file as a tree: groups `PointData`, `CellData`, `FieldData`, `Coordinates`, `Cells`, or the
//! original paths if spile wrote the file.

mod describe;
mod structured;

use spile_core::Dataset;
use spile_core::dtype::Kind;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{Native, Object, OpenOptions, Parsed, Region, RegionKind};
use spile_core::layout::{ArrayDesc, Coord, Extent, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::metadata::StoredMetadata;

use spile_core::report::Report;
use spile_core::semantics::{Centring, Role, Semantics};
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree};

pub(crate) use describe::written_shape;
use describe::{describe, set_coords};

use crate::wire::{Data, Encoding};
use crate::xml::{self, Document, Element};
use crate::{Vtk, collection, join, legacy};

/// Prefix of the comment with the metadata that VTK cannot express.
const COMMENT: &[u8] = b" spile ";

/// Types of files with data.
pub(crate) const KINDS: [&str; 5] =
    ["ImageData", "RectilinearGrid", "StructuredGrid", "UnstructuredGrid", "PolyData"];

/// Memory charged for an array: tree node and description.
const ARRAY: u64 = 1 << 10;

/// Names of the axes of a grid.
pub(crate) const AXIS_NAMES: [&str; 3] = ["x", "y", "z"];

/// An array of the file and its bytes.
pub(crate) type Stored = (Extent, Object);

/// Parses the XML of a file, or the headers of a legacy file. Fails if the root is not `VTKFile`.
pub(crate) fn read_document(source: &Source, limits: &Limits) -> Result<Document> {
    let mut head = [0; legacy::SIGNATURE.len()];
    if source.read_at_most(0, &mut head)? == head.len() && head == *legacy::SIGNATURE {
        return legacy::read(source, limits);
    }
    let document = xml::read(source, COMMENT, limits)?;
    if document.root.name != "VTKFile" {
        let message = format!("expected the root <VTKFile>, found <{}>", document.root.name);
        return Err(Error::not_this_format("vtk-001", message).at(document.root.at));
    }
    Ok(document)
}

/// Opens a file or a collection.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let document = read_document(&source, &options.limits)?;
    if document.is_collection() {
        return collection::open(&Vtk, &source, &document.root, options);
    }
    parse(source, document, &options.limits)
}

/// Reads the arrays of a file. An array that cannot be read is reported, and the others are read.
pub(crate) fn parse(source: Source, document: Document, limits: &Limits) -> Result<Parsed> {
    if document.root.attr("type").is_some_and(join::is_joined) {
        return join::open(&source, document, limits);
    }
    let text = |name| document.root.attr(name).map(|text| (name, text.to_string().into()));
    let facts: Vec<_> = ["version", "title"].into_iter().filter_map(text).collect();
    let found = contents(&source, document, limits, Naming::default())?;
    let mut summary = Attrs::from([("kind", found.kind.into())]);
    summary.extend(facts);
    summary.extend([("arrays", (found.stored.len() as u64).into())]);
    let parsed = Parsed::new(source, found.tree).with_summary(summary);
    let parsed = parsed.with_metadata(stored_metadata(found.comment));
    let arrays = Arrays { stored: found.stored, appended: found.appended };
    Ok(parsed.with_warnings(found.report.findings).with_native(arrays))
}

/// The metadata in a comment.
pub(crate) fn stored_metadata(comment: Option<Vec<u8>>) -> Option<StoredMetadata> {
    comment.map(|comment| StoredMetadata::new(&comment[COMMENT.len()..], "comment").at(0))
}

/// Where the arrays of a file are in the tree.
#[derive(Clone, Debug)]
pub(crate) struct Naming {
    /// Group of arrays without a path of their own.
    pub(crate) prefix: String,
    /// Arrays are at the paths that spile has written.
    pub(crate) with_paths: bool,
}

impl Default for Naming {
    fn default() -> Self {
        Self { prefix: String::new(), with_paths: true }
    }
}

/// The arrays of a file.
pub(crate) struct Contents {
    pub(crate) tree: Tree,
    pub(crate) stored: Vec<Stored>,
    /// Arrays that cannot be read.
    pub(crate) report: Report,
    kind: String,
    comment: Option<Vec<u8>>,
    appended: Option<u64>,
}

/// Reads the arrays of a file with one grid.
pub(crate) fn contents(
    source: &Source,
    document: Document,
    limits: &Limits,
    naming: Naming,
) -> Result<Contents> {
    let root = &document.root;
    let kind = root.attr("type").unwrap_or_default().to_string();
    let grid = root.child(&kind).filter(|_| KINDS.contains(&kind.as_str()));
    let grid =
        grid.ok_or_else(|| root.unsupported(format!("file type \"{kind}\" is not supported")))?;
    let encoding = Encoding::new(source, &document, limits)?;
    let mut builder = Builder::new(&encoding, document.memory, naming)?;
    builder.grid(grid)?;
    let (tree, stored, report) = builder.finish()?;
    let Document { comment, appended, .. } = document;
    Ok(Contents { tree, stored, report, kind, comment, appended })
}

/// Reads the field data of a file that consists of other files.
pub(crate) fn field_data(
    source: &Source,
    document: &Document,
    limits: &Limits,
) -> Result<Contents> {
    let encoding = Encoding::new(source, document, limits)?;
    let mut builder = Builder::new(&encoding, document.memory, Naming::default())?;
    builder.fields(&document.root)?;
    let (tree, stored, report) = builder.finish()?;
    let (kind, comment, appended) = (String::new(), None, document.appended);
    Ok(Contents { tree, stored, report, kind, comment, appended })
}

/// Builds the tree of a file.
struct Builder<'a> {
    encoding: &'a Encoding<'a>,
    tree: Tree,
    stored: Vec<Stored>,
    /// Errors of arrays that cannot be read.
    unreadable: Vec<Error>,
    /// Positions of the nodes or points: an array, or a group with one array per axis.
    mesh: Option<NodeId>,
    /// The points have no cells but vertices.
    is_cloud: bool,
    naming: Naming,
}

/// Dimensions of arrays on the grid, the fastest first: lengths and coordinates.
#[derive(Clone, Default)]
struct Dimensions {
    lengths: Vec<u64>,
    coords: Vec<Coord>,
}

impl Dimensions {
    /// Number of tuples; `None` on overflow.
    fn tuples(&self) -> Option<u64> {
        Shape::new(self.lengths.clone()).count()
    }
}

impl<'a> Builder<'a> {
    /// A builder for a file whose XML takes `memory` bytes.
    fn new(encoding: &'a Encoding<'a>, memory: u64, naming: Naming) -> Result<Self> {
        let (stored, unreadable) = (Vec::new(), Vec::new());
        let mut tree = Tree::new(encoding.limits);
        tree.charge(memory, "the XML elements")?;
        Ok(Self { encoding, tree, stored, unreadable, mesh: None, is_cloud: false, naming })
    }

    /// The tree, and the arrays that cannot be read. Fails with the first error if all arrays are invalid.
    fn finish(self) -> Result<(Tree, Vec<Stored>, Report)> {
        let mut report = Report::default();
        for error in self.unreadable {
            if self.stored.is_empty() && error.kind() != ErrorKind::Unsupported {
                return Err(error);
            }
            report.absorb(error)?;
        }
        Ok((self.tree, self.stored, report))
    }

    /// The path `name` in the group of the file.
    fn path(&self, name: &str) -> String {
        let prefix = &self.naming.prefix;
        if prefix.is_empty() { name.to_string() } else { format!("{prefix}/{name}") }
    }

    /// An attribute that spile has written.
    fn own_attr<'e>(&self, element: &'e Element, name: &str) -> Option<&'e str> {
        element.attr(name).filter(|_| self.naming.with_paths)
    }

    /// Adds the field data of an element.
    fn fields(&mut self, element: &Element) -> Result<()> {
        for field in element.children.iter().filter(|child| child.name == "FieldData") {
            for array in arrays(field).filter(|array| array.attr("Labels").is_none()) {
                self.array(array, "FieldData", None, None)?;
            }
        }
        self.time()
    }

    fn grid(&mut self, grid: &Element) -> Result<()> {
        self.fields(grid)?;
        let pieces: Vec<&Element> =
            grid.children.iter().filter(|child| child.name == "Piece").collect();
        let prefix = self.naming.prefix.clone();
        for (k, piece) in pieces.iter().enumerate() {
            if pieces.len() > 1 {
                self.naming.prefix.clone_from(&prefix);
                self.naming.prefix = self.path(&format!("Piece{k}"));
            }
            (self.mesh, self.is_cloud) = (None, false);
            self.piece(grid, piece)?;
        }
        Ok(())
    }

    fn piece(&mut self, grid: &Element, piece: &Element) -> Result<()> {
        let structured = grid.attr("WholeExtent").is_some();
        let (points, cells) = if structured {
            self.structured(grid, piece)?
        } else {
            self.unstructured(grid, piece)?
        };
        let sections = [("PointData", points, Centring::Node), ("CellData", cells, Centring::Cell)];
        for (section, dims, centring) in sections {
            let mut meaning = Semantics::role(Role::Field);
            (meaning.mesh, meaning.centring) = (self.mesh, Some(centring));
            if self.is_cloud && centring == Centring::Node {
                (meaning.role, meaning.centring) = (Role::Points, None);
            }
            let count = dims.tuples();
            let count = count.ok_or_else(|| piece.malformed("number of points overflows"))?;
            for data in piece.children.iter().filter(|child| child.name == section) {
                for array in arrays(data) {
                    let id = self.array(array, section, Some(count), Some((&dims, structured)))?;
                    self.set_meaning(id, &meaning);
                }
            }
        }
        Ok(())
    }

    /// Sets the attribute `time` from the array of one number that VTK uses for it.
    fn time(&mut self) -> Result<()> {
        let known = ["FieldData/TimeValue", "FieldData/TIME"].map(|name| self.path(name));
        let found = known.iter().find_map(|path| self.tree.at(path));
        let desc = found.and_then(|id| self.tree.node(id).array.clone());
        let is_number = |desc: &ArrayDesc| desc.shape.count() == Some(1) && desc.dtype.is_real();
        let Some(desc) = desc.filter(is_number) else { return Ok(()) };
        let content = Dataset::new(self.encoding.source.clone(), Tree::new(self.encoding.limits));
        match content.open_array(&desc).and_then(|array| array.read::<Vec<f64>>(":")) {
            Err(error) if error.kind() == ErrorKind::Limit => Err(error),
            Ok(time) => time.into_iter().try_for_each(|t| self.tree.push_attr(ROOT, "time", t)),
            // The other arrays can be read without a time; `check` reports the error.
            Err(_) => Ok(()),
        }
    }

    fn set_meaning(&mut self, id: Option<NodeId>, meaning: &Semantics) {
        let desc = id.and_then(|id| self.tree.node_mut(id).array.as_mut());
        if let Some(desc) = desc.filter(|desc| desc.dtype.kind() != Kind::Text) {
            *desc.semantics_mut() = meaning.clone();
        }
    }

    /// Dimensions of the points and cells of an unstructured grid.
    fn unstructured(
        &mut self,
        grid: &Element,
        piece: &Element,
    ) -> Result<(Dimensions, Dimensions)> {
        let points = piece.number("NumberOfPoints", None)?;
        let line = |count| Dimensions { lengths: vec![count], coords: vec![Coord::None] };
        if let Some(array) = piece.child("Points").and_then(|p| arrays(p).next()) {
            self.mesh =
                self.array_at(array, "Points", Some(points), Some((&line(points), false)))?;
        }
        let mut cells = 0_u64;
        let sections: &[&str] = match grid.name.as_str() {
            "PolyData" => &["Verts", "Lines", "Strips", "Polys"],
            _ => &["Cells"],
        };
        for section in sections {
            let count = piece.number(&format!("NumberOf{section}"), Some(0))?;
            cells = cells
                .checked_add(count)
                .ok_or_else(|| piece.malformed("number of cells overflows"))?;
            let Some(element) = piece.child(section) else { continue };
            for array in arrays(element) {
                let listed = matches!(array.attr("Name"), Some("offsets" | "types"));
                // Sections without cells have empty arrays, which are omitted.
                if count > 0 || array.attr("Path").is_some() {
                    self.array(array, section, listed.then_some(count), None)?;
                }
            }
        }
        // Points without cells, or with one cell each, are a point cloud.
        let vertices = piece.number("NumberOfVerts", Some(0))?;
        self.is_cloud = cells == vertices;
        let role = if self.is_cloud { Role::Points } else { Role::Mesh };
        self.set_meaning(self.mesh, &Semantics::role(role));
        Ok((line(points), line(cells)))
    }

    /// Adds an array to the group `section`, or at its own path.
    fn array(
        &mut self,
        element: &Element,
        section: &str,
        tuples: Option<u64>,
        dims: Option<(&Dimensions, bool)>,
    ) -> Result<Option<NodeId>> {
        let name = element.attr("Name").filter(|name| !name.is_empty()).unwrap_or("_");
        let name = if section.is_empty() { name.to_string() } else { format!("{section}/{name}") };
        self.array_at(element, &name, tuples, dims)
    }

    /// Adds an array at the path `name`, or at its own path. `None` if it cannot be read.
    fn array_at(
        &mut self,
        element: &Element,
        name: &str,
        tuples: Option<u64>,
        dims: Option<(&Dimensions, bool)>,
    ) -> Result<Option<NodeId>> {
        let own = self.path(name);
        let path = self.own_attr(element, "Path").unwrap_or(&own);
        self.tree.charge(ARRAY + 4 * path.len() as u64, "the arrays")?;
        match self.add(element, path, tuples, dims) {
            Err(e) if !matches!(e.kind(), ErrorKind::Io | ErrorKind::Limit) => {
                let at = e.offset().unwrap_or(element.at);
                let error = Error::new(e.kind(), e.code(), e.message());
                self.unreadable.push(error.in_object(format!("\"{path}\"")).at(at));
                Ok(None)
            }
            added => added,
        }
    }

    fn add(
        &mut self,
        element: &Element,
        path: &str,
        tuples: Option<u64>,
        dims: Option<(&Dimensions, bool)>,
    ) -> Result<Option<NodeId>> {
        let data = self.encoding.array(element, tuples)?;
        if let Some(columns) = self.own_attr(element, "Columns") {
            return self.columns(columns, path, element, &data, dims);
        }
        let (group, last) = path.rsplit_once('/').unwrap_or(("", path));
        let mut desc = describe(self.own_attr(element, "Shape"), &data, dims);
        if let Layout::Inline(bytes, _) = &desc.layout {
            self.tree.charge(bytes.len() as u64, "the texts")?;
        }
        if desc.dtype.kind() == Kind::Text {
            desc.semantics_mut().role = Role::Text;
        }
        let parent = self.tree.node_at(group)?;
        let id = self.tree.add_array(parent, last, desc.clone())?;
        let units = element
            .children
            .iter()
            .find(|key| key.name == "InformationKey" && key.attr("name") == Some("UNITS_LABEL"));
        if let Some(text) = units.and_then(|key| key.text) {
            let text = self.encoding.source.read_vec(text.offset, text.len.min(4096))?;
            let text = String::from_utf8_lossy(&text);
            if let Some(units) = xml::unescape(text.trim()).filter(|units| !units.is_empty()) {
                self.tree.push_attr(id, "units", units)?;
            }
        }
        let path = self.tree.node(id).path.clone();
        self.stored.push((data.extent, object(path, element, desc)));
        Ok(Some(id))
    }

    /// Adds the arrays that points or a vector were written from, one per component. Returns the group of the
    /// arrays of points.
    fn columns(
        &mut self,
        names: &str,
        path: &str,
        element: &Element,
        data: &Data,
        dims: Option<(&Dimensions, bool)>,
    ) -> Result<Option<NodeId>> {
        let Some((extents, _)) = data.layout.plain() else {
            return Err(element.malformed("attribute Columns of an array that is not raw"));
        };
        let size = data.dtype.size() as u64;
        let [all] = extents.parts() else { return Ok(None) };
        let rows = data.count / data.components;
        let stride = size * data.components;
        let shape = element.attr("Shape").and_then(written_shape);
        let shape = shape.filter(|(_, shape)| shape.count() == Some(rows));
        let (order, shape) = shape.unwrap_or_else(|| (Order::C, Shape::new([rows])));
        for (k, column) in (0..data.components).zip(names.split('\n')) {
            let (group, last) = column.rsplit_once('/').unwrap_or(("", column));
            let parent = self.tree.node_at(group)?;
            let span = if rows == 0 { 0 } else { (rows - 1) * stride + size };
            let extents = Extents::one(all.offset + k * size, span);
            let layout = Layout::Rows { extents, stride, order };
            let mut desc = ArrayDesc::new(data.dtype, shape.clone(), layout);
            if let Some((dims, _)) = dims {
                set_coords(&mut desc, dims, order);
            }
            self.tree.add_array(parent, last, desc)?;
        }
        let desc = describe(None, data, None);
        self.stored.push((data.extent, object(path.into(), element, desc)));
        Ok(None)
    }
}

/// An array in the terms of the format.
fn object(path: String, element: &Element, array: ArrayDesc) -> Object {
    let kind = element.attr("type").unwrap_or_default().to_string();
    Object { path, id: None, frame: None, kind, array }
}

/// The arrays of a section.
fn arrays(element: &Element) -> impl Iterator<Item = &Element> {
    element.children.iter().filter(|child| matches!(child.name.as_str(), "DataArray" | "Array"))
}

/// Byte ranges of the arrays of a file.
pub(crate) struct Arrays {
    stored: Vec<Stored>,
    /// First byte after the XML.
    appended: Option<u64>,
}

impl Arrays {
    pub(crate) fn new(stored: Vec<Stored>) -> Self {
        Self { stored, appended: None }
    }
}

impl Native for Arrays {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let end = dataset.source().len();
        let appended = self.appended.unwrap_or(end);
        let mut stored: Vec<_> = self.stored.iter().filter(|(extent, _)| extent.len > 0).collect();
        stored.sort_by_key(|(extent, _)| (extent.offset, std::cmp::Reverse(extent.len)));
        let mut at = 0;
        let ends = stored.iter().map(|(extent, object)| (*extent, Some(object)));
        for (extent, object) in ends.chain([(Extent { offset: end, len: 0 }, None)]) {
            let Extent { offset, len } = extent;
            if offset < at {
                continue;
            }
            let middle = appended.clamp(at, offset);
            for (offset, end, kind, name) in [
                (at, middle, RegionKind::Header, "XML"),
                (middle, offset, RegionKind::Unknown, "rest"),
            ] {
                if end > offset {
                    each(Region::new(offset, end - offset, kind, name, ""))?;
                }
            }
            if let Some(Object { path, kind, .. }) = object {
                each(Region::new(offset, len, RegionKind::Data, path, kind.as_str()))?;
            }
            at = offset + len;
        }
        Ok(())
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        self.stored.iter().map(|(_, object)| object.clone()).try_for_each(each)
    }
}
