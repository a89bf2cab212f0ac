//! Finds the arrays of a tree that share a grid.

use std::collections::{HashMap, HashSet};

use spile_core::layout::{ArrayDesc, Coord};
use spile_core::semantics::{Centring, Role};
use spile_core::shape::Order;
use spile_core::tree::{NodeId, Tree};
use spile_interchange::midpoints::{nodes_beside, nodes_of};

use crate::wire::type_name;

/// Coordinates along an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AxisCoord {
    /// Unknown: the index.
    Index,
    Uniform {
        start: f64,
        step: f64,
    },
    Nodes(NodeId),
}

/// An axis of the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Axis {
    pub(crate) coord: AxisCoord,
    /// Number of points.
    pub(crate) points: u64,
}

/// A grid: its axes, x first, and the arrays on its points and cells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    pub(crate) axes: Vec<Axis>,
    pub(crate) points: Vec<NodeId>,
    pub(crate) cells: Vec<NodeId>,
    /// An array has the role of a field.
    pub(crate) has_field: bool,
}

/// Arrays that are coordinates of others.
pub(crate) fn coordinates(tree: &Tree) -> HashSet<NodeId> {
    let mut found = HashSet::new();
    for (_, _, array) in tree.arrays() {
        for coord in &array.coords {
            if let Coord::Node(id) = coord {
                found.insert(*id);
                found.extend(nodes_of(tree, *id).or_else(|| nodes_beside(tree, *id, "face")));
            }
        }
    }
    found
}

/// The dimensions of an array that are axes, x first, and its number of components.
pub(crate) fn axes(desc: &ArrayDesc) -> (Vec<usize>, u64) {
    let mut dims: Vec<usize> = (0..desc.shape.rank()).collect();
    if desc.order() == Order::C {
        dims.reverse();
    }
    match dims.first() {
        Some(first) if dims.len() > 1 && desc.dims[*first] == "component" => {
            let components = desc.shape.lengths()[*first];
            dims.remove(0);
            (dims, components)
        }
        _ => (dims, 1),
    }
}

/// The axes of an array's grid, and whether the array is on its cells. `None` if it is on no grid.
fn axes_of(tree: &Tree, desc: &ArrayDesc) -> Option<(Vec<Axis>, bool)> {
    let own = tree.resolve(desc).ok()?;
    type_name(own.dtype).filter(|_| own.ragged().is_none())?;
    let (dims, _) = axes(desc);
    let lengths = desc.shape.lengths();
    if dims.is_empty() || dims.len() > 3 {
        return None;
    }
    let (mut found, mut centres) = (Vec::new(), 0);
    for dim in &dims {
        let points = lengths[*dim];
        let same_length = |id: NodeId| match &tree.node(id).array {
            Some(nodes) => nodes.shape.lengths() == [points],
            None => false,
        };
        found.push(match desc.coords[*dim] {
            Coord::None => Axis { coord: AxisCoord::Index, points },
            Coord::Uniform { start, step } => {
                Axis { coord: AxisCoord::Uniform { start, step }, points }
            }
            // A field on upper faces of cells (EPOCH) is assigned to the cells, half a cell away.
            Coord::Node(id) => match nodes_of(tree, id)
                .or_else(|| nodes_beside(tree, id, "face"))
                .filter(|_| same_length(id))
            {
                Some(nodes) => {
                    centres += 1;
                    Axis { coord: AxisCoord::Nodes(nodes), points: points.checked_add(1)? }
                }
                None if same_length(id) => Axis { coord: AxisCoord::Nodes(id), points },
                None => Axis { coord: AxisCoord::Index, points },
            },
        });
    }
    (centres == 0 || centres == dims.len()).then_some((found, centres > 0))
}

/// Key that is equal for equal grids.
fn key(axes: &[Axis]) -> Vec<(u64, Option<NodeId>, u64, u64)> {
    let one = |axis: &Axis| match axis.coord {
        AxisCoord::Index => (axis.points, None, 0, 0),
        AxisCoord::Uniform { start, step } => (axis.points, None, start.to_bits(), step.to_bits()),
        AxisCoord::Nodes(id) => (axis.points, Some(id), 0, 0),
    };
    axes.iter().map(one).collect()
}

/// The grid with the most fields, and of those the one with the most dimensions: a distribution function may
/// have more dimensions than the fields of a simulation. Without fields, the grid of the arrays with the most
/// dimensions.
pub(crate) fn find(tree: &Tree) -> Option<Grid> {
    let known = coordinates(tree);
    let mut grids: Vec<Grid> = Vec::new();
    let mut numbers = HashMap::new();
    for (id, node, desc) in tree.arrays() {
        let role = desc.semantics().role;
        let other = matches!(role, Role::Points | Role::Mesh | Role::Log | Role::Text | Role::Cell);
        if other || known.contains(&id) || node.path.starts_with("FieldData/") {
            continue;
        }
        let Some((axes, cells)) = axes_of(tree, desc) else { continue };
        let at = *numbers.entry(key(&axes)).or_insert_with(|| {
            grids.push(Grid { axes, ..Grid::default() });
            grids.len() - 1
        });
        let grid = &mut grids[at];
        if cells {
            grid.cells.push(id);
        } else {
            grid.points.push(id);
        }
        grid.has_field |= role == Role::Field;
    }
    // A grid of one point less, shifted by half a step, has the cell centres.
    for k in 0..grids.len() {
        let inner: Option<Vec<Axis>> = grids[k].axes.iter().map(cell_centres).collect();
        let Some(inner) = inner.filter(|_| !grids[k].points.is_empty()) else { continue };
        if let Some(of_cells) = numbers.get(&key(&inner)).copied() {
            let cells = std::mem::take(&mut grids[of_cells].points);
            grids[k].cells.extend(cells);
        }
    }
    let count = |grid: &Grid| grid.points.len() + grid.cells.len();
    grids.retain(|grid| count(grid) > 0);
    let size = |grid: &Grid| {
        let (rank, count) = (grid.axes.len(), count(grid));
        if grid.has_field { (true, count, rank) } else { (false, rank, count) }
    };
    // The first of equal ones.
    let mut best = grids.into_iter().rev().max_by_key(size)?;
    let in_cells = |id: &NodeId| {
        let node = tree.node(*id);
        let centring = node.array.as_ref().and_then(|desc| desc.semantics().centring);
        centring == Some(Centring::Cell) || node.path.starts_with("CellData/")
    };
    if best.cells.is_empty() && best.points.iter().all(in_cells) {
        let outer: Option<Vec<Axis>> = best.axes.iter().map(nodes).collect();
        if let Some(axes) = outer {
            best = Grid { axes, cells: best.points, points: Vec::new(), ..best };
        }
    }
    Some(best)
}

/// The cell centres of a uniform axis.
fn cell_centres(axis: &Axis) -> Option<Axis> {
    let AxisCoord::Uniform { start, step } = axis.coord else { return None };
    let coord = AxisCoord::Uniform { start: start + step / 2.0, step };
    Some(Axis { coord, points: axis.points.checked_sub(1)? })
}

/// The nodes of a uniform axis of cell centres; `None` if they are not exactly representable.
fn nodes(axis: &Axis) -> Option<Axis> {
    let AxisCoord::Uniform { start, step } = axis.coord else { return None };
    let near = start - step / 2.0;
    let exact = [near, near.next_up(), near.next_down()];
    let first = exact.into_iter().find(|first| first + step / 2.0 == start)?;
    let coord = AxisCoord::Uniform { start: first, step };
    Some(Axis { coord, points: axis.points.checked_add(1)? })
}
