//! What writing a dataset does not keep: the blocks are planned without data, read as a tree, and
//! compared with the dataset.

use std::collections::HashMap;

use spile_core::Dataset;
use spile_core::error::Result;
use spile_core::format::{Loss, LossKind};
use spile_core::layout::{ArrayDesc, Coord, Linear};
use spile_core::semantics::{Role, Semantics};
use spile_core::tree::{Attrs, Node, NodeId, ROOT, Tree, Value};
use spile_core::wire::ByteOrder;
use spile_interchange::midpoints::DERIVED;

use super::{Output, TreeWriter, header};
use crate::to_tree;
use crate::write::FileLayout;

/// Everything of `content` that is not kept, from metadata alone. Fails where writing fails.
pub(crate) fn losses(content: &Dataset) -> Result<Vec<Loss>> {
    let layout = FileLayout::new(&header(content.tree()))?;
    let planned = TreeWriter::new(content, Output::Plan(layout, Vec::new())).write()?;
    let Output::Plan(layout, blocks) = planned.output else { return Ok(Vec::new()) };
    let built = to_tree::build(&layout.file, &blocks, None, content.limits())?;
    let from_blocks = planned.origins.iter().zip(&built.nodes);
    let blocks = from_blocks.filter_map(|(old, new)| Some(((*old)?, (*new)?))).collect();
    let mut comparison = Comparison { old: content.tree(), new: &built.tree, blocks, list: vec![] };
    comparison.run();
    Ok(comparison.list)
}

struct Comparison<'a> {
    old: &'a Tree,
    new: &'a Tree,
    /// New nodes of old ones; first those that are blocks.
    blocks: HashMap<NodeId, NodeId>,
    list: Vec<Loss>,
}

impl<'a> Comparison<'a> {
    fn run(&mut self) {
        let (old, new) = (self.old, self.new);
        self.attrs("", old.attrs(), new.attrs());
        if old.frames().is_some() {
            self.lost("", LossKind::Frames, "SDF has no frames");
        }
        self.blocks.insert(ROOT, ROOT);
        for (id, node) in old.iter() {
            let child = |parent: &NodeId| new.child(*parent, &node.name);
            let found = self.blocks.get(&id).copied();
            let found = found.or_else(|| self.blocks.get(&node.parent).and_then(child));
            if let Some(new) = found {
                self.blocks.insert(id, new);
            }
        }
        for (id, node) in old.iter() {
            match self.blocks.get(&id) {
                Some(found) => self.node(node, new.node(*found)),
                None if node.array.is_none() => {
                    self.lost(&node.path, LossKind::Group, "SDF has no empty groups");
                }
                None if node.attrs.contains(DERIVED) => {
                    self.lost(&node.path, LossKind::Array, "computed arrays are not stored");
                }
                None => self.lost(&node.path, LossKind::Name, "SDF cannot store the name"),
            }
        }
    }

    fn lost(&mut self, path: &str, kind: LossKind, reason: impl Into<String>) {
        self.list.push(Loss::new(path, kind, reason));
    }

    fn node(&mut self, old: &'a Node, new: &Node) {
        let path = &old.path;
        if *path != new.path {
            let reason = format!("SDF stores it as \"{}\"", new.path);
            self.lost(path, LossKind::Name, reason);
        }
        self.attrs(path, &old.attrs, &new.attrs);
        if let (Some(old), Some(new)) = (&old.array, &new.array) {
            self.array(path, old, new);
        }
    }

    fn attrs(&mut self, path: &str, old: &Attrs, new: &Attrs) {
        // Equal lists may have names twice.
        if old.len() == new.len() && old.iter().zip(new).all(|(a, b)| a.0 == b.0 && same(a.1, b.1))
        {
            return;
        }
        for (name, value) in old {
            if !new.get(name).is_some_and(|new| same(value, new)) {
                self.list.push(Loss::attribute(path, name, "SDF cannot store it"));
            }
        }
    }

    fn array(&mut self, path: &str, old: &ArrayDesc, new: &ArrayDesc) {
        let (stored, written) = (self.old.resolve(old), self.new.resolve(new));
        let (Ok(stored), Ok(written)) = (stored, written) else { return };
        let little = |desc: &ArrayDesc| desc.dtype.with_order(ByteOrder::Little);
        if little(stored) != little(written) {
            let reason = format!("SDF stores {} as {}", little(stored), little(written));
            self.lost(path, LossKind::Type, reason);
        }
        if stored.shape != written.shape {
            let reason = format!("SDF stores {} elements as {}", stored.shape, written.shape);
            self.lost(path, LossKind::Shape, reason);
        }
        if old.dims != new.dims && old.dims != ArrayDesc::default_dims(old.dims.len()) {
            let reason = "SDF stores names of dimensions only in meshes";
            self.lost(path, LossKind::Dimensions, reason);
        }
        let known = |coord: &Coord| *coord != Coord::None;
        let missing =
            |(k, coord): (usize, &Coord)| known(coord) && !new.coords.get(k).is_some_and(known);
        if old.coords.iter().enumerate().any(missing) {
            self.lost(path, LossKind::Coordinates, "SDF has coordinates only for variables");
        }
        let factor = |map: Option<Linear>| map.unwrap_or(Linear::new(0.0, 1.0)).coefficients();
        if factor(stored.map) != factor(written.map) {
            let reason = "SDF has no scaling with this factor";
            self.lost(path, LossKind::Scaling, reason);
        }
        if !self.keeps_meaning(old.semantics(), new.semantics()) {
            let reason = "SDF derives the meaning of an array from its block";
            self.lost(path, LossKind::Meaning, reason);
        }
    }

    /// Everything that `old` says is also in `new`.
    fn keeps_meaning(&self, old: &Semantics, new: &Semantics) -> bool {
        let mesh = |id: NodeId| self.blocks.get(&id).copied();
        (old.role == Role::Data || old.role == new.role)
            && old.mesh.is_none_or(|id| new.mesh.is_some() && mesh(id) == new.mesh)
            && (old.centring.is_none() || old.centring == new.centring)
            && (old.component.is_none() || old.component == new.component)
            && (old.point_set.is_none() || old.point_set == new.point_set)
            && (old.missing.is_none() || old.missing == new.missing)
    }
}

/// Equal values; integers of any type are equal if their numbers are.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Int(a), Value::UInt(b)) | (Value::UInt(b), Value::Int(a)) => {
            u64::try_from(*a) == Ok(*b)
        }
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        _ => a == b,
    }
}
