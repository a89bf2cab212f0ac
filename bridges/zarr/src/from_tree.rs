//! Any dataset as a store of version 3.
//!
//! Arrays are written uncompressed in their own element order, in chunks that are contiguous slabs, so a
//! conversion copies bytes. Coordinates of a dimension are an array of its name at the root, where xarray
//! looks for them.

use std::collections::{HashMap, HashSet};
use std::io::Write as _;

use serde_json::{Value as Json, json};
use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Loss, LossKind};
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::shape::{Order, Shape};
use spile_core::sink::FolderSink;
use spile_core::tree::{Attrs, NodeId, ROOT};
use spile_core::wire::ByteOrder;
use spile_interchange::{Dimensions, Flat, cf, flat_losses};

use crate::to_tree::DESCRIPTION;
use crate::wire::{MAX_RANK, Object, stored_type, to_json, type_name_3};
use crate::write::{ChunkFiles, array_document, chunk_shape, write_document};

/// Largest length of a name in bytes; file systems allow 255.
const MAX_NAME: usize = 200;

/// Writes all of `content` as a store.
pub(crate) fn write_tree(content: &Dataset, folder: &FolderSink) -> Result<()> {
    let mut writer = Writer::new(content)?;
    let arrays: Vec<NodeId> = writer.flat.tree().arrays().map(|(id, ..)| id).collect();
    for id in arrays {
        let object = format!("\"{}\"", writer.flat.tree().node(id).path);
        writer.write_array(id, folder).map_err(|e| e.in_object(object))?;
    }
    writer.write_uniform_coordinates(folder)?;
    writer.write_groups(folder)
}

/// What [`write_tree`] does not keep. Fails where it would fail.
pub(crate) fn losses(content: &Dataset) -> Result<Vec<Loss>> {
    Writer::new(content)?.flat.metadata.text(content.limits())?;
    let losses = flat_losses(content, "Zarr", |array| match array.dtype.size() {
        0 => Err("Zarr has no elements of 0 bytes".into()),
        _ => Ok(()),
    });
    let mut losses = losses.into_vec();
    let lost = losses.iter().filter(|loss| loss.kind == LossKind::Array);
    let lost: HashSet<String> = lost.map(|loss| loss.path.clone()).collect();
    let is_once = |attrs: &Attrs, name: &str| attrs.iter().filter(|(n, _)| *n == name).count() == 1;
    if is_once(content.attrs(), DESCRIPTION) {
        losses.push(Loss::attribute("", DESCRIPTION, "this attribute has the metadata of spile"));
    }
    for (_, node, array) in content.arrays().filter(|(_, node, _)| !lost.contains(&node.path)) {
        // A reference to another array has no attributes in the store.
        let is_stored = !matches!(array.layout, Layout::Same(_));
        let is_scalable = stored_type(array.dtype).is_some_and(cf::is_scalable);
        for name in cf::SCALING.into_iter().filter(|name| is_stored && is_once(&node.attrs, name)) {
            let is_number = cf::numbers(node.attrs.get(name)).len() == 1;
            if array.map.is_some() || (is_scalable && is_number) {
                let reason = "Zarr stores the linear scaling in this attribute";
                losses.push(Loss::attribute(&node.path, name, reason));
            }
        }
    }
    Ok(losses)
}

struct Writer {
    content: Dataset,
    flat: Flat,
    dimensions: Dimensions,
    /// Paths of nodes in the store.
    paths: HashMap<NodeId, String>,
    /// Metadata documents of all nodes except the root, by path.
    documents: Vec<(String, Json)>,
}

