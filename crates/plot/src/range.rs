//! Which part of the number plane a figure shows.

use crate::figure::{Figure, HeatMap, Points, Series};

/// The ends of an axis: finite, in order, and far enough apart to put ticks between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Beyond this a span would overflow.
const LARGEST: f64 = f64::MAX / 8.0;
/// Below this a step between ticks would no longer be a normal number.
const LEAST_SPAN: f64 = 1e-300;
/// Ends closer than this part of their size are apart by rounding errors only.
const LEAST_PART: f64 = 1e-13;

impl Range {
    /// The range from `a` to `b` in either order, moved apart if they are too close.
    pub(crate) fn new(a: f64, b: f64) -> Self {
        let [a, b] = [a, b].map(|v| if v.is_nan() { 0.0 } else { v.clamp(-LARGEST, LARGEST) });
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        let size = low.abs().max(high.abs());
        if high - low >= LEAST_SPAN.max(LEAST_PART * size) {
            return Self { low, high };
        }
        let middle = low + (high - low) / 2.0;
        let half = if size < LEAST_SPAN { 1.0 } else { size * 0.05 };
        // Values that differ at all stay in the middle of a narrow range, equal ones get a wide one.
        let half = if low < high { half.min(size * LEAST_PART).max(LEAST_SPAN) } else { half };
        Self { low: middle - half, high: middle + half }
    }

    pub(crate) fn span(self) -> f64 {
        self.high - self.low
    }

    /// The same with a little air at both ends.
    fn padded(self) -> Self {
        let air = self.span() * 0.05;
        Self { low: self.low - air, high: self.high + air }
    }
}

/// The ranges to show along x and y, of the logarithms where the axis shows those; `None` where
/// neither the axis nor the data decide.
pub(crate) fn ranges(figure: &Figure) -> (Option<Range>, Option<Range>) {
    let asked_x = figure.x.asked();
    let asked_y = figure.y.asked();
    let mut x = Extent::default();
    let mut y = Extent::default();
    each(figure, |x0, x1, low, high| {
        // Only what is in sight counts for the other axis.
        if asked_x.is_none_or(|r| x1 >= r.low && x0 <= r.high) {
            y.add(low);
            y.add(high);
        }
        if asked_y.is_none_or(|r| high >= r.low && low <= r.high) {
            x.add(x0);
            x.add(x1);
        }
    });
    let is_dots = |s: &Series| matches!(s.points, Points::Dots { .. });
    let is_bars = |s: &Series| matches!(s.points, Points::Bars { .. });
    let dots = figure.series.iter().any(is_dots);
    let bars = figure.series.iter().any(is_bars);
    let padded = |e: &Extent, r: Range| {
        if e.low < e.high && e.high - e.low == r.span() { r.padded() } else { r }
    };
    // Along x the data fill the frame from edge to edge; along y a curve should not touch it.
    // Cells fill the frame both ways, and points should touch it nowhere.
    let filled = figure.map.as_ref().is_some_and(|m| m.size().is_some());
    let x = asked_x.or_else(|| x.range().map(|r| if dots && !filled { padded(&x, r) } else { r }));
    let y = asked_y.or_else(|| {
        let range = y.range()?;
        let mut wide = if filled { range } else { padded(&y, range) };
        if bars && !figure.y.log {
            // Bars stand on the axis, or hang from it.
            wide.low = if range.low >= 0.0 { 0.0 } else { wide.low };
            wide.high = if range.high <= 0.0 { 0.0 } else { wide.high };
            wide = Range::new(wide.low, wide.high);
        } else if bars {
            // The lowest bar of a logarithmic axis has to have some height.
            wide = Range::new(y.low - 0.3, y.high + (0.05 * (y.high - y.low)).max(0.1));
        }
        Some(wide)
    });
    (x, y)
}

/// Whether there is anything to draw at all.
pub(crate) fn is_empty(figure: &Figure) -> bool {
    let mut empty = true;
    each_series(figure, |_, _, _, high| empty &= !high.is_finite());
    let coloured =
        |m: &HeatMap| m.size().is_some() && m.values.iter().any(|v| m.colour.place(*v).is_finite());
    empty && !figure.map.as_ref().is_some_and(coloured)
}

/// What an empty picture says.
pub(crate) fn nothing(figure: &Figure) -> &'static str {
    let log = figure.x.log || figure.y.log || figure.map.as_ref().is_some_and(|m| m.colour.log);
    if log { "no positive values" } else { "no finite values" }
}

/// A value as its axis places it.
pub(crate) fn place(log: bool, value: f64) -> f64 {
    match log {
        false => value,
        true if value > 0.0 => value.log10(),
        true => f64::NAN,
    }
}

