//! Reading from remote sources: the bytes of several blocks are read ahead, with few large requests at the same time.

use std::cell::RefCell;
use std::ops::Range;

use super::Selected;
use crate::chunks::BlockRequest;
use crate::plan::{Plan, Scratch};
use crate::source::{Requests, window};
use crate::store::Store;
use crate::{Dataset, Result};

impl Selected<'_> {
    /// Calls `run` with consecutive ranges of `units`, and the dataset whose bytes are read ahead for them. A unit is
    /// the blocks that `blocks` returns. For sources that are not remote there is one range.
    pub(super) fn groups(
        &self,
        plan: &Plan,
        units: Range<u64>,
        blocks: impl Fn(u64) -> Range<u64>,
        mut run: impl FnMut(Range<u64>, &Dataset) -> Result<()>,
    ) -> Result<()> {
        let dataset = &self.array.dataset;
        if !dataset.source().is_remote() || !self.array.store.is_planned() {
            return run(units, dataset);
        }
        let window = window(dataset.limits().memory);
        let mut scratch = Scratch::default();
        let mut first = units.start;
        // The requests of the unit that did not fit into the last group.
        let mut pending = None;
        while first < units.end {
            let (mut end, mut group) = (first, Requests::new(window));
            while end < units.end {
                let unit = match pending.take() {
                    Some(unit) => unit,
                    None => self.requests(plan, blocks(end), &mut scratch)?,
                };
                if end > first && group.bytes().saturating_add(unit.bytes()) > window {
                    pending = Some(unit);
                    break;
                }
                group.append(&unit);
                end += 1;
                // A larger unit is read alone, in order.
                if group.bytes() > window {
                    break;
                }
            }
            if group.is_empty() {
                run(first..end, dataset)?;
            } else {
                // All of it is loaded at once, so that the order does not matter.
                let group = if group.bytes() <= window { group.sorted(window) } else { group };
                let source = dataset.source().ahead(group, window);
                run(first..end, &Dataset::of_bytes(source, dataset.limits()))?;
            }
            first = end;
        }
        Ok(())
    }

    /// The requests that read `blocks`, in the order of reading.
    fn requests(&self, plan: &Plan, blocks: Range<u64>, scratch: &mut Scratch) -> Result<Requests> {
        let array = self.array;
        let requests = RefCell::new(Requests::new(window(array.limits().memory)));
        for number in blocks {
            array.source().ensure_running()?;
            let block = plan.block(number);
            let needed = block.count.saturating_mul(array.dtype.size() as u64);
            array.limits().allow(needed, "a block of elements")?;
            if let Store::Chunked(chunks) = &array.store {
                let request = BlockRequest { spans: &self.spans, slowest: &self.slowest, block };
                chunks.extents(&request, |extents| {
                    let mut requests = requests.borrow_mut();
                    extents.parts().iter().for_each(|part| requests.add(part.offset, part.len));
                })?;
                continue;
            }
            let add = |at: u64, buffer: &mut [u8]| {
                let mut requests = requests.borrow_mut();
                array
                    .store
                    .pieces(at, buffer.len() as u64, |offset, len| requests.add(offset, len));
                Ok(())
            };
            plan.read(number, scratch, &add)?;
        }
        Ok(requests.into_inner())
    }
}
