//! What a picture is made of: series or a map of colours, two axes, a size.

use crate::layout::Layout;
use crate::range::{self, Range};
use crate::{PlotError, graphics, png, svg, terminal};

/// The numbers of one series.
#[derive(Debug, Clone, PartialEq)]
pub enum Points {
    /// Points joined in the order given. A value that is not finite breaks the line; where the two
    /// lists differ in length, the longer one's rest is ignored.
    Line {
        /// Where the points lie along the axis.
        x: Vec<f64>,
        /// The value at each point.
        y: Vec<f64>,
    },
    /// The least and the greatest value of each of many equal buckets, which is how a trace with
    /// far more samples than pixels is drawn in full: bucket `k` covers `start + k * step` to
    /// `start + (k + 1) * step`. A value that is not finite makes its bucket a gap.
    Envelope {
        /// Where the first bucket begins.
        start: f64,
        /// How wide a bucket is.
        step: f64,
        /// The least value in each bucket.
        low: Vec<f64>,
        /// The greatest value in each bucket.
        high: Vec<f64>,
    },
    /// Points on their own. Those that are not finite are left out.
    Dots {
        /// Where the points lie along the axis.
        x: Vec<f64>,
        /// The value at each point.
        y: Vec<f64>,
    },
    /// Bars that stand on zero, as of a histogram: bar `k` covers `start + k * step` to
    /// `start + (k + 1) * step`.
    Bars {
        /// Where the first bar begins.
        start: f64,
        /// How wide a bar is.
        step: f64,
        /// How high each bar is.
        high: Vec<f64>,
    },
}

/// A named set of points, drawn in one colour.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name shown in the legend.
    pub label: String,
    /// The numbers.
    pub points: Points,
}

/// What an axis shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Axis {
    /// The name of the quantity, such as `time`.
    pub label: String,
    /// The unit the numbers are in, such as `s` or `V/m`; empty if there is none. Where the unit
    /// takes SI prefixes the axis chooses a fitting one, so that seconds may be shown as `µs`.
    pub unit: String,
    /// The first and last value to show; the data decide if this is `None` or not finite.
    pub range: Option<(f64, f64)>,
    /// Equal distances are equal factors; what is not positive is a gap.
    pub log: bool,
    /// There is nothing between whole numbers, as on an axis that counts, so no tick stands there.
    pub whole: bool,
}

/// Numbers over a grid of cells, drawn as colours.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeatMap {
    /// Where the cells begin along x and, at last, where they end: one more than there are
    /// columns, all rising or all falling. They may be of any widths.
    pub x: Vec<f64>,
    /// The same along y.
    pub y: Vec<f64>,
    /// The value of each cell, row after row from the first of `y` on; what is not finite or not
    /// there is a gap.
    pub values: Vec<f64>,
    /// What the values are; shown beside a bar of the colours.
    pub colour: Axis,
    /// Colours that part at the middle, for values that have a sign. Without a range of its own
    /// the bar then reaches as far below zero as above.
    pub diverging: bool,
    /// A gap means there is nothing and shows the paper. Otherwise it is a missing value and grey.
    pub sparse: bool,
}

/// What a terminal can show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Screen {
    /// Plain characters.
    #[default]
    Plain,
    /// The usual 256 colours.
    Palette,
    /// Any colour.
    True,
}

/// A picture: a map of colours or any number of series over two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// The heading.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The data, the first drawn first. More than one get a legend.
    pub series: Vec<Series>,
    /// Colours behind the series, with their bar at the right.
    pub map: Option<HeatMap>,
    /// Width of the whole picture in pixels.
    pub width: u32,
    /// Height of the whole picture in pixels.
    pub height: u32,
    /// Light on dark instead of dark on light.
    pub dark: bool,
}

impl Default for Figure {
    fn default() -> Self {
        Self {
            title: String::new(),
            x: Axis::default(),
            y: Axis::default(),
            series: Vec::new(),
            map: None,
            width: 800,
            height: 450,
            dark: false,
        }
    }
}

impl Axis {
    /// An axis for the quantity `label` in `unit`; both may be empty.
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), ..Self::default() }
    }

    /// An axis that counts.
    pub fn whole(label: impl Into<String>) -> Self {
        Self { whole: true, ..Self::new(label, "") }
    }

    /// Where a value lies: the value itself, or its logarithm, which is not finite for what has
    /// none.
    pub(crate) fn place(&self, value: f64) -> f64 {
        range::place(self.log, value)
    }

    /// The range asked for, if it can be shown.
    pub(crate) fn asked(&self) -> Option<Range> {
        let (a, b) = self.range?;
        let (a, b) = (self.place(a), self.place(b));
        (a.is_finite() && b.is_finite()).then(|| Range::new(a, b))
    }
}

