//! Arrays split into chunks of a regular grid, each stored separately (Zarr, HDF5).
//!
//! A selection is read chunk by chunk: its part of a chunk is a box, whose elements are copied to the
//! output. Only chunks that intersect the selection are read; chunks that are not stored have the fill
//! value. Unencoded chunks are read directly from the file; encoded ones are decoded once and cached,
//! within the memory limit, for the following blocks.

mod cache;
mod pieces;

use std::sync::Arc;

use crate::plan::{Step, read_box, scatter};
use crate::read::Block;
use crate::select::Span;
use crate::store::{read_checked, read_extents};
use crate::{Codec, Dataset, Error, Extents, Limits, Order, Result, Shape};
use cache::Cache;
use pieces::{Cut, Piece, boxes, pieces};

/// Bytes that take as long to copy as a chunk takes to find.
const CHUNK_WORK: u64 = 4 << 10;

/// Location and encoding of a chunk.
#[derive(Clone)]
pub struct Chunk {
    /// The stored bytes.
    pub extents: Extents,
    /// Decodes them to elements; `None` if they are not encoded.
    pub codec: Option<Arc<dyn Codec>>,
}

/// The chunks of an array, looked up on demand.
pub trait ChunkTable: Send + Sync {
    /// Chunk `number`, counted in C order over the grid; `None` if it is not stored.
    fn chunk(&self, number: u64) -> Result<Option<Chunk>>;

    /// Largest number of stored chunks, by which reading chunks that are not stored is limited; `None` if it is not
    /// known.
    fn stored(&self) -> Option<u64> {
        None
    }

    /// The first chunk from `number` on that may be stored; `None` if no further one is. Tables that know the
    /// number of [stored](ChunkTable::stored) chunks implement it, so that a loop over these takes as long as the file
    /// is large.
    fn next(&self, number: u64) -> Result<Option<u64>> {
        Ok(Some(number))
    }
}

/// A chunked array.
#[derive(Clone)]
pub struct Chunks {
    /// Shape of the array.
    pub shape: Shape,
    /// Shape of a chunk. Chunks at the upper edges are stored completely; their elements outside the array
    /// are ignored.
    pub chunk: Shape,
    /// Dimensions from slowest to fastest within a chunk.
    pub axes: Vec<usize>,
    /// Locations of the chunks.
    pub table: Arc<dyn ChunkTable>,
    /// Fill value of chunks that are not stored: one element in the byte order of the array.
    pub fill: Arc<[u8]>,
}

impl Chunks {
    /// Number of chunks along each dimension.
    pub fn grid(&self) -> Shape {
        let lengths = self.shape.lengths().iter().zip(self.chunk.lengths());
        Shape::new(lengths.map(|(n, c)| n.div_ceil((*c).max(1))).collect::<Vec<_>>())
    }

    /// These chunks with all offsets increased by `by` bytes.
    pub(crate) fn shifted(&self, by: u64) -> Self {
        let table = Arc::new(Shifted { table: self.table.clone(), by });
        Self { table, ..self.clone() }
    }

    fn check(&self, size: usize) -> Result<()> {
        let bad = |message: &str| Err(Error::malformed("core-layout", message));
        let rank = self.shape.rank();
        if self.chunk.rank() != rank || self.chunk.lengths().contains(&0) {
            return bad("the chunk shape does not match the array");
        }
        let mut axes = self.axes.clone();
        axes.sort_unstable();
        if !axes.into_iter().eq(0..rank) {
            return bad("the axis order of the chunks does not contain each dimension once");
        }
        if self.fill.len() != size {
            return bad("the length of the fill value is not the element size");
        }
        self.shape.bytes(size)?;
        self.chunk.bytes(size)?;
        Ok(())
    }
}

struct Shifted {
    table: Arc<dyn ChunkTable>,
    by: u64,
}

impl ChunkTable for Shifted {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let moved = |chunk: Chunk| Ok(Chunk { extents: chunk.extents.shifted(self.by)?, ..chunk });
        self.table.chunk(number)?.map(moved).transpose()
    }

    fn stored(&self) -> Option<u64> {
        self.table.stored()
    }

    fn next(&self, number: u64) -> Result<Option<u64>> {
        self.table.next(number)
    }
}

/// A chunked array, or a part of it along its first dimension, ready to be read.
#[derive(Clone)]
pub(crate) struct ChunkStore {
    chunks: Arc<Chunks>,
    /// First index of the part.
    first: u64,
    /// The part is a single index and the first dimension is removed.
    single: bool,
    /// The entire array as one dimension.
    flat: bool,
    size: usize,
    /// Strides in elements within a chunk, and in chunks on the grid.
    inside: Vec<u64>,
    across: Vec<u64>,
    cache: Arc<Cache>,
}

