//! Object headers (section IV.A): the messages that describe a group, a dataset or a type.

use spile_core::error::{Error, Result};

use crate::wire::{Fields, Ground, verify};

/// Kinds of messages.
pub(crate) mod kind {
    pub(crate) const SPACE: u16 = 0x01;
    pub(crate) const LINK_INFO: u16 = 0x02;
    pub(crate) const TYPE: u16 = 0x03;
    pub(crate) const OLD_FILL: u16 = 0x04;
    pub(crate) const FILL: u16 = 0x05;
    pub(crate) const LINK: u16 = 0x06;
    pub(crate) const EXTERNAL: u16 = 0x07;
    pub(crate) const LAYOUT: u16 = 0x08;
    pub(crate) const GROUP_INFO: u16 = 0x0a;
    pub(crate) const FILTERS: u16 = 0x0b;
    pub(crate) const ATTRIBUTE: u16 = 0x0c;
    pub(crate) const CONTINUATION: u16 = 0x10;
    pub(crate) const SYMBOL_TABLE: u16 = 0x11;
    pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;
}

/// One message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) kind: u16,
    pub(crate) body: Vec<u8>,
    /// The address of the body.
    pub(crate) at: u64,
    /// It stands somewhere else; the body says where.
    pub(crate) shared: bool,
    /// When it was made, among its kind.
    pub(crate) order: u64,
}

/// All messages of an object.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) address: u64,
    pub(crate) messages: Vec<Message>,
}

/// Bytes of messages at an address.
struct Block {
    at: u64,
    bytes: Vec<u8>,
}

impl Header {
    pub(crate) fn read(ground: &Ground, address: u64) -> Result<Self> {
        let opening = ground.fetch(address, 6, "object header")?;
        if opening.starts_with(b"OHDR") {
            Self::second(ground, address, opening[5])
        } else {
            Self::first(ground, address)
        }
    }

    /// The first message of a kind.
    pub(crate) fn find(&self, kind: u16) -> Option<&Message> {
        self.messages.iter().find(|m| m.kind == kind)
    }

    /// All messages of a kind.
    pub(crate) fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |m| m.kind == kind)
    }

    /// Version 1 (section IV.A.1.a).
    fn first(ground: &Ground, address: u64) -> Result<Self> {
        let prefix = ground.fetch(address, 16, "object header")?;
        let mut fields = ground.fields(&prefix, address);
        fields.version(&[1], "an object header")?;
        fields.skip(1)?;
        let count = fields.u16()?;
        fields.u32()?;
        let len = u64::from(fields.u32()?);
        let at = address.saturating_add(16);
        let bytes = ground.fetch(at, len, "object header")?;
        ground.note(ground.place(address), 16 + len, "object header");
        let mut blocks = vec![Block { at, bytes }];
        let mut messages = Vec::new();
        while let Some(block) = blocks.pop() {
            let mut fields = ground.fields(&block.bytes, block.at);
            while fields.wire.remaining() >= 8 && messages.len() < usize::from(count) {
                let kind = fields.u16()?;
                let size = usize::from(fields.u16()?);
                let flags = fields.u8()?;
                fields.skip(3)?;
                let message = message(ground, &mut fields, kind, size, flags)?;
                if kind == kind::CONTINUATION {
                    let (at, len) = continuation(ground, &message)?;
                    let bytes = ground.structure(at, len, "object header, continued")?;
                    blocks.push(Block { at, bytes });
                }
                messages.push(message);
            }
        }
        Ok(Self { address, messages })
    }

    /// Version 2 (section IV.A.1.b).
    fn second(ground: &Ground, address: u64, flags: u8) -> Result<Self> {
        let size_bytes = 1_usize << (flags & 3);
        let times = if flags & 0x20 != 0 { 16 } else { 0 };
        let phases = if flags & 0x10 != 0 { 4 } else { 0 };
        let prefix_len = 6 + times + phases + size_bytes;
        let prefix = ground.fetch(address, prefix_len as u64, "object header")?;
        let mut fields = ground.fields(&prefix, address);
        fields.expect(*b"OHDR")?;
        fields.version(&[2], "an object header")?;
        fields.skip(1 + times + phases)?;
        let len = fields.uint(size_bytes)?;
        let whole = len.saturating_add(prefix_len as u64 + 4);
        let bytes = ground.structure(address, whole, "object header")?;
        let sum = bytes.len() - 4;
        verify(&bytes[..sum], last_word(&bytes), ground.place(address), "object header")?;
        let at = address.saturating_add(prefix_len as u64);
        let mut blocks = vec![Block { at, bytes: bytes[prefix_len..sum].to_vec() }];
        let mut messages = Vec::new();
        let tracked = flags & 4 != 0;
        let prefix = if tracked { 6 } else { 4 };
        while let Some(block) = blocks.pop() {
            let mut fields = ground.fields(&block.bytes, block.at);
            // What is too short for a message is a gap.
            while fields.wire.remaining() >= prefix {
                let kind = u16::from(fields.u8()?);
                let size = usize::from(fields.u16()?);
                let flags = fields.u8()?;
                let order = if tracked { fields.u16()? } else { 0 };
                let mut message = message(ground, &mut fields, kind, size, flags)?;
                message.order = u64::from(order);
                if kind == kind::CONTINUATION {
                    let (at, len) = continuation(ground, &message)?;
                    let bytes = ground.structure(at, len, "object header, continued")?;
                    blocks.push(second_block(ground, at, &bytes)?);
                }
                messages.push(message);
            }
        }
        Ok(Self { address, messages })
    }
}

