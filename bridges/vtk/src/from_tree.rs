//! A grid or points of a tree as a file.

mod find_grid;
mod find_points;
mod grid;
mod points;

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Loss, LossKind};
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::metadata::Metadata;
use spile_core::read::Array;
use spile_core::semantics::Missing;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::tree::{Node, NodeId, ROOT, Tree, Value};
use spile_core::wire::ByteOrder;
use spile_interchange::midpoints::{DERIVED, nodes_beside, nodes_of};
use spile_interchange::{Kept, Losses};

use crate::collection;
use crate::wire::type_name;
use crate::write::write;
use crate::xml::escape;
use find_grid::{Axis, AxisCoord};

/// File type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Image,
    Rectilinear,
    Unstructured,
    Poly,
}

impl Kind {
    /// All types with their names and file name endings.
    pub(crate) const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Image, "ImageData", "vti"),
        (Self::Rectilinear, "RectilinearGrid", "vtr"),
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

    /// The type of a file; none for a collection.
    fn of(path: &Path) -> Result<Option<Self>> {
        let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
        if ending == "pvd" {
            return Ok(None);
        }
        let kind = Self::ALL.iter().find(|(.., known)| *known == ending);
        kind.map(|(kind, ..)| Some(*kind)).ok_or_else(|| {
            unsupported(format!("writing .{ending} files is not supported"))
                .hint("supported are .vti, .vtr, .vtu, .vtp and .pvd")
        })
    }
}

/// Writes a grid or points of `content`. The file name ending determines the type.
pub(crate) fn write_tree(content: &Dataset, sink: &Sink) -> Result<()> {
    match Kind::of(sink.path())? {
        Some(kind) => Snapshot { content, frame: None }.write(kind, sink),
        None => collection::write(content, sink),
    }
}

/// Everything that [`write_tree`] does not keep.
pub(crate) fn losses(content: &Dataset, path: &Path) -> Result<Vec<Loss>> {
    let (kind, frames) = match Kind::of(path)? {
        Some(kind) => (kind, vec![None]),
        None => collection::plan(content)?,
    };
    let tree = content.tree();
    let is_collection = Kind::of(path)?.is_none();
    let mut written: HashMap<NodeId, DType> = HashMap::new();
    // Arrays that exist in a frame and are not written there.
    let mut absent: HashMap<NodeId, Option<u64>> = HashMap::new();
    for frame in frames {
        let snapshot = Snapshot { content, frame };
        let plan = snapshot.plan(kind)?;
        let own = plan.kept(tree);
        for (id, ..) in tree.arrays() {
            match own.get(&id) {
                Some(dtype) => drop(written.insert(id, *dtype)),
                None if snapshot.find(id).is_ok_and(|found| found.is_some()) => {
                    absent.entry(id).or_insert(frame);
                }
                None => {}
            }
        }
    }
    let mut losses = Losses::new("VTK");
    losses.add(content, &Kept { scaling: false, ..Kept::ALL }, |id, _, desc| {
        if written.contains_key(&id) || (is_collection && !absent.contains_key(&id)) {
            return Ok(());
        }
        let dtype = tree.resolve(desc).map_or(desc.dtype, |desc| desc.dtype);
        Err(match type_name(dtype) {
            None => format!("VTK has no arrays of {dtype}"),
            Some(_) => format!("it is not on the grid or points of the {} file", kind.name()),
        })
    });
    if !is_collection && tree.frames().is_some() {
        losses.push_loss(Loss::new("", LossKind::Frames, "only .pvd collections have frames"));
    }
    let shared = shared(tree, &written);
    for (id, node, desc) in tree.arrays() {
        let Some(dtype) = written.get(&id) else { continue };
        let mut lose = |kind, reason: &str| losses.push_loss(Loss::new(&node.path, kind, reason));
        if desc.map.is_none() && *dtype != desc.dtype.with_order(ByteOrder::Little) {
            lose(LossKind::Type, "the components of points in VTK have one type");
        }
        if desc.map.is_some() && !desc.semantics().missing.is_none() {
            lose(LossKind::Meaning, "missing values are NaN among physical values");
        }
        let lost = |coord: &Coord| matches!(coord, Coord::Node(id) if !written.contains_key(id));
        if desc.coords.iter().any(lost) {
            lose(LossKind::Coordinates, "the coordinate is not written");
        }
        let lost = |id: NodeId| tree.node(id).array.is_some() && !written.contains_key(&id);
        if desc.semantics().mesh.is_some_and(lost) {
            lose(LossKind::Meaning, "the mesh is not written");
        }
        let per_frame = matches!(tree.resolve(desc)?.layout, Layout::PerFrame(_));
        match absent.get(&id) {
            Some(frame) if is_collection => {
                let frame = frame.unwrap_or(0);
                lose(
                    LossKind::Frames,
                    &format!("it is not on the grid or points of frame {frame}"),
                );
            }
            _ if is_collection && !per_frame && !shared.contains(&id) => {
                lose(LossKind::Frames, "a collection has the array in each frame");
            }
            _ if !is_collection && per_frame => {
                lose(LossKind::Frames, "only .pvd collections have frames");
            }
            _ => {}
        }
    }
    if is_collection && tree.frames().is_some() {
        for name in ["step", "time"].into_iter().filter(|name| tree.attrs().contains(name)) {
            let reason = "each file of a collection has its own";
            losses.push_loss(Loss::attribute("", name, reason));
        }
    }
    Ok(losses.into_vec())
}

