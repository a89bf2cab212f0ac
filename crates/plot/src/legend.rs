//! The legend: outside the frame, so that it never covers data.

use crate::font;
use crate::layout::{Anchor, PAD, Rect, Text};

const SIZE: f64 = 11.5;
/// Length of the sample of line.
pub(crate) const SAMPLE: f64 = 22.0;
const AFTER_SAMPLE: f64 = 6.0;
const BETWEEN: f64 = 18.0;
const ROW: f64 = 18.0;
/// No name is wider than this.
const WIDEST: f64 = 220.0;

/// Where the sample of a series is drawn: from `x` to `x + SAMPLE` at height `y`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Key {
    pub(crate) series: usize,
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// A legend whose size is known but not yet its place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Legend {
    /// Height taken above the frame.
    pub(crate) above: f64,
    /// Width taken right of the frame.
    pub(crate) beside: f64,
    /// Each name with its place relative to the legend's corner; no series for "more".
    entries: Vec<(f64, f64, Option<usize>, String)>,
}

/// Up to two rows above the frame if the names fit, else columns to its right.
pub(crate) fn arrange(names: &[String], plot: f64, tall: f64, width: f64) -> Legend {
    if names.is_empty() {
        return Legend::default();
    }
    above(names, plot).unwrap_or_else(|| beside(names, tall, width))
}

fn entry_width(text: &str) -> f64 {
    SAMPLE + AFTER_SAMPLE + font::width(text, SIZE)
}

fn above(names: &[String], plot: f64) -> Option<Legend> {
    let mut legend = Legend::default();
    let (mut x, mut row) = (0.0, 0.0);
    for (i, name) in names.iter().enumerate() {
        let text = font::fit_middle(name, WIDEST, font::at_size(SIZE));
        let wide = entry_width(&text);
        if x > 0.0 && x + wide > plot {
            (x, row) = (0.0, row + 1.0);
        }
        if row > 1.0 || x + wide > plot {
            return None;
        }
        legend.entries.push((x, row * ROW, Some(i), text));
        x += wide + BETWEEN;
    }
    legend.above = (row + 1.0) * ROW + 2.0;
    Some(legend)
}

fn beside(names: &[String], tall: f64, width: f64) -> Legend {
    let mut legend = Legend::default();
    let rows = ((tall / ROW) as usize).max(1);
    let room = (width * 0.28 - SAMPLE - AFTER_SAMPLE - BETWEEN).clamp(0.0, WIDEST);
    let columns = if names.len() > rows { 2 } else { 1 };
    let room = if columns == 2 { (width * 0.2 - SAMPLE - AFTER_SAMPLE).max(0.0) } else { room };
    let slots = rows * columns;
    let shown = if names.len() > slots { slots - 1 } else { names.len() };
    let mut texts: Vec<(Option<usize>, String)> = names
        .iter()
        .take(shown)
        .enumerate()
        .map(|(i, name)| (Some(i), font::fit_middle(name, room, font::at_size(SIZE))))
        .collect();
    if shown < names.len() {
        let more = format!("+ {} more", names.len() - shown);
        texts.push((None, font::fit(&more, SIZE, room)));
    }
    let mut x = BETWEEN;
    for column in texts.chunks(rows) {
        let wide = column.iter().map(|t| entry_width(&t.1)).fold(0.0, f64::max);
        for (row, (series, text)) in column.iter().enumerate() {
            legend.entries.push((x, row as f64 * ROW, *series, text.clone()));
        }
        x += wide + BETWEEN;
    }
    legend.beside = x - BETWEEN + PAD - 6.0;
    legend
}

impl Legend {
    /// Adds the names to `texts` and says where the samples go. A legend above the frame begins at
    /// height `head`.
    pub(crate) fn place(&self, frame: Rect, head: f64, texts: &mut Vec<Text>) -> Vec<Key> {
        let (left, top) =
            if self.above > 0.0 { (frame.left, head) } else { (frame.right(), frame.top) };
        let mut keys = Vec::new();
        for (x, y, series, text) in &self.entries {
            let (x, y) = (left + x, top + y + ROW / 2.0);
            if let Some(series) = *series {
                keys.push(Key { series, x, y });
            }
            texts.push(Text {
                x: x + SAMPLE + AFTER_SAMPLE,
                y: y + SIZE * 0.36,
                size: SIZE,
                anchor: Anchor::Start,
                turned: false,
                content: text.clone(),
            });
        }
        keys
    }
}
