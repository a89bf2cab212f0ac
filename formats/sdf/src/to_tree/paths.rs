//! Path of a block in the tree, and the order in which blocks are added.

use std::collections::HashSet;

use crate::block::Block;
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
    let arrays: HashSet<&str> = blocks.iter().filter(|block| is_array(block)).map(path).collect();
    // Depth of a block below an array; `None`, which sorts first, for other blocks.
    let depth = |k: &usize| {
        let (parent, _) = split_path(&blocks[*k]);
        let ends = parent.match_indices('/').map(|(at, _)| at).take(MAX_LEVELS);
        let ends: Vec<usize> = ends.chain([parent.len()]).collect();
        ends.iter().any(|end| arrays.contains(&parent[..*end])).then_some(ends.len())
    };
    let mut order: Vec<usize> = (0..blocks.len()).collect();
    order.sort_by_cached_key(depth);
    order
}

/// The block is an array in the tree, not a group.
fn is_array(block: &Block) -> bool {
    let group = matches!(
        block.meta,
        Meta::Mesh(_)
            | Meta::PointMesh(_)
            | Meta::RunInfo(_)
            | Meta::Stitched(_)
            | Meta::Station(_)
            | Meta::NameValue { .. }
    );
    !group && block.kind() != BlockType::Scrubbed
}
