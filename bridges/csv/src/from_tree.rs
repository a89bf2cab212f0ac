//! A tree whose arrays have the same number of rows as a table. Rows are formatted on all threads and written
//! in order.

use std::fmt::Write as _;
use std::io::Write as _;

use rayon::prelude::*;
use spile_core::Dataset;
use spile_core::convert;
use spile_core::dataset::is_per_frame;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{Loss, LossKind};
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::semantics::{Role, Semantics};
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_interchange::table::{Column, Piece, Table};
use spile_interchange::{Kept, Losses};

use crate::heading::{Heading, Tag};
use crate::to_tree::readable;
use crate::wire::quote;

/// Maximum number of columns, that of spreadsheets.
const MOST_COLUMNS: u64 = 16_384;

/// Elements formatted at once by one thread.
const PIECE: u64 = 1 << 15;

/// Maximum number of pieces formatted before they are written.
const PIECES: usize = 4096;

/// Names of the columns that describe frames.
const RESERVED: [&str; 3] = ["frame", "step", "time"];

/// Everything that [`write_tree`] does not keep.
pub(crate) fn losses(content: &Dataset) -> Result<Vec<Loss>> {
    let job = Job::new(content)?;
    job.table.pieces(u64::MAX, &mut |_| Ok(()))?;
    let mut losses = Losses::new("CSV");
    // The rest depends on the array.
    let kept = Kept {
        array_attrs: true,
        dims: true,
        coords: true,
        meaning: true,
        frames: job.table.frames.is_some(),
        ..Kept::default()
    };
    losses.add(content, &kept, |_, _, _| Ok(()));
    for column in &job.table.columns {
        job.column_losses(content, column, &mut losses);
    }
    if job.table.frames.is_some() {
        losses.add_partial_moments(content);
    }
    Ok(losses.into_vec())
}

