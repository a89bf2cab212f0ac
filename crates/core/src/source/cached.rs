//! A block cache around a [`ReadAt`], whose calls are expensive: requests to a server, calls to Python.
//!
//! Small reads are served from blocks of [`CACHE_BLOCK`] bytes. The missing blocks of a read are fetched with one
//! call. Reads that follow each other fetch more at once, up to [`AHEAD`]. The bytes of large reads are not kept.

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::{ReadAt, fill};

/// Size of a block of the cache in bytes.
pub(super) const CACHE_BLOCK: u64 = 32 << 10;

/// Reads of at least this number of bytes are not kept in the cache.
const DIRECT: usize = 256 << 10;

/// Most bytes fetched at once for small reads that follow each other.
const AHEAD: u64 = 4 << 20;

/// Capacity in bytes before a [`Dataset`](crate::Dataset) sets it.
const CAPACITY: u64 = 16 << 20;

pub(super) struct Cached {
    reader: Box<dyn ReadAt>,
    len: u64,
    capacity: AtomicU64,
    requests: AtomicU64,
    state: Mutex<State>,
    /// Signals that blocks have been loaded.
    loaded: Condvar,
}

#[derive(Default)]
struct State {
    blocks: HashMap<u64, Block>,
    /// Blocks that a thread is loading.
    loading: HashSet<u64>,
    /// Number of reads so far; the time of the cache.
    now: u64,
    /// The block after the last request, and the number of requests without a gap before it.
    next: u64,
    consecutive: u32,
}

struct Block {
    bytes: Arc<[u8]>,
    used: u64,
}

impl Cached {
    pub(super) fn new(reader: Box<dyn ReadAt>, len: u64, head: &[u8]) -> Self {
        let mut state = State::default();
        // Complete blocks, and a shorter one at the end of the file.
        let complete = if head.len() as u64 >= len { len } else { head.len() as u64 };
        state.insert(0, &head[..complete as usize], len);
        state.next = complete.div_ceil(CACHE_BLOCK);
        let (capacity, requests) = (AtomicU64::new(CAPACITY), AtomicU64::new(0));
        let (state, loaded) = (Mutex::new(state), Condvar::new());
        Self { reader, len, capacity, requests, state, loaded }
    }

    /// Limits the memory of the cache to `bytes`.
    pub(super) fn set_capacity(&self, bytes: u64) {
        let bytes = bytes.max(CACHE_BLOCK);
        self.capacity.store(bytes, Ordering::Relaxed);
        self.lock().evict(bytes);
    }

