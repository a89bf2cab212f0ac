//! The pages of an index that may be larger than memory: read when they are needed, and kept as far
//! as there is room.

use std::iter::repeat_n;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use spile_core::error::{Error, Result};

use crate::even::Pattern;
use crate::index::Index;
use crate::wire::{Entry, Form};

/// Entries that are read at once.
pub(crate) const PAGE: u64 = 128;

/// Pages of an index that is kept as a whole, once it was read: 32 MiB.
pub(crate) const MOST_HELD: u64 = 8192;

/// Pages of it that are read at once by who reads frames in order: 128 KiB.
const STRETCH: u64 = 32;

/// Bytes of a small read: what the system holds of a file in one piece.
const SMALL: u64 = 4 << 10;

/// Pages of a larger one that are kept, each in its own slot.
const SLOTS: u64 = 64;

/// Bytes of an entry of [`Form::List`].
pub(crate) const LISTED: usize = 32;

/// A page whose first frame is not known yet; no frame has this number.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// A page and its number.
type Slot = RwLock<Option<(u64, Arc<[u8]>)>>;

/// The bytes of a page, for as long as they are needed.
pub(crate) enum Page<'a> {
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
pub(crate) struct Held {
    /// What was read at once, and what of it is this page.
    stretch: Arc<[u8]>,
    range: Range<usize>,
    /// Its entries are in the order of frames and, within them, of names, as they must be since 2.0;
    /// no two are of the same chunk, and the data of each can be read.
    pub(crate) plain: bool,
}

impl Held {
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.stretch[self.range.clone()]
    }
}

/// What is known of an index.
#[derive(Default)]
pub(crate) struct Pages {
    pub(crate) held: OnceLock<Vec<OnceLock<Held>>>,
    slots: OnceLock<Vec<Slot>>,
    /// The page that was used last: who reads frames in order needs it again.
    pub(crate) last: AtomicU64,
    /// The frame of each page's first entry, once it was needed: bisection passes the same ones
    /// again and again.
    pub(crate) fences: OnceLock<Vec<AtomicU64>>,
    /// The frame of the last entry.
    pub(crate) frame: OnceLock<u64>,
    /// Chunks of a frame, on average.
    pub(crate) each: OnceLock<f64>,
    /// The number behind that of the name that was asked for last.
    pub(crate) name: AtomicU32,
    /// The entry behind the one that was found last.
    pub(crate) next: AtomicU64,
    /// What frames have in common.
    pub(crate) pattern: OnceLock<Box<Pattern>>,
}

/// The frame of an entry: every entry begins with it.
pub(crate) fn frame_of(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(UNKNOWN, |field| u64::from_le_bytes(*field))
}

/// The frame and the name of an entry of [`Form::List`].
pub(crate) fn key(entry: &[u8; LISTED]) -> (u64, u32) {
    (frame_of(entry), u32::from(entry[28]) | u32::from(entry[29]) << 8)
}

impl Index {
    pub(crate) fn size(&self) -> usize {
        self.form().entry_size() as usize
    }

    pub(crate) fn pages(&self) -> u64 {
        self.count.div_ceil(PAGE)
    }

    /// The bytes of a page of entries that count.
    pub(crate) fn page(&self, page: u64) -> Result<Page<'_>> {
        if self.pages() > MOST_HELD {
            return self.slot_page(page).map(Page::Shared);
        }
        let all = || (0..self.pages()).map(|_| OnceLock::new()).collect();
        let Some(held) = self.pages.held.get_or_init(all).get(page as usize) else {
            return Ok(Page::Held(&[]));
        };
        if let Some(held) = held.get() {
            return Ok(Page::Held(held.bytes()));
        }
        self.hold(page)?;
        Ok(held.get().map_or(Page::Held(&[]), |held| Page::Held(held.bytes())))
    }

    /// Reads a page that is kept. Who has come from the page before will need the next ones too: a
    /// jump between data and index for each of them would make the system forget to read ahead.
    fn hold(&self, page: u64) -> Result<()> {
        let Some(all) = self.pages.held.get() else { return Ok(()) };
        let here = page as usize;
        let in_order = here > 0 && all[here - 1].get().is_some();
        let stretch = self.read_pages(page, self.at_once(page, in_order))?;
        let each = PAGE as usize * self.size();
        for (page, start) in (here..all.len()).zip((0..stretch.len()).step_by(each)) {
            let range = start..stretch.len().min(start + each);
            all[page].get_or_init(|| {
                let plain = self.is_plain(page, &stretch[range.clone()]);
                Held { stretch: stretch.clone(), range, plain }
            });
        }
        Ok(())
    }

    /// How many pages are read at once.
    fn at_once(&self, page: u64, in_order: bool) -> u64 {
        if in_order && page < STRETCH {
            self.announce_data_behind();
        }
        if in_order { STRETCH } else { 1 }
    }

    /// The index lies between data, and the system, which reads ahead of who reads in order, does not
    /// know where they go on. Two small reads in a row there let it read ahead from there as well, as
    /// soon as data are read that far: 4 % of the time of a file of 1 GiB that is not in memory.
    fn announce_data_behind(&self) {
        let behind = self.offset(self.room);
        for offset in [behind, behind.saturating_add(SMALL)] {
            // It is a hint: whoever needs these bytes reads them again.
            let _ = self.source.read_at_most(offset, &mut [0; SMALL as usize]);
        }
    }

    /// Looks whether a page follows the pattern of the file, and for who comes from the page before
    /// also at the next ones. Nothing is kept of their bytes: new memory takes longer than reading.
    pub(crate) fn look_at(&self, pattern: &Pattern, page: u64) -> Result<()> {
        let ahead = self.at_once(page, page > 0 && pattern.has_seen(page - 1));
        let mut entries = [[0; LISTED]; PAGE as usize];
        for page in page..self.pages().min(page + ahead) {
            let first = page * PAGE;
            let entries = &mut entries[..PAGE.min(self.count - first) as usize];
            self.source.read_exact_at(self.offset(first), entries.as_flattened_mut())?;
            pattern.look_at(self, page as usize, entries);
        }
        Ok(())
    }

    /// Whether a page is as [`Held::plain`] says.
    fn is_plain(&self, page: usize, bytes: &[u8]) -> bool {
        if self.form() != Form::List {
            return false;
        }
        let (entries, _) = bytes.as_chunks();
        let pattern = &self.pages.pattern;
        if pattern.get().is_none()
            && let Some(first) = Pattern::new(self, page, entries)
        {
            let _ = pattern.set(Box::new(first));
        }
        pattern.get().is_some_and(|pattern| pattern.look_at(self, page, entries))
            || (entries.is_sorted_by(|a, b| key(a) < key(b))
                && entries.iter().all(|entry| self.is_readable(&Entry::listed(entry))))
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
        let bytes = self.read_pages(page, 1)?;
        *slot.write().unwrap_or_else(PoisonError::into_inner) = Some((page, bytes.clone()));
        Ok(bytes)
    }

    fn read_pages(&self, page: u64, pages: u64) -> Result<Arc<[u8]>> {
        let count = (pages * PAGE).min(self.count.saturating_sub(page * PAGE));
        let mut bytes: Arc<[u8]> = repeat_n(0, count as usize * self.size()).collect();
        if let Some(bytes) = Arc::get_mut(&mut bytes) {
            self.source.read_exact_at(self.offset(page * PAGE), bytes)?;
        }
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
}
