//! Any tree as a store of version 3.
//!
//! Arrays are written as they lie, uncompressed, in chunks that are runs of their bytes: a
//! conversion is a copy. Dimensions have names, and their points are arrays of these names at the
//! root, where xarray looks for them.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value as Json, json};
use spile_core::axes::Dimensions;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::flat::Flat;
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::sink::{FolderSink, Sink};
use spile_core::tree::{Attrs, NodeId, ROOT, Value};
use spile_core::wire::ByteOrder;

use crate::read::DESCRIPTION;
use crate::wire::{Object, words_3, zero_3};

/// About the bytes of a chunk: large enough for disks, small enough for memory.
const CHUNK: u64 = 64 << 20;

/// Longer names do not fit file systems.
const LONGEST_NAME: usize = 200;

/// Writes all of `content`.
pub(crate) fn write_tree(content: &dyn Reader, folder: &FolderSink, limits: &Limits) -> Result<()> {
    let flat = Flat::new(content, limits)?;
    let mut writer = Writer::new(flat, folder);
    let arrays: Vec<NodeId> = writer.flat.tree().arrays().map(|(id, ..)| id).collect();
    for id in arrays {
        let place = format!("\"{}\"", writer.flat.tree().node(id).path);
        writer.array(id).map_err(|e| e.in_object(place))?;
    }
    writer.points()?;
    writer.groups(limits)
}

struct Writer<'a> {
    flat: Flat<'a>,
    folder: &'a FolderSink,
    dimensions: Dimensions,
    /// Where nodes are in the store.
    paths: HashMap<NodeId, String>,
    /// All documents but the root's, by path.
    documents: Vec<(String, Json)>,
}

impl<'a> Writer<'a> {
    fn new(flat: Flat<'a>, folder: &'a FolderSink) -> Self {
        let dimensions = Dimensions::of(flat.tree());
        let mut writer =
            Self { flat, folder, dimensions, paths: HashMap::new(), documents: Vec::new() };
        writer.give_paths();
        writer
    }

    /// Points of a dimension are at the root under its name; everything else is where it is in the
    /// tree, if the name may be there.
    fn give_paths(&mut self) {
        let tree = self.flat.tree();
        let mut taken: HashSet<String> = HashSet::new();
        let mut paths = HashMap::from([(ROOT, String::new())]);
        for dimension in self.dimensions.list() {
            let name = fitting(&dimension.name);
            if let Coord::Node(id) = dimension.coord {
                paths.insert(id, name.clone());
            }
            taken.insert(name);
        }
        for (id, node) in tree.iter() {
            if paths.contains_key(&id) {
                continue;
            }
            let parent = paths.get(&node.parent).cloned().unwrap_or_default();
            let mut name = fitting(&node.name);
            // To xarray an array that has the name of a dimension is a line of its points.
            let own = self.dimensions.names(id).any(|dim| dim == name);
            if own && node.array.as_ref().is_some_and(|array| array.shape.rank() != 1) {
                name.push_str("_values");
            }
            let slash = if parent.is_empty() { "" } else { "/" };
            let numbered = (2_u64..).map(|k| format!("{parent}{slash}{name}_{k}"));
            let mut names = std::iter::once(format!("{parent}{slash}{name}")).chain(numbered);
            let path = names.find(|path| !taken.contains(path)).unwrap_or_default();
            taken.insert(path.clone());
            paths.insert(id, path);
        }
        let moved = tree.arrays().filter(|(id, node, _)| paths[id] != node.path);
        let moved = moved.map(|(id, node, _)| (node.path.clone(), paths[&id].clone())).collect();
        self.flat.description.moved(&moved);
        self.paths = paths;
    }

    fn array(&mut self, id: NodeId) -> Result<()> {
        let tree = self.flat.tree();
        let node = tree.node(id);
        let Some(array) = &node.array else { return Ok(()) };
        let dtype = array.dtype.with_order(ByteOrder::Little);
        // Elements of no bytes are told as lost.
        let Some(words) = words_3(dtype) else { return Ok(()) };
        let order = if array.shape.rank() > 1 { self.flat.order(id) } else { Order::C };
        let chunk = chunk(&array.shape, dtype.size(), order)?;
        let mut attrs = attributes(&node.attrs);
        if let Some(map) = array.map {
            attrs.insert("scale_factor".into(), real(map.slope));
            attrs.insert("add_offset".into(), real(map.intercept));
        }
        if let Some(counted) = node.name.strip_suffix(".rows")
            && let Some(counted) = tree.child(node.parent, counted)
            && let Some(rows) = self.dimensions.names(counted).next()
        {
            attrs.insert("sample_dimension".into(), rows.into());
        }
        let names: Vec<&str> = self.dimensions.names(id).collect();
        let document = document(array, &words, &chunk, order, &names, &attrs);
        let path = self.paths[&id].clone();
        self.values(id, &path, dtype, order, &array.shape, &chunk)?;
        self.documents.push((path, document));
        Ok(())
    }

