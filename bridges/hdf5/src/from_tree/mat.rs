//! Any dataset as a MATLAB MAT-file of version 7.3: HDF5 after a user block of 512 bytes, with the class of
//! each variable in attributes.
//!
//! Groups become structs, arrays variables. The dimensions of a dataset are those of the variable in reverse.
//! Frames are the last dimension of a variable. Uniform coordinates become variables, and the units of all
//! variables are in the struct `units`.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use spile_core::Dataset;
use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{FormatWriter, Loss, LossKind, WriteOptions};
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::tree::{NodeId, ROOT, Tree};
use spile_core::wire::ByteOrder;
use spile_interchange::{Flat, Kept, Losses, flat_losses};

use super::UniqueNames;
use crate::Mat;
use crate::write::{Data, DatasetType, FilePlan, ObjectKind, datatype};

/// Length of the user block in bytes.
const USER_BLOCK: u64 = 512;

/// Longest name of a variable or field.
const LONGEST: usize = 63;

/// Words that are not names.
const KEYWORDS: [&str; 20] = [
    "break",
    "case",
    "catch",
    "classdef",
    "continue",
    "else",
    "elseif",
    "end",
    "for",
    "function",
    "global",
    "if",
    "otherwise",
    "parfor",
    "persistent",
    "return",
    "spmd",
    "switch",
    "try",
    "while",
];

