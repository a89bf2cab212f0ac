//! The objects of a new MAT-file.

use std::collections::HashMap;
use std::sync::Arc;

use spile_core::Dataset;
use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Coord};
use spile_core::shape::{Order, Shape};
use spile_core::tree::{NodeId, ROOT, Tree};
use spile_core::wire::ByteOrder;
use spile_interchange::Flat;

use super::data::USER_BLOCK;
use super::{Class, valid_name};
use crate::from_tree::UniqueNames;
use crate::write::{Data, DatasetType, FilePlan, ObjectKind, datatype};

/// Where the elements of a variable come from.
pub(super) enum Elements {
    /// An array without frames, in Fortran order.
    Array(NodeId),
    /// An array with the same shape in all frames, one after another.
    Frames(NodeId, u64),
    /// In memory.
    Bytes(Arc<[u8]>),
}

/// The file while it is planned.
pub(super) struct Builder<'a> {
    pub(super) content: &'a Dataset,
    pub(super) flat: Flat,
    pub(super) plan: FilePlan,
    pub(super) data: Vec<(usize, Elements)>,
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

impl<'a> Builder<'a> {
    pub(super) fn planned(
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

    /// Number of variables.
    pub(super) fn variables(&self) -> usize {
        self.data.len()
    }

    /// Path in the file of an object of the flat tree.
    pub(super) fn path(&self, path: &str) -> Option<&String> {
        self.paths.get(path)
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
            Elements::Bytes(bytes.into())
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
            let bytes: Arc<[u8]> = if self.values {
                if self.content.limits().allow(len.saturating_mul(8), "a coordinate").is_err() {
                    continue;
                }
                (0..len).flat_map(|k| (start + k as f64 * step).to_le_bytes()).collect()
            } else {
                [].into()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_move_to_the_end_in_fortran_order() {
        // Two frames of 2 x 3, in C order.
        let bytes: Vec<u8> = (0..12).collect();
        let plain = fortran_order(&bytes[..6], 1, &[2, 3], &[0, 1]);
        assert_eq!(plain, [0, 3, 1, 4, 2, 5]);
        let moved = fortran_order(&bytes, 1, &[2, 2, 3], &[1, 2, 0]);
        assert_eq!(moved, [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]);
    }
}
