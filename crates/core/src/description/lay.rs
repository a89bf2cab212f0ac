//! A tree laid out for a format that can hold less, with the description that gives it back.
//!
//! Nothing is copied: the same bytes get another shape or type that the format has.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Cast, Frames};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::flat::Flat;
use crate::format::{Dataset, Reader};
use crate::frames::{FrameAxis, FrameCell, FrameTable};
use crate::layout::{ArrayDesc, Layout};
use crate::limits::Limits;
use crate::report::Report;
use crate::shape::{Order, Shape};
use crate::tree::{ROOT, Tree, Value};
use crate::wire::ByteOrder;

/// The array whose bytes are the description.
pub(crate) const NAME: &str = "spile.description";

/// The array of the times of frames, in a format whose frames have none.
const TIMES: &str = "spile.time";

/// What a format can hold.
#[derive(Clone, Copy, Debug)]
pub struct Holds {
    /// Arrays of at most so many dimensions.
    pub rank: usize,
    /// In which order it has the elements of an array.
    pub order: Order,
    /// Frames.
    pub frames: bool,
    /// Numbers of this type.
    pub dtype: fn(DType) -> bool,
    /// The type for single bytes.
    pub byte: DType,
    /// Objects of this name.
    pub name: fn(&str) -> bool,
    /// Arrays that a writer adds of its own accord.
    pub adds: &'static [&'static str],
}

/// What lies in the place of an array: the same bytes.
struct Recast {
    dtype: DType,
    shape: Shape,
    layout: Layout,
    /// The way back, where there is something to undo.
    cast: Option<Cast>,
}

/// Lays out `content` so that a format with these abilities holds all of it. What was done to arrays is
/// told as notes.
pub fn lay(content: &dyn Reader, holds: &Holds, limits: &Limits) -> Result<Dataset> {
    let flat = Flat::lay(content, holds.frames, limits)?;
    let mut description = flat.description.clone();
    let from = flat.tree();
    let mut tree = Tree::new(limits);
    if let Some(axis) = content.tree().frames().filter(|_| holds.frames) {
        tree.set_frames(axis.clone());
        // A format's own frames have steps.
        if let Some(times) = times(&**axis, limits)? {
            let shape = Shape::new([axis.len()]);
            let layout = Layout::Inline(times.into(), Order::C);
            tree.add_array(ROOT, TIMES, ArrayDesc::new(DType::F64, shape, layout))?;
            description.made(TIMES);
            description.frames =
                description.frames.map(|frames| Frames { times: Some(TIMES.into()), ..frames });
        }
    }
    for path in holds.adds {
        description.made(*path);
    }
    let (mut moved, mut casts) = (HashMap::new(), HashMap::new());
    let mut report = Report::default();
    for (id, node, array) in from.arrays() {
        let cells = flat.cells(id)?;
        let mut steps = Vec::new();
        if cells.is_some() {
            steps.push("frames end to end".to_string());
        }
        let recast = match cells {
            Some((layout, cell)) => stack(array.dtype, &array.shape, layout, cell, holds),
            None => recast(array, holds).map_err(|e| e.in_object(format!("\"{}\"", node.path)))?,
        };
        let Recast { dtype, shape, layout, cast } = recast;
        if dtype != array.dtype {
            steps.push(format!("{} as single bytes", array.dtype));
        } else if shape.rank() < array.shape.rank() {
            steps.push(format!("{} dimensions as {}", array.shape.rank(), shape.rank()));
        }
        if let Some(cast) = cast {
            casts.insert(node.path.clone(), cast);
        }
        let (parent, name) = place(&node.path, holds.name);
        let parent = tree.group_at(&parent)?;
        let id = tree.add_array(parent, &name, ArrayDesc::new(dtype, shape, layout))?;
        let units = node.attrs.iter().filter(|(name, _)| name == "units").cloned().collect();
        let new = tree.node_mut(id);
        new.attrs = units;
        if new.path != node.path {
            steps.push(format!("under the name {}", new.path));
            moved.insert(node.path.clone(), new.path.clone());
        }
        if !steps.is_empty() {
            report.note("core-description", steps.join(", ")).in_object(node.path.clone());
        }
    }
    description.moved(&moved);
    description.cast(casts);
    let text = description.text(limits)?.into_bytes();
    let shape = Shape::new([text.len() as u64]);
    let layout = Layout::Inline(text.into(), Order::C);
    let id = tree.add_array(ROOT, NAME, ArrayDesc::new(holds.byte, shape, layout))?;
    let about =
        "names, types, shapes, attributes and coordinates of everything in this file, as JSON";
    tree.node_mut(id).attrs = vec![("comment".into(), Value::from(about))];
    let (source, summary) = (content.source().clone(), content.summary());
    Ok(Dataset { source, tree, summary, findings: report.findings })
}

/// The times of all frames, if they have any.
fn times(axis: &dyn FrameAxis, limits: &Limits) -> Result<Option<Vec<u8>>> {
    let mut bytes = Vec::with_capacity(limits.allow(axis.len().saturating_mul(8), "the times")?);
    for frame in 0..axis.len() {
        let Some(time) = axis.time(frame)? else { return Ok(None) };
        bytes.extend(time.to_le_bytes());
    }
    Ok((!bytes.is_empty()).then_some(bytes))
}

