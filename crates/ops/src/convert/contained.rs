//! Arrays that a target does not store, but whose values another array has that it stores: the planes of a density.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use spile_core::format::{Loss, LossKind};
use spile_core::{ArrayDesc, Codec, DType, Dataset, Extents, Layout};

/// Byte ranges that are compared at most.
const MOST: usize = 1 << 20;

/// The paths of the lost arrays whose values arrays of the same type have that are not lost.
pub(super) fn contained(content: &Dataset, losses: &[Loss]) -> BTreeSet<String> {
    let lost = losses.iter().filter(|loss| loss.kind == LossKind::Array);
    let lost: HashSet<&str> = lost.map(|loss| loss.path.as_str()).collect();
    let mut kept = Kept::default();
    let mut total = 0_usize;
    for (_, node, desc) in content.arrays().filter(|_| !lost.is_empty()) {
        if lost.contains(node.path.as_str()) {
            continue;
        }
        total = total.saturating_add(kept.add(desc));
        if total > MOST {
            return BTreeSet::new();
        }
    }
    kept.plain.values_mut().for_each(merge);
    let found = content
        .arrays()
        .filter(|(_, node, desc)| lost.contains(node.path.as_str()) && kept.has(desc));
    found.map(|(_, node, _)| node.path.clone()).collect()
}

/// Offset and end of byte ranges.
type Ranges = Vec<(u64, u64)>;

/// The values of the arrays that are not lost.
#[derive(Default)]
struct Kept {
    /// Byte ranges of elements as they are stored.
    plain: HashMap<DType, Ranges>,
    /// Byte ranges that are decoded, and the largest number of ranges of an array with this one.
    encoded: HashMap<(DType, u64, u64), usize>,
    /// Decoders with all their byte ranges.
    decoders: HashSet<(DType, usize, Ranges)>,
}

/// Offset and end of each range.
fn ranges(extents: &Extents) -> Ranges {
    let parts = extents.parts().iter();
    parts.map(|part| (part.offset, part.offset.saturating_add(part.len))).collect()
}

/// The address of a decoder, which arrays with the same values share.
fn address(codec: &Arc<dyn Codec>) -> usize {
    Arc::as_ptr(codec).cast::<()>().addr()
}

impl Kept {
    /// Adds an array; returns the number of its byte ranges.
    fn add(&mut self, desc: &ArrayDesc) -> usize {
        match &desc.layout {
            Layout::Plain { extents, .. } => {
                let own = ranges(extents);
                let count = own.len();
                self.plain.entry(desc.dtype).or_default().extend(own);
                count
            }
            Layout::EncodedWhole { extents, codec, .. } => {
                let own = ranges(extents);
                let count = own.len();
                for (from, to) in &own {
                    let most = self.encoded.entry((desc.dtype, *from, *to)).or_default();
                    *most = count.max(*most);
                }
                self.decoders.insert((desc.dtype, address(codec), own));
                count
            }
            _ => 0,
        }
    }

    /// Whether another array has the values. Bytes that are decoded may be decoded to different values: the other array
    /// has the same decoder, or is made of several ranges of which these are some.
    fn has(&self, desc: &ArrayDesc) -> bool {
        match &desc.layout {
            Layout::Plain { extents, .. } => {
                let kept = self.plain.get(&desc.dtype).map_or(&[][..], Vec::as_slice);
                let own = ranges(extents);
                !own.is_empty() && own.iter().all(|range| is_inside(range, kept))
            }
            Layout::EncodedWhole { extents, codec, .. } => {
                let own = ranges(extents);
                let is_part = |(from, to): &(u64, u64)| {
                    let most = self.encoded.get(&(desc.dtype, *from, *to));
                    most.is_some_and(|most| *most > own.len())
                };
                let is_some = !own.is_empty() && own.iter().all(is_part);
                is_some || self.decoders.contains(&(desc.dtype, address(codec), own))
            }
            _ => false,
        }
    }
}

/// Whether a range is inside of one of the sorted ranges.
fn is_inside(range: &(u64, u64), sorted: &[(u64, u64)]) -> bool {
    let before = sorted.partition_point(|(from, _)| *from <= range.0);
    let last = before.checked_sub(1).and_then(|at| sorted.get(at));
    last.is_some_and(|(_, to)| range.1 <= *to)
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
    use spile_core::{ByteOrder, Extent, Limits, Order, ROOT, Result, Shape, Source, Tree};

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

    struct Text;

    impl Codec for Text {
        fn name(&self) -> &'static str {
            "text"
        }

        fn decode(&self, _: &[u8], _: &mut [u8]) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_same_bytes_may_be_decoded_to_other_values() {
        let mut tree = Tree::new(&Limits::default());
        let mut add = |name: &str, codec: &Arc<dyn Codec>, ranges: &[(u64, u64)]| {
            let parts = ranges.iter().map(|(offset, len)| Extent { offset: *offset, len: *len });
            let extents = Extents::several(parts.collect()).unwrap();
            let layout = Layout::EncodedWhole { extents, codec: codec.clone(), order: Order::C };
            let desc = ArrayDesc::new(DType::F64, Shape::new([3]), layout);
            tree.add_array(ROOT, name, desc).unwrap();
        };
        let codecs: [Arc<dyn Codec>; 4] = [(); 4].map(|()| Arc::new(Text) as Arc<dyn Codec>);
        add("connectivity", &codecs[0], &[(0, 16)]);
        add("offsets", &codecs[1], &[(0, 16)]);
        add("copy", &codecs[1], &[(0, 16)]);
        add("density", &codecs[2], &[(16, 8), (32, 8)]);
        add("z.2", &codecs[3], &[(32, 8)]);
        let content = Dataset::new(Source::memory(vec![0; 64]), tree);
        let lost = ["connectivity", "copy", "z.2"].map(|name| Loss::new(name, LossKind::Array, ""));
        let found = contained(&content, &lost);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), ["copy", "z.2"]);
    }
}
