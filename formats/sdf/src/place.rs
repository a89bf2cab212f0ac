//! Where a block goes in the tree, and which goes first.

use std::collections::HashSet;

use crate::index::Block;
use crate::kind::BlockType;
use crate::meta::Meta;

/// Levels of groups at which a name is compared with those of arrays.
const DEEPEST: usize = 64;

/// The group a block is in and its own name there.
pub(crate) fn path(block: &Block) -> (&str, &str) {
    let word = word(block);
    word.rsplit_once('/').unwrap_or(("", word))
}

/// Both of them together.
fn word(block: &Block) -> &str {
    let words = [&block.header.name, &block.header.id].map(|word| word.trim_matches('/'));
    words.into_iter().find(|word| !word.is_empty()).unwrap_or("_")
}

/// The blocks in the order in which they get their places: in that of the file, except that
/// `Ey/part` waits for an array `Ey`, which would otherwise lose its name to a group.
pub(crate) fn order(blocks: &[Block]) -> Vec<usize> {
    // Thousands of blocks are in a few groups, and hardly ever is one of those an array.
    let mut groups: HashSet<&str> = HashSet::new();
    let mut last = "";
    for block in blocks {
        let (above, _) = path(block);
        if above != last && groups.insert(above) {
            let ends = above.match_indices('/').map(|(at, _)| at).take(DEEPEST);
            groups.extend(ends.map(|end| &above[..end]));
        }
        last = above;
    }
    let arrays: HashSet<(&str, &str)> = blocks
        .iter()
        .filter(|block| is_array(block) && groups.contains(word(block)))
        .map(path)
        .collect();
    if arrays.is_empty() {
        return (0..blocks.len()).collect();
    }
    let below = |k: &usize| {
        let (above, _) = path(&blocks[*k]);
        // A name may be nothing but slashes.
        let ends = above.match_indices('/').map(|(at, _)| at).take(DEEPEST);
        let ends: Vec<usize> = ends.chain([above.len()]).collect();
        let is_array = |end: &usize| {
            let above = &above[..*end];
            arrays.contains(&above.rsplit_once('/').unwrap_or(("", above)))
        };
        ends.iter().any(is_array).then_some(ends.len())
    };
    let mut all: Vec<usize> = (0..blocks.len()).collect();
    all.sort_by_cached_key(below);
    all
}

/// The block has an array at its path, not a group.
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
