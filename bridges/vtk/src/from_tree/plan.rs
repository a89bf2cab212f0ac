//! Content of a file: its type, its arrays and the sources of their values.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::tree::{Node, NodeId, Tree, Value};
use spile_core::wire::ByteOrder;
use spile_interchange::midpoints::{DERIVED, nodes_beside, nodes_of};

use super::find_grid::Axis;
use crate::wire::type_name;
use crate::write::write;

/// File type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    #[default]
    Image,
    Rectilinear,
    Structured,
    Unstructured,
    Poly,
}

impl Kind {
    /// All types with their names and file name endings.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Image, "ImageData", "vti"),
        (Self::Rectilinear, "RectilinearGrid", "vtr"),
        (Self::Structured, "StructuredGrid", "vts"),
        (Self::Unstructured, "UnstructuredGrid", "vtu"),
        (Self::Poly, "PolyData", "vtp"),
    ];

    /// VTK's name of the type.
    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }

    /// File name ending.
    pub(crate) fn ending(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(.., ending)| ending)
    }
}

/// What is written, by the ending of the file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One mesh in one file.
    Single(Kind),
    /// All meshes in a multiblock file.
    Blocks,
    /// All frames in a collection.
    Collection,
    /// All frames in one file.
    Steps,
}

impl Target {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
        match ending.as_str() {
            "pvd" => return Ok(Self::Collection),
            "vtm" => return Ok(Self::Blocks),
            _ => {}
        }
        let kind = Kind::ALL.iter().find(|(.., known)| *known == ending);
        kind.map(|(kind, ..)| Self::Single(*kind)).ok_or_else(|| {
            unsupported(format!("writing .{ending} files is not supported"))
                .hint("supported are .vtm, .vti, .vtr, .vts, .vtu, .vtp and .pvd")
        })
    }
}

/// The error for a tree that cannot be written.
pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("vtk-020", message).in_object("tree")
}

/// A tree, or one frame of it.
pub(crate) struct Snapshot<'a> {
    /// The tree with all frames.
    pub(crate) all: &'a Dataset,
    pub(crate) frame: Option<u64>,
    /// The tree of the frame: arrays have their shapes in it, and arrays that do not exist in it are groups.
    content: Dataset,
    /// Arrays have their paths in the file even if the groups of VTK determine them.
    pub(crate) with_paths: bool,
    /// Rectilinear grids with uniform axes are images.
    pub(crate) with_images: bool,
}

/// An array as it is written.
pub(super) struct Found {
    pub(super) dtype: DType,
    pub(super) shape: Shape,
    pub(super) order: Order,
}

/// Source of the values of an array.
pub(crate) enum Values {
    /// The elements of an array in this order.
    Array(NodeId, Order),
    /// Points of three components, from one array per axis or from one component of an array; missing axes are
    /// zero.
    Points(Vec<(NodeId, Option<u64>)>),
    /// Uniformly spaced numbers.
    Uniform { start: f64, step: f64 },
    /// The elements of several arrays of the same shape and type in turn.
    Interleaved(Vec<NodeId>),
    /// Points `sum of (start + step * k) * vector` for all indices k of a grid, x fastest: length, start and step
    /// along each axis, and the array with the vectors.
    Lattice([(u64, f64, f64); 3], NodeId),
    /// Text, each ended by NUL.
    Texts(Vec<String>),
}

/// An array of the file.
pub(crate) struct Item {
    pub(crate) section: &'static str,
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) components: u64,
    pub(crate) tuples: u64,
    /// Additional attributes of the tag: names and values.
    pub(crate) attributes: Vec<(&'static str, String)>,
    pub(crate) units: Option<String>,
    pub(crate) values: Values,
}

impl Item {
    /// An array that is not in the tree.
    pub(super) fn generated(
        section: &'static str,
        name: &str,
        dtype: DType,
        tuples: u64,
        values: Values,
    ) -> Self {
        let (name, attributes, units) = (name.to_string(), Vec::new(), None);
        Self { section, name, dtype, components: 1, tuples, attributes, units, values }
    }

