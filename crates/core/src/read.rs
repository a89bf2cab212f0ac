//! Reading arrays of any format.
//!
//! An [`Array`] combines a layout with its source. It returns elements in blocks, little-endian, in the
//! requested order, and reads only the bytes that a selection needs. Blocks are read and processed by all
//! threads of the current rayon pool.

use std::sync::Arc;

use crate::chunks::ChunkStore;
use crate::physical::Stored;
use crate::plan::Axis;
use crate::select::Span;
use crate::semantics::Missing;
use crate::store::{Store, read_checked};
use crate::{
    ArrayDesc, ByteOrder, DType, Dataset, Error, FrameCell, FrameTable, Hint, Layout, Limits,
    Linear, NodeId, Order, Result, Selection, Shape, Source, convert,
};
use selected::FOLD_THREADS;

mod coordinate;
mod remote;
mod runs;
mod selected;
mod values;

pub use crate::plan::Block;
pub use coordinate::Coordinate;
pub use selected::Selected;
pub use values::{FromArray, ToSelection};

/// Physical values converted at once: 64 KiB of `float64`.
const PHYSICAL_BLOCK: u64 = 8 << 10;

/// Largest block in bytes when elements are reordered, so that each read of the store is long.
const REORDER_BLOCK: u64 = 16 << 20;

/// An array that can be read. It is obtained from a [`Dataset`]; cloning is cheap.
#[derive(Clone)]
pub struct Array {
    dataset: Dataset,
    node: Option<NodeId>,
    /// Type of the elements in the store.
    dtype: DType,
    shape: Shape,
    order: Order,
    map: Option<Linear>,
    missing: Missing,
    /// Elements are converted to physical values when they are read.
    physical: Option<Arc<Stored>>,
    store: Store,
    /// Distance in bytes between elements, if they are not contiguous.
    stride: Option<u64>,
}

/// Order in which elements are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axes<'a> {
    /// As stored; the cheapest.
    Stored,
    /// In C or Fortran order.
    Order(Order),
    /// With the dimensions from slowest to fastest.
    Slowest(&'a [usize]),
}

impl Array {
    /// Opens the array described by `desc`. Arrays encoded as one piece are decoded now; no other values are
    /// read.
    pub(crate) fn open(dataset: &Dataset, node: Option<NodeId>, desc: &ArrayDesc) -> Result<Self> {
        let desc = dataset.tree().resolve(desc)?;
        if let Some(table) = desc.layout.frames() {
            let message = format!("the array exists per frame ({} frames)", table.len());
            return Err(Error::argument(message).hint(Hint::SelectFrames));
        }
        Self::from_parts(dataset, node, desc, &desc.shape, &desc.layout)
    }

    /// Opens the array in `frame`, whose part of a frame table `cell` returns; `None` if there is none. An
    /// array without frames is the same in every frame.
    pub(crate) fn open_frame(
        dataset: &Dataset,
        node: Option<NodeId>,
        desc: &ArrayDesc,
        frame: u64,
        cell: impl FnOnce(&dyn FrameTable, u64) -> Result<Option<FrameCell>>,
    ) -> Result<Option<Self>> {
        let desc = dataset.tree().resolve(desc)?;
        let Some(table) = desc.layout.frames() else {
            return Self::open(dataset, node, desc).map(Some);
        };
        if frame >= table.len() {
            let message = format!("no frame {frame}: the dataset has {} frames", table.len());
            return Err(Error::argument(message));
        }
        match cell(&**table, frame)? {
            Some(cell) => {
                Self::from_parts(dataset, node, desc, &cell.shape, &cell.layout).map(Some)
            }
            None => Ok(None),
        }
    }

