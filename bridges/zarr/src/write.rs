//! Files of a new store: metadata documents, and chunks that are slabs of an array.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value as Json, json};
use spile_codecs::Encoder;
use spile_core::dtype::Kind;
use spile_core::error::{Error, Result};
use spile_core::layout::ArrayDesc;
use spile_core::shape::{Order, Shape};
use spile_core::sink::{FolderSink, Sink};

use crate::grid::Grid;
use crate::wire::{Object, zero_fill_3};

/// Writes the chunk files of one array whose uncompressed chunks are [slabs](is_slab).
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

/// Whether chunks are contiguous in an array: parts of the slowest dimension, all of the others.
pub(crate) fn is_slab(shape: &Shape, chunk: &Shape, order: Order) -> bool {
    let axis = slowest(shape, order);
    let mut lengths = shape.lengths().iter().zip(chunk.lengths()).enumerate();
    lengths.all(|(k, (length, own))| k == axis || length == own)
}

/// The document `zarr.json` of an array.
pub(crate) fn array_document(
    array: &ArrayDesc,
    data_type: &Json,
    (grid, order, encoder): (&Grid, Order, Option<Encoder>),
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
    codecs.extend(encoder.and_then(|encoder| match encoder {
        Encoder::Gzip(level) => {
            Some(json!({ "name": "gzip", "configuration": { "level": level } }))
        }
        Encoder::Zstd(level) => {
            Some(json!({ "name": "zstd", "configuration": { "level": level, "checksum": false } }))
        }
        // Refused by `Settings`.
        Encoder::Zlib(_) | Encoder::Snappy | Encoder::Lz4 => None,
    }));
    if grid.shard.is_some() {
        codecs = vec![json!({ "name": "sharding_indexed", "configuration": {
            "chunk_shape": grid.chunk.lengths(),
            "codecs": codecs,
            "index_codecs": [
                { "name": "bytes", "configuration": { "endian": "little" } },
                { "name": "crc32c" },
            ],
            "index_location": "end",
        }})];
    }
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": array.shape.lengths(),
        "data_type": data_type,
        "chunk_grid":
            { "name": "regular", "configuration": { "chunk_shape": grid.file().lengths() } },
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
