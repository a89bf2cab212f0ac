//! Surfaces of a grid and of the obstacles in it, with the values of fields on them, named `boundary`
//! and `obmsh` as in the SDF C library. Faces are computed when the file is opened; field values are
//! read from the file on access.

use std::collections::HashSet;

use spile_core::dtype::DType;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::layout::{ArrayDesc, Extent, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::report::Report;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{NodeId, Tree};

use super::derived::{derived_attrs, extent};
use crate::index::Block;
use crate::to_tree::Builder;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Meta, PlainVariable};

/// Path of the group of all surfaces.
const GROUP: &str = "Surface Values";

/// Memory per face during construction without fields, in bytes: corners, cell, vertices.
const FACE: u64 = 160;

/// A cell-centred field on the grid: its array and the identifier of its block.
struct Field {
    node: NodeId,
    id: String,
}

/// The grid whose surfaces are computed.
struct Grid {
    /// Number of cells along each direction, at least 1.
    cells: Vec<u64>,
    axes: Vec<NodeId>,
    fields: Vec<Field>,
}

/// Adds the surfaces of one grid: that of the first obstacles, otherwise that of the first
/// cell-centred field in three dimensions, otherwise in two.
pub(crate) fn add(builder: &mut Builder<'_>, source: &Source, report: &mut Report) -> Result<()> {
    let blocks = builder.blocks;
    let obstacles: Vec<(usize, &[String])> = blocks
        .iter()
        .filter(|block| block.kind() == BlockType::StitchedObstacleGroup)
        .filter_map(|block| match &block.meta {
            Meta::Stitched(group) => {
                let named = |b: &Block| b.header.id == group.mesh_id && b.header.ndims == 3;
                Some((blocks.iter().position(named)?, group.names.as_slice()))
            }
            _ => None,
        })
        .collect();
    let first = obstacles.iter().find_map(|(k, _)| builder.grid(*k, &obstacles));
    let fields = [3, 2].into_iter().flat_map(|rank| (0..blocks.len()).map(move |k| (rank, k)));
    let mut fields = fields.filter(|(rank, k)| blocks[*k].header.ndims == *rank);
    let Some(grid) = first.or_else(|| fields.find_map(|(_, k)| builder.grid(k, &obstacles))) else {
        return Ok(());
    };
    let nodes = Shape::new(grid.cells.iter().map(|n| n + 1).collect::<Vec<_>>());
    let mut strides = nodes.strides(Order::F);
    strides.resize(3, 0);
    let mut surfaces = Surfaces {
        strides: [strides[0], strides[1], strides[2]],
        tree: &mut builder.tree,
        source,
        limits: builder.limits,
        faces_left: builder.limits.memory / 4 / (FACE + 24 * grid.fields.len() as u64),
        grid: &grid,
    };
    surfaces.add_sides()?;
    if grid.cells.len() < 3 {
        return Ok(());
    }
    let mut solid = None;
    let mut seen = HashSet::new();
    for (k, names) in &obstacles {
        let (Some(node), Meta::PlainVariable(v)) = (builder.nodes[*k], &blocks[*k].meta) else {
            continue;
        };
        if v.dims != grid.cells || !seen.insert(*k) {
            continue;
        }
        let added = surfaces.obstacle_numbers(node).and_then(|numbers| {
            let all = surfaces.obstacle_faces(&numbers, names.len())?;
            for (name, faces) in names.iter().zip(&all) {
                surfaces.add_surface(name, &format!("obmsh{name}"), faces)?;
            }
            solid.get_or_insert(numbers);
            Ok(())
        });
        skip_over_limit(report, added, &blocks[*k].header.id)?;
    }
    let faces = surfaces.outer_faces(solid.as_deref());
    let added = faces.and_then(|faces| surfaces.add_surface("boundary", "boundary", &faces));
    skip_over_limit(report, added, "boundary")
}

/// Reports a surface that exceeds the memory limit; other errors are returned.
fn skip_over_limit(report: &mut Report, added: Result<()>, object: &str) -> Result<()> {
    match added {
        Err(error) if error.kind() == ErrorKind::Limit => {
            let message = format!("surface omitted: {}", error.message());
            let finding = report.warn("sdf-047", message).in_object(object);
            finding.hint("raise the memory limit with --max-memory");
            Ok(())
        }
        other => other,
    }
}

