//! Computed arrays, present with [`crate::Options::derived`]: positions of staggered fields, and what
//! the SDF C library computes: fields averaged to cell centres, the domain decomposition, Cartesian
//! coordinates. Values are computed when they are read.

use std::sync::Arc;

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Codec, Coord, Extent, Extents, Layout, Linear};
use spile_core::limits::Limits;
use spile_core::points::{self, DERIVED, midpoints, numbers, store};
use spile_core::shape::{Order, Shape};
use spile_core::tree::{Attrs, NodeId, Tree};
use spile_core::wire::ByteOrder;

use crate::index::Block;
use crate::to_tree::Builder;
use crate::wire::block_type::BlockType;
use crate::wire::meta::Meta;

/// Geometry codes of a mesh other than Cartesian.
const CYLINDRICAL: i32 = 2;
const SPHERICAL: i32 = 3;

/// Bytes computed at a time, if a plane is not longer.
const PIECE: u64 = 256 << 10;

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
                for (axis, nodes) in axes.iter().enumerate().take(v.dims.len()) {
                    let cells = v.dims[axis].checked_add(1) == Some(grid.dims[axis]);
                    if plain && epoch && cells && v.is_staggered(axis) {
                        add_faces(&mut self.tree, *nodes)?;
                    }
                }
                let on_nodes =
                    |axis| v.is_staggered(axis) && grid.dims.get(axis) == Some(&v.dims[axis]);
                let along: Vec<bool> = (0..v.dims.len()).map(on_nodes).collect();
                add_centred(&mut self.tree, node, &along, &axes)
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
                add_ranks(&mut self.tree, node, dims, &axes, self.limits)
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

/// Adds `LABEL_face` beside the coordinate array `nodes`: all nodes but the first. EPOCH stores one
/// staggered value per cell, at the upper face of the cell.
fn add_faces(tree: &mut Tree, nodes: NodeId) -> Result<()> {
    let faces = points::beside(tree, nodes, "face", "upper faces of the cells", |desc, shape| {
        let size = desc.dtype.size() as u64;
        let Extent { offset, len } = extent(desc)?;
        let extents = Extents::one(offset.checked_add(size)?, len.checked_sub(size)?);
        let layout = Layout::Plain { extents, order: Order::F };
        Some(ArrayDesc::new(desc.dtype, shape, layout))
    });
    faces.map(drop)
}

/// The extent of an array stored in a single extent; `None` for other arrays.
pub(crate) fn extent(desc: &ArrayDesc) -> Option<Extent> {
    match &desc.layout {
        Layout::Plain { extents, .. } => match *extents.parts() {
            [one] => Some(one),
            _ => None,
        },
        _ => None,
    }
}

fn is_real(dtype: DType) -> bool {
    dtype.kind() == Kind::Float && matches!(dtype.size(), 4 | 8)
}

/// An array computed in pieces, each from one or more extents of the file.
struct Pieces {
    parts: Vec<Extent>,
    starts: Vec<u64>,
    decoded: Vec<u64>,
}

impl Pieces {
    fn new() -> Self {
        Self { parts: Vec::new(), starts: vec![0], decoded: vec![0] }
    }

    /// Appends a piece of `bytes` bytes computed from `parts`.
    fn add(&mut self, parts: &[Extent], bytes: u64) {
        let last = |table: &[u64]| table.last().copied().unwrap_or(0);
        let stored: u64 = parts.iter().map(|part| part.len).sum();
        self.starts.push(last(&self.starts).saturating_add(stored));
        self.decoded.push(last(&self.decoded).saturating_add(bytes));
        self.parts.extend_from_slice(parts);
    }

    fn layout(self, codec: impl Codec + 'static) -> Result<Layout> {
        Ok(Layout::Encoded {
            starts: self.starts.into(),
            decoded: self.decoded.into(),
            data: Extents::several(self.parts)?,
            codec: Arc::new(codec),
            order: Order::F,
        })
    }
}

