//! Statistics of an array and of each of its components (x, y and z of positions) in one pass.

use super::integers::Integers;
use super::statistics::{Moments, Stats, has_exact_sums, statistics};
use crate::{Array, Axes, Error, Kind, Linear, Order, Result, Selection, Slice};

/// Largest length of a last dimension that counts as components.
pub const MOST_COMPONENTS: u64 = 16;

/// Statistics of the entire array and of each index of its last dimension. The latter are empty unless
/// there are at least two dimensions and the last has 2 to [`MOST_COMPONENTS`] indices. Fails unless the
/// elements are real numbers or booleans.
pub fn components(array: &Array) -> Result<(Stats, Vec<Stats>)> {
    let selected = array.all()?;
    let (dtype, map) = (array.dtype(), array.map());
    if !dtype.is_real() && dtype.kind() != Kind::Bool {
        return Err(Error::argument(format!("{dtype} elements have no statistics")));
    }
    let count = match array.shape().lengths() {
        [_, .., last @ 2..=MOST_COMPONENTS] if selected.count() > 0 => *last,
        _ => return Ok((statistics(&selected)?, Vec::new())),
    };
    let slab = selected.count() / count;
    let start = || Work::new(array, count as usize);
    let work = selected.fold(
        start,
        |work, block, bytes| {
            work.total.add(array, bytes);
            match array.order() {
                Order::C => work.interleaved(block.first, bytes),
                Order::F => work.slabs(block.first, slab, bytes),
            }
            Ok(())
        },
        Work::merge,
    )?;
    let total = match work.total.finish(map, selected.count()) {
        Some(stats) => stats,
        None => statistics(&selected)?,
    };
    let mut parts = Vec::with_capacity(work.parts.len());
    for (k, part) in work.parts.iter().enumerate() {
        let stats = if let Some(stats) = part.finish(map, slab) {
            stats
        } else {
            // Squares overflowed or underflowed: computed separately, with scaling.
            let one = Selection(vec![Slice::Rest, Slice::Index(k as i64)]);
            statistics(&array.select(&one, Axes::Stored)?)?
        };
        parts.push(stats);
    }
    Ok((total, parts))
}

/// Sums of one component.
enum Part {
    Integers(Integers),
    Floats(Moments),
}

impl Part {
    fn new(array: &Array) -> Self {
        if has_exact_sums(array) {
            Self::Integers(Integers::new())
        } else {
            Self::Floats(Moments::new())
        }
    }

    fn add(&mut self, array: &Array, bytes: &[u8]) {
        match self {
            Self::Integers(sums) => sums.add(array.dtype(), bytes),
            Self::Floats(moments) => moments.add(array, 1.0, bytes),
        }
    }

    fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::Integers(one), Self::Integers(two)) => Self::Integers(one.merge(two)),
            (Self::Floats(one), Self::Floats(two)) => Self::Floats(one.merge(&two)),
            (one, _) => one,
        }
    }

    /// `None` if squares overflowed or underflowed.
    fn finish(&self, map: Option<Linear>, count: u64) -> Option<Stats> {
        let stats = match self {
            Self::Integers(sums) => sums.finish(map),
            Self::Floats(moments) => moments.finish(count, 1.0),
        };
        stats.is_sound().then_some(stats)
    }
}

/// Sums of the entire array and of all components, and buffers of elements by component.
struct Work<'a> {
    array: &'a Array,
    total: Part,
    parts: Vec<Part>,
    buffers: Vec<Vec<u8>>,
}

impl<'a> Work<'a> {
    fn new(array: &'a Array, count: usize) -> Self {
        let parts = (0..count).map(|_| Part::new(array)).collect();
        Self { array, total: Part::new(array), parts, buffers: vec![Vec::new(); count] }
    }

    /// Adds a block of interleaved components.
    fn interleaved(&mut self, first: u64, bytes: &[u8]) {
        let (size, count) = (self.array.dtype().size(), self.parts.len());
        self.buffers.iter_mut().for_each(Vec::clear);
        let mut k = (first % count as u64) as usize;
        for element in bytes.chunks_exact(size) {
            self.buffers[k].extend_from_slice(element);
            k = if k + 1 == count { 0 } else { k + 1 };
        }
        for (part, bytes) in self.parts.iter_mut().zip(&self.buffers) {
            part.add(self.array, bytes);
        }
    }

