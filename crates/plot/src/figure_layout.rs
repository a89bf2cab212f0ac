//! Layout of a figure: frame, ticks, and positions of all labels.

use crate::colourbar::{self, Colourbar};
use crate::figure::{Axis, Figure};
use crate::font;
use crate::geometry::View;
use crate::legend::{self, LegendHandle};
use crate::range::{self, Range};
use crate::ticks::{self, Tick, Ticks};
use crate::unit;

/// Font sizes.
pub(crate) const TICK: f64 = 11.0;
pub(crate) const LABEL: f64 = 12.5;
const TITLE: f64 = 14.5;
/// Length of a tick mark.
pub(crate) const MARK: f64 = 4.0;
/// Margin of the figure.
pub(crate) const PAD: f64 = 10.0;
/// Minimum distance between neighbouring tick labels.
const GAP: f64 = 10.0;

/// A rectangle in pixels.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Rect {
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(crate) fn centre(&self) -> (f64, f64) {
        (self.left + self.width / 2.0, self.top + self.height / 2.0)
    }
}

/// Anchor of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    pub(crate) x: f64,
    /// Baseline, or the centre of rotation of a rotated text.
    pub(crate) y: f64,
    pub(crate) size: f64,
    pub(crate) anchor: Anchor,
    /// Rotated by 90 degrees, reading upwards.
    pub(crate) rotated: bool,
    pub(crate) content: String,
}

impl Text {
    /// Horizontal text.
    pub(crate) fn new(x: f64, y: f64, size: f64, anchor: Anchor, content: String) -> Self {
        Self { x, y, size, anchor, rotated: false, content }
    }

    /// An axis label that reads upwards, with its centre at `x`, `y`.
    pub(crate) fn rotated(x: f64, y: f64, content: String) -> Self {
        Self { x, y, size: LABEL, anchor: Anchor::Middle, rotated: true, content }
    }

    /// Bounding box.
    #[cfg(test)]
    pub(crate) fn bounds(&self) -> Rect {
        let width = font::width(&self.content, self.size);
        let before = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let (up, text_height) =
            (self.size * font::ASCENT, self.size * (font::ASCENT + font::DESCENT));
        if self.rotated {
            let top = self.y - (width - before);
            Rect { left: self.x - up, top, width: text_height, height: width }
        } else {
            Rect { left: self.x - before, top: self.y - up, width, height: text_height }
        }
    }
}

/// Amount of decoration, which depends on the size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Full,
    /// Ticks and tick labels only.
    Ticks,
    /// Frame only.
    Frame,
}

/// Positions of all parts of a figure.
#[derive(Debug, Clone, Default)]
pub(crate) struct FigureLayout {
    /// Rectangle of the data.
    pub(crate) frame: Rect,
    pub(crate) x: Vec<Tick>,
    pub(crate) y: Vec<Tick>,
    /// Positions of the minor ticks along x and y.
    pub(crate) minor: [Vec<f64>; 2],
    pub(crate) texts: Vec<Text>,
    /// Legend handles.
    pub(crate) handles: Vec<LegendHandle>,
    /// Colour bar.
    pub(crate) bar: Option<colourbar::PositionedColourbar>,
    /// Mapping from values to pixels; `None` without axis ranges.
    pub(crate) view: Option<View>,
    /// Whether there is no finite value.
    pub(crate) empty: bool,
}

impl FigureLayout {
    /// Lays out a figure with as much decoration as its size allows.
    pub(crate) fn of(figure: &Figure) -> Self {
        let ranges = range::ranges(figure);
        let empty = range::is_empty(figure);
        for (detail, width, height) in [(Detail::Full, 80.0, 60.0), (Detail::Ticks, 30.0, 20.0)] {
            let layout = Self { empty, ..Self::arrange(figure, ranges, detail) };
            if layout.frame.width >= width && layout.frame.height >= height {
                return layout;
            }
        }
        Self { empty, ..Self::arrange(figure, ranges, Detail::Frame) }
    }

