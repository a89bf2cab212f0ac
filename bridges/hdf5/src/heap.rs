//! Heaps: names of old groups, links and attributes of large new ones, elements of different lengths.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use spile_core::error::{Error, Result};

use crate::btree::SecondTree;
use crate::header::last_word;
use crate::wire::{Ground, bytes_for, text, verify};

/// The names of an old group (section III.D).
pub(crate) struct LocalHeap {
    bytes: Vec<u8>,
    at: u64,
}

impl LocalHeap {
    pub(crate) fn read(ground: &Ground, address: u64) -> Result<Self> {
        let sizes = ground.sizes;
        let len = 8 + 2 * sizes.length + sizes.offset;
        let bytes = ground.structure(address, len as u64, "local heap")?;
        let mut fields = ground.fields(&bytes, address);
        fields.expect(*b"HEAP")?;
        fields.version(&[0], "a local heap")?;
        fields.skip(3)?;
        let size = fields.length()?;
        fields.length()?;
        let at = fields.needed("the data of a local heap")?;
        let bytes = ground.structure(at, size, "names of a group")?;
        Ok(Self { bytes, at })
    }

    /// The text at a place of the heap.
    pub(crate) fn text(&self, ground: &Ground, offset: u64) -> Result<String> {
        let rest = usize::try_from(offset).ok().and_then(|k| self.bytes.get(k..));
        rest.map(text).ok_or_else(|| {
            ground.broken(self.at, format!("a name at {offset} of a heap that ends before"))
        })
    }
}

/// Objects of up to some kilobytes in blocks that double (section III.G).
pub(crate) struct FractalHeap<'a> {
    ground: &'a Ground,
    address: u64,
    id_len: usize,
    offset_bytes: usize,
    length_bytes: usize,
    width: u64,
    first: u64,
    most_direct: u64,
    bits: u16,
    root: Option<u64>,
    /// Rows of the root where it is no direct block.
    rows: u16,
    checked: bool,
    huge: Option<u64>,
    blocks: RefCell<HashMap<u64, Rc<Vec<u8>>>>,
}

/// The deepest nesting of indirect blocks that 64-bit offsets allow.
const LEVELS: u32 = 64;

