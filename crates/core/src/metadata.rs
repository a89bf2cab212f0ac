//! Metadata that a target format cannot express, stored as JSON next to the arrays and restored when
//! the file is opened.
//!
//! A writer that [flattens](https://docs.rs/spile-interchange) a dataset stores this text in the file.
//! Opening applies it in one place, [`restore`], with one policy for all formats: metadata that does
//! not fit the arrays of the file is a warning, and the arrays are shown as they are.

pub mod json;

mod apply;
mod arrays;
mod stacked;

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::semantics::{Centring, Component, Missing, Quantity};
use crate::{
    ArrayDesc, Attrs, ByteOrder, Coord, DType, Error, Layout, Limits, Linear, NodeId, Order,
    Result, Role, Semantics, Shape, Tree, Value,
};
use json::Real;

pub use apply::restore;

/// Version of the JSON text.
const VERSION: u64 = 1;

/// The array at the root whose bytes are the JSON text, in formats without a better place for it.
pub const ARRAY: &str = "spile.description";

/// JSON text found in a file, handed to core by the format that read it.
#[derive(Clone, Debug)]
pub struct StoredMetadata {
    /// The text.
    pub text: Vec<u8>,
    /// What contains it, for messages: an attribute, a comment.
    pub object: String,
    /// Its byte in the file, where known.
    pub offset: Option<u64>,
    /// Lengths, coordinates and scaling of the file's own array replace those of the metadata: other
    /// programs change them without knowing of the metadata.
    pub native_grid: bool,
    /// How the format stores an attribute value, where other programs may have edited attributes:
    /// values that differ from this replace those of the metadata.
    pub stored_value: Option<fn(&Value) -> Value>,
    /// Attributes that the root gets if the metadata is ignored, so that the text is not lost.
    pub if_ignored: Attrs,
}

impl StoredMetadata {
    /// Text that describes all arrays of the file.
    pub fn new(text: impl Into<Vec<u8>>, object: impl Into<String>) -> Self {
        let (text, object) = (text.into(), object.into());
        let if_ignored = Attrs::new();
        Self { text, object, offset: None, native_grid: false, stored_value: None, if_ignored }
    }

    /// This text at byte `offset` of the file.
    pub fn at(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }
}

/// A coordinate in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CoordMeta {
    /// Uniform spacing.
    Uniform {
        /// The first point.
        start: Real,
        /// The distance between points.
        step: Real,
    },
    /// The array at that path.
    Field(String),
}

/// Linear scaling in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scaling {
    intercept: Real,
    slope: Real,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<Real>,
}

impl From<Linear> for Scaling {
    fn from(map: Linear) -> Self {
        let origin = (map.origin != 0.0).then_some(Real(map.origin));
        Self { intercept: Real(map.intercept), slope: Real(map.slope), origin }
    }
}

impl From<&Scaling> for Linear {
    fn from(map: &Scaling) -> Self {
        let origin = map.origin.map_or(0.0, |origin| origin.0);
        Self { intercept: map.intercept.0, slope: map.slope.0, origin }
    }
}

/// The meaning of an array in JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meaning {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mesh: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    centring: Option<(String, usize)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    component: Option<(String, u8)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    point_set: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quantity: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    missing: Vec<Real>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    min: Option<Real>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    max: Option<Real>,
}

impl Meaning {
    /// The meaning of an array of `tree`; `None` if it is the default.
    fn of(tree: &Tree, semantics: &Semantics) -> Option<Self> {
        if *semantics == Semantics::default() {
            return None;
        }
        let Semantics { role, mesh, centring, component, point_set, quantity, missing } = semantics;
        let axis = |centring: &Centring| match centring {
            Centring::Face(axis) | Centring::Edge(axis) => *axis,
            _ => 0,
        };
        Some(Self {
            role: (*role != Role::Data).then(|| role.name().into()),
            mesh: mesh.map(|id| tree.node(id).path.clone()),
            centring: centring.as_ref().map(|c| (c.name().into(), axis(c))),
            component: component.as_ref().map(|c| (c.vector.clone(), c.index)),
            point_set: point_set.clone(),
            quantity: quantity.map(|quantity| quantity.name().into()),
            missing: missing.values.iter().copied().map(Real).collect(),
            min: missing.min.map(Real),
            max: missing.max.map(Real),
        })
    }

