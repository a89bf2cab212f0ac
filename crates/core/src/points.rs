//! The points beside those of an axis, computed when they are read: the middle of cells between
//! nodes.

use std::sync::Arc;

use crate::convert;
use crate::dtype::{DType, Kind};
use crate::error::{Error, Result};
use crate::layout::{ArrayDesc, Codec, Layout};
use crate::shape::{Order, Shape};
use crate::tree::{NodeId, Tree};
use crate::wire::ByteOrder;

/// Attribute of arrays that are computed from others.
pub const DERIVED: &str = "derived";

/// The array of the points between the nodes of `axis`, called `AXIS_mid`, made the first time it is
/// asked for; nothing where the nodes are no numbers.
pub fn midpoints(tree: &mut Tree, axis: NodeId) -> Result<Option<NodeId>> {
    beside(tree, axis, "mid", "between the nodes", |desc, shape| {
        let real = desc.dtype.kind() == Kind::Float && matches!(desc.dtype.size(), 4 | 8);
        let (extents, inner) = match &desc.layout {
            Layout::Plain { extents, .. } => (extents, None),
            Layout::Text { extents, codec, .. } => (extents, Some(codec.clone())),
            Layout::Encoded { starts, decoded, data, codec, .. } => {
                let (starts, decoded, codec) = (starts.clone(), decoded.clone(), codec.clone());
                let whole = Whole { starts, decoded, codec, dtype: desc.dtype };
                (data, Some(Arc::new(whole) as Arc<dyn Codec>))
            }
            _ => return None,
        };
        let codec = Arc::new(Midpoints { dtype: desc.dtype, inner });
        let layout = Layout::Text { extents: extents.clone(), codec, order: Order::F };
        real.then(|| ArrayDesc::new(desc.dtype, shape, layout))
    })
}

/// The nodes whose middles `middles` is, if it is such an array: the one beside it that has its name
/// without `_mid` and one point more.
pub fn nodes_of(tree: &Tree, middles: NodeId) -> Option<NodeId> {
    nodes_beside(tree, middles, "mid")
}

/// The same for an array of another ending.
pub fn nodes_beside(tree: &Tree, points: NodeId, ending: &str) -> Option<NodeId> {
    let node = tree.node(points);
    let count = node.array.as_ref()?.shape.lengths().first()?.checked_add(1)?;
    let name = node.name.strip_suffix(ending)?.strip_suffix('_')?;
    let nodes = tree.child(node.parent, name)?;
    let lengths = tree.node(nodes).array.as_ref()?.shape.lengths();
    (lengths == [count]).then_some(nodes)
}

/// An array beside `axis` with one element less, `AXIS_ending`.
pub fn beside(
    tree: &mut Tree,
    axis: NodeId,
    ending: &str,
    words: &str,
    make: impl Fn(&ArrayDesc, Shape) -> Option<ArrayDesc>,
) -> Result<Option<NodeId>> {
    let node = tree.node(axis);
    let name = format!("{}_{ending}", node.name);
    if let Some(known) = tree.child(node.parent, &name) {
        let ours = tree.node(known).attrs.iter().any(|(name, _)| name == DERIVED);
        return Ok(ours.then_some(known));
    }
    let node = node.clone();
    let Some(nodes) = node.array else { return Ok(None) };
    let Some(count) = nodes.shape.lengths().first().and_then(|n| n.checked_sub(1)) else {
        return Ok(None);
    };
    let Some(mut desc) = make(&nodes, Shape::new([count])) else { return Ok(None) };
    desc.dims.clone_from(&nodes.dims);
    desc.map = nodes.map;
    let id = tree.add_array(node.parent, &name, desc)?;
    let mut attrs = vec![(DERIVED.to_string(), words.into())];
    attrs.extend(node.attrs.into_iter().filter(|(name, _)| name == "units"));
    tree.node_mut(id).attrs = attrs;
    Ok(Some(id))
}

/// Half-way between neighbours.
struct Midpoints {
    dtype: DType,
    /// What makes numbers of what is stored, where those are none.
    inner: Option<Arc<dyn Codec>>,
}

impl Codec for Midpoints {
    fn name(&self) -> &'static str {
        "midpoints"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let nodes = if let Some(inner) = &self.inner {
            let mut nodes = vec![0; out.len() + self.dtype.size()];
            inner.decode(stored, &mut nodes)?;
            numbers(self.dtype.with_order(ByteOrder::Little), &nodes)
        } else {
            numbers(self.dtype, stored)
        };
        let between: Vec<f64> = nodes.windows(2).map(|w| 0.5 * (w[0] + w[1])).collect();
        store(self.dtype, &between, out)
    }
}

/// All parts of an array that is encoded in parts, as little-endian numbers.
struct Whole {
    starts: Arc<[u64]>,
    decoded: Arc<[u64]>,
    codec: Arc<dyn Codec>,
    dtype: DType,
}

impl Codec for Whole {
    fn name(&self) -> &str {
        self.codec.name()
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let short = || Error::malformed("core-points", "parts that are not there");
        for (from, to) in self.starts.windows(2).zip(self.decoded.windows(2)) {
            let part = stored.get(from[0] as usize..from[1] as usize).ok_or_else(short)?;
            let place = out.get_mut(to[0] as usize..to[1] as usize).ok_or_else(short)?;
            self.codec.decode(part, place)?;
        }
        convert::to_little(self.dtype, out);
        Ok(())
    }
}

/// Stored numbers, as `f64`.
pub fn numbers(dtype: DType, stored: &[u8]) -> Vec<f64> {
    let mut bytes = stored.to_vec();
    convert::to_little(dtype, &mut bytes);
    let mut numbers = Vec::new();
    convert::to_f64(dtype, None, &bytes, &mut numbers);
    numbers
}

/// Computed numbers where a codec has to put them.
pub fn store(dtype: DType, values: &[f64], out: &mut [u8]) -> Result<()> {
    let mut bytes = Vec::new();
    convert::from_f64(dtype, None, values, &mut bytes);
    if bytes.len() != out.len() {
        let message = format!("{} bytes computed, {} promised", bytes.len(), out.len());
        return Err(Error::malformed("core-points", message));
    }
    out.copy_from_slice(&bytes);
    Ok(())
}
