//! Series in pixel coordinates: clipped to the frame and decimated to the resolution.

use crate::figure::Points;
use crate::figure_layout::Rect;
use crate::range::{Range, position};

/// A point in pixels; y increases downwards.
pub(crate) type Pixel = (f64, f64);

/// Axis ranges and the rectangle in pixels that they are mapped to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) x: Range,
    pub(crate) y: Range,
    /// Whether the axes are logarithmic.
    pub(crate) log: [bool; 2],
    pub(crate) frame: Rect,
}

/// Vertical extent of a band at `x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slice {
    pub(crate) x: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

/// A series in pixels, split into runs at gaps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Trace {
    /// Connected runs; a run of one point is drawn as a dot.
    Lines(Vec<Vec<Pixel>>),
    /// Runs that are filled between top and bottom.
    Bands(Vec<Vec<Slice>>),
    /// Unconnected points.
    Dots(Vec<Pixel>),
}

/// Clipping margin around the frame in pixels, so that line ends are not visible.
const MARGIN: f64 = 8.0;

impl View {
    /// Pixel of a position along x (a logarithm on a logarithmic axis).
    pub(crate) fn px(&self, x: f64) -> f64 {
        self.frame.left + fraction(x, self.x) * self.frame.width
    }

    /// Pixel of a position along y (a logarithm on a logarithmic axis).
    pub(crate) fn py(&self, y: f64) -> f64 {
        self.frame.top + (1.0 - fraction(y, self.y)) * self.frame.height
    }

    /// Pixel of a point; `None` if it is not finite or has no logarithm.
    fn pixel(&self, x: f64, y: f64) -> Option<Pixel> {
        let (x, y) = (position(self.log[0], x), position(self.log[1], y));
        (x.is_finite() && y.is_finite()).then(|| (self.px(x), self.py(y)))
    }

    /// Smallest and largest x and y of the frame with its margin.
    fn limits(&self) -> [f64; 4] {
        let Rect { left, top, .. } = self.frame;
        let (right, bottom) = (self.frame.right(), self.frame.bottom());
        [left - MARGIN, right + MARGIN, top - MARGIN, bottom + MARGIN]
    }

    /// Converts a series to pixels.
    pub(crate) fn trace(&self, points: &Points) -> Trace {
        match points {
            Points::Line { x, y } => Trace::Lines(self.lines(x, y)),
            Points::Envelope { start, step, low, high } => {
                Trace::Bands(self.bands(*start, *step, low, high))
            }
            Points::Dots { x, y } => Trace::Dots(self.dots(x, y)),
            Points::Bars { start, step, high } => {
                Trace::Bands(self.bands(*start, *step, &vec![0.0; high.len()], high))
            }
        }
    }

    fn lines(&self, x: &[f64], y: &[f64]) -> Vec<Vec<Pixel>> {
        let mut line =
            LineDecimator { view: self, runs: Vec::new(), last: None, column: Column::default() };
        for (&x, &y) in x.iter().zip(y) {
            match self.pixel(x, y) {
                Some(pixel) => line.add(pixel),
                None => line.end_run(),
            }
        }
        line.end_run();
        line.runs
    }

    /// Visible points, at most one per quarter of a pixel.
    fn dots(&self, x: &[f64], y: &[f64]) -> Vec<Pixel> {
        let [min_x, max_x, min_y, max_y] = self.limits();
        let visible = |p: &Pixel| p.0 >= min_x && p.0 <= max_x && p.1 >= min_y && p.1 <= max_y;
        let pixels = x.iter().zip(y).filter_map(|(x, y)| self.pixel(*x, *y)).filter(visible);
        let mut quarters: Vec<(i64, i64)> =
            pixels.map(|(x, y)| ((x * 4.0).round() as i64, (y * 4.0).round() as i64)).collect();
        quarters.sort_unstable();
        quarters.dedup();
        quarters.into_iter().map(|(x, y)| (x as f64 / 4.0, y as f64 / 4.0)).collect()
    }

