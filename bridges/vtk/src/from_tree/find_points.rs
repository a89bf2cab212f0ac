//! Finds the points of a tree and the arrays on them: particles, or the vertices of a surface.

use std::collections::BTreeMap;

use spile_core::layout::{ArrayDesc, Layout};
use spile_core::semantics::Role;
use spile_core::shape::Order;
use spile_core::tree::{Node, NodeId, Tree};

use crate::to_tree::AXIS_NAMES;
use crate::wire::type_name;

/// Positions of the points.
#[derive(Clone, Debug)]
pub(crate) enum Points {
    /// One array with two or three components per point.
    Array(NodeId),
    /// One array per axis.
    Columns(Vec<NodeId>),
}

/// Cells of the points.
#[derive(Clone, Debug)]
pub(crate) enum Cells {
    /// One vertex cell per point.
    Vertices,
    /// Faces with the same number of corners.
    Faces(NodeId),
    /// VTK sections with their arrays.
    Native(Vec<(&'static str, Vec<NodeId>)>),
}

/// Points, their cells, and the arrays on both.
#[derive(Clone, Debug)]
pub(crate) struct PointSet {
    pub(crate) points: Points,
    pub(crate) cells: Cells,
    pub(crate) on_points: Vec<NodeId>,
    pub(crate) on_cells: Vec<NodeId>,
}

/// An array of a group.
type Member<'a> = (NodeId, &'a Node, &'a ArrayDesc);

/// Sections with cells.
const SECTIONS: [&str; 5] = ["Cells", "Verts", "Lines", "Strips", "Polys"];

/// Names of position arrays.
const NAMES: [&str; 5] = ["position", "positions", "points", "vertices", "coordinates"];

/// Whether VTK has the type of an array.
fn numeric(tree: &Tree, desc: &ArrayDesc) -> bool {
    let own = tree.resolve(desc);
    own.is_ok_and(|own| type_name(own.dtype).is_some() && own.ragged().is_none())
}

/// Number of points of a position array; `None` if it is not one.
fn position_count(tree: &Tree, node: &Node, desc: &ArrayDesc) -> Option<u64> {
    let [count, 2 | 3] = desc.shape.lengths() else { return None };
    let named = NAMES.contains(&node.name.to_lowercase().as_str());
    (named && is_rows(desc) && numeric(tree, desc)).then_some(*count)
}

/// The point set with the most arrays; those with the role of points first.
pub(crate) fn find(tree: &Tree) -> Option<PointSet> {
    if let Some(native) = native(tree) {
        return Some(native);
    }
    let mut groups: BTreeMap<NodeId, Vec<Member<'_>>> = BTreeMap::new();
    for array in tree.arrays() {
        groups.entry(array.1.parent).or_default().push(array);
    }
    let mut clouds: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for (id, _, desc) in tree.arrays() {
        let meaning = desc.semantics();
        if let Some(mesh) = meaning.mesh.filter(|mesh| meaning.role == Role::Points && *mesh != id)
        {
            clouds.entry(mesh).or_default().push(id);
        }
    }
    let clouds = clouds.into_iter().rev().filter_map(|(mesh, ids)| {
        let axes = groups.get(&mesh).map_or(&[][..], |axes| axes);
        cloud(tree, mesh, axes, &ids)
    });
    if let Some(best) = clouds.max_by_key(|set| set.on_points.len()) {
        return Some(best);
    }
    let mut sets = Vec::new();
    for (id, node, desc) in tree.arrays() {
        if let Some(count) = position_count(tree, node, desc) {
            sets.push(with_positions(tree, id, node, count));
        }
    }
    sets.extend(groups.values().filter_map(|inside| columns(tree, inside)));
    // The first of equal ones.
    sets.into_iter().rev().max_by_key(|set| set.on_points.len() + set.on_cells.len())
}

/// The point set whose positions are the array `mesh`, or the arrays of that group, one per axis.
fn cloud(tree: &Tree, mesh: NodeId, inside: &[Member<'_>], ids: &[NodeId]) -> Option<PointSet> {
    let array = |id: NodeId| tree.node(id).array.as_ref().filter(|desc| numeric(tree, desc));
    let (points, count) = if let Some(desc) = &tree.node(mesh).array {
        let [count, 2 | 3] = desc.shape.lengths() else { return None };
        array(mesh).filter(|desc| is_rows(desc))?;
        (Points::Array(mesh), *count)
    } else {
        let shape = &inside.first()?.2.shape;
        let [count] = shape.lengths() else { return None };
        let alike = |(_, _, desc): &Member<'_>| desc.shape == *shape && numeric(tree, desc);
        if inside.len() > 3 || !inside.iter().all(alike) {
            return None;
        }
        (Points::Columns(inside.iter().map(|(id, ..)| *id).collect()), *count)
    };
    let on_points = |id: &NodeId| {
        let rows = |desc: &ArrayDesc| {
            desc.shape.rank() <= 2 && desc.shape.lengths().first() == Some(&count)
        };
        let is_axis = matches!(&points, Points::Columns(axes) if axes.contains(id));
        !is_axis && array(*id).is_some_and(rows)
    };
    let on_points = ids.iter().copied().filter(on_points).collect();
    Some(PointSet { points, cells: Cells::Vertices, on_points, on_cells: Vec::new() })
}

/// Whether the elements of a point lie together.
fn is_rows(desc: &ArrayDesc) -> bool {
    matches!(desc.layout, Layout::PerFrame(_)) || desc.order() == Order::C
}

/// The points of a tree that was read from a VTK file.
fn native(tree: &Tree) -> Option<PointSet> {
    let points = tree.at("Points")?;
    let in_group = |group: &str| -> Vec<NodeId> {
        let inside =
            |path: &str| path.strip_prefix(group).is_some_and(|rest| rest.starts_with('/'));
        let arrays = tree.arrays().filter(|(_, node, _)| inside(&node.path));
        arrays.map(|(id, ..)| id).collect()
    };
    let sections: Vec<(&'static str, Vec<NodeId>)> =
        SECTIONS.iter().map(|name| (*name, in_group(name))).collect();
    let sections: Vec<_> = sections.into_iter().filter(|(_, ids)| !ids.is_empty()).collect();
    tree.node(points).array.as_ref().filter(|desc| desc.shape.rank() == 2)?;
    Some(PointSet {
        points: Points::Array(points),
        cells: if sections.is_empty() { Cells::Vertices } else { Cells::Native(sections) },
        on_points: in_group("PointData"),
        on_cells: in_group("CellData"),
    })
}

/// The point set of a position array: arrays of the same length in its group, and faces.
fn with_positions(tree: &Tree, id: NodeId, node: &Node, count: u64) -> PointSet {
    let prefix = &tree.node(node.parent).path;
    let below = |other: &Node| {
        prefix.is_empty()
            || other.path.strip_prefix(prefix.as_str()).is_some_and(|rest| rest.starts_with('/'))
    };
    let faces = tree.child(node.parent, "faces").and_then(|faces| {
        let desc = tree.node(faces).array.as_ref()?;
        match desc.shape.lengths() {
            [number, 3..=32] if numeric(tree, desc) => Some((faces, *number)),
            _ => None,
        }
    });
    let mut set = PointSet {
        points: Points::Array(id),
        cells: faces.map_or(Cells::Vertices, |(faces, _)| Cells::Faces(faces)),
        on_points: Vec::new(),
        on_cells: Vec::new(),
    };
    for (other, own, desc) in tree.arrays() {
        let known = other == id || Some(other) == faces.map(|(faces, _)| faces);
        let rows = desc.shape.rank() <= 2 && numeric(tree, desc);
        if known || !rows || !(own.parent == node.parent || faces.is_some() && below(own)) {
            continue;
        }
        match (desc.shape.lengths().first(), faces) {
            (Some(n), Some((_, number))) if *n == number => set.on_cells.push(other),
            (Some(n), _) if *n == count => set.on_points.push(other),
            _ => {}
        }
    }
    set
}

/// The point set of a group with one array per axis, and all arrays along their named dimension.
fn columns(tree: &Tree, inside: &[Member<'_>]) -> Option<PointSet> {
    let (_, first, line) = inside.first()?;
    let ([dim], [_]) = (&line.dims[..], line.shape.lengths()) else { return None };
    let is_axis = |(k, (_, node, desc)): (usize, &Member<'_>)| {
        AXIS_NAMES.get(k) == Some(&node.name.to_lowercase().as_str())
            && desc.dims == line.dims
            && desc.shape == line.shape
            && numeric(tree, desc)
    };
    if dim.starts_with("dim") || *dim == first.name || !inside.iter().enumerate().all(is_axis) {
        return None;
    }
    let ids: Vec<NodeId> = inside.iter().map(|(id, ..)| *id).collect();
    let along = |(id, _, desc): &Member<'_>| {
        !ids.contains(id)
            && desc.dims == line.dims
            && desc.shape == line.shape
            && numeric(tree, desc)
    };
    let on_points = tree.arrays().filter(along).map(|(id, ..)| id).collect();
    Some(PointSet {
        points: Points::Columns(ids),
        cells: Cells::Vertices,
        on_points,
        on_cells: Vec::new(),
    })
}