    fn arrange(
        figure: &Figure,
        (x_range, y_range): (Option<Range>, Option<Range>),
        detail: Detail,
    ) -> Self {
        let full = detail == Detail::Full;
        let (width, height) = (f64::from(figure.width.max(1)), f64::from(figure.height.max(1)));
        if detail == Detail::Frame {
            let frame = frame(width, height, [0.0; 4]);
            let view = view(frame, x_range, y_range, figure);
            return Self { frame, view, ..Self::default() };
        }

        // Below the frame: tick labels, then the axis label and the note.
        let x_max_count = |plot: f64| ((plot / 72.0) as usize).clamp(1, 12);
        let estimate = x_range.map(|r| Ticks::of(&figure.x, r, x_max_count(width * 0.85)));
        let has_x_label = full && (!axis_label(&figure.x, estimate.as_ref()).is_empty());
        let mut has_x_note = estimate.as_ref().is_some_and(|t| !t.note.is_empty());
        let mut bottom = PAD + if x_range.is_some() { MARK + 4.0 + TICK } else { 0.0 };
        if has_x_label || has_x_note {
            bottom += LABEL + 6.0;
        }

        let has_title = full && !figure.title.trim().is_empty();
        let head = PAD + if has_title { TITLE + 9.0 } else { 0.0 };
        let names: Vec<String> = figure.series.iter().enumerate().map(|(i, s)| s.name(i)).collect();
        let names = if full && names.len() > 1 { names } else { Vec::new() };

        // The height of the legend affects the y labels, whose width affects the legend. Two iterations
        // are sufficient.
        let mut left = 60.0;
        let mut right = PAD + 6.0;
        let mut top = head;
        let mut y_ticks = None;
        let mut legend = legend::Legend::default();
        let mut bar = None;
        for _ in 0..2 {
            let plot = width - left - right.max(PAD + 6.0);
            legend = legend::arrange(&names, plot, height - head - bottom, width);
            top = head + legend.above;
            let max_count = |plot: f64| ((plot / 32.0) as usize).clamp(1, 10);
            let mut ticks =
                y_range.map(|r| Ticks::of(&figure.y, r, max_count(height - top - bottom)));
            if ticks.as_ref().is_some_and(|t| !t.note.is_empty()) {
                top += TICK + 5.0;
                ticks = y_range.map(|r| Ticks::of(&figure.y, r, max_count(height - top - bottom)));
            }
            let labels = ticks.iter().flat_map(|t| &t.marks);
            let label_width = labels.map(|t| font::width(&t.label, TICK)).fold(0.0, f64::max);
            left = PAD + MARK + 4.0 + label_width.max(font::width("0.00", TICK));
            if full && !axis_label(&figure.y, ticks.as_ref()).is_empty() {
                left += LABEL + 8.0;
            }
            left = left.max(f64::from(figure.left));
            let map = figure.map.as_ref().filter(|_| full);
            bar = map.and_then(|map| Colourbar::new(map, max_count(height - top - bottom)));
            let beside = bar.as_ref().map_or(6.0, Colourbar::beside);
            right = legend.beside + PAD + beside;
            y_ticks = ticks;
        }
        if has_title || legend.above > 0.0 || y_ticks.as_ref().is_some_and(|t| !t.note.is_empty()) {
            top += 3.0;
        }

        // The last label along x can extend beyond the right edge.
        let mut plot_frame = frame(width, height, [left, top, right, bottom]);
        let mut x_ticks = None;
        for _ in 0..3 {
            let Some(range) = x_range else { break };
            let ticks = fitting_ticks(&figure.x, range, plot_frame, x_max_count(plot_frame.width));
            let over = ticks.marks.last().map_or(0.0, |t| {
                let end = x_pixel(plot_frame, range, t.value) + font::width(&t.label, TICK) / 2.0;
                end + 3.0 - (width - legend.beside)
            });
            // The final number of ticks can require a note.
            let note = !(ticks.note.is_empty() || has_x_label || has_x_note);
            x_ticks = Some(ticks);
            if over <= 0.0 && !note {
                break;
            }
            right += over.max(0.0);
            if note {
                has_x_note = true;
                bottom += LABEL + 6.0;
            }
            plot_frame = frame(width, height, [left, top, right, bottom]);
        }

        let frame = plot_frame;
        let view = view(frame, x_range, y_range, figure);
        let mut texts = Vec::new();
        if has_title {
            let text = font::fit(&figure.title, TITLE, width - 2.0 * PAD);
            let middle = middle(&text, TITLE, frame.centre().0, width);
            texts.push(Text::new(middle, PAD + TITLE * 0.85, TITLE, Anchor::Middle, text));
        }
        // A legend beside the frame follows the colour bar.
        let width_with_bar = frame.width + bar.as_ref().map_or(0.0, Colourbar::beside);
        let handles = legend.position(Rect { width: width_with_bar, ..frame }, head, &mut texts);
        if let Some((range, ticks)) = x_range.zip(x_ticks.as_ref()) {
            add_x_tick_labels(&mut texts, frame, range, ticks);
        }
        if let Some((range, ticks)) = y_range.zip(y_ticks.as_ref()) {
            add_y_tick_labels(&mut texts, frame, range, ticks, height);
        }
        if full {
            let (x, y) = (x_ticks.as_ref(), y_ticks.as_ref());
            add_axis_labels(&mut texts, frame, figure, (x, y), height - PAD - LABEL * 0.2);
        }
        let bar = bar.map(|bar| bar.position(frame, &mut texts));
        texts.retain(|t| !t.content.is_empty());
        let ticks = |t: Option<Ticks>| t.map(|t| t.marks).unwrap_or_default();
        let (x, y) = (ticks(x_ticks), ticks(y_ticks));
        let minor = |axis: &Axis, range: Option<Range>, major: &[Tick]| {
            range.map_or_else(Vec::new, |range| ticks::minor(axis, range, major))
        };
        let minor = [minor(&figure.x, x_range, &x), minor(&figure.y, y_range, &y)];
        Self { frame, x, y, minor, texts, handles, bar, view, empty: false }
    }
}

