//! Any tree as a table, if its arrays have as many rows: rows are formatted on all threads and written in
//! order.

use std::fmt::Write as _;
use std::io::Write as _;

use rayon::prelude::*;
use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::Coord;
use spile_core::limits::Limits;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::table::{Column, Piece, Table};
use spile_core::tree::Value;

use crate::header::{Cell, Tag};
use crate::record::quote;

/// No spreadsheet has more columns.
const MOST_COLUMNS: u64 = 16_384;

/// Elements of a piece that one thread formats.
const PIECE: u64 = 1 << 15;

/// Pieces that are formatted before any is written.
const PIECES: usize = 4096;

/// Names that columns of the table itself have.
const OWN: [&str; 3] = ["frame", "step", "time"];

pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let fits = |dtype: DType| match dtype.kind() {
        Kind::Int | Kind::UInt | Kind::Bool | Kind::Text => true,
        Kind::Float => dtype.size() <= 8,
        _ => false,
    };
    let table = Table::new(content, limits, "csv-011", MOST_COLUMNS, fits)?;
    let points = if table.frames.is_none() { points(&table.columns) } else { None };
    let job = Job { table, points };
    let mut line = String::new();
    for (k, cell) in job.header().iter().enumerate() {
        line.push_str(if k == 0 { "" } else { "," });
        quote(&cell.text(), &mut line);
    }
    line.push('\n');
    sink.write_all(line.as_bytes())?;
    let mut pieces = Vec::new();
    let (width, enough) = (job.table.width, 4 * rayon::current_num_threads() as u64 * PIECE);
    let mut waiting = 0;
    let flush = |pieces: &mut Vec<Piece>, sink: &mut Sink| -> Result<()> {
        let texts: Vec<String> =
            pieces.par_iter().map(|piece| job.format(piece)).collect::<Result<_>>()?;
        pieces.clear();
        texts.iter().try_for_each(|text| Ok(sink.write_all(text.as_bytes())?))
    };
    job.table.pieces(PIECE / width, &mut |piece| {
        waiting += piece.rows.saturating_mul(width);
        pieces.push(piece);
        if waiting >= enough || pieces.len() == PIECES {
            waiting = 0;
            flush(&mut pieces, sink)?;
        }
        Ok(())
    })?;
    flush(&mut pieces, sink)
}

struct Job<'a> {
    table: Table<'a>,
    /// The evenly spaced points of the rows.
    points: Option<(f64, f64)>,
}

impl Job<'_> {
    fn header(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        let bare = |path: &str| Cell { path: path.into(), ..Cell::default() };
        if self.table.frames.is_some() {
            cells.push(bare(OWN[0]));
            let known = OWN[1..].iter().zip(self.table.moments).filter(|(_, known)| *known);
            cells.extend(known.map(|(name, _)| bare(name)));
        }
        if let (Some((start, step)), Some(column)) = (self.points, self.table.columns.first()) {
            let tag = Some(Tag::Points { start, step });
            cells.push(Cell { tag, ..bare(&column.array.dims[0]) });
        }
        for column in &self.table.columns {
            headings(column, &mut cells);
        }
        cells
    }

    fn format(&self, piece: &Piece) -> Result<String> {
        let table = &self.table;
        let parts = table.columns.iter().map(|column| table.rows(column, piece, Order::C));
        let parts: Vec<Option<Vec<u8>>> = parts.collect::<Result<_>>()?;
        let mut before = String::new();
        if let Some(frame) = piece.frame {
            let (step, time) = table.moment(frame)?;
            let _ = write!(before, "{frame},");
            if let Some(step) = step {
                let _ = write!(before, "{step},");
            }
            if let Some(time) = time {
                convert::write_f64(time, &mut before);
                before.push(',');
            }
        }
        let mut out = String::with_capacity((piece.rows * table.width * 12) as usize);
        for row in 0..piece.rows {
            out.push_str(&before);
            if let Some((start, step)) = self.points {
                convert::write_f64(start + (piece.first + row) as f64 * step, &mut out);
                out.push(',');
            }
            for (column, bytes) in table.columns.iter().zip(&parts) {
                fields(column, bytes.as_deref(), row, &mut out)
                    .map_err(|e| e.in_object(format!("\"{}\"", column.node.path)))?;
            }
            // The comma behind the last field.
            out.pop();
            out.push('\n');
        }
        Ok(out)
    }
}

/// The points of the rows, where all arrays have the same evenly spaced ones.
fn points(columns: &[Column<'_>]) -> Option<(f64, f64)> {
    let first = columns.first()?.array;
    let Some(Coord::Uniform { start, step }) = first.coords.first() else { return None };
    let same = |column: &Column<'_>| {
        column.array.coords.first() == first.coords.first() && column.array.dims[0] == first.dims[0]
    };
    let plain = !first.dims[0].is_empty() && !OWN.contains(&first.dims[0].as_str());
    (plain && columns.iter().all(same)).then_some((*start, *step))
}

/// The headings of an array.
fn headings(column: &Column<'_>, cells: &mut Vec<Cell>) {
    let (node, dtype) = (column.node, column.dtype);
    let units = node.attrs.iter().find_map(|(name, value)| match value {
        Value::Text(text) if name == "units" && !text.is_empty() => Some(text.clone()),
        _ => None,
    });
    // Numbers show what most types are, unless there are none.
    let shown = [DType::I64, DType::F64].contains(&dtype)
        || matches!((dtype.kind(), dtype.size()), (Kind::Bool, 1) | (Kind::Float, 2));
    let none = column.array.shape.lengths().first() == Some(&0);
    let tag = (!shown || (none && dtype != DType::F64)).then_some(Tag::Type(dtype));
    let slash = if OWN.contains(&node.path.as_str()) { "/" } else { "" };
    let path = format!("{slash}{}", node.path);
    for k in 0..column.count() {
        let mut rest = k;
        let digits = column.tail.iter().rev().map(|len| {
            let digit = rest % len;
            rest /= len;
            digit
        });
        let mut index: Vec<u64> = digits.collect();
        index.reverse();
        cells.push(Cell { path: path.clone(), index, units: units.clone(), tag });
    }
}

/// The fields of one row of an array, each with a comma behind it.
fn fields(column: &Column<'_>, bytes: Option<&[u8]>, row: u64, out: &mut String) -> Result<()> {
    let (size, count) = (column.dtype.size(), column.count() as usize);
    let Some(bytes) = bytes else {
        out.extend(std::iter::repeat_n(',', count));
        return Ok(());
    };
    let start = row as usize * count * size;
    let row = &bytes[start..start + count * size];
    if column.dtype.kind() == Kind::Text {
        for k in 0..count {
            quote(text(&row[k * size..(k + 1) * size])?, out);
            out.push(',');
        }
        return Ok(());
    }
    for element in row.chunks_exact(size) {
        convert::write_element(column.dtype, element, out);
        out.push(',');
    }
    Ok(())
}

/// The whole of a text, blanks at its end and all.
fn text(element: &[u8]) -> Result<&str> {
    let end = element.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
    let text = std::str::from_utf8(&element[..end]).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| Error::unsupported("csv-011", "a text that is not UTF-8"))
}
