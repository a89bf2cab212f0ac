//! Any tree as HDF5 or NetCDF-4.
//!
//! The tree is laid out [flat](spile_core::flat): every array is one contiguous dataset. Names and
//! points of dimensions become dimension scales, attributes attributes, and what is left is a text in
//! the attribute [`DESCRIPTION`] of the root. All metadata come first, so data are written once, in
//! their place.

mod file;
mod index;
mod scales;
mod types;
mod values;

use std::collections::{HashMap, HashSet};

use spile_core::axes::Dimensions;
use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::flat::Flat;
use spile_core::format::Reader;
use spile_core::layout::ArrayDesc;
use spile_core::limits::Limits;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::{NodeId, ROOT, Value};
use spile_core::wire::ByteOrder;

use crate::scales::DESCRIPTION;
use file::{Attribute, Data, Object, Outline, Slot, Stored, What};
use index::Pointers;
pub use index::{Indexed, Left, write_index};
pub(crate) use values::Rules;
use values::attribute;

/// Points of a uniform dimension that are made at once.
const POINTS: u64 = 1 << 16;

/// Dimensions of a dataset that the library allows.
const MOST: usize = 32;

/// Where the data of a dataset come from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    Array(NodeId),
    Points { start: f64, step: f64, len: u64 },
}

struct Writer<'a> {
    flat: Flat<'a>,
    dimensions: Dimensions,
    rules: Rules,
    outline: Outline,
    /// Objects of nodes.
    objects: HashMap<NodeId, usize>,
    /// Names in the file, where the format allows fewer.
    paths: HashMap<NodeId, String>,
    /// Names at the root that are taken.
    taken: HashSet<String>,
    origins: Vec<(usize, Origin)>,
    /// The scale of each dimension, where it has one, and who uses it.
    scales: Vec<Option<usize>>,
    uses: HashMap<usize, Vec<(usize, u32)>>,
    /// netCDF: dimensions of characters by length, and named types by their bytes.
    characters: HashMap<u64, usize>,
    committed: HashMap<Vec<u8>, usize>,
    numbers: u64,
    /// Datasets point to the bytes of the file that is read, where they can.
    pointers: Option<Pointers>,
}

pub(crate) fn write_tree(
    content: &dyn Reader,
    sink: &Sink,
    rules: Rules,
    limits: &Limits,
) -> Result<()> {
    let mut writer = Writer::new(content, rules, limits)?;
    writer.nodes()?;
    writer.scales();
    writer.attach();
    writer.describe(limits)?;
    writer.all(sink)
}

impl<'a> Writer<'a> {
    fn new(content: &'a dyn Reader, rules: Rules, limits: &Limits) -> Result<Self> {
        let flat = Flat::new(content, limits)?;
        let dimensions = Dimensions::of(flat.tree());
        Ok(Self {
            scales: vec![None; dimensions.list().len()],
            flat,
            dimensions,
            rules,
            outline: Outline::default(),
            objects: HashMap::new(),
            paths: HashMap::new(),
            taken: HashSet::new(),
            origins: Vec::new(),
            uses: HashMap::new(),
            characters: HashMap::new(),
            committed: HashMap::new(),
            numbers: 0,
            pointers: None,
        })
    }

    /// Groups and datasets of the tree.
    fn nodes(&mut self) -> Result<()> {
        let root = self.outline.add(What::Group(Vec::new()));
        self.objects.insert(ROOT, root);
        self.paths.insert(ROOT, String::new());
        let nodes: Vec<NodeId> = self.flat.tree().iter().map(|(id, _)| id).collect();
        let mut siblings: HashMap<NodeId, HashSet<String>> = HashMap::new();
        let mut moves = HashMap::new();
        for id in nodes {
            let node = self.flat.tree().node(id).clone();
            let parent = self.objects[&node.parent];
            let taken = siblings.entry(node.parent).or_default();
            let name = free(&self.allowed(&node.name), |n| !taken.contains(n));
            taken.insert(name.clone());
            if node.parent == ROOT {
                self.taken.insert(name.clone());
            }
            let path = match self.paths[&node.parent].as_str() {
                "" => name.clone(),
                prefix => format!("{prefix}/{name}"),
            };
            if node.array.is_some() && path != node.path {
                moves.insert(node.path.clone(), path.clone());
            }
            self.paths.insert(id, path);
            let object = match &node.array {
                None => self.outline.add(What::Group(Vec::new())),
                Some(array) => {
                    let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
                    match self.array(id, &node.path, array).map_err(place)? {
                        Some(object) => object,
                        None => continue,
                    }
                }
            };
            self.outline.link(parent, &name, object);
            self.objects.insert(id, object);
        }
        self.flat.description.moved(&moves);
        Ok(())
    }

