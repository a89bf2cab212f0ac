//! Arrays cut into chunks of a regular grid, each stored on its own (Zarr, HDF5).
//!
//! A selection is read chunk by chunk: what it wants of a chunk is a box, whose elements go from their
//! places in the chunk to their places in the output. Chunks that nothing is wanted of are not touched,
//! and those that nobody ever wrote cost no read. Bytes that lie as they are go straight from the
//! file; a chunk that has to be decoded is decoded once and kept, within the budget, for the blocks
//! that come after.

mod cache;
mod pieces;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::layout::{Codec, Extents};
use crate::limits::Limits;
use crate::plan::{Step, read_box, scatter};
use crate::read::Block;
use crate::select::Span;
use crate::shape::{Order, Shape};
use crate::source::Source;
use crate::store::read_extents;
use cache::Cache;
use pieces::{Cut, Piece, boxes, pieces};

/// Where a chunk is.
#[derive(Clone)]
pub struct Chunk {
    /// Its bytes.
    pub extents: Extents,
    /// How to make elements of them; nothing where they are that.
    pub codec: Option<Arc<dyn Codec>>,
}

/// The chunks of an array, looked up when they are read.
pub trait ChunkTable: Send + Sync {
    /// The chunk of that number, counted in C order over the grid; nothing where it was never
    /// written.
    fn chunk(&self, number: u64) -> Result<Option<Chunk>>;
}

/// An array cut into chunks.
#[derive(Clone)]
pub struct Chunks {
    /// Lengths of the array.
    pub shape: Shape,
    /// Lengths of a chunk. All are stored whole, those at the far edges with elements behind the end
    /// of the array that mean nothing.
    pub chunk: Shape,
    /// The dimensions from slowest to fastest inside a chunk.
    pub axes: Vec<usize>,
    /// Where they are.
    pub table: Arc<dyn ChunkTable>,
    /// The element that stands in chunks that were never written, in the byte order of the others.
    pub fill: Arc<[u8]>,
}

impl Chunks {
    /// The dimensions from slowest to fastest in an array of `rank`.
    pub fn axes(rank: usize, order: Order) -> Vec<usize> {
        match order {
            Order::C => (0..rank).collect(),
            Order::F => (0..rank).rev().collect(),
        }
    }

    /// Chunks along each dimension.
    pub fn grid(&self) -> Shape {
        let lengths = self.shape.lengths().iter().zip(self.chunk.lengths());
        Shape::new(lengths.map(|(n, c)| n.div_ceil((*c).max(1))).collect::<Vec<_>>())
    }

    /// The table with chunks that lie `by` bytes further on.
    pub(crate) fn shifted(&self, by: u64) -> Self {
        let table = Arc::new(Shifted { table: self.table.clone(), by });
        Self { table, ..self.clone() }
    }

