//! Any tree as SDF. Nodes that were blocks become those blocks again; other arrays become blocks
//! of their own, with a mesh where they have coordinates.

use std::collections::{HashMap, HashSet};

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Extent, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::points::DERIVED;
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::{Attrs, Node, NodeId, Tree, Value};

use crate::kind::BlockType;
use crate::meta::{
    Mesh, Meta, PlainVariable, PointMesh, PointVariable, RunInfo, Station, Stitched,
};
use crate::said::{count, list, real, reals, said, small, text, texts, whole};
use crate::view::{DATATYPE, NAME, TYPE};
use crate::wire::{BlockHeader, DataType, FileHeader};
use crate::write::{Data, Writer};

/// Rows of a station table that are put together at once.
const ROWS: u64 = 4096;

/// Writes what is in `content` as SDF; `sink` is committed by the caller.
pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let tree = content.tree();
    let mut children: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    let mut ids = HashMap::new();
    for (id, node) in tree.iter() {
        children.entry(node.parent).or_default().push(id);
        if let (Some(word), true) = (&node.id, said(&node.attrs, TYPE).is_some()) {
            ids.entry(word.as_str()).or_insert(id);
        }
    }
    let header = header(tree);
    let mut converter = Converter {
        content,
        tree,
        limits,
        writer: Writer::new(sink, &header)?,
        children,
        ids,
        owned: HashSet::new(),
        inside: HashMap::new(),
    };
    for (id, node) in tree.iter() {
        if kind(node).is_some_and(BlockType::is_contiguous) {
            converter.contiguous(id, node).map_err(|e| e.in_object(quoted(node)))?;
        }
    }
    for (id, node) in tree.iter() {
        converter.node(id, node).map_err(|e| e.in_object(quoted(node)))?;
    }
    converter.writer.finish()
}

fn quoted(node: &Node) -> String {
    format!("\"{}\"", node.path)
}

fn kind(node: &Node) -> Option<BlockType> {
    BlockType::from_name(&text(&node.attrs, TYPE))
}

pub(crate) fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("sdf-050", message)
}

/// The file header that the root tells of, with strings as long as the longest name.
fn header(tree: &Tree) -> FileHeader {
    let root = tree.attrs();
    let flag = |name: &str| said(root, name) == Some(&Value::Bool(true));
    let of_value = |value: &Value| match value {
        Value::Text(text) => text.len(),
        Value::List(list) => {
            let texts = list.iter().map(|v| if let Value::Text(t) = v { t.len() } else { 0 });
            texts.max().unwrap_or(0)
        }
        _ => 0,
    };
    let of_node = |node: &Node| {
        let block = said(&node.attrs, TYPE).is_some();
        let attrs = node.attrs.iter().filter(|_| block);
        attrs.map(|(name, v)| name.len().max(of_value(v))).max().unwrap_or(0).max(node.path.len())
    };
    let longest = tree.iter().map(|(_, node)| of_node(node)).max().unwrap_or(0) as u64;
    let default = FileHeader::default();
    let known = said(root, "code_name").is_some();
    FileHeader {
        code_name: if known { text(root, "code_name") } else { "spile".into() },
        step: small(root, "step"),
        time: real(root, "time").unwrap_or(0.0),
        jobid: (small(root, "jobid1"), small(root, "jobid2")),
        code_io_version: if known { small(root, "code_io_version") } else { 1 },
        restart: flag("restart_flag"),
        subdomain: flag("subdomain_file"),
        station: flag("station_file"),
        string_length: default.string_length.max(longest.next_power_of_two()),
        ..default
    }
}

pub(crate) struct Converter<'a> {
    content: &'a dyn Reader,
    pub(crate) tree: &'a Tree,
    pub(crate) limits: &'a Limits,
    pub(crate) writer: Writer<'a>,
    children: HashMap<NodeId, Vec<NodeId>>,
    /// Blocks by their identifiers.
    ids: HashMap<&'a str, NodeId>,
    /// Arrays that are part of another node's block.
    owned: HashSet<NodeId>,
    /// Where the data of the parts of contiguous blocks are.
    inside: HashMap<NodeId, Extent>,
}

