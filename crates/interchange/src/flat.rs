//! A dataset as plain arrays, for formats without frames and without elements of different lengths,
//! and the [`Metadata`] from which the original tree is restored.
//!
//! - An array with the same shape in all frames gets a first dimension `frame`.
//! - An array whose first length differs between frames, or that some frames lack, is concatenated along
//!   that dimension; an array `NAME.rows` has the length in each frame, -1 for frames without the array.
//! - Elements of variable length become bytes; an array `NAME.sizes` has the length of each.
//! - An array that refers to another is not repeated.
//! - Steps and times of the frames are arrays `step` and `time`.

mod losses;
mod region;

use std::collections::HashMap;
use std::ops::Range;

use rayon::prelude::*;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::frames::{FrameCell, FrameTable};
use spile_core::layout::{ArrayDesc, Coord, Extents, Layout};
use spile_core::metadata::{Cast, Frames, Metadata, Storage};
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::tree::{Node, NodeId, ROOT, Tree};

pub use losses::flat_losses;
pub use region::RegionReader;

/// Small frames are read in batches of up to this many bytes.
const BATCH: u64 = 1 << 20;

/// A dataset as plain arrays.
pub struct Flat {
    content: Dataset,
    /// The content with the tree of plain arrays.
    plain: Dataset,
    stacks: HashMap<NodeId, Stack>,
    /// Restores the original tree; the writer adds auxiliary arrays and renamed paths.
    pub metadata: Metadata,
}

/// The plain tree while it is built.
struct Builder<'a> {
    content: &'a Dataset,
    keep_frames: bool,
    tree: Tree,
    stacks: HashMap<NodeId, Stack>,
    metadata: Metadata,
}

/// An array of frames as one array.
struct Stack {
    /// Node in the original tree.
    node: NodeId,
    frames: u64,
    /// Number of elements in each frame; `None` if it is `uniform` in all frames.
    elements: Option<Vec<u64>>,
    uniform: u64,
}

impl Flat {
    /// Flattens `content`. Reads frame tables but no values.
    pub fn new(content: &Dataset) -> Result<Self> {
        Self::flatten(content, false)
    }

    /// Flattens `content`; with `keep_frames`, arrays per frame are kept for a format with frames.
    pub(crate) fn flatten(content: &Dataset, keep_frames: bool) -> Result<Self> {
        let old = content.tree();
        let mut builder = Builder {
            content,
            keep_frames,
            tree: Tree::new(content.limits()),
            stacks: HashMap::new(),
            metadata: Metadata::of(old),
        };
        builder.tree.set_attrs(ROOT, old.attrs().clone())?;
        let mut new_ids = HashMap::from([(ROOT, ROOT)]);
        // Few formats have arrays below arrays: children of an array go to a group next to it.
        let mut parents = HashMap::from([(ROOT, ROOT)]);
        let mut renamed = HashMap::new();
        for (k, (id, node)) in old.iter().enumerate() {
            let parent = if let Some(parent) = parents.get(&node.parent) {
                *parent
            } else {
                let above = old.node(node.parent);
                let group = builder.tree.add_group(parents[&above.parent], &above.name)?;
                parents.insert(node.parent, group);
                group
            };
            let Some(new) = builder.add(k, id, node, parent)? else { continue };
            new_ids.insert(id, new);
            let copy = builder.tree.node_mut(new);
            copy.id.clone_from(&node.id);
            if copy.path != node.path {
                renamed.insert(node.path.clone(), copy.path.clone());
            }
            if node.array.is_none() {
                parents.insert(id, new);
            }
            builder.tree.set_attrs(new, node.attrs.clone())?;
        }
        builder.metadata.rename(&renamed);
        let time = if keep_frames { None } else { builder.moments()? };
        builder.link(&new_ids, time);
        let Builder { tree, stacks, metadata, .. } = builder;
        Ok(Self { content: content.clone(), plain: content.with_tree(tree), stacks, metadata })
    }

    /// The dataset.
    pub fn content(&self) -> &Dataset {
        &self.content
    }

    /// The tree of plain arrays. Arrays made of frames cannot be opened, only [streamed](Flat::stream).
    pub fn tree(&self) -> &Tree {
        self.plain.tree()
    }
}

