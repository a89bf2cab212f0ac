//! Where everything goes: the frame, its ticks, and every piece of text with its box.

use crate::bar::{self, Bar};
use crate::figure::{Axis, Figure};
use crate::font;
use crate::legend::{self, Key};
use crate::range::{self, Range};
use crate::ticks::{Tick, Ticks};
use crate::trace::View;
use crate::unit;

/// Font sizes.
pub(crate) const TICK: f64 = 11.0;
pub(crate) const LABEL: f64 = 12.5;
const TITLE: f64 = 14.5;
/// Length of a tick mark.
pub(crate) const MARK: f64 = 4.0;
/// Between the picture's edge and anything in it.
pub(crate) const PAD: f64 = 10.0;
/// Between neighbouring labels along an axis.
const GAP: f64 = 10.0;

/// A rectangle in pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
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
}

/// Which point of a text its position means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// One line of text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    pub(crate) x: f64,
    /// The baseline, or for a turned text the point around which it is turned.
    pub(crate) y: f64,
    pub(crate) size: f64,
    pub(crate) anchor: Anchor,
    /// Reads upwards instead of to the right.
    pub(crate) turned: bool,
    pub(crate) content: String,
}

impl Text {
    /// The box that the text fills.
    #[cfg(test)]
    pub(crate) fn bounds(&self) -> Rect {
        let width = font::width(&self.content, self.size);
        let before = match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let (up, tall) = (self.size * font::ASCENT, self.size * (font::ASCENT + font::DESCENT));
        if self.turned {
            let top = self.y - (width - before);
            Rect { left: self.x - up, top, width: tall, height: width }
        } else {
            Rect { left: self.x - before, top: self.y - up, width, height: tall }
        }
    }
}

/// How much of the decoration there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Detail {
    Full,
    /// Ticks and their labels only.
    Ticks,
    /// Nothing but the frame.
    Frame,
}

/// A figure with every part in its place.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// The rectangle that the data are drawn in.
    pub(crate) frame: Rect,
    pub(crate) x: Vec<Tick>,
    pub(crate) y: Vec<Tick>,
    pub(crate) texts: Vec<Text>,
    /// The samples of line or colour in the legend.
    pub(crate) keys: Vec<Key>,
    /// The bar of colours.
    pub(crate) bar: Option<bar::Placed>,
    /// How values become pixels; `None` if there is nothing to show.
    pub(crate) view: Option<View>,
    /// No series has a finite value.
    pub(crate) empty: bool,
}

