//! Virtual datasets: arrays computed from parts of other datasets, in this file or in others.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use spile_core::computed::{Computed, Function};
use spile_core::convert;
use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::{OpenOptions, Parsed};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::read::{Array, Axes};
use spile_core::report::Severity;
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{NodeId, Tree};
use spile_core::wire::ByteOrder;

use super::Walk;
use super::files::OtherFiles;
use crate::wire::attribute::Attribute;
use crate::wire::mapping::{Indices, Mapping};
use crate::wire::{Readable, is_fatal};

/// Largest number of elements that are computed at once, except for a longer last dimension.
const PIECE: u64 = 1 << 17;

/// Largest number of virtual datasets that refer to each other, and of files.
const MAX_DEPTH: u32 = 8;

/// A virtual dataset that is added to the tree after all others.
pub(super) struct PendingVirtual {
    pub(super) parent: NodeId,
    pub(super) name: String,
    pub(super) address: u64,
    pub(super) attributes: Readable<Attribute>,
    /// Without its sources: the layout is the fill value.
    pub(super) desc: ArrayDesc,
    pub(super) mappings: Vec<Mapping>,
}

/// A file with sources of virtual datasets.
struct SourceFile {
    tree: Tree,
    /// The bytes of the file, and of those that it refers to.
    source: Source,
    /// Why datasets cannot be read, by path in quotes.
    errors: HashMap<String, String>,
}

/// Files with sources of virtual datasets by path; each is opened once. `None` while a file is being opened.
#[derive(Default)]
pub(super) struct SourceFiles {
    known: RefCell<HashMap<PathBuf, Option<Rc<SourceFile>>>>,
    depth: Cell<u32>,
}

impl SourceFiles {
    /// Opens a file; `name` is that in the file that refers to it.
    fn open(&self, path: &Path, name: &str, options: &OpenOptions) -> Result<Rc<SourceFile>> {
        let refused = |why: &str| unusable(&format!("file \"{name}\""), why);
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone().ok_or_else(|| refused("it refers to itself"));
        }
        if self.depth.get() == MAX_DEPTH {
            return Err(refused("virtual datasets refer to each other through too many files"));
        }
        self.known.borrow_mut().insert(path.to_path_buf(), None);
        self.depth.set(self.depth.get() + 1);
        let opened = super::open_with(Source::open(path)?, options, self);
        self.depth.set(self.depth.get() - 1);
        let Parsed { tree, source, warnings, .. } = opened.map_err(|e| {
            self.known.borrow_mut().remove(path);
            if is_fatal(&e) {
                return e;
            }
            Error::unsupported("hdf5-035", format!("file \"{name}\": {e}"))
        })?;
        let errors = warnings.into_iter().filter(|found| found.severity == Severity::Error);
        let errors = errors.filter_map(|found| Some((found.object?, found.message))).collect();
        let file = Rc::new(SourceFile { tree, source, errors });
        self.known.borrow_mut().insert(path.to_path_buf(), Some(file.clone()));
        Ok(file)
    }
}

/// The array at a path of a tree, without references to others.
fn array_at(tree: &Tree, path: &str) -> Result<Option<ArrayDesc>> {
    let node = tree.at(path.trim_matches('/'));
    let desc = node.and_then(|id| tree.node(id).array.as_ref());
    desc.map(|desc| tree.resolve(desc).cloned()).transpose()
}

/// Other files of virtual datasets, with the offsets of their first bytes in the joined source.
type Opened = HashMap<PathBuf, (Rc<SourceFile>, u64)>;

