//! Any dataset as HDF5 or NetCDF-4.
//!
//! Every array of the [flat](spile_interchange::flat) tree becomes one dataset, contiguous or chunked. Names and coordinates
//! of dimensions become dimension scales. Metadata that HDF5 cannot express are stored as JSON in the
//! attribute [`DESCRIPTION`] of the root group. All metadata precede the data; chunks follow contiguous data.

mod attribute;
mod chunks;
mod data;
mod index;
mod mat;
mod scales;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use spile_core::Dataset;
use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{Compressor, FormatWriter, GuestAttribute, Loss, LossKind, WriteOptions};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::sink::Sink;
use spile_core::tree::{Attrs, NodeId, ROOT, Value};
use spile_core::wire::ByteOrder;
use spile_interchange::{Dimensions, Flat, Variables, cf, flat_losses, root_attributes};

use crate::to_tree::scales::{DESCRIPTION, is_reserved};
use crate::write::{
    Data, DatasetType, FilePlan, HeapObject, LinkTarget, MAX_ATTRIBUTES, MAX_MESSAGE, ObjectKind,
    datatype,
};
pub(crate) use attribute::Flavor;
use attribute::attach_value;
use chunks::ChunkOptions;
use index::ExternalFile;
pub use index::{Indexed, Skipped, write_index};

/// Rank from which on arrays are refused; the library allows 32 dimensions.
const MAX_RANK: usize = 32;

/// The source of the data of a dataset.
#[derive(Clone, Copy, Debug)]
enum DataSource {
    Array(NodeId),
    Uniform { start: f64, step: f64, len: u64 },
}

struct Writer {
    flat: Flat,
    dimensions: Dimensions,
    /// netCDF: names and attributes of variables.
    variables: Variables,
    flavor: Flavor,
    plan: FilePlan,
    /// Objects of nodes.
    objects: HashMap<NodeId, usize>,
    /// Paths in the file.
    paths: HashMap<NodeId, String>,
    /// Names of links, by group object.
    names: HashMap<usize, UniqueNames>,
    data: Vec<(usize, DataSource)>,
    /// The scale object of each dimension, and the dimensions that use each scale.
    scales: Vec<Option<usize>>,
    uses: HashMap<usize, Vec<(usize, u32)>>,
    /// netCDF: string length dimensions by length, and named datatypes by encoding.
    string_dimensions: HashMap<u64, usize>,
    named_datatypes: HashMap<Vec<u8>, usize>,
    dimension_ids: u64,
    /// Identifiers of dimensions, by the object of their scale.
    scale_ids: HashMap<usize, u64>,
    /// Set if datasets refer to the bytes of the source file.
    external: Option<ExternalFile>,
}

impl FormatWriter for Flavor {
    fn keeps_scaling(&self) -> bool {
        *self == Self::NetCdf
    }

    fn check_options(&self, content: &Dataset, _: &Path, options: &WriteOptions) -> Result<()> {
        self.chunked(content, options).map(drop)
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        Writer::planned(content, *self)?;
        let losses = flat_losses(content, self.name(), |array| match array.dtype.size() {
            0 => Err(format!("{} has no elements of 0 bytes", self.name())),
            _ => Ok(()),
        });
        let mut losses = losses.into_vec();
        if *self == Self::NetCdf {
            let lost = losses.iter().filter(|loss| loss.kind == LossKind::Array);
            let lost: HashSet<String> = lost.map(|loss| loss.path.clone()).collect();
            let half = content.arrays().filter(|(_, _, array)| is_half(array.dtype));
            let half = half.filter(|(_, node, _)| !lost.contains(node.path.as_str()));
            let reason = "NetCDF-4 has no float16; written as float32";
            losses.extend(half.map(|(_, node, _)| Loss::new(&node.path, LossKind::Type, reason)));
        }
        Ok(losses)
    }

    fn options(&self) -> &'static [&'static str] {
        &["compression", "chunks"]
    }

    fn write(
        &self,
        content: &Dataset,
        sink: &mut Sink,
        options: &WriteOptions,
    ) -> Result<Vec<Loss>> {
        let mut writer = self.chunked(content, options)?;
        if let Some(links) = &options.guest_links {
            writer.make_guest(links);
        }
        writer.add_guest_attributes(&options.guest_attributes)?;
        writer.add_encodings()?;
        writer.write(sink)?;
        Ok(Vec::new())
    }
}

