//! Rectangular parts of plain arrays.

use spile_core::error::Result;
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};
use spile_core::tree::NodeId;

use super::{Flat, Stack};

/// An array of [`Flat`] that is read in rectangular parts, from any thread.
pub struct RegionReader<'a> {
    flat: &'a Flat,
    id: NodeId,
    order: Order,
    /// Opened once: some arrays are decoded when they are opened. `None` for arrays of frames.
    array: Option<Array>,
}

impl Flat {
    /// Opens an array to be read in rectangular parts in `order`. Arrays of frames can be read in C order only.
    pub fn open_regions(&self, id: NodeId, order: Order) -> Result<RegionReader<'_>> {
        let array = if self.stacks.contains_key(&id) {
            self.element_size(id, order)?;
            None
        } else {
            Some(self.plain.array_at(id)?)
        };
        Ok(RegionReader { flat: self, id, order, array })
    }

    /// The elements `start..start + lengths` of an array, little-endian, in `order`. Arrays of frames can be
    /// read in C order only. Only the frames that contain such elements are read.
    pub fn read_region(
        &self,
        id: NodeId,
        order: Order,
        start: &[u64],
        lengths: &[u64],
    ) -> Result<Vec<u8>> {
        self.open_regions(id, order)?.read(start, lengths)
    }
}

impl RegionReader<'_> {
    /// The elements `start..start + lengths`, little-endian. Only the frames that contain such elements are read.
    pub fn read(&self, start: &[u64], lengths: &[u64]) -> Result<Vec<u8>> {
        let Self { flat, id, order, array } = self;
        let desc = flat.tree().node(*id).array.as_ref();
        let bytes = Shape::new(lengths).bytes(desc.map_or(1, |desc| desc.dtype.size()))?;
        let mut out = vec![0; flat.content.limits().allow(bytes, "a part of an array")?];
        let ranges =
            start.iter().zip(lengths).map(|(start, len)| Slice::range(*start, start + len));
        let ranges: Vec<Slice> = ranges.collect();
        if let Some(array) = array {
            read(array, ranges, *order, &mut out)?;
            return Ok(out);
        }
        let Some(stack) = flat.stacks.get(id) else { return Ok(out) };
        let (first, rows) = (start[0], lengths[0]);
        let (mut at, row) = (0, out.len() / (rows.max(1) as usize));
        if stack.elements.is_none() {
            for frame in first..first + rows {
                if let Some(array) = flat.content.array_in_frame(stack.node, frame)? {
                    read(&array, ranges[1..].to_vec(), *order, &mut out[at..at + row])?;
                }
                at += row;
            }
            return Ok(out);
        }
        let tail = desc.map_or(&[][..], |desc| &desc.shape.lengths()[1..]);
        for (frame, own) in stack.rows_within(tail, first..first + rows) {
            let Some(array) = flat.content.array_in_frame(stack.node, frame)? else { continue };
            let len = row * (own.end - own.start) as usize;
            let mut selected = ranges.clone();
            selected[0] = Slice::range(own.start, own.end);
            // A frame with a single value is one row.
            selected.truncate(array.shape().rank());
            read(&array, selected, *order, &mut out[at..at + len])?;
            at += len;
        }
        Ok(out)
    }
}

fn read(array: &Array, ranges: Vec<Slice>, order: Order, out: &mut [u8]) -> Result<()> {
    array.select(&Selection(ranges), Axes::Order(order))?.read_into(out)
}

impl Stack {
    /// The frames that contain the concatenated `rows`, and the rows of each; `tail` is the shape of a row.
    fn rows_within(
        &self,
        tail: &[u64],
        rows: std::ops::Range<u64>,
    ) -> Vec<(u64, std::ops::Range<u64>)> {
        let each = Shape::new(tail).count().unwrap_or(0).max(1);
        let mut before = 0;
        let mut found = Vec::new();
        for frame in 0..self.frames {
            let own = self.elements(frame) / each;
            let (start, stop) = (rows.start.max(before), rows.end.min(before + own));
            if start < stop {
                found.push((frame, start - before..stop - before));
            }
            before += own;
        }
        found
    }
}
