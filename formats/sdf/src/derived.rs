//! Arrays that are computed from others, when they are read.

use std::sync::Arc;

use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Codec, Coord, Extent, Extents, Layout};
use spile_core::shape::{Order, Shape};
use spile_core::tree::{NodeId, Tree};

use crate::view::DERIVED;

/// The array of the points between the nodes of `axis`, made the first time it is asked for;
/// nothing where the nodes are no numbers.
pub(crate) fn midpoints(tree: &mut Tree, axis: NodeId) -> Result<Option<NodeId>> {
    beside(tree, axis, "mid", "between the nodes", |desc, shape, extents| {
        let real = desc.dtype.kind() == Kind::Float && matches!(desc.dtype.size(), 4 | 8);
        let codec = Arc::new(Midpoints(desc.dtype));
        let layout = Layout::Text { extents: extents.clone(), codec, order: Order::F };
        real.then(|| ArrayDesc::new(desc.dtype, shape, layout))
    })
}

/// All nodes of `axis` but the first. EPOCH has as many points on the faces as there are cells:
/// the face at the upper end of each.
pub(crate) fn faces(tree: &mut Tree, axis: NodeId) -> Result<Option<NodeId>> {
    beside(tree, axis, "face", "the upper faces of the cells", |desc, shape, extents| {
        let size = desc.dtype.size() as u64;
        let [Extent { offset, len }] = *extents.parts() else { return None };
        let extents = Extents::one(offset.checked_add(size)?, len.checked_sub(size)?);
        let layout = Layout::Plain { extents, order: Order::F };
        Some(ArrayDesc::new(desc.dtype, shape, layout))
    })
}

/// An array beside `axis` with one element less.
fn beside(
    tree: &mut Tree,
    axis: NodeId,
    ending: &str,
    words: &str,
    make: impl Fn(&ArrayDesc, Shape, &Extents) -> Option<ArrayDesc>,
) -> Result<Option<NodeId>> {
    let node = tree.node(axis);
    let name = format!("{}_{ending}", node.name);
    if let Some(known) = tree.child(node.parent, &name) {
        let ours = tree.node(known).attrs.iter().any(|(name, _)| name == DERIVED);
        return Ok(ours.then_some(known));
    }
    let node = node.clone();
    let Some(nodes) = node.array else { return Ok(None) };
    let Layout::Plain { extents, .. } = &nodes.layout else { return Ok(None) };
    let Some(count) = nodes.shape.lengths().first().and_then(|n| n.checked_sub(1)) else {
        return Ok(None);
    };
    let Some(mut desc) = make(&nodes, Shape::new([count]), extents) else { return Ok(None) };
    desc.dims.clone_from(&nodes.dims);
    desc.map = nodes.map;
    let id = tree.add_array(node.parent, &name, desc)?;
    let mut attrs = vec![(DERIVED.to_string(), words.into())];
    attrs.extend(node.attrs.into_iter().filter(|(name, _)| name == "units"));
    tree.node_mut(id).attrs = attrs;
    Ok(Some(id))
}

/// A field that is on nodes in the directions `along`, averaged to the middle of the cells there:
/// an array `NAME_centred` beside it.
pub(crate) fn centred(
    tree: &mut Tree,
    field: NodeId,
    along: &[bool],
    axes: &[NodeId],
) -> Result<()> {
    let node = tree.node(field).clone();
    let Some(desc) = node.array.filter(|d| d.shape.rank() == along.len()) else { return Ok(()) };
    let Layout::Plain { extents, .. } = &desc.layout else { return Ok(()) };
    let real = desc.dtype.kind() == Kind::Float && matches!(desc.dtype.size(), 4 | 8);
    let lengths = desc.shape.lengths();
    let enough = lengths.iter().zip(along).all(|(n, on)| !on || *n > 1);
    if !real || !enough || !along.contains(&true) {
        return Ok(());
    }
    let shape: Vec<u64> = lengths.iter().zip(along).map(|(n, on)| n - u64::from(*on)).collect();
    let (dtype, along) = (desc.dtype, along.to_vec());
    let codec = Arc::new(Average { dtype, lengths: lengths.to_vec(), along: along.clone() });
    let layout = Layout::Text { extents: extents.clone(), codec, order: Order::F };
    let mut new = ArrayDesc::new(dtype, Shape::new(shape), layout);
    (new.dims, new.coords, new.map) = (desc.dims, desc.coords, desc.map);
    for (axis, id) in axes.iter().enumerate().take(along.len()).filter(|(axis, _)| along[*axis]) {
        new.coords[axis] = midpoints(tree, *id)?.map_or(Coord::None, Coord::Node);
    }
    let id = tree.add_array(node.parent, &format!("{}_centred", node.name), new)?;
    let mut attrs = vec![(DERIVED.to_string(), "averaged to the middle of the cells".into())];
    attrs.extend(node.attrs.into_iter().filter(|(name, _)| name == "units" || name == "mesh"));
    tree.node_mut(id).attrs = attrs;
    Ok(())
}

