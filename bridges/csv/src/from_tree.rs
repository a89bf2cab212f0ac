//! A tree whose arrays have the same number of rows as a table. Rows are formatted on all threads and written
//! in order.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;
use spile_core::Dataset;
use spile_core::convert;
use spile_core::dataset::is_per_frame;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Hint, Result};
use spile_core::format::{FormatWriter, Loss, LossKind, WriteOptions};
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::semantics::{Role, Semantics};
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::{Node, NodeId};
use spile_core::wire::ByteOrder;
use spile_interchange::table::{Column, Piece, Table};
use spile_interchange::{Kept, Losses};

use crate::Csv;
use crate::axes::{self, Axis, Points, is_one_of_several};
use crate::compression::Compression;
use crate::heading::Heading;
use crate::value::is_number;
use crate::wire::quote;

/// Maximum number of columns, that of spreadsheets.
const MOST_COLUMNS: u64 = 16_384;

/// Elements formatted at once by one thread.
const PIECE: u64 = 1 << 15;

/// Maximum number of pieces formatted before they are written.
const PIECES: usize = 4096;

/// Names of the columns that describe frames.
const RESERVED: [&str; 3] = ["frame", "step", "time"];

impl FormatWriter for Csv {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        Job::new(content)?.losses()
    }

    fn streams(&self) -> bool {
        true
    }

    /// Writes all arrays of `content` as one table; compressed if the file name ends with `.gz` or `.zst`.
    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let job = Job::new(content)?;
        let Some(compression) = Compression::of_name(sink.path()) else {
            job.write(&mut |text| Ok(sink.write_all(text)?))?;
            return job.found();
        };
        let mut encoder = compression.encoder(sink)?;
        job.write(&mut |text| Ok(encoder.write_all(text)?))?;
        encoder.finish()?;
        job.found()
    }
}

/// A table that is written.
struct Job<'a> {
    content: &'a Dataset,
    table: Table<'a>,
    /// Columns of coordinates, before the others.
    axes: Vec<Axis>,
    /// Whether every element has a row, with the coordinates of all dimensions.
    long: bool,
    /// What was found while writing, one item per column of the table.
    found: Vec<Found>,
}

/// What the fields of a column are, from which losses follow.
#[derive(Default)]
struct Found {
    /// Length of the longest string in bytes.
    longest: AtomicU64,
    /// A string that is not a number, or a number beyond int64.
    special: AtomicBool,
}

impl<'a> Job<'a> {
    fn new(content: &'a Dataset) -> Result<Self> {
        let fits = |dtype: DType| match dtype.kind() {
            Kind::Int | Kind::UInt | Kind::Bool | Kind::Text => true,
            Kind::Float => dtype.size() <= 8,
            _ => false,
        };
        let tree = content.tree();
        let mut table = Table::new(content, "csv-011", u64::MAX, fits)?;
        let reason = axes::not_a_column(tree);
        table
            .columns
            .retain(|column| tree.at(&column.node.path).is_none_or(|id| reason(id).is_none()));
        let (axes, long) = axes::axes(tree, &table.columns);
        let count = |column: &Column<'_>| if long { 1 } else { column.count() };
        let own = table.columns.iter().fold(0_u64, |n, column| n.saturating_add(count(column)));
        table.width = own.saturating_add(3 + axes.len() as u64);
        if table.width > MOST_COLUMNS {
            let message = format!("the table has more than {MOST_COLUMNS} columns");
            return Err(Error::unsupported("csv-011", message).hint(Hint::SelectArrays));
        }
        let found = table.columns.iter().map(|_| Found::default()).collect();
        Ok(Self { content, table, axes, long, found })
    }

    /// The axis that reading takes for the coordinate of the rows of all arrays.
    fn row_axis(&self) -> Option<&Axis> {
        let axis = self.axes.first().filter(|axis| axis.may_be_ordered())?;
        let names = self.axes[1..].iter().map(|axis| axis.name.as_str());
        let only =
            !self.long && self.table.frames.is_none() && !is_one_of_several(&axis.name, names);
        only.then_some(axis)
    }

