//! Losses of formats that write plain arrays and store metadata from which the rest is restored.

use spile_core::format::{Loss, LossKind};
use spile_core::{ArrayDesc, Coord, Dataset};

use super::is_stackable;
use crate::losses::{Kept, Losses};

/// What is lost where the arrays of [`Flat`](crate::Flat) and its metadata are written to `target`:
/// arrays whose frames do not form one array, arrays for which `writes` returns a reason, and what
/// refers to them. Looks at frame tables only.
pub fn flat_losses<'a>(
    content: &Dataset,
    target: &'a str,
    writes: impl Fn(&ArrayDesc) -> Result<(), String>,
) -> Losses<'a> {
    let tree = content.tree();
    let mut losses = Losses::new(target);
    let mut lost = vec![false; tree.len() + 1];
    losses.add(content, &Kept::ALL, |id, _, array| {
        let stored = tree.resolve(array).unwrap_or(array);
        let written = is_stackable(content, array, false).and_then(|()| writes(stored));
        lost[id.index()] = written.is_err();
        written
    });
    losses.add_partial_moments(content);
    let count = tree.frames().map(|axis| axis.len());
    for (_, node, array) in tree.arrays().filter(|(id, ..)| !lost[id.index()]) {
        let mut push = |kind, reason| losses.push_loss(Loss::new(&node.path, kind, reason));
        if array.coords.iter().filter_map(Coord::node).any(|id| lost[id.index()]) {
            push(LossKind::Coordinates, "the array of the coordinates is not written");
        }
        if array.semantics().mesh.is_some_and(|id| lost[id.index()]) {
            push(LossKind::Meaning, "the mesh is not written");
        }
        let frames = tree.resolve(array).ok().and_then(|array| array.layout.frames());
        if frames.is_some_and(|table| Some(table.len()) != count) {
            push(LossKind::Frames, "the dataset has no frame axis of this length");
        }
    }
    losses
}
