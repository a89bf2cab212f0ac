//! Writes any dataset as SDF. Nodes that were read from SDF blocks become the same blocks; other
//! arrays become new blocks, with a mesh if they have coordinates.

mod attrs;
mod losses;
mod other_formats;
mod station;

use std::collections::{HashMap, HashSet};

use spile_core::Dataset;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Hint, Result};
use spile_core::layout::{ArrayDesc, Extent, Layout, Linear};
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::tree::{Attrs, Node, NodeId, Tree, Value};
use spile_interchange::midpoints::DERIVED;

pub(crate) use self::losses::losses;
pub(crate) use self::other_formats::{MAX_RANK, is_block_name, is_exact_type};
use crate::index::Block;
use crate::to_tree::{DATATYPE, NAME, TYPE};
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Mesh, Meta, PlainVariable, PointMesh, PointVariable, RunInfo, Stitched};
use crate::wire::{BlockHeader, DataType, FileHeader};
use crate::write::{FileLayout, Writer};

/// Writes the dataset `content` as SDF; the caller commits `sink`. Fails if SDF cannot express an
/// array (sdf-050).
pub(crate) fn write_tree(content: &Dataset, sink: &mut Sink) -> Result<()> {
    let writer = Writer::new(sink, &header(content.tree()))?;
    let done = TreeWriter::new(content, Output::File(writer)).write()?;
    if let Output::File(writer) = done.output { writer.finish() } else { Ok(()) }
}

fn quoted(node: &Node) -> String {
    format!("\"{}\"", node.path)
}

/// Type of the block that a node was read from.
fn kind(node: &Node) -> Option<BlockType> {
    BlockType::from_name(&attrs::text(&node.attrs, TYPE))
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("sdf-050", message)
}

/// The file header from the root attributes; the string length is that of the longest name.
fn header(tree: &Tree) -> FileHeader {
    let root = tree.attrs();
    let flag = |name: &str| root.get(name) == Some(&Value::Bool(true));
    let value_len = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::List(list) => {
            let lengths = list.iter().map(|v| if let Value::Text(t) = v { t.len() } else { 0 });
            lengths.max().unwrap_or(0)
        }
        _ => 0,
    };
    let node_len = |node: &Node| {
        let block = node.attrs.contains(TYPE);
        let attrs = node.attrs.iter().filter(|_| block);
        attrs.map(|(name, v)| name.len().max(value_len(v))).max().unwrap_or(0).max(node.path.len())
    };
    let longest = tree.iter().map(|(_, node)| node_len(node)).max().unwrap_or(0) as u64;
    let default = FileHeader::default();
    let known = root.contains("code_name");
    FileHeader {
        code_name: if known { attrs::text(root, "code_name") } else { "spile".into() },
        step: attrs::i32(root, "step"),
        time: root.get_f64("time").unwrap_or(0.0),
        jobid: (attrs::i32(root, "jobid1"), attrs::i32(root, "jobid2")),
        code_io_version: if known { attrs::i32(root, "code_io_version") } else { 1 },
        restart: flag("restart_flag"),
        subdomain: flag("subdomain_file"),
        station: flag("station_file"),
        string_length: default.string_length.max(longest.next_power_of_two()),
        ..default
    }
}

/// Where blocks go.
enum Output<'a> {
    File(Writer<'a>),
    /// Nowhere; the blocks are collected, without data.
    Plan(FileLayout, Vec<Block>),
}

impl Output<'_> {
    fn layout(&self) -> &FileLayout {
        match self {
            Self::File(writer) => writer.layout(),
            Self::Plan(layout, _) => layout,
        }
    }
}

struct TreeWriter<'a> {
    content: &'a Dataset,
    tree: &'a Tree,
    output: Output<'a>,
    children: HashMap<NodeId, Vec<NodeId>>,
    /// Blocks by identifier.
    ids: HashMap<&'a str, NodeId>,
    /// Arrays that belong to the block of another node.
    owned: HashSet<NodeId>,
    /// Location of the data of members of contiguous blocks.
    inside: HashMap<NodeId, Extent>,
    /// The node of each block that was written.
    origins: Vec<Option<NodeId>>,
}

