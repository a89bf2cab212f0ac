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
mod read;
mod region;

use std::collections::HashMap;

use spile_core::metadata::{Frames, Metadata, Storage};
use spile_core::{
    ArrayDesc, Coord, DType, Dataset, Error, FrameCell, FrameTable, Layout, Node, NodeId, Order,
    ROOT, Result, Shape, Tree,
};

pub use losses::flat_losses;
pub use region::RegionReader;

/// A dataset as plain arrays.
pub struct Flat {
    content: Dataset,
    /// The content with the tree of plain arrays.
    plain: Dataset,
    stacks: HashMap<NodeId, Stack>,
    /// Paths in the content, where they differ from those in the tree of plain arrays.
    paths: HashMap<NodeId, String>,
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
        let (mut renamed, mut paths) = (HashMap::new(), HashMap::new());
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
                paths.insert(new, node.path.clone());
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
        let plain = content.with_tree(tree);
        Ok(Self { content: content.clone(), plain, stacks, paths, metadata })
    }

    /// The dataset.
    pub fn content(&self) -> &Dataset {
        &self.content
    }

    /// The tree of plain arrays. Arrays made of frames cannot be opened, only [streamed](Flat::stream).
    pub fn tree(&self) -> &Tree {
        self.plain.tree()
    }

    /// The path of a node in the content. It differs from the path in the tree of plain arrays if it is below an
    /// array.
    pub fn path(&self, id: NodeId) -> &str {
        self.paths.get(&id).unwrap_or(&self.tree().node(id).path)
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
            // The rows as an array, and the elements.
            let tables = frames.saturating_mul(16);
            self.tree.charge(tables, "the rows of every array in every frame")?;
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
        self.metadata.set_inherited(k, inherited_ranges(table)?);
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
        let mut desc = ArrayDesc::inline(dtype, shape, bytes);
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
            let Some(array) = self.tree.array_mut(id) else { continue };
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

/// Ranges of frames, end excluded, whose values are inherited.
fn inherited_ranges(table: &dyn FrameTable) -> Result<Vec<(u64, u64)>> {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for frame in 0..table.len() {
        if !table.is_inherited(frame)? {
            continue;
        }
        match ranges.last_mut() {
            Some((_, end)) if *end == frame => *end += 1,
            _ => ranges.push((frame, frame + 1)),
        }
    }
    Ok(ranges)
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
    let mut rows = vec![-1; room / 8];
    let mut first: Option<Shape> = None;
    for found in table.cells() {
        let (frame, FrameCell { shape, .. }) = found?;
        let before = first.get_or_insert_with(|| shape.clone());
        let (own, other) = (shape.lengths(), before.lengths());
        if own.len() != other.len() || own.iter().skip(1).ne(other.iter().skip(1)) {
            return Ok(Err(format!("its shape is {before} in one frame and {shape} in another")));
        }
        let count = i64::try_from(own.first().copied().unwrap_or(1));
        rows[frame as usize] =
            count.map_err(|_| Error::limit("the number of rows exceeds 63 bits"))?;
    }
    let cell = first.unwrap_or_else(|| array.shape.clone());
    if cell.rank() != array.dims.len() {
        return Ok(Err("its rank changes between frames".into()));
    }
    Ok(Ok((rows, cell)))
}

#[cfg(test)]
mod tests;
