//! Read planning: the blocks of a selection, the reads of each block, the output position of each element.
//!
//! The elements of an array are one contiguous sequence of bytes, the *store*. A selection is a box in it:
//! a count and a stride per axis. The box is split into *blocks* of consecutive output elements, in the
//! order requested by the caller. Each block is read independently, so that blocks can be processed in
//! parallel with bounded memory.
//!
//! Within a block, reads follow the store: axes are sorted by stride, elements with small gaps are fetched
//! with one read, and elements whose order differs are scattered tile by tile.

use crate::Result;
use crate::store::Decoded;

/// Gaps up to this number of bytes are read over, which is cheaper than another system call.
const GAP: u64 = 4 << 10;

/// Bytes fetched at once when elements have to be gathered from them. Fits the L2 cache.
const STAGING: u64 = 512 << 10;

/// Width of a tile in bytes: complete cache lines, few pages at a time.
const TILE: usize = 512;

/// An axis of the box, in output order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) count: u64,
    /// Distance in the store between neighbours, in bytes; may be negative.
    pub(crate) stride: i64,
}

/// A selection ready to be read.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    base: u64,
    /// Slowest first, without axes of length 1; contiguous neighbours are merged.
    axes: Vec<Axis>,
    element: usize,
    elements: u64,
    split: usize,
    rows: u64,
    inner: u64,
}

/// Consecutive elements of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Index of the first element in output order.
    pub first: u64,
    /// Number of elements.
    pub count: u64,
}

/// Buffers that a worker reuses from block to block.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) out: Vec<u8>,
    pub(crate) decoded: Decoded,
    pub(crate) staging: Vec<u8>,
    /// Physical values, and their bytes in the type of the array.
    pub(crate) numbers: Vec<f64>,
    pub(crate) values: Vec<u8>,
}

/// One axis of a block: strides in bytes in the store (`from`) and in the output (`to`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) count: u64,
    pub(crate) from: u64,
    pub(crate) to: i64,
}

impl Plan {
    /// A plan for the box at `base` with `axes` in output order (slowest first) and blocks of
    /// about `block_bytes`.
    pub(crate) fn new(base: u64, axes: &[Axis], element: usize, block_bytes: usize) -> Self {
        // An empty box; the product of its other counts may overflow.
        let empty = [Axis { count: 0, stride: 0 }];
        let axes = if axes.iter().any(|a| a.count == 0) { &empty } else { axes };
        let elements = axes.iter().map(|a| a.count).product();
        let mut merged: Vec<Axis> = Vec::with_capacity(axes.len());
        for axis in axes.iter().filter(|a| a.count != 1) {
            match merged.last_mut() {
                Some(outer) if Some(outer.stride) == span(axis) => {
                    *outer = Axis { count: outer.count * axis.count, stride: axis.stride };
                }
                _ => merged.push(*axis),
            }
        }
        // Elements of 0 bytes take no memory: one block holds any number of them.
        let per_block = block_bytes.checked_div(element).map_or(u64::MAX, |n| n.max(1) as u64);
        // The slowest axis whose inner part fits a block is split; the axes before it are iterated.
        let mut split = merged.len().saturating_sub(1);
        let mut inner = 1_u64;
        while split > 0 {
            let next = inner.saturating_mul(merged[split].count);
            if next > per_block {
                break;
            }
            inner = next;
            split -= 1;
        }
        let rows = (per_block / inner.max(1)).max(1);
        Self { base, axes: merged, element, elements, split, rows, inner }
    }

    pub(crate) fn elements(&self) -> u64 {
        self.elements
    }

    /// The first byte of the box in the store, if the box is contiguous.
    pub(crate) fn contiguous(&self) -> Option<u64> {
        match self.axes[..] {
            [] => Some(self.base),
            [axis] if axis.stride == self.element as i64 => Some(self.base),
            _ => None,
        }
    }

    fn parts(&self) -> u64 {
        self.axes.get(self.split).map_or(1, |axis| axis.count.div_ceil(self.rows))
    }

    pub(crate) fn blocks(&self) -> u64 {
        if self.elements == 0 {
            return 0;
        }
        self.parts() * self.axes.iter().take(self.split).map(|a| a.count).product::<u64>()
    }