/// Frames one after the other; `cell` is the shape and order of one.
fn stack(dtype: DType, shape: &Shape, layout: Layout, cell: Cast, holds: &Holds) -> Recast {
    // As it lies in memory, slowest first.
    let (first, rest) = shape.lengths().split_at(shape.rank().min(1));
    let mut memory = first.to_vec();
    match cell.order() {
        Order::C => memory.extend(rest),
        Order::F => memory.extend(rest.iter().rev()),
    }
    let big_endian = carried_big(dtype, &layout, holds);
    let (dtype, shape) = held(dtype, memory, holds);
    let layout = layout.in_order(holds.order).unwrap_or(layout);
    Recast { dtype, shape, layout, cast: Some(Cast { big_endian, ..cell }) }
}

/// The array as the format can hold it; an error where that is not to be had by looking at the same
/// bytes in another way.
fn recast(array: &ArrayDesc, holds: &Holds) -> Result<Recast> {
    let fits = array.shape.rank() <= holds.rank && (holds.dtype)(array.dtype);
    if fits && array.ragged().is_none() {
        let (dtype, shape) = (array.dtype, array.shape.clone());
        let cast = is_line(array).then(|| Cast::new(&shape, Order::C));
        return Ok(Recast { dtype, shape, layout: array.layout.clone(), cast });
    }
    let mut order = array.order();
    let layout = if let Layout::PerFrame(table) = &array.layout {
        if let Some(cell) = (0..table.len()).find_map(|k| table.cell(k).transpose()) {
            order = ArrayDesc { layout: cell?.layout, ..array.clone() }.order();
        }
        let table = Held { table: table.clone(), dtype: array.dtype, holds: *holds };
        Some(Layout::PerFrame(Arc::new(table)))
    } else {
        array.layout.in_order(holds.order)
    };
    // One element does not become the bytes that it consists of.
    let layout =
        layout.filter(|layout| !matches!(layout, Layout::Fill(_)) || (holds.dtype)(array.dtype));
    let (dtype, shape) = held(array.dtype, memory(&array.shape, order), holds);
    let big_endian = carried_big(array.dtype, &array.layout, holds);
    let cast = Cast { big_endian, ..Cast::new(&array.shape, order) };
    let layout = layout.ok_or_else(|| {
        let message = format!("{} in {:?} cannot be laid out anew", array.dtype, array.layout);
        Error::unsupported("core-description", message)
    })?;
    Ok(Recast { dtype, shape, layout, cast: Some(cast) })
}

/// There is only one order of the elements, and formats do not agree how many dimensions that is.
fn is_line(array: &ArrayDesc) -> bool {
    let lengths = array.shape.lengths();
    match array.layout {
        // Other frames may be longer.
        Layout::PerFrame(_) => matches!(lengths, [] | [_, 1]),
        _ => lengths.iter().filter(|n| **n != 1).count() <= 1,
    }
}

/// The bytes of this array come first byte first and are handed on one by one; what is in memory is
/// always little-endian.
fn carried_big(dtype: DType, layout: &Layout, holds: &Holds) -> bool {
    let memory = matches!(layout, Layout::Inline(..) | Layout::Text { .. } | Layout::Fill(_));
    !(holds.dtype)(dtype) && !memory && dtype.order() == ByteOrder::Big
}

/// The lengths of an array, slowest first.
fn memory(shape: &Shape, order: Order) -> Vec<u64> {
    let mut lengths = shape.lengths().to_vec();
    if order == Order::F {
        lengths.reverse();
    }
    lengths
}

/// A type and a shape that the format has for elements that lie like this.
fn held(dtype: DType, mut memory: Vec<u64>, holds: &Holds) -> (DType, Shape) {
    if !(holds.dtype)(dtype) {
        let bytes = memory.iter().fold(dtype.size() as u64, |n, len| n.saturating_mul(*len));
        return (holds.byte, Shape::new([bytes]));
    }
    while memory.len() > holds.rank {
        let last = memory.pop().unwrap_or(1);
        if let Some(len) = memory.last_mut() {
            *len = len.saturating_mul(last);
        }
    }
    if holds.order == Order::F {
        memory.reverse();
    }
    (dtype, Shape::new(memory))
}

/// Frames of an array whose shape or type the format has not.
struct Held {
    table: Arc<dyn FrameTable>,
    dtype: DType,
    holds: Holds,
}

impl FrameTable for Held {
    fn len(&self) -> u64 {
        self.table.len()
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let Some(cell) = self.table.cell(frame)? else { return Ok(None) };
        let desc = ArrayDesc::new(self.dtype, cell.shape, cell.layout);
        let (_, shape) = held(self.dtype, memory(&desc.shape, desc.order()), &self.holds);
        let layout = desc.layout.in_order(self.holds.order);
        Ok(layout.map(|layout| FrameCell { shape, layout }))
    }
}

/// The group and the name for an object, with letters that the format allows.
fn place(path: &str, allowed: fn(&str) -> bool) -> (String, String) {
    let part = |part: &str| {
        if allowed(part) {
            return part.to_string();
        }
        let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let clean: String = part.chars().map(letter).collect();
        if allowed(&clean) { clean } else { format!("x{clean}") }
    };
    let parts: Vec<String> = path.split('/').map(part).collect();
    match parts.split_last() {
        Some((name, groups)) => (groups.join("/"), name.clone()),
        None => Default::default(),
    }
}
