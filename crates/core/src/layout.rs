//! Array descriptions: type, shape, byte ranges, encoding, scaling, coordinates.

mod extents;

use std::fmt;
use std::sync::Arc;

use crate::chunks::Chunks;
use crate::computed::Computed;
use crate::physical::Stored;
use crate::semantics::Missing;
use crate::{DType, Error, FrameTable, NodeId, Order, Result, Role, Semantics, Shape};

pub use extents::{Extent, Extents};

/// Decodes stored bytes to elements: decompression, parsing of numbers.
pub trait Codec: Send + Sync {
    /// Name for listings, for example `deflate+base64`.
    fn name(&self) -> &str;

    /// Decodes `stored` to `out`. Fails unless exactly `out.len()` bytes, the length from the metadata of the
    /// file, are decoded.
    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()>;
}

/// Location and encoding of the bytes of an array.
#[derive(Clone)]
pub enum Layout {
    /// Unencoded and contiguous.
    Plain {
        /// The byte ranges.
        extents: Extents,
        /// Which index runs fastest.
        order: Order,
    },
    /// Elements at a constant distance: a column of a table (SDF stations), or a face of a larger array.
    Rows {
        /// From the first element to the end of the last.
        extents: Extents,
        /// Distance between elements in bytes.
        stride: u64,
        /// Which index runs fastest.
        order: Order,
    },
    /// Contiguous elements of variable length (scda V).
    Ragged {
        /// Offset of each element in bytes, and the total at the end.
        starts: Arc<[u64]>,
        /// Bytes of all elements.
        data: Extents,
    },
    /// Each element is encoded separately and can be read separately.
    Encoded {
        /// Offset of each encoded element in bytes, and the total at the end.
        starts: Arc<[u64]>,
        /// Offset of each decoded element in bytes, and the total at the end.
        decoded: Arc<[u64]>,
        /// Bytes of all encoded elements.
        data: Extents,
        /// Decodes one element.
        codec: Arc<dyn Codec>,
        /// Which index runs fastest, if the elements are parts of an array.
        order: Order,
    },
    /// Chunks of a regular grid (Zarr, HDF5).
    Chunked {
        /// The chunks.
        chunks: Arc<Chunks>,
        /// Index along their first dimension at which the array begins. An array with one dimension less is
        /// the subarray at that index.
        first: u64,
    },
    /// A shape and layout per frame (GSD).
    PerFrame(Arc<dyn FrameTable>),
    /// Values in memory, little-endian.
    Inline(Arc<[u8]>, Order),
    /// Encoded as one piece, for example numbers in text; decoded when the array is opened.
    EncodedWhole {
        /// The encoded bytes.
        extents: Extents,
        /// Decodes them to little-endian elements in `order`.
        codec: Arc<dyn Codec>,
        /// Which index runs fastest.
        order: Order,
    },
    /// Computed from other arrays; elements are little-endian.
    Computed(Arc<Computed>),
    /// Physical values of stored elements: scaled, missing values NaN.
    Physical(Arc<Stored>),
    /// All elements equal this little-endian element.
    Fill(Arc<[u8]>),
    /// The values of another array of the tree.
    Same(NodeId),
}

impl Layout {
    /// The `len` bytes at `offset` of the source, without encoding.
    pub fn contiguous(offset: u64, len: u64, order: Order) -> Self {
        Self::Plain { extents: Extents::one(offset, len), order }
    }

    /// The frames of an array that exists per frame; `None` for other arrays.
    pub fn frames(&self) -> Option<&Arc<dyn FrameTable>> {
        match self {
            Self::PerFrame(table) => Some(table),
            _ => None,
        }
    }

    /// Byte ranges and element order of an array that is stored contiguously without encoding.
    pub fn plain(&self) -> Option<(&Extents, Order)> {
        match self {
            Self::Plain { extents, order } => Some((extents, *order)),
            _ => None,
        }
    }

    /// The array whose values these are, for references.
    pub fn same(&self) -> Option<NodeId> {
        match self {
            Self::Same(id) => Some(*id),
            _ => None,
        }
    }

    /// Whether the elements are little-endian whatever the byte order of the type: values in memory, decoded
    /// as a whole, or computed.
    pub fn is_always_little(&self) -> bool {
        matches!(
            self,
            Self::Inline(..)
                | Self::EncodedWhole { .. }
                | Self::Computed(_)
                | Self::Physical(_)
                | Self::Fill(_)
        )
    }

    /// Whether neighbouring elements are not neighbours in the file: elements at a distance, chunks.
    pub fn is_scattered(&self) -> bool {
        matches!(self, Self::Rows { .. } | Self::Chunked { .. })
    }