    /// Copies the elements into the files of their chunks.
    fn values(
        &self,
        id: NodeId,
        path: &str,
        dtype: DType,
        order: Order,
        shape: &Shape,
        chunk: &Shape,
    ) -> Result<()> {
        let bytes = shape.bytes(dtype.size())?;
        let files = Files {
            folder: self.folder,
            path,
            axis: slowest(shape, order),
            rank: shape.rank(),
            each: chunk.bytes(dtype.size())?,
            bytes,
            open: Mutex::default(),
        };
        let size = dtype.size() as u64;
        self.flat.for_each(id, order, |first, block| files.write(first * size, block))
    }

    /// Lines of points that are evenly spaced, for those who do not know that.
    fn points(&mut self) -> Result<()> {
        for dimension in self.dimensions.list().to_vec() {
            let Coord::Uniform { start, step } = dimension.coord else { continue };
            let path = fitting(&dimension.name);
            let shape = Shape::new([dimension.len]);
            let chunk = chunk(&shape, 8, Order::C)?;
            let each = chunk.lengths()[0];
            let mut first = 0;
            while first < dimension.len {
                let last = (first + each).min(dimension.len);
                let mut file = self.folder.file(&format!("{path}/c/{}", first / each))?;
                let mut buffer = Vec::new();
                for k in first..last {
                    buffer.extend((start + k as f64 * step).to_le_bytes());
                    if buffer.len() >= 64 << 10 || k + 1 == last {
                        file.write_all(&buffer)?;
                        buffer.clear();
                    }
                }
                file.set_len(each * 8)?;
                first = last;
            }
            let mut line =
                ArrayDesc::new(DType::F64, shape, spile_core::layout::Layout::Fill([0; 8].into()));
            line.dims = vec![dimension.name.clone()];
            let names = [dimension.name.as_str()];
            let document =
                document(&line, &"float64".into(), &chunk, Order::C, &names, &Object::new());
            self.flat.description.made(path.clone());
            self.documents.push((path, document));
        }
        Ok(())
    }

    /// The documents of groups and arrays; the root's has all of them.
    fn groups(mut self, limits: &Limits) -> Result<()> {
        let group = |attrs: Object| {
            json!({
                "zarr_format": 3, "node_type": "group", "attributes": attrs,
                "consolidated_metadata":
                    { "kind": "inline", "must_understand": false, "metadata": {} },
            })
        };
        let tree = self.flat.tree();
        for (id, node) in tree.iter().filter(|(_, node)| node.array.is_none()) {
            self.documents.push((self.paths[&id].clone(), group(attributes(&node.attrs))));
        }
        let mut attrs = attributes(tree.attrs());
        attrs.insert(DESCRIPTION.into(), self.flat.description.text(limits)?.into());
        let mut root = group(attrs);
        let mut all = Object::new();
        for (path, document) in self.documents {
            let mut plain = document.clone();
            if let Some(plain) = plain.as_object_mut() {
                plain.remove("consolidated_metadata");
            }
            put(self.folder, &format!("{path}/zarr.json"), &plain)?;
            all.insert(path, document);
        }
        root["consolidated_metadata"]["metadata"] = all.into();
        put(self.folder, "zarr.json", &root)
    }
}

/// The files of one array.
struct Files<'a> {
    folder: &'a FolderSink,
    path: &'a str,
    /// The dimension that is cut.
    axis: usize,
    rank: usize,
    /// Bytes of a file, and of the array.
    each: u64,
    bytes: u64,
    /// Those that are not complete yet, and the bytes they lack.
    open: Mutex<HashMap<u64, (Arc<Sink>, u64)>>,
}

impl Files<'_> {
    /// Writes the bytes from byte `at` of the array on.
    fn write(&self, mut at: u64, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            let (file, offset) = (at / self.each, at % self.each);
            let len = (self.each - offset).min(bytes.len() as u64);
            let (now, later) = bytes.split_at(len as usize);
            let sink = self.file(file)?;
            sink.write_all_at(offset, now)?;
            self.done(file, len);
            (at, bytes) = (at + len, later);
        }
        Ok(())
    }

    fn file(&self, number: u64) -> Result<Arc<Sink>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((sink, _)) = open.get(&number) {
            return Ok(sink.clone());
        }
        let mut name = vec![self.path.to_string(), "c".to_string()];
        let index = |k: usize| if k == self.axis { number } else { 0 };
        name.extend((0..self.rank).map(|k| index(k).to_string()));
        let sink = Arc::new(self.folder.file(&name.join("/"))?);
        // A chunk is whole; the end of the last one takes no room.
        sink.set_len(self.each)?;
        let missing = self.each.min(self.bytes - number * self.each);
        open.insert(number, (sink.clone(), missing));
        Ok(sink)
    }

    /// Closes files that are complete: a large array has more of them than may be open.
    fn done(&self, number: u64, len: u64) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, missing)) = open.get_mut(&number) {
            *missing = missing.saturating_sub(len);
            if *missing == 0 {
                open.remove(&number);
            }
        }
    }
}

