//! A part of an array, handed out in blocks.

use std::cell::RefCell;
use std::num::NonZero;
use std::sync::Mutex;

use rayon::prelude::*;

use super::{Array, Axes};
use crate::chunks::Wanted;
use crate::convert;
use crate::error::{Error, Result};
use crate::plan::{Axis, Block, Plan, Scratch};
use crate::select::Span;
use crate::shape::Shape;
use crate::store::Store;
use crate::wire::ByteOrder;

/// A fold is cut into at most this many tasks, in blocks as they are for this many threads;
/// results do not depend on the number of threads because the cut does not.
const TASKS: u64 = 512;
pub(super) const FOLD_THREADS: usize = 16;

/// Bytes that a thread reads at once where nothing has to be done with them.
const READ_INTO: usize = 2 << 20;

/// Buffers that are not in use. Fresh memory is slow, so a task takes up the buffers that another
/// one has put down.
#[derive(Default)]
struct Shelf(Mutex<Vec<Scratch>>);

impl Shelf {
    fn lend<R>(&self, work: impl FnOnce(&mut Scratch) -> R) -> R {
        // A poisoned shelf belongs to a panic that is already on its way up.
        let mut scratch = self.0.lock().ok().and_then(|mut shelf| shelf.pop()).unwrap_or_default();
        let result = work(&mut scratch);
        if let Ok(mut shelf) = self.0.lock() {
            shelf.push(scratch);
        }
        result
    }
}

/// A part of an array in a given order.
pub struct Selected<'a> {
    pub(super) array: &'a Array,
    pub(super) spans: Vec<Span>,
    /// The dimensions in the order of the output.
    pub(super) slowest: Vec<usize>,
    pub(super) axes: Vec<Axis>,
    pub(super) base: u64,
    pub(super) block_bytes: usize,
    pub(super) fold_bytes: usize,
}