    fn check(&self, size: usize) -> Result<()> {
        let bad = |message: &str| Err(Error::malformed("core-layout", message));
        let rank = self.shape.rank();
        if self.chunk.rank() != rank || self.chunk.lengths().contains(&0) {
            return bad("chunks that do not fit the array");
        }
        let mut axes = self.axes.clone();
        axes.sort_unstable();
        if !axes.into_iter().eq(0..rank) {
            return bad("chunks whose order does not name each dimension once");
        }
        if self.fill.len() != size {
            return bad("a fill value that is no element");
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
}

/// The array, or a part of it along its first dimension, ready to be read.
#[derive(Clone)]
pub(crate) struct ChunkStore {
    chunks: Arc<Chunks>,
    /// Where the part begins.
    first: u64,
    /// It is a single index, and the dimension is gone.
    single: bool,
    /// It is all of the array as one run of elements.
    flat: bool,
    size: usize,
    /// Distances in elements inside a chunk, and in chunks on the grid.
    inside: Vec<u64>,
    across: Vec<u64>,
    cache: Arc<Cache>,
}

/// A block of a selection.
pub(crate) struct Wanted<'a> {
    pub(crate) spans: &'a [Span],
    /// The dimensions in the order of the output.
    pub(crate) slowest: &'a [usize],
    pub(crate) block: Block,
}

/// One chunk's share of a box.
struct Job {
    number: u64,
    /// The first byte in the chunk, and in the output.
    from: u64,
    to: i64,
    steps: Vec<Step>,
}

impl ChunkStore {
    /// The part of `shape` that begins at `first`: as many dimensions as the chunks have, or one less;
    /// or all elements in one dimension.
    pub(crate) fn new(
        chunks: &Arc<Chunks>,
        first: u64,
        shape: &Shape,
        size: usize,
        limits: &Limits,
    ) -> Result<Self> {
        chunks.check(size)?;
        let whole = chunks.shape.lengths();
        let single = shape.rank() + 1 == whole.len() && Some(shape.lengths()) == whole.get(1..);
        let fits = match (whole.split_first(), shape.lengths()) {
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
            let message = format!("{shape} elements from {first} on, of {}", chunks.shape);
            return Err(Error::malformed("core-layout", message));
        }
        let mut inside = vec![0; whole.len()];
        let mut step = 1_u64;
        for axis in chunks.axes.iter().rev() {
            inside[*axis] = step;
            // No overflow: the bytes of a chunk were counted.
            step *= chunks.chunk.lengths()[*axis];
        }
        let across = chunks.grid().strides(Order::C);
        let cache = Arc::new(Cache::new(limits));
        let chunks = chunks.clone();
        Ok(Self { chunks, first, single, flat, size, inside, across, cache })
    }

    /// It is one run of elements, read with [`ChunkStore::fetch`] alone.
    pub(crate) fn is_flat(&self) -> bool {
        self.flat
    }

    /// Bytes of a chunk.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        self.chunks.chunk.bytes(self.size).unwrap_or(u64::MAX)
    }

    /// Reads a block into `out`, which is as long as it.
    pub(crate) fn read(
        &self,
        source: &Source,
        limits: &Limits,
        wanted: &Wanted<'_>,
        out: &mut [u8],
        staging: &mut Vec<u8>,
    ) -> Result<()> {
        if self.size == 0 || wanted.block.count == 0 {
            return Ok(());
        }
        let counts: Vec<u64> = wanted.slowest.iter().map(|k| wanted.spans[*k].count).collect();
        let mut jobs = Vec::new();
        for cut in boxes(&counts, wanted.block) {
            self.jobs(wanted, &counts, &cut, &mut jobs);
        }
        // Threads whose blocks need the same chunks begin with different ones, and come back later to
        // those that another one is decoding.
        let (thread, threads) =
            (rayon::current_thread_index().unwrap_or(0), rayon::current_num_threads());
        // Below the number of jobs, because the thread's number is below that of threads.
        let turn = thread * jobs.len() / threads.max(1);
        jobs.rotate_left(turn);
        let mut later = Vec::new();
        for mut job in jobs {
            if !self.run(source, limits, &mut job, out, staging, false)? {
                later.push(job);
            }
        }
        for mut job in later {
            self.run(source, limits, &mut job, out, staging, true)?;
        }
        Ok(())
    }

    /// Reads a run of bytes in C order.
    pub(crate) fn fetch(
        &self,
        source: &Source,
        limits: &Limits,
        offset: u64,
        out: &mut [u8],
    ) -> Result<()> {
        let Some(size) = std::num::NonZero::new(self.size as u64) else { return Ok(()) };
        let whole = self.chunks.shape.lengths();
        let shape = &whole[usize::from(self.single)..];
        let spans: Vec<Span> = shape
            .iter()
            .map(|count| Span { start: 0, count: *count, step: 1, dropped: false })
            .collect();
        let slowest = Chunks::axes(shape.len(), Order::C);
        let block = Block { first: offset / size, count: out.len() as u64 / size };
        let wanted = Wanted { spans: &spans, slowest: &slowest, block };
        self.read(source, limits, &wanted, out, &mut Vec::new())
    }