impl<'a> FractalHeap<'a> {
    pub(crate) fn open(ground: &'a Ground, address: u64) -> Result<Self> {
        let sizes = ground.sizes;
        let len = 26 + 12 * sizes.length + 3 * sizes.offset - 4;
        let bytes = ground.structure(address, len as u64 + 4, "fractal heap")?;
        let mut fields = ground.fields(&bytes, address);
        fields.expect(*b"FRHP")?;
        fields.version(&[0], "a fractal heap")?;
        let id_len = usize::from(fields.u16()?);
        if fields.u16()? != 0 {
            let message = "a heap of names with filters";
            return Err(Error::unsupported("hdf5-007", message).at(ground.place(address)));
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
        let sum = bytes.len() - 4;
        verify(&bytes[..sum], last_word(&bytes), ground.place(address), "fractal heap")?;
        let powers = first.is_power_of_two() && most_direct.is_power_of_two() && width > 0;
        if !powers || first > most_direct || bits == 0 || bits > 64 || id_len < 2 {
            return Err(ground.broken(address, "a fractal heap with impossible sizes"));
        }
        let direct = (most_direct.ilog2() as usize).div_ceil(8);
        Ok(Self {
            ground,
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
            blocks: RefCell::new(HashMap::new()),
        })
    }

    /// Bytes of an identifier.
    pub(crate) fn id_len(&self) -> usize {
        self.id_len
    }

    /// The object with this identifier, and its address.
    pub(crate) fn object(&self, id: &[u8]) -> Result<(Vec<u8>, u64)> {
        let broken = |what: &str| self.ground.broken(self.address, what);
        let kind = id.first().copied().ok_or_else(|| broken("an empty identifier"))?;
        let mut fields = self.ground.fields(&id[1..], self.address);
        match kind >> 4 {
            0 => {
                let offset = fields.uint(self.offset_bytes)?;
                let len = fields.uint(self.length_bytes)?;
                self.managed(offset, len)
            }
            1 => {
                let direct = self.ground.sizes.offset + self.ground.sizes.length < self.id_len;
                let (at, len) = if direct {
                    (fields.needed("a huge object")?, fields.length()?)
                } else {
                    let width = (self.id_len - 1).min(self.ground.sizes.length);
                    self.find_huge(fields.uint(width)?)?
                };
                Ok((self.ground.structure(at, len, "huge object")?, at))
            }
            2 => {
                // Longer identifiers have a longer field for the length.
                let (len, skipped) = if self.id_len <= 18 {
                    (usize::from(kind & 15) + 1, 1)
                } else {
                    let second = id.get(1).copied().unwrap_or(0);
                    ((usize::from(kind & 15) << 8 | usize::from(second)) + 1, 2)
                };
                let bytes = id.get(skipped..skipped + len);
                let bytes = bytes.ok_or_else(|| broken("a tiny object longer than its place"))?;
                Ok((bytes.to_vec(), self.address))
            }
            _ => Err(broken("an unknown kind of identifier")),
        }
    }

    fn find_huge(&self, wanted: u64) -> Result<(u64, u64)> {
        let broken = |what: &str| self.ground.broken(self.address, what);
        let tree = self.huge.ok_or_else(|| broken("a huge object without an index"))?;
        let mut found = None;
        SecondTree::open(self.ground, tree, "index of huge objects")?.each(&mut |record, at| {
            let mut fields = self.ground.fields(record, at);
            let place = (fields.address()?, fields.length()?);
            if fields.length()? == wanted {
                found = Some(place);
            }
            Ok(())
        })?;
        match found {
            Some((Some(at), len)) => Ok((at, len)),
            _ => Err(broken("a huge object that is not in its index")),
        }
    }

    fn managed(&self, offset: u64, len: u64) -> Result<(Vec<u8>, u64)> {
        let broken = || self.ground.broken(self.address, format!("no object at {offset}"));
        let (start, size, at) = self.block_of(offset)?;
        let known = self.blocks.borrow().get(&at).cloned();
        let block = if let Some(block) = known {
            block
        } else {
            let bytes = Rc::new(self.direct(at, size)?);
            self.blocks.borrow_mut().insert(at, Rc::clone(&bytes));
            bytes
        };
        let from = usize::try_from(offset - start).map_err(|_| broken())?;
        let bytes = from.checked_add(len as usize).and_then(|to| block.get(from..to));
        self.ground.charge(len)?;
        Ok((bytes.ok_or_else(broken)?.to_vec(), at.saturating_add(offset - start)))
    }

    fn direct(&self, at: u64, size: u64) -> Result<Vec<u8>> {
        let bytes = self.ground.structure(at, size, "heap block")?;
        let mut fields = self.ground.fields(&bytes, at);
        fields.expect(*b"FHDB")?;
        fields.version(&[0], "a heap block")?;
        if self.checked {
            // Counted with zeros in its own place.
            let place = 5 + self.ground.sizes.offset + self.offset_bytes;
            fields.skip(place - 5)?;
            let stored = fields.u32()?;
            let mut copy = bytes.clone();
            copy[place..place + 4].fill(0);
            verify(&copy, stored, self.ground.place(at), "heap block")?;
        }
        Ok(bytes)
    }

    /// The direct block that holds a byte of the heap: where it begins there, its size, its address.
    fn block_of(&self, offset: u64) -> Result<(u64, u64, u64)> {
        let broken = || self.ground.broken(self.address, format!("the heap has no byte {offset}"));
        let mut at = self.root.ok_or_else(broken)?;
        if self.rows == 0 {
            return if offset < self.first { Ok((0, self.first, at)) } else { Err(broken()) };
        }
        let direct_rows = u64::from((self.most_direct.ilog2() - self.first.ilog2()) + 2);
        let mut start = 0_u64;
        let mut rows = u64::from(self.rows);
        for _ in 0..LEVELS {
            // Row 0 and row 1 have blocks of the first size; it doubles from there on.
            let inside = offset.checked_sub(start).ok_or_else(broken)?;
            let (mut row, mut before) = (0_u64, 0_u64);
            let size = loop {
                let size = self.row_size(row).ok_or_else(broken)?;
                let all = size.checked_mul(self.width).ok_or_else(broken)?;
                if inside - before < all {
                    break size;
                }
                before = before.checked_add(all).ok_or_else(broken)?;
                row += 1;
            };
            if row >= rows {
                return Err(broken());
            }
            let column = (inside - before) / size;
            let entry = row * self.width + column;
            let bytes = self.indirect(at, rows)?;
            let prefix = 5 + self.ground.sizes.offset + self.offset_bytes;
            let from = prefix + entry as usize * self.ground.sizes.offset;
            let mut fields = self.ground.fields(bytes.get(from..).ok_or_else(broken)?, at);
            at = fields.address()?.ok_or_else(broken)?;
            start = start.checked_add(before + column * size).ok_or_else(broken)?;
            if row < direct_rows {
                return Ok((start, size, at));
            }
            // An indirect block of `size` bytes has as many rows as fit them.
            let first_row = self.first.checked_mul(self.width).ok_or_else(broken)?;
            rows = u64::from(size.ilog2().saturating_sub(first_row.ilog2())) + 1;
        }
        Err(broken())
    }

    fn row_size(&self, row: u64) -> Option<u64> {
        let doublings = u32::try_from(row.saturating_sub(1)).ok()?;
        1_u64.checked_shl(doublings).and_then(|n| n.checked_mul(self.first))
    }

    fn indirect(&self, at: u64, rows: u64) -> Result<Rc<Vec<u8>>> {
        if let Some(known) = self.blocks.borrow().get(&at) {
            return Ok(Rc::clone(known));
        }
        // No heap has more rows than bits.
        let rows = rows.min(u64::from(self.bits));
        let entries = rows.saturating_mul(self.width);
        let prefix = 5 + self.ground.sizes.offset + self.offset_bytes;
        let len = entries.saturating_mul(self.ground.sizes.offset as u64);
        let len = len.saturating_add(prefix as u64 + 4);
        let bytes = self.ground.structure(at, len, "heap table")?;
        let mut fields = self.ground.fields(&bytes, at);
        fields.expect(*b"FHIB")?;
        fields.version(&[0], "a heap table")?;
        let sum = bytes.len() - 4;
        verify(&bytes[..sum], last_word(&bytes), self.ground.place(at), "heap table")?;
        let bytes = Rc::new(bytes);
        self.blocks.borrow_mut().insert(at, Rc::clone(&bytes));
        Ok(bytes)
    }
}

/// An object of a collection: its index, where its bytes begin, how many they are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) address: u64,
    pub(crate) len: u64,
}