    /// Everything that writing does not keep.
    fn losses(&self) -> Result<Vec<Loss>> {
        self.table.pieces(u64::MAX, &mut |_| Ok(()))?;
        let (content, tree) = (self.content, self.content.tree());
        let mut losses = Losses::new("CSV");
        // The rest depends on the array.
        let kept = Kept {
            array_attrs: true,
            dims: true,
            coords: true,
            meaning: true,
            frames: self.table.frames.is_some(),
            ..Kept::default()
        };
        let reason = axes::not_a_column(tree);
        losses.add(content, &kept, |id, node, _| match reason(id) {
            Some(_) if self.restores(node) => Ok(()),
            Some(reason) => Err(reason.into()),
            None => Ok(()),
        });
        for column in &self.table.columns {
            self.column_losses(column, &mut losses);
        }
        for (id, node, array) in tree.arrays() {
            if reason(id).is_some() && self.restores(node) {
                self.coordinate_losses(node, array, &mut losses);
            }
        }
        if self.table.frames.is_some() {
            losses.add_partial_moments(content);
        }
        Ok(losses.into_vec())
    }

    /// Whether reading gives the array again, from a column of coordinates.
    fn restores(&self, node: &Node) -> bool {
        let axis = self.axes.iter().find(|axis| axis.name == node.path);
        let same = |id: NodeId| self.content.tree().node(id).path == node.path;
        axis.and_then(|axis| axis.coord.node()).is_some_and(same)
    }

    /// Adds what is not kept of an array that is a column of coordinates.
    fn coordinate_losses(&self, node: &Node, array: &ArrayDesc, losses: &mut Losses<'_>) {
        let mut lose = |kind, reason: &str| losses.push_loss(Loss::new(&node.path, kind, reason));
        let stored = array.dtype.with_order(ByteOrder::Little);
        if ![DType::F64, DType::I64].contains(&stored) {
            lose(LossKind::Type, "CSV has no such type");
        }
        if self.long {
            lose(LossKind::Shape, "CSV has the coordinate of every element");
        } else if self.row_axis().is_none_or(|axis| axis.name != node.path)
            && array.dims != ArrayDesc::default_dims(array.dims.len())
        {
            lose(LossKind::Dimensions, "CSV has no names of dimensions");
        }
        if !KNOWN.contains(&array.semantics().role)
            || *array.semantics() != Semantics::role(array.semantics().role)
        {
            lose(LossKind::Meaning, "CSV has no roles of arrays");
        }
        for (name, _) in node.attrs.iter().filter(|(name, _)| *name != "units") {
            losses.push_loss(Loss::attribute(&node.path, name, "CSV cannot store it"));
        }
    }

    /// Adds what the table does not keep of an array.
    fn column_losses(&self, column: &Column<'_>, losses: &mut Losses<'_>) {
        let tree = self.content.tree();
        let (node, array, path) = (column.node, column.array, &column.node.path);
        let mut lose = |kind, reason: &str| losses.push_loss(Loss::new(path, kind, reason));
        let mut all = Vec::new();
        self.array_headings(column, &mut all);
        let Some(heading) = all.first() else {
            return lose(LossKind::Array, "an array without elements has no columns in CSV");
        };
        let read = Heading::parse(&heading.text());
        if tree.node(node.parent).array.is_some() {
            lose(LossKind::Name, "CSV has no arrays inside arrays");
        }
        let empty = array.shape.lengths().first() == Some(&0) && column.dtype != DType::F64;
        if empty || read_as(column.dtype) != Some(column.dtype) {
            lose(LossKind::Type, "CSV has no element types");
        }
        if array.shape.rank() == 0 {
            lose(LossKind::Shape, "CSV has no scalars");
        }
        if self.long {
            lose(LossKind::Shape, "CSV has one row per element");
        } else {
            // The coordinate of the rows is a column of the table.
            let coord = array.coords.first().filter(|coord| **coord != Coord::None);
            let is_own = |axis: &&Axis| Some(&axis.coord) == coord && axis.name == array.dims[0];
            let axis = self.row_axis();
            let named =
                usize::from(axis.is_some_and(|axis| array.dims.first() == Some(&axis.name)));
            let own = usize::from(axis.as_ref().is_some_and(is_own));
            if array.dims[named..] != ArrayDesc::default_dims(array.dims.len())[named..] {
                lose(LossKind::Dimensions, "CSV has no names of dimensions");
            }
            if array.coords[own..].iter().any(|coord| *coord != Coord::None) {
                lose(LossKind::Coordinates, "CSV has coordinates as columns only");
            }
        }
        if !KNOWN.contains(&array.semantics().role)
            || *array.semantics() != Semantics::role(array.semantics().role)
        {
            lose(LossKind::Meaning, "CSV has no roles of arrays");
        }
        if self.table.frames.is_some() && !is_per_frame(tree, array) {
            lose(LossKind::Frames, "a table with frames has the array in each frame");
        }
        for (name, _) in &node.attrs {
            let units = read.units.as_deref().filter(|_| name == "units");
            if units.is_none() || units != node.attrs.get_str(name) {
                let of_axis = |axis: &Axis| name == format!("{}_units", axis.name);
                let reason = if self.axes.iter().any(of_axis) {
                    "it is the unit of the column of coordinates"
                } else {
                    "CSV cannot store it"
                };
                losses.push_loss(Loss::attribute(path, name, reason));
            }
        }
    }