/// How an element type is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// As it is, with the name of the class.
    Number(&'static str),
    /// As single precision.
    Half,
    Logical,
    /// Two numbers, with the name of their class.
    Complex(&'static str),
    Char,
}

impl Class {
    fn of(dtype: DType) -> Option<Self> {
        Some(match (dtype.kind(), dtype.size()) {
            (Kind::Float, 8) => Self::Number("double"),
            (Kind::Float, 4) => Self::Number("single"),
            (Kind::Float, 2) => Self::Half,
            (Kind::Int, 1) => Self::Number("int8"),
            (Kind::Int, 2) => Self::Number("int16"),
            (Kind::Int, 4) => Self::Number("int32"),
            (Kind::Int, 8) => Self::Number("int64"),
            (Kind::UInt | Kind::Opaque, 1) => Self::Number("uint8"),
            (Kind::UInt, 2) => Self::Number("uint16"),
            (Kind::UInt, 4) => Self::Number("uint32"),
            (Kind::UInt, 8) => Self::Number("uint64"),
            (Kind::Bool, _) => Self::Logical,
            (Kind::Complex, 8) => Self::Complex("single"),
            (Kind::Complex, 16) => Self::Complex("double"),
            (Kind::Text, size) if size > 0 => Self::Char,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Number(name) | Self::Complex(name) => name,
            Self::Half => "single",
            Self::Logical => "logical",
            Self::Char => "char",
        }
    }

    /// Type and size of the stored elements of `dtype`.
    fn stored(self, dtype: DType) -> (Vec<u8>, u64) {
        let half = dtype.size() as u32 / 2;
        match self {
            Self::Number("uint8") | Self::Logical => (datatype::integer(1, false), 1),
            Self::Number(_) => {
                (datatype::of(dtype.with_order(ByteOrder::Little)), dtype.size() as u64)
            }
            Self::Half => (datatype::of(DType::F32), 4),
            Self::Complex(_) => {
                let part = datatype::of(if half == 4 { DType::F32 } else { DType::F64 });
                let members = [("real", 0, part.clone()), ("imag", half, part)];
                (datatype::compound(2 * half, &members), u64::from(2 * half))
            }
            Self::Char => (datatype::integer(2, false), 2),
        }
    }
}

/// Where the elements of a variable come from.
enum Elements {
    /// An array without frames, in Fortran order.
    Array(NodeId),
    /// An array with the same shape in all frames, one after another.
    Frames(NodeId, u64),
    /// In memory.
    Bytes(Vec<u8>),
}

/// The file while it is planned.
struct Builder<'a> {
    content: &'a Dataset,
    flat: Flat,
    plan: FilePlan,
    data: Vec<(usize, Elements)>,
    names: HashMap<usize, UniqueNames>,
    /// Groups of the flat tree with their paths in the file.
    groups: HashMap<NodeId, (usize, String)>,
    /// Path in the file of each array of the flat tree.
    paths: HashMap<String, String>,
    /// Paths in the file and units.
    units: Vec<(String, String)>,
    /// Values are read: false if only the names are needed.
    values: bool,
}

impl FormatWriter for Mat {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let content = without_references(content)?;
        let refused = refused(&content);
        let planned = Builder::planned(&content, &refused, false)?;
        let mut losses = Losses::new("MATLAB");
        losses.add(&content, &Kept::default(), |_, node, _| match refused.get(&node.path) {
            Some(reason) => Err(reason.clone()),
            None => Ok(()),
        });
        let lost = losses.into_vec();
        let gone: HashSet<String> = lost
            .iter()
            .filter(|loss| matches!(loss.kind, LossKind::Array | LossKind::Group))
            .map(|loss| loss.path.clone())
            .collect();
        // The only array of a file is the same array whatever its name.
        let only = content.tree().main_arrays().count() == 1 && planned.data.len() == 1;
        let mut renamed = HashSet::new();
        let mut more = Vec::new();
        for (_, node) in content.tree().iter().filter(|(_, node)| !gone.contains(&node.path)) {
            let new = planned.paths.get(&node.path);
            if new != Some(&node.path) {
                let new = new.map_or("another name", String::as_str);
                let reason = format!("MATLAB stores it as \"{new}\"");
                more.push(Loss::new(&node.path, LossKind::Name, reason));
                if !only {
                    renamed.insert(node.path.clone());
                }
                if !only {
                    continue;
                }
            }
            let Some(desc) = &node.array else { continue };
            let is_text = Class::of(desc.dtype) == Some(Class::Char);
            let same = match desc.dtype.kind() {
                Kind::Bool => desc.dtype.size() == 1,
                Kind::Opaque | Kind::Text => false,
                // Without elements there is no imaginary part.
                Kind::Complex if desc.shape.count() == Some(0) => false,
                _ => Class::of(desc.dtype) != Some(Class::Half),
            };
            if !same {
                more.push(Loss::new(&node.path, LossKind::Type, "MATLAB has no such type"));
            }
            if desc.shape.rank() < 2 || is_text || desc.layout.frames().is_some() {
                let reason = "variables have at least two dimensions, frames are the last";
                more.push(Loss::new(&node.path, LossKind::Shape, reason));
            }
        }
        let mut losses: Vec<Loss> =
            lost.into_iter().filter(|loss| !renamed.contains(&loss.path)).collect();
        for loss in &mut losses {
            if loss.name.as_deref() == Some("units") {
                loss.reason = "it is a field of the struct \"units\"".into();
            }
        }
        losses.extend(more);
        Ok(losses)
    }

    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let content = &without_references(content)?;
        let refused = refused(content);
        Builder::planned(content, &refused, true)?.write(sink)?;
        Ok(Vec::new())
    }
}

/// `content` with the values of other arrays instead of references to them.
fn without_references(content: &Dataset) -> Result<Dataset> {
    let tree = content.tree();
    let same = |desc: &ArrayDesc| matches!(desc.layout, Layout::Same(_));
    if !tree.arrays().any(|(_, _, desc)| same(desc)) {
        return Ok(content.clone());
    }
    let mut new = tree.clone();
    for (id, _, desc) in tree.arrays().filter(|(_, _, desc)| same(desc)) {
        let target = tree.resolve(desc)?.clone();
        if let Some(own) = &mut new.node_mut(id).array {
            (own.dtype, own.shape, own.layout) = (target.dtype, target.shape, target.layout);
            own.map = target.map;
        }
    }
    Ok(content.with_tree(new))
}