    pub(crate) fn block(&self, number: u64) -> Block {
        let length = self.axes.get(self.split).map_or(1, |axis| axis.count);
        let (outer, part) = (number / self.parts(), number % self.parts());
        let row = part * self.rows;
        Block {
            first: (outer * length + row) * self.inner,
            count: self.rows.min(length - row) * self.inner,
        }
    }

    /// Reads block `number` into `scratch.out`. `fetch` fills a buffer from an offset of the store.
    pub(crate) fn read(
        &self,
        number: u64,
        scratch: &mut Scratch,
        fetch: &dyn Fn(u64, &mut [u8]) -> Result<()>,
    ) -> Result<Block> {
        let block = self.block(number);
        scratch.out.resize(block.count as usize * self.element, 0);
        let mut base = self.base as i64;
        let (mut outer, part) = (number / self.parts(), number % self.parts());
        for axis in self.axes[..self.split].iter().rev() {
            base += (outer % axis.count) as i64 * axis.stride;
            outer /= axis.count;
        }
        let mut steps = Vec::with_capacity(self.axes.len());
        let mut to = 0_i64;
        let mut width = self.element as i64;
        for (k, axis) in self.axes.iter().enumerate().skip(self.split).rev() {
            let mut count = axis.count;
            if k == self.split {
                let row = part * self.rows;
                base += row as i64 * axis.stride;
                count = self.rows.min(count - row);
            }
            let (mut from, mut step) = (axis.stride, width);
            width *= count as i64;
            if from < 0 {
                // Iterate the store forwards and the output backwards.
                base += from * (count as i64 - 1);
                to += step * (count as i64 - 1);
                (from, step) = (-from, -step);
            }
            steps.push(Step { count, from: from as u64, to: step });
        }
        let Scratch { out, staging, .. } = scratch;
        read_box(base as u64, steps, self.element, to, out, staging, fetch)?;
        Ok(block)
    }
}

fn span(axis: &Axis) -> Option<i64> {
    axis.stride.checked_mul(i64::try_from(axis.count).ok()?)
}

/// Reads a box into `out`, whose first element (all indices zero) goes to byte `to`.
pub(crate) fn read_box(
    base: u64,
    mut steps: Vec<Step>,
    element: usize,
    to: i64,
    out: &mut [u8],
    staging: &mut Vec<u8>,
    fetch: &dyn Fn(u64, &mut [u8]) -> Result<()>,
) -> Result<()> {
    if steps.iter().any(|s| s.count == 0) {
        return Ok(());
    }
    steps.sort_by_key(|s| s.from);
    let mut axes: Vec<Step> = Vec::with_capacity(steps.len());
    for step in steps.into_iter().filter(|s| s.count > 1) {
        match axes.last_mut() {
            Some(inner)
                if inner.from * inner.count == step.from
                    && inner.to * inner.count as i64 == step.to =>
            {
                inner.count *= step.count;
            }
            _ => axes.push(step),
        }
    }
    // Number of axes covered by one read: the gaps between their elements are small.
    let mut dense = 0;
    let mut span = element as u64;
    for axis in &axes {
        if axis.from.saturating_sub(span) > GAP || span > STAGING {
            break;
        }
        span += axis.from * (axis.count - 1);
        dense += 1;
    }
    let direct = match axes[..dense] {
        [] => true,
        [axis] => axis.from == element as u64 && axis.to == element as i64,
        _ => false,
    };
    let (inner, outer) = axes.split_at(dense);
    if direct {
        return walk(outer, base, to, &mut |from, to| {
            fetch(from, &mut out[to as usize..to as usize + span as usize])
        });
    }

    // Elements to be scattered go through the staging buffer. A dense axis that does not fit is
    // split; several spans whose elements are neighbours in the output form a tile.
    let mut inner = inner.to_vec();
    let mut outer = outer.to_vec();
    if span > STAGING
        && let Some(top) = inner.last_mut()
    {
        let below = span - top.from * (top.count - 1);
        let rows = (STAGING.saturating_sub(below) / top.from + 1).min(top.count);
        let (full, rest) = (top.count / rows, top.count % rows);
        let part = Step { count: rows, ..*top };
        let jump = Step { count: full, from: top.from * rows, to: top.to * rows as i64 };
        if rest > 0 {
            let mut tail: Vec<Step> = inner[..inner.len() - 1].to_vec();
            let top = inner[inner.len() - 1];
            tail.push(Step { count: rest, ..top });
            tail.extend(&outer);
            let done = full * rows;
            let (base, to) = (base + done * top.from, to + done as i64 * top.to);
            read_box(base, tail, element, to, out, staging, fetch)?;
        }
        if let Some(top) = inner.last_mut() {
            *top = part;
        }
        span = below + part.from * (rows - 1);
        outer.insert(0, jump);
    }
    let tile = outer.iter().position(|s| s.to.unsigned_abs() == element as u64).map(|k| {
        let axis = outer.remove(k);
        let width = (TILE / element.max(1)).max(1) as u64;
        (axis, width.min(STAGING / span.max(1)).clamp(1, axis.count))
    });
    let (across, width) = tile.unwrap_or((Step { count: 1, from: 0, to: element as i64 }, 1));
    staging.resize((span * width) as usize, 0);
    walk(&outer, base, to, &mut |from, to| {
        let mut done = 0;
        while done < across.count {
            let count = width.min(across.count - done);
            for k in 0..count {
                let at = (k * span) as usize;
                let buffer = &mut staging[at..at + span as usize];
                fetch(from + (done + k) * across.from, buffer)?;
            }
            let mut moves: Vec<Step> = inner.clone();
            moves.push(Step { count, from: span, to: across.to });
            let start = to + done as i64 * across.to;
            scatter(element, staging, &mut moves, out, start);
            done += count;
        }
        Ok(())
    })
}