/// Attributes of a computed array: `derived` with a description, and those of `attrs` named in
/// `keep`.
pub(crate) fn derived_attrs(description: &str, attrs: Attrs, keep: &[&str]) -> Attrs {
    let mut all = vec![(DERIVED.to_string(), description.into())];
    all.extend(attrs.into_iter().filter(|(name, _)| keep.contains(&name.as_str())));
    all
}

/// Adds `NAME_centred` beside `field`, which has values at nodes in the directions `along`: averages
/// at cell centres.
fn add_centred(tree: &mut Tree, field: NodeId, along: &[bool], axes: &[NodeId]) -> Result<()> {
    let node = tree.node(field).clone();
    let Some(desc) = node.array.filter(|d| d.shape.rank() == along.len()) else { return Ok(()) };
    let (Some(data), Some((last, inner))) = (extent(&desc), along.split_last()) else {
        return Ok(());
    };
    let lengths = desc.shape.lengths();
    let enough = lengths.iter().zip(along).all(|(n, on)| *n > u64::from(*on));
    if !is_real(desc.dtype) || !enough || !along.contains(&true) {
        return Ok(());
    }
    let shape: Vec<u64> = lengths.iter().zip(along).map(|(n, on)| n - u64::from(*on)).collect();
    // A piece is a number of planes of the last direction, computed from one more plane if that
    // direction is averaged. No overflow: the field is in the file and the result is smaller.
    let size = desc.dtype.size() as u64;
    let [plane, new_plane] =
        [lengths, &shape].map(|n| n[..inner.len()].iter().product::<u64>() * size);
    let planes = shape[inner.len()];
    let step = (PIECE / plane.max(1)).max(1);
    let mut pieces = Pieces::new();
    for first in (0..planes).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
        let count = step.min(planes - first);
        let part = Extent {
            offset: data.offset.saturating_add(first * plane),
            len: (count + u64::from(*last)) * plane,
        };
        pieces.add(&[part], count * new_plane);
    }
    let lengths = lengths[..inner.len()].iter().map(|n| *n as usize).collect();
    let codec = Average { dtype: desc.dtype, lengths, along: along.to_vec() };
    let dtype = desc.dtype.with_order(ByteOrder::Little);
    let layout = pieces.layout(codec)?;
    let mut new = ArrayDesc::new(dtype, Shape::new(shape), layout);
    (new.dims, new.coords, new.map) = (desc.dims, desc.coords, desc.map);
    for (axis, id) in axes.iter().enumerate().take(along.len()).filter(|(axis, _)| along[*axis]) {
        new.coords[axis] = midpoints(tree, *id)?.map_or(Coord::None, Coord::Node);
    }
    let id = tree.add_array(node.parent, &format!("{}_centred", node.name), new)?;
    tree.node_mut(id).attrs =
        derived_attrs("averaged to cell centres", node.attrs, &["units", "mesh"]);
    Ok(())
}

/// Averages of neighbours along some directions.
struct Average {
    dtype: DType,
    /// Lengths of all directions but the last.
    lengths: Vec<usize>,
    along: Vec<bool>,
}

impl Codec for Average {
    fn name(&self) -> &'static str {
        "average"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut values = numbers(self.dtype, stored);
        let planes = values.len() / self.lengths.iter().product::<usize>().max(1);
        let mut inner = 1_usize;
        for (length, on) in self.lengths.iter().copied().chain([planes]).zip(&self.along) {
            if *on {
                let pairs = |plane: &[f64]| -> Vec<f64> {
                    let next = plane.get(inner..).unwrap_or(&[]);
                    plane.iter().zip(next).map(|(a, b)| 0.5 * (a + b)).collect()
                };
                values = values.chunks((inner * length).max(1)).flat_map(pairs).collect();
            }
            inner *= length.saturating_sub(usize::from(*on));
        }
        store(self.dtype, &values, out)
    }
}