/// Arrays that are not written, with the reason.
fn refused(content: &Dataset) -> HashMap<String, String> {
    let losses = flat_losses(content, "MATLAB", |array| match Class::of(array.dtype) {
        _ if array.ragged().is_some() => {
            Err("MATLAB has no elements of different lengths".to_string())
        }
        Some(_) => Ok(()),
        None => Err(format!("MATLAB has no type for {}", array.dtype)),
    });
    let lost = losses.into_vec().into_iter().filter(|loss| loss.kind == LossKind::Array);
    lost.map(|loss| (loss.path, loss.reason)).collect()
}

/// A name that MATLAB accepts.
fn valid_name(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
    let mut out: String = name.chars().map(fits).collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.insert(0, 'x');
    }
    // Room for a number after the name.
    out.truncate(LONGEST - 8);
    if KEYWORDS.contains(&out.as_str()) {
        out.push('_');
    }
    out
}

impl<'a> Builder<'a> {
    fn planned(
        content: &'a Dataset,
        refused: &HashMap<String, String>,
        values: bool,
    ) -> Result<Self> {
        let plan = FilePlan { user_block: USER_BLOCK, ..FilePlan::default() };
        let mut builder = Self {
            content,
            flat: Flat::new(content)?,
            plan,
            data: Vec::new(),
            names: HashMap::new(),
            groups: HashMap::new(),
            paths: HashMap::new(),
            units: Vec::new(),
            values,
        };
        let root = builder.plan.add(ObjectKind::Group(Vec::new()));
        builder.groups.insert(ROOT, (root, String::new()));
        let tree = builder.flat.tree().clone();
        let written: Vec<NodeId> = tree
            .arrays()
            .filter(|(_, node, desc)| !refused.contains_key(&node.path) && is_number(desc))
            .map(|(id, ..)| id)
            .collect();
        for id in &written {
            builder.variable(&tree, *id)?;
        }
        for id in &written {
            builder.coordinates(&tree, *id);
        }
        builder.add_units();
        Ok(builder)
    }

    /// The struct of a group of the flat tree, created with its parents.
    fn group(&mut self, tree: &Tree, id: NodeId) -> (usize, String) {
        if let Some(known) = self.groups.get(&id) {
            return known.clone();
        }
        let node = tree.node(id);
        let (parent, prefix) = self.group(tree, node.parent);
        let (object, path) = self.structure(parent, &prefix, &node.name);
        self.paths.insert(node.path.clone(), path.clone());
        self.groups.insert(id, (object, path.clone()));
        (object, path)
    }

    /// Adds a struct; returns its object and path.
    fn structure(&mut self, parent: usize, prefix: &str, name: &str) -> (usize, String) {
        let object = self.plan.add(ObjectKind::Group(Vec::new()));
        self.class(object, "struct");
        let path = self.link(parent, prefix, name, object);
        (object, path)
    }

    /// Links an object under a valid name; returns its path.
    fn link(&mut self, parent: usize, prefix: &str, name: &str, object: usize) -> String {
        let name = self.names.entry(parent).or_default().add(valid_name(name));
        self.plan.link(parent, &name, object);
        if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
    }

    fn class(&mut self, object: usize, name: &str) {
        let kind = datatype::terminated_text(name.len() as u32);
        let bytes = Data::Raw(name.as_bytes().to_vec());
        self.plan.attach(object, "MATLAB_class", kind, Vec::new(), bytes);
        let decode: i32 = match name {
            "logical" => 1,
            "char" => 2,
            _ => return,
        };
        let bytes = Data::Raw(decode.to_le_bytes().to_vec());
        self.plan.attach(
            object,
            "MATLAB_int_decode",
            datatype::integer(4, true),
            Vec::new(),
            bytes,
        );
    }