/// Elements of different lengths (section III.E), a collection at a time.
#[derive(Default)]
pub(crate) struct GlobalHeaps {
    known: RefCell<HashMap<u64, Rc<HashMap<u32, Slot>>>>,
}

impl GlobalHeaps {
    /// Where object `index` of the collection at `address` lies.
    pub(crate) fn slot(&self, ground: &Ground, address: u64, index: u32) -> Result<Slot> {
        let known = self.known.borrow().get(&address).cloned();
        let slots = if let Some(slots) = known {
            slots
        } else {
            let slots = Rc::new(collection(ground, address)?);
            self.known.borrow_mut().insert(address, Rc::clone(&slots));
            slots
        };
        slots
            .get(&index)
            .copied()
            .ok_or_else(|| ground.broken(address, format!("the collection has no object {index}")))
    }
}

fn collection(ground: &Ground, address: u64) -> Result<HashMap<u32, Slot>> {
    let prefix_len = 8 + ground.sizes.length as u64;
    let prefix = ground.fetch(address, prefix_len, "global heap")?;
    let mut fields = ground.fields(&prefix, address);
    fields.expect(*b"GCOL")?;
    fields.version(&[1], "a global heap")?;
    fields.skip(3)?;
    let size = fields.length()?;
    if size < prefix_len {
        return Err(ground.broken(address, "a global heap that is shorter than its header"));
    }
    let bytes = ground.structure(address, size, "global heap")?;
    let mut fields = ground.fields(&bytes, address);
    fields.skip(prefix_len as usize)?;
    let mut slots = HashMap::new();
    while fields.wire.remaining() >= prefix_len as usize {
        let index = u32::from(fields.u16()?);
        fields.skip(6)?;
        let len = fields.length()?;
        // Number 0 is what is free.
        if index == 0 {
            break;
        }
        let place = fields.wire.offset() - ground.base;
        let padded = len.checked_next_multiple_of(8).and_then(|n| usize::try_from(n).ok());
        let padded = padded.filter(|n| *n <= fields.wire.remaining());
        let padded = padded
            .ok_or_else(|| ground.broken(place, "an object that reaches out of its global heap"))?;
        fields.skip(padded)?;
        ground.charge(32)?;
        slots.insert(index, Slot { address: place, len });
    }
    Ok(slots)
}
