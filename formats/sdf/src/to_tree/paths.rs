//! Path of a block in the tree, and the order in which blocks are added.

use std::collections::HashSet;

use crate::index::Block;
use crate::wire::block_type::BlockType;
use crate::wire::meta::Meta;

/// Maximum number of levels of a path that are compared with the paths of arrays.
const MAX_LEVELS: usize = 64;

/// Path of the parent of a block and its name.
pub(crate) fn split_path(block: &Block) -> (&str, &str) {
    let path = path(block);
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The block's name, or its identifier if the name is empty.
fn path(block: &Block) -> &str {
    let names = [&block.header.name, &block.header.id].map(|name| name.trim_matches('/'));
    names.into_iter().find(|name| !name.is_empty()).unwrap_or("_")
}

/// The order in which blocks are added to the tree: that of the file, except that a block
/// `Ey/part` follows an array block `Ey`, which would otherwise become `Ey~2`.
pub(crate) fn order(blocks: &[Block]) -> Vec<usize> {
    // Thousands of blocks share a few parents, and few of the parents are arrays.
    let mut parents: HashSet<&str> = HashSet::new();
    let mut last = "";
    for block in blocks {
        let (parent, _) = split_path(block);
        if parent != last && parents.insert(parent) {
            let ends = parent.match_indices('/').map(|(at, _)| at).take(MAX_LEVELS);
            parents.extend(ends.map(|end| &parent[..end]));
        }
        last = parent;
    }
    let arrays: HashSet<(&str, &str)> = blocks
        .iter()
        .filter(|block| is_array(block) && parents.contains(path(block)))
        .map(split_path)
        .collect();
    if arrays.is_empty() {
        return (0..blocks.len()).collect();
    }
    // Depth of a block below an array; `None`, which sorts first, for other blocks.
    let depth = |k: &usize| {
        let (parent, _) = split_path(&blocks[*k]);
        let ends = parent.match_indices('/').map(|(at, _)| at).take(MAX_LEVELS);
        let ends: Vec<usize> = ends.chain([parent.len()]).collect();
        let is_array = |end: &usize| {
            let parent = &parent[..*end];
            arrays.contains(&parent.rsplit_once('/').unwrap_or(("", parent)))
        };
        ends.iter().any(is_array).then_some(ends.len())
    };
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_cached_key(depth);
    order
}

/// The block is an array in the tree, not a group.
fn is_array(block: &Block) -> bool {
    match block.meta {
        Meta::PlainVariable(_)
        | Meta::PointVariable(_)
        | Meta::Constant(_)
        | Meta::Array(_)
        | Meta::Source
        | Meta::CpuSplit { .. }
        | Meta::Datablock { .. } => true,
        Meta::Other(_) => block.kind() != BlockType::Scrubbed,
        _ => false,
    }
}
