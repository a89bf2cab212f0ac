//! Exact sums of integers.

use crate::{DType, Kind, Linear};

use super::statistics::{ExactRange, RUN, Stats};

/// Sums of integers. For types up to 32 bits the squares are summed exactly; for 64 bits the deviations of
/// a run are exact and only their squares are rounded.
#[derive(Clone, Copy)]
pub(super) struct Integers {
    count: u64,
    sum: i128,
    min: i128,
    max: i128,
    squares: u128,
    deviations: f64,
}

impl Integers {
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

    /// Adds one element `count` times.
    pub(super) fn add_repeated(&mut self, dtype: DType, element: &[u8], count: u64) {
        let mut one = Self::new();
        one.add(dtype, element);
        one.count *= count;
        one.sum *= i128::from(count);
        one.squares *= u128::from(count);
        self.join(&one);
    }

    fn join(&mut self, other: &Self) {
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

    pub(super) fn merge(mut self, other: Self) -> Self {
        self.join(&other);
        self
    }

    /// The mean as an integer and a fraction.
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
        // Around the integer part q of the mean, where everything fits 128 bits exactly:
        // sum (x-q)^2 = sum x^2 - 2 q sum x + n q^2; the fraction r of the mean is subtracted.
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

/// Sum of squares of a run of 8-bit or 16-bit numbers: the squares fit 32 bits, the sum 64.
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

/// Sum of squares of a run of 32-bit numbers: the squares fit 64 bits; their halves are summed separately.
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

/// One run of a type up to 32 bits. Extremes, sum and squares are separate loops so that each is
/// vectorised at the width of its type.
macro_rules! narrow_run {
    ($name:ident, $T:ty, $Sum:ty, $squares:ident) => {
        #[inline(always)]
        fn $name(bytes: &[u8]) -> Integers {
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
            Integers {
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

narrow_run!(run_u8, u8, i32, squares_16);
narrow_run!(run_i8, i8, i32, squares_16);
narrow_run!(run_u16, u16, i32, squares_16);
narrow_run!(run_i16, i16, i32, squares_16);
narrow_run!(run_u32, u32, i64, squares_32);
narrow_run!(run_i32, i32, i64, squares_32);

macro_rules! wide_run {
    ($name:ident, $T:ty) => {
        #[inline(always)]
        fn $name(bytes: &[u8]) -> Integers {
            let numbers = || bytes.as_chunks::<8>().0.iter().map(|b| <$T>::from_le_bytes(*b));
            let mut sums = Integers::new();
            for x in numbers() {
                let x = i128::from(x);
                sums.sum += x;
                sums.min = sums.min.min(x);
                sums.max = sums.max.max(x);
                sums.count += 1;
            }
            let (q, r) = sums.mean_parts();
            let narrow = sums.max.saturating_sub(sums.min) <= i128::from(i64::MAX);
            sums.deviations = numbers()
                .map(|x| {
                    let integer_part = if narrow {
                        x.wrapping_sub(q as $T) as i64 as f64
                    } else {
                        (i128::from(x) - q) as f64
                    };
                    (integer_part - r) * (integer_part - r)
                })
                .sum();
            sums
        }
    };
}

wide_run!(run_u64, u64);
wide_run!(run_i64, i64);
