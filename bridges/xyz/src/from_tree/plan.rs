//! What is written: the names of columns and keys, and the losses.

use std::collections::HashSet;

use spile_core::Dataset;
use spile_core::atoms::AtomArrays;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{Loss, LossKind};
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::semantics::{Quantity, Role, Semantics};
use spile_core::tree::{Node, NodeId};
use spile_core::wire::ByteOrder;
use spile_interchange::structure::angstroms;
use spile_interchange::{Kept, Losses};

use crate::to_tree::{ATOMS, CELL, INFO, PBC, logical, own_dims, property_dims, quantity};
use crate::wire::{Letter, Property};

/// Most columns of a property, and most values of a key.
const MOST_VALUES: u64 = 64;

/// Keys with a meaning of their own.
const RESERVED: [&str; 8] =
    ["Lattice", "Properties", "pbc", "step", "time", "Step", "Time", "timestep"];

pub(super) struct Plan {
    pub(super) arrays: AtomArrays,
    /// Names of columns, by array; the species are not among them.
    names: Vec<(NodeId, String)>,
    /// Keys of the comment line.
    pub(super) infos: Vec<(NodeId, String)>,
    /// The array of the cell.
    cell: Option<NodeId>,
    /// Periodic directions in a file of this format.
    pub(super) pbc: Option<NodeId>,
}

/// The type of a column; `None` if there is no such type.
pub(super) fn letter(dtype: DType) -> Option<Letter> {
    match dtype.kind() {
        Kind::Float if dtype.size() <= 8 => Some(Letter::Real),
        Kind::Int | Kind::UInt => Some(Letter::Integer),
        Kind::Bool => Some(Letter::Logical),
        Kind::Text => Some(Letter::Text),
        _ => None,
    }
}

/// A name of letters, digits and underscores that is not in `taken`, and does not begin with a digit.
fn valid_name(name: &str, taken: &mut HashSet<String>) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let clean: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    let clean = match clean.chars().next() {
        Some(first) if !first.is_ascii_digit() => clean,
        _ => format!("_{clean}"),
    };
    let numbered = (2..).map(|k| format!("{clean}_{k}"));
    let mut all = std::iter::once(clean.clone()).chain(numbered);
    let name = all.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(name.clone());
    name
}

/// Whether reading gives a column or key with this name: it can be written as it is.
fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    first && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

impl Plan {
    /// Fails if there are no atoms.
    pub(super) fn new(content: &Dataset) -> Result<Self> {
        let Some(arrays) = content.atom_arrays() else {
            let message = "no atoms: XYZ needs an array of positions with three columns";
            return Err(Error::unsupported("xyz-020", message));
        };
        let tree = content.tree();
        let mut plan = Self { names: Vec::new(), infos: Vec::new(), cell: None, pbc: None, arrays };
        let mut taken = HashSet::from(["species".to_string()]);
        let per_atom = std::iter::once(plan.arrays.positions).chain(plan.arrays.columns.clone());
        for id in per_atom {
            let (node, Some(desc)) = (tree.node(id), &tree.node(id).array) else { continue };
            let columns = desc.shape.lengths().get(1).copied().unwrap_or(1);
            if letter(desc.dtype).is_none() || !(1..=MOST_VALUES).contains(&columns) {
                continue;
            }
            let parent = &tree.node(node.parent).path;
            let own = parent == ATOMS && is_plain(&node.name);
            let wanted = match desc.semantics().quantity {
                Some(Quantity::Position) if id == plan.arrays.positions => "pos",
                _ if own => &node.name,
                Some(Quantity::Velocity) => "velo",
                Some(Quantity::Force) => "forces",
                Some(Quantity::Mass) => "masses",
                Some(Quantity::Charge) => "charge",
                _ => &node.name,
            };
            let name = valid_name(wanted, &mut taken);
            plan.names.push((id, name));
        }
        let cell = |desc: &ArrayDesc| {
            desc.semantics().role == Role::Cell && desc.shape.lengths() == [3, 3]
        };
        plan.cell = tree.arrays().find(|(_, _, desc)| cell(desc)).map(|(id, ..)| id);
        let pbc = |(_, node, desc): &(NodeId, &Node, &ArrayDesc)| {
            node.path == PBC && desc.dtype == logical() && desc.shape.lengths() == [3]
        };
        plan.pbc = tree.arrays().find(pbc).map(|(id, ..)| id);
        let mut taken: HashSet<String> = RESERVED.iter().map(ToString::to_string).collect();
        for (id, node, desc) in tree.arrays() {
            let role = desc.semantics().role;
            let is_text = desc.dtype.kind() == Kind::Text && desc.shape.rank() == 0;
            let is_log = role == Role::Log || (role == Role::Text && is_text);
            let count = desc.shape.count().unwrap_or(u64::MAX);
            let fits = letter(desc.dtype).is_some_and(|letter| letter != Letter::Text || is_text)
                && (1..=MOST_VALUES).contains(&count)
                && desc.shape.rank() <= 2;
            let is_atom = id == plan.arrays.positions || plan.arrays.columns.contains(&id);
            if is_log && fits && !is_atom && desc.semantics().point_set.is_none() {
                let key = valid_name(&node.name, &mut taken);
                plan.infos.push((id, key));
            }
        }
        Ok(plan)
    }