impl Series {
    /// A line through the points `x`, `y`.
    pub fn line(label: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self { label: label.into(), points: Points::Line { x, y } }
    }

    /// A band from `low` to `high` over equal buckets; see [`Points::Envelope`].
    pub fn envelope(
        label: impl Into<String>,
        start: f64,
        step: f64,
        low: Vec<f64>,
        high: Vec<f64>,
    ) -> Self {
        Self { label: label.into(), points: Points::Envelope { start, step, low, high } }
    }

    /// Points on their own at `x`, `y`.
    pub fn dots(label: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self { label: label.into(), points: Points::Dots { x, y } }
    }

    /// Bars from zero up to `high`; see [`Points::Bars`].
    pub fn bars(label: impl Into<String>, start: f64, step: f64, high: Vec<f64>) -> Self {
        Self { label: label.into(), points: Points::Bars { start, step, high } }
    }

    /// The name for the legend; a nameless series goes by its place.
    pub(crate) fn name(&self, index: usize) -> String {
        if self.label.trim().is_empty() {
            format!("series {}", index + 1)
        } else {
            self.label.clone()
        }
    }
}

impl HeatMap {
    /// Columns and rows, if the edges make cells.
    pub(crate) fn size(&self) -> Option<(usize, usize)> {
        let sound = |edges: &[f64]| {
            edges.len() > 1
                && edges.iter().all(|e| e.is_finite())
                && (edges.is_sorted_by(|a, b| a < b) || edges.is_sorted_by(|a, b| a > b))
        };
        (sound(&self.x) && sound(&self.y)).then(|| (self.x.len() - 1, self.y.len() - 1))
    }

    /// The value of a cell; NaN where there is none.
    pub(crate) fn value(&self, column: usize, row: usize) -> f64 {
        let columns = self.x.len().saturating_sub(1);
        self.values.get(row * columns + column).copied().unwrap_or(f64::NAN)
    }
}

impl Figure {
    /// The picture as an SVG document.
    #[must_use]
    pub fn to_svg(&self) -> String {
        svg::draw(self)
    }

    /// The picture as a PNG file, `scale` times `width` by `height` pixels.
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, PlotError> {
        png::draw(self, scale)
    }

    /// The picture as sixels, which some terminals show, with a line break at the end.
    pub fn to_sixel(&self, scale: f32) -> Result<String, PlotError> {
        png::render(self, scale).map(|canvas| graphics::sixel(&canvas))
    }

    /// The picture as text: `rows` lines of at most `columns` characters, without a line break at
    /// the end. Colours are ANSI escapes of the kind that `screen` says. More than 1000 columns or
    /// rows are not used.
    #[must_use]
    pub fn to_terminal(&self, columns: usize, rows: usize, screen: Screen) -> String {
        terminal::draw(self, columns, rows, screen)
    }

    /// How many pixel columns lie inside the axes: the number of buckets that an envelope should
    /// have. The room that labels take depends on the values, so this is nearly, not exactly, the
    /// same before and after the series are added.
    #[must_use]
    pub fn plot_width(&self) -> u32 {
        Layout::of(self).frame.width.max(1.0) as u32
    }

    /// How many pixel rows lie inside the axes.
    #[must_use]
    pub fn plot_height(&self) -> u32 {
        Layout::of(self).frame.height.max(1.0) as u32
    }

    /// Makes the picture narrower or lower, so that a distance is as long along x as along y.
    /// Where one axis is much longer than the other it is left as it is.
    pub fn with_equal_steps(mut self) -> Self {
        const LEAST: u32 = 420;
        for _ in 0..2 {
            let layout = Layout::of(&self);
            let Some(view) = layout.view else { return self };
            let ratio = view.y.span() / view.x.span();
            if !(0.25..=4.0).contains(&ratio) {
                return self;
            }
            let (width, height) = (layout.frame.width, layout.frame.height);
            if width * ratio < height {
                self.height -= ((height - width * ratio) as u32).min(self.height - 1);
            } else {
                let less = (width - height / ratio) as u32;
                self.width -= less.min(self.width.saturating_sub(LEAST));
            }
        }
        self
    }
}
