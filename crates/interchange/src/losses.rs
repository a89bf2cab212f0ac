//! Loss accounting from metadata: what a target cannot keep, without writing anything.
//!
//! [`compare`] is for writers that can predict the tree that reading gives, [`Losses::add`] for those that
//! declare what they keep.

use std::collections::{HashMap, VecDeque};

use spile_core::format::{Capabilities, Loss, LossKind};
use spile_core::{
    ArrayDesc, Attrs, ByteOrder, Coord, Dataset, Linear, Node, NodeId, ROOT, Role, Semantics, Tree,
    Value,
};

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
    /// `writes` returns a reason are not written at all; groups of which no array is written are empty.
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
        let refused: HashMap<NodeId, String> = tree
            .arrays()
            .filter_map(|(id, node, array)| Some((id, writes(id, node, array).err()?)))
            .collect();
        let populated =
            (!kept.empty_groups).then(|| populated(tree, |id| !refused.contains_key(&id)));
        for (id, node) in tree.iter() {
            let Some(array) = &node.array else {
                if populated.as_ref().is_some_and(|with_arrays| !with_arrays[id.index()]) {
                    self.push(&node.path, LossKind::Group, "empty groups");
                } else if !kept.group_attrs {
                    self.attrs(&node.path, node);
                }
                continue;
            };
            match refused.get(&id) {
                Some(reason) => self.list.push(Loss::new(&node.path, LossKind::Array, reason)),
                None => self.array(node, array, kept),
            }
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
        if !kept.frames && array.layout.frames().is_some() {
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

/// Everything of `old` that is not in `new`, the tree that reading will give after `old` was written as
/// `target`. `nodes` are the nodes of `new` by number of the node of `old`; of a node without one, `missing`
/// returns the kind of the loss and its reason. Coordinates are kept if a dimension still has one: targets
/// store uniform coordinates as arrays and the reverse.
pub fn compare(
    target: &str,
    (old, new): (&Tree, &Tree),
    nodes: &[Option<NodeId>],
    missing: impl Fn(&Node) -> (LossKind, String),
) -> Vec<Loss> {
    let mut losses = Losses::new(target);
    if old.frames().is_some() && new.frames().is_none() {
        losses.push("", LossKind::Frames, "frames");
    }
    losses.compare_attrs("", old.attrs(), new.attrs());
    for (id, node) in old.iter() {
        let Some(found) = nodes[id.index()].map(|id| new.node(id)) else {
            let (kind, reason) = missing(node);
            losses.list.push(Loss::new(&node.path, kind, reason));
            continue;
        };
        if node.name != found.name || nodes[node.parent.index()] != Some(found.parent) {
            losses.changed(&node.path, LossKind::Name, &format!("it as \"{}\"", found.path));
        }
        losses.compare_attrs(&node.path, &node.attrs, &found.attrs);
        if let (Some(own), Some(read)) = (&node.array, &found.array) {
            losses.compare_arrays(&node.path, (old, own), (new, read), nodes);
        }
    }
    losses.into_vec()
}

impl Losses<'_> {
    /// Adds one loss: the target stores `what`.
    fn changed(&mut self, path: &str, kind: LossKind, what: &str) {
        self.list.push(Loss::new(path, kind, format!("{} stores {what}", self.target)));
    }

    fn compare_attrs(&mut self, path: &str, old: &Attrs, new: &Attrs) {
        // Names may occur twice: values are compared in their order.
        let mut read: HashMap<&str, VecDeque<&Value>> = HashMap::new();
        for (name, value) in new {
            read.entry(name).or_default().push_back(value);
        }
        for (name, value) in old {
            let reason = match read.get_mut(name).and_then(VecDeque::pop_front) {
                Some(read) if read.same(value) => continue,
                Some(read) => format!("{} stores it as {read}", self.target),
                None => format!("{} cannot store it", self.target),
            };
            self.list.push(Loss::attribute(path, name, reason));
        }
    }

    fn compare_arrays(
        &mut self,
        path: &str,
        (tree, old): (&Tree, &ArrayDesc),
        (new_tree, new): (&Tree, &ArrayDesc),
        nodes: &[Option<NodeId>],
    ) {
        let (Ok(stored), Ok(written)) = (tree.resolve(old), new_tree.resolve(new)) else { return };
        let [from, to] = [stored, written].map(|desc| desc.dtype.with_order(ByteOrder::Little));
        if from != to {
            self.changed(path, LossKind::Type, &format!("{from} as {to}"));
        }
        if stored.shape != written.shape {
            let what = format!("an array of shape {} as {}", stored.shape, written.shape);
            self.changed(path, LossKind::Shape, &what);
        }
        if old.dims != new.dims && old.dims != ArrayDesc::default_dims(old.dims.len()) {
            self.push(path, LossKind::Dimensions, "names of dimensions for it");
        }
        let is_lost = |(k, coord): (usize, &Coord)| {
            *coord != Coord::None && matches!(new.coords.get(k), None | Some(Coord::None))
        };
        if old.coords.iter().enumerate().any(is_lost) {
            self.push(path, LossKind::Coordinates, "coordinates for it");
        }
        let coefficients = |desc: &ArrayDesc| desc.map.map(Linear::coefficients);
        if coefficients(stored) != coefficients(written) {
            self.push(path, LossKind::Scaling, "such linear scaling");
        }
        let mesh = |id: NodeId| nodes[id.index()];
        let (old, new) = (old.semantics(), new.semantics());
        let kept = (old.role == Role::Data || old.role == new.role)
            && old.mesh.is_none_or(|id| new.mesh.is_some() && mesh(id) == new.mesh)
            && (old.centring.is_none() || old.centring == new.centring)
            && (old.component.is_none() || old.component == new.component)
            && (old.point_set.is_none() || old.point_set == new.point_set)
            && (old.missing.is_none() || old.missing == new.missing);
        if !kept {
            self.push(path, LossKind::Meaning, "such semantics for it");
        }
    }
}

/// Whether each group has below it an array of which `counts` is true; by number of the node.
fn populated(tree: &Tree, counts: impl Fn(NodeId) -> bool) -> Vec<bool> {
    let mut with_arrays = vec![false; tree.len() + 1];
    for (_, node, _) in tree.arrays().filter(|(id, ..)| counts(*id)) {
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
