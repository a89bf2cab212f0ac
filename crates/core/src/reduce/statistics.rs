//! Count, extremes, mean and standard deviation.
//!
//! Integers are summed exactly and scaled afterwards. Floats are summed in short runs, whose squared
//! deviations are taken around the mean of the run while it is in the cache; runs are merged by the
//! formulas of Chan, Golub and LeVeque, so that large offsets do not cancel the deviation.

use crate::read::Selected;
use crate::{Array, Error, Kind, Result};

use super::integers::Integers;

/// Elements in a run: 32 KiB of `f64`, the L1 cache.
pub(super) const RUN: usize = 4096;

/// 2^-600 and 2^600 scale numbers that are too large or too small to be squared.
pub(super) const SHRINK: f64 = f64::from_bits((1023 - 600) << 52);
const GROW: f64 = f64::from_bits((1023 + 600) << 52);

/// Below this, squares of deviations in the last digit underflow.
const SMALL: f64 = 1e-77;

/// Statistics of the physical values of an array. Extremes, mean and deviation are those of the finite
/// values; NaN if there are none (for the deviation, fewer than two).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stats {
    /// Number of elements.
    pub count: u64,
    /// Number of finite elements.
    pub finite: u64,
    /// Number of NaN and of missing values.
    pub nan: u64,
    /// Number of +Infinity.
    pub positive_infinity: u64,
    /// Number of -Infinity.
    pub negative_infinity: u64,
    /// Minimum.
    pub min: f64,
    /// Maximum.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Sample standard deviation (n - 1).
    pub std: f64,
    /// Exact range and sum of the stored numbers, for integer types without missing values.
    pub exact: Option<ExactRange>,
}

/// Extremes and sum of stored integers, without scaling or rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ExactRange {
    /// Minimum.
    pub min: i128,
    /// Maximum.
    pub max: i128,
    /// Sum.
    pub sum: i128,
}

/// Statistics of the selected elements. Fails unless they are real numbers or booleans.
pub fn statistics(selected: &Selected<'_>) -> Result<Stats> {
    let (dtype, map) = (selected.array().dtype(), selected.array().map());
    if !dtype.is_real() && dtype.kind() != Kind::Bool {
        return Err(Error::argument(format!("statistics need real numbers, found {dtype}")));
    }
    if has_exact_sums(selected.array()) {
        let add = |sums: &mut Integers, bytes: &[u8]| {
            sums.add(dtype, bytes);
            Ok(())
        };
        let repeat = |sums: &mut Integers, one: &[u8], count| sums.add_repeated(dtype, one, count);
        let sums = selected.fold_runs(Integers::new, add, repeat, Integers::merge)?;
        let stats = sums.finish(map);
        // Scaling may overflow; then the infinite values have to be counted.
        if stats.count == 0 || (stats.min.is_finite() && stats.max.is_finite()) {
            return Ok(stats);
        }
        return Ok(Stats { exact: stats.exact, ..floats(selected, 1.0)? });
    }
    let stats = floats(selected, 1.0)?;
    if stats.too_large() {
        return floats(selected, SHRINK);
    }
    if stats.too_small() {
        return floats(selected, GROW);
    }
    Ok(stats)
}

impl Stats {
    /// Statistics of the values of both (Chan, Golub and LeVeque).
    pub fn merge(self, other: Self) -> Self {
        let (a, b) = match (self.finite, other.finite) {
            (_, 0) => (self, None),
            (0, _) => (other, None),
            _ => (self, Some(other)),
        };
        let (mut mean, mut std, mut min, mut max) = (a.mean, a.std, a.min, a.max);
        if let Some(b) = b {
            let (n, m) = (a.finite as f64, b.finite as f64);
            let squares =
                |s: &Self| if s.finite > 1 { s.std * s.std * (s.finite - 1) as f64 } else { 0.0 };
            let gap = b.mean - a.mean;
            let total = squares(&a) + squares(&b) + gap * gap * (n / (n + m)) * m;
            (mean, std) = (a.mean + gap * (m / (n + m)), (total / (n + m - 1.0)).sqrt());
            (min, max) = (a.min.min(b.min), a.max.max(b.max));
        }
        let exact = match (self.exact, other.exact) {
            (Some(a), Some(b)) if self.count > 0 && other.count > 0 => Some(ExactRange {
                min: a.min.min(b.min),
                max: a.max.max(b.max),
                sum: a.sum.saturating_add(b.sum),
            }),
            (a, _) if self.count > 0 => a,
            (_, b) => b,
        };
        Self {
            count: self.count + other.count,
            finite: self.finite + other.finite,
            nan: self.nan + other.nan,
            positive_infinity: self.positive_infinity + other.positive_infinity,
            negative_infinity: self.negative_infinity + other.negative_infinity,
            min,
            max,
            mean,
            std,
            exact,
        }
    }

