//! Index pages, read on demand and kept in a cache of bounded size.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use spile_core::{Error, Hint, Result};

use super::Index;
use crate::wire::Entry;

/// Entries of a page.
pub(crate) const PAGE: u64 = 128;

/// Pages in the cache: 32 MiB for entries of 32 bytes.
const CACHED_PAGES: u64 = 8192;

/// Consecutive entries of the index, with frame numbers in ascending order.
pub(crate) struct Page {
    /// Number of the first entry.
    pub(crate) first: u64,
    pub(crate) first_frame: u64,
    pub(crate) last_frame: u64,
    bytes: Vec<u8>,
    entry_size: usize,
}

impl Page {
    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / self.entry_size
    }

    pub(crate) fn entry_bytes(&self, at: usize) -> &[u8] {
        &self.bytes[at * self.entry_size..(at + 1) * self.entry_size]
    }

    /// Frame number, which is the first field of an entry in every version.
    pub(crate) fn frame(&self, at: usize) -> u64 {
        let field = self.entry_bytes(at).first_chunk();
        field.map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
    }

    /// Number of entries before `frame`.
    pub(crate) fn lower_bound(&self, frame: u64) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.frame(middle) < frame {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The pages read last; page `k` is kept in slot `k % slots`.
#[derive(Default)]
pub(crate) struct PageCache {
    slots: OnceLock<Vec<RwLock<Option<Arc<Page>>>>>,
}

impl Index {
    /// Number of pages.
    pub(crate) fn pages(&self) -> u64 {
        self.count.div_ceil(PAGE)
    }

    /// Page `number`, which must be below [`Index::pages`]. Fails with gsd-012 if its frame numbers
    /// are not in ascending order.
    pub(crate) fn page(&self, number: u64) -> Result<Arc<Page>> {
        let slots = self.cache.slots.get_or_init(|| {
            (0..self.pages().min(CACHED_PAGES)).map(|_| RwLock::default()).collect()
        });
        let slot = slots.get((number % CACHED_PAGES) as usize).filter(|_| number < self.pages());
        let Some(slot) = slot else {
            return Err(Error::argument(format!("no index page {number} of {}", self.pages())));
        };
        let first = number * PAGE;
        let cached = slot.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = cached.as_ref().filter(|page| page.first == first) {
            return Ok(page.clone());
        }
        drop(cached);
        let page = Arc::new(self.read_page(first)?);
        *slot.write().unwrap_or_else(PoisonError::into_inner) = Some(page.clone());
        Ok(page)
    }

    fn read_page(&self, first: u64) -> Result<Page> {
        let entry_size = self.form().entry_size() as usize;
        let count = PAGE.min(self.count.saturating_sub(first)) as usize;
        let mut bytes = vec![0; count * entry_size];
        self.source.read_exact_at(self.offset(first), &mut bytes)?;
        let mut page = Page { first, first_frame: 0, last_frame: 0, bytes, entry_size };
        (page.first_frame, page.last_frame) = (page.frame(0), page.frame(count - 1));
        match (1..count).find(|at| page.frame(*at) < page.frame(at - 1)) {
            Some(at) => Err(self.order_error(first + at as u64, page.frame(at - 1))),
            None => Ok(page),
        }
    }

    /// Entry `k` is of an earlier frame than the entries before it.
    pub(crate) fn order_error(&self, k: u64, before: u64) -> Error {
        match self.read_entry(k) {
            Ok(entry) => {
                let message = format!("frame {} after frame {before}", entry.frame);
                let error =
                    Error::malformed("gsd-012", message).hint(Hint::salvage("sorts the frames"));
                self.add_context(k, &entry, error)
            }
            Err(error) => error,
        }
    }

    /// Entry `k`, through the page cache.
    pub(crate) fn entry(&self, k: u64) -> Result<Entry> {
        self.parse(self.page(k / PAGE)?.entry_bytes((k % PAGE) as usize))
    }
}
