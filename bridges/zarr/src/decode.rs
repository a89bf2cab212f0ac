//! Decoding of a chunk: its codecs, shards that are decoded as a whole, fields of structures, UTF-32.

use std::borrow::Cow;
use std::sync::Arc;

use spile_codecs::crc32c;
use spile_core::error::{Error, Result};
use spile_core::layout::{Codec, Extent};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::wire::ByteOrder;

use crate::wire::{ArrayMeta, ChunkCodecs, Element, Shard};

/// An error about the content of a chunk.
pub(crate) fn invalid(message: impl Into<String>) -> Error {
    Error::malformed("zarr-005", message)
}

/// An error about the index of a shard.
fn invalid_index(message: &str) -> Error {
    Error::malformed("zarr-007", message)
}

/// An error about a shard that is shorter than its index.
pub(crate) fn truncated() -> Error {
    Error::truncated("zarr-006", "unexpected end of shard")
}

/// Decodes chunks to elements, or to one field of structured elements.
pub(crate) struct Decoder {
    codecs: ChunkCodecs,
    /// Shape of a chunk.
    chunk: Shape,
    /// Size and fill value of a stored element.
    size: usize,
    fill: Arc<[u8]>,
    /// Offset and size of a field in bytes.
    field: Option<(usize, usize)>,
    /// Size in bytes and byte order of UTF-32 strings.
    utf32: Option<(usize, ByteOrder)>,
    limits: Limits,
    name: String,
}

impl Decoder {
    /// The decoder of chunks with these codecs; `None` if the stored bytes are the elements. `field` is the offset
    /// and the size of the field in bytes.
    pub(crate) fn codec(
        meta: &ArrayMeta,
        codecs: &ChunkCodecs,
        chunk: &Shape,
        element: &Element,
        field: Option<(usize, usize)>,
        limits: &Limits,
    ) -> Option<Arc<dyn Codec>> {
        let utf32 = element.is_utf32.then(|| (element.dtype.size(), element.dtype.order()));
        if codecs.shard.is_none() && field.is_none() && utf32.is_none() {
            // The usual case.
            let pipeline = &codecs.pipeline;
            return (!pipeline.is_empty()).then(|| Arc::new(pipeline.clone()) as Arc<dyn Codec>);
        }
        let mut name = codecs.pipeline.name().to_string();
        let more = [
            (codecs.shard.is_some(), "shard"),
            (field.is_some(), "field"),
            (utf32.is_some(), "utf32"),
        ];
        for (_, own) in more.iter().filter(|(is_used, _)| *is_used) {
            name = if name.is_empty() { (*own).into() } else { format!("{own}+{name}") };
        }
        Some(Arc::new(Self {
            codecs: codecs.clone(),
            chunk: chunk.clone(),
            size: meta.data_type.size(),
            fill: meta.fill.as_slice().into(),
            field,
            utf32,
            limits: *limits,
            name,
        }))
    }
}

impl Codec for Decoder {
    fn name(&self) -> &str {
        &self.name
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let all = Elements { size: self.size, fill: &self.fill, limits: &self.limits };
        if let Some((offset, len)) = self.field {
            let count = self.chunk.count().and_then(|n| n.checked_mul(self.size as u64));
            let mut records = vec![0; self.limits.allow(count.unwrap_or(u64::MAX), "a chunk")?];
            all.decode(&self.codecs, &self.chunk, stored, &mut records)?;
            let records = records.chunks_exact(self.size.max(1));
            for (record, target) in records.zip(out.chunks_exact_mut(len.max(1))) {
                target.copy_from_slice(&record[offset..offset + len]);
            }
        } else {
            all.decode(&self.codecs, &self.chunk, stored, out)?;
        }
        match self.utf32 {
            Some((size, order)) => utf32_to_utf8(out, size, order),
            None => Ok(()),
        }
    }
}

/// Converts UTF-32 strings of `size` bytes to UTF-8, which is never longer, in place.
pub(crate) fn utf32_to_utf8(strings: &mut [u8], size: usize, order: ByteOrder) -> Result<()> {
    for text in strings.chunks_exact_mut(size.max(4)) {
        let word = |raw: [u8; 4]| match order {
            ByteOrder::Little => u32::from_le_bytes(raw),
            ByteOrder::Big => u32::from_be_bytes(raw),
        };
        let count = text.as_chunks::<4>().0.iter().rposition(|raw| *raw != [0; 4]);
        let mut end = 0;
        for k in 0..count.map_or(0, |last| last + 1) {
            let c = word([text[4 * k], text[4 * k + 1], text[4 * k + 2], text[4 * k + 3]]);
            let c = char::from_u32(c).ok_or_else(|| invalid("invalid character in UTF-32"))?;
            // Overwrites characters that have been decoded.
            end += c.encode_utf8(&mut text[end..]).len();
        }
        text[end..].fill(0);
    }
    Ok(())
}

/// Stored elements of an array.
struct Elements<'a> {
    size: usize,
    fill: &'a [u8],
    limits: &'a Limits,
}

