//! Most trajectories are even: every frame has every chunk, a chunk has the same size in every frame,
//! and frames lie one behind the other at equal distances. Where the data of an even page of the
//! index are is computed: its entries, which are seldom in the processor's cache, are not touched.

use crate::index::Index;
use crate::place::Place;
use crate::wire::Entry;

/// What the frames of an even file have in common.
pub(crate) struct Pattern {
    /// A chunk for each name.
    chunks: Vec<Chunk>,
    /// Bytes from a frame to the next.
    stride: u64,
}

struct Chunk {
    /// Its entry, but for frame and location.
    entry: Entry,
    /// Its place in frame 0, if that were the first byte of the file.
    place: Place,
}

impl Pattern {
    /// What the first two whole frames of a page suggest; its first entry is number `first`.
    pub(crate) fn new(index: &Index, first: u64, entries: &[[u8; 32]]) -> Option<Self> {
        let each = index.names.len();
        let skip = (each as u64 - first.checked_rem(each as u64)?) % each as u64;
        let frames = entries.get(skip as usize..)?;
        let frame = Entry::listed(frames.first()?);
        let stride = Entry::listed(frames.get(each)?).location.wrapping_sub(frame.location) as u64;
        let base = (frame.location as u64).wrapping_sub(frame.frame.wrapping_mul(stride));
        let chunk = |bytes| {
            let entry = Entry::listed(bytes);
            let place = index.check_entry(&entry).ok()?;
            let offset = place.offset.wrapping_sub(entry.frame.wrapping_mul(stride));
            Some(Chunk { entry, place: Place { offset: offset.wrapping_sub(base), ..place } })
        };
        Some(Self { chunks: frames.get(..each)?.iter().map(chunk).collect::<Option<_>>()?, stride })
    }

    /// What is to be added to the places of this page's chunks, if it is even and all of them can be
    /// read; its first entry is number `first`.
    pub(crate) fn base(&self, index: &Index, first: u64, entries: &[[u8; 32]]) -> Option<u64> {
        let each = self.chunks.len() as u64;
        let (mut frame, mut id) = (first / each, (first % each) as usize);
        let (mut base, mut start, mut end) = (None, u64::MAX, 0);
        for bytes in entries {
            let (entry, chunk) = (Entry::listed(bytes), &self.chunks[id]);
            let location = entry.location;
            if entry != (Entry { frame, location, id: id as u32, ..chunk.entry }) {
                return None;
            }
            let location = location as u64;
            let here = location.wrapping_sub(self.place(frame, chunk, 0).offset);
            if *base.get_or_insert(here) != here {
                return None;
            }
            (start, end) = (start.min(location), end.max(location.saturating_add(chunk.place.len)));
            id += 1;
            if id == self.chunks.len() {
                (frame, id) = (frame + 1, 0);
            }
        }
        // Nothing of what lies between the chunks may be something else.
        base.filter(|_| end <= index.source.len() && !index.is_taken(start, end))
    }

    fn place(&self, frame: u64, chunk: &Chunk, base: u64) -> Place {
        let before = base.wrapping_add(frame.wrapping_mul(self.stride));
        Place { offset: before.wrapping_add(chunk.place.offset), ..chunk.place }
    }

    /// The number of the entry of that frame and name where all frames have all chunks.
    #[inline]
    pub(crate) fn number(&self, frame: u64, id: u32) -> Option<u64> {
        frame.checked_mul(self.chunks.len() as u64)?.checked_add(id.into())
    }

    /// Where the data of an entry are that is in a page with this `base`.
    #[inline]
    pub(crate) fn find(&self, frame: u64, id: u32, base: u64) -> Option<Place> {
        Some(self.place(frame, self.chunks.get(id as usize)?, base))
    }
}
