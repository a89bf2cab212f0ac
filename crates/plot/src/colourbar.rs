//! The colour bar of a heat map.

use crate::colourmap::ColourMap;
use crate::figure::{Axis, HeatMap};
use crate::figure_layout::{self, Anchor, LABEL, MARK, Rect, TICK, Text};
use crate::font;
use crate::ticks::{Tick, Ticks};

/// Distance from the frame in pixels.
const DISTANCE: f64 = 16.0;
/// Width of the bar in pixels.
const BAR_WIDTH: f64 = 16.0;

/// A colour bar before its position is known.
#[derive(Debug, Clone)]
pub(crate) struct Colourbar {
    pub(crate) colours: ColourMap,
    pub(crate) ticks: Ticks,
    axis: Axis,
}

/// A colour bar with its position.
#[derive(Debug, Clone)]
pub(crate) struct PositionedColourbar {
    pub(crate) rect: Rect,
    pub(crate) ticks: Vec<Tick>,
    pub(crate) colours: ColourMap,
}

impl Colourbar {
    /// Colour bar of `map` with about `max_count` ticks; `None` if the map has no cells or no values.
    pub(crate) fn new(map: &HeatMap, max_count: usize) -> Option<Self> {
        map.size()?;
        let colours = ColourMap::of(map)?;
        let ticks = Ticks::of(&map.colour, colours.range, max_count);
        Some(Self { colours, ticks, axis: map.colour.clone() })
    }

    /// Name, factor and unit.
    pub(crate) fn label(&self) -> String {
        figure_layout::axis_label(&self.axis, Some(&with_factor_in_unit(&self.ticks)))
    }

    fn label_width(&self) -> f64 {
        let labels = self.ticks.marks.iter().map(|t| font::width(&t.label, TICK));
        labels.fold(0.0, f64::max)
    }

    /// Width to the right of the frame, including labels.
    pub(crate) fn beside(&self) -> f64 {
        let title = if self.label().is_empty() { 0.0 } else { 8.0 + LABEL };
        DISTANCE + BAR_WIDTH + MARK + 4.0 + self.label_width() + title
    }

    /// Adds the labels to `texts` and returns the positioned bar.
    pub(crate) fn position(self, frame: Rect, texts: &mut Vec<Text>) -> PositionedColourbar {
        let rect = Rect { left: frame.right() + DISTANCE, width: BAR_WIDTH, ..frame };
        let beside = rect.right() + MARK + 4.0;
        let label_width = self.label_width();
        let label = figure_layout::shortened_label(
            &self.axis,
            Some(&with_factor_in_unit(&self.ticks)),
            frame.height,
        );
        let placed = PositionedColourbar { rect, ticks: self.ticks.marks, colours: self.colours };
        for tick in &placed.ticks {
            let (y, label) = (placed.py(tick) + TICK * 0.36, tick.label.clone());
            texts.push(Text::new(beside, y, TICK, Anchor::Start, label));
        }
        let x = beside + label_width + 8.0 + LABEL * font::ASCENT;
        texts.push(Text::rotated(x, frame.centre().1, label));
        placed
    }
}

/// Ticks with the factor as part of the unit.
fn with_factor_in_unit(ticks: &Ticks) -> Ticks {
    Ticks { unit: format!("{} {}", ticks.note, ticks.unit.trim()), ..Ticks::default() }
}

impl PositionedColourbar {
    /// Y coordinate of a tick in pixels.
    pub(crate) fn py(&self, tick: &Tick) -> f64 {
        self.rect.bottom() - self.colours.range.fraction(tick.value) * self.rect.height
    }
}
