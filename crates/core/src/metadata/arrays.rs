//! The arrays that metadata describes, made of the plain arrays of a file.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::stacked::{self, Entire, Rows, Stacked, cell_shape};
use super::{ArrayMeta, Cast, Frames, Meaning, Metadata, NodeMeta, Storage, coords_from_meta};
use crate::frames::{Moments, PartlyInherited};
use crate::{
    ArrayDesc, Axes, ByteOrder, Codec, Coord, DType, Dataset, Error, FrameCell, Kind, Layout,
    Linear, Node, NodeId, Order, ROOT, Result, Selection, Shape, Tree,
};

/// Builds the tree that metadata describes from the plain arrays of a file.
pub(super) struct MetadataApplier<'a> {
    metadata: &'a Metadata,
    by_path: HashMap<&'a str, &'a NodeMeta>,
    plain: &'a Dataset,
    /// Arrays of the file that are accounted for.
    used: HashSet<&'a str>,
}

impl<'a> MetadataApplier<'a> {
    /// Builds from the arrays of `plain`.
    pub(super) fn new(metadata: &'a Metadata, plain: &'a Dataset) -> Self {
        let by_path = metadata.nodes.iter().map(|node| (node.path.as_str(), node)).collect();
        let used = metadata.auxiliary.iter().map(String::as_str).collect();
        Self { metadata, by_path, plain, used }
    }

    /// The tree. Arrays that do not match the metadata, or that it does not mention, stay as they are.
    pub(super) fn tree(mut self) -> Result<Tree> {
        let limits = self.plain.limits();
        // Frames may take no bytes in the file; their number is limited all the same.
        limits.allow(self.frame_count().saturating_mul(32), "the frames")?;
        let mut tree = Tree::new(limits);
        tree.set_attrs(ROOT, self.metadata.attrs.clone())?;
        let mut added: Vec<(NodeId, &ArrayMeta)> = Vec::new();
        for meta in &self.metadata.nodes {
            let (parent, name) = split(&meta.path);
            if tree.at(&meta.path).is_some() {
                return Err(unfit(format!("\"{}\" occurs twice", meta.path)));
            }
            // An array that the file does not have may have children: it becomes a group.
            let parent = tree.node_at(parent)?;
            let id = match &meta.array {
                None => tree.add_group(parent, name)?,
                Some(array) => match self.array(meta, array)? {
                    None => continue,
                    Some(desc) => {
                        let id = tree.add_array(parent, name, desc)?;
                        added.push((id, array));
                        id
                    }
                },
            };
            tree.node_mut(id).id.clone_from(&meta.id);
            tree.set_attrs(id, meta.attrs.clone())?;
        }
        for (id, meta) in added {
            let rank = tree.array(id).map_or(0, |array| array.shape.rank());
            let array_at = |path: &str| tree.at(path).filter(|id| tree.array(*id).is_some());
            let coords = coords_from_meta(&meta.coords, rank, array_at);
            let meaning =
                meta.meaning.as_ref().map(|m: &Meaning| m.semantics(|path| tree.at(path)));
            let same = match &meta.storage {
                Storage::Same(path) => Some(array_at(path).ok_or_else(|| {
                    let path = &tree.node(id).path;
                    unfit(format!("\"{path}\" refers to an array that does not exist"))
                })?),
                _ => None,
            };
            if let Some(array) = tree.array_mut(id) {
                array.coords = coords;
                array.meaning = meaning.map(Box::new);
                if let Some(same) = same {
                    array.layout = Layout::Same(same);
                }
            }
        }
        self.rest(&mut tree)?;
        if let Some(frames) = &self.metadata.frames {
            tree.set_frames(match self.plain.tree().frames() {
                Some(own) if frames.native && frames.times.is_none() => own.clone(),
                _ => Arc::new(self.moments(frames)?),
            });
        }
        Ok(tree)
    }

    /// Adds the arrays that the metadata does not mention: other programs wrote them.
    fn rest(&self, tree: &mut Tree) -> Result<()> {
        for (_, node, array) in self.plain.tree().arrays() {
            if self.used.contains(node.path.as_str()) {
                continue;
            }
            let parent = tree.node_at(split(&node.path).0)?;
            let mut array = array.clone();
            array.coords.clear();
            array.coords.resize(array.shape.rank(), Coord::None);
            let id = tree.add_array(parent, &node.name, array)?;
            tree.node_mut(id).id.clone_from(&node.id);
            tree.set_attrs(id, node.attrs.clone())?;
        }
        Ok(())
    }