impl Flavor {
    /// The plan of a file with these chunks and this compression. Fails if `options` do not fit the content.
    fn chunked(self, content: &Dataset, options: &WriteOptions) -> Result<Writer> {
        let supported = [Compressor::Gzip, Compressor::Zstd];
        let chunks = ChunkOptions::new(options, self.name(), &supported)?;
        let mut writer = Writer::planned(content, self)?;
        writer.set_chunks(chunks)?;
        Ok(writer)
    }
}

/// `content` flattened. NetCDF has no float16: its metadata say float32, the data are converted when
/// they are written.
fn flatten(content: &Dataset, flavor: Flavor) -> Result<Flat> {
    let mut flat = Flat::new(content)?;
    let half = content.arrays().filter(|(_, _, array)| is_half(array.dtype)).map(|(id, ..)| id);
    let half: Vec<NodeId> = half.collect();
    if flavor == Flavor::NetCdf && !half.is_empty() {
        let mut tree = content.tree().clone();
        for id in half {
            let Some(array) = &mut tree.node_mut(id).array else { continue };
            array.dtype = DType::F32;
            if array.layout.frames().is_none() && array.layout.same().is_none() {
                array.layout = Layout::Fill([0; 4].into());
            }
        }
        flat.metadata = Flat::new(&content.with_tree(tree))?.metadata;
    }
    Ok(flat)
}

fn is_half(dtype: DType) -> bool {
    matches!(netcdf_type(dtype), NetCdfType::Float32)
}

impl Writer {
    /// The plan of a complete file.
    fn planned(content: &Dataset, flavor: Flavor) -> Result<Self> {
        let mut writer = Self::new(content, flavor)?;
        writer.add_nodes()?;
        writer.add_scales();
        writer.attach_scales();
        writer.add_root_attributes(content)?;
        Ok(writer)
    }

    fn new(content: &Dataset, flavor: Flavor) -> Result<Self> {
        let flat = flatten(content, flavor)?;
        let dimensions = Dimensions::of(flat.tree());
        let variables = match flavor {
            Flavor::NetCdf => Variables::of(flat.tree(), &dimensions, |id| flat.path(id)),
            Flavor::Hdf5 => Variables::of_dimensions(flat.tree(), &dimensions),
        };
        Ok(Self {
            scales: vec![None; dimensions.list().len()],
            flat,
            dimensions,
            variables,
            flavor,
            plan: FilePlan::default(),
            objects: HashMap::new(),
            paths: HashMap::new(),
            names: HashMap::new(),
            data: Vec::new(),
            uses: HashMap::new(),
            string_dimensions: HashMap::new(),
            named_datatypes: HashMap::new(),
            dimension_ids: 0,
            scale_ids: HashMap::new(),
            external: None,
        })
    }

    /// Adds the groups and arrays of the tree.
    fn add_nodes(&mut self) -> Result<()> {
        let root = self.plan.add(ObjectKind::Group(Vec::new()));
        self.objects.insert(ROOT, root);
        self.paths.insert(ROOT, String::new());
        let nodes: Vec<NodeId> = self.flat.tree().iter().map(|(id, _)| id).collect();
        let mut renamed = HashMap::new();
        for id in nodes {
            let node = self.flat.tree().node(id).clone();
            let is_flat = self.variables.is_flat();
            // Groups without arrays are written for their attributes.
            if is_flat && node.array.is_none() && node.attrs.is_empty() {
                continue;
            }
            let flat_name = self.variables.name(id).or(is_flat.then_some(node.path.as_str()));
            let name = flat_name.unwrap_or(&node.name).to_string();
            let parent = if is_flat { 0 } else { self.objects[&node.parent] };
            let name = self.unique_name(parent, &name);
            let path = match self.paths.get(&node.parent).filter(|_| !is_flat) {
                Some(prefix) if !prefix.is_empty() => format!("{prefix}/{name}"),
                _ => name.clone(),
            };
            if node.array.is_some() && path != node.path {
                renamed.insert(node.path.clone(), path.clone());
            }
            self.paths.insert(id, path);
            let object = match &node.array {
                None => self.plan.add(ObjectKind::Group(Vec::new())),
                Some(array) => {
                    let in_array = |e: Error| e.in_object(format!("\"{}\"", node.path));
                    match self.array(id, &node.path, array).map_err(in_array)? {
                        Some(object) => object,
                        None => continue,
                    }
                }
            };
            self.plan.link(parent, &name, object);
            self.objects.insert(id, object);
        }
        self.flat.metadata.rename(&renamed);
        Ok(())
    }