impl Layout {
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
            return Self {
                frame,
                x: Vec::new(),
                y: Vec::new(),
                texts: Vec::new(),
                keys: Vec::new(),
                bar: None,
                view,
                empty: false,
            };
        }

        // Below the frame: labels of ticks, then the axis label and the note that belongs to it.
        let x_most = |plot: f64| ((plot / 72.0) as usize).clamp(1, 12);
        let guess = x_range.map(|r| Ticks::of(&figure.x, r, x_most(width * 0.85)));
        let x_named = full && (!name(&figure.x, guess.as_ref()).is_empty());
        let mut x_noted = guess.as_ref().is_some_and(|t| !t.note.is_empty());
        let mut bottom = PAD + if x_range.is_some() { MARK + 4.0 + TICK } else { 0.0 };
        if x_named || x_noted {
            bottom += LABEL + 6.0;
        }

        let titled = full && !figure.title.trim().is_empty();
        let head = PAD + if titled { TITLE + 9.0 } else { 0.0 };
        let names: Vec<String> = figure.series.iter().enumerate().map(|(i, s)| s.name(i)).collect();
        let names = if full && names.len() > 1 { names } else { Vec::new() };

        // The legend's rows move the frame, which changes the labels of y, whose width changes the
        // room for the legend. This settles at once; twice is enough.
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
            let most = |plot: f64| ((plot / 32.0) as usize).clamp(1, 10);
            let mut ticks = y_range.map(|r| Ticks::of(&figure.y, r, most(height - top - bottom)));
            if ticks.as_ref().is_some_and(|t| !t.note.is_empty()) {
                top += TICK + 5.0;
                ticks = y_range.map(|r| Ticks::of(&figure.y, r, most(height - top - bottom)));
            }
            let labels = ticks.iter().flat_map(|t| &t.marks);
            let wide = labels.map(|t| font::width(&t.label, TICK)).fold(0.0, f64::max);
            left = PAD + MARK + 4.0 + wide.max(font::width("0.00", TICK));
            if full && !name(&figure.y, ticks.as_ref()).is_empty() {
                left += LABEL + 8.0;
            }
            let map = figure.map.as_ref().filter(|_| full);
            bar = map.and_then(|map| Bar::new(map, most(height - top - bottom)));
            let beside = bar.as_ref().map_or(6.0, Bar::beside);
            right = legend.beside + PAD + beside;
            y_ticks = ticks;
        }
        if titled || legend.above > 0.0 || y_ticks.as_ref().is_some_and(|t| !t.note.is_empty()) {
            top += 3.0;
        }

        // The last label along x is centred on a tick that may be at the very edge.
        let mut plot_frame = frame(width, height, [left, top, right, bottom]);
        let mut x_ticks = None;
        for _ in 0..3 {
            let Some(range) = x_range else { break };
            let ticks = fitting(&figure.x, range, plot_frame, x_most(plot_frame.width));
            let over = ticks.marks.last().map_or(0.0, |t| {
                let end = place(plot_frame, range, t.value) + font::width(&t.label, TICK) / 2.0;
                end + 3.0 - (width - legend.beside)
            });
            // With the final number of ticks there may be a note after all.
            let note = !(ticks.note.is_empty() || x_named || x_noted);
            x_ticks = Some(ticks);
            if over <= 0.0 && !note {
                break;
            }
            right += over.max(0.0);
            if note {
                x_noted = true;
                bottom += LABEL + 6.0;
            }
            plot_frame = frame(width, height, [left, top, right, bottom]);
        }

        let frame = plot_frame;
        let view = view(frame, x_range, y_range, figure);
        let mut texts = Vec::new();
        if titled {
            let text = font::fit(&figure.title, TITLE, width - 2.0 * PAD);
            let middle = middle(&text, TITLE, frame.left + frame.width / 2.0, width);
            texts.push(line(middle, PAD + TITLE * 0.85, TITLE, Anchor::Middle, text));
        }
        // A legend beside the frame comes after the bar.
        let wide = frame.width + bar.as_ref().map_or(0.0, Bar::beside);
        let keys = legend.place(Rect { width: wide, ..frame }, head, &mut texts);
        if let Some(range) = x_range {
            label_x(&mut texts, frame, range, x_ticks.as_ref());
        }
        if let Some(range) = y_range {
            label_y(&mut texts, frame, range, y_ticks.as_ref(), height);
        }
        if full {
            let baseline = height - PAD - LABEL * 0.2;
            name_axes(&mut texts, frame, figure, (x_ticks.as_ref(), y_ticks.as_ref()), baseline);
        }
        let bar = bar.map(|bar| bar.place(frame, &mut texts));
        texts.retain(|t| !t.content.is_empty());
        let ticks = |t: Option<Ticks>| t.map(|t| t.marks).unwrap_or_default();
        Self { frame, x: ticks(x_ticks), y: ticks(y_ticks), texts, keys, bar, view, empty: false }
    }
}

/// Labels below the frame, and the note of the axis at the far end.
fn label_x(texts: &mut Vec<Text>, frame: Rect, range: Range, ticks: Option<&Ticks>) {
    let Some(ticks) = ticks else { return };
    let baseline = frame.bottom() + MARK + 4.0 + TICK * font::ASCENT;
    for tick in &ticks.marks {
        let x = place(frame, range, tick.value);
        texts.push(line(x, baseline, TICK, Anchor::Middle, tick.label.clone()));
    }
    if !ticks.note.is_empty() {
        let y = baseline + LABEL + 6.0;
        let note = font::fit(&ticks.note, TICK, frame.width);
        texts.push(line(frame.right(), y, TICK, Anchor::End, note));
    }
}

/// Labels left of the frame, and the note of the axis above its corner.
fn label_y(texts: &mut Vec<Text>, frame: Rect, range: Range, ticks: Option<&Ticks>, height: f64) {
    let Some(ticks) = ticks else { return };
    for tick in &ticks.marks {
        let part = (tick.value - range.low) / range.span();
        let y = frame.bottom() - part.clamp(0.0, 1.0) * frame.height + TICK * 0.36;
        if y < height && y > TICK * font::ASCENT {
            let x = frame.left - MARK - 4.0;
            texts.push(line(x, y, TICK, Anchor::End, tick.label.clone()));
        }
    }
    if !ticks.note.is_empty() {
        let note = font::fit(&ticks.note, TICK, frame.width);
        texts.push(line(frame.left, frame.top - 6.0, TICK, Anchor::Start, note));
    }
}

