//! Chunks of an array as a layout of core.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::error::Result;
use spile_core::layout::{Codec, Extent, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::source::{Part, Source};
use spile_core::wire::ByteOrder;

use crate::codec::{Pipeline, crc32c, invalid_chunk, truncated};
use crate::wire::{ArrayMeta, Shard};

/// Largest number of cached shard indexes.
const MAX_SHARDS: usize = 64;

/// The files of the chunks of an array, by chunk number, as ranges of the joined source.
pub(crate) struct Stored(BTreeMap<u64, Extent>);

impl Stored {
    /// `files` has the number of a file in `source` for each chunk.
    pub(crate) fn new(source: &Source, files: &BTreeMap<u64, usize>) -> Self {
        let parts = source.parts();
        let extent = |k: usize| {
            let (offset, next) = (parts[k].start(), parts.get(k + 1));
            let end = next.map_or(source.len(), Part::start);
            Extent { offset, len: end - offset }
        };
        Self(files.iter().map(|(number, k)| (*number, extent(*k))).collect())
    }
}

/// The layout of an array: contiguous ranges where the files are slabs of the array, chunks otherwise.
pub(crate) fn layout(
    source: &Source,
    meta: &ArrayMeta,
    stored: Stored,
    limits: &Limits,
) -> Result<Layout> {
    if let Some(plain) = contiguous(meta, &stored)? {
        return Ok(plain);
    }
    let codec = |pipeline: &Pipeline| {
        (!pipeline.is_empty()).then(|| Arc::new(pipeline.clone()) as Arc<dyn Codec>)
    };
    let (shape, fill) = (meta.shape.clone(), meta.fill.as_slice().into());
    let chunks = if let Some(shard) = &meta.codecs.shard {
        let (chunk, axes) = (shard.chunk.clone(), shard.codecs.axes.clone());
        let table =
            Sharded::new(source, meta, shard, stored, codec(&shard.codecs.pipeline), *limits);
        Chunks { shape, chunk, axes, table: Arc::new(table), fill }
    } else {
        let (chunk, axes) = (meta.chunk.clone(), meta.codecs.axes.clone());
        let table = Arc::new(Files { stored, codec: codec(&meta.codecs.pipeline) });
        Chunks { shape, chunk, axes, table, fill }
    };
    Ok(Layout::Chunked { chunks: Arc::new(chunks), first: 0 })
}

/// The layout of an array whose files are unencoded slabs along the slowest dimension, all of them present
/// and complete; `None` for other arrays.
fn contiguous(meta: &ArrayMeta, stored: &Stored) -> Result<Option<Layout>> {
    let ArrayMeta { shape, chunk, codecs, dtype, .. } = meta;
    let order = if codecs.axes == Chunks::axes(shape.rank(), Order::C) {
        Order::C
    } else if codecs.axes == Chunks::axes(shape.rank(), Order::F) {
        Order::F
    } else {
        return Ok(None);
    };
    if !codecs.pipeline.is_empty() || codecs.shard.is_some() {
        return Ok(None);
    }
    // Only the slowest dimension longer than 1 may be chunked.
    let mut inner = false;
    for axis in &codecs.axes {
        let (length, own) = (shape.lengths()[*axis], chunk.lengths()[*axis]);
        if (inner && length != own) || (length == 1 && own != 1) {
            return Ok(None);
        }
        inner |= length > 1;
    }
    let bytes = shape.bytes(dtype.size())?;
    let each = chunk.bytes(dtype.size())?;
    let mut rest = bytes;
    let mut parts = Vec::new();
    for (k, (number, file)) in stored.0.iter().enumerate() {
        if *number != k as u64 || file.len != each {
            return Ok(None);
        }
        let len = file.len.min(rest);
        parts.push(Extent { offset: file.offset, len });
        rest -= len;
    }
    if rest > 0 {
        return Ok(None);
    }
    Ok(Some(Layout::Plain { extents: Extents::several(parts)?, order }))
}

/// One file per chunk.
struct Files {
    stored: Stored,
    codec: Option<Arc<dyn Codec>>,
}

impl ChunkTable for Files {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let chunk = |file: &Extent| Chunk {
            extents: Extents::one(file.offset, file.len),
            codec: self.codec.clone(),
        };
        Ok(self.stored.0.get(&number).map(chunk))
    }
}

