//! Reading byte ranges before they are needed, with few large requests at the same time: for sources whose requests
//! take long, such as an object store.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use super::Source;
use crate::{Limits, Result};

/// Gaps up to this number of bytes are read over: a request takes about as long as reading them.
const GAP: u64 = 1 << 20;

/// Most bytes of one request.
const REQUEST: u64 = 16 << 20;

/// Most requests that are known in advance. Ranges after them are read without.
const KNOWN: usize = 1 << 18;

/// At most this fraction (1/SHARE) of the memory limit is used for bytes that are read ahead.
const SHARE: u64 = 8;

/// Byte ranges in the order in which they will be read, coalesced to requests.
#[derive(Debug)]
pub(crate) struct Requests {
    list: Vec<Range<u64>>,
    /// Ends of requests by their starts.
    known: BTreeMap<u64, u64>,
    bytes: u64,
    /// Most bytes of one request.
    largest: u64,
}

impl Requests {
    /// No ranges; `window` bytes are loaded at once.
    pub(crate) fn new(window: u64) -> Self {
        let (list, known) = (Vec::new(), BTreeMap::new());
        Self { list, known, bytes: 0, largest: REQUEST.min(window) }
    }

    /// Adds the `len` bytes at `offset`: to the last request if the gap is small, else as further requests.
    pub(crate) fn add(&mut self, offset: u64, len: u64) {
        let end = offset.saturating_add(len);
        if let Some(last) = self.list.last_mut() {
            let joined = last.end.max(end);
            let near = offset >= last.start && offset <= last.end.saturating_add(GAP);
            if near && joined - last.start <= self.largest {
                self.bytes += joined - last.end;
                last.end = joined;
                return;
            }
        }
        let mut start = offset;
        while start < end && self.list.len() < KNOWN {
            let next = end.min(start.saturating_add(self.largest));
            self.list.push(start..next);
            self.bytes += next - start;
            start = next;
        }
    }

    /// Adds those requests of `other` whose bytes are not in an earlier one.
    pub(crate) fn append(&mut self, other: &Self) {
        for range in &other.list {
            let before = self.known.range(..=range.start).next_back();
            if before.is_some_and(|(_, end)| *end >= range.end) {
                continue;
            }
            self.add(range.start, range.end - range.start);
            if let Some(last) = self.list.last() {
                self.known.insert(last.start, last.end);
            }
        }
    }

    /// The same ranges in the order of the file, if they fit into `window` bytes then, too.
    pub(crate) fn sorted(self, window: u64) -> Self {
        if self.list.is_sorted_by_key(|range| range.start) {
            return self;
        }
        let mut list = self.list.clone();
        list.sort_by_key(|range| range.start);
        let mut sorted = Self::new(window);
        for range in &list {
            sorted.add(range.start, range.end - range.start);
        }
        if sorted.bytes > window { self } else { sorted }
    }

    /// Total length in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Bytes that are read ahead at the same time, with a memory limit of `memory` bytes.
pub(crate) fn window(memory: u64) -> u64 {
    (memory / SHARE).max(1)
}

/// A source and the requests of the reads that follow.
pub(super) struct Ahead {
    inner: Source,
    requests: Vec<Range<u64>>,
    window: u64,
    loaded: RwLock<Loaded>,
}

/// The bytes of some requests.
#[derive(Default)]
struct Loaded {
    pieces: Vec<(u64, Vec<u8>)>,
    /// The request after them.
    next: usize,
}

impl Ahead {
    pub(super) fn new(inner: Source, requests: Requests, window: u64) -> Self {
        let mut requests = requests.list;
        // Reads past the end fail with the offset of the missing byte.
        requests.retain(|range| range.end <= inner.len());
        Self { inner, requests, window, loaded: RwLock::default() }
    }

    pub(super) fn inner(&self) -> &Source {
        &self.inner
    }

    /// Fills the start of `buffer` and returns the number of bytes; fewer only at the end of the file.
    pub(super) fn read_at_most(&self, offset: u64, buffer: &mut [u8]) -> Result<usize> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        if loaded.copy(offset, buffer) {
            return Ok(buffer.len());
        }
        drop(loaded);
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have loaded them.
        if loaded.copy(offset, buffer) {
            return Ok(buffer.len());
        }
        if let Some(first) = self.find(&loaded, offset, buffer.len() as u64) {
            self.load(&mut loaded, first)?;
            // Requests may overlap: the shorter one hides bytes of the longer one.
            if loaded.copy(offset, buffer) {
                return Ok(buffer.len());
            }
        }
        self.inner.read_at_most(offset, buffer)
    }

    /// The first request of the bytes, if the requests contain all of them and one is not loaded.
    fn find(&self, loaded: &Loaded, offset: u64, len: u64) -> Option<usize> {
        let has = |range: &Range<u64>| range.contains(&offset);
        let later = (loaded.next..self.requests.len()).chain(0..loaded.next);
        let first = later.into_iter().find(|k| has(&self.requests[*k]))?;
        let mut end = self.requests[first].end;
        let mut k = first + 1;
        while end < offset + len {
            end = self.requests.get(k).filter(|range| range.start == end)?.end;
            k += 1;
        }
        // All of them are loaded together.
        (end - self.requests[first].start <= self.window).then_some(first)
    }

