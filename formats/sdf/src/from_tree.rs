//! Writes any dataset as SDF. Nodes that were read from SDF blocks become the same blocks; other
//! arrays become new blocks, with a mesh if they have coordinates.

mod attrs;
mod other_formats;
mod station;

use std::collections::{HashMap, HashSet};

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Extent, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::points::DERIVED;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::{Attrs, Node, NodeId, Tree, Value};

use self::attrs::{
    get, get_f64, get_f64_list, get_i32, get_i64, get_string, get_strings, get_u64_list,
};
pub(crate) use self::other_formats::{MAX_RANK, is_block_name, is_exact_type};
use crate::to_tree::{DATATYPE, NAME, TYPE};
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Mesh, Meta, PlainVariable, PointMesh, PointVariable, RunInfo, Stitched};
use crate::wire::{BlockHeader, DataType, FileHeader};
use crate::write::{Data, Writer};

/// Writes the dataset `content` as SDF; the caller commits `sink`. Fails if SDF cannot express an
/// array (sdf-050).
pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let tree = content.tree();
    let mut children: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    let mut ids = HashMap::new();
    for (id, node) in tree.iter() {
        children.entry(node.parent).or_default().push(id);
        if let (Some(block_id), true) = (&node.id, get(&node.attrs, TYPE).is_some()) {
            ids.entry(block_id.as_str()).or_insert(id);
        }
    }
    let header = header(tree);
    let mut writer = TreeWriter {
        content,
        tree,
        limits,
        writer: Writer::new(sink, &header)?,
        children,
        ids,
        owned: HashSet::new(),
        inside: HashMap::new(),
    };
    for (_, node) in tree.iter() {
        if kind(node).is_some_and(BlockType::is_contiguous) {
            writer.contiguous(node).map_err(|e| e.in_object(quoted(node)))?;
        }
    }
    for (id, node) in tree.iter() {
        writer.node(id, node).map_err(|e| e.in_object(quoted(node)))?;
    }
    writer.writer.finish()
}

fn quoted(node: &Node) -> String {
    format!("\"{}\"", node.path)
}

/// Type of the block that a node was read from.
fn kind(node: &Node) -> Option<BlockType> {
    BlockType::from_name(&get_string(&node.attrs, TYPE))
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("sdf-050", message)
}

/// The file header from the root attributes; the string length is that of the longest name.
fn header(tree: &Tree) -> FileHeader {
    let root = tree.attrs();
    let flag = |name: &str| get(root, name) == Some(&Value::Bool(true));
    let value_len = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::List(list) => {
            let lengths = list.iter().map(|v| if let Value::Text(t) = v { t.len() } else { 0 });
            lengths.max().unwrap_or(0)
        }
        _ => 0,
    };
    let node_len = |node: &Node| {
        let block = get(&node.attrs, TYPE).is_some();
        let attrs = node.attrs.iter().filter(|_| block);
        attrs.map(|(name, v)| name.len().max(value_len(v))).max().unwrap_or(0).max(node.path.len())
    };
    let longest = tree.iter().map(|(_, node)| node_len(node)).max().unwrap_or(0) as u64;
    let default = FileHeader::default();
    let known = get(root, "code_name").is_some();
    FileHeader {
        code_name: if known { get_string(root, "code_name") } else { "spile".into() },
        step: get_i32(root, "step"),
        time: get_f64(root, "time").unwrap_or(0.0),
        jobid: (get_i32(root, "jobid1"), get_i32(root, "jobid2")),
        code_io_version: if known { get_i32(root, "code_io_version") } else { 1 },
        restart: flag("restart_flag"),
        subdomain: flag("subdomain_file"),
        station: flag("station_file"),
        string_length: default.string_length.max(longest.next_power_of_two()),
        ..default
    }
}

struct TreeWriter<'a> {
    content: &'a dyn Reader,
    tree: &'a Tree,
    limits: &'a Limits,
    writer: Writer<'a>,
    children: HashMap<NodeId, Vec<NodeId>>,
    /// Blocks by identifier.
    ids: HashMap<&'a str, NodeId>,
    /// Arrays that belong to the block of another node.
    owned: HashSet<NodeId>,
    /// Location of the data of members of contiguous blocks.
    inside: HashMap<NodeId, Extent>,
}

impl<'a> TreeWriter<'a> {
    fn open(&self, desc: &ArrayDesc) -> Result<Array> {
        if let Layout::PerFrame(_) = self.tree.resolve(desc)?.layout {
            return Err(unsupported("an SDF file contains one frame; select a frame"));
        }
        Array::open(self.content.source(), self.tree, desc, self.limits)
    }

