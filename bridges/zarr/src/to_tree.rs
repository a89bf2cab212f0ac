//! The nodes of a store as a tree.

use serde_json::Value as Json;
use spile_core::Dataset;
use spile_core::convert;
use spile_core::dtype::Kind;
use spile_core::error::{Error, Result};
use spile_core::format::{
    Folder, FolderFormat, Native, Object, OpenOptions, Parsed, Region, RegionKind,
};
use spile_core::layout::{ArrayDesc, Coord, Extent};
use spile_core::limits::Budget;
use spile_core::metadata::StoredMetadata;
use spile_core::shape::Shape;
use spile_core::source::{Part, Source};
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};
use spile_core::wire::ByteOrder;
use spile_interchange::cf;

use crate::chunks::{ChunkFiles, FieldPart};
use crate::read::{Entry, Walk, read_store, report_array};
use crate::store::{DOCUMENTS, Store};
use crate::strings;
use crate::wire::{self, ArrayMeta, DataType, Element, Field, NOT_FINITE, Time, to_json};
use crate::{NOT_A_STORE, Zarr};

/// The attribute of the root group with metadata JSON.
pub(crate) const DESCRIPTION: &str = "spile";

/// The arrays of an open store, before stored metadata are applied.
struct StoreNative {
    objects: Vec<Object>,
    /// Members of a zip archive.
    members: Vec<(Extent, String)>,
}

impl FolderFormat for Zarr {
    fn open_folder(&self, folder: &Folder, options: &OpenOptions) -> Result<Option<Parsed>> {
        let Some(store) = Store::folder(folder.path())? else { return Ok(None) };
        let budget = Budget::new(&options.limits);
        let parsed =
            read_store(store, budget, &options.limits).and_then(|walk| open(walk, options));
        parsed.map(Some).map_err(|e| e.with_path(folder.path()))
    }
}

/// Opens a store in a zip archive.
pub(crate) fn open_zip(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let mut budget = Budget::new(&options.limits);
    let store = Store::zip(source, &mut budget)?;
    let none = || Error::not_this_format("zarr-001", NOT_A_STORE);
    open(read_store(store.ok_or_else(none)?, budget, &options.limits)?, options)
}