/// Arrays that a collection has once: small ones in groups with coordinates of other arrays.
fn shared(tree: &Tree, written: &HashMap<NodeId, DType>) -> HashSet<NodeId> {
    let arrays = || tree.arrays().filter(|(id, ..)| written.contains_key(id));
    let groups: HashSet<NodeId> = arrays()
        .flat_map(|(_, _, desc)| &desc.coords)
        .filter_map(|coord| if let Coord::Node(id) = coord { Some(*id) } else { None })
        .filter(|id| written.contains_key(id))
        .map(|id| tree.node(id).parent)
        .collect();
    let once = |node: &Node, desc: &ArrayDesc| {
        let small = desc.bytes().is_ok_and(|bytes| bytes <= SHARED_BYTES);
        small && groups.contains(&node.parent)
    };
    arrays().filter(|(_, node, desc)| once(node, desc)).map(|(id, ..)| id).collect()
}

/// Whether an array has the cell centres computed from the nodes beside it.
fn is_centres(node: &Node, desc: &ArrayDesc) -> bool {
    node.attrs.contains(DERIVED) && matches!(desc.layout, Layout::Computed(_))
}

/// The error for a tree that cannot be written.
pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("vtk-020", message).in_object("tree")
}

/// Static arrays of at most this size are compared between the files of a series.
const SHARED_BYTES: u64 = 1 << 20;

/// A tree, or one frame of it.
pub(crate) struct Snapshot<'a> {
    pub(crate) content: &'a Dataset,
    pub(crate) frame: Option<u64>,
}

/// An array as it is written.
struct Found {
    dtype: DType,
    shape: Shape,
    order: Order,
}

/// Source of the values of an array.
pub(crate) enum Values {
    Array(NodeId),
    /// One array per axis; missing axes are zero.
    Columns(Vec<NodeId>),
    /// Two components per point; the third is zero.
    Flat(NodeId),
    /// Uniformly spaced numbers.
    Uniform {
        start: f64,
        step: f64,
    },
    /// An arithmetic sequence.
    Steps {
        first: u64,
        step: u64,
    },
    /// A constant.
    Fill(u8),
    /// A single value.
    Value(f64),
}

