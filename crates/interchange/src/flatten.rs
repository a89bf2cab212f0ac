//! A dataset flattened for a format with limited capabilities, with metadata that restores it.
//!
//! Nothing is copied: the same bytes get a shape or type that the format has, and those of chunks are collected on
//! reading.

use std::collections::HashMap;
use std::sync::Arc;

use spile_core::computed::{Computed, Function};
use spile_core::format::Capabilities;
use spile_core::metadata::{self, Cast, Frames};
use spile_core::{
    Array, ArrayDesc, Axes, ByteOrder, DType, Dataset, Error, FrameAxis, FrameCell, Layout, Limits,
    NodeId, Order, ROOT, Report, Result, Selection, Shape, Slice, Tree,
};

use crate::flat::Flat;

/// The array of frame times, for formats whose frames have only steps.
const TIMES: &str = "spile.time";

/// Approximate number of elements that are collected at once.
const PIECE: u64 = 1 << 18;

/// The same bytes under a type and shape that the format has.
struct Recast {
    dtype: DType,
    shape: Shape,
    layout: Layout,
    /// Restores the original, where anything changed.
    cast: Option<Cast>,
}

/// Returns a dataset that a format with these capabilities can store completely, including metadata that
/// restores `content`. Changes to arrays are notes in its warnings. Fails if an array cannot be stored
/// under a type of the format.
pub fn flatten(content: &Dataset, holds: &Capabilities) -> Result<Dataset> {
    let limits = content.limits();
    let flat = Flat::flatten(content, holds.frames)?;
    let mut metadata = flat.metadata.clone();
    let from = flat.tree();
    let mut tree = Tree::new(limits);
    if let Some(axis) = content.tree().frames().filter(|_| holds.frames) {
        tree.set_frames(axis.clone());
        if let Some(times) = times(&**axis, limits)? {
            let shape = Shape::new([axis.len()]);
            tree.add_array(ROOT, TIMES, ArrayDesc::inline(DType::F64, shape, times))?;
            metadata.add_auxiliary(TIMES);
            metadata.frames =
                metadata.frames.map(|frames| Frames { times: Some(TIMES.into()), ..frames });
        }
    }
    for path in holds.adds {
        metadata.add_auxiliary(*path);
    }
    let (mut renamed, mut casts) = (HashMap::new(), HashMap::new());
    let mut groups: HashMap<String, NodeId> = HashMap::new();
    let mut report = Report::default();
    let step_path = metadata.frames.as_ref().and_then(|frames| frames.steps.clone());
    for (id, node, array) in from.arrays() {
        // Steps are read by their type: signed where the format has no unsigned integers.
        let mut signed = array.clone();
        let unsigned = (holds.dtype)(DType::U64) || !(holds.dtype)(DType::I64);
        if step_path.as_ref() == Some(&node.path) && !unsigned {
            signed.dtype = DType::I64;
        }
        let array = &signed;
        let cells = flat.cells(id)?;
        let mut steps = Vec::new();
        if cells.is_some() {
            steps.push("frames concatenated".to_string());
        }
        let recast = match cells {
            Some((layout, cell)) => stack(array.dtype, &array.shape, layout, cell, holds),
            None => recast(array, holds).map_err(|e| e.in_object(format!("\"{}\"", node.path)))?,
        };
        let Recast { dtype, shape, layout, cast } = recast;
        if dtype != array.dtype {
            steps.push(format!("{} stored as bytes", array.dtype));
        } else if shape.rank() < array.shape.rank() {
            steps.push(format!("{} dimensions stored as {}", array.shape.rank(), shape.rank()));
        }
        if let Some(cast) = cast {
            casts.insert(node.path.clone(), cast);
        }
        let (parent, name) = allowed_path(&node.path, holds.name);
        let parent = if let Some(group) = groups.get(&parent) {
            *group
        } else {
            let group = tree.group_at(&parent)?;
            groups.insert(parent, group);
            group
        };
        let id = tree.add_array(parent, &name, ArrayDesc::new(dtype, shape, layout))?;
        let new = tree.node_mut(id);
        new.attrs =
            node.attrs.get("units").map(|units| ("units", units.clone())).into_iter().collect();
        if new.path != node.path {
            steps.push(format!("renamed to {}", new.path));
            renamed.insert(node.path.clone(), new.path.clone());
        }
        if !steps.is_empty() {
            report.note("core-metadata", steps.join(", ")).in_object(node.path.clone());
        }
    }
    metadata.set_casts(casts);
    metadata.rename(&renamed);
    let text = metadata.text(limits)?.into_bytes();
    let shape = Shape::new([text.len() as u64]);
    let id = tree.add_array(ROOT, metadata::ARRAY, ArrayDesc::inline(holds.byte, shape, text))?;
    let about =
        "names, types, shapes, attributes and coordinates of everything in this file, as JSON";
    tree.node_mut(id).attrs.push("comment", about);
    Ok(content.with_tree(tree).with_warnings(report.findings))
}

/// Times of all frames as little-endian `float64`; `None` if a frame has no time or there are no frames.
fn times(axis: &dyn FrameAxis, limits: &Limits) -> Result<Option<Vec<u8>>> {
    let mut bytes =
        Vec::with_capacity(limits.allow(axis.len().saturating_mul(8), "the times of all frames")?);
    for frame in 0..axis.len() {
        let Some(time) = axis.time(frame)? else { return Ok(None) };
        bytes.extend(time.to_le_bytes());
    }
    Ok((!bytes.is_empty()).then_some(bytes))
}

