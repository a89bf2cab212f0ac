//! Surfaces of a grid and of the obstacles in it, with the values of fields on them, named `boundary`
//! and `obmsh` as in the SDF C library. Faces are found when the file is opened; vertices and field
//! values are computed when they are read.

use std::collections::HashSet;
use std::sync::Arc;

use spile_core::semantics::Centring;
use spile_core::{
    Array, ArrayDesc, Attrs, Axes, DType, Dataset, Error, ErrorKind, Extent, Hint, Limits, NodeId,
    Order, Report, Result, Role, Selection, Semantics, Shape, Slice, Source, Tree,
};

use super::derived::{PIECE, computed, derived_attrs, extent, no_input};
use crate::block::{Block, stored};
use crate::to_tree::Builder;
use crate::wire::block_type::BlockType;
use crate::wire::meta::{Meta, PlainVariable};

/// Path of the group of all surfaces.
const GROUP: &str = "Surface Values";

/// Memory per face during construction, in bytes: corners, cell, and up to four vertices.
const FACE: u64 = 128;

/// The two directions of a face, by the direction of its normal.
const TANGENTS: [(usize, usize); 3] = [(1, 2), (0, 2), (0, 1)];

/// Maximum number of elements that are read but not used between two elements of a field.
const GAP: u64 = 512;

/// The grid whose surfaces are computed.
struct Grid {
    /// Number of cells along each direction, at least 1.
    cells: Vec<u64>,
    axes: Vec<NodeId>,
    /// Cell-centred fields.
    fields: Vec<NodeId>,
}

/// Adds the surfaces of one grid: that of the first obstacles, otherwise that of the first
/// cell-centred field in three dimensions, otherwise in two.
pub(crate) fn add(builder: &mut Builder<'_>, source: &Source) -> Result<()> {
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
    let report = &mut builder.report;
    let mut surfaces = Surfaces {
        strides: [strides[0], strides[1], strides[2]],
        tree: &mut builder.tree,
        source,
        limits: builder.limits,
        // An eighth of the memory is for faces.
        faces_left: builder.limits.memory / 8 / FACE,
        grid: &grid,
    };
    surfaces.add_sides()?;
    if grid.cells.len() < 3 {
        return Ok(());
    }
    // Numbers of the obstacles in the cells. Without them, which cells are free is unknown.
    let mut solid = None;
    let mut unread = false;
    let mut seen = HashSet::new();
    for (k, names) in &obstacles {
        let (Some(node), Meta::PlainVariable(v)) = (builder.nodes[*k], &blocks[*k].meta) else {
            continue;
        };
        if v.dims != grid.cells || !seen.insert(*k) {
            continue;
        }
        let added = surfaces.obstacle_numbers(node).and_then(|numbers| {
            let all = surfaces.obstacle_faces(&numbers, names.len());
            solid.get_or_insert(numbers);
            for (name, faces) in names.iter().zip(all?) {
                surfaces.add_surface(name, &format!("obmsh{name}"), &faces)?;
            }
            Ok(())
        });
        unread |= solid.is_none();
        skip_over_limit(report, added, &blocks[*k].header.id)?;
    }
    let faces = match solid {
        None if unread => Err(Error::limit("the obstacle cells exceed the memory limit")),
        _ => surfaces.outer_faces(solid.as_deref()),
    };
    let added = faces.and_then(|faces| surfaces.add_surface("boundary", "boundary", &faces));
    skip_over_limit(report, added, "boundary")
}

/// Reports a surface that exceeds the memory limit; other errors are returned.
fn skip_over_limit(report: &mut Report, added: Result<()>, object: &str) -> Result<()> {
    match added {
        Err(error) if error.kind() == ErrorKind::Limit => {
            let message = format!("surface omitted: {}", error.message());
            report.warn("sdf-047", message).in_object(object).hint(Hint::RaiseMemory);
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
            let desc = self.tree.array(node)?;
            let complete = extent(desc).is_some() && desc.shape.lengths() == v.dims;
            let fits = own_mesh == mesh && v.dims == *dims && complete;
            (fits && obstacles.iter().all(|(obstacle, _)| *obstacle != k)).then_some(node)
        };
        let fields = self.order.iter().filter_map(|k| field(*k)).collect();
        Some(Grid { cells: dims.clone(), axes: axes.clone(), fields })
    }
}

