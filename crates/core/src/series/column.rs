//! An array of a series: its description and where it is in each file.

use std::sync::Arc;

use crate::metadata::{CoordMeta, coords_to_meta};
use crate::physical::Stored;
use crate::semantics::Missing;
use crate::{ArrayDesc, ByteOrder, DType, Extents, FrameCell, Layout, Linear, Result, Tree};

/// An array in all files.
pub(super) struct Column {
    /// Description in the first file, with offsets in the joined source.
    pub(super) first: ArrayDesc,
    /// Where its coordinates are, and what it is the same as.
    pub(super) coords: Vec<Option<CoordMeta>>,
    pub(super) same: Option<String>,
    /// Path of its mesh.
    pub(super) mesh: Option<String>,
    /// By file.
    pub(super) cells: Vec<(usize, FrameCell)>,
    /// Files in which it is a coordinate with the values of the first file.
    pub(super) alike: usize,
    /// Whether it has single and double precision in different files, and is read as `float64`.
    pub(super) widened: bool,
}

impl Column {
    pub(super) fn new(desc: &ArrayDesc, tree: &Tree, start: u64) -> Result<Self> {
        let own = tree.resolve(desc)?;
        let same = same_as(desc, tree);
        let first = ArrayDesc {
            dtype: own.dtype,
            map: own.map,
            layout: own.layout.shifted(start)?,
            ..desc.clone()
        };
        let coords = coords_to_meta(tree, &desc.coords);
        let mesh = mesh_of(desc, tree);
        Ok(Self { first, coords, same, mesh, cells: Vec::new(), alike: 0, widened: false })
    }

    /// Changes an array of floats to `float64`.
    pub(super) fn widen(&mut self) {
        let dtype = std::mem::replace(&mut self.first.dtype, DType::F64);
        self.widened = true;
        if dtype != DType::F64 {
            for layout in self.cells.iter_mut().map(|(_, cell)| &mut cell.layout) {
                *layout = as_f64(dtype, layout.clone());
            }
        }
    }
}

/// Whether the type is `float32` or `float64` in any byte order.
pub(super) fn is_float(dtype: DType) -> bool {
    let little = dtype.with_order(ByteOrder::Little);
    little == DType::F32 || little == DType::F64
}

/// Floats of type `dtype`, read as `float64`.
pub(super) fn as_f64(dtype: DType, layout: Layout) -> Layout {
    // Adding -0.0 keeps the sign of zero.
    let map = Some(Linear::new(-0.0, 1.0));
    Layout::Physical(Arc::new(Stored { dtype, layout, map, missing: Missing::default() }))
}

/// The bytes that decide the values of an array; `None` if they cannot be compared.
pub(super) fn stored_bytes(layout: &Layout) -> Option<Vec<&Extents>> {
    match layout {
        Layout::Plain { extents, .. } | Layout::EncodedWhole { extents, .. } => Some(vec![extents]),
        Layout::Computed(computed) => {
            let inputs = computed.inputs.iter().map(|input| stored_bytes(&input.layout));
            Some(inputs.collect::<Option<Vec<_>>>()?.concat())
        }
        _ => None,
    }
}

/// Path of the mesh of an array.
pub(super) fn mesh_of(desc: &ArrayDesc, tree: &Tree) -> Option<String> {
    desc.semantics().mesh.map(|id| tree.node(id).path.clone())
}

/// The array whose bytes it refers to.
pub(super) fn same_as(desc: &ArrayDesc, tree: &Tree) -> Option<String> {
    desc.layout.same().map(|id| tree.node(id).path.clone())
}
