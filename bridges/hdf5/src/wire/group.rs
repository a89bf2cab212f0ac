//! Links of a group: in messages of its header, in a fractal heap, or in an old symbol table.

use spile_core::error::Result;

use super::btree::{BTreeV2, for_each_v1};
use super::header::{Header, kind};
use super::heap::{FractalHeap, LocalHeap};
use super::{Context, Fields, Readable};

/// The target of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The address of an object header.
    Hard(u64),
    /// A path in this file.
    Soft(String),
    /// Another file, or a user-defined link.
    External,
}

/// A link of a group.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) target: Target,
    /// Creation order, if the group tracks it.
    order: Option<u64>,
}

/// Whether the object header is that of a group.
pub(crate) fn is_group(header: &Header) -> bool {
    let kinds = [kind::SYMBOL_TABLE, kind::LINK_INFO, kind::LINK, kind::GROUP_INFO];
    kinds.iter().any(|k| header.find(*k).is_some())
}

/// The links of a group, in creation order where it is tracked, and the errors of links that cannot be
/// read.
pub(crate) fn links(ctx: &Context, header: &Header) -> Result<Readable<Link>> {
    let mut links = Readable::new();
    if let Some(message) = header.find(kind::SYMBOL_TABLE) {
        let mut read = || {
            let mut fields = ctx.fields(&message.body, message.at);
            let tree = fields.required_address("B-tree of a group")?;
            let heap = LocalHeap::read(ctx, fields.required_address("local heap of a group")?)?;
            for_each_v1(ctx, tree, 0, ctx.sizes.length, &mut |_, node| {
                symbol_node(ctx, node, &heap, &mut links)
            })
        };
        let done = read();
        links.add_all(ctx, done)?;
    }
    for message in header.all(kind::LINK) {
        links.add(ctx, link(ctx, &mut ctx.fields(&message.body, message.at)))?;
    }
    if let Some(message) = header.find(kind::LINK_INFO) {
        let done = dense_links(ctx, &mut ctx.fields(&message.body, message.at), &mut links);
        links.add_all(ctx, done)?;
    }
    // The sort is stable: links without a creation order keep the order of the file.
    links.found.sort_by_key(|link| link.order);
    Ok(links)
}

/// Links in a fractal heap, found by the link info message (section IV.A.2.c).
fn dense_links(ctx: &Context, fields: &mut Fields<'_>, links: &mut Readable<Link>) -> Result<()> {
    fields.version(&[0], "link info")?;
    let flags = fields.u8()?;
    if flags & 1 != 0 {
        fields.u64()?;
    }
    let (Some(heap), Some(tree)) = (fields.address()?, fields.address()?) else { return Ok(()) };
    let heap = FractalHeap::open(ctx, heap)?;
    BTreeV2::open(ctx, tree, "index of links")?.for_each(&mut |record, at| {
        // The hash of the name precedes the heap identifier (record type 5).
        let mut fields = ctx.fields(record, at);
        fields.skip(4)?;
        let object = heap.object(fields.take(heap.id_len())?);
        links.add(ctx, object.and_then(|(bytes, at)| link(ctx, &mut ctx.fields(&bytes, at))))
    })
}

/// A link message (section IV.A.2.g).
fn link(ctx: &Context, fields: &mut Fields<'_>) -> Result<Link> {
    fields.version(&[1], "link")?;
    let flags = fields.u8()?;
    let kind = if flags & 8 != 0 { fields.u8()? } else { 0 };
    let order = if flags & 4 != 0 { Some(fields.u64()?) } else { None };
    if flags & 16 != 0 {
        fields.skip(1)?;
    }
    let len = fields.uint(1 << (flags & 3))?;
    let len = usize::try_from(len).map_err(|_| fields.malformed("link name too long"))?;
    ctx.charge(len as u64)?;
    let name = fields.string(len)?;
    let target = match kind {
        0 => {
            let address = fields.required_address("linked object");
            Target::Hard(address.map_err(|e| e.in_object(format!("\"{name}\"")))?)
        }
        1 => {
            let len = fields.u16()?;
            ctx.charge(u64::from(len))?;
            Target::Soft(fields.string(usize::from(len))?)
        }
        _ => Target::External,
    };
    Ok(Link { name, target, order })
}

/// A symbol table node of an old group (section III.B).
fn symbol_node(
    ctx: &Context,
    address: u64,
    heap: &LocalHeap,
    links: &mut Readable<Link>,
) -> Result<()> {
    let prefix = ctx.read(address, 8, "symbol table node")?;
    let mut fields = ctx.fields(&prefix, address);
    fields.expect(*b"SNOD")?;
    fields.version(&[1], "symbol table node")?;
    fields.skip(1)?;
    let count = fields.u16()?;
    let entry = 2 * ctx.sizes.offset + 24;
    let len = 8 + usize::from(count) * entry;
    let bytes = ctx.read_structure(address, len as u64, "symbol table node")?;
    for entry in bytes[8..].chunks_exact(entry) {
        links.add(ctx, symbol(ctx, entry, address, heap))?;
    }
    Ok(())
}

/// A symbol table entry (section III.C).
fn symbol(ctx: &Context, entry: &[u8], at: u64, heap: &LocalHeap) -> Result<Link> {
    let mut fields = ctx.fields(entry, at);
    let name = heap.text(ctx, fields.uint(ctx.sizes.offset)?)?;
    let object = fields.address()?;
    let cached = fields.u32()?;
    fields.skip(4)?;
    let scratch = fields.take(16)?;
    let target = match (cached, object) {
        // The scratch pad of a soft link has the heap offset of its path.
        (2, _) => {
            let offset = ctx.fields(scratch, at).u32()?;
            Target::Soft(heap.text(ctx, u64::from(offset))?)
        }
        (_, Some(object)) => Target::Hard(object),
        (_, None) => {
            let error = ctx.malformed(at, "symbol table entry without an object address");
            return Err(error.in_object(format!("\"{name}\"")));
        }
    };
    Ok(Link { name, target, order: None })
}