/// A block of a selection to read.
pub(crate) struct BlockRequest<'a> {
    pub(crate) spans: &'a [Span],
    /// Dimensions from slowest to fastest in the output.
    pub(crate) slowest: &'a [usize],
    pub(crate) block: Block,
}

/// The part of a box in one chunk.
struct Job {
    number: u64,
    /// First byte in the chunk, and in the output.
    from: u64,
    to: i64,
    steps: Vec<Step>,
}

impl ChunkStore {
    /// The part of `shape` from index `first` of the first dimension on. `shape` has the rank of the chunks,
    /// or one dimension less, or is all elements as one dimension.
    pub(crate) fn new(
        chunks: &Arc<Chunks>,
        first: u64,
        shape: &Shape,
        size: usize,
        limits: &Limits,
    ) -> Result<Self> {
        chunks.check(size)?;
        let full = chunks.shape.lengths();
        let single = shape.rank() + 1 == full.len() && Some(shape.lengths()) == full.get(1..);
        let fits = match (full.split_first(), shape.lengths()) {
            (None, part) => part.is_empty() && first == 0,
            (Some((length, _)), _) if single => first < *length,
            (Some((length, inner)), part) => {
                let count = part.first().copied().unwrap_or(0);
                !part.is_empty()
                    && part[1..] == *inner
                    && first.checked_add(count).is_some_and(|end| end <= *length)
            }
        };
        let flat =
            !fits && first == 0 && chunks.shape.count().is_some_and(|n| shape.lengths() == [n]);
        if !fits && !flat {
            let message = format!("no part of shape {shape} at index {first} of {}", chunks.shape);
            return Err(Error::malformed("core-layout", message));
        }
        let mut inside = vec![0; full.len()];
        let mut step = 1_u64;
        for axis in chunks.axes.iter().rev() {
            inside[*axis] = step;
            // No overflow: the size of a chunk in bytes was checked.
            step *= chunks.chunk.lengths()[*axis];
        }
        let across = chunks.grid().strides(Order::C);
        let cache = Arc::new(Cache::new(limits));
        let chunks = chunks.clone();
        Ok(Self { chunks, first, single, flat, size, inside, across, cache })
    }

    /// Whether the array is read as one dimension, with [`ChunkStore::fetch`] only.
    pub(crate) fn is_flat(&self) -> bool {
        self.flat
    }