    /// The name of the column of an array; `None` if it is not written.
    pub(super) fn name(&self, id: NodeId) -> Option<&str> {
        self.names.iter().find(|(own, _)| *own == id).map(|(_, name)| name.as_str())
    }

    /// The path of an array after reading; `None` if it is not written.
    fn new_path(&self, id: NodeId) -> Option<String> {
        if self.arrays.species == Some(id) && self.name(id).is_none() {
            return Some(format!("{ATOMS}/species"));
        }
        if let Some(name) = self.name(id) {
            return Some(format!("{ATOMS}/{name}"));
        }
        if let Some((_, key)) = self.infos.iter().find(|(own, _)| *own == id) {
            return Some(format!("{INFO}/{key}"));
        }
        if self.cell == Some(id) {
            return Some(CELL.into());
        }
        (self.pbc == Some(id)).then(|| PBC.into())
    }

    /// Whether the array has the same path after reading.
    pub(super) fn is_kept(&self, content: &Dataset, id: NodeId) -> bool {
        self.new_path(id).is_some_and(|path| path == content.tree().node(id).path)
    }

    /// Everything that is not kept. Of an array with another name only the name is lost: the rest cannot be
    /// compared.
    pub(super) fn losses(&self, content: &Dataset) -> Vec<Loss> {
        let tree = content.tree();
        let mut losses = Losses::new("XYZ");
        let kept = Kept { frames: true, ..Kept::ALL };
        let kept = Kept { root_attrs: false, ..kept };
        losses.add(content, &kept, |id, _, _| match self.new_path(id) {
            Some(_) => Ok(()),
            None => Err("XYZ stores atoms, their cell and logged numbers".into()),
        });
        let mut paths = HashSet::from([ATOMS.to_string()]);
        for (id, _, _) in tree.arrays() {
            let Some(path) = self.new_path(id) else { continue };
            let group = path.rsplit_once('/').map(|(group, _)| group.to_string());
            paths.extend(group);
            paths.insert(path);
        }
        for (id, node) in tree.iter() {
            let path = node.path.as_str();
            let Some(desc) = &node.array else {
                if paths.contains(path) {
                    let reason = "XYZ has no attributes of groups";
                    let lost = node.attrs.iter();
                    lost.for_each(|(name, _)| {
                        losses.push_loss(Loss::attribute(path, name, reason));
                    });
                } else {
                    losses.push_loss(Loss::new(path, LossKind::Group, "XYZ has no groups"));
                }
                continue;
            };
            let Some(new) = self.new_path(id) else { continue };
            if new != path {
                let reason = format!("XYZ stores it as \"{new}\"");
                losses.push_loss(Loss::new(path, LossKind::Name, reason));
                continue;
            }
            self.kept_array_losses(content, node, desc, &mut losses);
        }
        losses.into_vec()
    }

    /// Losses of an array that keeps its path.
    fn kept_array_losses(
        &self,
        content: &Dataset,
        node: &Node,
        own: &ArrayDesc,
        losses: &mut Losses<'_>,
    ) {
        let (tree, path) = (content.tree(), &node.path);
        let Ok(desc) = tree.resolve(own) else { return };
        let mut push = |kind, reason: &str| losses.push_loss(Loss::new(path, kind, reason));
        if self.cell == tree.at(path) && angstroms(node.attrs.get_str("units")) != 1.0 {
            push(LossKind::Values, "lengths are written in ångström");
        }
        let letter = letter(desc.dtype).unwrap_or(Letter::Real);
        let dtype = match letter {
            Letter::Real => DType::F64,
            Letter::Integer => DType::I64,
            Letter::Logical => logical(),
            Letter::Text => desc.dtype,
        };
        if desc.dtype.with_order(ByteOrder::Little) != dtype {
            push(LossKind::Type, "XYZ has no such type");
        }
        if desc.layout.frames().is_none() {
            push(LossKind::Frames, "XYZ stores it per frame");
        }
        let columns = desc.shape.lengths().get(1).copied().unwrap_or(1) as usize;
        let (group, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (mut dims, mut meaning) = (own_dims(name, desc.shape.rank()), Semantics::default());
        if group == ATOMS {
            let property = Property { name: name.into(), letter, columns };
            meaning = Semantics::role(Role::Points);
            meaning.point_set = Some(ATOMS.into());
            meaning.quantity = quantity(&property);
            let is_position = tree.node(self.arrays.positions).path == *path;
            meaning.mesh = (!is_position).then_some(self.arrays.positions);
            dims = property_dims(columns);
        } else if group == INFO {
            let is_text = letter == Letter::Text;
            meaning.role = if is_text { Role::Text } else { Role::Log };
        } else if name == CELL {
            meaning.role = Role::Cell;
        }
        if own.dims != dims {
            push(LossKind::Dimensions, "XYZ has no names of dimensions");
        }
        if own.coords.iter().any(|coord| *coord != Coord::None) {
            push(LossKind::Coordinates, "XYZ has no coordinates");
        }
        if own.map.is_some() {
            push(LossKind::Scaling, "XYZ has no linear scaling");
        }
        meaning.quantity = own.semantics().quantity;
        if *own.semantics() != Semantics::default() && *own.semantics() != meaning {
            push(LossKind::Meaning, "XYZ has no such roles");
        }
        let reason = "XYZ has no attributes of arrays";
        node.attrs
            .iter()
            .for_each(|(name, _)| losses.push_loss(Loss::attribute(path, name, reason)));
    }
}