impl Builder<'_> {
    /// The grid of block `k`; `None` if it is not a cell-centred variable on a plain mesh.
    fn grid(&self, k: usize, obstacles: &[(usize, &[String])]) -> Option<Grid> {
        let centred = |k: usize| match &self.blocks[k].meta {
            Meta::PlainVariable(v) if v.stagger == 0 => {
                Some((self.meshes.find(&v.mesh_id)?, v, self.nodes[k]?))
            }
            _ => None,
        };
        let (mesh, PlainVariable { dims, .. }, _) = centred(k)?;
        let Meta::Mesh(nodes) = &self.blocks[mesh].meta else { return None };
        let axes = self.axes.get(&mesh)?;
        // Node indices must not overflow.
        Shape::new(nodes.dims.clone()).count()?;
        let cells = nodes.dims.iter().map(|n| n.checked_sub(1)).collect::<Option<Vec<u64>>>()?;
        let fits = cells == *dims && axes.len() == dims.len() && !dims.contains(&0);
        if !fits || self.blocks[mesh].kind() != BlockType::PlainMesh {
            return None;
        }
        let field = |k: usize| {
            let (own_mesh, v, node) = centred(k)?;
            let desc = self.tree.node(node).array.as_ref()?;
            let complete = extent(desc).is_some() && desc.shape.lengths() == v.dims;
            let fits = own_mesh == mesh && v.dims == *dims && complete;
            (fits && obstacles.iter().all(|(obstacle, _)| *obstacle != k))
                .then(|| Field { node, id: self.blocks[k].header.id.clone() })
        };
        let fields = self.order.iter().filter_map(|k| field(*k)).collect();
        Some(Grid { cells: dims.clone(), axes: axes.clone(), fields })
    }
}

/// Four-sided faces: node indices of the corners and index of the adjacent cell.
#[derive(Default)]
struct Faces {
    corners: Vec<[u64; 4]>,
    cells: Vec<u64>,
}

/// Computes surfaces and adds them to the tree.
struct Surfaces<'a> {
    tree: &'a mut Tree,
    source: &'a Source,
    limits: &'a Limits,
    grid: &'a Grid,
    /// Strides of the node index along each direction.
    strides: [u64; 3],
    /// Number of faces that the memory limit still allows.
    faces_left: u64,
}

