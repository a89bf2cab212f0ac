//! A tree as a table: arrays that have the same number of rows, side by side, frame by frame. For formats
//! that are tables (CSV, Parquet).

use spile_core::Dataset;
use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Hint, Result};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::read::Axes;
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};
use spile_core::tree::{Node, NodeId};
use spile_core::wire::ByteOrder;

/// A tree that is a table.
pub struct Table<'a> {
    content: &'a Dataset,
    /// The code of errors about trees that are not tables.
    code: &'static str,
    /// The arrays.
    pub columns: Vec<Column<'a>>,
    /// How many frames there are, where there are any.
    pub frames: Option<u64>,
    /// The steps, and the times, of all frames are known.
    pub moments: [bool; 2],
    /// Columns in all, those of the frames included.
    pub width: u64,
}

/// An array of a table.
pub struct Column<'a> {
    id: NodeId,
    /// The node of the array.
    pub node: &'a Node,
    /// The array.
    pub array: &'a ArrayDesc,
    /// Lengths of all dimensions but the first, which is that of the rows.
    pub tail: Vec<u64>,
    /// Type of the elements as they are handed out, little-endian: of those that are meant, where the
    /// array has a map.
    pub dtype: DType,
}

/// Rows that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Their frame.
    pub frame: Option<u64>,
    /// The first of them, in its frame.
    pub first: u64,
    /// How many there are.
    pub rows: u64,
}

impl Column<'_> {
    /// Elements of a row.
    pub fn count(&self) -> u64 {
        Shape::new(self.tail.clone()).count().unwrap_or(u64::MAX)
    }

    fn place(&self, error: Error) -> Error {
        error.in_object(format!("\"{}\"", self.node.path))
    }
}

impl<'a> Table<'a> {
    /// The tree as a table of at most `most` columns of types that `fits` allows. What is none is
    /// unsupported by the rule `code`.
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
            if let Layout::PerFrame(table) = &desc.layout {
                frames = Some(table.len().max(frames.unwrap_or(0)));
            }
            let stored = desc.dtype.with_order(ByteOrder::Little);
            let dtype = if desc.map.is_some() { DType::F64 } else { stored };
            if !fits(dtype) || desc.ragged().is_some() {
                let message = format!("a table has no columns of {dtype}");
                return Err(place(Error::unsupported(code, message)).hint(Hint::SelectArrays));
            }
            let tail = desc.shape.lengths().get(1..).unwrap_or_default().to_vec();
            let column = Column { id, node, array: own, tail, dtype };
            width = width.saturating_add(column.count());
            if width > most {
                return Err(Error::unsupported(code, format!("more than {most} columns"))
                    .hint(Hint::SelectArrays));
            }
            columns.push(column);
        }
        if columns.is_empty() {
            return Err(Error::unsupported(code, "there is no array in this file"));
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

    /// Number of rows of a column; none where the frame does not have it.
    fn row_count(&self, column: &Column<'_>, frame: Option<u64>) -> Result<Option<u64>> {
        let desc = self.content.tree().resolve(column.array)?;
        let shape = match &desc.layout {
            Layout::PerFrame(table) => table.cell(frame.unwrap_or(0))?.map(|cell| cell.shape),
            _ => Some(desc.shape.clone()),
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
                    let message = "the columns of a table have the same number of rows";
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

    /// The elements of some rows of a column, or nothing where the frame does not have it. In C order
    /// one row is behind the other, in Fortran's one element of all rows behind the other.
    pub fn rows(
        &self,
        column: &Column<'_>,
        piece: &Piece,
        order: Order,
    ) -> Result<Option<Vec<u8>>> {
        let array = self.content.array_in_frame(column.id, piece.frame.unwrap_or(0))?;
        let Some(array) = array else { return Ok(None) };
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

    /// Step and time of a frame, where those of all are known.
    pub fn moment(&self, frame: u64) -> Result<(Option<u64>, Option<f64>)> {
        let Some(axis) = self.content.tree().frames() else { return Ok((None, None)) };
        let step = if self.moments[0] { axis.step(frame)? } else { None };
        let time = if self.moments[1] { axis.time(frame)? } else { None };
        Ok((step, time))
    }
}