    /// Replaces the loaded bytes by those of the requests from `first` on.
    fn load(&self, loaded: &mut Loaded, first: usize) -> Result<()> {
        let (mut end, mut bytes) = (first, 0);
        while let Some(range) = self.requests.get(end) {
            bytes += range.end - range.start;
            if bytes > self.window && end > first {
                break;
            }
            end += 1;
        }
        let ranges = &self.requests[first..end];
        *loaded = Loaded::default();
        let mut pieces: Vec<(u64, Vec<u8>)> = Vec::with_capacity(ranges.len());
        for range in ranges {
            pieces.push((range.start, vec![0; (range.end - range.start) as usize]));
        }
        let slots = pieces.iter_mut().map(|(start, bytes)| (*start, &mut bytes[..])).collect();
        self.inner.read_slots(slots)?;
        pieces.sort_by_key(|(start, _)| *start);
        *loaded = Loaded { pieces, next: end };
        Ok(())
    }
}

impl Loaded {
    /// Fills `buffer`; false if a byte is absent.
    fn copy(&self, offset: u64, buffer: &mut [u8]) -> bool {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let after = self.pieces.partition_point(|(start, _)| *start <= at);
            let Some((start, bytes)) = after.checked_sub(1).map(|k| &self.pieces[k]) else {
                return false;
            };
            let Some(from) = bytes.get((at - start) as usize..).filter(|from| !from.is_empty())
            else {
                return false;
            };
            let count = from.len().min(buffer.len() - done);
            buffer[done..done + count].copy_from_slice(&from[..count]);
            done += count;
        }
        true
    }
}

impl Source {
    /// Whether a request takes long, so that reads should be few and at the same time.
    pub fn is_remote(&self) -> bool {
        self.concurrency() > 0
    }

    /// Returns this source for reads in the order of `requests`. At most `window` bytes are loaded at once.
    pub(crate) fn ahead(&self, requests: Requests, window: u64) -> Self {
        let path = self.path().map(std::path::Path::to_path_buf);
        let ahead = Ahead::new(self.clone(), requests, window);
        Self::new(path, self.len(), super::Bytes::Ahead(Box::new(ahead)))
    }

    /// Returns the bytes of `ranges`, each with its offset and length, in that order. For remote sources, gaps of up to
    /// 1 MiB are read over, requests have up to 16 MiB, and several are made at the same time. Fails with `Truncated`
    /// if the file is shorter, and with `Limit` if the bytes, with those in the gaps, exceed the memory limit.
    pub fn read_ranges(&self, ranges: &[(u64, u64)], limits: &Limits) -> Result<Vec<Vec<u8>>> {
        let mut total = 0_u64;
        for (offset, len) in ranges {
            self.require(*offset, *len)?;
            total = total.saturating_add(*len);
        }
        limits.allow(total, "the byte ranges")?;
        let mut found: Vec<Vec<u8>> =
            ranges.iter().map(|(_, len)| vec![0; *len as usize]).collect();
        let mut order: Vec<usize> = (0..ranges.len()).collect();
        order.sort_by_key(|k| ranges[*k].0);
        let window = window(limits.memory);
        let mut requests = Requests::new(window);
        if self.is_remote() {
            for k in &order {
                requests.add(ranges[*k].0, ranges[*k].1);
            }
        }
        let source = self.ahead(requests, window);
        for k in order {
            source.read_exact_at(ranges[k].0, &mut found[k])?;
        }
        Ok(found)
    }

    /// Fills the slots from their offsets, several at the same time.
    pub(crate) fn read_slots(&self, slots: Vec<(u64, &mut [u8])>) -> Result<()> {
        at_once(self.concurrency(), slots, |(at, slot)| self.read_exact_at(at, slot)).map(|_| ())
    }
}

/// The results of `work` for `items`, in their order. It waits for `count` of them at the same time, which may be more
/// than there are processors. After an error, no further item is begun.
pub(super) fn at_once<T: Send, R: Send>(
    count: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = count.min(items.len());
    if threads <= 1 {
        return items.into_iter().map(work).collect();
    }
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new((Some(item), None))).collect();
    let next = AtomicUsize::new(0);
    let run = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut item = item.lock().unwrap_or_else(PoisonError::into_inner);
            let result = item.0.take().map(&work);
            if matches!(result, Some(Err(_))) {
                next.store(items.len(), Ordering::Relaxed);
            }
            item.1 = result;
        }
    };
    std::thread::scope(|scope| {
        // On systems without further threads, this one does everything.
        for _ in 1..threads {
            let _ = std::thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    let results = items
        .into_iter()
        .filter_map(|item| item.into_inner().unwrap_or_else(PoisonError::into_inner).1);
    results.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_requests_in_any_order_give_all_bytes() {
        let bytes: Vec<u8> = (0..4 << 10).map(|k: u32| (k * 7 % 251) as u8).collect();
        // A shorter request inside a longer one, before and after it, and requests that do not fit together.
        for list in [
            vec![0..1000, 500..600, 2000..2100],
            vec![500..600, 0..1000, 100..3000],
            vec![3000..3100, 0..1000, 500..600, 550..1500],
        ] {
            for window in [100, 1100, 8 << 10] {
                let total = list.iter().map(|range: &Range<u64>| range.end - range.start).sum();
                let requests = Requests {
                    list: list.clone(),
                    known: BTreeMap::new(),
                    bytes: total,
                    largest: window,
                };
                let ahead = Ahead::new(Source::memory(bytes.clone()), requests, window);
                for (offset, len) in [(550, 300), (900, 90), (0, 1000), (2050, 50), (590, 20)] {
                    let mut read = vec![0; len];
                    assert_eq!(ahead.read_at_most(offset as u64, &mut read).unwrap(), len);
                    assert_eq!(read, bytes[offset..offset + len], "{list:?} {window} {offset}");
                }
            }
        }
    }
}