/// Calls `see` with the x and y extent, as placed by the axes, of all there is to see.
fn each(figure: &Figure, mut see: impl FnMut(f64, f64, f64, f64)) {
    each_series(figure, &mut see);
    let Some(map) = &figure.map else { return };
    if let (Some(_), [x0, .., x1], [y0, .., y1]) = (map.size(), &map.x[..], &map.y[..]) {
        let [x0, x1] = [*x0, *x1].map(|v| figure.x.place(v));
        let [y0, y1] = [*y0, *y1].map(|v| figure.y.place(v));
        if [x0, x1, y0, y1].iter().all(|v| v.is_finite()) {
            see(x0.min(x1), x0.max(x1), y0.min(y1), y0.max(y1));
        }
    }
}

/// The same for every point, bucket and bar of the series that is finite. A bar without a logarithm
/// has no height but still its place along x.
fn each_series(figure: &Figure, mut see: impl FnMut(f64, f64, f64, f64)) {
    let (px, py) = (|v| figure.x.place(v), |v| figure.y.place(v));
    for series in &figure.series {
        // The ends of bucket `k` along x.
        let ends = |start: f64, step: f64, k: usize| {
            let [a, b] = [k, k + 1].map(|k| px(start + k as f64 * step));
            (a.is_finite() && b.is_finite()).then(|| (a.min(b), a.max(b)))
        };
        match &series.points {
            Points::Line { x, y } | Points::Dots { x, y } => {
                for (x, y) in x.iter().zip(y).map(|(x, y)| (px(*x), py(*y))) {
                    if x.is_finite() && y.is_finite() {
                        see(x, x, y, y);
                    }
                }
            }
            Points::Envelope { start, step, low, high } => {
                for (k, (&low, &high)) in low.iter().zip(high).enumerate() {
                    let finite = low.is_finite() && high.is_finite();
                    let (low, high) = (py(low.min(high)), py(low.max(high)));
                    // The foot of a band may have no logarithm; its head counts all the same.
                    let low = if low.is_finite() { low } else { high };
                    if let (Some((a, b)), true) =
                        (ends(*start, *step, k), finite && high.is_finite())
                    {
                        see(a, b, low, high);
                    }
                }
            }
            Points::Bars { start, step, high } => {
                for (k, &high) in high.iter().enumerate().filter(|(_, high)| high.is_finite()) {
                    let (foot, head) = (py(high.min(0.0)), py(high.max(0.0)));
                    let foot = if foot.is_finite() { foot } else { head };
                    if let Some((a, b)) = ends(*start, *step, k) {
                        see(a, b, foot, head);
                    }
                }
            }
        }
    }
}

/// Least and greatest of the values seen so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    low: f64,
    high: f64,
}

impl Default for Extent {
    fn default() -> Self {
        Self { low: f64::INFINITY, high: f64::NEG_INFINITY }
    }
}

impl Extent {
    pub(crate) fn add(&mut self, value: f64) {
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }

    pub(crate) fn range(&self) -> Option<Range> {
        (self.low <= self.high).then(|| Range::new(self.low, self.high))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(x: &[f64], y: &[f64]) -> Figure {
        Figure { series: vec![Series::line("", x.to_vec(), y.to_vec())], ..Figure::default() }
    }

    #[test]
    fn a_constant_lies_in_the_middle() {
        let (x, y) = ranges(&line(&[0.0, 1.0], &[3.0, 3.0]));
        assert_eq!(x, Some(Range { low: 0.0, high: 1.0 }));
        let y = y.unwrap();
        assert!(y.low < 2.9 && y.high > 3.1);
        assert_eq!(Range::new(0.0, 0.0), Range { low: -1.0, high: 1.0 });
    }

    #[test]
    fn only_points_in_sight_set_the_height() {
        let mut figure = line(&[0.0, 1.0, 2.0], &[1.0, 2.0, 1000.0]);
        figure.x.range = Some((0.0, 1.5));
        assert!(ranges(&figure).1.unwrap().high < 3.0);
    }

    #[test]
    fn nothing_finite_means_no_range() {
        assert_eq!(ranges(&line(&[f64::NAN, 1.0], &[1.0, f64::INFINITY])), (None, None));
        assert_eq!(ranges(&Figure::default()), (None, None));
    }

    proptest! {
        #[test]
        fn every_range_is_usable(a: f64, b: f64) {
            let r = Range::new(a, b);
            prop_assert!(r.low.is_finite() && r.high.is_finite() && r.padded().span().is_finite());
            prop_assert!(r.span() > 0.0 && r.span() >= 0.5 * LEAST_PART * r.high.abs());
        }
    }
}
