//! Files of a new store: metadata documents and uncompressed chunks.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value as Json, json};
use spile_core::dtype::Kind;
use spile_core::error::{Error, Result};
use spile_core::layout::ArrayDesc;
use spile_core::shape::{Order, Shape};
use spile_core::sink::{FolderSink, Sink};

use crate::wire::{Object, zero_fill_3};

/// Target size of a chunk in bytes.
const CHUNK_BYTES: u64 = 64 << 20;

/// Writes the chunk files of one array.
pub(crate) struct ChunkWriter<'a> {
    folder: &'a FolderSink,
    path: &'a str,
    /// The dimension that is chunked.
    axis: usize,
    rank: usize,
    /// Size of a file and of the array, in bytes.
    each: u64,
    bytes: u64,
    /// Incomplete files and the number of bytes they lack.
    open: Mutex<HashMap<u64, (Arc<Sink>, u64)>>,
}

impl<'a> ChunkWriter<'a> {
    /// Files for an array at `path` with elements of `size` bytes. Fails if the size of the array exceeds
    /// 64 bits.
    pub(crate) fn new(
        folder: &'a FolderSink,
        path: &'a str,
        shape: &Shape,
        chunk: &Shape,
        size: usize,
        order: Order,
    ) -> Result<Self> {
        Ok(Self {
            folder,
            path,
            axis: slowest(shape, order),
            rank: shape.rank(),
            each: chunk.bytes(size)?,
            bytes: shape.bytes(size)?,
            open: Mutex::default(),
        })
    }

    /// Writes `bytes` at byte `at` of the array.
    pub(crate) fn write(&self, mut at: u64, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (file, offset) = (at / self.each, at % self.each);
            let len = (self.each - offset).min(bytes.len() as u64);
            let (now, later) = bytes.split_at(len as usize);
            let sink = self.file(file)?;
            sink.write_all_at(offset, now)?;
            self.written(file, len);
            (at, bytes) = (at + len, later);
        }
        Ok(())
    }

    fn file(&self, number: u64) -> Result<Arc<Sink>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((sink, _)) = open.get(&number) {
            return Ok(sink.clone());
        }
        let mut name = vec![self.path.to_string(), "c".to_string()];
        let index = |k: usize| if k == self.axis { number } else { 0 };
        name.extend((0..self.rank).map(|k| index(k).to_string()));
        let sink = Arc::new(self.folder.file(&name.join("/"))?);
        // Files are complete chunks; the part after the end of the array stays sparse.
        sink.set_len(self.each)?;
        let missing = self.each.min(self.bytes - number * self.each);
        open.insert(number, (sink.clone(), missing));
        Ok(sink)
    }

    /// Closes complete files, because the number of open files is limited.
    fn written(&self, number: u64, len: u64) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, missing)) = open.get_mut(&number) {
            *missing = missing.saturating_sub(len);
            if *missing == 0 {
                open.remove(&number);
            }
        }
    }
}

/// The slowest dimension that is longer than 1.
fn slowest(shape: &Shape, order: Order) -> usize {
    let long = |k: &usize| shape.lengths()[*k] > 1;
    let rank = shape.rank();
    match order {
        Order::C => (0..rank).find(long).unwrap_or(0),
        Order::F => (0..rank).rev().find(long).unwrap_or(rank.saturating_sub(1)),
    }
}

/// The shape of a chunk of about [`CHUNK_BYTES`]: a part of the slowest dimension, all of the others. The
/// slowest dimension is divided evenly, so that little of the last chunk is after the end of the array.
pub(crate) fn chunk_shape(shape: &Shape, size: usize, order: Order) -> Result<Shape> {
    let mut lengths: Vec<u64> = shape.lengths().iter().map(|n| (*n).max(1)).collect();
    if let Some(length) = lengths.get_mut(slowest(shape, order)) {
        let files = shape.bytes(size)?.div_ceil(CHUNK_BYTES).clamp(1, *length);
        *length = length.div_ceil(files);
    }
    let chunk = Shape::new(lengths);
    chunk.bytes(size)?;
    Ok(chunk)
}

/// The document `zarr.json` of an array.
pub(crate) fn array_document(
    array: &ArrayDesc,
    data_type: &Json,
    chunk: &Shape,
    order: Order,
    names: &[&str],
    attrs: &Object,
) -> Json {
    let mut codecs = Vec::new();
    if order == Order::F {
        let reversed: Vec<usize> = (0..array.shape.rank()).rev().collect();
        codecs.push(json!({ "name": "transpose", "configuration": { "order": reversed } }));
    }
    let bytes = matches!(array.dtype.kind(), Kind::Text | Kind::Opaque) || array.dtype.word() == 1;
    codecs.push(if bytes {
        json!({ "name": "bytes" })
    } else {
        json!({ "name": "bytes", "configuration": { "endian": "little" } })
    });
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": array.shape.lengths(),
        "data_type": data_type,
        "chunk_grid":
            { "name": "regular", "configuration": { "chunk_shape": chunk.lengths() } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": zero_fill_3(array.dtype),
        "codecs": codecs,
        "dimension_names": names,
        "attributes": attrs,
        "storage_transformers": [],
    })
}

/// Writes a metadata document.
pub(crate) fn write_document(folder: &FolderSink, name: &str, document: &Json) -> Result<()> {
    let text = serde_json::to_vec_pretty(document)
        .map_err(|e| Error::unsupported("zarr-008", format!("cannot be written as JSON: {e}")))?;
    Ok(folder.file(name)?.write_all(&text)?)
}