    /// Size of the values in bytes.
    pub(crate) fn bytes(&self) -> Result<u64> {
        if let Values::Texts(texts) = &self.values {
            return Ok(texts.iter().map(|text| text.len() as u64 + 1).sum());
        }
        let all = self.tuples.checked_mul(self.components);
        let bytes = all.and_then(|n| n.checked_mul(self.dtype.size() as u64));
        bytes.filter(|n| *n < 1 << 62).ok_or_else(|| unsupported("size of the array overflows"))
    }
}

/// Content of a file.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// Number of points along each axis of a structured grid.
    pub(crate) points: [u64; 3],
    /// Attributes of the element of the grid.
    pub(crate) grid: String,
    /// Attributes of the piece.
    pub(crate) piece: String,
    pub(crate) items: Vec<Item>,
    /// Paths of arrays that are not in the tree.
    pub(crate) generated: Vec<String>,
    /// Nodes of the tree that are in the file, and their types there.
    pub(super) written: Vec<(NodeId, DType)>,
    /// Axes of an image, whose origin and spacing are computed when it is written.
    pub(crate) axes: Vec<Axis>,
    /// Nodes of the axes of a rectilinear grid.
    pub(super) nodes: HashSet<NodeId>,
}

impl Plan {
    /// Adds an array of the tree.
    pub(super) fn push(&mut self, id: NodeId, item: Item) {
        self.written.push((id, item.dtype));
        self.items.push(item);
    }

    /// Adds the arrays of another file of the same dataset, without their content.
    pub(crate) fn include(&mut self, other: &Self) {
        self.written.extend(&other.written);
        self.nodes.extend(&other.nodes);
    }

    /// Arrays of the tree that are in the file.
    pub(crate) fn written(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.written.iter().map(|(id, _)| *id)
    }

    /// Arrays that are components of an array of the file.
    pub(super) fn strided(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.items.iter().flat_map(|item| match &item.values {
            Values::Interleaved(ids) => ids.clone(),
            Values::Points(axes) => axes.iter().map(|(id, _)| *id).collect(),
            _ => Vec::new(),
        })
    }

    /// Removes arrays that are in other files.
    pub(crate) fn forget(&mut self, others: &HashSet<NodeId>) {
        self.written.retain(|(id, _)| !others.contains(id));
        self.nodes.clear();
    }

    /// Whether the reader computes an array from the nodes of a rectilinear grid.
    fn restores(&self, tree: &Tree, id: NodeId) -> bool {
        let node = tree.node(id);
        let nodes = nodes_of(tree, id).filter(|nodes| self.nodes.contains(nodes));
        nodes.is_some() && node.array.as_ref().is_some_and(|desc| is_centres(node, desc))
    }

    /// The nodes that a reader finds in the file, and their types.
    pub(crate) fn kept(&self, tree: &Tree) -> HashMap<NodeId, DType> {
        let mut kept: HashMap<NodeId, DType> = self.written.iter().copied().collect();
        for (id, _, desc) in tree.arrays() {
            if self.restores(tree, id) {
                let stored = desc.dtype.with_order(ByteOrder::Little);
                kept.insert(id, if desc.map.is_some() { DType::F64 } else { stored });
            }
        }
        kept
    }
}

/// Arrays on no mesh are field data up to this size in bytes.
const FIELD_BYTES: u64 = 64 << 10;

/// The attribute with the element order and the lengths of an array.
pub(super) fn shape_attribute(shape: &Shape, order: Order) -> (&'static str, String) {
    let mut text = String::from(if order == Order::C { "C" } else { "F" });
    for length in shape.lengths() {
        let _ = write!(text, " {length}");
    }
    ("Shape", text)
}

/// Whether an array has the cell centres computed from the nodes beside it.
fn is_centres(node: &Node, desc: &ArrayDesc) -> bool {
    node.attrs.contains(DERIVED) && matches!(desc.layout, Layout::Computed(_))
}

