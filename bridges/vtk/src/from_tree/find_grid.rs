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

/// Positions of the points of a grid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Position {
    /// The product of the coordinates along the axes.
    #[default]
    Axes,
    /// The coordinates along the axes are fractions of the vectors of this periodic cell.
    Lattice(NodeId),
    /// One array per direction, with the shape of the grid.
    Columns(Vec<NodeId>),
    /// One array whose first, fastest dimension is the component.
    Array(NodeId),
}

/// A grid: its axes, x first, and the arrays on its points and cells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    pub(crate) axes: Vec<Axis>,
    pub(crate) position: Position,
    pub(crate) points: Vec<NodeId>,
    pub(crate) cells: Vec<NodeId>,
    /// An array has the role of a field.
    pub(crate) has_field: bool,
}

impl Grid {
    /// Whether points have coordinates, or an array the role of a field. Arrays on other grids may be tables.
    pub(crate) fn is_placed(&self) -> bool {
        let coords = self.axes.iter().any(|axis| axis.coord != AxisCoord::Index);
        self.has_field || self.position != Position::Axes || (self.axes.len() > 1 && coords)
    }

    /// Whether coordinates along an axis are in an array.
    pub(crate) fn has_nodes(&self) -> bool {
        self.axes.iter().any(|axis| matches!(axis.coord, AxisCoord::Nodes(_)))
    }

