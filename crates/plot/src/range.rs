//! Axis ranges of a figure.

use crate::figure::{Figure, HeatMap, Points};

/// Range of an axis: finite, `low < high`, and wide enough for distinct ticks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Largest absolute value; the span of larger values would overflow.
const MAX_ABS: f64 = f64::MAX / 8.0;
/// Minimum span, so that the step between ticks is a normal number.
const MIN_SPAN: f64 = 1e-300;
/// Minimum span relative to the largest absolute value; smaller spans are rounding errors.
const MIN_RELATIVE_SPAN: f64 = 1e-13;

impl Range {
    /// Range from `a` to `b` in either order, widened to the minimum span.
    pub(crate) fn new(a: f64, b: f64) -> Self {
        let [a, b] = [a, b].map(|v| if v.is_nan() { 0.0 } else { v.clamp(-MAX_ABS, MAX_ABS) });
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        let size = low.abs().max(high.abs());
        if high - low >= MIN_SPAN.max(MIN_RELATIVE_SPAN * size) {
            return Self { low, high };
        }
        let middle = low + (high - low) / 2.0;
        let half = if size < MIN_SPAN { 1.0 } else { size * 0.05 };
        // Different values get a narrow range, equal ones a wide one.
        let half = if low < high { half.min(size * MIN_RELATIVE_SPAN).max(MIN_SPAN) } else { half };
        Self { low: middle - half, high: middle + half }
    }

    /// `high - low`.
    pub(crate) fn span(self) -> f64 {
        self.high - self.low
    }

    /// Relative position of a value, from 0 at `low` to 1 at `high`; values outside are moved to the ends.
    pub(crate) fn fraction(self, value: f64) -> f64 {
        ((value - self.low) / self.span()).clamp(0.0, 1.0)
    }

    /// Range extended by 5 % of the span at both ends.
    fn padded(self) -> Self {
        let margin = self.span() * 0.05;
        Self { low: self.low - margin, high: self.high + margin }
    }
}

/// Ranges along x and y, in logarithms for logarithmic axes; `None` if neither the axis nor the data
/// define one.
pub(crate) fn ranges(figure: &Figure) -> (Option<Range>, Option<Range>) {
    let requested_x = figure.x.requested_range();
    let requested_y = figure.y.requested_range();
    let mut x = Extent::default();
    let mut y = Extent::default();
    for_each_extent(figure, |x0, x1, low, high| {
        // Data outside the requested range of one axis do not affect the other.
        if requested_x.is_none_or(|r| x1 >= r.low && x0 <= r.high) {
            y.add(low);
            y.add(high);
        }
        if requested_y.is_none_or(|r| high >= r.low && low <= r.high) {
            x.add(x0);
            x.add(x1);
        }
    });
    let dots = figure.series.iter().any(|s| matches!(s.points, Points::Dots { .. }));
    let bars = figure.series.iter().any(|s| matches!(s.points, Points::Bars { .. }));
    let padded = |e: &Extent, r: Range| {
        if e.low < e.high && e.high - e.low == r.span() { r.padded() } else { r }
    };
    // Heat maps fill the frame. Lines fill it along x and have a margin along y. Dots have a margin
    // along both.
    let filled = figure.map.as_ref().is_some_and(|m| m.size().is_some());
    let x =
        requested_x.or_else(|| x.range().map(|r| if dots && !filled { padded(&x, r) } else { r }));
    let y = requested_y.or_else(|| {
        let range = y.range()?;
        let mut wide = if filled { range } else { padded(&y, range) };
        if bars && !figure.y.log {
            // No margin at the base of the bars.
            wide.low = if range.low >= 0.0 { 0.0 } else { wide.low };
            wide.high = if range.high <= 0.0 { 0.0 } else { wide.high };
            wide = Range::new(wide.low, wide.high);
        } else if bars {
            // The lowest bar of a logarithmic axis needs a visible height.
            wide = Range::new(y.low - 0.3, y.high + (0.05 * (y.high - y.low)).max(0.1));
        }
        Some(wide)
    });
    (x, y)
}

/// Whether there is no finite value to draw.
pub(crate) fn is_empty(figure: &Figure) -> bool {
    let mut empty = true;
    for_each_series_extent(figure, |_, _, _, high| empty &= !high.is_finite());
    let coloured = |m: &HeatMap| {
        m.size().is_some() && m.values.iter().any(|v| m.colour.position(*v).is_finite())
    };
    empty && !figure.map.as_ref().is_some_and(coloured)
}

/// Number of finite points, buckets, bars and cells with a value that is not positive on a logarithmic axis.
pub(crate) fn not_positive(figure: &Figure) -> usize {
    let hidden = |log: bool, value: f64| log && value.is_finite() && value <= 0.0;
    let [x_log, y_log] = [figure.x.log, figure.y.log];
    let along_x = |start: f64, step: f64, k: usize| hidden(x_log, start + (k as f64 + 0.5) * step);
    let mut count = 0;
    for series in &figure.series {
        count += match &series.points {
            Points::Line { x, y } | Points::Dots { x, y } => {
                let pairs = x.iter().zip(y);
                pairs.filter(|(x, y)| hidden(x_log, **x) || hidden(y_log, **y)).count()
            }
            Points::Envelope { start, step, low, high } => {
                let drawn = |k: usize| hidden(y_log, low[k]) || hidden(y_log, high[k]);
                let each = 0..low.len().min(high.len());
                each.filter(|k| drawn(*k) || along_x(*start, *step, *k)).count()
            }
            // A bar without height is not missing.
            Points::Bars { start, step, high } => {
                let negative = |value: f64| hidden(y_log, value) && value < 0.0;
                let each = high.iter().enumerate();
                each.filter(|(k, v)| negative(**v) || along_x(*start, *step, *k)).count()
            }
        };
    }
    if let Some(map) = &figure.map {
        // Empty bins of a histogram are zero.
        let least = |value: f64| !map.sparse || value < 0.0;
        let cells = map.values.iter().filter(|v| hidden(map.colour.log, **v) && least(**v));
        count += cells.count();
    }
    count
}

