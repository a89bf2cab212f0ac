//! Values of plain arrays: layouts, and elements block by block. Small frames are read in batches.

use std::ops::Range;

use rayon::prelude::*;

use spile_core::metadata::Cast;
use spile_core::{
    Array, ArrayDesc, Error, Extents, FrameCell, Kind, Layout, NodeId, Order, Result, Shape,
};

use super::{Flat, Stack};

/// Small frames are read in batches of up to this many bytes.
const BATCH: u64 = 1 << 20;

impl Flat {
    /// Layout of the concatenated frames of an array, and shape and order of a frame; `None` if `id` is not an
    /// array of frames. Frames that are not stored as plain ranges are read into memory.
    pub(crate) fn cells(&self, id: NodeId) -> Result<Option<(Layout, Cast)>> {
        let (Some(stack), Some(array)) = (self.stacks.get(&id), &self.tree().node(id).array) else {
            return Ok(None);
        };
        let cells = self.layouts(id)?;
        if let Some(plain) = plain_ranges(stack, &cells)? {
            return Ok(Some(plain));
        }
        let all = array.bytes()?.saturating_mul(4);
        let all = self.content.limits().allow(all, "the decoded frames")?;
        let mut bytes = Vec::with_capacity(all / 4);
        self.stream(id, Order::C, |block| {
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        let cell = cells.first().map_or_else(Shape::scalar, |cell| cell.shape.clone());
        Ok(Some((Layout::Inline(bytes.into(), Order::C), Cast::new(&cell, Order::C))))
    }

    /// Shapes and layouts whose concatenation is the array: one, or one per frame that contains it.
    pub fn layouts(&self, id: NodeId) -> Result<Vec<FrameCell>> {
        let cell = |array: &ArrayDesc| FrameCell {
            shape: array.shape.clone(),
            layout: array.layout.clone(),
        };
        let Some(stack) = self.stacks.get(&id) else {
            return Ok(self.tree().node(id).array.iter().map(cell).collect());
        };
        let array = self.content.tree().array(stack.node);
        let Some(table) = array.and_then(|array| array.layout.frames()) else {
            return Ok(Vec::new());
        };
        let bytes = stack.frames.saturating_mul(size_of::<FrameCell>() as u64);
        self.content.limits().allow(bytes, "the layouts of all frames")?;
        table.cells().map(|found| found.map(|(_, cell)| cell)).collect()
    }

    /// The stored order of an array, which is read without reordering.
    pub fn order(&self, id: NodeId) -> Order {
        match &self.tree().node(id).array {
            Some(array) if !self.stacks.contains_key(&id) => array.order(),
            _ => Order::C,
        }
    }

    /// Calls `each` with all elements of an array, little-endian, in `order`, block by block. Arrays of frames
    /// can be read in C order only.
    pub fn stream(
        &self,
        id: NodeId,
        order: Order,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(stack) = self.stacks.get(&id) else {
            let array = self.plain.array_at(id)?;
            let selected = array.all_in(order)?;
            return selected.stream(|_, bytes| each(bytes));
        };
        let size = self.element_size(id, order)?;
        let mut buffer = Vec::new();
        for (frames, _) in stack.batches(size) {
            if let Some(large) = self.large_frame(stack, &frames, size)? {
                let selected = large.all_in(Order::C)?;
                selected.stream(|_, bytes| each(bytes))?;
            } else {
                self.gather(stack, frames, size, &mut buffer)?;
                each(&buffer)?;
            }
        }
        Ok(())
    }

    /// Whether all elements of an array of text are UTF-8. Reads the array.
    pub fn is_utf8(&self, id: NodeId) -> Result<bool> {
        let Some(array) = &self.tree().node(id).array else { return Ok(false) };
        if array.dtype.kind() != Kind::Text {
            return Ok(false);
        }
        let (size, mut valid) = (array.dtype.size().max(1), true);
        self.stream(id, self.order(id), |bytes| {
            let is_valid = |text: &[u8]| std::str::from_utf8(text).is_ok();
            valid = valid && (bytes.is_ascii() || bytes.chunks(size).all(is_valid));
            Ok(())
        })?;
        Ok(valid)
    }

    /// Calls `each` on all threads, in any order, with the index of the first element of a block and its
    /// little-endian elements. Arrays of frames can be read in C order only.
    pub fn for_each(
        &self,
        id: NodeId,
        order: Order,
        each: impl Fn(u64, &[u8]) -> Result<()> + Sync,
    ) -> Result<()> {
        let Some(stack) = self.stacks.get(&id) else {
            let array = self.plain.array_at(id)?;
            let selected = array.all_in(order)?;
            return selected.for_each(|block, bytes| each(block.first, bytes));
        };
        let size = self.element_size(id, order)?;
        stack.batches(size).par_bridge().try_for_each_init(Vec::new, |buffer, (frames, first)| {
            if let Some(large) = self.large_frame(stack, &frames, size)? {
                let selected = large.all_in(Order::C)?;
                return selected.for_each(|block, bytes| each(first + block.first, bytes));
            }
            self.gather(stack, frames, size, buffer)?;
            each(first, buffer)
        })
    }

    /// Element size in bytes of an array of frames. Fails unless `order` is C.
    pub(super) fn element_size(&self, id: NodeId, order: Order) -> Result<usize> {
        if order == Order::F {
            return Err(Error::argument("arrays of frames can be read in C order only"));
        }
        Ok(self.tree().array(id).map_or(1, |array| array.dtype.size()))
    }

    /// The array of a frame that exceeds a batch; `None` for batches of small frames.
    fn large_frame(
        &self,
        stack: &Stack,
        frames: &Range<u64>,
        size: usize,
    ) -> Result<Option<Array>> {
        let bytes = stack.elements(frames.start).saturating_mul(size as u64);
        if frames.end - frames.start != 1 || bytes <= BATCH {
            return Ok(None);
        }
        let array = self.content.array_in_frame(stack.node, frames.start)?;
        Ok(array.filter(|array| array.shape().count() == Some(stack.elements(frames.start))))
    }

    fn gather(
        &self,
        stack: &Stack,
        frames: Range<u64>,
        size: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        buffer.clear();
        for frame in frames {
            if stack.elements(frame) == 0 {
                continue;
            }
            let Some(array) = self.content.array_in_frame(stack.node, frame)? else { continue };
            let start = buffer.len();
            let bytes = stack.elements(frame).saturating_mul(size as u64);
            buffer.resize(start + self.content.limits().allow(bytes, "a frame")?, 0);
            let selected = array.all_in(Order::C)?;
            selected.read_into(&mut buffer[start..])?;
        }
        Ok(())
    }
}

/// Layout of the concatenated frames if all are stored as plain ranges in the same order.
fn plain_ranges(stack: &Stack, cells: &[FrameCell]) -> Result<Option<(Layout, Cast)>> {
    let mut parts = Vec::new();
    let mut first: Option<Cast> = None;
    for cell in cells {
        let Some((extents, order)) = cell.layout.plain() else { return Ok(None) };
        let own = Cast::new(&cell.shape, order);
        if first.get_or_insert_with(|| own.clone()).order() != own.order() {
            return Ok(None);
        }
        parts.extend_from_slice(extents.parts());
    }
    let Some(cast) = first else { return Ok(None) };
    // Frames with different numbers of rows can be concatenated only if the row index is slowest.
    if stack.elements.is_some() && cast.order() == Order::F {
        return Ok(None);
    }
    let layout = Layout::Plain { extents: Extents::several(parts)?, order: Order::C };
    Ok(Some((layout, cast)))
}

impl Stack {
    pub(super) fn elements(&self, frame: u64) -> u64 {
        match &self.elements {
            Some(all) => all.get(frame as usize).copied().unwrap_or(0),
            None => self.uniform,
        }
    }

    /// Ranges of frames of about [`BATCH`] bytes, with the number of elements before each.
    fn batches(&self, size: usize) -> impl Iterator<Item = (Range<u64>, u64)> + Send + '_ {
        let (mut frame, mut element) = (0, 0);
        std::iter::from_fn(move || {
            let (first, before) = (frame, element);
            let mut bytes = 0_u64;
            while frame < self.frames {
                let own = self.elements(frame);
                bytes = bytes.saturating_add(own.saturating_mul(size as u64));
                if bytes > BATCH && frame > first {
                    break;
                }
                frame += 1;
                element += own;
            }
            (frame > first).then_some((first..frame, before))
        })
    }
}