    /// Arrays on points and cells.
    pub(crate) fn len(&self) -> usize {
        self.points.len() + self.cells.len()
    }
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

/// Position and axes of an array's grid, and whether the array is on its cells. `None` if it is on no grid.
fn axes_of(tree: &Tree, desc: &ArrayDesc) -> Option<(Position, Vec<Axis>, bool)> {
    let own = tree.resolve(desc).ok()?;
    type_name(own.dtype).filter(|_| own.ragged().is_none())?;
    let (dims, _) = axes(desc);
    let lengths = desc.shape.lengths();
    if dims.is_empty() || dims.len() > 3 {
        return None;
    }
    if let Some(mesh) = desc.semantics().mesh
        && let Some(curved) = curvilinear(tree, mesh, desc, &dims)
    {
        return Some(curved);
    }
    let (mut found, mut own_coords, mut centres) = (Vec::new(), Vec::new(), 0);
    for dim in &dims {
        let points = lengths[*dim];
        let same_length = |id: NodeId| match &tree.node(id).array {
            Some(nodes) => nodes.shape.lengths() == [points],
            None => false,
        };
        let at = |coord| Axis { coord, points };
        let (axis, own) = match desc.coords[*dim] {
            Coord::Uniform { start, step } => {
                let axis = at(AxisCoord::Uniform { start, step });
                (axis, axis)
            }
            // A field on upper faces of cells (EPOCH) is assigned to the cells, half a cell away.
            Coord::Node(id) if same_length(id) => {
                match nodes_of(tree, id).or_else(|| nodes_beside(tree, id, "face")) {
                    Some(nodes) => {
                        centres += 1;
                        let coord = AxisCoord::Nodes(nodes);
                        (Axis { coord, points: points.checked_add(1)? }, at(AxisCoord::Nodes(id)))
                    }
                    None => (at(AxisCoord::Nodes(id)), at(AxisCoord::Nodes(id))),
                }
            }
            Coord::None | Coord::Node(_) => (at(AxisCoord::Index), at(AxisCoord::Index)),
        };
        found.push(axis);
        own_coords.push(own);
    }
    if centres != 0 && centres != dims.len() {
        // Cells along some axes and points along others: a grid of points at those positions.
        return Some((Position::Axes, own_coords, false));
    }
    let is_cell = |id: &NodeId| {
        let array = tree.node(*id).array.as_ref();
        array.is_some_and(|desc| desc.semantics().role == Role::Cell)
    };
    let lattice = desc.semantics().mesh.filter(is_cell).map_or(Position::Axes, Position::Lattice);
    Some((lattice, found, centres > 0))
}

/// The curvilinear grid whose positions are the array `mesh`, or the arrays of that group, one per direction.
fn curvilinear(
    tree: &Tree,
    mesh: NodeId,
    desc: &ArrayDesc,
    dims: &[usize],
) -> Option<(Position, Vec<Axis>, bool)> {
    let is_mesh = |desc: &ArrayDesc| {
        desc.semantics().role == Role::Mesh
            && type_name(desc.dtype).is_some()
            && desc.ragged().is_none()
            && desc.layout.frames().is_none()
    };
    let (position, mesh) = if let Some(array) = &tree.node(mesh).array {
        let (axes, components) = axes(array);
        if components != 3 || !is_mesh(array) {
            return None;
        }
        let mut lengths: Vec<u64> = axes.iter().map(|k| array.shape.lengths()[*k]).collect();
        // Trailing axes of one point are not dimensions of the arrays on a grid.
        while lengths.len() > dims.len() && lengths.last() == Some(&1) {
            lengths.pop();
        }
        (Position::Array(mesh), lengths)
    } else {
        let inside = tree.arrays().filter(|(_, node, desc)| node.parent == mesh && is_mesh(desc));
        let inside: Vec<_> = inside.collect();
        let (_, _, first) = inside.first()?;
        let alike = |own: &ArrayDesc| {
            own.shape == first.shape && own.order() == first.order() && own.dtype == first.dtype
        };
        let rank = first.shape.rank();
        if rank < 2 || inside.len() > 3 || !inside.iter().all(|(.., own)| alike(own)) {
            return None;
        }
        let (axes, _) = axes(first);
        let lengths = axes.iter().map(|k| first.shape.lengths()[*k]).collect();
        (Position::Columns(inside.iter().map(|(id, ..)| *id).collect()), lengths)
    };
    let own: Vec<u64> = dims.iter().map(|dim| desc.shape.lengths()[*dim]).collect();
    let cells: Vec<u64> =
        mesh.iter().map(|n| if *n == 1 { 1 } else { n.saturating_sub(1) }).collect();
    if own != mesh && own != cells {
        return None;
    }
    let axes = mesh.iter().map(|n| Axis { coord: AxisCoord::Index, points: *n }).collect();
    Some((position, axes, own != mesh))
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

/// All grids of a tree, in the order of their first arrays.
pub(crate) fn all(tree: &Tree) -> Vec<Grid> {
    let known = coordinates(tree);
    let mut grids: Vec<Grid> = Vec::new();
    let mut numbers = HashMap::new();
    for (id, node, desc) in tree.arrays() {
        let role = desc.semantics().role;
        let other = matches!(role, Role::Points | Role::Mesh | Role::Log | Role::Text | Role::Cell);
        let in_fields = node.path.split('/').rev().nth(1) == Some("FieldData");
        if other || known.contains(&id) || in_fields {
            continue;
        }
        let Some((position, axes, cells)) = axes_of(tree, desc) else { continue };
        let at = *numbers.entry((position.clone(), key(&axes))).or_insert_with(|| {
            grids.push(Grid { axes, position, ..Grid::default() });
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
        let position = grids[k].position.clone();
        if let Some(of_cells) = numbers.get(&(position, key(&inner))).copied()
            && of_cells != k
        {
            let cells = std::mem::take(&mut grids[of_cells].points);
            grids[k].cells.extend(cells);
        }
    }
    grids.retain(|grid| grid.len() > 0);
    let in_cells = |id: &NodeId| {
        let node = tree.node(*id);
        let centring = node.array.as_ref().and_then(|desc| desc.semantics().centring);
        centring == Some(Centring::Cell) || node.path.starts_with("CellData/")
    };
    for grid in &mut grids {
        let outer: Option<Vec<Axis>> = grid.axes.iter().map(nodes).collect();
        if let Some(axes) = outer.filter(|_| {
            grid.position == Position::Axes
                && grid.cells.is_empty()
                && grid.points.iter().all(in_cells)
        }) {
            grid.axes = axes;
            grid.cells = std::mem::take(&mut grid.points);
        }
    }
    grids
}

/// The grid with the most fields, and of those the one with the most dimensions: a distribution function may
/// have more dimensions than the fields of a simulation. Without fields, the grid of the arrays with the most
/// dimensions.
pub(crate) fn best(grids: Vec<Grid>) -> Option<Grid> {
    let size = |grid: &Grid| {
        let (rank, count) = (grid.axes.len(), grid.len());
        if grid.has_field { (true, count, rank) } else { (false, rank, count) }
    };
    // The first of equal ones.
    grids.into_iter().rev().max_by_key(size)
}

/// The cell centres of a uniform axis; of an axis of one point that point.
fn cell_centres(axis: &Axis) -> Option<Axis> {
    if axis.points == 1 {
        return Some(*axis);
    }
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