    fn bands(&self, start: f64, step: f64, low: &[f64], high: &[f64]) -> Vec<Vec<Slice>> {
        let count = low.len().min(high.len());
        // Buckets on a logarithmic axis differ in width and are not merged.
        let uniform = (step / self.x.span() * self.frame.width).abs();
        let bucket = if self.log[0] { f64::INFINITY } else { uniform };
        // Merge buckets narrower than half a pixel.
        let group = ((0.5 / bucket).ceil() as usize).clamp(1, count.max(1));
        let stairs = bucket > 3.0;
        let [min_x, max_x, min_y, max_y] = self.limits();

        let mut runs = Vec::new();
        let mut run: Vec<Slice> = Vec::new();
        let mut end = 0.0;
        for from in (0..count).step_by(group) {
            let to = (from + group).min(count);
            let a = position(self.log[0], start + from as f64 * step);
            let b = position(self.log[0], start + to as f64 * step);
            let mut bottom = f64::INFINITY;
            let mut top = f64::NEG_INFINITY;
            for (&low, &high) in low[from..to].iter().zip(&high[from..to]) {
                if low.is_finite() && high.is_finite() {
                    bottom = bottom.min(low.min(high));
                    top = top.max(low.max(high));
                }
            }
            let top = position(self.log[1], top);
            let bottom = if self.log[1] { bottom.max(f64::MIN_POSITIVE).log10() } else { bottom };
            let drawable = a.is_finite() && b.is_finite() && bottom <= top;
            let [a, b] = [self.px(a), self.px(b)];
            if !drawable || a.max(b) < min_x || a.min(b) > max_x {
                finish(&mut run, end, &mut runs);
                continue;
            }
            let slice = |x: f64| Slice {
                x: x.clamp(min_x, max_x),
                top: self.py(top).clamp(min_y, max_y),
                bottom: self.py(bottom).clamp(min_y, max_y),
            };
            if stairs {
                run.extend([slice(a), slice(b)]);
            } else {
                // Connect bucket centres, and extend the run to its outer edges.
                if run.is_empty() {
                    run.push(slice(a));
                }
                run.push(slice(f64::midpoint(a, b)));
            }
            end = b.clamp(min_x, max_x);
        }
        finish(&mut run, end, &mut runs);
        runs
    }
}

/// Relative position of a value in `range`, clamped to avoid overflow.
fn fraction(value: f64, range: Range) -> f64 {
    ((value - range.low) / range.span()).clamp(-1e6, 1e6)
}

/// Ends a run at `end`.
fn finish(run: &mut Vec<Slice>, end: f64, runs: &mut Vec<Vec<Slice>>) {
    if let Some(&last) = run.last() {
        if last.x != end {
            run.push(Slice { x: end, ..last });
        }
        runs.push(std::mem::take(run));
    }
}

/// Decimates a line to at most four points per pixel column: first, highest, lowest and last.
struct LineDecimator<'a> {
    view: &'a View,
    runs: Vec<Vec<Pixel>>,
    /// Last point of the current run; `None` after a gap.
    last: Option<Pixel>,
    column: Column,
}

/// Points of the current pixel column: first, highest, lowest and last, each with its index in the
/// column.
#[derive(Default)]
struct Column {
    number: i64,
    count: usize,
    points: [(usize, Pixel); 4],
}

