//! Plain arrays and what is said about them, put together to the tree they come from.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::lay::NAME;
use super::stacked::{Recast, Rows, Stacked, Whole, cell_shape};
use super::{Cast, Description, Frames, Held, Said, SaidArray, coords};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::format::Reader;
use crate::frames::{FrameCell, Moments};
use crate::layout::{ArrayDesc, Codec, Coord, Layout, Linear};
use crate::limits::Limits;
use crate::read::{Array, Axes};
use crate::select::Selection;
use crate::shape::{Order, Shape};
use crate::source::Source;
use crate::tree::{Node, NodeId, ROOT, Tree};
use crate::wire::ByteOrder;

impl Description {
    /// The tree that was described, with the bytes of the arrays of `plain`. Arrays that are not what
    /// the description says, or that it does not know, stay as they are.
    pub fn dress(&self, source: &Source, plain: &Tree, limits: &Limits) -> Result<Tree> {
        Dresser {
            said: self,
            by_path: self.nodes.iter().map(|said| (said.path.as_str(), said)).collect(),
            source,
            plain,
            limits,
            used: self.made.iter().map(String::as_str).collect(),
        }
        .tree()
    }
}

/// The tree that the file's description gives back; nothing if it has none.
pub(crate) fn found(reader: &dyn Reader, limits: &Limits) -> Result<Option<Tree>> {
    let tree = reader.tree();
    let Some(id) = tree.at(NAME) else { return Ok(None) };
    let Some(array) = &tree.node(id).array else { return Ok(None) };
    let text = match &array.layout {
        Layout::PerFrame(_) => Array::open_frame(reader.source(), tree, array, 0, limits)?,
        _ => Some(Array::open(reader.source(), tree, array, limits)?),
    };
    let bytes = |dtype: DType| dtype.size() == 1 || dtype.kind() == Kind::Text;
    let Some(text) = text.filter(|text| bytes(text.dtype())) else { return Ok(None) };
    let text = text.read(&Selection::all(), Axes::Stored)?;
    let mut said = Description::parse(&text, limits)?;
    said.made(NAME);
    said.dress(reader.source(), tree, limits).map(Some)
}

struct Dresser<'a> {
    said: &'a Description,
    by_path: HashMap<&'a str, &'a Said>,
    source: &'a Source,
    plain: &'a Tree,
    limits: &'a Limits,
    /// Arrays of the file that are, or shall not be, in the tree.
    used: HashSet<&'a str>,
}

impl<'a> Dresser<'a> {
    fn tree(mut self) -> Result<Tree> {
        // Whoever goes through frames that take no bytes must come to an end.
        self.limits.allow(self.frame_count().saturating_mul(32), "the frames")?;
        let mut tree = Tree::new(self.limits);
        tree.node_mut(ROOT).attrs.clone_from(&self.said.attrs);
        let mut added: Vec<(NodeId, &SaidArray)> = Vec::new();
        for said in &self.said.nodes {
            let (parent, name) = split(&said.path);
            let parent = tree.at(parent).filter(|id| tree.node(*id).array.is_none());
            if tree.at(&said.path).is_some() {
                return Err(unfit(format!("\"{}\" is described twice", said.path)));
            }
            let parent = parent.ok_or_else(|| unfit(format!("\"{}\" is nowhere", said.path)))?;
            let id = match &said.array {
                None => tree.add_group(parent, name)?,
                Some(array) => match self.array(said, array)? {
                    None => continue,
                    Some(desc) => {
                        let id = tree.add_array(parent, name, desc)?;
                        added.push((id, array));
                        id
                    }
                },
            };
            let node = tree.node_mut(id);
            (node.id, node.attrs) = (said.id.clone(), said.attrs.clone());
        }
        for (id, said) in added {
            let rank = tree.node(id).array.as_ref().map_or(0, |array| array.shape.rank());
            let coords = coords(&said.coords, rank, |path| tree.at(path));
            let same = match &said.held {
                Held::Same(path) => Some(tree.at(path).ok_or_else(|| {
                    unfit(format!(
                        "\"{}\" is the same as one that is not there",
                        tree.node(id).path
                    ))
                })?),
                _ => None,
            };
            if let Some(array) = &mut tree.node_mut(id).array {
                array.coords = coords;
                if let Some(same) = same {
                    array.layout = Layout::Same(same);
                }
            }
        }
        self.rest(&mut tree)?;
        if let Some(frames) = &self.said.frames {
            tree.set_frames(match self.plain.frames() {
                Some(own) if frames.own && frames.times.is_none() => own.clone(),
                _ => Arc::new(self.moments(frames)?),
            });
        }
        Ok(tree)
    }

    /// Arrays that somebody else put there.
    fn rest(&self, tree: &mut Tree) -> Result<()> {
        for (_, node, array) in self.plain.arrays() {
            if self.used.contains(node.path.as_str()) {
                continue;
            }
            let parent = tree.group_at(split(&node.path).0)?;
            let mut array = array.clone();
            array.coords.clear();
            array.coords.resize(array.shape.rank(), Coord::None);
            let id = tree.add_array(parent, &node.name, array)?;
            let copy = tree.node_mut(id);
            (copy.id, copy.attrs) = (node.id.clone(), node.attrs.clone());
        }
        Ok(())
    }

