//! Aligned columns without borders.

use std::io::Write as _;

use anstyle::Style;
use spile::error::Result;

use super::{Output, style, text};

/// Rows measured together; a longer table is printed page by page.
const PAGE: usize = 4096;

/// Where a column's text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Columns with a heading. The last one is cut to the terminal, where there is one.
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    widths: Vec<usize>,
    rows: Vec<Vec<(String, Style)>>,
    headed: bool,
}

impl Table {
    /// A table with these headings; all empty: none is printed.
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        let widths = columns.iter().map(|(name, _)| name.len()).collect();
        let headed = columns.iter().all(|(name, _)| name.is_empty());
        Self { columns: columns.to_vec(), widths, rows: Vec::new(), headed }
    }

    /// Adds a row in plain style.
    pub(crate) fn row(
        &mut self,
        cells: impl IntoIterator<Item = String>,
        out: &mut Output,
    ) -> Result<()> {
        self.styled(cells.into_iter().map(|cell| (cell, Style::new())), out)
    }

    /// Adds a row of cells with styles.
    pub(crate) fn styled(
        &mut self,
        cells: impl IntoIterator<Item = (String, Style)>,
        out: &mut Output,
    ) -> Result<()> {
        let row = cells.into_iter().map(|(cell, style)| (text::one_line(&cell).into_owned(), style));
        self.rows.push(row.collect());
        if self.rows.len() == PAGE { self.print(out) } else { Ok(()) }
    }

    /// Prints the rows added since the last time.
    pub(crate) fn print(&mut self, out: &mut Output) -> Result<()> {
        for row in &self.rows {
            for (width, (cell, _)) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        if !std::mem::replace(&mut self.headed, true) && !self.rows.is_empty() {
            let names = self.columns.iter().map(|(name, _)| ((*name).to_string(), style::FAINT));
            self.line(&names.collect::<Vec<_>>(), out)?;
        }
        for row in std::mem::take(&mut self.rows) {
            self.line(&row, out)?;
        }
        Ok(())
    }

    fn line(&self, row: &[(String, Style)], out: &mut Output) -> Result<()> {
        let mut line = String::new();
        let mut used = 0;
        // Spaces are written when something follows them, never at the end of a line.
        let mut gap = 0;
        for (k, (cell, style)) in row.iter().enumerate() {
            let last = k + 1 == row.len();
            let room = out.width.map_or(usize::MAX, |w| w.saturating_sub(used + gap).max(8));
            let cell = if last { text::cut(cell, room) } else { cell.into() };
            let length = cell.chars().count();
            let padding = self.widths.get(k).map_or(0, |w| w.saturating_sub(length));
            if self.columns.get(k).is_some_and(|(_, align)| *align == Align::Right) {
                gap += padding;
            }
            if length > 0 {
                line.extend(std::iter::repeat_n(' ', gap));
                line.push_str(&out.paint(*style, &cell));
                used += gap + length;
                gap = 0;
            }
            if self.columns.get(k).is_some_and(|(_, align)| *align == Align::Left) {
                gap += padding;
            }
            gap += 2;
        }
        writeln!(out, "{line}")?;
        Ok(())
    }
}
