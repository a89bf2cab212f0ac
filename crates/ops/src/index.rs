//! A virtual Zarr store: where the arrays of a file lie, in the words of Zarr version 2 (Kerchunk's
//! reference format, version 1), so that xarray and zarr open the original bytes in place.
//!
//! A chunk of such a store is one range of a file. Arrays that are one range or several of whole rows can
//! be said like this, in any byte order and both element orders; so can frames that lie one after
//! the other. Small arrays that lie otherwise are put into the index itself. The rest is left out and
//! named.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use spile_core::axes::Dimensions;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::flat::Flat;
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Coord, Extent, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::source::{Part, Source};
use spile_core::tree::{Attrs, NodeId, Value};
use spile_core::wire::ByteOrder;

use crate::json::{Attr, Real};

/// Arrays up to this length are put into the index where there is no other way.
const INSIDE: u64 = 64 << 10;

/// Chunks are no longer where that can be helped: who wants a part reads whole chunks.
const CHUNK: u64 = 64 << 20;

/// More chunks of one array are of no use to anybody.
const MOST_CHUNKS: u64 = 1 << 20;

/// About what is remembered of a chunk.
const CHUNK_BYTES: u64 = 256;

/// An index.
pub struct Index {
    refs: Map<String, Json>,
    /// Arrays that are in it.
    pub arrays: u64,
    /// Bytes of the original that it points to.
    pub bytes: u64,
    /// What is not in it, and why.
    pub left_out: Vec<LeftOut>,
}

/// An array that cannot be expressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// The array.
    pub path: String,
    /// The reason.
    pub why: String,
}

/// Where an array lies.
struct Ranges {
    parts: Vec<Extent>,
    order: Order,
    /// Each of them is a frame, and the order is that inside a frame.
    framed: bool,
}

/// What a reference store says of an array: the lengths of a chunk, and where each of them is.
struct Chunks {
    dtype: String,
    chunk: Vec<u64>,
    order: Order,
    refs: Vec<(String, Json)>,
    bytes: u64,
}

impl Index {
    /// Writes the JSON.
    pub fn write(&self, out: &mut impl Write) -> Result<()> {
        let document = json!({ "version": 1, "refs": self.refs });
        Ok(serde_json::to_writer(out, &document).map_err(std::io::Error::from)?)
    }

    /// All documents in one, so that nobody has to look for them.
    fn consolidate(&mut self) {
        let document = |key: &String| {
            let last = key.rsplit('/').next().unwrap_or(key);
            matches!(last, ".zarray" | ".zattrs" | ".zgroup")
        };
        let all: Map<String, Json> = self
            .refs
            .iter()
            .filter(|(key, _)| document(key))
            .filter_map(|(key, text)| {
                Some((key.clone(), serde_json::from_str(text.as_str()?).ok()?))
            })
            .collect();
        let all = json!({ "zarr_consolidated_format": 1, "metadata": all });
        self.put("", ".zmetadata", &all);
    }

    fn put(&mut self, path: &str, name: &str, document: &Json) {
        let slash = if path.is_empty() { "" } else { "/" };
        // Kerchunk keeps documents as text.
        self.refs.insert(format!("{path}{slash}{name}"), document.to_string().into());
    }
}

