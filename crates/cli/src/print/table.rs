//! Tables with aligned columns.

use std::io::Write as _;

use anstyle::Style;
use spile::error::Result;

use super::{Output, style, text};

/// Rows whose widths are computed together; a longer table is printed in pages.
const PAGE: usize = 4096;

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table with a heading. The last column is truncated to the width of the terminal.
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    widths: Vec<usize>,
    rows: Vec<Vec<(String, Style)>>,
    heading_printed: bool,
}

impl Table {
    /// A table with these headings; if all are empty, no heading is printed.
    pub(crate) fn new(columns: &[(&'static str, Align)]) -> Self {
        let widths = columns.iter().map(|(name, _)| name.len()).collect();
        let heading_printed = columns.iter().all(|(name, _)| name.is_empty());
        Self { columns: columns.to_vec(), widths, rows: Vec::new(), heading_printed }
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
        let row =
            cells.into_iter().map(|(cell, style)| (text::one_line(&cell).into_owned(), style));
        self.rows.push(row.collect());
        if self.rows.len() == PAGE { self.print(out) } else { Ok(()) }
    }

    /// Prints the rows added since the last call.
    pub(crate) fn print(&mut self, out: &mut Output) -> Result<()> {
        for row in &self.rows {
            for (width, (cell, _)) in self.widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        if !std::mem::replace(&mut self.heading_printed, true) && !self.rows.is_empty() {
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
        // No trailing spaces.
        let mut gap = 0;
        for (k, (cell, style)) in row.iter().enumerate() {
            let last = k + 1 == row.len();
            let available = out.width.map_or(usize::MAX, |w| w.saturating_sub(used + gap).max(8));
            let cell = if last { text::truncate(cell, available) } else { cell.into() };
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