    /// The dataset of an array, if there shall be one.
    fn array(&mut self, id: NodeId, path: &str, array: &ArrayDesc) -> Result<Option<usize>> {
        if self.pointers.is_some() {
            return self.pointed(id, path, array);
        }
        let object = self.dataset(array)?;
        self.origins.push((object, Origin::Array(id)));
        Ok(Some(object))
    }

    fn dataset(&mut self, array: &ArrayDesc) -> Result<usize> {
        if array.shape.rank() >= MOST {
            let message = format!("HDF5 has no arrays of {} dimensions", array.shape.rank());
            return Err(Error::unsupported("hdf5-030", message));
        }
        let mut dims = array.shape.lengths().to_vec();
        let bytes = array.shape.bytes(array.dtype.size())?;
        // As core hands the elements out.
        let dtype = array.dtype.with_order(ByteOrder::Little);
        let kind = match (self.rules, carrier(dtype)) {
            (Rules::Hdf5, _) | (_, Carrier::Own) => Stored::Own(types::of(dtype)),
            (_, Carrier::Wider) => {
                let kind = Stored::Own(types::of(DType::F32));
                let bytes = array.shape.bytes(DType::F32.size())?;
                return Ok(self.outline.add(What::Dataset { kind, dims, bytes, elsewhere: None }));
            }
            (_, Carrier::Integer) => Stored::Own(types::integer(
                array.dtype.size() as u32,
                array.dtype.kind() == Kind::Bool,
            )),
            (_, Carrier::Compound) => {
                let kind = types::of(dtype);
                Stored::Committed(self.commit(dtype, kind))
            }
            (_, Carrier::Characters) => {
                dims.push(array.dtype.size().max(1) as u64);
                Stored::Own(types::character())
            }
        };
        Ok(self.outline.add(What::Dataset { kind, dims, bytes, elsewhere: None }))
    }

    /// netCDF wants types that are not its own to have names; these are those of its complex numbers.
    fn commit(&mut self, dtype: DType, kind: Vec<u8>) -> usize {
        if let Some(known) = self.committed.get(&kind) {
            return *known;
        }
        let name = if dtype.size() == 8 {
            "_PFNC_FLOAT_COMPLEX_TYPE"
        } else {
            "_PFNC_DOUBLE_COMPLEX_TYPE"
        };
        let object = self.outline.add(What::Type(kind.clone()));
        self.link_root(name, object);
        self.committed.insert(kind, object);
        object
    }

    /// Links something that is in no tree into the root; gives its name.
    fn link_root(&mut self, name: &str, object: usize) -> String {
        let name = free(&self.allowed(name), |n| !self.taken.contains(n));
        self.taken.insert(name.clone());
        self.outline.link(0, &name, object);
        name
    }

    /// What is said about a node; names that have a meaning of their own are left to the description.
    fn say(&mut self, object: usize, attrs: &[(String, Value)]) {
        for (name, value) in attrs {
            let name = self.allowed(name);
            let known = |o: &Object| o.attributes.iter().any(|a| a.name == name);
            if crate::scales::is_machinery(&name) || known(&self.outline.objects[object]) {
                continue;
            }
            let made = attribute(&mut self.outline, self.rules, &name, value);
            self.outline.objects[object].attributes.extend(made);
        }
    }

    /// What packed numbers mean (CF conventions, section 8.1), and which bytes are truths.
    fn map(&mut self, object: usize, array: Option<&ArrayDesc>) {
        let Some(array) = array else { return };
        let mut attrs = Vec::new();
        if let Some(map) = array.map {
            attrs.push(("scale_factor".to_string(), Value::Float(map.slope)));
            attrs.push(("add_offset".to_string(), Value::Float(map.intercept)));
        }
        if self.rules == Rules::NetCdf
            && array.dtype.kind() == Kind::Bool
            && array.dtype.size() == 1
        {
            attrs.push(("dtype".to_string(), Value::from("bool")));
        }
        self.say(object, &attrs);
    }

    /// CF conventions, section 9.3.3: counts name the dimension whose rows they count.
    fn sample_dimension(&mut self, object: usize, path: &str, parent: NodeId) {
        let tree = self.flat.tree();
        let Some(stem) = path.strip_suffix(".rows") else { return };
        let Some(id) = tree.at(stem).filter(|id| tree.node(*id).parent == parent) else { return };
        let name = self.dimensions.names(id).next().map(Value::from);
        if let Some(name) = name {
            let attrs = [("sample_dimension".to_string(), name)];
            self.say(object, &attrs);
        }
    }

