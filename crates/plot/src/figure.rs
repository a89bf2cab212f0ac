//! The model of a plot: series or a heat map, two axes, a size.

use crate::figure_layout::FigureLayout;
use crate::range::{self, Range};
use crate::{PlotError, Theme, graphics, png, svg, terminal};

/// Data of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum Points {
    /// A line through the points in the given order. A value that is not finite interrupts the line.
    /// Extra elements of the longer vector are ignored.
    Line {
        /// X coordinates.
        x: Vec<f64>,
        /// Y coordinates.
        y: Vec<f64>,
    },
    /// Minimum and maximum of each of many equal buckets, for signals with far more samples than
    /// pixels. Bucket `k` covers `start + k * step` to `start + (k + 1) * step`. A value that is not
    /// finite makes its bucket a gap.
    Envelope {
        /// Start of the first bucket.
        start: f64,
        /// Width of a bucket.
        step: f64,
        /// Minimum of each bucket.
        low: Vec<f64>,
        /// Maximum of each bucket.
        high: Vec<f64>,
    },
    /// Unconnected points (a scatter plot). Points that are not finite are omitted.
    Dots {
        /// X coordinates.
        x: Vec<f64>,
        /// Y coordinates.
        y: Vec<f64>,
    },
    /// Bars with the base at zero, for histograms. Bar `k` covers `start + k * step` to
    /// `start + (k + 1) * step`.
    Bars {
        /// Start of the first bar.
        start: f64,
        /// Width of a bar.
        step: f64,
        /// Height of each bar.
        high: Vec<f64>,
    },
}

/// A named data set, drawn in one colour.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub label: String,
    /// Data.
    pub points: Points,
}

/// An axis: quantity, unit, range and scale.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Axis {
    /// Name of the quantity, such as `time`.
    pub label: String,
    /// Unit of the data, such as `s` or `V/m`; empty if there is none. If the unit takes SI prefixes,
    /// the axis label uses a suitable one, such as `µs` for seconds.
    pub unit: String,
    /// First and last value to show; the range of the data if `None` or not finite.
    pub range: Option<(f64, f64)>,
    /// Logarithmic scale; values that are not positive are gaps.
    pub log: bool,
    /// Ticks only at integers, for an axis of indices or counts.
    pub integer: bool,
    /// No label and no unit, for all but the last of several figures above each other.
    pub bare: bool,
}

/// Values on a rectilinear grid of cells, drawn as colours.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HeatMap {
    /// Cell edges along x: one more than the number of columns, strictly increasing or decreasing,
    /// with any spacing.
    pub x: Vec<f64>,
    /// Cell edges along y: one more than the number of rows, strictly increasing or decreasing, with
    /// any spacing.
    pub y: Vec<f64>,
    /// Cell values, row by row from the first of `y` on. Values that are missing or not finite are
    /// gaps.
    pub values: Vec<f64>,
    /// Axis of the colour bar.
    pub colour: Axis,
    /// Diverging colour map, for signed values. Without a range, the colour bar is symmetric about
    /// zero.
    pub diverging: bool,
    /// Draw gaps in the background colour instead of grey.
    pub sparse: bool,
}

/// Colours of a terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ColourMode {
    /// No colours.
    #[default]
    Plain,
    /// The 256 indexed ANSI colours.
    Ansi256,
    /// 24-bit colours.
    TrueColour,
}

/// A plot: a heat map, any number of series, or both, over two axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Title; omitted if empty.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Series, drawn in this order. More than one get a legend.
    pub series: Vec<Series>,
    /// Heat map behind the series, with a colour bar at the right.
    pub map: Option<HeatMap>,
    /// Width of the figure in pixels.
    pub width: u32,
    /// Height of the figure in pixels.
    pub height: u32,
    /// Colours and line styles.
    pub theme: Theme,
    /// Minimum width left of the axes in pixels, to align figures above each other.
    pub left: u32,
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
            theme: Theme::Light,
            left: 0,
        }
    }
}

