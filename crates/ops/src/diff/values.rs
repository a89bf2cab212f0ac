//! Compares the values of two arrays of the same shape.
//!
//! Boxes of both are read into reused buffers. Equal bytes are skipped; only differing ones are converted to
//! numbers.

use rayon::prelude::*;
use spile_core::select::boxes;
use spile_core::{Array, Axes, ByteOrder, DType, Kind, Linear, Result, Selection, Shape, convert};

use super::Rules;

/// Number of elements of a box.
const BOX: u64 = 128 << 10;

/// The difference of two arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Gap {
    /// Number of elements that differ by more than the tolerance.
    pub(crate) differ: u64,
    /// The pair with the largest difference.
    pub(crate) worst: Option<Worst>,
}

/// Two elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Worst {
    /// Their index.
    pub(crate) index: Vec<u64>,
    /// The absolute difference; infinite if one of them is NaN, none for text and bytes.
    pub(crate) distance: Option<f64>,
    pub(crate) first: String,
    pub(crate) second: String,
}

impl Gap {
    fn merge(mut self, other: Self) -> Self {
        self.differ += other.differ;
        // The first of equal differences, independent of the threads.
        if let Some(theirs) = other.worst {
            match &self.worst {
                Some(ours) if ours.distance >= theirs.distance => {}
                _ => self.worst = Some(theirs),
            }
        }
        self
    }
}

/// How elements are compared.
#[derive(Clone, Copy)]
enum Class {
    /// Exactly, by stored values.
    Integer,
    /// By physical values.
    Real,
    /// Pairs of reals.
    Complex,
    /// Text and bytes: equal or not.
    Bytes,
}

/// Compares all elements.
pub(crate) fn compare(first: &Array, second: &Array, rules: &Rules) -> Result<Gap> {
    // A missing value equals NaN.
    let physical = first.missing() != second.missing();
    let of = |array: &Array| if physical { array.physical() } else { array.clone() };
    let (first, second) = (&of(first), &of(second));
    // Fails if all elements are too many to be read.
    first.all()?;
    second.all()?;
    let pair = Pair::new(first, second, rules);
    let parts: Vec<Selection> = boxes(first.shape(), first.order(), BOX).collect();
    parts
        .par_iter()
        .map_init(Buffers::default, |buffers, part| pair.part(part, buffers))
        .try_reduce(Gap::default, |a, b| Ok(a.merge(b)))
}

#[derive(Default)]
struct Buffers {
    bytes: [Vec<u8>; 2],
    reals: [Vec<f64>; 2],
}

struct Pair<'a> {
    arrays: [&'a Array; 2],
    class: Class,
    rules: &'a Rules,
}

/// The coefficients of the scaling. Stored values are compared: rounding of the scaling is no difference.
fn pair(array: &Array) -> Option<(f64, f64)> {
    array.map().map(Linear::coefficients)
}

impl<'a> Pair<'a> {
    fn new(first: &'a Array, second: &'a Array, rules: &'a Rules) -> Self {
        let kinds = [first.dtype().kind(), second.dtype().kind()];
        let whole = |kind| matches!(kind, Kind::Int | Kind::UInt | Kind::Bool);
        let class = if kinds.iter().all(|kind| whole(*kind)) && pair(first) == pair(second) {
            Class::Integer
        } else if kinds.iter().all(|kind| matches!(kind, Kind::Complex | Kind::ComplexX87)) {
            Class::Complex
        } else if kinds.iter().all(|k| whole(*k) || matches!(k, Kind::Float | Kind::X87)) {
            Class::Real
        } else {
            Class::Bytes
        };
        Self { arrays: [first, second], class, rules }
    }

