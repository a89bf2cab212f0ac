//! `adjust`: change the implicit grid of one dimension.

use std::path::Path;

use spile_core::{Error, Limits, Result};

use super::dimension_index;
use crate::journal;
use crate::wire::{Dimension, dimension_offset};

/// Change of a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Adjust {
    /// Add a value to the start.
    Shift(f64),
    /// Multiply start and step by a factor other than 0.
    Scale(f64),
    /// Set the start.
    Start(f64),
    /// Set the step.
    Step(f64),
    /// Set the first and the last grid value, in increasing order.
    Span(f64, f64),
}

/// Changes the grid of dimension `number`, which counts from 1, in place with one write of 16 bytes.
/// Returns the new dimension.
///
/// # Errors
/// No such dimension, or a grid that is not finite. The file is then unchanged.
pub fn adjust(path: &Path, number: usize, change: Adjust, limits: &Limits) -> Result<Dimension> {
    let (sink, file) = journal::lock(path, limits)?;
    let index = dimension_index(file.header(), number).map_err(|e| e.with_path(path))?;
    let new = adjusted(file.header().dimensions[index], change).map_err(|e| e.with_path(path))?;
    let entry = [new.start.to_le_bytes(), new.step.to_le_bytes()].concat();
    journal::overwrite(&sink, &file, dimension_offset(index) + 8, &entry)?;
    Ok(new)
}

fn adjusted(old: Dimension, change: Adjust) -> Result<Dimension> {
    let new = match change {
        Adjust::Shift(by) => Dimension { start: old.start + by, ..old },
        Adjust::Scale(0.0) => {
            return Err(Error::argument("expected a scale factor other than 0"));
        }
        Adjust::Scale(by) => Dimension { start: old.start * by, step: old.step * by, ..old },
        Adjust::Start(start) => Dimension { start, ..old },
        Adjust::Step(step) => Dimension { step, ..old },
        Adjust::Span(..) if old.length < 2 => {
            return Err(Error::argument("a span requires a dimension with at least 2 elements"));
        }
        Adjust::Span(min, max) if min.is_finite() && max.is_finite() && min >= max => {
            return Err(Error::argument(format!("expected min < max, found {min} and {max}")));
        }
        Adjust::Span(min, max) => {
            Dimension { start: min, step: (max - min) / (old.length - 1) as f64, ..old }
        }
    };
    if new.start.is_finite() && new.step.is_finite() {
        return Ok(new);
    }
    Err(Error::argument("the new grid is not finite; the file is unchanged"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_adjustment_gives_the_grid_of_the_report() {
        let old = Dimension { length: 5, start: 2.0, step: 0.5 };
        let grid = |change| adjusted(old, change).map(|d| (d.start, d.step)).ok();
        assert_eq!(grid(Adjust::Shift(-2.0)), Some((0.0, 0.5)));
        assert_eq!(grid(Adjust::Scale(10.0)), Some((20.0, 5.0)));
        assert_eq!(grid(Adjust::Start(7.0)), Some((7.0, 0.5)));
        assert_eq!(grid(Adjust::Step(-1.0)), Some((2.0, -1.0)));
        assert_eq!(grid(Adjust::Span(0.0, 1.0)), Some((0.0, 0.25)));
        for bad in [
            Adjust::Scale(0.0),
            Adjust::Span(1.0, 1.0),
            Adjust::Span(2.0, 1.0),
            Adjust::Shift(f64::NAN),
            Adjust::Start(f64::INFINITY),
            Adjust::Span(f64::NEG_INFINITY, 0.0),
        ] {
            assert_eq!(grid(bad), None, "{bad:?}");
        }
        assert!(adjusted(Dimension { length: 1, ..old }, Adjust::Span(0.0, 1.0)).is_err());
    }
}
