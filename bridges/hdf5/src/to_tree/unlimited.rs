//! Unlimited dimensions of netCDF-4: a variable that has fewer records than others along an unlimited dimension
//! has the fill value for the rest.

use std::collections::HashMap;
use std::sync::Arc;

use spile_core::chunks::{Chunk, ChunkTable, Chunks};
use spile_core::convert;
use spile_core::dtype::Kind;
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Codec, Layout};
use spile_core::shape::{Order, Shape};
use spile_core::tree::{NodeId, Tree};

/// The dimensions of the arrays of a file.
#[derive(Default)]
pub(crate) struct Extents {
    /// Whether each dimension of an array is unlimited; arrays without one are absent.
    unlimited: HashMap<NodeId, Vec<bool>>,
    /// Length of each dimension, by the address of its scale.
    lengths: HashMap<u64, u64>,
}

impl Extents {
    pub(crate) fn add(&mut self, node: NodeId, unlimited: Vec<bool>) {
        if unlimited.contains(&true) {
            self.unlimited.insert(node, unlimited);
        }
    }

    /// Counts the dimensions of an array; `scales` are the addresses of their scales.
    pub(crate) fn measure(&mut self, tree: &Tree, node: NodeId, scales: &[Option<u64>]) {
        let Some(array) = &tree.node(node).array else { return };
        for (scale, len) in scales.iter().zip(array.shape.lengths()) {
            if let Some(scale) = scale {
                let known = self.lengths.entry(*scale).or_insert(0);
                *known = (*known).max(*len);
            }
        }
    }

    /// Extends an array along its unlimited dimensions. Fails if texts in memory would exceed the limit.
    pub(crate) fn extend(
        &self,
        tree: &mut Tree,
        node: NodeId,
        scales: &[Option<u64>],
    ) -> Result<()> {
        let Some(unlimited) = self.unlimited.get(&node) else { return Ok(()) };
        let Some(array) = &tree.node(node).array else { return Ok(()) };
        let mut lengths = array.shape.lengths().to_vec();
        for ((len, scale), unlimited) in lengths.iter_mut().zip(scales).zip(unlimited) {
            let known = scale.and_then(|scale| self.lengths.get(&scale));
            if let (true, Some(known)) = (*unlimited, known) {
                *len = *known;
            }
        }
        let shape = Shape::new(lengths);
        let Ok(bytes) = shape.bytes(array.dtype.size()) else { return Ok(()) };
        if shape == array.shape {
            return Ok(());
        }
        if matches!(array.layout, Layout::Inline(..)) {
            tree.charge(bytes, "the texts of an unlimited dimension")?;
        }
        if let Some(array) = &mut tree.node_mut(node).array
            && let Some(layout) = extended(array, &shape)
        {
            (array.shape, array.layout) = (shape, layout);
        }
        Ok(())
    }
}

/// The layout of an array with a longer shape.
fn extended(array: &ArrayDesc, shape: &Shape) -> Option<Layout> {
    match &array.layout {
        Layout::Fill(_) => Some(array.layout.clone()),
        Layout::Chunked { chunks, first: 0 } => {
            let table = Longer { old: chunks.clone(), grid: grid(shape, &chunks.chunk) };
            let chunks =
                Chunks { shape: shape.clone(), table: Arc::new(table), ..(**chunks).clone() };
            Some(Layout::Chunked { chunks: Arc::new(chunks), first: 0 })
        }
        // Variable-length texts.
        Layout::Inline(bytes, Order::C)
            if array.dtype.kind() == Kind::Text && !bytes.is_empty() =>
        {
            inline(array, bytes, shape)
        }
        // No element is stored.
        _ if array.shape.count() == Some(0) => {
            let mut fill = vec![0; array.dtype.size()];
            convert::to_little(array.dtype, &mut fill);
            Some(Layout::Fill(fill.into()))
        }
        _ => None,
    }
}

/// Texts in memory with empty ones after them. Their memory has been charged.
fn inline(array: &ArrayDesc, bytes: &[u8], shape: &Shape) -> Option<Layout> {
    let size = array.dtype.size();
    let len = usize::try_from(shape.bytes(size).ok()?).ok()?;
    let mut out = vec![0; len];
    let (old, strides) = (array.shape.strides(Order::C), shape.strides(Order::C));
    for (k, text) in bytes.chunks_exact(size).enumerate() {
        let mut rest = k as u64;
        let mut at = 0;
        for (own, stride) in old.iter().zip(&strides) {
            at += rest / own * stride;
            rest %= own;
        }
        let at = at as usize * size;
        out.get_mut(at..at + size)?.copy_from_slice(text);
    }
    Some(Layout::Inline(out.into(), Order::C))
}

