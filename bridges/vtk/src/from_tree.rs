//! A grid or points of a tree as a file.

mod find_grid;
mod find_points;
mod grid;
mod points;

use std::collections::HashSet;
use std::fmt::Write as _;

use spile_core::metadata::Description;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::{Coord, Layout};
use spile_core::limits::Limits;
use spile_interchange::midpoints::nodes_of;
use spile_core::read::Array;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::{NodeId, ROOT, Tree, Value};
use spile_core::wire::ByteOrder;

use crate::collection;
use crate::wire::type_name;
use crate::write::write;
use crate::xml::escape;
use find_grid::AxisCoord;

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
}

/// Writes a grid or points of `content`. The file name ending determines the type.
pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let ending = sink.path().extension().and_then(|e| e.to_str()).unwrap_or_default();
    let ending = ending.to_lowercase();
    if ending == "pvd" {
        return collection::write(content, sink, limits);
    }
    let kind = Kind::ALL.iter().find(|(_, _, known)| *known == ending);
    let (kind, ..) = kind.ok_or_else(|| {
        unsupported(format!("writing .{ending} files is not supported"))
            .hint("supported are .vti, .vtr, .vtu, .vtp and .pvd")
    })?;
    Snapshot { content, frame: None, limits }.write(*kind, sink)
}

/// The error for a tree that cannot be written.
pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("vtk-020", message).in_object("tree")
}

/// A tree, or one frame of it.
pub(crate) struct Snapshot<'a> {
    pub(crate) content: &'a dyn Reader,
    pub(crate) frame: Option<u64>,
    pub(crate) limits: &'a Limits,
}

/// Source of the values of an array.
pub(crate) enum Values {
    Array(Box<Array>),
    /// One array per axis; missing axes are zero.
    Columns(Vec<Array>),
    /// Two components per point; the third is zero.
    Flat(Box<Array>),
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
    /// Nodes of the tree that are in the file.
    written: Vec<NodeId>,
}