    /// Squares were infinite.
    fn too_large(&self) -> bool {
        self.finite > 1 && !self.std.is_finite()
    }

    /// The squares underflowed.
    fn too_small(&self) -> bool {
        self.min < self.max && self.min.abs().max(self.max.abs()) < SMALL
    }

    /// No squares overflowed or underflowed, and no integer was scaled to infinity.
    pub(super) fn is_sound(&self) -> bool {
        let mapped = self.exact.is_none() || self.count == 0;
        let finite = mapped || (self.min.is_finite() && self.max.is_finite());
        finite && !self.too_large() && !self.too_small()
    }
}

/// Whether the elements are integers that are all summed: none of them means missing.
pub(super) fn has_exact_sums(array: &Array) -> bool {
    array.dtype().is_integer() && array.missing().is_none()
}

fn floats(selected: &Selected<'_>, scale: f64) -> Result<Stats> {
    let step = |t: &mut Moments, bytes: &[u8]| {
        t.add(selected.array(), scale, bytes);
        Ok(())
    };
    let repeat = |t: &mut Moments, one: &[u8], count| {
        t.add_repeated(selected.array(), scale, one, count);
    };
    let moments = selected.fold_runs(Moments::new, step, repeat, |a, b| a.merge(&b))?;
    Ok(moments.finish(selected.count(), scale))
}

