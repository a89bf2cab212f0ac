//! Complex arrays as two arrays of real numbers, for formats without complex numbers.

use std::collections::HashMap;
use std::sync::Arc;

use spile_core::Dataset;
use spile_core::computed::{Computed, Function};
use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::format::{Loss, LossKind};
use spile_core::frames::FrameCell;
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::Order;
use spile_core::tree::{NodeId, ROOT, Tree};

/// Number of elements that are split at once, except for longer rows.
const PIECE: u64 = 1 << 16;

/// Ends of the names of the real and the imaginary part.
const PARTS: [&str; 2] = ["_real", "_imag"];

/// Type of the parts of a complex type; `None` for other types, and for those without a type of the parts.
fn part_dtype(dtype: DType) -> Option<DType> {
    match (dtype.kind(), dtype.size()) {
        (Kind::Complex, 8) => Some(DType::F32),
        (Kind::Complex, 16) => Some(DType::F64),
        _ => None,
    }
}

/// `content` with the arrays `NAME_real` and `NAME_imag` in place of each complex array; `None` if it has no such array.
pub fn split_complex(content: &Dataset) -> Result<Option<Dataset>> {
    let old = content.tree();
    if !old.arrays().any(|(_, _, desc)| part_dtype(desc.dtype).is_some()) {
        return Ok(None);
    }
    let mut tree = Tree::new(content.limits());
    tree.set_attrs(ROOT, old.attrs().clone())?;
    if let Some(frames) = old.frames() {
        tree.set_frames(frames.clone());
    }
    let mut new_ids = HashMap::from([(ROOT, ROOT)]);
    for (id, node) in old.iter() {
        let parent = new_ids[&node.parent];
        let parts = match &node.array {
            None => vec![tree.add_group(parent, &node.name)?],
            Some(own) => match part_dtype(own.dtype) {
                None => vec![tree.add_array(parent, &node.name, own.clone())?],
                Some(dtype) => {
                    let stored = old.resolve(own)?;
                    let mut parts = Vec::new();
                    for (k, end) in PARTS.iter().enumerate() {
                        let name = format!("{}{end}", node.name);
                        let layout = part_layout(stored, k, dtype);
                        let part = ArrayDesc { dtype, layout, ..own.clone() };
                        parts.push(tree.add_array(parent, &name, part)?);
                    }
                    parts
                }
            },
        };
        for part in &parts {
            tree.set_attrs(*part, node.attrs.clone())?;
        }
        if let [only] = parts[..] {
            tree.node_mut(only).id.clone_from(&node.id);
        }
        new_ids.insert(id, parts[0]);
    }
    relink(&mut tree, &new_ids);
    Ok(Some(content.with_tree(tree)))
}

/// Makes coordinates, meshes and references between arrays refer to the nodes of `tree`.
fn relink(tree: &mut Tree, new_ids: &HashMap<NodeId, NodeId>) {
    let ids: Vec<NodeId> = tree.arrays().map(|(id, ..)| id).collect();
    for id in ids {
        let Some(array) = tree.array_mut(id) else { continue };
        for coord in &mut array.coords {
            if let Coord::Node(old) = coord {
                *coord = new_ids.get(old).map_or(Coord::None, |new| Coord::Node(*new));
            }
        }
        if let Some(meaning) = &mut array.meaning {
            meaning.mesh = meaning.mesh.and_then(|mesh| new_ids.get(&mesh).copied());
        }
        if let Some(new) = array.layout.same().and_then(|old| new_ids.get(&old)) {
            array.layout = Layout::Same(*new);
        }
    }
}

/// The layout of part `k` of a complex array.
fn part_layout(array: &ArrayDesc, k: usize, dtype: DType) -> Layout {
    if let Layout::PerFrame(table) = &array.layout {
        let array = array.clone();
        return Layout::changed_frames(table, move |cell| {
            let FrameCell { shape, layout } = cell;
            let own = ArrayDesc { shape: shape.clone(), layout, ..array.clone() };
            Ok(Some(FrameCell { shape, layout: part_layout(&own, k, dtype) }))
        });
    }
    let order = array.order();
    let lengths = array.shape.lengths();
    let rows = match order {
        Order::C => lengths.first(),
        Order::F => lengths.last(),
    };
    let rows = rows.copied().unwrap_or(1).max(1);
    let row = (array.shape.count().unwrap_or(0) / rows).max(1);
    Layout::Computed(Arc::new(Computed {
        inputs: vec![array.clone()],
        function: Arc::new(Part { number: k, size: dtype.size(), row }),
        piece: (PIECE / row).clamp(1, rows) * row,
        order,
    }))
}

/// The real (0) or imaginary (1) part of complex elements.
struct Part {
    number: usize,
    /// Bytes of a part.
    size: usize,
    /// Elements for each index of the slowest dimension.
    row: u64,
}

impl Function for Part {
    fn name(&self) -> &str {
        if self.number == 0 { "real part" } else { "imaginary part" }
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(2 * self.size as u64)
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let Some(array) = inputs.first() else { return Ok(()) };
        let order = array.order();
        let (rows, from) = ((out.len() / self.size) as u64 / self.row, first / self.row);
        let rows = Slice::range(from, from + rows);
        let selection = match (array.shape().rank(), order) {
            (0, _) => Selection::all(),
            (_, Order::C) => Selection(vec![rows, Slice::Rest]),
            (_, Order::F) => Selection(vec![Slice::Rest, rows]),
        };
        let values = array.read_bytes(&selection, Axes::Order(order))?;
        let parts = values.chunks_exact(self.size).skip(self.number).step_by(2);
        for (slot, part) in out.chunks_exact_mut(self.size).zip(parts) {
            slot.copy_from_slice(part);
        }
        Ok(())
    }
}

/// The losses of `content`, given those of [`split_complex`]: complex arrays have other names, or are lost with their
/// parts.
pub fn complex_losses(content: &Dataset, of_parts: Vec<Loss>) -> Vec<Loss> {
    let complex = content.arrays().filter(|(_, _, desc)| part_dtype(desc.dtype).is_some());
    let mut parts = HashMap::new();
    let mut losses = Vec::new();
    for (_, node, _) in complex {
        let [real, imaginary] = PARTS.map(|end| format!("{}{end}", node.path));
        let is_lost = |loss: &Loss| loss.path == real && loss.kind == LossKind::Array;
        if !of_parts.iter().any(is_lost) {
            let reason = format!("complex numbers are written as {real} and {imaginary}");
            losses.push(Loss::new(&node.path, LossKind::Name, reason));
        }
        parts.insert(real, Some(node.path.clone()));
        parts.insert(imaginary, None);
    }
    let own = of_parts.into_iter().filter_map(|loss| match parts.get(&loss.path) {
        None => Some(loss),
        Some(path) => Some(Loss { path: path.clone()?, ..loss }),
    });
    losses.extend(own);
    losses
}
