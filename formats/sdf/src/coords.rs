//! Where the points of variables are.

use std::collections::HashMap;

use spile_core::error::Result;
use spile_core::layout::Coord;
use spile_core::points;
use spile_core::tree::NodeId;

use crate::computed;
use crate::derived;
use crate::index::Block;
use crate::kind::BlockType;
use crate::meta::{Meta, PointVariable};
use crate::place::path;
use crate::view::Builder;
use crate::wire::ID;

/// Geometries of a mesh beside the Cartesian one.
const CYLINDRICAL: i32 = 2;
const SPHERICAL: i32 = 3;

/// Digits of the number that may be at the end of a cut identifier.
const DIGITS: usize = 3;

/// Finds meshes by the identifiers that variables have of them.
pub(crate) struct Meshes {
    exact: HashMap<String, usize>,
    /// Writers do not always agree with themselves about capital letters.
    folded: HashMap<String, usize>,
}

impl Meshes {
    pub(crate) fn new(blocks: &[Block]) -> Self {
        let mut found = Self { exact: HashMap::new(), folded: HashMap::new() };
        for (k, block) in blocks.iter().enumerate() {
            if matches!(block.meta, Meta::Mesh(_) | Meta::PointMesh(_)) {
                let id = &block.header.id;
                found.exact.entry(id.clone()).or_insert(k);
                found.folded.entry(id.to_lowercase()).or_insert(k);
            }
        }
        found
    }

    pub(crate) fn find(&self, id: &str) -> Option<usize> {
        self.exact.get(id).or_else(|| self.folded.get(&id.to_lowercase())).copied()
    }

    /// The mesh of a point variable. Long identifiers are cut: that of the mesh then ends with a
    /// number where another species was first, but the variable has the one without.
    pub(crate) fn of_points(&self, variable: &PointVariable, blocks: &[Block]) -> Option<usize> {
        let species = &variable.species_id;
        let other = |k: usize| match &blocks[k].meta {
            Meta::PointMesh(mesh) => !mesh.species_id.is_empty() && mesh.species_id != *species,
            _ => false,
        };
        let found = self.find(&variable.mesh_id)?;
        let cut = |id: &str| id.len() == ID;
        if species.is_empty() || !other(found) || !cut(&variable.mesh_id) {
            return Some(found);
        }
        let beginning = |id: &str| id.as_bytes()[..ID - DIGITS].to_ascii_lowercase();
        let fits = |k: &usize| {
            let id = &blocks[*k].header.id;
            let points = matches!(&blocks[*k].meta, Meta::PointMesh(_));
            points && !other(*k) && cut(id) && beginning(id) == beginning(&variable.mesh_id)
        };
        (0..blocks.len()).find(fits).or(Some(found))
    }
}