impl<'a> Converter<'a> {
    pub(crate) fn open(&self, desc: &ArrayDesc) -> Result<Array> {
        if let Layout::PerFrame(_) = self.tree.resolve(desc)?.layout {
            return Err(unsupported("an SDF file is one moment; choose a frame"));
        }
        Array::open(self.content.source(), self.tree, desc, self.limits)
    }

    /// The arrays directly below a node that are not computed from others.
    fn arrays(&self, id: NodeId) -> Vec<(NodeId, &'a Node, &'a ArrayDesc)> {
        let below = self.children.get(&id).map_or(&[][..], |c| c);
        let nodes = below.iter().map(|id| (*id, self.tree.node(*id)));
        nodes
            .filter(|(_, n)| said(&n.attrs, DERIVED).is_none() && said(&n.attrs, TYPE).is_none())
            .filter_map(|(id, node)| Some((id, node, node.array.as_ref()?)))
            .collect()
    }

    fn node(&mut self, id: NodeId, node: &'a Node) -> Result<()> {
        if self.owned.contains(&id) || said(&node.attrs, DERIVED).is_some() {
            return Ok(());
        }
        match (kind(node), &node.array) {
            (Some(kind), _) if kind.is_contiguous() => Ok(()),
            (Some(kind), Some(desc)) => self.array_block(id, node, kind, desc),
            (Some(kind), None) => self.group_block(id, node, kind),
            (None, Some(desc)) => self.plain_array(node, desc),
            (None, None) => Ok(()),
        }
    }

    pub(crate) fn put(
        &mut self,
        node: &Node,
        kind: BlockType,
        datatype: DataType,
        meta: &Meta,
        data: Data<'_>,
    ) -> Result<Extent> {
        let name = match said(&node.attrs, NAME) {
            Some(Value::Text(name)) => name,
            _ => &node.path,
        };
        let id = node.id.as_deref().unwrap_or(&node.path);
        self.writer.block(id, name, kind, datatype, meta, data).map(|(_, extent)| extent)
    }

