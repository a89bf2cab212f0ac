//! Columns of a file as arrays: several columns are an array of rows, and rows are frames.

use std::collections::HashSet;
use std::sync::Arc;

use spile_core::computed::{Computed, Function};
use spile_core::error::Result;
use spile_core::frames::{FrameCell, FrameTable};
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};

use super::{EMPTY_INDEX, StoredColumn};

pub(super) fn shape(rows: u64, tail: &[u64]) -> Shape {
    Shape::new(std::iter::once(rows).chain(tail.iter().copied()).collect::<Vec<_>>())
}

/// The array of columns of a table without frames.
pub(super) fn entire(own: &[StoredColumn], tail: &[u64], rows: u64) -> Result<ArrayDesc> {
    let first = &own[0].array;
    if own.len() == 1 && tail.is_empty() {
        return Ok(first.clone());
    }
    let columns: Vec<ArrayDesc> = own.iter().map(|column| column.array.clone()).collect();
    let layout = window(&columns, tail, 0, rows)?;
    let mut desc = ArrayDesc::new(first.dtype, shape(rows, tail), layout);
    (desc.map, desc.meaning) = (first.map, first.meaning.clone());
    Ok(desc)
}

/// Rows of columns as one array. Bytes are read in place where the columns are stored one after the other.
fn window(columns: &[ArrayDesc], tail: &[u64], first: u64, rows: u64) -> Result<Layout> {
    let size = columns[0].dtype.size() as u64;
    let range = (first.saturating_mul(size), rows.saturating_mul(size));
    let plain = columns.iter().map(|column| {
        let (extents, _) = column.layout.plain()?;
        Some(extents.pieces(range.0, range.1).filter(|p| p.len > 0))
    });
    if let (0..=1, Some(parts)) = (tail.len(), plain.collect::<Option<Vec<_>>>()) {
        let extents = Extents::several(parts.into_iter().flatten().collect())?;
        let order = if columns.len() == 1 { Order::C } else { Order::F };
        return Ok(Layout::Plain { extents, order });
    }
    let count = columns.len() as u64;
    Ok(Layout::Computed(Arc::new(Computed {
        inputs: columns.to_vec(),
        function: Arc::new(Window { first }),
        piece: (rows.min(1 << 18) * count).max(count),
        order: Order::C,
    })))
}

/// Rows of several columns, row by row.
struct Window {
    /// The first row.
    first: u64,
}

impl Function for Window {
    fn name(&self) -> &'static str {
        "columns"
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(16)
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let (count, size) = (inputs.len(), inputs.first().map_or(1, |input| input.dtype().size()));
        let rows = (out.len() / size.max(1) / count.max(1)) as u64;
        let from = self.first + first / count.max(1) as u64;
        let selection = Selection(vec![Slice::range(from, from + rows)]);
        for (k, input) in inputs.iter().enumerate() {
            let values = input.read_bytes(&selection, Axes::Stored)?;
            let slots = out.chunks_exact_mut(size).skip(k).step_by(count);
            for (slot, value) in slots.zip(values.chunks_exact(size)) {
                slot.copy_from_slice(value);
            }
        }
        Ok(())
    }
}

/// The frames of an array: rows of its columns.
pub(super) struct Frames {
    pub(super) columns: Vec<ArrayDesc>,
    pub(super) tail: Vec<u64>,
    /// Rows before each frame, then the total.
    pub(super) starts: Arc<[u64]>,
    pub(super) absent: HashSet<u64>,
}

impl FrameTable for Frames {
    fn len(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        if frame >= self.len() || self.absent.contains(&frame) {
            return Ok(None);
        }
        let (from, to) = (self.starts[frame as usize], self.starts[frame as usize + 1]);
        let layout = match to - from {
            0 => Layout::Inline([].into(), Order::C),
            rows => window(&self.columns, &self.tail, from, rows)?,
        };
        Ok(Some(FrameCell { shape: shape(to - from, &self.tail), layout }))
    }
}

/// The array that begins with the first of these columns: its path, the lengths of the dimensions after the
/// first, and its number of columns, which are in C order.
pub(super) fn group(columns: &[StoredColumn]) -> (String, Vec<u64>, usize) {
    let first = &columns[0];
    if let Some(path) = first.name.strip_suffix(EMPTY_INDEX).filter(|path| ends_with_index(path)) {
        return (path.into(), Vec::new(), 1);
    }
    let Some((path, index)) = indexed(&first.name) else {
        return (first.name.clone(), Vec::new(), 1);
    };
    let others = columns.iter().map_while(|column| {
        let (own, index) = indexed(&column.name)?;
        let alike = column.array.dtype == first.array.dtype
            && column.array.meaning == first.array.meaning
            && column.array.map == first.array.map;
        (own == path && alike).then_some(index)
    });
    let all: Vec<Vec<u64>> = others.take_while(|own| own.len() == index.len()).collect();
    let tail: Vec<u64> =
        all.last().map_or(&[][..], |last| last).iter().map(|n| n.saturating_add(1)).collect();
    let in_order = |(k, own): (usize, &Vec<u64>)| crate::grid::unravel(k as u64, &tail) == *own;
    let product = tail.iter().try_fold(1_u64, |n, len| n.checked_mul(*len));
    if product == Some(all.len() as u64) && all.iter().enumerate().all(in_order) {
        return (path.into(), tail, all.len());
    }
    (first.name.clone(), Vec::new(), 1)
}

/// Splits `velocity[2,0]` into name and index; `None` if there is no index.
fn indexed(name: &str) -> Option<(&str, Vec<u64>)> {
    let (path, index) = name.strip_suffix(']')?.rsplit_once('[')?;
    let index: Option<Vec<u64>> = index.split(',').map(|n| n.parse().ok()).collect();
    Some((path, index?))
}

/// Whether a name ends with an index, which may be followed by empty ones.
pub(super) fn ends_with_index(name: &str) -> bool {
    indexed(name.trim_end_matches(EMPTY_INDEX)).is_some()
}
