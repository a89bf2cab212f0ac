//! The elements of a file as a tree: groups `PointData`, `CellData`, `FieldData`, `Coordinates`, `Cells`, or the
//! original paths if spile wrote the file.

use spile_core::Dataset;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::semantics::{Centring, Role, Semantics};
use spile_core::shape::{Order, Shape};
use spile_core::tree::{NodeId, ROOT, Tree};
use spile_interchange::midpoints::midpoints;

use crate::read::Stored;
use crate::wire::{Data, Encoding};
use crate::xml::{self, Element};

/// Memory charged for an array: tree node and description.
const ARRAY: u64 = 1 << 10;

/// Names of the axes of a grid.
pub(crate) const AXIS_NAMES: [&str; 3] = ["x", "y", "z"];

/// Builds the tree of a file.
pub(crate) struct Builder<'a> {
    encoding: &'a Encoding<'a>,
    tree: Tree,
    stored: Vec<Stored>,
    /// Errors of arrays that cannot be read.
    unreadable: Vec<Error>,
    /// Positions of the nodes or points: an array, or a group with one array per axis.
    mesh: Option<NodeId>,
    /// The points have no cells but vertices.
    is_cloud: bool,
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
    pub(crate) fn new(encoding: &'a Encoding<'a>, memory: u64, limits: &Limits) -> Result<Self> {
        let (stored, unreadable) = (Vec::new(), Vec::new());
        let mut tree = Tree::new(limits);
        tree.charge(memory, "the XML elements")?;
        Ok(Self { encoding, tree, stored, unreadable, mesh: None, is_cloud: false })
    }

    /// Builds the tree of a grid. Arrays that cannot be read are reported. Fails with the first error if all
    /// arrays are invalid.
    pub(crate) fn build(mut self, grid: &Element) -> Result<(Tree, Vec<Stored>, Report)> {
        self.grid(grid)?;
        let mut report = Report::default();
        for error in self.unreadable {
            if self.stored.is_empty() && error.kind() != ErrorKind::Unsupported {
                return Err(error);
            }
            report.absorb(error)?;
        }
        Ok((self.tree, self.stored, report))
    }

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
            let message = "files of several pieces are not supported";
            return Err(Error::unsupported("vtk-006", message).in_object("Piece").at(piece.at));
        }
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
        let found = ["FieldData/TimeValue", "FieldData/TIME"].iter().find_map(|p| self.tree.at(p));
        let Some(id) = found else { return Ok(()) };
        let Some(desc) = self.tree.node(id).array.clone() else { return Ok(()) };
        if desc.shape.count() == Some(1) && desc.dtype.is_real() {
            let content =
                Dataset::new(self.encoding.source.clone(), Tree::new(self.encoding.limits));
            match content.open_array(&desc).and_then(|array| array.read::<Vec<f64>>(":")) {
                Ok(time) => {
                    for time in time {
                        self.tree.push_attr(ROOT, "time", time)?;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Limit => return Err(error),
                // The other arrays can be read without a time; `check` reports the error.
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn set_meaning(&mut self, id: Option<NodeId>, meaning: &Semantics) {
        if let Some(desc) = id.and_then(|id| self.tree.node_mut(id).array.as_mut()) {
            *desc.semantics_mut() = meaning.clone();
        }
    }

    /// Dimensions of the points and cells of a structured grid.
    fn structured(&mut self, grid: &Element, piece: &Element) -> Result<(Dimensions, Dimensions)> {
        let extent: [i64; 6] = if piece.attr("Extent").is_some() {
            piece.list("Extent")?
        } else {
            grid.list("WholeExtent")?
        };
        let mut nodes = [1_u64; 3];
        for axis in 0..3 {
            let less = extent[2 * axis + 1].checked_sub(extent[2 * axis]);
            let less = less.filter(|n| (-1..i64::MAX).contains(n));
            let less = less.ok_or_else(|| piece.malformed("extent with a negative length"))?;
            nodes[axis] = (less + 1).unsigned_abs();
        }
        // Trailing axes of one point are not dimensions; at least one axis is.
        let rank = nodes.iter().rposition(|n| *n != 1).map_or(1, |k| k + 1);
        let (mut points, mut cells) = (Dimensions::default(), Dimensions::default());
        let mut coords = match grid.name.as_str() {
            "ImageData" => self.image(grid, &extent)?,
            "RectilinearGrid" => self.coordinates(piece, nodes)?,
            _ => {
                let dims = Dimensions { lengths: nodes.to_vec(), coords: vec![Coord::None; 3] };
                if let Some(array) = piece.child("Points").and_then(|p| arrays(p).next()) {
                    self.mesh = self.array(array, "", dims.tuples(), Some((&dims, true)))?;
                    self.set_meaning(self.mesh, &Semantics::role(Role::Mesh));
                }
                vec![(Coord::None, Coord::None); 3]
            }
        };
        coords.resize(3, (Coord::None, Coord::None));
        for axis in 0..rank {
            points.lengths.push(nodes[axis]);
            points.coords.push(coords[axis].0.clone());
            // An axis of one point counts as one cell.
            let one = nodes[axis] == 1;
            cells.lengths.push(if one { 1 } else { nodes[axis] - u64::from(nodes[axis] > 0) });
            cells.coords.push(if one { coords[axis].0.clone() } else { coords[axis].1.clone() });
        }
        Ok((points, cells))
    }

    /// Uniform coordinates of points and cell centres along each axis.
    fn image(&mut self, grid: &Element, extent: &[i64; 6]) -> Result<Vec<(Coord, Coord)>> {
        let or = |name: &str, value: f64| -> Result<[f64; 3]> {
            if grid.attr(name).is_some() { grid.list(name) } else { Ok([value; 3]) }
        };
        let (origin, spacing) = (or("Origin", 0.0)?, or("Spacing", 1.0)?);
        if let Some(direction) = grid.attr("Direction") {
            let turned: [f64; 9] = grid.list("Direction")?;
            if turned != [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0] {
                // The axes are not parallel to x, y and z: no coordinates.
                self.tree.push_attr(ROOT, "Direction", direction)?;
                return Ok(Vec::new());
            }
        }
        let axis_coords = |axis: usize| {
            let step = spacing[axis];
            let first = extent[2 * axis] as f64;
            let start = if first == 0.0 { origin[axis] } else { origin[axis] + first * step };
            let half = start + step / 2.0;
            (Coord::Uniform { start, step }, Coord::Uniform { start: half, step })
        };
        Ok((0..3).map(axis_coords).collect())
    }

    /// Coordinates of points and cell centres along each axis, from arrays.
    fn coordinates(&mut self, piece: &Element, nodes: [u64; 3]) -> Result<Vec<(Coord, Coord)>> {
        let mut coords = Vec::new();
        let Some(element) = piece.child("Coordinates") else { return Ok(coords) };
        for (axis, array) in arrays(element).enumerate().take(3) {
            let dims = Dimensions { lengths: vec![nodes[axis]], coords: vec![Coord::None] };
            // Axes of one point are not in the tree, unless spile wrote the file.
            let omitted = nodes[axis] == 1 && axis > 0 && array.attr("Path").is_none();
            let id = if omitted {
                None
            } else {
                let name = format!("Coordinates/{}", AXIS_NAMES[axis]);
                self.array_at(array, &name, dims.tuples(), Some((&dims, true)))?
            };
            coords.push(match id {
                Some(id) => {
                    if let Some(desc) = &mut self.tree.node_mut(id).array
                        && desc.dims == ["x"]
                    {
                        desc.dims = vec![AXIS_NAMES[axis].into()];
                    }
                    self.set_meaning(Some(id), &Semantics::role(Role::Mesh));
                    self.mesh = Some(self.tree.node(id).parent);
                    let middle = midpoints(&mut self.tree, id)?;
                    (Coord::Node(id), middle.map_or(Coord::None, Coord::Node))
                }
                None => (Coord::None, Coord::None),
            });
        }
        Ok(coords)
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
        let path = element.attr("Path").unwrap_or(name);
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
        if let Some(columns) = element.attr("Columns") {
            return self.columns(columns, path, element, &data);
        }
        let (group, last) = path.rsplit_once('/').unwrap_or(("", path));
        let desc = describe(element, &data, dims);
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
        self.stored.push(Stored {
            path: self.tree.node(id).path.clone(),
            kind: element.attr("type").unwrap_or_default().to_string(),
            extent: data.extent,
            array: desc,
        });
        Ok(Some(id))
    }

    /// Adds points as the arrays they were written from, one per axis.
    fn columns(
        &mut self,
        names: &str,
        path: &str,
        element: &Element,
        data: &Data,
    ) -> Result<Option<NodeId>> {
        let Layout::Plain { extents, .. } = data.layout(Order::C) else {
            let message = "attribute Columns of points that are not raw";
            return Err(element.malformed(message));
        };
        let size = data.dtype.size() as u64;
        let [all] = extents.parts() else { return Ok(None) };
        let rows = data.count / data.components;
        let stride = size * data.components;
        for (k, column) in (0..data.components).zip(names.split('\n')) {
            let (group, last) = column.rsplit_once('/').unwrap_or(("", column));
            let parent = self.tree.node_at(group)?;
            let span = if rows == 0 { 0 } else { (rows - 1) * stride + size };
            let extents = Extents::one(all.offset + k * size, span);
            let layout = Layout::Rows { extents, stride, order: Order::C };
            let desc = ArrayDesc::new(data.dtype, Shape::new([rows]), layout);
            self.tree.add_array(parent, last, desc)?;
        }
        let desc = describe(element, data, None);
        self.stored.push(Stored {
            path: path.into(),
            kind: element.attr("type").unwrap_or_default().to_string(),
            extent: data.extent,
            array: desc,
        });
        Ok(None)
    }
}

/// The arrays of a section.
fn arrays(element: &Element) -> impl Iterator<Item = &Element> {
    element.children.iter().filter(|child| matches!(child.name.as_str(), "DataArray" | "Array"))
}

/// The array in its shape in the attribute `Shape`, or on the grid; `true` for structured grids.
fn describe(element: &Element, data: &Data, dims: Option<(&Dimensions, bool)>) -> ArrayDesc {
    let Data { dtype, components, count, .. } = *data;
    if let Some((order, shape)) = element.attr("Shape").and_then(written_shape)
        && shape.count() == Some(count)
    {
        let mut desc = ArrayDesc::new(dtype, shape, data.layout(order));
        if let Some((dims, _)) = dims {
            let mut lengths: Vec<u64> = dims.lengths.clone();
            let mut coords = dims.coords.clone();
            if order == Order::C {
                lengths.reverse();
                coords.reverse();
            }
            if desc.shape.lengths() == lengths {
                desc.coords = coords;
            }
        }
        return desc;
    }
    if let Some((grid, true)) = dims {
        // Components vary fastest.
        let mut lengths = grid.lengths.clone();
        let mut coords = grid.coords.clone();
        let mut dims: Vec<String> =
            AXIS_NAMES.iter().take(lengths.len()).map(ToString::to_string).collect();
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

/// Parses the attribute `Shape`: element order and lengths, as in `F 3 4`.
fn written_shape(text: &str) -> Option<(Order, Shape)> {
    let mut fields = text.split_whitespace();
    let order = match fields.next()? {
        "C" => Order::C,
        "F" => Order::F,
        _ => return None,
    };
    let lengths: Option<Vec<u64>> = fields.map(|field| field.parse().ok()).collect();
    let lengths = lengths.filter(|lengths| lengths.len() <= 32)?;
    Some((order, Shape::new(lengths)))
}
