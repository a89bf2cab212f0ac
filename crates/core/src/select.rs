//! Selections of array elements by slices.
//!
//! The text form is that of NumPy: `0:100:10, 3, :`. Indices start at 0, negative ones count from the
//! end, the stop is exclusive, the step may be negative, `...` stands for the remaining dimensions.

use std::str::FromStr;

use crate::{Error, Order, Result, Shape};

/// Selection along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// One index; the dimension is removed from the result.
    Index(i64),
    /// A range with a step; a missing end is the end of the dimension.
    Range {
        /// First index.
        start: Option<i64>,
        /// End, exclusive.
        stop: Option<i64>,
        /// Step, not 0.
        step: i64,
    },
    /// The ellipsis `...`: all dimensions that no other slice selects.
    Rest,
}

impl Slice {
    /// The entire dimension, `:`.
    pub const ALL: Self = Self::Range { start: None, stop: None, step: 1 };

    /// The indices `start..stop`.
    pub fn range(start: u64, stop: u64) -> Self {
        // Larger numbers would become negative; no dimension is that long.
        let end = |at: u64| Some(i64::try_from(at).unwrap_or(i64::MAX));
        Self::Range { start: end(start), stop: end(stop), step: 1 }
    }
}

/// Selection of elements: one slice per dimension; trailing dimensions without a slice are selected
/// entirely.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection(pub Vec<Slice>);

/// A slice applied to a dimension of known length: the indices `start + k * step` for `k < count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// First index.
    pub start: u64,
    /// Number of indices.
    pub count: u64,
    /// Distance between indices.
    pub step: i64,
    /// The dimension was selected by a single index and is removed from the result.
    pub dropped: bool,
}

impl Selection {
    /// All elements.
    pub fn all() -> Self {
        Self::default()
    }

    /// Applies the selection to a shape; returns one span per dimension. Ranges are clipped as in Python.
    /// Fails if a single index is out of bounds or there are more slices than dimensions.
    pub fn resolve(&self, shape: &Shape) -> Result<Vec<Span>> {
        let given = self.0.iter().filter(|s| !matches!(s, Slice::Rest)).count();
        let rank = shape.rank();
        if given > rank {
            return Err(Error::argument(format!(
                "too many indices: the array ({shape}) has {rank} dimensions, the selection {given}"
            )));
        }
        let mut spans = Vec::with_capacity(rank);
        let mut rest_used = false;
        for slice in &self.0 {
            if *slice == Slice::Rest {
                if rest_used {
                    return Err(Error::argument("a selection can contain only one `...`"));
                }
                rest_used = true;
                for _ in 0..rank - given {
                    spans.push(span(Slice::ALL, shape.lengths()[spans.len()])?);
                }
            } else {
                spans.push(span(*slice, shape.lengths()[spans.len()])?);
            }
        }
        while spans.len() < rank {
            spans.push(span(Slice::ALL, shape.lengths()[spans.len()])?);
        }
        Ok(spans)
    }
}

fn span(slice: Slice, length: u64) -> Result<Span> {
    let size = i64::try_from(length).unwrap_or(i64::MAX);
    match slice {
        Slice::Index(index) => {
            let at = if index < 0 { index.saturating_add(size) } else { index };
            if at < 0 || at >= size {
                return Err(Error::argument(format!(
                    "index {index} is out of bounds for a dimension of length {length}"
                )));
            }
            Ok(Span { start: at as u64, count: 1, step: 1, dropped: true })
        }
        Slice::Range { step: 0, .. } => Err(Error::argument("the step of a slice cannot be 0")),
        Slice::Range { start, stop, step } => {
            let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
            let clamp = |end: Option<i64>, default: i64| match end {
                None => default,
                Some(i) => (if i < 0 { i.saturating_add(size) } else { i }).clamp(low, high),
            };
            let (first, end) = if step > 0 {
                (clamp(start, low), clamp(stop, high))
            } else {
                (clamp(start, high), clamp(stop, low))
            };
            let gap = if step > 0 { end.saturating_sub(first) } else { first.saturating_sub(end) };
            let count = if gap <= 0 { 0 } else { (gap as u64 - 1) / step.unsigned_abs() + 1 };
            Ok(Span {
                start: if count == 0 { 0 } else { first as u64 },
                count,
                step,
                dropped: false,
            })
        }
        // Expanded by the caller.
        Slice::Rest => span(Slice::ALL, length),
    }
}

/// Splits an array into boxes of at most about `elements` elements, in `order`. Used to read two arrays
/// with different layouts side by side.
pub fn boxes(
    shape: &Shape,
    order: Order,
    elements: u64,
) -> impl Iterator<Item = Selection> + use<> {
    let lengths = shape.lengths().to_vec();
    let slowest = order.slowest_first(lengths.len());
    // The slowest axis whose inner part fits a box is split; the axes before it are iterated.
    let mut split = slowest.len().saturating_sub(1);
    let mut inner = 1_u64;
    while split > 0 {
        let next = inner.saturating_mul(lengths[slowest[split]]);
        if next > elements {
            break;
        }
        inner = next;
        split -= 1;
    }
    let rows = (elements / inner.max(1)).max(1);
    let cuts: Vec<(usize, u64, u64)> = slowest
        .iter()
        .take(split + 1)
        .enumerate()
        .map(|(k, axis)| (*axis, if k == split { rows } else { 1 }, lengths[*axis]))
        .collect();
    let count = match shape.count() {
        Some(0) => 0,
        // No overflow if the number of elements fits 64 bits; other arrays cannot be read.
        _ => cuts.iter().map(|(_, rows, len)| len.div_ceil(*rows)).fold(1, u64::saturating_mul),
    };
    (0..count).map(move |number| {
        let mut slices = vec![Slice::ALL; lengths.len()];
        let mut rest = number;
        for (axis, rows, len) in cuts.iter().rev() {
            let boxes = len.div_ceil(*rows);
            let first = (rest % boxes) * rows;
            slices[*axis] = Slice::range(first, (first + rows).min(*len));
            rest /= boxes;
        }
        Selection(slices)
    })
}