/// One file per shard.
struct Sharded {
    source: Source,
    stored: Stored,
    codec: Option<Arc<dyn Codec>>,
    shard: Shard,
    /// Number of chunks, of shards, and of chunks per shard, along each dimension.
    grid: Shape,
    outer: Shape,
    inner: Shape,
    limits: Limits,
    tables: Mutex<HashMap<u64, Arc<Vec<Option<Extent>>>>>,
}

impl Sharded {
    fn new(
        source: &Source,
        meta: &ArrayMeta,
        shard: &Shard,
        stored: Stored,
        codec: Option<Arc<dyn Codec>>,
        limits: Limits,
    ) -> Self {
        let divided = |a: &Shape, b: &Shape| {
            let lengths = a.lengths().iter().zip(b.lengths()).map(|(a, b)| a.div_ceil(*b));
            Shape::new(lengths.collect::<Vec<_>>())
        };
        Self {
            source: source.clone(),
            stored,
            codec,
            grid: divided(&meta.shape, &shard.chunk),
            outer: meta.grid(),
            inner: divided(&meta.chunk, &shard.chunk),
            shard: shard.clone(),
            limits,
            tables: Mutex::default(),
        }
    }

    /// The index of a shard: the range of each chunk, `None` for missing chunks.
    fn table(&self, number: u64, file: Extent) -> Result<Arc<Vec<Option<Extent>>>> {
        let lock = || self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = lock().get(&number) {
            return Ok(table.clone());
        }
        let count = self.inner.count().and_then(|n| n.checked_mul(16)).ok_or_else(truncated)?;
        let len =
            count.checked_add(if self.shard.checked { 4 } else { 0 }).ok_or_else(truncated)?;
        let start = file.len.checked_sub(len).ok_or_else(truncated)?;
        let at = if self.shard.at_start { file.offset } else { file.offset + start };
        // The bytes and the table of ranges.
        self.limits.allow(len.saturating_mul(3), "a shard index")?;
        let mut bytes = self.source.read_vec(at, len)?;
        if self.shard.checked {
            let (data, sum) = bytes.split_last_chunk::<4>().ok_or_else(truncated)?;
            if crc32c(data) != u32::from_le_bytes(*sum) {
                return Err(invalid_chunk("shard index checksum mismatch"));
            }
            bytes.truncate(count as usize);
        }
        let word = |bytes: &[u8; 8]| match self.shard.order {
            ByteOrder::Little => u64::from_le_bytes(*bytes),
            ByteOrder::Big => u64::from_be_bytes(*bytes),
        };
        let mut table = Vec::with_capacity(bytes.len() / 16);
        for pair in bytes.as_chunks::<8>().0.as_chunks::<2>().0 {
            let (offset, len) = (word(&pair[0]), word(&pair[1]));
            if (offset, len) == (u64::MAX, u64::MAX) {
                table.push(None);
                continue;
            }
            if offset.checked_add(len).is_none_or(|end| end > file.len) {
                return Err(invalid_chunk("shard index refers to bytes outside the shard"));
            }
            table.push(Some(Extent { offset: file.offset + offset, len }));
        }
        let table = Arc::new(table);
        let mut tables = lock();
        let cached: usize = tables.values().map(|table| table.len()).sum();
        let bytes = ((cached + table.len()) * size_of::<Option<Extent>>()) as u64;
        if tables.len() >= MAX_SHARDS || bytes > self.limits.memory / 8 {
            tables.clear();
        }
        tables.insert(number, table.clone());
        Ok(table)
    }
}

impl ChunkTable for Sharded {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let (mut rest, mut shard, mut inside) = (number, 0, 0);
        let (mut shards, mut chunks) = (1, 1);
        for k in (0..self.grid.rank()).rev() {
            let at = rest % self.grid.lengths()[k];
            rest /= self.grid.lengths()[k];
            // All of these are smaller than the number of elements.
            shard += at / self.inner.lengths()[k] * shards;
            inside += at % self.inner.lengths()[k] * chunks;
            shards *= self.outer.lengths()[k];
            chunks *= self.inner.lengths()[k];
        }
        let Some(file) = self.stored.0.get(&shard) else { return Ok(None) };
        let table = self.table(shard, *file)?;
        let chunk = |range: &Extent| Chunk {
            extents: Extents::one(range.offset, range.len),
            codec: self.codec.clone(),
        };
        Ok(table.get(inside as usize).and_then(Option::as_ref).map(chunk))
    }
}
