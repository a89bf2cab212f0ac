//! Any tree as a table, if its arrays have as many rows: rows are formatted on all threads and written in
//! order.

use std::io::Write as _;

use rayon::prelude::*;
use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::tree::{Node, Value};
use spile_core::wire::ByteOrder;

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
    let job = Job::new(content, limits)?;
    let mut line = String::new();
    for (k, cell) in job.header()?.iter().enumerate() {
        line.push_str(if k == 0 { "" } else { "," });
        quote(&cell.text(), &mut line);
    }
    line.push('\n');
    sink.write_all(line.as_bytes())?;
    let mut pieces = Vec::new();
    let enough = 4 * rayon::current_num_threads() as u64 * PIECE;
    let mut waiting = 0;
    let flush = |pieces: &mut Vec<Piece>, sink: &mut Sink| -> Result<()> {
        let texts: Vec<String> =
            pieces.par_iter().map(|piece| job.format(piece)).collect::<Result<_>>()?;
        pieces.clear();
        texts.iter().try_for_each(|text| Ok(sink.write_all(text.as_bytes())?))
    };
    job.pieces(&mut |piece| {
        waiting += piece.rows.saturating_mul(job.width);
        pieces.push(piece);
        if waiting >= enough || pieces.len() == PIECES {
            waiting = 0;
            flush(&mut pieces, sink)?;
        }
        Ok(())
    })?;
    flush(&mut pieces, sink)
}

/// An array of the tree as columns.
struct Column<'a> {
    node: &'a Node,
    own: &'a ArrayDesc,
    /// Lengths of all dimensions but the first.
    tail: Vec<u64>,
    dtype: DType,
    /// The numbers are those that are meant.
    meant: bool,
}

struct Job<'a> {
    content: &'a dyn Reader,
    limits: &'a Limits,
    columns: Vec<Column<'a>>,
    frames: Option<u64>,
    /// Steps and times of the frames are known.
    moments: [bool; 2],
    points: Option<(f64, f64)>,
    /// Columns in all.
    width: u64,
}

/// Rows that are formatted together.
struct Piece {
    frame: Option<u64>,
    first: u64,
    rows: u64,
}

impl<'a> Job<'a> {
    fn new(content: &'a dyn Reader, limits: &'a Limits) -> Result<Self> {
        let tree = content.tree();
        let mut columns = Vec::new();
        let mut frames = None;
        for (_, node, own) in tree.arrays() {
            let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
            let desc = tree.resolve(own).map_err(place)?;
            if let Layout::PerFrame(table) = &desc.layout {
                frames = Some(frames.unwrap_or(0).max(table.len()));
            }
            columns.push(Column::new(node, own, desc).map_err(place)?);
        }
        if columns.is_empty() {
            return Err(unsupported("there is no array in this file"));
        }
        let mut width = 3;
        for column in &columns {
            width = column.count().checked_add(width).filter(|n| *n <= MOST_COLUMNS).ok_or_else(
                || {
                    unsupported(format!("more than {MOST_COLUMNS} columns"))
                        .hint("choose fewer arrays with --select")
                },
            )?;
        }
        let mut moments = [false; 2];
        if let (Some(count), Some(axis)) = (frames, tree.frames()) {
            moments = [true; 2];
            for frame in 0..count.min(axis.len()) {
                moments[0] &= axis.step(frame)?.is_some();
                moments[1] &= axis.time(frame)?.is_some();
            }
        }
        let points = if frames.is_none() { points(&columns) } else { None };
        Ok(Self { content, limits, columns, frames, moments, points, width })
    }