    /// The arrays directly below a node that are neither computed nor blocks.
    fn arrays(&self, id: NodeId) -> Vec<(NodeId, &'a Node, &'a ArrayDesc)> {
        let children = self.children.get(&id).map_or(&[][..], |c| c);
        let nodes = children.iter().map(|id| (*id, self.tree.node(*id)));
        nodes
            .filter(|(_, n)| get(&n.attrs, DERIVED).is_none() && get(&n.attrs, TYPE).is_none())
            .filter_map(|(id, node)| Some((id, node, node.array.as_ref()?)))
            .collect()
    }

    fn node(&mut self, id: NodeId, node: &'a Node) -> Result<()> {
        if self.owned.contains(&id) || get(&node.attrs, DERIVED).is_some() {
            return Ok(());
        }
        match (kind(node), &node.array) {
            (Some(kind), _) if kind.is_contiguous() => Ok(()),
            (Some(kind), Some(desc)) => self.array_block(id, node, kind, desc),
            (Some(kind), None) => self.group_block(id, node, kind),
            (None, Some(desc)) => self.other_array(node, desc),
            (None, None) => Ok(()),
        }
    }

    /// Writes a block with the identifier and the name of `node`. Returns the location of the data.
    fn write_block(
        &mut self,
        node: &Node,
        kind: BlockType,
        datatype: DataType,
        meta: &Meta,
        data: Data<'_>,
    ) -> Result<Extent> {
        let id = node.id.as_deref().unwrap_or(&node.path);
        self.writer.block(id, block_name(node), kind, datatype, meta, data).map(|(_, data)| data)
    }

    /// Writes a block whose data are one array.
    fn array_block(
        &mut self,
        id: NodeId,
        node: &'a Node,
        kind: BlockType,
        desc: &ArrayDesc,
    ) -> Result<()> {
        let array = self.open(desc)?;
        let attrs = &node.attrs;
        let shape = array.shape().lengths().to_vec();
        let datatype = DataType::of(array.dtype()).ok_or_else(|| no_type(array.dtype()))?;
        let mult = || match desc.map {
            None => Ok(get_f64(attrs, "mult").unwrap_or(1.0)),
            Some(map) => factor(map),
        };
        // Blocks of an unknown type and constants of an unknown data type.
        let unknown = get(attrs, "metadata").is_some();
        let meta = match Meta::of(kind) {
            _ if unknown => return self.unknown(node, kind, &array),
            Meta::PlainVariable(_) => Meta::PlainVariable(PlainVariable {
                mult: mult()?,
                units: get_string(attrs, "units"),
                mesh_id: get_string(attrs, "mesh"),
                dims: shape,
                stagger: get_i32(attrs, "stagger"),
            }),
            Meta::PointVariable(_) => Meta::PointVariable(PointVariable {
                mult: mult()?,
                units: get_string(attrs, "units"),
                mesh_id: get_string(attrs, "mesh"),
                np: shape.iter().product(),
                species_id: get_string(attrs, "species"),
            }),
            Meta::Constant(_) => Meta::Constant(array.read(&Selection::all(), Axes::Stored)?),
            Meta::Array(_) => Meta::Array(dimensions(array.dtype(), shape)),
            Meta::Source => Meta::Source,
            Meta::CpuSplit { .. } => Meta::CpuSplit {
                split_type: get_i32(attrs, "split_type"),
                dims: get_u64_list(attrs, "split_dims"),
            },
            Meta::Datablock { .. } => Meta::Datablock {
                mimetype: get_string(attrs, "mimetype"),
                checksum_type: get_string(attrs, "checksum_type"),
                checksum: get_string(attrs, "checksum"),
            },
            _ => return Err(unsupported(format!("a {} without metadata", kind.name()))),
        };
        if let Some(extent) = self.inside.get(&id).copied() {
            return self.write_block(node, kind, datatype, &meta, Data::Inside(extent)).map(drop);
        }
        if let Meta::Constant(_) = meta {
            return self.write_block(node, kind, datatype, &meta, Data::None).map(drop);
        }
        let selected = array.select(&Selection::all(), Axes::Order(Order::F))?;
        self.write_block(node, kind, datatype, &meta, Data::Array(&selected)).map(drop)
    }

