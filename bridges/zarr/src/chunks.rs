//! Chunks of an array as a layout of core.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::error::{Error, Result};
use spile_core::layout::{Codec, Extent, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;

use crate::decode::{Decoder, divided, truncated, utf32_to_utf8};
use crate::store::Stored;
use crate::wire::{ArrayMeta, ChunkCodecs, Element, Shard, unsupported};

/// Largest number of cached shard indexes.
const MAX_SHARDS: usize = 64;

/// The files of the chunks of an array.
#[derive(Clone)]
pub(crate) struct ChunkFiles {
    pub(crate) source: Source,
    pub(crate) limits: Limits,
    /// Bytes of the source, by number of the chunk or shard.
    files: Arc<BTreeMap<u64, Stored>>,
}

/// A field of structured elements: offset in bytes and shape.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldPart {
    pub(crate) offset: usize,
    pub(crate) dims: Vec<u64>,
}

impl ChunkFiles {
    /// `files` has the number of a file in `stored` for each chunk.
    pub(crate) fn new(
        source: &Source,
        stored: &[Stored],
        files: &BTreeMap<u64, usize>,
        limits: &Limits,
    ) -> Self {
        let files = files.iter().map(|(number, k)| (*number, stored[*k])).collect();
        Self { source: source.clone(), limits: *limits, files: Arc::new(files) }
    }

    /// Whether no chunk is stored.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The layout of an array, or of one field of its elements: contiguous ranges where the files are slabs of
    /// the array, chunks otherwise.
    pub(crate) fn layout(
        &self,
        meta: &ArrayMeta,
        element: &Element,
        part: Option<&FieldPart>,
    ) -> Result<Layout> {
        let fill = shown_fill(meta, element, part)?;
        if self.is_empty() && meta.shape.count() != Some(0) {
            let mut fill = fill.to_vec();
            spile_core::convert::to_little(element.dtype, &mut fill);
            return Ok(Layout::Fill(fill.into()));
        }
        if part.is_none()
            && !element.is_utf32
            && let Some(plain) = self.contiguous(meta)?
        {
            return Ok(plain);
        }
        let mut extra = Shape::scalar();
        let mut field = None;
        if let Some(part) = part {
            extra = Shape::new(part.dims.as_slice());
            let len = extra.bytes(element.dtype.size())? as usize;
            field = Some((part.offset, len));
        }
        let (chunk, codecs) = meta.inner();
        let decoder = Decoder::codec(meta, codecs, chunk, element, field, &self.limits);
        let table: Arc<dyn ChunkTable> = match meta.simple_shard() {
            Some(shard) => Arc::new(self.sharded(meta, shard, decoder)?),
            None => Arc::new(Files {
                inflated: self.inflated(meta, codecs, chunk, element, field),
                stored: self.files.clone(),
                codec: decoder,
            }),
        };
        let joined = |shape: &Shape| {
            Shape::new(shape.lengths().iter().chain(extra.lengths()).copied().collect::<Vec<_>>())
        };
        let rank = meta.shape.rank();
        let axes = codecs.axes.iter().copied().chain(rank..rank + extra.rank()).collect();
        let chunks = Chunks { shape: joined(&meta.shape), chunk: joined(chunk), axes, table, fill };
        Ok(Layout::Chunked { chunks: Arc::new(chunks), first: 0 })
    }

    /// The decoder of chunks in deflated members of a zip archive, if there are any.
    fn inflated(
        &self,
        meta: &ArrayMeta,
        codecs: &ChunkCodecs,
        chunk: &Shape,
        element: &Element,
        field: Option<(usize, usize)>,
    ) -> Option<Arc<dyn Codec>> {
        self.files.values().find(|file| file.deflated.is_some())?;
        Decoder::codec(meta, &codecs.inflated(), chunk, element, field, &self.limits)
    }

