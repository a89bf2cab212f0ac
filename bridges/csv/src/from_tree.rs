//! A dataset as a table; see [`spile_interchange::table`]. Rows are formatted on all threads and written in order.

use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rayon::prelude::*;
use spile_core::Dataset;
use spile_core::convert;
use spile_core::dataset::is_per_frame;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{FormatWriter, Loss, LossKind, WriteOptions};
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::semantics::{Role, Semantics};
use spile_core::sink::Sink;
use spile_core::tree::{Node, NodeId, ROOT};
use spile_core::wire::ByteOrder;
use spile_interchange::table::{
    Axis, Column, Content, FRAME_COLUMNS, Field, Piece, Table, complex_losses, split_complex,
};
use spile_interchange::{Kept, Losses};

use crate::Csv;
use crate::compression::{Compression, Encoder};
use crate::heading::{Heading, is_one_of_several};
use crate::value::is_number;
use crate::wire::quote;

/// Elements formatted at once by one thread.
const PIECE: u64 = 1 << 15;

/// Maximum number of pieces formatted before they are written.
const PIECES: usize = 4096;

impl FormatWriter for Csv {
    fn options(&self) -> &'static [&'static str] {
        &["compression"]
    }

    fn check_options(&self, _: &Dataset, path: &Path, options: &WriteOptions) -> Result<()> {
        Compression::of_new(path, options.compression).map(drop)
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let split = split_complex(content)?;
        let losses = Job::new(split.as_ref().unwrap_or(content))?.losses();
        Ok(complex_losses(content, losses))
    }

    fn streams(&self) -> bool {
        true
    }

    /// Writes one table; compressed as the options say, or if the file name ends with `.gz` or `.zst`.
    fn write(
        &self,
        content: &Dataset,
        sink: &mut Sink,
        options: &WriteOptions,
    ) -> Result<Vec<Loss>> {
        let split = split_complex(content)?;
        let job = Job::new(split.as_ref().unwrap_or(content))?;
        let path = sink.path().to_path_buf();
        let mut encoder: Encoder<&mut Sink> =
            Compression::encoder(&path, options.compression, sink)?;
        job.write(&mut |text| Ok(encoder.write_all(text)?))?;
        encoder.finish()?;
        // Losses of both parts are those of the array.
        let found = complex_losses(content, job.found()?);
        Ok(found.into_iter().filter(|loss| loss.kind != LossKind::Name).collect())
    }
}