impl<'a> Snapshot<'a> {
    /// The tree in `frame`, or the tree without frames. Arrays with several frames cannot be written without `frame`.
    pub(crate) fn new(all: &'a Dataset, frame: Option<u64>) -> Result<Self> {
        let mut tree = all.tree().clone();
        for (id, _, desc) in all.tree().arrays() {
            let own = all.tree().resolve(desc)?;
            let Some(table) = own.layout.frames() else { continue };
            let frame = match frame {
                Some(frame) => frame,
                None if table.len() == 1 => 0,
                None => continue,
            };
            let cell = table.cell(frame)?;
            let array = &mut tree.node_mut(id).array;
            match (cell, array.as_mut()) {
                (Some(cell), Some(desc)) => {
                    desc.shape = cell.shape;
                    if desc.layout.same().is_none() {
                        desc.layout = cell.layout;
                    }
                }
                _ => *array = None,
            }
        }
        Ok(Self { all, frame, content: all.with_tree(tree), with_paths: false, with_images: false })
    }

    /// The tree without some arrays.
    pub(crate) fn without(mut self, arrays: &HashSet<NodeId>) -> Self {
        let mut tree = self.content.tree().clone();
        for id in arrays {
            tree.node_mut(*id).array = None;
        }
        self.content = self.all.with_tree(tree);
        self
    }

    pub(crate) fn tree(&self) -> &Tree {
        self.content.tree()
    }

    /// Describes an array; `None` if it does not exist in the frame.
    pub(super) fn find(&self, id: NodeId) -> Result<Option<Found>> {
        let Some(own) = &self.tree().node(id).array else { return Ok(None) };
        let desc = self.tree().resolve(own)?;
        if desc.layout.frames().is_some() {
            let error = unsupported("a file of this type has one frame");
            return Err(error.hint("a .pvd collection has all frames"));
        }
        // VTK has no scaling: physical values are written.
        let stored = desc.dtype.with_order(ByteOrder::Little);
        let dtype = if desc.map.is_some() { DType::F64 } else { stored };
        let (shape, order) = (own.shape.clone(), desc.order());
        Ok(Some(Found { dtype, shape, order }))
    }

    /// Opens an array. Fails if it does not exist in the frame.
    pub(crate) fn open(&self, id: NodeId) -> Result<Array> {
        if self.tree().node(id).array.is_none() {
            return Err(self.absent(id));
        }
        self.content.array_at(id)
    }

    /// The periodic cell.
    pub(crate) fn cell(&self, id: NodeId) -> Result<[[f64; 3]; 3]> {
        let array = self.open(id)?;
        let values = array.read_f64(&Selection::all(), Axes::Order(Order::C))?;
        let (rows, rest) = values.as_chunks::<3>();
        match (rows, rest) {
            ([a, b, c], []) => Ok([*a, *b, *c]),
            _ => Err(unsupported("the cell does not have three vectors")),
        }
    }

    pub(super) fn absent(&self, id: NodeId) -> Error {
        unsupported(format!("\"{}\" does not exist in this frame", self.tree().node(id).path))
    }

    /// Writes the snapshot as a file of type `kind`; with `others`, small arrays that are on no mesh are field data.
    pub(crate) fn write(&self, kind: Kind, others: bool, sink: &Sink) -> Result<()> {
        let plan = self.plan(kind, others)?;
        self.write_plan(&plan, Some(&super::metadata(self, &[&plan])?), sink)
    }

    /// Writes a file with `metadata` in a comment.
    pub(crate) fn write_plan(
        &self,
        plan: &Plan,
        metadata: Option<&str>,
        sink: &Sink,
    ) -> Result<()> {
        let mut grid = plan.grid.clone();
        if plan.kind == Kind::Image {
            grid.push_str(&self.origin_and_spacing(&plan.axes)?);
        }
        write(self, plan, &grid, metadata, sink)
    }