/// Writes all arrays of `content` as one table.
pub(crate) fn write_tree(content: &Dataset, sink: &mut Sink) -> Result<()> {
    let job = Job::new(content)?;
    let mut line = String::new();
    for (k, heading) in job.headings().iter().enumerate() {
        line.push_str(if k == 0 { "" } else { "," });
        quote(&heading.text(), &mut line);
    }
    line.push('\n');
    sink.write_all(line.as_bytes())?;
    let mut pieces = Vec::new();
    let (width, enough) = (job.table.width, 4 * rayon::current_num_threads() as u64 * PIECE);
    let mut waiting = 0;
    let flush = |pieces: &mut Vec<Piece>, sink: &mut Sink| -> Result<()> {
        let formatted: Vec<String> =
            pieces.par_iter().map(|piece| job.format(piece)).collect::<Result<_>>()?;
        pieces.clear();
        formatted.iter().try_for_each(|text| Ok(sink.write_all(text.as_bytes())?))
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
    /// Start and step of the uniform coordinate of the rows.
    coordinate: Option<(f64, f64)>,
}

impl<'a> Job<'a> {
    fn new(content: &'a Dataset) -> Result<Self> {
        let fits = |dtype: DType| match dtype.kind() {
            Kind::Int | Kind::UInt | Kind::Bool | Kind::Text => true,
            Kind::Float => dtype.size() <= 8,
            _ => false,
        };
        let table = Table::new(content, "csv-011", MOST_COLUMNS, fits)?;
        let coordinate = if table.frames.is_none() { coordinate(&table.columns) } else { None };
        Ok(Self { table, coordinate })
    }

    /// Adds what the table does not keep of an array.
    fn column_losses(&self, content: &Dataset, column: &Column<'_>, losses: &mut Losses<'_>) {
        let tree = content.tree();
        let (node, array, path) = (column.node, column.array, &column.node.path);
        let mut lose = |kind, reason: &str| losses.push_loss(Loss::new(path, kind, reason));
        let mut all = Vec::new();
        headings(column, &mut all);
        let Some(heading) = all.first() else {
            return lose(LossKind::Array, "an array without elements has no columns in CSV");
        };
        let read = Heading::parse(&heading.text());
        if tree.node(node.parent).array.is_some() {
            lose(LossKind::Name, "CSV has no arrays inside arrays");
        }
        if !readable(column.dtype) {
            lose(LossKind::Type, "CSV has no such type");
        }
        if array.shape.rank() == 0 {
            lose(LossKind::Shape, "CSV has no scalars");
        }
        // The coordinate of the rows is a column of the table.
        let own = usize::from(self.coordinate.is_some());
        if array.dims[own..] != ArrayDesc::default_dims(array.dims.len())[own..] {
            lose(LossKind::Dimensions, "CSV has no names of dimensions");
        }
        if array.coords[own..].iter().any(|coord| *coord != Coord::None) {
            lose(LossKind::Coordinates, "CSV has coordinates only for uniformly spaced rows");
        }
        let known = [Semantics::default(), Semantics::role(Role::Table)];
        if !known.contains(array.semantics()) {
            lose(LossKind::Meaning, "CSV has no roles of arrays");
        }
        if self.table.frames.is_some() && !is_per_frame(tree, array) {
            lose(LossKind::Frames, "a table with frames has the array in each frame");
        }
        for (name, _) in &node.attrs {
            let units = read.units.as_deref().filter(|_| name == "units");
            if units.is_none() || units != node.attrs.get_str(name) {
                losses.push_loss(Loss::attribute(path, name, "CSV cannot store it"));
            }
        }
    }
    fn headings(&self) -> Vec<Heading> {
        let mut all = Vec::new();
        let bare = |path: &str| Heading { path: path.into(), ..Heading::default() };
        if self.table.frames.is_some() {
            all.push(bare(RESERVED[0]));
            let known = RESERVED[1..].iter().zip(self.table.moments).filter(|(_, known)| *known);
            all.extend(known.map(|(name, _)| bare(name)));
        }
        if let (Some((start, step)), Some(column)) = (self.coordinate, self.table.columns.first()) {
            let tag = Some(Tag::Coordinate { start, step });
            all.push(Heading { tag, ..bare(&column.array.dims[0]) });
        }
        for column in &self.table.columns {
            headings(column, &mut all);
        }
        all
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
            if let Some((start, step)) = self.coordinate {
                convert::write_f64(start + (piece.first + row) as f64 * step, &mut out);
                out.push(',');
            }
            for (column, bytes) in table.columns.iter().zip(&parts) {
                fields(column, bytes.as_deref(), row, &mut out)
                    .map_err(|e| e.in_object(format!("\"{}\"", column.node.path)))?;
            }
            // Remove the comma after the last field.
            out.pop();
            out.push('\n');
        }
        Ok(out)
    }
}

/// Start and step of the uniform coordinate of the rows, if all arrays have the same one.
fn coordinate(columns: &[Column<'_>]) -> Option<(f64, f64)> {
    let first = columns.first()?.array;
    let Some(Coord::Uniform { start, step }) = first.coords.first() else { return None };
    let same = |column: &Column<'_>| {
        column.array.coords.first() == first.coords.first() && column.array.dims[0] == first.dims[0]
    };
    let plain = !first.dims[0].is_empty() && !RESERVED.contains(&first.dims[0].as_str());
    (plain && columns.iter().all(same)).then_some((*start, *step))
}

/// Appends the headings of an array.
fn headings(column: &Column<'_>, all: &mut Vec<Heading>) {
    let (node, dtype) = (column.node, column.dtype);
    let units = node.attrs.get_str("units").filter(|units| !units.is_empty()).map(Into::into);
    // These types are inferred from the values, if there are any.
    let inferred = [DType::I64, DType::F64].contains(&dtype)
        || matches!((dtype.kind(), dtype.size()), (Kind::Bool, 1) | (Kind::Float, 2));
    let empty = column.array.shape.lengths().first() == Some(&0);
    let tag = (!inferred || (empty && dtype != DType::F64)).then_some(Tag::Type(dtype));
    let slash = if RESERVED.contains(&node.path.as_str()) { "/" } else { "" };
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
        all.push(Heading { path: path.clone(), index, units: units.clone(), tag });
    }
}

/// Appends the fields of one row of an array, each followed by a comma.
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

/// A string without trailing NUL; trailing blanks are kept. Fails if it is not UTF-8.
fn text(element: &[u8]) -> Result<&str> {
    let end = element.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
    let text = std::str::from_utf8(&element[..end]).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| Error::unsupported("csv-011", "a string is not UTF-8"))
}
