//! Local heaps (names of old groups), fractal heaps (links and attributes of large groups) and global
//! heaps (variable-length data).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use spile_core::error::{Error, Result};

use super::btree::BTreeV2;
use super::{Context, bytes_for, text, verify};

/// A local heap: the names of an old group (section III.D).
pub(crate) struct LocalHeap {
    bytes: Vec<u8>,
    at: u64,
}

impl LocalHeap {
    pub(crate) fn read(ctx: &Context, address: u64) -> Result<Self> {
        let sizes = ctx.sizes;
        let len = 8 + 2 * sizes.length + sizes.offset;
        let bytes = ctx.read_structure(address, len as u64, "local heap")?;
        let mut fields = ctx.fields(&bytes, address);
        fields.expect(*b"HEAP")?;
        fields.version(&[0], "local heap")?;
        fields.skip(3)?;
        let size = fields.length()?;
        fields.length()?;
        let at = fields.required_address("local heap data")?;
        let bytes = ctx.read_structure(at, size, "local heap data")?;
        Ok(Self { bytes, at })
    }

    /// The string at `offset` of the heap. Its length is charged.
    pub(crate) fn text(&self, ctx: &Context, offset: u64) -> Result<String> {
        let rest = usize::try_from(offset).ok().and_then(|k| self.bytes.get(k..));
        let rest = rest.ok_or_else(|| {
            let len = self.bytes.len();
            ctx.malformed(self.at, format!("name at byte {offset} of a local heap of {len} bytes"))
        })?;
        let end = rest.iter().position(|b| *b == 0).unwrap_or(rest.len());
        ctx.charge(end as u64)?;
        Ok(text(&rest[..end]))
    }
}

/// A fractal heap: objects in blocks of doubling size (section III.G).
pub(crate) struct FractalHeap<'a> {
    ctx: &'a Context,
    address: u64,
    id_len: usize,
    offset_bytes: usize,
    length_bytes: usize,
    width: u64,
    first: u64,
    most_direct: u64,
    bits: u16,
    root: Option<u64>,
    /// Rows of the root indirect block; 0 if the root is a direct block.
    rows: u16,
    checked: bool,
    /// Address of the B-tree of huge objects, and its records by identifier once they are read.
    huge: Option<u64>,
    huge_objects: RefCell<Option<HashMap<u64, (u64, u64)>>>,
    blocks: RefCell<HashMap<u64, Rc<Vec<u8>>>>,
}

/// Largest nesting of indirect blocks with 64-bit offsets.
const MAX_LEVELS: u32 = 64;

impl<'a> FractalHeap<'a> {
    pub(crate) fn open(ctx: &'a Context, address: u64) -> Result<Self> {
        let sizes = ctx.sizes;
        let len = 26 + 12 * sizes.length + 3 * sizes.offset;
        let bytes = ctx.read_checked(address, len as u64, b"FRHP", "fractal heap")?;
        let mut fields = ctx.fields(&bytes, address + 4);
        fields.version(&[0], "fractal heap")?;
        let id_len = usize::from(fields.u16()?);
        if fields.u16()? != 0 {
            let message = "filtered fractal heaps are not supported";
            return Err(Error::unsupported("hdf5-019", message).at(ctx.file_offset(address)));
        }
        let flags = fields.u8()?;
        let most_managed = u64::from(fields.u32()?);
        fields.length()?;
        let huge = fields.address()?;
        fields.length()?;
        fields.address()?;
        for _ in 0..8 {
            fields.length()?;
        }
        let width = u64::from(fields.u16()?);
        let (first, most_direct) = (fields.length()?, fields.length()?);
        let bits = fields.u16()?;
        fields.u16()?;
        let root = fields.address()?;
        let rows = fields.u16()?;
        let powers = first.is_power_of_two() && most_direct.is_power_of_two() && width > 0;
        if !powers || first > most_direct || bits == 0 || bits > 64 || id_len < 2 {
            return Err(ctx.malformed(address, "fractal heap with invalid sizes"));
        }
        let direct = (most_direct.ilog2() as usize).div_ceil(8);
        Ok(Self {
            ctx,
            address,
            id_len,
            offset_bytes: usize::from(bits).div_ceil(8),
            length_bytes: direct.min(bytes_for(most_managed)),
            width,
            first,
            most_direct,
            bits,
            root,
            rows,
            checked: flags & 2 != 0,
            huge,
            huge_objects: RefCell::new(None),
            blocks: RefCell::new(HashMap::new()),
        })
    }

    /// Size of a heap identifier in bytes.
    pub(crate) fn id_len(&self) -> usize {
        self.id_len
    }