/// Concatenated frames; `cell` is the shape and order of one.
fn stack(dtype: DType, shape: &Shape, layout: Layout, cell: Cast, holds: &Capabilities) -> Recast {
    // Lengths in storage order, slowest first.
    let (first, rest) = shape.lengths().split_at(shape.rank().min(1));
    let memory = [first, &memory(&Shape::new(rest), cell.order())].concat();
    let big_endian = big_endian_bytes(dtype, &layout, holds);
    let (dtype, shape) = stored_as(dtype, memory, holds);
    let layout = layout.in_order(holds.order).unwrap_or(layout);
    Recast { dtype, shape, layout, cast: Some(Cast { big_endian, ..cell }) }
}

/// The array as the format can store it. Fails if its bytes cannot be reinterpreted.
fn recast(array: &ArrayDesc, holds: &Capabilities) -> Result<Recast> {
    let fits = array.shape.rank() <= holds.rank && (holds.dtype)(array.dtype);
    if fits && array.ragged().is_none() {
        let (dtype, shape) = (array.dtype, array.shape.clone());
        let cast = is_vector(array).then(|| Cast::new(&shape, Order::C));
        return Ok(Recast { dtype, shape, layout: array.layout.clone(), cast });
    }
    let mut order = array.order();
    let layout = if let Some(table) = array.layout.frames() {
        if let Some(found) = table.cells().next() {
            order = found?.1.layout.order();
        }
        let (dtype, holds) = (array.dtype, *holds);
        Layout::changed_frames(table, move |cell| {
            let lengths = memory(&cell.shape, cell.layout.order());
            let (_, shape) = stored_as(dtype, lengths, &holds);
            let layout = reinterpret(&ArrayDesc::new(dtype, cell.shape, cell.layout), &holds)?;
            Ok(Some(FrameCell { shape, layout }))
        })
    } else {
        reinterpret(array, holds)?
    };
    let (dtype, shape) = stored_as(array.dtype, memory(&array.shape, order), holds);
    let big_endian = big_endian_bytes(array.dtype, &array.layout, holds);
    let cast = Cast { big_endian, ..Cast::new(&array.shape, order) };
    Ok(Recast { dtype, shape, layout, cast: Some(cast) })
}

/// Layout of the elements of `array`, in its order, for another type or shape. Elements that are not stored one after
/// the other are collected when they are read. Fails for elements of different lengths and references.
fn reinterpret(array: &ArrayDesc, holds: &Capabilities) -> Result<Layout> {
    let bytes = !(holds.dtype)(array.dtype);
    // A fill element has the size of the type.
    let in_place = array.layout.in_order(holds.order);
    if let Some(layout) = in_place.filter(|layout| !bytes || !matches!(layout, Layout::Fill(_))) {
        return Ok(layout);
    }
    if matches!(array.layout, Layout::Ragged { .. } | Layout::PerFrame(_) | Layout::Same(_)) {
        let message = format!("cannot store {} with layout {:?}", array.dtype, array.layout);
        return Err(Error::unsupported("core-metadata", message));
    }
    // Bytes keep the byte order of the file, which the cast describes.
    let dtype = if bytes { array.dtype.with_order(ByteOrder::Little) } else { array.dtype };
    let input = ArrayDesc::new(dtype, array.shape.clone(), array.layout.clone());
    let size = if bytes { dtype.size() as u64 } else { 1 };
    let lengths = memory(&array.shape, array.order());
    let slab = lengths.iter().skip(1).fold(size, |n, len| n.saturating_mul(*len)).max(1);
    let count = (PIECE / slab).max(1);
    let function = Arc::new(Elements { order: array.order(), slab, count });
    let piece = slab.saturating_mul(count);
    let computed = Computed { inputs: vec![input], function, piece, order: holds.order };
    Ok(Layout::Computed(Arc::new(computed)))
}

/// The elements of an array one after the other.
struct Elements {
    order: Order,
    /// Elements of the result per index of the slowest dimension.
    slab: u64,
    /// Indices of the slowest dimension that are read at once.
    count: u64,
}

impl Function for Elements {
    fn name(&self) -> &'static str {
        "elements"
    }

    fn memory(&self, _: u64) -> u64 {
        0
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let input = &inputs[0];
        let mut slices = vec![Slice::ALL; input.shape().rank()];
        let slowest = match self.order {
            Order::C => slices.first_mut(),
            Order::F => slices.last_mut(),
        };
        if let Some(slice) = slowest {
            let lengths = memory(input.shape(), self.order);
            let from = first / self.slab;
            *slice = Slice::range(from, from.saturating_add(self.count).min(lengths[0]));
        }
        input.select(&Selection(slices), Axes::Order(self.order))?.read_into(out)
    }
}

/// Whether at most one length is not 1: formats differ in the number of dimensions of such arrays.
fn is_vector(array: &ArrayDesc) -> bool {
    let lengths = array.shape.lengths();
    match array.layout.frames() {
        // Other frames may have more rows.
        Some(_) => matches!(lengths, [] | [_, 1]),
        None => lengths.iter().filter(|n| **n != 1).count() <= 1,
    }
}

/// Whether a big-endian array is stored as bytes.
fn big_endian_bytes(dtype: DType, layout: &Layout, holds: &Capabilities) -> bool {
    !(holds.dtype)(dtype) && !layout.is_always_little() && dtype.order() == ByteOrder::Big
}

/// Lengths of the dimensions from slowest to fastest.
fn memory(shape: &Shape, order: Order) -> Vec<u64> {
    let mut lengths = shape.lengths().to_vec();
    if order == Order::F {
        lengths.reverse();
    }
    lengths
}

/// Type and shape in the format for elements with these lengths, slowest first.
fn stored_as(dtype: DType, mut memory: Vec<u64>, holds: &Capabilities) -> (DType, Shape) {
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

/// Group path and name with characters that the format allows.
fn allowed_path(path: &str, allowed: fn(&str) -> bool) -> (String, String) {
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
