//! Any dataset as a store of version 3.
//!
//! Arrays are written uncompressed in their own element order, in chunks that are contiguous slabs, so a
//! conversion copies bytes. Coordinates of a dimension are an array of its name at the root, where xarray
//! looks for them.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;

use serde_json::{Value as Json, json};
use spile_interchange::dimensions::Dimensions;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_interchange::flat::Flat;
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::sink::FolderSink;
use spile_core::tree::{Attrs, NodeId, ROOT};
use spile_core::wire::ByteOrder;

use crate::to_tree::DESCRIPTION;
use crate::wire::{Object, float_to_json, to_json, type_name_3};
use crate::write::{ChunkFiles, array_document, chunk_shape, write_document};

/// Largest length of a name in bytes; file systems allow 255.
const MAX_NAME: usize = 200;

/// Writes all of `content` as a store.
pub(crate) fn write_tree(content: &dyn Reader, folder: &FolderSink, limits: &Limits) -> Result<()> {
    let flat = Flat::new(content, limits)?;
    let mut writer = Writer::new(flat, folder);
    let arrays: Vec<NodeId> = writer.flat.tree().arrays().map(|(id, ..)| id).collect();
    for id in arrays {
        let object = format!("\"{}\"", writer.flat.tree().node(id).path);
        writer.write_array(id).map_err(|e| e.in_object(object))?;
    }
    writer.write_uniform_coordinates()?;
    writer.write_groups(limits)
}

struct Writer<'a> {
    flat: Flat<'a>,
    folder: &'a FolderSink,
    dimensions: Dimensions,
    /// Paths of nodes in the store.
    paths: HashMap<NodeId, String>,
    /// Metadata documents of all nodes except the root, by path.
    documents: Vec<(String, Json)>,
}

impl<'a> Writer<'a> {
    fn new(flat: Flat<'a>, folder: &'a FolderSink) -> Self {
        let dimensions = Dimensions::of(flat.tree());
        let mut writer =
            Self { flat, folder, dimensions, paths: HashMap::new(), documents: Vec::new() };
        writer.assign_paths();
        writer
    }

    /// Assigns paths: coordinates of a dimension are at the root under its name, all other nodes keep
    /// their path if it is valid and unique.
    fn assign_paths(&mut self) {
        let tree = self.flat.tree();
        let mut used: HashSet<String> = HashSet::new();
        // Last number that was appended to a path, so that many equal names take linear time.
        let mut last: HashMap<String, u64> = HashMap::new();
        let mut paths = HashMap::from([(ROOT, String::new())]);
        for dimension in self.dimensions.list() {
            let name = valid_name(&dimension.name);
            if let Coord::Node(id) = dimension.coord {
                paths.insert(id, name.clone());
            }
            used.insert(name);
        }
        for (id, node) in tree.iter() {
            if paths.contains_key(&id) {
                continue;
            }
            let parent = paths.get(&node.parent).map_or("", String::as_str);
            let mut name = valid_name(&node.name);
            // For xarray, an array with the name of one of its dimensions is a coordinate.
            let is_dimension = self.dimensions.names(id).any(|dim| dim == name);
            if is_dimension && node.array.as_ref().is_some_and(|array| array.shape.rank() != 1) {
                name.push_str("_values");
            }
            let slash = if parent.is_empty() { "" } else { "/" };
            let first = format!("{parent}{slash}{name}");
            let mut path = first.clone();
            while !used.insert(path.clone()) {
                let number = last.entry(first.clone()).or_insert(1);
                *number += 1;
                path = format!("{first}_{number}");
            }
            paths.insert(id, path);
        }
        let moved = tree.arrays().filter(|(id, node, _)| paths[id] != node.path);
        let moved = moved.map(|(id, node, _)| (node.path.clone(), paths[&id].clone())).collect();
        self.flat.description.moved(&moved);
        self.paths = paths;
    }

    fn write_array(&mut self, id: NodeId) -> Result<()> {
        let tree = self.flat.tree();
        let node = tree.node(id);
        let Some(array) = &node.array else { return Ok(()) };
        let dtype = array.dtype.with_order(ByteOrder::Little);
        // Arrays of 0-byte elements are reported as losses by the conversion.
        let Some(data_type) = type_name_3(dtype) else { return Ok(()) };
        let order = if array.shape.rank() > 1 { self.flat.order(id) } else { Order::C };
        let chunk = chunk_shape(&array.shape, dtype.size(), order)?;
        let mut attrs = attributes(&node.attrs);
        if let Some(map) = array.map {
            attrs.insert("scale_factor".into(), float_to_json(map.slope));
            attrs.insert("add_offset".into(), float_to_json(map.intercept));
        }
        if let Some(counted) = node.name.strip_suffix(".rows")
            && let Some(counted) = tree.child(node.parent, counted)
            && let Some(rows) = self.dimensions.names(counted).next()
        {
            attrs.insert("sample_dimension".into(), rows.into());
        }
        let names: Vec<&str> = self.dimensions.names(id).collect();
        let document = array_document(array, &data_type, &chunk, order, &names, &attrs);
        let path = self.paths[&id].clone();
        let size = dtype.size();
        let files = ChunkFiles::new(self.folder, &path, &array.shape, &chunk, size, order)?;
        self.flat.for_each(id, order, |first, block| files.write(first * size as u64, block))?;
        self.documents.push((path, document));
        Ok(())
    }

    /// Writes the coordinates of uniform dimensions as float64 arrays.
    fn write_uniform_coordinates(&mut self) -> Result<()> {
        for dimension in self.dimensions.list().to_vec() {
            let Coord::Uniform { start, step } = dimension.coord else { continue };
            let path = valid_name(&dimension.name);
            let shape = Shape::new([dimension.len]);
            let chunk = chunk_shape(&shape, 8, Order::C)?;
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
            let array = ArrayDesc::new(DType::F64, shape, Layout::Fill([0; 8].into()));
            let names = [dimension.name.as_str()];
            let attrs = Object::new();
            let document =
                array_document(&array, &"float64".into(), &chunk, Order::C, &names, &attrs);
            self.flat.description.made(path.clone());
            self.documents.push((path, document));
        }
        Ok(())
    }

    /// Writes all metadata documents; that of the root includes all others.
    fn write_groups(mut self, limits: &Limits) -> Result<()> {
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
            write_document(self.folder, &format!("{path}/zarr.json"), &plain)?;
            all.insert(path, document);
        }
        root["consolidated_metadata"]["metadata"] = all.into();
        write_document(self.folder, "zarr.json", &root)
    }
}

/// Attributes as plain JSON; the metadata JSON has their exact types.
fn attributes(attrs: &Attrs) -> Object {
    attrs.iter().map(|(name, value)| (name.clone(), to_json(value))).collect()
}

/// A valid node name: not reserved, not a metadata document, not too long.
fn valid_name(name: &str) -> String {
    let mut valid: String =
        name.chars().map(|c| if matches!(c, '/' | '\0') { '_' } else { c }).collect();
    if valid.is_empty() || valid.starts_with("__") || valid.starts_with('.') {
        valid.insert(0, 'x');
    }
    if valid == "zarr.json" {
        valid.push('_');
    }
    if valid.len() > MAX_NAME {
        let end = (0..=MAX_NAME).rev().find(|k| valid.is_char_boundary(*k)).unwrap_or(0);
        valid.truncate(end);
    }
    valid
}