/// A block of messages of version 2 between its letters and its checksum.
fn second_block(ground: &Ground, at: u64, bytes: &[u8]) -> Result<Block> {
    if bytes.len() < 8 || !bytes.starts_with(b"OCHK") {
        let message = "a continued object header begins with OCHK";
        return Err(Error::malformed("hdf5-005", message).at(ground.place(at)));
    }
    let sum = bytes.len() - 4;
    verify(&bytes[..sum], last_word(bytes), ground.place(at), "object header")?;
    Ok(Block { at: at + 4, bytes: bytes[4..sum].to_vec() })
}

/// The last four bytes as a number.
pub(crate) fn last_word(bytes: &[u8]) -> u32 {
    bytes.last_chunk().copied().map_or(0, u32::from_le_bytes)
}

fn message(
    ground: &Ground,
    fields: &mut Fields<'_>,
    kind: u16,
    size: usize,
    flags: u8,
) -> Result<Message> {
    let at = fields.wire.offset() - ground.base;
    let body = fields.take(size)?.to_vec();
    ground.charge(size as u64)?;
    Ok(Message { kind, body, at, shared: flags & 2 != 0, order: 0 })
}

fn continuation(ground: &Ground, message: &Message) -> Result<(u64, u64)> {
    let mut fields = ground.fields(&message.body, message.at);
    Ok((fields.needed("the rest of an object header")?, fields.length()?))
}

/// The message itself where it is kept somewhere else (section IV.A.2.i): a committed type.
pub(crate) fn resolve(ground: &Ground, message: &Message) -> Result<Message> {
    if !message.shared {
        return Ok(message.clone());
    }
    let mut fields = ground.fields(&message.body, message.at);
    let target = shared_address(&mut fields)?;
    let header = Header::read(ground, target)?;
    let found = header.find(message.kind).filter(|m| !m.shared).cloned();
    found.ok_or_else(|| ground.broken(message.at, "a shared message is not where it should be"))
}

/// The header that holds a shared message.
pub(crate) fn shared_address(fields: &mut Fields<'_>) -> Result<u64> {
    let version = fields.version(&[1, 2, 3], "a shared message")?;
    let place = fields.u8()?;
    if version == 3 && place == 1 {
        let at = fields.wire.offset();
        let message = "messages that are shared in a heap of the file";
        return Err(Error::unsupported("hdf5-007", message).at(at));
    }
    if version == 1 {
        fields.skip(6)?;
    }
    fields.needed("a shared message")
}
