//! Object headers (section IV.A): the messages of a group, a dataset or a named datatype.

use spile_core::error::{Error, Result};

use super::{Context, Fields};

/// Message of errors about shared object header messages that are stored in a heap.
pub(crate) const SHARED_HEAP: &str = "shared object header message tables are not supported";

/// Message types.
pub(crate) mod kind {
    pub(crate) const DATASPACE: u16 = 0x01;
    pub(crate) const LINK_INFO: u16 = 0x02;
    pub(crate) const DATATYPE: u16 = 0x03;
    pub(crate) const OLD_FILL_VALUE: u16 = 0x04;
    pub(crate) const FILL_VALUE: u16 = 0x05;
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

/// A header message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) kind: u16,
    pub(crate) body: Vec<u8>,
    /// The address of the body.
    pub(crate) at: u64,
    /// The body is a reference to a shared message.
    pub(crate) shared: bool,
    /// Creation order among messages of the same type; 0 if not tracked.
    pub(crate) order: u64,
}

/// All messages of an object.
#[derive(Clone, Debug)]
pub(crate) struct Header {
    pub(crate) address: u64,
    pub(crate) messages: Vec<Message>,
}

impl Header {
    /// Reads the header at `address`, version 1 or 2, with its continuation blocks.
    pub(crate) fn read(ctx: &Context, address: u64) -> Result<Self> {
        let opening = ctx.read(address, 6, "object header")?;
        if opening.starts_with(b"OHDR") {
            Self::version_2(ctx, address, opening[5])
        } else {
            Self::version_1(ctx, address)
        }
    }

    /// The first message of type `kind`.
    pub(crate) fn find(&self, kind: u16) -> Option<&Message> {
        self.messages.iter().find(|m| m.kind == kind)
    }

    /// All messages of type `kind`.
    pub(crate) fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |m| m.kind == kind)
    }

    /// Version 1 (section IV.A.1.a).
    fn version_1(ctx: &Context, address: u64) -> Result<Self> {
        let prefix = ctx.read(address, 16, "object header")?;
        let mut fields = ctx.fields(&prefix, address);
        fields.version(&[1], "object header")?;
        fields.skip(1)?;
        let count = fields.u16()?;
        fields.u32()?;
        let len = u64::from(fields.u32()?);
        let at = address.saturating_add(16);
        let bytes = ctx.read(at, len, "object header")?;
        ctx.record_region(ctx.file_offset(address), 16 + len, "object header");
        Self { address, messages: Vec::new() }.read_messages(
            ctx,
            (at, bytes),
            count.into(),
            1,
            false,
        )
    }

    /// Version 2 (section IV.A.1.b).
    fn version_2(ctx: &Context, address: u64, flags: u8) -> Result<Self> {
        let size_bytes = 1_usize << (flags & 3);
        let times = if flags & 0x20 != 0 { 16 } else { 0 };
        let phases = if flags & 0x10 != 0 { 4 } else { 0 };
        let prefix_len = 6 + times + phases + size_bytes;
        let prefix = ctx.read(address, prefix_len as u64, "object header")?;
        let mut fields = ctx.fields(&prefix, address);
        fields.expect(*b"OHDR")?;
        fields.version(&[2], "object header")?;
        fields.skip(1 + times + phases)?;
        let len = fields.uint(size_bytes)?;
        let total = len.saturating_add(prefix_len as u64 + 4);
        let bytes = ctx.read_checked(address, total, b"OHDR", "object header")?;
        let at = address.saturating_add(prefix_len as u64);
        let block = (at, bytes[prefix_len - 4..].to_vec());
        let header = Self { address, messages: Vec::new() };
        header.read_messages(ctx, block, usize::MAX, 2, flags & 4 != 0)
    }

    /// Reads up to `count` messages of a header of version 1 or 2 from `block`, its address and bytes, and from
    /// its continuation blocks. `tracked` says that messages have a creation order.
    fn read_messages(
        mut self,
        ctx: &Context,
        block: (u64, Vec<u8>),
        count: usize,
        version: u8,
        tracked: bool,
    ) -> Result<Self> {
        let prefix = match (version, tracked) {
            (1, _) => 8,
            (_, true) => 6,
            (_, false) => 4,
        };
        let mut blocks = vec![block];
        while let Some((at, bytes)) = blocks.pop() {
            let mut fields = ctx.fields(&bytes, at);
            // A rest shorter than a message prefix is a gap.
            while fields.remaining() >= prefix && self.messages.len() < count {
                let kind = if version == 1 { fields.u16()? } else { u16::from(fields.u8()?) };
                let (size, flags) = (fields.u16()?, fields.u8()?);
                fields.skip(if version == 1 { 3 } else { 0 })?;
                let order = if tracked { u64::from(fields.u16()?) } else { 0 };
                let at = fields.offset() - ctx.base;
                let body = fields.take(usize::from(size))?.to_vec();
                ctx.charge(u64::from(size))?;
                if kind == kind::CONTINUATION {
                    let name = "object header continuation";
                    let mut fields = ctx.fields(&body, at);
                    let (at, len) = (fields.required_address(name)?, fields.length()?);
                    blocks.push(match version {
                        1 => (at, ctx.read_structure(at, len, name)?),
                        _ => (at + 4, ctx.read_checked(at, len, b"OCHK", name)?),
                    });
                }
                self.messages.push(Message { kind, body, at, shared: flags & 2 != 0, order });
            }
        }
        Ok(self)
    }
}

/// The message itself, or the message that a shared one refers to (section IV.A.2.i).
pub(crate) fn resolve_shared(ctx: &Context, message: &Message) -> Result<Message> {
    if !message.shared {
        return Ok(message.clone());
    }
    let mut fields = ctx.fields(&message.body, message.at);
    let target = shared_address(&mut fields)?;
    let header = Header::read(ctx, target)?;
    let found = header.find(message.kind).filter(|m| !m.shared).cloned();
    found.ok_or_else(|| {
        ctx.malformed(message.at, "shared message not found in the object header it refers to")
    })
}

/// The address of the object header that contains a shared message. Fails with `Unsupported` for
/// messages in the shared object header message heap.
pub(crate) fn shared_address(fields: &mut Fields<'_>) -> Result<u64> {
    let version = fields.version(&[1, 2, 3], "shared message")?;
    let location = fields.u8()?;
    if version == 3 && location == 1 {
        let at = fields.offset();
        return Err(Error::unsupported("hdf5-016", SHARED_HEAP).at(at));
    }
    if version == 1 {
        fields.skip(6)?;
    }
    fields.required_address("shared message")
}
