//! The elements of a file as a tree, in VTK's own words: groups `PointData`, `CellData`,
//! `FieldData`, `Coordinates`, `Cells`, or the paths that arrays have where spile wrote the file.

use spile_core::description::Description;
use spile_core::dtype::DType;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::layout::{ArrayDesc, Coord, Extent, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::points::midpoints;
use spile_core::read::{Array, Axes};
use spile_core::report::Report;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{NodeId, ROOT, Tree, Value};
use spile_core::wire::ByteOrder;

use crate::data::{Coding, Data, title};
use crate::xml::{self, Element};

/// The comment in which spile keeps what VTK has no place for.
pub(crate) const COMMENT: &[u8] = b" spile ";

/// Axes of a grid.
pub(crate) const LETTERS: [&str; 3] = ["x", "y", "z"];

/// An array of the file, for `regions` and `objects`.
pub(crate) struct Stored {
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) place: Extent,
    pub(crate) array: ArrayDesc,
}

/// What is in a file.
pub(crate) struct File {
    pub(crate) source: Source,
    pub(crate) tree: Tree,
    pub(crate) kind: String,
    pub(crate) version: String,
    pub(crate) stored: Vec<Stored>,
    /// First byte that is no XML.
    pub(crate) appended: Option<u64>,
    pub(crate) report: Report,
}

/// The root element of a file, and where its appended data are.
pub(crate) fn document(source: &Source, limits: &Limits) -> Result<xml::Document> {
    let document = xml::read(source, COMMENT, limits)?;
    if document.root.name != "VTKFile" {
        let message = format!("the root is <{}>, not <VTKFile>", document.root.name);
        return Err(Error::not_this_format("vtk-001", message).at(document.root.at));
    }
    Ok(document)
}

impl File {
    pub(crate) fn new(source: Source, document: &xml::Document, limits: &Limits) -> Result<Self> {
        let root = &document.root;
        let kind = root.attr("type").unwrap_or_default().to_string();
        let grid = root.child(&kind).filter(|grid| {
            let known = ["ImageData", "RectilinearGrid", "StructuredGrid", "UnstructuredGrid"];
            known.contains(&grid.name.as_str()) || grid.name == "PolyData"
        });
        let grid = grid.ok_or_else(|| {
            let message = format!("files of the type \"{kind}\" are not read");
            Error::unsupported("vtk-006", message).in_object("VTKFile").at(root.at)
        })?;
        let order = match root.attr("byte_order") {
            None | Some("LittleEndian") => ByteOrder::Little,
            Some("BigEndian") => ByteOrder::Big,
            Some(other) => return Err(root.malformed(format!("byte_order=\"{other}\""))),
        };
        let header = match root.attr("header_type") {
            None | Some("UInt32") => 4,
            Some("UInt64") => 8,
            Some(other) => return Err(root.malformed(format!("header_type=\"{other}\""))),
        };
        let compressed = match root.attr("compressor") {
            None | Some("") => false,
            Some("vtkZLibDataCompressor") => true,
            Some(other) => {
                let message = format!("data compressed by {other} are not read");
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
        let coding = Coding { source: &source, limits, order, header, compressed, appended };
        let mut builder = Builder {
            coding: &coding,
            tree: Tree::new(limits),
            stored: Vec::new(),
            report: Report::default(),
        };
        builder.grid(grid)?;
        let Builder { mut tree, stored, mut report, .. } = builder;
        // What spile keeps beside the arrays is a comment: whoever rewrites the file may lose it, or
        // keep it for arrays that are no longer there. Then the arrays themselves count.
        if let Some(comment) = &document.comment {
            let said = Description::parse(&comment[COMMENT.len()..], limits);
            match said.and_then(|said| said.dress(&source, &tree, limits)) {
                Ok(dressed) => tree = dressed,
                Err(error) if error.kind() == ErrorKind::Limit => return Err(error),
                Err(error) => {
                    let message = format!("the comment for spile is left out: {}", error.message());
                    report.warn("vtk-011", message).in_object("comment").at(0);
                }
            }
        }
        let version = root.attr("version").unwrap_or_default().to_string();
        let appended = document.appended;
        Ok(Self { source, tree, kind, version, stored, appended, report })
    }
}

struct Builder<'a> {
    coding: &'a Coding<'a>,
    tree: Tree,
    stored: Vec<Stored>,
    report: Report,
}

/// How the numbers of an array lie on the grid: lengths from the fastest on, names, coordinates.
#[derive(Clone, Default)]
struct Lines {
    lengths: Vec<u64>,
    coords: Vec<Coord>,
}

impl Lines {
    fn tuples(&self) -> Option<u64> {
        Shape::new(self.lengths.clone()).count()
    }
}

impl Builder<'_> {
    fn grid(&mut self, grid: &Element) -> Result<()> {
        for field in grid.children.iter().filter(|child| child.name == "FieldData") {
            for array in arrays(field) {
                self.array(array, "FieldData", None, None)?;
            }
        }
        self.time()?;
        let mut pieces = grid.children.iter().filter(|child| child.name == "Piece");
        let Some(piece) = pieces.next() else { return Ok(()) };
        if pieces.next().is_some() {
            let message = "files of several pieces are not read";
            return Err(Error::unsupported("vtk-006", message).in_object("Piece").at(piece.at));
        }
        let structured = grid.attr("WholeExtent").is_some();
        let (points, cells) = if structured {
            self.structured(grid, piece)?
        } else {
            self.unstructured(grid, piece)?
        };
        for (section, lines) in [("PointData", points), ("CellData", cells)] {
            let count = lines.tuples();
            let count = count.ok_or_else(|| piece.malformed("more points than any file has"))?;
            for data in piece.children.iter().filter(|child| child.name == section) {
                for array in arrays(data) {
                    self.array(array, section, Some(count), Some((&lines, structured)))?;
                }
            }
        }
        Ok(())
    }