impl Selected<'_> {
    /// The array it is a part of.
    pub fn array(&self) -> &Array {
        self.array
    }

    /// Number of elements.
    pub fn count(&self) -> u64 {
        self.plan(self.block_bytes).elements()
    }

    /// What was selected, per dimension of the array.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Lengths of the dimensions that are left: those not asked for by a single index.
    pub fn shape(&self) -> Shape {
        let kept = self.spans.iter().filter(|s| !s.dropped).map(|s| s.count);
        Shape::new(kept.collect::<Vec<_>>())
    }

    /// Elements `first` to `first + count`, not included, of a selection along one dimension: so
    /// that several arrays can be read side by side whatever their element types are.
    pub fn part(&self, first: u64, count: u64) -> Result<Self> {
        let end = first.checked_add(count).filter(|end| *end <= self.count());
        let mut moving = self.spans.iter().enumerate().filter(|(_, s)| s.count != 1);
        let (one, more) = (moving.next(), moving.next());
        if end.is_none() || more.is_some() {
            let message = format!("{count} elements from {first} on are no run of the selection");
            return Err(Error::argument(message));
        }
        let mut spans = self.spans.clone();
        if let Some((k, span)) = one {
            let start = span.start.wrapping_add_signed(first as i64 * span.step);
            spans[k] = Span { start: if count == 0 { 0 } else { start }, count, ..*span };
        } else if let Some(span) = spans.first_mut() {
            span.count = count;
        }
        self.array.select_spans(spans, Axes::Stored)
    }

    /// The same in blocks of about `bytes`; larger ones suit a change of order.
    pub fn with_block_bytes(mut self, bytes: usize) -> Self {
        (self.block_bytes, self.fold_bytes) = (bytes, bytes);
        self
    }

    /// The same in blocks of at most about `bytes`, for work whose result is much longer.
    pub fn with_smaller_blocks(self, bytes: usize) -> Self {
        let bytes = bytes.min(self.block_bytes);
        self.with_block_bytes(bytes)
    }

    fn plan(&self, block_bytes: usize) -> Plan {
        Plan::new(self.base, &self.axes, self.array.dtype.size(), block_bytes)
    }

    /// Fills memory of the caller's with all elements, on all threads: the shortest path from the
    /// file to the place where they are wanted.
    pub fn read_into(&self, out: &mut [u8]) -> Result<()> {
        let size = self.array.dtype.size();
        let plan = self.plan(self.block_bytes);
        let bytes = plan.elements().saturating_mul(size as u64);
        if out.len() as u64 != bytes {
            let message = format!("memory of {} bytes for {bytes} bytes of elements", out.len());
            return Err(Error::argument(message));
        }
        let shelf = Shelf::default();
        if let (Some(start), Some(element)) = (plan.contiguous(), NonZero::new(size)) {
            // One run: read where it belongs, with no block in between.
            let piece = (READ_INTO / element).max(1) * size;
            let Array { store, dtype, .. } = self.array;
            let (source, limits) = (self.array.source(), self.array.limits());
            let fill = |(at, place): (u64, &mut [u8])| {
                shelf
                    .lend(|scratch| store.fetch(source, limits, at, place, &mut scratch.decoded))?;
                convert::to_little(*dtype, place);
                Ok(())
            };
            // Waking other threads would take longer.
            if out.len() <= piece {
                return fill((start, out));
            }
            let (mut rest, mut at, mut places) = (out, start, Vec::new());
            while !rest.is_empty() {
                let len = store.piece(at, piece, rest.len(), element);
                let (place, behind) = rest.split_at_mut(len);
                places.push((at, place));
                (rest, at) = (behind, at + len as u64);
            }
            return places.into_par_iter().try_for_each(fill);
        }
        let mut rest = out;
        let mut places = Vec::new();
        for number in 0..plan.blocks() {
            let len = plan.block(number).count as usize * size;
            let (place, behind) = rest.split_at_mut(len);
            places.push((number, place));
            rest = behind;
        }
        let fill = |(number, place): (u64, &mut [u8])| {
            shelf.lend(|scratch| {
                self.block(&plan, number, scratch, &mut |_, bytes| {
                    place.copy_from_slice(bytes);
                    Ok(())
                })
            })
        };
        if places.len() == 1 {
            return places.into_iter().try_for_each(fill);
        }
        places.into_par_iter().try_for_each(fill)
    }

    /// Hands out the blocks one after the other.
    pub fn stream(&self, mut each: impl FnMut(Block, &[u8]) -> Result<()>) -> Result<()> {
        let plan = self.plan(self.block_bytes);
        let mut scratch = Scratch::default();
        for number in 0..plan.blocks() {
            self.block(&plan, number, &mut scratch, &mut |block, bytes| each(block, bytes))?;
        }
        Ok(())
    }

    /// Hands out the blocks to all threads, in no order.
    pub fn for_each(&self, each: impl Fn(Block, &[u8]) -> Result<()> + Sync) -> Result<()> {
        let plan = self.plan(self.block_bytes);
        let shelf = Shelf::default();
        (0..plan.blocks()).into_par_iter().try_for_each(|number| {
            shelf.lend(|scratch| {
                self.block(&plan, number, scratch, &mut |block, bytes| each(block, bytes))
            })
        })
    }

    /// Folds the blocks on all threads. Neighbouring blocks are folded one after the other and
    /// the parts merged in order, so the result is the same for any number of threads.
    pub fn fold<A: Send>(
        &self,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, Block, &[u8]) -> Result<()> + Sync,
        merge: impl Fn(A, A) -> A,
    ) -> Result<A> {
        let plan = self.plan(self.fold_bytes);
        let blocks = plan.blocks();
        let tasks = blocks.min(TASKS);
        let shelf = Shelf::default();
        let task = |task: u64| -> Result<A> {
            let mut part = start();
            shelf.lend(|scratch| -> Result<()> {
                for number in blocks * task / tasks..blocks * (task + 1) / tasks {
                    self.block(&plan, number, scratch, &mut |block, bytes| {
                        step(&mut part, block, bytes)
                    })?;
                }
                Ok(())
            })?;
            Ok(part)
        };
        let parts: Vec<A> = (0..tasks).into_par_iter().map(task).collect::<Result<_>>()?;
        Ok(parts.into_iter().fold(start(), merge))
    }

    /// Lets all threads work on the blocks and hands the results to `each` in order, a few blocks
    /// at a time, so that memory stays bounded.
    pub fn ordered<T: Send>(
        &self,
        work: impl Fn(Block, &[u8]) -> Result<T> + Sync,
        mut each: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let plan = self.plan(self.block_bytes);
        let blocks = plan.blocks();
        let batch = 2 * rayon::current_num_threads() as u64;
        let shelf = Shelf::default();
        let one = |number| -> Result<Option<T>> {
            let mut result = None;
            shelf.lend(|scratch| {
                self.block(&plan, number, scratch, &mut |block, bytes| {
                    result = Some(work(block, bytes)?);
                    Ok(())
                })
            })?;
            Ok(result)
        };
        let mut first = 0;
        while first < blocks {
            let end = blocks.min(first + batch);
            let done: Vec<T> = (first..end)
                .into_par_iter()
                .map(one)
                .filter_map(Result::transpose)
                .collect::<Result<_>>()?;
            done.into_iter().try_for_each(&mut each)?;
            first = end;
        }
        Ok(())
    }

    fn block(
        &self,
        plan: &Plan,
        number: u64,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(Block, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (array, size) = (self.array, self.array.dtype.size());
        let swap = array.dtype.needs_swap(ByteOrder::Little);
        if !swap && let (Some(start), Some(all)) = (plan.contiguous(), array.view()) {
            let block = plan.block(number);
            let from = start as usize + block.first as usize * size;
            return each(block, &all[from..from + block.count as usize * size]);
        }
        let needed = plan.block(number).count.saturating_mul(size as u64);
        array.limits().allow(needed, "a block of elements")?;
        if let Store::Chunked(chunks) = &array.store
            && !chunks.is_flat()
        {
            let block = plan.block(number);
            let Scratch { out, staging, .. } = scratch;
            out.resize(needed as usize, 0);
            let (source, limits) = (array.source(), array.limits());
            let wanted = Wanted { spans: &self.spans, slowest: &self.slowest, block };
            chunks.read(source, limits, &wanted, out, staging)?;
            convert::to_little(array.dtype, out);
            return each(block, out);
        }
        let kept = RefCell::new(std::mem::take(&mut scratch.decoded));
        let fetch = |at, buffer: &mut [u8]| {
            array.store.fetch(array.source(), array.limits(), at, buffer, &mut kept.borrow_mut())
        };
        let block = plan.read(number, scratch, &fetch)?;
        scratch.decoded = kept.into_inner();
        convert::to_little(array.dtype, &mut scratch.out);
        each(block, &scratch.out)
    }
}
