//! Dimension scales (HDF5 Dimension Scale Specification) and their use by netCDF-4: names and
//! coordinates of dimensions, from the attributes that store them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use spile_core::chunks::Chunks;
use spile_core::dtype::DType;
use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::shape::Shape;
use spile_core::tree::{NodeId, Value};

use super::Walk;
use super::decoder::Decoder;
use crate::wire::attribute::Attribute;
use crate::wire::datatype::Class;
use crate::wire::{Context, text};

/// Start of the attribute `NAME` of a dimension scale that is only a length.
pub(crate) const WITHOUT_VARIABLE: &str = "This is a netCDF dimension but not a netCDF variable.";

/// Before the name of a netCDF variable that has the name of a dimension and is not its coordinate.
pub(crate) const NOT_A_COORDINATE: &str = "_nc4_non_coord_";

/// The attribute of the root group with metadata JSON.
pub(crate) const DESCRIPTION: &str = "spile";

/// The same attribute in messages.
pub(super) const DESCRIPTION_NAME: &str = "attribute \"spile\" of the root group";

/// Longest strings, in bytes, that are made of characters in chunks.
const MAX_FILL: u64 = 1 << 16;

/// Attributes of dimension scales and netCDF that are not shown.
const HIDDEN: [&str; 2] = ["REFERENCE_LIST", "_nc3_strict"];

/// Whether an attribute name has a meaning for dimension scales, netCDF or spile.
pub(crate) fn is_reserved(name: &str) -> bool {
    const OTHERS: [&str; 6] =
        ["DIMENSION_LIST", "DIMENSION_LABELS", "CLASS", "NAME", "_NCProperties", DESCRIPTION];
    HIDDEN.contains(&name) || OTHERS.contains(&name) || name.starts_with("_Netcdf4")
}

/// Whether the attributes are those of a netCDF dimension without a variable.
pub(crate) fn is_without_variable(attributes: &[Attribute]) -> bool {
    // The length follows the text; some programs truncate it.
    let prefix = &WITHOUT_VARIABLE[..40];
    attributes.iter().any(|a| a.name == "NAME" && text(&a.data).starts_with(prefix))
}

/// Dimension scales of a file.
#[derive(Default)]
pub(crate) struct Scales {
    /// Address of the scale of each dimension.
    lists: HashMap<NodeId, Vec<Option<u64>>>,
    labels: HashMap<NodeId, Vec<String>>,
    /// Nodes that are scales.
    own: HashSet<NodeId>,
    /// Scales by netCDF dimension id.
    ids: HashMap<u64, NodeId>,
    /// netCDF dimension ids of multidimensional coordinate variables.
    coordinates: HashMap<NodeId, Vec<u64>>,
}

impl Scales {
    /// Uses an attribute that describes dimensions. Returns false for all others.
    pub(crate) fn take(
        &mut self,
        ctx: &Context,
        decoder: &Decoder<'_>,
        node: NodeId,
        attribute: &Attribute,
    ) -> Result<bool> {
        match attribute.name.as_str() {
            "DIMENSION_LIST" => {
                let Class::VariableLength { base, .. } = &attribute.datatype.class else {
                    return Ok(false);
                };
                if !matches!(base.class, Class::Reference(0)) {
                    return Ok(false);
                }
                let step = attribute.datatype.size.max(1) as usize;
                let mut list = Vec::new();
                for bytes in attribute.data.chunks_exact(step) {
                    let references =
                        decoder.variable_length(bytes, u64::from(base.size), attribute.at)?;
                    list.push(match references.get(..ctx.sizes.offset) {
                        Some(first) => ctx.fields(first, attribute.at).address()?,
                        None => None,
                    });
                }
                self.lists.insert(node, list);
                Ok(true)
            }
            "DIMENSION_LABELS" => {
                let Value::List(values) = decoder.attribute(attribute)? else { return Ok(false) };
                self.labels.insert(node, values.iter().map(ToString::to_string).collect());
                Ok(true)
            }
            "CLASS" if text(&attribute.data) == "DIMENSION_SCALE" => {
                self.own.insert(node);
                Ok(true)
            }
            "NAME" => Ok(self.own.contains(&node)),
            "_Netcdf4Dimid" => {
                self.ids.extend(dimension_id(decoder, attribute)?.map(|id| (id, node)));
                Ok(true)
            }
            "_Netcdf4Coordinates" => {
                if let Value::List(values) = decoder.attribute(attribute)? {
                    let ids = values.iter().filter_map(|v| u64::try_from(v).ok());
                    self.coordinates.insert(node, ids.collect());
                }
                Ok(true)
            }
            name => Ok(HIDDEN.contains(&name)),
        }
    }

