//! Sums of whole numbers, without rounding.

use crate::dtype::{DType, Kind};
use crate::layout::Linear;

use super::statistics::{ExactRange, RUN, Stats};

/// Whole numbers. Up to 32 bits the squares are summed exactly too; for 64 bits, where they would
/// not fit, the deviations of a run are exact and only their squares are rounded.
pub(super) struct Whole {
    count: u64,
    sum: i128,
    min: i128,
    max: i128,
    squares: u128,
    deviations: f64,
}

impl Whole {
    pub(super) fn new() -> Self {
        Self { count: 0, sum: 0, min: i128::MAX, max: i128::MIN, squares: 0, deviations: 0.0 }
    }

    pub(super) fn add(&mut self, dtype: DType, bytes: &[u8]) {
        let run = RUN * dtype.size();
        for part in bytes.chunks(run) {
            let next = pulp::Arch::new().dispatch(|| match (dtype.kind(), dtype.size()) {
                (Kind::UInt, 1) => run_u8(part),
                (Kind::Int, 1) => run_i8(part),
                (Kind::UInt, 2) => run_u16(part),
                (Kind::Int, 2) => run_i16(part),
                (Kind::UInt, 4) => run_u32(part),
                (Kind::Int, 4) => run_i32(part),
                (Kind::UInt, _) => run_u64(part),
                _ => run_i64(part),
            });
            self.join(&next);
        }
    }

    pub(super) fn join(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        self.deviations += other.deviations;
        if self.count > 0 {
            let ((q, r), (p, s)) = (self.mean_parts(), other.mean_parts());
            let delta = (p - q) as f64 + (s - r);
            let (a, b) = (self.count as f64, other.count as f64);
            self.deviations += delta * delta * (a * (b / (a + b)));
        }
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The mean as a whole number and a fraction.
    fn mean_parts(&self) -> (i128, f64) {
        let n = i128::from(self.count.max(1));
        let floor = self.sum.div_euclid(n);
        (floor, (self.sum - floor * n) as f64 / n as f64)
    }

    /// Sum of squared deviations from the mean.
    fn spread(&self) -> f64 {
        if self.squares == 0 {
            return self.deviations;
        }
        // Around the whole part q of the mean, where everything fits 128 bits exactly:
        // sum (x-q)^2 = sum x^2 - 2 q sum x + n q^2, and the rest r of the mean is taken off.
        let (q, r) = self.mean_parts();
        let n = i128::from(self.count);
        let around = self.squares as i128 - 2 * q * self.sum + n * q * q;
        around as f64 - n as f64 * r * r
    }

    pub(super) fn finish(&self, map: Option<Linear>) -> Stats {
        let count = self.count;
        let mapped = |x: f64| match map {
            _ if count == 0 => f64::NAN,
            Some(m) => m.apply(x),
            None => x,
        };
        let (low, high) = (mapped(self.min as f64), mapped(self.max as f64));
        let (q, r) = self.mean_parts();
        let std = (self.spread().max(0.0) / count.saturating_sub(1) as f64).sqrt();
        Stats {
            count,
            finite: count,
            nan: 0,
            positive_infinity: 0,
            negative_infinity: 0,
            min: low.min(high),
            max: low.max(high),
            mean: mapped(q as f64 + r).max(low.min(high)).min(low.max(high)),
            std: if count < 2 { f64::NAN } else { std * map.map_or(1.0, |m| m.slope.abs()) },
            exact: (count > 0).then_some(ExactRange {
                min: self.min,
                max: self.max,
                sum: self.sum,
            }),
        }
    }
}

/// Squares of 8-bit numbers: a run of them fits 32 bits.
macro_rules! squares_8 {
    ($T:ty, $numbers:expr) => {{
        let mut squares = 0_i32;
        for b in $numbers {
            let x = i32::from(<$T>::from_le_bytes(*b) as i16);
            squares += x * x;
        }
        squares as u128
    }};
}

/// Squares of 16-bit numbers fit 32 bits, a run of them 64.
macro_rules! squares_16 {
    ($T:ty, $numbers:expr) => {{
        let mut squares = 0_u64;
        for b in $numbers {
            let x = i32::from(<$T>::from_le_bytes(*b)) as u32;
            squares += u64::from(x.wrapping_mul(x));
        }
        u128::from(squares)
    }};
}

/// Squares of 32-bit numbers fit 64 bits; their halves are summed apart.
macro_rules! squares_32 {
    ($T:ty, $numbers:expr) => {{
        let (mut low, mut high) = (0_u64, 0_u64);
        for b in $numbers {
            let x = i64::from(<$T>::from_le_bytes(*b)) as u64;
            let square = x.wrapping_mul(x);
            low += square & 0xffff_ffff;
            high += square >> 32;
        }
        (u128::from(high) << 32) + u128::from(low)
    }};
}

/// One run of a narrow type. The extremes, the sum and the squares are separate loops: each then
/// runs at the full width of its own type.
macro_rules! narrow_run {
    ($name:ident, $T:ty, $Sum:ty, $squares:ident) => {
        #[inline(always)]
        fn $name(bytes: &[u8]) -> Whole {
            let numbers = bytes.as_chunks::<{ size_of::<$T>() }>().0;
            let (mut min, mut max) = (<$T>::MAX, <$T>::MIN);
            for b in numbers {
                let x = <$T>::from_le_bytes(*b);
                min = min.min(x);
                max = max.max(x);
            }
            let mut sum: $Sum = 0;
            for b in numbers {
                sum += <$Sum>::from(<$T>::from_le_bytes(*b));
            }
            Whole {
                count: numbers.len() as u64,
                sum: sum.into(),
                min: min.into(),
                max: max.into(),
                squares: $squares!($T, numbers),
                deviations: 0.0,
            }
        }
    };
}

narrow_run!(run_u8, u8, i32, squares_8);
narrow_run!(run_i8, i8, i32, squares_8);
narrow_run!(run_u16, u16, i32, squares_16);
narrow_run!(run_i16, i16, i32, squares_16);
narrow_run!(run_u32, u32, i64, squares_32);
narrow_run!(run_i32, i32, i64, squares_32);

macro_rules! wide_run {
    ($name:ident, $T:ty) => {
        #[inline(always)]
        fn $name(bytes: &[u8]) -> Whole {
            let numbers = || bytes.as_chunks::<8>().0.iter().map(|b| <$T>::from_le_bytes(*b));
            let mut whole = Whole::new();
            for x in numbers() {
                let x = i128::from(x);
                whole.sum += x;
                whole.min = whole.min.min(x);
                whole.max = whole.max.max(x);
                whole.count += 1;
            }
            let (q, r) = whole.mean_parts();
            let near = whole.max.saturating_sub(whole.min) <= i128::from(i64::MAX);
            whole.deviations = numbers()
                .map(|x| {
                    let whole_part = if near {
                        x.wrapping_sub(q as $T) as i64 as f64
                    } else {
                        (i128::from(x) - q) as f64
                    };
                    (whole_part - r) * (whole_part - r)
                })
                .sum();
            whole
        }
    };
}

wide_run!(run_u64, u64);
wide_run!(run_i64, i64);