    /// Order of the stored elements; C for layouts without an order.
    pub fn order(&self) -> Order {
        match self {
            Self::Plain { order, .. }
            | Self::Rows { order, .. }
            | Self::Inline(_, order)
            | Self::EncodedWhole { order, .. }
            | Self::Encoded { order, .. } => *order,
            Self::Computed(computed) => computed.order,
            Self::Physical(stored) => stored.layout.order(),
            _ => Order::C,
        }
    }

    /// Returns this layout with offsets increased by `by` bytes. Fails for frames and references to other arrays.
    pub fn shifted(&self, by: u64) -> Result<Self> {
        let mut moved = self.clone();
        match &mut moved {
            Self::Plain { extents: data, .. }
            | Self::Rows { extents: data, .. }
            | Self::EncodedWhole { extents: data, .. }
            | Self::Ragged { data, .. }
            | Self::Encoded { data, .. } => *data = data.shifted(by)?,
            Self::Chunked { chunks, .. } => *chunks = Arc::new(chunks.shifted(by)),
            Self::Computed(computed) => *computed = Arc::new(computed.shifted(by)?),
            Self::Physical(stored) => moved = stored.with_layout(stored.layout.shifted(by)?),
            Self::Inline(..) | Self::Fill(_) => {}
            Self::PerFrame(_) | Self::Same(_) => {
                return Err(Error::unsupported(
                    "core-series",
                    "frames and references to other arrays are not supported in a series",
                ));
            }
        }
        Ok(moved)
    }

    /// The same bytes in another element order; `None` if the order of the layout is fixed.
    pub fn in_order(&self, new: Order) -> Option<Self> {
        let mut same = self.clone();
        match &mut same {
            Self::Plain { order, .. }
            | Self::Inline(_, order)
            | Self::EncodedWhole { order, .. }
            | Self::Encoded { order, .. } => *order = new,
            Self::Physical(stored) => same = stored.with_layout(stored.layout.in_order(new)?),
            Self::Fill(_) => {}
            _ => return None,
        }
        Some(same)
    }

    /// Layout of the `len` bytes at byte `first` of the array, as an array in C order; `None` if they are not
    /// contiguous.
    pub fn rows(&self, first: u64, len: u64) -> Option<Self> {
        match self {
            Self::Plain { extents, order: Order::C } => {
                let parts = extents.pieces(first, len).filter(|part| part.len > 0).collect();
                let extents = Extents::several(parts).ok()?;
                (extents.len() == len).then_some(Self::Plain { extents, order: Order::C })
            }
            Self::Inline(bytes, Order::C) => {
                let (from, to) = (usize::try_from(first).ok()?, first.checked_add(len)?);
                let part = bytes.get(from..usize::try_from(to).ok()?)?;
                Some(Self::Inline(part.into(), Order::C))
            }
            Self::Fill(_) => Some(self.clone()),
            Self::Physical(stored) => {
                let (physical, own) = (stored.physical_dtype().size(), stored.dtype.size());
                let scale = |bytes: u64| (bytes / physical as u64).checked_mul(own as u64);
                Some(stored.with_layout(stored.layout.rows(scale(first)?, scale(len)?)?))
            }
            // Rows without elements, of any number.
            Self::Chunked { .. } if len == 0 => Some(Self::Inline([].into(), Order::C)),
            Self::Chunked { chunks, first: start } => {
                let row = Shape::new(chunks.shape.lengths().get(1..)?);
                let bytes = row.bytes(chunks.fill.len()).ok()?;
                if bytes == 0 {
                    return (len == 0).then(|| Self::Inline([].into(), Order::C));
                }
                let complete = first.is_multiple_of(bytes) && len.is_multiple_of(bytes);
                let first = start.checked_add(first / bytes)?;
                complete.then(|| Self::Chunked { chunks: chunks.clone(), first })
            }
            _ => None,
        }
    }

    /// [`ArrayDesc::ragged`] for an array of `bytes` bytes according to type and shape.
    pub(crate) fn ragged(&self, bytes: Option<u64>) -> Option<&[u64]> {
        match self {
            Self::Ragged { starts, .. } => Some(starts),
            Self::Encoded { decoded, .. } => {
                let fits = bytes == Some(decoded.last().copied().unwrap_or(0));
                (!fits).then_some(decoded)
            }
            _ => None,
        }
    }
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain { extents, order } => {
                write!(f, "Plain({} ranges, {order:?})", extents.parts().len())
            }
            Self::Rows { stride, .. } => write!(f, "Rows({stride} bytes each)"),
            Self::Ragged { starts, .. } => write!(f, "Ragged({})", starts.len().saturating_sub(1)),
            Self::Encoded { codec, .. } => write!(f, "Encoded({})", codec.name()),
            Self::Chunked { chunks, .. } => write!(f, "Chunked({})", chunks.chunk),
            Self::PerFrame(table) => write!(f, "PerFrame({})", table.len()),
            Self::Inline(bytes, _) => write!(f, "Inline({} bytes)", bytes.len()),
            Self::EncodedWhole { codec, .. } => write!(f, "EncodedWhole({})", codec.name()),
            Self::Computed(computed) => write!(f, "{computed:?}"),
            Self::Physical(stored) => write!(f, "Physical({:?})", stored.layout),
            Self::Fill(_) => f.write_str("Fill"),
            Self::Same(node) => write!(f, "Same({node:?})"),
        }
    }
}