impl FromStr for Selection {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let inner = text.trim().trim_start_matches('[').trim_end_matches(']').trim();
        if inner.is_empty() {
            return Ok(Self::all());
        }
        inner.split(',').map(|part| parse_slice(part.trim())).collect::<Result<_>>().map(Self)
    }
}

fn parse_slice(text: &str) -> Result<Slice> {
    let bad = || {
        Error::argument(format!("invalid slice \"{text}\""))
            .hint("valid slices are 3, 0:100, ::10, -5: and ..., separated by commas")
    };
    let number = |part: &str| -> Result<Option<i64>> {
        let part = part.trim();
        if part.is_empty() { Ok(None) } else { part.parse().map(Some).map_err(|_| bad()) }
    };
    if text == "..." {
        return Ok(Slice::Rest);
    }
    let parts: Vec<&str> = text.split(':').collect();
    match parts[..] {
        [index] => Ok(Slice::Index(number(index)?.ok_or_else(bad)?)),
        [start, stop] => Ok(Slice::Range { start: number(start)?, stop: number(stop)?, step: 1 }),
        [start, stop, step] => {
            let step = number(step)?.unwrap_or(1);
            if step == 0 {
                return Err(bad());
            }
            Ok(Slice::Range { start: number(start)?, stop: number(stop)?, step })
        }
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn one(text: &str, length: u64) -> Span {
        text.parse::<Selection>().unwrap().resolve(&Shape::new([length])).unwrap()[0]
    }

    #[test]
    fn slices_follow_python() {
        let cases = [
            (":", 0, 10, 1),
            ("2:5", 2, 3, 1),
            ("-3:", 7, 3, 1),
            ("::3", 0, 4, 3),
            ("::-1", 9, 10, -1),
            ("8:2:-3", 8, 2, -3),
            ("5:2", 0, 0, 1),
            ("0:100", 0, 10, 1),
            ("-100:100", 0, 10, 1),
        ];
        for (text, start, count, step) in cases {
            assert_eq!(one(text, 10), Span { start, count, step, dropped: false }, "{text}");
        }
    }

    #[test]
    fn an_index_out_of_bounds_is_an_error_and_an_ellipsis_fills_the_rank() {
        let shape = Shape::new([4, 5, 6]);
        assert!("4".parse::<Selection>().unwrap().resolve(&shape).is_err());
        assert!("0,0,0,0".parse::<Selection>().unwrap().resolve(&shape).is_err());
        let spans = "1, ..., -1".parse::<Selection>().unwrap().resolve(&shape).unwrap();
        assert_eq!(spans.iter().map(|s| s.count).collect::<Vec<_>>(), [1, 5, 1]);
        assert_eq!(spans[2].start, 5);
        for bad in ["a", "1:2:0", "1:2:3:4", "...,..."] {
            let parsed = bad.parse::<Selection>();
            assert!(parsed.is_err() || parsed.unwrap().resolve(&shape).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn every_selected_index_is_inside(
            start in proptest::option::of(any::<i64>()), stop in proptest::option::of(any::<i64>()),
            step in any::<i64>().prop_filter("zero", |s| *s != 0), length in 0_u64..1000)
        {
            let selection = Selection(vec![Slice::Range { start, stop, step }]);
            let span = selection.resolve(&Shape::new([length])).unwrap()[0];
            if span.count > 0 {
                let last = span.start as i128 + (span.count as i128 - 1) * i128::from(step);
                prop_assert!((0..i128::from(length)).contains(&last));
                prop_assert!(span.start < length);
            }
        }
    }

    #[test]
    fn boxes_cover_an_array_once_and_in_order() {
        for (lengths, elements) in
            [(vec![7, 5, 3], 4), (vec![7, 5, 3], 1), (vec![7, 5, 3], 40), (vec![9], 4), (vec![], 3)]
        {
            let shape = Shape::new(lengths);
            for order in [Order::C, Order::F] {
                let strides = shape.strides(order);
                let mut next = 0;
                for part in boxes(&shape, order, elements) {
                    let spans = part.resolve(&shape).unwrap();
                    let first: u64 = spans.iter().zip(&strides).map(|(s, n)| s.start * n).sum();
                    let count: u64 = spans.iter().map(|s| s.count).product();
                    assert_eq!(first, next, "{shape} {order:?} {part:?}");
                    assert!((1..=elements.max(1)).contains(&count));
                    next += count;
                }
                assert_eq!(Some(next), shape.count());
            }
        }
        assert_eq!(boxes(&Shape::new([3, 0, 5]), Order::C, 10).count(), 0);
    }
}
