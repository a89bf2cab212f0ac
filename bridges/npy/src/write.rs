//! One array of any tree as `.npy`.

use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::{Node, NodeId};
use spile_core::wire::ByteOrder;

/// The array begins at a multiple of this.
const ALIGNMENT: usize = 64;

pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let (node, desc) = only(content)?;
    let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
    write_array(content, desc, sink, limits).map_err(place)
}

/// The one array that is not there for another one's sake.
fn only(content: &dyn Reader) -> Result<(&Node, &ArrayDesc)> {
    let tree = content.tree();
    let coordinates = tree.arrays().flat_map(|(_, _, array)| &array.coords);
    let coordinates: Vec<NodeId> = coordinates
        .filter_map(|coord| if let Coord::Node(id) = coord { Some(*id) } else { None })
        .collect();
    let mut arrays = tree.arrays().filter(|(id, ..)| !coordinates.contains(id));
    match (arrays.next(), arrays.next()) {
        (Some((_, node, desc)), None) => Ok((node, desc)),
        (None, _) => Err(unsupported("there is no array in this file")),
        _ => Err(unsupported("an .npy file holds one array").hint("choose one with --select")),
    }
}

fn write_array(
    content: &dyn Reader,
    own: &ArrayDesc,
    sink: &mut Sink,
    limits: &Limits,
) -> Result<()> {
    let (source, tree) = (content.source(), content.tree());
    let desc = tree.resolve(own)?;
    let array = match &desc.layout {
        Layout::PerFrame(table) if table.len() == 1 => {
            Array::open_frame(source, tree, own, 0, limits)?
        }
        Layout::PerFrame(_) => None,
        _ => Some(Array::open(source, tree, own, limits)?),
    };
    let array = array.ok_or_else(|| {
        unsupported("an .npy file holds no frames").hint("choose one with --frames")
    })?;
    if desc.ragged().is_some() {
        return Err(unsupported("NumPy has no elements of different lengths"));
    }
    let saved = Saved::meant(&array)?;
    sink.write_all_at(0, &saved.header)?;
    let sink = &*sink;
    saved.blocks(|at, bytes| sink.write_all_at(at, bytes))
}

/// An array with the header that it has in a file.
pub(crate) struct Saved<'a> {
    array: &'a Array,
    pub(crate) header: Vec<u8>,
    dtype: DType,
    order: Order,
    /// Numbers are turned into those that they mean.
    meant: bool,
}

impl<'a> Saved<'a> {
    /// As what the numbers mean: NumPy knows no factors.
    fn meant(array: &'a Array) -> Result<Self> {
        let dtype = if array.map().is_some() { DType::F64 } else { array.dtype() };
        let descr = dtype.with_order(ByteOrder::Little).numpy();
        let descr = descr.ok_or_else(|| unsupported(format!("NumPy has no {dtype}")))?;
        Self::new(array, dtype, &descr, array.map().is_some())
    }

    /// As the numbers that are stored; those of a type that NumPy lacks as their bytes.
    pub(crate) fn stored(array: &'a Array) -> Result<Self> {
        let dtype = array.dtype();
        let descr = dtype.with_order(ByteOrder::Little).numpy();
        let descr = descr.unwrap_or_else(|| format!("|V{}", dtype.size()));
        Self::new(array, dtype, &descr, false)
    }

    fn new(array: &'a Array, dtype: DType, descr: &str, meant: bool) -> Result<Self> {
        let fortran = array.order() == Order::F && array.shape().rank() > 1;
        let header = header(descr, fortran, array.shape().lengths())?;
        let order = if fortran { Order::F } else { Order::C };
        Ok(Self { array, header, dtype, order, meant })
    }

    /// Bytes of the file.
    pub(crate) fn len(&self) -> Result<u64> {
        let data = self.array.shape().bytes(self.dtype.size())?;
        let len = (self.header.len() as u64).checked_add(data);
        len.ok_or_else(|| unsupported("an array that fits no file"))
    }

    /// Hands out the elements on all threads, each block with its place in the file.
    pub(crate) fn blocks(&self, each: impl Fn(u64, &[u8]) -> Result<()> + Sync) -> Result<()> {
        let (start, size) = (self.header.len() as u64, self.dtype.size() as u64);
        let selected = self.array.select(&Selection::all(), Axes::Order(self.order))?;
        selected.for_each(|block, bytes| {
            let at = start + block.first * size;
            if !self.meant {
                return each(at, bytes);
            }
            let mut numbers = Vec::new();
            convert::to_f64(self.array.dtype(), self.array.map(), bytes, &mut numbers);
            each(at, convert::little_bytes(&mut numbers))
        })
    }
}

/// Version 1 of the header; what is longer is version 2.
fn header(descr: &str, fortran: bool, shape: &[u64]) -> Result<Vec<u8>> {
    let lengths: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let shape = format!("({}{comma})", lengths.join(", "));
    let order = if fortran { "True" } else { "False" };
    let text = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    let padded = |before: usize| {
        let len = (before + text.len() + 1).next_multiple_of(ALIGNMENT) - before;
        format!("{text:<width$}\n", width = len - 1)
    };
    let mut bytes = b"\x93NUMPY".to_vec();
    let short = padded(10);
    if let Ok(len) = u16::try_from(short.len()) {
        bytes.extend([1, 0]);
        bytes.extend(len.to_le_bytes());
        bytes.extend(short.bytes());
        return Ok(bytes);
    }
    let long = padded(12);
    let len = u32::try_from(long.len()).map_err(|_| unsupported("too many dimensions"))?;
    bytes.extend([2, 0]);
    bytes.extend(len.to_le_bytes());
    bytes.extend(long.bytes());
    Ok(bytes)
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("npy-011", message)
}