/// Adds the tick labels below the frame, and the note at the right end.
fn add_x_tick_labels(texts: &mut Vec<Text>, frame: Rect, range: Range, ticks: &Ticks) {
    let baseline = frame.bottom() + MARK + 4.0 + TICK * font::ASCENT;
    for tick in &ticks.marks {
        let x = x_pixel(frame, range, tick.value);
        texts.push(Text::new(x, baseline, TICK, Anchor::Middle, tick.label.clone()));
    }
    if !ticks.note.is_empty() {
        let y = baseline + LABEL + 6.0;
        let note = font::fit(&ticks.note, TICK, frame.width);
        texts.push(Text::new(frame.right(), y, TICK, Anchor::End, note));
    }
}

/// Adds the tick labels left of the frame, and the note above the top left corner.
fn add_y_tick_labels(texts: &mut Vec<Text>, frame: Rect, range: Range, ticks: &Ticks, height: f64) {
    for tick in &ticks.marks {
        let y = frame.bottom() - range.fraction(tick.value) * frame.height + TICK * 0.36;
        if y < height && y > TICK * font::ASCENT {
            let x = frame.left - MARK - 4.0;
            texts.push(Text::new(x, y, TICK, Anchor::End, tick.label.clone()));
        }
    }
    if !ticks.note.is_empty() {
        let note = font::fit(&ticks.note, TICK, frame.width);
        texts.push(Text::new(frame.left, frame.top - 6.0, TICK, Anchor::Start, note));
    }
}

