//! Computed arrays, present if a file is opened with derived arrays: positions of staggered fields, and
//! what the SDF C library computes: fields averaged to cell centres, the domain decomposition,
//! Cartesian coordinates. Values are computed when they are read.

use std::sync::Arc;

use spile_core::computed::{Computed, Function, store_f64};
use spile_core::semantics::Centring;
use spile_core::{
    Array, ArrayDesc, Attrs, Axes, ByteOrder, Coord, DType, Error, Extent, Extents, Kind, Layout,
    NodeId, Order, Result, Role, Selection, Semantics, Shape, Slice, Tree,
};
use spile_interchange::midpoints::{self, DERIVED};

use super::centred::{self, Staggered};
use crate::block::{Block, stored};
use crate::to_tree::Builder;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Mesh, Meta};

/// Geometry codes of a mesh other than Cartesian.
const CYLINDRICAL: i32 = 2;
const SPHERICAL: i32 = 3;

/// Largest deviation of a reduced mesh from its grid, in cells.
const TOLERANCE: f64 = 1e-3;

/// Elements computed at a time, if a plane is not longer.
pub(super) const PIECE: u64 = 32 << 10;

impl Builder<'_> {
    /// Adds the arrays computed from block `k`.
    pub(crate) fn add_derived(&mut self, k: usize) -> Result<()> {
        let Some(node) = self.nodes[k] else { return Ok(()) };
        match &self.blocks[k].meta {
            Meta::PlainVariable(v) => {
                let Some(mesh) = self.meshes.find(&v.mesh_id) else { return Ok(()) };
                let Meta::Mesh(grid) = &self.blocks[mesh].meta else { return Ok(()) };
                let axes = self.axes.get(&mesh).cloned().unwrap_or_default();
                let plain = self.blocks[mesh].kind() == BlockType::PlainMesh;
                // EPOCH stores as many points as cells; other codes do not define the positions.
                let epoch = self.file.code_name.to_lowercase().starts_with("epoch");
                let mut at_faces = vec![false; v.dims.len()];
                for (axis, nodes) in axes.iter().enumerate().take(v.dims.len()) {
                    let cells = v.dims[axis].checked_add(1) == Some(grid.dims[axis]);
                    if plain && epoch && cells && v.is_staggered(axis) {
                        let Some(faces) = self.upper_faces(mesh, axis) else { continue };
                        at_faces[axis] = faces.step == 1;
                        add_faces(&mut self.tree, *nodes, &faces)?;
                    }
                }
                let on_nodes =
                    |axis| v.is_staggered(axis) && grid.dims.get(axis) == Some(&v.dims[axis]);
                let along: Vec<bool> = (0..v.dims.len()).map(on_nodes).collect();
                let tree = &mut self.tree;
                if along.contains(&true) {
                    centred::add(tree, node, Staggered::Nodes, &along, &axes)
                } else {
                    centred::add(tree, node, Staggered::UpperFaces, &at_faces, &axes)
                }
            }
            Meta::CpuSplit { split_type: 1, dims } => {
                // The decomposed grid: the mesh "grid", or the first one with as many dimensions.
                let same_rank = |b: &Block| {
                    b.kind() == BlockType::PlainMesh && b.header.ndims == dims.len() as u64
                };
                let named = |b: &Block| same_rank(b) && b.header.id == "grid";
                let named = self.blocks.iter().position(named);
                let mesh = named.or_else(|| self.blocks.iter().position(same_rank));
                let axes = mesh.and_then(|mesh| self.axes.get(&mesh)).cloned().unwrap_or_default();
                add_ranks(&mut self.tree, node, dims, &axes)
            }
            Meta::Mesh(mesh) if self.blocks[k].kind() == BlockType::PlainMesh => {
                let spherical = match mesh.geometry {
                    CYLINDRICAL => false,
                    SPHERICAL => true,
                    _ => return Ok(()),
                };
                let axes = self.axes.get(&k).cloned().unwrap_or_default();
                add_cartesian(&mut self.tree, node, spherical, &axes)
            }
            _ => Ok(()),
        }
    }
}

/// The upper faces of the cells of a mesh along one direction: every `step`-th of the `nodes` from number `first` on.
struct UpperFaces {
    nodes: ArrayDesc,
    first: u64,
    step: u64,
}

