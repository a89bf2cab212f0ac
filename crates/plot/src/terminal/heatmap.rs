//! Heat maps: two coloured cells per character, or one symbol without colours.

use std::fmt::Write as _;

use super::text_columns;
use crate::colourbar::Colourbar;
use crate::colourmap::{self, ColourMap, Rgb};
use crate::figure::{ColourMode, HeatMap};
use crate::geometry::View;
use crate::image::sampled;
use crate::ticks::Tick;

/// Symbols from small to large values.
const SYMBOLS: [char; 9] = ['.', ':', '-', '=', '+', '*', '#', '%', '@'];

/// Cells of a heat map.
pub(super) struct HeatMapCells {
    columns: usize,
    mode: ColourMode,
    colours: ColourMap,
    /// Relative position of each cell in the colour map, row by row from the top.
    fractions: Vec<Option<f64>>,
}

impl HeatMapCells {
    pub(super) fn new(
        map: &HeatMap,
        view: &View,
        columns: usize,
        rows: usize,
        mode: ColourMode,
    ) -> Option<Self> {
        map.size()?;
        let colours = ColourMap::of(map)?;
        let rows = if mode == ColourMode::Plain { rows } else { 2 * rows };
        let fractions = sampled(map, view, columns, rows).into_iter();
        let fractions = fractions.map(|value| colours.fraction(value?)).collect();
        Some(Self { columns, mode, colours, fractions })
    }

    pub(super) fn write_row(&self, row: usize, line: &mut String) {
        let cells = |row: usize| self.fractions.chunks(self.columns).nth(row).unwrap_or_default();
        if self.mode == ColourMode::Plain {
            line.extend(cells(row).iter().map(|p| p.map_or(' ', symbol)));
            return;
        }
        let mut writer = ColourWriter { mode: self.mode, ..ColourWriter::default() };
        let colour = |fraction: &Option<f64>| fraction.map(|p| self.colours.colour(p));
        for (upper, lower) in cells(2 * row).iter().zip(cells(2 * row + 1)) {
            writer.halves(colour(upper), colour(lower), line);
        }
        writer.reset(line);
    }
}

fn symbol(fraction: f64) -> char {
    SYMBOLS[((fraction * SYMBOLS.len() as f64) as usize).min(SYMBOLS.len() - 1)]
}

impl Colourbar {
    /// Width in columns: two empty, two of colour, and the labels.
    pub(super) fn columns(&self) -> usize {
        5 + self.ticks.marks.iter().map(|t| text_columns(&t.label)).max().unwrap_or(0)
    }

    pub(super) fn write_row(&self, row: usize, rows: usize, mode: ColourMode, line: &mut String) {
        let fraction = |k: usize| 1.0 - (k as f64 + 0.5) / (2 * rows) as f64;
        line.push_str("  ");
        if mode == ColourMode::Plain {
            let symbol = symbol(f64::midpoint(fraction(2 * row), fraction(2 * row + 1)));
            line.extend([symbol, symbol]);
        } else {
            let mut writer = ColourWriter { mode, ..ColourWriter::default() };
            let [upper, lower] =
                [2 * row, 2 * row + 1].map(|k| Some(self.colours.colour(fraction(k))));
            writer.halves(upper, lower, line);
            writer.halves(upper, lower, line);
            writer.reset(line);
        }
        let range = self.colours.range;
        let row_of = |tick: &Tick| {
            (((1.0 - range.fraction(tick.value)) * rows as f64) as usize).min(rows - 1)
        };
        if let Some(tick) = self.ticks.marks.iter().find(|t| row_of(t) == row) {
            line.push(' ');
            line.push_str(&tick.label);
        }
    }
}

/// Writes coloured characters with escape sequences only where the colour changes.
#[derive(Default)]
struct ColourWriter {
    mode: ColourMode,
    foreground: Option<Rgb>,
    background: Option<Rgb>,
}

impl ColourWriter {
    /// Writes one character with the colours of its upper and lower half.
    fn halves(&mut self, upper: Option<Rgb>, lower: Option<Rgb>, line: &mut String) {
        let (symbol, foreground, background) = match (upper, lower) {
            (None, None) => (' ', self.foreground, None),
            (None, lower) => ('▄', lower, None),
            (upper, lower) => ('▀', upper, lower),
        };
        if !self.same(self.foreground, foreground) {
            self.escape(38, foreground, line);
        }
        if !self.same(self.background, background) {
            self.escape(48, background, line);
        }
        (self.foreground, self.background) = (foreground, background);
        line.push(symbol);
    }

    /// Whether both colours are equal in this mode.
    fn same(&self, a: Option<Rgb>, b: Option<Rgb>) -> bool {
        a == b
            || (self.mode != ColourMode::TrueColour
                && a.map(colourmap::ansi) == b.map(colourmap::ansi))
    }

    fn escape(&self, kind: u8, colour: Option<Rgb>, line: &mut String) {
        let _ = match (colour, self.mode) {
            (None, _) => write!(line, "\x1b[{}m", kind + 1),
            (Some([r, g, b]), ColourMode::TrueColour) => write!(line, "\x1b[{kind};2;{r};{g};{b}m"),
            (Some(rgb), _) => write!(line, "\x1b[{kind};5;{}m", colourmap::ansi(rgb)),
        };
    }

    fn reset(&mut self, line: &mut String) {
        if self.foreground.is_some() || self.background.is_some() {
            line.push_str("\x1b[0m");
        }
        (self.foreground, self.background) = (None, None);
    }
}
