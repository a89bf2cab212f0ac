//! A dataset as a table, for CSV and Parquet: the columns are arrays with the same number of rows; the rows
//! of all frames are concatenated.

use spile_core::Dataset;
use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Hint, Result};
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::read::Axes;
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};
use spile_core::tree::{Node, NodeId};
use spile_core::wire::ByteOrder;

/// A dataset as a table.
pub struct Table<'a> {
    content: &'a Dataset,
    /// Code of errors about datasets that are not tables.
    code: &'static str,
    /// The arrays.
    pub columns: Vec<Column<'a>>,
    /// Number of frames; `None` for a dataset without frames.
    pub frames: Option<u64>,
    /// Whether the steps, and the times, of all frames are known.
    pub moments: [bool; 2],
    /// Number of columns, including up to three for frame number, step and time.
    pub width: u64,
}

/// An array of a table; it has one column per element of a row.
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

/// A uniform coordinate of the rows of a table; row `k` is at `start + k * step`.
#[derive(Clone, Debug, PartialEq)]
pub struct RowCoordinate {
    /// Name of the column.
    pub name: String,
    /// Coordinate of the first row.
    pub start: f64,
    /// Distance between rows.
    pub step: f64,
}

/// Consecutive rows of one frame.
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
}

impl<'a> Table<'a> {
    /// The dataset as a table of at most `most` columns with types accepted by `fits`. Fails with
    /// `Unsupported` and `code` if it is not a table. The number of rows is checked by [`Table::pieces`].
    pub fn new(
        content: &'a Dataset,
        code: &'static str,
        most: u64,
        fits: impl Fn(DType) -> bool,
    ) -> Result<Self> {
        let tree = content.tree();
        let mut columns = Vec::new();
        let (mut frames, mut width) = (None, 3_u64);
        for (id, node, own) in tree.arrays() {
            let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
            let desc = tree.resolve(own).map_err(place)?;
            if let Some(table) = desc.layout.frames() {
                frames = Some(table.len().max(frames.unwrap_or(0)));
            }
            let stored = desc.dtype.with_order(ByteOrder::Little);
            let dtype = if desc.map.is_some() { DType::F64 } else { stored };
            if !fits(dtype) || desc.ragged().is_some() {
                let message = format!("{dtype} is not supported in table columns");
                return Err(place(Error::unsupported(code, message)).hint(Hint::SelectArrays));
            }
            let tail = desc.shape.lengths().get(1..).unwrap_or_default().to_vec();
            let column = Column { id, node, array: own, tail, dtype };
            width = width.saturating_add(column.count());
            if width > most {
                return Err(Error::unsupported(
                    code,
                    format!("the table has more than {most} columns"),
                )
                .hint(Hint::SelectArrays));
            }
            columns.push(column);
        }
        if columns.is_empty() {
            return Err(Error::unsupported(code, "the dataset has no arrays"));
        }
        let mut moments = [false; 2];
        if let (Some(count), Some(axis)) = (frames, tree.frames()) {
            moments = [true; 2];
            for frame in 0..count.min(axis.len()) {
                moments[0] &= axis.step(frame)?.is_some();
                moments[1] &= axis.time(frame)?.is_some();
            }
        }
        Ok(Self { content, code, columns, frames, moments, width })
    }