/// Calls `visit` with the offsets in the store and in the output of every index of `axes`.
fn walk(
    axes: &[Step],
    from: u64,
    to: i64,
    visit: &mut dyn FnMut(u64, i64) -> Result<()>,
) -> Result<()> {
    let Some((last, rest)) = axes.split_last() else {
        return visit(from, to);
    };
    for k in 0..last.count {
        walk(rest, from + k * last.from, to + k as i64 * last.to, visit)?;
    }
    Ok(())
}

/// Copies elements from `staging` to `out`, in the innermost loop along the smallest output stride.
pub(crate) fn scatter(
    mut element: usize,
    staging: &[u8],
    moves: &mut Vec<Step>,
    out: &mut [u8],
    to: i64,
) {
    moves.retain(|s| s.count > 1);
    moves.sort_by_key(|s| s.to.unsigned_abs());
    // Elements contiguous on both sides are copied as one.
    let joined = |s: &Step, size: usize| s.from == size as u64 && s.to == size as i64;
    while let Some(first) = moves.first().filter(|s| joined(s, element)) {
        element *= first.count as usize;
        moves.remove(0);
    }
    match element {
        1 => scatter_sized::<1>(staging, moves, 0, out, to),
        2 => scatter_sized::<2>(staging, moves, 0, out, to),
        4 => scatter_sized::<4>(staging, moves, 0, out, to),
        8 => scatter_sized::<8>(staging, moves, 0, out, to),
        16 => scatter_sized::<16>(staging, moves, 0, out, to),
        _ => scatter_any(element, staging, moves, 0, out, to),
    }
}

fn scatter_sized<const N: usize>(
    staging: &[u8],
    moves: &[Step],
    from: usize,
    out: &mut [u8],
    to: i64,
) {
    match moves {
        [axis] if axis.to == N as i64 => {
            // Contiguous in the output: the common case of a transposed tile.
            let step = axis.from as usize;
            let row = &mut out[to as usize..to as usize + axis.count as usize * N];
            for (k, slot) in row.as_chunks_mut::<N>().0.iter_mut().enumerate() {
                let at = from + k * step;
                slot.copy_from_slice(&staging[at..at + N]);
            }
        }
        [rest @ .., axis] => {
            for k in 0..axis.count {
                let from = from + (k * axis.from) as usize;
                scatter_sized::<N>(staging, rest, from, out, to + k as i64 * axis.to);
            }
        }
        [] => out[to as usize..to as usize + N].copy_from_slice(&staging[from..from + N]),
    }
}

