//! Blocks to tree. The names of blocks, split at `/`, are paths. Meshes are groups of coordinate
//! arrays, stitched blocks are groups that refer to their members.

mod paths;
pub(crate) mod station;

use std::collections::{HashMap, HashSet};

use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::format::Parsed;
use spile_core::layout::{ArrayDesc, Extents, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::semantics::{Role, Semantics};
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};
use spile_core::wire::ByteOrder;
use spile_interchange::midpoints::DERIVED;

pub(crate) use self::paths::split_path;
use crate::index::Block;
use crate::read::File;
use crate::semantics::{Meshes, surfaces};
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Mesh, Meta, RunInfo, Station, Stitched};
use crate::wire::{DataType, FileHeader};

/// Attribute with the type of the block. All nodes that are blocks have it.
pub(crate) const TYPE: &str = "sdf_type";
/// Attribute with the name of the block, if it differs from the path.
pub(crate) const NAME: &str = "sdf_name";
/// Attribute with the name of the block, if it is more than the last part of the path (CF).
const LONG_NAME: &str = "long_name";
/// Attribute with the data type of the block, if it does not follow from the element type.
pub(crate) const DATATYPE: &str = "sdf_datatype";

/// Maximum length of strings in bytes; longer ones are arrays of bytes.
const MAX_STRING: u64 = 4096;

/// Parses `file`; `derived` adds computed arrays.
pub(crate) fn parse(file: File, derived: bool) -> Result<Parsed> {
    let source = file.source().clone();
    let computed = derived.then_some(&source);
    let Built { tree, report, .. } = build(file.header(), file.blocks(), computed, file.limits())?;
    let summary = file.summary();
    let parsed = Parsed::new(source, tree).with_summary(summary);
    Ok(parsed.with_warnings(report.findings).with_native(file))
}

/// The tree of a file.
pub(crate) struct Built {
    pub(crate) tree: Tree,
    /// Objects that cannot be read, and computed arrays that were omitted.
    pub(crate) report: Report,
    /// Node of each block.
    pub(crate) nodes: Vec<Option<NodeId>>,
}

/// Builds the tree of a file, with computed arrays if its bytes are given as `derived`.
pub(crate) fn build(
    file: &FileHeader,
    blocks: &[Block],
    derived: Option<&Source>,
    limits: &Limits,
) -> Result<Built> {
    let mut builder = Builder {
        file,
        blocks,
        limits,
        tree: Tree::new(limits),
        report: Report::default(),
        order: paths::order(blocks),
        nodes: vec![None; blocks.len()],
        axes: HashMap::new(),
        centres: HashMap::new(),
        block_groups: HashSet::new(),
        parents: HashMap::new(),
        meshes: Meshes::new(blocks),
    };
    builder.add_root_attrs()?;
    builder.tree.reserve(blocks.len() + blocks.len() / 8);
    for k in builder.order.clone() {
        builder.add_block(k)?;
    }
    for k in 0..blocks.len() {
        builder.set_coordinates(k)?;
    }
    if let Some(source) = derived {
        for k in 0..blocks.len() {
            builder.add_derived(k)?;
        }
        surfaces::add(&mut builder, source)?;
    }
    let mut ids = HashMap::new();
    if blocks.iter().any(|block| matches!(block.meta, Meta::Stitched(_))) {
        for (k, block) in blocks.iter().enumerate() {
            ids.entry(block.header.id.as_str()).or_insert(k);
        }
    }
    for (k, block) in blocks.iter().enumerate() {
        if let Meta::Stitched(group) = &block.meta {
            builder.add_stitched(k, group, &ids)?;
        }
    }
    let Builder { tree, report, nodes, .. } = builder;
    Ok(Built { tree, report, nodes })
}

