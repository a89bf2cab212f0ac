//! Finding entries in an index that may be larger than memory: pages of it are read when they are
//! needed, and the page of a frame is mostly guessed right, because frames mostly have the same
//! number of chunks.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use spile_core::error::{Error, Result};

use crate::index::Index;
use crate::wire::{Entry, Form};

/// Entries that are read at once.
const PAGE: u64 = 128;

/// Pages of an index that is kept as a whole, once it was read: 32 MiB.
const MOST_HELD: u64 = 8192;

/// Pages of it that are read at once by who reads frames in order: 128 KiB.
const STRETCH: u64 = 32;

/// Pages of a larger one that are kept, each in its own slot.
const SLOTS: u64 = 64;

/// Most entries that are read to see one frame in an index that is not kept.
const GLANCE: u64 = 16;

/// Guesses before bisection takes over, which needs no luck.
const GUESSES: u32 = 3;

/// Bytes of an entry of [`Form::List`].
const LISTED: usize = 32;

/// A page whose first frame is not known yet; no frame has this number.
const UNKNOWN: u64 = u64::MAX;

/// A page and its number.
type Slot = RwLock<Option<(u64, Arc<[u8]>)>>;

/// The bytes of a page, for as long as they are needed.
enum Page<'a> {
    Held(&'a [u8]),
    Shared(Arc<[u8]>),
}

impl std::ops::Deref for Page<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Held(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// A page of an index that is kept as a whole.
struct Held {
    bytes: Vec<u8>,
    /// Its entries are in the order of frames and, within them, of names, as they must be since 2.0.
    sorted: bool,
}

/// What is known of an index.
#[derive(Default)]
pub(crate) struct Pages {
    held: OnceLock<Vec<OnceLock<Held>>>,
    slots: OnceLock<Vec<Slot>>,
    /// The page that was used last: who reads frames in order needs it again.
    last: AtomicU64,
    /// The frame of each page's first entry, once it was needed: bisection passes the same ones
    /// again and again.
    fences: OnceLock<Vec<AtomicU64>>,
    /// The frame of the last entry.
    frame: OnceLock<u64>,
    /// Chunks of a frame, on average.
    each: OnceLock<f64>,
    /// The number behind that of the name that was asked for last.
    name: AtomicU32,
    /// The entry behind the one that was found last.
    next: AtomicU64,
}

/// The frame of an entry: every entry begins with it.
fn frame_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(UNKNOWN, |field| u64::from_le_bytes(*field))
}

