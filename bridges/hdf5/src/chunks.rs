//! Chunked datasets as a layout of core.

use std::sync::Arc;

use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::error::Result;
use spile_core::layout::{Codec, Extents, Layout};
use spile_core::shape::{Order, Shape};

use crate::codec::Filters;
use crate::wire::Context;
use crate::wire::chunk_index::ChunkRecord;
use crate::wire::datatype::Element;
use crate::wire::messages::{ChunkedLayout, Dataspace};

/// The layout of a chunked dataset. `fill` is the element of missing chunks, in the byte order of the
/// file.
pub(crate) fn layout(
    ctx: &Context,
    element: &Element,
    chunked: &ChunkedLayout,
    space: &Dataspace,
    records: Vec<ChunkRecord>,
    filters: Filters,
    fill: Arc<[u8]>,
) -> Layout {
    let joined = |own: &[u64]| Shape::new([own, &element.dims].concat());
    let (shape, chunk) = (joined(&space.dims), joined(&chunked.dims));
    let axes = Chunks::axes(shape.rank(), Order::C);
    let grid = space.dims.iter().zip(&chunked.dims).map(|(n, c)| n.div_ceil(*c)).collect();
    let edges = chunked.unfiltered_edges.then(|| Edges {
        grid,
        complete: space.dims.iter().zip(&chunked.dims).map(|(n, c)| n.is_multiple_of(*c)).collect(),
    });
    let decode = Arc::new(Decode { filters, mask: 0 });
    let table = Arc::new(Table { base: ctx.base, records, decode, edges });
    Layout::Chunked { chunks: Arc::new(Chunks { shape, chunk, axes, table, fill }), first: 0 }
}

/// Finds partial chunks, which extend beyond the dataset.
struct Edges {
    /// Number of chunks along each dimension, and whether the last one is complete.
    grid: Vec<u64>,
    complete: Vec<bool>,
}

impl Edges {
    fn contains(&self, number: u64) -> bool {
        let mut rest = number;
        self.grid.iter().zip(&self.complete).rev().any(|(count, complete)| {
            let at = rest % (*count).max(1);
            rest /= (*count).max(1);
            !complete && at + 1 == *count
        })
    }
}

struct Table {
    base: u64,
    /// Sorted by number.
    records: Vec<ChunkRecord>,
    decode: Arc<Decode>,
    /// Set if partial chunks are stored without filters.
    edges: Option<Edges>,
}

impl ChunkTable for Table {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let Ok(k) = self.records.binary_search_by_key(&number, |record| record.number) else {
            return Ok(None);
        };
        let record = self.records[k];
        let extents = Extents::one(self.base.saturating_add(record.address), record.len);
        let plain = self.edges.as_ref().is_some_and(|edges| edges.contains(number));
        let codec: Option<Arc<dyn Codec>> = match record.mask {
            _ if plain || self.decode.filters.is_empty() => None,
            0 => Some(self.decode.clone()),
            mask => Some(Arc::new(Decode { filters: self.decode.filters.clone(), mask })),
        };
        Ok(Some(Chunk { extents, codec }))
    }
}

struct Decode {
    filters: Filters,
    mask: u32,
}

impl Codec for Decode {
    fn name(&self) -> &str {
        self.filters.name()
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        self.filters.decode(self.mask, stored, out)
    }
}
