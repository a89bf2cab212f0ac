//! Index files: datasets that refer to the bytes of another file (external storage, section IV.A.2.h).

use std::collections::HashMap;

use spile_core::Dataset;
use spile_core::error::{Error, Result};
use spile_core::frames::FrameCell;
use spile_core::layout::{ArrayDesc, Extent, Layout};
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::{Attrs, NodeId};

use super::{DataSource, Flavor, MAX_RANK, Writer};
use crate::write::{DatasetType, ExternalData, MAX_MESSAGE, ObjectKind, datatype};

/// Largest array, in bytes, that is copied if external storage cannot express it.
const MAX_COPY: u64 = 1 << 20;

/// Largest number of byte ranges of a dataset; more do not fit in a message.
const MAX_PARTS: usize = MAX_MESSAGE / 24 - 10;

/// An array that is not in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Path of the array.
    pub path: String,
    /// Why HDF5 external storage cannot express it.
    pub reason: String,
}

/// The result of [`write_index`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Number of arrays in the index.
    pub arrays: usize,
    /// Arrays that are not in the index.
    pub skipped: Vec<Skipped>,
}

/// The file that datasets refer to.
pub(super) struct ExternalFile {
    file: String,
    skipped: Vec<Skipped>,
    /// Arrays in Fortran order: dimensions from this one on are reversed.
    reversed: HashMap<NodeId, usize>,
}

/// Writes an HDF5 file whose datasets refer to the bytes of the file that `content` was read from
/// (external storage). Arrays that cannot be expressed so are copied up to 1 MiB and otherwise returned in
/// [`Indexed::skipped`]. Fails with `Unsupported` if `content` is not one file with a UTF-8 path.
pub fn write_index(content: &Dataset, sink: &mut Sink) -> Result<Indexed> {
    let source = content.source();
    let single = source.parts().is_empty();
    let path = source.path().filter(|path| single && path.is_file()).ok_or_else(|| {
        Error::unsupported("hdf5-031", "an HDF5 index needs a single source file")
    })?;
    // The library resolves relative names from the current directory of the reader.
    let path = std::fs::canonicalize(path).map_err(|e| Error::io(path, e))?;
    let file = path.to_str().ok_or_else(|| {
        Error::unsupported("hdf5-036", "the path of the source file is not UTF-8")
    })?;
    let mut writer = Writer::new(content, Flavor::Hdf5)?;
    let external =
        ExternalFile { file: file.into(), skipped: Vec::new(), reversed: HashMap::new() };
    writer.external = Some(external);
    writer.add_nodes()?;
    writer.add_scales();
    writer.attach_scales();
    let attrs = writer.flat.tree().attrs().clone();
    writer.add_attributes(0, &attrs);
    writer.write(sink)?;
    let tree = writer.flat.tree();
    let arrays = tree.arrays().filter(|(id, ..)| writer.objects.contains_key(id)).count();
    let skipped = writer.external.map(|external| external.skipped).unwrap_or_default();
    Ok(Indexed { arrays, skipped })
}

/// The byte ranges of an array in the order of its elements.
struct Ranges {
    parts: Vec<Extent>,
    order: Order,
    /// Number of dimensions before those of a frame.
    frame_dims: usize,
}

impl Writer {
    /// A dataset with external data, or a copy, or `None` if the array is skipped.
    pub(super) fn external_dataset(
        &mut self,
        id: NodeId,
        path: &str,
        array: &ArrayDesc,
    ) -> Result<Option<usize>> {
        let bytes = array.shape.bytes(array.dtype.size())?;
        let reason = match ranges(&self.flat.layouts(id)?, array) {
            _ if bytes == 0 || array.shape.rank() >= MAX_RANK => None,
            Ok(found) if found.parts.len() <= MAX_PARTS => {
                return Ok(self.add_external(id, array, &found, bytes));
            }
            Ok(found) => {
                Some(format!("{} byte ranges, the maximum is {MAX_PARTS}", found.parts.len()))
            }
            Err(reason) => Some(reason.to_string()),
        };
        match reason {
            Some(reason) if bytes > MAX_COPY => {
                if let Some(external) = &mut self.external {
                    external.skipped.push(Skipped { path: path.into(), reason });
                }
                Ok(None)
            }
            _ => {
                let object = self.dataset(array)?;
                self.data.push((object, DataSource::Array(id)));
                Ok(Some(object))
            }
        }
    }

    fn add_external(
        &mut self,
        id: NodeId,
        array: &ArrayDesc,
        found: &Ranges,
        bytes: u64,
    ) -> Option<usize> {
        let external = self.external.as_mut()?;
        let mut dims = array.shape.lengths().to_vec();
        let mut note = None;
        if found.order == Order::F && dims.len() > 1 {
            // The frame dimension stays the slowest.
            dims[found.frame_dims..].reverse();
            external.reversed.insert(id, found.frame_dims);
            note =
                Some("the dimensions are in reverse order, because the first index runs fastest");
        }
        let file = external.file.clone();
        let parts = found.parts.iter().map(|part| (part.offset, part.len)).collect();
        let external = Some(ExternalData { file, parts });
        let kind = DatasetType::Own(datatype::of(array.dtype));
        let object = self.plan.add(ObjectKind::Dataset { kind, dims, bytes, external });
        if let Some(note) = note {
            self.add_attributes(object, &Attrs::from([("note", note.into())]));
        }
        Some(object)
    }

    /// Reverses the dimensions that are reversed in the file.
    pub(super) fn reverse_dims(&self, id: NodeId, dims: &mut [usize]) {
        let first = self.external.as_ref().and_then(|external| external.reversed.get(&id));
        if let Some(first) = first {
            dims[*first..].reverse();
        }
    }
}

fn ranges(cells: &[FrameCell], array: &ArrayDesc) -> std::result::Result<Ranges, &'static str> {
    let size = array.dtype.size() as u64;
    let mut parts: Vec<Extent> = Vec::new();
    let mut order = None;
    for FrameCell { shape, layout } in cells {
        let extents = match layout {
            Layout::Plain { extents, order: own } => {
                let line = shape.lengths().iter().filter(|n| **n != 1).count() < 2;
                let own = if line { order.unwrap_or(Order::C) } else { *own };
                if *order.get_or_insert(own) != own {
                    return Err("frames in different element orders");
                }
                extents
            }
            // The concatenated bytes of all elements.
            Layout::Ragged { data, .. } => data,
            Layout::Rows { .. } => return Err("column of a table"),
            Layout::Encoded { .. } => return Err("compressed"),
            Layout::Chunked { .. } => return Err("chunked"),
            Layout::EncodedWhole { .. } => return Err("encoded"),
            _ => return Err("not stored as contiguous bytes"),
        };
        let bytes = shape.count().unwrap_or(0).saturating_mul(size);
        for part in extents.pieces(0, bytes).filter(|part| part.len > 0) {
            match parts.last_mut() {
                Some(last) if last.offset + last.len == part.offset => last.len += part.len,
                _ => parts.push(part),
            }
        }
    }
    let order = order.unwrap_or(Order::C);
    let rank = cells.first().map_or(0, |cell| cell.shape.rank());
    let frame_dims = array.shape.rank().saturating_sub(rank);
    if order == Order::F && cells.len() > 1 && frame_dims == 0 {
        return Err("frames of different lengths along the fastest dimension");
    }
    Ok(Ranges { parts, order, frame_dims })
}
