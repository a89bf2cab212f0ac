//! Any dataset as a store of version 3.
//!
//! Arrays are written in their own element order; by default uncompressed in chunks that are contiguous slabs, so
//! a conversion copies bytes. Coordinates of a dimension are an array of its name at the root, where xarray looks
//! for them.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::{Value as Json, json};
use spile_core::Dataset;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{FolderWriter, Loss, Regions, WriteOptions};
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::shape::{Order, Shape};
use spile_core::sink::FolderSink;
use spile_core::tree::{Attrs, NodeId, ROOT};
use spile_core::wire::ByteOrder;
use spile_interchange::{
    Dimensions, Flat, RegionReader, Variables, cf, flat_losses, root_attributes,
};

use crate::Zarr;
use crate::grid::{Grid, Settings};
use crate::regions::ChunkFiles;
use crate::to_tree::DESCRIPTION;
use crate::wire::{MAX_RANK, Object, to_json, type_name_3};
use crate::write::{array_document, write_document};

/// Largest length of a name in bytes; file systems allow 255.
const MAX_NAME: usize = 200;

impl FolderWriter for Zarr {
    fn keeps_scaling(&self) -> bool {
        true
    }

    fn options(&self) -> &'static [&'static str] {
        &["compression", "chunks", "shards"]
    }

    fn check_options(&self, content: &Dataset, options: &WriteOptions) -> Result<()> {
        Writer::new(content, options).map(drop)
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        Writer::new(content, &WriteOptions::default())?.flat.metadata.text(content.limits())?;
        let losses = flat_losses(content, "Zarr", |array| match array.dtype.size() {
            0 => Err("Zarr has no elements of 0 bytes".into()),
            _ => Ok(()),
        });
        let mut losses = losses.into_vec();
        let is_once =
            |attrs: &Attrs, name: &str| attrs.iter().filter(|(n, _)| *n == name).count() == 1;
        if is_once(content.attrs(), DESCRIPTION) {
            losses.push(Loss::attribute(
                "",
                DESCRIPTION,
                "this attribute has the metadata of spile",
            ));
        }
        Ok(losses)
    }

    fn write_folder(
        &self,
        content: &Dataset,
        folder: &FolderSink,
        options: &WriteOptions,
    ) -> Result<Vec<Loss>> {
        let mut files = ChunkFiles::new(content, options)?;
        files.write_all(folder)?;
        files.write_layout(folder)?;
        Ok(Vec::new())
    }

    fn regions(
        &self,
        content: &Dataset,
        options: &WriteOptions,
    ) -> Result<Option<Box<dyn Regions>>> {
        Ok(Some(Box::new(ChunkFiles::new(content, options)?)))
    }
}

/// An array as it is stored.
pub(crate) struct Stored {
    pub(crate) values: Values,
    pub(crate) path: String,
    pub(crate) shape: Shape,
    pub(crate) grid: Grid,
    pub(crate) order: Order,
    /// Bytes of an element.
    pub(crate) size: usize,
}

/// The values of an array.
#[derive(Clone, Copy)]
pub(crate) enum Values {
    Node(NodeId),
    /// Coordinates of a uniform dimension.
    Uniform {
        start: f64,
        step: f64,
    },
}

/// An array that is read in parts.
pub(crate) enum Reader<'a> {
    /// Its elements and its path.
    Node(Box<RegionReader<'a>>, &'a str),
    Uniform {
        start: f64,
        step: f64,
    },
}

impl Reader<'_> {
    /// The elements `start..start + lengths`, little-endian, in the order of the array.
    pub(crate) fn read(&self, start: &[u64], lengths: &[u64]) -> Result<Vec<u8>> {
        match self {
            Self::Node(array, path) => {
                array.read(start, lengths).map_err(|e| e.in_object(format!("\"{path}\"")))
            }
            Self::Uniform { start: first, step } => {
                let numbers = start[0]..start[0] + lengths[0];
                Ok(numbers.flat_map(|k| (first + k as f64 * step).to_le_bytes()).collect())
            }
        }
    }
}

pub(crate) struct Writer {
    pub(crate) content: Dataset,
    pub(crate) flat: Flat,
    dimensions: Dimensions,
    variables: Variables,
    /// Paths of nodes in the store.
    paths: HashMap<NodeId, String>,
    /// Metadata documents of all nodes except the root, by path.
    documents: Vec<(String, Json)>,
    pub(crate) settings: Settings,
}