impl Walk<'_> {
    /// Adds virtual datasets, each after those of this file that it refers to. A missing source is a warning; its
    /// elements have the fill value.
    pub(super) fn resolve_virtual(&mut self, options: &OpenOptions) -> Result<()> {
        let pending = std::mem::take(&mut self.virtual_datasets);
        let paths: Vec<String> =
            pending.iter().map(|own| self.path(own.parent, &own.name)).collect();
        let numbers: HashMap<&str, usize> =
            paths.iter().enumerate().map(|(k, path)| (path.as_str(), k)).collect();
        // Virtual datasets that refer to each one, and the number of those that it waits for.
        let (mut users, mut waits) = (vec![Vec::new(); paths.len()], vec![0_usize; paths.len()]);
        for (k, own) in pending.iter().enumerate() {
            for mapping in own.mappings.iter().filter(|mapping| mapping.file == ".") {
                if let Some(source) = numbers.get(mapping.dataset.trim_matches('/')) {
                    users[*source].push(k);
                    waits[k] += 1;
                }
            }
        }
        let mut depths = vec![1; paths.len()];
        let mut ready: VecDeque<usize> = (0..paths.len()).filter(|k| waits[*k] == 0).collect();
        let mut pending: Vec<Option<PendingVirtual>> = pending.into_iter().map(Some).collect();
        let mut opened = HashMap::new();
        while let Some(k) = ready.pop_front() {
            let Some(own) = pending[k].take() else { continue };
            let object = format!("\"{}\"", paths[k]);
            let layout = if depths[k] > MAX_DEPTH {
                Err(refers("to each other through too many datasets"))
            } else {
                self.virtual_layout(&own, &object, &mut opened, options)
            };
            self.add_virtual(own, &paths[k], layout)?;
            for user in &users[k] {
                depths[*user] = depths[*user].max(depths[k] + 1);
                waits[*user] -= 1;
                if waits[*user] == 0 {
                    ready.push_back(*user);
                }
            }
        }
        for (own, path) in pending.into_iter().zip(&paths) {
            let Some(own) = own else { continue };
            self.add_virtual(own, path, Err(refers("to themselves")))?;
        }
        Ok(())
    }

    /// Adds a virtual dataset, or reports why it has no layout.
    fn add_virtual(
        &mut self,
        own: PendingVirtual,
        path: &str,
        layout: Result<Layout>,
    ) -> Result<()> {
        let PendingVirtual { parent, name, address, attributes, desc, .. } = own;
        match layout {
            Ok(layout) => {
                self.ctx.charge(128 * desc.shape.rank() as u64)?;
                let node = self.tree.add_array(parent, &name, ArrayDesc { layout, ..desc })?;
                self.nodes.insert(address, node);
                self.keep_attributes(node, attributes)
            }
            Err(error) => {
                self.skipped.insert(address, path.to_string());
                self.report_error(format!("\"{path}\""), error)
            }
        }
    }

    fn virtual_layout(
        &mut self,
        pending: &PendingVirtual,
        object: &str,
        opened: &mut Opened,
        options: &OpenOptions,
    ) -> Result<Layout> {
        let PendingVirtual { desc, mappings, .. } = pending;
        let dims = desc.shape.lengths();
        let (mut inputs, mut parts) = (Vec::new(), Vec::new());
        for mapping in mappings {
            let name = format!("\"{}\" of the file \"{}\"", mapping.dataset, mapping.file);
            let Some(source) = self.source_array(mapping, opened, options)? else {
                let message = format!("source {name} does not exist: read as the fill value");
                self.ctx.charge(256 + message.len() as u64)?;
                self.report.warn("hdf5-029", message).in_object(object);
                continue;
            };
            let refused = |why: &str| unusable(&name, why);
            let little = |array: &ArrayDesc| array.dtype.with_order(ByteOrder::Little);
            let types = (little(&source), little(desc));
            if types.0 != types.1 && !is_wider(types.0, types.1) {
                return Err(refused(&format!("its type is {}, not {}", source.dtype, desc.dtype)));
            }
            let all = |lengths: &[u64]| -> Vec<Indices> {
                lengths.iter().map(|n| Indices { start: 0, step: 1, count: *n }).collect()
            };
            let from = mapping.from.clone().unwrap_or_else(|| all(source.shape.lengths()));
            let to = mapping.to.clone().unwrap_or_else(|| all(dims));
            if from.iter().chain(&to).any(|indices| indices.count == 0) {
                continue;
            }
            let fits = fits(&from, source.shape.lengths()) && fits(&to, dims);
            let part = pair(&from, &to).filter(|_| fits);
            let part = part.ok_or_else(|| refused("the selections have different shapes"))?;
            self.ctx.charge(64 * (dims.len() + from.len()) as u64 + 512)?;
            parts.push(Part { to, from, axes: part, types });
            inputs.push(source);
        }
        // Pieces are complete trailing dimensions.
        let mut piece = 1_u64;
        let mut outer = dims.len();
        while let Some(k) = outer.checked_sub(1)
            && (outer == dims.len() || piece.saturating_mul(dims[k]) <= PIECE)
        {
            (piece, outer) = (piece.saturating_mul(dims[k].max(1)), k);
        }
        let Layout::Fill(fill) = desc.layout.clone() else { return Ok(desc.layout.clone()) };
        let function = Arc::new(Virtual { dims: dims.to_vec(), outer, fill, parts });
        Ok(Layout::Computed(Arc::new(Computed { inputs, function, piece, order: Order::C })))
    }

    /// The source of a mapping, with its offsets in the joined source; `None` if it does not exist.
    fn source_array(
        &self,
        mapping: &Mapping,
        opened: &mut Opened,
        options: &OpenOptions,
    ) -> Result<Option<ArrayDesc>> {
        let source = &self.ctx.source;
        let path = mapping.dataset.trim_matches('/');
        let unreadable =
            |why: &str| unusable(&format!("\"{path}\""), &format!("cannot be read{why}"));
        if mapping.file == "." {
            if self.skipped.values().any(|skipped| skipped == path) {
                return Err(unreadable(""));
            }
            if self.links.iter().any(|link| self.path(link.parent, &link.name) == path) {
                return Err(unreadable(": it is a link"));
            }
            return array_at(&self.tree, path);
        }
        let Some(place) = OtherFiles::find(source, &mapping.file, "hdf5-034")? else {
            return Ok(None);
        };
        if !opened.contains_key(&place) {
            let file = self.sources.open(&place, &mapping.file, options)?;
            let nodes = file.tree.iter().count() as u64;
            self.ctx.charge(nodes.saturating_mul(1024))?;
            let start = self.files.add_joined(source, &file.source, &place)?;
            opened.insert(place.clone(), (file, start));
        }
        let (file, start) = &opened[&place];
        let Some(mut desc) = array_at(&file.tree, path)? else {
            let error = file.errors.get(&format!("\"{path}\""));
            return error.map_or(Ok(None), |error| Err(unreadable(&format!(": {error}"))));
        };
        desc.layout = desc.layout.shifted(*start)?;
        Ok(Some(desc))
    }
}