/// Tree under construction.
pub(crate) struct Builder<'a> {
    pub(crate) file: &'a FileHeader,
    pub(crate) blocks: &'a [Block],
    pub(crate) limits: &'a Limits,
    pub(crate) tree: Tree,
    pub(crate) report: Report,
    /// Block indices in the order in which they are added.
    pub(crate) order: Vec<usize>,
    /// Node of each block.
    pub(crate) nodes: Vec<Option<NodeId>>,
    /// Coordinate arrays of each mesh, by block index.
    pub(crate) axes: HashMap<usize, Vec<NodeId>>,
    /// Array of cell centres of each coordinate array, if it can be computed.
    pub(crate) centres: HashMap<NodeId, Option<NodeId>>,
    /// Groups that are blocks.
    block_groups: HashSet<NodeId>,
    parents: HashMap<&'a str, NodeId>,
    pub(crate) meshes: Meshes,
}

impl<'a> Builder<'a> {
    fn add_root_attrs(&mut self) -> Result<()> {
        let file = self.file;
        let attrs = Attrs::from([
            ("code_name", file.code_name.as_str().into()),
            ("step", Value::Int(file.step.into())),
            ("time", file.time.into()),
            ("jobid1", Value::Int(file.jobid.0.into())),
            ("jobid2", Value::Int(file.jobid.1.into())),
            ("code_io_version", Value::Int(file.code_io_version.into())),
            ("restart_flag", file.restart.into()),
            ("subdomain_file", file.subdomain.into()),
            ("station_file", file.station.into()),
        ]);
        self.tree.set_attrs(ROOT, attrs)
    }

    fn add_block(&mut self, k: usize) -> Result<()> {
        let block = &self.blocks[k];
        match &block.meta {
            Meta::Mesh(mesh) => self.add_mesh(k, mesh),
            Meta::PointMesh(points) => {
                let node = self.add_group(k)?;
                if !points.species_id.is_empty() {
                    self.tree.push_attr(node, "species", points.species_id.as_str())?;
                }
                self.add_axes(k, node, &points.mesh, &[points.np], points.np)
            }
            Meta::PlainVariable(v) => {
                let mut desc = self.shaped(block, &v.dims);
                let mut attrs = variable(&mut desc, v.mult, &v.units, &v.mesh_id);
                attrs.push("stagger", Value::Int(v.stagger.into()));
                self.add_array(k, desc, attrs)
            }
            Meta::PointVariable(v) => {
                let mut desc = self.shaped(block, &[v.np]);
                let mut attrs = variable(&mut desc, v.mult, &v.units, &v.mesh_id);
                push_text(&mut attrs, "species", &v.species_id);
                self.add_array(k, desc, attrs)
            }
            Meta::Constant(_) => {
                let desc = ArrayDesc {
                    shape: Shape::scalar(),
                    dims: vec![],
                    coords: vec![],
                    ..block.raw(self.file)
                };
                self.add_array(k, desc, Attrs::new())
            }
            Meta::Array(dims) => {
                let mut desc = strings(block, dims).unwrap_or_else(|| self.shaped(block, dims));
                if desc.dtype.kind() == Kind::Text {
                    desc.semantics_mut().role = Role::Text;
                }
                self.add_array(k, desc, Attrs::new())
            }
            Meta::RunInfo(info) => {
                let node = self.add_group(k)?;
                self.extend_attrs(node, run_info(info))
            }
            Meta::Source => {
                let desc = bytes(block).with_semantics(Semantics::role(Role::Text));
                self.add_array(k, desc, Attrs::new())
            }
            Meta::Stitched(_) => Ok(()),
            Meta::CpuSplit { split_type, dims } => {
                let shape: &[u64] = if matches!(split_type, 3 | 4) { dims } else { &[] };
                let desc =
                    if shape.is_empty() { block.raw(self.file) } else { self.shaped(block, shape) };
                let dims = dims.iter().map(|d| Value::UInt(*d)).collect();
                let attrs = Attrs::from([
                    ("split_type", Value::Int((*split_type).into())),
                    ("split_dims", Value::List(dims)),
                ]);
                self.add_array(k, desc, attrs)
            }
            Meta::Station(station) => self.add_stations(k, station),
            Meta::Datablock { mimetype, checksum_type, checksum } => {
                let mut desc = bytes(block);
                if mimetype.starts_with("text/") {
                    desc.semantics_mut().role = Role::Text;
                }
                let mut attrs = Attrs::new();
                push_text(&mut attrs, "mimetype", mimetype);
                push_text(&mut attrs, "checksum_type", checksum_type);
                push_text(&mut attrs, "checksum", checksum);
                self.add_array(k, desc, attrs)
            }
            Meta::NameValue { names, values } => {
                let node = self.add_group(k)?;
                self.tree.push_attr(node, DATATYPE, block.header.datatype.name())?;
                self.extend_attrs(node, names.iter().cloned().zip(values.iter().cloned()))
            }
            Meta::Other(_) if block.kind() == BlockType::Scrubbed => Ok(()),
            Meta::Other(meta) => {
                let mut attrs = Attrs::from([
                    (DATATYPE, block.header.datatype.name().into()),
                    ("ndims", block.header.ndims.into()),
                    ("metadata", Value::Bytes(meta.clone())),
                ]);
                // Metadata of an unknown type cannot be converted to another byte order.
                if self.file.order == ByteOrder::Big {
                    attrs.push("byte_order", "big");
                }
                self.add_array(k, bytes(block), attrs)
            }
        }
    }