    fn part(&self, part: &Selection, buffers: &mut Buffers) -> Result<Gap> {
        let [first, second] = self.arrays;
        let axes = Axes::Order(first.order());
        let mut spans = Vec::new();
        for (array, bytes) in self.arrays.iter().zip(&mut buffers.bytes) {
            let selected = array.select(part, axes)?;
            bytes.resize(selected.count() as usize * array.dtype().size(), 0);
            selected.read_into(bytes)?;
            spans = selected.spans().to_vec();
        }
        let little = |array: &Array| array.dtype().with_order(ByteOrder::Little);
        let alike = little(first) == little(second) && pair(first) == pair(second);
        let [one, two] = &buffers.bytes;
        // Equal bytes are equal values, except for NaN if NaN differs from NaN.
        if alike && one == two && (self.rules.nan_equal || !self.may_be_nan()) {
            return Ok(Gap::default());
        }
        let mut gap = Gap::default();
        let mut worst: Option<(usize, Option<f64>)> = None;
        let mut found = |k: usize, distance: Option<f64>| {
            gap.differ += 1;
            if worst.is_none_or(|(_, known)| distance > known) {
                worst = Some((k, distance));
            }
        };
        let [size, other] = [first.dtype().size(), second.dtype().size()];
        match self.class {
            Class::Bytes => {
                // Texts of different lengths are padded with NUL.
                let text = [first, second].iter().all(|array| array.dtype().kind() == Kind::Text);
                let trim = |element: &'_ [u8]| -> usize {
                    let end = element.iter().rposition(|b| *b != 0 || !text);
                    end.map_or(0, |last| last + 1)
                };
                let pairs = one.chunks(size.max(1)).zip(two.chunks(other.max(1)));
                let pairs = pairs.map(|(a, b)| (&a[..trim(a)], &b[..trim(b)]));
                pairs.enumerate().filter(|(_, (a, b))| a != b).for_each(|(k, _)| found(k, None));
            }
            Class::Integer => {
                let slope = first.map().map_or(1.0, |map| map.slope.abs());
                let pairs = one.chunks(size).zip(two.chunks(other));
                for (k, (a, b)) in pairs.enumerate() {
                    let (a, b) = (integer(first.dtype(), a), integer(second.dtype(), b));
                    let distance = slope * (a.abs_diff(b)) as f64;
                    if a != b && !self.rules.allows(distance, slope * b.unsigned_abs() as f64) {
                        found(k, Some(distance));
                    }
                }
            }
            Class::Real | Class::Complex => {
                let parts = if matches!(self.class, Class::Complex) { 2 } else { 1 };
                for (array, (bytes, reals)) in
                    self.arrays.iter().zip(buffers.bytes.iter().zip(&mut buffers.reals))
                {
                    convert::to_f64(convert::part(array.dtype()), array.map(), bytes, reals);
                }
                let [a, b] = &buffers.reals;
                // Digits beyond `f64`; the padding of 80-bit numbers is ignored.
                let number = convert::part(first.dtype());
                let (word, used) = (number.size(), number.used());
                let wide = alike && word > 8;
                for (k, (a, b)) in a.iter().zip(b).enumerate() {
                    let element = k / parts;
                    let hidden = || one[k * word..][..used] != two[k * word..][..used];
                    let same = a == b || (a.is_nan() && b.is_nan() && self.rules.nan_equal);
                    if same && !(wide && self.rules.is_exact() && hidden()) {
                        continue;
                    }
                    let distance = (a - b).abs();
                    let near = distance.is_finite()
                        && (self.rules.allows(distance, b.abs()) && !same
                            || self.ulps(*a, *b) <= self.rules.ulp);
                    if !near {
                        found(
                            element,
                            Some(if distance.is_nan() { f64::INFINITY } else { distance }),
                        );
                    }
                }
            }
        }
        gap.worst = worst.map(|(k, distance)| {
            let text = |array: &Array, bytes: &[u8]| {
                let size = array.dtype().size();
                written(array, &bytes[k * size..(k + 1) * size])
            };
            let counts: Vec<u64> = spans.iter().map(|span| span.count).collect();
            let strides = Shape::new(counts.clone()).strides(first.order());
            let along = |(axis, span): (usize, &spile_core::select::Span)| {
                span.start + k as u64 / strides[axis] % counts[axis]
            };
            Worst {
                index: spans.iter().enumerate().map(along).collect(),
                distance,
                first: text(first, &buffers.bytes[0]),
                second: text(second, &buffers.bytes[1]),
            }
        });
        Ok(gap)
    }

    fn may_be_nan(&self) -> bool {
        matches!(self.class, Class::Real | Class::Complex)
    }

    /// Difference in units in the last place of the less precise type.
    fn ulps(&self, a: f64, b: f64) -> u64 {
        if self.rules.ulp == 0 {
            return u64::MAX;
        }
        let small = |array: &&Array| convert::part(array.dtype()).size() == 4;
        if self.arrays.iter().any(small) && self.arrays.iter().all(|a| a.map().is_none()) {
            let order = |v: f32| {
                let bits = v.to_bits().cast_signed();
                i64::from(if bits < 0 { i32::MIN - bits } else { bits })
            };
            return order(a as f32).abs_diff(order(b as f32));
        }
        let order = |v: f64| {
            let bits = v.to_bits().cast_signed();
            i128::from(if bits < 0 { i64::MIN - bits } else { bits })
        };
        u64::try_from(order(a).abs_diff(order(b))).unwrap_or(u64::MAX)
    }
}

fn integer(dtype: DType, element: &[u8]) -> i128 {
    if dtype.kind() == Kind::Bool {
        return i128::from(element.iter().any(|byte| *byte != 0));
    }
    let negative = dtype.kind() == Kind::Int && element.last().is_some_and(|byte| byte >> 7 == 1);
    let mut bytes = [if negative { 0xff } else { 0 }; 16];
    let len = element.len().min(16);
    bytes[..len].copy_from_slice(&element[..len]);
    i128::from_le_bytes(bytes)
}

/// An element as text: the physical value where it has scaling, else the stored value.
fn written(array: &Array, element: &[u8]) -> String {
    let mut text = String::new();
    let dtype = array.dtype().with_order(ByteOrder::Little);
    match array.map() {
        Some(map) => convert::write_f64(map.apply(convert::element_f64(dtype, element)), &mut text),
        None => convert::write_element(dtype, element, &mut text),
    }
    text
}
