//! Writes any dataset as SDF. Nodes that were read from SDF blocks become the same blocks; other
//! arrays become new blocks, with a mesh if they have coordinates.

mod attrs;
mod groups;
mod losses;
mod new_blocks;
mod station;

use std::collections::{HashMap, HashSet};
use std::path::Path;

use spile_core::format::{Capabilities, FormatWriter, Loss, WriteOptions};
use spile_core::{
    Array, ArrayDesc, Attrs, DType, Dataset, Error, Extent, Hint, Kind, Linear, Node, NodeId,
    Order, Result, Shape, Sink, Tree, Value,
};
use spile_interchange::midpoints::DERIVED;

use self::new_blocks::{MAX_RANK, is_block_name, is_exact_type};
use crate::Sdf;
use crate::block::Block;
use crate::to_tree::{BLOCK_INFO, DATATYPE, NAME, TYPE};
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Meta, PlainVariable, PointVariable};
use crate::wire::{BlockHeader, DataType, FileHeader};
use crate::write::{FileLayout, Writer};

impl FormatWriter for Sdf {
    fn capabilities(&self) -> Option<Capabilities> {
        Some(Capabilities {
            rank: MAX_RANK,
            order: Order::F,
            frames: false,
            dtype: is_exact_type,
            byte: DType::opaque(1),
            name: is_block_name,
            adds: &[],
        })
    }

    fn keeps_scaling(&self) -> bool {
        true
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        losses::losses(content)
    }

    /// Fails if SDF cannot express an array (sdf-050).
    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let writer = Writer::new(sink, &header(content.tree()))?;
        let done = TreeWriter::new(content, Output::File(writer)).write()?;
        if let Output::File(writer) = done.output {
            writer.finish()?;
        }
        Ok(Vec::new())
    }
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
    fn layout(&mut self) -> &mut FileLayout {
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
        if desc.layout.frames().is_some() {
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
            Some(array) => array.bytes(),
            None => Ok(vec![0; self.content.limits().allow(form.bytes, "a constant")?]),
        }
    }

    /// Writes all elements of an array at offset `at`.
    fn fill(&mut self, at: u64, desc: &ArrayDesc) -> Result<()> {
        let Output::File(writer) = &mut self.output else { return Ok(()) };
        let array = self.content.open_array(desc)?;
        writer.fill_from(at, &array.all_in(Order::F)?)
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
            (None, Some(desc)) => self.new_block(id, node, desc),
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
        let unknown = attrs.contains(BLOCK_INFO);
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
        let inside = self.inside.get(&id).copied();
        let length = if let Meta::Constant(_) = meta { 0 } else { form.bytes };
        let extent = self.write_block(id, (kind, datatype), &meta, length, inside)?;
        // The data of a constant are in its metadata, those of a member in its contiguous block.
        if inside.is_some() || length == 0 {
            return Ok(());
        }
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
        let Some(Value::Bytes(meta)) = node.attrs.get(BLOCK_INFO) else {
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