    /// The meaning, with the mesh found by `find`. Unknown words are ignored: a newer version wrote them.
    fn semantics(&self, find: impl Fn(&str) -> Option<NodeId>) -> Semantics {
        let centring = self.centring.as_ref().and_then(|(name, axis)| match name.as_str() {
            "node" => Some(Centring::Node),
            "cell" => Some(Centring::Cell),
            "face" => Some(Centring::Face(*axis)),
            "edge" => Some(Centring::Edge(*axis)),
            _ => None,
        });
        let component =
            |(vector, index): &(String, u8)| Component { vector: vector.clone(), index: *index };
        Semantics {
            role: self.role.as_deref().and_then(Role::named).unwrap_or_default(),
            mesh: self.mesh.as_deref().and_then(find),
            centring,
            component: self.component.as_ref().map(component),
            point_set: self.point_set.clone(),
            quantity: self.quantity.as_deref().and_then(Quantity::named),
            missing: Missing {
                values: self.missing.iter().map(|v| v.0).collect(),
                min: self.min.map(|v| v.0),
                max: self.max.map(|v| v.0),
            },
        }
    }
}

/// Coordinates for JSON, one per dimension; empty if no dimension has one.
pub fn coords_to_meta(tree: &Tree, coords: &[Coord]) -> Vec<Option<CoordMeta>> {
    if coords.iter().all(|coord| *coord == Coord::None) {
        return Vec::new();
    }
    let meta = |coord: &Coord| match coord {
        Coord::None => None,
        Coord::Uniform { start, step } => {
            Some(CoordMeta::Uniform { start: Real(*start), step: Real(*step) })
        }
        Coord::Node(id) => Some(CoordMeta::Field(tree.node(*id).path.clone())),
    };
    coords.iter().map(meta).collect()
}

/// Coordinates from JSON for `rank` dimensions; arrays are found by `find`.
pub fn coords_from_meta(
    meta: &[Option<CoordMeta>],
    rank: usize,
    find: impl Fn(&str) -> Option<NodeId>,
) -> Vec<Coord> {
    let coord = |meta: Option<&CoordMeta>| match meta {
        Some(CoordMeta::Uniform { start, step }) => Coord::Uniform { start: start.0, step: step.0 },
        Some(CoordMeta::Field(name)) => find(name).map_or(Coord::None, Coord::Node),
        None => Coord::None,
    };
    (0..rank).map(|k| coord(meta.get(k).and_then(Option::as_ref))).collect()
}

/// Everything about a tree but its values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    spile: u64,
    /// Attributes of the root.
    #[serde(default, skip_serializing_if = "Attrs::is_empty", with = "json::attrs")]
    attrs: Attrs,
    /// The frame axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
    /// Auxiliary arrays of the file that are not part of the tree: coordinates for other readers, or
    /// tables that say how other arrays are read.
    #[serde(default, rename = "made", skip_serializing_if = "Vec::is_empty")]
    auxiliary: Vec<String>,
    /// Attributes that the file has for other readers, by path in the file: they are not part of the tree, or
    /// have another value there.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    added: BTreeMap<String, Vec<String>>,
    nodes: Vec<NodeMeta>,
}

/// The frame axis in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frames {
    /// Number of frames.
    pub count: u64,
    /// The format has frames itself.
    #[serde(default, rename = "own", skip_serializing_if = "std::ops::Not::not")]
    pub native: bool,
    /// Path of the array of steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<String>,
    /// Path of the array of times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<String>,
}

/// A node in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct NodeMeta {
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    array: Option<ArrayMeta>,
    #[serde(default, skip_serializing_if = "Attrs::is_empty", with = "json::attrs")]
    attrs: Attrs,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ArrayMeta {
    #[serde(with = "json::dtype")]
    dtype: DType,
    dims: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    coords: Vec<Option<CoordMeta>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    map: Option<Scaling>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    meaning: Option<Meaning>,
    /// Path of the array in the file, if not that of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(default, rename = "held", skip_serializing_if = "Storage::is_direct")]
    storage: Storage,
    /// The file has the same bytes under another type or shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cast: Option<Cast>,
    /// Ranges of frames, end excluded, whose values are in the file although the frames do not contain the array:
    /// they follow from a rule of the original format.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inherited: Vec<(u64, u64)>,
}