    /// Adds the dataset of an array; `None` if the array is skipped: HDF5 has no elements of 0 bytes.
    fn array(&mut self, id: NodeId, path: &str, array: &ArrayDesc) -> Result<Option<usize>> {
        if array.dtype.size() == 0 {
            return Ok(None);
        }
        if self.external.is_some() {
            return self.external_dataset(id, path, array);
        }
        let object = self.dataset(array)?;
        self.data.push((object, DataSource::Array(id)));
        Ok(Some(object))
    }

    /// Adds a dataset. Fails with `Unsupported` if the rank is too large.
    fn dataset(&mut self, array: &ArrayDesc) -> Result<usize> {
        if array.shape.rank() >= MAX_RANK {
            let message =
                format!("arrays of {} dimensions are not supported in HDF5", array.shape.rank());
            return Err(Error::unsupported("hdf5-030", message));
        }
        let mut dims = array.shape.lengths().to_vec();
        let mut bytes = array.shape.bytes(array.dtype.size())?;
        // Core reads elements as little-endian.
        let dtype = array.dtype.with_order(ByteOrder::Little);
        let kind = match (self.flavor, netcdf_type(dtype)) {
            (Flavor::Hdf5, _) | (_, NetCdfType::Native) => DatasetType::Own(datatype::of(dtype)),
            (_, NetCdfType::Float32) => {
                bytes = array.shape.bytes(DType::F32.size())?;
                DatasetType::Own(datatype::of(DType::F32))
            }
            (_, NetCdfType::Integer) => {
                let (size, signed) = (dtype.size() as u32, dtype.kind() == Kind::Bool);
                DatasetType::Own(datatype::integer(size, signed))
            }
            (_, NetCdfType::Compound) => DatasetType::Committed(self.named_complex(dtype)),
            (_, NetCdfType::Characters) => {
                dims.push(dtype.size().max(1) as u64);
                DatasetType::Own(datatype::terminated_text(1))
            }
        };
        Ok(self.plan.add(ObjectKind::Dataset { kind, dims, bytes, external: None }))
    }

    /// The named datatype that netCDF uses for complex numbers.
    fn named_complex(&mut self, dtype: DType) -> usize {
        let encoded = datatype::of(dtype);
        if let Some(object) = self.named_datatypes.get(&encoded) {
            return *object;
        }
        let name = if dtype.size() == 8 {
            "_PFNC_FLOAT_COMPLEX_TYPE"
        } else {
            "_PFNC_DOUBLE_COMPLEX_TYPE"
        };
        let object = self.plan.add(ObjectKind::Type(encoded.clone()));
        self.link_root(name, object);
        self.named_datatypes.insert(encoded, object);
        object
    }

    /// Adds a link to the root group for an object that is not in the tree; returns its name.
    fn link_root(&mut self, name: &str, object: usize) -> String {
        let name = self.unique_name(0, name);
        self.plan.link(0, &name, object);
        name
    }

    /// A valid link name that is not used in the group yet.
    fn unique_name(&mut self, group: usize, name: &str) -> String {
        let name = self.valid_name(name);
        self.names.entry(group).or_default().add(name)
    }

    /// Adds attributes to an object. Reserved and repeated names are only in the metadata JSON.
    fn add_attributes(&mut self, object: usize, attrs: &Attrs) {
        let present = self.plan.objects[object].attributes.iter().map(|a| a.name.clone());
        let mut present: HashSet<String> = present.collect();
        for (name, value) in attrs {
            let name = self.valid_name(name);
            let full = self.plan.objects[object].attributes.len() >= MAX_ATTRIBUTES;
            if full || is_reserved(&name) || present.contains(&name) {
                continue;
            }
            if attach_value(&mut self.plan, self.flavor, object, &name, value).is_some() {
                present.insert(name);
            }
        }
    }

