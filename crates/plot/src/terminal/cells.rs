//! A heat map: two cells to a character, one above the other, or one of a few signs.

use std::fmt::Write as _;

use super::cells as width_of;
use crate::bar;
use crate::figure::{HeatMap, Screen};
use crate::image::sampled;
use crate::shade::{self, Rgb, Shades};
use crate::ticks::{Tick, Ticks};
use crate::trace::View;

/// From little to much, where there is no colour.
const SIGNS: [char; 9] = ['.', ':', '-', '=', '+', '*', '#', '%', '@'];

/// The cells of the plot.
pub(super) struct Cells {
    columns: usize,
    screen: Screen,
    shades: Shades,
    /// How far along the scale each lies, row after row from the top.
    parts: Vec<Option<f64>>,
}

impl Cells {
    pub(super) fn new(
        map: &HeatMap,
        view: &View,
        columns: usize,
        rows: usize,
        screen: Screen,
    ) -> Option<Self> {
        map.size()?;
        let shades = Shades::of(map)?;
        let rows = if screen == Screen::Plain { rows } else { 2 * rows };
        let parts = sampled(map, view, columns, rows).into_iter();
        let parts = parts.map(|value| shades.part(value?)).collect();
        Some(Self { columns, screen, shades, parts })
    }

    pub(super) fn write_row(&self, row: usize, line: &mut String) {
        let cells = |row: usize| self.parts.chunks(self.columns).nth(row).unwrap_or_default();
        if self.screen == Screen::Plain {
            line.extend(cells(row).iter().map(|p| p.map_or(' ', sign)));
            return;
        }
        let mut pen = Pen { screen: self.screen, ..Pen::default() };
        let colour = |part: &Option<f64>| part.map(|p| self.shades.colour(p));
        for (upper, lower) in cells(2 * row).iter().zip(cells(2 * row + 1)) {
            pen.halves(colour(upper), colour(lower), line);
        }
        pen.lift(line);
    }
}

fn sign(part: f64) -> char {
    SIGNS[((part * SIGNS.len() as f64) as usize).min(SIGNS.len() - 1)]
}

/// The bar of colours with its labels.
pub(super) struct Bar {
    shades: Shades,
    ticks: Vec<Tick>,
    /// The name of the values.
    pub(super) label: String,
}

impl Bar {
    pub(super) fn new(map: &HeatMap, most: usize) -> Option<Self> {
        map.size()?;
        let shades = Shades::of(map)?;
        let ticks = Ticks::of(&map.colour, shades.range, most);
        let label = bar::label(&map.colour, &ticks);
        Some(Self { shades, ticks: ticks.marks, label })
    }

    /// The columns it takes: two empty, two of colour, and the labels.
    pub(super) fn width(&self) -> usize {
        5 + self.ticks.iter().map(|t| width_of(&t.label)).max().unwrap_or(0)
    }

    pub(super) fn write_row(&self, row: usize, rows: usize, screen: Screen, line: &mut String) {
        let part = |k: usize| 1.0 - (k as f64 + 0.5) / (2 * rows) as f64;
        line.push_str("  ");
        if screen == Screen::Plain {
            let sign = sign(f64::midpoint(part(2 * row), part(2 * row + 1)));
            line.extend([sign, sign]);
        } else {
            let mut pen = Pen { screen, ..Pen::default() };
            let [upper, lower] = [2 * row, 2 * row + 1].map(|k| Some(self.shades.colour(part(k))));
            pen.halves(upper, lower, line);
            pen.halves(upper, lower, line);
            pen.lift(line);
        }
        let range = self.shades.range;
        let row_of = |tick: &Tick| {
            let part = ((tick.value - range.low) / range.span()).clamp(0.0, 1.0);
            (((1.0 - part) * rows as f64) as usize).min(rows - 1)
        };
        if let Some(tick) = self.ticks.iter().find(|t| row_of(t) == row) {
            line.push(' ');
            line.push_str(&tick.label);
        }
    }
}

/// Changes colours only where they change.
#[derive(Default)]
struct Pen {
    screen: Screen,
    ink: Option<Rgb>,
    paper: Option<Rgb>,
}

impl Pen {
    /// One character with an upper and a lower half.
    fn halves(&mut self, upper: Option<Rgb>, lower: Option<Rgb>, line: &mut String) {
        let (sign, ink, paper) = match (upper, lower) {
            (None, None) => (' ', self.ink, None),
            (None, lower) => ('▄', lower, None),
            (upper, lower) => ('▀', upper, lower),
        };
        if !self.same(self.ink, ink) {
            self.escape(38, ink, line);
        }
        if !self.same(self.paper, paper) {
            self.escape(48, paper, line);
        }
        (self.ink, self.paper) = (ink, paper);
        line.push(sign);
    }

    /// Whether the screen shows both alike.
    fn same(&self, a: Option<Rgb>, b: Option<Rgb>) -> bool {
        a == b || (self.screen != Screen::True && a.map(shade::ansi) == b.map(shade::ansi))
    }

    fn escape(&self, kind: u8, colour: Option<Rgb>, line: &mut String) {
        let _ = match (colour, self.screen) {
            (None, _) => write!(line, "\x1b[{}m", kind + 1),
            (Some([r, g, b]), Screen::True) => write!(line, "\x1b[{kind};2;{r};{g};{b}m"),
            (Some(rgb), _) => write!(line, "\x1b[{kind};5;{}m", shade::ansi(rgb)),
        };
    }

    fn lift(&mut self, line: &mut String) {
        if self.ink.is_some() || self.paper.is_some() {
            line.push_str("\x1b[0m");
        }
        (self.ink, self.paper) = (None, None);
    }
}
