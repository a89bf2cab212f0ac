//! Where the chunks of an array are.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::error::Result;
use spile_core::layout::{Codec, Extent, Extents, Layout};
use spile_core::shape::{Order, Shape};
use spile_core::source::{Part, Source};
use spile_core::wire::ByteOrder;

use crate::codec::{crc32c, cut, damaged};
use crate::wire::{ArrayMeta, Shard};

/// Tables of shards that are remembered.
const SHARDS: usize = 64;

/// The files of an array's chunks, by number.
pub(crate) struct Stored(BTreeMap<u64, Extent>);

impl Stored {
    /// Their places among the bytes of all files.
    pub(crate) fn new(source: &Source, files: &BTreeMap<u64, usize>) -> Self {
        let parts = source.parts();
        let place = |k: usize| {
            let (offset, next) = (parts[k].start(), parts.get(k + 1));
            let end = next.map_or(source.len(), Part::start);
            Extent { offset, len: end - offset }
        };
        Self(files.iter().map(|(number, k)| (*number, place(*k))).collect())
    }
}

/// The layout of an array: plain ranges where the files are nothing else, chunks otherwise.
pub(crate) fn layout(source: &Source, meta: &ArrayMeta, stored: Stored) -> Result<Layout> {
    if let Some(plain) = plain(meta, &stored)? {
        return Ok(plain);
    }
    let codec = |pipe: &crate::codec::Pipe| {
        (!pipe.is_empty()).then(|| Arc::new(pipe.clone()) as Arc<dyn Codec>)
    };
    let (shape, fill) = (meta.shape.clone(), meta.fill.as_slice().into());
    let chunks = if let Some(shard) = &meta.coding.shard {
        let (chunk, axes) = (shard.chunk.clone(), shard.coding.axes.clone());
        let table = Sharded::new(source, meta, shard, stored, codec(&shard.coding.pipe));
        Chunks { shape, chunk, axes, table: Arc::new(table), fill }
    } else {
        let (chunk, axes) = (meta.chunk.clone(), meta.coding.axes.clone());
        let table = Arc::new(Files { stored, codec: codec(&meta.coding.pipe) });
        Chunks { shape, chunk, axes, table, fill }
    };
    Ok(Layout::Chunked { chunks: Arc::new(chunks), first: 0 })
}

/// The array as ranges that follow each other, where only its slowest dimension is cut and all files
/// are there, whole.
fn plain(meta: &ArrayMeta, stored: &Stored) -> Result<Option<Layout>> {
    let ArrayMeta { shape, chunk, coding, dtype, .. } = meta;
    let order = if coding.axes == Chunks::axes(shape.rank(), Order::C) {
        Order::C
    } else if coding.axes == Chunks::axes(shape.rank(), Order::F) {
        Order::F
    } else {
        return Ok(None);
    };
    if !coding.pipe.is_empty() || coding.shard.is_some() {
        return Ok(None);
    }
    // Only the first dimension that is longer than one may be cut.
    let mut cut = false;
    for axis in &coding.axes {
        let (length, own) = (shape.lengths()[*axis], chunk.lengths()[*axis]);
        if (cut && length != own) || (length == 1 && own != 1) {
            return Ok(None);
        }
        cut |= length > 1;
    }
    let bytes = shape.bytes(dtype.size())?;
    let each = chunk.bytes(dtype.size())?;
    let mut rest = bytes;
    let mut parts = Vec::new();
    for (k, (number, place)) in stored.0.iter().enumerate() {
        if *number != k as u64 || place.len != each {
            return Ok(None);
        }
        let len = place.len.min(rest);
        parts.push(Extent { offset: place.offset, len });
        rest -= len;
    }
    if rest > 0 {
        return Ok(None);
    }
    Ok(Some(Layout::Plain { extents: Extents::several(parts)?, order }))
}

/// A file a chunk.
struct Files {
    stored: Stored,
    codec: Option<Arc<dyn Codec>>,
}

impl ChunkTable for Files {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let chunk = |place: &Extent| Chunk {
            extents: Extents::one(place.offset, place.len),
            codec: self.codec.clone(),
        };
        Ok(self.stored.0.get(&number).map(chunk))
    }
}

/// A file a shard.
struct Sharded {
    source: Source,
    stored: Stored,
    codec: Option<Arc<dyn Codec>>,
    shard: Shard,
    /// Chunks along each dimension in all, shards along each, and chunks in a shard along each.
    grid: Shape,
    outer: Shape,
    inner: Shape,
    tables: Mutex<HashMap<u64, Arc<Vec<Option<Extent>>>>>,
}

impl Sharded {
    fn new(
        source: &Source,
        meta: &ArrayMeta,
        shard: &Shard,
        stored: Stored,
        codec: Option<Arc<dyn Codec>>,
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
            tables: Mutex::default(),
        }
    }

    /// Where the chunks of a shard are.
    fn table(&self, number: u64, place: Extent) -> Result<Arc<Vec<Option<Extent>>>> {
        let lock = || self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = lock().get(&number) {
            return Ok(table.clone());
        }
        let count = self.inner.count().and_then(|n| n.checked_mul(16)).ok_or_else(cut)?;
        let len = count.checked_add(if self.shard.checked { 4 } else { 0 }).ok_or_else(cut)?;
        let before = place.len.checked_sub(len).ok_or_else(cut)?;
        let at = if self.shard.at_start { place.offset } else { place.offset + before };
        // The file is longer than this.
        let mut bytes = self.source.read_vec(at, len)?;
        if self.shard.checked {
            let (data, sum) = bytes.split_last_chunk::<4>().ok_or_else(cut)?;
            if crc32c(data) != u32::from_le_bytes(*sum) {
                return Err(damaged("the checksum of a shard's index is wrong"));
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
            if offset.checked_add(len).is_none_or(|end| end > place.len) {
                return Err(damaged("a shard's index leads out of the shard"));
            }
            table.push(Some(Extent { offset: place.offset + offset, len }));
        }
        let table = Arc::new(table);
        let mut tables = lock();
        if tables.len() >= SHARDS {
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
            // Fewer than there are elements: none of these overflows.
            shard += at / self.inner.lengths()[k] * shards;
            inside += at % self.inner.lengths()[k] * chunks;
            shards *= self.outer.lengths()[k];
            chunks *= self.inner.lengths()[k];
        }
        let Some(place) = self.stored.0.get(&shard) else { return Ok(None) };
        let table = self.table(shard, *place)?;
        let chunk = |place: &Extent| Chunk {
            extents: Extents::one(place.offset, place.len),
            codec: self.codec.clone(),
        };
        Ok(table.get(inside as usize).and_then(Option::as_ref).map(chunk))
    }
}