    /// Size of a decoded chunk in bytes.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        self.chunks.chunk.bytes(self.size).unwrap_or(u64::MAX)
    }

    /// Number of threads whose chunks the cache can hold at the same time, at least 1. With more, each thread would
    /// evict the chunks of the others, and every chunk would be decoded again for each block.
    pub(crate) fn threads(&self) -> usize {
        let chunks = self.cache.budget() / self.chunk_bytes().max(1);
        usize::try_from(chunks).unwrap_or(usize::MAX).max(1)
    }

    /// The work of reading `spans`, and the part of it for chunks that are stored: bytes, and a constant per chunk.
    /// `None` if it is not known which chunks are stored.
    pub(crate) fn work(&self, spans: &[Span]) -> Option<(u64, u64)> {
        let stored = self.chunks.table.stored()?;
        let lengths = &self.chunks.chunk.lengths()[usize::from(self.single)..];
        let touched = |span: &Span, chunk: u64| {
            let extent = span.count.saturating_sub(1).saturating_mul(span.step.unsigned_abs());
            span.count.min((extent / chunk).saturating_add(2))
        };
        let elements = spans.iter().fold(1, |n: u64, span| n.saturating_mul(span.count));
        let chunks = if self.flat {
            self.chunks.grid().count().unwrap_or(u64::MAX).min(elements)
        } else {
            let each = spans.iter().zip(lengths).map(|(span, chunk)| touched(span, *chunk));
            each.fold(1, u64::saturating_mul)
        };
        let work =
            |bytes: u64, chunks: u64| bytes.saturating_add(chunks.saturating_mul(CHUNK_WORK));
        let decoded = stored.saturating_mul(self.chunk_bytes());
        Some((work(elements.saturating_mul(self.size as u64), chunks), work(decoded, stored)))
    }

    /// The fill value: one element in the byte order of the array.
    pub(crate) fn fill(&self) -> &[u8] {
        &self.chunks.fill
    }

    /// The parts of the box `spans`, whose steps are 1, that may be stored: one box per chunk, in the order of the
    /// chunks.
    pub(crate) fn stored_parts(
        &self,
        spans: &[Span],
    ) -> impl Iterator<Item = Result<Vec<Span>>> + Send {
        let (table, across) = (self.chunks.table.clone(), self.across.clone());
        let (grid, chunk) = (self.chunks.grid(), self.chunks.chunk.clone());
        // First index of the part, first index of the box and the index after it, along each dimension.
        let mut ranges = Vec::with_capacity(across.len());
        if self.single {
            ranges.push((0, self.first, self.first.saturating_add(1)));
        }
        for span in spans {
            let begin = if ranges.is_empty() { self.first } else { 0 };
            let start = begin.saturating_add(span.start);
            ranges.push((begin, start, start.saturating_add(span.count)));
        }
        // Chunks are counted in C order: those of the box are consecutive along the first dimension.
        let (mut from, mut end) = (0, 1);
        if let (Some((_, start, stop)), Some(length)) = (ranges.first(), chunk.lengths().first()) {
            from = (start / length).saturating_mul(across[0]);
            end = stop.div_ceil(*length).saturating_mul(across[0]);
        }
        let dropped = usize::from(self.single);
        std::iter::from_fn(move || {
            loop {
                let number = match table.next(from) {
                    Ok(number) => number.filter(|number| *number < end)?,
                    Err(error) => {
                        from = end;
                        return Some(Err(error));
                    }
                };
                from = number + 1;
                let mut part = Vec::with_capacity(ranges.len());
                for (axis, (begin, start, stop)) in ranges.iter().enumerate() {
                    let at = number / across[axis].max(1) % grid.lengths()[axis].max(1);
                    let at = at.saturating_mul(chunk.lengths()[axis]);
                    let low = at.max(*start);
                    let high = at.saturating_add(chunk.lengths()[axis]).min(*stop);
                    let count = high.saturating_sub(low);
                    part.push(Span { start: low - begin, count, step: 1, dropped: false });
                }
                if part.iter().all(|span| span.count > 0) {
                    part.drain(..dropped);
                    return Some(Ok(part));
                }
            }
        })
    }

    /// Reads a block into `out`, which has its length.
    pub(crate) fn read(
        &self,
        dataset: &Dataset,
        request: &BlockRequest<'_>,
        out: &mut [u8],
        staging: &mut Vec<u8>,
    ) -> Result<()> {
        if self.size == 0 || request.block.count == 0 {
            return Ok(());
        }
        let counts: Vec<u64> = request.slowest.iter().map(|k| request.spans[*k].count).collect();
        let mut jobs = Vec::new();
        for cut in boxes(&counts, request.block) {
            self.jobs(request, &counts, &cut, &mut jobs);
        }
        // Threads whose blocks need the same chunks start with different ones, and defer those that
        // another thread is decoding.
        let (thread, threads) =
            (rayon::current_thread_index().unwrap_or(0), rayon::current_num_threads());
        // Less than the number of jobs, because `thread < threads`.
        let start = thread * jobs.len() / threads.max(1);
        jobs.rotate_left(start);
        let mut deferred = Vec::new();
        for mut job in jobs {
            if !self.run(dataset, &mut job, out, staging, false)? {
                deferred.push(job);
            }
        }
        for mut job in deferred {
            self.run(dataset, &mut job, out, staging, true)?;
        }
        Ok(())
    }

    /// Calls `each` with the stored bytes of every chunk that a block needs, unless the decoded chunk is cached.
    pub(crate) fn extents(
        &self,
        request: &BlockRequest<'_>,
        mut each: impl FnMut(&Extents),
    ) -> Result<()> {
        if self.size == 0 || request.block.count == 0 {
            return Ok(());
        }
        let counts: Vec<u64> = request.slowest.iter().map(|k| request.spans[*k].count).collect();
        let mut jobs = Vec::new();
        for cut in boxes(&counts, request.block) {
            self.jobs(request, &counts, &cut, &mut jobs);
        }
        let mut numbers: Vec<u64> = jobs.into_iter().map(|job| job.number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut found = Vec::new();
        for number in numbers.into_iter().filter(|number| !self.cache.has(*number)) {
            let chunk = self.chunks.table.chunk(number);
            if let Some(chunk) = chunk.map_err(|e| e.in_object(format!("chunk {number}")))? {
                found.push(chunk.extents);
            }
        }
        found.sort_by_key(|extents| extents.parts().first().map(|part| part.offset));
        found.iter().for_each(&mut each);
        Ok(())
    }

    /// Reads consecutive bytes of the array in C order.
    pub(crate) fn fetch(&self, dataset: &Dataset, offset: u64, out: &mut [u8]) -> Result<()> {
        let Some(size) = std::num::NonZero::new(self.size as u64) else { return Ok(()) };
        let shape = &self.chunks.shape.lengths()[usize::from(self.single)..];
        let spans: Vec<Span> = shape
            .iter()
            .map(|count| Span { start: 0, count: *count, step: 1, dropped: false })
            .collect();
        let slowest = Order::C.slowest_first(shape.len());
        let block = Block { first: offset / size, count: out.len() as u64 / size };
        let request = BlockRequest { spans: &spans, slowest: &slowest, block };
        self.read(dataset, &request, out, &mut Vec::new())
    }

    /// Appends the jobs of one box, one per chunk.
    fn jobs(&self, request: &BlockRequest<'_>, counts: &[u64], cut: &Cut, jobs: &mut Vec<Job>) {
        let size = self.size as u64;
        let chunk = self.chunks.chunk.lengths();
        let single = usize::from(self.single);
        // Output strides in elements.
        let stride = Shape::new(counts).strides(Order::C);
        let mut parts: Vec<(usize, u64, Vec<Piece>)> = Vec::with_capacity(counts.len());
        for (k, own) in request.slowest.iter().enumerate() {
            let axis = own + single;
            let begin = if axis == 0 { self.first } else { 0 };
            let (span, low, length) = (request.spans[*own], cut.lows[k], cut.lengths[k]);
            parts.push((axis, stride[k], pieces(span, begin, low, length, chunk[axis])));
        }
        let (mut number, mut from) = (0, 0);
        if self.single {
            number = self.first / chunk[0] * self.across[0];
            from = self.first % chunk[0] * self.inside[0] * size;
        }
        let mut at = vec![0; parts.len()];
        loop {
            let to = (cut.position * size) as i64;
            let mut job = Job { number, from, to, steps: Vec::with_capacity(parts.len()) };
            for (k, (axis, stride, list)) in parts.iter().enumerate() {
                let piece = list[at[k]];
                job.number += piece.chunk * self.across[*axis];
                job.from += piece.first * self.inside[*axis] * size;
                job.to += (piece.position * stride * size) as i64;
                let step = (stride * size) as i64;
                job.steps.push(Step {
                    count: piece.count,
                    from: piece.step * self.inside[*axis] * size,
                    to: if piece.backwards { -step } else { step },
                });
            }
            jobs.push(job);
            // The next combination, last dimension fastest.
            let Some(k) = (0..at.len()).rev().find(|k| at[*k] + 1 < parts[*k].2.len()) else {
                return;
            };
            at[k] += 1;
            at[k + 1..].fill(0);
        }
    }

    /// Runs a job. Returns false, without `wait`, if another thread is decoding the chunk.
    fn run(
        &self,
        dataset: &Dataset,
        job: &mut Job,
        out: &mut [u8],
        staging: &mut Vec<u8>,
        wait: bool,
    ) -> Result<bool> {
        let locate = |e: Error| e.in_object(format!("chunk {}", job.number));
        let Some(chunk) = self.chunks.table.chunk(job.number).map_err(locate)? else {
            job.steps.iter_mut().for_each(|step| step.from = 0);
            scatter(self.size, &self.chunks.fill, &mut job.steps, out, job.to);
            return Ok(true);
        };
        let bytes = self.chunk_bytes();
        let Some(codec) = &chunk.codec else {
            if chunk.extents.len() != bytes {
                let message =
                    format!("expected a chunk of {bytes} bytes, found {}", chunk.extents.len());
                return Err(locate(Error::malformed("core-chunk", message)));
            }
            let source = dataset.source();
            let fetch = |at: u64, part: &mut [u8]| read_extents(source, &chunk.extents, at, part);
            let steps = std::mem::take(&mut job.steps);
            read_box(job.from, steps, self.size, job.to, out, staging, &fetch)?;
            return Ok(true);
        };
        let decode = || -> Result<Vec<u8>> {
            let mut stored = Vec::new();
            let extents = &chunk.extents;
            read_checked(dataset, extents, 0, extents.len(), &mut stored)?;
            let needed = bytes.saturating_add(extents.len());
            dataset.limits().allow(needed, "a chunk")?;
            let mut decoded = vec![0; bytes as usize];
            codec.decode(&stored, &mut decoded)?;
            Ok(decoded)
        };
        // The file and the byte of the chunk: a store may have one file per chunk.
        let place = |error: Error| match chunk.extents.parts() {
            [first, ..] => error.at(first.offset).in_source(dataset.source()),
            [] => error,
        };
        let decoded = self.cache.get(job.number, bytes, wait, decode);
        let Some(decoded) = decoded.map_err(|e| locate(place(e)))? else { return Ok(false) };
        scatter(self.size, &decoded[job.from as usize..], &mut job.steps, out, job.to);
        Ok(true)
    }
}
