//! The one reader: every format's arrays are read here.
//!
//! An [`Array`] joins a layout with the bytes it speaks of. It hands out elements in blocks,
//! little-endian, in the order the caller asks for; only the bytes that a selection needs are
//! read. Blocks are read and worked on by all threads of the current rayon pool.

use zerocopy::FromBytes as _;

use crate::chunks::ChunkStore;
use crate::convert::{self, Number};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::layout::{ArrayDesc, Layout, Linear};
use crate::limits::Limits;
use crate::plan::Axis;
use crate::select::{Selection, Span};
use crate::shape::{Order, Shape};
use crate::source::Source;
use crate::store::{Store, read_whole};
use crate::tree::Tree;
use crate::wire::ByteOrder;
use selected::FOLD_THREADS;

mod selected;

pub use crate::plan::Block;
pub use selected::Selected;

/// Blocks whose elements change order are larger, so that each read of the store is worth it.
const REORDER_BLOCK: u64 = 16 << 20;

/// An array that can be read.
#[derive(Clone)]
pub struct Array {
    source: Source,
    dtype: DType,
    shape: Shape,
    order: Order,
    map: Option<Linear>,
    store: Store,
    /// Bytes from an element to the next, where that is more than the element.
    stride: Option<u64>,
    limits: Limits,
}

/// In which order elements are handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axes<'a> {
    /// As they are stored: always the cheapest.
    Stored,
    /// As in a C or Fortran array.
    Order(Order),
    /// The array's dimensions from slowest to fastest.
    Slowest(&'a [usize]),
}

impl Array {
    /// Makes an array of a tree readable. Text is parsed now; nothing else is read.
    pub fn open(source: &Source, tree: &Tree, desc: &ArrayDesc, limits: &Limits) -> Result<Self> {
        let desc = tree.resolve(desc)?;
        if let Layout::PerFrame(_) = desc.layout {
            return Err(Error::argument("this array has one value a frame; name a frame"));
        }
        Self::from_parts(source, desc, &desc.shape, &desc.layout, limits)
    }

    /// The array in one frame, or nothing if that frame does not have it. An array without frames
    /// is the same in all of them.
    pub fn open_frame(
        source: &Source,
        tree: &Tree,
        desc: &ArrayDesc,
        frame: u64,
        limits: &Limits,
    ) -> Result<Option<Self>> {
        let desc = tree.resolve(desc)?;
        let Layout::PerFrame(table) = &desc.layout else {
            return Self::open(source, tree, desc, limits).map(Some);
        };
        if frame >= table.len() {
            return Err(Error::argument(format!(
                "there is no frame {frame}; the file has {}",
                table.len()
            )));
        }
        match table.cell(frame)? {
            Some(cell) => {
                Self::from_parts(source, desc, &cell.shape, &cell.layout, limits).map(Some)
            }
            None => Ok(None),
        }
    }