    /// Losses that depend on the values.
    fn found(&self) -> Result<Vec<Loss>> {
        let mut losses = Vec::new();
        let texts_only = self.is_text_only();
        for (column, found) in self.table.columns.iter().zip(&self.found) {
            let path = &column.node.path;
            let longest = found.longest.load(Ordering::Relaxed);
            let special = found.special.load(Ordering::Relaxed);
            let known = column.array.shape.lengths().first() == Some(&0) || column.count() == 0;
            let changed = match column.dtype.kind() {
                Kind::Text => longest != column.dtype.size() as u64 || (texts_only && !special),
                _ => column.dtype == DType::U64 && !special,
            };
            if changed && !known {
                losses.push(Loss::new(path, LossKind::Type, "CSV has no element types"));
            }
        }
        if let Some(axis) = self.row_axis()
            && !axis.fields(self.content, 0)?.are_ordered()
        {
            for (_, node, array) in self.content.tree().arrays() {
                if array.coords.first() == Some(&axis.coord) {
                    let reason = "the points are neither increasing nor decreasing";
                    let kinds = [LossKind::Coordinates, LossKind::Dimensions];
                    losses.extend(kinds.map(|kind| Loss::new(&node.path, kind, reason)));
                }
            }
        }
        Ok(losses)
    }

    /// Whether all columns are text.
    fn is_text_only(&self) -> bool {
        let is_text = |column: &Column<'_>| column.dtype.kind() == Kind::Text;
        self.table.columns.iter().all(is_text)
            && self.axes.is_empty()
            && self.table.frames.is_none()
    }

    fn headings(&self) -> Vec<Heading> {
        let mut all = Vec::new();
        let bare = |path: &str| Heading { path: path.into(), ..Heading::default() };
        if self.table.frames.is_some() {
            all.push(bare(RESERVED[0]));
            let known = RESERVED[1..].iter().zip(self.table.moments).filter(|(_, known)| *known);
            all.extend(known.map(|(name, _)| bare(name)));
        }
        all.extend(
            self.axes.iter().map(|axis| Heading { units: axis.units.clone(), ..bare(&axis.name) }),
        );
        for column in &self.table.columns {
            self.array_headings(column, &mut all);
        }
        all
    }

    /// Appends the headings of an array.
    fn array_headings(&self, column: &Column<'_>, all: &mut Vec<Heading>) {
        let node = column.node;
        let units = node.attrs.get_str("units").filter(|units| !units.is_empty()).map(Into::into);
        // Keeps the array from being read as one of the columns of frames.
        let frames = self.table.frames.is_some() && RESERVED.contains(&node.path.as_str());
        let slash = if frames || node.path == RESERVED[0] { "/" } else { "" };
        let path = format!("{slash}{}", node.path);
        let (count, tail) = if self.long {
            (u64::from(column.count() > 0), &[][..])
        } else {
            (column.count(), &column.tail[..])
        };
        for k in 0..count {
            let mut rest = k;
            let digits = tail.iter().rev().map(|len| {
                let digit = rest % len;
                rest /= len;
                digit
            });
            let mut index: Vec<u64> = digits.collect();
            index.reverse();
            all.push(Heading { path: path.clone(), index, units: units.clone(), tag: None });
        }
    }

