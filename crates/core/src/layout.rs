//! Where an array's bytes lie, and how to make values of them.

use std::fmt;
use std::sync::Arc;

use crate::chunks::Chunks;
use crate::computed::Computed;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::frames::FrameTable;
use crate::semantics::{Missing, Role, Semantics};
use crate::shape::{Order, Shape};
use crate::tree::NodeId;

/// A range of bytes of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// Ranges that read as one: several for Fortran sub-records and stitched blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extents(Ranges);

/// Nearly every array is one range, and a file may have a million of them.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ranges {
    One(Extent),
    Several {
        parts: Arc<[Extent]>,
        /// Bytes before each part, and the total at the end.
        starts: Arc<[u64]>,
    },
}

impl Extents {
    /// One range.
    pub fn one(offset: u64, len: u64) -> Self {
        Self(Ranges::One(Extent { offset, len }))
    }

    /// Several ranges, in the order in which they are read.
    pub fn several(parts: Vec<Extent>) -> Result<Self> {
        let mut starts = Vec::with_capacity(parts.len() + 1);
        let mut total = 0_u64;
        starts.push(0);
        for part in &parts {
            total = total
                .checked_add(part.len)
                .ok_or_else(|| Error::limit("ranges longer than any file"))?;
            starts.push(total);
        }
        Ok(Self(match parts[..] {
            [one] => Ranges::One(one),
            _ => Ranges::Several { parts: parts.into(), starts: starts.into() },
        }))
    }

    /// The same ranges `by` bytes further on.
    pub(crate) fn shifted(&self, by: u64) -> Result<Self> {
        let shift = |part: &Extent| {
            let offset = part.offset.checked_add(by);
            offset.map(|offset| Extent { offset, len: part.len })
        };
        let parts: Option<Vec<Extent>> = self.parts().iter().map(shift).collect();
        Self::several(parts.ok_or_else(|| Error::limit("ranges past the end of any file"))?)
    }

    /// Bytes in all.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Ranges::One(part) => part.len,
            Ranges::Several { starts, .. } => starts.last().copied().unwrap_or(0),
        }
    }

    /// No bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ranges.
    pub fn parts(&self) -> &[Extent] {
        match &self.0 {
            Ranges::One(part) => std::slice::from_ref(part),
            Ranges::Several { parts, .. } => parts,
        }
    }

    /// The pieces of the source that hold `len` bytes from `offset` of the joined ranges on.
    pub fn pieces(&self, offset: u64, len: u64) -> impl Iterator<Item = Extent> + '_ {
        let end = offset.saturating_add(len).min(self.len());
        let first = match &self.0 {
            Ranges::One(_) => 0,
            Ranges::Several { starts, .. } => {
                starts.partition_point(|start| *start <= offset).saturating_sub(1)
            }
        };
        let parts = self.parts();
        // Bytes before a part.
        let start = move |k: usize| match &self.0 {
            Ranges::One(part) => part.len * k as u64,
            Ranges::Several { starts, .. } => starts[k],
        };
        (first..parts.len()).map_while(move |k| {
            let (from, to) = (start(k).max(offset), start(k + 1).min(end));
            (start(k) < end).then(|| Extent {
                offset: parts[k].offset.saturating_add(from - start(k)),
                len: to.saturating_sub(from),
            })
        })
    }
}

/// Turns stored bytes into elements: an inflater, a parser of numbers.
pub trait Codec: Send + Sync {
    /// A word for listings, for example `deflate+base64`.
    fn name(&self) -> &str;

    /// Fills `out`, whose length is what the file promises, from `stored`; anything but exactly
    /// that many bytes is an error.
    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()>;
}

