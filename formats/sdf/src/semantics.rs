//! Meshes, coordinates and meaning of variables.
//!
//! The coordinates of a plain variable are those that sdf-xarray assigns: along a direction with as
//! many points as the mesh has nodes, the nodes; with one point less, the cell centres. The `stagger`
//! of the variable does not change them; it is its centring. Its true positions along staggered
//! directions are computed arrays ([`derived`]).

pub(crate) mod centred;
pub(crate) mod derived;
pub(crate) mod surfaces;

use std::collections::HashMap;

use spile_core::semantics::{Centring, Component};
use spile_core::{Coord, NodeId, Result, Role, Semantics};
use spile_interchange::midpoints::midpoints;

use crate::block::Block;
use crate::to_tree::{Builder, split_path};
use crate::wire::ID;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Meta, PlainVariable, PointVariable};

/// Vectors that codes store as one block per component.
const VECTORS: [char; 5] = ['E', 'B', 'J', 'P', 'V'];

/// Groups of EPOCH whose names are not repeated in the names of vectors.
const GROUPS: [&str; 4] = ["Electric Field", "Magnetic Field", "Current", "Particles"];

/// Maximum number of digits that replace the end of a truncated identifier.
const DIGITS: usize = 3;

/// Finds meshes by the identifiers stored in variables.
pub(crate) struct Meshes {
    exact: HashMap<String, usize>,
    /// EPOCH writes some identifiers in upper and lower case.
    lowercase: HashMap<String, usize>,
}

impl Meshes {
    pub(crate) fn new(blocks: &[Block]) -> Self {
        let mut meshes = Self { exact: HashMap::new(), lowercase: HashMap::new() };
        for (k, block) in blocks.iter().enumerate() {
            if matches!(block.meta, Meta::Mesh(_) | Meta::PointMesh(_)) {
                let id = &block.header.id;
                meshes.exact.entry(id.clone()).or_insert(k);
                meshes.lowercase.entry(id.to_lowercase()).or_insert(k);
            }
        }
        meshes
    }

    /// Index of the mesh block with identifier `id`, compared without case if there is no exact
    /// match.
    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.exact.get(id).or_else(|| self.lowercase.get(&id.to_lowercase())).copied()
    }

    /// Index of the mesh of a point variable. If the identifiers of two species are equal after
    /// truncation, that of the second mesh ends with a number but the variable stores it without the
    /// number; the species then identifies the mesh.
    pub(crate) fn of_points(&self, variable: &PointVariable, blocks: &[Block]) -> Option<usize> {
        let species = &variable.species_id;
        let other_species = |k: usize| match &blocks[k].meta {
            Meta::PointMesh(mesh) => !mesh.species_id.is_empty() && mesh.species_id != *species,
            _ => false,
        };
        let found = self.find(&variable.mesh_id)?;
        let truncated = |id: &str| id.len() == ID;
        if species.is_empty() || !other_species(found) || !truncated(&variable.mesh_id) {
            return Some(found);
        }
        let prefix = |id: &str| id.as_bytes()[..ID - DIGITS].to_ascii_lowercase();
        let matches = |k: &usize| {
            let id = &blocks[*k].header.id;
            matches!(&blocks[*k].meta, Meta::PointMesh(_))
                && !other_species(*k)
                && truncated(id)
                && prefix(id) == prefix(&variable.mesh_id)
        };
        (0..blocks.len()).find(matches).or(Some(found))
    }
}

impl PlainVariable {
    /// Bit `axis` of the stagger: along this direction values are at nodes.
    pub(crate) fn is_staggered(&self, axis: usize) -> bool {
        self.stagger.checked_shr(axis as u32).unwrap_or(0) & 1 == 1
    }
}