/// The frame and the name of an entry of [`Form::List`].
fn key(entry: &[u8; LISTED]) -> (u64, u32) {
    (frame_of(entry), u32::from(entry[28]) | u32::from(entry[29]) << 8)
}

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
    fn size(&self) -> usize {
        self.form().entry_size() as usize
    }

    /// The number of a name. Names are mostly asked for in their order.
    #[inline]
    pub(crate) fn name_id(&self, name: &str) -> Option<u32> {
        let likely = self.pages.name.load(Ordering::Relaxed);
        let likely = if likely as usize >= self.names.len() { 0 } else { likely };
        let right = !name.is_empty() && self.names.raw(likely) == name.as_bytes();
        // Of two equal names the first counts, which only the table knows.
        let id = if right && self.names.are_distinct() {
            likely
        } else {
            self.names.id(name.as_bytes())?
        };
        self.pages.name.store(id + 1, Ordering::Relaxed);
        Some(id)
    }

    fn pages(&self) -> u64 {
        self.count.div_ceil(PAGE)
    }

    /// The bytes of a page of entries that count.
    fn page(&self, page: u64) -> Result<Page<'_>> {
        if self.pages() > MOST_HELD {
            return self.slot_page(page).map(Page::Shared);
        }
        let all = || (0..self.pages()).map(|_| OnceLock::new()).collect();
        let Some(held) = self.pages.held.get_or_init(all).get(page as usize) else {
            return Ok(Page::Held(&[]));
        };
        if let Some(held) = held.get() {
            return Ok(Page::Held(&held.bytes));
        }
        self.hold(page)?;
        Ok(held.get().map_or(Page::Held(&[]), |held| Page::Held(&held.bytes)))
    }

    /// Reads a page that is kept. Who has come from the page before will need the next ones too: a
    /// jump between data and index for each of them would make the system forget to read ahead.
    fn hold(&self, page: u64) -> Result<()> {
        let Some(all) = self.pages.held.get() else { return Ok(()) };
        let here = page as usize;
        let in_order = here > 0 && all[here - 1].get().is_some();
        let bytes = self.read_pages(page, if in_order { STRETCH } else { 1 })?;
        for (held, bytes) in all[here..].iter().zip(bytes.chunks(PAGE as usize * self.size())) {
            held.get_or_init(|| Held {
                bytes: bytes.to_vec(),
                sorted: self.form() == Form::List && bytes.as_chunks().0.is_sorted_by_key(key),
            });
        }
        Ok(())
    }

    fn slot_page(&self, page: u64) -> Result<Arc<[u8]>> {
        let slots = self.pages.slots.get_or_init(|| (0..SLOTS).map(|_| Slot::default()).collect());
        let slot = &slots[(page % SLOTS) as usize];
        let held = slot.read().unwrap_or_else(PoisonError::into_inner);
        let known = held.as_ref().filter(|(number, _)| *number == page);
        if let Some((_, bytes)) = known {
            return Ok(bytes.clone());
        }
        drop(held);
        let bytes: Arc<[u8]> = self.read_pages(page, 1)?.into();
        *slot.write().unwrap_or_else(PoisonError::into_inner) = Some((page, bytes.clone()));
        Ok(bytes)
    }

    fn read_pages(&self, page: u64, pages: u64) -> Result<Vec<u8>> {
        let count = (pages * PAGE).min(self.count.saturating_sub(page * PAGE));
        let mut bytes = vec![0; count as usize * self.size()];
        self.source.read_exact_at(self.offset(page * PAGE), &mut bytes)?;
        Ok(bytes)
    }

    /// An entry that counts.
    pub(crate) fn entry(&self, k: u64) -> Result<Entry> {
        let (page, place) = (self.page(k / PAGE)?, (k % PAGE) as usize * self.size());
        let bytes = page.get(place..place + self.size()).ok_or_else(|| {
            Error::argument(format!("there is no index entry {k}; the index has {}", self.count))
        })?;
        self.parse(bytes)
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

    /// The last entry of that frame and name, if it is in one of the two places where it mostly is:
    /// behind the entry that was found before, or where it must be if every frame has every chunk.
    /// Reading in order never looks further, and never at the rest of a frame.
    #[inline]
    fn likely(&self, frame: u64, id: u32) -> Option<(u64, Entry)> {
        let held = self.pages.held.get()?;
        let regular = frame.wrapping_mul(self.names.len() as u64).wrapping_add(u64::from(id));
        [self.pages.next.load(Ordering::Relaxed), regular].into_iter().find_map(|k| {
            let page = held.get(usize::try_from(k / PAGE).ok()?)?.get()?;
            let (entries, _) = page.bytes.as_chunks();
            let [entry, behind] = entries.get((k % PAGE) as usize..)?.first_chunk()?;
            let right = page.sorted && key(entry) == (frame, id) && key(behind) != (frame, id);
            right.then(|| {
                self.pages.next.store(k + 1, Ordering::Relaxed);
                (k, Entry::listed(entry))
            })
        })
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
        let found = match self.likely(frame, id) {
            None => self.glance(frame, id)?,
            found => found,
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
    /// without reading a whole page: for who jumps about. Only in a frame that is seen as a whole.
    fn glance(&self, frame: u64, id: u32) -> Result<Option<(u64, Entry)>> {
        if self.pages() <= MOST_HELD || self.form() != Form::List {
            return Ok(None);
        }
        let (guess, each) = (self.guess(frame)?, self.each()?);
        let near = (guess / PAGE).abs_diff(self.pages.last.load(Ordering::Relaxed)) <= 1;
        if near || each > (GLANCE - 2) as f64 {
            return Ok(None);
        }
        // One more at either side tells that nothing is missing.
        let first = guess.saturating_sub(1);
        let count = (each.ceil() as u64 + 2).min(self.count - first) as usize;
        let mut bytes = [0; GLANCE as usize * 32];
        let bytes = &mut bytes[..count * self.size()];
        self.source.read_exact_at(self.offset(first), bytes)?;
        let mut found = None;
        let mut before = first == 0;
        for (k, bytes) in bytes.chunks_exact(self.size()).enumerate() {
            match frame_of(bytes) {
                other if other < frame => before = true,
                other if other > frame => return Ok(found.filter(|_| before)),
                _ => {
                    let entry = self.parse(bytes)?;
                    if entry.id == id {
                        found = Some((first + k as u64, entry));
                    }
                }
            }
        }
        Ok(found.filter(|_| before && first + count as u64 == self.count))
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