    fn from_parts(
        source: &Source,
        desc: &ArrayDesc,
        shape: &Shape,
        layout: &Layout,
        limits: &Limits,
    ) -> Result<Self> {
        let mut shape = shape.clone();
        let mut order = desc.order();
        let mut dtype = desc.dtype;
        let bytes = shape.bytes(dtype.size())?;
        let mut stride = None;
        let store = match layout {
            Layout::Plain { extents, order: own } => {
                order = *own;
                Store::File(extents.clone())
            }
            Layout::Inline(bytes, own) => {
                (order, dtype) = (*own, dtype.with_order(ByteOrder::Little));
                Store::Memory(bytes.clone())
            }
            Layout::Fill(element) => {
                dtype = dtype.with_order(ByteOrder::Little);
                Store::Fill(element.clone())
            }
            Layout::Text { extents, codec, order: own } => {
                (order, dtype) = (*own, dtype.with_order(ByteOrder::Little));
                let mut text = Vec::new();
                read_whole(source, extents, 0, extents.len(), limits, &mut text)?;
                let mut values = vec![0; limits.allow(bytes, "the parsed numbers")?];
                codec.decode(&text, &mut values)?;
                Store::Memory(values.into())
            }
            Layout::Rows { extents, stride: distance, order: own } => {
                if *distance < dtype.size() as u64 {
                    let message = format!("{shape} elements in rows of {distance} bytes");
                    return Err(Error::malformed("core-layout", message));
                }
                (order, stride) = (*own, Some(*distance));
                Store::File(extents.clone())
            }
            // Elements of different lengths are handed out as the bytes they are.
            Layout::Ragged { data, .. } => {
                (dtype, shape) = (DType::opaque(1), Shape::new([data.len()]));
                Store::File(data.clone())
            }
            Layout::Encoded { starts, decoded, data, codec, order: own } => {
                order = *own;
                if layout.ragged(Some(bytes)).is_some() {
                    let total = decoded.last().copied().unwrap_or(0);
                    (dtype, shape) = (DType::opaque(1), Shape::new([total]));
                }
                Store::Encoded {
                    starts: starts.clone(),
                    decoded: decoded.clone(),
                    data: data.clone(),
                    codec: codec.clone(),
                }
            }
            Layout::Chunked { chunks, first } => {
                order = Order::C;
                Store::Chunked(ChunkStore::new(chunks, *first, &shape, dtype.size(), limits)?)
            }
            Layout::PerFrame(_) | Layout::Same(_) => {
                return Err(Error::malformed("core-layout", "a layout refers to another"));
            }
        };
        let mut needed = shape.bytes(dtype.size())?;
        if let (Some(stride), Some(rows @ 1..)) = (stride, shape.count()) {
            let before = stride.checked_mul(rows - 1).filter(|n| i64::try_from(*n).is_ok());
            let before = before.ok_or_else(|| Error::limit("rows that fit no file"))?;
            needed = before.saturating_add(dtype.size() as u64);
        }
        store.check(dtype.size(), needed)?;
        let (source, map, limits) = (source.clone(), desc.map, *limits);
        Ok(Self { source, dtype, shape, order, map, store, stride, limits })
    }

    /// Element type; the byte order is the file's own, blocks are always little-endian.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Lengths.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The order in which elements are stored.
    pub fn order(&self) -> Order {
        self.order
    }

    /// From stored to meant values.
    pub fn map(&self) -> Option<Linear> {
        self.map
    }

    /// The limits it was opened with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The stored bytes themselves, in the file's byte order and element order, where they are
    /// one range of memory. Nothing is copied.
    pub fn view(&self) -> Option<&[u8]> {
        let len = self.shape.bytes(self.dtype.size()).ok()?;
        let packed = self.stride.is_none_or(|stride| stride == self.dtype.size() as u64);
        packed.then(|| self.store.view(&self.source, len)).flatten()
    }

    /// The stored numbers themselves, in the file's element order, without a copy: where
    /// [`Array::view`] gives bytes, the type is `T` in the machine's byte order and they are
    /// aligned for it.
    pub fn view_as<T: Number>(&self) -> Option<&[T]> {
        let native = !self.dtype.needs_swap(ByteOrder::NATIVE);
        (native && self.dtype.with_order(ByteOrder::Little) == T::DTYPE)
            .then(|| <[T]>::ref_from_bytes(self.view()?).ok())
            .flatten()
    }

    /// A part of the array, ready to be read in the order of `axes`.
    pub fn select(&self, selection: &Selection, axes: Axes<'_>) -> Result<Selected<'_>> {
        let spans = selection.resolve(&self.shape)?;
        self.select_spans(spans, axes)
    }

    /// The whole array, as stored.
    pub fn all(&self) -> Result<Selected<'_>> {
        self.select(&Selection::all(), Axes::Stored)
    }

