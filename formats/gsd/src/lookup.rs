//! Finding entries: the page of a frame is mostly guessed right, because frames mostly have the same
//! number of chunks.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use spile_core::error::Result;

use crate::even::Even;
use crate::index::Index;
use crate::pages::{LISTED, MOST_HELD, PAGE, Page, UNKNOWN, frame_of, key};
use crate::place::Place;
use crate::wire::{Entry, Form};

/// Most entries that are read to see one frame in an index that is not kept.
const GLANCE: u64 = 16;

/// Guesses before bisection takes over, which needs no luck.
const GUESSES: u32 = 3;

/// The first entry in `bytes` of that frame or a later one.
fn lower_in(bytes: &[u8], size: usize, frame: u64) -> usize {
    let (mut low, mut high) = (0, bytes.len() / size);
    while low < high {
        let middle = usize::midpoint(low, high);
        if frame_of(&bytes[middle * size..]) < frame {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

impl Index {
    /// The number of a name. Names are mostly asked for in their order.
    #[inline]
    pub(crate) fn name_id(&self, name: &str) -> Option<u32> {
        let likely = self.pages.name.load(Ordering::Relaxed);
        let likely = if likely as usize >= self.names.len() { 0 } else { likely };
        let right = !name.is_empty() && self.names.raw(likely) == name.as_bytes();
        // Of two equal names the first counts, which only the table knows.
        let id = if right && self.names.are_distinct() { likely } else { self.any_name_id(name)? };
        self.pages.name.store(id + 1, Ordering::Relaxed);
        Some(id)
    }

    #[cold]
    fn any_name_id(&self, name: &str) -> Option<u32> {
        self.names.id(name.as_bytes())
    }

    /// The frame of a page's first entry.
    fn fence(&self, page: u64) -> Result<u64> {
        let fences = self
            .pages
            .fences
            .get_or_init(|| (0..self.pages()).map(|_| AtomicU64::new(UNKNOWN)).collect());
        let Some(fence) = fences.get(page as usize) else { return Ok(UNKNOWN) };
        let mut frame = fence.load(Ordering::Relaxed);
        if frame == UNKNOWN {
            // Every thread that comes here reads the same.
            frame = self.fresh(page * PAGE)?.frame;
            fence.store(frame, Ordering::Relaxed);
        }
        Ok(frame)
    }

    /// The frame of the last entry; there is one.
    pub(crate) fn last_frame(&self) -> Result<u64> {
        if let Some(frame) = self.pages.frame.get() {
            return Ok(*frame);
        }
        let frame = self.fresh(self.count.saturating_sub(1))?.frame;
        Ok(*self.pages.frame.get_or_init(|| frame))
    }

    /// Chunks of a frame, on average.
    fn each(&self) -> Result<f64> {
        if let Some(each) = self.pages.each.get() {
            return Ok(*each);
        }
        let each = self.count as f64 / (self.last_frame()? as f64 + 1.0);
        Ok(*self.pages.each.get_or_init(|| each))
    }

    /// The entry at which a frame begins if all frames have the same number of chunks. Whatever
    /// rounding does to it, it is a guess.
    fn guess(&self, frame: u64) -> Result<u64> {
        Ok(((frame as f64 * self.each()?) as u64).min(self.count.saturating_sub(1)))
    }

    /// The entry of that frame and name if every frame has every chunk.
    #[inline]
    fn regular(&self, frame: u64, id: u32) -> u64 {
        frame.wrapping_mul(self.names.len() as u64).wrapping_add(u64::from(id))
    }

    /// The first entry of that frame or a later one.
    fn lower(&self, frame: u64) -> Result<u64> {
        Ok(self.lower_page(frame)?.0)
    }

    /// The same, and the page it is in, unless that is another one than expected.
    fn lower_page(&self, frame: u64) -> Result<(u64, Option<Page<'_>>)> {
        if self.count == 0 {
            return Ok((0, None));
        }
        // The answer lies in one of these pages, or at the end of the last.
        let (mut low, mut high) = (0, self.pages());
        let guess = self.guess(frame)?;
        let (mut page, size) = (guess / PAGE, self.size());
        for _ in 0..GUESSES {
            let bytes = self.page(page)?;
            // Right at once, as it mostly is where all frames are alike.
            let place = (guess % PAGE) as usize * size;
            if page == guess / PAGE
                && place >= size
                && frame_of(&bytes[place - size..]) < frame
                && frame_of(&bytes[place..]) >= frame
            {
                self.pages.last.store(page, Ordering::Relaxed);
                return Ok((guess, Some(bytes)));
            }
            if frame_of(&bytes[bytes.len() - size..]) < frame {
                low = page + 1;
                page = low;
            } else if page > 0 && frame_of(&bytes) >= frame {
                high = page;
                page = high - 1;
            } else {
                self.pages.last.store(page, Ordering::Relaxed);
                return Ok((page * PAGE + lower_in(&bytes, size, frame) as u64, Some(bytes)));
            }
            if low >= high {
                return Ok(((low * PAGE).min(self.count), None));
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.fence(middle)? < frame {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(page) = low.checked_sub(1) else { return Ok((0, None)) };
        self.pages.last.store(page, Ordering::Relaxed);
        let bytes = self.page(page)?;
        Ok((page * PAGE + lower_in(&bytes, size, frame) as u64, None))
    }

    /// The entries of a frame.
    pub(crate) fn frame(&self, frame: u64) -> Result<Range<u64>> {
        let first = self.lower(frame)?;
        let end = match frame.checked_add(1) {
            Some(next) => self.lower(next)?,
            None => self.count,
        };
        Ok(first..end.max(first))
    }

    /// Hands out the entries of a frame.
    pub(crate) fn each_of_frame(
        &self,
        frame: u64,
        mut each: impl FnMut(u64, Entry) -> Result<()>,
    ) -> Result<()> {
        let (mut k, mut page) = self.lower_page(frame)?;
        while k < self.count {
            let bytes = match page.take() {
                Some(bytes) => bytes,
                None => self.page(k / PAGE)?,
            };
            let size = self.size();
            for bytes in bytes[(k % PAGE) as usize * size..].chunks_exact(size) {
                if frame_of(bytes) != frame {
                    return Ok(());
                }
                each(k, self.parse(bytes)?)?;
                k += 1;
            }
        }
        Ok(())
    }

    /// The entry of that frame and name, if it is in one of the two places where it mostly is: where
    /// it must be if every frame has every chunk, or behind the entry that was found before. Who
    /// reads in order never looks further, and never at the rest of a frame.
    #[inline]
    fn likely(&self, frame: u64, id: u32) -> Option<(u64, &[u8; LISTED])> {
        let held = self.pages.held.get()?;
        let at = |k: u64| {
            let page = held.get(usize::try_from(k / PAGE).ok()?)?.get()?;
            let (entries, _) = page.bytes().as_chunks();
            let entry = entries.get((k % PAGE) as usize)?;
            // Behind the page there may be another one of the same name.
            let right = page.plain && key(entry) == (frame, id) && !(k + 1).is_multiple_of(PAGE);
            right.then_some((k, entry))
        };
        let regular = self.regular(frame, id);
        let found = at(regular).or_else(|| at(self.pages.next.load(Ordering::Relaxed)))?;
        self.pages.next.store(found.0 + 1, Ordering::Relaxed);
        Some(found)
    }

    /// The entry of that frame and name, if it is in an even page, once the pages were looked at that
    /// decide it.
    fn even(&self, frame: u64, id: u32) -> Result<Option<Even>> {
        let Some(pattern) = self.pages.pattern.get() else { return Ok(None) };
        while let Some(page) = pattern.unseen(frame, id) {
            self.look_at(pattern, page)?;
        }
        Ok(pattern.find(frame, id))
    }

    /// Where the data of that frame and name begin and how long they are. The shortest way, and as few
    /// instructions as can be: after a system call hardly any of them is in the processor's cache.
    #[inline]
    pub(crate) fn find_data(&self, frame: u64, id: u32) -> Result<Option<(u64, u64)>> {
        match self.pages.pattern.get().and_then(|pattern| pattern.find(frame, id)) {
            Some(Even { offset, len, .. }) => Ok(Some((offset, len))),
            None => self.find_data_elsewhere(frame, id),
        }
    }

    /// The same where the page is not even or nobody has looked at it.
    #[inline(never)]
    fn find_data_elsewhere(&self, frame: u64, id: u32) -> Result<Option<(u64, u64)>> {
        if let Some(Even { offset, len, .. }) = self.even(frame, id)? {
            return Ok(Some((offset, len)));
        }
        let likely = self.likely(frame, id);
        let place = match likely.and_then(|(_, entry)| Place::stated(&Entry::listed(entry))) {
            None => self.find_place(frame, id)?,
            found => found,
        };
        Ok(place.map(|Place { offset, len, .. }| (offset, len)))
    }

    #[cold]
    fn find_place(&self, frame: u64, id: u32) -> Result<Option<Place>> {
        let found = self.find(frame, id, |_| true)?;
        found.map(|(k, entry)| self.place(k, &entry)).transpose()
    }

    /// The last entry of that frame and name that is `wanted`. An error if there is none, but an
    /// entry of that frame whose name cannot be known.
    #[inline]
    pub(crate) fn find(
        &self,
        frame: u64,
        id: u32,
        wanted: impl Fn(&Entry) -> bool,
    ) -> Result<Option<(u64, Entry)>> {
        let found = match (self.even(frame, id)?, self.pages.pattern.get()) {
            (Some(found), Some(pattern)) => pattern.entry(frame, id, &found),
            _ => match self.likely(frame, id) {
                None => self.glance(frame, id)?,
                found => found.map(|(k, entry)| (k, Entry::listed(entry))),
            },
        };
        match found.filter(|(_, entry)| wanted(entry)) {
            None => self.search(frame, id, wanted),
            found => Ok(found),
        }
    }

    /// The same, in the whole frame.
    fn search(
        &self,
        frame: u64,
        id: u32,
        wanted: impl Fn(&Entry) -> bool,
    ) -> Result<Option<(u64, Entry)>> {
        let (first, mut page) = self.lower_page(frame)?;
        let (mut k, mut found, mut nameless) = (first, None, None);
        let (size, mut sorted) = (self.size(), false);
        while k < self.count {
            // Long frames of newer files are sorted by name.
            if k > first && !sorted && self.form() == Form::List {
                sorted = true;
                let found = self.find_sorted(self.frame(frame)?, id)?;
                if let Some(found) = found.filter(|(_, entry)| wanted(entry)) {
                    return Ok(Some(found));
                }
            }
            let bytes = match page.take() {
                Some(bytes) => bytes,
                None => self.page(k / PAGE)?,
            };
            for bytes in bytes[(k % PAGE) as usize * size..].chunks_exact(size) {
                if frame_of(bytes) != frame {
                    return self.answer(found, nameless);
                }
                if self.form().may_have_name(bytes, id, self.names.len()) {
                    let entry = self.parse(bytes)?;
                    if entry.id == id && wanted(&entry) {
                        found = Some((k, entry));
                    } else if !self.names.has(entry.id) {
                        nameless = Some((k, entry));
                    }
                }
                k += 1;
            }
        }
        self.answer(found, nameless)
    }

    /// What is known of an entry that was looked for in its whole frame.
    fn answer(
        &self,
        found: Option<(u64, Entry)>,
        nameless: Option<(u64, Entry)>,
    ) -> Result<Option<(u64, Entry)>> {
        match (found, nameless) {
            (Some((k, _)), _) => self.pages.next.store(k + 1, Ordering::Relaxed),
            (None, Some((k, entry))) => drop(self.place(k, &entry)?),
            (None, None) => {}
        }
        Ok(found)
    }

    /// Looks for an entry of a large index where it must be if every frame has the same chunks,
    /// without reading a whole page: for who jumps about.
    fn glance(&self, frame: u64, id: u32) -> Result<Option<(u64, Entry)>> {
        if self.pages() <= MOST_HELD || self.form() != Form::List {
            return Ok(None);
        }
        let (guess, each) = (self.guess(frame)?, self.each()?);
        if (guess / PAGE).abs_diff(self.pages.last.load(Ordering::Relaxed)) <= 1 {
            return Ok(None);
        }
        if each == self.names.len() as f64 {
            return self.glance_at(self.regular(frame, id).min(self.count - 1), frame, id);
        }
        self.glance_around(guess, each, frame, id)
    }

    /// Entry `k`, if it is the last of that frame and name.
    fn glance_at(&self, k: u64, frame: u64, id: u32) -> Result<Option<(u64, Entry)>> {
        let mut pair = [[0; LISTED]; 2];
        let entries = &mut pair[..(self.count - k).min(2) as usize];
        self.source.read_exact_at(self.offset(k), entries.as_flattened_mut())?;
        let last = entries.get(1).is_none_or(|behind| key(behind) > (frame, id));
        let right = key(&pair[0]) == (frame, id) && last;
        Ok(right.then(|| (k, Entry::listed(&pair[0]))))
    }

    /// The entry near `guess` of that frame and name, if the frame is seen there as a whole.
    fn glance_around(
        &self,
        guess: u64,
        each: f64,
        frame: u64,
        id: u32,
    ) -> Result<Option<(u64, Entry)>> {
        let each = each as u64 + 1;
        if each > GLANCE - 2 {
            return Ok(None);
        }
        // One more at either side tells that nothing is missing.
        let first = guess.saturating_sub(1);
        let count = (each + 2).min(self.count - first);
        let mut bytes = [[0; LISTED]; GLANCE as usize];
        let entries = &mut bytes[..count as usize];
        self.source.read_exact_at(self.offset(first), entries.as_flattened_mut())?;
        let (mut found, mut before) = (None, first == 0);
        for (k, bytes) in (first..).zip(entries) {
            match key(bytes) {
                (other, _) if other < frame => before = true,
                (other, _) if other > frame => return Ok(found.filter(|_| before)),
                (_, here) if here == id => found = Some((k, Entry::listed(bytes))),
                _ => {}
            }
        }
        Ok(found.filter(|_| before && first + count == self.count))
    }

    /// The last entry of a name in a frame whose entries are sorted.
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

    /// An error if a damaged entry of that name is in that frame, under whatever type.
    pub(crate) fn require_absent(&self, frame: u64, id: u32) -> Result<()> {
        match self.find(frame, id, |_| true)? {
            Some((k, entry)) => self.place(k, &entry).map(drop),
            None => Ok(()),
        }
    }
}
