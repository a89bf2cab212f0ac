//! Writes any dataset as scda: every array is a field, every group a section with its attributes.

use std::path::Path;

use spile_core::comm::Serial;
use spile_core::format::{Capabilities, FormatWriter, Loss, LossKind, WriteOptions};
use spile_core::metadata::coords_to_meta;
use spile_core::{
    ArrayDesc, Attrs, ByteOrder, Coord, DType, Dataset, Error, Node, Order, Result, Shape, Sink,
    Tree, Value,
};
use spile_interchange::{Kept, Losses};

use crate::Scda;
use crate::buffers::Elements;
use crate::content::Content;
use crate::semantics::checkpoint::describe;
use crate::semantics::{Description, Field, Group};
use crate::wire::USER;
use crate::write::{Options, Writer};

/// How the data of an array are stored.
enum Data {
    Block,
    /// A number of elements.
    Array(u64),
    /// Sizes of the elements in bytes.
    Varray(Vec<u64>),
}

impl FormatWriter for Scda {
    fn capabilities(&self) -> Option<Capabilities> {
        Some(Capabilities {
            rank: usize::MAX,
            order: Order::C,
            frames: false,
            dtype: |_| true,
            byte: DType::U8,
            name: |_| true,
            adds: &[],
        })
    }

    fn keeps_scaling(&self) -> bool {
        true
    }

    fn losses(&self, content: &Dataset, _: &Path) -> Result<Vec<Loss>> {
        losses(content)
    }

    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let tree = content.tree();
        check_frames(tree)?;
        // The attribute `user` of the root is the user string of the file.
        let user = match tree.attrs().get("user") {
            Some(Value::Text(text)) => text.as_bytes(),
            Some(Value::Bytes(bytes)) => bytes,
            _ => &[],
        };
        let user = if user.len() <= USER { user } else { &[] };
        let mut writer = Writer::over(&Serial, Box::new(&*sink), user, Options::default())?;
        describe(&mut writer, Ok(group("", tree.attrs())))?;
        for (_, node) in tree.iter() {
            match &node.array {
                None => describe(&mut writer, Ok(group(&node.path, &node.attrs)))?,
                Some(array) => write_array(content, node, array, &mut writer)
                    .map_err(|e| e.in_object(format!("array \"{}\"", node.path)))?,
            }
        }
        writer.close().map(|()| Vec::new())
    }
}

/// What writing does not keep.
fn losses(content: &Dataset) -> Result<Vec<Loss>> {
    let tree = content.tree();
    check_frames(tree)?;
    group("", tree.attrs()).text()?;
    let mut losses = Losses::new("scda");
    losses.add(content, &Kept { meaning: false, ..Kept::ALL }, |_, _, _| Ok(()));
    for (_, node) in tree.iter() {
        let Some(array) = &node.array else {
            group(&node.path, &node.attrs).text()?;
            continue;
        };
        let described = field(content, node, array).and_then(|(field, data)| {
            Description::Field(Box::new(field)).text()?;
            Ok(data)
        });
        let data = described.map_err(|e| e.in_object(format!("array \"{}\"", node.path)))?;
        if !matches!(data, Data::Varray(_)) || array.shape.rank() == 1 {
            continue;
        }
        let mut lose = |kind| {
            let reason = "a V section of scda has one dimension";
            losses.push_loss(Loss::new(&node.path, kind, reason));
        };
        lose(LossKind::Shape);
        if array.dims != ArrayDesc::default_dims(array.dims.len()) {
            lose(LossKind::Dimensions);
        }
        if array.coords.iter().any(|coord| *coord != Coord::None) {
            lose(LossKind::Coordinates);
        }
    }
    Ok(losses.into_vec())
}

fn check_frames(tree: &Tree) -> Result<()> {
    if tree.frames().is_some() { Err(no_frames()) } else { Ok(()) }
}

fn no_frames() -> Error {
    Error::unsupported("scda-030", "scda does not support frames")
}

fn group(path: &str, attrs: &Attrs) -> Description {
    Description::Group(Group { group: path.into(), attrs: attrs.clone() })
}

fn write_array(
    content: &Dataset,
    node: &Node,
    own: &ArrayDesc,
    writer: &mut Writer<'_>,
) -> Result<()> {
    let (field, data) = field(content, node, own)?;
    let bytes = Content::of_array(content, content.tree().resolve(own)?)?;
    let fetch = |at, out: &mut [u8]| bytes.fetch(at, out);
    let elements = Elements::Fetched(bytes.len(), &fetch);
    let (user, size) = (field.user().to_vec(), field.bytes()?);
    describe(writer, Ok(Description::Field(Box::new(field))))?;
    match data {
        Data::Block => writer.block_from(&user, 0, size, Some(elements), false),
        Data::Array(count) => writer.array(&user, &[count], size, elements, false),
        Data::Varray(sizes) => writer.varray(&user, &[sizes.len() as u64], &sizes, elements, false),
    }
}

/// The description of an array, and how its data are stored.
fn field(content: &Dataset, node: &Node, own: &ArrayDesc) -> Result<(Field, Data)> {
    let tree = content.tree();
    let desc = tree.resolve(own)?;
    if desc.layout.frames().is_some() {
        return Err(no_frames());
    }
    // Elements that are not contiguous bytes are read, which makes them little-endian.
    let read = desc.layout.is_always_little() || desc.layout.is_scattered();
    let dtype = if read { desc.dtype.with_order(ByteOrder::Little) } else { desc.dtype };
    let mut field = Field::new(&node.path, dtype);
    if own.dims != ArrayDesc::default_dims(own.dims.len()) {
        field.dims.clone_from(&own.dims);
    }
    field.coords = coords_to_meta(tree, &own.coords);
    field.map = own.map.map(Into::into);
    field.attrs.clone_from(&node.attrs);
    let shape = desc.shape.lengths();
    if let Some(starts) = desc.ragged() {
        let table = (starts.len() as u64).saturating_mul(16);
        content.limits().allow(table, "the table of element sizes")?;
        let sizes: Vec<u64> = starts.windows(2).map(|w| w[1].saturating_sub(w[0])).collect();
        let item = desc.dtype.size() as u64;
        if !sizes.iter().all(|size| size.is_multiple_of(item)) {
            field.dtype = DType::opaque(1);
        }
        if shape.len() != 1 {
            (field.dims, field.coords) = (Vec::new(), Vec::new());
        }
        return Ok((field, Data::Varray(sizes)));
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
    field.bytes()?;
    Ok((field, split.map_or(Data::Block, |(count, _)| Data::Array(count))))
}
