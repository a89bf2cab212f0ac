//! Histograms of one or more quantities, optionally weighted.

use rayon::prelude::*;

use crate::read::Selected;
use crate::{Error, Result};

/// Number of parts that are counted separately, if the memory limit allows; fixed, so that sums of weights
/// do not depend on the number of threads.
const TASKS: u64 = 16;

/// Number of elements read at once from every array.
const RUN: u64 = 1 << 14;

/// Bins of equal width from `low` to `high`; the last one includes `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bins {
    /// Lower edge of the first bin.
    pub low: f64,
    /// Upper edge of the last bin.
    pub high: f64,
    /// Number of bins.
    pub count: usize,
}

impl Bins {
    /// `count` bins from `low` to `high`. Fails unless both are finite, `low < high` and `count > 0`.
    pub fn new(low: f64, high: f64, count: usize) -> Result<Self> {
        if low < high && low.is_finite() && high.is_finite() && count > 0 {
            return Ok(Self { low, high, count });
        }
        Err(Error::argument(format!("invalid bins: {count} from {low:?} to {high:?}")))
    }

    /// Lower edge of bin `k`; upper edge of the last one for `k == count`.
    pub fn edge(&self, k: usize) -> f64 {
        let part = k as f64 / self.count as f64;
        if k == self.count { self.high } else { self.low * (1.0 - part) + self.high * part }
    }

    /// The bin of a value; `None` if it is outside.
    fn of(&self, value: f64) -> Option<usize> {
        if !(value >= self.low && value <= self.high) {
            return None;
        }
        // Halved, because `high - low` may overflow.
        let part = (value / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0);
        Some(((part * self.count as f64) as usize).min(self.count - 1))
    }
}