impl Builder<'_> {
    /// Name of the dimension shared by the variables of a point mesh; `None` for other meshes.
    pub(crate) fn particle_dim(&self, mesh: usize) -> Option<String> {
        let Meta::PointMesh(points) = &self.blocks[mesh].meta else { return None };
        let (_, name) = split_path(&self.blocks[mesh]);
        Some(if points.species_id.is_empty() { name } else { &points.species_id }.to_string())
    }

    /// Sets dimension names, coordinates and meaning of the variable in block `k`.
    pub(crate) fn set_coordinates(&mut self, k: usize) -> Result<()> {
        let Some(node) = self.nodes[k] else { return Ok(()) };
        let blocks = self.blocks;
        let mut semantics = match &blocks[k].meta {
            Meta::PointVariable(v) => self.set_particles(node, v),
            Meta::PlainVariable(v) => self.set_grid(node, v)?,
            _ => return Ok(()),
        };
        let species = semantics.point_set.as_deref().unwrap_or_default();
        semantics.component = component(&self.tree.node(node).path, species);
        let vector = semantics.component.as_ref().map_or(0, |c| c.vector.len());
        let names = vector + semantics.point_set.as_ref().map_or(0, String::len);
        self.tree.charge((size_of::<Semantics>() + names) as u64, "the meaning of arrays")?;
        if let Some(desc) = self.tree.array_mut(node) {
            desc.meaning = Some(Box::new(semantics));
        }
        Ok(())
    }

    /// Sets dimension and coordinates of a point variable.
    fn set_particles(&mut self, node: NodeId, v: &PointVariable) -> Semantics {
        let mut semantics = Semantics::role(Role::Points);
        semantics.point_set = Some(v.species_id.clone()).filter(|species| !species.is_empty());
        let Some(mesh) = self.meshes.of_points(v, self.blocks) else { return semantics };
        let Meta::PointMesh(points) = &self.blocks[mesh].meta else { return semantics };
        let name = self.particle_dim(mesh);
        let Some(desc) = self.tree.array_mut(node) else { return semantics };
        if desc.shape.lengths() != [points.np] {
            return semantics;
        }
        semantics.mesh = self.nodes[mesh];
        semantics.point_set = semantics.point_set.or_else(|| name.clone());
        desc.dims = name.into_iter().collect();
        // Only in one dimension is the position a single array.
        if let [axis] = self.axes.get(&mesh).map_or(&[][..], |a| a) {
            desc.coords = vec![Coord::Node(*axis)];
        }
        semantics
    }

    /// Sets dimension names and coordinates of a plain variable.
    fn set_grid(&mut self, node: NodeId, v: &PlainVariable) -> Result<Semantics> {
        let mut semantics = Semantics::role(Role::Field);
        let rank = self.tree.array(node).map(|desc| desc.shape.rank());
        if rank != Some(v.dims.len()) {
            return Ok(semantics);
        }
        let mut on_nodes: Vec<bool> = (0..v.dims.len()).map(|axis| v.is_staggered(axis)).collect();
        semantics.centring = Some(Centring::of(&on_nodes));
        let Some(mesh) = self.meshes.find(&v.mesh_id) else { return Ok(semantics) };
        let Meta::Mesh(grid) = &self.blocks[mesh].meta else { return Ok(semantics) };
        let axes = self.axes.get(&mesh).cloned().unwrap_or_default();
        let plain = self.blocks[mesh].kind() == BlockType::PlainMesh;
        for (axis, nodes) in axes.iter().enumerate().take(v.dims.len()) {
            let as_nodes = v.dims[axis] == grid.dims[axis];
            on_nodes[axis] |= as_nodes;
            let coord = if plain && as_nodes {
                Some(*nodes)
            } else if plain && v.dims[axis].checked_add(1) == Some(grid.dims[axis]) {
                midpoints(&mut self.tree, *nodes)?
            } else {
                None
            };
            let Some(desc) = self.tree.array_mut(node) else { break };
            desc.coords[axis] = coord.map_or(Coord::None, Coord::Node);
            if !grid.labels[axis].is_empty() {
                desc.dims[axis].clone_from(&grid.labels[axis]);
            }
        }
        semantics.mesh = self.nodes[mesh];
        semantics.centring = Some(Centring::of(&on_nodes));
        Ok(semantics)
    }

    /// Makes the members of a stitched tensor components of one vector, unless their names say so.
    pub(crate) fn set_components(&mut self, k: usize, members: &[Option<NodeId>]) {
        let tensor = [BlockType::StitchedTensor, BlockType::ContiguousTensor];
        if !tensor.contains(&self.blocks[k].kind()) || !(2..=3).contains(&members.len()) {
            return;
        }
        let (_, vector) = split_path(&self.blocks[k]);
        for (index, member) in (0..).zip(members) {
            let desc = member.and_then(|member| self.tree.node_mut(member).array.as_mut());
            if let Some(desc) = desc.filter(|desc| desc.semantics().component.is_none()) {
                let vector = vector.to_string();
                desc.semantics_mut().component = Some(Component { vector, index });
            }
        }
    }
}

/// The component of a vector that the block name `path` stands for: a part such as `Ex` or
/// `Ex_averaged` is component 0 of `E` or `E_averaged`. The other parts of the name belong to the name
/// of the vector, except the names of common groups at the start and of the species at the end.
fn component(path: &str, species: &str) -> Option<Component> {
    let mut parts: Vec<&str> = path.split('/').collect();
    let is_component = |part: &&str| {
        let mut letters = part.chars();
        let vector = letters.next().is_some_and(|c| VECTORS.contains(&c));
        let axis = letters.next().is_some_and(|c| ('x'..='z').contains(&c));
        vector && axis && matches!(letters.as_str(), "" | "_averaged")
    };
    // EPOCH names the components of the Poynting flux after the directions.
    if let Some(at) = parts.iter().position(|part| *part == "Poynting_Flux")
        && let Some(index) =
            parts.get(at + 1).and_then(|part| ["x", "y", "z"].iter().position(|axis| axis == part))
    {
        parts.remove(at + 1);
        return Some(Component { vector: parts.join("/"), index: index as u8 });
    }
    let at = parts.iter().position(is_component)?;
    let part = parts[at];
    let index = part.as_bytes()[1] - b'x';
    let vector = [&part[..1], &part[2..]].concat();
    parts[at] = &vector;
    if parts.len() > at + 1 && parts.last() == Some(&species) {
        parts.pop();
    }
    let skip = usize::from(at > 0 && GROUPS.contains(&parts[0]));
    Some(Component { vector: parts[skip..].join("/"), index })
}
