//! A small file whose datasets are bytes of another one (external storage, section IV.A.2.h).

use std::collections::HashMap;

use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::frames::FrameCell;
use spile_core::layout::{ArrayDesc, Extent, Layout};
use spile_core::limits::Limits;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::{NodeId, Value};

use super::file::{Elsewhere, LONGEST, Stored, What};
use super::{Origin, Rules, Writer, types};

/// Arrays up to this many bytes are copied where they cannot be pointed to.
const COPIED: u64 = 1 << 20;

/// Ranges of a dataset; a message holds no more.
const PARTS: usize = LONGEST / 24 - 10;

/// An array that is not in the index, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its path.
    pub path: String,
    /// What HDF5 cannot say.
    pub why: String,
}

/// What became of the arrays of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexed {
    /// Datasets of the index that are arrays of the file.
    pub arrays: usize,
    /// Arrays that it does not have.
    pub left: Vec<Left>,
}

/// Where datasets point to.
pub(super) struct Pointers {
    file: String,
    left: Vec<Left>,
    /// Arrays whose first index runs fastest: dimensions are named in reverse from this one on.
    reversed: HashMap<NodeId, usize>,
}

/// Writes an HDF5 file whose datasets are the bytes of the file that `content` was read from; what
/// cannot be said so and is small is copied, the rest is given back.
pub fn write_index(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<Indexed> {
    let source = content.source();
    let path = source.path().filter(|path| path.is_file()).ok_or_else(|| {
        Error::unsupported("hdf5-031", "an index points into one file, and this is none")
    })?;
    // The library looks for relative names from where the reader happens to be.
    let path = std::fs::canonicalize(path).map_err(|e| Error::io(path, e))?;
    let file = path.to_str().ok_or_else(|| {
        Error::unsupported("hdf5-031", "the name of the file is not UTF-8, which HDF5 needs")
    })?;
    let mut writer = Writer::new(content, Rules::Hdf5, limits)?;
    let pointers = Pointers { file: file.into(), left: Vec::new(), reversed: HashMap::new() };
    writer.pointers = Some(pointers);
    writer.nodes()?;
    writer.scales();
    writer.attach();
    let attrs = writer.flat.tree().attrs().clone();
    writer.say(0, &attrs);
    writer.all(sink)?;
    let tree = writer.flat.tree();
    let arrays = tree.arrays().filter(|(id, ..)| writer.objects.contains_key(id)).count();
    let left = writer.pointers.map(|pointers| pointers.left).unwrap_or_default();
    Ok(Indexed { arrays, left })
}

/// The ranges of an array in the order of its elements, and the order inside each frame.
struct Ranges {
    parts: Vec<Extent>,
    order: Order,
    /// Dimensions of the dataset before those of a frame.
    before: usize,
}

impl Writer<'_> {
    /// A dataset that points to the bytes of an array, or a copy, or nothing.
    pub(super) fn pointed(
        &mut self,
        id: NodeId,
        path: &str,
        array: &ArrayDesc,
    ) -> Result<Option<usize>> {
        let bytes = array.shape.bytes(array.dtype.size())?;
        let why = match ranges(&self.flat.layouts(id)?, array) {
            _ if bytes == 0 || array.shape.rank() >= super::MOST => None,
            Ok(found) if found.parts.len() <= PARTS => {
                return Ok(self.point(id, array, &found, bytes));
            }
            Ok(found) => {
                Some(format!("it lies in {} pieces, more than are allowed", found.parts.len()))
            }
            Err(why) => Some(why.to_string()),
        };
        match why {
            Some(why) if bytes > COPIED => {
                if let Some(pointers) = &mut self.pointers {
                    pointers.left.push(Left { path: path.into(), why });
                }
                Ok(None)
            }
            _ => {
                let object = self.dataset(array)?;
                self.origins.push((object, Origin::Array(id)));
                Ok(Some(object))
            }
        }
    }

    fn point(
        &mut self,
        id: NodeId,
        array: &ArrayDesc,
        found: &Ranges,
        bytes: u64,
    ) -> Option<usize> {
        let pointers = self.pointers.as_mut()?;
        let mut dims = array.shape.lengths().to_vec();
        let mut note = None;
        if found.order == Order::F && dims.len() > 1 {
            // Frames stay the slowest.
            dims[found.before..].reverse();
            pointers.reversed.insert(id, found.before);
            note =
                Some("the dimensions are in reverse order, because the first index runs fastest");
        }
        let file = pointers.file.clone();
        let parts = found.parts.iter().map(|part| (part.offset, part.len)).collect();
        let elsewhere = Some(Elsewhere { file, parts });
        let kind = Stored::Own(types::of(array.dtype));
        let object = self.outline.add(What::Dataset { kind, dims, bytes, elsewhere });
        if let Some(note) = note {
            self.say(object, &[("note".to_string(), Value::from(note))]);
        }
        Some(object)
    }

    /// Names dimensions as they are in the file.
    pub(super) fn turn(&self, id: NodeId, dims: &mut [usize]) {
        let first = self.pointers.as_ref().and_then(|pointers| pointers.reversed.get(&id));
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
                    return Err("its frames have their elements in different orders");
                }
                extents
            }
            // The bytes of elements of different lengths, one behind the other.
            Layout::Ragged { data, .. } => data,
            Layout::Rows { .. } => return Err("it is a column of a table"),
            Layout::Encoded { .. } => return Err("it is compressed"),
            Layout::Chunked { .. } => return Err("it lies in chunks"),
            Layout::Text { .. } => return Err("it is written as text"),
            _ => return Err("it is not in the file as it is read"),
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
    let before = array.shape.rank().saturating_sub(rank);
    if order == Order::F && cells.len() > 1 && before == 0 {
        return Err("its frames have different lengths along the index that runs fastest");
    }
    Ok(Ranges { parts, order, before })
}
