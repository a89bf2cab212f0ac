//! Dimension scales (HDF5 Dimension Scale Specification) and what netCDF-4 adds: names and points of
//! dimensions, taken from the attributes that keep them.

use std::collections::HashMap;

use spile_core::dtype::{DType, Kind};
use spile_core::layout::{ArrayDesc, Coord, Linear};
use spile_core::shape::Shape;
use spile_core::tree::{Attrs, NodeId, Value};

use crate::attribute::{Attribute, Decoder};
use crate::datatype::Class;
use crate::read::Walk;
use crate::wire::{Ground, text};

/// The name of a scale that is only there for its length.
pub(crate) const NO_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable.";

/// The attribute of the root that says what HDF5 cannot.
pub(crate) const DESCRIPTION: &str = "spile";

/// Attributes that are the machinery of scales and of netCDF.
const HIDDEN: [&str; 2] = ["REFERENCE_LIST", "_nc3_strict"];

/// The name of an attribute is not free for what people say.
pub(crate) fn is_machinery(name: &str) -> bool {
    const OTHERS: [&str; 6] =
        ["DIMENSION_LIST", "DIMENSION_LABELS", "CLASS", "NAME", "_NCProperties", DESCRIPTION];
    HIDDEN.contains(&name) || OTHERS.contains(&name) || name.starts_with("_Netcdf4")
}

/// A scale without values: a dimension that has a name and nothing else.
pub(crate) fn is_bare(said: &[Attribute]) -> bool {
    // The text ends with the length; programs cut it at different places.
    let word = &NO_VARIABLE[..40];
    said.iter().any(|a| a.name == "NAME" && text(&a.data).starts_with(word))
}

/// What the attributes say about dimensions.
#[derive(Default)]
pub(crate) struct Scales {
    /// Addresses of the scale of each dimension.
    lists: HashMap<NodeId, Vec<Option<u64>>>,
    labels: HashMap<NodeId, Vec<String>>,
    /// Nodes that are scales themselves.
    own: Vec<NodeId>,
    /// Numbers of dimensions by scale, and those of variables with more than one.
    numbers: HashMap<u64, NodeId>,
    several: HashMap<NodeId, Vec<u64>>,
}

impl Scales {
    /// Takes an attribute that belongs to the machinery; false if it is somebody's own.
    pub(crate) fn take(
        &mut self,
        ground: &Ground,
        decoder: &Decoder<'_>,
        node: NodeId,
        attribute: &Attribute,
    ) -> bool {
        match attribute.name.as_str() {
            "DIMENSION_LIST" => {
                if let Class::Many { base, .. } = &attribute.kind.class
                    && matches!(base.class, Class::Reference(0))
                {
                    let step = attribute.kind.size.max(1) as usize;
                    let lists = attribute.data.chunks_exact(step).map(|bytes| {
                        let found = decoder.many(bytes, u64::from(base.size), attribute.at).ok()?;
                        let first = found.get(..ground.sizes.offset)?;
                        ground.fields(first, attribute.at).address().ok()?
                    });
                    self.lists.insert(node, lists.collect());
                }
                true
            }
            "DIMENSION_LABELS" => {
                if let Ok(Value::List(values)) = decoder.attribute(attribute) {
                    let labels = values.iter().map(ToString::to_string).collect();
                    self.labels.insert(node, labels);
                }
                true
            }
            "CLASS" if text(&attribute.data) == "DIMENSION_SCALE" => {
                self.own.push(node);
                true
            }
            "NAME" => self.own.contains(&node),
            "_Netcdf4Dimid" => {
                if let Ok(value) = decoder.attribute(attribute)
                    && let Ok(number) = u64::try_from(&plain(value, true))
                {
                    self.numbers.insert(number, node);
                }
                true
            }
            "_Netcdf4Coordinates" => {
                if let Ok(Value::List(values)) = decoder.attribute(attribute) {
                    let numbers = values.iter().filter_map(|v| u64::try_from(v).ok());
                    self.several.insert(node, numbers.collect());
                }
                true
            }
            name => HIDDEN.contains(&name),
        }
    }