    fn extend_attrs(
        &mut self,
        node: NodeId,
        attrs: impl IntoIterator<Item = (String, Value)>,
    ) -> Result<()> {
        attrs.into_iter().try_for_each(|(name, value)| self.tree.push_attr(node, &name, value))
    }

    /// Registers `node` as block `k`: identifier, type, names, then `attrs`.
    fn register(&mut self, k: usize, node: NodeId, attrs: Attrs) -> Result<()> {
        let header = &self.blocks[k].header;
        self.nodes[k] = Some(node);
        let own = self.tree.node_mut(node);
        own.id = Some(header.id.clone());
        let mut all = Attrs::from([(TYPE, self.blocks[k].kind().name().into())]);
        if own.path != header.name {
            all.push(NAME, header.name.as_str());
        }
        if own.array.is_some() && own.name != header.name && !header.name.is_empty() {
            all.push(LONG_NAME, header.name.as_str());
        }
        all.extend(attrs);
        self.tree.set_attrs(node, all)
    }

    fn add_array(&mut self, k: usize, desc: ArrayDesc, attrs: Attrs) -> Result<()> {
        let (parent, name) = split_path(&self.blocks[k]);
        let parent = self.parent_at(parent)?;
        let node = self.tree.add_array(parent, name, desc)?;
        self.register(k, node, attrs)
    }

    /// The node at `path`: an array, a group, or a new group. Cached, because thousands of blocks
    /// share a few parents.
    fn parent_at(&mut self, path: &'a str) -> Result<NodeId> {
        if let Some(known) = self.parents.get(path) {
            return Ok(*known);
        }
        let parent = self.tree.node_at(path)?;
        self.parents.insert(path, parent);
        Ok(parent)
    }

    /// Adds the group of block `k`, or uses the group that was created at its path for other blocks.
    fn add_group(&mut self, k: usize) -> Result<NodeId> {
        let (parent, name) = split_path(&self.blocks[k]);
        let parent = self.parent_at(parent)?;
        let existing = self
            .tree
            .child(parent, name)
            .filter(|id| self.tree.node(*id).array.is_none() && !self.block_groups.contains(id));
        let node = match existing {
            Some(node) => node,
            None => self.tree.add_group(parent, name)?,
        };
        self.block_groups.insert(node);
        self.register(k, node, Attrs::new())?;
        Ok(node)
    }

    /// The data of a block with shape `dims`, or one-dimensional if there are too few data.
    fn shaped(&self, block: &Block, dims: &[u64]) -> ArrayDesc {
        let length = block.header.data_length;
        let shape = Shape::new(dims);
        let dtype = block.header.datatype.dtype(self.file.order);
        let bytes = dtype.and_then(|d| shape.bytes(d.size()).ok()).filter(|b| *b <= length);
        match (dtype, bytes) {
            (Some(dtype), Some(bytes)) if !dims.is_empty() => {
                let extents = Extents::one(block.header.data_location, bytes);
                ArrayDesc::new(dtype, shape, Layout::Plain { extents, order: Order::F })
            }
            _ => block.raw(self.file),
        }
    }