/// A four-sided face.
struct Face {
    /// Node indices of the corners, in order around it.
    corners: [u64; 4],
    /// Index of the adjacent cell.
    cell: u64,
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
                    let own = self.tree.array(*field);
                    let Some(desc) = own.and_then(|own| layer(own, direction, at)) else {
                        continue;
                    };
                    self.add_field(group, &name, *field, desc, "outer layer of cells")?;
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
        field: NodeId,
        desc: ArrayDesc,
        description: &str,
    ) -> Result<()> {
        let (group, own) = (self.tree.node(group).path.clone(), self.tree.node(field).clone());
        let (parent, name) = own.path.rsplit_once('/').unwrap_or(("", &own.path));
        let parent = self.tree.node_at(&format!("{group}/{parent}"))?;
        let id = self.tree.add_array(parent, name, desc)?;
        self.tree.node_mut(id).id = Some(format!("{surface}/{}", own.id.unwrap_or_default()));
        self.tree.set_attrs(id, derived_attrs(description, &own.attrs, &["units", "mesh"]))
    }

    /// Number of the obstacle that contains each cell; 0 for none.
    fn obstacle_numbers(&self, obstacle: NodeId) -> Result<Vec<f64>> {
        let desc = self.tree.array(obstacle);
        let desc =
            desc.ok_or_else(|| Error::malformed("sdf-018", "obstacle block without data"))?;
        let dataset = Dataset::of_bytes(self.source.clone(), self.limits);
        dataset.open_array(desc)?.read_f64(&Selection::all(), Axes::Order(Order::F))
    }

    /// Adds the face normal to `direction` whose first corner is node `at`, with `(ka, kb)` in the other
    /// directions.
    fn push(
        &mut self,
        faces: &mut Vec<Face>,
        (direction, at, ka, kb): (usize, u64, u64, u64),
        cell: u64,
    ) -> Result<()> {
        let left = self.faces_left.checked_sub(1);
        self.faces_left = left.ok_or_else(|| Error::limit("faces exceed the memory limit"))?;
        let (a, b) = TANGENTS[direction];
        let (normal, a, b) = (self.strides[direction], self.strides[a], self.strides[b]);
        let first = at * normal + ka * a + kb * b;
        faces.push(Face { corners: [first, first + a, first + a + b, first + b], cell });
        Ok(())
    }

    /// Faces between each of `count` obstacles and free cells; the adjacent cell is the free one. An
    /// obstacle has no face at the end of the grid.
    fn obstacle_faces(&mut self, numbers: &[f64], count: usize) -> Result<Vec<Vec<Face>>> {
        let mut all: Vec<Vec<Face>> = (0..count).map(|_| Vec::new()).collect();
        let cells = self.grid.cells.clone();
        let strides = Shape::new(cells.clone()).strides(Order::F);
        for direction in 0..3 {
            let (a, b) = TANGENTS[direction];
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
                    self.push(&mut all[index - 1], (direction, at, ka, kb), free)?;
                }
            }
        }
        Ok(all)
    }

    /// Outer faces of the grid, without those of obstacle cells.
    fn outer_faces(&mut self, numbers: Option<&[f64]>) -> Result<Vec<Face>> {
        let mut faces = Vec::new();
        let cells = self.grid.cells.clone();
        let strides = Shape::new(cells.clone()).strides(Order::F);
        for direction in 0..3 {
            let (a, b) = TANGENTS[direction];
            for (at, layer) in [(0, 0), (cells[direction], cells[direction] - 1)] {
                for (kb, ka) in pairs(cells[b], cells[a]) {
                    let cell = layer * strides[direction] + ka * strides[a] + kb * strides[b];
                    let solid = numbers.and_then(|all| all.get(cell as usize));
                    if solid.is_some_and(|number| *number != 0.0) {
                        continue;
                    }
                    self.push(&mut faces, (direction, at, ka, kb), cell)?;
                }
            }
        }
        Ok(faces)
    }

    /// Adds a surface: vertices, faces and the values of all fields in the adjacent cells.
    fn add_surface(&mut self, name: &str, id: &str, faces: &[Face]) -> Result<()> {
        let mut nodes: Vec<u64> = faces.iter().flat_map(|face| face.corners).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.shrink_to_fit();
        if i32::try_from(nodes.len()).is_err() {
            return Err(Error::limit("more than 2^31 vertices"));
        }
        let (count, vertices) = (faces.len() as u64, nodes.len() as u64);
        self.tree.charge((3 * count + vertices).saturating_mul(8), "surfaces")?;
        let group = self.add_group(name, id)?;
        let number = |node| nodes.partition_point(|known| *known < node) as i32;
        let corners = faces.iter().flat_map(|face| face.corners);
        let corners: Vec<u8> = corners.flat_map(|node| number(node).to_le_bytes()).collect();
        let corners = ArrayDesc::inline(DType::I32, Shape::new([count, 4]), corners);
        let points = self.vertices(nodes).with_semantics(Semantics::role(Role::Mesh));
        let lists = [
            ("vertices", points, ["vertex", "direction"], "coordinates of the vertices"),
            ("faces", corners, ["face", "corner"], "indices of the vertices"),
        ];
        for (name, mut desc, dims, description) in lists {
            desc.dims = dims.map(ToString::to_string).to_vec();
            let new = self.tree.add_array(group, name, desc)?;
            self.tree.set_attrs(new, derived_attrs(description, &Attrs::new(), &[]))?;
        }
        let cells: Arc<[u64]> = faces.iter().map(|face| face.cell).collect();
        // Cells read together span at most a piece of the field.
        let all = self.grid.cells.iter().fold(1_u64, |all, n| all.saturating_mul(*n));
        let memory = all.min(PIECE).saturating_mul(16);
        for field in &self.grid.fields {
            let Some(own) = self.tree.node(*field).array.clone() else { continue };
            let Some(all) = own.shape.count() else { continue };
            // As stored: the first index runs fastest.
            let line = ArrayDesc::new(own.dtype, Shape::new([all]), own.layout.clone());
            let types = (own.dtype, Shape::new([count]));
            let cells = cells.clone();
            let compute = move |inputs: &[Array], first: u64, out: &mut [u8]| {
                let [field] = inputs else { return Err(no_input()) };
                let first = first as usize;
                let count = out.len() / field.dtype().size();
                read_cells(field, &cells[first..first + count], out)
            };
            let (name, piece) = ("values on a surface", (PIECE, Order::F));
            let mut desc = computed(name, types, piece, vec![line], move |_| memory, compute);
            (desc.dims, desc.map) = (vec!["face".into()], own.map);
            let semantics = desc.semantics_mut();
            semantics.clone_from(own.semantics());
            (semantics.mesh, semantics.centring) = (Some(group), Some(Centring::Cell));
            self.add_field(group, id, *field, desc, "values in the adjacent cells")?;
        }
        Ok(())
    }

    /// Coordinates of the nodes of the grid with the indices `nodes`.
    fn vertices(&self, nodes: Vec<u64>) -> ArrayDesc {
        let axes = self.grid.axes.iter().filter_map(|axis| self.tree.node(*axis).array.clone());
        let lengths: Vec<u64> = self.grid.cells.iter().map(|n| n + 1).collect();
        let coordinates: u64 = lengths.iter().sum();
        let types = (DType::F64, Shape::new([nodes.len() as u64, 3]));
        let memory = move |count: u64| coordinates.saturating_add(count).saturating_mul(8);
        let compute = move |inputs: &[Array], first: u64, out: &mut [u8]| {
            let axes = inputs.iter().map(Array::values);
            let axes = axes.collect::<Result<Vec<_>>>()?;
            let nodes = nodes.iter().skip(first as usize / 3);
            for (vertex, node) in out.chunks_exact_mut(24).zip(nodes) {
                let mut rest = *node;
                for (k, (axis, length)) in axes.iter().zip(&lengths).enumerate() {
                    let value = axis.get((rest % length) as usize).copied().unwrap_or(f64::NAN);
                    rest /= length;
                    vertex[8 * k..8 * k + 8].copy_from_slice(&value.to_le_bytes());
                }
            }
            Ok(())
        };
        let (name, piece) = ("vertices of a surface", (PIECE / 3 * 3, Order::C));
        computed(name, types, piece, axes.collect(), memory, compute)
    }
}

