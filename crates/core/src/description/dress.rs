//! Plain arrays and what is said about them, put together to the tree they come from.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Description, Frames, Held, Said, SaidArray, coords};
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::frames::{FrameCell, FrameTable, Moments};
use crate::layout::{ArrayDesc, Coord, Layout, Linear};
use crate::limits::Limits;
use crate::read::{Array, Axes};
use crate::select::Selection;
use crate::shape::{Order, Shape};
use crate::source::Source;
use crate::tree::{Node, NodeId, ROOT, Tree};

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
            tree.set_frames(Arc::new(self.moments(frames)?));
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
        let Some(dtype) = dressed_type(array.dtype, native.dtype) else { return Ok(None) };
        let parts = match &array.held {
            Held::Whole => Some((native.shape.clone(), native.layout.clone())),
            Held::Frames => self.even(array, native)?,
            Held::Rows(rows) => self.rows(array, native, rows)?,
            Held::Sizes(sizes) => self.sizes(native, sizes)?,
            Held::Same(_) => None,
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

    fn even(&self, said: &SaidArray, native: &ArrayDesc) -> Result<Option<(Shape, Layout)>> {
        let [count, cell @ ..] = native.shape.lengths() else { return Ok(None) };
        if *count != self.frame_count() || cell.len() != said.dims.len() {
            return Ok(None);
        }
        let cell = Shape::new(cell);
        let bytes = cell.bytes(native.dtype.size())?;
        let rows = Rows::Even { count: *count, cell: cell.clone() };
        Ok(stacked(native, bytes, rows).map(|layout| (cell, layout)))
    }

    fn rows(
        &self,
        said: &SaidArray,
        native: &ArrayDesc,
        rows: &str,
    ) -> Result<Option<(Shape, Layout)>> {
        let Some(rows) = self.numbers(rows)? else { return Ok(None) };
        let [all, tail @ ..] = native.shape.lengths() else { return Ok(None) };
        let mut starts = Vec::with_capacity(rows.len() + 1);
        let mut total = 0_u64;
        starts.push(0);
        for n in &rows {
            total = total.saturating_add(u64::try_from(*n).unwrap_or(0));
            starts.push(total);
        }
        let scalars = said.dims.is_empty();
        let lone = |n: &i64| matches!(n, -1 | 1);
        let fits = rows.len() as u64 == self.frame_count()
            && total == *all
            && if scalars { tail.is_empty() && rows.iter().all(lone) } else { true };
        if !fits {
            return Ok(None);
        }
        let bytes = Shape::new(tail).bytes(native.dtype.size())?;
        let there: Vec<bool> = rows.iter().map(|n| *n >= 0).collect();
        let first = rows.iter().find(|n| **n >= 0).map_or(0, |n| n.unsigned_abs());
        let tail = (!scalars).then(|| tail.to_vec());
        let shape = cell_shape(tail.as_deref(), first);
        let rows = Rows::Ragged { starts, there, tail };
        Ok(stacked(native, bytes, rows).map(|layout| (shape, layout)))
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
        let array = Array::open(self.source, self.plain, array, self.limits)?;
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
        if steps.is_none() && times.is_none() {
            self.limits.allow(frames.count.saturating_mul(32), "the frames")?;
        }
        let moment = |k: u64| {
            let at = |line: &Option<Vec<[u8; 8]>>| line.as_ref()?.get(k as usize).copied();
            (at(&steps).map(u64::from_le_bytes), at(&times).map(f64::from_le_bytes))
        };
        Ok(Moments((0..frames.count).map(moment).collect()))
    }
}

/// What is said to be `said` and stored as `native`: the same, or bytes for a type that the file's
/// format lacks.
fn dressed_type(said: DType, native: DType) -> Option<DType> {
    let carried = matches!(said.kind(), Kind::Bool | Kind::Text | Kind::Opaque | Kind::X87)
        || matches!(said.kind(), Kind::ComplexX87);
    let carrier = matches!(native.kind(), Kind::Int | Kind::UInt | Kind::Bool | Kind::Opaque)
        || native.kind() == Kind::Text;
    let fits =
        said.size() == native.size() && (said.kind() == native.kind() || (carried && carrier));
    fits.then(|| said.with_order(native.order()))
}

fn stacked(native: &ArrayDesc, row_bytes: u64, rows: Rows) -> Option<Layout> {
    let whole = native.layout.clone();
    // A layout that cannot be cut stays whole.
    whole.rows(0, row_bytes)?;
    Some(Layout::PerFrame(Arc::new(Stacked { whole, row_bytes, rows })))
}

fn cell_shape(tail: Option<&[u64]>, rows: u64) -> Shape {
    tail.map_or_else(Shape::scalar, |tail| {
        Shape::new(std::iter::once(rows).chain(tail.iter().copied()).collect::<Vec<_>>())
    })
}

/// Frames that lie one after the other.
struct Stacked {
    whole: Layout,
    row_bytes: u64,
    rows: Rows,
}

enum Rows {
    Even {
        count: u64,
        cell: Shape,
    },
    Ragged {
        /// Rows before each frame, and the total at the end.
        starts: Vec<u64>,
        there: Vec<bool>,
        /// Lengths of the other dimensions; none where a frame has one element.
        tail: Option<Vec<u64>>,
    },
}

impl FrameTable for Stacked {
    fn len(&self) -> u64 {
        match &self.rows {
            Rows::Even { count, .. } => *count,
            Rows::Ragged { there, .. } => there.len() as u64,
        }
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let k = frame as usize;
        let (first, rows, shape) = match &self.rows {
            Rows::Even { count, cell } if frame < *count => (frame, 1, cell.clone()),
            Rows::Ragged { starts, there, tail } if there.get(k) == Some(&true) => {
                let rows = starts[k + 1] - starts[k];
                (starts[k], rows, cell_shape(tail.as_deref(), rows))
            }
            _ => return Ok(None),
        };
        let bytes = |rows: u64| rows.saturating_mul(self.row_bytes);
        let layout = self.whole.rows(bytes(first), bytes(rows));
        Ok(layout.map(|layout| FrameCell { shape, layout }))
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn unfit(why: impl Into<String>) -> Error {
    Error::malformed("core-description", why)
}