    fn add_mesh(&mut self, k: usize, mesh: &Mesh) -> Result<()> {
        let node = self.add_group(k)?;
        if self.blocks[k].kind() == BlockType::LagrangianMesh {
            let count = Shape::new(mesh.dims.clone()).count().unwrap_or(u64::MAX);
            return self.add_axes(k, node, mesh, &mesh.dims, count);
        }
        self.add_axes(k, node, mesh, &[], 0)
    }

    /// Adds the coordinates of a mesh, one array per direction: `each` elements of shape `dims`, or
    /// the nodes along that direction if `dims` is empty.
    fn add_axes(
        &mut self,
        k: usize,
        node: NodeId,
        mesh: &Mesh,
        dims: &[u64],
        each: u64,
    ) -> Result<()> {
        let block = &self.blocks[k];
        let numbers =
            |values: &[f64]| Value::List(values.iter().map(|v| Value::Float(*v)).collect());
        self.tree.push_attr(node, "geometry", Value::Int(mesh.geometry.into()))?;
        self.tree.push_attr(node, "minval", numbers(&mesh.minval))?;
        self.tree.push_attr(node, "maxval", numbers(&mesh.maxval))?;
        let raw = block.raw(self.file);
        let size = raw.dtype.size() as u64;
        let mut start = 0_u64;
        let mut axes = Vec::new();
        for (axis, label) in mesh.labels.iter().enumerate() {
            let plain = dims.is_empty();
            let shape: &[u64] = if plain { std::slice::from_ref(&mesh.dims[axis]) } else { dims };
            let count = if plain { mesh.dims[axis] } else { each };
            let len = count.checked_mul(size);
            let end = len.and_then(|len| start.checked_add(len));
            let known = block.header.datatype.dtype(self.file.order).is_some();
            let Some(end) = end.filter(|end| *end <= block.header.data_length && known) else {
                let found = mesh.labels.len() - axis;
                let message = format!("{found} coordinate arrays of the mesh have no data");
                self.report.error("sdf-031", message).in_object(block.title()).at(block.offset);
                break;
            };
            let extents = Extents::one(block.header.data_location + start, end - start);
            let layout = Layout::Plain { extents, order: Order::F };
            let mut desc = ArrayDesc::new(raw.dtype, Shape::new(shape), layout);
            let semantics = desc.semantics_mut();
            semantics.role = Role::Mesh;
            semantics.point_set = self.particle_dim(k);
            let mut attrs = Attrs::new();
            desc.map = linear(mesh.mults[axis], &mut attrs);
            push_text(&mut attrs, "units", &mesh.units[axis]);
            let name = if label.is_empty() { format!("axis{}", axis + 1) } else { label.clone() };
            let dim = self.particle_dim(k).unwrap_or_else(|| name.clone());
            if shape.len() == 1 {
                desc.dims = vec![dim];
            }
            let id = self.tree.add_array(node, &name, desc)?;
            if self.tree.node(id).name != *label {
                attrs.push("label", label.as_str());
            }
            self.tree.set_attrs(id, attrs)?;
            axes.push(id);
            start = end;
        }
        self.axes.insert(k, axes);
        Ok(())
    }

    /// Adds a group that refers to the arrays of its members.
    fn add_stitched(
        &mut self,
        k: usize,
        stitched: &Stitched,
        ids: &HashMap<&str, usize>,
    ) -> Result<()> {
        let group = self.add_group(k)?;
        let strings =
            |list: &[String]| Value::List(list.iter().map(|t| t.clone().into()).collect());
        let mut attrs = Attrs::from([
            (DATATYPE, self.blocks[k].header.datatype.name().into()),
            ("stagger", Value::Int(stitched.stagger.into())),
        ]);
        push_text(&mut attrs, "mesh", &stitched.mesh_id);
        push_text(&mut attrs, "material", &stitched.material_id);
        push_text(&mut attrs, "material_name", &stitched.material_name);
        if !stitched.names.is_empty() {
            attrs.push("names", strings(&stitched.names));
        }
        attrs.push("parts", strings(&stitched.ids));
        self.extend_attrs(group, attrs)?;
        let members: Vec<Option<NodeId>> = stitched
            .ids
            .iter()
            .map(|id| ids.get(id.as_str()).and_then(|member| self.nodes[*member]))
            .collect();
        self.set_components(k, &members);
        for (id, member) in stitched.ids.iter().zip(members) {
            let Some(member) = member else { continue };
            let node = self.tree.node(member);
            // A member whose path is in this group needs no reference.
            let Some(desc) = node.array.clone().filter(|_| node.parent != group) else { continue };
            let name = node.name.clone();
            let desc = ArrayDesc { layout: Layout::Same(member), ..desc };
            let reference = self.tree.add_array(group, &name, desc)?;
            self.tree.push_attr(reference, DERIVED, format!("reference to {id}"))?;
        }
        Ok(())
    }

