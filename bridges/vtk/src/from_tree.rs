//! A grid or points of any tree as a file: a head of XML, then all numbers raw.

use std::fmt::Write as _;

use spile_core::description::Description;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::{Coord, Layout};
use spile_core::limits::Limits;
use spile_core::points::nodes_of;
use spile_core::read::Array;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::{NodeId, ROOT, Tree, Value};
use spile_core::wire::ByteOrder;

use crate::cloud;
use crate::collection;
use crate::data::type_name;
use crate::grid::{self, Line};
use crate::save::save;
use crate::xml::escape;

/// A form of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Image,
    Rectilinear,
    Unstructured,
    Poly,
}

impl Kind {
    pub(crate) const ALL: [(Self, &'static str, &'static str); 4] = [
        (Self::Image, "ImageData", "vti"),
        (Self::Rectilinear, "RectilinearGrid", "vtr"),
        (Self::Unstructured, "UnstructuredGrid", "vtu"),
        (Self::Poly, "PolyData", "vtp"),
    ];

    pub(crate) fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, name, _)| name)
    }
}

pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let ending = sink.path().extension().and_then(|e| e.to_str()).unwrap_or_default();
    let ending = ending.to_lowercase();
    if ending == "pvd" {
        return collection::write(content, sink, limits);
    }
    let kind = Kind::ALL.iter().find(|(_, _, known)| *known == ending);
    let (kind, ..) = kind.ok_or_else(|| {
        unfit(format!("files that end in .{ending} are not written"))
            .hint("written are .vti, .vtr, .vtu, .vtp and .pvd")
    })?;
    Moment { content, frame: None, limits }.write(*kind, sink)
}

pub(crate) fn unfit(message: impl Into<String>) -> Error {
    Error::unsupported("vtk-020", message).in_object("the tree")
}

/// A tree, or one frame of it.
pub(crate) struct Moment<'a> {
    pub(crate) content: &'a dyn Reader,
    pub(crate) frame: Option<u64>,
    pub(crate) limits: &'a Limits,
}

/// Where numbers come from.
pub(crate) enum Numbers {
    Array(Box<Array>),
    /// An array a direction; what is missing is zero.
    Columns(Vec<Array>),
    /// Two numbers a point of three.
    Flat(Box<Array>),
    /// The same distance between each.
    Steps {
        first: u64,
        step: u64,
    },
    /// Everywhere the same.
    Fill(u8),
    Value(f64),
}

/// How an array is cut into components.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    /// The fastest dimension, where that is one of components.
    Grid(u64),
    /// The second of two dimensions.
    Rows,
    /// Not at all.
    Line,
}

/// An array of the file.
pub(crate) struct Item {
    pub(crate) section: &'static str,
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) components: u64,
    pub(crate) tuples: u64,
    /// More that is said, as it stands in the tag.
    pub(crate) more: String,
    pub(crate) units: Option<String>,
    pub(crate) numbers: Numbers,
}

impl Item {
    pub(crate) fn made(
        section: &'static str,
        name: &str,
        dtype: DType,
        tuples: u64,
        numbers: Numbers,
    ) -> Self {
        let (name, more, units) = (name.to_string(), String::new(), None);
        Self { section, name, dtype, components: 1, tuples, more, units, numbers }
    }

    pub(crate) fn bytes(&self) -> Result<u64> {
        let all = self.tuples.checked_mul(self.components);
        let bytes = all.and_then(|n| n.checked_mul(self.dtype.size() as u64));
        bytes.filter(|n| *n < 1 << 62).ok_or_else(|| unfit("an array that fits no file"))
    }
}

/// All of a file.
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// Attributes of the grid's element, and of its piece.
    pub(crate) grid: String,
    pub(crate) piece: String,
    pub(crate) items: Vec<Item>,
    /// Arrays of the file that the tree does not have.
    pub(crate) made: Vec<String>,
    /// Nodes of the tree that are in it.
    pub(crate) taken: Vec<NodeId>,
}