/// Type, lengths and size in bytes of an array as it is read.
struct Form {
    dtype: DType,
    lengths: Vec<u64>,
    bytes: u64,
}

impl<'a> TreeWriter<'a> {
    fn new(content: &'a Dataset, output: Output<'a>) -> Self {
        let tree = content.tree();
        let mut children: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        let mut ids = HashMap::new();
        for (id, node) in tree.iter() {
            children.entry(node.parent).or_default().push(id);
            if let (Some(block_id), true) = (&node.id, node.attrs.contains(TYPE)) {
                ids.entry(block_id.as_str()).or_insert(id);
            }
        }
        let (owned, inside, origins) = (HashSet::new(), HashMap::new(), Vec::new());
        Self { content, tree, output, children, ids, owned, inside, origins }
    }

    /// Writes all blocks.
    fn write(mut self) -> Result<Self> {
        for (id, node) in self.tree.iter() {
            if kind(node).is_some_and(BlockType::is_contiguous) {
                self.contiguous(id, node).map_err(|e| e.in_object(quoted(node)))?;
            }
        }
        for (id, node) in self.tree.iter() {
            self.node(id, node).map_err(|e| e.in_object(quoted(node)))?;
        }
        Ok(self)
    }

    /// Type and lengths of an array, from its description alone. Fails for arrays that exist per
    /// frame.
    fn form(&self, desc: &ArrayDesc) -> Result<Form> {
        let desc = self.tree.resolve(desc)?;
        if let Layout::PerFrame(_) = desc.layout {
            return Err(unsupported("an SDF file contains one frame").hint(Hint::SelectFrames));
        }
        // Elements of different lengths are read as bytes.
        let (dtype, shape) = match desc.ragged() {
            Some(starts) => (DType::opaque(1), Shape::new([starts.last().copied().unwrap_or(0)])),
            None => (desc.dtype, desc.shape.clone()),
        };
        let bytes = shape.bytes(dtype.size())?;
        Ok(Form { dtype, lengths: shape.lengths().to_vec(), bytes })
    }

    /// Blocks are collected and nothing is written.
    fn is_planned(&self) -> bool {
        matches!(self.output, Output::Plan(..))
    }

    /// The array to read from; `None` if nothing is written.
    fn open(&self, desc: &ArrayDesc) -> Result<Option<Array>> {
        if self.is_planned() { Ok(None) } else { self.content.open_array(desc).map(Some) }
    }

    /// All elements of a short array; zeros if nothing is written.
    fn elements(&self, desc: &ArrayDesc, form: &Form) -> Result<Vec<u8>> {
        match self.open(desc)? {
            Some(array) => array.read_bytes(&Selection::all(), Axes::Stored),
            None => Ok(vec![0; self.content.limits().allow(form.bytes, "a constant")?]),
        }
    }

    /// Writes all elements of an array at offset `at`.
    fn fill(&mut self, at: u64, desc: &ArrayDesc) -> Result<()> {
        let Some(array) = self.open(desc)? else { return Ok(()) };
        let selected = array.select(&Selection::all(), Axes::Order(Order::F))?;
        match &mut self.output {
            Output::File(writer) => writer.fill_from(at, &selected),
            Output::Plan(..) => Ok(()),
        }
    }

    /// Writes little-endian bytes of elements at offset `at`.
    fn fill_bytes(&mut self, at: u64, dtype: Option<DType>, bytes: &[u8]) -> Result<()> {
        match &mut self.output {
            Output::File(writer) => writer.fill(at, dtype, bytes),
            Output::Plan(..) => Ok(()),
        }
    }

    /// Writes header and metadata of the block of `node`, which has `length` bytes of data. Returns the
    /// location of the data.
    fn reserve(
        &mut self,
        node: Option<NodeId>,
        header: BlockHeader,
        meta: &Meta,
        length: u64,
        inside: Option<Extent>,
    ) -> Result<Extent> {
        self.origins.push(node);
        match &mut self.output {
            Output::File(writer) => writer.reserve(header, meta, length, inside),
            Output::Plan(layout, blocks) => {
                let block = layout.append(header, meta, length, inside)?;
                blocks.push(Block::parse(&block.head, block.at, &layout.file)?);
                Ok(block.data)
            }
        }
    }

