//! Meshes and coordinates of variables.
//!
//! The coordinates of a plain variable are those that sdf-xarray assigns: along a direction with as
//! many points as the mesh has nodes, the nodes; with one point less, the cell centres. The `stagger`
//! of the variable does not change them. Its true positions along staggered directions are computed
//! arrays ([`derived`]).

pub(crate) mod derived;
pub(crate) mod surfaces;

use std::collections::HashMap;

use spile_core::error::Result;
use spile_core::layout::Coord;
use spile_core::points;
use spile_core::tree::NodeId;

use crate::index::Block;
use crate::to_tree::{Builder, split_path};
use crate::wire::ID;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Meta, PlainVariable, PointVariable};

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

    /// Sets dimension names and coordinates of the variable in block `k`.
    pub(crate) fn set_coordinates(&mut self, k: usize) -> Result<()> {
        let Some(node) = self.nodes[k] else { return Ok(()) };
        match &self.blocks[k].meta {
            Meta::PointVariable(v) => {
                let Some(mesh) = self.meshes.of_points(v, self.blocks) else { return Ok(()) };
                let Meta::PointMesh(points) = &self.blocks[mesh].meta else { return Ok(()) };
                let name = self.particle_dim(mesh);
                let Some(desc) = &mut self.tree.node_mut(node).array else { return Ok(()) };
                if desc.shape.lengths() != [points.np] {
                    return Ok(());
                }
                desc.dims = name.into_iter().collect();
                // Only in one dimension is the position a single array.
                if let [axis] = self.axes.get(&mesh).map_or(&[][..], |a| a) {
                    desc.coords = vec![Coord::Node(*axis)];
                }
                Ok(())
            }
            Meta::PlainVariable(v) => {
                let Some(mesh) = self.meshes.find(&v.mesh_id) else { return Ok(()) };
                let Meta::Mesh(grid) = &self.blocks[mesh].meta else { return Ok(()) };
                let axes = self.axes.get(&mesh).cloned().unwrap_or_default();
                let plain = self.blocks[mesh].kind() == BlockType::PlainMesh;
                for (axis, nodes) in axes.iter().enumerate().take(v.dims.len()) {
                    let coord = if plain && v.dims[axis] == grid.dims[axis] {
                        Some(*nodes)
                    } else if plain && v.dims[axis].checked_add(1) == Some(grid.dims[axis]) {
                        self.cell_centres(*nodes)?
                    } else {
                        None
                    };
                    let name = grid.labels[axis].clone();
                    let Some(desc) = &mut self.tree.node_mut(node).array else { return Ok(()) };
                    if desc.shape.rank() != v.dims.len() {
                        return Ok(());
                    }
                    desc.coords[axis] = coord.map_or(Coord::None, Coord::Node);
                    if !name.is_empty() {
                        desc.dims[axis] = name;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The array `LABEL_mid` of cell centres beside the coordinate array `nodes`; `None` if the nodes
    /// are not floating-point numbers.
    fn cell_centres(&mut self, nodes: NodeId) -> Result<Option<NodeId>> {
        if let Some(known) = self.centres.get(&nodes) {
            return Ok(*known);
        }
        let centres = points::midpoints(&mut self.tree, nodes)?;
        self.centres.insert(nodes, centres);
        Ok(centres)
    }
}