/// Number of chunks along each dimension.
fn grid(shape: &Shape, chunk: &Shape) -> Vec<u64> {
    let lengths = shape.lengths().iter().zip(chunk.lengths());
    lengths.map(|(n, c)| n.div_ceil((*c).max(1)).max(1)).collect()
}

/// The chunks of an array in the grid of a longer one.
struct Longer {
    old: Arc<Chunks>,
    grid: Vec<u64>,
}

impl Longer {
    /// The indices of chunk `number` of the longer array.
    fn indices(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let mut indices: Vec<u64> = self
            .grid
            .iter()
            .rev()
            .map(|n| {
                let at = rest % n;
                rest /= n;
                at
            })
            .collect();
        indices.reverse();
        indices
    }

    /// The number of the chunk at `indices` of a grid.
    fn number(indices: &[u64], grid: &[u64]) -> u64 {
        indices.iter().zip(grid).fold(0, |all, (k, n)| all.saturating_mul(*n).saturating_add(*k))
    }

    fn old_grid(&self) -> Vec<u64> {
        grid(&self.old.shape, &self.old.chunk)
    }
}

impl ChunkTable for Longer {
    fn chunk(&self, number: u64) -> Result<Option<Chunk>> {
        let (indices, old) = (self.indices(number), self.old_grid());
        if indices.iter().zip(&old).any(|(k, n)| k >= n) {
            return Ok(None);
        }
        let Some(chunk) = self.old.table.chunk(Self::number(&indices, &old))? else {
            return Ok(None);
        };
        let lengths = self.old.chunk.lengths();
        let parts = indices.iter().zip(self.old.shape.lengths()).zip(lengths);
        let kept: Vec<u64> = parts.map(|((k, n), c)| n.saturating_sub(k * c).min(*c)).collect();
        if kept == lengths {
            return Ok(Some(chunk));
        }
        let codec = Trimmed {
            codec: chunk.codec,
            kept,
            chunk: lengths.to_vec(),
            fill: self.old.fill.clone(),
        };
        Ok(Some(Chunk { extents: chunk.extents, codec: Some(Arc::new(codec)) }))
    }

    fn stored(&self) -> Option<u64> {
        self.old.table.stored()
    }

    fn next(&self, number: u64) -> Result<Option<u64>> {
        let (mut indices, old) = (self.indices(number), self.old_grid());
        // The first chunk of the shorter array that is not before this one.
        while let Some(k) = indices.iter().zip(&old).position(|(k, n)| k >= n) {
            let Some(before) = k.checked_sub(1) else { return Ok(None) };
            indices[k..].fill(0);
            indices[before] += 1;
        }
        let Some(next) = self.old.table.next(Self::number(&indices, &old))? else {
            return Ok(None);
        };
        let mut rest = next;
        for (k, n) in indices.iter_mut().zip(&old).rev() {
            *k = rest % n;
            rest /= n;
        }
        Ok((rest == 0).then(|| Self::number(&indices, &self.grid)))
    }
}

/// Decodes a chunk and sets the elements outside of the stored array to the fill value.
struct Trimmed {
    codec: Option<Arc<dyn Codec>>,
    /// Lengths of the part of the chunk that is in the array.
    kept: Vec<u64>,
    chunk: Vec<u64>,
    fill: Arc<[u8]>,
}

impl Codec for Trimmed {
    fn name(&self) -> &str {
        self.codec.as_ref().map_or("extended", |codec| codec.name())
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        match &self.codec {
            Some(codec) => codec.decode(stored, out)?,
            None if stored.len() == out.len() => out.copy_from_slice(stored),
            None => {
                let message =
                    format!("chunk: expected {} bytes, found {}", out.len(), stored.len());
                return Err(Error::malformed("hdf5-012", message));
            }
        }
        let strides = Shape::new(&self.chunk[..]).strides(Order::C);
        for (k, element) in out.chunks_exact_mut(self.fill.len().max(1)).enumerate() {
            let mut rest = k as u64;
            let outside = strides.iter().zip(&self.kept).any(|(stride, kept)| {
                let at = rest / stride;
                rest %= stride;
                at >= *kept
            });
            if outside {
                element.copy_from_slice(&self.fill);
            }
        }
        Ok(())
    }
}