impl Builder<'_> {
    /// The name of the dimension that the variables of a point mesh share.
    pub(crate) fn particles(&self, mesh: usize) -> Option<String> {
        let Meta::PointMesh(points) = &self.blocks[mesh].meta else { return None };
        let (_, last) = path(&self.blocks[mesh]);
        let word = if points.species_id.is_empty() { last } else { &points.species_id };
        Some(word.to_string())
    }

    /// Gives a variable the names and points of its dimensions.
    pub(crate) fn coordinates(&mut self, k: usize) -> Result<()> {
        let Some(node) = self.places[k] else { return Ok(()) };
        match &self.blocks[k].meta {
            Meta::PointVariable(v) => {
                let Some(mesh) = self.meshes.of_points(v, self.blocks) else { return Ok(()) };
                let Meta::PointMesh(points) = &self.blocks[mesh].meta else { return Ok(()) };
                let name = self.particles(mesh);
                let Some(desc) = &mut self.tree.node_mut(node).array else { return Ok(()) };
                if desc.shape.lengths() != [points.np] {
                    return Ok(());
                }
                desc.dims = name.into_iter().collect();
                // With one direction the particles lie along it; with more, no single array says
                // where they are.
                if let [one] = self.axes.get(&mesh).map_or(&[][..], |a| a) {
                    desc.coords = vec![Coord::Node(*one)];
                }
                Ok(())
            }
            Meta::PlainVariable(v) => {
                let Some(mesh) = self.meshes.find(&v.mesh_id) else { return Ok(()) };
                let Meta::Mesh(grid) = &self.blocks[mesh].meta else { return Ok(()) };
                let axes = self.axes.get(&mesh).cloned().unwrap_or_default();
                let plain = self.blocks[mesh].kind() == BlockType::PlainMesh;
                let epoch = self.epoch;
                for (axis, along) in axes.iter().enumerate().take(v.dims.len()) {
                    let on_nodes = v.stagger.checked_shr(axis as u32).unwrap_or(0) & 1 == 1;
                    let (nodes, points) = (grid.dims[axis], v.dims[axis]);
                    let one_less = points.checked_add(1) == Some(nodes);
                    let found = if plain && points == nodes {
                        Some(*along)
                    } else if plain && one_less && (!on_nodes || epoch) {
                        self.beside(*along, on_nodes)?
                    } else {
                        None
                    };
                    let coord = found.map_or(Coord::None, Coord::Node);
                    let name = grid.labels[axis].clone();
                    let Some(desc) = &mut self.tree.node_mut(node).array else { return Ok(()) };
                    if desc.shape.rank() != v.dims.len() {
                        return Ok(());
                    }
                    desc.coords[axis] = coord;
                    if !name.is_empty() {
                        desc.dims[axis] = name;
                    }
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The points beside the nodes of `axis`: the upper faces of the cells, or their middle.
    fn beside(&mut self, axis: NodeId, faces: bool) -> Result<Option<NodeId>> {
        if let Some(known) = self.beside.get(&(axis, faces)) {
            return Ok(*known);
        }
        let make = if faces { derived::faces } else { points::midpoints };
        let found = make(&mut self.tree, axis)?;
        self.beside.insert((axis, faces), found);
        Ok(found)
    }

    /// Arrays that are computed from block `k`.
    pub(crate) fn derived(&mut self, k: usize) -> Result<()> {
        let Some(node) = self.places[k] else { return Ok(()) };
        match &self.blocks[k].meta {
            Meta::PlainVariable(v) => {
                let Some(mesh) = self.meshes.find(&v.mesh_id) else { return Ok(()) };
                let Meta::Mesh(grid) = &self.blocks[mesh].meta else { return Ok(()) };
                let on_nodes = |axis: usize| {
                    let bit = v.stagger.checked_shr(axis as u32).unwrap_or(0) & 1 == 1;
                    bit && grid.dims.get(axis) == Some(&v.dims[axis])
                };
                let along: Vec<bool> = (0..v.dims.len()).map(on_nodes).collect();
                let axes = self.axes.get(&mesh).cloned().unwrap_or_default();
                computed::centred(&mut self.tree, node, &along, &axes)
            }
            Meta::CpuSplit { split_type: 1, dims } => {
                // The grid that was split: the one that variables of this many dimensions are on.
                let split = |b: &Block| {
                    b.kind() == BlockType::PlainMesh && b.header.ndims == dims.len() as u64
                };
                let named = |b: &Block| split(b) && b.header.id == "grid";
                let named = self.blocks.iter().position(named);
                let mesh = named.or_else(|| self.blocks.iter().position(split));
                let axes = mesh.and_then(|mesh| self.axes.get(&mesh)).cloned().unwrap_or_default();
                computed::ranks(&mut self.tree, node, dims, &axes, self.limits)
            }
            Meta::Mesh(mesh) if self.blocks[k].kind() == BlockType::PlainMesh => {
                let spherical = match mesh.geometry {
                    CYLINDRICAL => false,
                    SPHERICAL => true,
                    _ => return Ok(()),
                };
                let axes = self.axes.get(&k).cloned().unwrap_or_default();
                computed::cartesian(&mut self.tree, node, spherical, &axes)
            }
            _ => Ok(()),
        }
    }
}
