//! Reading a selection of an array in blocks.

use std::cell::RefCell;
use std::num::NonZero;
use std::ops::Range;
use std::sync::Mutex;

use rayon::prelude::*;

use super::{Array, Axes};
use crate::chunks::BlockRequest;
use crate::plan::{Axis, Block, Plan, Scratch};
use crate::select::Span;
use crate::store::{Store, read_extents};
use crate::{ByteOrder, Dataset, Error, Extents, Result, Shape, convert};

/// A fold has at most this number of tasks, and blocks as for `FOLD_THREADS` threads: results do not
/// depend on the actual number of threads.
const TASKS: u64 = 512;
pub(super) const FOLD_THREADS: usize = 16;

/// Bytes that a thread reads at once if they are not reordered.
const READ_INTO: usize = 2 << 20;

/// Bytes of one request of a remote source.
const REMOTE_READ: usize = 8 << 20;

/// A block as a unit of [`Selected::groups`].
fn one_block(number: u64) -> Range<u64> {
    number..number + 1
}

/// A pool of buffers: reusing them is faster than allocating memory for each task.
#[derive(Default)]
struct Pool(Mutex<Vec<Scratch>>);

impl Pool {
    fn with<R>(&self, work: impl FnOnce(&mut Scratch) -> R) -> R {
        // A poisoned lock means that another task panicked; the panic is propagated.
        let mut scratch = self.0.lock().ok().and_then(|mut pool| pool.pop()).unwrap_or_default();
        let result = work(&mut scratch);
        if let Ok(mut pool) = self.0.lock() {
            pool.push(scratch);
        }
        result
    }
}

/// A selection of an array in a given order.
pub struct Selected<'a> {
    pub(super) array: &'a Array,
    pub(super) spans: Vec<Span>,
    /// Dimensions from slowest to fastest in the output.
    pub(super) slowest: Vec<usize>,
    pub(super) axes: Vec<Axis>,
    pub(super) base: u64,
    pub(super) block_bytes: usize,
    pub(super) fold_bytes: usize,
}

