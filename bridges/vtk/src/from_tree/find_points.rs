//! Finds the points of a tree and the arrays on them: particles, or the vertices of a surface.

use std::collections::BTreeMap;

use spile_core::layout::ArrayDesc;
use spile_core::semantics::Role;
use spile_core::shape::Order;
use spile_core::tree::{Node, NodeId, ROOT, Tree};

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
    /// Name of the species or surface.
    pub(crate) name: String,
    /// Path of the positions, which is unique.
    pub(crate) path: String,
    pub(crate) points: Points,
    pub(crate) cells: Cells,
    pub(crate) on_points: Vec<NodeId>,
    pub(crate) on_cells: Vec<NodeId>,
}

impl PointSet {
    /// A point cloud; `mesh` is the array or group with the positions.
    fn cloud(mesh: &Node, points: Points, on_points: Vec<NodeId>) -> Self {
        let (name, path) = (mesh.name.clone(), mesh.path.clone());
        Self { name, path, points, cells: Cells::Vertices, on_points, on_cells: Vec::new() }
    }

    /// Number of arrays on points and cells.
    pub(crate) fn len(&self) -> usize {
        self.on_points.len() + self.on_cells.len()
    }
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

/// All point sets of a tree: those that were read from VTK files, those with the role of points, and, if there are
/// none, those recognised by names.
pub(crate) fn all(tree: &Tree) -> Vec<PointSet> {
    let mut sets: Vec<PointSet> = Vec::new();
    let mut groups: BTreeMap<NodeId, Vec<Member<'_>>> = BTreeMap::new();
    let mut clouds: BTreeMap<NodeId, Vec<NodeId>> = BTreeMap::new();
    for (id, node, desc) in tree.arrays() {
        sets.extend(native(tree, id, node, desc));
        groups.entry(node.parent).or_default().push((id, node, desc));
        let meaning = desc.semantics();
        // Quantities that are logged per particle are on the particles.
        let on_points = matches!(meaning.role, Role::Points | Role::Log);
        if let Some(mesh) = meaning.mesh.filter(|mesh| on_points && *mesh != id) {
            clouds.entry(mesh).or_default().push(id);
        }
    }
    // Positions without other arrays.
    for (id, _, desc) in tree.arrays() {
        let alone = desc.semantics().role == Role::Points && desc.semantics().mesh.is_none();
        if alone && matches!(desc.shape.lengths(), [_, 2 | 3]) {
            clouds.entry(id).or_default();
        }
    }
    for (group, inside) in &groups {
        let is_axis = |(_, _, desc): &Member<'_>| {
            let meaning = desc.semantics();
            meaning.role == Role::Mesh && meaning.point_set.is_some()
        };
        if inside.iter().all(is_axis) {
            clouds.entry(*group).or_default();
        }
    }
    let native: Vec<String> = sets.iter().map(|set| set.path.clone()).collect();
    for (mesh, ids) in clouds {
        if native.contains(&tree.node(mesh).path) {
            continue;
        }
        let axes = groups.get(&mesh).map_or(&[][..], |axes| axes);
        sets.extend(cloud(tree, mesh, axes, &ids));
    }
    if sets.is_empty() {
        let positions = tree.arrays().filter_map(|(id, node, desc)| {
            Some(with_positions(tree, id, node, position_count(tree, node, desc)?))
        });
        sets.extend(positions);
        sets.extend(groups.iter().filter_map(|(id, inside)| columns(tree, *id, inside)));
    } else {
        // Surfaces have no role of their own.
        let surfaces = tree.arrays().filter_map(|(id, node, desc)| {
            let set = with_positions(tree, id, node, position_count(tree, node, desc)?);
            matches!(set.cells, Cells::Faces(_)).then_some(set)
        });
        sets.extend(surfaces);
    }
    sets
}

/// The point set with the most arrays.
pub(crate) fn best(sets: Vec<PointSet>) -> Option<PointSet> {
    // The first of equal ones.
    sets.into_iter().rev().max_by_key(PointSet::len)
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
    let on_points: Vec<NodeId> = ids.iter().copied().filter(on_points).collect();
    let mut set = PointSet::cloud(tree.node(mesh), points, on_points);
    let mut members = ids.iter().copied().chain([mesh]).chain(inside.iter().map(|(id, ..)| *id));
    let name = |id: NodeId| tree.node(id).array.as_ref()?.semantics().point_set.clone();
    if let Some(name) = members.find_map(name) {
        set.name = name;
    }
    Some(set)
}

/// Whether the elements of a point lie together.
fn is_rows(desc: &ArrayDesc) -> bool {
    desc.layout.frames().is_some() || desc.order() == Order::C
}

/// The points of a grid that was read from a VTK file: the array `Points` next to the groups of that file.
fn native(tree: &Tree, id: NodeId, node: &Node, desc: &ArrayDesc) -> Option<PointSet> {
    let at_root = node.path == "Points";
    let known = matches!(desc.semantics().role, Role::Mesh | Role::Points);
    if node.name != "Points" || desc.shape.rank() != 2 || !(at_root || known) {
        return None;
    }
    let group = &tree.node(node.parent).path;
    let in_group = |name: &str| -> Vec<NodeId> {
        let prefix = if group.is_empty() { format!("{name}/") } else { format!("{group}/{name}/") };
        let arrays = tree.arrays().filter(|(_, node, _)| node.path.starts_with(&prefix));
        arrays.map(|(id, ..)| id).collect()
    };
    let sections = SECTIONS.iter().map(|name| (*name, in_group(name)));
    let sections: Vec<_> = sections.filter(|(_, ids)| !ids.is_empty()).collect();
    let name = if at_root { "points" } else { &tree.node(node.parent).name };
    Some(PointSet {
        name: name.into(),
        path: node.path.clone(),
        points: Points::Array(id),
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
    let mut set = PointSet::cloud(node, Points::Array(id), Vec::new());
    if node.parent != ROOT {
        set.name.clone_from(&tree.node(node.parent).name);
    }
    if let Some((faces, _)) = faces {
        set.cells = Cells::Faces(faces);
    }
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
fn columns(tree: &Tree, group: NodeId, inside: &[Member<'_>]) -> Option<PointSet> {
    let (_, first, line) = inside.first()?;
    let ([dim], [_]) = (&line.dims[..], line.shape.lengths()) else { return None };
    let along = |desc: &ArrayDesc| {
        desc.dims == line.dims && desc.shape == line.shape && numeric(tree, desc)
    };
    let is_axis = |(k, (_, node, desc)): (usize, &Member<'_>)| {
        AXIS_NAMES.get(k) == Some(&node.name.to_lowercase().as_str()) && along(desc)
    };
    if dim.starts_with("dim") || *dim == first.name || !inside.iter().enumerate().all(is_axis) {
        return None;
    }
    let ids: Vec<NodeId> = inside.iter().map(|(id, ..)| *id).collect();
    let others = tree.arrays().filter(|(id, _, desc)| !ids.contains(id) && along(desc));
    let on_points = others.map(|(id, ..)| id).collect();
    Some(PointSet::cloud(tree.node(group), Points::Columns(ids), on_points))
}