    /// Gives arrays the names and points of their dimensions.
    pub(crate) fn apply(&self, walk: &mut Walk<'_>) {
        let arrays: Vec<NodeId> = walk.tree.arrays().map(|(id, ..)| id).collect();
        for node in arrays {
            self.name(walk, node);
        }
        if walk.netcdf {
            let arrays: Vec<NodeId> = walk.tree.arrays().map(|(id, ..)| id).collect();
            for node in arrays {
                if let Some(array) = &mut walk.tree.node_mut(node).array {
                    join_characters(array);
                }
            }
        }
    }

    fn name(&self, walk: &mut Walk<'_>, node: NodeId) {
        let own = self.own.contains(&node);
        let Some(array) = walk.tree.node(node).array.clone() else { return };
        let (mut dims, mut coords) = (array.dims, array.coords);
        let rank = array.shape.rank();
        if own && rank == 1 {
            dims[0].clone_from(&walk.tree.node(node).name);
        }
        for (k, address) in self.lists.get(&node).into_iter().flatten().enumerate().take(rank) {
            let Some(address) = address else { continue };
            if let Some(name) = walk.bare_scales.get(address) {
                dims[k].clone_from(name);
            } else if let Some(scale) = walk.nodes.get(address).copied() {
                let of = walk.tree.node(scale);
                dims[k].clone_from(&of.name);
                let line = of.array.as_ref().is_some_and(|a| a.shape.rank() == 1);
                if scale != node && line {
                    coords[k] = Coord::Node(scale);
                }
            }
        }
        for (k, number) in self.several.get(&node).into_iter().flatten().enumerate().take(rank) {
            if let Some(scale) = self.numbers.get(number) {
                dims[k].clone_from(&walk.tree.node(*scale).name);
            }
        }
        for (k, label) in self.labels.get(&node).into_iter().flatten().enumerate().take(rank) {
            if !label.is_empty() {
                dims[k].clone_from(label);
            }
        }
        if let Some(array) = &mut walk.tree.node_mut(node).array {
            (array.dims, array.coords) = (dims, coords);
        }
    }
}

/// A netCDF library writes every number as a list of one.
pub(crate) fn plain(value: Value, netcdf: bool) -> Value {
    match value {
        Value::List(mut values) if netcdf && values.len() == 1 => values.remove(0),
        other => other,
    }
}

/// The last dimension of characters is the length of texts (CF conventions, section 2.2).
fn join_characters(array: &mut ArrayDesc) {
    if array.dtype != DType::text(1) {
        return;
    }
    let Some((last, rest)) = array.shape.lengths().split_last() else { return };
    let Ok(size @ 1..) = u32::try_from(*last) else { return };
    let plain = matches!(array.layout, spile_core::layout::Layout::Plain { .. });
    if plain {
        array.dtype = DType::text(size);
        array.shape = Shape::new(rest);
        array.dims.pop();
        array.coords.pop();
    }
}

/// Attributes that say what packed numbers mean (CF conventions, section 8.1) become a map.
pub(crate) fn take_map(array: &mut ArrayDesc, attrs: &mut Attrs) {
    if !array.dtype.is_real() || matches!(array.dtype.kind(), Kind::X87) {
        return;
    }
    let number = |name: &str| {
        let (_, value) = attrs.iter().find(|(own, _)| own == name)?;
        f64::try_from(value).ok()
    };
    let (slope, intercept) = (number("scale_factor"), number("add_offset"));
    if slope.is_none() && intercept.is_none() {
        return;
    }
    array.map = Some(Linear::new(intercept.unwrap_or(0.0), slope.unwrap_or(1.0)));
    attrs.retain(|(name, _)| name != "scale_factor" && name != "add_offset");
}