/// The index of an open file or series. Reads metadata, and the values of small arrays that lie nowhere
/// as they are.
pub fn index(content: &dyn Reader, limits: &Limits) -> Result<Index> {
    let flat = Flat::new(content, limits)?;
    let tree = flat.tree();
    let dimensions = Dimensions::of(tree);
    let files = Files::of(content.source())?;
    let mut index = Index { refs: Map::new(), arrays: 0, bytes: 0, left_out: Vec::new() };
    let group = json!({ "zarr_format": 2 });
    index.put("", ".zgroup", &group);
    index.put("", ".zattrs", &Json::Object(attributes(tree.attrs())));
    for (_, node) in tree.iter().filter(|(_, node)| node.array.is_none()) {
        index.put(&node.path, ".zgroup", &group);
        index.put(&node.path, ".zattrs", &Json::Object(attributes(&node.attrs)));
    }
    // Points of a dimension are where xarray looks for them.
    let mut places: HashMap<NodeId, String> = HashMap::new();
    for dimension in dimensions.list() {
        match dimension.coord {
            Coord::Node(id) => drop(places.insert(id, dimension.name.clone())),
            Coord::Uniform { start, step } if dimension.len.saturating_mul(8) <= INSIDE => {
                let points = (0..dimension.len).map(|k| start + k as f64 * step);
                let bytes: Vec<u8> = points.flat_map(f64::to_le_bytes).collect();
                let shape = Shape::new([dimension.len]);
                let chunks = inside(DType::F64, &shape, &bytes)?;
                let names = [dimension.name.as_str()];
                put_array(&mut index, &dimension.name, &shape, chunks, &names, Map::new());
            }
            _ => {}
        }
    }
    let work = Work { flat: &flat, files: &files, limits };
    for (id, node, array) in tree.arrays() {
        let chunks = match work.chunks(id, array) {
            Ok(Ok(chunks)) => chunks,
            Ok(Err(why)) => {
                index.left_out.push(LeftOut { path: node.path.clone(), why });
                continue;
            }
            Err(e) => return Err(e.in_object(format!("\"{}\"", node.path))),
        };
        let mut attrs = attributes(&node.attrs);
        if let Some(map) = array.map {
            attrs.insert("scale_factor".into(), real(map.slope));
            attrs.insert("add_offset".into(), real(map.intercept));
        }
        let names: Vec<&str> = dimensions.names(id).collect();
        let place = places.get(&id).unwrap_or(&node.path);
        put_array(&mut index, place, &array.shape, chunks, &names, attrs);
        limits.allow(index.refs.len() as u64 * CHUNK_BYTES, "the index")?;
    }
    index.consolidate();
    // What no array of one shape can hold is not even in the flat tree.
    for (_, node, _) in content.tree().arrays() {
        if tree.at(&node.path).is_none() && !flat_elsewhere(content, &node.path) {
            let why = "its shape changes from frame to frame".to_string();
            index.left_out.push(LeftOut { path: node.path.clone(), why });
        }
    }
    Ok(index)
}

/// The array is the same as another one, which is there.
fn flat_elsewhere(content: &dyn Reader, path: &str) -> bool {
    let tree = content.tree();
    let array = tree.at(path).and_then(|id| tree.node(id).array.as_ref());
    array.is_some_and(|array| matches!(array.layout, Layout::Same(_)))
}

fn put_array(
    index: &mut Index,
    path: &str,
    shape: &Shape,
    chunks: Chunks,
    names: &[&str],
    mut attrs: Map<String, Json>,
) {
    attrs.insert("_ARRAY_DIMENSIONS".into(), names.into());
    let order = if chunks.order == Order::F { "F" } else { "C" };
    let document = json!({
        "zarr_format": 2, "shape": shape.lengths(), "chunks": chunks.chunk, "dtype": chunks.dtype,
        "order": order, "compressor": null, "filters": null, "fill_value": null,
    });
    index.put(path, ".zarray", &document);
    index.put(path, ".zattrs", &Json::Object(attrs));
    for (key, place) in chunks.refs {
        index.refs.insert(format!("{path}/{key}"), place);
    }
    index.arrays += 1;
    index.bytes += chunks.bytes;
}

/// One file, or several whose bytes follow each other.
struct Files(Vec<(String, u64, u64)>);

impl Files {
    fn of(source: &Source) -> Result<Self> {
        let full = |path: &Path| -> Result<String> {
            let path: PathBuf = std::path::absolute(path)?;
            let text = path.to_str().map(ToString::to_string);
            text.ok_or_else(|| Error::unsupported("", "the name of the file is no text"))
        };
        let parts = source.parts();
        let end = |k: usize| parts.get(k + 1).map_or(source.len(), Part::start);
        if !parts.is_empty() {
            let each = parts.iter().enumerate();
            let files = each.map(|(k, part)| Ok((full(part.path())?, part.start(), end(k))));
            return files.collect::<Result<_>>().map(Self);
        }
        let path = source.path().ok_or_else(|| {
            Error::argument("an index points into a file, and this has no name")
                .hint("save it first")
        })?;
        Ok(Self(vec![(full(path)?, 0, source.len())]))
    }

    /// The range as Kerchunk says it; nothing if it is in no file.
    fn place(&self, range: Extent) -> Option<Json> {
        let k = self.0.partition_point(|(_, start, _)| *start <= range.offset).checked_sub(1)?;
        // Files of no bytes begin where the next one does.
        let (name, start, end) = &self.0[k];
        let inside = range.offset.checked_add(range.len).is_some_and(|last| last <= *end);
        inside.then(|| json!([name, range.offset - start, range.len]))
    }
}

struct Work<'a> {
    flat: &'a Flat<'a>,
    files: &'a Files,
    limits: &'a Limits,
}