/// The error for virtual datasets that refer to others in a way that is not supported.
fn refers(how: &str) -> Error {
    unusable("virtual datasets", &format!("they refer {how}"))
}

/// The error for a source that cannot be used.
fn unusable(source: &str, why: &str) -> Error {
    Error::unsupported("hdf5-034", format!("source {source}: {why}"))
}

fn fits(indices: &[Indices], lengths: &[u64]) -> bool {
    let last = |i: &Indices| i.count.checked_sub(1)?.checked_mul(i.step)?.checked_add(i.start);
    indices.len() == lengths.len()
        && indices.iter().zip(lengths).all(|(i, n)| last(i).is_some_and(|last| last < *n))
}

/// The dimension of the source for each dimension of the virtual dataset with more than one index; `None` if their
/// lengths differ.
fn pair(from: &[Indices], to: &[Indices]) -> Option<Vec<Option<usize>>> {
    let mut long = from.iter().enumerate().filter(|(_, i)| i.count > 1);
    let axes = to.iter().map(|indices| match indices.count {
        1 => Some(None),
        count => long.next().filter(|(_, i)| i.count == count).map(|(k, _)| Some(k)),
    });
    let axes = axes.collect::<Option<Vec<_>>>()?;
    long.next().is_none().then_some(axes)
}