    /// The array of a node; none if the file has no array that fits.
    fn array(&mut self, meta: &'a NodeMeta, array: &'a ArrayMeta) -> Result<Option<ArrayDesc>> {
        if let Storage::Same(path) = &array.storage {
            // References are never to references.
            let other = self.by_path.get(path.as_str()).copied();
            let found = other.and_then(|meta| Some((meta, meta.array.as_ref()?)));
            let Some((other, found)) =
                found.filter(|(_, a)| !matches!(a.storage, Storage::Same(_)))
            else {
                return Ok(None);
            };
            let desc = self.array(other, found)?;
            return Ok(desc.map(|desc| ArrayDesc { dims: array.dims.clone(), ..desc }));
        }
        let at = array.at.as_deref().unwrap_or(&meta.path);
        let Some(native) = self.native(at) else { return Ok(None) };
        let native = match array.storage {
            Storage::Native => Some(native.clone()),
            _ => without_frames(native)?,
        };
        let Some(mut native) = native else { return Ok(None) };
        let cast = array.cast.as_ref();
        let Some(mut dtype) = restored_type(array.dtype, native.dtype, cast) else {
            return Ok(None);
        };
        if cast.is_some_and(|cast| cast.big_endian)
            && make_little(&mut native.layout, dtype.word().max(1))
        {
            dtype = dtype.with_order(ByteOrder::Little);
        }
        let native = &native;
        let size = dtype.size();
        let parts = match (&array.storage, cast) {
            (Storage::Direct | Storage::Native, None) => {
                Some((native.shape.clone(), native.layout.clone()))
            }
            (Storage::Direct | Storage::Native, Some(cast)) => recast(native, cast, size)?,
            (Storage::Frames, _) => self.uniform_frames(array, native, size)?,
            (Storage::Rows(rows), _) => self.rows(array, native, rows, size)?,
            (Storage::Sizes(sizes), _) => self.sizes(native, sizes)?,
            (Storage::Same(_), _) => None,
        };
        let Some((shape, layout)) = parts.filter(|(shape, _)| shape.rank() == array.dims.len())
        else {
            return Ok(None);
        };
        self.used.insert(at);
        let layout = match layout {
            Layout::PerFrame(table) if !array.inherited.is_empty() => {
                let mut inherited = array.inherited.clone();
                inherited.sort_unstable();
                Layout::PerFrame(Arc::new(PartlyInherited { table, inherited }))
            }
            layout => layout,
        };
        let mut desc = ArrayDesc::new(dtype, shape, layout);
        desc.dims.clone_from(&array.dims);
        desc.map = array.map.as_ref().map(Linear::from);
        Ok(Some(desc))
    }

