//! Most trajectories are even: every frame has every chunk, a chunk has the same size in every frame,
//! and frames lie one behind the other at equal distances. A page of the index that is even is looked
//! at once and not kept: a byte is remembered of it, and where its data are is computed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::index::Index;
use crate::pages::{LISTED, PAGE};
use crate::place::Place;
use crate::wire::Entry;

/// Runs of an even file that can be told apart. Between two of them the index or the names were
/// moved to a larger place, which happens the seldomer the longer a file is.
const RUNS: usize = 32;

/// A page that nobody has looked at yet, as if its run were the one that is never set.
const UNSEEN: u8 = 0;

/// A page that is not even, as if its run were one that there is not.
const UNEVEN: u8 = u8::MAX;

/// What the frames of an even file have in common. What every look-up needs comes first: it is in one
/// line of the processor's cache.
#[repr(C, align(64))]
pub(crate) struct Pattern {
    /// Where the chunk of each name is.
    chunks: Box<[Chunk]>,
    /// The run of each page.
    pages: Box<[AtomicU8]>,
    /// Bytes from a frame to the next.
    stride: u64,
    /// Entries of the index.
    count: u64,
    /// What is to be added to the places of a run. The first is never set.
    bases: [OnceLock<u64>; RUNS],
    /// The entry of each chunk in some frame.
    entries: Box<[[u8; LISTED]]>,
}

struct Chunk {
    /// Where it begins in frame 0, if that were the first byte of the file.
    offset: u64,
    /// Bytes.
    len: u64,
}

/// An entry of an even page.
pub(crate) struct Even {
    /// Its number.
    k: u64,
    /// First byte of the data.
    pub(crate) offset: u64,
    /// Bytes of the data.
    pub(crate) len: u64,
}

/// An entry in words: the first is its frame, the third its location, the others its shape.
fn words(entry: &[u8; LISTED]) -> [u64; 4] {
    let (words, _) = entry.as_chunks();
    std::array::from_fn(|k| u64::from_le_bytes(words[k]))
}

impl Pattern {
    /// What the first two whole frames of a page suggest.
    pub(crate) fn new(index: &Index, page: usize, entries: &[[u8; LISTED]]) -> Option<Self> {
        let (first, each) = (page as u64 * PAGE, index.names.len());
        let skip = (each as u64 - first.checked_rem(each as u64)?) % each as u64;
        let frames = entries.get(skip as usize..)?;
        let frame = Entry::listed(frames.first()?);
        let stride = Entry::listed(frames.get(each)?).location.wrapping_sub(frame.location) as u64;
        let base = (frame.location as u64).wrapping_sub(frame.frame.wrapping_mul(stride));
        let chunk = |(id, bytes)| {
            let entry = Entry::listed(bytes);
            let Place { offset, len, .. } = index.check_entry(&entry).ok()?;
            let before = base.wrapping_add(entry.frame.wrapping_mul(stride));
            (entry.id == id).then_some(Chunk { offset: offset.wrapping_sub(before), len })
        };
        let entries = frames.get(..each)?;
        Some(Self {
            chunks: (0..).zip(entries).map(chunk).collect::<Option<_>>()?,
            entries: entries.into(),
            stride,
            bases: [const { OnceLock::new() }; RUNS],
            pages: (0..index.pages()).map(|_| AtomicU8::new(UNSEEN)).collect(),
            count: index.count,
        })
    }

    /// The page that must be looked at before [`Pattern::find`] can say anything about that frame and
    /// name.
    pub(crate) fn unseen(&self, frame: u64, id: u32) -> Option<u64> {
        let k = self.number(frame, id)?;
        [k / PAGE, (k + 1) / PAGE].into_iter().find(|page| !self.has_seen(*page))
    }

    /// The page was looked at, or there is none.
    pub(crate) fn has_seen(&self, page: u64) -> bool {
        let run = usize::try_from(page).ok().and_then(|page| self.pages.get(page));
        run.is_none_or(|run| run.load(Ordering::Relaxed) != UNSEEN)
    }

    /// Looks whether a page is even and all of its chunks can be read.
    pub(crate) fn look_at(&self, index: &Index, page: usize, entries: &[[u8; LISTED]]) -> bool {
        let base = self.base(index, page, entries);
        let run =
            base.and_then(|base| (1..RUNS).find(|k| *self.bases[*k].get_or_init(|| base) == base));
        self.pages[page].store(run.map_or(UNEVEN, |k| k as u8), Ordering::Relaxed);
        base.is_some()
    }

    /// What is to be added to the places of a page's chunks, if it is even and all of them can be
    /// read.
    fn base(&self, index: &Index, page: usize, entries: &[[u8; LISTED]]) -> Option<u64> {
        let (first, each) = (page as u64 * PAGE, self.chunks.len() as u64);
        let (mut frame, mut id) = (first / each, (first % each) as usize);
        let [_, _, location, _] = words(entries.first()?);
        let base = location.wrapping_sub(self.offset(frame, &self.chunks[id], 0));
        let (mut start, mut end) = (location, location);
        for bytes in entries {
            let chunk = &self.chunks[id];
            let location = self.offset(frame, chunk, base);
            let ([_, size, _, rest], [w0, w1, w2, w3]) = (words(&self.entries[id]), words(bytes));
            if (w0, w1, w2, w3) != (frame, size, location, rest) {
                return None;
            }
            (start, end) = (start.min(location), end.max(location.saturating_add(chunk.len)));
            id += 1;
            if id == self.chunks.len() {
                (frame, id) = (frame + 1, 0);
            }
        }
        // Nothing of what lies between the chunks may be something else.
        let free = end <= index.source.len() && !index.is_taken(start, end);
        free.then_some(base)
    }

    fn offset(&self, frame: u64, chunk: &Chunk, base: u64) -> u64 {
        base.wrapping_add(frame.wrapping_mul(self.stride)).wrapping_add(chunk.offset)
    }

    /// The number of the entry of that frame and name where all frames have all chunks.
    #[inline]
    fn number(&self, frame: u64, id: u32) -> Option<u64> {
        let k = frame.checked_mul(self.chunks.len() as u64)?.checked_add(id.into())?;
        Some(k).filter(|k| *k < self.count)
    }

    /// What is to be added to the places of a page's chunks, if it is known to be even.
    #[inline]
    fn known_base(&self, page: u64) -> Option<u64> {
        let run = self.pages.get(usize::try_from(page).ok()?)?.load(Ordering::Relaxed);
        self.bases.get(usize::from(run))?.get().copied()
    }

    /// The entry of that frame and name, if it is in an even page.
    #[inline]
    pub(crate) fn find(&self, frame: u64, id: u32) -> Option<Even> {
        let k = self.number(frame, id)?;
        let base = self.known_base(k / PAGE)?;
        // Behind the page there may be another entry of the same name.
        let behind = k + 1;
        if behind.is_multiple_of(PAGE) && behind < self.count {
            self.known_base(behind / PAGE)?;
        }
        let chunk = self.chunks.get(id as usize)?;
        Some(Even { k, offset: self.offset(frame, chunk, base), len: chunk.len })
    }

    /// All of the entry that was found for that frame and name.
    pub(crate) fn entry(&self, frame: u64, id: u32, found: &Even) -> Option<(u64, Entry)> {
        let entry = Entry::listed(self.entries.get(id as usize)?);
        Some((found.k, Entry { frame, location: found.offset as i64, ..entry }))
    }
}