impl Writer {
    /// Fails with `Unsupported` if an array has too many dimensions, and if the options do not fit.
    pub(crate) fn new(content: &Dataset, options: &WriteOptions) -> Result<Self> {
        let flat = Flat::new(content)?;
        for (_, node, array) in flat.tree().arrays() {
            let rank = array.shape.rank();
            if rank > MAX_RANK {
                let message = format!("{rank} dimensions are not supported, at most {MAX_RANK}");
                let error = Error::unsupported("zarr-009", message);
                return Err(error.in_object(format!("\"{}\"", node.path)));
            }
        }
        let dimensions = Dimensions::of(flat.tree());
        let variables = Variables::of(flat.tree(), &dimensions, |id| flat.path(id));
        let names = dimensions.list().iter().map(|dimension| dimension.name.as_str());
        let own = flat.tree().arrays().flat_map(|(_, _, array)| &array.dims);
        let own = own.map(String::as_str).filter(|name| !name.is_empty());
        let settings = Settings::new(options, &names.chain(own).collect())?;
        let (paths, documents) = (HashMap::new(), Vec::new());
        let content = content.clone();
        let mut writer = Self { content, flat, dimensions, variables, paths, documents, settings };
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
            // Groups without arrays are written for their attributes.
            let is_flat = self.variables.is_flat();
            if is_flat && node.array.is_none() && node.attrs.is_empty() {
                continue;
            }
            let flat_name = self.variables.name(id).or(is_flat.then_some(node.path.as_str()));
            let parent = paths.get(&node.parent).filter(|_| !is_flat);
            let parent = parent.map_or("", String::as_str);
            let mut name = valid_name(flat_name.unwrap_or(&node.name));
            // For xarray, an array with the name of one of its dimensions is a coordinate.
            let is_dimension = self.dimensions.names(id).any(|dim| dim == name);
            if is_dimension && node.array.as_ref().is_some_and(|array| array.shape.rank() != 1) {
                name.push_str("_values");
            }
            let slash = if parent.is_empty() { "" } else { "/" };
            let first = format!("{parent}{slash}{name}");
            let mut path = first.clone();
            // A changed path is never that of another node.
            let is_other = |path: &String| *path != node.path && tree.at(path).is_some();
            while is_other(&path) || !used.insert(path.clone()) {
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

    /// Adds the metadata documents of all arrays.
    pub(crate) fn describe_all(&mut self) -> Result<Vec<Stored>> {
        let ids: Vec<NodeId> = self.flat.tree().arrays().map(|(id, ..)| id).collect();
        let mut arrays = Vec::new();
        for id in ids {
            let object = format!("\"{}\"", self.flat.tree().node(id).path);
            arrays.extend(self.describe(id).map_err(|e| e.in_object(object))?);
        }
        self.describe_uniform_coordinates(&mut arrays)?;
        Ok(arrays)
    }

    /// Adds the metadata document of an array; `None` for elements of 0 bytes, which are losses.
    fn describe(&mut self, id: NodeId) -> Result<Option<Stored>> {
        let tree = self.flat.tree();
        let node = tree.node(id);
        let Some(array) = &node.array else { return Ok(None) };
        let dtype = array.dtype.with_order(ByteOrder::Little);
        let Some(data_type) = type_name_3(dtype) else { return Ok(None) };
        let order = if array.shape.rank() > 1 { self.flat.order(id) } else { Order::C };
        // As xarray, which does not divide the coordinates of a dimension.
        let is_coordinate = |k: &usize| self.dimensions.list()[*k].coord == Coord::Node(id);
        let is_coordinate = self.dimensions.array(id).iter().any(is_coordinate);
        let names: Vec<&str> = self.dimensions.names(id).collect();
        let own = |k: usize| array.dims.get(k).map_or("", String::as_str);
        let both = names.iter().enumerate().map(|(k, name)| [*name, own(k)]);
        let both: Vec<[&str; 2]> = both.filter(|_| !is_coordinate).collect();
        let grid = self.settings.grid(&array.shape, dtype.size(), order, &both)?;
        let mut attrs = attributes(&node.attrs);
        let mut added = cf::attributes(array, &node.attrs);
        added.extend(self.variables.attributes(id));
        let (name, value) = cf::UTF8;
        if !node.attrs.contains(name) && self.flat.is_utf8(id)? {
            added.push(name, value);
        }
        attrs.extend(attributes(&added));
        let mut added: Vec<String> = added.iter().map(|(name, _)| name.into()).collect();
        added.extend(encode_fill_value(&mut attrs, dtype));
        // Reading turns these attributes into the scaling.
        let scaling = cf::SCALING.into_iter().filter(|name| node.attrs.contains(name));
        added.extend(scaling.map(String::from));
        let is_auxiliary = self.content.tree().at(&node.path).is_none();
        if let Some(counted) = node.name.strip_suffix(".rows").filter(|_| is_auxiliary)
            && let Some(counted) = tree.child(node.parent, counted)
            && let Some(rows) = self.dimensions.names(counted).next()
        {
            attrs.insert("sample_dimension".into(), rows.into());
            added.push("sample_dimension".into());
        }
        let encoding = (&grid, order, self.settings.encoder);
        let document = array_document(array, &data_type, encoding, &names, &attrs);
        let path = self.paths[&id].clone();
        let (shape, size) = (array.shape.clone(), dtype.size());
        self.flat.metadata.add_attributes(&path, added.iter().map(String::as_str));
        self.documents.push((path.clone(), document));
        Ok(Some(Stored { values: Values::Node(id), path, shape, grid, order, size }))
    }

    /// Adds the metadata documents of the coordinates of uniform dimensions, which are float64 arrays.
    fn describe_uniform_coordinates(&mut self, arrays: &mut Vec<Stored>) -> Result<()> {
        for (k, dimension) in self.dimensions.list().iter().enumerate() {
            let Coord::Uniform { start, step } = dimension.coord else { continue };
            let path = valid_name(&dimension.name);
            let (shape, size, order) = (Shape::new([dimension.len]), 8, Order::C);
            let grid = self.settings.grid::<[&str; 0], _>(&shape, size, order, &[])?;
            let array = ArrayDesc::new(DType::F64, shape.clone(), Layout::Fill([0; 8].into()));
            let attrs = attributes(&self.variables.dimension_attributes(k));
            let encoding = (&grid, order, self.settings.encoder);
            let names = [dimension.name.as_str()];
            let document = array_document(&array, &"float64".into(), encoding, &names, &attrs);
            self.flat.metadata.add_auxiliary(path.clone());
            self.documents.push((path.clone(), document));
            let values = Values::Uniform { start, step };
            arrays.push(Stored { values, path, shape, grid, order, size });
        }
        Ok(())
    }

    /// Opens an array to be read in parts.
    pub(crate) fn open(&self, array: &Stored) -> Result<Reader<'_>> {
        match array.values {
            Values::Node(id) => {
                let path = &self.flat.tree().node(id).path;
                let opened = self.flat.open_regions(id, array.order);
                let opened = opened.map_err(|e| e.in_object(format!("\"{path}\"")))?;
                Ok(Reader::Node(Box::new(opened), path))
            }
            Values::Uniform { start, step } => Ok(Reader::Uniform { start, step }),
        }
    }

    /// Writes all metadata documents; that of the root includes all others.
    pub(crate) fn write_groups(&mut self, folder: &FolderSink) -> Result<()> {
        let group = |attrs: Object| {
            json!({
                "zarr_format": 3, "node_type": "group", "attributes": attrs,
                "consolidated_metadata":
                    { "kind": "inline", "must_understand": false, "metadata": {} },
            })
        };
        let tree = self.flat.tree();
        for (id, node) in tree.iter().filter(|(_, node)| node.array.is_none()) {
            if let Some(path) = self.paths.get(&id) {
                self.documents.push((path.clone(), group(attributes(&node.attrs))));
            }
        }
        let mut attrs = attributes(tree.attrs());
        let added = root_attributes(tree.attrs());
        attrs.extend(attributes(&added));
        self.flat.metadata.add_attributes("", added.iter().map(|(name, _)| name));
        attrs.insert(DESCRIPTION.into(), self.flat.metadata.text(self.content.limits())?.into());
        let mut root = group(attrs);
        let mut all = Object::new();
        for (path, document) in std::mem::take(&mut self.documents) {
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

/// Writes the fill value as xarray reads it: floats as the eight bytes of a double in base64, and numbers of
/// other kinds as numbers. A missing value that JSON cannot express becomes the fill value. Returns the names
/// of the attributes that have another form than in the metadata.
fn encode_fill_value(attrs: &mut Object, dtype: DType) -> Vec<String> {
    let mut changed = Vec::new();
    let as_float = |value: &Json| match value {
        Json::String(text) if !text.is_empty() => text.parse::<f64>().ok(),
        value => value.as_f64(),
    };
    if dtype.kind() != Kind::Float {
        return changed;
    }
    if let Some(number) = attrs.get("missing_value").filter(|v| v.is_string()).and_then(as_float) {
        attrs.remove("missing_value");
        changed.push("missing_value".to_string());
        attrs.entry("_FillValue").or_insert_with(|| number.to_string().into());
    }
    if let Some(number) = attrs.get("_FillValue").and_then(as_float) {
        let text = base64_simd::STANDARD.encode_to_string(number.to_le_bytes());
        attrs.insert("_FillValue".into(), text.into());
        changed.push("_FillValue".to_string());
    }
    changed
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
