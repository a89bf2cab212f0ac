//! Rectangular parts of plain arrays.

use std::sync::PoisonError;

use spile_core::error::Result;
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};
use spile_core::tree::NodeId;

use super::{Flat, Stack};

impl Flat {
    /// The elements `start..start + lengths` of an array, little-endian, in `order`. Arrays of frames can be
    /// read in C order only. Only the frames that contain such elements are read.
    pub fn read_region(
        &self,
        id: NodeId,
        order: Order,
        start: &[u64],
        lengths: &[u64],
    ) -> Result<Vec<u8>> {
        let size = self.tree().node(id).array.as_ref().map_or(1, |array| array.dtype.size());
        let bytes = Shape::new(lengths).bytes(size)?;
        let mut out = vec![0; self.content.limits().allow(bytes, "a part of an array")?];
        let ranges =
            start.iter().zip(lengths).map(|(start, len)| Slice::range(*start, start + len));
        let ranges: Vec<Slice> = ranges.collect();
        let Some(stack) = self.stacks.get(&id) else {
            read(&self.opened(id)?, ranges, order, &mut out)?;
            return Ok(out);
        };
        self.element_size(id, order)?;
        let (first, rows) = (start[0], lengths[0]);
        let (mut at, row) = (0, out.len() / (rows.max(1) as usize));
        if stack.elements.is_none() {
            for frame in first..first + rows {
                if let Some(array) = self.content.array_in_frame(stack.node, frame)? {
                    read(&array, ranges[1..].to_vec(), order, &mut out[at..at + row])?;
                }
                at += row;
            }
            return Ok(out);
        }
        let shape = self.tree().node(id).array.as_ref().map(|array| &array.shape);
        let tail = shape.map_or(&[][..], |shape| &shape.lengths()[1..]);
        for (frame, own) in stack.rows_within(tail, first..first + rows) {
            let Some(array) = self.content.array_in_frame(stack.node, frame)? else { continue };
            let len = row * (own.end - own.start) as usize;
            let mut selected = ranges.clone();
            selected[0] = Slice::range(own.start, own.end);
            // A frame with a single value is one row.
            selected.truncate(array.shape().rank());
            read(&array, selected, order, &mut out[at..at + len])?;
            at += len;
        }
        Ok(out)
    }

    /// The array, opened once for several regions. Fails if it is too large to be read as a whole.
    fn opened(&self, id: NodeId) -> Result<Array> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        match &*opened {
            Some((last, array)) if *last == id => Ok(array.clone()),
            _ => {
                let array = self.plain.array_at(id)?;
                array.all()?;
                *opened = Some((id, array.clone()));
                Ok(array)
            }
        }
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