/// The labels of both axes; the one along x stands at `baseline`.
fn name_axes(
    texts: &mut Vec<Text>,
    frame: Rect,
    figure: &Figure,
    (x, y): (Option<&Ticks>, Option<&Ticks>),
    baseline: f64,
) {
    let noted = x.filter(|t| !t.note.is_empty());
    let room = noted.map_or(0.0, |t| font::width(&t.note, TICK) + 2.0 * GAP);
    let text = fitted(&figure.x, x, frame.width - 2.0 * room);
    let middle = frame.left + frame.width / 2.0;
    texts.push(line(middle, baseline, LABEL, Anchor::Middle, text));
    let text = fitted(&figure.y, y, frame.height);
    texts.push(Text {
        x: PAD + LABEL * 0.8,
        y: frame.top + frame.height / 2.0,
        size: LABEL,
        anchor: Anchor::Middle,
        turned: true,
        content: text,
    });
    texts.retain(|t| !t.content.is_empty());
}

/// The ticks along x with as many labels as have room side by side.
fn fitting(axis: &Axis, range: Range, frame: Rect, most: usize) -> Ticks {
    for most in (1..=most).rev() {
        let mut ticks = Ticks::of(axis, range, most);
        let mut end = f64::NEG_INFINITY;
        let mut crowded = false;
        ticks.marks.retain(|tick| {
            let (x, half) = (place(frame, range, tick.value), font::width(&tick.label, TICK) / 2.0);
            let free = x - half >= end;
            crowded |= !free;
            if free {
                end = x + half + GAP;
            }
            free
        });
        if !crowded || most == 1 {
            return ticks;
        }
    }
    Ticks::default()
}

/// The axis label with its unit.
pub(crate) fn name(axis: &Axis, ticks: Option<&Ticks>) -> String {
    let unit = unit::pretty(ticks.map_or(axis.unit.as_str(), |t| t.unit.as_str()).trim());
    match (axis.label.trim(), unit.as_str()) {
        ("", unit) => unit.to_owned(),
        (label, "") => label.to_owned(),
        (label, unit) => format!("{label} ({unit})"),
    }
}

/// The same in at most `room` pixels: the label is cut, the unit stays.
pub(crate) fn fitted(axis: &Axis, ticks: Option<&Ticks>, room: f64) -> String {
    let whole = name(axis, ticks);
    let label = axis.label.trim();
    let after = whole.strip_prefix(label).unwrap_or_default();
    let left = room - font::width(after, LABEL);
    // Where hardly the unit fits there is nothing to save.
    if left < room * 0.3 || label.is_empty() {
        return font::fit(&whole, LABEL, room);
    }
    font::fit_middle(label, left, font::at_size(LABEL)) + &font::clean(after).collect::<String>()
}

/// A name and the note of its axis.
pub(crate) fn noted(name: &str, ticks: Option<&Ticks>) -> String {
    match ticks.map_or("", |t| t.note.as_str()) {
        "" => name.to_owned(),
        note if name.is_empty() => note.to_owned(),
        note => format!("{name}  {note}"),
    }
}

fn line(x: f64, y: f64, size: f64, anchor: Anchor, text: String) -> Text {
    Text { x, y, size, anchor, turned: false, content: text }
}

/// The centre for `text`, as near to `wanted` as the picture's width allows.
fn middle(text: &str, size: f64, wanted: f64, width: f64) -> f64 {
    let half = font::width(text, size) / 2.0 + PAD;
    wanted.min(width - half).max(half)
}

fn place(frame: Rect, range: Range, value: f64) -> f64 {
    frame.left + ((value - range.low) / range.span()).clamp(0.0, 1.0) * frame.width
}

/// The frame inside the margins `left, top, right, bottom`, with its lines in the middle of pixels.
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
    let Rect { left, top, width, height } = frame;
    let log = [figure.x.log, figure.y.log];
    Some(View { x: x?, y: y?, log, left, top, width, height })
}

#[cfg(test)]
mod tests;