    /// Writes the names and all rows.
    fn write(&self, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut line = String::new();
        for (k, heading) in self.headings().iter().enumerate() {
            line.push_str(if k == 0 { "" } else { "," });
            quote(&heading.text(), &mut line);
        }
        line.push('\n');
        out(line.as_bytes())?;
        let mut pieces = Vec::new();
        let elements = self.table.columns.iter().map(Column::count).max().unwrap_or(1);
        let width =
            if self.long { elements.saturating_mul(self.table.width) } else { self.table.width };
        let enough = 4 * rayon::current_num_threads() as u64 * PIECE;
        let mut waiting = 0;
        let mut flush = |pieces: &mut Vec<Piece>| -> Result<()> {
            let formatted: Vec<String> =
                pieces.par_iter().map(|piece| self.format(piece)).collect::<Result<_>>()?;
            pieces.clear();
            formatted.iter().try_for_each(|text| out(text.as_bytes()))
        };
        self.table.pieces(PIECE / width.max(1), &mut |piece| {
            waiting += piece.rows.saturating_mul(width);
            pieces.push(piece);
            if waiting >= enough || pieces.len() == PIECES {
                waiting = 0;
                flush(&mut pieces)?;
            }
            Ok(())
        })?;
        flush(&mut pieces)
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
        let frame = piece.frame.unwrap_or(0);
        let points = self.axes.iter().map(|axis| axis.fields(self.content, frame));
        let points: Vec<Points> = points.collect::<Result<_>>()?;
        let tail = table.columns.first().map_or(&[][..], |column| &column.tail[..]);
        let elements = if self.long { tail.iter().product() } else { 1 };
        let mut out = String::with_capacity((piece.rows * elements * table.width * 12) as usize);
        let mut index = vec![0; self.axes.len()];
        for row in 0..piece.rows {
            for element in 0..elements {
                out.push_str(&before);
                if self.long {
                    let mut rest = element;
                    for (k, len) in tail.iter().enumerate().rev() {
                        index[k + 1] = rest % len;
                        rest /= len;
                    }
                }
                for (axis, points) in self.axes.iter().zip(&points) {
                    let k = if axis.dim == 0 { piece.first + row } else { index[axis.dim] };
                    points.write(k, &mut out);
                    out.push(',');
                }
                for ((column, bytes), found) in table.columns.iter().zip(&parts).zip(&self.found) {
                    let count = if self.long { 1 } else { column.count() as usize };
                    let first = (row * elements + element) as usize * count;
                    fields(column, bytes.as_deref(), first..first + count, found, &mut out)
                        .map_err(|e| e.in_object(format!("\"{}\"", column.node.path)))?;
                }
                // Remove the comma after the last field.
                out.pop();
                out.push('\n');
            }
        }
        Ok(out)
    }
}

/// Roles that reading gives, or that add nothing to it.
const KNOWN: [Role; 2] = [Role::Data, Role::Table];

/// The type that reading infers; `None` if it depends on the values.
fn read_as(dtype: DType) -> Option<DType> {
    match dtype.kind() {
        Kind::Int | Kind::UInt if dtype != DType::U64 => Some(DType::I64),
        Kind::Float => Some(DType::F64),
        Kind::Bool => DType::new(Kind::Bool, 1, DType::U8.order()),
        // Found while writing.
        _ => Some(dtype),
    }
}

/// Appends elements of an array, each followed by a comma.
fn fields(
    column: &Column<'_>,
    bytes: Option<&[u8]>,
    elements: Range<usize>,
    found: &Found,
    out: &mut String,
) -> Result<()> {
    let (dtype, size) = (column.dtype, column.dtype.size());
    let Some(bytes) = bytes else {
        out.extend(std::iter::repeat_n(',', elements.len()));
        return Ok(());
    };
    if dtype.kind() == Kind::Text {
        for k in elements {
            let text = text(&bytes[k * size..(k + 1) * size])?;
            found.longest.fetch_max(text.len() as u64, Ordering::Relaxed);
            if !is_number(text.as_bytes()) && !text.is_empty() {
                found.special.store(true, Ordering::Relaxed);
            }
            quote(text, out);
            out.push(',');
        }
        return Ok(());
    }
    for element in bytes[elements.start * size..elements.end * size].chunks_exact(size) {
        // The digits of the same float64: reading gives exactly the same numbers.
        match dtype.kind() {
            Kind::Float => convert::write_f64(convert::element_f64(dtype, element), out),
            _ => convert::write_element(dtype, element, out),
        }
        if dtype == DType::U64 && element.last().is_some_and(|last| *last >= 0x80) {
            found.special.store(true, Ordering::Relaxed);
        }
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