    fn from_parts(
        dataset: &Dataset,
        node: Option<NodeId>,
        desc: &ArrayDesc,
        shape: &Shape,
        layout: &Layout,
    ) -> Result<Self> {
        if let Layout::Physical(stored) = layout {
            let inner = ArrayDesc::new(stored.dtype, shape.clone(), stored.layout.clone());
            let array = Self::from_parts(dataset, node, &inner, shape, &stored.layout)?;
            return Ok(Self { physical: Some(stored.clone()), ..array });
        }
        let limits = dataset.limits();
        let mut shape = shape.clone();
        let order = layout.order();
        let mut dtype = desc.dtype;
        if layout.is_always_little() {
            dtype = dtype.with_order(ByteOrder::Little);
        }
        let bytes = shape.bytes(dtype.size())?;
        let mut stride = None;
        let store = match layout {
            Layout::Plain { extents, .. } => Store::File(extents.clone()),
            Layout::Inline(bytes, _) => Store::Memory(bytes.clone()),
            Layout::Fill(element) => Store::Fill(element.clone()),
            Layout::Computed(computed) => {
                let inputs = computed.inputs.iter().map(|input| dataset.open_array(input));
                Store::Computed {
                    computed: computed.clone(),
                    inputs: inputs.collect::<Result<_>>()?,
                    size: dtype.size(),
                    len: bytes,
                }
            }
            Layout::EncodedWhole { extents, codec, .. } => {
                let mut text = Vec::new();
                read_checked(dataset, extents, 0, extents.len(), &mut text)?;
                let mut values = vec![0; limits.allow(bytes, "the decoded array")?];
                codec.decode(&text, &mut values)?;
                Store::Memory(values.into())
            }
            Layout::Rows { extents, stride: distance, .. } => {
                if *distance < dtype.size() as u64 {
                    let message =
                        format!("the row stride of {distance} bytes is less than the element size");
                    return Err(Error::malformed("core-layout", message));
                }
                stride = Some(*distance);
                Store::File(extents.clone())
            }
            // Elements of variable length are read as bytes.
            Layout::Ragged { data, .. } => {
                (dtype, shape) = (DType::opaque(1), Shape::new([data.len()]));
                Store::File(data.clone())
            }
            Layout::Encoded { starts, decoded, data, codec, .. } => {
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
                Store::Chunked(ChunkStore::new(chunks, *first, &shape, dtype.size(), limits)?)
            }
            Layout::PerFrame(_) | Layout::Same(_) | Layout::Physical(_) => {
                return Err(Error::malformed("core-layout", "a layout refers to another layout"));
            }
        };
        let mut needed = shape.bytes(dtype.size())?;
        if let (Some(stride), Some(rows @ 1..)) = (stride, shape.count()) {
            let before = stride.checked_mul(rows - 1).filter(|n| i64::try_from(*n).is_ok());
            let before =
                before.ok_or_else(|| Error::limit("the rows exceed the largest file size"))?;
            needed = before.saturating_add(dtype.size() as u64);
        }
        store.check(dtype.size(), needed)?;
        let (dataset, missing) = (dataset.clone(), desc.semantics().missing.clone());
        let (map, physical) = (desc.map, None);
        Ok(Self { dataset, node, dtype, shape, order, map, missing, physical, store, stride })
    }

    /// This array, read as the physical values of `stored`.
    pub(crate) fn converted(self, stored: Arc<Stored>) -> Self {
        Self { map: None, missing: Missing::default(), physical: Some(stored), ..self }
    }

    /// Element type, with the byte order of the file. Elements are always returned little-endian.
    pub fn dtype(&self) -> DType {
        self.physical.as_ref().map_or(self.dtype, |stored| stored.physical_dtype())
    }

    /// Shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The order in which elements are stored.
    pub fn order(&self) -> Order {
        self.order
    }

    /// Linear scaling from stored to physical values.
    pub fn map(&self) -> Option<Linear> {
        self.map
    }

    /// The stored values that mean missing.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// The dataset it belongs to.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// The limits for reading.
    pub fn limits(&self) -> &Limits {
        self.dataset.limits()
    }

    pub(crate) fn source(&self) -> &Source {
        self.dataset.source()
    }

    /// The stored bytes without a copy, in the byte order and element order of the file. `None` if they are
    /// not contiguous in memory or a map.
    pub fn view(&self) -> Option<&[u8]> {
        self.stored_view().filter(|_| self.physical.is_none())
    }

    /// [`Array::view`] of the elements in the store, before they are converted to physical values.
    fn stored_view(&self) -> Option<&[u8]> {
        let len = self.shape.bytes(self.dtype.size()).ok()?;
        let packed = self.stride.is_none_or(|stride| stride == self.dtype.size() as u64);
        packed.then(|| self.store.view(self.source(), len)).flatten()
    }

    /// A selection, to be read in the order of `axes`. Fails if it does not fit the shape, and with `Limit` if most
    /// of it is not stored and it is large.
    pub fn select(&self, selection: &Selection, axes: Axes<'_>) -> Result<Selected<'_>> {
        let spans = selection.resolve(&self.shape)?;
        self.store.check_work(&spans, self.dtype.size(), &self.dataset)?;
        self.select_spans(spans, axes)
    }

    /// All elements in stored order, stored or not: for [`Selected::check`] and
    /// [`statistics`](crate::reduce::statistics), which read only what is stored if that is a small part.
    pub fn unlimited(&self) -> Result<Selected<'_>> {
        self.select_spans(Selection::all().resolve(&self.shape)?, Axes::Stored)
    }

