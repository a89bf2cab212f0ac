//! Parts of elements: members of compound datatypes, and integers that do not use all of their bits.

use std::borrow::Cow;
use std::sync::Arc;

use spile_codecs::Pipeline;
use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::error::{Error, Result};
use spile_core::layout::{Codec, Extents, Layout};
use spile_core::shape::{Order, Shape};

use crate::wire::datatype::{Element, Reduced};

/// Bytes that are decoded at once from a contiguous dataset.
const BLOCK: u64 = 1 << 20;

/// The part of each element that an array shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Size of an element in bytes.
    pub(crate) record: usize,
    /// First byte of the part.
    pub(crate) offset: usize,
    /// Size of the part in bytes, at least 1.
    pub(crate) len: usize,
    pub(crate) reduced: Option<Reduced>,
}

impl Part {
    /// Whether elements are shown as they are stored.
    pub(crate) fn is_whole(self) -> bool {
        self.offset == 0 && self.len == self.record && self.reduced.is_none()
    }

    /// Copies the part of each of `records` to `out`.
    pub(crate) fn copy(self, records: &[u8], out: &mut [u8]) {
        let records = records.chunks_exact(self.record.max(1));
        for (target, record) in out.chunks_exact_mut(self.len.max(1)).zip(records) {
            if let Some(part) = record.get(self.offset..self.offset + self.len) {
                target.copy_from_slice(part);
            }
        }
        if let Some(reduced) = self.reduced {
            reduced.extend(out);
        }
    }
}

/// Decodes chunks of elements and copies a part of each element.
pub(crate) struct PartCodec {
    pub(crate) pipeline: Option<Arc<Pipeline>>,
    pub(crate) part: Part,
}

impl Codec for PartCodec {
    fn name(&self) -> &str {
        self.pipeline.as_ref().map_or("member", |pipeline| pipeline.name())
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let Part { record, len, .. } = self.part;
        let bytes = (out.len() / len.max(1)).saturating_mul(record);
        let records = match &self.pipeline {
            Some(pipeline) => {
                let mut decoded = vec![0; bytes];
                pipeline.decode(stored, &mut decoded)?;
                Cow::Owned(decoded)
            }
            None => Cow::Borrowed(stored),
        };
        // The last block of a contiguous dataset is shorter; its other elements are outside of the dataset.
        if records.len() > bytes {
            let message =
                format!("chunk of elements: expected {bytes} bytes, found {}", records.len());
            return Err(Error::malformed("hdf5-024", message));
        }
        self.part.copy(&records, out);
        Ok(())
    }
}

/// The layout of a part of a contiguous dataset at `offset` of the file with the dimensions `dims`, of at least one
/// element.
pub(crate) fn contiguous(
    offset: u64,
    dims: &[u64],
    element: &Element,
    part: Part,
) -> Result<Layout> {
    let record = part.record as u64;
    let bytes = Shape::new(dims).bytes(part.record)?;
    let start = offset.saturating_add(part.offset as u64);
    if element.dims.is_empty() && part.reduced.is_none() {
        let extents = Extents::one(start, bytes - record + part.len as u64);
        return Ok(match dims {
            [] => Layout::Plain { extents, order: Order::C },
            _ => Layout::Rows { extents, stride: record, order: Order::C },
        });
    }
    let mut block = dims.to_vec();
    if let Some((first, rest)) = block.split_first_mut() {
        let row = Shape::new(&*rest).bytes(part.record)?.max(1);
        *first = (BLOCK / row).clamp(1, *first);
    }
    let table = Blocks {
        offset,
        end: offset.saturating_add(bytes),
        block: Shape::new(&block[..]).bytes(part.record)?,
        codec: Arc::new(PartCodec { pipeline: None, part }),
    };
    let joined = |own: &[u64]| Shape::new([own, &element.dims].concat());
    let (shape, chunk) = (joined(dims), joined(&block));
    let axes = Order::C.slowest_first(shape.rank());
    let fill = vec![0; element.dtype.size()].into();
    let chunks = Chunks { shape, chunk, axes, table: Arc::new(table), fill };
    Ok(Layout::Chunked { chunks: Arc::new(chunks), first: 0 })
}

/// Blocks of rows of a contiguous dataset.
struct Blocks {
    offset: u64,
    end: u64,
    /// Size of a block in bytes.
    block: u64,
    codec: Arc<PartCodec>,
}

impl ChunkTable for Blocks {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let start = number.saturating_mul(self.block).saturating_add(self.offset).min(self.end);
        let extents = Extents::one(start, self.block.min(self.end - start));
        Ok(Some(Chunk { extents, codec: Some(self.codec.clone()) }))
    }
}