    /// Writes a block of an unknown type with its original metadata.
    fn unknown(&mut self, node: &Node, kind: BlockType, array: &Array) -> Result<()> {
        if get(&node.attrs, "byte_order").is_some() {
            return Err(unsupported("a block of an unknown type from a big-endian file"));
        }
        let Some(Value::Bytes(meta)) = get(&node.attrs, "metadata") else {
            return Err(unsupported(format!("a {} without metadata", kind.name())));
        };
        let header = BlockHeader {
            id: node.id.clone().unwrap_or_default(),
            name: block_name(node).into(),
            blocktype: kind.code(),
            datatype: stored_datatype(&node.attrs),
            ndims: get_i64(&node.attrs, "ndims").unsigned_abs(),
            ..BlockHeader::default()
        };
        let length = array.shape().bytes(array.dtype().size())?;
        let extent = self.writer.reserve(header, &Meta::Other(meta.clone()), length, None)?;
        self.writer.fill_from(extent.offset, &array.all()?)
    }

    /// Writes a block that is a group in the tree.
    fn group_block(&mut self, id: NodeId, node: &'a Node, kind: BlockType) -> Result<()> {
        let attrs = &node.attrs;
        match Meta::of(kind) {
            Meta::Mesh(_) | Meta::PointMesh(_) => self.mesh(id, node, kind),
            Meta::Station(_) => self.station(id, node),
            Meta::RunInfo(_) => {
                let meta = Meta::RunInfo(RunInfo {
                    code_version: get_i32(attrs, "code_version"),
                    code_revision: get_i32(attrs, "code_revision"),
                    commit_id: get_string(attrs, "commit_id"),
                    sha1sum: get_string(attrs, "sha1sum"),
                    compile_machine: get_string(attrs, "compile_machine"),
                    compile_flags: get_string(attrs, "compile_flags"),
                    defines: get_i64(attrs, "defines"),
                    compile_date: get_i32(attrs, "compile_date"),
                    run_date: get_i32(attrs, "run_date"),
                    io_date: get_i32(attrs, "io_date"),
                    minor_rev: get_i32(attrs, "minor_rev"),
                });
                self.write_block(node, kind, DataType::Other, &meta, Data::None).map(drop)
            }
            Meta::NameValue { .. } => {
                // The reserved attributes come first; the file may contain the same names again.
                let mut reserved: HashSet<&str> = [TYPE, NAME, DATATYPE].into_iter().collect();
                let rest = attrs.iter().filter(|(name, _)| !reserved.remove(name.as_str()));
                let (names, values) = rest.cloned().unzip();
                let meta = Meta::NameValue { names, values };
                self.write_block(node, kind, stored_datatype(attrs), &meta, Data::None).map(drop)
            }
            Meta::Stitched(_) => {
                let meta = Meta::Stitched(stitched(attrs));
                self.write_block(node, kind, stored_datatype(attrs), &meta, Data::None).map(drop)
            }
            _ => Err(unsupported(format!("a {} without data", kind.name()))),
        }
    }

    /// Writes a mesh: the arrays of the group, one per direction, are its data.
    fn mesh(&mut self, id: NodeId, node: &'a Node, kind: BlockType) -> Result<()> {
        let axes = self.arrays(id);
        self.owned.extend(axes.iter().map(|(id, ..)| *id));
        let mut mesh = Mesh {
            geometry: get_i32(&node.attrs, "geometry"),
            minval: get_f64_list(&node.attrs, "minval"),
            maxval: get_f64_list(&node.attrs, "maxval"),
            ..Mesh::default()
        };
        let (mut arrays, mut length) = (Vec::new(), 0_u64);
        for (_, axis, desc) in axes {
            let array = self.open(desc)?;
            mesh.labels.push(label(axis));
            mesh.units.push(get_string(&axis.attrs, "units"));
            let unscaled = get_f64(&axis.attrs, "mult").unwrap_or(1.0);
            mesh.mults.push(desc.map.map_or(unscaled, |map| map.slope));
            if kind == BlockType::LagrangianMesh {
                mesh.dims = array.shape().lengths().to_vec();
            } else {
                mesh.dims.extend_from_slice(array.shape().lengths());
            }
            length = length.saturating_add(array.shape().bytes(array.dtype().size())?);
            arrays.push(array);
        }
        if mesh.minval.len() > mesh.labels.len() {
            let (expected, found) = (mesh.minval.len(), mesh.labels.len());
            let message =
                format!("expected a mesh with {expected} coordinate arrays, found {found}");
            return Err(unsupported(message));
        }
        mesh.minval.resize(mesh.labels.len(), 0.0);
        mesh.maxval.resize(mesh.labels.len(), 0.0);
        let datatype = arrays.first().and_then(|a| DataType::of(a.dtype()));
        let same = |a: &Array| DataType::of(a.dtype()) == datatype;
        let Some(datatype) = datatype.filter(|_| arrays.iter().all(same)) else {
            return Err(unsupported("a mesh whose coordinate arrays have different types"));
        };
        let meta = if kind == BlockType::PointMesh {
            let np = mesh.dims.first().copied().unwrap_or(0);
            mesh.dims.clear();
            let species_id = get_string(&node.attrs, "species");
            Meta::PointMesh(PointMesh { mesh, np, species_id })
        } else {
            Meta::Mesh(mesh)
        };
        let header = self.block_header(node, kind, datatype, &meta);
        let extent = self.writer.reserve(header, &meta, length, None)?;
        let mut at = extent.offset;
        for array in &arrays {
            self.writer.fill_from(at, &array.select(&Selection::all(), Axes::Order(Order::F))?)?;
            at += array.shape().bytes(array.dtype().size())?;
        }
        Ok(())
    }