    /// Sets lengths, names and coordinates of the dimensions of all arrays.
    pub(crate) fn apply(&self, walk: &mut Walk<'_>) -> Result<()> {
        let arrays: Vec<NodeId> = walk.tree.arrays().map(|(id, ..)| id).collect();
        if walk.netcdf {
            self.extend(walk, &arrays)?;
            for node in &arrays {
                // Texts of one character are not characters of one text, nor are those of a coordinate.
                let single = |array: &ArrayDesc| array.shape.rank() == 1 && self.own.contains(node);
                let is_text = walk.texts.contains(node);
                let array = walk.tree.node_mut(*node).array.as_mut();
                if let Some(array) = array.filter(|array| !is_text && !single(array)) {
                    join_characters(array);
                }
            }
        }
        for node in arrays {
            self.set_dimensions(walk, node);
        }
        Ok(())
    }

    /// Extends arrays that have fewer records than others along an unlimited dimension.
    fn extend(&self, walk: &mut Walk<'_>, arrays: &[NodeId]) -> Result<()> {
        let addresses: HashMap<NodeId, u64> =
            walk.nodes.iter().map(|(address, node)| (*node, *address)).collect();
        let scales = |node: &NodeId| match self.lists.get(node) {
            Some(list) => list.clone(),
            None if self.own.contains(node) => vec![addresses.get(node).copied()],
            None => Vec::new(),
        };
        let mut extents = std::mem::take(&mut walk.extents);
        for node in arrays {
            extents.measure(&walk.tree, *node, &scales(node));
        }
        for node in arrays {
            extents.extend(&mut walk.tree, *node, &scales(node))?;
        }
        Ok(())
    }

    fn set_dimensions(&self, walk: &mut Walk<'_>, node: NodeId) {
        let Some(array) = walk.tree.node(node).array.clone() else { return };
        let (mut dims, mut coords) = (array.dims, array.coords);
        let rank = array.shape.rank();
        if rank == 1 && self.own.contains(&node) {
            dims[0].clone_from(&walk.tree.node(node).name);
        }
        for (k, address) in self.lists.get(&node).into_iter().flatten().enumerate().take(rank) {
            let Some(address) = address else { continue };
            if let Some(name) = walk.dimensions.get(address) {
                dims[k].clone_from(name);
            } else if let Some(id) = walk.nodes.get(address).copied() {
                let scale = walk.tree.node(id);
                dims[k].clone_from(&scale.name);
                if id != node && scale.array.as_ref().is_some_and(|a| a.shape.rank() == 1) {
                    coords[k] = Coord::Node(id);
                }
            }
        }
        let listed = self.lists.get(&node);
        for (k, id) in self.coordinates.get(&node).into_iter().flatten().enumerate().take(rank) {
            if listed.is_some_and(|list| list.get(k).is_some_and(Option::is_some)) {
                continue;
            }
            // Variables that are no scales may have an identifier, too.
            let scale = self.ids.get(id).filter(|scale| self.own.contains(scale));
            let name = scale.map(|scale| &walk.tree.node(*scale).name);
            if let Some(name) = name.or_else(|| walk.dimension_ids.get(id)) {
                dims[k].clone_from(name);
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

/// The identifier of a netCDF dimension.
pub(super) fn dimension_id(decoder: &Decoder<'_>, attribute: &Attribute) -> Result<Option<u64>> {
    Ok(u64::try_from(&unwrap(decoder.attribute(attribute)?, true)).ok())
}

/// In netCDF files, the only item of a list: netCDF libraries write every number as an array of length 1.
pub(crate) fn unwrap(value: Value, netcdf: bool) -> Value {
    match value {
        Value::List(mut values) if netcdf && values.len() == 1 => values.remove(0),
        other => other,
    }
}

/// Turns the last dimension of a character array into the length of strings (CF conventions,
/// section 2.2).
fn join_characters(array: &mut ArrayDesc) {
    if array.dtype != DType::text(1) {
        return;
    }
    let Some((last, rest)) = array.shape.lengths().split_last() else { return };
    let Ok(size @ 1..) = u32::try_from(*last) else { return };
    let layout = match &array.layout {
        Layout::Plain { .. } | Layout::Inline(..) => array.layout.clone(),
        Layout::Fill(value) if *last <= MAX_FILL => {
            Layout::Fill(value.repeat(size as usize).into())
        }
        Layout::Chunked { chunks, first: 0 } => {
            // Strings must not be divided by chunks.
            let Some((complete, outer)) = chunks.chunk.lengths().split_last() else { return };
            if complete != last || *last > MAX_FILL {
                return;
            }
            let chunks = Chunks {
                shape: Shape::new(rest),
                chunk: Shape::new(outer),
                axes: (0..rest.len()).collect(),
                table: chunks.table.clone(),
                fill: chunks.fill.repeat(size as usize).into(),
            };
            Layout::Chunked { chunks: Arc::new(chunks), first: 0 }
        }
        _ => return,
    };
    array.dtype = DType::text(size);
    array.shape = Shape::new(rest);
    array.layout = layout;
    array.dims.pop();
    array.coords.pop();
}