    /// The bytes and the address of the object with this heap identifier.
    pub(crate) fn object(&self, id: &[u8]) -> Result<(Vec<u8>, u64)> {
        let malformed = |what: &str| self.ctx.malformed(self.address, what);
        let kind = id.first().copied().ok_or_else(|| malformed("empty heap identifier"))?;
        let mut fields = self.ctx.fields(&id[1..], self.address);
        match kind >> 4 {
            0 => {
                let offset = fields.uint(self.offset_bytes)?;
                let len = fields.uint(self.length_bytes)?;
                self.managed(offset, len)
            }
            1 => {
                let direct = self.ctx.sizes.offset + self.ctx.sizes.length < self.id_len;
                let (at, len) = if direct {
                    (fields.required_address("huge object")?, fields.length()?)
                } else {
                    let width = (self.id_len - 1).min(self.ctx.sizes.length);
                    self.find_huge(fields.uint(width)?)?
                };
                Ok((self.ctx.read_structure(at, len, "huge object")?, at))
            }
            2 => {
                // Identifiers of more than 18 bytes have a length of 12 bits.
                let (len, skipped) = if self.id_len <= 18 {
                    (usize::from(kind & 15) + 1, 1)
                } else {
                    let second = id.get(1).copied().unwrap_or(0);
                    ((usize::from(kind & 15) << 8 | usize::from(second)) + 1, 2)
                };
                let bytes = id.get(skipped..skipped + len);
                let bytes =
                    bytes.ok_or_else(|| malformed("tiny object longer than its identifier"))?;
                Ok((bytes.to_vec(), self.address))
            }
            _ => Err(malformed("unknown type of heap identifier")),
        }
    }

    /// Address and length of the huge object `id`. The index is read once.
    fn find_huge(&self, id: u64) -> Result<(u64, u64)> {
        let malformed = |what: &str| self.ctx.malformed(self.address, what);
        let mut cache = self.huge_objects.borrow_mut();
        let objects = if let Some(objects) = &mut *cache {
            objects
        } else {
            let tree = self.huge.ok_or_else(|| malformed("huge object without an index"))?;
            let mut objects = HashMap::new();
            BTreeV2::open(self.ctx, tree, "index of huge objects")?.for_each(
                &mut |record, at| {
                    let mut fields = self.ctx.fields(record, at);
                    let (address, len) = (fields.address()?, fields.length()?);
                    let id = fields.length()?;
                    self.ctx.charge(64)?;
                    objects.extend(address.map(|address| (id, (address, len))));
                    Ok(())
                },
            )?;
            cache.insert(objects)
        };
        let found = objects.get(&id).copied();
        found.ok_or_else(|| malformed("huge object not found in its index"))
    }

    fn managed(&self, offset: u64, len: u64) -> Result<(Vec<u8>, u64)> {
        let malformed =
            || self.ctx.malformed(self.address, format!("no heap object at offset {offset}"));
        let (start, size, at) = self.block_of(offset)?;
        let known = self.blocks.borrow().get(&at).cloned();
        let block = if let Some(block) = known {
            block
        } else {
            let bytes = Rc::new(self.direct(at, size)?);
            self.blocks.borrow_mut().insert(at, Rc::clone(&bytes));
            bytes
        };
        let from = usize::try_from(offset - start).map_err(|_| malformed())?;
        let bytes = from.checked_add(len as usize).and_then(|to| block.get(from..to));
        self.ctx.charge(len)?;
        Ok((bytes.ok_or_else(malformed)?.to_vec(), at.saturating_add(offset - start)))
    }

    fn direct(&self, at: u64, size: u64) -> Result<Vec<u8>> {
        let bytes = self.ctx.read_structure(at, size, "heap block")?;
        let mut fields = self.ctx.fields(&bytes, at);
        fields.expect(*b"FHDB")?;
        fields.version(&[0], "heap block")?;
        if self.checked {
            // The checksum is computed with zeros in its own field.
            let field = 5 + self.ctx.sizes.offset + self.offset_bytes;
            fields.skip(field - 5)?;
            let stored = fields.u32()?;
            let mut copy = bytes.clone();
            copy[field..field + 4].fill(0);
            verify(&copy, stored, self.ctx.file_offset(at), "heap block")?;
        }
        Ok(bytes)
    }