/// Adds the domain decomposition of the grid `axes` beside `split`, which contains the node indices
/// of the boundaries between ranks: `NAME_map`, the rank of each subdomain, first direction fastest,
/// and `NAME_grid`, a group with boundaries and centres of the subdomains.
fn add_ranks(
    tree: &mut Tree,
    split: NodeId,
    dims: &[u64],
    axes: &[NodeId],
    limits: &Limits,
) -> Result<()> {
    let node = tree.node(split).clone();
    let Some(desc) = node.array else { return Ok(()) };
    let count = dims.iter().try_fold(0_u64, |sum, n| sum.checked_add(*n));
    let Some(data) = extent(&desc).filter(|_| count.is_some() && count == desc.shape.count())
    else {
        return Ok(());
    };
    // No overflow: the boundaries are in the file.
    let shape = Shape::new(dims.iter().map(|n| n + 1).collect::<Vec<_>>());
    let count = match shape.bytes(4).and_then(|bytes| limits.allow(bytes, "the ranks")) {
        Ok(bytes) if desc.dtype.kind() == Kind::Int && axes.len() == dims.len() => bytes / 4,
        _ => return Ok(()),
    };
    let numbers: Vec<u8> = (0..count as i32).flat_map(i32::to_le_bytes).collect();
    let mut map = ArrayDesc::new(DType::I32, shape, Layout::Inline(numbers.into(), Order::F));
    let grid = tree.add_group(node.parent, &format!("{}_grid", node.name))?;
    let boundaries = "boundaries of the subdomains";
    tree.node_mut(grid).attrs = derived_attrs(boundaries, Vec::new(), &[]);
    let mut start = data.offset;
    for (direction, (axis, count)) in axes.iter().zip(dims).enumerate() {
        let axis = tree.node(*axis).clone();
        let len = count * desc.dtype.size() as u64;
        let indices = Extent { offset: start, len };
        start = start.saturating_add(len);
        let Some(nodes) = axis.array.filter(|a| is_real(a.dtype)) else { continue };
        let Some(coordinates) = extent(&nodes) else { continue };
        map.dims[direction].clone_from(&axis.name);
        for (centres, length) in [(false, count + 2), (true, count + 1)] {
            let codec = Boundaries {
                index: desc.dtype,
                count: *count as usize,
                dtype: nodes.dtype,
                centres,
            };
            let layout = Layout::Text {
                extents: Extents::several(vec![indices, coordinates])?,
                codec: Arc::new(codec),
                order: Order::F,
            };
            let mut points = ArrayDesc::new(nodes.dtype, Shape::new([length]), layout);
            (points.dims, points.map) = (vec![axis.name.clone()], nodes.map);
            let name = if centres { format!("{}_mid", axis.name) } else { axis.name.clone() };
            let description = if centres { "centres of the subdomains" } else { boundaries };
            let id = tree.add_array(grid, &name, points)?;
            tree.node_mut(id).attrs = derived_attrs(description, axis.attrs.clone(), &["units"]);
            if centres {
                map.coords[direction] = Coord::Node(id);
            }
        }
    }
    let id = tree.add_array(node.parent, &format!("{}_map", node.name), map)?;
    tree.node_mut(id).attrs = derived_attrs("rank of each subdomain", Vec::new(), &[]);
    Ok(())
}

/// Coordinates of the boundaries of subdomains, including both ends of the grid, or the centres
/// between them.
struct Boundaries {
    /// Type of the node indices.
    index: DType,
    /// Number of node indices.
    count: usize,
    dtype: DType,
    centres: bool,
}

impl Codec for Boundaries {
    fn name(&self) -> &'static str {
        "boundaries"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let len = (self.count * self.index.size()).min(stored.len());
        let (indices, nodes) = stored.split_at(len);
        let (indices, nodes) = (numbers(self.index, indices), numbers(self.dtype, nodes));
        let node = |index: &f64| {
            let found = nodes.get(*index as usize).filter(|_| *index >= 0.0).copied();
            found.ok_or_else(|| {
                let message =
                    format!("boundary at node {index}, but the mesh has {} nodes", nodes.len());
                Error::malformed("sdf-016", message)
            })
        };
        let last = nodes.len().saturating_sub(1) as f64;
        let ends = [0.0].iter().chain(&indices).chain([&last]).map(node);
        let mut points = ends.collect::<Result<Vec<f64>>>()?;
        if self.centres {
            points = points.windows(2).map(|w| 0.5 * (w[0] + w[1])).collect();
        }
        store(self.dtype, &points, out)
    }
}