/// A compensated sum (Neumaier).
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        self.lost +=
            if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
    }

    fn value(self) -> f64 {
        if self.lost.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

pub(super) struct Moments {
    finite: u64,
    nan: u64,
    up: u64,
    down: u64,
    min: f64,
    max: f64,
    sum: Sum,
    /// Sum of squared deviations from the mean.
    squares: f64,
    run: Vec<f64>,
}

impl Moments {
    pub(super) fn new() -> Self {
        Self {
            finite: 0,
            nan: 0,
            up: 0,
            down: 0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: Sum::default(),
            squares: 0.0,
            run: Vec::new(),
        }
    }

    fn mean(&self) -> f64 {
        self.sum.value() / self.finite as f64
    }

    pub(super) fn add(&mut self, array: &Array, scale: f64, bytes: &[u8]) {
        let mut run = std::mem::take(&mut self.run);
        for part in bytes.chunks(RUN * array.dtype().size()) {
            let (finite, sum, min, max, squares) = pulp::Arch::new().dispatch(|| {
                array.to_physical(part, &mut run);
                if scale != 1.0 {
                    for x in &mut run {
                        *x *= scale;
                    }
                }
                moments_of(&run)
            });
            if finite < run.len() as u64 {
                self.nan += run.iter().filter(|x| x.is_nan()).count() as u64;
                self.up += run.iter().filter(|x| **x == f64::INFINITY).count() as u64;
                self.down += run.iter().filter(|x| **x == f64::NEG_INFINITY).count() as u64;
            }
            self.join(finite, Sum { sum, lost: 0.0 }, min, max, squares);
        }
        self.run = run;
    }

    /// Adds one element `count` times.
    fn add_repeated(&mut self, array: &Array, scale: f64, element: &[u8], count: u64) {
        let mut one = Self::new();
        one.add(array, scale, element);
        self.nan += one.nan * count;
        self.up += one.up * count;
        self.down += one.down * count;
        let sum = Sum { sum: one.sum.value() * count as f64, lost: 0.0 };
        self.join(one.finite * count, sum, one.min, one.max, 0.0);
    }

    fn join(&mut self, finite: u64, sum: Sum, min: f64, max: f64, squares: f64) {
        if finite == 0 {
            return;
        }
        self.squares += squares;
        if self.finite > 0 {
            let delta = sum.value() / finite as f64 - self.mean();
            let (a, b) = (self.finite as f64, finite as f64);
            self.squares += delta * delta * (a * (b / (a + b)));
        }
        self.finite += finite;
        self.sum.add(sum.sum);
        self.sum.lost += sum.lost;
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }

    pub(super) fn merge(mut self, other: &Self) -> Self {
        self.nan += other.nan;
        self.up += other.up;
        self.down += other.down;
        self.join(other.finite, other.sum, other.min, other.max, other.squares);
        self
    }

    pub(super) fn finish(&self, count: u64, scale: f64) -> Stats {
        let known = |x: f64| if self.finite == 0 { f64::NAN } else { x / scale };
        let std = match self.finite {
            0 | 1 => f64::NAN,
            // The rounded mean of equal numbers may differ from them in the last bit.
            _ if self.min == self.max => 0.0,
            n => (self.squares / (n - 1) as f64).sqrt() / scale,
        };
        Stats {
            count,
            finite: self.finite,
            nan: self.nan,
            positive_infinity: self.up,
            negative_infinity: self.down,
            min: known(self.min),
            max: known(self.max),
            // Rounding may put the mean outside the extremes.
            mean: known(self.mean().max(self.min).min(self.max)),
            std,
            exact: None,
        }
    }
}

/// Calls `one` with the values of a run and a lane of `LANES` each, so that sums by lane can be vectorised.
#[inline(always)]
pub(super) fn in_lanes<const LANES: usize, T: Copy>(run: &[T], mut one: impl FnMut(usize, T)) {
    let (groups, rest) = run.as_chunks::<LANES>();
    for group in groups {
        for (k, x) in group.iter().enumerate() {
            one(k, *x);
        }
    }
    for (k, x) in rest.iter().enumerate() {
        one(k, *x);
    }
}

/// Number of finite values, sum, minimum, maximum and squared deviations, eight at a time.
#[inline(always)]
fn moments_of(run: &[f64]) -> (u64, f64, f64, f64, f64) {
    const LANES: usize = 8;
    let (mut finite, mut sum) = ([0_u64; LANES], [0.0_f64; LANES]);
    let (mut min, mut max) = ([f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
    in_lanes::<LANES, f64>(run, |k, x| {
        let ok = x.abs() < f64::INFINITY;
        finite[k] += u64::from(ok);
        sum[k] += if ok { x } else { 0.0 };
        min[k] = if ok && x < min[k] { x } else { min[k] };
        max[k] = if ok && x > max[k] { x } else { max[k] };
    });
    let count: u64 = finite.iter().sum();
    let total: f64 = sum.iter().sum();
    let mean = if count == 0 { 0.0 } else { total / count as f64 };
    let mut squares = [0.0_f64; LANES];
    in_lanes::<LANES, f64>(run, |k, x| {
        let d = if x.abs() < f64::INFINITY { x - mean } else { 0.0 };
        squares[k] += d * d;
    });
    let low = min.iter().copied().fold(f64::INFINITY, f64::min);
    let high = max.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (count, total, low, high, squares.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::dtype::DType;
    use crate::layout::{ArrayDesc, Linear};
    use crate::limits::Limits;
    use crate::shape::Shape;
    use crate::source::Source;

    use proptest::prelude::*;

    fn stats(dtype: DType, map: Option<Linear>, bytes: &[u8]) -> Stats {
        let shape = Shape::new([(bytes.len() / dtype.size()) as u64]);
        let mut desc = ArrayDesc::inline(dtype, shape, bytes);
        desc.map = map;
        let limits = Limits::default();
        let array = Dataset::of_bytes(Source::memory([]), &limits).open_array(&desc).unwrap();
        // Small blocks test merging.
        statistics(&array.all().unwrap().with_block_bytes(1000)).unwrap()
    }

    fn of_f64(values: &[f64]) -> Stats {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        stats(DType::F64, None, &bytes)
    }

    #[test]
    fn empty_constant_and_unusual_values() {
        let none = of_f64(&[]);
        assert!(none.mean.is_nan() && none.std.is_nan() && none.min.is_nan());
        let odd = of_f64(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::NEG_INFINITY]);
        assert_eq!((odd.count, odd.finite, odd.nan), (4, 0, 1));
        assert_eq!((odd.positive_infinity, odd.negative_infinity), (1, 2));
        assert!(odd.max.is_nan());
        let one = of_f64(&[3.0, f64::NAN]);
        assert!(one.mean == 3.0 && one.std.is_nan());
        let constant = of_f64(&vec![0.1; 10_000]);
        assert_eq!((constant.mean, constant.std), (0.1, 0.0));
    }

    #[test]
    fn large_and_small_magnitudes_do_not_overflow() {
        let big = of_f64(&[1.5e308, 1.5e308, -1.5e308, -1.5e308]);
        assert_eq!(big.mean, 0.0);
        assert!((big.std / 1.732_050_807_568_877e308 - 1.0).abs() < 1e-12, "{}", big.std);
        let small = of_f64(&[1e-300, 2e-300, 3e-300]);
        assert!((small.std / 1e-300 - 1.0).abs() < 1e-12, "{}", small.std);
        let offset: Vec<f64> = (0..50_000).map(|k| 1e9 + f64::from(k % 2)).collect();
        assert!((of_f64(&offset).std - 0.500_005).abs() < 1e-8);
    }

    #[test]
    fn statistics_of_64_bit_integers_are_exact() {
        let values = [(1_i64 << 62), (1 << 62) + 1, (1 << 62) + 2];
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let got = stats(DType::I64, None, &bytes);
        assert_eq!(got.std, 1.0);
        assert_eq!(got.exact.unwrap().sum, 3 * ((1_i128 << 62) + 1));
        let ends: Vec<u8> = [i64::MIN, i64::MAX].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(stats(DType::I64, None, &ends).mean, -0.5);
    }

    #[test]
    fn scaling_that_overflows_counts_infinities() {
        let map = Linear::new(1e308, 1.7e308);
        let got = stats(DType::U8, Some(map), &[0, 1, 2]);
        assert_eq!((got.finite, got.positive_infinity, got.max), (1, 2, 1e308));
        let falling = stats(DType::U8, Some(Linear::new(1.0, -2.0)), &[0, 1, 2]);
        assert_eq!((falling.min, falling.max, falling.mean, falling.std), (-3.0, 1.0, -1.0, 2.0));
    }

    macro_rules! exact {
        ($($test:ident: $T:ty, $dtype:expr);* $(;)?) => { proptest! {$(
            #[test]
            fn $test(values in proptest::collection::vec(any::<$T>(), 0..9000)) {
                let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
                let got = stats($dtype, None, &bytes);
                let sum: i128 = values.iter().map(|v| i128::from(*v)).sum();
                prop_assert_eq!(got.exact.map_or(0, |e| e.sum), sum);
                if values.len() > 1 {
                    let n = values.len() as f64;
                    let mean = sum as f64 / n;
                    let m2: f64 = values.iter().map(|v| (*v as f64 - mean).powi(2)).sum();
                    let std = (m2 / (n - 1.0)).sqrt();
                    prop_assert!((got.std - std).abs() <= 1e-9 * std.max(1e-300));
                    prop_assert!((got.mean - mean).abs() <= 1e-12 * mean.abs().max(std));
                    prop_assert_eq!(got.min, *values.iter().min().unwrap() as f64);
                    prop_assert_eq!(got.max, *values.iter().max().unwrap() as f64);
                }
            }
        )*} };
    }
    exact! {
        u8_sums_are_exact: u8, DType::U8;
        i8_sums_are_exact: i8, DType::I8;
        u16_sums_are_exact: u16, DType::U16;
        i16_sums_are_exact: i16, DType::I16;
        u32_sums_are_exact: u32, DType::U32;
        i32_sums_are_exact: i32, DType::I32;
        u64_sums_are_exact: u64, DType::U64;
        i64_sums_are_exact: i64, DType::I64;
    }
}
