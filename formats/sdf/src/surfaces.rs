//! The surfaces of a grid and of the obstacles in it, with the values of fields on them: what the C
//! library calls `boundary` and `obmsh`. Which faces there are is found out when the file is opened;
//! values stay in the file and are read from there.

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

use crate::computed::{range, said};
use crate::index::Block;
use crate::kind::BlockType;
use crate::meta::{Meta, PlainVariable};
use crate::view::Builder;

/// The group of all surfaces.
const GROUP: &str = "Surface Values";

/// What a face takes in memory while surfaces are made, fields apart: corners, cell, vertices.
const FACE: u64 = 160;

/// A cell-centred field on the grid: its array, and the identifier of its block.
struct Field {
    node: NodeId,
    id: String,
}

/// A grid whose surfaces are wanted.
struct Grid {
    /// Cells along each direction; never none.
    cells: Vec<u64>,
    axes: Vec<NodeId>,
    fields: Vec<Field>,
}

/// Adds the surfaces of the grid that the C library would take: the one of the first obstacles, else
/// that of the first field of three directions; ours also takes one of two.
pub(crate) fn add(view: &mut Builder<'_>, source: &Source, report: &mut Report) -> Result<()> {
    let blocks = view.blocks;
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
    let mut known = obstacles.iter().map(|(k, _)| *k);
    let first = known.find_map(|k| view.grid(k, &obstacles));
    let largest = [3, 2].into_iter();
    let any = largest.flat_map(|rank| (0..blocks.len()).map(move |k| (rank, k)));
    let any = any.filter(|(rank, k)| blocks[*k].header.ndims == *rank);
    let Some(grid) = first.or_else(|| any.map(|(_, k)| k).find_map(|k| view.grid(k, &obstacles)))
    else {
        return Ok(());
    };
    let nodes = Shape::new(grid.cells.iter().map(|n| n + 1).collect::<Vec<_>>());
    let mut strides = nodes.strides(Order::F);
    strides.resize(3, 0);
    let mut maker = Maker {
        nodes: [strides[0], strides[1], strides[2]],
        tree: &mut view.tree,
        source,
        limits: view.limits,
        faces: view.limits.memory / 4 / (FACE + 24 * grid.fields.len() as u64),
        grid: &grid,
    };
    maker.sides()?;
    if grid.cells.len() < 3 {
        return Ok(());
    }
    let mut inside = None;
    let mut seen = HashSet::new();
    for (k, names) in &obstacles {
        let (Some(node), Meta::PlainVariable(v)) = (view.places[*k], &blocks[*k].meta) else {
            continue;
        };
        if v.dims != grid.cells || !seen.insert(*k) {
            continue;
        }
        let made = maker.numbers(node).and_then(|numbers| {
            let surfaces = maker.between(&numbers, names.len())?;
            for (name, faces) in names.iter().zip(&surfaces) {
                maker.surface(name, &format!("obmsh{name}"), faces)?;
            }
            inside.get_or_insert(numbers);
            Ok(())
        });
        left_out(report, made, &blocks[*k].header.id)?;
    }
    let made = maker.outside(inside.as_deref());
    let made = made.and_then(|faces| maker.surface("boundary", "boundary", &faces));
    left_out(report, made, "boundary")
}

/// Surfaces that are too large are left out; the rest of the file is as readable as without them.
fn left_out(report: &mut Report, made: Result<()>, object: &str) -> Result<()> {
    match made {
        Err(error) if error.kind() == ErrorKind::Limit => {
            let message = format!("surfaces are left out: {}", error.message());
            let finding = report.warn("sdf-047", message).in_object(object);
            finding.hint("raise the budget with --max-memory");
            Ok(())
        }
        other => other,
    }
}

impl Builder<'_> {
    /// The grid of block `k`, where that is a variable in the middle of the cells of a plain mesh.
    fn grid(&self, k: usize, obstacles: &[(usize, &[String])]) -> Option<Grid> {
        let centred = |k: usize| match &self.blocks[k].meta {
            Meta::PlainVariable(v) if v.stagger == 0 => {
                Some((self.meshes.find(&v.mesh_id)?, v, self.places[k]?))
            }
            _ => None,
        };
        let (mesh, PlainVariable { dims, .. }, _) = centred(k)?;
        let Meta::Mesh(nodes) = &self.blocks[mesh].meta else { return None };
        let axes = self.axes.get(&mesh)?;
        // Numbers of nodes fit, whatever is in the file.
        Shape::new(nodes.dims.clone()).count()?;
        let less = nodes.dims.iter().map(|n| n.checked_sub(1)).collect::<Option<Vec<u64>>>()?;
        let fits = less == *dims && axes.len() == dims.len() && !dims.contains(&0);
        if !fits || self.blocks[mesh].kind() != BlockType::PlainMesh {
            return None;
        }
        let field = |k: usize| {
            let (its, v, node) = centred(k)?;
            let desc = self.tree.node(node).array.as_ref()?;
            let whole = range(desc).is_some() && desc.shape.lengths() == v.dims;
            let fits = its == mesh && v.dims == *dims && whole;
            (fits && obstacles.iter().all(|(obstacle, _)| *obstacle != k))
                .then(|| Field { node, id: self.blocks[k].header.id.clone() })
        };
        let fields = (0..self.blocks.len()).filter_map(field).collect();
        Some(Grid { cells: dims.clone(), axes: axes.clone(), fields })
    }
}