impl Builder<'_> {
    /// The upper faces of the cells of block `mesh` along `axis`. A reduced mesh of EPOCH has one cell for several
    /// cells of the grid, with the values of one of them and nodes between these; their faces are nodes of the grid.
    /// `None` if the grid is not in the file.
    fn upper_faces(&self, mesh: usize, axis: usize) -> Option<UpperFaces> {
        let nodes = |mesh: usize| self.tree.array(*self.axes.get(&mesh)?.get(axis)?).cloned();
        let id = &self.blocks[mesh].header.id;
        if !id.to_lowercase().starts_with("grid/r_") {
            return Some(UpperFaces { nodes: nodes(mesh)?, first: 1, step: 1 });
        }
        let full = self.meshes.find("grid").filter(|full| *full != mesh)?;
        let (Meta::Mesh(grid), Meta::Mesh(reduced)) =
            (&self.blocks[full].meta, &self.blocks[mesh].meta)
        else {
            return None;
        };
        let (first, step) = reduced_cells(grid, reduced, axis)?;
        Some(UpperFaces { nodes: nodes(full)?, first: first.checked_add(1)?, step })
    }
}

/// The number of the first cell of `grid` whose values a `reduced` mesh has along `axis`, and the number of cells from
/// one to the next; `None` if the meshes do not match.
fn reduced_cells(grid: &Mesh, reduced: &Mesh, axis: usize) -> Option<(u64, u64)> {
    let cells = |mesh: &Mesh| mesh.dims.get(axis)?.checked_sub(1).filter(|n| *n > 0);
    let range = |mesh: &Mesh| mesh.minval.get(axis).copied().zip(mesh.maxval.get(axis).copied());
    let ((low, high), (start, end)) = (range(grid)?, range(reduced)?);
    let (all, count) = (cells(grid)?, cells(reduced)?);
    let width = (high - low) / all as f64;
    let step = (end - start) / count as f64 / width;
    // The centre of the first cell, in cells of the grid.
    let first = (start - low) / width + (step - 1.0) / 2.0;
    let whole = |value: f64| {
        let rounded = value.round();
        let near = (value - rounded).abs() < TOLERANCE && rounded >= 0.0 && rounded < all as f64;
        near.then_some(rounded as u64)
    };
    let (first, step) = (whole(first)?, whole(step).filter(|step| *step > 0)?);
    let last = first.checked_add(step.checked_mul(count - 1)?)?;
    (last < all).then_some((first, step))
}

/// Adds `LABEL_face` beside the coordinate array `axis`. EPOCH stores one staggered value per cell, at the upper face
/// of the cell.
fn add_faces(tree: &mut Tree, axis: NodeId, faces: &UpperFaces) -> Result<()> {
    let added = midpoints::beside(tree, axis, "face", "upper faces of the cells", |_, shape| {
        let (dtype, count) = (faces.nodes.dtype, shape.count()?);
        let size = dtype.size() as u64;
        let Extent { offset, len } = extent(&faces.nodes)?;
        let before = faces.first.checked_mul(size)?;
        let stride = faces.step.checked_mul(size)?;
        let span = count.checked_sub(1)?.checked_mul(stride)?.checked_add(size)?;
        let start = offset
            .checked_add(before)
            .filter(|_| before.checked_add(span).is_some_and(|end| end <= len))?;
        let extents = Extents::one(start, span);
        let layout = match faces.step {
            1 => Layout::Plain { extents, order: Order::F },
            _ => Layout::Rows { extents, stride, order: Order::F },
        };
        Some(ArrayDesc::new(dtype, shape, layout))
    });
    added.map(drop)
}

/// The extent of an array stored in a single extent; `None` for other arrays.
pub(crate) fn extent(desc: &ArrayDesc) -> Option<Extent> {
    let (extents, _) = desc.layout.plain()?;
    if let [one] = *extents.parts() { Some(one) } else { None }
}

pub(super) fn is_real(dtype: DType) -> bool {
    dtype.kind() == Kind::Float && matches!(dtype.size(), 4 | 8)
}

/// A function given as two closures.
struct Closures<M, C> {
    name: &'static str,
    memory: M,
    compute: C,
}

impl<M, C> Function for Closures<M, C>
where
    M: Fn(u64) -> u64 + Send + Sync,
    C: Fn(&[Array], u64, &mut [u8]) -> Result<()> + Send + Sync,
{
    fn name(&self) -> &str {
        self.name
    }

    fn memory(&self, count: u64) -> u64 {
        (self.memory)(count)
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        (self.compute)(inputs, first, out)
    }
}

/// An array computed from `inputs`, `piece` elements at a time. `memory` and `compute` are the methods
/// of a [`Function`].
pub(super) fn computed(
    name: &'static str,
    (dtype, shape): (DType, Shape),
    (piece, order): (u64, Order),
    inputs: Vec<ArrayDesc>,
    memory: impl Fn(u64) -> u64 + Send + Sync + 'static,
    compute: impl Fn(&[Array], u64, &mut [u8]) -> Result<()> + Send + Sync + 'static,
) -> ArrayDesc {
    let function = Arc::new(Closures { name, memory, compute });
    let computed = Computed { inputs, function, piece, order };
    let dtype = dtype.with_order(ByteOrder::Little);
    ArrayDesc::new(dtype, shape, Layout::Computed(Arc::new(computed)))
}

