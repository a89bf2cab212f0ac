//! Staggered fields averaged to cell centres.

use std::collections::HashMap;

use spile_core::computed::store_f64;
use spile_core::semantics::Centring;
use spile_core::{
    Array, ArrayDesc, Attrs, Axes, Coord, Node, NodeId, Order, Result, Selection, Semantics, Shape,
    Slice, Tree,
};
use spile_interchange::midpoints::midpoints;

use super::derived::{computed, derived_attrs, extent, is_real, no_input, planes, unscaled};

/// Where a staggered field has its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Staggered {
    /// At all nodes: one more than cells.
    Nodes,
    /// At the upper face of each cell, as EPOCH stores them. The lower face of the first cell is missing.
    UpperFaces,
}

/// Adds `NAME_centred` beside `field`, which is staggered in the directions `along`: averages at cell centres. Cells
/// without a value at their lower face are NaN.
pub(super) fn add(
    tree: &mut Tree,
    field: NodeId,
    staggered: Staggered,
    along: &[bool],
    axes: &[NodeId],
) -> Result<()> {
    let node = tree.node(field).clone();
    let Some(desc) = node.array.filter(|d| d.shape.rank() == along.len()) else { return Ok(()) };
    let lengths = desc.shape.lengths();
    let enough = lengths.iter().zip(along).all(|(n, on)| *n > u64::from(*on));
    if extent(&desc).is_none() || !is_real(desc.dtype) || !enough || !along.contains(&true) {
        return Ok(());
    }
    let fewer = |on: bool| u64::from(on && staggered == Staggered::Nodes);
    let shape: Vec<u64> = lengths.iter().zip(along).map(|(n, on)| n - fewer(*on)).collect();
    let inner = shape.len() - 1;
    // Number of elements of a plane of the last direction, of the field and of the averages.
    let stored: u64 = lengths[..inner].iter().product();
    let plane: u64 = shape[..inner].iter().product();
    let memory =
        move |count: u64| (count / plane.max(1) + 1).saturating_mul(stored).saturating_mul(16);
    let (all, directions) = (lengths.to_vec(), along.to_vec());
    let compute = move |inputs: &[Array], first: u64, out: &mut [u8]| {
        let [field] = inputs else { return Err(no_input()) };
        let count = (out.len() / field.dtype().size()) as u64 / plane.max(1);
        let first = first / plane.max(1);
        let last = directions.last().is_some_and(|on| *on);
        // One more plane, after or before these, if the last direction is averaged.
        let (before, after) = match staggered {
            Staggered::Nodes => (0, u64::from(last)),
            Staggered::UpperFaces => (u64::from(last && first > 0), 0),
        };
        let part =
            Selection(vec![Slice::Rest, Slice::range(first - before, first + count + after)]);
        let mut lengths = all.clone();
        lengths.pop();
        lengths.push(before + count + after);
        let values = field.read_f64(&part, Axes::Order(Order::F))?;
        let values = match staggered {
            Staggered::Nodes => between_nodes(values, &lengths, &directions),
            Staggered::UpperFaces => {
                let mut values = between_faces(values, &lengths, &directions);
                values.drain(..(before * plane) as usize);
                values
            }
        };
        store_f64(field.dtype(), &values, out)
    };
    let types = (desc.dtype, Shape::new(shape));
    let (piece, input) = ((planes(plane), Order::F), vec![unscaled(&desc)]);
    let mut new = computed("averages at cell centres", types, piece, input, memory, compute);
    let semantics = new.semantics_mut();
    semantics.clone_from(desc.semantics());
    semantics.centring = Some(Centring::Cell);
    if let Some(component) = &mut semantics.component {
        component.vector.push_str("_centred");
    }
    (new.dims, new.coords, new.map) = (desc.dims, desc.coords, desc.map);
    for (axis, id) in axes.iter().enumerate().take(along.len()).filter(|(axis, _)| along[*axis]) {
        new.coords[axis] = midpoints(tree, *id)?.map_or(Coord::None, Coord::Node);
    }
    let id = tree.add_array(node.parent, &format!("{}_centred", node.name), new)?;
    let attrs: &Attrs = &node.attrs;
    tree.set_attrs(id, derived_attrs("averaged to cell centres", attrs, &["units", "mesh"]))
}

/// Adds the components that are stored at cell centres to vectors of averages, so that all components of `E_centred` are
/// at the same positions.
pub(crate) fn complete_vectors(tree: &mut Tree) -> Result<()> {
    let vector = |desc: &ArrayDesc| {
        let Semantics { component: Some(component), mesh, .. } = desc.semantics() else {
            return None;
        };
        Some((component.clone(), *mesh))
    };
    // For each vector of averages: the names of its arrays' group, and one of its arrays.
    let mut averages: HashMap<_, (Shape, Vec<u8>)> = HashMap::new();
    for (_, node, desc) in tree.arrays() {
        let Some((component, mesh)) = vector(desc) else { continue };
        if let Some(name) = component.vector.strip_suffix("_centred") {
            let key = (name.to_string(), mesh, node.parent);
            let known = averages.entry(key).or_insert_with(|| (desc.shape.clone(), Vec::new()));
            known.1.push(component.index);
        }
    }
    let mut missing = Vec::new();
    for (id, node, desc) in tree.arrays() {
        let Some((component, mesh)) = vector(desc) else { continue };
        if let Some((shape, known)) = averages.get(&(component.vector, mesh, node.parent))
            && *shape == desc.shape
            && !known.contains(&component.index)
        {
            missing.push(id);
        }
    }
    for id in missing {
        let Node { name, parent, attrs, array: Some(mut desc), .. } = tree.node(id).clone() else {
            continue;
        };
        if let Some(component) = &mut desc.semantics_mut().component {
            component.vector.push_str("_centred");
        }
        let id = tree.add_array(parent, &format!("{name}_centred"), desc)?;
        tree.set_attrs(id, derived_attrs("stored at cell centres", &attrs, &["units", "mesh"]))?;
    }
    Ok(())
}

/// Averages of neighbours in the directions `along` of an array, first index fastest. The result has one element less
/// in each of them.
fn between_nodes(mut values: Vec<f64>, lengths: &[u64], along: &[bool]) -> Vec<f64> {
    let mut inner = 1_usize;
    for (length, on) in lengths.iter().zip(along) {
        let length = *length as usize;
        if *on {
            let pairs = |plane: &[f64]| -> Vec<f64> {
                let next = plane.get(inner..).unwrap_or(&[]);
                plane.iter().zip(next).map(|(a, b)| 0.5 * (a + b)).collect()
            };
            values = values.chunks((inner * length).max(1)).flat_map(pairs).collect();
        }
        inner *= length.saturating_sub(usize::from(*on));
    }
    values
}

/// Averages of each element and the one before it in the directions `along` of an array, first index fastest; NaN for
/// the first ones.
fn between_faces(mut values: Vec<f64>, lengths: &[u64], along: &[bool]) -> Vec<f64> {
    let mut inner = 1_usize;
    for (length, on) in lengths.iter().zip(along) {
        let length = *length as usize;
        if *on {
            for part in values.chunks_mut((inner * length).max(1)) {
                for k in (inner..part.len()).rev() {
                    part[k] = 0.5 * (part[k - inner] + part[k]);
                }
                let first = inner.min(part.len());
                part[..first].fill(f64::NAN);
            }
        }
        inner *= length;
    }
    values
}