    /// The arrays directly below a node that are neither computed nor blocks.
    fn arrays(&self, id: NodeId) -> Vec<(NodeId, &'a Node, &'a ArrayDesc)> {
        let children = self.children.get(&id).map_or(&[][..], |c| c);
        let nodes = children.iter().map(|id| (*id, self.tree.node(*id)));
        nodes
            .filter(|(_, n)| !n.attrs.contains(DERIVED) && !n.attrs.contains(TYPE))
            .filter_map(|(id, node)| Some((id, node, node.array.as_ref()?)))
            .collect()
    }

    fn node(&mut self, id: NodeId, node: &'a Node) -> Result<()> {
        if self.owned.contains(&id) || node.attrs.contains(DERIVED) {
            return Ok(());
        }
        match (kind(node), &node.array) {
            (Some(kind), _) if kind.is_contiguous() => Ok(()),
            (Some(kind), Some(desc)) => self.array_block(id, node, kind, desc),
            (Some(kind), None) => self.group_block(id, node, kind),
            (None, Some(desc)) => self.other_array(id, node, desc),
            (None, None) => Ok(()),
        }
    }

    /// Writes header and metadata of a block with the identifier and the name of `node`. Returns the
    /// location of the data.
    fn write_block(
        &mut self,
        id: NodeId,
        (kind, datatype): (BlockType, DataType),
        meta: &Meta,
        length: u64,
        inside: Option<Extent>,
    ) -> Result<Extent> {
        let node = self.tree.node(id);
        let block_id = node.id.as_deref().unwrap_or(&node.path);
        let layout = self.output.layout();
        let header = layout.header(block_id, block_name(node), kind, datatype, meta, length)?;
        self.reserve(Some(id), header, meta, length, inside)
    }

    /// Writes a block whose data are one array.
    fn array_block(
        &mut self,
        id: NodeId,
        node: &'a Node,
        kind: BlockType,
        desc: &ArrayDesc,
    ) -> Result<()> {
        let form = self.form(desc)?;
        let attrs = &node.attrs;
        let shape = form.lengths.clone();
        let datatype = DataType::of(form.dtype).ok_or_else(|| no_type(form.dtype))?;
        let mult = || match desc.map {
            None => Ok(attrs.get_f64("mult").unwrap_or(1.0)),
            Some(map) => factor(map),
        };
        // Blocks of an unknown type and constants of an unknown data type.
        let unknown = attrs.contains("metadata");
        let meta = match Meta::of(kind) {
            _ if unknown => return self.unknown(id, node, kind, desc),
            Meta::PlainVariable(_) => Meta::PlainVariable(PlainVariable {
                mult: mult()?,
                units: attrs::text(attrs, "units"),
                mesh_id: attrs::text(attrs, "mesh"),
                dims: shape,
                stagger: attrs::i32(attrs, "stagger"),
            }),
            Meta::PointVariable(_) => Meta::PointVariable(PointVariable {
                mult: mult()?,
                units: attrs::text(attrs, "units"),
                mesh_id: attrs::text(attrs, "mesh"),
                np: shape.iter().product(),
                species_id: attrs::text(attrs, "species"),
            }),
            Meta::Constant(_) => Meta::Constant(self.elements(desc, &form)?),
            Meta::Array(_) => Meta::Array(dimensions(form.dtype, shape)),
            Meta::Source => Meta::Source,
            Meta::CpuSplit { .. } => Meta::CpuSplit {
                split_type: attrs::i32(attrs, "split_type"),
                dims: attrs::u64_list(attrs, "split_dims"),
            },
            Meta::Datablock { .. } => Meta::Datablock {
                mimetype: attrs::text(attrs, "mimetype"),
                checksum_type: attrs::text(attrs, "checksum_type"),
                checksum: attrs::text(attrs, "checksum"),
            },
            _ => return Err(unsupported(format!("a {} without metadata", kind.name()))),
        };
        let types = (kind, datatype);
        if let Some(extent) = self.inside.get(&id).copied() {
            return self.write_block(id, types, &meta, extent.len, Some(extent)).map(drop);
        }
        if let Meta::Constant(_) = meta {
            return self.write_block(id, types, &meta, 0, None).map(drop);
        }
        let extent = self.write_block(id, types, &meta, form.bytes, None)?;
        self.fill(extent.offset, desc)
    }