    /// The array, or nothing if the file has none that fits.
    fn array(&mut self, said: &'a Said, array: &'a SaidArray) -> Result<Option<ArrayDesc>> {
        if let Held::Same(path) = &array.held {
            // References are never to references.
            let other = self.by_path.get(path.as_str()).copied();
            let found = other.and_then(|said| Some((said, said.array.as_ref()?)));
            let Some((other, found)) = found.filter(|(_, a)| !matches!(a.held, Held::Same(_)))
            else {
                return Ok(None);
            };
            let desc = self.array(other, found)?;
            return Ok(desc.map(|desc| ArrayDesc { dims: array.dims.clone(), ..desc }));
        }
        let at = array.at.as_deref().unwrap_or(&said.path);
        let Some(native) = self.native(at) else { return Ok(None) };
        let native = match array.held {
            Held::Own => Some(native.clone()),
            _ => without_frames(native)?,
        };
        let Some(mut native) = native else { return Ok(None) };
        let cast = array.cast.as_ref();
        let Some(mut dtype) = dressed_type(array.dtype, native.dtype, cast) else {
            return Ok(None);
        };
        if cast.is_some_and(|cast| cast.big_endian)
            && little(&mut native.layout, dtype.word().max(1))
        {
            dtype = dtype.with_order(ByteOrder::Little);
        }
        let native = &native;
        let size = dtype.size();
        let parts = match (&array.held, cast) {
            (Held::Whole | Held::Own, None) => Some((native.shape.clone(), native.layout.clone())),
            (Held::Whole | Held::Own, Some(cast)) => whole(native, cast, size)?,
            (Held::Frames, _) => self.even(array, native, size)?,
            (Held::Rows(rows), _) => self.rows(array, native, rows, size)?,
            (Held::Sizes(sizes), _) => self.sizes(native, sizes)?,
            (Held::Same(_), _) => None,
        };
        let Some((shape, layout)) = parts.filter(|(shape, _)| shape.rank() == array.dims.len())
        else {
            return Ok(None);
        };
        self.used.insert(at);
        let mut desc = ArrayDesc::new(dtype, shape, layout);
        desc.dims.clone_from(&array.dims);
        desc.map = array.map.as_ref().map(Linear::from);
        Ok(Some(desc))
    }

