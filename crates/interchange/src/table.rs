//! A dataset as a table, for CSV, Parquet and Arrow: one policy for all of them.
//!
//! A table has the arrays of one set of axes. If a dataset has several sets, the one with the most values is
//! written, and the other arrays are reported as not written; a selection picks another set.
//!
//! | arrays | rows | columns before those of the arrays |
//! |---|---|---|
//! | logged quantities, tables | one per entry | the coordinate of the rows, if there is one |
//! | traces | one per sample | the time; one per array if the time bases differ |
//! | fields and traces of two or more dimensions | one per element | the coordinate, or the index, of every dimension |
//! | points per frame | one per point and frame | the index of the point |
//!
//! With frames, `frame`, `step` and `time` are the first columns, and the rows of all frames are concatenated.
//! Other arrays of several dimensions have one column per element of a row: `stress[0]`. Positions, velocities and
//! forces of points are `x`, `vx` and `fx`. Complex arrays are [split](split_complex) before.

mod axes;
mod choose;
mod complex;
mod stored;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use rayon::prelude::*;
use spile_core::Dataset;
use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Hint, Result};
use spile_core::format::{Loss, LossKind};
use spile_core::layout::ArrayDesc;
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::semantics::{Quantity, Role};
use spile_core::shape::{Order, Shape};
use spile_core::tree::{Node, NodeId};
use spile_core::wire::ByteOrder;

use crate::grid::unravel;

pub use axes::Axis;
pub use complex::{complex_losses, split_complex};
pub use stored::{StoredColumn, StoredTable, missing_element, missing_number};

/// Maximum number of columns, that of spreadsheets.
pub const MOST_COLUMNS: u64 = 16_384;

/// Names of the columns that describe frames.
pub const FRAME_COLUMNS: [&str; 3] = ["frame", "step", "time"];

/// A dataset as a table.
pub struct Table<'a> {
    content: &'a Dataset,
    /// Code of errors about datasets that are not tables.
    code: &'static str,
    /// The arrays.
    pub arrays: Vec<Column<'a>>,
    /// Coordinates of the rows, whose columns are before those of the arrays.
    pub axes: Vec<Axis>,
    /// Every element has a row, with the coordinates of all dimensions.
    pub long: bool,
    /// The columns in order.
    pub fields: Vec<Field>,
    /// Rows of each frame, or of the only part of a dataset without frames; in long tables lengths of the first
    /// dimension.
    rows: Vec<u64>,
    /// Whether the arrays are in frames.
    has_frames: bool,
    /// Whether the steps, and the times, of all frames are known.
    moments: [bool; 2],
    left_out: HashMap<NodeId, String>,
    /// Points of the axes after the first.
    points: Vec<OnceLock<Vec<u8>>>,
    /// For each array, frames that are known not to contain it: sparse arrays are not looked up in every frame.
    absent: Vec<Mutex<Range<u64>>>,
}

/// An array of a table.
#[derive(Clone)]
pub struct Column<'a> {
    id: NodeId,
    /// The node of the array.
    pub node: &'a Node,
    /// The array.
    pub array: &'a ArrayDesc,
    /// Shape of a row: lengths of all dimensions but the first.
    pub tail: Vec<u64>,
    /// Type of the returned elements, little-endian; `float64` for scaled arrays.
    pub dtype: DType,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name of the column: the path of the array, the name of the coordinate.
    pub name: String,
    /// Index of the element within a row; empty if a row has one element.
    pub index: Vec<u64>,
    /// Unit of the values.
    pub units: Option<String>,
    /// Type of the elements.
    pub dtype: DType,
    /// Whether rows may have no value.
    pub optional: bool,
    /// What the column contains.
    pub content: Content,
}

/// What a column contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// The number of the frame.
    Frame,
    /// The step of the frame.
    Step,
    /// The time of the frame.
    Time,
    /// Points of this axis.
    Axis(usize),
    /// An element of the rows of an array.
    Array {
        /// Number of the array.
        array: usize,
        /// Number of the element in C order.
        element: usize,
    },
}

/// Why the array of a coordinate is no column of an array.
const AS_COLUMN: &str = "it is a column of coordinates";

/// Consecutive rows of one frame; in long tables consecutive indices of the first dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Frame; `None` for a dataset without frames.
    pub frame: Option<u64>,
    /// Index of the first row in the frame.
    pub first: u64,
    /// Number of rows.
    pub rows: u64,
}