    /// An array of the file; `None` if it does not exist in the frame or VTK does not have its type. The default
    /// of `components` is the second of two dimensions.
    pub(super) fn item(
        &self,
        section: &'static str,
        id: NodeId,
        components: Option<u64>,
    ) -> Result<Option<Item>> {
        let node = self.tree().node(id);
        let Some(Found { dtype, shape, order }) = self.find(id)? else { return Ok(None) };
        if type_name(dtype).is_none() {
            return Ok(None);
        }
        let lengths = shape.lengths();
        // The components of a tuple are consecutive.
        let (components, order) = match (components, lengths) {
            (Some(components), _) => (components, order),
            (None, [_, n]) => (*n, Order::C),
            _ => (1, order),
        };
        let all = shape.count().ok_or_else(|| unsupported("size of the array overflows"))?;
        let tuples = all.checked_div(components).unwrap_or(0);
        let name = node.path.strip_prefix(section).and_then(|rest| rest.strip_prefix('/'));
        let mut attributes = vec![shape_attribute(&shape, order)];
        if self.with_paths || (name.is_none() && node.path != section) {
            attributes.push(("Path", node.path.clone()));
        }
        let units = self.units(id);
        let name = name.unwrap_or(&node.path).to_string();
        let values = Values::Array(id, order);
        Ok(Some(Item { section, name, dtype, components, tuples, attributes, units, values }))
    }

    /// The unit of an array, if it has one.
    pub(super) fn units(&self, id: NodeId) -> Option<String> {
        self.tree().node(id).attrs.get("units").map(ToString::to_string)
    }

    /// Adds field data: the time, scalars, and coordinates of written arrays.
    pub(crate) fn fields(&self, plan: &mut Plan) -> Result<()> {
        let tree = self.tree();
        let section = "FieldData";
        let is_field = |(_, node, desc): &(NodeId, &Node, &ArrayDesc)| {
            desc.shape.rank() == 0 || node.path.starts_with("FieldData/")
        };
        let mut candidates: Vec<NodeId> =
            tree.arrays().filter(is_field).map(|(id, ..)| id).collect();
        let mut written: HashSet<NodeId> = plan.written.iter().map(|(id, _)| *id).collect();
        for (id, _) in &plan.written {
            let Some(desc) = &tree.node(*id).array else { continue };
            for coord in &desc.coords {
                if let Coord::Node(id) = coord {
                    candidates.extend(nodes_of(tree, *id).or(nodes_beside(tree, *id, "face")));
                    candidates.extend(Some(*id).filter(|id| !plan.restores(tree, *id)));
                }
            }
        }
        let mut fields = Vec::new();
        let mut timed = false;
        for id in candidates {
            let desc = tree.node(id).array.as_ref().map(|desc| tree.resolve(desc)).transpose()?;
            if written.contains(&id) || desc.is_none_or(|desc| desc.ragged().is_some()) {
                continue;
            }
            if let Some(item) = self.item(section, id, None)? {
                timed |= item.name == "TimeValue";
                written.insert(id);
                plan.written.push((id, item.dtype));
                fields.push(item);
            }
        }
        if !timed {
            self.add_time(plan)?;
        }
        fields.append(&mut plan.items);
        plan.items = fields;
        Ok(())
    }

    /// Adds arrays that are in no file as field data, if they have at most [`FIELD_BYTES`].
    pub(crate) fn add_others(&self, plan: &mut Plan) -> Result<()> {
        let written: HashSet<NodeId> = plan.written().collect();
        for (id, _, desc) in self.tree().arrays() {
            if written.contains(&id)
                || plan.restores(self.tree(), id)
                || self.tree().resolve(desc)?.ragged().is_some()
                || self.tree().resolve(desc)?.layout.frames().is_some()
            {
                continue;
            }
            if let Some(item) = self.item("FieldData", id, None)?
                && item.bytes()? <= FIELD_BYTES
            {
                plan.push(id, item);
            }
        }
        Ok(())
    }

    /// Adds the time, if it is known.
    pub(crate) fn add_time(&self, plan: &mut Plan) -> Result<()> {
        let Some(time) = self.time()? else { return Ok(()) };
        let time = Values::Uniform { start: time, step: 0.0 };
        plan.items.push(Item::generated("FieldData", "TimeValue", DType::F64, 1, time));
        plan.generated.push("FieldData/TimeValue".into());
        Ok(())
    }

    pub(crate) fn time(&self) -> Result<Option<f64>> {
        if let (Some(frame), Some(axis)) = (self.frame, self.tree().frames()) {
            return axis.time(frame);
        }
        let time = self.tree().attrs().get("time");
        Ok(time.and_then(|value| if let Value::Float(t) = value { Some(*t) } else { None }))
    }
}
