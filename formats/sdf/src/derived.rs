//! The points beside the nodes of a mesh that only SDF has.

use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Extent, Extents, Layout};
use spile_core::points::beside;
use spile_core::shape::Order;
use spile_core::tree::{NodeId, Tree};

/// All nodes of `axis` but the first. EPOCH has as many points on the faces as there are cells:
/// the face at the upper end of each.
pub(crate) fn faces(tree: &mut Tree, axis: NodeId) -> Result<Option<NodeId>> {
    beside(tree, axis, "face", "the upper faces of the cells", |desc, shape| {
        let size = desc.dtype.size() as u64;
        let Layout::Plain { extents, .. } = &desc.layout else { return None };
        let [Extent { offset, len }] = *extents.parts() else { return None };
        let extents = Extents::one(offset.checked_add(size)?, len.checked_sub(size)?);
        let layout = Layout::Plain { extents, order: Order::F };
        Some(ArrayDesc::new(desc.dtype, shape, layout))
    })
}