/// Linear scaling: `value = intercept + slope * (stored - origin)`.
///
/// The origin is 0 except for instruments whose manual subtracts a number before scaling; keeping it
/// gives the manual's values to the last bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Linear {
    /// Value for the stored number `origin`.
    pub intercept: f64,
    /// Change of the value per stored unit.
    pub slope: f64,
    /// Stored number whose value is `intercept`.
    pub origin: f64,
}

impl Linear {
    /// The scaling `intercept + slope * stored`.
    pub const fn new(intercept: f64, slope: f64) -> Self {
        Self { intercept, slope, origin: 0.0 }
    }

    /// The scaled value. Product and sum are rounded one after the other, never fused.
    #[inline(always)]
    pub fn apply(self, stored: f64) -> f64 {
        self.intercept + self.slope * (stored - self.origin)
    }

    /// The stored number for a value, not rounded to the stored type.
    #[inline(always)]
    pub fn inverse(self, value: f64) -> f64 {
        let stored = (value - self.intercept) / self.slope;
        // Adding 0 would lose the sign of a negative zero.
        if self.origin == 0.0 { stored } else { stored + self.origin }
    }

    /// Intercept and slope of the same scaling with origin 0, for formats that store only two
    /// coefficients. The intercept is rounded if the origin is not 0.
    pub fn coefficients(self) -> (f64, f64) {
        let intercept = if self.origin == 0.0 {
            self.intercept
        } else {
            self.intercept - self.slope * self.origin
        };
        (intercept, self.slope)
    }

    /// Whether intercept, slope and origin are finite.
    pub fn is_finite(self) -> bool {
        self.intercept.is_finite() && self.slope.is_finite() && self.origin.is_finite()
    }
}

/// Coordinate of one dimension.
#[derive(Clone, Debug, PartialEq)]
pub enum Coord {
    /// No coordinate.
    None,
    /// Uniform spacing: point `k` is `start + k * step`.
    Uniform {
        /// The first point.
        start: f64,
        /// The distance between points.
        step: f64,
    },
    /// The coordinates are another array of the tree.
    Node(NodeId),
}

impl Coord {
    /// The array with the points, if there is one.
    pub fn node(&self) -> Option<NodeId> {
        match self {
            Self::Node(id) => Some(*id),
            _ => None,
        }
    }

    /// Start and step of at least two uniformly spaced points. Otherwise the error is the index of the first
    /// point that deviates, or the number of points if there are fewer than two.
    pub fn spacing(points: &[f64]) -> std::result::Result<(f64, f64), usize> {
        let [start, .., end] = *points else { return Err(points.len()) };
        let step = (end - start) / (points.len() - 1) as f64;
        // Tolerance for points that were computed or rounded.
        let tolerance = step.abs() * 1e-6 + start.abs().max(end.abs()) * f64::EPSILON * 4.0;
        let uniform =
            |(k, point): (usize, &f64)| (point - (start + k as f64 * step)).abs() <= tolerance;
        match points.iter().enumerate().position(|point| step == 0.0 || !uniform(point)) {
            None => Ok((start, step)),
            Some(odd) => Err(odd),
        }
    }
}

/// Name of the second dimension of tables in columns.
pub const COLUMN: &str = "column";

/// Description of an array: everything but its values.
#[derive(Clone, Debug)]
pub struct ArrayDesc {
    /// Element type as stored.
    pub dtype: DType,
    /// Shape; for [`Layout::PerFrame`] that of the first frame with the array.
    pub shape: Shape,
    /// Name of each dimension.
    pub dims: Vec<String>,
    /// Coordinate of each dimension.
    pub coords: Vec<Coord>,
    /// Location and encoding of the bytes.
    pub layout: Layout,
    /// Linear scaling from stored to physical values.
    pub map: Option<Linear>,
    /// Semantics, if set; see [`ArrayDesc::semantics`].
    pub meaning: Option<Box<Semantics>>,
}

