//! What writing a dataset does not keep: the blocks are planned without data, read as a tree, and
//! compared with the dataset.

use spile_core::format::{Loss, LossKind};
use spile_core::{Dataset, Node, ROOT, Result};
use spile_interchange::losses::compare;
use spile_interchange::midpoints::DERIVED;

use super::{Output, TreeWriter, header};
use crate::to_tree;
use crate::write::FileLayout;

/// Everything of `content` that is not kept, from metadata alone. Fails where writing fails.
pub(crate) fn losses(content: &Dataset) -> Result<Vec<Loss>> {
    let tree = content.tree();
    let layout = FileLayout::new(&header(tree))?;
    let planned = TreeWriter::new(content, Output::Plan(layout, Vec::new())).write()?;
    let Output::Plan(layout, blocks) = planned.output else { return Ok(Vec::new()) };
    let built = to_tree::build(&layout.file, &blocks, None, content.limits())?;
    let mut nodes = vec![None; tree.len() + 1];
    nodes[0] = Some(ROOT);
    for (old, new) in planned.origins.iter().zip(&built.nodes) {
        if let Some(old) = old {
            nodes[old.index()] = *new;
        }
    }
    // Nodes that are not blocks of their own, by their names.
    for (id, node) in tree.iter() {
        let parent = nodes[node.parent.index()];
        let by_name = || parent.and_then(|parent| built.tree.child(parent, &node.name));
        nodes[id.index()] = nodes[id.index()].or_else(by_name);
    }
    Ok(compare("SDF", (tree, &built.tree), &nodes, |node: &Node| {
        let (kind, reason) = match &node.array {
            None => (LossKind::Group, "SDF has no empty groups"),
            Some(_) if node.attrs.contains(DERIVED) => {
                (LossKind::Array, "computed arrays are not stored")
            }
            Some(_) => (LossKind::Name, "SDF cannot store the name"),
        };
        (kind, reason.into())
    }))
}