    /// Adds the attributes of missing values with the type of the variable, as netCDF requires.
    fn add_missing_values(&mut self, object: usize, dtype: DType, attrs: &Attrs) {
        let size = dtype.size();
        if self.flavor != Flavor::NetCdf || !matches!(netcdf_type(dtype), NetCdfType::Native) {
            return;
        }
        for (name, value) in attrs.iter().filter(|(name, _)| cf::MISSING.contains(name)) {
            let list = match value {
                Value::List(list) => &list[..],
                value => std::slice::from_ref(value),
            };
            let encoded = list.iter().map(|value| match (dtype.kind(), value) {
                (Kind::Int | Kind::UInt, Value::Int(v)) => integer_bytes(i128::from(*v), dtype),
                (Kind::Int | Kind::UInt, Value::UInt(v)) => integer_bytes(i128::from(*v), dtype),
                (Kind::Float, value) => {
                    let number = f64::try_from(value).ok()?;
                    let mut out = Vec::new();
                    let little = dtype.with_order(ByteOrder::Little);
                    convert::from_f64(little, None, &[number], &mut out);
                    Some(out)
                }
                _ => None,
            });
            let encoded: Option<Vec<Vec<u8>>> = encoded.collect();
            let present = self.plan.objects[object].attributes.iter().any(|a| a.name == name);
            let Some(encoded) = encoded.filter(|all| !all.is_empty() && !present) else { continue };
            let dims = vec![encoded.len() as u64];
            let bytes = encoded.concat();
            debug_assert_eq!(bytes.len(), size * list.len());
            let kind = datatype::of(dtype.with_order(ByteOrder::Little));
            self.plan.attach(object, name, kind, dims, Data::Raw(bytes));
        }
    }

    /// Adds scaling and missing values of an array (CF conventions), and the type of netCDF booleans.
    fn add_conventions(&mut self, object: usize, array: Option<&ArrayDesc>, own: &Attrs) {
        let Some(array) = array else { return };
        let mut attrs = cf::attributes(array, own);
        self.add_missing_values(object, array.dtype, &attrs);
        let is_bool = array.dtype.kind() == Kind::Bool && array.dtype.size() == 1;
        if self.flavor == Flavor::NetCdf && is_bool {
            attrs.push("dtype", "bool");
        }
        self.add_attributes(object, &attrs);
    }

    /// Adds the encoding of netCDF characters that are UTF-8, without which xarray shows bytes.
    fn add_encodings(&mut self) -> Result<()> {
        if self.flavor != Flavor::NetCdf {
            return Ok(());
        }
        let (name, value) = cf::UTF8;
        for (object, source) in self.data.clone() {
            let DataSource::Array(id) = source else { continue };
            if self.flat.is_utf8(id)? {
                self.add_attributes(object, &Attrs::from([(name, value.into())]));
            }
        }
        Ok(())
    }

    /// Adds `sample_dimension` to the row counts of a ragged array (CF conventions, section 9.3.3).
    fn add_sample_dimension(&mut self, object: usize, path: &str, parent: NodeId) {
        let tree = self.flat.tree();
        let Some(stem) = path.strip_suffix(".rows") else { return };
        let Some(id) = tree.at(stem).filter(|id| tree.node(*id).parent == parent) else { return };
        let name = self.dimensions.names(id).next().map(Value::from);
        if let Some(name) = name {
            self.add_attributes(object, &Attrs::from([("sample_dimension", name)]));
        }
    }

    /// Adds the attributes of the root group and the metadata JSON.
    fn add_root_attributes(&mut self, content: &Dataset) -> Result<()> {
        if self.flavor == Flavor::NetCdf {
            let text = concat!("version=2,spile=", env!("CARGO_PKG_VERSION"));
            let value = Value::from(text);
            attach_value(&mut self.plan, self.flavor, 0, "_NCProperties", &value);
        }
        let attrs = self.flat.tree().attrs().clone();
        self.add_attributes(0, &attrs);
        if self.flavor == Flavor::NetCdf {
            self.add_attributes(0, &root_attributes(&attrs));
        }
        let text = self.flat.metadata.text(content.limits())?.into_bytes();
        let len = u32::try_from(text.len()).map_err(|_| {
            Error::unsupported("hdf5-032", "the metadata JSON of this file exceeds 4 GiB")
        })?;
        let heap_object = self.plan.add_heap_object(HeapObject::Text(text));
        let data = Data::Heap(vec![Some((len, heap_object))]);
        self.plan.attach(0, DESCRIPTION, datatype::variable_length_text(), Vec::new(), data);
        Ok(())
    }