    fn header(&self) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        let bare = |path: &str| Cell { path: path.into(), ..Cell::default() };
        if self.frames.is_some() {
            cells.push(bare(OWN[0]));
            let known = OWN[1..].iter().zip(self.moments).filter(|(_, known)| *known);
            cells.extend(known.map(|(name, _)| bare(name)));
        }
        if let Some((start, step)) = self.points {
            let dim = self.columns[0].own.dims[0].clone();
            cells.push(Cell { tag: Some(Tag::Points { start, step }), ..bare(&dim) });
        }
        for column in &self.columns {
            column.cells(&mut cells);
        }
        Ok(cells)
    }

    fn open(&self, column: &Column<'_>, frame: Option<u64>) -> Result<Option<Array>> {
        let (source, tree) = (self.content.source(), self.content.tree());
        let place = |e: Error| e.in_object(format!("\"{}\"", column.node.path));
        let array = Array::open_frame(source, tree, column.own, frame.unwrap_or(0), self.limits);
        let Some(array) = array.map_err(place)? else { return Ok(None) };
        if array.shape().lengths().get(1..).unwrap_or_default() != column.tail {
            let message = "a row has more elements in some frames than in others";
            return Err(place(unsupported(message)));
        }
        Ok(Some(array))
    }

    /// Cuts the rows into pieces.
    fn pieces(&self, each: &mut dyn FnMut(Piece) -> Result<()>) -> Result<()> {
        let frames = self.frames.map_or(vec![None], |count| (0..count).map(Some).collect());
        for frame in frames {
            let mut rows = None;
            for column in &self.columns {
                let Some(array) = self.open(column, frame)? else { continue };
                let own = array.shape().lengths().first().copied().unwrap_or(1);
                if rows.is_some_and(|rows| rows != own) || (frame.is_some() && own == 0) {
                    let error = unsupported("the columns of a table have the same number of rows")
                        .in_object(format!("\"{}\"", column.node.path))
                        .hint("choose arrays of one length with --select");
                    return Err(match frame {
                        Some(frame) => error.in_frame(frame),
                        None => error,
                    });
                }
                rows = Some(own);
            }
            // A frame without any array is a row without values.
            let rows = rows.unwrap_or(1);
            let most = (PIECE / self.width).max(1);
            let mut first = 0;
            while first < rows {
                let count = most.min(rows - first);
                each(Piece { frame, first, rows: count })?;
                first += count;
            }
        }
        Ok(())
    }

    fn format(&self, piece: &Piece) -> Result<String> {
        let Piece { frame, first, rows } = *piece;
        let mut parts = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let place = |e: Error| e.in_object(format!("\"{}\"", column.node.path));
            let bytes = self.open(column, frame)?.map(|array| column.rows(&array, first, rows));
            parts.push(bytes.transpose().map_err(place)?);
        }
        let mut before = String::new();
        if let Some(frame) = frame {
            before = frame.to_string();
            if let Some(axis) = self.content.tree().frames() {
                if let (true, Some(step)) = (self.moments[0], axis.step(frame)?) {
                    before.push_str(&format!(",{step}"));
                }
                if let (true, Some(time)) = (self.moments[1], axis.time(frame)?) {
                    before.push(',');
                    convert::write_f64(time, &mut before);
                }
            }
            before.push(',');
        }
        let mut out = String::with_capacity((rows * self.width * 12) as usize);
        for row in 0..rows {
            out.push_str(&before);
            if let Some((start, step)) = self.points {
                convert::write_f64(start + (first + row) as f64 * step, &mut out);
                out.push(',');
            }
            for (column, bytes) in self.columns.iter().zip(&parts) {
                column.row(bytes.as_deref(), row, &mut out)?;
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
    let first = columns.first()?.own;
    let Some(Coord::Uniform { start, step }) = first.coords.first() else { return None };
    let same = |column: &Column<'_>| {
        column.own.coords.first() == first.coords.first() && column.own.dims[0] == first.dims[0]
    };
    let plain = !first.dims[0].is_empty() && !OWN.contains(&first.dims[0].as_str());
    (plain && columns.iter().all(same)).then_some((*start, *step))
}