/// The stored values of an array, without scaling.
pub(super) fn unscaled(desc: &ArrayDesc) -> ArrayDesc {
    ArrayDesc { map: None, meaning: None, ..desc.clone() }
}

/// Number of elements in as many complete planes as are computed at a time.
pub(super) fn planes(plane: u64) -> u64 {
    (PIECE / plane.max(1)).max(1).saturating_mul(plane)
}

/// Attributes of a computed array: `derived` with a description, and those of `attrs` named in
/// `keep`.
pub(crate) fn derived_attrs(description: &str, attrs: &Attrs, keep: &[&str]) -> Attrs {
    let mut all = Attrs::from([(DERIVED, description.into())]);
    let kept = attrs.iter().filter(|(name, _)| keep.contains(name));
    all.extend(kept.map(|(name, value)| (name, value.clone())));
    all
}

/// A function gets the inputs of its array.
pub(super) fn no_input() -> Error {
    Error::malformed("sdf-015", "computed array without its inputs")
}

/// Adds the domain decomposition of the grid `axes` beside `split`, which contains the node indices
/// of the boundaries between ranks: `NAME_map`, the rank of each subdomain, first direction fastest,
/// and `NAME_grid`, a group with boundaries and centres of the subdomains.
fn add_ranks(tree: &mut Tree, split: NodeId, dims: &[u64], axes: &[NodeId]) -> Result<()> {
    let node = tree.node(split).clone();
    let Some(desc) = node.array else { return Ok(()) };
    let count = dims.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
    let Some(data) = extent(&desc).filter(|_| count.is_some() && count == desc.shape.count())
    else {
        return Ok(());
    };
    // No overflow: the boundaries are in the file.
    let shape = Shape::new(dims.iter().map(|n| n + 1).collect::<Vec<_>>());
    let ranks = shape.count().and_then(|count| i32::try_from(count).ok());
    if ranks.is_none() || desc.dtype.kind() != Kind::Int || axes.len() != dims.len() {
        return Ok(());
    }
    let number = |_: &[Array], first: u64, out: &mut [u8]| {
        for (element, rank) in out.chunks_exact_mut(4).zip(first as i32..) {
            element.copy_from_slice(&rank.to_le_bytes());
        }
        Ok(())
    };
    let types = (DType::I32, shape);
    let mut map = computed("ranks", types, (PIECE, Order::F), Vec::new(), |_| 0, number);
    let grid = tree.add_group(node.parent, &format!("{}_grid", node.name))?;
    let boundaries = "boundaries of the subdomains";
    tree.set_attrs(grid, derived_attrs(boundaries, &Attrs::new(), &[]))?;
    let semantics = map.semantics_mut();
    semantics.role = Role::Field;
    (semantics.mesh, semantics.centring) = (Some(grid), Some(Centring::Cell));
    let mut start = data.offset;
    for (direction, (axis, count)) in axes.iter().zip(dims).enumerate() {
        let axis = tree.node(*axis).clone();
        let len = count * desc.dtype.size() as u64;
        let indices = stored(desc.dtype, Shape::new([*count]), Extent { offset: start, len });
        start = start.saturating_add(len);
        let Some(nodes) = axis.array.filter(|a| is_real(a.dtype)) else { continue };
        map.dims[direction].clone_from(&axis.name);
        for (centres, length) in [(false, count + 2), (true, count + 1)] {
            let inputs = vec![indices.clone(), unscaled(&nodes)];
            let (types, all) = ((nodes.dtype, Shape::new([length])), (length, Order::F));
            let memory = |count: u64| count.saturating_mul(24);
            let compute = move |inputs: &[Array], _: u64, out: &mut [u8]| {
                store_boundaries(inputs, centres, out)
            };
            let name = "boundaries of subdomains";
            let mut points = computed(name, types, all, inputs, memory, compute);
            points.semantics_mut().role = Role::Mesh;
            (points.dims, points.map) = (vec![axis.name.clone()], nodes.map);
            let name = if centres { format!("{}_mid", axis.name) } else { axis.name.clone() };
            let description = if centres { "centres of the subdomains" } else { boundaries };
            let id = tree.add_array(grid, &name, points)?;
            tree.set_attrs(id, derived_attrs(description, &axis.attrs, &["units"]))?;
            if centres {
                map.coords[direction] = Coord::Node(id);
            }
        }
    }
    let id = tree.add_array(node.parent, &format!("{}_map", node.name), map)?;
    tree.set_attrs(id, derived_attrs("rank of each subdomain", &Attrs::new(), &[]))
}