static DEFAULT_SEMANTICS: Semantics = Semantics {
    role: Role::Data,
    mesh: None,
    centring: None,
    component: None,
    point_set: None,
    quantity: None,
    missing: Missing { values: Vec::new(), min: None, max: None },
};

impl ArrayDesc {
    /// An array with [default](ArrayDesc::default_dims) dimension names and no coordinates.
    pub fn new(dtype: DType, shape: Shape, layout: Layout) -> Self {
        let dims = Self::default_dims(shape.rank());
        let coords = vec![Coord::None; shape.rank()];
        Self { dtype, shape, dims, coords, layout, map: None, meaning: None }
    }

    /// An array of little-endian values in memory, in C order.
    pub fn inline(dtype: DType, shape: Shape, values: impl Into<Arc<[u8]>>) -> Self {
        Self::new(dtype, shape, Layout::Inline(values.into(), Order::C))
    }

    /// Default dimension names: `dim1`, `dim2` and so on.
    pub fn default_dims(rank: usize) -> Vec<String> {
        const NAMES: [&str; 4] = ["dim1", "dim2", "dim3", "dim4"];
        let name = |k| NAMES.get(k).map_or_else(|| format!("dim{}", k + 1), ToString::to_string);
        (0..rank).map(name).collect()
    }

    /// Returns this array with these semantics.
    pub fn with_semantics(mut self, semantics: Semantics) -> Self {
        self.meaning = Some(Box::new(semantics));
        self
    }

    /// Semantics of the array; the default if none are set.
    pub fn semantics(&self) -> &Semantics {
        self.meaning.as_deref().unwrap_or(&DEFAULT_SEMANTICS)
    }

    /// Mutable semantics of the array, created if none are set.
    pub fn semantics_mut(&mut self) -> &mut Semantics {
        self.meaning.get_or_insert_default()
    }

    /// Order of the stored elements; C for layouts without an order.
    pub fn order(&self) -> Order {
        self.layout.order()
    }

    /// Offsets of elements of variable length in bytes, and the total at the end; `None` for other arrays.
    /// Arrays of variable-length elements are read as bytes. Encoded elements whose total length is that of
    /// type and shape are parts of an ordinary array, except if there is one per byte of an array of opaque
    /// bytes: there the totals match by coincidence.
    pub fn ragged(&self) -> Option<&[u64]> {
        if let Layout::Encoded { decoded, .. } = &self.layout
            && self.dtype == DType::opaque(1)
            && self.shape.lengths() == [decoded.len().saturating_sub(1) as u64]
            && decoded.windows(2).any(|w| w[1].wrapping_sub(w[0]) != 1)
        {
            return Some(decoded);
        }
        self.layout.ragged(self.shape.bytes(self.dtype.size()).ok())
    }

    /// Whether it is a table in columns: its second dimension is called [`COLUMN`].
    pub fn is_table(&self) -> bool {
        self.dims.len() == 2 && self.dims[1] == COLUMN
    }

    /// Whether it is a table in columns whose first column is the coordinate of the others.
    pub fn has_grid_column(&self) -> bool {
        self.is_table() && matches!(self.coords.first(), Some(Coord::Uniform { .. }))
    }

    /// Size of the decoded elements in bytes. Fails if it exceeds the largest file size.
    pub fn bytes(&self) -> Result<u64> {
        match &self.layout {
            Layout::Ragged { data, .. } => Ok(data.len()),
            Layout::Encoded { decoded, .. } => Ok(decoded.last().copied().unwrap_or(0)),
            _ => self.shape.bytes(self.dtype.size()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_spacing_is_detected() {
        assert_eq!(Coord::spacing(&[2.0, 1.5, 1.0]), Ok((2.0, -0.5)));
        // Rounded points, and points far from 0.
        let rounded: Vec<f64> =
            (0..1000).map(|k| (f64::from(k) / 7.0 * 1e8).round() / 1e8).collect();
        assert!(Coord::spacing(&rounded).is_ok());
        let far: Vec<f64> = (0..1000).map(|k| 1e9 + f64::from(k) * 1e-3).collect();
        assert!(Coord::spacing(&far).is_ok());
        assert_eq!(Coord::spacing(&[0.0, 1.0, 2.5, 3.0]), Err(2));
        assert_eq!(Coord::spacing(&[0.0, 1.0, f64::NAN, 3.0]), Err(2));
        assert_eq!(Coord::spacing(&[0.0, f64::INFINITY]), Err(0));
        assert_eq!(Coord::spacing(&[7.0, 7.0]), Err(0));
        assert_eq!(Coord::spacing(&[7.0]), Err(1));
    }
}
