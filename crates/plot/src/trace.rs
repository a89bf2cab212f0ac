//! From numbers to pixels: what of a series is in sight, with no more points than can be seen.

use crate::figure::Points;
use crate::range::{Range, place};

/// A point in pixels, y growing downwards.
pub(crate) type Pixel = (f64, f64);

/// The part of the plane shown and the rectangle it is shown in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) x: Range,
    pub(crate) y: Range,
    /// Whether the ranges along x and y are those of logarithms.
    pub(crate) log: [bool; 2],
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// A column of a band: from `top` down to `bottom` at `x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Slice {
    pub(crate) x: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
}

/// A series in pixels, broken where there are gaps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Trace {
    /// Each run is joined up; a run of one point stands alone.
    Lines(Vec<Vec<Pixel>>),
    /// Each run is filled between its slices.
    Bands(Vec<Vec<Slice>>),
    /// Each point stands alone.
    Dots(Vec<Pixel>),
}

/// Drawing goes on for this many pixels outside the frame, so that its end is out of sight.
const MARGIN: f64 = 8.0;

impl View {
    /// The pixel of a place along x: of a value, or of its logarithm where the axis shows those.
    pub(crate) fn px(&self, x: f64) -> f64 {
        self.left + part(x, self.x) * self.width
    }

    /// The pixel of a place along y.
    pub(crate) fn py(&self, y: f64) -> f64 {
        self.top + (1.0 - part(y, self.y)) * self.height
    }

