//! The array of a tree as `.npy`.

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

use crate::wire::encode_header;

/// Numbers scaled at once: 64 KiB of float64, which fit in the cache.
const SCALED_AT_ONCE: usize = 8 << 10;

/// Writes the only array of `content` that is not a coordinate.
pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let (node, desc) = only(content)?;
    write_array(content, desc, sink, limits).map_err(|e| e.in_object(format!("\"{}\"", node.path)))
}

/// The only array that is not a coordinate.
fn only(content: &dyn Reader) -> Result<(&Node, &ArrayDesc)> {
    let mut arrays = content.tree().main_arrays();
    match (arrays.next(), arrays.next()) {
        (Some((_, node, desc)), None) => Ok((node, desc)),
        (None, _) => Err(unsupported("no array to write")),
        _ => Err(unsupported("a .npy file contains one array")
            .hint("select one with --select, or write a .npz file")),
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
    let array = array
        .ok_or_else(|| unsupported("a .npy file has no frames").hint("select one with --frames"))?;
    if desc.ragged().is_some() {
        return Err(unsupported("NumPy has no type for elements of different lengths"));
    }
    // NumPy has no scaling: physical values are written.
    let stored = array.dtype().with_order(ByteOrder::Little);
    let dtype = if array.map().is_some() { DType::F64 } else { stored };
    let descr =
        dtype.numpy().ok_or_else(|| unsupported(format!("NumPy has no type for {dtype}")))?;
    let fortran = array.order() == Order::F && array.shape().rank() > 1;
    let header = encode_header(&descr, fortran, array.shape().lengths())?;
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
        let mut numbers = Vec::new();
        for (k, some) in (0_u64..).zip(bytes.chunks(SCALED_AT_ONCE * stored.size())) {
            convert::to_f64(stored, array.map(), some, &mut numbers);
            let at = at + k * SCALED_AT_ONCE as u64 * size;
            sink.write_all_at(at, convert::little_bytes(&mut numbers))?;
        }
        Ok(())
    })
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("npy-011", message)
}
