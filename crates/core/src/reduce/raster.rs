//! Rasters: means of a two-dimensional selection in the cells of an image.

use crate::{Array, Axes, Error, Order, Result, Selection};

use super::statistics::{RUN, SHRINK, in_lanes};

/// Boundaries of at most `cells` cells of nearly equal length: the first index of each, and `length`.
pub fn even_cuts(length: u64, cells: usize) -> Vec<u64> {
    let cells = (cells as u64).clamp(1, length.max(1));
    let at = |k: u64| (u128::from(k) * u128::from(length) / u128::from(cells)) as u64;
    (0..=cells).map(at).collect()
}

/// Mean of the finite, scaled values in each cell of a selection along the dimensions `x` and `y`; NaN for
/// a cell without any. Cell `k` along a dimension has the selected indices `cuts[k]..cuts[k + 1]`; cuts
/// start at 0, increase strictly, and end at the number of indices. Cells are returned row by row, x
/// fastest. Fails if another dimension has more than one index or the cuts are invalid.
pub fn raster(
    array: &Array,
    selection: &Selection,
    (x, x_cuts): (usize, &[u64]),
    (y, y_cuts): (usize, &[u64]),
) -> Result<Vec<f64>> {
    let selected = array.select(selection, Axes::Stored)?;
    let spans = selected.spans();
    let other = |k: usize| k != x && k != y;
    if x == y || spans.iter().enumerate().any(|(k, s)| other(k) && s.count != 1) {
        return Err(Error::argument("a raster needs a selection with two dimensions"));
    }
    for (dimension, cuts) in [(x, x_cuts), (y, y_cuts)] {
        let length = spans.get(dimension).map(|s| s.count);
        let fits = cuts.first() == Some(&0) && cuts.last().copied() == length;
        if !fits || !cuts.is_sorted_by(|a, b| a < b) {
            return Err(Error::argument(format!(
                "invalid cell boundaries for dimension {dimension}"
            )));
        }
    }
    let x_fastest = (x > y) == (array.order() == Order::C);
    let (fast, slow) = if x_fastest { (x_cuts, y_cuts) } else { (y_cuts, x_cuts) };
    let (columns, rows) = (fast.len() - 1, slow.len() - 1);
    let cells = (columns as u64).saturating_mul(rows as u64);
    array.limits().allow(cells.saturating_mul(24), "the raster")?;

    let cut = Cut { fast, slow, length: fast.last().copied().unwrap_or(1).max(1) };
    let size = array.dtype().size().max(1);
    let sums = |scale: f64| {
        selected.fold(
            Part::default,
            |part, block, bytes| {
                let runs = bytes.chunks(RUN * size).enumerate();
                for (k, run) in runs {
                    array.to_physical(run, &mut part.numbers);
                    let first = block.first + (k * RUN) as u64;
                    pulp::Arch::new().dispatch(|| part.add(cut, first, scale));
                }
                Ok(())
            },
            Part::merge,
        )
    };
    let mut scale = 1.0;
    let mut part = sums(scale)?;
    if part.cells.iter().any(|cell| !cell.sum.is_finite()) {
        scale = SHRINK;
        part = sums(scale)?;
    }
    let mean = |k: usize| part.cells.get(k).map_or(f64::NAN, |c| c.sum / c.finite as f64 / scale);
    Ok(if x_fastest {
        (0..columns * rows).map(mean).collect()
    } else {
        (0..columns).flat_map(|c| (0..rows).map(move |r| r * columns + c)).map(mean).collect()
    })
}

/// Cell boundaries; `length` is the number of indices of the fastest dimension.
#[derive(Clone, Copy)]
struct Cut<'a> {
    fast: &'a [u64],
    slow: &'a [u64],
    length: u64,
}

/// The cell that contains `index`.
fn cell_of(cuts: &[u64], index: u64) -> usize {
    cuts.partition_point(|c| *c <= index).saturating_sub(1)
}

#[derive(Clone, Copy, Default)]
struct Cell {
    sum: f64,
    finite: u64,
}

/// The rows of cells that consecutive blocks touch.
#[derive(Default)]
struct Part {
    first: usize,
    columns: usize,
    cells: Vec<Cell>,
    /// Converted values of the current run.
    numbers: Vec<f64>,
}

impl Part {
    /// Adds `numbers`, starting at element `first` of the selection.
    #[inline(always)]
    fn add(&mut self, cut: Cut<'_>, first: u64, scale: f64) {
        let columns = cut.fast.len() - 1;
        let numbers = std::mem::take(&mut self.numbers);
        let mut rest = &numbers[..];
        let mut at = first;
        while !rest.is_empty() {
            let (row, mut index) = (cell_of(cut.slow, at / cut.length), at % cut.length);
            let (line, after) = rest.split_at(rest.len().min((cut.length - index) as usize));
            rest = after;
            at += line.len() as u64;
            if self.cells.is_empty() {
                (self.first, self.columns) = (row, columns);
            }
            let start = (row - self.first) * columns;
            if self.cells.len() < start + columns {
                self.cells.resize(start + columns, Cell::default());
            }
            let mut line = line;
            let mut column = cell_of(cut.fast, index);
            while !line.is_empty() {
                let wide = (cut.fast[column + 1] - index) as usize;
                let (run, after) = line.split_at(wide.min(line.len()));
                self.cells[start + column].add(run, scale);
                index += run.len() as u64;
                column += 1;
                line = after;
            }
        }
        self.numbers = numbers;
    }

