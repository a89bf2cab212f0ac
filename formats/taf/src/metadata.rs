//! JSON metadata in the comments.
//!
//! Names, attributes and dimension names that the header cannot express are written as the last
//! comment line, `spile: ` followed by a [description](spile_core::description) in JSON. Lengths,
//! grids and the map are always those of the header, so the operations of TAF can ignore the line.

use std::collections::HashMap;

use spile_core::description::Description;
use spile_core::error::Result;
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::limits::Limits;
use spile_core::shape::Shape;
use spile_core::source::Source;
use spile_core::tree::{Node, NodeId, ROOT, Tree};

use crate::to_tree::{COMMENTS, DATA};
use crate::wire::Dimension;

/// Start of the metadata line.
const PREFIX: &str = "spile: ";

/// Metadata line for the array `id` of `content`, including the newline; `None` if the header
/// expresses everything. `dimensions` are those of the file to be written.
pub(crate) fn line(
    content: &dyn Reader,
    id: NodeId,
    dimensions: &[Dimension],
    limits: &Limits,
) -> Result<Option<String>> {
    let source_tree = content.tree();
    let (node, mut tree) = (source_tree.node(id), Tree::new(limits));
    let Some(own) = &node.array else { return Ok(None) };
    let mut array = source_tree.resolve(own)?.clone();
    (array.shape, array.dims) = (own.shape.clone(), own.dims.clone());
    let grid = |(coord, dimension): (&Coord, &Dimension)| match coord {
        // A coordinate array that is not uniform is dropped.
        Coord::Node(_) if *dimension == Dimension::with_default_grid(dimension.length) => {
            Coord::None
        }
        Coord::None => Coord::None,
        _ => Coord::Uniform { start: dimension.start, step: dimension.step },
    };
    array.coords = own.coords.iter().zip(dimensions).map(grid).collect();
    let default_dims = ArrayDesc::new(array.dtype, array.shape.clone(), array.layout.clone()).dims;
    let others = source_tree.attrs().iter().filter(|(name, _)| name != COMMENTS);
    tree.node_mut(ROOT).attrs = others.cloned().collect();
    let expressible = node.path == DATA
        && node.attrs.is_empty()
        && node.id.is_none()
        && array.dims == default_dims
        && array.coords.iter().all(|coord| *coord != Coord::None)
        && array.shape.rank() == dimensions.len()
        && tree.attrs().is_empty();
    if expressible {
        return Ok(None);
    }
    let copy = copy_with_groups(source_tree, node, array, &mut tree)?;
    let mut description = Description::of(&tree);
    let path = tree.node(copy).path.clone();
    description.moved(&HashMap::from([(path, DATA.to_string())]));
    Ok(Some(format!("{PREFIX}{}\n", description.text(limits)?)))
}

/// Copies `node` and its parent groups into `target`, with `array` as its array.
fn copy_with_groups(
    source: &Tree,
    node: &Node,
    array: ArrayDesc,
    target: &mut Tree,
) -> Result<NodeId> {
    let mut groups = Vec::new();
    let mut parent = node.parent;
    while parent != ROOT {
        groups.push(source.node(parent));
        parent = source.node(parent).parent;
    }
    let mut parent = ROOT;
    for group in groups.into_iter().rev() {
        parent = target.add_group(parent, &group.name)?;
        let copy = target.node_mut(parent);
        (copy.id, copy.attrs) = (group.id.clone(), group.attrs.clone());
    }
    let id = target.add_array(parent, &node.name, array)?;
    let copy = target.node_mut(id);
    (copy.id, copy.attrs) = (node.id.clone(), node.attrs.clone());
    Ok(id)
}

/// Splits comments into the text without the metadata line and the JSON of that line. If there are
/// several such lines, the last one is used.
pub(crate) fn split(comments: &str) -> (String, Option<&str>) {
    let mut offset = 0;
    let mut found = None;
    for line in comments.split_inclusive('\n') {
        if line.starts_with(PREFIX) {
            found = Some(offset..offset + line.len());
        }
        offset += line.len();
    }
    match found {
        None => (comments.to_string(), None),
        Some(line) => {
            let rest = [&comments[..line.start], &comments[line.end..]].concat();
            (rest, Some(comments[line][PREFIX.len()..].trim_end()))
        }
    }
}

/// Returns `plain`, the tree of the header, with the metadata of `json` applied.
///
/// # Errors
/// Invalid JSON, or metadata that does not match the array.
pub(crate) fn apply(json: &str, source: &Source, plain: &Tree, limits: &Limits) -> Result<Tree> {
    let description = Description::parse(json.as_bytes(), limits)?;
    let mut plain = plain.clone();
    let attrs = std::mem::take(&mut plain.node_mut(ROOT).attrs);
    let mut native = None;
    if let Some(id) = plain.at(DATA)
        && let Some(array) = &mut plain.node_mut(id).array
    {
        // The header has at least two dimensions; those of length 1 that were added are removed.
        let rank = description.rank_at(DATA).unwrap_or(array.shape.rank());
        let lengths = array.shape.lengths();
        if rank < lengths.len() && lengths[rank..].iter().all(|n| *n == 1) {
            array.shape = Shape::new(&lengths[..rank]);
            array.dims.truncate(rank);
            array.coords.truncate(rank);
        }
        native = Some(array.clone());
    }
    let mut tree = description.dress(source, &plain, limits)?;
    let described = tree.main_arrays().next().map(|(id, ..)| id);
    if let (Some(native), Some(id)) = (native, described)
        && let Some(array) = &mut tree.node_mut(id).array
        && array.shape == native.shape
    {
        for (coord, header) in array.coords.iter_mut().zip(&native.coords) {
            let default = *header == Coord::Uniform { start: 1.0, step: 1.0 };
            if *coord != Coord::None || !default {
                coord.clone_from(header);
            }
        }
        array.map = native.map;
    }
    tree.node_mut(ROOT).attrs.extend(attrs);
    Ok(tree)
}