impl<'a> Column<'a> {
    fn new(node: &'a Node, own: &'a ArrayDesc, desc: &ArrayDesc) -> Result<Self> {
        let meant = desc.map.is_some();
        let stored = desc.dtype.with_order(ByteOrder::Little);
        let dtype = if meant { DType::F64 } else { stored };
        let fits = match dtype.kind() {
            Kind::Int | Kind::UInt | Kind::Bool | Kind::Text => true,
            Kind::Float => dtype.size() <= 8,
            _ => false,
        };
        if !fits || desc.ragged().is_some() {
            return Err(unsupported(format!("a table has no columns of {dtype}"))
                .hint("choose other arrays with --select"));
        }
        let tail = desc.shape.lengths().get(1..).unwrap_or_default().to_vec();
        Ok(Self { node, own, tail, dtype, meant })
    }

    /// How many columns it takes.
    fn count(&self) -> u64 {
        Shape::new(self.tail.clone()).count().unwrap_or(u64::MAX)
    }

    fn cells(&self, cells: &mut Vec<Cell>) {
        let node = self.node;
        let units = node.attrs.iter().find_map(|(name, value)| match value {
            Value::Text(text) if name == "units" && !text.is_empty() => Some(text.clone()),
            _ => None,
        });
        // Numbers show what most types are, unless there are none.
        let shown = [DType::I64, DType::F64].contains(&self.dtype)
            || (self.dtype.kind(), self.dtype.size()) == (Kind::Bool, 1)
            || (self.dtype.kind(), self.dtype.size()) == (Kind::Float, 2);
        let none = self.own.shape.lengths().first() == Some(&0);
        let tag = (!shown || (none && self.dtype != DType::F64)).then_some(Tag::Type(self.dtype));
        let slash = if OWN.contains(&node.path.as_str()) { "/" } else { "" };
        let path = format!("{slash}{}", node.path);
        for k in 0..self.count() {
            let mut rest = k;
            let mut index: Vec<u64> = self
                .tail
                .iter()
                .rev()
                .map(|len| {
                    let digit = rest % len;
                    rest /= len;
                    digit
                })
                .collect();
            index.reverse();
            cells.push(Cell { path: path.clone(), index, units: units.clone(), tag });
        }
    }

    /// The elements of some rows, as they are printed.
    fn rows(&self, array: &Array, first: u64, rows: u64) -> Result<Vec<u8>> {
        let selection = if array.shape().rank() == 0 {
            Selection::all()
        } else {
            Selection(vec![Slice::range(first, first + rows), Slice::Rest])
        };
        let bytes = array.read(&selection, Axes::Order(Order::C))?;
        if !self.meant {
            return Ok(bytes);
        }
        let mut numbers = Vec::new();
        convert::to_f64(array.dtype(), array.map(), &bytes, &mut numbers);
        Ok(convert::little_bytes(&mut numbers).to_vec())
    }

    /// The fields of one row, each with a comma behind it.
    fn row(&self, bytes: Option<&[u8]>, row: u64, out: &mut String) -> Result<()> {
        let (size, count) = (self.dtype.size(), self.count() as usize);
        let Some(bytes) = bytes else {
            out.extend(std::iter::repeat_n(',', count));
            return Ok(());
        };
        let start = row as usize * count * size;
        let row = &bytes[start..start + count * size];
        if self.dtype.kind() == Kind::Text {
            for k in 0..count {
                quote(text(&row[k * size..(k + 1) * size])?, out);
                out.push(',');
            }
            return Ok(());
        }
        for element in row.chunks_exact(size) {
            convert::write_element(self.dtype, element, out);
            out.push(',');
        }
        Ok(())
    }
}

/// The whole of a text, blanks at its end and all.
fn text(element: &[u8]) -> Result<&str> {
    let end = element.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
    let text = std::str::from_utf8(&element[..end]).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| unsupported("a text that is not UTF-8"))
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("csv-011", message)
}