    /// All elements of `selection`, little-endian, in `axes` order, within the memory budget.
    pub fn read(&self, selection: &Selection, axes: Axes<'_>) -> Result<Vec<u8>> {
        let selected = self.select(selection, axes)?;
        let bytes = selected.count().saturating_mul(self.dtype.size() as u64);
        let mut out = vec![0; self.limits.allow(bytes, "the selection")?];
        selected.read_into(&mut out)?;
        Ok(out)
    }

    /// All elements, little-endian, as stored, into memory of the caller; see
    /// [`Selected::read_into`].
    pub fn read_into(&self, out: &mut [u8]) -> Result<()> {
        self.all()?.read_into(out)
    }

    /// All elements of `selection` as `f64`, mapped.
    pub fn read_f64(&self, selection: &Selection, axes: Axes<'_>) -> Result<Vec<f64>> {
        let selected = self.select(selection, axes)?;
        let bytes = selected.count().saturating_mul(8);
        let mut out = Vec::with_capacity(self.limits.allow(bytes, "the selection as float64")? / 8);
        let mut numbers = Vec::new();
        selected.stream(|_, block| {
            convert::to_f64(self.dtype, self.map, block, &mut numbers);
            out.extend_from_slice(&numbers);
            Ok(())
        })?;
        Ok(out)
    }

    fn select_spans(&self, spans: Vec<Span>, axes: Axes<'_>) -> Result<Selected<'_>> {
        let rank = self.shape.rank();
        let size = self.dtype.size();
        let stored: Vec<usize> = match self.order {
            Order::C => (0..rank).collect(),
            Order::F => (0..rank).rev().collect(),
        };
        let wanted: Vec<usize> = match axes {
            Axes::Stored => stored.clone(),
            Axes::Order(Order::C) => (0..rank).collect(),
            Axes::Order(Order::F) => (0..rank).rev().collect(),
            Axes::Slowest(axes) => {
                let mut seen = vec![false; rank];
                let fits = axes.len() == rank
                    && axes.iter().all(|k| *k < rank && !std::mem::replace(&mut seen[*k], true));
                if !fits {
                    return Err(Error::argument(format!(
                        "{axes:?} does not name each of the {rank} dimensions once"
                    )));
                }
                axes.to_vec()
            }
        };
        // In bytes.
        let elements = self.shape.strides(self.order).into_iter();
        let distance = self.stride.unwrap_or(size as u64);
        let strides: Vec<u64> = elements.map(|n| n.saturating_mul(distance)).collect();
        let mut base = 0;
        let mut plan_axes = vec![Axis { count: 1, stride: 0 }; rank];
        let empty = spans.iter().any(|s| s.count == 0);
        for (k, span) in spans.iter().enumerate() {
            // No overflow: every index is inside the array, whose bytes were counted, and a
            // stride that is never taken is never multiplied.
            if !empty {
                base += span.start * strides[k];
            }
            plan_axes[k].count = span.count;
            if span.count > 1 && !empty {
                plan_axes[k].stride = span.step * strides[k] as i64;
            }
        }
        let ordered: Vec<Axis> = wanted.iter().map(|k| plan_axes[*k]).collect();
        let moving = |axes: &[usize]| -> Vec<usize> {
            axes.iter().copied().filter(|k| spans[*k].count > 1).collect()
        };
        let reorder = moving(&stored) != moving(&wanted);
        let block_bytes = |threads: usize| -> usize {
            let small = self.limits.worker_buffer(threads) as u64;
            let large = (self.limits.memory / (2 * threads as u64)).clamp(small, REORDER_BLOCK);
            let wanted = match &self.store {
                _ if reorder => large,
                // A thread has a chunk to itself where it can.
                Store::Chunked(chunks) => chunks.chunk_bytes().clamp(small, large),
                _ => small,
            };
            wanted as usize
        };
        Ok(Selected {
            array: self,
            spans,
            slowest: wanted,
            axes: ordered,
            base,
            block_bytes: block_bytes(rayon::current_num_threads()),
            fold_bytes: block_bytes(FOLD_THREADS),
        })
    }
}