    /// Adds a group with the time and one group of variables per station.
    fn add_stations(&mut self, k: usize, station: &Station) -> Result<()> {
        let (group, block) = (self.add_group(k)?, &self.blocks[k]);
        self.extend_attrs(group, station::attrs(station))?;
        let (readable, all) =
            (station::readable(block, station, self.file), station.variable_ids.len());
        if readable < all {
            let message = station::unreadable(readable, all);
            self.report.error("sdf-044", message).in_object(block.title()).at(block.offset);
        }
        station::add(&mut self.tree, group, block, station, self.file)
    }
}

/// Sets the scaling of a variable and returns its attributes.
fn variable(desc: &mut ArrayDesc, mult: f64, units: &str, mesh: &str) -> Attrs {
    let mut attrs = Attrs::new();
    desc.map = linear(mult, &mut attrs);
    push_text(&mut attrs, "units", units);
    push_text(&mut attrs, "mesh", mesh);
    attrs
}

/// The normalisation factor as linear scaling. A factor that is 0 or not finite is added to `attrs`
/// instead.
pub(crate) fn linear(mult: f64, attrs: &mut Attrs) -> Option<Linear> {
    if mult == 0.0 || !mult.is_finite() {
        attrs.push("mult", mult);
        return None;
    }
    (mult != 1.0).then_some(Linear::new(0.0, mult))
}

pub(crate) fn push_text(attrs: &mut Attrs, name: &str, text: &str) {
    if !text.is_empty() {
        attrs.push(name, text);
    }
}

/// A character array as strings whose length is the first dimension; `None` if it is not one.
fn strings(block: &Block, dims: &[u64]) -> Option<ArrayDesc> {
    let (length, rest) = dims.split_first()?;
    let fits = block.header.datatype == DataType::Character
        && (1..=MAX_STRING).contains(length)
        && Shape::new(dims).bytes(1).is_ok_and(|b| b == block.header.data_length);
    fits.then(|| {
        let extents = Extents::one(block.header.data_location, block.header.data_length);
        let layout = Layout::Plain { extents, order: Order::F };
        ArrayDesc::new(DType::text(*length as u32), Shape::new(rest), layout)
    })
}

/// The data of a block as bytes.
fn bytes(block: &Block) -> ArrayDesc {
    let (offset, len) = (block.header.data_location, block.header.data_length);
    let layout = Layout::Plain { extents: Extents::one(offset, len), order: Order::F };
    ArrayDesc::new(DType::opaque(1), Shape::new([len]), layout)
}

/// Run information as attributes, with the names of the specification.
pub(crate) fn run_info(info: &RunInfo) -> Attrs {
    let int = |v: i32| Value::Int(v.into());
    Attrs::from([
        ("code_version", int(info.code_version)),
        ("code_revision", int(info.code_revision)),
        ("commit_id", info.commit_id.as_str().into()),
        ("sha1sum", info.sha1sum.as_str().into()),
        ("compile_machine", info.compile_machine.as_str().into()),
        ("compile_flags", info.compile_flags.as_str().into()),
        ("defines", Value::Int(info.defines)),
        ("compile_date", int(info.compile_date)),
        ("run_date", int(info.run_date)),
        ("io_date", int(info.io_date)),
        ("minor_rev", int(info.minor_rev)),
    ])
}