impl Axis {
    /// A linear axis for the quantity `label` in `unit`; both can be empty.
    pub fn new(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), ..Self::default() }
    }

    /// A linear axis without unit and with ticks only at integers.
    pub fn integer(label: impl Into<String>) -> Self {
        Self { integer: true, ..Self::new(label, "") }
    }

    /// Position of a value along the axis: the value, or its decimal logarithm on a logarithmic axis
    /// (NaN if the value is not positive).
    pub(crate) fn position(&self, value: f64) -> f64 {
        range::position(self.log, value)
    }

    /// Positions of the range set by the user, if they are finite.
    pub(crate) fn requested_range(&self) -> Option<Range> {
        let (a, b) = self.range?;
        let (a, b) = (self.position(a), self.position(b));
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

    /// Unconnected points at `x`, `y`.
    pub fn dots(label: impl Into<String>, x: Vec<f64>, y: Vec<f64>) -> Self {
        Self { label: label.into(), points: Points::Dots { x, y } }
    }

    /// Bars from zero to `high`; see [`Points::Bars`].
    pub fn bars(label: impl Into<String>, start: f64, step: f64, high: Vec<f64>) -> Self {
        Self { label: label.into(), points: Points::Bars { start, step, high } }
    }

    /// Name in the legend: the label, or the number of the series if that is empty.
    pub(crate) fn name(&self, index: usize) -> String {
        if self.label.trim().is_empty() {
            format!("series {}", index + 1)
        } else {
            self.label.clone()
        }
    }
}

impl HeatMap {
    /// Number of columns and rows; `None` if the edges are invalid.
    pub(crate) fn size(&self) -> Option<(usize, usize)> {
        let valid = |edges: &[f64]| {
            edges.len() > 1
                && edges.iter().all(|e| e.is_finite())
                && (edges.is_sorted_by(|a, b| a < b) || edges.is_sorted_by(|a, b| a > b))
        };
        (valid(&self.x) && valid(&self.y)).then(|| (self.x.len() - 1, self.y.len() - 1))
    }

    /// Value of a cell; NaN if missing.
    pub(crate) fn value(&self, column: usize, row: usize) -> f64 {
        let columns = self.x.len().saturating_sub(1);
        self.values.get(row * columns + column).copied().unwrap_or(f64::NAN)
    }
}

impl Figure {
    /// Draws the figure as an SVG document.
    #[must_use]
    pub fn to_svg(&self) -> String {
        svg::draw(self)
    }

    /// Draws the figure as a PNG file of `scale * width` by `scale * height` pixels.
    ///
    /// # Errors
    /// The size is zero or more than 2^27 pixels, or the renderer fails.
    pub fn to_png(&self, scale: f32) -> Result<Vec<u8>, PlotError> {
        png::encode(&self.render(scale)?)
    }

    /// Draws the figure as a sixel image for terminals that support it, with a final newline. Fails
    /// like [`Figure::to_png`].
    pub fn to_sixel(&self, scale: f32) -> Result<String, PlotError> {
        self.render(scale).map(|canvas| graphics::sixel(&canvas))
    }

    fn render(&self, scale: f32) -> Result<resvg::tiny_skia::Pixmap, PlotError> {
        png::render(&svg::draw(self), (self.width, self.height), scale)
    }

    /// Draws the figure as text: `rows` lines of at most `columns` characters, without a final
    /// newline. Colours are ANSI escape sequences according to `mode`. At most 1000 columns and rows
    /// are used.
    #[must_use]
    pub fn to_terminal(&self, columns: usize, rows: usize, mode: ColourMode) -> String {
        terminal::draw(self, columns, rows, mode)
    }

    /// Smallest and largest value along x that is drawn; `None` without finite values.
    #[must_use]
    pub fn x_range(&self) -> Option<(f64, f64)> {
        let range = range::ranges(self).0?;
        let value = |position: f64| if self.x.log { 10_f64.powf(position) } else { position };
        Some((value(range.low), value(range.high)))
    }

    /// Number of points, buckets, bars and cells that are not drawn because a value on a logarithmic axis is not
    /// positive.
    #[must_use]
    pub fn not_positive(&self) -> usize {
        range::not_positive(self)
    }

    /// Width of the plot area in pixels, a good number of buckets for an envelope. The width depends on
    /// the tick labels and can therefore change slightly when series are added.
    #[must_use]
    pub fn plot_width(&self) -> u32 {
        FigureLayout::of(self).frame.width.max(1.0) as u32
    }

    /// Height of the plot area in pixels.
    #[must_use]
    pub fn plot_height(&self) -> u32 {
        FigureLayout::of(self).frame.height.max(1.0) as u32
    }

    /// Reduces width or height so that one unit has the same length along x and y. The figure is
    /// unchanged if one axis range is more than four times the other.
    pub fn with_equal_aspect(mut self) -> Self {
        const MIN_WIDTH: u32 = 420;
        for _ in 0..2 {
            let layout = FigureLayout::of(&self);
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
                self.width -= less.min(self.width.saturating_sub(MIN_WIDTH));
            }
        }
        self
    }
}