    /// Adds a dataset of `lengths` in MATLAB's order.
    fn dataset(
        &mut self,
        class: Class,
        (kind, size): (Vec<u8>, u64),
        lengths: &[u64],
        elements: Elements,
    ) -> Result<usize> {
        let is_empty = lengths.contains(&0);
        let (kind, dims, bytes) = if is_empty {
            // The lengths instead of elements.
            (datatype::integer(8, false), vec![lengths.len() as u64], 8 * lengths.len() as u64)
        } else {
            let dims: Vec<u64> = lengths.iter().rev().copied().collect();
            let size = usize::try_from(size).unwrap_or(usize::MAX);
            (kind, dims, Shape::new(lengths).bytes(size)?)
        };
        let kind = DatasetType::Own(kind);
        let object = self.plan.add(ObjectKind::Dataset { kind, dims, bytes, external: None });
        self.class(object, class.name());
        if is_empty {
            let one = Data::Raw(vec![1]);
            self.plan.attach(object, "MATLAB_empty", datatype::integer(1, false), Vec::new(), one);
            let lengths = lengths.iter().flat_map(|n| n.to_le_bytes()).collect();
            self.data.push((object, Elements::Bytes(lengths)));
        } else {
            self.data.push((object, elements));
        }
        Ok(object)
    }

    /// Adds an array of the flat tree.
    fn variable(&mut self, tree: &Tree, id: NodeId) -> Result<()> {
        let node = tree.node(id);
        let Some(desc) = &node.array else { return Ok(()) };
        let Some(class) = Class::of(desc.dtype) else { return Ok(()) };
        let in_array = |e: Error| e.in_object(format!("\"{}\"", node.path));
        let source = self.content.tree().at(self.flat.path(id));
        let source = source.and_then(|id| Some((id, self.content.tree().node(id).array.as_ref()?)));
        let framed = source.filter(|(_, desc)| desc.layout.frames().is_some());
        let mut lengths = desc.shape.lengths().to_vec();
        // With frames as the first dimension of the flat array.
        let uniform = framed.filter(|(_, own)| {
            own.shape.rank() + 1 == lengths.len() && own.shape.rank() > 0 && class != Class::Char
        });
        let direct = matches!(class, Class::Number(_) | Class::Complex(_))
            || (class == Class::Logical && desc.dtype.size() == 1);
        let elements = if let (Some((source, _)), true) = (uniform, direct) {
            let frames = lengths.remove(0);
            lengths.push(frames);
            Elements::Frames(source, frames)
        } else if direct && framed.is_none() {
            Elements::Array(id)
        } else {
            let moved = uniform.is_some();
            let bytes = self.converted(id, desc, class, &mut lengths, moved).map_err(in_array)?;
            Elements::Bytes(bytes)
        };
        match lengths[..] {
            [] => lengths = vec![1, 1],
            [n] => lengths = vec![n, 1],
            _ => {}
        }
        let stored = class.stored(desc.dtype);
        let object = self.dataset(class, stored, &lengths, elements).map_err(in_array)?;
        let (parent, prefix) = self.group(tree, node.parent);
        let path = self.link(parent, &prefix, &node.name, object);
        if let Some(units) = node.attrs.get_str("units") {
            self.units.push((path.clone(), units.to_string()));
        }
        self.paths.insert(self.flat.path(id).to_string(), path);
        Ok(())
    }