    /// The direct block with byte `offset` of the heap: its heap offset, size and address.
    fn block_of(&self, offset: u64) -> Result<(u64, u64, u64)> {
        let malformed =
            || self.ctx.malformed(self.address, format!("no heap block at offset {offset}"));
        let mut at = self.root.ok_or_else(malformed)?;
        if self.rows == 0 {
            return if offset < self.first { Ok((0, self.first, at)) } else { Err(malformed()) };
        }
        let direct_rows = u64::from((self.most_direct.ilog2() - self.first.ilog2()) + 2);
        let mut start = 0_u64;
        let mut rows = u64::from(self.rows);
        for _ in 0..MAX_LEVELS {
            // Rows 0 and 1 have blocks of the first size; each further row doubles it.
            let inside = offset.checked_sub(start).ok_or_else(malformed)?;
            let (mut row, mut before) = (0_u64, 0_u64);
            let size = loop {
                let size = self.row_size(row).ok_or_else(malformed)?;
                let all = size.checked_mul(self.width).ok_or_else(malformed)?;
                if inside - before < all {
                    break size;
                }
                before = before.checked_add(all).ok_or_else(malformed)?;
                row += 1;
            };
            if row >= rows {
                return Err(malformed());
            }
            let column = (inside - before) / size;
            let entry = row * self.width + column;
            let bytes = self.indirect(at, rows)?;
            let prefix = 1 + self.ctx.sizes.offset + self.offset_bytes;
            let from = prefix + entry as usize * self.ctx.sizes.offset;
            let mut fields = self.ctx.fields(bytes.get(from..).ok_or_else(malformed)?, at);
            at = fields.address()?.ok_or_else(malformed)?;
            start = start.checked_add(before + column * size).ok_or_else(malformed)?;
            if row < direct_rows {
                return Ok((start, size, at));
            }
            // The rows of an indirect block of `size` bytes.
            let first_row = self.first.checked_mul(self.width).ok_or_else(malformed)?;
            rows = u64::from(size.ilog2().saturating_sub(first_row.ilog2())) + 1;
        }
        Err(malformed())
    }

    fn row_size(&self, row: u64) -> Option<u64> {
        let doublings = u32::try_from(row.saturating_sub(1)).ok()?;
        1_u64.checked_shl(doublings).and_then(|n| n.checked_mul(self.first))
    }

    fn indirect(&self, at: u64, rows: u64) -> Result<Rc<Vec<u8>>> {
        if let Some(known) = self.blocks.borrow().get(&at) {
            return Ok(Rc::clone(known));
        }
        // A heap has at most one row per bit of its offsets.
        let rows = rows.min(u64::from(self.bits));
        let entries = rows.saturating_mul(self.width);
        let prefix = 5 + self.ctx.sizes.offset + self.offset_bytes;
        let len = entries.saturating_mul(self.ctx.sizes.offset as u64);
        let len = len.saturating_add(prefix as u64 + 4);
        let bytes = self.ctx.read_checked(at, len, b"FHIB", "heap indirect block")?;
        self.ctx.fields(&bytes, at + 4).version(&[0], "heap indirect block")?;
        let bytes = Rc::new(bytes);
        self.blocks.borrow_mut().insert(at, Rc::clone(&bytes));
        Ok(bytes)
    }
}

/// The data of an object in a global heap collection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HeapObject {
    pub(crate) address: u64,
    pub(crate) len: u64,
}

/// Global heap collections that have been read (section III.E).
#[derive(Default)]
pub(crate) struct GlobalHeaps {
    known: RefCell<HashMap<u64, Rc<HashMap<u32, HeapObject>>>>,
}

impl GlobalHeaps {
    /// Location of object `index` of the collection at `address`.
    pub(crate) fn object(&self, ctx: &Context, address: u64, index: u32) -> Result<HeapObject> {
        let known = self.known.borrow().get(&address).cloned();
        let objects = if let Some(objects) = known {
            objects
        } else {
            let objects = Rc::new(collection(ctx, address)?);
            self.known.borrow_mut().insert(address, Rc::clone(&objects));
            objects
        };
        objects.get(&index).copied().ok_or_else(|| {
            ctx.malformed(address, format!("global heap collection has no object {index}"))
        })
    }
}

fn collection(ctx: &Context, address: u64) -> Result<HashMap<u32, HeapObject>> {
    let prefix_len = 8 + ctx.sizes.length as u64;
    let prefix = ctx.read(address, prefix_len, "global heap")?;
    let mut fields = ctx.fields(&prefix, address);
    fields.expect(*b"GCOL")?;
    fields.version(&[1], "global heap")?;
    fields.skip(3)?;
    let size = fields.length()?;
    if size < prefix_len {
        return Err(ctx.malformed(address, "global heap collection shorter than its header"));
    }
    let bytes = ctx.read_structure(address, size, "global heap")?;
    let mut fields = ctx.fields(&bytes, address);
    fields.skip(prefix_len as usize)?;
    let mut objects = HashMap::new();
    while fields.remaining() >= prefix_len as usize {
        let index = u32::from(fields.u16()?);
        fields.skip(6)?;
        let len = fields.length()?;
        // Object 0 is free space.
        if index == 0 {
            break;
        }
        let address = fields.offset() - ctx.base;
        let padded = len.checked_next_multiple_of(8).and_then(|n| usize::try_from(n).ok());
        let padded = padded.filter(|n| *n <= fields.remaining());
        let padded = padded
            .ok_or_else(|| ctx.malformed(address, "object exceeds its global heap collection"))?;
        fields.skip(padded)?;
        ctx.charge(32)?;
        objects.insert(index, HeapObject { address, len });
    }
    Ok(objects)
}