    /// All elements in stored order.
    pub fn all(&self) -> Result<Selected<'_>> {
        self.select(&Selection::all(), Axes::Stored)
    }

    /// All elements in C or Fortran order.
    pub fn all_in(&self, order: Order) -> Result<Selected<'_>> {
        self.select(&Selection::all(), Axes::Order(order))
    }

    /// Reads all elements, little-endian, in stored order. Fails with `Limit` if they exceed the memory limit.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        self.read_bytes(&Selection::all(), Axes::Stored)
    }

    /// Reads all elements as physical values in stored order: scaled, missing values as NaN. Fails with `Limit`
    /// if they exceed the memory limit.
    pub fn values(&self) -> Result<Vec<f64>> {
        self.read_f64(&Selection::all(), Axes::Stored)
    }

    /// Reads all elements of `selection`, little-endian, in the order of `axes`. Fails with `Limit` if they
    /// exceed the memory limit.
    pub fn read_bytes(&self, selection: &Selection, axes: Axes<'_>) -> Result<Vec<u8>> {
        let selected = self.select(selection, axes)?;
        let bytes = selected.count().saturating_mul(self.dtype().size() as u64);
        let mut out = vec![0; self.limits().allow(bytes, "the selection")?];
        selected.read_into(&mut out)?;
        Ok(out)
    }

    /// Reads all elements, little-endian, in stored order, into `out`; see [`Selected::read_into`].
    pub fn read_into(&self, out: &mut [u8]) -> Result<()> {
        self.all()?.read_into(out)
    }

    /// Converts little-endian elements of this array to physical values: scaled, missing values NaN;
    /// `out` is overwritten.
    pub fn to_physical(&self, bytes: &[u8], out: &mut Vec<f64>) {
        convert::to_physical(self.dtype(), self.map, &self.missing, bytes, out);
    }

    /// Reads all elements of `selection` as physical values in the order of `axes`: scaled, missing values
    /// as NaN. Fails with `Limit` if they exceed the memory limit.
    pub fn read_f64(&self, selection: &Selection, axes: Axes<'_>) -> Result<Vec<f64>> {
        let selected = self.select(selection, axes)?;
        let bytes = selected.count().saturating_mul(8);
        let mut out =
            Vec::with_capacity(self.limits().allow(bytes, "the selection as float64")? / 8);
        let mut numbers = Vec::new();
        selected.stream(|_, block| {
            self.to_physical(block, &mut numbers);
            out.extend_from_slice(&numbers);
            Ok(())
        })?;
        Ok(out)
    }

    fn select_spans(&self, spans: Vec<Span>, axes: Axes<'_>) -> Result<Selected<'_>> {
        let rank = self.shape.rank();
        let size = self.dtype.size();
        let stored = self.order.slowest_first(rank);
        let requested: Vec<usize> = match axes {
            Axes::Stored => stored.clone(),
            Axes::Order(order) => order.slowest_first(rank),
            Axes::Slowest(axes) => {
                let mut seen = vec![false; rank];
                let fits = axes.len() == rank
                    && axes.iter().all(|k| *k < rank && !std::mem::replace(&mut seen[*k], true));
                if !fits {
                    return Err(Error::argument(format!(
                        "{axes:?} does not contain each of the {rank} dimensions once"
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
            // No overflow: every index is within the array, whose size was checked, and unused
            // strides are not multiplied.
            if !empty {
                base += span.start * strides[k];
            }
            plan_axes[k].count = span.count;
            if span.count > 1 && !empty {
                plan_axes[k].stride = span.step * strides[k] as i64;
            }
        }
        let ordered: Vec<Axis> = requested.iter().map(|k| plan_axes[*k]).collect();
        let moving = |axes: &[usize]| -> Vec<usize> {
            axes.iter().copied().filter(|k| spans[*k].count > 1).collect()
        };
        let reorder = moving(&stored) != moving(&requested);
        let block_bytes = |threads: usize| -> usize {
            let small = self.limits().worker_buffer(threads) as u64;
            let most = if self.source().is_remote() { u64::MAX } else { REORDER_BLOCK };
            let large = (self.limits().memory / (2 * threads as u64)).clamp(small, most.max(small));
            let bytes = match &self.store {
                _ if reorder => large,
                // One chunk per thread if possible.
                Store::Chunked(chunks) => chunks.chunk_bytes().clamp(small, large),
                // The physical values of a block stay in the cache.
                _ if self.physical.is_some() => small.min(PHYSICAL_BLOCK * size as u64),
                _ => small,
            };
            bytes as usize
        };
        Ok(Selected {
            array: self,
            spans,
            slowest: requested,
            axes: ordered,
            base,
            block_bytes: block_bytes(rayon::current_num_threads()),
            fold_bytes: block_bytes(FOLD_THREADS),
        })
    }
}