/// Reads the elements of a field in `cells`.
fn read_cells(field: &Array, mut cells: &[u64], mut out: &mut [u8]) -> Result<()> {
    let size = field.dtype().size();
    while let Some(start) = cells.first().copied() {
        // Cells close to each other are read together.
        let near = |w: &&[u64]| w[1] >= w[0] && w[1] - w[0] <= GAP && w[1] - start < PIECE;
        let count = 1 + cells.windows(2).take_while(near).count();
        let (group, rest) = cells.split_at(count);
        let (values, left) = out.split_at_mut(count * size);
        let part = Slice::range(start, group[count - 1] + 1);
        let bytes = field.read_bytes(&Selection(vec![part]), Axes::Stored)?;
        for (value, cell) in values.chunks_exact_mut(size).zip(group) {
            let at = (cell - start) as usize * size;
            value.copy_from_slice(&bytes[at..at + size]);
        }
        (cells, out) = (rest, left);
    }
    Ok(())
}

fn pairs(outer: u64, inner: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..outer).flat_map(move |o| (0..inner).map(move |i| (o, i)))
}

/// The layer of an array at index `at` of `direction`, an array with one dimension less; `None` if
/// the array is not stored in a single extent.
fn layer(field: &ArrayDesc, direction: usize, at: u64) -> Option<ArrayDesc> {
    let data = extent(field)?;
    let mut lengths = field.shape.lengths().to_vec();
    let length = lengths.remove(direction);
    // No overflow: all elements are in the file.
    let row = lengths[..direction].iter().product::<u64>();
    let rows = lengths[direction..].iter().product::<u64>();
    let shape = Shape::new(lengths);
    let mut desc = if rows == 1 {
        let len = row * field.dtype.size() as u64;
        stored(field.dtype, shape, Extent { offset: data.offset.saturating_add(at * len), len })
    } else {
        let all = Shape::new([row, length, rows]);
        let input = vec![ArrayDesc::new(field.dtype, all, field.layout.clone())];
        let piece = ((PIECE / row.max(1)).max(1) * row, Order::F);
        let compute = move |inputs: &[Array], first: u64, out: &mut [u8]| {
            let [field] = inputs else { return Err(no_input()) };
            let (row, size) = (row.max(1), field.dtype().size());
            let (count, first) = ((out.len() / size) as u64 / row, first / row);
            let layer = Slice::Index(at as i64);
            let part = vec![Slice::range(0, row), layer, Slice::range(first, first + count)];
            field.select(&Selection(part), Axes::Order(Order::F))?.read_into(out)
        };
        let memory = |count: u64| count.saturating_mul(16);
        computed("layer of a field", (field.dtype, shape), piece, input, memory, compute)
    };
    desc.map = field.map;
    (desc.dims, desc.coords) = (field.dims.clone(), field.coords.clone());
    desc.dims.remove(direction);
    desc.coords.remove(direction);
    // The mesh has one direction more.
    desc.semantics_mut().clone_from(field.semantics());
    (desc.semantics_mut().mesh, desc.semantics_mut().centring) = (None, None);
    Some(desc)
}
