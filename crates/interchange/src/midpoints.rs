//! Cell centres of an axis, computed from its nodes on reading.

use std::sync::Arc;

use spile_core::computed::{Computed, Function, store_f64};
use spile_core::{
    Array, ArrayDesc, Attrs, Axes, DType, Kind, Layout, NodeId, Order, Result, Selection, Shape,
    Slice, Tree,
};

/// Attribute of computed arrays; its value describes the computation.
pub const DERIVED: &str = "derived";

/// Number of elements computed at once.
const PIECE: u64 = 32 << 10;

/// The array of cell centres of `axis`, called `AXIS_mid`, created at the first call; `None` if the nodes
/// are not `float32` or `float64`, or there are none.
pub fn midpoints(tree: &mut Tree, axis: NodeId) -> Result<Option<NodeId>> {
    beside(tree, axis, "mid", "cell centres", |nodes, shape| {
        let real = nodes.dtype.kind() == Kind::Float && matches!(nodes.dtype.size(), 4 | 8);
        if !real || nodes.layout.frames().is_some() || nodes.layout.same().is_some() {
            return None;
        }
        let function = Arc::new(CellCentres { dtype: nodes.dtype });
        let input = ArrayDesc { map: None, meaning: None, ..nodes.clone() };
        let computed = Computed { inputs: vec![input], function, piece: PIECE, order: Order::F };
        Some(ArrayDesc::new(nodes.dtype, shape, Layout::Computed(Arc::new(computed))))
    })
}

/// The nodes of an array of cell centres: the array in the same group with the name without `_mid` and one
/// point more; `None` if there is none.
pub fn nodes_of(tree: &Tree, centres: NodeId) -> Option<NodeId> {
    nodes_beside(tree, centres, "mid")
}

/// The nodes of an array called `NODES_ending`: the array `NODES` in the same group with one point more;
/// `None` if there is none.
pub fn nodes_beside(tree: &Tree, points: NodeId, ending: &str) -> Option<NodeId> {
    let node = tree.node(points);
    let count = node.array.as_ref()?.shape.lengths().first()?.checked_add(1)?;
    let name = node.name.strip_suffix(ending)?.strip_suffix('_')?;
    let nodes = tree.child(node.parent, name)?;
    let lengths = tree.array(nodes)?.shape.lengths();
    (lengths == [count]).then_some(nodes)
}

/// Adds an array called `AXIS_ending` with one element less than `axis` to its group, and returns it, or the
/// existing one. `how` is its [`DERIVED`] attribute; `make` gets the axis and the new shape. `None` if
/// `make` returns `None` or another array has the name.
pub fn beside(
    tree: &mut Tree,
    axis: NodeId,
    ending: &str,
    how: &str,
    make: impl Fn(&ArrayDesc, Shape) -> Option<ArrayDesc>,
) -> Result<Option<NodeId>> {
    let node = tree.node(axis);
    let name = format!("{}_{ending}", node.name);
    if let Some(known) = tree.child(node.parent, &name) {
        return Ok(tree.node(known).attrs.contains(DERIVED).then_some(known));
    }
    let node = node.clone();
    let Some(nodes) = node.array else { return Ok(None) };
    let Some(count) = nodes.shape.lengths().first().and_then(|n| n.checked_sub(1)) else {
        return Ok(None);
    };
    let Some(mut desc) = make(&nodes, Shape::new([count])) else { return Ok(None) };
    desc.dims.clone_from(&nodes.dims);
    desc.map = nodes.map;
    desc.meaning.clone_from(&nodes.meaning);
    let id = tree.add_array(node.parent, &name, desc)?;
    let mut attrs = Attrs::from([(DERIVED, how.into())]);
    attrs.extend(node.attrs.get("units").map(|units| ("units", units.clone())));
    tree.set_attrs(id, attrs)?;
    Ok(Some(id))
}

/// Half-way between neighbouring nodes.
struct CellCentres {
    dtype: DType,
}

impl Function for CellCentres {
    fn name(&self) -> &'static str {
        "cell centres"
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(24)
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let count = (out.len() / self.dtype.size().max(1)) as u64;
        let nodes = Selection(vec![Slice::range(first, first + count + 1)]);
        let nodes = inputs[0].read_f64(&nodes, Axes::Stored)?;
        let centres: Vec<f64> = nodes.windows(2).map(|w| 0.5 * (w[0] + w[1])).collect();
        store_f64(self.dtype, &centres, out)
    }
}