/// The slowest dimension that is longer than one.
fn slowest(shape: &Shape, order: Order) -> usize {
    let long = |k: &usize| shape.lengths()[*k] > 1;
    let rank = shape.rank();
    match order {
        Order::C => (0..rank).find(long).unwrap_or(0),
        Order::F => (0..rank).rev().find(long).unwrap_or(rank.saturating_sub(1)),
    }
}

/// Lengths of a chunk: of the slowest dimension as much as makes a good file, all of the others. Files
/// are of the same length, so that little of the last one is behind the end.
fn chunk(shape: &Shape, size: usize, order: Order) -> Result<Shape> {
    let mut lengths: Vec<u64> = shape.lengths().iter().map(|n| (*n).max(1)).collect();
    if let Some(length) = lengths.get_mut(slowest(shape, order)) {
        let files = shape.bytes(size)?.div_ceil(CHUNK).clamp(1, *length);
        *length = length.div_ceil(files);
    }
    let chunk = Shape::new(lengths);
    chunk.bytes(size)?;
    Ok(chunk)
}

fn document(
    array: &ArrayDesc,
    words: &Json,
    chunk: &Shape,
    order: Order,
    names: &[&str],
    attrs: &Object,
) -> Json {
    let mut codecs = Vec::new();
    if order == Order::F {
        let reversed: Vec<usize> = (0..array.shape.rank()).rev().collect();
        codecs.push(json!({ "name": "transpose", "configuration": { "order": reversed } }));
    }
    let bytes = matches!(array.dtype.kind(), Kind::Text | Kind::Opaque) || array.dtype.word() == 1;
    codecs.push(if bytes {
        json!({ "name": "bytes" })
    } else {
        json!({ "name": "bytes", "configuration": { "endian": "little" } })
    });
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": array.shape.lengths(),
        "data_type": words,
        "chunk_grid":
            { "name": "regular", "configuration": { "chunk_shape": chunk.lengths() } },
        "chunk_key_encoding": { "name": "default", "configuration": { "separator": "/" } },
        "fill_value": zero_3(array.dtype),
        "codecs": codecs,
        "dimension_names": names,
        "attributes": attrs,
        "storage_transformers": [],
    })
}

fn put(folder: &FolderSink, name: &str, document: &Json) -> Result<()> {
    let text = serde_json::to_vec_pretty(document)
        .map_err(|e| Error::unsupported("zarr-008", format!("cannot be written as JSON: {e}")))?;
    Ok(folder.file(name)?.write_all(&text)?)
}

/// Attributes as others understand them; the description has them as they are.
fn attributes(attrs: &Attrs) -> Object {
    attrs.iter().map(|(name, value)| (name.clone(), shown(value))).collect()
}

pub(crate) fn shown(value: &Value) -> Json {
    match value {
        Value::Bool(v) => (*v).into(),
        Value::Int(v) => (*v).into(),
        Value::UInt(v) => (*v).into(),
        Value::Float(v) => real(*v),
        Value::Complex(re, im) => vec![real(*re), real(*im)].into(),
        Value::Text(v) => v.as_str().into(),
        Value::Bytes(_) => value.to_string().into(),
        Value::List(v) => v.iter().map(shown).collect::<Vec<_>>().into(),
    }
}

/// A number, or its name where JSON has no form for it.
fn real(value: f64) -> Json {
    serde_json::Number::from_f64(value).map_or_else(
        || {
            let word = match value {
                f64::INFINITY => "Infinity",
                f64::NEG_INFINITY => "-Infinity",
                _ => "NaN",
            };
            word.into()
        },
        Json::Number,
    )
}

/// A name that may stand in a store: no file of ours, not reserved, not too long.
fn fitting(name: &str) -> String {
    let mut fit: String =
        name.chars().map(|c| if matches!(c, '/' | '\0') { '_' } else { c }).collect();
    if fit.is_empty() || fit.starts_with("__") || fit.starts_with('.') {
        fit.insert(0, 'x');
    }
    if fit == "zarr.json" {
        fit.push('_');
    }
    if fit.len() > LONGEST_NAME {
        let end = (0..=LONGEST_NAME).rev().find(|k| fit.is_char_boundary(*k)).unwrap_or(0);
        fit.truncate(end);
    }
    fit
}