/// Dimension of the components of an array.
#[derive(Clone, Copy)]
enum Components {
    /// The fastest dimension, with this length.
    Fastest(u64),
    /// The second of two dimensions.
    Second,
    /// None: one component.
    One,
}

/// An array of the file.
pub(crate) struct Item {
    pub(crate) section: &'static str,
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) components: u64,
    pub(crate) tuples: u64,
    /// Additional attributes of the tag.
    pub(crate) attributes: String,
    pub(crate) units: Option<String>,
    pub(crate) values: Values,
}

impl Item {
    /// An array that is not in the tree.
    fn generated(
        section: &'static str,
        name: &str,
        dtype: DType,
        tuples: u64,
        values: Values,
    ) -> Self {
        let (name, attributes, units) = (name.to_string(), String::new(), None);
        Self { section, name, dtype, components: 1, tuples, attributes, units, values }
    }

    /// Size of the values in bytes.
    pub(crate) fn bytes(&self) -> Result<u64> {
        let all = self.tuples.checked_mul(self.components);
        let bytes = all.and_then(|n| n.checked_mul(self.dtype.size() as u64));
        bytes.filter(|n| *n < 1 << 62).ok_or_else(|| unsupported("size of the array overflows"))
    }
}

/// Content of a file.
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// Attributes of the element of the grid.
    pub(crate) grid: String,
    /// Attributes of the piece.
    pub(crate) piece: String,
    pub(crate) items: Vec<Item>,
    /// Paths of arrays that are not in the tree.
    generated: Vec<String>,
    /// Nodes of the tree that are in the file, and their types there.
    written: Vec<(NodeId, DType)>,
    /// Axes of an image, whose origin and spacing are computed when it is written.
    axes: Vec<Axis>,
    /// Nodes of the axes of a rectilinear grid.
    nodes: HashSet<NodeId>,
}