    /// Uniform coordinates of the rows, for example the time of a trace. One coordinate of all arrays has the name
    /// of their dimension; different coordinates have the names of the first arrays along them: `ch2.time`. Empty
    /// for tables with frames, if an array has no uniform coordinate, and if a name is that of an array.
    pub fn row_coordinates(&self) -> Vec<RowCoordinate> {
        let mut found: Vec<(&Column<'_>, f64, f64)> = Vec::new();
        for column in &self.columns {
            let Some(Coord::Uniform { start, step }) = column.array.coords.first() else {
                return Vec::new();
            };
            let dim = column.array.dims.first();
            let known = |(first, own_start, own_step): &(&Column<'_>, f64, f64)| {
                first.array.dims.first() == dim && own_start == start && own_step == step
            };
            if !found.iter().any(known) {
                found.push((column, *start, *step));
            }
        }
        let alone = found.len() == 1;
        let named = found.into_iter().map(|(column, start, step)| {
            let dim = column.array.dims.first().map_or("", String::as_str);
            let path = &column.node.path;
            let name = if alone { dim.into() } else { format!("{path}.{dim}") };
            RowCoordinate { name, start, step }
        });
        let named: Vec<RowCoordinate> = named.collect();
        let taken = |own: &RowCoordinate| {
            own.name.is_empty() || self.columns.iter().any(|column| column.node.path == own.name)
        };
        if self.frames.is_some() || named.iter().any(taken) { Vec::new() } else { named }
    }

    /// Number of rows of a column; none where the frame does not have it.
    fn row_count(&self, column: &Column<'_>, frame: Option<u64>) -> Result<Option<u64>> {
        let desc = self.content.tree().resolve(column.array)?;
        let shape = match desc.layout.frames() {
            Some(table) => table.cell(frame.unwrap_or(0))?.map(|cell| cell.shape),
            None => Some(desc.shape.clone()),
        };
        let Some(shape) = shape else { return Ok(None) };
        if shape.lengths().get(1..).unwrap_or_default() != column.tail {
            let message = "a row has more elements in some frames than in others";
            return Err(column.place(Error::unsupported(self.code, message)));
        }
        Ok(Some(shape.lengths().first().copied().unwrap_or(1)))
    }

    /// Hands out all rows, in order, in pieces of at most `most`, without reading values. A frame
    /// without any array is a row without values. Fails if the arrays do not have the same number of
    /// rows.
    pub fn pieces(&self, most: u64, each: &mut dyn FnMut(Piece) -> Result<()>) -> Result<()> {
        for k in 0..self.frames.unwrap_or(1) {
            let frame = self.frames.map(|_| k);
            let mut rows = None;
            for column in &self.columns {
                let Some(own) = self.row_count(column, frame)? else { continue };
                if rows.is_some_and(|rows| rows != own) || (frame.is_some() && own == 0) {
                    let message = "the columns of a table must have the same number of rows";
                    let error = column
                        .place(Error::unsupported(self.code, message))
                        .hint(Hint::SelectArrays);
                    return Err(match frame {
                        Some(frame) => error.in_frame(frame),
                        None => error,
                    });
                }
                rows = Some(own);
            }
            let rows = rows.unwrap_or(1);
            let mut first = 0;
            while first < rows {
                let count = most.max(1).min(rows - first);
                each(Piece { frame, first, rows: count })?;
                first += count;
            }
        }
        Ok(())
    }

    /// Reads the elements of the rows of `piece` as [`Column::dtype`]; `None` if the frame does not contain the
    /// array. With C order row by row, with Fortran order column by column.
    pub fn rows(
        &self,
        column: &Column<'_>,
        piece: &Piece,
        order: Order,
    ) -> Result<Option<Vec<u8>>> {
        let array = self.content.array_in_frame(column.id, piece.frame.unwrap_or(0))?;
        let Some(array) = array else { return Ok(None) };
        // Fails if all rows are too many to be read.
        array.all().map_err(|e| column.place(e))?;
        let selection = if array.shape().rank() == 0 {
            Selection::all()
        } else {
            let rows = Slice::range(piece.first, piece.first + piece.rows);
            Selection(vec![rows, Slice::Rest])
        };
        let bytes =
            array.read_bytes(&selection, Axes::Order(order)).map_err(|e| column.place(e))?;
        if column.dtype == array.dtype().with_order(ByteOrder::Little) && array.map().is_none() {
            return Ok(Some(bytes));
        }
        let mut numbers = Vec::new();
        convert::to_physical(array.dtype(), array.map(), array.missing(), &bytes, &mut numbers);
        Ok(Some(convert::little_bytes(&mut numbers).to_vec()))
    }

    /// Step and time of a frame; `None` if they are not known for all frames.
    pub fn moment(&self, frame: u64) -> Result<(Option<u64>, Option<f64>)> {
        let Some(axis) = self.content.tree().frames() else { return Ok((None, None)) };
        let step = if self.moments[0] { axis.step(frame)? } else { None };
        let time = if self.moments[1] { axis.time(frame)? } else { None };
        Ok((step, time))
    }
}