impl Surfaces<'_> {
    /// Adds the groups `boundary_x_min` to `boundary_z_max`: the outer layer of cells of every field
    /// at each end of each direction.
    fn add_sides(&mut self) -> Result<()> {
        let cells = &self.grid.cells;
        for (direction, letter) in ["x", "y", "z"].into_iter().enumerate().take(cells.len()) {
            for (end, at) in [("min", 0), ("max", cells[direction] - 1)] {
                let name = format!("boundary_{letter}_{end}");
                let group = self.add_group(&name, &name)?;
                for field in &self.grid.fields {
                    let Some(desc) = self.tree.node(field.node).array.clone() else { continue };
                    let Some(desc) = layer(desc, direction, at)? else { continue };
                    self.add_field(group, &name, field, desc, "outer layer of cells")?;
                }
            }
        }
        Ok(())
    }

    fn add_group(&mut self, name: &str, id: &str) -> Result<NodeId> {
        let all = self.tree.group_at(GROUP)?;
        let group = self.tree.add_group(all, name)?;
        self.tree.node_mut(group).id = Some(id.to_string());
        Ok(group)
    }

    /// Adds the values of a field on a surface to `group`, at the path of the field in the file.
    fn add_field(
        &mut self,
        group: NodeId,
        surface: &str,
        field: &Field,
        desc: ArrayDesc,
        description: &str,
    ) -> Result<()> {
        let (group, own) = (self.tree.node(group).path.clone(), self.tree.node(field.node).clone());
        let (parent, name) = own.path.rsplit_once('/').unwrap_or(("", &own.path));
        let parent = self.tree.node_at(&format!("{group}/{parent}"))?;
        let id = self.tree.add_array(parent, name, desc)?;
        let node = self.tree.node_mut(id);
        node.attrs = derived_attrs(description, own.attrs, &["units", "mesh"]);
        node.id = Some(format!("{surface}/{}", field.id));
        Ok(())
    }

    /// Number of the obstacle that contains each cell; 0 for none.
    fn obstacle_numbers(&self, obstacle: NodeId) -> Result<Vec<f64>> {
        let desc = self.tree.node(obstacle).array.as_ref();
        let desc =
            desc.ok_or_else(|| Error::malformed("sdf-015", "obstacle block without data"))?;
        let array = Array::open(self.source, self.tree, desc, self.limits)?;
        array.read_f64(&Selection::all(), Axes::Order(Order::F))
    }

    /// Adds the face normal to `direction` whose first corner is node `corner`.
    fn push(
        &mut self,
        faces: &mut Faces,
        direction: usize,
        corner: [u64; 3],
        cell: u64,
    ) -> Result<()> {
        let left = self.faces_left.checked_sub(1);
        self.faces_left = left.ok_or_else(|| Error::limit("faces exceed the memory limit"))?;
        let first: u64 = corner.iter().zip(self.strides).map(|(at, stride)| at * stride).sum();
        let (a, b) = tangents(direction);
        let (a, b) = (self.strides[a], self.strides[b]);
        faces.corners.push([first, first + a, first + a + b, first + b]);
        faces.cells.push(cell);
        Ok(())
    }

    /// Faces between each of `count` obstacles and free cells; the adjacent cell is the free one. An
    /// obstacle has no face at the end of the grid.
    fn obstacle_faces(&mut self, numbers: &[f64], count: usize) -> Result<Vec<Faces>> {
        let mut all: Vec<Faces> = std::iter::repeat_with(Faces::default).take(count).collect();
        let cells = self.grid.cells.clone();
        let strides = Shape::new(cells.clone()).strides(Order::F);
        for direction in 0..3 {
            let (a, b) = tangents(direction);
            for (kb, ka) in pairs(cells[b], cells[a]) {
                let row = ka * strides[a] + kb * strides[b];
                for at in 1..cells[direction] {
                    let upper = row + at * strides[direction];
                    let lower = upper - strides[direction];
                    let pair = [lower, upper].map(|cell| numbers.get(cell as usize).copied());
                    let (number, free) = match pair {
                        [Some(0.0), Some(0.0)] => continue,
                        [Some(number), Some(0.0)] => (number, upper),
                        [Some(0.0), Some(number)] => (number, lower),
                        _ => continue,
                    };
                    // Only integers with a name are obstacles.
                    let index = number as usize;
                    if index == 0 || index > count || index as f64 != number {
                        continue;
                    }
                    let mut corner = [0; 3];
                    (corner[direction], corner[a], corner[b]) = (at, ka, kb);
                    self.push(&mut all[index - 1], direction, corner, free)?;
                }
            }
        }
        Ok(all)
    }

    /// Outer faces of the grid, without those of obstacle cells.
    fn outer_faces(&mut self, numbers: Option<&[f64]>) -> Result<Faces> {
        let mut faces = Faces::default();
        let cells = self.grid.cells.clone();
        let strides = Shape::new(cells.clone()).strides(Order::F);
        for direction in 0..3 {
            let (a, b) = tangents(direction);
            for (at, layer) in [(0, 0), (cells[direction], cells[direction] - 1)] {
                for (kb, ka) in pairs(cells[b], cells[a]) {
                    let cell = layer * strides[direction] + ka * strides[a] + kb * strides[b];
                    let solid = numbers.and_then(|all| all.get(cell as usize));
                    if solid.is_some_and(|number| *number != 0.0) {
                        continue;
                    }
                    let mut corner = [0; 3];
                    (corner[direction], corner[a], corner[b]) = (at, ka, kb);
                    self.push(&mut faces, direction, corner, cell)?;
                }
            }
        }
        Ok(faces)
    }

    /// Adds a surface: vertices, faces and the values of all fields in the adjacent cells.
    fn add_surface(&mut self, name: &str, id: &str, faces: &Faces) -> Result<()> {
        let mut used: Vec<u64> = faces.corners.iter().flatten().copied().collect();
        used.sort_unstable();
        used.dedup();
        let points = self.vertices(&used)?;
        let mut corners = Vec::with_capacity(faces.corners.len() * 16);
        for corner in faces.corners.iter().flatten() {
            let number = used.partition_point(|node| node < corner);
            let number =
                i32::try_from(number).map_err(|_| Error::limit("more than 2^31 vertices"))?;
            corners.extend(number.to_le_bytes());
        }
        let group = self.add_group(name, id)?;
        let lists = [
            ("vertices", DType::F64, used.len(), 3, points, ["vertex", "direction"]),
            ("faces", DType::I32, faces.cells.len(), 4, corners, ["face", "corner"]),
        ];
        for (name, dtype, count, each, bytes, dims) in lists {
            let shape = Shape::new([count as u64, each]);
            let mut desc = ArrayDesc::new(dtype, shape, Layout::Inline(bytes.into(), Order::C));
            desc.dims = dims.map(ToString::to_string).to_vec();
            let new = self.tree.add_array(group, name, desc)?;
            let description =
                if each == 3 { "coordinates of the vertices" } else { "indices of the vertices" };
            self.tree.node_mut(new).attrs = derived_attrs(description, Vec::new(), &[]);
        }
        for field in &self.grid.fields {
            let Some(own) = self.tree.node(field.node).array.clone() else { continue };
            let Some(data) = extent(&own) else { continue };
            let layout = Layout::Plain {
                extents: elements(data.offset, own.dtype.size() as u64, &faces.cells)?,
                order: Order::F,
            };
            let shape = Shape::new([faces.cells.len() as u64]);
            let mut desc = ArrayDesc::new(own.dtype, shape, layout);
            (desc.dims, desc.map) = (vec!["face".into()], own.map);
            self.add_field(group, id, field, desc, "values in the adjacent cells")?;
        }
        Ok(())
    }

    /// Coordinates of the nodes with these indices, three little-endian `f64` each.
    fn vertices(&self, numbers: &[u64]) -> Result<Vec<u8>> {
        let mut axes = Vec::new();
        for axis in &self.grid.axes {
            let desc = self.tree.node(*axis).array.as_ref();
            let desc =
                desc.ok_or_else(|| Error::malformed("sdf-015", "mesh without coordinates"))?;
            let array = Array::open(self.source, self.tree, desc, self.limits)?;
            axes.push(array.read_f64(&Selection::all(), Axes::Stored)?);
        }
        let mut bytes = Vec::with_capacity(numbers.len() * 24);
        for number in numbers {
            let mut rest = *number;
            for (axis, cells) in axes.iter().zip(&self.grid.cells) {
                let at = (rest % (cells + 1)) as usize;
                rest /= cells + 1;
                let value = axis.get(at).copied().unwrap_or(f64::NAN);
                bytes.extend(value.to_le_bytes());
            }
        }
        Ok(bytes)
    }
}