impl Selected<'_> {
    /// The array.
    pub fn array(&self) -> &Array {
        self.array
    }

    /// Number of selected elements.
    pub fn count(&self) -> u64 {
        self.plan(self.block_bytes).elements()
    }

    /// The selected indices, one span per dimension of the array.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Shape of the result: dimensions selected by a single index are removed.
    pub fn shape(&self) -> Shape {
        let kept = self.spans.iter().filter(|s| !s.dropped).map(|s| s.count);
        Shape::new(kept.collect::<Vec<_>>())
    }

    /// The elements `first..first + count` of a selection with one dimension. Used to read several arrays side
    /// by side. Fails if the range exceeds the selection or more than one dimension has several indices.
    pub fn part(&self, first: u64, count: u64) -> Result<Self> {
        let end = first.saturating_add(count);
        let mut moving = self.spans.iter().enumerate().filter(|(_, s)| s.count != 1);
        let (one, more) = (moving.next(), moving.next());
        if end > self.count() || more.is_some() {
            let message =
                format!("elements {first} to {end} are not a range of a one-dimensional selection");
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

    /// Returns this selection in blocks of about `bytes`. Larger blocks are better if elements are reordered.
    pub fn with_block_bytes(mut self, bytes: usize) -> Self {
        (self.block_bytes, self.fold_bytes) = (bytes, bytes);
        self
    }

    /// Returns this selection in blocks of at most about `bytes`, for processing with large results.
    pub fn with_smaller_blocks(self, bytes: usize) -> Self {
        let bytes = bytes.min(self.block_bytes);
        self.with_block_bytes(bytes)
    }

    /// The plan for reading. Fails with `Limit` if most of the selection is not stored and it is large.
    fn checked_plan(&self, block_bytes: usize) -> Result<Plan> {
        let Array { store, dataset, dtype, .. } = self.array;
        store.check_work(&self.spans, dtype.size(), dataset)?;
        Ok(self.plan(block_bytes))
    }

    fn plan(&self, block_bytes: usize) -> Plan {
        Plan::new(self.base, &self.axes, self.array.dtype.size(), block_bytes)
    }

    /// Reads all elements, little-endian, into `out`, with all threads. Fails if the length of `out` is not
    /// that of the elements in bytes.
    pub fn read_into(&self, out: &mut [u8]) -> Result<()> {
        let size = self.array.dtype().size();
        let plan = self.checked_plan(self.block_bytes)?;
        let bytes = plan.elements().saturating_mul(size as u64);
        if out.len() as u64 != bytes {
            let message = format!("expected a buffer of {bytes} bytes, found {}", out.len());
            return Err(Error::argument(message));
        }
        let pool = Pool::default();
        let remote = self.array.source().is_remote();
        let direct = plan.contiguous().filter(|_| self.array.physical.is_none());
        if let (Some(start), Store::File(extents), true) = (direct, &self.array.store, remote) {
            return self.read_remote(extents, start, out);
        }
        let direct = direct.filter(|_| !remote);
        if let (Some(start), Some(element)) = (direct, NonZero::new(size)) {
            // Contiguous: read directly into `out`.
            let piece = (READ_INTO / element).max(1) * size;
            let Array { dataset, store, dtype, .. } = self.array;
            let fill = |(at, slot): (u64, &mut [u8])| {
                self.array.source().ensure_running()?;
                pool.with(|scratch| store.fetch(dataset, at, slot, &mut scratch.decoded))?;
                convert::to_little(*dtype, slot);
                Ok(())
            };
            // Short reads are faster on one thread.
            if out.len() <= piece {
                return fill((start, out));
            }
            let (mut rest, mut at, mut slots) = (out, start, Vec::new());
            while !rest.is_empty() {
                let len = store.piece(at, piece, rest.len(), element);
                let (slot, tail) = rest.split_at_mut(len);
                slots.push((at, slot));
                (rest, at) = (tail, at + len as u64);
            }
            return slots.into_par_iter().try_for_each(fill);
        }
        let mut rest = out;
        let mut slots = Vec::new();
        for number in 0..plan.blocks() {
            let len = plan.block(number).count as usize * size;
            let (slot, tail) = rest.split_at_mut(len);
            slots.push((number, slot));
            rest = tail;
        }
        let mut slots = slots.into_iter();
        self.groups(&plan, 0..plan.blocks(), one_block, |numbers, dataset| {
            let fill = |(number, slot): (u64, &mut [u8])| {
                pool.with(|scratch| {
                    self.block(&plan, number, dataset, scratch, &mut |_, bytes| {
                        slot.copy_from_slice(bytes);
                        Ok(())
                    })
                })
            };
            let count = usize::try_from(numbers.end - numbers.start).unwrap_or(usize::MAX);
            let slots: Vec<_> = slots.by_ref().take(count).collect();
            if slots.len() == 1 {
                return slots.into_iter().try_for_each(fill);
            }
            slots.into_par_iter().try_for_each(fill)
        })
    }

    /// Reads contiguous bytes of the file into `out`, with several requests at the same time.
    fn read_remote(&self, extents: &Extents, start: u64, out: &mut [u8]) -> Result<()> {
        let (mut slots, mut rest) = (Vec::new(), &mut *out);
        for piece in extents.pieces(start, rest.len() as u64) {
            let (mut slot, tail) = rest.split_at_mut(piece.len as usize);
            let mut at = piece.offset;
            rest = tail;
            while !slot.is_empty() {
                let (first, others) = slot.split_at_mut(slot.len().min(REMOTE_READ));
                let len = first.len() as u64;
                slots.push((at, first));
                (slot, at) = (others, at + len);
            }
        }
        if !rest.is_empty() {
            return read_extents(self.array.source(), extents, start, out);
        }
        self.array.source().read_slots(slots)?;
        convert::to_little(self.array.dtype, out);
        Ok(())
    }

    /// Calls `each` with all blocks in order, on the calling thread. Elements are little-endian.
    pub fn stream(&self, mut each: impl FnMut(Block, &[u8]) -> Result<()>) -> Result<()> {
        let plan = self.checked_plan(self.block_bytes)?;
        let mut scratch = Scratch::default();
        self.groups(&plan, 0..plan.blocks(), one_block, |mut numbers, dataset| {
            numbers.try_for_each(|number| {
                self.block(&plan, number, dataset, &mut scratch, &mut |block, bytes| {
                    each(block, bytes)
                })
            })
        })
    }

    /// Calls `each` with all blocks, on all threads, in any order. Elements are little-endian.
    pub fn for_each(&self, each: impl Fn(Block, &[u8]) -> Result<()> + Sync) -> Result<()> {
        let plan = self.checked_plan(self.block_bytes)?;
        let pool = Pool::default();
        for wave in self.waves(plan.blocks()) {
            self.groups(&plan, wave, one_block, |numbers, dataset| {
                let work = |number: u64| {
                    pool.with(|scratch| {
                        self.block(&plan, number, dataset, scratch, &mut |block, bytes| {
                            each(block, bytes)
                        })
                    })
                };
                numbers.into_par_iter().try_for_each(work)
            })?;
        }
        Ok(())
    }

    /// Folds the blocks on all threads. Consecutive blocks are folded in order and the partial results merged
    /// in order, so the result does not depend on the number of threads.
    pub fn fold<A: Send>(
        &self,
        start: impl Fn() -> A + Sync,
        step: impl Fn(&mut A, Block, &[u8]) -> Result<()> + Sync,
        merge: impl Fn(A, A) -> A,
    ) -> Result<A> {
        let plan = self.checked_plan(self.fold_bytes)?;
        let blocks = plan.blocks();
        let tasks = blocks.min(TASKS);
        let pool = Pool::default();
        let numbers = |task: u64| blocks * task / tasks..blocks * (task + 1) / tasks;
        let task = |task: u64, dataset: &Dataset| -> Result<A> {
            let mut part = start();
            pool.with(|scratch| -> Result<()> {
                for number in numbers(task) {
                    self.block(&plan, number, dataset, scratch, &mut |block, bytes| {
                        step(&mut part, block, bytes)
                    })?;
                }
                Ok(())
            })?;
            Ok(part)
        };
        let mut all = Some(start());
        for wave in self.waves(tasks) {
            self.groups(&plan, wave, numbers, |tasks, dataset| {
                let done = tasks.into_par_iter().map(|number| task(number, dataset));
                let done: Vec<A> = done.collect::<Result<_>>()?;
                all = done.into_iter().fold(all.take(), |all, part| match all {
                    Some(all) => Some(merge(all, part)),
                    None => Some(part),
                });
                Ok(())
            })?;
        }
        Ok(all.unwrap_or_else(start))
    }

    /// Calls `work` with blocks on all threads, and `each` with the results in order on the calling thread. A
    /// few blocks are processed at a time, so that memory is bounded.
    pub fn ordered<T: Send>(
        &self,
        work: impl Fn(Block, &[u8]) -> Result<T> + Sync,
        mut each: impl FnMut(T) -> Result<()>,
    ) -> Result<()> {
        let plan = self.checked_plan(self.block_bytes)?;
        let blocks = plan.blocks();
        let batch = (2 * rayon::current_num_threads() as u64).min(self.concurrent());
        let pool = Pool::default();
        let one = |number, dataset: &Dataset| -> Result<Option<T>> {
            let mut result = None;
            pool.with(|scratch| {
                self.block(&plan, number, dataset, scratch, &mut |block, bytes| {
                    result = Some(work(block, bytes)?);
                    Ok(())
                })
            })?;
            Ok(result)
        };
        self.groups(&plan, 0..blocks, one_block, |numbers, dataset| {
            let mut first = numbers.start;
            while first < numbers.end {
                let end = numbers.end.min(first.saturating_add(batch));
                let done: Vec<T> = (first..end)
                    .into_par_iter()
                    .map(|number| one(number, dataset))
                    .filter_map(Result::transpose)
                    .collect::<Result<_>>()?;
                done.into_iter().try_for_each(&mut each)?;
                first = end;
            }
            Ok(())
        })
    }

    /// Number of blocks that are read at the same time: as many as the threads take, fewer for large chunks.
    pub(super) fn concurrent(&self) -> u64 {
        match &self.array.store {
            Store::Chunked(chunks) if chunks.threads() < rayon::current_num_threads() => {
                chunks.threads() as u64
            }
            _ => u64::MAX,
        }
    }

    /// Ranges of `count` tasks, one after the other, whose tasks may run at the same time.
    fn waves(&self, count: u64) -> impl Iterator<Item = Range<u64>> {
        let size = self.concurrent().min(count.max(1));
        (0..count.div_ceil(size)).map(move |k| k * size..count.min((k + 1) * size))
    }

    /// Calls `each` with block `number` of the plan, read from the bytes of `dataset` and converted to physical values
    /// where the array has them.
    fn block(
        &self,
        plan: &Plan,
        number: u64,
        dataset: &Dataset,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(Block, &[u8]) -> Result<()>,
    ) -> Result<()> {
        // Values need not be read from a file.
        self.array.source().ensure_running()?;
        let Some(stored) = &self.array.physical else {
            return self.stored_block(plan, number, dataset, scratch, each);
        };
        let count = plan.block(number).count;
        self.array.limits().allow(count.saturating_mul(16), "a block of physical values")?;
        let mut numbers = std::mem::take(&mut scratch.numbers);
        let mut values = std::mem::take(&mut scratch.values);
        let done = self.stored_block(plan, number, dataset, scratch, &mut |block, bytes| {
            each(block, stored.convert(bytes, &mut numbers, &mut values))
        });
        (scratch.numbers, scratch.values) = (numbers, values);
        done
    }

    fn stored_block(
        &self,
        plan: &Plan,
        number: u64,
        dataset: &Dataset,
        scratch: &mut Scratch,
        each: &mut dyn FnMut(Block, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (array, size) = (self.array, self.array.dtype.size());
        let swap = array.dtype.needs_swap(ByteOrder::Little);
        if !swap && let (Some(start), Some(all)) = (plan.contiguous(), array.stored_view()) {
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
            let request = BlockRequest { spans: &self.spans, slowest: &self.slowest, block };
            chunks.read(dataset, &request, out, staging)?;
            convert::to_little(array.dtype, out);
            return each(block, out);
        }
        let kept = RefCell::new(std::mem::take(&mut scratch.decoded));
        let fetch =
            |at, buffer: &mut [u8]| array.store.fetch(dataset, at, buffer, &mut kept.borrow_mut());
        let block = plan.read(number, scratch, &fetch)?;
        scratch.decoded = kept.into_inner();
        convert::to_little(array.dtype, &mut scratch.out);
        each(block, &scratch.out)
    }
}