/// The rank that had each cell, from the last cells of the ranks but the last in every direction:
/// an array `NAME_map` beside them. Ranks are counted with the first direction fastest.
pub(crate) fn ranks(tree: &mut Tree, split: NodeId, dims: &[u64], cells: Vec<u64>) -> Result<()> {
    let node = tree.node(split).clone();
    let Some(desc) = node.array else { return Ok(()) };
    let Layout::Plain { extents, .. } = &desc.layout else { return Ok(()) };
    let wanted = dims.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
    if desc.dtype.kind() != Kind::Int || wanted != desc.shape.count() {
        return Ok(());
    }
    let codec = Arc::new(Ranks { dtype: desc.dtype, dims: dims.to_vec(), cells: cells.clone() });
    let layout = Layout::Text { extents: extents.clone(), codec, order: Order::F };
    let map = ArrayDesc::new(DType::I32, Shape::new(cells), layout);
    let id = tree.add_array(node.parent, &format!("{}_map", node.name), map)?;
    tree.node_mut(id).attrs = vec![(DERIVED.to_string(), "the rank of each cell".into())];
    Ok(())
}

/// Means of neighbours along some directions of an array whose first index runs fastest.
struct Average {
    dtype: DType,
    lengths: Vec<u64>,
    along: Vec<bool>,
}

impl Codec for Average {
    fn name(&self) -> &'static str {
        "average"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut values = numbers(self.dtype, stored);
        let mut inner = 1_usize;
        for (length, on) in self.lengths.iter().zip(&self.along) {
            let length = *length as usize;
            if *on {
                let pairs = |plane: &[f64]| -> Vec<f64> {
                    let next = plane.get(inner..).unwrap_or(&[]);
                    plane.iter().zip(next).map(|(a, b)| 0.5 * (a + b)).collect()
                };
                values = values.chunks(inner * length).flat_map(pairs).collect();
            }
            inner *= length - usize::from(*on);
        }
        store(self.dtype, &values, out)
    }
}

/// The rank of each cell.
struct Ranks {
    dtype: DType,
    /// Numbers of last cells in every direction.
    dims: Vec<u64>,
    cells: Vec<u64>,
}

impl Codec for Ranks {
    fn name(&self) -> &'static str {
        "ranks"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let last = numbers(self.dtype, stored);
        let mut rest = &last[..];
        let (mut map, mut below) = (vec![0.0], 1.0);
        for (number, cells) in self.dims.iter().zip(&self.cells) {
            let (here, others) = rest.split_at((*number as usize).min(rest.len()));
            rest = others;
            let rank = |cell: u64| here.iter().filter(|end| **end <= cell as f64).count() as f64;
            let ranks: Vec<f64> = (0..*cells).map(|cell| below * rank(cell)).collect();
            map = ranks.iter().flat_map(|r| map.iter().map(move |m| m + r)).collect();
            below *= *number as f64 + 1.0;
        }
        store(DType::I32, &map, out)
    }
}

/// Half-way between neighbours.
struct Midpoints(DType);

impl Codec for Midpoints {
    fn name(&self) -> &'static str {
        "midpoints"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let nodes = numbers(self.0, stored);
        let between: Vec<f64> = nodes.windows(2).map(|w| 0.5 * (w[0] + w[1])).collect();
        store(self.0, &between, out)
    }
}

fn numbers(dtype: DType, stored: &[u8]) -> Vec<f64> {
    let mut bytes = stored.to_vec();
    convert::to_little(dtype, &mut bytes);
    let mut numbers = Vec::new();
    convert::to_f64(dtype, None, &bytes, &mut numbers);
    numbers
}

fn store(dtype: DType, values: &[f64], out: &mut [u8]) -> Result<()> {
    let mut bytes = Vec::new();
    convert::from_f64(dtype, None, values, &mut bytes);
    if bytes.len() != out.len() {
        let message = format!("{} bytes computed, {} promised", bytes.len(), out.len());
        return Err(Error::malformed("sdf-015", message));
    }
    out.copy_from_slice(&bytes);
    Ok(())
}