/// The shape of an array, or of one frame of it, and the order of its elements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cast {
    /// Lengths of the dimensions.
    pub shape: Vec<u64>,
    /// The first index runs fastest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fortran_order: bool,
    /// The file has single bytes; the elements they form are big-endian.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub big_endian: bool,
}

impl Cast {
    /// A little-endian array of that shape and order.
    pub fn new(shape: &Shape, order: Order) -> Self {
        let fortran_order = order == Order::F && shape.rank() > 1;
        Self { shape: shape.lengths().to_vec(), fortran_order, big_endian: false }
    }

    /// The order of the elements.
    pub fn order(&self) -> Order {
        if self.fortran_order { Order::F } else { Order::C }
    }
}

/// How the file stores an array.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// As it is, without frames.
    #[default]
    #[serde(rename = "whole")]
    Direct,
    /// In frames of the format itself.
    #[serde(rename = "own")]
    Native,
    /// Frames along a new first dimension.
    Frames,
    /// Frames concatenated along their first dimension; the named array has the length of each frame,
    /// -1 where the frame does not have the array.
    Rows(String),
    /// As bytes; the named array has the length of each element.
    Sizes(String),
    /// Not stored: it is the same as the array at that path.
    Same(String),
}

impl Storage {
    fn is_direct(&self) -> bool {
        *self == Self::Direct
    }
}

/// Approximate memory in bytes for JSON `text` and what it is parsed into. Strings need as much as in the
/// text; the number of values follows from the separators. Lists may reserve twice their length.
pub fn json_memory(text: &[u8]) -> u64 {
    const VALUE: u64 = 128;
    const NODE: u64 = 2 * size_of::<NodeMeta>() as u64;
    let cost = |(k, byte): (usize, &u8)| match byte {
        b',' | b'[' | b'{' => VALUE,
        b'"' if text[k..].starts_with(b"\"path\"") => NODE,
        _ => 0,
    };
    2 * text.len() as u64 + text.iter().enumerate().map(cost).sum::<u64>()
}

impl Metadata {
    /// The metadata of `tree`.
    pub fn of(tree: &Tree) -> Self {
        let array = |array: &ArrayDesc| ArrayMeta {
            dtype: array.dtype.with_order(ByteOrder::Little),
            dims: array.dims.clone(),
            coords: coords_to_meta(tree, &array.coords),
            map: array.map.map(Scaling::from),
            meaning: Meaning::of(tree, array.semantics()),
            at: None,
            storage: match array.layout {
                Layout::PerFrame(_) => Storage::Native,
                _ => Storage::Direct,
            },
            cast: None,
            inherited: Vec::new(),
        };
        let nodes = tree.iter().map(|(_, node)| NodeMeta {
            path: node.path.clone(),
            id: node.id.clone(),
            array: node.array.as_ref().map(array),
            attrs: node.attrs.clone(),
        });
        let (attrs, nodes) = (tree.attrs().clone(), nodes.collect());
        let native = |count| Frames { count, native: true, steps: None, times: None };
        let frames = tree.frames().map(|axis| native(axis.len()));
        let (auxiliary, added) = (Vec::new(), BTreeMap::new());
        Self { spile: VERSION, attrs, frames, nodes, auxiliary, added }
    }

    /// Sets how the array that is node number `k` after the root is stored.
    pub fn set_storage(&mut self, k: usize, storage: Storage) {
        if let Some(array) = self.nodes.get_mut(k).and_then(|node| node.array.as_mut()) {
            array.storage = storage;
        }
    }

    /// Sets the ranges of frames, end excluded, in which the values of the array that is node number `k` after the
    /// root are not stored in the original. The ranges are in order.
    pub fn set_inherited(&mut self, k: usize, ranges: Vec<(u64, u64)>) {
        if let Some(array) = self.nodes.get_mut(k).and_then(|node| node.array.as_mut()) {
            array.inherited = ranges;
        }
    }

    /// Names an array of the file that is not part of the tree.
    pub fn add_auxiliary(&mut self, path: impl Into<String>) {
        self.auxiliary.push(path.into());
    }