fn scatter_any(
    element: usize,
    staging: &[u8],
    moves: &[Step],
    from: usize,
    out: &mut [u8],
    to: i64,
) {
    let Some((axis, rest)) = moves.split_last() else {
        let to = to as usize;
        out[to..to + element].copy_from_slice(&staging[from..from + element]);
        return;
    };
    for k in 0..axis.count {
        let from = from + (k * axis.from) as usize;
        scatter_any(element, staging, rest, from, out, to + k as i64 * axis.to);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Reads all blocks of a box from a store whose bytes depend on their offset, compares with an
    /// element-wise copy, and returns the length of every fetch.
    fn read(base: u64, axes: &[(u64, i64)], element: usize, block_bytes: usize) -> Vec<usize> {
        let byte = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        let axes: Vec<Axis> = axes.iter().map(|&(count, stride)| Axis { count, stride }).collect();
        let plan = Plan::new(base, &axes, element, block_bytes);
        let fetches = RefCell::new(Vec::new());
        let fetch = |at: u64, buffer: &mut [u8]| {
            fetches.borrow_mut().push(buffer.len());
            buffer.iter_mut().zip(at..).for_each(|(slot, at)| *slot = byte(at));
            Ok(())
        };
        let mut expected = vec![base as i64];
        for axis in &axes {
            let along = |at: i64| (0..axis.count as i64).map(move |k| at + k * axis.stride);
            expected = expected.into_iter().flat_map(along).collect();
        }
        let mut scratch = Scratch::default();
        let mut next = 0;
        for number in 0..plan.blocks() {
            let block = plan.read(number, &mut scratch, &fetch).unwrap();
            let offsets = &expected[next..next + block.count as usize];
            let found = scratch.out.chunks(element);
            assert!(found.len() == offsets.len() && block.first == next as u64);
            for (found, at) in found.zip(offsets) {
                let right = found.iter().zip(*at as u64..).all(|(b, at)| *b == byte(at));
                assert!(right, "{axes:?} {element} {block_bytes}: byte {at} of the store");
            }
            next += offsets.len();
        }
        assert_eq!(next, expected.len());
        fetches.into_inner()
    }

    #[test]
    fn runs_longer_than_the_staging_buffer_are_split_without_loss() {
        for element in [1, 3, 8] {
            for stride in [1, 3] {
                let step = (element * stride) as i64;
                let full = STAGING / step as u64;
                for count in [full - 1, full, full + 1, full + 2, 2 * full + 1, 2 * full + 3] {
                    let base = count * step as u64;
                    read(base, &[(count, -step)], element, 16 << 20);
                    read(base, &[(count, step)], element, 16 << 20);
                    // Two rows, and with the long axis outside: elements are interleaved.
                    read(base, &[(2, 1 << 30), (count, -step)], element, 16 << 20);
                    read(base, &[(count, step), (2, 1 << 30)], element, 16 << 20);
                }
            }
        }
    }

    #[test]
    fn a_transposed_array_is_correct_in_blocks_of_any_size() {
        for (rows, columns) in [(700, 500), (3, 100_000), (100_000, 3), (65, 4097)] {
            for block_bytes in [4 << 10, 100_000, 16 << 20] {
                read(8, &[(columns, 4), (rows, 4 * columns as i64)], 4, block_bytes);
            }
        }
    }

    #[test]
    fn close_neighbours_share_a_read_and_far_ones_do_not() {
        // 32 numbers, 64 bytes apart: one read over all of them.
        assert_eq!(read(0, &[(32, 64)], 8, 1 << 20), [31 * 64 + 8]);
        // 8 KiB apart: the gaps are not read.
        assert_eq!(read(0, &[(32, 8 << 10)], 8, 1 << 20), [8; 32]);
        assert_eq!(read(0, &[(32, 8 << 10), (5, 8)], 8, 1 << 20), [40; 32]);
        // Complete rows are contiguous, and so is a complete array.
        assert_eq!(read(0, &[(4, 80), (10, 8)], 8, 1 << 20), [320]);
        assert!(read(0, &[(0, 80), (10, 8)], 8, 1 << 20).is_empty());
    }
}
