//! The array of a tree as `.npy`.

use std::io::Write as _;
use std::path::Path;

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{Error, Hint, Result};
use spile_core::format::{FormatWriter, Loss, LossKind, WriteOptions};
use spile_core::layout::ArrayDesc;
use spile_core::read::Axes;
use spile_core::select::Selection;
use spile_core::shape::Order;
use spile_core::sink::Sink;
use spile_core::tree::NodeId;
use spile_core::wire::ByteOrder;
use spile_interchange::{Kept, Losses};

use crate::Npy;
use crate::wire::encode_header;

/// What is written.
struct Plan {
    id: NodeId,
    /// Type of the written elements.
    dtype: DType,
    /// NumPy's name of the type.
    descr: String,
}

impl Plan {
    /// Chooses the only array of `content` that is not a coordinate. Fails if NumPy cannot store it.
    fn new(content: &Dataset) -> Result<Self> {
        let mut arrays = content.tree().main_arrays();
        match (arrays.next(), arrays.next()) {
            (Some((id, node, own)), None) => {
                Self::of(content, id, own).map_err(|e| e.in_object(format!("\"{}\"", node.path)))
            }
            (None, _) => Err(unsupported("no array to write")),
            _ => Err(unsupported("a .npy file contains one array").hint(Hint::SelectArrays)),
        }
    }

    fn of(content: &Dataset, id: NodeId, own: &ArrayDesc) -> Result<Self> {
        let desc = content.tree().resolve(own)?;
        if let Some(table) = desc.layout.frames()
            && (table.len() != 1 || table.cell(0)?.is_none())
        {
            return Err(unsupported("a .npy file has no frames").hint(Hint::SelectFrames));
        }
        if desc.ragged().is_some() {
            return Err(unsupported("NumPy has no type for elements of different lengths"));
        }
        let dtype = desc.dtype.with_order(ByteOrder::Little);
        let descr =
            dtype.numpy().ok_or_else(|| unsupported(format!("NumPy has no type for {dtype}")))?;
        Ok(Self { id, dtype, descr })
    }
}

impl FormatWriter for Npy {
    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        let Plan { id: chosen, .. } = Plan::new(content)?;
        let mut losses = Losses::new("NumPy");
        let kept = Kept { group_attrs: true, empty_groups: true, ..Kept::default() };
        losses.add(content, &kept, |id, _, _| {
            if id == chosen { Ok(()) } else { Err("a .npy file contains one array".into()) }
        });
        for (_, node) in content.tree().iter().filter(|(_, node)| node.array.is_none()) {
            losses.push(&node.path, LossKind::Group, "groups");
        }
        let path = &content.tree().node(chosen).path;
        if path != "data" {
            losses.push_loss(Loss::new(
                path,
                LossKind::Name,
                "an array in a .npy file has no name",
            ));
        }
        Ok(losses.into_vec())
    }

    fn streams(&self) -> bool {
        true
    }

    /// Writes the only array of `content` that is not a coordinate.
    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let Plan { id, dtype, descr } = Plan::new(content)?;
        let absent = || unsupported("the array does not exist in the frame");
        let array = content.array_in_frame(id, 0)?.ok_or_else(absent)?;
        let fortran = array.order() == Order::F && array.shape().rank() > 1;
        let header = encode_header(&descr, fortran, array.shape().lengths())?;
        sink.write_all(&header)?;
        let (start, size) = (header.len() as u64, dtype.size() as u64);
        let order = if fortran { Order::F } else { Order::C };
        let selected = array.select(&Selection::all(), Axes::Order(order))?;
        if sink.is_stream() {
            selected.stream(|_, bytes| Ok(sink.write_all(bytes)?))?;
            return Ok(Vec::new());
        }
        selected.for_each(|block, bytes| sink.write_all_at(start + block.first * size, bytes))?;
        Ok(Vec::new())
    }
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("npy-011", message)
}