/// A table that is written.
struct Job<'a> {
    content: &'a Dataset,
    table: Table<'a>,
    /// Losses found while writing, one item per array of the table.
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
        let table = Table::new(content, "csv-011", fits)?;
        let found = table.arrays.iter().map(|_| Found::default()).collect();
        Ok(Self { content, table, found })
    }

    /// The axis that reading takes for the coordinate of the rows of all arrays.
    fn row_axis(&self) -> Option<&Axis> {
        let is_number =
            |axis: &&Axis| axis.dtype.kind() != Kind::Text && axis.dtype.kind() != Kind::Bool;
        let axis =
            self.table.axes.first().filter(is_number).filter(|axis| axis.may_be_ordered())?;
        let names = self.table.axes[1..].iter().map(|axis| axis.name.as_str());
        let only = !self.table.long
            && self.table.frames().is_none()
            && !is_one_of_several(&axis.name, names);
        only.then_some(axis)
    }

    /// Everything that writing does not keep.
    fn losses(&self) -> Vec<Loss> {
        let (content, tree) = (self.content, self.content.tree());
        let mut losses = Losses::new("CSV");
        // The rest depends on the array.
        let kept = Kept {
            array_attrs: true,
            dims: true,
            coords: true,
            meaning: true,
            frames: self.table.frames().is_some(),
            ..Kept::default()
        };
        losses.add(content, &kept, |id, node, _| match self.table.left_out(id) {
            Some(_) if self.restores(node) => Ok(()),
            Some(reason) => Err(reason.into()),
            None => Ok(()),
        });
        let mut groups = HashSet::new();
        for column in &self.table.arrays {
            if self.column_losses(column, &mut losses) {
                let mut at = column.node.parent;
                while groups.insert(at) && at != ROOT {
                    at = tree.node(at).parent;
                }
            }
        }
        // Groups of which all columns have other names.
        for column in &self.table.arrays {
            let mut at = column.node.parent;
            while at != ROOT && groups.insert(at) {
                losses.push(&tree.node(at).path, LossKind::Group, "empty groups");
                at = tree.node(at).parent;
            }
        }
        for (id, node, array) in tree.arrays() {
            if self.table.left_out(id).is_some() && self.restores(node) {
                self.coordinate_losses(node, array, &mut losses);
            }
        }
        if self.table.frames().is_some() {
            losses.add_partial_moments(content);
        }
        if self.table.empty_frames().next().is_some() {
            losses.push("", LossKind::Frames, "frames without rows");
        }
        self.table.with_renamed_axes(losses.into_vec())
    }

    /// Whether reading gives the array again, from a column of coordinates.
    fn restores(&self, node: &Node) -> bool {
        let axis = self.table.axes.iter().find(|axis| axis.name == node.path);
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
        if self.table.long {
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

    /// Adds what the table does not keep of an array. Returns whether reading gives an array of that name.
    fn column_losses(&self, column: &Column<'_>, losses: &mut Losses<'_>) -> bool {
        let tree = self.content.tree();
        let (node, array, path) = (column.node, column.array, &column.node.path);
        let mut lose = |kind, reason: &str| losses.push_loss(Loss::new(path, kind, reason));
        let is_own = |field: &&Field| matches!(field.content, Content::Array { array, .. } if std::ptr::eq(&raw const self.table.arrays[array], column));
        let Some(field) = self.table.fields.iter().find(is_own) else {
            lose(LossKind::Array, "an array without elements has no columns in CSV");
            return false;
        };
        if field.name != *path {
            lose(LossKind::Name, "the components of points are columns of their own");
            return false;
        }
        let read = Heading::parse(&self.heading(field).text());
        let empty = array.shape.lengths().first() == Some(&0) && column.dtype != DType::F64;
        if empty || read_as(column.dtype) != Some(column.dtype) {
            lose(LossKind::Type, "CSV has no element types");
        }
        if array.shape.rank() == 0 {
            lose(LossKind::Shape, "CSV has no scalars");
        }
        if self.table.long {
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
        if self.table.frames().is_some() && !is_per_frame(tree, array) {
            lose(LossKind::Frames, "a table with frames has the array in each frame");
        }
        let empty: Vec<u64> = self.table.empty_frames().collect();
        if let (Some(first), Some(frames)) = (empty.first(), self.table.frames()) {
            let is_stored = |frame: u64| {
                let table = tree.resolve(array).ok().and_then(|array| array.layout.frames());
                table.is_some_and(|table| {
                    !matches!(table.cell(frame), Ok(None))
                        && !matches!(table.is_inherited(frame), Ok(true))
                })
            };
            // Frames are read only if their numbers have no gaps.
            let has_gap = frames - first != empty.len() as u64;
            if has_gap {
                lose(LossKind::Frames, "frames without rows are not in the table");
            }
            let has_rows = |frame: &u64| empty.binary_search(frame).is_err();
            let mut with_rows = (0..frames).filter(has_rows);
            let changes = column.dtype == DType::I64 || column.dtype.kind() == Kind::Bool;
            if has_gap && changes && with_rows.any(|frame| !is_stored(frame)) {
                lose(LossKind::Type, "missing values change the type of the column");
            }
        }
        for (name, _) in &node.attrs {
            let units = read.units.as_deref().filter(|_| name == "units");
            if units.is_none() || units != node.attrs.get_str(name) {
                let of_axis = |axis: &Axis| name == format!("{}_units", axis.name);
                let reason = if self.table.axes.iter().any(of_axis) {
                    "it is the unit of the column of coordinates"
                } else {
                    "CSV cannot store it"
                };
                losses.push_loss(Loss::attribute(path, name, reason));
            }
        }
        true
    }

    /// Losses that depend on the values.
    fn found(&self) -> Result<Vec<Loss>> {
        let mut losses = Vec::new();
        let texts_only = self.is_text_only();
        for (column, found) in self.table.arrays.iter().zip(&self.found) {
            let path = &column.node.path;
            let longest = found.longest.load(Ordering::Relaxed);
            let special = found.special.load(Ordering::Relaxed);
            let known = column.array.shape.lengths().first() == Some(&0) || column.count() == 0;
            let changed = match column.dtype.kind() {
                Kind::Text => longest != column.dtype.size() as u64 || (texts_only && !special),
                _ => column.dtype == DType::U64 && !special,
            };
            if changed && !known && column.dtype.size() > 0 {
                losses.push(Loss::new(path, LossKind::Type, "CSV has no element types"));
            }
        }
        if let Some(axis) = self.row_axis()
            && axis.coord.node().is_some()
            && !are_ordered(&self.content.points(&axis.coord, axis.len)?)
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
        self.table.arrays.iter().all(is_text)
            && self.table.axes.is_empty()
            && self.table.frames().is_none()
    }

    fn heading(&self, field: &Field) -> Heading {
        // Keeps the array from being read as one of the columns of frames.
        let reserved = FRAME_COLUMNS.contains(&field.name.as_str())
            && (self.table.frames().is_some() || field.name == FRAME_COLUMNS[0]);
        let is_array = matches!(field.content, Content::Array { .. });
        let slash = if is_array && reserved { "/" } else { "" };
        let (index, units) = (field.index.clone(), field.units.clone());
        Heading { path: format!("{slash}{}", field.name), index, units, tag: None }
    }

    /// Writes the names and all rows.
    fn write(&self, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut line = String::new();
        for (k, field) in self.table.fields.iter().enumerate() {
            line.push_str(if k == 0 { "" } else { "," });
            quote(&self.heading(field).text(), &mut line);
        }
        line.push('\n');
        out(line.as_bytes())?;
        let mut pieces = Vec::new();
        let width = self.table.fields.len() as u64;
        let enough = 4 * rayon::current_num_threads() as u64 * PIECE;
        let mut waiting = 0;
        let mut flush = |pieces: &mut Vec<Piece>| -> Result<()> {
            let formatted: Vec<String> =
                pieces.par_iter().map(|piece| self.format(piece)).collect::<Result<_>>()?;
            pieces.clear();
            formatted.iter().try_for_each(|text| out(text.as_bytes()))
        };
        self.table.pieces(PIECE / width.max(1), &mut |piece| {
            waiting += self.table.row_count(&piece).saturating_mul(width);
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
        let (fields, rows) = (&self.table.fields, self.table.row_count(piece) as usize);
        let values = self.table.read(piece)?;
        let mut out = String::with_capacity(rows.saturating_mul(fields.len() * 12));
        for row in 0..rows {
            for (field, bytes) in fields.iter().zip(&values) {
                let size = field.dtype.size();
                if let Some(bytes) = bytes {
                    self.format_field(field, &bytes[row * size..(row + 1) * size], &mut out)
                        .map_err(|e| e.in_object(format!("\"{}\"", field.name)))?;
                }
                out.push(',');
            }
            // Remove the comma after the last field.
            out.pop();
            out.push('\n');
        }
        Ok(out)
    }

    /// Appends an element.
    fn format_field(&self, field: &Field, element: &[u8], out: &mut String) -> Result<()> {
        let found = match field.content {
            Content::Array { array, .. } => Some(&self.found[array]),
            _ => None,
        };
        let special = || {
            if let Some(found) = found {
                found.special.store(true, Ordering::Relaxed);
            }
        };
        match field.dtype.kind() {
            Kind::Text => {
                let text = text(element)?;
                if let Some(found) = found {
                    found.longest.fetch_max(text.len() as u64, Ordering::Relaxed);
                }
                if !is_number(text.as_bytes()) && !text.is_empty() {
                    special();
                }
                quote(text, out);
            }
            // The digits of the same float64: reading gives exactly the same numbers.
            Kind::Float => convert::write_f64(convert::element_f64(field.dtype, element), out),
            _ => convert::write_element(field.dtype, element, out),
        }
        if field.dtype == DType::U64 && element.last().is_some_and(|last| *last >= 0x80) {
            special();
        }
        Ok(())
    }
}

/// Whether the points increase, or decrease.
fn are_ordered(points: &[f64]) -> bool {
    let finite = points.iter().all(|point| point.is_finite());
    let rising = points.windows(2).all(|pair| pair[0] < pair[1]);
    finite && points.len() > 1 && (rising || points.windows(2).all(|pair| pair[0] > pair[1]))
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

/// A string without trailing NUL; trailing blanks are kept. Fails if it is not UTF-8.
fn text(element: &[u8]) -> Result<&str> {
    let end = element.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
    let text = std::str::from_utf8(&element[..end]).ok().filter(|text| !text.contains('\0'));
    text.ok_or_else(|| Error::unsupported("csv-011", "a string is not UTF-8"))
}