/// Message shown in an empty figure.
pub(crate) fn empty_message(figure: &Figure) -> &'static str {
    let log = figure.x.log || figure.y.log || figure.map.as_ref().is_some_and(|m| m.colour.log);
    if log { "no positive values" } else { "no finite values" }
}

/// Position of a value on a linear or logarithmic axis; NaN if it has no logarithm.
pub(crate) fn position(log: bool, value: f64) -> f64 {
    match log {
        false => value,
        true if value > 0.0 => value.log10(),
        true => f64::NAN,
    }
}

/// Calls `visit` with the extent `x0, x1, y0, y1` of every finite point, bucket and bar and of the heat
/// map, in axis positions.
fn for_each_extent(figure: &Figure, mut visit: impl FnMut(f64, f64, f64, f64)) {
    for_each_series_extent(figure, &mut visit);
    let Some(map) = &figure.map else { return };
    if let (Some(_), [x0, .., x1], [y0, .., y1]) = (map.size(), &map.x[..], &map.y[..]) {
        let [x0, x1] = [*x0, *x1].map(|v| figure.x.position(v));
        let [y0, y1] = [*y0, *y1].map(|v| figure.y.position(v));
        if [x0, x1, y0, y1].iter().all(|v| v.is_finite()) {
            visit(x0.min(x1), x0.max(x1), y0.min(y1), y0.max(y1));
        }
    }
}

/// Calls `visit` with the extent `x0, x1, y0, y1` of every finite point, bucket and bar. A bar whose
/// height has no logarithm still has an extent along x.
fn for_each_series_extent(figure: &Figure, mut visit: impl FnMut(f64, f64, f64, f64)) {
    let (px, py) = (|v| figure.x.position(v), |v| figure.y.position(v));
    for series in &figure.series {
        // Extent of bucket `k` along x.
        let ends = |start: f64, step: f64, k: usize| {
            let [a, b] = [k, k + 1].map(|k| px(start + k as f64 * step));
            (a.is_finite() && b.is_finite()).then(|| (a.min(b), a.max(b)))
        };
        match &series.points {
            Points::Line { x, y } | Points::Dots { x, y } => {
                for (x, y) in x.iter().zip(y).map(|(x, y)| (px(*x), py(*y))) {
                    if x.is_finite() && y.is_finite() {
                        visit(x, x, y, y);
                    }
                }
            }
            Points::Envelope { start, step, low, high } => {
                for (k, (&low, &high)) in low.iter().zip(high).enumerate() {
                    let finite = low.is_finite() && high.is_finite();
                    let (low, high) = (py(low.min(high)), py(low.max(high)));
                    // The minimum of a bucket can be without logarithm.
                    let low = if low.is_finite() { low } else { high };
                    if let (Some((a, b)), true) =
                        (ends(*start, *step, k), finite && high.is_finite())
                    {
                        visit(a, b, low, high);
                    }
                }
            }
            Points::Bars { start, step, high } => {
                for (k, &high) in high.iter().enumerate().filter(|(_, high)| high.is_finite()) {
                    let (foot, head) = (py(high.min(0.0)), py(high.max(0.0)));
                    let foot = if foot.is_finite() { foot } else { head };
                    if let Some((a, b)) = ends(*start, *step, k) {
                        visit(a, b, foot, head);
                    }
                }
            }
        }
    }
}

/// Minimum and maximum of values.
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
    use crate::figure::Series;
    use proptest::prelude::*;

    fn line(x: &[f64], y: &[f64]) -> Figure {
        Figure { series: vec![Series::line("", x.to_vec(), y.to_vec())], ..Figure::default() }
    }

    #[test]
    fn a_constant_is_centred() {
        let (x, y) = ranges(&line(&[0.0, 1.0], &[3.0, 3.0]));
        assert_eq!(x, Some(Range { low: 0.0, high: 1.0 }));
        let y = y.unwrap();
        assert!(y.low < 2.9 && y.high > 3.1);
        assert_eq!(Range::new(0.0, 0.0), Range { low: -1.0, high: 1.0 });
    }

    #[test]
    fn only_visible_points_affect_the_y_range() {
        let mut figure = line(&[0.0, 1.0, 2.0], &[1.0, 2.0, 1000.0]);
        figure.x.range = Some((0.0, 1.5));
        assert!(ranges(&figure).1.unwrap().high < 3.0);
    }

    #[test]
    fn without_finite_values_there_is_no_range() {
        assert_eq!(ranges(&line(&[f64::NAN, 1.0], &[1.0, f64::INFINITY])), (None, None));
        assert_eq!(ranges(&Figure::default()), (None, None));
    }

    proptest! {
        #[test]
        fn every_range_is_finite_and_has_a_span(a: f64, b: f64) {
            let r = Range::new(a, b);
            prop_assert!(r.low.is_finite() && r.high.is_finite() && r.padded().span().is_finite());
            prop_assert!(r.span() > 0.0 && r.span() >= 0.5 * MIN_RELATIVE_SPAN * r.high.abs());
        }
    }
}