impl LineDecimator<'_> {
    fn add(&mut self, p: Pixel) {
        let number = p.0.floor() as i64;
        if self.column.count > 0 && self.column.number != number {
            self.flush();
        }
        let column = &mut self.column;
        let indexed = (column.count, p);
        if column.count == 0 {
            column.number = number;
            column.points = [indexed; 4];
        }
        column.count += 1;
        if p.1 < column.points[1].1.1 {
            column.points[1] = indexed;
        }
        if p.1 > column.points[2].1.1 {
            column.points[2] = indexed;
        }
        column.points[3] = indexed;
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.column.count) == 0 {
            return;
        }
        let mut points = self.column.points;
        points.sort_unstable_by_key(|k| k.0);
        let mut before = None;
        for (index, p) in points {
            if before.replace(index) != Some(index) {
                self.draw(p);
            }
        }
    }

    fn draw(&mut self, to: Pixel) {
        let from = self.last.replace(to);
        let Some((a, b)) = self.clip(from.unwrap_or(to), to) else { return };
        match self.runs.last_mut() {
            Some(run) if from.is_some() && run.last() == Some(&a) => {
                if a != b {
                    run.push(b);
                }
            }
            _ if a == b => self.runs.push(vec![a]),
            _ => self.runs.push(vec![a, b]),
        }
    }

    fn end_run(&mut self) {
        self.flush();
        self.last = None;
    }

    /// Part of a segment inside the frame and its margin (Liang-Barsky algorithm).
    fn clip(&self, a: Pixel, b: Pixel) -> Option<(Pixel, Pixel)> {
        let [min_x, max_x, min_y, max_y] = self.view.limits();
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let (mut enter, mut leave) = (0.0f64, 1.0f64);
        for (delta, distance) in
            [(-dx, a.0 - min_x), (dx, max_x - a.0), (-dy, a.1 - min_y), (dy, max_y - a.1)]
        {
            if delta == 0.0 {
                if distance < 0.0 {
                    return None;
                }
            } else if delta < 0.0 {
                enter = enter.max(distance / delta);
            } else {
                leave = leave.min(distance / delta);
            }
        }
        let at = |t: f64| (a.0 + t * dx, a.1 + t * dy);
        (enter <= leave).then(|| {
            // Unclipped ends are returned unchanged, so that runs join exactly.
            (if enter > 0.0 { at(enter) } else { a }, if leave < 1.0 { at(leave) } else { b })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VIEW: View = View {
        x: Range { low: 0.0, high: 100.0 },
        y: Range { low: 0.0, high: 100.0 },
        log: [false; 2],
        frame: Rect { left: 0.0, top: 0.0, width: 100.0, height: 100.0 },
    };

    #[test]
    fn a_gap_splits_the_line_and_single_points_are_kept() {
        let x: Vec<f64> = (0..6).map(|i| f64::from(i) * 10.0).collect();
        let y = [1.0, 2.0, f64::NAN, 3.0, f64::INFINITY, 4.0];
        let lens: Vec<usize> = VIEW.lines(&x, &y).iter().map(Vec::len).collect();
        assert_eq!(lens, [2, 1, 1]);
    }

    #[test]
    fn decimation_keeps_the_extremes() {
        let n = 1_000_000;
        let x: Vec<f64> = (0..n).map(|i| f64::from(i) * 1e-4).collect();
        let mut y: Vec<f64> = (0..n).map(|i| 50.0 + 7.0 * f64::from(i % 7)).collect();
        y[423_456] = 3.0;
        let runs = VIEW.lines(&x, &y);
        assert_eq!(runs.len(), 1);
        assert!(runs[0].len() <= 404, "{}", runs[0].len());
        assert!(runs[0].iter().any(|p| p.1 == 97.0), "the minimum is kept");
    }

    #[test]
    fn lines_are_clipped_at_the_margin() {
        let runs = VIEW.lines(&[50.0, 50.0, 50.0], &[50.0, 1e300, 50.0]);
        assert_eq!(runs[0][0], (50.0, 50.0));
        assert!(runs.iter().flatten().all(|p| p.1 >= -MARGIN && p.1 <= 100.0 + MARGIN));
        assert!(VIEW.lines(&[200.0, 300.0], &[1.0, 2.0]).is_empty());
    }

    #[test]
    fn bands_are_split_at_gaps_and_extend_to_bucket_edges() {
        let low = [0.0, 1.0, f64::NAN, 1.0];
        let high = [5.0, 6.0, 7.0, 8.0];
        let runs = VIEW.bands(10.0, 2.0, &low, &high);
        assert_eq!(runs.len(), 2);
        for (run, ends) in runs.iter().zip([[10.0, 14.0], [16.0, 18.0]]) {
            assert!((run[0].x - ends[0]).abs() < 1e-9);
            assert!((run[run.len() - 1].x - ends[1]).abs() < 1e-9);
        }
    }

    #[test]
    fn merged_buckets_keep_their_extremes() {
        let mut low = vec![40.0; 100_000];
        low[77_777] = 10.0;
        let runs = VIEW.bands(0.0, 1e-3, &low, &vec![60.0; 100_000]);
        assert!(runs[0].len() < 210);
        assert!(runs[0].iter().any(|s| s.bottom == 90.0));
    }

    #[test]
    fn invalid_steps_give_finite_coordinates() {
        for step in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e308, 5e-324] {
            for start in [0.0, f64::NAN, f64::NEG_INFINITY, 1e308] {
                for run in VIEW.bands(start, step, &[1.0; 10], &[2.0; 10]) {
                    assert!(run.iter().all(|s| s.x.is_finite() && s.top.is_finite()));
                }
            }
        }
    }
}