    fn native(&self, path: &str) -> Option<&'a ArrayDesc> {
        let node: &'a Node = self.plain.node(self.plain.at(path)?);
        node.array.as_ref()
    }

    fn frame_count(&self) -> u64 {
        self.said.frames.as_ref().map_or(0, |frames| frames.count)
    }

    fn even(
        &self,
        said: &SaidArray,
        native: &ArrayDesc,
        size: usize,
    ) -> Result<Option<(Shape, Layout)>> {
        let count = self.frame_count();
        let (cell, order) = match (&said.cast, native.shape.lengths()) {
            (Some(cast), _) => (Shape::new(cast.shape.clone()), cast.order()),
            (None, [first, cell @ ..]) if *first == count => (Shape::new(cell), Order::C),
            _ => return Ok(None),
        };
        let bytes = cell.bytes(size)?;
        let rows = Rows::Even { count, cell: cell.clone() };
        let layout = self.stacked(native, bytes, bytes.checked_mul(count), rows, order);
        Ok(layout.map(|layout| (cell, layout)))
    }

    fn rows(
        &self,
        said: &SaidArray,
        native: &ArrayDesc,
        rows: &str,
        size: usize,
    ) -> Result<Option<(Shape, Layout)>> {
        let Some(rows) = self.numbers(rows)? else { return Ok(None) };
        let scalars = said.dims.is_empty();
        let (tail, order) = match (&said.cast, native.shape.lengths()) {
            (Some(cast), _) => (cast.shape.get(1..).unwrap_or(&[]), cast.order()),
            (None, [_, tail @ ..]) => (tail, Order::C),
            (None, []) => return Ok(None),
        };
        let mut starts = Vec::with_capacity(rows.len() + 1);
        let mut total = 0_u64;
        starts.push(0);
        for n in &rows {
            total = total.saturating_add(u64::try_from(*n).unwrap_or(0));
            starts.push(total);
        }
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
        // As they lie in the file, whatever their shape; what cannot be cut stays whole.
        let whole = match (&native.layout, native.order()) {
            (Layout::Text { .. }, _) => Whole::Text {
                desc: native.clone(),
                source: self.source.clone(),
                limits: *self.limits,
                numbers: OnceLock::new(),
            },
            (layout, Order::C) => Whole::Layout(layout.clone()),
            (layout, Order::F) => Whole::Layout(layout.in_order(Order::C)?),
        };
        if let Whole::Layout(layout) = &whole {
            layout.rows(0, row_bytes.min(bytes?))?;
        }
        Some(Layout::PerFrame(Arc::new(Stacked { whole, row_bytes, rows, order })))
    }

    fn sizes(&self, native: &ArrayDesc, sizes: &str) -> Result<Option<(Shape, Layout)>> {
        let (Some(sizes), Layout::Plain { extents, .. }) = (self.numbers(sizes)?, &native.layout)
        else {
            return Ok(None);
        };
        let mut starts = Vec::with_capacity(sizes.len() + 1);
        let mut total = 0_u64;
        starts.push(0);
        for size in &sizes {
            total = total.saturating_add(u64::try_from(*size).unwrap_or(u64::MAX));
            starts.push(total);
        }
        let shape = Shape::new([sizes.len() as u64]);
        let layout = Layout::Ragged { starts: starts.into(), data: extents.clone() };
        Ok((total == extents.len()).then_some((shape, layout)))
    }

    /// The whole numbers of a line of 64-bit integers.
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
        let array = Array::open(self.source, self.plain, &array, self.limits)?;
        let bytes = array.read(&Selection::all(), Axes::Order(Order::C))?;
        Ok(bytes.as_chunks::<8>().0.to_vec())
    }

    fn moments(&self, frames: &Frames) -> Result<Moments> {
        let line = |path: &Option<String>, kind: Kind| -> Result<Option<Vec<[u8; 8]>>> {
            let array = path.as_deref().and_then(|path| self.native(path));
            let fits = |a: &&ArrayDesc| {
                a.shape == Shape::new([frames.count])
                    && a.dtype.size() == 8
                    && a.dtype.kind() == kind
            };
            array.filter(fits).map(|array| self.values(array)).transpose()
        };
        let steps = line(&frames.steps, Kind::UInt)?;
        let times = line(&frames.times, Kind::Float)?;
        let own = self.plain.frames().filter(|_| frames.own);
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

/// What is said to be `said` and stored as `native`: the same, or bytes for a type that the file's
/// format lacks.
fn dressed_type(said: DType, native: DType, cast: Option<&Cast>) -> Option<DType> {
    let carried = matches!(
        said.kind(),
        Kind::Bool | Kind::Text | Kind::Opaque | Kind::X87 | Kind::ComplexX87
    ) || said.numpy().is_none();
    let carrier =
        matches!(native.kind(), Kind::Int | Kind::UInt | Kind::Bool | Kind::Opaque | Kind::Text);
    let bytes = native.size() == 1 || matches!(native.kind(), Kind::Text | Kind::Opaque);
    if let Some(cast) = cast.filter(|_| carrier && bytes) {
        let order = if cast.big_endian { ByteOrder::Big } else { ByteOrder::Little };
        return Some(said.with_order(order));
    }
    // Bytes without a meaning can be anything, and so can characters, which is all that some have.
    let alike = said.kind() == native.kind() || matches!(native.kind(), Kind::Opaque | Kind::Text);
    let fits = alike || (carried && carrier);
    (fits && said.size() == native.size()).then(|| said.with_order(native.order()))
}

/// What is in memory or written as text is always little-endian: numbers of `word` bytes that were not
/// are turned round. False where the bytes are in the file, and keep their order.
fn little(layout: &mut Layout, word: usize) -> bool {
    match layout {
        Layout::Text { codec, .. } => {
            *codec = Arc::new(Turned { codec: codec.clone(), word });
            true
        }
        Layout::Inline(bytes, _) => {
            let mut turned = bytes.to_vec();
            turned.chunks_exact_mut(word).for_each(<[u8]>::reverse);
            *bytes = turned.into();
            true
        }
        _ => false,
    }
}

/// Numbers whose first byte was the highest.
struct Turned {
    codec: Arc<dyn Codec>,
    word: usize,
}

impl Codec for Turned {
    fn name(&self) -> &str {
        self.codec.name()
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        self.codec.decode(stored, out)?;
        out.chunks_exact_mut(self.word).for_each(<[u8]>::reverse);
        Ok(())
    }
}

/// An array of a file that has everything in frames, if it is in the first one only.
fn without_frames(array: &ArrayDesc) -> Result<Option<ArrayDesc>> {
    let Layout::PerFrame(table) = &array.layout else { return Ok(Some(array.clone())) };
    let cell = if table.is_empty() { None } else { table.cell(0)? };
    Ok(cell.map(|FrameCell { shape, layout }| ArrayDesc { shape, layout, ..array.clone() }))
}

/// The same bytes in another shape.
fn whole(native: &ArrayDesc, cast: &Cast, size: usize) -> Result<Option<(Shape, Layout)>> {
    let shape = Shape::new(cast.shape.clone());
    if let Layout::PerFrame(table) = &native.layout {
        let (table, cast, held) = (table.clone(), cast.clone(), native.dtype.size());
        let layout = Layout::PerFrame(Arc::new(Recast { table, cast, size, held }));
        return Ok(Some((shape, layout)));
    }
    if shape.bytes(size)? != native.bytes()? {
        return Ok(None);
    }
    Ok(native.layout.in_order(cast.order()).map(|layout| (shape, layout)))
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn unfit(why: impl Into<String>) -> Error {
    Error::malformed("core-description", why)
}
