//! Chunked datasets: filters, and chunks as a layout of core.

use std::sync::Arc;

use spile_codecs::{BlockCompression, Nbit, Pipeline, ScaleOffset, Step, Szip};
use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::error::{Error, Result};
use spile_core::layout::{Codec, Extents, Layout};
use spile_core::shape::{Order, Shape};

use super::fields::{Part, PartCodec};
use crate::wire::Context;
use crate::wire::chunk_index::ChunkRecord;
use crate::wire::datatype::Element;
use crate::wire::messages::{ChunkedLayout, Dataspace, Filter};

/// The decoder of a filter pipeline. Fails with `Unsupported` if a filter is not supported. `element` is the size
/// of an element in bytes, `at` the file offset for errors.
pub(crate) fn pipeline(filters: &[Filter], element: u64, at: u64) -> Result<Pipeline> {
    let unsupported = |message: String| Error::unsupported("hdf5-010", message).at(at);
    let mut steps = Vec::new();
    for filter in filters {
        steps.push(step(filter, element).ok_or_else(|| {
            let id = filter.id;
            let message = match id {
                4 => "szip with these parameters is not supported".into(),
                5 => "filter nbit (5) of compound data is not supported".into(),
                6 => "filter scaleoffset (6) with these parameters is not supported".into(),
                _ if filter.name.is_empty() => format!("filter {id} is not supported"),
                _ => format!("filter {} ({id}) is not supported", filter.name),
            };
            unsupported(message).hint("h5repack -f GZIP=4 IN OUT recompresses the data")
        })?);
    }
    let pipeline = Pipeline::new(steps, "hdf5-012");
    pipeline.ok_or_else(|| unsupported("more than one compression filter is not supported".into()))
}

/// The decoder of a filter, by the identifiers that The HDF Group has registered; `None` if it is not supported.
fn step(filter: &Filter, element: u64) -> Option<Step> {
    let value = |k: usize| filter.values.get(k).map(|value| *value as usize);
    Some(match filter.id {
        1 => Step::Zlib,
        2 => Step::Shuffle(value(0).unwrap_or(element as usize)),
        3 => Step::Fletcher32,
        4 => {
            let [options, block, bits, scanline] = filter.values.get(..4)? else { return None };
            let (options, block, bits, scanline) = (*options, *block, *bits, *scanline);
            Step::Szip(Szip { options, block, bits, scanline })
        }
        5 => nbit(&filter.values, element as usize)?,
        6 => scale_offset(&filter.values)?,
        307 => Step::Bzip2,
        32000 => Step::Lzf,
        32001 => Step::Blosc,
        32004 => Step::Lz4Blocks,
        // The first two values are the version of the filter.
        32008 => Step::Bitshuffle {
            element: value(2).unwrap_or(element as usize),
            block: value(3).unwrap_or(0),
            compression: match value(4) {
                None | Some(0) => BlockCompression::None,
                Some(2) => BlockCompression::Lz4,
                Some(3) => BlockCompression::Zstd,
                Some(_) => return None,
            },
        },
        32015 => Step::Zstd,
        _ => return None,
    })
}

/// The filter nbit for numbers and arrays of numbers: number of parameters, flag, number of elements, datatype.
fn nbit(values: &[u32], element: usize) -> Option<Step> {
    // Nothing was left out: the data are stored as they are.
    if *values.get(1)? == 1 {
        return Some(Step::Nbit(Nbit { size: 1, is_big: false, precision: 8, offset: 0 }));
    }
    let mut datatype = values.get(3..)?;
    // Class 2 is an array: its size, then its base.
    while let [2, _, base @ ..] = datatype {
        datatype = base;
    }
    let [1, size, order, precision, offset, ..] = *datatype else { return None };
    let size = size as usize;
    let fits = (1..=8).contains(&size) && element.is_multiple_of(size);
    fits.then_some(Step::Nbit(Nbit { size, is_big: order == 1, precision, offset }))
}

