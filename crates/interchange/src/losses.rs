//! Loss accounting from metadata: what a target cannot keep, without writing anything.

use spile_core::Dataset;
use spile_core::format::{Capabilities, Loss, LossKind};
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::semantics::Semantics;
use spile_core::tree::{Node, NodeId, ROOT, Tree};

/// What a writer keeps of every node. The default keeps nothing but arrays and their values.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::struct_excessive_bools)] // Independent abilities of a format.
pub struct Kept {
    /// Attributes of the root.
    pub root_attrs: bool,
    /// Attributes of groups.
    pub group_attrs: bool,
    /// Attributes of arrays.
    pub array_attrs: bool,
    /// Groups without arrays in them.
    pub empty_groups: bool,
    /// Names of dimensions.
    pub dims: bool,
    /// Coordinates.
    pub coords: bool,
    /// Linear scaling.
    pub scaling: bool,
    /// Meaning of arrays.
    pub meaning: bool,
    /// The frame axis and arrays per frame.
    pub frames: bool,
}

impl Kept {
    /// Everything is kept, as by formats that store spile's metadata.
    pub const ALL: Self = Self {
        root_attrs: true,
        group_attrs: true,
        array_attrs: true,
        empty_groups: true,
        dims: true,
        coords: true,
        scaling: true,
        meaning: true,
        frames: true,
    };
}

/// Collects losses of a conversion to the format called `target`.
pub struct Losses<'a> {
    target: &'a str,
    list: Vec<Loss>,
}

impl<'a> Losses<'a> {
    /// No losses yet; `target` is named in the reasons.
    pub fn new(target: &'a str) -> Self {
        Self { target, list: Vec::new() }
    }

    /// Adds everything of `content` that a writer with these abilities does not keep. Arrays for which
    /// `writes` returns a reason are not written at all.
    pub fn add(
        &mut self,
        content: &Dataset,
        kept: &Kept,
        mut writes: impl FnMut(NodeId, &Node, &ArrayDesc) -> Result<(), String>,
    ) {
        let tree = content.tree();
        if !kept.root_attrs {
            self.attrs("", tree.node(ROOT));
        }
        if tree.frames().is_some() && !kept.frames {
            self.push("", LossKind::Frames, "frames");
        }
        let populated = (!kept.empty_groups).then(|| populated(tree));
        for (id, node) in tree.iter() {
            let Some(array) = &node.array else {
                if populated.as_ref().is_some_and(|with_arrays| !with_arrays[id.index()]) {
                    self.push(&node.path, LossKind::Group, "empty groups");
                } else if !kept.group_attrs {
                    self.attrs(&node.path, node);
                }
                continue;
            };
            if let Err(reason) = writes(id, node, array) {
                self.list.push(Loss::new(&node.path, LossKind::Array, reason));
                continue;
            }
            self.array(node, array, kept);
        }
    }

    fn array(&mut self, node: &Node, array: &ArrayDesc, kept: &Kept) {
        let path = &node.path;
        if !kept.array_attrs {
            self.attrs(path, node);
        }
        if !kept.dims && array.dims != ArrayDesc::default_dims(array.dims.len()) {
            self.push(path, LossKind::Dimensions, "names of dimensions");
        }
        if !kept.coords && array.coords.iter().any(|coord| *coord != Coord::None) {
            self.push(path, LossKind::Coordinates, "coordinates");
        }
        if !kept.scaling && array.map.is_some() {
            self.push(path, LossKind::Scaling, "linear scaling");
        }
        if !kept.meaning && *array.semantics() != Semantics::default() {
            self.push(path, LossKind::Meaning, "roles of arrays");
        }
        if !kept.frames && matches!(array.layout, Layout::PerFrame(_)) {
            self.push(path, LossKind::Frames, "frames");
        }
    }

    fn attrs(&mut self, path: &str, node: &Node) {
        let reason = format!("{} cannot store it", self.target);
        let lost = node.attrs.iter().map(|(name, _)| Loss::attribute(path, name, &*reason));
        self.list.extend(lost);
    }

    /// Adds the loss of steps, or times, that only some frames have: the target stores those of all
    /// frames or none.
    pub fn add_partial_moments(&mut self, content: &Dataset) {
        let Some(axis) = content.tree().frames() else { return };
        let is_known = [
            ("steps", &(|k| matches!(axis.step(k), Ok(Some(_)))) as &dyn Fn(u64) -> bool),
            ("times", &|k| matches!(axis.time(k), Ok(Some(_)))),
        ];
        for (what, is_known) in is_known {
            let known = (0..axis.len()).filter(|k| is_known(*k)).count() as u64;
            if known > 0 && known < axis.len() {
                let reason = format!("only {known} of {} frames have {what}", axis.len());
                self.push_loss(Loss::new("", LossKind::Frames, reason));
            }
        }
    }

    /// Adds one loss: the target has no `what`.
    pub fn push(&mut self, path: &str, kind: LossKind, what: &str) {
        self.list.push(Loss::new(path, kind, format!("{} has no {what}", self.target)));
    }

    /// Adds one loss as it is.
    pub fn push_loss(&mut self, loss: Loss) {
        self.list.push(loss);
    }

    /// The losses, in file order.
    pub fn into_vec(self) -> Vec<Loss> {
        self.list
    }
}

/// Whether each node is, or has below it, an array; by number of the node.
fn populated(tree: &Tree) -> Vec<bool> {
    let mut with_arrays = vec![false; tree.len() + 1];
    for (_, node, _) in tree.arrays() {
        let mut at = node.parent;
        while at != ROOT && !with_arrays[at.index()] {
            with_arrays[at.index()] = true;
            at = tree.node(at).parent;
        }
    }
    with_arrays
}

/// Losses of a dataset that is [flattened](crate::flatten) for a format with these capabilities: arrays
/// whose frames do not form arrays of one shape, arrays that cannot be stored under a type of the
/// format, and steps and times of only some frames. Everything else is restored from the stored metadata.
pub fn flatten_losses(content: &Dataset, target: &str, holds: &Capabilities) -> Vec<Loss> {
    let mut losses = Losses::new(target);
    losses.add(content, &Kept::ALL, |_, _, array| {
        crate::flat::is_stackable(content, array, holds.frames)
    });
    if !holds.frames {
        losses.add_partial_moments(content);
    }
    losses.into_vec()
}