    /// Names attributes of the object at `path` of the file that the writer adds or changes for other readers:
    /// they are ignored on reading.
    pub fn add_attributes<'a>(&mut self, path: &str, names: impl IntoIterator<Item = &'a str>) {
        let names: Vec<String> = names.into_iter().map(String::from).collect();
        if !names.is_empty() {
            self.added.entry(path.into()).or_default().extend(names);
        }
    }

    /// Records that the file has arrays under other paths: old and new paths.
    pub fn rename(&mut self, paths: &HashMap<String, String>) {
        let rename = |path: &mut String| {
            if let Some(new) = paths.get(path) {
                path.clone_from(new);
            }
        };
        self.auxiliary.iter_mut().for_each(rename);
        if let Some(frames) = &mut self.frames {
            frames.steps.iter_mut().chain(&mut frames.times).for_each(rename);
        }
        for node in &mut self.nodes {
            let Some(array) = &mut node.array else { continue };
            if let Storage::Rows(path) | Storage::Sizes(path) = &mut array.storage {
                rename(path);
            }
            if let Some(at) = paths.get(array.at.as_ref().unwrap_or(&node.path)) {
                array.at = Some(at.clone());
            }
        }
    }

    /// Records that the arrays at these paths of the file are stored under another type or shape. Call it
    /// before [`Metadata::rename`] with the old paths.
    pub fn set_casts(&mut self, mut casts: HashMap<String, Cast>) {
        for node in &mut self.nodes {
            if let Some(array) = &mut node.array {
                array.cast = casts.remove(array.at.as_ref().unwrap_or(&node.path));
            }
        }
    }

    /// Number of dimensions of the array that the file has at `path`.
    pub fn rank_at(&self, path: &str) -> Option<usize> {
        let at = |node: &&NodeMeta| {
            let array = node.array.as_ref();
            array.is_some_and(|array| array.at.as_deref().unwrap_or(&node.path) == path)
        };
        self.nodes.iter().find(at)?.array.as_ref().map(|array| array.dims.len())
    }

    /// The JSON text. Fails if it could not be parsed again within `limits`.
    pub fn text(&self, limits: &Limits) -> Result<String> {
        let fail = |why: &dyn std::fmt::Display| {
            Error::unsupported("core-metadata", format!("metadata cannot be stored as JSON: {why}"))
        };
        let text = serde_json::to_string(self).map_err(|e| fail(&e))?;
        Self::parse(text.as_bytes(), limits).map_err(|e| fail(&e.message()))?;
        Ok(text)
    }

    /// Parses the JSON text.
    pub fn parse(text: &[u8], limits: &Limits) -> Result<Self> {
        limits.allow(json_memory(text), "stored metadata")?;
        let parsed: Self = serde_json::from_slice(text).map_err(|e| {
            Error::malformed("core-metadata", format!("invalid JSON metadata: {e}"))
        })?;
        if parsed.spile != VERSION {
            let message = format!("metadata version {} is not supported", parsed.spile);
            return Err(Error::unsupported("core-metadata", message));
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::ROOT;

    #[test]
    fn thousands_of_long_attributes_fit_the_default_limits() {
        let limits = Limits::default();
        let mut tree = Tree::new(&limits);
        let row = Value::List((0..40).map(|k| Value::Float(f64::from(k) / 7.0)).collect());
        for k in 0..20_000 {
            let text = Value::Text("x".repeat(1200));
            let value = if k % 2 == 0 { row.clone() } else { text };
            tree.push_attr(ROOT, &format!("attribute {k}"), value).unwrap();
        }
        let metadata = Metadata::of(&tree);
        let text = metadata.text(&limits).unwrap();
        assert!(text.len() > 18 << 20);
        assert_eq!(Metadata::parse(text.as_bytes(), &limits).unwrap(), metadata);
    }

    #[test]
    fn short_values_are_charged_with_the_memory_they_need() {
        let limits = Limits::default().with_memory(4 << 20);
        for (part, count) in [("1,", 100_000), ("[1],", 100_000), ("\"\",", 100_000)] {
            let list = part.repeat(count);
            let text = format!("{{\"spile\":1,\"nodes\":[],\"attrs\":{{\"a\":[{list}1]}}}}");
            assert!(json_memory(text.as_bytes()) > 32 * count as u64);
            let error = Metadata::parse(text.as_bytes(), &limits).unwrap_err();
            assert_eq!(error.kind(), crate::error::ErrorKind::Limit);
            assert!(Metadata::parse(text.as_bytes(), &Limits::default()).is_ok());
        }
        let nodes = "{\"path\":\"\"},".repeat(10_000);
        let text = format!("{{\"spile\":1,\"nodes\":[{}]}}", nodes.trim_end_matches(','));
        assert!(Metadata::parse(text.as_bytes(), &limits).is_err());
    }
}