/// The filter scaleoffset: scale type, factor, number of elements, class, size, sign, order, fill value.
fn scale_offset(values: &[u32]) -> Option<Step> {
    let [kind, factor, _, class, size, _, order, has_fill, fill @ ..] = values else { return None };
    let decimals = match (kind, class) {
        (2, 0) => None,
        (0, 1) => Some(*factor as i32),
        _ => return None,
    };
    let part = |k: usize| u64::from(fill.get(k).copied().unwrap_or(0));
    let fill = (*has_fill == 1).then(|| part(0) | part(1) << 32);
    let (size, is_big) = (*size as usize, *order == 1);
    Some(Step::ScaleOffset(ScaleOffset { size, is_big, decimals, fill }))
}

/// The chunks of a dataset and their encoding.
pub(crate) struct StoredChunks {
    pub(crate) records: Vec<ChunkRecord>,
    pub(crate) pipeline: Pipeline,
    /// The element of missing chunks, in the byte order of the file.
    pub(crate) fill: Arc<[u8]>,
}

/// The layout of a part of each element of a chunked dataset.
pub(crate) fn layout(
    ctx: &Context,
    element: &Element,
    chunked: &ChunkedLayout,
    space: &Dataspace,
    stored: StoredChunks,
    part: Part,
) -> Layout {
    let StoredChunks { records, pipeline, fill } = stored;
    let joined = |own: &[u64]| Shape::new([own, &element.dims].concat());
    let (shape, chunk) = (joined(&space.dims), joined(&chunked.dims));
    let axes = Order::C.slowest_first(shape.rank());
    // Number of chunks along each dimension, and whether the last one is complete.
    let edge = |(n, c): (&u64, &u64)| (n.div_ceil(*c), n.is_multiple_of(*c));
    let edges = space.dims.iter().zip(&chunked.dims).map(edge);
    let edges = chunked.unfiltered_edges.then(|| edges.collect());
    let table =
        Arc::new(Table { base: ctx.base, records, pipeline: Arc::new(pipeline), edges, part });
    Layout::Chunked { chunks: Arc::new(Chunks { shape, chunk, axes, table, fill }), first: 0 }
}

struct Table {
    base: u64,
    /// Sorted by number.
    records: Vec<ChunkRecord>,
    pipeline: Arc<Pipeline>,
    /// Set if partial chunks, which extend beyond the dataset, are stored without filters: the number of chunks
    /// along each dimension, and whether the last one is complete.
    edges: Option<Vec<(u64, bool)>>,
    part: Part,
}

impl Table {
    fn is_unfiltered(&self, number: u64) -> bool {
        let mut rest = number;
        self.edges.iter().flatten().rev().any(|(count, complete)| {
            let at = rest % (*count).max(1);
            rest /= (*count).max(1);
            !complete && at + 1 == *count
        })
    }
}

impl ChunkTable for Table {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let Ok(k) = self.records.binary_search_by_key(&number, |record| record.number) else {
            return Ok(None);
        };
        let ChunkRecord { address, len, mask, .. } = self.records[k];
        let extents = Extents::one(self.base.saturating_add(address), len);
        let pipeline = match mask {
            _ if self.pipeline.is_empty() || self.is_unfiltered(number) => None,
            0 => Some(self.pipeline.clone()),
            mask => Some(Arc::new(self.pipeline.without(mask))),
        };
        let codec: Option<Arc<dyn Codec>> = match pipeline {
            pipeline if !self.part.is_whole() => {
                Some(Arc::new(PartCodec { pipeline, part: self.part }))
            }
            Some(pipeline) => Some(pipeline),
            None => None,
        };
        Ok(Some(Chunk { extents, codec }))
    }

    fn stored(&self) -> Option<u64> {
        Some(self.records.len() as u64)
    }

    fn next(&self, number: u64) -> Result<Option<u64>> {
        let k = self.records.partition_point(|record| record.number < number);
        Ok(self.records.get(k).map(|record| record.number))
    }
}