impl Plan {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            grid: String::new(),
            piece: String::new(),
            items: Vec::new(),
            generated: Vec::new(),
            written: Vec::new(),
            axes: Vec::new(),
            nodes: HashSet::new(),
        }
    }

    /// Adds an array of the tree.
    fn push(&mut self, id: NodeId, item: Item) {
        self.written.push((id, item.dtype));
        self.items.push(item);
    }

    /// Whether the reader computes an array from the nodes of a rectilinear grid.
    fn restores(&self, tree: &Tree, id: NodeId) -> bool {
        let node = tree.node(id);
        let nodes = nodes_of(tree, id).filter(|nodes| self.nodes.contains(nodes));
        nodes.is_some() && node.array.as_ref().is_some_and(|desc| is_centres(node, desc))
    }

    /// The nodes that a reader finds in the file, and their types.
    fn kept(&self, tree: &Tree) -> HashMap<NodeId, DType> {
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

impl<'a> Snapshot<'a> {
    fn tree(&self) -> &'a Tree {
        self.content.tree()
    }

    /// Describes an array; `None` if it does not exist in the frame.
    fn find(&self, id: NodeId) -> Result<Option<Found>> {
        let Some(desc) = &self.tree().node(id).array else { return Ok(None) };
        let desc = self.tree().resolve(desc)?;
        // VTK has no scaling: physical values are written.
        let stored = desc.dtype.with_order(ByteOrder::Little);
        let dtype = if desc.map.is_some() { DType::F64 } else { stored };
        let Layout::PerFrame(table) = &desc.layout else {
            let (shape, order) = (desc.shape.clone(), desc.order());
            return Ok(Some(Found { dtype, shape, order }));
        };
        let frame = match self.frame {
            Some(frame) => frame,
            None if table.len() == 1 => 0,
            None => {
                return Err(unsupported("a file of this type has one frame")
                    .hint("a .pvd collection has all frames"));
            }
        };
        let Some(cell) = table.cell(frame)? else { return Ok(None) };
        let order = ArrayDesc::new(dtype, Shape::scalar(), cell.layout).order();
        Ok(Some(Found { dtype, shape: cell.shape, order }))
    }

    /// Opens an array. Fails if it does not exist in the frame.
    pub(crate) fn open(&self, id: NodeId) -> Result<Array> {
        let array = self.content.array_in_frame(id, self.frame.unwrap_or(0))?;
        array.ok_or_else(|| self.absent(id))
    }

    fn absent(&self, id: NodeId) -> Error {
        unsupported(format!("\"{}\" does not exist in this frame", self.tree().node(id).path))
    }

    /// The file type for the tree; `None` if it has neither a grid nor points.
    pub(crate) fn suitable_kind(&self) -> Option<Kind> {
        let grid = find_grid::find(self.tree());
        let axes = grid.as_ref().map_or(&[][..], |grid| &grid.axes);
        let has_field = grid.as_ref().is_some_and(|grid| grid.has_field);
        // An array without role and coordinates may be a table instead of a grid.
        let placed = axes.len() > 1 && axes.iter().any(|axis| axis.coord != AxisCoord::Index);
        if has_field || placed {
            let nodes = axes.iter().any(|axis| matches!(axis.coord, AxisCoord::Nodes(_)));
            return Some(if nodes { Kind::Rectilinear } else { Kind::Image });
        }
        find_points::find(self.tree()).map(|_| Kind::Poly).or(grid.map(|_| Kind::Image))
    }

    /// Plans a file of type `kind`. Reads no values.
    fn plan(&self, kind: Kind) -> Result<Plan> {
        let mut plan = match kind {
            Kind::Image | Kind::Rectilinear => self.grid_plan(kind)?,
            Kind::Unstructured | Kind::Poly => self.points_plan(kind)?,
        };
        self.fields(&mut plan)?;
        Ok(plan)
    }

    /// Writes the snapshot as a file of type `kind`.
    pub(crate) fn write(&self, kind: Kind, sink: &Sink) -> Result<()> {
        let mut plan = self.plan(kind)?;
        if kind == Kind::Image {
            plan.grid.push_str(&self.origin_and_spacing(&plan.axes)?);
        }
        write(self, &plan, &metadata(self, &plan)?, sink)
    }

    /// An array of the file; `None` if it does not exist in the frame or VTK does not have its type.
    fn item(
        &self,
        section: &'static str,
        id: NodeId,
        components: Components,
    ) -> Result<Option<Item>> {
        let node = self.tree().node(id);
        let Some(Found { dtype, shape, order }) = self.find(id)? else { return Ok(None) };
        if type_name(dtype).is_none() {
            return Ok(None);
        }
        let lengths = shape.lengths();
        let components = match (components, lengths) {
            (Components::Fastest(components), _) => components,
            (Components::Second, [_, n]) => *n,
            _ => 1,
        };
        let all = shape.count().ok_or_else(|| unsupported("size of the array overflows"))?;
        let tuples = all.checked_div(components).unwrap_or(0);
        let order = if order == Order::C { "C" } else { "F" };
        let shape: Vec<String> =
            std::iter::once(order.to_string()).chain(lengths.iter().map(u64::to_string)).collect();
        let name = node.path.strip_prefix(section).and_then(|rest| rest.strip_prefix('/'));
        let mut attributes = format!(" Shape=\"{}\"", shape.join(" "));
        if name.is_none() && node.path != section {
            let _ = write!(attributes, " Path=\"{}\"", escape(&node.path));
        }
        let units = node.attrs.get("units").map(ToString::to_string);
        let name = name.unwrap_or(&node.path).to_string();
        let values = Values::Array(id);
        Ok(Some(Item { section, name, dtype, components, tuples, attributes, units, values }))
    }

    /// Adds field data: the time, scalars, and coordinates of written arrays.
    fn fields(&self, plan: &mut Plan) -> Result<()> {
        let tree = self.tree();
        let section = "FieldData";
        let mut candidates: Vec<NodeId> = Vec::new();
        for (id, node, desc) in tree.arrays() {
            if desc.shape.rank() == 0 || node.path.starts_with("FieldData/") {
                candidates.push(id);
            }
        }
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
            if written.contains(&id) {
                continue;
            }
            let desc = tree.node(id).array.as_ref().map(|desc| tree.resolve(desc)).transpose()?;
            if desc.is_none_or(|desc| desc.ragged().is_some()) {
                continue;
            }
            if let Some(item) = self.item(section, id, Components::Second)? {
                timed |= item.name == "TimeValue";
                plan.written.push((id, item.dtype));
                fields.push(item);
                written.insert(id);
            }
        }
        if let (Some(time), false) = (self.time()?, timed) {
            let time = Values::Value(time);
            fields.push(Item::generated(section, "TimeValue", DType::F64, 1, time));
            plan.generated.push("FieldData/TimeValue".into());
        }
        fields.append(&mut plan.items);
        plan.items = fields;
        Ok(())
    }

    fn time(&self) -> Result<Option<f64>> {
        if let (Some(frame), Some(axis)) = (self.frame, self.tree().frames()) {
            return axis.time(frame);
        }
        let time = self.tree().attrs().get("time");
        Ok(time.and_then(|value| if let Value::Float(t) = value { Some(*t) } else { None }))
    }
}

