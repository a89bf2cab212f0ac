//! Chunks: the byte ranges of an array in files.

use std::path::{Path, PathBuf};

use spile_core::source::Part;
use spile_core::{
    ArrayDesc, ByteOrder, DType, Error, Extent, Kind, Layout, Limits, NodeId, Order, Result, Shape,
    Source,
};
use spile_interchange::flat::Flat;

/// Largest array in bytes that is stored in the index itself.
pub(super) const INSIDE: u64 = 64 << 10;

/// Largest chunk in bytes where the layout allows it: readers read entire chunks.
const CHUNK: u64 = 64 << 20;

/// Largest number of chunks of an array.
const MOST_CHUNKS: u64 = 1 << 20;

/// Approximate memory per chunk in bytes.
pub(super) const CHUNK_BYTES: u64 = 64;

/// The byte ranges of an array.
struct Ranges {
    parts: Vec<Extent>,
    order: Order,
    /// Each range is a frame; the order is that inside a frame.
    framed: bool,
}

/// The location of a chunk.
pub(super) enum Place {
    /// In a file, by its number.
    Range { file: usize, offset: u64, len: u64 },
    /// In the index itself.
    Inside(Vec<u8>),
}

/// An array of a reference store: the shape and the locations of its chunks.
pub(super) struct Chunks {
    pub(super) dtype: String,
    pub(super) chunk: Vec<u64>,
    pub(super) order: Order,
    /// The only dimension with more than one chunk.
    pub(super) slowest: usize,
    pub(super) places: Vec<Place>,
    /// Number of referenced bytes.
    pub(super) bytes: u64,
}

impl Chunks {
    /// The key of a chunk: its index in the chunk grid.
    pub(super) fn key(&self, number: usize) -> String {
        let index = |axis: usize| if axis == self.slowest { number } else { 0 };
        let axes = 0..self.chunk.len().max(1);
        axes.map(|axis| index(axis).to_string()).collect::<Vec<_>>().join(".")
    }
}

/// One file, or several concatenated files.
pub(super) struct Files(Vec<(String, u64, u64)>);

impl Files {
    pub(super) fn of(source: &Source) -> Result<Self> {
        let full = |path: &Path| -> Result<String> {
            let path: PathBuf = std::path::absolute(path)?;
            let text = path.to_str().map(ToString::to_string);
            text.ok_or_else(|| Error::unsupported("", "the file name is not valid Unicode"))
        };
        let parts = source.parts();
        let end = |k: usize| parts.get(k + 1).map_or(source.len(), Part::start);
        if !parts.is_empty() {
            let each = parts.iter().enumerate();
            let files = each.map(|(k, part)| Ok((full(part.path())?, part.start(), end(k))));
            return files.collect::<Result<_>>().map(Self);
        }
        let path = source.path().ok_or_else(|| {
            Error::argument("an index needs a file, not a stream").hint("save it first")
        })?;
        Ok(Self(vec![(full(path)?, 0, source.len())]))
    }

    /// Their names.
    pub(super) fn names(self) -> Vec<String> {
        self.0.into_iter().map(|(name, ..)| name).collect()
    }

    /// The file of a range and the offset in it; none if it is in no file.
    fn place(&self, range: Extent) -> Option<Place> {
        let k = self.0.partition_point(|(_, start, _)| *start <= range.offset).checked_sub(1)?;
        // Empty files start where the next one does.
        let (_, start, end) = &self.0[k];
        let inside = range.offset.checked_add(range.len).is_some_and(|last| last <= *end);
        let Extent { offset, len } = range;
        inside.then(|| Place::Range { file: k, offset: offset - start, len })
    }
}

pub(super) struct Work<'a> {
    pub(super) flat: &'a Flat,
    pub(super) files: &'a Files,
    pub(super) limits: &'a Limits,
}

