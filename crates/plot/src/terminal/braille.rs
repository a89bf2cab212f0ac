//! Lines and points as braille characters with eight dots each.

use std::fmt::Write as _;

use crate::colour;
use crate::geometry::{Slice, Trace};

/// Dots of the plot; each character has the colour of the series drawn last.
pub(super) struct BrailleCanvas {
    columns: usize,
    rows: usize,
    cells: Vec<(u8, usize)>,
}

impl BrailleCanvas {
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self { columns, rows, cells: vec![(0, 0); columns * rows] }
    }

    pub(super) fn row_of(&self, y: f64) -> usize {
        (y.round().max(0.0) as usize / 4).min(self.rows.saturating_sub(1))
    }

    fn set(&mut self, x: f64, y: f64, series: usize) {
        // Unicode bits of the dots, by column and row.
        const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];
        let (x, y) = (x.round(), y.round());
        if x < 0.0 || y < 0.0 {
            return;
        }
        let (x, y) = (x as usize, y as usize);
        if x / 2 < self.columns && y / 4 < self.rows {
            let cell = &mut self.cells[y / 4 * self.columns + x / 2];
            *cell = (cell.0 | BITS[x % 2][y % 4], series);
        }
    }

    pub(super) fn trace(&mut self, trace: Trace, series: usize) {
        match trace {
            Trace::Lines(runs) => {
                for run in runs {
                    if let [(x, y)] = run[..] {
                        self.set(x, y, series);
                    }
                    for pair in run.windows(2) {
                        self.line(pair[0], pair[1], series);
                    }
                }
            }
            Trace::Dots(dots) => dots.iter().for_each(|(x, y)| self.set(*x, *y, series)),
            Trace::Bands(runs) => runs.iter().for_each(|run| self.band(run, series)),
        }
    }

    fn line(&mut self, (ax, ay): (f64, f64), (bx, by): (f64, f64), series: usize) {
        let steps = (bx - ax).abs().max((by - ay).abs()).ceil().max(1.0) as u32;
        for i in 0..=steps {
            let t = f64::from(i) / f64::from(steps);
            self.set(ax + t * (bx - ax), ay + t * (by - ay), series);
        }
    }

    fn band(&mut self, run: &[Slice], series: usize) {
        // Highest and lowest dot of each dot column.
        let mut extents = vec![(f64::INFINITY, f64::NEG_INFINITY); self.columns * 2];
        for pair in run.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let steps = ((b.x - a.x).abs() * 2.0).ceil().max(1.0) as u32;
            for i in 0..=steps {
                let t = f64::from(i) / f64::from(steps);
                let x = (a.x + t * (b.x - a.x)).round();
                if let Some(e) = extents.get_mut(x.max(0.0) as usize).filter(|_| x >= 0.0) {
                    e.0 = e.0.min((a.top + t * (b.top - a.top)).round());
                    e.1 = e.1.max((a.bottom + t * (b.bottom - a.bottom)).round());
                }
            }
        }
        let mut before: Option<(f64, f64)> = None;
        for (x, &(top, bottom)) in extents.iter().enumerate() {
            if top > bottom {
                before = None;
                continue;
            }
            // Connect to the previous column.
            let (mut from, mut to) = (top, bottom);
            if let Some((above, below)) = before {
                from = from.min(below + 1.0);
                to = to.max(above - 1.0);
            }
            let end = to.min((self.rows * 4) as f64);
            let mut y = from.max(0.0);
            while y <= end {
                self.set(x as f64, y, series);
                y += 1.0;
            }
            before = Some((top, bottom));
        }
    }

    pub(super) fn write_row(&self, row: usize, colour: bool, line: &mut String) {
        let cells = &self.cells[row * self.columns..(row + 1) * self.columns];
        let mut style = None;
        let last = cells.iter().rposition(|c| c.0 != 0).map_or(0, |p| p + 1);
        for &(bits, series) in &cells[..last] {
            if bits == 0 {
                line.push(' ');
                continue;
            }
            if colour && style != Some(series) {
                let _ = write!(line, "\x1b[38;5;{}m", colour::ansi(series));
                style = Some(series);
            }
            line.push(char::from_u32(0x2800 + u32::from(bits)).unwrap_or(' '));
        }
        if style.is_some() {
            line.push_str("\x1b[39m");
        }
    }
}
