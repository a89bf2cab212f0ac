//! The legend, outside the frame so that it does not cover data.

use crate::figure_layout::{Anchor, PAD, Rect, Text};
use crate::font;

const SIZE: f64 = 11.5;
/// Length of a legend handle.
pub(crate) const HANDLE: f64 = 22.0;
const AFTER_HANDLE: f64 = 6.0;
const BETWEEN: f64 = 18.0;
const ROW: f64 = 18.0;
/// Maximum width of a name in pixels.
const MAX_NAME_WIDTH: f64 = 220.0;

/// Legend handle of a series, drawn from `x` to `x + HANDLE` at height `y`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LegendHandle {
    pub(crate) series: usize,
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// A legend before its position is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Legend {
    /// Height above the frame.
    pub(crate) above: f64,
    /// Width to the right of the frame.
    pub(crate) beside: f64,
    /// Position relative to the corner of the legend, series and name of each entry; no series for
    /// "more".
    entries: Vec<(f64, f64, Option<usize>, String)>,
}

/// Legend of up to two rows above the frame if the names fit, otherwise of columns to its right.
pub(crate) fn arrange(names: &[String], plot_width: f64, height: f64, width: f64) -> Legend {
    if names.is_empty() {
        return Legend::default();
    }
    arrange_above(names, plot_width).unwrap_or_else(|| arrange_beside(names, height, width))
}

fn entry_width(text: &str) -> f64 {
    HANDLE + AFTER_HANDLE + font::width(text, SIZE)
}

fn arrange_above(names: &[String], plot_width: f64) -> Option<Legend> {
    let mut legend = Legend::default();
    let (mut x, mut row) = (0.0, 0.0);
    for (i, name) in names.iter().enumerate() {
        let text = font::fit_middle(name, MAX_NAME_WIDTH, font::at_size(SIZE));
        let entry = entry_width(&text);
        if x > 0.0 && x + entry > plot_width {
            (x, row) = (0.0, row + 1.0);
        }
        if row > 1.0 || x + entry > plot_width {
            return None;
        }
        legend.entries.push((x, row * ROW, Some(i), text));
        x += entry + BETWEEN;
    }
    legend.above = (row + 1.0) * ROW + 2.0;
    Some(legend)
}

fn arrange_beside(names: &[String], height: f64, width: f64) -> Legend {
    let mut legend = Legend::default();
    let rows = ((height / ROW) as usize).max(1);
    let max_width = (width * 0.28 - HANDLE - AFTER_HANDLE - BETWEEN).clamp(0.0, MAX_NAME_WIDTH);
    let columns = if names.len() > rows { 2 } else { 1 };
    let max_width =
        if columns == 2 { (width * 0.2 - HANDLE - AFTER_HANDLE).max(0.0) } else { max_width };
    let slots = rows * columns;
    let shown = if names.len() > slots { slots - 1 } else { names.len() };
    let mut texts: Vec<(Option<usize>, String)> = names
        .iter()
        .take(shown)
        .enumerate()
        .map(|(i, name)| (Some(i), font::fit_middle(name, max_width, font::at_size(SIZE))))
        .collect();
    if shown < names.len() {
        let more = format!("+ {} more", names.len() - shown);
        texts.push((None, font::fit(&more, SIZE, max_width)));
    }
    let mut x = BETWEEN;
    for column in texts.chunks(rows) {
        let entry = column.iter().map(|t| entry_width(&t.1)).fold(0.0, f64::max);
        for (row, (series, text)) in column.iter().enumerate() {
            legend.entries.push((x, row as f64 * ROW, *series, text.clone()));
        }
        x += entry + BETWEEN;
    }
    legend.beside = x - BETWEEN + PAD - 6.0;
    legend
}

impl Legend {
    /// Adds the names to `texts` and returns the handles. A legend above the frame starts at height
    /// `head`.
    pub(crate) fn position(
        &self,
        frame: Rect,
        head: f64,
        texts: &mut Vec<Text>,
    ) -> Vec<LegendHandle> {
        let (left, top) =
            if self.above > 0.0 { (frame.left, head) } else { (frame.right(), frame.top) };
        let mut handles = Vec::new();
        for (x, y, series, text) in &self.entries {
            let (x, y) = (left + x, top + y + ROW / 2.0);
            if let Some(series) = *series {
                handles.push(LegendHandle { series, x, y });
            }
            let (x, y) = (x + HANDLE + AFTER_HANDLE, y + SIZE * 0.36);
            texts.push(Text::new(x, y, SIZE, Anchor::Start, text.clone()));
        }
        handles
    }
}
