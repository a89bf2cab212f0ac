//! `crop`: select a range of one dimension.

use std::path::Path;

use spile_core::{Axes, Error, Limits, Result, Selection, Shape, Slice};

use super::{Target, dimension_index, rewrite};
use crate::wire::Dimension;

/// A grid value within this fraction of a step counts as equal to a bound.
const TOLERANCE: f64 = 1e-9;

/// Largest error, in indices, of the position computed by a division.
const SEARCH_RADIUS: u64 = 1024;

/// Inclusive bounds. If both kinds are given, the intersection is used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Smallest and largest grid value; infinite for no bound.
    pub grid: Option<(f64, f64)>,
    /// First and last index, counted from 1.
    pub index: Option<(u64, u64)>,
}

/// Keeps the elements of dimension `number` inside `bounds`. Returns the new shape.
///
/// # Errors
/// No such dimension, an index outside the dimension, or no element inside the bounds.
pub fn crop(
    path: &Path,
    number: usize,
    bounds: Bounds,
    target: &Target,
    limits: &Limits,
) -> Result<Shape> {
    let (_lock, file) = target.open(path, limits)?;
    let index = dimension_index(file.header(), number).map_err(|e| e.with_path(path))?;
    let old = file.header().dimensions[index];
    let (first, last) = index_range(old, bounds)
        .map_err(|e| e.in_object(format!("dimension {number}")).with_path(path))?;
    let mut header = file.header().clone();
    header.dimensions[index] =
        Dimension { length: last - first + 1, start: old.grid_value(first), step: old.step };
    let mut slices = vec![Slice::ALL; header.dimensions.len()];
    slices[index] = Slice::range(first, last + 1);
    let array = file.array()?;
    let selected = array.select(&Selection(slices), Axes::Stored)?;
    rewrite(&file, path, target, &header, &selected, None)?;
    Ok(header.shape())
}

/// First and last zero-based index inside `bounds`.
pub(super) fn index_range(dimension: Dimension, bounds: Bounds) -> Result<(u64, u64)> {
    let length = dimension.length;
    let empty = || Error::argument("no element inside the bounds");
    let (mut first, mut last) = (0, length.checked_sub(1).ok_or_else(empty)?);
    if let Some((from, to)) = bounds.index {
        if from < 1 || to > length {
            return Err(Error::argument(format!(
                "index range {from} to {to} is outside 1 to {length}"
            )));
        }
        if from > to {
            return Err(empty());
        }
        (first, last) = (from - 1, to - 1);
    }
    if let Some((low, high)) = bounds.grid {
        let Dimension { start, step, .. } = dimension;
        if !start.is_finite() || !step.is_finite() || low.is_nan() || high.is_nan() {
            return Err(Error::argument("grid bounds require a finite grid and must not be NaN"));
        }
        if step == 0.0 {
            if !(low..=high).contains(&start) {
                return Err(empty());
            }
            return Ok((first, last));
        }
        let (near, far) = if step > 0.0 { (low, high) } else { (high, low) };
        // The division only gives an estimate: far from the start its rounding error is many times
        // the tolerance. The grid values decide.
        let estimate = |bound: f64| ((bound - start) / step).clamp(0.0, (length - 1) as f64) as u64;
        let tolerance = |bound: f64| {
            let rounding = 2.0 * f64::EPSILON * bound.abs().max(start.abs());
            (TOLERANCE * step.abs()).max(if rounding.is_finite() { rounding } else { 0.0 })
        };
        // Signed distance from a bound in the direction of the grid.
        let past = |index: u64, bound: f64| (dimension.grid_value(index) - bound) * step.signum();
        let mut from = estimate(near).saturating_sub(SEARCH_RADIUS);
        while from < length && past(from, near) < -tolerance(near) {
            from += 1;
        }
        let mut to = estimate(far).saturating_add(SEARCH_RADIUS).min(length - 1);
        while past(to, far) > tolerance(far) {
            to = to.checked_sub(1).ok_or_else(empty)?;
        }
        first = first.max(from);
        last = last.min(to);
    }
    if first <= last { Ok((first, last)) } else { Err(empty()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_inclusive_and_intersect() {
        let up = Dimension { length: 11, start: 0.0, step: 0.1 };
        let down = Dimension { length: 11, start: 1.0, step: -0.1 };
        let grid =
            |d, low, high| index_range(d, Bounds { grid: Some((low, high)), index: None }).ok();
        assert_eq!(grid(up, 0.3, 0.7), Some((3, 7)));
        assert_eq!(grid(down, 0.3, 0.7), Some((3, 7)));
        assert_eq!(grid(up, f64::NEG_INFINITY, 0.05), Some((0, 0)));
        assert_eq!(grid(up, 0.95, f64::INFINITY), Some((10, 10)));
        assert_eq!(grid(up, 0.51, 0.59), None);
        assert_eq!(grid(up, 2.0, 3.0), None);
        assert_eq!(grid(up, 0.7, 0.3), None);
        let both = |g, i| index_range(up, Bounds { grid: Some(g), index: Some(i) }).ok();
        assert_eq!(both((0.3, 0.7), (1, 5)), Some((3, 4)));
        assert_eq!(both((0.3, 0.7), (9, 11)), None);
        let index = |from, to| index_range(up, Bounds { grid: None, index: Some((from, to)) }).ok();
        assert_eq!(index(1, 11), Some((0, 10)));
        assert_eq!((index(0, 3), index(1, 12), index(5, 4)), (None, None, None));
        assert_eq!(index_range(Dimension { length: 0, ..up }, Bounds::default()).ok(), None);
    }
}
