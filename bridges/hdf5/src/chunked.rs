//! Chunks as a layout that core reads.

use std::sync::Arc;

use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::error::Result;
use spile_core::layout::{Codec, Extents, Layout};
use spile_core::shape::{Order, Shape};

use crate::chunks::Piece;
use crate::codec::Filters;
use crate::datatype::Element;
use crate::space::{Chunking, Space};
use crate::wire::Ground;

/// The layout of a dataset in chunks; `fill` is the element of those that were never written.
pub(crate) fn layout(
    ground: &Ground,
    element: &Element,
    chunking: &Chunking,
    space: &Space,
    pieces: Vec<Piece>,
    filters: Filters,
    fill: Arc<[u8]>,
) -> Layout {
    let joined = |own: &[u64]| Shape::new([own, &element.dims].concat());
    let (shape, chunk) = (joined(&space.dims), joined(&chunking.dims));
    let axes = Chunks::axes(shape.rank(), Order::C);
    let grid = space.dims.iter().zip(&chunking.dims).map(|(n, c)| n.div_ceil(*c)).collect();
    let edges = chunking.plain_edges.then(|| Edges {
        grid,
        whole: space.dims.iter().zip(&chunking.dims).map(|(n, c)| n.is_multiple_of(*c)).collect(),
    });
    let decode = Arc::new(Decode { filters, mask: 0 });
    let table = Arc::new(Table { base: ground.base, pieces, decode, edges });
    Layout::Chunked { chunks: Arc::new(Chunks { shape, chunk, axes, table, fill }), first: 0 }
}

/// Which chunks reach over the end of the dataset.
struct Edges {
    /// Chunks along each dimension, and whether the last of them is a whole one.
    grid: Vec<u64>,
    whole: Vec<bool>,
}

impl Edges {
    fn has(&self, number: u64) -> bool {
        let mut rest = number;
        self.grid.iter().zip(&self.whole).rev().any(|(count, whole)| {
            let at = rest % (*count).max(1);
            rest /= (*count).max(1);
            !whole && at + 1 == *count
        })
    }
}

struct Table {
    base: u64,
    /// In the order of their numbers.
    pieces: Vec<Piece>,
    decode: Arc<Decode>,
    /// These are stored without filters, where the file says so.
    edges: Option<Edges>,
}

impl ChunkTable for Table {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let Ok(k) = self.pieces.binary_search_by_key(&number, |piece| piece.number) else {
            return Ok(None);
        };
        let piece = self.pieces[k];
        let extents = Extents::one(self.base.saturating_add(piece.address), piece.len);
        let plain = self.edges.as_ref().is_some_and(|edges| edges.has(number));
        let codec: Option<Arc<dyn Codec>> = match piece.mask {
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
        self.filters.undo(self.mask, stored, out)
    }
}
