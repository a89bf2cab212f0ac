//! A file in miniature: everything that is said, and arrays of a few zeros in the place of those with
//! data. What a format does to it, it does to the file, in no time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::frames::{Cells, FrameCell, Moments};
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::shape::Shape;
use spile_core::source::Source;
use spile_core::tree::{ROOT, Tree};

/// Frames of a miniature.
const FRAMES: u64 = 2;

/// Bytes of arrays that keep their shapes; there may be a relation between shapes and what is said.
const KEPT: u64 = 16 << 20;

/// Lengths that are kept; longer ones become this and more.
const LENGTH: u64 = 4;

/// Different lengths that stay different.
const LENGTHS: usize = 48;

/// Makes one.
pub(super) fn miniature(whole: &Dataset) -> Result<Dataset> {
    let (old, limits) = (whole.tree(), whole.limits());
    let mut tree = Tree::new(limits);
    tree.set_attrs(ROOT, old.attrs().clone())?;
    let mut sizes = Sizes::new(old)?;
    // Nodes are added in the same order, so they have the same numbers.
    for (_, node) in old.iter() {
        let id = match &node.array {
            None => tree.add_group(node.parent, &node.name)?,
            Some(array) => {
                let small = small(array, old, &mut sizes)?;
                tree.add_array(node.parent, &node.name, small)?
            }
        };
        tree.node_mut(id).id.clone_from(&node.id);
        tree.set_attrs(id, node.attrs.clone())?;
    }
    if let Some(axis) = old.frames() {
        let count = axis.len().min(FRAMES);
        let moments: Result<Vec<_>> =
            (0..count).map(|k| Ok((axis.step(k)?, axis.time(k)?))).collect();
        tree.set_frames(Arc::new(Moments(moments?)));
    }
    let bytes = limits.allow(sizes.longest, "the largest element")?;
    let source = Source::memory(vec![0; bytes]);
    Ok(Dataset::new(source, tree).with_summary(whole.summary().clone()))
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

/// Bytes of the longest array, and the lengths that stand for those of the file, where they do not
/// stay: the same for the same length everywhere, and one more for one more, because nodes and cells
/// differ by one.
struct Sizes {
    longest: u64,
    lengths: Option<BTreeMap<u64, u64>>,
}

impl Sizes {
    fn new(tree: &Tree) -> Result<Self> {
        let (mut bytes, mut seen) = (0_u64, BTreeSet::new());
        let mut add = |shape: &Shape, size: usize| {
            bytes = bytes.saturating_add(shape.bytes(size).unwrap_or(u64::MAX));
            seen.extend(shape.lengths().iter().copied().filter(|n| *n > LENGTH));
        };
        for (_, _, array) in tree.arrays() {
            add(&array.shape, array.dtype.size());
            if let Layout::PerFrame(table) = &tree.resolve(array)?.layout {
                for frame in 0..table.len().min(FRAMES) {
                    if let Some(cell) = table.cell(frame)? {
                        add(&cell.shape, array.dtype.size());
                    }
                }
            }
        }
        let (mut lengths, mut small, mut last) = (BTreeMap::new(), LENGTH, LENGTH);
        for length in seen {
            // Far apart stays apart, as long as there are few.
            let more = if length == last + 1 { 1 } else { 2 };
            small = if lengths.len() < LENGTHS { small + more } else { LENGTH + 2 + length % 2 };
            lengths.insert(length, small);
            last = length;
        }
        let mut sizes = Self { longest: 0, lengths: (bytes > KEPT).then_some(lengths) };
        let small = |(_, _, array): (_, _, &ArrayDesc)| {
            sizes.reduced(&array.shape).bytes(array.dtype.size()).unwrap_or(u64::MAX)
        };
        let total = tree.arrays().map(small).fold(0, u64::saturating_add);
        // Many dimensions of many lengths: nothing but odd and even is left.
        if let (Some(lengths), true) = (&mut sizes.lengths, total > KEPT) {
            for (length, small) in lengths {
                *small = LENGTH + length % 2;
            }
        }
        Ok(sizes)
    }

    fn reduced(&self, shape: &Shape) -> Shape {
        let Some(lengths) = &self.lengths else { return shape.clone() };
        // Later frames may have others.
        let other = |n: u64| if n <= LENGTH { n } else { LENGTH + n % 2 };
        let length = |n: &u64| lengths.get(n).copied().unwrap_or_else(|| other(*n));
        Shape::new(shape.lengths().iter().map(length).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::dtype::DType;
    use spile_core::limits::Limits;

    #[test]
    fn lengths_that_belong_together_stay_together() {
        let mut tree = Tree::new(&Limits::default());
        let mut add = |name: &str, shape: &[u64]| {
            let layout = Layout::Fill([0; 8].into());
            let array = ArrayDesc::new(DType::F64, Shape::new(shape), layout);
            tree.add_array(ROOT, name, array).unwrap()
        };
        let field = add("field", &[1000, 401, 3]);
        let (cells, nodes, other) = (add("x", &[1000]), add("x_nodes", &[1001]), add("n", &[402]));
        let far = add("far", &[700, 2000, 2001]);
        let small = |tree: &Tree, id| {
            let whole = Dataset::new(Source::memory(Vec::new()), tree.clone());
            let small = miniature(&whole).unwrap();
            small.tree().node(id).array.as_ref().unwrap().shape.lengths().to_vec()
        };
        let [cells, nodes, other] = [cells, nodes, other].map(|id| small(&tree, id)[0]);
        assert_eq!(small(&tree, field), [cells, other - 1, 3]);
        assert_eq!(nodes, cells + 1);
        let far = small(&tree, far);
        assert!(far[2] == far[1] + 1 && far[0] > other && far[0] + 1 < cells, "{far:?}");
        assert!(far.iter().product::<u64>() < 10_000);
        // As many dimensions of as many lengths have only their parity left.
        let many: Vec<u64> = (0..12).map(|k| 1000 * k + 1000 + k % 2).collect();
        let layout = Layout::Fill([0; 8].into());
        let array = ArrayDesc::new(DType::F64, Shape::new(many), layout);
        let mut tree = Tree::new(&Limits::default());
        let id = tree.add_array(ROOT, "many", array).unwrap();
        assert!(small(&tree, id).iter().all(|n| matches!(n, 4 | 5)));
    }
}