impl Work<'_> {
    /// The chunks of an array, or why there are none.
    fn chunks(&self, id: NodeId, array: &ArrayDesc) -> Result<std::result::Result<Chunks, String>> {
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
        inside(dtype, &array.shape, &values).map(Ok)
    }

    /// The ranges of an array, one after the other, where it is nothing else.
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
                for frame in 0..frames {
                    let Some(cell) = table.cell(frame)? else { continue };
                    let Layout::Plain { extents, order } = &cell.layout else {
                        return Ok(Err(format!("frame {frame} does not lie as it is")));
                    };
                    let order = if cell.shape.rank() > 1 { *order } else { Order::C };
                    if *all.get_or_insert(order) != order {
                        return Ok(Err("its frames lie in different orders".into()));
                    }
                    let bytes = cell.shape.bytes(array.dtype.size())?;
                    parts.extend(extents.pieces(0, bytes).filter(|part| part.len > 0));
                }
                let order = all.unwrap_or(Order::C);
                Ok(Ok(Ranges { parts, order, framed: order == Order::F }))
            }
            other => Ok(Err(format!("its bytes do not lie as they are: {other:?}"))),
        }
    }

    /// Chunks of whole rows: as many as fit every range without rest.
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
        let mut chunks = Chunks { dtype, chunk: chunk.clone(), order, refs: Vec::new(), bytes };
        if bytes == 0 {
            return Ok(chunks);
        }
        let lost = || "it goes past the end of the file".to_string();
        if shape.is_empty() {
            let [part] = parts else { return Err("an element in several places".into()) };
            let range = Extent { len: size, ..*part };
            chunks.refs.push(("0".into(), self.files.place(range).ok_or_else(lost)?));
            return Ok(chunks);
        }
        // A frame in Fortran order is a chunk of one frame in that order, and no more than one.
        if framed && parts.len() as u64 != shape[0] {
            return Err("frames in Fortran order do not follow each other".into());
        }
        let slowest = if order == Order::F && !framed { shape.len() - 1 } else { 0 };
        let row = bytes / shape[slowest];
        let mut rest = bytes;
        let mut rows = 0;
        for part in parts {
            let len = part.len.min(rest);
            if !len.is_multiple_of(row) || (framed && len != row) {
                return Err("its ranges do not end with whole rows".into());
            }
            rows = common(rows, len / row);
            rest -= len;
        }
        if rest > 0 {
            return Err("its ranges are too short".into());
        }
        // A part of a long run of rows should cost no more than that part.
        let rows = if framed { 1 } else { divisor(rows, CHUNK / row) };
        if shape[slowest] / rows > MOST_CHUNKS {
            return Err("it would be too many chunks".into());
        }
        chunk[slowest] = rows;
        let (mut number, mut rest) = (0_u64, bytes);
        for part in parts {
            let len = part.len.min(rest);
            for k in 0..len / (rows * row) {
                let offset = part.offset + k * rows * row;
                let place = self.files.place(Extent { offset, len: rows * row });
                let index = |axis: usize| if axis == slowest { number } else { 0 };
                let key: Vec<_> = (0..shape.len()).map(|k| index(k).to_string()).collect();
                chunks.refs.push((key.join("."), place.ok_or_else(lost)?));
                number += 1;
            }
            rest -= len;
        }
        Ok(Chunks { chunk, ..chunks })
    }
}

/// The values themselves, as one chunk.
fn inside(dtype: DType, shape: &Shape, bytes: &[u8]) -> Result<Chunks> {
    let dtype = numpy(dtype).ok_or_else(|| Error::unsupported("", no_type(dtype)))?;
    let chunk: Vec<u64> = shape.lengths().iter().map(|n| (*n).max(1)).collect();
    let zeros: Vec<&str> = shape.lengths().iter().map(|_| "0").collect();
    let key = if zeros.is_empty() { "0".to_string() } else { zeros.join(".") };
    let text = format!("base64:{}", base64_simd::STANDARD.encode_to_string(bytes));
    let refs = if bytes.is_empty() { Vec::new() } else { vec![(key, text.into())] };
    Ok(Chunks { dtype, chunk, order: Order::C, refs, bytes: 0 })
}

/// The type in NumPy's words; truth values of several bytes are the numbers they are.
fn numpy(dtype: DType) -> Option<String> {
    if dtype.size() == 0 {
        return None;
    }
    match (dtype.kind(), dtype.size()) {
        (Kind::Bool, 2..) => DType::new(Kind::UInt, dtype.size() as u32, dtype.order())?.numpy(),
        (Kind::Opaque, 1) => Some("|u1".into()),
        // NumPy has these where the machine does; Zarr has not.
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

/// Attributes as JSON.
fn attributes(attrs: &Attrs) -> Map<String, Json> {
    let shown = |value: &Value| serde_json::to_value(Attr(value)).unwrap_or_default();
    attrs.iter().map(|(name, value)| (name.clone(), shown(value))).collect()
}

fn real(value: f64) -> Json {
    serde_json::to_value(Real(value)).unwrap_or_default()
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