/// Stores the coordinates of the boundaries of subdomains, including both ends of the grid, or the
/// centres between them.
fn store_boundaries(inputs: &[Array], centres: bool, out: &mut [u8]) -> Result<()> {
    let [indices, axis] = inputs else { return Err(no_input()) };
    let all = Selection::all();
    let indices = indices.read_f64(&all, Axes::Stored)?;
    let nodes = axis.read_f64(&all, Axes::Stored)?;
    let node = |index: &f64| {
        let found = nodes.get(*index as usize).filter(|_| *index >= 0.0).copied();
        found.ok_or_else(|| {
            let count = nodes.len();
            let message = format!("boundary at node {index}, but the mesh has {count} nodes");
            Error::malformed("sdf-019", message)
        })
    };
    let last = nodes.len().saturating_sub(1) as f64;
    let ends = [0.0].iter().chain(&indices).chain([&last]).map(node);
    let mut points = ends.collect::<Result<Vec<f64>>>()?;
    if centres {
        points = points.windows(2).map(|w| 0.5 * (w[0] + w[1])).collect();
    }
    store_f64(axis.dtype(), &points, out)
}

/// Adds `NAME_cartesian` beside `mesh`, a group with X, Y and Z of its nodes. Cylindrical coordinates
/// are radius, azimuth and height; spherical ones are radius, polar angle and azimuth.
fn add_cartesian(tree: &mut Tree, mesh: NodeId, spherical: bool, axes: &[NodeId]) -> Result<()> {
    let nodes = axes.iter().map(|id| tree.node(*id).clone());
    let nodes: Vec<_> = nodes.filter_map(|node| Some((node.array?, node.attrs))).collect();
    let [(radius, attrs), (angle, _), (last, _)] = &nodes[..] else { return Ok(()) };
    let dtype = radius.dtype;
    let same = is_real(dtype) && [angle, last].iter().all(|axis| axis.dtype == dtype);
    let count = |axis: &ArrayDesc| axis.shape.count().unwrap_or(0);
    let shape = Shape::new([count(radius), count(angle), count(last)]);
    if !same || shape.bytes(dtype.size()).is_err() {
        return Ok(());
    }
    let plane = count(radius).saturating_mul(count(angle));
    let node = tree.node(mesh).clone();
    let group = tree.add_group(node.parent, &format!("{}_cartesian", node.name))?;
    let description = "nodes in Cartesian coordinates";
    tree.set_attrs(group, derived_attrs(description, &Attrs::new(), &[]))?;
    for (direction, name) in ["X", "Y", "Z"].into_iter().enumerate() {
        let inputs = vec![radius.clone(), angle.clone(), last.clone()];
        let memory = move |count: u64| count.saturating_add(plane.max(1)).saturating_mul(24);
        let compute = move |inputs: &[Array], first: u64, out: &mut [u8]| {
            store_cartesian(inputs, spherical, direction, first / plane.max(1), out)
        };
        let (types, piece) = ((dtype, shape.clone()), (planes(plane), Order::F));
        let mut desc = computed("Cartesian coordinates", types, piece, inputs, memory, compute)
            .with_semantics(Semantics::role(Role::Mesh));
        desc.dims = [radius, angle, last].iter().flat_map(|axis| axis.dims.clone()).collect();
        let id = tree.add_array(group, name, desc)?;
        tree.set_attrs(id, derived_attrs(description, attrs, &["units"]))?;
    }
    Ok(())
}

/// Stores one Cartesian coordinate of the nodes of planes with the same last coordinate, from plane
/// `first` on.
fn store_cartesian(
    inputs: &[Array],
    spherical: bool,
    direction: usize,
    first: u64,
    out: &mut [u8],
) -> Result<()> {
    let [radius, angle, last] = inputs else { return Err(no_input()) };
    let all = Selection::all();
    let r = radius.read_f64(&all, Axes::Stored)?;
    let theta = angle.read_f64(&all, Axes::Stored)?;
    let count = out.len() / radius.dtype().size();
    let planes = count / (r.len() * theta.len()).max(1);
    let part = Slice::range(first, first + planes as u64);
    let mut values = Vec::with_capacity(count);
    for last in last.read_f64(&Selection(vec![part]), Axes::Stored)? {
        for theta in &theta {
            let (sin, cos) = theta.sin_cos();
            let factor = match (spherical, direction) {
                (false, 0) | (true, 2) => cos,
                (false, 1) => sin,
                (true, 0) => sin * last.cos(),
                (true, _) => sin * last.sin(),
                (false, _) => 0.0,
            };
            let height = !spherical && direction == 2;
            values.extend(r.iter().map(|r| if height { last } else { r * factor }));
        }
    }
    store_f64(radius.dtype(), &values, out)
}
