//! The bar beside a heat map that says which colour is which value.

use crate::figure::{Axis, HeatMap};
use crate::font;
use crate::layout::{self, Anchor, LABEL, MARK, Rect, TICK, Text};
use crate::range::Range;
use crate::shade::Shades;
use crate::ticks::{Tick, Ticks};

const APART: f64 = 16.0;
const WIDE: f64 = 16.0;

/// A bar whose width is known but not yet its place.
#[derive(Debug, Clone)]
pub(crate) struct Bar {
    range: Range,
    ticks: Ticks,
    axis: Axis,
}

/// A bar in its place.
#[derive(Debug, Clone)]
pub(crate) struct Placed {
    pub(crate) rect: Rect,
    pub(crate) ticks: Vec<Tick>,
    range: Range,
}

impl Bar {
    /// The bar of `map` with about `most` ticks.
    pub(crate) fn new(map: &HeatMap, most: usize) -> Option<Self> {
        map.size()?;
        let range = Shades::of(map)?.range;
        let ticks = Ticks::of(&map.colour, range, most);
        Some(Self { range, ticks, axis: map.colour.clone() })
    }

    fn widest(&self) -> f64 {
        let labels = self.ticks.marks.iter().map(|t| font::width(&t.label, TICK));
        labels.fold(0.0, f64::max)
    }

    /// The width taken right of the frame.
    pub(crate) fn beside(&self) -> f64 {
        let named = if label(&self.axis, &self.ticks).is_empty() { 0.0 } else { 8.0 + LABEL };
        APART + WIDE + MARK + 4.0 + self.widest() + named
    }

    /// Adds the texts and says where the bar goes.
    pub(crate) fn place(self, frame: Rect, texts: &mut Vec<Text>) -> Placed {
        let rect = Rect { left: frame.right() + APART, width: WIDE, ..frame };
        let beside = rect.right() + MARK + 4.0;
        let wide = self.widest();
        let label = layout::fitted(&self.axis, Some(&factored(&self.ticks)), frame.height);
        let placed = Placed { rect, ticks: self.ticks.marks, range: self.range };
        for tick in &placed.ticks {
            texts.push(Text {
                x: beside,
                y: placed.py(tick) + TICK * 0.36,
                size: TICK,
                anchor: Anchor::Start,
                turned: false,
                content: tick.label.clone(),
            });
        }
        texts.push(Text {
            x: beside + wide + 8.0 + LABEL * font::ASCENT,
            y: frame.top + frame.height / 2.0,
            size: LABEL,
            anchor: Anchor::Middle,
            turned: true,
            content: label,
        });
        placed
    }
}

/// The name of the values, what their labels are to be multiplied with, and their unit.
pub(crate) fn label(axis: &Axis, ticks: &Ticks) -> String {
    layout::name(axis, Some(&factored(ticks)))
}

/// Ticks whose unit begins with the factor that would otherwise stand beside the axis.
fn factored(ticks: &Ticks) -> Ticks {
    Ticks { unit: format!("{} {}", ticks.note, ticks.unit.trim()), ..Ticks::default() }
}

impl Placed {
    /// The height of a tick.
    pub(crate) fn py(&self, tick: &Tick) -> f64 {
        let part = ((tick.value - self.range.low) / self.range.span()).clamp(0.0, 1.0);
        self.rect.bottom() - part * self.rect.height
    }
}