/// Builds the tree of all nodes. An array that cannot be read is a warning of severity error.
fn open(walk: Walk<'_>, options: &OpenOptions) -> Result<Parsed> {
    let Walk { store, entries, mut report, version, files, .. } = walk;
    let members = store.members();
    let (source, stored) = store.finish()?;
    let mut tree = Tree::new(&options.limits);
    let mut objects = Vec::new();
    let mut metadata = None;
    for Entry { path, mut attrs, array } in entries {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
        if let Some((meta, files)) = array {
            let files = ChunkFiles::new(&source, &stored, &files, &options.limits);
            let arrays = match arrays(&meta, &files) {
                Ok(arrays) => arrays,
                Err(error) => {
                    report_array(&mut report, &path, error)?;
                    continue;
                }
            };
            let parent = tree.group_at(parent)?;
            let is_structured = matches!(meta.data_type, DataType::Structured { .. });
            if is_structured {
                let id = tree.add_group(parent, name)?;
                tree.set_attrs(id, attributes(std::mem::take(&mut attrs)))?;
            }
            for Shown { field, desc, time } in arrays {
                let path = match &field {
                    Some(field) => format!("{path}/{field}"),
                    None => path.clone(),
                };
                let (parent, name) = path.rsplit_once('/').unwrap_or(("", &path));
                let parent = tree.group_at(parent)?;
                let is_time = time.is_some();
                let mut own = attributes(attrs.clone());
                if let Some(time) = time.filter(|_| !own.contains("units")) {
                    set_units(&mut own, time);
                }
                let is_missing = meta.fill_is_missing && field.is_none();
                let mut array = desc.clone();
                array.dims = ArrayDesc::default_dims(array.shape.rank());
                let kind = meta.type_name.clone();
                let id = tree.add_array(parent, name, desc)?;
                objects.push(Object { path: path.clone(), id: None, frame: None, kind, array });
                tree.set_attrs(id, own)?;
                cf::apply(&mut tree, id)?;
                let array = tree.node(id).array.as_ref().filter(|_| is_missing);
                let fill = array.and_then(|array| fill_number(array, &meta));
                set_fill_value(&mut tree, id, fill, is_time);
            }
            continue;
        }
        let id = if path.is_empty() {
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
    }
    set_coordinates(&mut tree);
    cf::set_roles(&mut tree)?;
    let summary = Attrs::from([
        ("version", Value::UInt(version)),
        ("arrays", Value::UInt(objects.len() as u64)),
        ("files", Value::UInt(files)),
        ("bytes", Value::UInt(source.len())),
    ]);
    let parsed = Parsed::new(source, tree).with_summary(summary).with_warnings(report.findings);
    Ok(parsed.with_metadata(metadata).with_native(StoreNative { objects, members }))
}

/// Describes a date or time by attributes.
fn set_units(attrs: &mut Attrs, time: Time) {
    let Time { units, factor, is_calendar } = time;
    if units.contains(" since ") && !attrs.contains("calendar") {
        attrs.push("calendar", "proleptic_gregorian");
    }
    if is_calendar && !attrs.contains("reference_date") {
        attrs.push("reference_date", "1970-01-01");
    }
    if factor != 1.0 && !attrs.contains("scale_factor") {
        attrs.push("scale_factor", factor);
    }
    attrs.push("units", units);
}

/// An array as it is shown: of all elements, or of one field of structured elements.
struct Shown {
    field: Option<String>,
    desc: ArrayDesc,
    time: Option<Time>,
}

/// The arrays of a store's array: one, or one per field.
fn arrays(meta: &ArrayMeta, files: &ChunkFiles) -> Result<Vec<Shown>> {
    let named = |mut desc: ArrayDesc| {
        for (dim, name) in desc.dims.iter_mut().zip(&meta.dims) {
            if let Some(name) = name.as_ref().filter(|name| !name.is_empty()) {
                dim.clone_from(name);
            }
        }
        desc
    };
    let shown = |element: &Element, field: Option<&Field>| {
        let part = field.map(|field| FieldPart { offset: field.offset, dims: field.dims.clone() });
        let layout = files.layout(meta, element, part.as_ref())?;
        let extra = part.iter().flat_map(|part| &part.dims);
        let lengths: Vec<u64> = meta.shape.lengths().iter().chain(extra).copied().collect();
        let mut dtype = element.dtype;
        if dtype.word() == 1 {
            dtype = dtype.with_order(ByteOrder::Little);
        }
        let desc = named(ArrayDesc::new(dtype, Shape::new(lengths), layout));
        let field = field.map(|field| field.path.clone());
        Ok(Shown { field, desc, time: element.time.clone() })
    };
    match &meta.data_type {
        DataType::Plain(element) => Ok(vec![shown(element, None)?]),
        DataType::Structured { fields, .. } => {
            fields.iter().map(|field| shown(&field.element, Some(field))).collect()
        }
        DataType::Variable { is_text } => {
            let desc = named(strings::read(files, meta, *is_text)?);
            Ok(vec![Shown { field: None, desc, time: None }])
        }
    }
}

/// The fill value of an array of real numbers; `None` for 0, which zarr-python writes if none is chosen.
fn fill_number(desc: &ArrayDesc, meta: &ArrayMeta) -> Option<f64> {
    let mut fill = meta.fill.clone();
    convert::to_little(desc.dtype, &mut fill);
    let number = desc.dtype.is_real().then(|| convert::element_f64(desc.dtype, &fill));
    number.filter(|number| *number != 0.0)
}

/// Adds missing values that are not numbers in attributes: `fill`, dates and times without a value, and
/// `_FillValue` as xarray writes it for floats: `NaN`, or the eight bytes of a double in base64.
fn set_fill_value(tree: &mut Tree, id: NodeId, fill: Option<f64>, is_time: bool) {
    let node = tree.node_mut(id);
    let Some(array) = node.array.as_mut().filter(|array| array.dtype.is_real()) else { return };
    let is_float = array.dtype.kind() == Kind::Float;
    let text = node.attrs.get_str("_FillValue").filter(|_| is_float);
    let number = text.and_then(|text| match text {
        "NaN" => Some(f64::NAN),
        text => {
            let bytes = base64_simd::STANDARD.decode_to_vec(text).ok()?;
            bytes.try_into().ok().map(f64::from_le_bytes)
        }
    });
    let not_a_time = is_time.then_some(i64::MIN as f64);
    for number in [number, fill, not_a_time].into_iter().flatten() {
        let values = &mut array.semantics_mut().missing.values;
        if !values.iter().any(|own| own.to_bits() == number.to_bits()) {
            values.push(number);
        }
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
        Json::String(text) => match text.strip_prefix(NOT_FINITE) {
            Some("NaN") => Value::Float(f64::NAN),
            Some("Infinity") => Value::Float(f64::INFINITY),
            Some("-Infinity") => Value::Float(f64::NEG_INFINITY),
            _ => Value::Text(text),
        },
        Json::Array(list) => Value::List(list.into_iter().map(from_json).collect()),
        other => Value::Text(other.to_string()),
    }
}

impl Native for StoreNative {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let source = dataset.source();
        let mut emit = |offset: u64, end: u64, name: String| {
            let last = name.rsplit('/').next().unwrap_or(&name);
            let kind =
                if DOCUMENTS.contains(&last) { RegionKind::Header } else { RegionKind::Data };
            each(Region { offset, len: end - offset, kind, name, value: String::new() })
        };
        let (parts, folder) = (source.parts(), source.path());
        for (k, part) in parts.iter().enumerate() {
            let end = parts.get(k + 1).map_or(source.len(), Part::start);
            let name = folder.and_then(|folder| part.path().strip_prefix(folder).ok());
            let name = name.unwrap_or(part.path()).to_string_lossy().into_owned();
            emit(part.start(), end, name)?;
        }
        let mut at = 0;
        for (extent, name) in self.members.iter().filter(|(extent, _)| extent.len > 0) {
            if extent.offset >= at {
                at = extent.offset + extent.len;
                emit(extent.offset, at, name.clone())?;
            }
        }
        Ok(())
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        self.objects.iter().cloned().try_for_each(each)
    }
}