/// Whether every element of type `from` is also one of type `to`.
fn is_wider(from: DType, to: DType) -> bool {
    let size = from.size();
    match (from.kind(), to.kind()) {
        (Kind::Int | Kind::UInt, Kind::Int) | (Kind::UInt, Kind::UInt) => size < to.size(),
        // float32 has 24 significant bits, float64 has 53.
        (Kind::Int | Kind::UInt, Kind::Float) if to == DType::F32 => size <= 2,
        (Kind::Int | Kind::UInt, Kind::Float) if to == DType::F64 => size <= 4,
        (Kind::Float, Kind::Float) => size < to.size() && to.size() <= 8,
        _ => false,
    }
}

/// Little-endian elements converted to a type that represents all of them.
fn widened((from, to): (DType, DType), bytes: Vec<u8>) -> Vec<u8> {
    if from == to {
        return bytes;
    }
    let mut out = Vec::new();
    if convert::recode_integers(from, to, &bytes, &mut out).is_none() {
        let mut values = Vec::new();
        convert::to_f64(from, None, &bytes, &mut values);
        convert::from_f64(to, None, &values, &mut out);
    }
    out
}

/// A part of a virtual dataset.
struct Part {
    to: Vec<Indices>,
    from: Vec<Indices>,
    /// The dimension of the source for each dimension with more than one index.
    axes: Vec<Option<usize>>,
    /// Types of the elements of the source and of the virtual dataset, little-endian.
    types: (DType, DType),
}

/// Reads the parts of a virtual dataset.
struct Virtual {
    dims: Vec<u64>,
    /// Number of dimensions before those of a piece.
    outer: usize,
    /// Little-endian.
    fill: Arc<[u8]>,
    parts: Vec<Part>,
}

impl Function for Virtual {
    fn name(&self) -> &'static str {
        "virtual dataset"
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(self.fill.len() as u64)
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        for element in out.chunks_exact_mut(self.fill.len().max(1)) {
            element.copy_from_slice(&self.fill);
        }
        let strides = Shape::new(&self.dims[..]).strides(Order::C);
        let index: Vec<u64> = strides[..self.outer]
            .iter()
            .zip(&self.dims)
            .map(|(stride, n)| first / (*stride).max(1) % (*n).max(1))
            .collect();
        for (part, array) in self.parts.iter().zip(inputs) {
            part.copy(&index, &strides, array, self.fill.len(), out)?;
        }
        Ok(())
    }
}

impl Part {
    /// Copies the elements of the piece at `index` of the outer dimensions.
    fn copy(
        &self,
        index: &[u64],
        strides: &[u64],
        array: &Array,
        size: usize,
        out: &mut [u8],
    ) -> Result<()> {
        let mut from = self.from.clone();
        for (k, at) in index.iter().enumerate() {
            let Indices { start, step, count } = self.to[k];
            let number = at.checked_sub(start).filter(|d| d % step == 0).map(|d| d / step);
            let Some(number) = number.filter(|number| *number < count) else { return Ok(()) };
            if let Some(axis) = self.axes[k] {
                let Indices { start, step, .. } = self.from[axis];
                from[axis] = Indices { start: start + number * step, step: 1, count: 1 };
            }
        }
        let slice = |i: &Indices| Slice::Range {
            start: i64::try_from(i.start).ok(),
            stop: i64::try_from(i.start + (i.count - 1) * i.step + 1).ok(),
            step: i64::try_from(i.step).unwrap_or(i64::MAX),
        };
        let selection = Selection(from.iter().map(slice).collect());
        let bytes = array.read_bytes(&selection, Axes::Order(Order::C))?;
        let bytes = widened(self.types, bytes);
        let inner = &self.to[index.len()..];
        let mut number = vec![0_u64; inner.len()];
        for element in bytes.chunks_exact(size.max(1)) {
            let places = inner.iter().zip(&number).zip(&strides[index.len()..]);
            let at: u64 = places.map(|((i, k), stride)| (i.start + k * i.step) * stride).sum();
            let at = at as usize * size;
            out[at..at + size].copy_from_slice(element);
            for (k, indices) in number.iter_mut().zip(inner).rev() {
                *k += 1;
                if *k < indices.count {
                    break;
                }
                *k = 0;
            }
        }
        Ok(())
    }
}
