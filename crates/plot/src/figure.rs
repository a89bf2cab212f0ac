//! What a picture is made of: series, two axes, a size.

use crate::layout::Layout;
use crate::{PlotError, png, svg, terminal};

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
}

/// A picture: any number of series over two axes.
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
            width: 800,
            height: 450,
            dark: false,
        }
    }
}

impl Axis {
    /// An axis for the quantity `label` in `unit`; both may be empty.
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), range: None }
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

    /// The name for the legend; a nameless series goes by its place.
    pub(crate) fn name(&self, index: usize) -> String {
        if self.label.trim().is_empty() {
            format!("series {}", index + 1)
        } else {
            self.label.clone()
        }
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

    /// The picture as text: `rows` lines of at most `columns` characters, without a line break at
    /// the end. With `colour` the series are coloured by ANSI escapes. More than 1000 columns or
    /// rows are not used.
    #[must_use]
    pub fn to_terminal(&self, columns: usize, rows: usize, colour: bool) -> String {
        terminal::draw(self, columns, rows, colour)
    }

    /// How many pixel columns lie inside the axes: the number of buckets that an envelope should
    /// have. The room that labels take depends on the values, so this is nearly, not exactly, the
    /// same before and after the series are added.
    #[must_use]
    pub fn plot_width(&self) -> u32 {
        Layout::of(self).frame.width.max(1.0) as u32
    }
}
