//! A virtual Zarr store: byte ranges of the arrays of a file as a Zarr version 2 store (Kerchunk reference
//! format, version 1), so that xarray and zarr read the original file in place.
//!
//! A chunk of such a store is one byte range of a file. Arrays that consist of one range, or of several
//! ranges of complete rows, can be referenced, in any byte order and element order; so can consecutive
//! frames. Small arrays with another layout are stored in the index itself. All others are skipped and
//! listed.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use spile_core::format::LossKind;
use spile_core::{Attrs, Coord, DType, Dataset, NodeId, Order, Result, Shape, Value};
use spile_interchange::dimensions::Dimensions;
use spile_interchange::flat::{Flat, flat_losses};

use crate::json::{Attr, Real};
use chunks::{CHUNK_BYTES, Chunks, Files, INSIDE, Work, inside};

mod chunks;
mod forms;

pub use forms::DOCUMENTS;

/// An index.
#[derive(Default)]
pub struct Index {
    /// Zarr metadata of groups and arrays, by key.
    documents: Map<String, Json>,
    /// The chunks of each array.
    chunks: Vec<(String, Chunks)>,
    /// Names of the referenced files.
    files: Vec<String>,
    /// Number of referenced arrays.
    pub arrays: u64,
    /// Number of referenced bytes.
    pub bytes: u64,
    /// Arrays that are not referenced, with reasons.
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

impl Index {
    fn put(&mut self, path: &str, name: &str, document: Json) {
        let slash = if path.is_empty() { "" } else { "/" };
        self.documents.insert(format!("{path}{slash}{name}"), document);
    }
}

/// The index of an open file or series. Reads metadata, and the values of small arrays that cannot be
/// referenced.
pub fn index(content: &Dataset) -> Result<Index> {
    let (flat, limits) = (Flat::new(content)?, content.limits());
    let tree = flat.tree();
    let dimensions = Dimensions::of(tree);
    let files = Files::of(content.source())?;
    let mut index = Index::default();
    let group = json!({ "zarr_format": 2 });
    index.put("", ".zgroup", group.clone());
    index.put("", ".zattrs", Json::Object(attributes(tree.attrs())));
    for (_, node) in tree.iter().filter(|(_, node)| node.array.is_none()) {
        index.put(&node.path, ".zgroup", group.clone());
        index.put(&node.path, ".zattrs", Json::Object(attributes(&node.attrs)));
    }
    // Coordinates are named as xarray expects them.
    let mut places: HashMap<NodeId, String> = HashMap::new();
    for dimension in dimensions.list() {
        match dimension.coord {
            Coord::Node(id) => drop(places.insert(id, dimension.name.clone())),
            Coord::Uniform { start, step } if dimension.len.saturating_mul(8) <= INSIDE => {
                let points = (0..dimension.len).map(|k| start + k as f64 * step);
                let bytes: Vec<u8> = points.flat_map(f64::to_le_bytes).collect();
                let shape = Shape::new([dimension.len]);
                let chunks = inside(DType::F64, &shape, bytes)?;
                let names = [dimension.name.as_str()];
                put_array(&mut index, &dimension.name, &shape, chunks, &names, Map::new());
            }
            _ => {}
        }
    }
    let work = Work { flat: &flat, files: &files, limits };
    let mut held = 0;
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
            let (intercept, slope) = map.coefficients();
            attrs.insert("scale_factor".into(), real(slope));
            attrs.insert("add_offset".into(), real(intercept));
        }
        let names: Vec<&str> = dimensions.names(id).collect();
        let place = places.get(&id).unwrap_or(&node.path);
        held += (chunks.places.len() as u64 + 8) * CHUNK_BYTES;
        limits.allow(held, "the index")?;
        put_array(&mut index, place, &array.shape, chunks, &names, attrs);
    }
    index.files = files.names();
    // Arrays whose frames do not form one array are not in the flat tree.
    let losses = flat_losses(content, "the index", |_| Ok(())).into_vec();
    let arrays = losses.into_iter().filter(|loss| loss.kind == LossKind::Array);
    index.left_out.extend(arrays.map(|loss| LeftOut { path: loss.path, why: loss.reason }));
    Ok(index)
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
    index.put(path, ".zarray", document);
    index.put(path, ".zattrs", Json::Object(attrs));
    index.arrays += 1;
    index.bytes += chunks.bytes;
    index.chunks.push((path.to_string(), chunks));
}

/// Attributes as JSON.
fn attributes(attrs: &Attrs) -> Map<String, Json> {
    let shown = |value: &Value| serde_json::to_value(Attr(value)).unwrap_or_default();
    attrs.iter().map(|(name, value)| (name.into(), shown(value))).collect()
}

fn real(value: f64) -> Json {
    serde_json::to_value(Real(value)).unwrap_or_default()
}
