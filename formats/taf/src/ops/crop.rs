//! `crop`: a part of one dimension.

use std::path::Path;

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::read::Axes;
use spile_core::select::{Selection, Slice};
use spile_core::shape::Shape;

use super::{Target, dimension_index, rewrite};
use crate::read::File;
use crate::wire::Dimension;

/// A grid point this close to a bound, in steps, counts as on it.
const TOLERANCE: f64 = 1e-9;

/// Indices to either side of a guess that are looked at: more than the guess can be wrong by.
const NEIGHBOURS: u64 = 1024;

/// Inclusive bounds; both given mean what both allow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// In grid values; infinite ones keep everything on that side.
    pub grid: Option<(f64, f64)>,
    /// In indices, the first element is 1.
    pub index: Option<(u64, u64)>,
}

/// Keeps the part of dimension `number` inside `bounds`. Returns the new size.
pub fn crop(
    path: &Path,
    number: usize,
    bounds: Bounds,
    target: &Target,
    limits: &Limits,
) -> Result<Shape> {
    let _lock = target.lock(path)?;
    let file = File::open(path, limits)?;
    let index = dimension_index(file.header(), number).map_err(|e| e.with_path(path))?;
    let old = file.header().dimensions[index];
    let (first, last) = kept(old, bounds)
        .map_err(|e| e.in_object(format!("dimension {number}")).with_path(path))?;
    let mut header = file.header().clone();
    header.dimensions[index] =
        Dimension { length: last - first + 1, start: old.at(first), step: old.step };
    let mut slices = vec![Slice::ALL; header.dimensions.len()];
    slices[index] = Slice::range(first, last + 1);
    let array = file.array()?;
    let selected = array.select(&Selection(slices), Axes::Stored)?;
    rewrite(&file, path, target, &header, &selected)?;
    Ok(header.shape())
}

/// First and last index that stay, counted from zero.
pub(super) fn kept(dimension: Dimension, bounds: Bounds) -> Result<(u64, u64)> {
    let length = dimension.length;
    let empty = || Error::argument("no element lies inside the bounds");
    let (mut first, mut last) = (0, length.checked_sub(1).ok_or_else(empty)?);
    if let Some((from, to)) = bounds.index {
        if from < 1 || to > length {
            return Err(Error::argument(format!("index {from} to {to} is outside 1 to {length}")));
        }
        if from > to {
            return Err(empty());
        }
        (first, last) = (from - 1, to - 1);
    }
    if let Some((low, high)) = bounds.grid {
        let Dimension { start, step, .. } = dimension;
        if !start.is_finite() || !step.is_finite() || low.is_nan() || high.is_nan() {
            return Err(Error::argument("grid bounds need a finite grid and numbers"));
        }
        if step == 0.0 {
            if !(low..=high).contains(&start) {
                return Err(empty());
            }
            return Ok((first, last));
        }
        let (near, far) = if step > 0.0 { (low, high) } else { (high, low) };
        // The division only finds the neighbourhood: far from the start its rounding is many
        // times the tolerance. The grid values themselves decide.
        let guess = |bound: f64| ((bound - start) / step).clamp(0.0, (length - 1) as f64) as u64;
        let slack = |bound: f64| {
            let digits = 2.0 * f64::EPSILON * bound.abs().max(start.abs());
            (TOLERANCE * step.abs()).max(if digits.is_finite() { digits } else { 0.0 })
        };
        // How far a grid point lies inside a bound, walking along the grid.
        let past = |index: u64, bound: f64| (dimension.at(index) - bound) * step.signum();
        let mut from = guess(near).saturating_sub(NEIGHBOURS);
        while from < length && past(from, near) < -slack(near) {
            from += 1;
        }
        let mut to = guess(far).saturating_add(NEIGHBOURS).min(length - 1);
        while past(to, far) > slack(far) {
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
        let grid = |d, low, high| kept(d, Bounds { grid: Some((low, high)), index: None }).ok();
        assert_eq!(grid(up, 0.3, 0.7), Some((3, 7)));
        assert_eq!(grid(down, 0.3, 0.7), Some((3, 7)));
        assert_eq!(grid(up, f64::NEG_INFINITY, 0.05), Some((0, 0)));
        assert_eq!(grid(up, 0.95, f64::INFINITY), Some((10, 10)));
        assert_eq!(grid(up, 0.51, 0.59), None);
        assert_eq!(grid(up, 2.0, 3.0), None);
        assert_eq!(grid(up, 0.7, 0.3), None);
        let both = |g, i| kept(up, Bounds { grid: Some(g), index: Some(i) }).ok();
        assert_eq!(both((0.3, 0.7), (1, 5)), Some((3, 4)));
        assert_eq!(both((0.3, 0.7), (9, 11)), None);
        let index = |from, to| kept(up, Bounds { grid: None, index: Some((from, to)) }).ok();
        assert_eq!(index(1, 11), Some((0, 10)));
        assert_eq!((index(0, 3), index(1, 12), index(5, 4)), (None, None, None));
        assert_eq!(kept(Dimension { length: 0, ..up }, Bounds::default()).ok(), None);
    }
}