    /// Writes a block of an unknown type with its original metadata.
    fn unknown(
        &mut self,
        id: NodeId,
        node: &Node,
        kind: BlockType,
        desc: &ArrayDesc,
    ) -> Result<()> {
        if node.attrs.contains("byte_order") {
            return Err(unsupported("a block of an unknown type from a big-endian file"));
        }
        let Some(Value::Bytes(meta)) = node.attrs.get("metadata") else {
            return Err(unsupported(format!("a {} without metadata", kind.name())));
        };
        let header = BlockHeader {
            id: node.id.clone().unwrap_or_default(),
            name: block_name(node).into(),
            blocktype: kind.code(),
            datatype: stored_datatype(&node.attrs),
            ndims: node.attrs.get_i64("ndims").unwrap_or(0).unsigned_abs(),
            ..BlockHeader::default()
        };
        let (meta, length) = (Meta::Other(meta.clone()), self.form(desc)?.bytes);
        let extent = self.reserve(Some(id), header, &meta, length, None)?;
        self.fill(extent.offset, desc)
    }

    /// Writes a block that is a group in the tree.
    fn group_block(&mut self, id: NodeId, node: &'a Node, kind: BlockType) -> Result<()> {
        let attrs = &node.attrs;
        match Meta::of(kind) {
            Meta::Mesh(_) | Meta::PointMesh(_) => self.mesh(id, node, kind),
            Meta::Station(_) => self.station(id, node),
            Meta::RunInfo(_) => {
                let meta = Meta::RunInfo(RunInfo {
                    code_version: attrs::i32(attrs, "code_version"),
                    code_revision: attrs::i32(attrs, "code_revision"),
                    commit_id: attrs::text(attrs, "commit_id"),
                    sha1sum: attrs::text(attrs, "sha1sum"),
                    compile_machine: attrs::text(attrs, "compile_machine"),
                    compile_flags: attrs::text(attrs, "compile_flags"),
                    defines: attrs.get_i64("defines").unwrap_or(0),
                    compile_date: attrs::i32(attrs, "compile_date"),
                    run_date: attrs::i32(attrs, "run_date"),
                    io_date: attrs::i32(attrs, "io_date"),
                    minor_rev: attrs::i32(attrs, "minor_rev"),
                });
                self.write_block(id, (kind, DataType::Other), &meta, 0, None).map(drop)
            }
            Meta::NameValue { .. } => {
                // The reserved attributes come first; the file may contain the same names again.
                let mut reserved: HashSet<&str> = [TYPE, NAME, DATATYPE].into_iter().collect();
                let rest = attrs.iter().filter(|(name, _)| !reserved.remove(name));
                let (names, values) =
                    rest.map(|(name, value)| (name.to_string(), value.clone())).unzip();
                let meta = Meta::NameValue { names, values };
                self.write_block(id, (kind, stored_datatype(attrs)), &meta, 0, None).map(drop)
            }
            Meta::Stitched(_) => {
                let meta = Meta::Stitched(stitched(attrs));
                self.write_block(id, (kind, stored_datatype(attrs)), &meta, 0, None).map(drop)
            }
            _ => Err(unsupported(format!("a {} without data", kind.name()))),
        }
    }