    /// Parts are merged in order: `next` starts in the last row of cells of `self` or in the row after it.
    fn merge(mut self, next: Self) -> Self {
        if self.cells.is_empty() || next.cells.is_empty() {
            return if self.cells.is_empty() { next } else { self };
        }
        let start = (next.first - self.first) * self.columns;
        self.cells.resize(self.cells.len().max(start + next.cells.len()), Cell::default());
        for (cell, more) in self.cells[start..].iter_mut().zip(&next.cells) {
            cell.sum += more.sum;
            cell.finite += more.finite;
        }
        self
    }
}

impl Cell {
    #[inline(always)]
    fn add(&mut self, run: &[f64], scale: f64) {
        const LANES: usize = 4;
        let (mut sum, mut finite) = ([0.0_f64; LANES], [0_u64; LANES]);
        in_lanes::<LANES, f64>(run, |k, x| {
            let ok = x.abs() < f64::INFINITY;
            sum[k] += if ok { x * scale } else { 0.0 };
            finite[k] += u64::from(ok);
        });
        self.sum += (sum[0] + sum[1]) + (sum[2] + sum[3]);
        self.finite += finite.iter().sum::<u64>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::Dataset;
    use crate::dtype::DType;
    use crate::layout::{ArrayDesc, Layout, Linear};
    use crate::limits::Limits;
    use crate::shape::Shape;
    use crate::source::Source;

    use proptest::prelude::*;

    fn array(shape: &[u64], order: Order, map: Option<Linear>, values: &[f64]) -> Array {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let layout = Layout::Inline(bytes.into(), order);
        let mut desc = ArrayDesc::new(DType::F64, Shape::new(shape), layout);
        desc.map = map;
        // A small memory limit gives small blocks, which tests merging.
        let limits = Limits::default().with_memory(1 << 18);
        Dataset::of_bytes(Source::memory([]), &limits).open_array(&desc).unwrap()
    }

    #[test]
    fn means_are_of_finite_values_and_nan_without_any() {
        let values = [1.0, f64::NAN, 3.0, 8.0, f64::INFINITY, f64::NAN];
        // Two indices along x, three along y; y runs fastest.
        let array = array(&[2, 3], Order::C, None, &values);
        let all = Selection::all();
        let got = raster(&array, &all, (0, &[0, 2]), (1, &[0, 1, 3])).unwrap();
        assert_eq!(got, [4.5, 3.0]);
        let got = raster(&array, &all, (0, &[0, 1, 2]), (1, &[0, 1, 2, 3])).unwrap();
        let gaps: Vec<bool> = got.iter().map(|v| v.is_nan()).collect();
        assert_eq!(gaps, [false, false, true, true, false, true]);
        assert_eq!((got[0], got[1], got[4]), (1.0, 8.0, 3.0));
    }

    #[test]
    fn sums_of_huge_values_do_not_overflow() {
        let array = array(&[4, 1], Order::F, None, &[1.5e308, 1.7e308, 1.3e308, 1.5e308]);
        let got = raster(&array, &Selection::all(), (0, &[0, 4]), (1, &[0, 1])).unwrap();
        assert!((got[0] / 1.5e308 - 1.0).abs() < 1e-15, "{}", got[0]);
    }

    #[test]
    fn invalid_cuts_are_rejected() {
        let array = array(&[2, 2], Order::C, None, &[0.0; 4]);
        let all = Selection::all();
        for cuts in [&[0, 1][..], &[0, 3], &[1, 2], &[0, 0, 2], &[]] {
            assert!(raster(&array, &all, (0, cuts), (1, &[0, 2])).is_err(), "{cuts:?}");
        }
        assert!(raster(&array, &all, (1, &[0, 2]), (1, &[0, 2])).is_err());
        assert_eq!(even_cuts(7, 3), [0, 2, 4, 7]);
        assert_eq!(even_cuts(2, 5), [0, 1, 2]);
        assert_eq!(even_cuts(0, 5), [0, 0]);
    }

    proptest! {
        #[test]
        fn every_cell_is_the_plain_mean(
            shape in [1_u64..90, 1_u64..90, 1_u64..4],
            x_first: bool, fortran: bool, cells in (1_usize..40, 1_usize..40), backwards: bool)
        {
            let count = shape.iter().product::<u64>();
            let values: Vec<f64> = (0..count).map(|k| (k * 7919 % 1000) as f64 - 300.0).collect();
            let order = if fortran { Order::F } else { Order::C };
            let map = Linear::new(2.0, -3.0);
            let array = array(&shape, order, Some(map), &values);
            let (x, y) = if x_first { (0, 1) } else { (1, 0) };
            let step = if backwards { "::-1, :, 0" } else { ":, :, 0" };
            let (nx, ny) = (shape[x], shape[y]);
            let (xs, ys) = (even_cuts(nx, cells.0), even_cuts(ny, cells.1));
            let selection = step.parse().unwrap();
            let got = raster(&array, &selection, (x, &xs), (y, &ys)).unwrap();
            let strides = array.shape().strides(order);
            for (row, yc) in ys.windows(2).enumerate() {
                for (column, xc) in xs.windows(2).enumerate() {
                    let (mut sum, mut n) = (0.0, 0.0);
                    for i in xc[0]..xc[1] {
                        for j in yc[0]..yc[1] {
                            let (i0, i1) = if x_first { (i, j) } else { (j, i) };
                            let i0 = if backwards { shape[0] - 1 - i0 } else { i0 };
                            sum += map.apply(values[(i0 * strides[0] + i1 * strides[1]) as usize]);
                            n += 1.0;
                        }
                    }
                    // Sums of small integers are exact.
                    prop_assert_eq!(got[row * (xs.len() - 1) + column], sum / n);
                }
            }
        }
    }
}
