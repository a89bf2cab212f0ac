//! What a tree says that TAF has no place for: its [description](spile_core::description) as the last
//! line of the comments. Lengths, grids and the map are always the header's own, so that the operations
//! of TAF need not know of it.

use std::collections::HashMap;

use spile_core::description::Description;
use spile_core::error::Result;
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::limits::Limits;
use spile_core::shape::Shape;
use spile_core::source::Source;
use spile_core::tree::{Node, NodeId, ROOT, Tree};

use crate::wire::Dimension;

/// What the line begins with.
const WORD: &str = "spile: ";

/// The array of a file.
pub(crate) const DATA: &str = "data";

/// The attribute of the file that its comments are.
pub(crate) const COMMENTS: &str = "comments";

/// The line about the one array of a tree that is written; nothing if TAF says it all.
pub(crate) fn line(
    content: &dyn Reader,
    id: NodeId,
    dimensions: &[Dimension],
    limits: &Limits,
) -> Result<Option<String>> {
    let from = content.tree();
    let (node, mut tree) = (from.node(id), Tree::new(limits));
    let Some(own) = &node.array else { return Ok(None) };
    let mut array = from.resolve(own)?.clone();
    (array.shape, array.dims) = (own.shape.clone(), own.dims.clone());
    let grid = |(coord, dimension): (&Coord, &Dimension)| match coord {
        // Points that make no grid are not there.
        Coord::Node(_) if *dimension == Dimension::counting(dimension.length) => Coord::None,
        Coord::None => Coord::None,
        _ => Coord::Uniform { start: dimension.start, step: dimension.step },
    };
    array.coords = own.coords.iter().zip(dimensions).map(grid).collect();
    let plain = ArrayDesc::new(array.dtype, array.shape.clone(), array.layout.clone());
    let gridded = array.coords.iter().all(|coord| *coord != Coord::None);
    let padded = array.shape.rank() < dimensions.len();
    let bare = |node: &Node| node.attrs.is_empty() && node.id.is_none();
    let others = from.attrs().iter().filter(|(name, _)| name != COMMENTS);
    tree.node_mut(ROOT).attrs = others.cloned().collect();
    let native = node.path == DATA && bare(node) && array.dims == plain.dims;
    if native && gridded && !padded && tree.attrs().is_empty() {
        return Ok(None);
    }
    let new = add(from, node, array, &mut tree)?;
    let mut description = Description::of(&tree);
    let path = tree.node(new).path.clone();
    description.moved(&HashMap::from([(path, DATA.to_string())]));
    Ok(Some(format!("{WORD}{}\n", description.text(limits)?)))
}

/// Adds the array of `node` with the groups above it.
fn add(from: &Tree, node: &Node, array: ArrayDesc, to: &mut Tree) -> Result<NodeId> {
    let mut above = Vec::new();
    let mut parent = node.parent;
    while parent != ROOT {
        above.push(from.node(parent));
        parent = from.node(parent).parent;
    }
    let mut place = ROOT;
    for group in above.into_iter().rev() {
        place = to.add_group(place, &group.name)?;
        let new = to.node_mut(place);
        (new.id, new.attrs) = (group.id.clone(), group.attrs.clone());
    }
    let id = to.add_array(place, &node.name, array)?;
    let new = to.node_mut(id);
    (new.id, new.attrs) = (node.id.clone(), node.attrs.clone());
    Ok(id)
}

/// Comments without the description, and the description.
pub(crate) fn split(comments: &str) -> (String, Option<&str>) {
    let mut at = 0;
    let mut found = None;
    for line in comments.split_inclusive('\n') {
        if line.starts_with(WORD) {
            found = Some(at..at + line.len());
        }
        at += line.len();
    }
    match found {
        None => (comments.to_string(), None),
        Some(line) => {
            let rest = [&comments[..line.start], &comments[line.end..]].concat();
            (rest, Some(comments[line][WORD.len()..].trim_end()))
        }
    }
}

/// The tree that `text` describes, with the array of `plain`.
pub(crate) fn dress(text: &str, source: &Source, plain: &Tree, limits: &Limits) -> Result<Tree> {
    let description = Description::parse(text.as_bytes(), limits)?;
    let mut plain = plain.clone();
    let attrs = std::mem::take(&mut plain.node_mut(ROOT).attrs);
    let mut native = None;
    if let Some(id) = plain.at(DATA)
        && let Some(array) = &mut plain.node_mut(id).array
    {
        // A vector is a column here.
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
    let dressed = tree.main_arrays().next().map(|(id, ..)| id);
    if let (Some(native), Some(id)) = (native, dressed)
        && let Some(array) = &mut tree.node_mut(id).array
        && array.shape == native.shape
    {
        for (said, own) in array.coords.iter_mut().zip(&native.coords) {
            let counting = *own == Coord::Uniform { start: 1.0, step: 1.0 };
            if *said != Coord::None || !counting {
                said.clone_from(own);
            }
        }
        array.map = native.map;
    }
    tree.node_mut(ROOT).attrs.extend(attrs);
    Ok(tree)
}