impl Builder<'_> {
    fn add(&mut self, k: usize, id: NodeId, node: &Node, parent: NodeId) -> Result<Option<NodeId>> {
        let old = self.content.tree();
        let Some(array) = &node.array else {
            return self.tree.add_group(parent, &node.name).map(Some);
        };
        if let Some(first) = array.layout.same() {
            old.resolve(array)?;
            let mut same = first;
            while let Some(next) = old.node(same).array.as_ref().and_then(|a| a.layout.same()) {
                same = next;
            }
            self.metadata.set_storage(k, Storage::Same(old.node(same).path.clone()));
            return Ok(None);
        }
        if let (Some(table), false) = (array.layout.frames(), self.keep_frames) {
            return self.stack(k, id, node, array, &**table, parent);
        }
        let Some(starts) = array.ragged() else {
            return self.tree.add_array(parent, &node.name, array.clone()).map(Some);
        };
        let sizes: Vec<i64> = starts.windows(2).map(|w| w[1].wrapping_sub(w[0]) as i64).collect();
        let total = starts.last().copied().unwrap_or(0);
        let layout = match &array.layout {
            Layout::Ragged { data, .. } => Layout::Plain { extents: data.clone(), order: Order::C },
            encoded => encoded.clone(),
        };
        let bytes = ArrayDesc::new(DType::opaque(1), Shape::new([total]), layout);
        let new = self.tree.add_array(parent, &node.name, bytes)?;
        let about = format!("bytes of each element of {}", node.path);
        let sizes =
            self.add_integers(parent, &format!("{}.sizes", node.name), &sizes, "element", &about)?;
        self.metadata.set_storage(k, Storage::Sizes(sizes));
        Ok(Some(new))
    }

    fn stack(
        &mut self,
        k: usize,
        id: NodeId,
        node: &Node,
        array: &ArrayDesc,
        table: &dyn FrameTable,
        parent: NodeId,
    ) -> Result<Option<NodeId>> {
        let frames = table.len();
        let Ok((rows, cell)) = frame_rows(self.content, array, table)? else { return Ok(None) };
        let uniform = rows.iter().all(|n| Some(*n) == rows.first().copied() && *n >= 0);
        let tail = &cell.lengths()[cell.rank().min(1)..];
        let mut desc = array.clone();
        let stack;
        if uniform {
            let lengths = std::iter::once(frames).chain(cell.lengths().iter().copied());
            desc.shape = Shape::new(lengths.collect::<Vec<_>>());
            desc.dims.insert(0, "frame".into());
            desc.coords.insert(0, Coord::None);
            stack = Stack { node: id, frames, elements: None, uniform: cell.count().unwrap_or(0) };
        } else {
            let mut present = rows.iter().filter_map(|n| u64::try_from(*n).ok());
            let all = present.try_fold(0_u64, u64::checked_add);
            let all = all.ok_or_else(|| Error::limit("the number of rows exceeds 63 bits"))?;
            let lengths = std::iter::once(all).chain(tail.iter().copied());
            desc.shape = Shape::new(lengths.collect::<Vec<_>>());
            if desc.dims.is_empty() {
                desc.dims.push("frame".into());
                desc.coords.push(Coord::None);
            }
            // The coordinate of the first frame does not apply to concatenated rows.
            desc.coords[0] = Coord::None;
            let per_row = Shape::new(tail).count().unwrap_or(0);
            let elements = |n: &i64| u64::try_from(*n).unwrap_or(0).saturating_mul(per_row);
            let elements = Some(rows.iter().map(elements).collect());
            stack = Stack { node: id, frames, elements, uniform: 0 };
        }
        desc.shape.bytes(desc.dtype.size())?;
        let new = self.tree.add_array(parent, &node.name, desc)?;
        self.stacks.insert(new, stack);
        let storage = if uniform {
            Storage::Frames
        } else {
            let about = format!("rows of {} in each frame, -1 where it is not there", node.path);
            Storage::Rows(self.add_integers(
                parent,
                &format!("{}.rows", node.name),
                &rows,
                "frame",
                &about,
            )?)
        };
        self.metadata.set_storage(k, storage);
        Ok(Some(new))
    }

    /// Adds an auxiliary array of integers; returns its path.
    fn add_integers(
        &mut self,
        parent: NodeId,
        name: &str,
        numbers: &[i64],
        dim: &str,
        about: &str,
    ) -> Result<String> {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.add_auxiliary(parent, name, DType::I64, bytes, dim, about)
    }

    /// Adds an auxiliary one-dimensional array; returns its path.
    fn add_auxiliary(
        &mut self,
        parent: NodeId,
        name: &str,
        dtype: DType,
        bytes: Vec<u8>,
        dim: &str,
        about: &str,
    ) -> Result<String> {
        let shape = Shape::new([(bytes.len() / dtype.size()) as u64]);
        let mut desc = ArrayDesc::new(dtype, shape, Layout::Inline(bytes.into(), Order::C));
        desc.dims = vec![dim.into()];
        // The names of arrays that follow are theirs.
        let group = self.tree.node(parent).path.clone();
        let is_free = |name: &String| {
            let path = if group.is_empty() { name.clone() } else { format!("{group}/{name}") };
            self.content.tree().at(&path).is_none()
        };
        let numbered = (2..).map(|k| format!("{name}~{k}"));
        let name = std::iter::once(name.to_string()).chain(numbered).find(is_free);
        let id = self.tree.add_array(parent, &name.unwrap_or_default(), desc)?;
        let node = self.tree.node_mut(id);
        node.attrs.push("long_name", about);
        let path = node.path.clone();
        self.metadata.add_auxiliary(path.clone());
        Ok(path)
    }

    /// Adds the steps and times of the frames; returns the array of times.
    fn moments(&mut self) -> Result<Option<NodeId>> {
        let Some(axis) = self.content.tree().frames() else { return Ok(None) };
        let count = axis.len();
        self.content
            .limits()
            .allow(count.saturating_mul(16), "the steps and times of all frames")?;
        let (mut steps, mut times) = (Some(Vec::new()), Some(Vec::new()));
        for frame in 0..count {
            let (step, time) = (axis.step(frame)?, axis.time(frame)?);
            steps = steps.zip(step).map(|(mut all, step)| (all.extend(step.to_le_bytes()), all).1);
            times = times.zip(time).map(|(mut all, time)| (all.extend(time.to_le_bytes()), all).1);
        }
        let mut frames = Frames { count, native: false, steps: None, times: None };
        let arrays = [("step", DType::U64, steps), ("time", DType::F64, times)];
        for (name, dtype, bytes) in arrays {
            let Some(bytes) = bytes.filter(|bytes| !bytes.is_empty()) else { continue };
            let path = self.add_auxiliary(
                ROOT,
                name,
                dtype,
                bytes,
                "frame",
                &format!("{name} of the frame"),
            )?;
            *(if name == "step" { &mut frames.steps } else { &mut frames.times }) = Some(path);
        }
        let time = frames.times.as_deref().and_then(|path| self.tree.at(path));
        self.metadata.frames = Some(frames);
        Ok(time)
    }

    /// Makes coordinates and meshes refer to nodes of this tree.
    fn link(&mut self, new_ids: &HashMap<NodeId, NodeId>, time: Option<NodeId>) {
        let ids: Vec<NodeId> = self.tree.arrays().map(|(id, ..)| id).collect();
        let frames = self.metadata.frames.as_ref().map(|frames| frames.count);
        for id in ids {
            let Some(array) = &mut self.tree.node_mut(id).array else { continue };
            for (k, coord) in array.coords.iter_mut().enumerate() {
                if let Coord::Node(old) = coord {
                    *coord = new_ids.get(old).map_or(Coord::None, |new| Coord::Node(*new));
                }
                let along = array.dims[k] == "frame" && frames == Some(array.shape.lengths()[k]);
                if let (Coord::None, true, Some(time)) = (&coord, along && Some(id) != time, time) {
                    *coord = Coord::Node(time);
                }
            }
            if let Some(meaning) = &mut array.meaning {
                meaning.mesh = meaning.mesh.and_then(|mesh| new_ids.get(&mesh).copied());
            }
        }
    }
}