    /// VTK keeps the time of a file as an array of one number.
    fn time(&mut self) -> Result<()> {
        let found = ["FieldData/TimeValue", "FieldData/TIME"].iter().find_map(|p| self.tree.at(p));
        let Some(id) = found else { return Ok(()) };
        let Some(desc) = self.tree.node(id).array.clone() else { return Ok(()) };
        if desc.shape.count() == Some(1) && desc.dtype.is_real() {
            let array = Array::open(self.coding.source, &self.tree, &desc, self.coding.limits);
            let found = array.and_then(|array| array.read_f64(&Selection::all(), Axes::Stored));
            match found {
                Ok(time) => {
                    let time = time.into_iter().map(|time| ("time".to_string(), time.into()));
                    self.tree.node_mut(ROOT).attrs.extend(time);
                }
                Err(error) if error.kind() == ErrorKind::Limit => return Err(error),
                // Everything else is as readable as without a time; `check` says what is wrong.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// Points and cells of a grid that is a box.
    fn structured(&mut self, grid: &Element, piece: &Element) -> Result<(Lines, Lines)> {
        let extent: [i64; 6] = if piece.attr("Extent").is_some() {
            piece.list("Extent")?
        } else {
            grid.list("WholeExtent")?
        };
        let mut nodes = [1_u64; 3];
        for axis in 0..3 {
            let less = extent[2 * axis + 1].checked_sub(extent[2 * axis]);
            let less = less.filter(|n| (-1..i64::MAX).contains(n));
            let less =
                less.ok_or_else(|| piece.malformed("an extent that ends before it begins"))?;
            nodes[axis] = (less + 1).unsigned_abs();
        }
        // Axes of a single point are no dimensions, but one is left.
        let rank = nodes.iter().rposition(|n| *n != 1).map_or(1, |k| k + 1);
        let (mut points, mut cells) = (Lines::default(), Lines::default());
        let mut coords = match grid.name.as_str() {
            "ImageData" => self.image(grid, &extent)?,
            "RectilinearGrid" => self.coordinates(piece, nodes)?,
            _ => {
                let lines = Lines { lengths: nodes.to_vec(), coords: vec![Coord::None; 3] };
                if let Some(array) = piece.child("Points").and_then(|p| arrays(p).next()) {
                    self.array(array, "", lines.tuples(), Some((&lines, true)))?;
                }
                vec![(Coord::None, Coord::None); 3]
            }
        };
        coords.resize(3, (Coord::None, Coord::None));
        for axis in 0..rank {
            points.lengths.push(nodes[axis]);
            points.coords.push(coords[axis].0.clone());
            // An axis of one point has one cell.
            let one = nodes[axis] == 1;
            cells.lengths.push(if one { 1 } else { nodes[axis] - u64::from(nodes[axis] > 0) });
            cells.coords.push(if one { coords[axis].0.clone() } else { coords[axis].1.clone() });
        }
        Ok((points, cells))
    }

    /// Points and middles of cells that are evenly spaced.
    fn image(&mut self, grid: &Element, extent: &[i64; 6]) -> Result<Vec<(Coord, Coord)>> {
        let or = |name: &str, value: f64| -> Result<[f64; 3]> {
            if grid.attr(name).is_some() { grid.list(name) } else { Ok([value; 3]) }
        };
        let (origin, spacing) = (or("Origin", 0.0)?, or("Spacing", 1.0)?);
        if let Some(direction) = grid.attr("Direction") {
            let turned: [f64; 9] = grid.list("Direction")?;
            if turned != [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0] {
                // Its axes are no lines of x, y and z.
                let attrs = &mut self.tree.node_mut(ROOT).attrs;
                attrs.push(("Direction".into(), direction.into()));
                return Ok(Vec::new());
            }
        }
        let line = |axis: usize| {
            let step = spacing[axis];
            let first = extent[2 * axis] as f64;
            let start = if first == 0.0 { origin[axis] } else { origin[axis] + first * step };
            let half = start + step / 2.0;
            (Coord::Uniform { start, step }, Coord::Uniform { start: half, step })
        };
        Ok((0..3).map(line).collect())
    }

    /// Points and middles of cells along each axis.
    fn coordinates(&mut self, piece: &Element, nodes: [u64; 3]) -> Result<Vec<(Coord, Coord)>> {
        let mut coords = Vec::new();
        let Some(element) = piece.child("Coordinates") else { return Ok(coords) };
        for (axis, array) in arrays(element).enumerate().take(3) {
            let lines = Lines { lengths: vec![nodes[axis]], coords: vec![Coord::None] };
            // Those of an axis that is no dimension need no place in the tree.
            let made = nodes[axis] == 1 && axis > 0 && array.attr("Path").is_none();
            let id = if made {
                None
            } else {
                let name = format!("Coordinates/{}", LETTERS[axis]);
                self.placed(array, &name, lines.tuples(), Some((&lines, true)))?
            };
            coords.push(match id {
                Some(id) => {
                    if let Some(desc) = &mut self.tree.node_mut(id).array
                        && desc.dims == ["x"]
                    {
                        desc.dims = vec![LETTERS[axis].into()];
                    }
                    let middle = midpoints(&mut self.tree, id)?;
                    (Coord::Node(id), middle.map_or(Coord::None, Coord::Node))
                }
                None => (Coord::None, Coord::None),
            });
        }
        Ok(coords)
    }

    /// Points and cells of a mesh.
    fn unstructured(&mut self, grid: &Element, piece: &Element) -> Result<(Lines, Lines)> {
        let points = piece.number("NumberOfPoints", None)?;
        let line = |count| Lines { lengths: vec![count], coords: vec![Coord::None] };
        if let Some(array) = piece.child("Points").and_then(|p| arrays(p).next()) {
            self.placed(array, "Points", Some(points), Some((&line(points), false)))?;
        }
        let mut cells = 0_u64;
        let sections: &[(&str, &str)] = if grid.name == "PolyData" {
            &[
                ("Verts", "NumberOfVerts"),
                ("Lines", "NumberOfLines"),
                ("Strips", "NumberOfStrips"),
                ("Polys", "NumberOfPolys"),
            ]
        } else {
            &[("Cells", "NumberOfCells")]
        };
        for (section, number) in sections {
            let count = piece.number(number, Some(0))?;
            cells = cells.checked_add(count).ok_or_else(|| piece.malformed("too many cells"))?;
            let Some(element) = piece.child(section) else { continue };
            for array in arrays(element) {
                let listed = matches!(array.attr("Name"), Some("offsets" | "types"));
                // Sections without cells come with arrays without elements.
                if count > 0 || array.attr("Path").is_some() {
                    self.array(array, section, listed.then_some(count), None)?;
                }
            }
        }
        Ok((line(points), line(cells)))
    }

    fn array(
        &mut self,
        element: &Element,
        section: &str,
        tuples: Option<u64>,
        lines: Option<(&Lines, bool)>,
    ) -> Result<Option<NodeId>> {
        let name = element.attr("Name").filter(|name| !name.is_empty()).unwrap_or("_");
        let name = if section.is_empty() { name.to_string() } else { format!("{section}/{name}") };
        self.placed(element, &name, tuples, lines)
    }

    /// Adds an array at its own path, or at `name` where it says none.
    fn placed(
        &mut self,
        element: &Element,
        name: &str,
        tuples: Option<u64>,
        lines: Option<(&Lines, bool)>,
    ) -> Result<Option<NodeId>> {
        let Some(data) = self.coding.array(element, tuples)? else {
            let kind = element.attr("type").unwrap_or("no");
            let message = format!("an array of {kind} values is left out");
            self.report.note("vtk-010", message).in_object(title(element)).at(element.at);
            return Ok(None);
        };
        let path = element.attr("Path").unwrap_or(name);
        let (above, last) = path.rsplit_once('/').unwrap_or(("", path));
        if let Some(columns) = element.attr("Columns") {
            return self.columns(columns, element, &data);
        }
        let desc = describe(element, &data, lines);
        let parent = self.tree.group_at(above)?;
        let id = self.tree.add_array(parent, last, desc.clone())?;
        let units = element
            .children
            .iter()
            .find(|key| key.name == "InformationKey" && key.attr("name") == Some("UNITS_LABEL"));
        if let Some(text) = units.and_then(|key| key.text) {
            let text = self.coding.source.read_vec(text.offset, text.len.min(4096))?;
            let text = String::from_utf8_lossy(&text);
            if let Some(units) = xml::unescape(text.trim()).filter(|units| !units.is_empty()) {
                self.tree.node_mut(id).attrs.push(("units".into(), Value::Text(units)));
            }
        }
        self.stored.push(Stored {
            path: self.tree.node(id).path.clone(),
            kind: element.attr("type").unwrap_or_default().to_string(),
            place: data.place,
            array: desc,
        });
        Ok(Some(id))
    }
}

impl Builder<'_> {
    /// Points as the arrays they were made of, one a direction.
    fn columns(&mut self, names: &str, element: &Element, data: &Data) -> Result<Option<NodeId>> {
        let Layout::Plain { extents, .. } = data.layout(Order::C) else {
            let message = "columns of points that are not raw";
            return Err(element.malformed(message));
        };
        let size = data.dtype.size() as u64;
        let [all] = extents.parts() else { return Ok(None) };
        let rows = data.count / data.components;
        let stride = size * data.components;
        for (k, path) in (0..data.components).zip(names.split('\n')) {
            let (above, last) = path.rsplit_once('/').unwrap_or(("", path));
            let parent = self.tree.group_at(above)?;
            let span = if rows == 0 { 0 } else { (rows - 1) * stride + size };
            let extents = Extents::one(all.offset + k * size, span);
            let layout = Layout::Rows { extents, stride, order: Order::C };
            let desc = ArrayDesc::new(data.dtype, Shape::new([rows]), layout);
            self.tree.add_array(parent, last, desc)?;
        }
        let desc = describe(element, data, None);
        self.stored.push(Stored {
            path: title(element),
            kind: element.attr("type").unwrap_or_default().to_string(),
            place: data.place,
            array: desc,
        });
        Ok(None)
    }
}

fn arrays(element: &Element) -> impl Iterator<Item = &Element> {
    element.children.iter().filter(|child| matches!(child.name.as_str(), "DataArray" | "Array"))
}

/// The array in the shape that spile wrote it in, or that it has on the grid.
fn describe(element: &Element, data: &Data, lines: Option<(&Lines, bool)>) -> ArrayDesc {
    let Data { dtype, components, count, .. } = *data;
    let dtype: DType = dtype;
    if let Some((order, shape)) = element.attr("Shape").and_then(written_shape)
        && shape.count() == Some(count)
    {
        let mut desc = ArrayDesc::new(dtype, shape, data.layout(order));
        if let Some((lines, _)) = lines {
            let mut on: Vec<u64> = lines.lengths.clone();
            let mut coords = lines.coords.clone();
            if order == Order::C {
                on.reverse();
                coords.reverse();
            }
            if desc.shape.lengths() == on {
                desc.coords = coords;
            }
        }
        return desc;
    }
    if let Some((lines, true)) = lines {
        // The components of a point lie together, so they are the fastest.
        let mut lengths = lines.lengths.clone();
        let mut coords = lines.coords.clone();
        let mut dims: Vec<String> =
            LETTERS.iter().take(lengths.len()).map(ToString::to_string).collect();
        if components > 1 {
            lengths.insert(0, components);
            coords.insert(0, Coord::None);
            dims.insert(0, "component".into());
        }
        let mut desc = ArrayDesc::new(dtype, Shape::new(lengths), data.layout(Order::F));
        (desc.dims, desc.coords) = (dims, coords);
        return desc;
    }
    let tuples = count / components;
    let shape = if components > 1 { vec![tuples, components] } else { vec![tuples] };
    let mut desc = ArrayDesc::new(dtype, Shape::new(shape), data.layout(Order::C));
    if components > 1 {
        desc.dims[1] = "component".into();
    }
    desc
}

/// `F 3 4`: the order and the lengths of an array as spile writes them.
fn written_shape(text: &str) -> Option<(Order, Shape)> {
    let mut words = text.split_whitespace();
    let order = match words.next()? {
        "C" => Order::C,
        "F" => Order::F,
        _ => return None,
    };
    let lengths: Option<Vec<u64>> = words.map(|word| word.parse().ok()).collect();
    let lengths = lengths.filter(|lengths| lengths.len() <= 32)?;
    Some((order, Shape::new(lengths)))
}