/// Adds `NAME_cartesian` beside `mesh`, a group with X, Y and Z of its nodes. Cylindrical coordinates
/// are radius, azimuth and height; spherical ones are radius, polar angle and azimuth.
fn add_cartesian(tree: &mut Tree, mesh: NodeId, spherical: bool, axes: &[NodeId]) -> Result<()> {
    let nodes = axes.iter().map(|id| tree.node(*id).clone());
    let nodes: Vec<_> = nodes.filter_map(|node| Some((node.array?, node.attrs))).collect();
    let [(radius, attrs), (angle, _), (last, _)] = &nodes[..] else { return Ok(()) };
    let dtype = radius.dtype;
    let same = is_real(dtype) && [angle, last].iter().all(|axis| axis.dtype == dtype);
    let (Some(radius_data), Some(angle_data), Some(last_data), true) =
        (extent(radius), extent(angle), extent(last), same)
    else {
        return Ok(());
    };
    let count = |axis: &ArrayDesc| axis.shape.count().unwrap_or(0);
    let shape = Shape::new([count(radius), count(angle), count(last)]);
    let Ok(bytes) = shape.bytes(dtype.size()) else { return Ok(()) };
    let size = dtype.size() as u64;
    let node = tree.node(mesh).clone();
    let group = tree.add_group(node.parent, &format!("{}_cartesian", node.name))?;
    let description = "nodes in Cartesian coordinates";
    tree.node_mut(group).attrs = derived_attrs(description, Vec::new(), &[]);
    for (direction, name) in ["X", "Y", "Z"].into_iter().enumerate() {
        let mut pieces = Pieces::new();
        for plane in 0..count(last) {
            let one = Extent { offset: last_data.offset.saturating_add(plane * size), len: size };
            pieces.add(&[radius_data, angle_data, one], bytes / count(last));
        }
        let counts = [count(radius) as usize, count(angle) as usize];
        let maps = [radius.map, angle.map, last.map];
        let codec = Cartesian { dtype, counts, maps, spherical, direction };
        let little = dtype.with_order(ByteOrder::Little);
        let mut desc = ArrayDesc::new(little, shape.clone(), pieces.layout(codec)?);
        desc.dims = [radius, angle, last].iter().flat_map(|axis| axis.dims.clone()).collect();
        let id = tree.add_array(group, name, desc)?;
        tree.node_mut(id).attrs = derived_attrs(description, attrs.clone(), &["units"]);
    }
    Ok(())
}

/// One Cartesian coordinate of the nodes of a plane with the same last coordinate.
struct Cartesian {
    dtype: DType,
    counts: [usize; 2],
    maps: [Option<Linear>; 3],
    spherical: bool,
    direction: usize,
}

impl Codec for Cartesian {
    fn name(&self) -> &'static str {
        "cartesian"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let all = numbers(self.dtype, stored);
        let [radii, angles] = self.counts;
        let short = || Error::malformed("sdf-015", "unexpected end of the coordinates");
        let scaled =
            |axis: usize, value: f64| self.maps[axis].map_or(value, |map| map.apply(value));
        let r = all.get(..radii).ok_or_else(short)?;
        let theta = all.get(radii..).and_then(|rest| rest.get(..angles)).ok_or_else(short)?;
        let last = scaled(2, all.get(radii + angles).copied().ok_or_else(short)?);
        let mut plane = Vec::with_capacity(radii * angles);
        for theta in theta {
            let (sin, cos) = scaled(1, *theta).sin_cos();
            let factor = match (self.spherical, self.direction) {
                (false, 0) | (true, 2) => cos,
                (false, 1) => sin,
                (true, 0) => sin * last.cos(),
                (true, _) => sin * last.sin(),
                (false, _) => 0.0,
            };
            let height = !self.spherical && self.direction == 2;
            let point = |r: &f64| if height { last } else { scaled(0, *r) * factor };
            plane.extend(r.iter().map(point));
        }
        store(self.dtype, &plane, out)
    }
}