/// Counts elements in the bins of `axes`; with `weight`, sums its values instead. The result has one value
/// per combination of bins, first axis fastest. Missing values, elements outside the bins
/// and those without a finite weight are ignored. Several selections must each have one dimension and the same number of elements.
pub fn histogram(
    axes: &[(&Selected<'_>, Bins)],
    weight: Option<&Selected<'_>>,
) -> Result<Vec<f64>> {
    let Some((first, _)) = axes.first() else {
        return Err(Error::argument("a histogram needs at least one array"));
    };
    let count = first.count();
    for array in axes.iter().map(|a| a.0).chain(weight) {
        if array.count() != count {
            let other = array.count();
            let message = format!("expected {count} elements as in the first array, found {other}");
            return Err(Error::argument(message));
        }
        if !array.array().dtype().is_real() {
            let dtype = array.array().dtype();
            return Err(Error::argument(format!("histograms need real numbers, found {dtype}")));
        }
    }
    if let ([(array, bins)], None) = (axes, weight) {
        return single(array, *bins);
    }
    let bins = axes.iter().fold(1_u64, |n, (_, b)| n.saturating_mul(b.count as u64));
    let limits = first.array().limits();
    let tasks = (limits.memory / bins.saturating_mul(16)).clamp(1, TASKS);
    let each = limits.allow(bins.saturating_mul(8 * (tasks + 1)), "the histogram")?;
    let bins = each / (8 * (tasks as usize + 1));
    let task = |task: u64| -> Result<Vec<f64>> {
        let mut work = Work { bins: vec![0.0; bins], ..Work::default() };
        let (mut at, end) = (count * task / tasks, count * (task + 1) / tasks);
        while at < end {
            let run = RUN.min(end - at);
            work.add(axes, weight, at, run)?;
            at += run;
        }
        Ok(work.bins)
    };
    let parts: Vec<Vec<f64>> = (0..tasks).into_par_iter().map(task).collect::<Result<_>>()?;
    let mut total = vec![0.0; bins];
    for part in parts {
        total.iter_mut().zip(part).for_each(|(sum, more)| *sum += more);
    }
    Ok(total)
}

/// Histogram of one array of any number of dimensions.
fn single(array: &Selected<'_>, bins: Bins) -> Result<Vec<f64>> {
    let mut total = vec![0.0; bins.count];
    array.ordered(
        |_, bytes| {
            let (mut numbers, mut counts) = (Vec::new(), vec![0.0; bins.count]);
            array.array().to_physical(bytes, &mut numbers);
            numbers.iter().filter_map(|v| bins.of(*v)).for_each(|bin| counts[bin] += 1.0);
            Ok(counts)
        },
        |counts: Vec<f64>| {
            total.iter_mut().zip(counts).for_each(|(sum, more)| *sum += more);
            Ok(())
        },
    )?;
    Ok(total)
}

/// Buffers of a task.
#[derive(Default)]
struct Work {
    bins: Vec<f64>,
    /// Bin of every element of the run; `None` if it is ignored.
    indices: Vec<Option<usize>>,
    values: Vec<f64>,
    numbers: Vec<f64>,
}

impl Work {
    fn add(
        &mut self,
        axes: &[(&Selected<'_>, Bins)],
        weight: Option<&Selected<'_>>,
        first: u64,
        count: u64,
    ) -> Result<()> {
        self.indices.clear();
        self.indices.resize(count as usize, Some(0));
        let mut stride = 1;
        for (array, bins) in axes {
            self.read(array, first, count)?;
            for (index, value) in self.indices.iter_mut().zip(&self.values) {
                let bin = index.and_then(|at| Some(at + stride * bins.of(*value)?));
                *index = bin;
            }
            stride *= bins.count;
        }
        match weight {
            None => {
                for at in self.indices.iter().flatten() {
                    self.bins[*at] += 1.0;
                }
            }
            Some(weight) => {
                self.read(weight, first, count)?;
                for (index, value) in self.indices.iter().zip(&self.values) {
                    if let (Some(at), true) = (*index, value.is_finite()) {
                        self.bins[at] += value;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the physical values of a run.
    fn read(&mut self, array: &Selected<'_>, first: u64, count: u64) -> Result<()> {
        self.values.clear();
        array.part(first, count)?.stream(|_, bytes| {
            array.array().to_physical(bytes, &mut self.numbers);
            self.values.extend_from_slice(&self.numbers);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::dtype::DType;
    use crate::layout::ArrayDesc;
    use crate::limits::Limits;
    use crate::read::{Array, Axes};
    use crate::shape::Shape;
    use crate::source::Source;
    use crate::tree::Tree;
    use proptest::prelude::*;

    fn array(dtype: DType, shape: &[u64], bytes: Vec<u8>) -> Array {
        let desc = ArrayDesc::inline(dtype, Shape::new(shape), bytes);
        let limits = Limits::default();
        Dataset::of_bytes(Source::memory([]), &limits).open_array(&desc).unwrap()
    }

    fn doubles(values: &[f64]) -> Array {
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        array(DType::F64, &[values.len() as u64], bytes)
    }

    #[test]
    fn the_upper_edge_is_in_the_last_bin_and_values_outside_are_ignored() {
        let values = [0.0, 0.5, 1.0, 2.0, 2.5, -0.1, f64::NAN, f64::INFINITY];
        let x = doubles(&values);
        let bins = Bins::new(0.0, 2.0, 2).unwrap();
        let x = x.all().unwrap();
        assert_eq!(histogram(&[(&x, bins)], None).unwrap(), [2.0, 2.0]);
        let weights = doubles(&[1.0, f64::NAN, 10.0, 100.0, 1e3, 1e3, 1e3, 1e3]);
        let weights = weights.all().unwrap();
        assert_eq!(histogram(&[(&x, bins)], Some(&weights)).unwrap(), [1.0, 110.0]);
    }

    #[test]
    fn a_single_array_may_have_any_number_of_dimensions() {
        let bytes: Vec<u8> = (0..120).collect();
        let x = array(DType::U8, &[4, 5, 6], bytes);
        let part = x.select(&":, ::2, 1:".parse().unwrap(), Axes::Stored).unwrap();
        let got = histogram(&[(&part, Bins::new(0.0, 120.0, 4).unwrap())], None).unwrap();
        assert_eq!(got, [15.0; 4]);
    }

    #[test]
    fn bins_of_extreme_ranges_do_not_overflow() {
        let x = doubles(&[-1.7e308, 0.0, 1.7e308]);
        let bins = Bins::new(-1.7e308, 1.7e308, 3).unwrap();
        assert_eq!(histogram(&[(&x.all().unwrap(), bins)], None).unwrap(), [1.0, 1.0, 1.0]);
        assert!((0..=3).all(|k| bins.edge(k).is_finite()));
        assert!(Bins::new(1.0, 1.0, 3).is_err() && Bins::new(0.0, f64::NAN, 3).is_err());
        assert!(Bins::new(0.0, 1.0, 0).is_err());
    }

    #[test]
    fn bins_that_exceed_the_memory_limit_are_rejected() {
        let bytes: Vec<u8> = (0..100_u8).flat_map(|k| f64::from(k).to_le_bytes()).collect();
        let desc = ArrayDesc::inline(DType::F64, Shape::new([100]), bytes);
        let limits = Limits::default().with_memory(1 << 20);
        let tree = Tree::new(&limits);
        let x = Dataset::new(Source::memory([]), tree).open_array(&desc).unwrap();
        let x = x.all().unwrap();
        let run = |n: usize| {
            let bins = Bins::new(0.0, 100.0, n).unwrap();
            histogram(&[(&x, bins), (&x, bins)], None)
        };
        let many = run(200).unwrap();
        assert_eq!((many.len(), many.iter().sum::<f64>()), (40_000, 100.0));
        assert!(run(400).unwrap_err().message().contains("the histogram needs"));
    }

    #[test]
    fn arrays_of_different_lengths_are_rejected() {
        let (x, y) = (doubles(&[1.0, 2.0]), doubles(&[1.0]));
        let bins = Bins::new(0.0, 2.0, 2).unwrap();
        let (x, y) = (x.all().unwrap(), y.all().unwrap());
        let error = histogram(&[(&x, bins), (&y, bins)], None).unwrap_err();
        assert_eq!(error.message(), "expected 2 elements as in the first array, found 1");
    }

    proptest! {
        #[test]
        fn pairs_of_different_types_and_strides_are_counted_in_the_right_bins(
            points in proptest::collection::vec((any::<i8>(), any::<i16>()), 0..40_000),
            nx in 1_usize..9, ny in 1_usize..9)
        {
            let n = points.len() as u64;
            let x = array(DType::I8, &[n], points.iter().map(|p| p.0 as u8).collect());
            // A reversed column of a table: neither contiguous nor ascending.
            let table = points.iter().rev().flat_map(|p| [p.1, 0, 7]).flat_map(i16::to_le_bytes);
            let y = array(DType::I16, &[n, 3], table.collect());
            let y = y.select(&"::-1, 0".parse().unwrap(), Axes::Stored).unwrap();
            let (bx, by) = (Bins::new(-100.0, 100.0, nx).unwrap(), Bins::new(-3e4, 2e4, ny).unwrap());
            let got = histogram(&[(&x.all().unwrap(), bx), (&y, by)], None).unwrap();
            let mut expected = vec![0.0; nx * ny];
            for (a, b) in &points {
                if let (Some(i), Some(j)) = (bx.of(f64::from(*a)), by.of(f64::from(*b))) {
                    expected[j * nx + i] += 1.0;
                }
            }
            prop_assert_eq!(got, expected);
        }
    }
}
