//! JSON metadata in the comments.
//!
//! Names, attributes and dimension names that the header cannot express are written as the last
//! comment line, `spile: ` followed by a [metadata](spile_core::metadata) in JSON. Lengths,
//! grids and the map are always those of the header, so the operations of TAF can ignore the line.

use std::collections::HashMap;

use spile_core::metadata::Metadata;
use spile_core::{ArrayDesc, Coord, Dataset, NodeId, ROOT, Result, Role, Semantics, Tree};

use crate::to_tree::{COMMENTS, DATA};
use crate::wire::Dimension;
use crate::write::pad_dimensions;

/// Start of the metadata line.
const PREFIX: &str = "spile: ";

/// Metadata line for the array `id` of `content`, including the newline; `None` if the header
/// expresses everything. `dimensions` are those of the file to be written.
pub(crate) fn line(
    content: &Dataset,
    id: NodeId,
    dimensions: &[Dimension],
) -> Result<Option<String>> {
    let (source_tree, limits) = (content.tree(), content.limits());
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
    // The mesh of a field is another object and is not written.
    array.meaning.clone_from(&own.meaning);
    if let Some(meaning) = &mut array.meaning {
        meaning.mesh = None;
    }
    let mut others = source_tree.attrs().clone();
    others.remove(COMMENTS);
    tree.set_attrs(ROOT, others)?;
    let expressible = node.path == DATA
        && node.attrs.is_empty()
        && node.id.is_none()
        && array.dims == ArrayDesc::default_dims(array.dims.len())
        && *array.semantics() == Semantics::role(Role::Trace)
        && array.coords.iter().all(|coord| *coord != Coord::None)
        && array.shape.rank() == dimensions.len()
        && tree.attrs().is_empty();
    if expressible {
        return Ok(None);
    }
    let copy = copy_with_groups(source_tree, id, array, &mut tree)?;
    let mut metadata = Metadata::of(&tree);
    let path = tree.node(copy).path.clone();
    metadata.rename(&HashMap::from([(path, DATA.to_string())]));
    Ok(Some(format!("{PREFIX}{}\n", metadata.text(limits)?)))
}

/// Comment line with the attributes and dimension names of the array `id` of `content`, whose grids are its uniform
/// coordinates; empty if a TAF header expresses everything. Programs that read TAF restore them from it.
///
/// # Errors
/// The metadata exceed the memory limit.
pub fn metadata_line(content: &Dataset, id: NodeId) -> Result<String> {
    let Some(desc) = content.tree().array(id) else { return Ok(String::new()) };
    let grid = |(length, coord): (&u64, &Coord)| match coord {
        Coord::Uniform { start, step } => Dimension { length: *length, start: *start, step: *step },
        _ => Dimension::with_default_grid(*length),
    };
    let dimensions = desc.shape.lengths().iter().zip(&desc.coords).map(grid).collect();
    Ok(line(content, id, &pad_dimensions(dimensions))?.unwrap_or_default())
}

/// Copies node `id` and its parent groups into `target`, with `array` as its array.
fn copy_with_groups(
    source: &Tree,
    id: NodeId,
    array: ArrayDesc,
    target: &mut Tree,
) -> Result<NodeId> {
    let (groups, name) =
        source.node(id).path.rsplit_once('/').unwrap_or(("", &source.node(id).path));
    let parent = target.group_at(groups)?;
    let copy = target.add_array(parent, name, array)?;
    let (mut from, mut to) = (id, copy);
    while from != ROOT {
        let node = source.node(from);
        target.node_mut(to).id.clone_from(&node.id);
        target.set_attrs(to, node.attrs.clone())?;
        (from, to) = (node.parent, target.node(to).parent);
    }
    Ok(copy)
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
