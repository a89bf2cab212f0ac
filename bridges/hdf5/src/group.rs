//! What is in a group: links, in messages of its header, in a heap, or in an old symbol table.

use spile_core::error::Result;

use crate::btree::{SecondTree, each_first};
use crate::header::{Header, kind};
use crate::heap::{FractalHeap, LocalHeap};
use crate::wire::{Fields, Ground};

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An object of this file.
    Hard(u64),
    /// A path in this file.
    Soft(String),
    /// Another file, or something of a program.
    Outside,
}

/// A name in a group.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) target: Target,
    /// When it was made, where the group keeps that.
    order: Option<u64>,
}

/// Its header is that of a group.
pub(crate) fn is_group(header: &Header) -> bool {
    let kinds = [kind::SYMBOL_TABLE, kind::LINK_INFO, kind::LINK, kind::GROUP_INFO];
    kinds.iter().any(|k| header.find(*k).is_some())
}

/// The links of a group, in the order in which they were made where that is known.
pub(crate) fn links(ground: &Ground, header: &Header) -> Result<Vec<Link>> {
    let mut found = Vec::new();
    if let Some(message) = header.find(kind::SYMBOL_TABLE) {
        let mut fields = ground.fields(&message.body, message.at);
        let tree = fields.needed("the B-tree of a group")?;
        let heap = LocalHeap::read(ground, fields.needed("the names of a group")?)?;
        each_first(ground, tree, 0, ground.sizes.length, &mut |_, node| {
            symbols(ground, node, &heap, &mut found)
        })?;
    }
    for message in header.all(kind::LINK) {
        let mut fields = ground.fields(&message.body, message.at);
        found.push(link(ground, &mut fields)?);
    }
    if let Some(message) = header.find(kind::LINK_INFO) {
        let mut fields = ground.fields(&message.body, message.at);
        fields.version(&[0], "information on links")?;
        let flags = fields.u8()?;
        if flags & 1 != 0 {
            fields.u64()?;
        }
        let (heap, tree) = (fields.address()?, fields.address()?);
        if let (Some(heap), Some(tree)) = (heap, tree) {
            let heap = FractalHeap::open(ground, heap)?;
            SecondTree::open(ground, tree, "index of links")?.each(&mut |record, at| {
                // A hash of the name before the identifier (type 5).
                let mut fields = ground.fields(record, at);
                fields.skip(4)?;
                let (bytes, at) = heap.object(fields.take(heap.id_len())?)?;
                found.push(link(ground, &mut ground.fields(&bytes, at))?);
                Ok(())
            })?;
        }
    }
    // A stable order: names that have no number stay as they are.
    found.sort_by_key(|link| link.order);
    Ok(found)
}

/// A link message (section IV.A.2.g).
fn link(ground: &Ground, fields: &mut Fields<'_>) -> Result<Link> {
    fields.version(&[1], "a link")?;
    let flags = fields.u8()?;
    let kind = if flags & 8 != 0 { fields.u8()? } else { 0 };
    let order = if flags & 4 != 0 { Some(fields.u64()?) } else { None };
    if flags & 16 != 0 {
        fields.skip(1)?;
    }
    let len = fields.uint(1 << (flags & 3))?;
    let len = usize::try_from(len).map_err(|_| fields.broken("a name longer than any"))?;
    let name = fields.name(len)?;
    ground.charge(name.len() as u64)?;
    let target = match kind {
        0 => Target::Hard(fields.needed("a linked object")?),
        1 => {
            let len = usize::from(fields.u16()?);
            Target::Soft(fields.name(len)?)
        }
        _ => Target::Outside,
    };
    Ok(Link { name, target, order })
}

/// A node of symbols of an old group (section III.B).
fn symbols(ground: &Ground, address: u64, heap: &LocalHeap, found: &mut Vec<Link>) -> Result<()> {
    let prefix = ground.fetch(address, 8, "symbol table")?;
    let mut fields = ground.fields(&prefix, address);
    fields.expect(*b"SNOD")?;
    fields.version(&[1], "a symbol table")?;
    fields.skip(1)?;
    let count = fields.u16()?;
    let entry = 2 * ground.sizes.offset + 24;
    let len = 8 + usize::from(count) * entry;
    let bytes = ground.structure(address, len as u64, "symbol table")?;
    let mut fields = ground.fields(&bytes, address);
    fields.skip(8)?;
    for _ in 0..count {
        let name = heap.text(ground, fields.uint(ground.sizes.offset)?)?;
        let object = fields.address()?;
        let cached = fields.u32()?;
        fields.skip(4)?;
        let scratch = fields.take(16)?;
        ground.charge(name.len() as u64)?;
        let target = match (cached, object) {
            // A soft link keeps the place of its path there.
            (2, _) => {
                let place = ground.fields(scratch, address).u32()?;
                Target::Soft(heap.text(ground, u64::from(place))?)
            }
            (_, Some(object)) => Target::Hard(object),
            (_, None) => return Err(ground.broken(address, format!("\"{name}\" leads nowhere"))),
        };
        found.push(Link { name, target, order: None });
    }
    Ok(())
}