    /// The pixel of a point, if it can be shown.
    fn pixel(&self, x: f64, y: f64) -> Option<Pixel> {
        let (x, y) = (place(self.log[0], x), place(self.log[1], y));
        (x.is_finite() && y.is_finite()).then(|| (self.px(x), self.py(y)))
    }

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
        let mut pen = Pen { view: self, runs: Vec::new(), last: None, column: Column::default() };
        for (&x, &y) in x.iter().zip(y) {
            match self.pixel(x, y) {
                Some(pixel) => pen.to(pixel),
                None => pen.lift(),
            }
        }
        pen.lift();
        pen.runs
    }

    /// The points in sight, one of those that fall on the same quarter of a pixel.
    fn dots(&self, x: &[f64], y: &[f64]) -> Vec<Pixel> {
        let [min_y, max_y] = [self.top - MARGIN, self.top + self.height + MARGIN];
        let [min_x, max_x] = [self.left - MARGIN, self.left + self.width + MARGIN];
        let seen = |p: &Pixel| p.0 >= min_x && p.0 <= max_x && p.1 >= min_y && p.1 <= max_y;
        let pixels = x.iter().zip(y).filter_map(|(x, y)| self.pixel(*x, *y)).filter(seen);
        let mut quarters: Vec<(i64, i64)> =
            pixels.map(|(x, y)| ((x * 4.0).round() as i64, (y * 4.0).round() as i64)).collect();
        quarters.sort_unstable();
        quarters.dedup();
        quarters.into_iter().map(|(x, y)| (x as f64 / 4.0, y as f64 / 4.0)).collect()
    }

    fn bands(&self, start: f64, step: f64, low: &[f64], high: &[f64]) -> Vec<Vec<Slice>> {
        let count = low.len().min(high.len());
        // Along a logarithmic axis buckets differ in width, so none are joined.
        let even = (step / self.x.span() * self.width).abs();
        let bucket = if self.log[0] { f64::INFINITY } else { even };
        // Half a pixel is as fine as it gets.
        let group = ((0.5 / bucket).ceil() as usize).clamp(1, count.max(1));
        let stairs = bucket > 3.0;
        let [min_y, max_y] = [self.top - MARGIN, self.top + self.height + MARGIN];
        let [min_x, max_x] = [self.left - MARGIN, self.left + self.width + MARGIN];

        let mut runs = Vec::new();
        let mut run: Vec<Slice> = Vec::new();
        let mut end = 0.0;
        for from in (0..count).step_by(group) {
            let to = (from + group).min(count);
            let a = place(self.log[0], start + from as f64 * step);
            let b = place(self.log[0], start + to as f64 * step);
            let mut bottom = f64::INFINITY;
            let mut top = f64::NEG_INFINITY;
            for (&low, &high) in low[from..to].iter().zip(&high[from..to]) {
                if low.is_finite() && high.is_finite() {
                    bottom = bottom.min(low.min(high));
                    top = top.max(low.max(high));
                }
            }
            let top = place(self.log[1], top);
            let bottom = if self.log[1] { bottom.max(f64::MIN_POSITIVE).log10() } else { bottom };
            let seen = a.is_finite() && b.is_finite() && bottom <= top;
            let [a, b] = [self.px(a), self.px(b)];
            if !seen || a.max(b) < min_x || a.min(b) > max_x {
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
                // From middle to middle, with the outer halves of a run's first and last bucket.
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

/// How far along `range` the value lies, kept within what a picture can be scaled to.
fn part(value: f64, range: Range) -> f64 {
    ((value - range.low) / range.span()).clamp(-1e6, 1e6)
}

fn finish(run: &mut Vec<Slice>, end: f64, runs: &mut Vec<Vec<Slice>>) {
    if let Some(&last) = run.last() {
        if last.x != end {
            run.push(Slice { x: end, ..last });
        }
        runs.push(std::mem::take(run));
    }
}

/// Draws a line through points, keeping of each pixel column only what shows: where the line comes
/// in, how far up and down it goes, and where it leaves.
struct Pen<'a> {
    view: &'a View,
    runs: Vec<Vec<Pixel>>,
    /// The point last drawn to; `None` with the pen lifted.
    last: Option<Pixel>,
    column: Column,
}

/// The points that lately fell into one pixel column: first, highest, lowest, last, each with its
/// place in the sequence.
#[derive(Default)]
struct Column {
    number: i64,
    seen: usize,
    kept: [(usize, Pixel); 4],
}

impl Pen<'_> {
    fn to(&mut self, p: Pixel) {
        let number = p.0.floor() as i64;
        if self.column.seen > 0 && self.column.number != number {
            self.flush();
        }
        let column = &mut self.column;
        let place = (column.seen, p);
        if column.seen == 0 {
            column.number = number;
            column.kept = [place; 4];
        }
        column.seen += 1;
        if p.1 < column.kept[1].1.1 {
            column.kept[1] = place;
        }
        if p.1 > column.kept[2].1.1 {
            column.kept[2] = place;
        }
        column.kept[3] = place;
    }

    fn flush(&mut self) {
        if std::mem::take(&mut self.column.seen) == 0 {
            return;
        }
        let mut kept = self.column.kept;
        kept.sort_unstable_by_key(|k| k.0);
        let mut before = None;
        for (place, p) in kept {
            if before.replace(place) != Some(place) {
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

    fn lift(&mut self) {
        self.flush();
        self.last = None;
    }

    /// The part of the segment that lies within the frame and its margin (Liang and Barsky).
    fn clip(&self, a: Pixel, b: Pixel) -> Option<(Pixel, Pixel)> {
        let v = self.view;
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let (mut enter, mut leave) = (0.0f64, 1.0f64);
        for (speed, room) in [
            (-dx, a.0 - (v.left - MARGIN)),
            (dx, v.left + v.width + MARGIN - a.0),
            (-dy, a.1 - (v.top - MARGIN)),
            (dy, v.top + v.height + MARGIN - a.1),
        ] {
            if speed == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if speed < 0.0 {
                enter = enter.max(room / speed);
            } else {
                leave = leave.min(room / speed);
            }
        }
        let at = |t: f64| (a.0 + t * dx, a.1 + t * dy);
        (enter <= leave).then(|| {
            // The ends themselves stay as they are, so that runs join exactly.
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
        left: 0.0,
        top: 0.0,
        width: 100.0,
        height: 100.0,
    };

    #[test]
    fn a_gap_breaks_the_line_and_a_lone_point_stays() {
        let x: Vec<f64> = (0..6).map(|i| f64::from(i) * 10.0).collect();
        let y = [1.0, 2.0, f64::NAN, 3.0, f64::INFINITY, 4.0];
        let lens: Vec<usize> = VIEW.lines(&x, &y).iter().map(Vec::len).collect();
        assert_eq!(lens, [2, 1, 1]);
    }

    #[test]
    fn a_million_points_keep_their_extremes_but_not_their_number() {
        let n = 1_000_000;
        let x: Vec<f64> = (0..n).map(|i| f64::from(i) * 1e-4).collect();
        let mut y: Vec<f64> = (0..n).map(|i| 50.0 + 7.0 * f64::from(i % 7)).collect();
        y[423_456] = 3.0;
        let runs = VIEW.lines(&x, &y);
        assert_eq!(runs.len(), 1);
        assert!(runs[0].len() <= 404, "{}", runs[0].len());
        assert!(runs[0].iter().any(|p| p.1 == 97.0), "the lone dip is still there");
    }

    #[test]
    fn what_is_out_of_sight_is_cut_where_it_leaves() {
        let runs = VIEW.lines(&[50.0, 50.0, 50.0], &[50.0, 1e300, 50.0]);
        assert_eq!(runs[0][0], (50.0, 50.0));
        assert!(runs.iter().flatten().all(|p| p.1 >= -MARGIN && p.1 <= 100.0 + MARGIN));
        assert!(VIEW.lines(&[200.0, 300.0], &[1.0, 2.0]).is_empty());
    }

    #[test]
    fn bands_break_at_gaps_and_reach_their_ends() {
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
    fn many_buckets_are_merged_and_keep_their_extremes() {
        let mut low = vec![40.0; 100_000];
        low[77_777] = 10.0;
        let runs = VIEW.bands(0.0, 1e-3, &low, &vec![60.0; 100_000]);
        assert!(runs[0].len() < 210);
        assert!(runs[0].iter().any(|s| s.bottom == 90.0));
    }

    #[test]
    fn odd_steps_do_no_harm() {
        for step in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e308, 5e-324] {
            for start in [0.0, f64::NAN, f64::NEG_INFINITY, 1e308] {
                for run in VIEW.bands(start, step, &[1.0; 10], &[2.0; 10]) {
                    assert!(run.iter().all(|s| s.x.is_finite() && s.top.is_finite()));
                }
            }
        }
    }
}