impl<'a> Snapshot<'a> {
    fn tree(&self) -> &'a Tree {
        self.content.tree()
    }

    /// Opens an array; `None` if it does not exist in the frame.
    fn open(&self, id: NodeId) -> Result<Option<Array>> {
        let (source, tree) = (self.content.source(), self.tree());
        let Some(desc) = &tree.node(id).array else { return Ok(None) };
        let Layout::PerFrame(table) = &tree.resolve(desc)?.layout else {
            return Array::open(source, tree, desc, self.limits).map(Some);
        };
        let frame = match self.frame {
            Some(frame) => frame,
            None if table.len() == 1 => 0,
            None => {
                return Err(unsupported("a file of this type has one frame")
                    .hint("write .pvd for all frames, or select one with --frames"));
            }
        };
        Array::open_frame(source, tree, desc, frame, self.limits)
    }

    /// The file type for the tree; `None` if it has neither a grid nor points.
    pub(crate) fn suitable_kind(&self) -> Option<Kind> {
        let grid = find_grid::find(self.tree());
        let axes = grid.as_ref().map_or(&[][..], |grid| &grid.axes);
        // An array without coordinates may be a table instead of a grid.
        if axes.len() > 1 && axes.iter().any(|axis| axis.coord != AxisCoord::Index) {
            let nodes = axes.iter().any(|axis| matches!(axis.coord, AxisCoord::Nodes(_)));
            return Some(if nodes { Kind::Rectilinear } else { Kind::Image });
        }
        find_points::find(self.tree()).map(|_| Kind::Poly).or(grid.map(|_| Kind::Image))
    }

    /// Writes the snapshot as a file of type `kind`.
    pub(crate) fn write(&self, kind: Kind, sink: &Sink) -> Result<()> {
        let mut plan = match kind {
            Kind::Image | Kind::Rectilinear => self.grid_plan(kind)?,
            Kind::Unstructured | Kind::Poly => self.points_plan(kind)?,
        };
        self.fields(&mut plan)?;
        write(&plan, &metadata(self, &plan)?, sink)
    }

    /// An array of the file; `None` if it does not exist in the frame or VTK does not have its type.
    fn item(
        &self,
        section: &'static str,
        id: NodeId,
        components: Components,
    ) -> Result<Option<Item>> {
        let node = self.tree().node(id);
        let Some(array) = self.open(id)? else { return Ok(None) };
        let stored = array.dtype().with_order(ByteOrder::Little);
        // VTK has no scaling: physical values are written.
        let dtype = if array.map().is_some() { DType::F64 } else { stored };
        if type_name(dtype).is_none() {
            return Ok(None);
        }
        let lengths = array.shape().lengths();
        let components = match (components, lengths) {
            (Components::Fastest(components), _) => components,
            (Components::Second, [_, n]) => *n,
            _ => 1,
        };
        let all =
            array.shape().count().ok_or_else(|| unsupported("size of the array overflows"))?;
        let tuples = all.checked_div(components).unwrap_or(0);
        let order = if array.order() == Order::C { "C" } else { "F" };
        let shape: Vec<String> =
            std::iter::once(order.to_string()).chain(lengths.iter().map(u64::to_string)).collect();
        let name = node.path.strip_prefix(section).and_then(|rest| rest.strip_prefix('/'));
        let mut attributes = format!(" Shape=\"{}\"", shape.join(" "));
        if name.is_none() && node.path != section {
            let _ = write!(attributes, " Path=\"{}\"", escape(&node.path));
        }
        let units = node.attrs.iter().find(|(name, _)| name == "units");
        let units = units.map(|(_, units)| units.to_string());
        let name = name.unwrap_or(&node.path).to_string();
        let values = Values::Array(Box::new(array));
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
        let mut written: HashSet<NodeId> = plan.written.iter().copied().collect();
        for id in &plan.written {
            let Some(desc) = &tree.node(*id).array else { continue };
            for coord in &desc.coords {
                if let Coord::Node(id) = coord {
                    // Cell centres are restored from their nodes.
                    let nodes = nodes_of(tree, *id).filter(|nodes| written.contains(nodes));
                    if nodes.is_none() {
                        candidates.push(*id);
                    }
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
                fields.push(item);
                plan.written.push(id);
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
        let time = self.tree().attrs().iter().find(|(name, _)| name == "time");
        Ok(time.and_then(|(_, value)| if let Value::Float(t) = value { Some(*t) } else { None }))
    }
}

/// The metadata of a file as JSON for an XML comment.
fn metadata(snapshot: &Snapshot<'_>, plan: &Plan) -> Result<String> {
    let mut tree = without_frames(snapshot.tree(), snapshot.limits)?;
    if let (Some(frame), Some(axis)) = (snapshot.frame, snapshot.tree().frames()) {
        let attrs = &mut tree.node_mut(ROOT).attrs;
        attrs.retain(|(name, _)| name != "step" && name != "time");
        attrs.extend(axis.step(frame)?.map(|step| ("step".to_string(), Value::UInt(step))));
        attrs.extend(axis.time(frame)?.map(|time| ("time".to_string(), Value::Float(time))));
    }
    for id in &plan.written {
        // The file has physical values.
        if let Some(desc) = &mut tree.node_mut(*id).array
            && desc.map.take().is_some()
        {
            desc.dtype = DType::F64;
        }
    }
    let mut description = Description::of(&tree);
    for path in &plan.generated {
        description.made(path.clone());
    }
    // Comments must not contain two hyphens.
    Ok(description.text(snapshot.limits)?.replace("--", "-\\u002d"))
}

/// A copy of a tree in which arrays have no frames.
fn without_frames(source: &Tree, limits: &Limits) -> Result<Tree> {
    let mut tree = Tree::new(limits);
    tree.node_mut(ROOT).attrs.clone_from(source.attrs());
    // Adding the nodes in the same order keeps their ids.
    for (_, node) in source.iter() {
        let id = match &node.array {
            None => tree.add_group(node.parent, &node.name)?,
            Some(array) => {
                let mut array = array.clone();
                if let Layout::PerFrame(_) = array.layout {
                    array.layout = Layout::Fill(vec![0; array.dtype.size()].into());
                }
                tree.add_array(node.parent, &node.name, array)?
            }
        };
        let copy = tree.node_mut(id);
        (copy.id, copy.attrs) = (node.id.clone(), node.attrs.clone());
    }
    Ok(tree)
}
