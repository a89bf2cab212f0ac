//! Which arrays of a tree are points, with what is known of each of them: particles, or the corners
//! of a surface.

use std::collections::BTreeMap;

use spile_core::layout::{ArrayDesc, Layout};
use spile_core::shape::Order;
use spile_core::tree::{Node, NodeId, Tree};

use crate::data::type_name;

/// Where the points are.
#[derive(Clone, Debug)]
pub(crate) enum Points {
    /// An array of two or three numbers each.
    Whole(NodeId),
    /// An array a direction.
    Columns(Vec<NodeId>),
}

/// What connects the points.
#[derive(Clone, Debug)]
pub(crate) enum Cells {
    /// Nothing: each is one of its own.
    Each,
    /// Corners of faces, as many each.
    Faces(NodeId),
    /// As VTK has it: sections with their arrays.
    Native(Vec<(&'static str, Vec<NodeId>)>),
}

/// Points, what connects them, and the arrays on both.
#[derive(Clone, Debug)]
pub(crate) struct Cloud {
    pub(crate) points: Points,
    pub(crate) cells: Cells,
    pub(crate) on_points: Vec<NodeId>,
    pub(crate) on_cells: Vec<NodeId>,
}

pub(crate) const SECTIONS: [&str; 5] = ["Cells", "Verts", "Lines", "Strips", "Polys"];

/// Names of arrays of positions.
const NAMES: [&str; 5] = ["position", "positions", "points", "vertices", "coordinates"];

fn numeric(tree: &Tree, desc: &ArrayDesc) -> bool {
    let own = tree.resolve(desc);
    own.is_ok_and(|own| type_name(own.dtype).is_some() && own.ragged().is_none())
}

/// An array of two or three numbers a point.
fn positions(tree: &Tree, node: &Node, desc: &ArrayDesc) -> Option<u64> {
    let [count, 2 | 3] = desc.shape.lengths() else { return None };
    let named = NAMES.contains(&node.name.to_lowercase().as_str());
    let frames = matches!(desc.layout, Layout::PerFrame(_));
    (named && (frames || desc.order() == Order::C) && numeric(tree, desc)).then_some(*count)
}

/// The points with the most arrays.
pub(crate) fn find(tree: &Tree) -> Option<Cloud> {
    if let Some(native) = native(tree) {
        return Some(native);
    }
    let mut clouds = Vec::new();
    for (id, node, desc) in tree.arrays() {
        if let Some(count) = positions(tree, node, desc) {
            clouds.push(whole(tree, id, node, count));
        }
    }
    let mut groups: BTreeMap<NodeId, Vec<(NodeId, &Node, &ArrayDesc)>> = BTreeMap::new();
    for array in tree.arrays() {
        groups.entry(array.1.parent).or_default().push(array);
    }
    clouds.extend(groups.values().filter_map(|inside| columns(tree, inside)));
    // The first of several that are as good.
    clouds.into_iter().rev().max_by_key(|cloud| cloud.on_points.len() + cloud.on_cells.len())
}

/// What was a file of VTK.
fn native(tree: &Tree) -> Option<Cloud> {
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
    Some(Cloud {
        points: Points::Whole(points),
        cells: if sections.is_empty() { Cells::Each } else { Cells::Native(sections) },
        on_points: in_group("PointData"),
        on_cells: in_group("CellData"),
    })
}

/// Positions, with the arrays beside them that are as long; corners of faces, where there are such.
fn whole(tree: &Tree, id: NodeId, node: &Node, count: u64) -> Cloud {
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
    let mut cloud = Cloud {
        points: Points::Whole(id),
        cells: faces.map_or(Cells::Each, |(faces, _)| Cells::Faces(faces)),
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
            (Some(n), Some((_, number))) if *n == number => cloud.on_cells.push(other),
            (Some(n), _) if *n == count => cloud.on_points.push(other),
            _ => {}
        }
    }
    cloud
}

/// A group with a line of numbers a direction, all along one dimension that has a name of its own, and
/// the arrays along that dimension.
fn columns(tree: &Tree, inside: &[(NodeId, &Node, &ArrayDesc)]) -> Option<Cloud> {
    let (_, first, line) = inside.first()?;
    let ([dim], [_]) = (&line.dims[..], line.shape.lengths()) else { return None };
    let letters = ["x", "y", "z"];
    let lettered = |(k, (_, node, desc)): (usize, &(NodeId, &Node, &ArrayDesc))| {
        letters.get(k) == Some(&node.name.to_lowercase().as_str())
            && desc.dims == line.dims
            && desc.shape == line.shape
            && numeric(tree, desc)
    };
    if dim.starts_with("dim") || *dim == first.name || !inside.iter().enumerate().all(lettered) {
        return None;
    }
    let ids: Vec<NodeId> = inside.iter().map(|(id, ..)| *id).collect();
    let along = |(id, _, desc): &(NodeId, &Node, &ArrayDesc)| {
        !ids.contains(id)
            && desc.dims == line.dims
            && desc.shape == line.shape
            && numeric(tree, desc)
    };
    let on_points = tree.arrays().filter(along).map(|(id, ..)| id).collect();
    Some(Cloud {
        points: Points::Columns(ids),
        cells: Cells::Each,
        on_points,
        on_cells: Vec::new(),
    })
}