    /// The chunks of shards.
    pub(crate) fn sharded(
        &self,
        meta: &ArrayMeta,
        shard: &Shard,
        codec: Option<Arc<dyn Codec>>,
    ) -> Result<Sharded> {
        if self.files.values().any(|file| file.deflated.is_some()) {
            return Err(unsupported("shards in compressed members of a zip archive"));
        }
        Ok(Sharded {
            stored: self.clone(),
            codec,
            grid: divided(&meta.shape, &shard.chunk),
            outer: meta.grid(),
            inner: divided(&meta.chunk, &shard.chunk),
            shard: shard.clone(),
            tables: Mutex::default(),
            numbers: OnceLock::new(),
        })
    }

    /// The stored chunks of an array without shards.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (u64, Stored)> + '_ {
        self.files.iter().map(|(number, stored)| (*number, *stored))
    }

    /// The layout of an array whose files are unencoded slabs along the slowest dimension, all of them present
    /// and complete; `None` for other arrays.
    fn contiguous(&self, meta: &ArrayMeta) -> Result<Option<Layout>> {
        let ArrayMeta { shape, chunk, codecs, .. } = meta;
        let size = meta.data_type.size();
        let order = if codecs.axes == Order::C.slowest_first(shape.rank()) {
            Order::C
        } else if codecs.axes == Order::F.slowest_first(shape.rank()) {
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
        let bytes = shape.bytes(size)?;
        let each = chunk.bytes(size)?;
        let mut rest = bytes;
        let mut parts = Vec::new();
        for (k, (number, file)) in self.files.iter().enumerate() {
            let Stored { extent: file, deflated } = *file;
            if *number != k as u64 || file.len != each || deflated.is_some() {
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
}

/// The fill value of an element, or of one field, as readers see it.
fn shown_fill(meta: &ArrayMeta, element: &Element, part: Option<&FieldPart>) -> Result<Arc<[u8]>> {
    let size = element.dtype.size();
    let mut fill = match part {
        None => meta.fill.clone(),
        Some(part) => {
            let len = Shape::new(part.dims.as_slice()).bytes(size)? as usize;
            let field = &meta.fill[part.offset..part.offset + len];
            let (first, _) = field.split_at(size.min(len));
            if field.chunks_exact(size.max(1)).any(|own| own != first) {
                return Err(unsupported("the fill value of an array field is not uniform"));
            }
            let mut first = first.to_vec();
            first.resize(size, 0);
            first
        }
    };
    if element.is_utf32 {
        utf32_to_utf8(&mut fill, size, element.dtype.order())?;
    }
    Ok(fill.into())
}

/// One file per chunk.
struct Files {
    stored: Arc<BTreeMap<u64, Stored>>,
    codec: Option<Arc<dyn Codec>>,
    /// The codec of deflated members of a zip archive.
    inflated: Option<Arc<dyn Codec>>,
}

impl ChunkTable for Files {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let Some(file) = self.stored.get(&number) else { return Ok(None) };
        let codec = if file.deflated.is_some() { &self.inflated } else { &self.codec };
        Ok(Some(chunk(file.extent, codec.as_ref())))
    }

    fn stored(&self) -> Option<u64> {
        Some(self.stored.len() as u64)
    }

    fn next(&self, number: u64) -> Result<Option<u64>> {
        Ok(self.stored.range(number..).next().map(|(number, _)| *number))
    }
}

fn chunk(range: Extent, codec: Option<&Arc<dyn Codec>>) -> Chunk {
    Chunk { extents: Extents::one(range.offset, range.len), codec: codec.cloned() }
}

/// One file per shard.
pub(crate) struct Sharded {
    stored: ChunkFiles,
    codec: Option<Arc<dyn Codec>>,
    shard: Shard,
    /// Number of chunks, of shards, and of chunks per shard, along each dimension.
    grid: Shape,
    outer: Shape,
    inner: Shape,
    tables: Mutex<HashMap<u64, Arc<Vec<Option<Extent>>>>>,
    /// Numbers of all stored chunks, sorted, once they were needed.
    numbers: OnceLock<Vec<u64>>,
}

impl Sharded {
    /// The index of a shard: the range of each chunk, `None` for missing chunks.
    fn table(&self, number: u64, file: Extent) -> Result<Arc<Vec<Option<Extent>>>> {
        let lock = || self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(table) = lock().get(&number) {
            return Ok(table.clone());
        }
        let len = self.shard.index_len(&self.inner)?;
        let start = file.len.checked_sub(len).ok_or_else(truncated)?;
        let at = if self.shard.at_start { file.offset } else { file.offset + start };
        // The bytes and the table of ranges.
        self.stored.limits.allow(len.saturating_mul(3), "a shard index")?;
        let bytes = self.stored.source.read_vec(at, len)?;
        let mut table = self.shard.ranges(&bytes, file.len)?;
        table.iter_mut().flatten().for_each(|range| range.offset += file.offset);
        let table = Arc::new(table);
        let mut tables = lock();
        let cached: usize = tables.values().map(|table| table.len()).sum();
        let bytes = ((cached + table.len()) * size_of::<Option<Extent>>()) as u64;
        if tables.len() >= MAX_SHARDS || bytes > self.stored.limits.memory / 8 {
            tables.clear();
        }
        tables.insert(number, table.clone());
        Ok(table)
    }

    /// Numbers and ranges of the stored chunks of all shards.
    pub(crate) fn chunks(&self) -> Result<Vec<(u64, Stored)>> {
        let each = self.inner.count().unwrap_or(u64::MAX);
        let entries = (self.stored.files.len() as u64).saturating_mul(each);
        let bytes = entries.saturating_mul(size_of::<(u64, Stored)>() as u64);
        self.stored.limits.allow(bytes, "the chunks of all shards")?;
        let mut found = Vec::new();
        for (shard, file) in self.stored.chunks() {
            let table = self.table(shard, file.extent)?;
            for (inside, range) in table.iter().enumerate() {
                let Some(extent) = *range else { continue };
                let (mut a, mut b, mut number, mut stride) = (shard, inside as u64, 0, 1);
                let mut is_inside = true;
                for k in (0..self.grid.rank()).rev() {
                    let (outer, inner) = (self.outer.lengths()[k], self.inner.lengths()[k]);
                    let at = a % outer * inner + b % inner;
                    is_inside &= at < self.grid.lengths()[k];
                    number += at * stride;
                    (a, b, stride) = (a / outer, b / inner, stride * self.grid.lengths()[k]);
                }
                if is_inside {
                    found.push((number, Stored { extent, deflated: None }));
                }
            }
        }
        Ok(found)
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
        let Some(file) = self.stored.files.get(&shard) else { return Ok(None) };
        let table = self.table(shard, file.extent)?;
        let range = table.get(inside as usize).copied().flatten();
        Ok(range.map(|range| chunk(range, self.codec.as_ref())))
    }

    fn stored(&self) -> Option<u64> {
        // A chunk has 16 bytes in the index of its shard.
        let bytes = self.stored.files.values().map(|file| file.extent.len);
        Some(bytes.sum::<u64>() / 16)
    }

    fn next(&self, number: u64) -> Result<Option<u64>> {
        let numbers = if let Some(numbers) = self.numbers.get() {
            numbers
        } else {
            let mut found: Vec<u64> = self.chunks()?.iter().map(|(number, _)| *number).collect();
            found.sort_unstable();
            self.numbers.get_or_init(|| found)
        };
        let k = numbers.partition_point(|known| *known < number);
        Ok(numbers.get(k).copied())
    }
}

/// An error about an array that is too long.
pub(crate) fn too_long(what: &str, limits: &Limits) -> Error {
    let budget = limits.memory / 4;
    unsupported(format!("{what} need more than {budget} bytes, a quarter of the memory limit"))
}