/// Where the bytes of an array are.
#[derive(Clone)]
pub enum Layout {
    /// As they are, in `order`.
    Plain {
        /// The byte ranges.
        extents: Extents,
        /// Which index runs fastest.
        order: Order,
    },
    /// Elements at equal distances: one in every row of a table (SDF stations), or in every row of
    /// a larger array (the side of a grid).
    Rows {
        /// From the first element to the last.
        extents: Extents,
        /// Bytes from an element to the next.
        stride: u64,
        /// Which index runs fastest.
        order: Order,
    },
    /// Elements of different lengths, one after the other (scda V).
    Ragged {
        /// Bytes before each element, and the total at the end.
        starts: Arc<[u64]>,
        /// All elements.
        data: Extents,
    },
    /// Each element encoded on its own, so that any of them can be read alone.
    Encoded {
        /// Stored bytes before each element, and the total at the end.
        starts: Arc<[u64]>,
        /// Decoded bytes before each element, and the total at the end.
        decoded: Arc<[u64]>,
        /// All encoded elements.
        data: Extents,
        /// How to decode one.
        codec: Arc<dyn Codec>,
        /// Which index runs fastest, where they are parts of an array.
        order: Order,
    },
    /// Cut into chunks of a regular grid (Zarr, HDF5).
    Chunked {
        /// All of them.
        chunks: Arc<Chunks>,
        /// The index along their first dimension at which the array begins. An array of one dimension
        /// less is what stands at that index.
        first: u64,
    },
    /// A table of frames, each with its own shape and layout (GSD).
    PerFrame(Arc<dyn FrameTable>),
    /// In the metadata itself, little-endian.
    Inline(Arc<[u8]>, Order),
    /// Encoded as one piece, for example numbers written as text: opening the array decodes all of it.
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
    /// One little-endian element, everywhere the same.
    Fill(Arc<[u8]>),
    /// The same bytes as another array of the tree.
    Same(NodeId),
}