/// Adds the labels of both axes; the x label is at `baseline`.
fn add_axis_labels(
    texts: &mut Vec<Text>,
    frame: Rect,
    figure: &Figure,
    (x, y): (Option<&Ticks>, Option<&Ticks>),
    baseline: f64,
) {
    let with_note = x.filter(|t| !t.note.is_empty());
    let note_width = with_note.map_or(0.0, |t| font::width(&t.note, TICK) + 2.0 * GAP);
    let text = shortened_label(&figure.x, x, frame.width - 2.0 * note_width);
    texts.push(Text::new(frame.centre().0, baseline, LABEL, Anchor::Middle, text));
    let text = shortened_label(&figure.y, y, frame.height);
    texts.push(Text::rotated(PAD + LABEL * 0.8, frame.centre().1, text));
}

/// Ticks along x, as many as possible without overlapping labels.
fn fitting_ticks(axis: &Axis, range: Range, frame: Rect, max_count: usize) -> Ticks {
    for max_count in (1..=max_count).rev() {
        let mut ticks = Ticks::of(axis, range, max_count);
        let mut end = f64::NEG_INFINITY;
        let mut crowded = false;
        ticks.marks.retain(|tick| {
            let (x, half) =
                (x_pixel(frame, range, tick.value), font::width(&tick.label, TICK) / 2.0);
            let free = x - half >= end;
            crowded |= !free;
            if free {
                end = x + half + GAP;
            }
            free
        });
        if !crowded || max_count == 1 {
            return ticks;
        }
    }
    Ticks::default()
}

/// Axis label with unit.
pub(crate) fn axis_label(axis: &Axis, ticks: Option<&Ticks>) -> String {
    if axis.bare {
        return String::new();
    }
    let unit = unit::pretty(ticks.map_or(axis.unit.as_str(), |t| t.unit.as_str()).trim());
    match (axis.label.trim(), unit.as_str()) {
        ("", unit) => unit.to_owned(),
        (label, "") => label.to_owned(),
        (label, unit) => format!("{label} ({unit})"),
    }
}

/// Axis label with unit in at most `max_width` pixels; the label is shortened, the unit is kept.
pub(crate) fn shortened_label(axis: &Axis, ticks: Option<&Ticks>, max_width: f64) -> String {
    let full = axis_label(axis, ticks);
    if full.is_empty() {
        return full;
    }
    let label = axis.label.trim();
    let after = full.strip_prefix(label).unwrap_or_default();
    let left = max_width - font::width(after, LABEL);
    // Shorten the entire text if there is hardly space for the unit.
    if left < max_width * 0.3 || label.is_empty() {
        return font::fit(&full, LABEL, max_width);
    }
    font::fit_middle(label, left, font::at_size(LABEL)) + &font::clean(after).collect::<String>()
}

/// Axis label followed by the note of the ticks.
pub(crate) fn label_with_note(name: &str, ticks: Option<&Ticks>) -> String {
    match ticks.map_or("", |t| t.note.as_str()) {
        "" => name.to_owned(),
        note if name.is_empty() => note.to_owned(),
        note => format!("{name}  {note}"),
    }
}

/// Centre of `text` as close to `preferred` as the width of the figure allows.
fn middle(text: &str, size: f64, preferred: f64, width: f64) -> f64 {
    let half = font::width(text, size) / 2.0 + PAD;
    preferred.min(width - half).max(half)
}

/// X coordinate of a position on the x axis in pixels, clamped to the frame.
fn x_pixel(frame: Rect, range: Range, value: f64) -> f64 {
    frame.left + range.fraction(value) * frame.width
}

/// Frame inside the margins `left, top, right, bottom`, with edges at pixel centres.
fn frame(width: f64, height: f64, [left, top, right, bottom]: [f64; 4]) -> Rect {
    let (left, top) = (left.ceil() + 0.5, top.ceil() + 0.5);
    Rect {
        left,
        top,
        width: (width - left - right - 0.5).floor().max(0.0),
        height: (height - top - bottom - 0.5).floor().max(0.0),
    }
}

fn view(frame: Rect, x: Option<Range>, y: Option<Range>, figure: &Figure) -> Option<View> {
    Some(View { x: x?, y: y?, log: [figure.x.log, figure.y.log], frame })
}

#[cfg(test)]
mod tests;