    /// Removes the metadata JSON and adds soft links of these paths and targets.
    fn make_guest(&mut self, links: &[(String, String)]) {
        self.plan.objects[0].attributes.retain(|attribute| attribute.name != DESCRIPTION);
        for (path, target) in links {
            let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
            let group = self.flat.tree().at(group).and_then(|id| self.objects.get(&id)).copied();
            let target = LinkTarget::Path(target.clone());
            self.plan.link_to(group.unwrap_or(0), name, target);
        }
    }

    /// Adds attributes with types of their own. Fails if an object does not exist or the attribute is too large.
    fn add_guest_attributes(&mut self, attributes: &[GuestAttribute]) -> Result<()> {
        for GuestAttribute { path, name, dtype, dims, bytes } in attributes {
            let id = self.flat.tree().at(path);
            let object =
                id.and_then(|id| if id == ROOT { Some(0) } else { self.objects.get(&id).copied() });
            let object = object.filter(|_| bytes.len() < MAX_MESSAGE / 2).ok_or_else(|| {
                let message = format!("attribute \"{name}\" cannot be stored");
                Error::unsupported("hdf5-037", message).in_object(format!("\"{path}\""))
            })?;
            self.plan.attach(
                object,
                name,
                datatype::of(*dtype),
                dims.clone(),
                Data::Raw(bytes.clone()),
            );
        }
        Ok(())
    }

    /// A name that the format allows. HDF5 forbids slashes and dots as names; netCDF also control
    /// characters, trailing spaces, more than 256 bytes, and most punctuation as first character.
    fn valid_name(&self, name: &str) -> String {
        let mut out = name.replace(['/', '\0'], "_");
        if out == "." || out == ".." || out.is_empty() {
            out = "_".repeat(out.len().max(1));
        }
        if self.flavor == Flavor::NetCdf {
            out = out.replace(|c: char| c.is_control(), "_");
            out.truncate(out.trim_end_matches(' ').len());
            let first = out.chars().next().unwrap_or(' ');
            if !(first.is_alphanumeric() || first == '_' || !first.is_ascii()) {
                out.insert(0, '_');
            }
            while out.len() > 240 {
                out.pop();
            }
        }
        out
    }
}

/// The little-endian bytes of an integer; `None` if it is out of range.
fn integer_bytes(value: i128, dtype: DType) -> Option<Vec<u8>> {
    let bits = 8 * dtype.size() as u32;
    let (low, high) = match dtype.kind() {
        Kind::Int => (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1),
        _ => (0, (1_i128 << bits) - 1),
    };
    let bytes = value.to_le_bytes();
    (low..=high).contains(&value).then(|| bytes[..dtype.size()].to_vec())
}

/// How netCDF stores an element type.
enum NetCdfType {
    Native,
    /// As float32, which holds all values.
    Float32,
    /// As an integer of the same size.
    Integer,
    Compound,
    /// As characters along an additional dimension.
    Characters,
}

fn netcdf_type(dtype: DType) -> NetCdfType {
    match (dtype.kind(), dtype.size()) {
        (Kind::Int | Kind::UInt, _) | (Kind::Float, 4 | 8) => NetCdfType::Native,
        (Kind::Float, 2) => NetCdfType::Float32,
        (Kind::Bool, _) | (Kind::Opaque, 1) => NetCdfType::Integer,
        (Kind::Complex, 8 | 16) => NetCdfType::Compound,
        _ => NetCdfType::Characters,
    }
}

/// Names in use in a group.
#[derive(Default)]
struct UniqueNames {
    used: HashSet<String>,
    /// Last number that was appended to a name, so that many equal names take linear time.
    last: HashMap<String, u64>,
}

impl UniqueNames {
    /// Adds `name`, or the first of `name_2`, `name_3`... that is not in use; returns it.
    fn add(&mut self, name: String) -> String {
        if self.used.insert(name.clone()) {
            return name;
        }
        let last = self.last.entry(name.clone()).or_insert(1);
        loop {
            *last += 1;
            let numbered = format!("{name}_{last}");
            if self.used.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}