impl Layout {
    /// The layout of the same bytes where they lie `by` bytes further on; a table of frames and a
    /// reference to another array cannot be moved.
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
            Self::Inline(..) | Self::Fill(_) => {}
            Self::PerFrame(_) | Self::Same(_) => {
                return Err(Error::unsupported("core-series", "an array that refers to others"));
            }
        }
        Ok(moved)
    }

    /// The same bytes as an array whose elements are in another order; nothing where there is no order
    /// to change.
    pub fn in_order(&self, new: Order) -> Option<Self> {
        let mut same = self.clone();
        match &mut same {
            Self::Plain { order, .. }
            | Self::Inline(_, order)
            | Self::EncodedWhole { order, .. }
            | Self::Encoded { order, .. } => *order = new,
            Self::Fill(_) => {}
            _ => return None,
        }
        Some(same)
    }

    /// The layout of `len` bytes from byte `first` of the array on, as an array in C order of its own;
    /// nothing where they do not lie together.
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
            Self::Chunked { chunks, first: start } => {
                let row = Shape::new(chunks.shape.lengths().get(1..)?);
                let bytes = row.bytes(chunks.fill.len()).ok().filter(|bytes| *bytes > 0)?;
                let whole = first.is_multiple_of(bytes) && len.is_multiple_of(bytes);
                let first = start.checked_add(first / bytes)?;
                whole.then(|| Self::Chunked { chunks: chunks.clone(), first })
            }
            _ => None,
        }
    }

    /// [`ArrayDesc::ragged`] for an array that says it has `bytes`.
    pub(crate) fn ragged(&self, bytes: Option<u64>) -> Option<&[u64]> {
        match self {
            Self::Ragged { starts, .. } => Some(starts),
            Self::Encoded { decoded, .. } => {
                let whole = bytes == Some(decoded.last().copied().unwrap_or(0));
                (!whole).then_some(decoded)
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
    /// The value of what is stored as `origin`.
    pub intercept: f64,
    /// Change of the value per stored unit.
    pub slope: f64,
    /// The stored number whose value is `intercept`.
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

    /// The stored number for a value, not yet rounded to what can be stored.
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

    /// Both coefficients and the origin are finite.
    pub fn is_finite(self) -> bool {
        self.intercept.is_finite() && self.slope.is_finite() && self.origin.is_finite()
    }
}

/// Where the points of one dimension are.
#[derive(Clone, Debug, PartialEq)]
pub enum Coord {
    /// Nothing known but the index.
    None,
    /// Evenly spaced: `start + k * step`, never accumulated.
    Uniform {
        /// The first point.
        start: f64,
        /// The distance.
        step: f64,
    },
    /// Another array of the tree.
    Node(NodeId),
}

impl Coord {
    /// Start and step of two points and more that are evenly spaced, or the number of the first that is
    /// not in its place.
    pub fn spacing(points: &[f64]) -> std::result::Result<(f64, f64), usize> {
        let [start, .., end] = *points else { return Err(points.len()) };
        let step = (end - start) / (points.len() - 1) as f64;
        // What was computed or stored in fewer digits is off by that much.
        let apart = step.abs() * 1e-6 + start.abs().max(end.abs()) * f64::EPSILON * 4.0;
        let even = |(k, point): (usize, &f64)| (point - (start + k as f64 * step)).abs() <= apart;
        match points.iter().enumerate().position(|point| step == 0.0 || !even(point)) {
            None => Ok((start, step)),
            Some(odd) => Err(odd),
        }
    }
}

/// The second dimension of a table that was printed in columns.
pub const COLUMN: &str = "column";

/// Everything about an array but its values.
#[derive(Clone, Debug)]
pub struct ArrayDesc {
    /// Element type as stored.
    pub dtype: DType,
    /// Lengths; for [`Layout::PerFrame`] those of the first frame that has the array.
    pub shape: Shape,
    /// Names of the dimensions, as many as the shape has.
    pub dims: Vec<String>,
    /// Points along the dimensions, as many as the shape has.
    pub coords: Vec<Coord>,
    /// Where the bytes are.
    pub layout: Layout,
    /// Linear scaling from stored to physical values.
    pub map: Option<Linear>,
    /// What the array means; see [`ArrayDesc::semantics`].
    pub meaning: Option<Box<Semantics>>,
}

static NO_MEANING: Semantics = Semantics {
    role: Role::Data,
    mesh: None,
    centring: None,
    component: None,
    point_set: None,
    missing: Missing { values: Vec::new(), min: None, max: None },
};

impl ArrayDesc {
    /// An array with unnamed dimensions and no coordinates.
    pub fn new(dtype: DType, shape: Shape, layout: Layout) -> Self {
        let dims = Self::default_dims(shape.rank());
        let coords = vec![Coord::None; shape.rank()];
        Self { dtype, shape, dims, coords, layout, map: None, meaning: None }
    }

    /// The names of dimensions that have no name of their own: `dim1`, `dim2` and so on.
    pub fn default_dims(rank: usize) -> Vec<String> {
        const NAMES: [&str; 4] = ["dim1", "dim2", "dim3", "dim4"];
        let name = |k| NAMES.get(k).map_or_else(|| format!("dim{}", k + 1), ToString::to_string);
        (0..rank).map(name).collect()
    }

    /// This array with that meaning.
    pub fn with_semantics(mut self, semantics: Semantics) -> Self {
        self.meaning = Some(Box::new(semantics));
        self
    }

    /// What the array means.
    pub fn semantics(&self) -> &Semantics {
        self.meaning.as_deref().unwrap_or(&NO_MEANING)
    }

    /// What the array means, to be changed.
    pub fn semantics_mut(&mut self) -> &mut Semantics {
        self.meaning.get_or_insert_default()
    }

    /// The order in which elements are stored; C where the layout has no order of its own.
    pub fn order(&self) -> Order {
        match &self.layout {
            Layout::Plain { order, .. }
            | Layout::Rows { order, .. }
            | Layout::Inline(_, order)
            | Layout::EncodedWhole { order, .. }
            | Layout::Encoded { order, .. } => *order,
            Layout::Computed(computed) => computed.order,
            _ => Order::C,
        }
    }

    /// Bytes before each element and the total at the end, where elements have lengths of their
    /// own; such an array is read as the bytes it has. Encoded elements whose bytes are those of
    /// type and shape are parts of the array, whatever their lengths; but as many as there are
    /// single bytes are elements that have as many bytes in all by chance.
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

    /// It is a table that was printed in columns: its second dimension is called [`COLUMN`].
    pub fn is_table(&self) -> bool {
        self.dims.len() == 2 && self.dims[1] == COLUMN
    }

    /// The first column of the table is its grid: it says where the others were measured.
    pub fn has_grid_column(&self) -> bool {
        self.is_table() && matches!(self.coords.first(), Some(Coord::Uniform { .. }))
    }

    /// Bytes of the elements once decoded; an error where that fits no file.
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
    fn even_points_are_told_from_others() {
        assert_eq!(Coord::spacing(&[2.0, 1.5, 1.0]), Ok((2.0, -0.5)));
        // Points that were printed with fewer digits, and those that lie far from 0.
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

    #[test]
    fn pieces_cross_ranges() {
        let e = |offset, len| Extent { offset, len };
        let joined = Extents::several(vec![e(100, 10), e(0, 0), e(200, 5), e(300, 20)]).unwrap();
        assert_eq!(joined.len(), 35);
        let pieces: Vec<_> = joined.pieces(8, 10).filter(|p| p.len > 0).collect();
        assert_eq!(pieces, [e(108, 2), e(200, 5), e(300, 3)]);
        assert_eq!(joined.pieces(35, 10).map(|p| p.len).sum::<u64>(), 0);
        assert_eq!(joined.pieces(0, 35).map(|p| p.len).sum::<u64>(), 35);
        assert!(Extents::several(vec![e(0, u64::MAX), e(0, 1)]).is_err());
    }
}