    /// What is said about the file.
    fn describe(&mut self, limits: &Limits) -> Result<()> {
        if self.rules == Rules::NetCdf {
            let text = concat!("version=2,spile=", env!("CARGO_PKG_VERSION"));
            let value = Value::from(text);
            let made = attribute(&mut self.outline, self.rules, "_NCProperties", &value);
            self.outline.objects[0].attributes.extend(made);
        }
        let attrs = self.flat.tree().attrs().clone();
        self.say(0, &attrs);
        let text = self.flat.description.text(limits)?.into_bytes();
        let len = u32::try_from(text.len()).map_err(|_| {
            Error::unsupported("hdf5-030", "the description of this file is too long")
        })?;
        let slot = self.outline.slot(Slot::Text(text));
        self.outline.objects[0].attributes.push(Attribute {
            name: DESCRIPTION.into(),
            kind: types::any_text(),
            dims: Vec::new(),
            data: Data::Slots(vec![Some((len, slot))]),
        });
        Ok(())
    }

    /// The name as the format allows it: HDF5 has paths with slashes and dots, netCDF forbids control
    /// characters, spaces at the end, more than 256 bytes, and most signs at the beginning.
    fn allowed(&self, name: &str) -> String {
        let mut out = name.replace(['/', '\0'], "_");
        if out == "." || out == ".." || out.is_empty() {
            out = "_".repeat(out.len().max(1));
        }
        if self.rules == Rules::NetCdf {
            out = out.replace(|c: char| c.is_control(), "_");
            out.truncate(out.trim_end_matches(' ').len());
            let first = out.chars().next().unwrap_or(' ');
            if !(first.is_alphanumeric() || first == '_' || !first.is_ascii()) {
                out.insert(0, '_');
            }
            while out.len() > 240 {
                out.pop();
            }
        }
        out
    }

    /// Everything is planned: metadata, then data.
    fn all(&self, sink: &Sink) -> Result<()> {
        let places = self.outline.write(sink)?;
        for (object, origin) in &self.origins {
            if let Some(at) = places[*object] {
                self.data(sink, at, *origin)?;
            }
        }
        Ok(())
    }

    fn data(&self, sink: &Sink, at: u64, origin: Origin) -> Result<()> {
        match origin {
            Origin::Array(id) => {
                let node = self.flat.tree().node(id);
                let dtype = node.array.as_ref().map_or(DType::U8, |array| array.dtype);
                let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
                let wider = self.rules == Rules::NetCdf && matches!(carrier(dtype), Carrier::Wider);
                let size = if wider { DType::F32.size() } else { dtype.size() } as u64;
                let write = |first: u64, bytes: &[u8]| {
                    if !wider {
                        return sink.write_all_at(at + first * size, bytes);
                    }
                    let (mut numbers, mut out) = (Vec::new(), Vec::new());
                    convert::to_f64(dtype.with_order(ByteOrder::Little), None, bytes, &mut numbers);
                    convert::from_f64(DType::F32, None, &numbers, &mut out);
                    sink.write_all_at(at + first * size, &out)
                };
                self.flat.for_each(id, Order::C, write).map_err(place)
            }
            Origin::Points { start, step, len } => {
                let mut buffer = Vec::new();
                for first in (0..len).step_by(POINTS as usize) {
                    buffer.clear();
                    for k in first..len.min(first + POINTS) {
                        buffer.extend((start + k as f64 * step).to_le_bytes());
                    }
                    sink.write_all_at(at + first * 8, &buffer)?;
                }
                Ok(())
            }
        }
    }
}

/// How netCDF holds a type.
enum Carrier {
    Own,
    /// As a number of four bytes, which holds all of its values.
    Wider,
    /// As a number of the same size.
    Integer,
    Compound,
    /// As a line of characters for each element.
    Characters,
}

fn carrier(dtype: DType) -> Carrier {
    match (dtype.kind(), dtype.size()) {
        (Kind::Int | Kind::UInt, _) | (Kind::Float, 4 | 8) => Carrier::Own,
        (Kind::Float, 2) => Carrier::Wider,
        (Kind::Bool, _) | (Kind::Opaque, 1) => Carrier::Integer,
        (Kind::Complex, 8 | 16) => Carrier::Compound,
        _ => Carrier::Characters,
    }
}

/// `name`, or the first of `name_2`, `name_3`... that is free.
fn free(name: &str, is: impl Fn(&str) -> bool) -> String {
    let numbered = (2_u64..).map(|k| format!("{name}_{k}"));
    // There is always a free number.
    std::iter::once(name.to_string()).chain(numbered).find(|n| is(n)).unwrap_or_default()
}