    /// What has to be done for one box.
    fn jobs(&self, wanted: &Wanted<'_>, counts: &[u64], cut: &Cut, jobs: &mut Vec<Job>) {
        let size = self.size as u64;
        let chunk = self.chunks.chunk.lengths();
        let single = usize::from(self.single);
        // Distances between neighbours in the output, in elements.
        let apart = Shape::new(counts).strides(Order::C);
        let mut parts: Vec<(usize, u64, Vec<Piece>)> = Vec::with_capacity(counts.len());
        for (k, own) in wanted.slowest.iter().enumerate() {
            let axis = own + single;
            let begin = if axis == 0 { self.first } else { 0 };
            let (span, low, length) = (wanted.spans[*own], cut.lows[k], cut.lengths[k]);
            parts.push((axis, apart[k], pieces(span, begin, low, length, chunk[axis])));
        }
        let (mut number, mut from) = (0, 0);
        if self.single {
            number = self.first / chunk[0] * self.across[0];
            from = self.first % chunk[0] * self.inside[0] * size;
        }
        let mut at = vec![0; parts.len()];
        loop {
            let to = (cut.place * size) as i64;
            let mut job = Job { number, from, to, steps: Vec::with_capacity(parts.len()) };
            for (k, (axis, apart, list)) in parts.iter().enumerate() {
                let piece = list[at[k]];
                job.number += piece.chunk * self.across[*axis];
                job.from += piece.first * self.inside[*axis] * size;
                job.to += (piece.place * apart * size) as i64;
                let step = (apart * size) as i64;
                job.steps.push(Step {
                    count: piece.count,
                    from: piece.step * self.inside[*axis] * size,
                    to: if piece.backwards { -step } else { step },
                });
            }
            jobs.push(job);
            // The next combination, last dimension first.
            let Some(k) = (0..at.len()).rev().find(|k| at[*k] + 1 < parts[*k].2.len()) else {
                return;
            };
            at[k] += 1;
            at[k + 1..].fill(0);
        }
    }

    /// Does a job; false if another thread is decoding the chunk and there was no order to `wait`.
    fn run(
        &self,
        source: &Source,
        limits: &Limits,
        job: &mut Job,
        out: &mut [u8],
        staging: &mut Vec<u8>,
        wait: bool,
    ) -> Result<bool> {
        let place = |e: Error| e.in_object(format!("chunk {}", job.number));
        let Some(chunk) = self.chunks.table.chunk(job.number).map_err(place)? else {
            job.steps.iter_mut().for_each(|step| step.from = 0);
            scatter(self.size, &self.chunks.fill, &mut job.steps, out, job.to);
            return Ok(true);
        };
        let bytes = self.chunk_bytes();
        let Some(codec) = &chunk.codec else {
            if chunk.extents.len() != bytes {
                let message =
                    format!("the chunk has {} bytes instead of {bytes}", chunk.extents.len());
                return Err(place(Error::malformed("core-chunk", message)));
            }
            let fetch = |at: u64, part: &mut [u8]| read_extents(source, &chunk.extents, at, part);
            let steps = std::mem::take(&mut job.steps);
            read_box(job.from, steps, self.size, job.to, out, staging, &fetch)?;
            return Ok(true);
        };
        let decode = || -> Result<Vec<u8>> {
            let mut stored = Vec::new();
            let extents = &chunk.extents;
            crate::store::read_whole(source, extents, 0, extents.len(), limits, &mut stored)?;
            let needed = bytes.saturating_add(extents.len());
            limits.allow(needed, "a chunk")?;
            let mut decoded = vec![0; bytes as usize];
            codec.decode(&stored, &mut decoded)?;
            Ok(decoded)
        };
        let Some(decoded) = self.cache.get(job.number, bytes, wait, decode).map_err(place)? else {
            return Ok(false);
        };
        scatter(self.size, &decoded[job.from as usize..], &mut job.steps, out, job.to);
        Ok(true)
    }
}