    /// Adds a block of contiguous components of `slab` elements each.
    fn slabs(&mut self, mut first: u64, slab: u64, mut bytes: &[u8]) {
        let size = self.array.dtype().size();
        while !bytes.is_empty() {
            let left = (slab - first % slab).saturating_mul(size as u64);
            let here = usize::try_from(left).unwrap_or(bytes.len()).min(bytes.len());
            let (part, rest) = bytes.split_at(here);
            self.parts[(first / slab) as usize].add(self.array, part);
            (first, bytes) = (first + (here / size) as u64, rest);
        }
    }

    fn merge(self, other: Self) -> Self {
        let parts = self.parts.into_iter().zip(other.parts).map(|(a, b)| a.merge(b)).collect();
        Self { total: self.total.merge(other.total), parts, ..other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::dtype::DType;
    use crate::layout::{ArrayDesc, Layout};
    use crate::limits::Limits;
    use crate::shape::Shape;
    use crate::source::Source;

    use proptest::prelude::*;

    fn array(
        dtype: DType,
        order: Order,
        map: Option<Linear>,
        shape: &[u64],
        bytes: &[u8],
    ) -> Array {
        let mut desc =
            ArrayDesc::new(dtype, Shape::new(shape), Layout::Inline(bytes.into(), order));
        desc.map = map;
        let limits = Limits::default().with_memory(1 << 20);
        Dataset::of_bytes(Source::memory([]), &limits).open_array(&desc).unwrap()
    }

    /// Compares with statistics of each component read separately.
    fn compare(array: &Array, expected: usize) {
        let (total, parts) = components(array).unwrap();
        assert_eq!(
            format!("{total:?}"),
            format!("{:?}", statistics(&array.all().unwrap()).unwrap())
        );
        assert_eq!(parts.len(), expected);
        for (k, part) in parts.iter().enumerate() {
            let one = Selection(vec![Slice::Rest, Slice::Index(k as i64)]);
            let alone = statistics(&array.select(&one, Axes::Stored).unwrap()).unwrap();
            let near =
                |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs() || a.to_bits() == b.to_bits();
            assert!(near(part.mean, alone.mean) && near(part.std, alone.std), "{part:?} {alone:?}");
            let exact =
                |s: &Stats| (s.count, s.finite, s.nan, s.min.to_bits(), s.max.to_bits(), s.exact);
            assert_eq!(exact(part), exact(&alone), "component {k}");
        }
    }

    proptest! {
        #[test]
        fn components_equal_statistics_of_each_component(values in proptest::collection::vec(any::<i16>(), 1..300), width in 2_u64..5) {
            let rows = values.len() as u64 / width;
            let values = &values[..(rows * width) as usize];
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let floats: Vec<u8> = values.iter().flat_map(|v| f64::from(*v).sqrt().to_le_bytes()).collect();
            let map = Some(Linear::new(0.5, -2.0));
            let expected = if rows == 0 { 0 } else { width as usize };
            for order in [Order::C, Order::F] {
                compare(&array(DType::I16, order, map, &[rows, width], &bytes), expected);
                compare(&array(DType::F64, order, None, &[rows, width], &floats), expected);
            }
        }
    }

    #[test]
    fn blocks_may_start_with_any_component() {
        let values: Vec<u8> = (0..300_000_u32).flat_map(|v| f64::from(v).to_le_bytes()).collect();
        compare(&array(DType::F64, Order::C, None, &[100_000, 3], &values), 3);
        compare(&array(DType::F64, Order::F, None, &[100_000, 3], &values), 3);
    }

    #[test]
    fn numbers_whose_squares_overflow_are_handled() {
        let values: Vec<u8> =
            [1e300_f64, 1.0, -1e300, 2.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        compare(&array(DType::F64, Order::C, None, &[2, 2], &values), 2);
        compare(&array(DType::F64, Order::C, None, &[4], &values), 0);
    }
}
