//! Virtual datasets: arrays computed from parts of other datasets, in this file or in others.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use spile_core::computed::{Computed, Function};
use spile_core::error::{Error, Result};
use spile_core::format::OpenOptions;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::read::{Array, Axes};
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

impl Walk<'_> {
    /// Adds virtual datasets. A missing source is a warning; its elements have the fill value.
    pub(super) fn resolve_virtual(&mut self, options: &OpenOptions) -> Result<()> {
        let mut trees = HashMap::new();
        for pending in std::mem::take(&mut self.virtual_datasets) {
            let path = self.path(pending.parent, &pending.name);
            let object = format!("\"{path}\"");
            match self.virtual_layout(&pending, &object, &mut trees, options) {
                Ok(layout) => {
                    self.ctx.charge(128 * pending.desc.shape.rank() as u64)?;
                    let desc = ArrayDesc { layout, ..pending.desc };
                    let node = self.tree.add_array(pending.parent, &pending.name, desc)?;
                    self.nodes.insert(pending.address, node);
                    self.keep_attributes(node, pending.attributes)?;
                }
                Err(error) => {
                    self.report_error(object, error)?;
                    self.skipped.insert(pending.address, path);
                }
            }
        }
        Ok(())
    }

    fn virtual_layout(
        &mut self,
        pending: &PendingVirtual,
        object: &str,
        trees: &mut HashMap<PathBuf, Tree>,
        options: &OpenOptions,
    ) -> Result<Layout> {
        let PendingVirtual { desc, mappings, .. } = pending;
        let dims = desc.shape.lengths();
        let (mut inputs, mut parts) = (Vec::new(), Vec::new());
        for mapping in mappings {
            let name = format!("\"{}\" of the file \"{}\"", mapping.dataset, mapping.file);
            let Some(source) = self.source_array(mapping, trees, options)? else {
                let message = format!("source {name} does not exist: read as the fill value");
                self.ctx.charge(256 + message.len() as u64)?;
                self.report.warn("hdf5-029", message).in_object(object);
                continue;
            };
            let refused =
                |why: &str| Error::unsupported("hdf5-034", format!("source {name}: {why}"));
            let little = |array: &ArrayDesc| array.dtype.with_order(ByteOrder::Little);
            if little(&source) != little(desc) {
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
            parts.push(Part { to, from, axes: part });
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
        trees: &mut HashMap<PathBuf, Tree>,
        options: &OpenOptions,
    ) -> Result<Option<ArrayDesc>> {
        let own = |tree: &Tree| -> Result<Option<ArrayDesc>> {
            let node = tree.at(mapping.dataset.trim_matches('/'));
            let desc = node.and_then(|id| tree.node(id).array.as_ref());
            desc.map(|desc| tree.resolve(desc).cloned()).transpose()
        };
        let source = &self.ctx.source;
        if mapping.file == "." {
            let path = mapping.dataset.trim_matches('/');
            if self.skipped.values().any(|skipped| skipped == path) {
                let message = format!("source \"{path}\" cannot be read");
                return Err(Error::unsupported("hdf5-034", message));
            }
            return own(&self.tree);
        }
        let Some(path) = OtherFiles::find(source, &mapping.file, "hdf5-034")? else {
            return Ok(None);
        };
        let (start, _) = self.files.add(source, &path)?;
        if !trees.contains_key(&path) {
            let opened = super::open_source(Source::open(&path)?, options);
            let parsed = opened.map_err(|e| {
                if is_fatal(&e) {
                    return e;
                }
                Error::unsupported("hdf5-035", format!("file \"{}\": {e}", mapping.file))
            })?;
            let nodes = parsed.tree.iter().count() as u64;
            self.ctx.charge(nodes.saturating_mul(1024))?;
            trees.insert(path.clone(), parsed.tree);
        }
        let Some(mut desc) = own(&trees[&path])? else { return Ok(None) };
        desc.layout = desc.layout.shifted(start)?;
        Ok(Some(desc))
    }
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

/// A part of a virtual dataset.
struct Part {
    to: Vec<Indices>,
    from: Vec<Indices>,
    /// The dimension of the source for each dimension with more than one index.
    axes: Vec<Option<usize>>,
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