    fn native(&self, path: &str) -> Option<&'a ArrayDesc> {
        let tree = self.plain.tree();
        let node: &'a Node = tree.node(tree.at(path)?);
        node.array.as_ref()
    }

    fn frame_count(&self) -> u64 {
        self.metadata.frames.as_ref().map_or(0, |frames| frames.count)
    }

    fn uniform_frames(
        &self,
        meta: &ArrayMeta,
        native: &ArrayDesc,
        size: usize,
    ) -> Result<Option<(Shape, Layout)>> {
        let count = self.frame_count();
        let (cell, order) = match (&meta.cast, native.shape.lengths()) {
            (Some(cast), _) => (Shape::new(cast.shape.clone()), cast.order()),
            (None, [first, cell @ ..]) if *first == count => (Shape::new(cell), Order::C),
            _ => return Ok(None),
        };
        let bytes = cell.bytes(size)?;
        let rows = Rows::Uniform { count, cell: cell.clone() };
        let layout = self.stacked(native, bytes, bytes.checked_mul(count), rows, order);
        Ok(layout.map(|layout| (cell, layout)))
    }

    fn rows(
        &self,
        meta: &ArrayMeta,
        native: &ArrayDesc,
        rows: &str,
        size: usize,
    ) -> Result<Option<(Shape, Layout)>> {
        let Some(rows) = self.numbers(rows)? else { return Ok(None) };
        let scalars = meta.dims.is_empty();
        let (tail, order) = match (&meta.cast, native.shape.lengths()) {
            (Some(cast), _) => (cast.shape.get(1..).unwrap_or(&[]), cast.order()),
            (None, [_, tail @ ..]) => (tail, Order::C),
            (None, []) => return Ok(None),
        };
        let (starts, total) = starts(rows.iter().map(|n| u64::try_from(*n).unwrap_or(0)));
        let lone = |n: &i64| matches!(n, -1 | 1);
        let fits = rows.len() as u64 == self.frame_count()
            && (!scalars || (tail.is_empty() && rows.iter().all(lone)));
        if !fits {
            return Ok(None);
        }
        let bytes = Shape::new(tail).bytes(size)?;
        let there: Vec<bool> = rows.iter().map(|n| *n >= 0).collect();
        let first = rows.iter().find(|n| **n >= 0).map_or(0, |n| n.unsigned_abs());
        let tail = (!scalars).then(|| tail.to_vec());
        let shape = cell_shape(tail.as_deref(), first);
        let rows = Rows::Ragged { starts, there, tail };
        let layout = self.stacked(native, bytes, bytes.checked_mul(total), rows, order);
        Ok(layout.map(|layout| (shape, layout)))
    }

    /// Frames of `native`, which has as many `bytes` as all of them together.
    fn stacked(
        &self,
        native: &ArrayDesc,
        row_bytes: u64,
        bytes: Option<u64>,
        rows: Rows,
        order: Order,
    ) -> Option<Layout> {
        if bytes? != native.bytes().ok()? {
            return None;
        }
        // As stored, whatever the shape. An array encoded as a whole is decoded at the first access.
        let entire = match (&native.layout, native.order()) {
            (Layout::EncodedWhole { .. }, _) => Entire::Encoded {
                desc: native.clone(),
                dataset: self.plain.clone(),
                decoded: OnceLock::new(),
            },
            (layout, Order::C) => Entire::Layout(layout.clone()),
            (layout, Order::F) => Entire::Layout(layout.in_order(Order::C)?),
        };
        if let Entire::Layout(layout) = &entire {
            layout.rows(0, row_bytes.min(bytes?))?;
        }
        Some(Layout::PerFrame(Arc::new(Stacked { entire, row_bytes, rows, order })))
    }

    fn sizes(&self, native: &ArrayDesc, sizes: &str) -> Result<Option<(Shape, Layout)>> {
        let (Some(sizes), Layout::Plain { extents, .. }) = (self.numbers(sizes)?, &native.layout)
        else {
            return Ok(None);
        };
        let lengths = sizes.iter().map(|size| u64::try_from(*size).unwrap_or(u64::MAX));
        let (starts, total) = starts(lengths);
        let shape = Shape::new([sizes.len() as u64]);
        let layout = Layout::Ragged { starts: starts.into(), data: extents.clone() };
        Ok((total == extents.len()).then_some((shape, layout)))
    }

    /// The values of a one-dimensional array of 64-bit integers.
    fn numbers(&self, path: &str) -> Result<Option<Vec<i64>>> {
        let whole = |array: &&ArrayDesc| {
            matches!(array.dtype.kind(), Kind::Int | Kind::UInt) && array.dtype.size() == 8
        };
        let Some(array) = self.native(path).filter(whole) else { return Ok(None) };
        let values = self.values(array)?;
        Ok(Some(values.into_iter().map(i64::from_le_bytes).collect()))
    }

    fn values(&self, array: &ArrayDesc) -> Result<Vec<[u8; 8]>> {
        let Some(array) = without_frames(array)? else { return Ok(Vec::new()) };
        let array = self.plain.open_array(&array)?;
        let bytes = array.read_bytes(&Selection::all(), Axes::Order(Order::C))?;
        Ok(bytes.as_chunks::<8>().0.to_vec())
    }

    fn moments(&self, frames: &Frames) -> Result<Moments> {
        let line = |path: &Option<String>, kinds: &[Kind]| -> Result<Option<Vec<[u8; 8]>>> {
            let array = path.as_deref().and_then(|path| self.native(path));
            let fits = |a: &&ArrayDesc| {
                a.shape == Shape::new([frames.count])
                    && a.dtype.size() == 8
                    && kinds.contains(&a.dtype.kind())
            };
            array.filter(fits).map(|array| self.values(array)).transpose()
        };
        let steps = line(&frames.steps, &[Kind::UInt, Kind::Int])?;
        let times = line(&frames.times, &[Kind::Float])?;
        let own = self.plain.tree().frames().filter(|_| frames.native);
        let at = |line: &Option<Vec<[u8; 8]>>, k: u64| line.as_ref()?.get(k as usize).copied();
        let mut moments = Vec::new();
        for k in 0..frames.count {
            let step = match own {
                Some(axis) => axis.step(k)?,
                None => at(&steps, k).map(u64::from_le_bytes),
            };
            moments.push((step, at(&times, k).map(f64::from_le_bytes)));
        }
        Ok(Moments(moments))
    }
}

