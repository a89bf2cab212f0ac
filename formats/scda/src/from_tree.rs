//! Writes any dataset as scda: every array is a field, every group a section with its attributes.

use spile_core::comm::{Serial, SharedSink};
use spile_core::description;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::sink::Sink;
use spile_core::tree::{Node, Tree, Value};
use spile_core::wire::ByteOrder;

use crate::buffers::Elements;
use crate::content::Content;
use crate::semantics::checkpoint::describe;
use crate::semantics::{Description, Field, Group};
use crate::wire::USER;
use crate::write::{Options, Writer};

/// A sink that the caller commits.
struct BorrowedSink<'a>(&'a Sink);

impl SharedSink for BorrowedSink<'_> {
    fn write_at_all(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.0.write_all_at(offset, bytes)
    }

    fn write_parts(&self, _end: u64, parts: &mut dyn Iterator<Item = (u64, &[u8])>) -> Result<()> {
        for (offset, bytes) in parts {
            self.0.write_all_at(offset, bytes)?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}

pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let tree = content.tree();
    if tree.frames().is_some() {
        return Err(no_frames());
    }
    // The attribute `user` of the root is the user string of the file.
    let user = match tree.attrs().iter().find(|(name, _)| name == "user") {
        Some((_, Value::Text(text))) => text.as_bytes(),
        Some((_, Value::Bytes(bytes))) => bytes,
        _ => &[],
    };
    let user = if user.len() <= USER { user } else { &[] };
    let mut writer = Writer::over(&Serial, Box::new(BorrowedSink(sink)), user, Options::default())?;
    let group = |path: &str, attrs: &Vec<_>| {
        Ok(Description::Group(Group { group: path.into(), attrs: attrs.clone() }))
    };
    describe(&Serial, &mut writer, group("", tree.attrs()))?;
    for (_, node) in tree.iter() {
        match &node.array {
            None => describe(&Serial, &mut writer, group(&node.path, &node.attrs))?,
            Some(array) => {
                let context = |e: Error| e.in_object(format!("array \"{}\"", node.path));
                write_array(content, node, array, &mut writer, limits).map_err(context)?;
            }
        }
    }
    writer.close()
}

fn write_array(
    content: &dyn Reader,
    node: &Node,
    own: &ArrayDesc,
    writer: &mut Writer<'_>,
    limits: &Limits,
) -> Result<()> {
    let tree = content.tree();
    let desc = tree.resolve(own)?;
    if let Layout::PerFrame(_) = desc.layout {
        return Err(no_frames());
    }
    let bytes = Content::of_array(content, desc, limits)?;
    let fetch = |at, out: &mut [u8]| bytes.fetch(at, out);
    let data = Elements::Fetched(bytes.len(), &fetch);
    let mut field = field(tree, node, own, desc);
    let shape = desc.shape.lengths();
    if let Some(starts) = desc.ragged() {
        limits.allow((starts.len() as u64).saturating_mul(16), "the table of element sizes")?;
        let sizes: Vec<u64> = starts.windows(2).map(|w| w[1].saturating_sub(w[0])).collect();
        let item = desc.dtype.size() as u64;
        if !sizes.iter().all(|size| size.is_multiple_of(item)) {
            field.dtype = DType::opaque(1);
        }
        if shape.len() != 1 {
            (field.dims, field.coords) = (Vec::new(), Vec::new());
        }
        let user = field.user().to_vec();
        describe(&Serial, writer, Ok(Description::Field(Box::new(field))))?;
        return writer.varray(&user, &[sizes.len() as u64], &sizes, data, false);
    }
    // An element is a slice along the slowest dimension.
    field.fortran_order = desc.order() == Order::F && shape.len() > 1;
    let split = if field.fortran_order {
        shape.split_last().map(|(count, element)| (*count, element))
    } else {
        shape.split_first().map(|(count, element)| (*count, element))
    };
    // A scalar is not split, nor is an empty array whose element size overflows.
    let split = split.filter(|(_, element)| Shape::new(*element).bytes(desc.dtype.size()).is_ok());
    field.shape = split.map_or(shape, |(_, element)| element).to_vec();
    let (user, size) = (field.user().to_vec(), field.bytes()?);
    describe(&Serial, writer, Ok(Description::Field(Box::new(field))))?;
    match split {
        Some((count, _)) => writer.array(&user, &[count], size, data, false),
        None => writer.block_from(&user, 0, size, Some(data), false),
    }
}

fn no_frames() -> Error {
    Error::unsupported("scda-030", "scda does not support frames")
}

/// The description of an array without the element shape.
fn field(tree: &Tree, node: &Node, own: &ArrayDesc, desc: &ArrayDesc) -> Field {
    let dtype = match desc.layout {
        Layout::Inline(..)
        | Layout::Fill(_)
        | Layout::Text { .. }
        | Layout::Rows { .. }
        | Layout::Chunked { .. } => desc.dtype.with_order(ByteOrder::Little),
        _ => desc.dtype,
    };
    let mut field = Field::new(&node.path, dtype);
    let unnamed = |(k, name): (usize, &String)| *name == format!("dim{}", k + 1);
    if !own.dims.iter().enumerate().all(unnamed) {
        field.dims.clone_from(&own.dims);
    }
    field.coords = description::points(tree, &own.coords);
    field.map = own.map.map(Into::into);
    field.attrs.clone_from(&node.attrs);
    field
}
