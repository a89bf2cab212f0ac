//! The nodes of a store as a tree.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value as Json;
use spile_core::metadata::Description;
use spile_core::error::{ErrorKind, Result};
use spile_core::layout::{ArrayDesc, Coord, Linear};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};

use crate::chunks::{Stored, layout};
use crate::read::{Entry, StoredArray, report_array};
use crate::wire::{self, ArrayMeta, to_json};

/// The attribute of the root group with metadata JSON.
pub(crate) const DESCRIPTION: &str = "spile";

/// The tree of a store and its arrays.
pub(crate) struct Parsed {
    pub(crate) tree: Tree,
    pub(crate) arrays: Vec<StoredArray>,
}

/// Builds the tree of all entries, which follow their groups. An array that cannot be read is reported;
/// metadata JSON that does not fit the arrays is a warning.
pub(crate) fn parse(
    source: &Source,
    entries: Vec<Entry>,
    report: &mut Report,
    limits: &Limits,
) -> Result<Parsed> {
    let mut plain = Tree::new(limits);
    let mut arrays = Vec::new();
    let mut description = None;
    for Entry { path, mut attrs, array } in entries {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let id = if let Some((meta, files)) = array {
            let data_type = meta.data_type.clone();
            match array_desc(source, meta, &files, &mut attrs, limits) {
                Ok((stored, desc)) => {
                    let parent = plain.group_at(parent)?;
                    let id = plain.add_array(parent, name, desc)?;
                    arrays.push(StoredArray { path: path.clone(), data_type, desc: stored });
                    id
                }
                Err(error) => {
                    report_array(report, &path, error)?;
                    continue;
                }
            }
        } else if path.is_empty() {
            description = attrs.remove(DESCRIPTION);
            ROOT
        } else {
            let parent = plain.group_at(parent)?;
            plain.add_group(parent, name)?
        };
        plain.node_mut(id).attrs = attributes(attrs);
    }
    set_coordinates(&mut plain);
    let text = description.as_ref().and_then(Json::as_str);
    let tree = match text.map(|text| apply_metadata(text, source, &plain, limits)) {
        None => plain,
        Some(Ok(tree)) => tree,
        Some(Err(e)) if e.kind() == ErrorKind::Io => return Err(e),
        Some(Err(e)) => {
            let message = format!("metadata JSON ignored: {}", e.message());
            report.warn("zarr-007", message).in_object("attribute \"spile\" of the root group");
            plain
        }
    };
    Ok(Parsed { tree, arrays })
}

/// The tree of the metadata JSON, with the current attributes of the store.
fn apply_metadata(text: &str, source: &Source, plain: &Tree, limits: &Limits) -> Result<Tree> {
    let description = Description::parse(text.as_bytes(), limits)?;
    let mut tree = description.dress(source, plain, limits)?;
    update_attributes(&mut tree, plain, &description);
    Ok(tree)
}

/// The description of an array as it is stored, and with dimension names and scaling. Scaling attributes
/// are removed from `attrs`. Coordinates are not set.
fn array_desc(
    source: &Source,
    meta: ArrayMeta,
    files: &BTreeMap<u64, usize>,
    attrs: &mut wire::Object,
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
    let number = |name: &str| attrs.get(name).and_then(Json::as_f64);
    let (slope, intercept) = (number("scale_factor"), number("add_offset"));
    if desc.dtype.is_real() && (slope.is_some() || intercept.is_some()) {
        let (slope, intercept) = (slope.unwrap_or(1.0), intercept.unwrap_or(0.0));
        desc.map = Some(Linear::new(intercept, slope));
        attrs.remove("scale_factor");
        attrs.remove("add_offset");
    }
    Ok((stored, desc))
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

/// Replaces attributes that were changed, added or removed in the store after the metadata JSON was
/// written.
fn update_attributes(tree: &mut Tree, plain: &Tree, description: &Description) {
    let moves: HashMap<&str, &str> = description.moves().collect();
    let nodes: Vec<NodeId> = std::iter::once(ROOT).chain(tree.iter().map(|(id, _)| id)).collect();
    for id in nodes {
        let node = tree.node_mut(id);
        let path = moves.get(node.path.as_str()).copied().unwrap_or(&node.path);
        let Some(stored) = plain.at(path).map(|id| &plain.node(id).attrs) else { continue };
        let by_name: HashMap<&str, &Value> =
            stored.iter().map(|(name, value)| (name.as_str(), value)).collect();
        let mut counts: HashMap<String, u64> = HashMap::new();
        for (name, _) in &node.attrs {
            *counts.entry(name.clone()).or_default() += 1;
        }
        // JSON objects have no repeated names; those stay as they are described.
        let once = |name: &str| counts.get(name) == Some(&1);
        node.attrs.retain(|(name, _)| !once(name) || by_name.contains_key(name.as_str()));
        for (name, value) in node.attrs.iter_mut().filter(|(name, _)| once(name)) {
            let new = by_name.get(name.as_str());
            if let Some(new) = new.filter(|new| ***new != from_json(to_json(value))) {
                *value = (*new).clone();
            }
        }
        let added = stored.iter().filter(|(name, _)| {
            !counts.contains_key(name) && !matches!(name.as_str(), "scale_factor" | "add_offset")
        });
        node.attrs.extend(added.cloned());
    }
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
