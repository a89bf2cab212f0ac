//! Arrays that a target does not store, but whose values another array has that it stores: the planes of a density.

use std::collections::{BTreeSet, HashMap, HashSet};

use spile_core::format::{Loss, LossKind};
use spile_core::{ArrayDesc, DType, Dataset, Extent, Layout};

/// Byte ranges that are compared at most.
const MOST: usize = 1 << 20;

/// The paths of the lost arrays whose bytes arrays of the same type contain that are not lost.
pub(super) fn contained(content: &Dataset, losses: &[Loss]) -> BTreeSet<String> {
    let lost = losses.iter().filter(|loss| loss.kind == LossKind::Array);
    let lost: HashSet<&str> = lost.map(|loss| loss.path.as_str()).collect();
    let mut kept: HashMap<DType, Vec<(u64, u64)>> = HashMap::new();
    let mut total = 0_usize;
    for (_, node, desc) in content.arrays().filter(|_| !lost.is_empty()) {
        let parts = parts(desc);
        if lost.contains(node.path.as_str()) || parts.is_empty() {
            continue;
        }
        total = total.saturating_add(parts.len());
        if total > MOST {
            return BTreeSet::new();
        }
        let ranges = parts.iter().map(|part| (part.offset, part.offset.saturating_add(part.len)));
        kept.entry(desc.dtype).or_default().extend(ranges);
    }
    kept.values_mut().for_each(merge);
    let inside = |desc: &ArrayDesc| {
        let ranges = kept.get(&desc.dtype).map_or(&[][..], Vec::as_slice);
        let has = |part: &Extent| {
            let before = ranges.partition_point(|(from, _)| *from <= part.offset);
            let range = before.checked_sub(1).and_then(|at| ranges.get(at));
            range.is_some_and(|(_, to)| part.offset.saturating_add(part.len) <= *to)
        };
        let parts = parts(desc);
        !parts.is_empty() && parts.iter().all(has)
    };
    let found = content
        .arrays()
        .filter(|(_, node, desc)| lost.contains(node.path.as_str()) && inside(desc));
    found.map(|(_, node, _)| node.path.clone()).collect()
}

/// The byte ranges of an array that is stored contiguously or decoded as a whole.
fn parts(desc: &ArrayDesc) -> &[Extent] {
    match &desc.layout {
        Layout::Plain { extents, .. } | Layout::EncodedWhole { extents, .. } => extents.parts(),
        _ => &[],
    }
}

/// Sorts ranges and joins those that meet.
fn merge(ranges: &mut Vec<(u64, u64)>) {
    ranges.sort_unstable();
    ranges.dedup_by(|next, last| {
        let meets = next.0 <= last.1;
        if meets {
            last.1 = last.1.max(next.1);
        }
        meets
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use spile_core::{ByteOrder, Extents, Limits, Order, ROOT, Shape, Source, Tree};

    #[test]
    fn only_arrays_whose_values_are_written_elsewhere_are_contained() {
        let mut tree = Tree::new(&Limits::default());
        let mut add = |name: &str, dtype: DType, ranges: &[(u64, u64)]| {
            let parts = ranges.iter().map(|(offset, len)| Extent { offset: *offset, len: *len });
            let extents = Extents::several(parts.collect()).unwrap();
            let count = extents.len() / dtype.size() as u64;
            let layout = Layout::Plain { extents, order: Order::C };
            tree.add_array(ROOT, name, ArrayDesc::new(dtype, Shape::new([count]), layout)).unwrap();
        };
        let f64le = DType::F64.with_order(ByteOrder::Little);
        add("density", f64le, &[(0, 16), (32, 16), (16, 16)]);
        add("z.1", f64le, &[(8, 32)]);
        add("beyond", f64le, &[(40, 16)]);
        add("other type", DType::I64, &[(0, 16)]);
        let content = Dataset::new(Source::memory(vec![0; 64]), tree);
        let lost = |names: &[&str]| -> Vec<Loss> {
            names.iter().map(|name| Loss::new(*name, LossKind::Array, "")).collect()
        };
        let found = contained(&content, &lost(&["z.1", "beyond", "other type"]));
        assert_eq!(found, BTreeSet::from(["z.1".to_string()]));
        assert!(contained(&content, &lost(&["density", "z.1"])).is_empty());
    }
}