impl Writer {
    /// Fails with `Unsupported` if an array has too many dimensions.
    fn new(content: &Dataset) -> Result<Self> {
        let flat = Flat::new(content)?;
        for (_, node, array) in flat.tree().arrays() {
            let rank = array.shape.rank();
            if rank > MAX_RANK {
                let message = format!("{rank} dimensions are not supported, at most {MAX_RANK}");
                let error = Error::unsupported("zarr-008", message);
                return Err(error.in_object(format!("\"{}\"", node.path)));
            }
        }
        let dimensions = Dimensions::of(flat.tree());
        let (paths, documents) = (HashMap::new(), Vec::new());
        let content = content.clone();
        let mut writer = Self { content, flat, dimensions, paths, documents };
        writer.assign_paths();
        Ok(writer)
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
            // A changed path is never that of another node.
            while (path != node.path && tree.at(&path).is_some()) || !used.insert(path.clone()) {
                let number = last.entry(first.clone()).or_insert(1);
                *number += 1;
                path = format!("{first}_{number}");
            }
            paths.insert(id, path);
        }
        let moved = tree.arrays().filter(|(id, node, _)| paths[id] != node.path);
        let moved = moved.map(|(id, node, _)| (node.path.clone(), paths[&id].clone())).collect();
        self.flat.metadata.rename(&moved);
        self.paths = paths;
    }

    fn write_array(&mut self, id: NodeId, folder: &FolderSink) -> Result<()> {
        let tree = self.flat.tree();
        let node = tree.node(id);
        let Some(array) = &node.array else { return Ok(()) };
        let dtype = array.dtype.with_order(ByteOrder::Little);
        // Elements of 0 bytes are losses.
        let Some(data_type) = type_name_3(dtype) else { return Ok(()) };
        let order = if array.shape.rank() > 1 { self.flat.order(id) } else { Order::C };
        let chunk = chunk_shape(&array.shape, dtype.size(), order)?;
        let mut attrs = attributes(&node.attrs);
        attrs.extend(attributes(&cf::scaling_attributes(array)));
        let is_auxiliary = self.content.tree().at(&node.path).is_none();
        if let Some(counted) = node.name.strip_suffix(".rows").filter(|_| is_auxiliary)
            && let Some(counted) = tree.child(node.parent, counted)
            && let Some(rows) = self.dimensions.names(counted).next()
        {
            attrs.insert("sample_dimension".into(), rows.into());
        }
        let names: Vec<&str> = self.dimensions.names(id).collect();
        let document = array_document(array, &data_type, &chunk, order, &names, &attrs);
        let path = self.paths[&id].clone();
        let size = dtype.size();
        let files = ChunkFiles::new(folder, &path, &array.shape, &chunk, size, order)?;
        self.flat.for_each(id, order, |first, block| files.write(first * size as u64, block))?;
        self.documents.push((path, document));
        Ok(())
    }

    /// Writes the coordinates of uniform dimensions as float64 arrays.
    fn write_uniform_coordinates(&mut self, folder: &FolderSink) -> Result<()> {
        for dimension in self.dimensions.list().to_vec() {
            let Coord::Uniform { start, step } = dimension.coord else { continue };
            let path = valid_name(&dimension.name);
            let shape = Shape::new([dimension.len]);
            let chunk = chunk_shape(&shape, 8, Order::C)?;
            let each = chunk.lengths()[0];
            let mut first = 0;
            while first < dimension.len {
                let last = (first + each).min(dimension.len);
                let mut file = folder.file(&format!("{path}/c/{}", first / each))?;
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
            self.flat.metadata.add_auxiliary(path.clone());
            self.documents.push((path, document));
        }
        Ok(())
    }

    /// Writes all metadata documents; that of the root includes all others.
    fn write_groups(mut self, folder: &FolderSink) -> Result<()> {
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
        attrs.insert(DESCRIPTION.into(), self.flat.metadata.text(self.content.limits())?.into());
        let mut root = group(attrs);
        let mut all = Object::new();
        for (path, document) in self.documents {
            let mut plain = document.clone();
            if let Some(plain) = plain.as_object_mut() {
                plain.remove("consolidated_metadata");
            }
            write_document(folder, &format!("{path}/zarr.json"), &plain)?;
            all.insert(path, document);
        }
        root["consolidated_metadata"]["metadata"] = all.into();
        write_document(folder, "zarr.json", &root)
    }
}

/// Attributes as plain JSON; the metadata JSON has their exact types.
fn attributes(attrs: &Attrs) -> Object {
    attrs.iter().map(|(name, value)| (name.into(), to_json(value))).collect()
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
