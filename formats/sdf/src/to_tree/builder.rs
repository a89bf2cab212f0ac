//! Adds blocks to a tree.

use std::collections::{HashMap, HashSet};

use spile_core::{
    ArrayDesc, Attrs, ByteOrder, DType, Extent, Kind, Layout, Limits, Linear, NodeId, ROOT, Report,
    Result, Role, Semantics, Shape, Tree, Value,
};
use spile_interchange::midpoints::DERIVED;

use super::{BLOCK_INFO, DATATYPE, LONG_NAME, NAME, TYPE, paths, run_info, split_path, station};
use crate::block::{Block, stored};
use crate::semantics::Meshes;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Mesh, Meta, Station, Stitched};
use crate::wire::{DataType, FileHeader};

/// Maximum length of strings in bytes; longer ones are arrays of bytes.
const MAX_STRING: u64 = 4096;

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
    /// Groups that are blocks.
    block_groups: HashSet<NodeId>,
    pub(crate) meshes: Meshes,
}

impl<'a> Builder<'a> {
    pub(super) fn new(file: &'a FileHeader, blocks: &'a [Block], limits: &'a Limits) -> Self {
        Self {
            file,
            blocks,
            limits,
            tree: Tree::new(limits),
            report: Report::default(),
            order: paths::order(blocks),
            nodes: vec![None; blocks.len()],
            axes: HashMap::new(),
            block_groups: HashSet::new(),
            meshes: Meshes::new(blocks),
        }
    }

    pub(super) fn add_root_attrs(&mut self) -> Result<()> {
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

    pub(super) fn add_block(&mut self, k: usize) -> Result<()> {
        let block = &self.blocks[k];
        match &block.meta {
            Meta::Mesh(mesh) if block.kind() == BlockType::LagrangianMesh => {
                self.add_mesh(k, mesh, "", |_| mesh.dims.clone())
            }
            Meta::Mesh(mesh) => self.add_mesh(k, mesh, "", |axis| vec![mesh.dims[axis]]),
            Meta::PointMesh(points) => {
                self.add_mesh(k, &points.mesh, &points.species_id, |_| vec![points.np])
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
                attrs.push_text("species", &v.species_id);
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
                let desc = block.bytes().with_semantics(Semantics::role(Role::Text));
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
                let mut desc = block.bytes();
                if mimetype.starts_with("text/") {
                    desc.semantics_mut().role = Role::Text;
                }
                let mut attrs = Attrs::new();
                attrs.push_text("mimetype", mimetype);
                attrs.push_text("checksum_type", checksum_type);
                attrs.push_text("checksum", checksum);
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
                    (BLOCK_INFO, Value::Bytes(meta.clone())),
                ]);
                // Metadata of an unknown type cannot be converted to another byte order.
                if self.file.order == ByteOrder::Big {
                    attrs.push("byte_order", "big");
                }
                self.add_array(k, block.bytes(), attrs)
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
        let parent = self.tree.node_at(parent)?;
        let node = self.tree.add_array(parent, name, desc)?;
        self.register(k, node, attrs)
    }

    /// Adds the group of block `k`, or uses the group that was created at its path for other blocks.
    fn add_group(&mut self, k: usize) -> Result<NodeId> {
        let (parent, name) = split_path(&self.blocks[k]);
        let parent = self.tree.node_at(parent)?;
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
                stored(dtype, shape, Extent { offset: block.header.data_location, len: bytes })
            }
            _ => block.raw(self.file),
        }
    }

    /// Adds a mesh: a group with one array per direction. `shape` returns the shape of the array of a
    /// direction.
    fn add_mesh(
        &mut self,
        k: usize,
        mesh: &Mesh,
        species: &str,
        shape: impl Fn(usize) -> Vec<u64>,
    ) -> Result<()> {
        let (node, block) = (self.add_group(k)?, &self.blocks[k]);
        let numbers =
            |values: &[f64]| Value::List(values.iter().map(|v| Value::Float(*v)).collect());
        let mut attrs = Attrs::new();
        attrs.push_text("species", species);
        attrs.push("geometry", Value::Int(mesh.geometry.into()));
        attrs.push("minval", numbers(&mesh.minval));
        attrs.push("maxval", numbers(&mesh.maxval));
        self.extend_attrs(node, attrs)?;
        let dtype = block.header.datatype.dtype(self.file.order);
        let mut start = 0_u64;
        let mut axes = Vec::new();
        for (axis, label) in mesh.labels.iter().enumerate() {
            let shape = Shape::new(shape(axis));
            let bytes = dtype.and_then(|dtype| shape.bytes(dtype.size()).ok());
            let end = bytes.and_then(|bytes| start.checked_add(bytes));
            let end = end.filter(|end| *end <= block.header.data_length);
            let (Some(dtype), Some(end)) = (dtype, end) else {
                let found = mesh.labels.len() - axis;
                let message = format!("{found} coordinate arrays of the mesh have no data");
                self.report.error("sdf-031", message).in_object(block.title()).at(block.offset);
                break;
            };
            let offset = block.header.data_location + start;
            let rank = shape.rank();
            let mut desc = stored(dtype, shape, Extent { offset, len: end - start });
            let semantics = desc.semantics_mut();
            semantics.role = Role::Mesh;
            semantics.point_set = self.particle_dim(k);
            let mut attrs = Attrs::new();
            desc.map = linear(mesh.mults[axis], &mut attrs);
            attrs.push_text("units", &mesh.units[axis]);
            let name = if label.is_empty() { format!("axis{}", axis + 1) } else { label.clone() };
            let dim = self.particle_dim(k).unwrap_or_else(|| name.clone());
            if rank == 1 {
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

    /// Adds a group for each stitched block; it refers to the arrays of its members.
    pub(super) fn add_stitched(&mut self) -> Result<()> {
        let mut ids = HashMap::new();
        for (k, block) in self.blocks.iter().enumerate() {
            ids.entry(block.header.id.as_str()).or_insert(k);
        }
        for (k, block) in self.blocks.iter().enumerate() {
            if let Meta::Stitched(group) = &block.meta {
                self.add_stitched_group(k, group, &ids)?;
            }
        }
        Ok(())
    }

    fn add_stitched_group(
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
        attrs.push_text("mesh", &stitched.mesh_id);
        attrs.push_text("material", &stitched.material_id);
        attrs.push_text("material_name", &stitched.material_name);
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
        let readable = station::add(&mut self.tree, group, block, station, self.file)?;
        let all = station.variable_ids.len();
        if readable < all {
            let message = format!("only the first {readable} of {all} variables can be read");
            self.report.error("sdf-044", message).in_object(block.title()).at(block.offset);
        }
        Ok(())
    }
}

/// Sets the scaling of a variable and returns its attributes.
fn variable(desc: &mut ArrayDesc, mult: f64, units: &str, mesh: &str) -> Attrs {
    let mut attrs = Attrs::new();
    desc.map = linear(mult, &mut attrs);
    attrs.push_text("units", units);
    attrs.push_text("mesh", mesh);
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

/// A character array as strings whose length is the first dimension; `None` if it is not one.
fn strings(block: &Block, dims: &[u64]) -> Option<ArrayDesc> {
    let (length, rest) = dims.split_first()?;
    let len = block.header.data_length;
    let fits = block.header.datatype == DataType::Character
        && (1..=MAX_STRING).contains(length)
        && Shape::new(dims).bytes(1).is_ok_and(|b| b == len);
    let extent = Extent { offset: block.header.data_location, len };
    fits.then(|| stored(DType::text(*length as u32), Shape::new(rest), extent))
}
