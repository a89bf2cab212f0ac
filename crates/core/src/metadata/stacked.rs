//! Frame tables over arrays that hold all frames, or frames under another shape.

use std::sync::OnceLock;

use super::Cast;
use crate::{ArrayDesc, Dataset, FrameCell, FrameTable, Layout, Order, Result, Shape};

pub(super) fn cell_shape(tail: Option<&[u64]>, rows: u64) -> Shape {
    tail.map_or_else(Shape::scalar, |tail| {
        Shape::new(std::iter::once(rows).chain(tail.iter().copied()).collect::<Vec<_>>())
    })
}

/// Frames that are stored one after the other.
pub(super) struct Stacked {
    pub(super) entire: Entire,
    pub(super) row_bytes: u64,
    pub(super) rows: Rows,
    /// Of the elements of a frame.
    pub(super) order: Order,
}

/// All frames of an array.
pub(super) enum Entire {
    /// Bytes that can be divided.
    Layout(Layout),
    /// Encoded as a whole; decoded at the first access.
    Encoded { desc: ArrayDesc, dataset: Dataset, decoded: OnceLock<Vec<u8>> },
}

impl Entire {
    fn part(&self, first: u64, len: u64) -> Result<Option<Layout>> {
        let (desc, dataset, decoded) = match self {
            Self::Layout(layout) => return Ok(layout.rows(first, len)),
            Self::Encoded { desc, dataset, decoded } => (desc, dataset, decoded),
        };
        if decoded.get().is_none() {
            let array = dataset.open_array(desc)?;
            // If another thread was faster, it decoded the same bytes.
            let _ = decoded.set(array.bytes()?);
        }
        let part = |bytes: &Vec<u8>| {
            let end = usize::try_from(first.checked_add(len)?).ok()?;
            let part = bytes.get(usize::try_from(first).ok()?..end)?;
            Some(Layout::Inline(part.into(), Order::C))
        };
        Ok(decoded.get().and_then(part))
    }
}

pub(super) enum Rows {
    Uniform {
        count: u64,
        cell: Shape,
    },
    Ragged {
        /// Rows before each frame, and the total at the end.
        starts: Vec<u64>,
        there: Vec<bool>,
        /// Lengths of the other dimensions; `None` if a frame has one element.
        tail: Option<Vec<u64>>,
    },
}

impl FrameTable for Stacked {
    fn len(&self) -> u64 {
        match &self.rows {
            Rows::Uniform { count, .. } => *count,
            Rows::Ragged { there, .. } => there.len() as u64,
        }
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let k = frame as usize;
        let (first, rows, shape) = match &self.rows {
            Rows::Uniform { count, cell } if frame < *count => (frame, 1, cell.clone()),
            Rows::Ragged { starts, there, tail } if there.get(k) == Some(&true) => {
                let rows = starts[k + 1] - starts[k];
                (starts[k], rows, cell_shape(tail.as_deref(), rows))
            }
            _ => return Ok(None),
        };
        let bytes = |rows: u64| rows.saturating_mul(self.row_bytes);
        let layout = self.entire.part(bytes(first), bytes(rows))?;
        // The order of chunks is fixed.
        let layout = match layout {
            Some(layout) if layout.order() == self.order => Some(layout),
            layout => layout.and_then(|layout| layout.in_order(self.order)),
        };
        Ok(layout.map(|layout| FrameCell { shape, layout }))
    }
}

/// A frame under the shape of `cast`, with elements of `size` bytes instead of `stored`; `None` where it does not
/// fit.
pub(super) fn recast(
    cell: &FrameCell,
    cast: &Cast,
    size: usize,
    stored: usize,
) -> Result<Option<FrameCell>> {
    let bytes = cell.shape.bytes(stored)?;
    let mut lengths = cast.shape.clone();
    // The first length may differ between frames.
    if let [first, tail @ ..] = &mut lengths[..] {
        let row = Shape::new(&*tail).bytes(size)?;
        *first = bytes.checked_div(row).unwrap_or(*first);
    }
    let shape = Shape::new(lengths);
    let layout = cell.layout.in_order(cast.order());
    let fits = shape.bytes(size)? == bytes;
    Ok(layout.filter(|_| fits).map(|layout| FrameCell { shape, layout }))
}