/// The metadata of a file as JSON for an XML comment.
fn metadata(snapshot: &Snapshot<'_>, plan: &Plan) -> Result<String> {
    let content = snapshot.content;
    let kept = plan.kept(content.tree());
    let mut tree = plain_tree(content, &kept)?;
    if let (Some(frame), Some(axis)) = (snapshot.frame, content.tree().frames()) {
        let attrs = &mut tree.node_mut(ROOT).attrs;
        attrs.retain(|name, _| name != "step" && name != "time");
        attrs.extend(axis.step(frame)?.map(|step| ("step", Value::UInt(step))));
        attrs.extend(axis.time(frame)?.map(|time| ("time", Value::Float(time))));
    }
    for (id, dtype) in &kept {
        let Some(desc) = &mut tree.node_mut(*id).array else { continue };
        desc.dtype = *dtype;
        // The file has physical values, and so have cell centres that reading computes from them.
        if desc.map.take().is_some()
            && let Some(meaning) = &mut desc.meaning
        {
            meaning.missing = Missing::default();
        }
    }
    let mut metadata = Metadata::of(&tree);
    for path in &plan.generated {
        metadata.add_auxiliary(path.clone());
    }
    // Comments must not contain two hyphens.
    Ok(metadata.text(content.limits())?.replace("--", "-\\u002d"))
}

/// A copy of a tree in which arrays have no frames, and arrays that are not `kept` are groups if anything is
/// below them.
fn plain_tree(content: &Dataset, kept: &HashMap<NodeId, DType>) -> Result<Tree> {
    let source = content.tree();
    let parents: HashSet<NodeId> = source.iter().map(|(_, node)| node.parent).collect();
    let mut tree = Tree::new(content.limits());
    tree.set_attrs(ROOT, source.attrs().clone())?;
    // Adding the nodes in the same order keeps their ids.
    for (old, node) in source.iter() {
        let lost = parents.contains(&old) && !kept.contains_key(&old);
        let id = match node.array.as_ref().filter(|_| !lost) {
            None => tree.add_group(node.parent, &node.name)?,
            Some(array) => {
                let mut array = array.clone();
                if let Layout::PerFrame(_) = array.layout {
                    array.layout = Layout::Fill(vec![0; array.dtype.size()].into());
                }
                tree.add_array(node.parent, &node.name, array)?
            }
        };
        tree.node_mut(id).id.clone_from(&node.id);
        tree.set_attrs(id, node.attrs.clone())?;
    }
    Ok(tree)
}