impl Elements<'_> {
    /// Decodes a chunk to `out`, in the element order of its codecs.
    fn decode(
        &self,
        codecs: &ChunkCodecs,
        chunk: &Shape,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let Some(shard) = &codecs.shard else {
            return if codecs.pipeline.is_empty() {
                let fits = stored.len() == out.len();
                let (expected, found) = (out.len(), stored.len());
                let message = || format!("chunk: expected {expected} bytes, found {found}");
                fits.then(|| out.copy_from_slice(stored)).ok_or_else(|| invalid(message()))
            } else {
                codecs.pipeline.decode(stored, out)
            };
        };
        let bytes = if codecs.pipeline.is_empty() {
            Cow::Borrowed(stored)
        } else {
            codecs.pipeline.decode_any(stored, self.limits.memory / 4)?.into()
        };
        let outer: Vec<u64> = codecs.axes.iter().map(|axis| chunk.lengths()[*axis]).collect();
        self.decode_shard(shard, &Shape::new(outer), &bytes, out)
    }

    /// Decodes all chunks of a shard of shape `outer` to `out`, in C order.
    fn decode_shard(
        &self,
        shard: &Shard,
        outer: &Shape,
        bytes: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let grid = divided(outer, &shard.chunk);
        let len = shard.index_len(&grid)?;
        let start = (bytes.len() as u64).checked_sub(len).ok_or_else(truncated)?;
        let start = if shard.at_start { 0 } else { start } as usize;
        let index = &bytes[start..start + len as usize];
        let ranges = shard.ranges(index, bytes.len() as u64)?;
        let strides = outer.strides(Order::C);
        let chunk = shard.chunk.lengths();
        let count = self.limits.allow(shard.chunk.bytes(self.size)?, "a chunk")?;
        let mut decoded = vec![0; count];
        for (number, range) in ranges.into_iter().enumerate() {
            match range {
                Some(range) => {
                    let stored = &bytes[range.offset as usize..][..range.len as usize];
                    self.decode(&shard.codecs, &shard.chunk, stored, &mut decoded)?;
                }
                None => {
                    for element in decoded.chunks_exact_mut(self.size.max(1)) {
                        element.copy_from_slice(self.fill);
                    }
                }
            }
            // Position of the first element of the chunk in the shard.
            let (mut rest, mut first) = (number as u64, 0);
            for k in (0..grid.rank()).rev() {
                first += rest % grid.lengths()[k] * chunk[k] * strides[k];
                rest /= grid.lengths()[k];
            }
            let steps: Vec<(u64, u64)> =
                shard.codecs.axes.iter().map(|axis| (chunk[*axis], strides[*axis])).collect();
            let mut from = decoded.chunks_exact(self.size.max(1));
            each_position(&steps, first, &mut |at| {
                if let Some(element) = from.next() {
                    let at = at as usize * self.size;
                    out[at..at + self.size].copy_from_slice(element);
                }
            });
        }
        Ok(())
    }
}

/// Calls `each` with the position of every element of a box, the last of `steps` (counts and strides) fastest.
pub(crate) fn each_position(steps: &[(u64, u64)], first: u64, each: &mut impl FnMut(u64)) {
    match steps.split_first() {
        None => each(first),
        Some(((count, stride), inner)) => {
            (0..*count).for_each(|k| each_position(inner, first + k * stride, each));
        }
    }
}

/// Number of parts of shape `b` along each dimension of `a`.
pub(crate) fn divided(a: &Shape, b: &Shape) -> Shape {
    let lengths = a.lengths().iter().zip(b.lengths()).map(|(a, b)| a.div_ceil(*b));
    Shape::new(lengths.collect::<Vec<_>>())
}

impl Shard {
    /// Length of the index in bytes, for chunks on `grid`.
    pub(crate) fn index_len(&self, grid: &Shape) -> Result<u64> {
        let len = grid.count().and_then(|n| n.checked_mul(16));
        let sum = if self.checked { 4 } else { 0 };
        len.and_then(|len| len.checked_add(sum)).ok_or_else(truncated)
    }

    /// The range of each chunk in a shard of `len` bytes, `None` for missing chunks.
    pub(crate) fn ranges(&self, mut index: &[u8], len: u64) -> Result<Vec<Option<Extent>>> {
        if self.checked {
            let (data, sum) = index.split_last_chunk::<4>().ok_or_else(truncated)?;
            if crc32c(data) != u32::from_le_bytes(*sum) {
                return Err(invalid_index("shard index checksum mismatch"));
            }
            index = data;
        }
        let word = |bytes: &[u8; 8]| match self.order {
            ByteOrder::Little => u64::from_le_bytes(*bytes),
            ByteOrder::Big => u64::from_be_bytes(*bytes),
        };
        let mut ranges = Vec::with_capacity(index.len() / 16);
        for pair in index.as_chunks::<8>().0.as_chunks::<2>().0 {
            let (offset, size) = (word(&pair[0]), word(&pair[1]));
            if (offset, size) == (u64::MAX, u64::MAX) {
                ranges.push(None);
                continue;
            }
            if offset.checked_add(size).is_none_or(|end| end > len) {
                return Err(invalid_index("shard index refers to bytes outside the shard"));
            }
            ranges.push(Some(Extent { offset, len: size }));
        }
        Ok(ranges)
    }
}