    /// Writes a mesh: the arrays of the group, one per direction, are its data.
    fn mesh(&mut self, id: NodeId, node: &'a Node, kind: BlockType) -> Result<()> {
        let axes = self.arrays(id);
        self.owned.extend(axes.iter().map(|(id, ..)| *id));
        let mut mesh = Mesh {
            geometry: attrs::i32(&node.attrs, "geometry"),
            minval: attrs::f64_list(&node.attrs, "minval"),
            maxval: attrs::f64_list(&node.attrs, "maxval"),
            ..Mesh::default()
        };
        let (mut arrays, mut length) = (Vec::new(), 0_u64);
        for (_, axis, desc) in axes {
            let form = self.form(desc)?;
            mesh.labels.push(label(axis));
            mesh.units.push(attrs::text(&axis.attrs, "units"));
            let unscaled = axis.attrs.get_f64("mult").unwrap_or(1.0);
            mesh.mults.push(desc.map.map_or(Ok(unscaled), factor)?);
            if kind == BlockType::LagrangianMesh {
                mesh.dims.clone_from(&form.lengths);
            } else {
                mesh.dims.extend_from_slice(&form.lengths);
            }
            length = length.saturating_add(form.bytes);
            arrays.push((desc, form));
        }
        if mesh.minval.len() > mesh.labels.len() {
            let (expected, found) = (mesh.minval.len(), mesh.labels.len());
            let message =
                format!("expected a mesh with {expected} coordinate arrays, found {found}");
            return Err(unsupported(message));
        }
        mesh.minval.resize(mesh.labels.len(), 0.0);
        mesh.maxval.resize(mesh.labels.len(), 0.0);
        let datatype = arrays.first().and_then(|(_, form)| DataType::of(form.dtype));
        let same = |(_, form): &(_, Form)| DataType::of(form.dtype) == datatype;
        let Some(datatype) = datatype.filter(|_| arrays.iter().all(same)) else {
            return Err(unsupported("a mesh whose coordinate arrays have different types"));
        };
        let meta = if kind == BlockType::PointMesh {
            let np = mesh.dims.first().copied().unwrap_or(0);
            mesh.dims.clear();
            let species_id = attrs::text(&node.attrs, "species");
            Meta::PointMesh(PointMesh { mesh, np, species_id })
        } else {
            Meta::Mesh(mesh)
        };
        let header = self.block_header(node, kind, datatype, &meta);
        let mut at = self.reserve(Some(id), header, &meta, length, None)?.offset;
        for (desc, form) in arrays {
            self.fill(at, desc)?;
            at += form.bytes;
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
            id: self.output.layout().unique_id(node.id.as_deref().unwrap_or(&node.path)),
            name: block_name(node).into(),
            blocktype: kind.code(),
            datatype,
            ndims: meta.ndims(),
            ..BlockHeader::default()
        }
    }

    /// Writes a contiguous block with the data of its members. The member blocks are written later
    /// and refer to these data.
    fn contiguous(&mut self, id: NodeId, node: &'a Node) -> Result<()> {
        let Some(kind) = kind(node) else { return Ok(()) };
        let group = stitched(&node.attrs);
        let mut members = Vec::new();
        let mut length = 0_u64;
        for member_id in &group.ids {
            let member = self.ids.get(member_id.as_str()).copied();
            let desc = member.and_then(|member| self.tree.node(member).array.as_ref());
            let (Some(member), Some(desc)) = (member, desc) else {
                return Err(unsupported(format!("no member named \"{member_id}\"")));
            };
            let bytes = self.form(desc)?.bytes;
            length = length.saturating_add(bytes);
            members.push((member, desc, bytes));
        }
        let meta = Meta::Stitched(group);
        let header = self.block_header(node, kind, stored_datatype(&node.attrs), &meta);
        let mut at = self.reserve(Some(id), header, &meta, length, None)?.offset;
        for (member, desc, len) in members {
            self.fill(at, desc)?;
            self.inside.insert(member, Extent { offset: at, len });
            at += len;
        }
        Ok(())
    }
}

fn stitched(attrs: &Attrs) -> Stitched {
    Stitched {
        stagger: attrs::i32(attrs, "stagger"),
        mesh_id: attrs::text(attrs, "mesh"),
        material_id: attrs::text(attrs, "material"),
        material_name: attrs::text(attrs, "material_name"),
        names: attrs::strings(attrs, "names"),
        ids: attrs::strings(attrs, "parts"),
    }
}

/// Name of the block of `node`.
fn block_name(node: &Node) -> &str {
    node.attrs.get_str(NAME).unwrap_or(&node.path)
}

/// Data type stored as an attribute.
fn stored_datatype(attrs: &Attrs) -> DataType {
    DataType::from_name(&attrs::text(attrs, DATATYPE)).unwrap_or_default()
}

/// Name of a coordinate, station or variable in the file, which may differ from the node's name.
fn label(node: &Node) -> String {
    node.attrs.get("label").map_or_else(|| node.name.clone(), ToString::to_string)
}

/// The factor of a linear scaling. Fails if it has an offset.
fn factor(map: Linear) -> Result<f64> {
    match map.coefficients() {
        (0.0, slope) => Ok(slope),
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