    /// The elements of an array in MATLAB's type and order, in memory. `frames_last`: the first dimension
    /// becomes the last. Of texts the characters are the last dimension, of a single text the second.
    fn converted(
        &self,
        id: NodeId,
        desc: &ArrayDesc,
        class: Class,
        lengths: &mut Vec<u64>,
        frames_last: bool,
    ) -> Result<Vec<u8>> {
        if !self.values {
            return Ok(Vec::new());
        }
        let dtype = desc.dtype.with_order(ByteOrder::Little);
        let count = desc.shape.bytes(dtype.size())?;
        // Elements as read, converted and transposed.
        self.content.limits().allow(count.saturating_mul(8), "a converted array")?;
        let mut bytes = Vec::new();
        self.flat.stream(id, Order::C, |block| {
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        let mut size = dtype.size();
        match class {
            Class::Half => {
                let (mut numbers, mut out) = (Vec::new(), Vec::new());
                convert::to_f64(dtype, None, &bytes, &mut numbers);
                convert::from_f64(DType::F32, None, &numbers, &mut out);
                (bytes, size) = (out, 4);
            }
            Class::Logical => {
                let truth = |element: &[u8]| u8::from(element.iter().any(|byte| *byte != 0));
                (bytes, size) = (bytes.chunks(size).map(truth).collect(), 1);
            }
            Class::Char => {
                let texts = bytes.chunks(size).map(convert::text_of);
                let texts: Vec<Vec<u16>> =
                    texts.map(|text| text.encode_utf16().collect()).collect();
                let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
                if lengths.is_empty() {
                    lengths.push(1);
                }
                lengths.push(longest as u64);
                let blank = std::iter::repeat(u16::from(b' '));
                let padded = |text: Vec<u16>| text.into_iter().chain(blank.clone()).take(longest);
                bytes = texts.into_iter().flat_map(padded).flat_map(u16::to_le_bytes).collect();
                size = 2;
            }
            Class::Number(_) | Class::Complex(_) => {}
        }
        let mut axes: Vec<usize> = (0..lengths.len()).collect();
        if frames_last {
            axes.rotate_left(1);
        }
        let bytes = fortran_order(&bytes, size, lengths, &axes);
        *lengths = axes.iter().map(|k| lengths[*k]).collect();
        Ok(bytes)
    }

    /// Adds the uniform coordinates of an array as variables next to it.
    fn coordinates(&mut self, tree: &Tree, id: NodeId) {
        let node = tree.node(id);
        let Some(desc) = &node.array else { return };
        for (k, coord) in desc.coords.iter().enumerate() {
            let Coord::Uniform { start, step } = *coord else { continue };
            let len = desc.shape.lengths()[k];
            // One variable for all arrays of a group with the same coordinate.
            let own = format!("{}\n{}\n{start}\n{step}\n{len}", node.parent.index(), desc.dims[k]);
            if len == 0 || self.paths.contains_key(&own) {
                continue;
            }
            let bytes = if self.values {
                if self.content.limits().allow(len.saturating_mul(8), "a coordinate").is_err() {
                    continue;
                }
                (0..len).flat_map(|k| (start + k as f64 * step).to_le_bytes()).collect()
            } else {
                Vec::new()
            };
            let class = Class::Number("double");
            let stored = class.stored(DType::F64);
            let Ok(object) = self.dataset(class, stored, &[len, 1], Elements::Bytes(bytes)) else {
                continue;
            };
            let (parent, prefix) = self.group(tree, node.parent);
            let path = self.link(parent, &prefix, &desc.dims[k], object);
            let units = node.attrs.get_str(&format!("{}_units", desc.dims[k]));
            self.units.extend(units.map(|units| (path.clone(), units.to_string())));
            self.paths.insert(own, path);
        }
    }

    /// Adds the struct with the units of all variables.
    fn add_units(&mut self) {
        let units = std::mem::take(&mut self.units);
        if units.is_empty() {
            return;
        }
        let (root, _) = self.structure(0, "", "units");
        let mut groups = HashMap::from([(String::new(), root)]);
        for (path, text) in units {
            let mut at = (root, String::new());
            let mut parts: Vec<&str> = path.split('/').collect();
            let last = parts.pop().unwrap_or_default();
            for part in parts {
                let below = format!("{}/{part}", at.1);
                let object = match groups.get(&below) {
                    Some(known) => *known,
                    None => self.structure(at.0, "", part).0,
                };
                groups.insert(below.clone(), object);
                at = (object, below);
            }
            let characters: Vec<u16> = text.encode_utf16().collect();
            let lengths = [u64::from(!characters.is_empty()), characters.len() as u64];
            let bytes = characters.into_iter().flat_map(u16::to_le_bytes).collect();
            let stored = Class::Char.stored(DType::text(1));
            let made = self.dataset(Class::Char, stored, &lengths, Elements::Bytes(bytes));
            if let Ok(object) = made {
                self.link(at.0, "", last, object);
            }
        }
    }

    fn write(&self, sink: &Sink) -> Result<()> {
        sink.write_all_at(0, &user_block())?;
        let offsets = self.plan.write(sink)?;
        for (object, elements) in &self.data {
            let Some(at) = offsets[*object] else { continue };
            match elements {
                Elements::Bytes(bytes) => sink.write_all_at(at, bytes)?,
                Elements::Array(id) => {
                    let size = self.flat.tree().node(*id).array.as_ref();
                    let size = size.map_or(1, |desc| desc.dtype.size()) as u64;
                    let write =
                        |first: u64, bytes: &[u8]| sink.write_all_at(at + first * size, bytes);
                    self.flat.for_each(*id, Order::F, write)?;
                }
                Elements::Frames(id, frames) => {
                    let mut end = at;
                    for frame in 0..*frames {
                        let Some(array) = self.content.array_in_frame(*id, frame)? else {
                            continue;
                        };
                        let selected = array.select(&Selection::all(), Axes::Order(Order::F))?;
                        selected.stream(|_, bytes| {
                            sink.write_all_at(end, bytes)?;
                            end += bytes.len() as u64;
                            Ok(())
                        })?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether the elements can be stored; auxiliary arrays of the flat tree are not in the losses.
fn is_number(desc: &ArrayDesc) -> bool {
    Class::of(desc.dtype).is_some()
}

/// Elements in C order of `lengths` as elements in Fortran order of the dimensions `axes`.
fn fortran_order(bytes: &[u8], size: usize, lengths: &[u64], axes: &[usize]) -> Vec<u8> {
    let mut strides = vec![1_usize; lengths.len()];
    for k in (1..lengths.len()).rev() {
        strides[k - 1] = strides[k] * lengths[k] as usize;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0_u64; axes.len()];
    for _ in 0..bytes.len() / size.max(1) {
        let at: usize = axes.iter().zip(&index).map(|(axis, k)| strides[*axis] * *k as usize).sum();
        out.extend_from_slice(&bytes[at * size..(at + 1) * size]);
        for (axis, k) in axes.iter().zip(&mut index) {
            *k += 1;
            if *k < lengths[*axis] {
                break;
            }
            *k = 0;
        }
    }
    out
}

/// 116 bytes of text, 8 bytes that MATLAB reserves, version 2.0 and the byte order.
fn user_block() -> Vec<u8> {
    let text = concat!(
        "MATLAB 7.3 MAT-file, Platform: spile ",
        env!("CARGO_PKG_VERSION"),
        ", Created on: Thu Jan  1 00:00:00 1970 HDF5 schema 1.00 ."
    );
    let mut block = format!("{text:<116}").into_bytes();
    block.truncate(116);
    block.extend([0; 8]);
    block.extend([0x00, 0x02, b'I', b'M']);
    block.resize(USER_BLOCK as usize, 0);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_in_matlab() {
        assert_eq!(valid_name("Electric Field"), "Electric_Field");
        assert_eq!(valid_name("2d"), "x2d");
        assert_eq!(valid_name("end"), "end_");
        assert_eq!(valid_name("_a"), "x_a");
        assert_eq!(valid_name(&"n".repeat(100)).len(), LONGEST - 8);
    }

    #[test]
    fn frames_move_to_the_end_in_fortran_order() {
        // Two frames of 2 x 3, in C order.
        let bytes: Vec<u8> = (0..12).collect();
        let plain = fortran_order(&bytes[..6], 1, &[2, 3], &[0, 1]);
        assert_eq!(plain, [0, 3, 1, 4, 2, 5]);
        let moved = fortran_order(&bytes, 1, &[2, 2, 3], &[1, 2, 0]);
        assert_eq!(moved, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
    }

    #[test]
    fn the_user_block_has_version_and_byte_order() {
        let block = user_block();
        assert_eq!((block.len(), &block[124..128]), (512, &[0, 2, b'I', b'M'][..]));
        assert!(block.starts_with(b"MATLAB 7.3 MAT-file"));
    }
}