impl Work<'_> {
    /// The chunks of an array, or the reason why there are none.
    pub(super) fn chunks(
        &self,
        id: NodeId,
        array: &ArrayDesc,
    ) -> Result<std::result::Result<Chunks, String>> {
        let bytes = array.shape.bytes(array.dtype.size())?;
        let why = match self.ranges(array)? {
            Err(why) => why,
            Ok(Ranges { parts, order, framed }) => match self.cut(array, &parts, order, framed) {
                Ok(chunks) => return Ok(Ok(chunks)),
                Err(why) => why,
            },
        };
        if bytes > INSIDE {
            return Ok(Err(why));
        }
        let mut values = Vec::with_capacity(self.limits.allow(bytes, "a small array")?);
        self.flat.stream(id, Order::C, |block| {
            values.extend_from_slice(block);
            Ok(())
        })?;
        let dtype = array.dtype.with_order(ByteOrder::Little);
        if numpy(dtype).is_none() {
            return Ok(Err(no_type(dtype)));
        }
        inside(dtype, &array.shape, values).map(Ok)
    }

    /// The ranges of an array, if it is stored as consecutive ranges without encoding.
    fn ranges(&self, array: &ArrayDesc) -> Result<std::result::Result<Ranges, String>> {
        match &array.layout {
            Layout::Plain { extents, order } => {
                let parts = extents.parts().to_vec();
                Ok(Ok(Ranges { parts, order: *order, framed: false }))
            }
            Layout::PerFrame(table) => {
                let frames = table.len();
                self.limits.allow(frames.saturating_mul(CHUNK_BYTES), "the frames")?;
                let (mut parts, mut all) = (Vec::new(), None);
                for found in table.cells() {
                    let (frame, cell) = found?;
                    let Layout::Plain { extents, order } = &cell.layout else {
                        let what = match cell.layout {
                            Layout::Fill(_) => "has default values, which are not in the file",
                            _ => "is encoded",
                        };
                        return Ok(Err(format!("frame {frame} {what}")));
                    };
                    let order = if cell.shape.rank() > 1 { *order } else { Order::C };
                    if *all.get_or_insert(order) != order {
                        return Ok(Err("the frames have different element orders".into()));
                    }
                    let bytes = cell.shape.bytes(array.dtype.size())?;
                    parts.extend(extents.pieces(0, bytes).filter(|part| part.len > 0));
                }
                let order = all.unwrap_or(Order::C);
                Ok(Ok(Ranges { parts, order, framed: order == Order::F }))
            }
            other => Ok(Err(format!("the array is encoded: {other:?}"))),
        }
    }

    /// Chunks of complete rows whose number divides every range.
    fn cut(
        &self,
        array: &ArrayDesc,
        parts: &[Extent],
        order: Order,
        framed: bool,
    ) -> std::result::Result<Chunks, String> {
        let dtype = numpy(array.dtype).ok_or_else(|| no_type(array.dtype))?;
        let shape = array.shape.lengths();
        let mut chunk: Vec<u64> = shape.iter().map(|n| (*n).max(1)).collect();
        let size = array.dtype.size() as u64;
        let bytes = array.shape.bytes(array.dtype.size()).map_err(|e| e.message().to_string())?;
        let order = if shape.len() > 1 { order } else { Order::C };
        let (places, slowest) = (Vec::new(), 0);
        let mut chunks = Chunks { dtype, chunk: chunk.clone(), order, slowest, places, bytes };
        if bytes == 0 {
            return Ok(chunks);
        }
        let lost = || "exceeds the end of the file".to_string();
        if shape.is_empty() {
            let [part] = parts else { return Err("an element consists of several ranges".into()) };
            let range = Extent { len: size, ..*part };
            chunks.places.push(self.files.place(range).ok_or_else(lost)?);
            return Ok(chunks);
        }
        // A chunk in Fortran order has exactly one frame.
        if framed && parts.len() as u64 != shape[0] {
            return Err("frames in Fortran order are not consecutive".into());
        }
        let slowest = if order == Order::F && !framed { shape.len() - 1 } else { 0 };
        let row = bytes / shape[slowest];
        let mut rest = bytes;
        let mut rows = 0;
        for part in parts {
            let len = part.len.min(rest);
            if !len.is_multiple_of(row) || (framed && len != row) {
                return Err("the ranges do not consist of complete rows".into());
            }
            rows = common(rows, len / row);
            rest -= len;
        }
        if rest > 0 {
            return Err("the ranges are too short".into());
        }
        // Reading a part of many rows should not read much more than that part.
        let rows = if framed { 1 } else { divisor(rows, CHUNK / row) };
        if shape[slowest] / rows > MOST_CHUNKS {
            return Err("too many chunks".into());
        }
        chunk[slowest] = rows;
        let mut rest = bytes;
        for part in parts {
            let len = part.len.min(rest);
            for k in 0..len / (rows * row) {
                let offset = part.offset + k * rows * row;
                let place = self.files.place(Extent { offset, len: rows * row });
                chunks.places.push(place.ok_or_else(lost)?);
            }
            rest -= len;
        }
        Ok(Chunks { chunk, slowest, ..chunks })
    }
}

/// The values as one chunk.
pub(super) fn inside(dtype: DType, shape: &Shape, bytes: Vec<u8>) -> Result<Chunks> {
    let dtype = numpy(dtype).ok_or_else(|| Error::unsupported("", no_type(dtype)))?;
    let chunk: Vec<u64> = shape.lengths().iter().map(|n| (*n).max(1)).collect();
    let places = if bytes.is_empty() { Vec::new() } else { vec![Place::Inside(bytes)] };
    Ok(Chunks { dtype, chunk, order: Order::C, slowest: 0, places, bytes: 0 })
}

/// The NumPy type string; booleans of several bytes are integers.
fn numpy(dtype: DType) -> Option<String> {
    if dtype.size() == 0 {
        return None;
    }
    match (dtype.kind(), dtype.size()) {
        (Kind::Bool, 2..) => DType::new(Kind::UInt, dtype.size() as u32, dtype.order())?.numpy(),
        (Kind::Opaque, 1) => Some("|u1".into()),
        // NumPy has these on some machines; Zarr does not.
        (Kind::X87 | Kind::ComplexX87, _) => None,
        _ => dtype.numpy(),
    }
}

fn no_type(dtype: DType) -> String {
    format!("Zarr has no {dtype}")
}

/// The greatest common divisor; of 0 and a number it is the number.
fn common(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The greatest divisor of `n` that is at most `most`, and at least 1.
fn divisor(n: u64, most: u64) -> u64 {
    if n <= most {
        return n.max(1);
    }
    let mut best = 1;
    let mut k = 1;
    while k * k <= n && k < 1 << 24 {
        if n.is_multiple_of(k) {
            for d in [k, n / k] {
                if d <= most {
                    best = best.max(d);
                }
            }
        }
        k += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_as_long_as_all_ranges_allow() {
        assert_eq!((common(0, 12), common(12, 18), common(7, 0)), (12, 6, 7));
        assert_eq!(
            (divisor(12, 100), divisor(12, 5), divisor(13, 5), divisor(12, 0)),
            (12, 4, 1, 1)
        );
        assert_eq!(divisor(1_000_000, 3000), 2500);
    }
}