/// The element type of an array that the metadata calls `dtype` and the file stores as `native`: the
/// same, or bytes in the place of a type that the format lacks. None where they do not fit.
fn restored_type(dtype: DType, native: DType, cast: Option<&Cast>) -> Option<DType> {
    let carried = matches!(
        dtype.kind(),
        Kind::Bool | Kind::Text | Kind::Opaque | Kind::X87 | Kind::ComplexX87
    ) || dtype.numpy().is_none();
    let carrier =
        matches!(native.kind(), Kind::Int | Kind::UInt | Kind::Bool | Kind::Opaque | Kind::Text);
    let bytes = native.size() == 1 || matches!(native.kind(), Kind::Text | Kind::Opaque);
    if let Some(cast) = cast.filter(|_| carrier && bytes) {
        let order = if cast.big_endian { ByteOrder::Big } else { ByteOrder::Little };
        return Some(dtype.with_order(order));
    }
    // Opaque bytes and characters may stand for any type of the same size.
    let alike = dtype.kind() == native.kind() || matches!(native.kind(), Kind::Opaque | Kind::Text);
    let fits = alike || (carried && carrier);
    (fits && dtype.size() == native.size()).then(|| dtype.with_order(native.order()))
}

/// Arrays in memory and decoded ones are always little-endian: reverses elements of `word` bytes that
/// were stored big-endian. Returns false where the bytes are in the file and keep their order.
fn make_little(layout: &mut Layout, word: usize) -> bool {
    match layout {
        Layout::EncodedWhole { codec, .. } => {
            *codec = Arc::new(Reversed { codec: codec.clone(), word });
            true
        }
        Layout::Inline(bytes, _) => {
            let mut reversed = bytes.to_vec();
            reversed.chunks_exact_mut(word).for_each(<[u8]>::reverse);
            *bytes = reversed.into();
            true
        }
        _ => false,
    }
}

/// Decodes and reverses the bytes of each element.
struct Reversed {
    codec: Arc<dyn Codec>,
    word: usize,
}

impl Codec for Reversed {
    fn name(&self) -> &str {
        self.codec.name()
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        self.codec.decode(stored, out)?;
        out.chunks_exact_mut(self.word).for_each(<[u8]>::reverse);
        Ok(())
    }
}

/// The array of frame 0, for formats that store everything in frames.
fn without_frames(array: &ArrayDesc) -> Result<Option<ArrayDesc>> {
    let Layout::PerFrame(table) = &array.layout else { return Ok(Some(array.clone())) };
    let cell = if table.is_empty() { None } else { table.cell(0)? };
    Ok(cell.map(|FrameCell { shape, layout }| ArrayDesc { shape, layout, ..array.clone() }))
}

/// Shape and layout of the same bytes under another shape.
fn recast(native: &ArrayDesc, cast: &Cast, size: usize) -> Result<Option<(Shape, Layout)>> {
    let shape = Shape::new(cast.shape.clone());
    if let Layout::PerFrame(table) = &native.layout {
        let (cast, stored) = (cast.clone(), native.dtype.size());
        let change = move |cell: FrameCell| stacked::recast(&cell, &cast, size, stored);
        let layout = Layout::changed_frames(table, change);
        return Ok(Some((shape, layout)));
    }
    if shape.bytes(size)? != native.bytes()? {
        return Ok(None);
    }
    Ok(native.layout.in_order(cast.order()).map(|layout| (shape, layout)))
}

/// The sums of the lengths before each part and of all, and the latter.
fn starts(lengths: impl Iterator<Item = u64>) -> (Vec<u64>, u64) {
    let mut total = 0_u64;
    let mut starts = vec![0];
    starts.extend(lengths.map(|len| {
        total = total.saturating_add(len);
        total
    }));
    (starts, total)
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn unfit(why: impl Into<String>) -> Error {
    Error::malformed("core-metadata", why)
}
