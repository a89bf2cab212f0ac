//! One array of any tree as `.npy`.

use spile_core::convert;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::Node;
use spile_core::wire::ByteOrder;

/// The array begins at a multiple of this.
const ALIGNMENT: usize = 64;

/// Numbers that are mapped before they are written: 64 KiB of doubles.
const MAPPED_AT_ONCE: usize = 8 << 10;

pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let (node, desc) = only(content)?;
    let place = |e: Error| e.in_object(format!("\"{}\"", node.path));
    write_array(content, desc, sink, limits).map_err(place)
}

/// The one array that is not there for another one's sake.
fn only(content: &dyn Reader) -> Result<(&Node, &ArrayDesc)> {
    let mut arrays = content.tree().main_arrays();
    match (arrays.next(), arrays.next()) {
        (Some((_, node, desc)), None) => Ok((node, desc)),
        (None, _) => Err(unsupported("there is no array in this file")),
        _ => Err(unsupported("an .npy file holds one array")
            .hint("choose one with --select, or write an .npz file")),
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
    // What the numbers mean; NumPy knows no factors.
    let stored = array.dtype().with_order(ByteOrder::Little);
    let dtype = if array.map().is_some() { DType::F64 } else { stored };
    let descr = dtype.numpy().ok_or_else(|| unsupported(format!("NumPy has no {dtype}")))?;
    let fortran = array.order() == Order::F && array.shape().rank() > 1;
    let header = header(&descr, fortran, array.shape().lengths())?;
    sink.write_all_at(0, &header)?;
    let (start, size) = (header.len() as u64, dtype.size() as u64);
    let order = if fortran { Order::F } else { Order::C };
    let selected = array.select(&Selection::all(), Axes::Order(order))?;
    let sink = &*sink;
    selected.for_each(|block, bytes| {
        let at = start + block.first * size;
        if array.map().is_none() {
            return sink.write_all_at(at, bytes);
        }
        // A few at a time: they stay in the cache, and in memory that need not be had anew for each block.
        let mut numbers = Vec::new();
        for (k, some) in (0_u64..).zip(bytes.chunks(MAPPED_AT_ONCE * stored.size())) {
            convert::to_f64(stored, array.map(), some, &mut numbers);
            let at = at + k * MAPPED_AT_ONCE as u64 * size;
            sink.write_all_at(at, convert::little_bytes(&mut numbers))?;
        }
        Ok(())
    })
}

/// Version 1 of the header; what is longer is version 2.
pub(crate) fn header(descr: &str, fortran: bool, shape: &[u64]) -> Result<Vec<u8>> {
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