impl<'a> Moment<'a> {
    pub(crate) fn tree(&self) -> &'a Tree {
        self.content.tree()
    }

    /// An array, or nothing where the frame does not have it.
    pub(crate) fn open(&self, id: NodeId) -> Result<Option<Array>> {
        let (source, tree) = (self.content.source(), self.tree());
        let Some(desc) = &tree.node(id).array else { return Ok(None) };
        let Layout::PerFrame(table) = &tree.resolve(desc)?.layout else {
            return Array::open(source, tree, desc, self.limits).map(Some);
        };
        let frame = match self.frame {
            Some(frame) => frame,
            None if table.len() == 1 => 0,
            None => {
                return Err(unfit("a file of this kind holds one frame")
                    .hint("write .pvd for all of them, or choose one with --frames"));
            }
        };
        Array::open_frame(source, tree, desc, frame, self.limits)
    }

    /// The kind of file that suits the tree best.
    pub(crate) fn best(&self) -> Option<Kind> {
        let grid = grid::find(self.tree());
        let lines = grid.as_ref().map_or(&[][..], |grid| &grid.axes);
        // A table of numbers is no grid as long as nobody says where its points are.
        if lines.len() > 1 && lines.iter().any(|axis| axis.line != Line::Index) {
            let uneven = lines.iter().any(|axis| matches!(axis.line, Line::Nodes(_)));
            return Some(if uneven { Kind::Rectilinear } else { Kind::Image });
        }
        cloud::find(self.tree()).map(|_| Kind::Poly).or(grid.map(|_| Kind::Image))
    }

    pub(crate) fn write(&self, kind: Kind, sink: &Sink) -> Result<()> {
        let mut plan = match kind {
            Kind::Image | Kind::Rectilinear => self.on_grid(kind)?,
            Kind::Unstructured | Kind::Poly => self.on_points(kind)?,
        };
        self.fields(&mut plan)?;
        save(&plan, &described(self, &plan)?, sink)
    }

    /// An array as one of the file; nothing where the frame does not have it.
    pub(crate) fn item(
        &self,
        section: &'static str,
        id: NodeId,
        form: Form,
    ) -> Result<Option<Item>> {
        let node = self.tree().node(id);
        let Some(array) = self.open(id)? else { return Ok(None) };
        let stored = array.dtype().with_order(ByteOrder::Little);
        // What the numbers mean; VTK knows no factors.
        let dtype = if array.map().is_some() { DType::F64 } else { stored };
        if type_name(dtype).is_none() {
            return Ok(None);
        }
        let lengths = array.shape().lengths();
        let components = match (form, lengths) {
            (Form::Grid(components), _) => components,
            (Form::Rows, [_, n]) => *n,
            _ => 1,
        };
        let all = array.shape().count().ok_or_else(|| unfit("an array that fits no file"))?;
        let tuples = all.checked_div(components).unwrap_or(0);
        let order = if array.order() == Order::C { "C" } else { "F" };
        let shape: Vec<String> =
            std::iter::once(order.to_string()).chain(lengths.iter().map(u64::to_string)).collect();
        let name = node.path.strip_prefix(section).and_then(|rest| rest.strip_prefix('/'));
        let mut more = format!(" Shape=\"{}\"", shape.join(" "));
        if name.is_none() && node.path != section {
            let _ = write!(more, " Path=\"{}\"", escape(&node.path));
        }
        let units = node.attrs.iter().find(|(name, _)| name == "units");
        let units = units.map(|(_, units)| units.to_string());
        let name = name.unwrap_or(&node.path).to_string();
        let numbers = Numbers::Array(Box::new(array));
        Ok(Some(Item { section, name, dtype, components, tuples, more, units, numbers }))
    }

    /// The time, single numbers, and the coordinates of arrays that are in the file.
    fn fields(&self, plan: &mut Plan) -> Result<()> {
        let tree = self.tree();
        let section = "FieldData";
        let mut wanted: Vec<NodeId> = Vec::new();
        for (id, node, desc) in tree.arrays() {
            if desc.shape.rank() == 0 || node.path.starts_with("FieldData/") {
                wanted.push(id);
            }
        }
        for id in &plan.taken {
            let Some(desc) = &tree.node(*id).array else { continue };
            for coord in &desc.coords {
                if let Coord::Node(id) = coord {
                    // Middles come back from their nodes.
                    let nodes = nodes_of(tree, *id).filter(|nodes| plan.taken.contains(nodes));
                    if nodes.is_none() {
                        wanted.push(*id);
                    }
                }
            }
        }
        let mut fields = Vec::new();
        let mut timed = false;
        for id in wanted {
            if plan.taken.contains(&id) {
                continue;
            }
            let desc = tree.node(id).array.as_ref().map(|desc| tree.resolve(desc)).transpose()?;
            if desc.is_none_or(|desc| desc.ragged().is_some()) {
                continue;
            }
            if let Some(item) = self.item(section, id, Form::Rows)? {
                timed |= item.name == "TimeValue";
                fields.push(item);
                plan.taken.push(id);
            }
        }
        if let (Some(time), false) = (self.time()?, timed) {
            let time = Numbers::Value(time);
            fields.push(Item::made(section, "TimeValue", DType::F64, 1, time));
            plan.made.push("FieldData/TimeValue".into());
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

/// What a file of the plan says besides its numbers.
fn described(moment: &Moment<'_>, plan: &Plan) -> Result<String> {
    let mut tree = still(moment.tree(), moment.limits)?;
    if let (Some(frame), Some(axis)) = (moment.frame, moment.tree().frames()) {
        let attrs = &mut tree.node_mut(ROOT).attrs;
        attrs.retain(|(name, _)| name != "step" && name != "time");
        attrs.extend(axis.step(frame)?.map(|step| ("step".to_string(), Value::UInt(step))));
        attrs.extend(axis.time(frame)?.map(|time| ("time".to_string(), Value::Float(time))));
    }
    for id in &plan.taken {
        // The file has what the numbers mean.
        if let Some(desc) = &mut tree.node_mut(*id).array
            && desc.map.take().is_some()
        {
            desc.dtype = DType::F64;
        }
    }
    let mut description = Description::of(&tree);
    for path in &plan.made {
        description.made(path.clone());
    }
    // Two hyphens end a comment.
    Ok(description.text(moment.limits)?.replace("--", "-\\u002d"))
}

/// The same nodes without frames: a file is one of them.
fn still(moving: &Tree, limits: &Limits) -> Result<Tree> {
    let mut tree = Tree::new(limits);
    tree.node_mut(ROOT).attrs.clone_from(moving.attrs());
    // Nodes are added in the same order, so they have the same numbers.
    for (_, node) in moving.iter() {
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