    fn block_header(
        &self,
        node: &Node,
        kind: BlockType,
        datatype: DataType,
        meta: &Meta,
    ) -> BlockHeader {
        BlockHeader {
            id: self.writer.unique_id(node.id.as_deref().unwrap_or(&node.path)),
            name: block_name(node).into(),
            blocktype: kind.code(),
            datatype,
            ndims: meta.ndims(),
            ..BlockHeader::default()
        }
    }

    /// Writes a contiguous block with the data of its members. The member blocks are written later
    /// and refer to these data.
    fn contiguous(&mut self, node: &'a Node) -> Result<()> {
        let Some(kind) = kind(node) else { return Ok(()) };
        let group = stitched(&node.attrs);
        let mut members = Vec::new();
        let mut length = 0_u64;
        for id in &group.ids {
            let member = self.ids.get(id.as_str()).copied();
            let desc = member.and_then(|member| self.tree.node(member).array.as_ref());
            let (Some(member), Some(desc)) = (member, desc) else {
                return Err(unsupported(format!("no member named \"{id}\"")));
            };
            let array = self.open(desc)?;
            length = length.saturating_add(array.shape().bytes(array.dtype().size())?);
            members.push((member, array));
        }
        let meta = Meta::Stitched(group);
        let header = self.block_header(node, kind, stored_datatype(&node.attrs), &meta);
        let mut at = self.writer.reserve(header, &meta, length, None)?.offset;
        for (member, array) in members {
            let len = array.shape().bytes(array.dtype().size())?;
            self.writer.fill_from(at, &array.select(&Selection::all(), Axes::Order(Order::F))?)?;
            self.inside.insert(member, Extent { offset: at, len });
            at += len;
        }
        Ok(())
    }
}

fn stitched(attrs: &Attrs) -> Stitched {
    Stitched {
        stagger: get_i32(attrs, "stagger"),
        mesh_id: get_string(attrs, "mesh"),
        material_id: get_string(attrs, "material"),
        material_name: get_string(attrs, "material_name"),
        names: get_strings(attrs, "names"),
        ids: get_strings(attrs, "parts"),
    }
}

/// Name of the block of `node`.
fn block_name(node: &Node) -> &str {
    match get(&node.attrs, NAME) {
        Some(Value::Text(name)) => name,
        _ => &node.path,
    }
}

/// Data type stored as an attribute.
fn stored_datatype(attrs: &Attrs) -> DataType {
    DataType::from_name(&get_string(attrs, DATATYPE)).unwrap_or_default()
}

/// Name of a coordinate, station or variable in the file, which may differ from the node's name.
fn label(node: &Node) -> String {
    get(&node.attrs, "label").map_or_else(|| node.name.clone(), ToString::to_string)
}

/// The factor of a linear scaling. Fails if it has an offset.
fn factor(map: Linear) -> Result<f64> {
    match map {
        Linear { intercept: 0.0, slope, .. } => Ok(slope),
        _ => Err(unsupported("SDF supports a scaling factor but no offset")),
    }
}

fn no_type(dtype: DType) -> Error {
    unsupported(format!("SDF has no data type for {dtype} elements"))
}

/// Dimensions of an array block; for strings the first dimension is their length.
fn dimensions(dtype: DType, shape: Vec<u64>) -> Vec<u64> {
    let text = (dtype.kind() == Kind::Text).then_some(dtype.size() as u64);
    text.into_iter().chain(shape).collect()
}