    /// Number of calls of the reader.
    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Number of reads that are efficient at the same time.
    pub(super) fn concurrency(&self) -> usize {
        self.reader.concurrency()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills `buffer`, which ends within the file, from `offset`. Returns the number of bytes read by the reader,
    /// and the number of bytes in `buffer`, which is smaller if the file has become shorter.
    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(u64, usize), Failed> {
        if buffer.is_empty() {
            return Ok((0, 0));
        }
        if buffer.len() >= DIRECT {
            let kept = self.lock().copy(offset, buffer);
            if kept == buffer.len() {
                return Ok((0, kept));
            }
            let done = self.request(offset, buffer)?;
            return Ok((done as u64, done));
        }
        let end = offset + buffer.len() as u64;
        let wanted = offset / CACHE_BLOCK..end.div_ceil(CACHE_BLOCK);
        let mut fetched = 0;
        let mut state = self.lock();
        loop {
            state.now += 1;
            let absent = |k: &u64| !state.blocks.contains_key(k);
            let missing: Vec<u64> = wanted.clone().filter(absent).collect();
            let (Some(first), Some(last)) = (missing.first(), missing.last()) else {
                return Ok((fetched, state.copy(offset, buffer)));
            };
            if missing.iter().any(|k| state.loading.contains(k)) {
                state = self.loaded.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            // One request, even if a block within it is present.
            let run = *first..self.ahead(&mut state, *first, last + 1);
            state.loading.extend(run.clone());
            drop(state);
            let loaded = self.load(&run);
            state = self.lock();
            for k in run.clone() {
                state.loading.remove(&k);
            }
            self.loaded.notify_all();
            let bytes = loaded?;
            fetched += bytes.len() as u64;
            let expected = (run.end * CACHE_BLOCK).min(self.len) - run.start * CACHE_BLOCK;
            state.insert(run.start, &bytes, self.len);
            let done = state.copy(offset, buffer);
            let capacity = self.capacity.load(Ordering::Relaxed);
            state.evict(capacity);
            // A shorter file has no more bytes, and blocks that are evicted at once were copied before.
            if done == buffer.len() || (bytes.len() as u64) < expected {
                return Ok((fetched, done));
            }
        }
    }

    /// The end of the request that loads the blocks `first..end`: later for requests that follow each other.
    fn ahead(&self, state: &mut State, first: u64, end: u64) -> u64 {
        let follows = first == state.next && first > 0;
        state.consecutive = if follows { state.consecutive + 1 } else { 0 };
        let mut end = end;
        if state.consecutive > 1 {
            let most = AHEAD.min(self.capacity.load(Ordering::Relaxed) / 4) / CACHE_BLOCK;
            let count = (1_u64 << state.consecutive.min(16)).min(most);
            let last = self.len.div_ceil(CACHE_BLOCK).min(first.saturating_add(count));
            let free = |k: &u64| !state.blocks.contains_key(k) && !state.loading.contains(k);
            end = (end..last).find(|k| !free(k)).unwrap_or(end.max(last));
        }
        state.next = end;
        end
    }

    fn load(&self, blocks: &Range<u64>) -> Result<Vec<u8>, Failed> {
        let start = blocks.start * CACHE_BLOCK;
        let len = (blocks.end * CACHE_BLOCK).min(self.len).saturating_sub(start);
        let mut bytes = vec![0; len as usize];
        let done = self.request(start, &mut bytes)?;
        bytes.truncate(done);
        Ok(bytes)
    }

    fn request(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, Failed> {
        let read = |buffer: &mut [u8], at| {
            self.requests.fetch_add(1, Ordering::Relaxed);
            self.reader.read_at(at, buffer)
        };
        fill(read, offset, buffer)
    }
}

/// An error and its offset.
type Failed = (io::Error, u64);

impl State {
    /// Keeps the complete blocks of `bytes`, which begin at block `first`. The last block of a file of `len` bytes
    /// is shorter.
    fn insert(&mut self, first: u64, bytes: &[u8], len: u64) {
        let mut end = first * CACHE_BLOCK;
        for (k, block) in (first..).zip(bytes.chunks(CACHE_BLOCK as usize)) {
            end += block.len() as u64;
            if block.len() as u64 == CACHE_BLOCK || end == len {
                self.blocks.insert(k, Block { bytes: block.into(), used: self.now });
            }
        }
    }

    /// Copies the bytes at `offset` up to the first that is absent, and returns their number.
    fn copy(&mut self, offset: u64, buffer: &mut [u8]) -> usize {
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let Some(block) = self.blocks.get_mut(&(at / CACHE_BLOCK)) else { break };
            block.used = self.now;
            let from = block.bytes.get((at % CACHE_BLOCK) as usize..).unwrap_or(&[]);
            let count = from.len().min(buffer.len() - done);
            if count == 0 {
                break;
            }
            buffer[done..done + count].copy_from_slice(&from[..count]);
            done += count;
        }
        done
    }

    /// Removes the blocks that were not used for the longest time.
    fn evict(&mut self, capacity: u64) {
        let most = (capacity / CACHE_BLOCK) as usize;
        let surplus = self.blocks.len().saturating_sub(most);
        if surplus == 0 {
            return;
        }
        // A quarter at once: the cost of finding them is shared by many reads.
        let count = (surplus + most / 4).min(self.blocks.len());
        let mut ages: Vec<(u64, u64)> = self.blocks.iter().map(|(k, b)| (b.used, *k)).collect();
        ages.select_nth_unstable(count - 1);
        for (_, k) in &ages[..count] {
            self.blocks.remove(k);
        }
    }
}