impl Flat {
    /// Layout of the concatenated frames of an array, and shape and order of a frame; `None` if `id` is not an
    /// array of frames. Frames that are not stored as plain ranges are read into memory.
    pub(crate) fn cells(&self, id: NodeId) -> Result<Option<(Layout, Cast)>> {
        let (Some(stack), Some(array)) = (self.stacks.get(&id), &self.tree().node(id).array) else {
            return Ok(None);
        };
        let cells = self.layouts(id)?;
        if let Some(plain) = plain_ranges(stack, &cells)? {
            return Ok(Some(plain));
        }
        let all = array.bytes()?.saturating_mul(4);
        let all = self.content.limits().allow(all, "the decoded frames")?;
        let mut bytes = Vec::with_capacity(all / 4);
        self.stream(id, Order::C, |block| {
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        let cell = cells.first().map_or_else(Shape::scalar, |cell| cell.shape.clone());
        Ok(Some((Layout::Inline(bytes.into(), Order::C), Cast::new(&cell, Order::C))))
    }

    /// Shapes and layouts whose concatenation is the array: one, or one per frame that contains it.
    pub fn layouts(&self, id: NodeId) -> Result<Vec<FrameCell>> {
        let cell = |array: &ArrayDesc| FrameCell {
            shape: array.shape.clone(),
            layout: array.layout.clone(),
        };
        let Some(stack) = self.stacks.get(&id) else {
            return Ok(self.tree().node(id).array.iter().map(cell).collect());
        };
        let array = self.content.tree().node(stack.node).array.as_ref();
        let Some(table) = array.and_then(|array| array.layout.frames()) else {
            return Ok(Vec::new());
        };
        let bytes = stack.frames.saturating_mul(size_of::<FrameCell>() as u64);
        self.content.limits().allow(bytes, "the layouts of all frames")?;
        let cells = (0..stack.frames).map(|frame| table.cell(frame));
        cells.filter_map(Result::transpose).collect()
    }

    /// The stored order of an array, which is read without reordering.
    pub fn order(&self, id: NodeId) -> Order {
        match &self.tree().node(id).array {
            Some(array) if !self.stacks.contains_key(&id) => array.order(),
            _ => Order::C,
        }
    }

    /// Calls `each` with all elements of an array, little-endian, in `order`, block by block. Arrays of frames
    /// can be read in C order only.
    pub fn stream(
        &self,
        id: NodeId,
        order: Order,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(stack) = self.stacks.get(&id) else {
            let array = self.plain.array_at(id)?;
            let selected = array.select(&Selection::all(), Axes::Order(order))?;
            return selected.stream(|_, bytes| each(bytes));
        };
        let size = self.element_size(id, order)?;
        let mut buffer = Vec::new();
        for (frames, _) in stack.batches(size) {
            if let Some(large) = self.large_frame(stack, &frames, size)? {
                let selected = large.select(&Selection::all(), Axes::Order(Order::C))?;
                selected.stream(|_, bytes| each(bytes))?;
            } else {
                self.gather(stack, frames, size, &mut buffer)?;
                each(&buffer)?;
            }
        }
        Ok(())
    }

    /// Calls `each` on all threads, in any order, with the index of the first element of a block and its
    /// little-endian elements. Arrays of frames can be read in C order only.
    pub fn for_each(
        &self,
        id: NodeId,
        order: Order,
        each: impl Fn(u64, &[u8]) -> Result<()> + Sync,
    ) -> Result<()> {
        let Some(stack) = self.stacks.get(&id) else {
            let array = self.plain.array_at(id)?;
            let selected = array.select(&Selection::all(), Axes::Order(order))?;
            return selected.for_each(|block, bytes| each(block.first, bytes));
        };
        let size = self.element_size(id, order)?;
        stack.batches(size).par_bridge().try_for_each_init(Vec::new, |buffer, (frames, first)| {
            if let Some(large) = self.large_frame(stack, &frames, size)? {
                let selected = large.select(&Selection::all(), Axes::Order(Order::C))?;
                return selected.for_each(|block, bytes| each(first + block.first, bytes));
            }
            self.gather(stack, frames, size, buffer)?;
            each(first, buffer)
        })
    }

    /// Element size in bytes of an array of frames. Fails unless `order` is C.
    fn element_size(&self, id: NodeId, order: Order) -> Result<usize> {
        if order == Order::F {
            return Err(Error::argument("arrays of frames can be read in C order only"));
        }
        Ok(self.tree().node(id).array.as_ref().map_or(1, |array| array.dtype.size()))
    }

    /// The array of a frame that exceeds a batch; `None` for batches of small frames.
    fn large_frame(
        &self,
        stack: &Stack,
        frames: &Range<u64>,
        size: usize,
    ) -> Result<Option<Array>> {
        let bytes = stack.elements(frames.start).saturating_mul(size as u64);
        if frames.end - frames.start != 1 || bytes <= BATCH {
            return Ok(None);
        }
        let array = self.content.array_in_frame(stack.node, frames.start)?;
        Ok(array.filter(|array| array.shape().count() == Some(stack.elements(frames.start))))
    }

    fn gather(
        &self,
        stack: &Stack,
        frames: Range<u64>,
        size: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        buffer.clear();
        for frame in frames {
            let Some(array) = self.content.array_in_frame(stack.node, frame)? else { continue };
            let start = buffer.len();
            let bytes = stack.elements(frame).saturating_mul(size as u64);
            buffer.resize(start + self.content.limits().allow(bytes, "a frame")?, 0);
            let selected = array.select(&Selection::all(), Axes::Order(Order::C))?;
            selected.read_into(&mut buffer[start..])?;
        }
        Ok(())
    }
}

/// Whether [`Flat`] can express an array; the error is the reason. Reads frame tables only.
pub(crate) fn is_stackable(
    content: &Dataset,
    array: &ArrayDesc,
    keep_frames: bool,
) -> std::result::Result<(), String> {
    let rows = content.tree().resolve(array).and_then(|desc| match desc.layout.frames() {
        Some(table) if !keep_frames => frame_rows(content, array, &**table),
        _ => Ok(Ok(Default::default())),
    });
    rows.map_err(|e| e.message().to_string())?.map(drop)
}

/// Number of rows of every frame, -1 for frames without the array, and the shape of the first frame with
/// it; or the reason why the frames cannot be concatenated.
fn frame_rows(
    content: &Dataset,
    array: &ArrayDesc,
    table: &dyn FrameTable,
) -> Result<std::result::Result<(Vec<i64>, Shape), String>> {
    let bytes = table.len().saturating_mul(8);
    let room = content.limits().allow(bytes, "the row counts of all frames")?;
    let mut rows = Vec::with_capacity(room / 8);
    let mut first: Option<Shape> = None;
    for frame in 0..table.len() {
        let Some(FrameCell { shape, .. }) = table.cell(frame)? else {
            rows.push(-1);
            continue;
        };
        let before = first.get_or_insert_with(|| shape.clone());
        let (own, other) = (shape.lengths(), before.lengths());
        if own.len() != other.len() || own.iter().skip(1).ne(other.iter().skip(1)) {
            return Ok(Err(format!("its shape is {before} in one frame and {shape} in another")));
        }
        let count = i64::try_from(own.first().copied().unwrap_or(1));
        rows.push(count.map_err(|_| Error::limit("the number of rows exceeds 63 bits"))?);
    }
    let cell = first.unwrap_or_else(|| array.shape.clone());
    if cell.rank() != array.dims.len() {
        return Ok(Err("its rank changes between frames".into()));
    }
    Ok(Ok((rows, cell)))
}

/// Layout of the concatenated frames if all are stored as plain ranges in the same order.
fn plain_ranges(stack: &Stack, cells: &[FrameCell]) -> Result<Option<(Layout, Cast)>> {
    let mut parts = Vec::new();
    let mut first: Option<Cast> = None;
    for cell in cells {
        let Some((extents, order)) = cell.layout.plain() else { return Ok(None) };
        let own = Cast::new(&cell.shape, order);
        if first.get_or_insert_with(|| own.clone()).order() != own.order() {
            return Ok(None);
        }
        parts.extend_from_slice(extents.parts());
    }
    let Some(cast) = first else { return Ok(None) };
    // Frames with different numbers of rows can be concatenated only if the row index is slowest.
    if stack.elements.is_some() && cast.order() == Order::F {
        return Ok(None);
    }
    let layout = Layout::Plain { extents: Extents::several(parts)?, order: Order::C };
    Ok(Some((layout, cast)))
}

impl Stack {
    fn elements(&self, frame: u64) -> u64 {
        match &self.elements {
            Some(all) => all.get(frame as usize).copied().unwrap_or(0),
            None => self.uniform,
        }
    }

    /// Ranges of frames of about [`BATCH`] bytes, with the number of elements before each.
    fn batches(&self, size: usize) -> impl Iterator<Item = (Range<u64>, u64)> + Send + '_ {
        let (mut frame, mut element) = (0, 0);
        std::iter::from_fn(move || {
            let (first, before) = (frame, element);
            let mut bytes = 0_u64;
            while frame < self.frames {
                let own = self.elements(frame);
                bytes = bytes.saturating_add(own.saturating_mul(size as u64));
                if bytes > BATCH && frame > first {
                    break;
                }
                frame += 1;
                element += own;
            }
            (frame > first).then_some((first..frame, before))
        })
    }
}

#[cfg(test)]
mod tests;
