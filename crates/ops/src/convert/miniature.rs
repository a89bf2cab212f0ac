//! A file in miniature: everything that is said, and arrays of a few zeros in the place of those with
//! data. What a format does to it, it does to the file, in no time.

use std::collections::HashSet;
use std::sync::Arc;

use spile_core::error::Result;
use spile_core::format::{Dataset, Reader};
use spile_core::frames::{Cells, FrameCell, Moments};
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::shape::Shape;
use spile_core::source::Source;
use spile_core::tree::{ROOT, Tree};

/// Frames of a miniature.
const FRAMES: u64 = 2;

/// Bytes of arrays that keep their shape; there may be a relation between shapes and what is said.
const KEPT: u64 = 16 << 20;

/// Lengths of others that are kept; longer ones become this, or one more where they are odd: nodes and
/// cells differ by one.
const LENGTH: u64 = 4;

/// Makes one.
pub(super) fn miniature(whole: &dyn Reader, limits: &Limits) -> Result<Dataset> {
    let old = whole.tree();
    let mut tree = Tree::new(limits);
    tree.node_mut(ROOT).attrs.clone_from(old.attrs());
    let mut sizes = Sizes::of(old)?;
    // Nodes are added in the same order, so they have the same numbers.
    for (_, node) in old.iter() {
        let id = match &node.array {
            None => tree.add_group(node.parent, &node.name)?,
            Some(array) => {
                let small = small(array, old, &mut sizes)?;
                tree.add_array(node.parent, &node.name, small)?
            }
        };
        let copy = tree.node_mut(id);
        (copy.id, copy.attrs) = (node.id.clone(), node.attrs.clone());
    }
    if let Some(axis) = old.frames() {
        let count = axis.len().min(FRAMES);
        let moments: Result<Vec<_>> =
            (0..count).map(|k| Ok((axis.step(k)?, axis.time(k)?))).collect();
        tree.set_frames(Arc::new(Moments(moments?)));
    }
    let bytes = limits.allow(sizes.longest, "the largest element")?;
    let source = Source::memory(vec![0; bytes]);
    Ok(Dataset { summary: whole.summary(), ..Dataset::new(source, tree) })
}

fn small(array: &ArrayDesc, tree: &Tree, sizes: &mut Sizes) -> Result<ArrayDesc> {
    let mut small = array.clone();
    if let Layout::Same(_) = array.layout {
        small.shape = sizes.reduced(&array.shape);
        return Ok(small);
    }
    small.shape = sizes.reduced(&array.shape);
    small.layout = match &tree.resolve(array)?.layout {
        Layout::PerFrame(table) => {
            let mut cells = Vec::new();
            for frame in 0..table.len().min(FRAMES) {
                cells.push(match table.cell(frame)? {
                    None => None,
                    Some(cell) => {
                        let shape = sizes.reduced(&cell.shape);
                        let layout = zeros(array, &shape, &cell.layout, sizes)?;
                        Some(FrameCell { shape, layout })
                    }
                });
            }
            // An array that is not in the first frames is in one of the others.
            if cells.iter().all(Option::is_none)
                && let Some(last) = cells.last_mut()
            {
                let mut later = (FRAMES..table.len()).map(|frame| table.cell(frame).transpose());
                if let Some(cell) = later.find_map(|cell| cell).transpose()? {
                    let shape = sizes.reduced(&cell.shape);
                    let layout = zeros(array, &shape, &cell.layout, sizes)?;
                    *last = Some(FrameCell { shape, layout });
                }
            }
            Layout::PerFrame(Arc::new(Cells(cells)))
        }
        layout => zeros(array, &small.shape, layout, sizes)?,
    };
    Ok(small)
}

/// As many zeros, of the kind that the array has.
fn zeros(array: &ArrayDesc, shape: &Shape, layout: &Layout, sizes: &mut Sizes) -> Result<Layout> {
    if array.ragged().is_some() {
        let elements = shape.count().unwrap_or(0);
        let starts: Arc<[u64]> = (0..=elements).map(|k| k * array.dtype.size() as u64).collect();
        let bytes = starts.last().copied().unwrap_or(0);
        sizes.longest = sizes.longest.max(bytes);
        return Ok(Layout::Ragged { starts, data: Extents::one(0, bytes) });
    }
    let bytes = shape.bytes(array.dtype.size())?;
    sizes.longest = sizes.longest.max(bytes);
    let order = ArrayDesc { layout: layout.clone(), ..array.clone() }.order();
    Ok(Layout::Plain { extents: Extents::one(0, bytes), order })
}

/// Bytes of the longest array, and the lengths that become shorter: everywhere, so that what has the same
/// number of rows still has.
struct Sizes {
    longest: u64,
    long: HashSet<u64>,
}

impl Sizes {
    fn of(tree: &Tree) -> Result<Self> {
        let (mut kept, mut long) = (0_u64, HashSet::new());
        let mut add = |shape: &Shape, size: usize| {
            let bytes = shape.bytes(size).unwrap_or(u64::MAX);
            match kept.checked_add(bytes).filter(|kept| *kept <= KEPT) {
                Some(more) => kept = more,
                None => long.extend(shape.lengths().iter().filter(|n| **n > LENGTH)),
            }
        };
        for (_, _, array) in tree.arrays() {
            let desc = tree.resolve(array)?;
            add(&desc.shape, desc.dtype.size());
            if let Layout::PerFrame(table) = &desc.layout {
                for frame in 0..table.len().min(FRAMES) {
                    if let Some(cell) = table.cell(frame)? {
                        add(&cell.shape, desc.dtype.size());
                    }
                }
            }
        }
        Ok(Self { longest: 0, long })
    }

    fn reduced(&self, shape: &Shape) -> Shape {
        let length = |n: &u64| if self.long.contains(n) { LENGTH + n % 2 } else { *n };
        Shape::new(shape.lengths().iter().map(length).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::dtype::DType;

    #[test]
    fn what_has_as_many_rows_still_has() {
        let limits = Limits::default();
        let mut tree = Tree::new(&limits);
        for (name, dtype, shape) in [
            ("small", DType::U8, &[3_000_001][..]),
            ("large", DType::F64, &[3_000_001, 3]),
            ("other", DType::F64, &[17]),
        ] {
            let layout = Layout::Fill(vec![0; dtype.size()].into());
            tree.add_array(ROOT, name, ArrayDesc::new(dtype, Shape::new(shape), layout)).unwrap();
        }
        let small = miniature(&Dataset::new(Source::memory([]), tree), &limits).unwrap();
        let shapes: Vec<_> =
            small.tree.arrays().map(|(_, _, a)| a.shape.lengths().to_vec()).collect();
        assert_eq!(shapes, [vec![5], vec![5, 3], vec![17]]);
    }
}