impl Column<'_> {
    /// Number of elements of a row.
    pub fn count(&self) -> u64 {
        Shape::new(self.tail.clone()).count().unwrap_or(u64::MAX)
    }

    fn place(&self, error: Error) -> Error {
        error.in_object(format!("\"{}\"", self.node.path))
    }

    /// The names of the columns for the components of a row of points: `x`, `vy`.
    fn components(&self) -> Option<Vec<String>> {
        let prefix = match self.array.semantics().quantity {
            Some(Quantity::Position) => "",
            Some(Quantity::Velocity) => "v",
            Some(Quantity::Force) => "f",
            _ => return None,
        };
        let [count @ 1..=3] = self.tail[..] else { return None };
        let named = self.array.semantics().role == Role::Points;
        named.then(|| {
            ["x", "y", "z"][..count as usize].iter().map(|c| format!("{prefix}{c}")).collect()
        })
    }
}

impl<'a> Table<'a> {
    /// The dataset as a table with types accepted by `fits`. Fails with `Unsupported` and `code` if there is no array
    /// for it, or if it has more than [`MOST_COLUMNS`].
    pub fn new(
        content: &'a Dataset,
        code: &'static str,
        fits: impl Fn(DType) -> bool,
    ) -> Result<Self> {
        let tree = content.tree();
        let choose::Choice { columns: arrays, mut left_out, long, rows, has_frames } =
            choose::choose(content, code, &fits)?;
        let mut moments = [false; 2];
        if let (true, Some(axis)) = (has_frames, tree.frames()) {
            moments = [true; 2];
            for frame in 0..axis.len().min(rows.len() as u64) {
                moments[0] &= axis.step(frame)?.is_some();
                moments[1] &= axis.time(frame)?.is_some();
            }
        }
        let axes = axes::axes(tree, &arrays, long, has_frames, &fits);
        for axis in &axes {
            if let Some(id) = axis.coord.node() {
                left_out.insert(id, AS_COLUMN.into());
            }
        }
        let points = axes.iter().map(|_| OnceLock::new()).collect();
        let absent = arrays.iter().map(|_: &Column<'_>| Mutex::new(0..0)).collect();
        let fields = Vec::new();
        let mut table = Self {
            content,
            code,
            arrays,
            axes,
            long,
            fields,
            rows,
            has_frames,
            moments,
            left_out,
            points,
            absent,
        };
        let count = |column: &Column<'_>| if long { 1 } else { column.count() };
        let own = table.arrays.iter().fold(0_u64, |n, column| n.saturating_add(count(column)));
        if own.saturating_add(3 + table.axes.len() as u64) > MOST_COLUMNS {
            let message = format!("the table has more than {MOST_COLUMNS} columns");
            return Err(Error::unsupported(code, message).hint(Hint::SelectArrays));
        }
        table.fields = table.make_fields();
        Ok(table)
    }

    fn make_fields(&self) -> Vec<Field> {
        let bare = |name: &str, dtype, content| Field {
            name: name.into(),
            index: Vec::new(),
            units: None,
            dtype,
            optional: false,
            content,
        };
        let mut fields = Vec::new();
        if self.has_frames {
            fields.push(bare(FRAME_COLUMNS[0], DType::I64, Content::Frame));
            let known = [(DType::U64, Content::Step), (DType::F64, Content::Time)];
            for (k, (dtype, content)) in
                known.into_iter().enumerate().filter(|(k, _)| self.moments[*k])
            {
                fields.push(bare(FRAME_COLUMNS[1 + k], dtype, content));
            }
        }
        for (k, axis) in self.axes.iter().enumerate() {
            let field = bare(&axis.name, axis.dtype, Content::Axis(k));
            fields.push(Field { units: axis.units.clone(), ..field });
        }
        let mut taken: HashSet<String> = fields.iter().map(|field| field.name.clone()).collect();
        taken.extend(self.arrays.iter().map(|column| column.node.path.clone()));
        for (array, column) in self.arrays.iter().enumerate() {
            let units = column.node.attrs.get_str("units").filter(|units| !units.is_empty());
            let free = |names: &Vec<String>| !names.iter().any(|name| taken.contains(name));
            let components = column.components().filter(|names| !self.long && free(names));
            taken.extend(components.iter().flatten().cloned());
            let (count, tail) =
                if self.long { (1, &[][..]) } else { (column.count(), &column.tail[..]) };
            for element in 0..count as usize {
                let content = Content::Array { array, element };
                let mut field = bare(&column.node.path, column.dtype, content);
                field.units = units.map(Into::into);
                field.optional = self.has_frames;
                match &components {
                    Some(names) => field.name.clone_from(&names[element]),
                    None => field.index = unravel(element as u64, tail),
                }
                fields.push(field);
            }
        }
        fields
    }

    /// Number of frames; `None` for a table without frames.
    pub fn frames(&self) -> Option<u64> {
        self.has_frames.then_some(self.rows.len() as u64)
    }

    /// Frames without rows, in order.
    pub fn empty_frames(&self) -> impl Iterator<Item = u64> {
        let frames = self.rows.iter().zip(0..).filter(|(rows, _)| self.has_frames && **rows == 0);
        frames.map(|(_, frame)| frame)
    }

    /// Why an array is not a column of the table; `None` if it is one.
    pub fn left_out(&self, id: NodeId) -> Option<&str> {
        self.left_out.get(&id).map(String::as_str)
    }

    /// Losses of arrays that are columns of coordinates are changes of their names.
    pub fn with_renamed_axes(&self, mut losses: Vec<Loss>) -> Vec<Loss> {
        let tree = self.content.tree();
        for axis in &self.axes {
            let Some(path) = axis.coord.node().map(|id| &tree.node(id).path) else { continue };
            let is_axis = |loss: &&mut Loss| {
                loss.kind == LossKind::Array && loss.path == *path && loss.reason == AS_COLUMN
            };
            for loss in losses.iter_mut().filter(is_axis) {
                loss.kind = LossKind::Name;
                loss.reason = format!("it is the column \"{}\"", axis.name);
            }
        }
        losses
    }

    /// Number of rows of the table for each index of the first dimension.
    fn elements(&self) -> u64 {
        if self.long { self.arrays.first().map_or(1, Column::count) } else { 1 }
    }

    /// Number of rows of a piece.
    pub fn row_count(&self, piece: &Piece) -> u64 {
        piece.rows.saturating_mul(self.elements())
    }

    /// Hands out all rows, in order, in pieces of about `most` rows, without reading values. A frame without any array
    /// is a row without values; a frame whose arrays have no rows has none.
    pub fn pieces(&self, most: u64, each: &mut dyn FnMut(Piece) -> Result<()>) -> Result<()> {
        let most = (most / self.elements().max(1)).max(1);
        for (frame, rows) in self.rows.iter().enumerate() {
            let frame = self.has_frames.then_some(frame as u64);
            let mut first = 0;
            while first < *rows {
                let rows = most.min(rows - first);
                each(Piece { frame, first, rows })?;
                first += rows;
            }
        }
        Ok(())
    }

    /// Hands out all rows, in order, for a file of groups of about `bytes` bytes (or an eighth of the memory limit).
    /// `each` gets a piece and whether it starts a group; the first group has started.
    pub fn groups(
        &self,
        bytes: u64,
        each: &mut dyn FnMut(Piece, bool) -> Result<()>,
    ) -> Result<()> {
        let row = self.fields.iter().map(|field| field.dtype.size().max(4) as u64).sum::<u64>();
        let bytes = bytes.min(self.content.limits().memory / 8);
        let most = (bytes / row.max(1)).clamp(1, 1 << 24);
        let mut pending = 0;
        self.pieces(most, &mut |piece| {
            let rows = self.row_count(&piece);
            let starts = pending > 0 && pending + rows > most;
            pending = if starts { rows } else { pending + rows };
            each(piece, starts)
        })
    }

    /// Reads the rows of `piece`: for each of the [fields](Table::fields) its little-endian elements, or `None` if the
    /// frame does not contain the array.
    pub fn read(&self, piece: &Piece) -> Result<Vec<Option<Vec<u8>>>> {
        let columns = self.arrays.par_iter().zip(&self.absent);
        let arrays = columns.map(|(column, absent)| {
            if self.is_absent(column, absent, piece.frame)? {
                return Ok(None);
            }
            self.read_array(column, piece)
        });
        let arrays: Vec<Option<Vec<u8>>> = arrays.collect::<Result<_>>()?;
        let rows = self.row_count(piece) as usize;
        let axis = self.content.tree().frames().zip(piece.frame);
        let repeat = |value: [u8; 8]| Some(value.repeat(rows));
        let fields = self.fields.iter().map(|field| {
            Ok(match field.content {
                Content::Frame => repeat(piece.frame.unwrap_or(0).to_le_bytes()),
                Content::Step => match axis {
                    Some((axis, frame)) => axis.step(frame)?.map(u64::to_le_bytes).and_then(repeat),
                    None => None,
                },
                Content::Time => match axis {
                    Some((axis, frame)) => axis.time(frame)?.map(f64::to_le_bytes).and_then(repeat),
                    None => None,
                },
                Content::Axis(k) => Some(self.read_axis(k, piece)?),
                Content::Array { array, element } => {
                    let part = rows * field.dtype.size();
                    arrays[array]
                        .as_ref()
                        .map(|all| all[element * part..(element + 1) * part].to_vec())
                }
            })
        });
        fields.collect()
    }

    /// Whether an array is known not to be in a frame; `absent` are frames for which that was found before.
    fn is_absent(
        &self,
        column: &Column<'_>,
        absent: &Mutex<Range<u64>>,
        frame: Option<u64>,
    ) -> Result<bool> {
        let desc = self.content.tree().resolve(column.array)?;
        let (Some(frame), Some(table)) = (frame, desc.layout.frames()) else { return Ok(false) };
        let mut absent = absent.lock().unwrap_or_else(PoisonError::into_inner);
        if absent.contains(&frame) {
            return Ok(true);
        }
        let next = table.next(frame)?.unwrap_or(u64::MAX);
        *absent = frame..next;
        Ok(next > frame)
    }

    /// The elements of an array: column by column, or in long tables in C order.
    fn read_array(&self, column: &Column<'_>, piece: &Piece) -> Result<Option<Vec<u8>>> {
        let array = self.content.array_in_frame(column.id, piece.frame.unwrap_or(0))?;
        let Some(array) = array else { return Ok(None) };
        // Fails if all rows are too many to be read.
        array.all().map_err(|e| column.place(e))?;
        let rank = array.shape().rank();
        let columns: Vec<usize> = (1..rank).chain((rank > 0).then_some(0)).collect();
        let axes = if self.long { Axes::Order(Order::C) } else { Axes::Slowest(&columns) };
        read_rows(&array, piece, axes).map(Some).map_err(|e| column.place(e))
    }

    /// The points of an axis, one per row of the piece.
    fn read_axis(&self, k: usize, piece: &Piece) -> Result<Vec<u8>> {
        let axis = &self.axes[k];
        let inner: u64 =
            self.axes[k + 1..].iter().filter(|_| self.long).map(|axis| axis.len).product();
        let (first, count) = if axis.dim == 0 { (piece.first, piece.rows) } else { (0, axis.len) };
        let range = Piece { frame: piece.frame, first, rows: count };
        let read = || axis.read(self.content, &range, self.code);
        let points = if axis.dim == 0 || self.has_frames {
            &read()?
        } else if let Some(points) = self.points[k].get() {
            points
        } else {
            let points = read()?;
            self.points[k].get_or_init(|| points)
        };
        let size = axis.dtype.size().max(1);
        let mut once = Vec::with_capacity(points.len() * inner as usize);
        for point in points.chunks_exact(size) {
            for _ in 0..inner {
                once.extend_from_slice(point);
            }
        }
        let times = (self.row_count(piece) as usize * size).checked_div(once.len()).unwrap_or(0);
        Ok(if times == 1 { once } else { once.repeat(times) })
    }
}

/// Reads rows of an array as physical values.
fn read_rows(array: &Array, piece: &Piece, axes: Axes<'_>) -> Result<Vec<u8>> {
    let selection = if array.shape().rank() == 0 {
        Selection::all()
    } else {
        let rows = Slice::range(piece.first, piece.first + piece.rows);
        Selection(vec![rows, Slice::Rest])
    };
    let bytes = array.read_bytes(&selection, axes)?;
    if array.map().is_none() {
        return Ok(bytes);
    }
    let mut numbers = Vec::new();
    convert::to_physical(array.dtype(), array.map(), array.missing(), &bytes, &mut numbers);
    Ok(convert::little_bytes(&mut numbers).to_vec())
}

/// Type of the elements that a table has of an array: little-endian, `float64` for scaled arrays.
fn table_dtype(desc: &ArrayDesc) -> DType {
    if desc.map.is_some() { DType::F64 } else { desc.dtype.with_order(ByteOrder::Little) }
}
