//! The nodes of a store as a tree.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use spile_core::dtype::Kind;
use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::limits::Limits;
use spile_core::metadata::StoredMetadata;
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};
use spile_interchange::cf;

use crate::chunks::{Stored, layout};
use crate::read::{Entry, StoredArray, report_array};
use crate::wire::{self, ArrayMeta, to_json};

/// The attribute of the root group with metadata JSON.
pub(crate) const DESCRIPTION: &str = "spile";

/// The tree of a store and its arrays.
pub(crate) struct Contents {
    pub(crate) tree: Tree,
    pub(crate) arrays: Vec<StoredArray>,
    pub(crate) metadata: Option<StoredMetadata>,
}

/// Builds the tree of all entries, which follow their groups. An array that cannot be read is reported.
pub(crate) fn parse(
    source: &Source,
    entries: Vec<Entry>,
    report: &mut Report,
    limits: &Limits,
) -> Result<Contents> {
    let mut tree = Tree::new(limits);
    let mut arrays = Vec::new();
    let mut metadata = None;
    for Entry { path, mut attrs, array } in entries {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let id = if let Some((meta, files)) = array {
            let data_type = meta.data_type.clone();
            match array_desc(source, meta, &files, limits) {
                Ok((stored, desc)) => {
                    let parent = tree.group_at(parent)?;
                    let id = tree.add_array(parent, name, desc)?;
                    arrays.push(StoredArray { path: path.clone(), data_type, desc: stored });
                    id
                }
                Err(error) => {
                    report_array(report, &path, error)?;
                    continue;
                }
            }
        } else if path.is_empty() {
            if let Some(Json::String(text)) = attrs.remove(DESCRIPTION) {
                metadata = Some(StoredMetadata {
                    stored_value: Some(stored_value),
                    ..StoredMetadata::new(text, "attribute \"spile\" of the root group")
                });
            }
            ROOT
        } else {
            let parent = tree.group_at(parent)?;
            tree.add_group(parent, name)?
        };
        tree.set_attrs(id, attributes(attrs))?;
        cf::apply(&mut tree, id)?;
        set_fill_value(&mut tree, id);
    }
    set_coordinates(&mut tree);
    cf::set_roles(&mut tree)?;
    Ok(Contents { tree, arrays, metadata })
}

/// The description of an array as it is stored, and with dimension names. Coordinates are not set.
fn array_desc(
    source: &Source,
    meta: ArrayMeta,
    files: &BTreeMap<u64, usize>,
    limits: &Limits,
) -> Result<(ArrayDesc, ArrayDesc)> {
    let layout = layout(source, &meta, Stored::new(source, files), limits)?;
    let stored = ArrayDesc::new(meta.dtype, meta.shape, layout);
    let mut desc = stored.clone();
    for (dim, name) in desc.dims.iter_mut().zip(meta.dims) {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            *dim = name;
        }
    }
    Ok((stored, desc))
}

/// Adds the missing value of floats that xarray wrote: `_FillValue` is `NaN`, or the eight bytes of a
/// double in base64.
fn set_fill_value(tree: &mut Tree, id: NodeId) {
    let node = tree.node_mut(id);
    let Some(array) = node.array.as_mut().filter(|array| array.dtype.kind() == Kind::Float) else {
        return;
    };
    let number = node.attrs.get_str("_FillValue").and_then(|text| match text {
        "NaN" => Some(f64::NAN),
        text => {
            let bytes = base64_simd::STANDARD.decode_to_vec(text).ok()?;
            bytes.try_into().ok().map(f64::from_le_bytes)
        }
    });
    if let Some(number) = number {
        array.semantics_mut().missing.values.push(number);
    }
}

/// Sets the coordinates of every dimension: the one-dimensional array of its name and length in the group
/// of the array, or in the nearest group above.
fn set_coordinates(tree: &mut Tree) {
    let arrays: Vec<NodeId> = tree.arrays().map(|(id, ..)| id).collect();
    for id in arrays {
        let node = tree.node(id);
        let (Some(array), mut group) = (&node.array, node.parent) else { continue };
        let mut coords = array.coords.clone();
        loop {
            for (k, coord) in coords.iter_mut().enumerate() {
                let line = tree.child(group, &array.dims[k]).filter(|line| *line != id);
                let points = line.and_then(|line| tree.node(line).array.as_ref());
                let fits = points.is_some_and(|p| p.shape.lengths() == [array.shape.lengths()[k]]);
                if let (Coord::None, Some(line), true) = (&*coord, line, fits) {
                    *coord = Coord::Node(line);
                }
            }
            if group == ROOT {
                break;
            }
            group = tree.node(group).parent;
        }
        if let Some(array) = &mut tree.node_mut(id).array {
            array.coords = coords;
        }
    }
}

/// The value that is read again after `value` was written.
fn stored_value(value: &Value) -> Value {
    from_json(to_json(value))
}

fn attributes(attrs: wire::Object) -> Attrs {
    attrs.into_iter().map(|(name, value)| (name, from_json(value))).collect()
}

/// A JSON value as an attribute value; objects and null become their JSON text.
fn from_json(value: Json) -> Value {
    match value {
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(integer), _) => Value::UInt(integer),
            (_, Some(integer)) => Value::Int(integer),
            _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text),
        Json::Array(list) => Value::List(list.into_iter().map(from_json).collect()),
        other => Value::Text(other.to_string()),
    }
}
