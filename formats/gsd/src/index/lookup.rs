//! Lookup of entries by frame and name. Entries are sorted by frame, and since 2.0 within a frame by
//! name, so that a lookup is a binary search. The order of all pages it visits is verified.

use std::ops::Range;
use std::sync::Arc;

use spile_core::Result;

use super::Index;
use super::pages::{PAGE, Page};
use crate::wire::{Entry, Form};

impl Index {
    /// Frame of the last entry.
    pub(crate) fn last_frame(&self) -> Result<u64> {
        if let Some(frame) = self.last_frame.get() {
            return Ok(*frame);
        }
        let frame = self.read_entry(self.count.saturating_sub(1))?.frame;
        Ok(*self.last_frame.get_or_init(|| frame))
    }

    /// The last page that starts before `frame`, or the first page: an exponential search from the page
    /// where the frame is if all frames have the same number of chunks.
    fn find_page(&self, frame: u64) -> Result<Arc<Page>> {
        // Pages before `low` start before `frame`, pages from `high` on do not.
        let (mut low, mut high) = (0, self.pages());
        // Frames of the pages next to those bounds, to verify the order.
        let (mut min, mut max) = (0, u64::MAX);
        let share = frame as f64 / (self.last_frame()? as f64 + 1.0);
        let mut probe = ((share * self.count as f64) as u64 / PAGE).min(high - 1);
        let mut step = 1;
        loop {
            let page = self.page(probe)?;
            let (first, last) = (page.first_frame, page.last_frame);
            if first < min {
                return Err(self.order_error(page.first, min));
            }
            if last > max {
                return Err(self.order_error(high * PAGE, last));
            }
            if first < frame && last >= frame {
                return Ok(page);
            }
            if first < frame {
                (low, min, probe) = (probe + 1, last, probe.saturating_add(step));
            } else {
                (high, max, probe) = (probe, first, probe.saturating_sub(step));
            }
            if low >= high {
                return self.page(high.saturating_sub(1));
            }
            if !(low..high).contains(&probe) {
                probe = low + (high - low) / 2;
            }
            step *= 2;
        }
    }

    /// Entries of a frame, if the index is in order: that of pages that were not visited is not verified, so
    /// entries of a range that continues on another page may be of another frame.
    pub(crate) fn frame_range(&self, frame: u64) -> Result<Range<u64>> {
        if self.count == 0 {
            return Ok(0..0);
        }
        let page = self.find_page(frame)?;
        let start = page.lower_bound(frame);
        let in_page = (start..page.len()).find(|at| page.frame(*at) != frame);
        let start = page.first + start as u64;
        let end = match (in_page, frame.checked_add(1)) {
            (Some(end), _) => page.first + end as u64,
            // The frame may continue on the next page.
            (None, Some(next)) => {
                let page = self.find_page(next)?;
                page.first + page.lower_bound(next) as u64
            }
            (None, None) => self.count,
        };
        Ok(start..end.max(start))
    }

    /// The first frame from `frame` on that has entries.
    pub(crate) fn next_frame(&self, frame: u64) -> Result<Option<u64>> {
        if self.count == 0 || frame > self.last_frame()? {
            return Ok(None);
        }
        let start = self.frame_range(frame)?.start;
        let next = if start < self.count { self.entry(start)?.frame } else { frame };
        // In an index that is not in order, reading the frame gives the error.
        Ok(Some(next.max(frame)))
    }

    /// Calls `each` with the number and the content of the entries of `range`, in order. Fails with gsd-012
    /// if one is not of `frame`.
    pub(crate) fn each_entry(
        &self,
        frame: u64,
        range: Range<u64>,
        mut each: impl FnMut(u64, Entry) -> Result<()>,
    ) -> Result<()> {
        let mut k = range.start;
        while k < range.end {
            let page = self.page(k / PAGE)?;
            let end = range.end.min(page.first + page.len() as u64);
            for k in k..end {
                if page.frame((k - page.first) as usize) != frame {
                    return Err(self.order_error(k, frame));
                }
                each(k, self.parse(page.entry_bytes((k - page.first) as usize))?)?;
            }
            k = end;
        }
        Ok(())
    }

    /// The last entry of `frame` with name `id` for which `accept` holds, and its number. Fails if there
    /// is none and the frame contains an entry without a valid name, which may be the one.
    pub(crate) fn find(
        &self,
        frame: u64,
        id: u32,
        accept: impl Fn(&Entry) -> bool,
    ) -> Result<Option<(u64, Entry)>> {
        let range = self.frame_range(frame)?;
        if self.form() == Form::V2 && range.end - range.start > PAGE {
            let found = self.find_sorted(range.clone(), id)?;
            let is_found = |entry: &Entry| entry.frame == frame && accept(entry);
            if let Some(found) = found.filter(|(_, entry)| is_found(entry)) {
                return Ok(Some(found));
            }
        }
        // Frames of old versions, and some of damaged files, are not sorted by name.
        let (mut found, mut unnamed) = (None, None);
        self.each_entry(frame, range, |k, entry| {
            if entry.id == id && accept(&entry) {
                found = Some((k, entry));
            } else if !self.names.contains(entry.id) {
                unnamed = Some((k, entry));
            }
            Ok(())
        })?;
        if let (None, Some((k, entry))) = (found, unnamed) {
            self.locate(k, &entry)?;
        }
        Ok(found)
    }

    /// The last entry with name `id` in a range that is sorted by name.
    fn find_sorted(&self, range: Range<u64>, id: u32) -> Result<Option<(u64, Entry)>> {
        let (mut low, mut high) = (range.start, range.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle)?.id <= id {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(k) = low.checked_sub(1).filter(|k| *k >= range.start) else { return Ok(None) };
        let entry = self.entry(k)?;
        Ok(Some((k, entry)).filter(|_| entry.id == id))
    }
}