/// Faces, each with the numbers of its corners among all nodes and that of the cell it belongs to.
#[derive(Default)]
struct Faces {
    corners: Vec<[u64; 4]>,
    cells: Vec<u64>,
}

struct Maker<'a> {
    tree: &'a mut Tree,
    source: &'a Source,
    limits: &'a Limits,
    grid: &'a Grid,
    /// Nodes of the grid from one to the next along each direction.
    nodes: [u64; 3],
    /// Faces that may still be made.
    faces: u64,
}

impl Maker<'_> {
    /// The outer layer of cells at each end of each direction: groups `boundary_x_min` to
    /// `boundary_z_max` with a part of every field.
    fn sides(&mut self) -> Result<()> {
        let cells = &self.grid.cells;
        for (direction, letter) in ["x", "y", "z"].into_iter().enumerate().take(cells.len()) {
            for (end, at) in [("min", 0), ("max", cells[direction] - 1)] {
                let name = format!("boundary_{letter}_{end}");
                let group = self.group(&name, &name)?;
                for field in &self.grid.fields {
                    let Some(desc) = self.tree.node(field.node).array.clone() else { continue };
                    let Some(desc) = layer(desc, direction, at)? else { continue };
                    self.value(group, &name, field, desc, "the outer layer of cells")?;
                }
            }
        }
        Ok(())
    }

    fn group(&mut self, name: &str, id: &str) -> Result<NodeId> {
        let all = self.tree.group_at(GROUP)?;
        let group = self.tree.add_group(all, name)?;
        self.tree.node_mut(group).id = Some(id.to_string());
        Ok(group)
    }

    /// Adds what a surface has of a field, below the surface's group as the field is in the file.
    fn value(
        &mut self,
        group: NodeId,
        surface: &str,
        field: &Field,
        desc: ArrayDesc,
        words: &str,
    ) -> Result<()> {
        let (above, own) = (self.tree.node(group).path.clone(), self.tree.node(field.node).clone());
        let (below, name) = own.path.rsplit_once('/').unwrap_or(("", &own.path));
        let parent = self.tree.group_at(&format!("{above}/{below}"))?;
        let id = self.tree.add_array(parent, name, desc)?;
        let node = self.tree.node_mut(id);
        node.attrs = said(words, own.attrs, &["units", "mesh"]);
        node.id = Some(format!("{surface}/{}", field.id));
        Ok(())
    }

    /// The number of the obstacle that each cell belongs to; 0 for none.
    fn numbers(&self, obstacle: NodeId) -> Result<Vec<f64>> {
        let desc = self.tree.node(obstacle).array.as_ref();
        let desc = desc.ok_or_else(|| Error::malformed("sdf-015", "obstacles without numbers"))?;
        let array = Array::open(self.source, self.tree, desc, self.limits)?;
        array.read_f64(&Selection::all(), Axes::Order(Order::F))
    }

    /// Adds the face across `direction` whose first corner is at `place`.
    fn push(
        &mut self,
        faces: &mut Faces,
        direction: usize,
        place: [u64; 3],
        cell: u64,
    ) -> Result<()> {
        let left = self.faces.checked_sub(1);
        self.faces = left.ok_or_else(|| Error::limit("more faces than the budget allows"))?;
        let first: u64 = place.iter().zip(self.nodes).map(|(at, stride)| at * stride).sum();
        let (a, b) = across(direction);
        let (a, b) = (self.nodes[a], self.nodes[b]);
        faces.corners.push([first, first + a, first + a + b, first + b]);
        faces.cells.push(cell);
        Ok(())
    }

    /// Faces between cells of each of `count` obstacles and free ones, which they belong to. Beyond
    /// the grid there is nothing, so its own surface is none of an obstacle.
    fn between(&mut self, numbers: &[f64], count: usize) -> Result<Vec<Faces>> {
        let mut all: Vec<Faces> = std::iter::repeat_with(Faces::default).take(count).collect();
        let cells = self.grid.cells.clone();
        let strides = Shape::new(cells.clone()).strides(Order::F);
        for direction in 0..3 {
            let (a, b) = across(direction);
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
                    // Numbers below 1, fractions and those without a name are no obstacles.
                    let index = number as usize;
                    if index == 0 || index > count || index as f64 != number {
                        continue;
                    }
                    let mut place = [0; 3];
                    (place[direction], place[a], place[b]) = (at, ka, kb);
                    self.push(&mut all[index - 1], direction, place, free)?;
                }
            }
        }
        Ok(all)
    }

    /// The outer faces of the grid, but for those of cells that are obstacles.
    fn outside(&mut self, numbers: Option<&[f64]>) -> Result<Faces> {
        let mut faces = Faces::default();
        let cells = self.grid.cells.clone();
        let strides = Shape::new(cells.clone()).strides(Order::F);
        for direction in 0..3 {
            let (a, b) = across(direction);
            for (at, layer) in [(0, 0), (cells[direction], cells[direction] - 1)] {
                for (kb, ka) in pairs(cells[b], cells[a]) {
                    let cell = layer * strides[direction] + ka * strides[a] + kb * strides[b];
                    let solid = numbers.and_then(|all| all.get(cell as usize));
                    if solid.is_some_and(|number| *number != 0.0) {
                        continue;
                    }
                    let mut place = [0; 3];
                    (place[direction], place[a], place[b]) = (at, ka, kb);
                    self.push(&mut faces, direction, place, cell)?;
                }
            }
        }
        Ok(faces)
    }

    /// Adds a surface: its vertices, its faces, and the fields in the cells that the faces belong to.
    fn surface(&mut self, name: &str, id: &str, faces: &Faces) -> Result<()> {
        let mut used: Vec<u64> = faces.corners.iter().flatten().copied().collect();
        used.sort_unstable();
        used.dedup();
        let points = self.vertices(&used)?;
        let mut corners = Vec::with_capacity(faces.corners.len() * 16);
        for corner in faces.corners.iter().flatten() {
            let number = used.partition_point(|node| node < corner);
            let number = i32::try_from(number).map_err(|_| Error::limit("too many vertices"))?;
            corners.extend(number.to_le_bytes());
        }
        let group = self.group(name, id)?;
        let lists = [
            ("vertices", DType::F64, used.len(), 3, points, ["vertex", "direction"]),
            ("faces", DType::I32, faces.cells.len(), 4, corners, ["face", "corner"]),
        ];
        for (name, dtype, count, each, bytes, dims) in lists {
            let shape = Shape::new([count as u64, each]);
            let mut desc = ArrayDesc::new(dtype, shape, Layout::Inline(bytes.into(), Order::C));
            desc.dims = dims.map(ToString::to_string).to_vec();
            let new = self.tree.add_array(group, name, desc)?;
            let words = if each == 3 { "where the corners are" } else { "numbers of vertices" };
            self.tree.node_mut(new).attrs = said(words, Vec::new(), &[]);
        }
        for field in &self.grid.fields {
            let Some(own) = self.tree.node(field.node).array.clone() else { continue };
            let Some(data) = range(&own) else { continue };
            let layout = Layout::Plain {
                extents: elements(data.offset, own.dtype.size() as u64, &faces.cells)?,
                order: Order::F,
            };
            let shape = Shape::new([faces.cells.len() as u64]);
            let mut desc = ArrayDesc::new(own.dtype, shape, layout);
            (desc.dims, desc.map) = (vec!["face".into()], own.map);
            self.value(group, id, field, desc, "in the free cells at the faces")?;
        }
        Ok(())
    }

    /// Coordinates of nodes by their numbers, three each, little-endian.
    fn vertices(&self, numbers: &[u64]) -> Result<Vec<u8>> {
        let mut axes = Vec::new();
        for axis in &self.grid.axes {
            let desc = self.tree.node(*axis).array.as_ref();
            let desc = desc.ok_or_else(|| Error::malformed("sdf-015", "no coordinates"))?;
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

/// The two directions of a face, by the one that it is across.
fn across(direction: usize) -> (usize, usize) {
    match direction {
        0 => (1, 2),
        1 => (0, 2),
        _ => (0, 1),
    }
}

fn pairs(outer: u64, inner: u64) -> impl Iterator<Item = (u64, u64)> {
    (0..outer).flat_map(move |o| (0..inner).map(move |i| (o, i)))
}

/// The layer of an array at place `at` of `direction`, as an array of one dimension less.
fn layer(mut desc: ArrayDesc, direction: usize, at: u64) -> Result<Option<ArrayDesc>> {
    let Some(data) = range(&desc) else { return Ok(None) };
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

/// The ranges of elements by their numbers; neighbours are one range.
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
