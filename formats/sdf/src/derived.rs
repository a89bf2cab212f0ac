//! The points beside the nodes of a mesh, computed when they are read.

use std::sync::Arc;

use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Codec, Extent, Extents, Layout};
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

pub(crate) fn numbers(dtype: DType, stored: &[u8]) -> Vec<f64> {
    let mut bytes = stored.to_vec();
    convert::to_little(dtype, &mut bytes);
    let mut numbers = Vec::new();
    convert::to_f64(dtype, None, &bytes, &mut numbers);
    numbers
}

pub(crate) fn store(dtype: DType, values: &[f64], out: &mut [u8]) -> Result<()> {
    let mut bytes = Vec::new();
    convert::from_f64(dtype, None, values, &mut bytes);
    if bytes.len() != out.len() {
        let message = format!("{} bytes computed, {} promised", bytes.len(), out.len());
        return Err(Error::malformed("sdf-015", message));
    }
    out.copy_from_slice(&bytes);
    Ok(())
}