    /// A block whose data are one array.
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
        let datatype = DataType::of(array.dtype())
            .ok_or_else(|| unsupported(format!("SDF has no {} elements", array.dtype())))?;
        let mult = || match desc.map {
            Some(Linear { intercept: 0.0, slope, .. }) => Ok(slope),
            Some(_) => Err(unsupported("SDF has factors, but nothing to add to values")),
            None => Ok(real(attrs, "mult").unwrap_or(1.0)),
        };
        // A constant of an unknown type is kept like a block of one.
        let unknown = said(attrs, "metadata").is_some();
        let meta = match Meta::of(kind) {
            _ if unknown => return self.unknown(node, kind, &array),
            Meta::PlainVariable(_) => Meta::PlainVariable(PlainVariable {
                mult: mult()?,
                units: text(attrs, "units"),
                mesh_id: text(attrs, "mesh"),
                dims: shape,
                stagger: small(attrs, "stagger"),
            }),
            Meta::PointVariable(_) => Meta::PointVariable(PointVariable {
                mult: mult()?,
                units: text(attrs, "units"),
                mesh_id: text(attrs, "mesh"),
                np: shape.iter().product(),
                species_id: text(attrs, "species"),
            }),
            Meta::Constant(_) => Meta::Constant(array.read(&Selection::all(), Axes::Stored)?),
            Meta::Array(_) => Meta::Array(dimensions(array.dtype(), shape)),
            Meta::Source => Meta::Source,
            Meta::CpuSplit { .. } => Meta::CpuSplit {
                split_type: small(attrs, "split_type"),
                dims: list(attrs, "split_dims").iter().map(count).collect(),
            },
            Meta::Datablock { .. } => Meta::Datablock {
                mimetype: text(attrs, "mimetype"),
                checksum_type: text(attrs, "checksum_type"),
                checksum: text(attrs, "checksum"),
            },
            _ => return Err(unsupported(format!("a {} without metadata", kind.name()))),
        };
        if let Some(extent) = self.inside.get(&id).copied() {
            return self.put(node, kind, datatype, &meta, Data::Inside(extent)).map(drop);
        }
        if let Meta::Constant(_) = meta {
            return self.put(node, kind, datatype, &meta, Data::None).map(drop);
        }
        let selected = array.select(&Selection::all(), Axes::Order(Order::F))?;
        self.put(node, kind, datatype, &meta, Data::Array(&selected)).map(drop)
    }

    fn unknown(&mut self, node: &Node, kind: BlockType, array: &Array) -> Result<()> {
        if said(&node.attrs, "byte_order").is_some() {
            return Err(unsupported("a block of an unknown type in the other byte order"));
        }
        let datatype = DataType::from_name(&text(&node.attrs, DATATYPE)).unwrap_or_default();
        let Some(Value::Bytes(meta)) = said(&node.attrs, "metadata") else {
            return Err(unsupported(format!("a {} without metadata", kind.name())));
        };
        let header = BlockHeader {
            id: node.id.clone().unwrap_or_default(),
            name: if said(&node.attrs, NAME).is_some() {
                text(&node.attrs, NAME)
            } else {
                node.path.clone()
            },
            blocktype: kind.code(),
            datatype,
            ndims: whole(&node.attrs, "ndims").unsigned_abs(),
            ..BlockHeader::default()
        };
        let length = array.shape().bytes(array.dtype().size())?;
        let extent = self.writer.reserve(header, &Meta::Other(meta.clone()), length, None)?;
        self.writer.fill_from(extent.offset, &array.all()?)
    }

    /// A block that is a group in the tree.
    fn group_block(&mut self, id: NodeId, node: &'a Node, kind: BlockType) -> Result<()> {
        let attrs = &node.attrs;
        match Meta::of(kind) {
            Meta::Mesh(_) | Meta::PointMesh(_) => self.mesh(id, node, kind),
            Meta::Station(_) => self.station(id, node),
            Meta::RunInfo(_) => {
                let meta = Meta::RunInfo(RunInfo {
                    code_version: small(attrs, "code_version"),
                    code_revision: small(attrs, "code_revision"),
                    commit_id: text(attrs, "commit_id"),
                    sha1sum: text(attrs, "sha1sum"),
                    compile_machine: text(attrs, "compile_machine"),
                    compile_flags: text(attrs, "compile_flags"),
                    defines: whole(attrs, "defines"),
                    compile_date: small(attrs, "compile_date"),
                    run_date: small(attrs, "run_date"),
                    io_date: small(attrs, "io_date"),
                    minor_rev: small(attrs, "minor_rev"),
                });
                self.put(node, kind, DataType::Other, &meta, Data::None).map(drop)
            }
            Meta::NameValue { .. } => {
                let ours = [TYPE, NAME, DATATYPE];
                let mut ours: HashSet<&str> = ours.into_iter().collect();
                // Ours come first; a name of the file's own that is the same stays.
                let rest = attrs.iter().filter(|(name, _)| !ours.remove(name.as_str()));
                let (names, values) = rest.cloned().unzip();
                let datatype = DataType::from_name(&text(attrs, DATATYPE)).unwrap_or_default();
                let meta = Meta::NameValue { names, values };
                self.put(node, kind, datatype, &meta, Data::None).map(drop)
            }
            Meta::Stitched(_) => {
                let datatype = DataType::from_name(&text(attrs, DATATYPE)).unwrap_or_default();
                let meta = Meta::Stitched(stitched(attrs));
                self.put(node, kind, datatype, &meta, Data::None).map(drop)
            }
            _ => Err(unsupported(format!("a {} without data", kind.name()))),
        }
    }

    fn mesh(&mut self, id: NodeId, node: &'a Node, kind: BlockType) -> Result<()> {
        let axes = self.arrays(id);
        self.owned.extend(axes.iter().map(|(id, ..)| *id));
        let mut mesh = Mesh {
            geometry: small(&node.attrs, "geometry"),
            minval: reals(&node.attrs, "minval"),
            maxval: reals(&node.attrs, "maxval"),
            ..Mesh::default()
        };
        let (mut arrays, mut length) = (Vec::new(), 0_u64);
        for (_, axis, desc) in axes {
            let array = self.open(desc)?;
            mesh.labels.push(label(axis));
            mesh.units.push(text(&axis.attrs, "units"));
            let unused = real(&axis.attrs, "mult").unwrap_or(1.0);
            mesh.mults.push(desc.map.map_or(unused, |map| map.slope));
            if kind == BlockType::LagrangianMesh {
                mesh.dims = array.shape().lengths().to_vec();
            } else {
                mesh.dims.extend_from_slice(array.shape().lengths());
            }
            length = length.saturating_add(array.shape().bytes(array.dtype().size())?);
            arrays.push(array);
        }
        if mesh.minval.len() > mesh.labels.len() {
            return Err(unsupported("a mesh whose coordinates are not all there"));
        }
        mesh.minval.resize(mesh.labels.len(), 0.0);
        mesh.maxval.resize(mesh.labels.len(), 0.0);
        let datatype = arrays.first().and_then(|a| DataType::of(a.dtype()));
        let same = |a: &Array| DataType::of(a.dtype()) == datatype;
        let Some(datatype) = datatype.filter(|_| arrays.iter().all(same)) else {
            return Err(unsupported("a mesh without coordinates of one type"));
        };
        let meta = if kind == BlockType::PointMesh {
            let np = mesh.dims.first().copied().unwrap_or(0);
            mesh.dims.clear();
            let species_id = text(&node.attrs, "species");
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

    pub(crate) fn block_header(
        &self,
        node: &Node,
        kind: BlockType,
        datatype: DataType,
        meta: &Meta,
    ) -> BlockHeader {
        let name = if said(&node.attrs, NAME).is_some() {
            text(&node.attrs, NAME)
        } else {
            node.path.clone()
        };
        BlockHeader {
            id: self.writer.unique(node.id.as_deref().unwrap_or(&node.path)),
            name,
            blocktype: kind.code(),
            datatype,
            ndims: meta.ndims(),
            ..BlockHeader::default()
        }
    }

    /// A contiguous block: the data of its parts, one after the other. The parts themselves, which
    /// follow, point into it.
    fn contiguous(&mut self, _: NodeId, node: &'a Node) -> Result<()> {
        let Some(kind) = kind(node) else { return Ok(()) };
        let group = stitched(&node.attrs);
        let mut parts = Vec::new();
        let mut length = 0_u64;
        for id in &group.ids {
            let part = self.ids.get(id.as_str()).copied();
            let desc = part.and_then(|part| self.tree.node(part).array.as_ref());
            let (Some(part), Some(desc)) = (part, desc) else {
                return Err(unsupported(format!("the part \"{id}\" is missing")));
            };
            let array = self.open(desc)?;
            length = length.saturating_add(array.shape().bytes(array.dtype().size())?);
            parts.push((part, array));
        }
        let datatype = DataType::from_name(&text(&node.attrs, DATATYPE)).unwrap_or_default();
        let meta = Meta::Stitched(group);
        let header = self.block_header(node, kind, datatype, &meta);
        let mut at = self.writer.reserve(header, &meta, length, None)?.offset;
        for (part, array) in parts {
            let len = array.shape().bytes(array.dtype().size())?;
            self.writer.fill_from(at, &array.select(&Selection::all(), Axes::Order(Order::F))?)?;
            self.inside.insert(part, Extent { offset: at, len });
            at += len;
        }
        Ok(())
    }

    /// Stations: the columns of all tables put together to rows.
    fn station(&mut self, id: NodeId, node: &'a Node) -> Result<()> {
        let attrs = &node.attrs;
        let mut station = Station {
            step0: small(attrs, "step0"),
            step_inc: small(attrs, "step_inc"),
            time0: real(attrs, "time0").unwrap_or(0.0),
            time_inc: real(attrs, "time_inc").unwrap_or(0.0),
            ..Station::default()
        };
        let mut columns = self.arrays(id);
        // Beside the time are variables of no station; they go last.
        let others = columns.split_off(columns.len().min(1));
        let mut positions = Vec::new();
        for below in self.children.get(&id).cloned().unwrap_or_default() {
            let table = self.tree.node(below);
            if table.array.is_some() {
                continue;
            }
            let variables = self.arrays(below);
            station.station_ids.push(table.id.clone().unwrap_or_default());
            station.station_names.push(label(table));
            station.station_nvars.push(variables.len() as u64);
            station.station_move.push(small(&table.attrs, "move"));
            positions.push(reals(&table.attrs, "position"));
            columns.extend(variables);
        }
        columns.extend(others);
        let ndims = positions.first().map_or(0, Vec::len);
        station.station_x0 = (0..ndims)
            .flat_map(|d| positions.iter().map(move |p| p.get(d).copied().unwrap_or(0.0)))
            .collect();
        let mut arrays = Vec::new();
        for (id, column, desc) in columns {
            self.owned.insert(id);
            let array = self.open(desc)?;
            let datatype = DataType::of(array.dtype());
            station.variable_ids.push(column.id.clone().unwrap_or_default());
            station.variable_names.push(label(column));
            station.variable_types.push(datatype.unwrap_or_default());
            station.variable_units.push(text(&column.attrs, "units"));
            let mult = desc.map.map(|map| map.slope);
            station.variable_mults.get_or_insert_default().push(mult.unwrap_or(1.0));
            station.entry_len += array.dtype().size() as u64;
            station.nelements = array.shape().count().unwrap_or(0);
            arrays.push(array);
        }
        // Factors of 1 need not be stored.
        station.variable_mults = station.variable_mults.filter(|m| m.iter().any(|m| *m != 1.0));
        let (rows, width) = (station.nelements, station.entry_len);
        if arrays.iter().any(|a| a.shape().lengths() != [rows]) {
            return Err(unsupported("stations whose variables have different lengths"));
        }
        let meta = Meta::Station(Box::new(station));
        let header = self.block_header(node, BlockType::Station, DataType::Other, &meta);
        let length = rows.saturating_mul(width);
        let extent = self.writer.reserve(header, &meta, length, None)?;
        for first in (0..rows).step_by(ROWS as usize) {
            let count = ROWS.min(rows - first);
            let mut table = vec![0; (count * width) as usize];
            let mut at = 0;
            for array in &arrays {
                let size = array.dtype().size();
                let (start, stop) = (Some(first as i64), Some((first + count) as i64));
                let part = Selection(vec![Slice::Range { start, stop, step: 1 }]);
                let column = array.read(&part, Axes::Stored)?;
                let cells = table.chunks_mut(width as usize).zip(column.chunks(size));
                cells.for_each(|(row, cell)| row[at..at + size].copy_from_slice(cell));
                at += size;
            }
            self.writer.fill(extent.offset + first * width, None, &table)?;
        }
        Ok(())
    }
}

fn stitched(attrs: &Attrs) -> Stitched {
    Stitched {
        stagger: small(attrs, "stagger"),
        mesh_id: text(attrs, "mesh"),
        material_id: text(attrs, "material"),
        material_name: text(attrs, "material_name"),
        names: texts(attrs, "names"),
        ids: texts(attrs, "parts"),
    }
}

/// The name in the file, where the node could not have it.
fn label(node: &Node) -> String {
    said(&node.attrs, "label").map_or_else(|| node.name.clone(), ToString::to_string)
}

/// The dimensions of an array block: those of strings begin with their length.
pub(crate) fn dimensions(dtype: DType, shape: Vec<u64>) -> Vec<u64> {
    let text = (dtype.kind() == Kind::Text).then_some(dtype.size() as u64);
    text.into_iter().chain(shape).collect()
}