/// The two directions of a face with normal `direction`.
fn tangents(direction: usize) -> (usize, usize) {
    match direction {
        0 => (1, 2),
        1 => (0, 2),
        _ => (0, 1),
    }
}

fn pairs(outer: u64, inner: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..outer).flat_map(move |o| (0..inner).map(move |i| (o, i)))
}

/// The layer of an array at index `at` of `direction`, an array with one dimension less; `None` if
/// the array is not stored in a single extent.
fn layer(mut desc: ArrayDesc, direction: usize, at: u64) -> Result<Option<ArrayDesc>> {
    let Some(data) = extent(&desc) else { return Ok(None) };
    let mut lengths = desc.shape.lengths().to_vec();
    let size = desc.dtype.size() as u64;
    // No overflow: all elements are in the file.
    let row = lengths[..direction].iter().product::<u64>() * size;
    let count = lengths[direction + 1..].iter().product::<u64>();
    let distance = row * lengths[direction];
    let start = data.offset.saturating_add(at * row);
    let order = Order::F;
    desc.layout = if direction == 0 {
        let span = count.saturating_sub(1) * distance + size;
        Layout::Rows { extents: Extents::one(start, span), stride: distance, order }
    } else {
        let part = |k| Extent { offset: start.saturating_add(k * distance), len: row };
        Layout::Plain { extents: Extents::several((0..count).map(part).collect())?, order }
    };
    lengths.remove(direction);
    desc.shape = Shape::new(lengths);
    desc.dims.remove(direction);
    desc.coords.remove(direction);
    Ok(Some(desc))
}

/// Extents of the elements with these indices; adjacent elements share an extent.
fn elements(offset: u64, size: u64, numbers: &[u64]) -> Result<Extents> {
    let mut parts: Vec<Extent> = Vec::new();
    for number in numbers {
        let at = offset.saturating_add(number * size);
        match parts.last_mut() {
            Some(last) if last.offset + last.len == at => last.len += size,
            _ => parts.push(Extent { offset: at, len: size }),
        }
    }
    Extents::several(parts)
}
