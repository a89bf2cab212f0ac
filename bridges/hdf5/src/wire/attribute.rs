//! Attributes (section IV.A.2.m) as they are stored: in header messages or in a fractal heap.

use spile_core::error::{Error, Result};

use super::btree::BTreeV2;
use super::datatype::Datatype;
use super::header::{Header, Message, SHARED_HEAP, kind, resolve_shared};
use super::heap::FractalHeap;
use super::messages::Dataspace;
use super::{Context, Fields, Readable};

/// A stored attribute.
#[derive(Clone, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) datatype: Datatype,
    pub(crate) space: Dataspace,
    pub(crate) data: Vec<u8>,
    /// Address of `data`.
    pub(crate) at: u64,
    order: u64,
}

impl Attribute {
    /// Approximate size in memory, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        (self.data.len() + self.name.len() + 256) as u64 + self.datatype.memory()
    }
}

/// The attributes of an object in creation order, and the errors of those that cannot be read. Fails
/// only with errors that are not about one attribute ([`is_fatal`](super::is_fatal)).
pub(crate) fn attributes(ctx: &Context, header: &Header) -> Result<Readable<Attribute>> {
    let mut read = Readable::new();
    for message in header.all(kind::ATTRIBUTE) {
        let attribute = if message.shared {
            Err(shared(ctx.file_offset(message.at)))
        } else {
            attribute(ctx, &message.body, message.at, message.order)
        };
        read.add(ctx, attribute)?;
    }
    if let Some(message) = header.find(kind::ATTRIBUTE_INFO) {
        let mut fields = ctx.fields(&message.body, message.at);
        let done = dense_attributes(ctx, &mut fields, &mut read);
        read.add_all(ctx, done)?;
    }
    read.found.sort_by_key(|attribute| attribute.order);
    Ok(read)
}

fn shared(at: u64) -> Error {
    Error::unsupported("hdf5-016", SHARED_HEAP).at(at)
}

/// Attributes in a fractal heap, found by the attribute info message (section IV.A.2.v).
fn dense_attributes(
    ctx: &Context,
    fields: &mut Fields<'_>,
    read: &mut Readable<Attribute>,
) -> Result<()> {
    fields.version(&[0], "attribute info")?;
    if fields.u8()? & 1 != 0 {
        fields.u16()?;
    }
    let (Some(heap), Some(tree)) = (fields.address()?, fields.address()?) else { return Ok(()) };
    let heap = FractalHeap::open(ctx, heap)?;
    BTreeV2::open(ctx, tree, "index of attributes")?.for_each(&mut |record, at| {
        // Heap identifier, flags, creation order (record types 8 and 9).
        let mut fields = ctx.fields(record, at);
        let id = fields.take(heap.id_len())?;
        let is_shared = fields.u8()? & 2 != 0;
        let order = u64::from(fields.u32()?);
        let found = if is_shared {
            Err(shared(ctx.file_offset(at)))
        } else {
            heap.object(id).and_then(|(bytes, at)| attribute(ctx, &bytes, at, order))
        };
        read.add(ctx, found)
    })
}

fn attribute(ctx: &Context, bytes: &[u8], at: u64, order: u64) -> Result<Attribute> {
    let mut fields = ctx.fields(bytes, at);
    let version = fields.version(&[1, 2, 3], "attribute")?;
    let flags = fields.u8()?;
    let lens = [fields.u16()?, fields.u16()?, fields.u16()?];
    if version == 3 {
        fields.skip(1)?;
    }
    // Rounding up can exceed 16 bits.
    let [name_len, type_len, space_len] =
        lens.map(usize::from).map(|len| if version == 1 { len.next_multiple_of(8) } else { len });
    let name = fields.string(name_len)?;
    let mut rest = || -> Result<(Datatype, Dataspace, u64, Vec<u8>)> {
        let mut part = |len: usize| -> Result<(u64, &[u8])> {
            Ok((fields.offset() - ctx.base, fields.take(len)?))
        };
        let ((type_at, type_bytes), (space_at, space_bytes)) = (part(type_len)?, part(space_len)?);
        let (kind, body, shared) =
            (kind::DATATYPE, type_bytes.to_vec(), version > 1 && flags & 1 != 0);
        let datatype = datatype_of(ctx, &Message { kind, body, at: type_at, shared, order: 0 })?;
        let space = Dataspace::read(&mut ctx.fields(space_bytes, space_at))?;
        let at = fields.offset() - ctx.base;
        let len = fields.remaining();
        Ok((datatype, space, at, fields.take(len)?.to_vec()))
    };
    let (datatype, space, at, data) =
        rest().map_err(|e| e.in_object(format!("attribute \"{name}\"")))?;
    let attribute = Attribute { name, datatype, space, data, at, order };
    ctx.charge(attribute.memory())?;
    Ok(attribute)
}

/// The datatype of a message, which may refer to a named datatype.
pub(crate) fn datatype_of(ctx: &Context, message: &Message) -> Result<Datatype> {
    let message = resolve_shared(ctx, message)?;
    Datatype::read(&mut ctx.fields(&message.body, message.at))
}
