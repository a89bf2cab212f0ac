//! Where the chunks of a dataset lie: five kinds of indexes (section VII and III.A).

use spile_core::error::Result;

use crate::btree::{SecondTree, each_first};
use crate::header::last_word;
use crate::space::{Chunking, Index, Space};
use crate::wire::{Fields, Ground, verify};

/// A chunk in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// Its number in the grid, last dimension fastest.
    pub(crate) number: u64,
    pub(crate) address: u64,
    /// Stored bytes.
    pub(crate) len: u64,
    /// Filters that were left out, a bit each.
    pub(crate) mask: u32,
}

/// The grid of chunks.
pub(crate) struct Grid<'a> {
    ground: &'a Ground,
    chunking: &'a Chunking,
    /// Chunks along each dimension, of the present shape.
    pub(crate) counts: Vec<u64>,
    /// The same of the largest shape; without end is nothing.
    most: Vec<Option<u64>>,
    /// Bytes of a whole chunk.
    bytes: u64,
    filtered: bool,
    pieces: Vec<Piece>,
}

/// All chunks that were written.
pub(crate) fn pieces<'a>(
    ground: &'a Ground,
    chunking: &'a Chunking,
    space: &Space,
    filtered: bool,
) -> Result<Vec<Piece>> {
    let Some(address) = chunking.address else { return Ok(Vec::new()) };
    let broken = |what: &str| ground.broken(address, what);
    if chunking.dims.len() != space.dims.len() {
        return Err(broken("chunks with another number of dimensions than the dataset"));
    }
    let elements = chunking.dims.iter().try_fold(chunking.element, |n, d| n.checked_mul(*d));
    let bytes = elements.filter(|n| *n > 0);
    let bytes = bytes.ok_or_else(|| broken("chunks of impossible size"))?;
    let per = |(length, chunk): (&u64, &u64)| length.div_ceil(*chunk);
    let mut grid = Grid {
        ground,
        chunking,
        counts: space.dims.iter().zip(&chunking.dims).map(per).collect(),
        most: space
            .most
            .iter()
            .zip(&chunking.dims)
            .map(|(m, c)| m.map(|m| m.div_ceil(*c)))
            .collect(),
        bytes,
        filtered,
        pieces: Vec::new(),
    };
    match &chunking.index {
        Index::FirstTree => grid.first_tree(address)?,
        Index::Single(size) => {
            let (len, mask) = size.unwrap_or((bytes, 0));
            grid.keep(&vec![0; space.dims.len()], address, len, mask)?;
        }
        Index::Implicit => {
            let all = grid.counts.iter().try_fold(1_u64, |n, c| n.checked_mul(*c));
            let present: Vec<Option<u64>> = grid.counts.iter().copied().map(Some).collect();
            let all = all.ok_or_else(|| broken("more chunks than fit any file"))?;
            for number in 0..all {
                let place = grid.place(number, &present, None)?;
                // Chunks lie as in the largest shape.
                let k = place
                    .iter()
                    .zip(&grid.most)
                    .try_fold(0_u64, |k, (at, most)| k.checked_mul((*most)?)?.checked_add(*at));
                let at = k.and_then(|k| k.checked_mul(bytes)?.checked_add(address));
                let at = at.ok_or_else(|| broken("a chunk past the end of any file"))?;
                grid.keep(&place, at, bytes, 0)?;
            }
        }
        Index::FixedArray => grid.fixed_array(address)?,
        Index::ExtensibleArray => grid.extensible_array(address)?,
        Index::SecondTree => grid.second_tree(address)?,
    }
    grid.pieces.sort_unstable_by_key(|piece| piece.number);
    grid.pieces.dedup_by_key(|piece| piece.number);
    Ok(grid.pieces)
}

impl Grid<'_> {
    /// Keeps a chunk at a place of the grid, unless the dataset has become smaller since.
    fn keep(&mut self, place: &[u64], address: u64, len: u64, mask: u32) -> Result<()> {
        let mut number = 0_u64;
        for (at, count) in place.iter().zip(&self.counts) {
            if at >= count {
                return Ok(());
            }
            let next = number.checked_mul(*count).and_then(|n| n.checked_add(*at));
            number = next.ok_or_else(|| self.ground.broken(address, "too many chunks"))?;
        }
        let at = self.ground.place(address);
        if at.checked_add(len).is_none_or(|end| end > self.ground.source.len()) {
            let message = format!("chunk {number} needs {len} bytes at {at}, past the end");
            return Err(spile_core::error::Error::truncated("hdf5-003", message).at(at));
        }
        self.ground.charge(size_of::<Piece>() as u64 * 4)?;
        self.pieces.push(Piece { number, address, len, mask });
        Ok(())
    }

    /// The place of the chunk that is number `k` of an index over the largest shape. The dimension
    /// `slowest` is counted as if it were the first.
    fn place(&self, k: u64, most: &[Option<u64>], slowest: Option<usize>) -> Result<Vec<u64>> {
        let rank = self.counts.len();
        let mut order: Vec<usize> = (0..rank).collect();
        if let Some(slowest) = slowest {
            order.remove(slowest);
            order.insert(0, slowest);
        }
        let mut place = vec![0; rank];
        let mut rest = k;
        for (step, dim) in order.iter().enumerate().rev() {
            match most[*dim] {
                // Only the slowest may be without end.
                None if step == 0 => place[*dim] = rest,
                Some(count) if count > 0 => {
                    (place[*dim], rest) = (rest % count, rest / count);
                }
                _ => {
                    let address = self.chunking.address.unwrap_or(0);
                    return Err(self.ground.broken(address, "an index that fits no such shape"));
                }
            }
            if step == 0 && most[*dim].is_some() && rest > 0 {
                // Behind the last chunk; never kept.
                place[*dim] = u64::MAX;
            }
        }
        Ok(place)
    }

    fn first_tree(&mut self, address: u64) -> Result<()> {
        let rank = self.counts.len();
        let ground = self.ground;
        let mut found = Vec::new();
        each_first(ground, address, 1, 8 + 8 * (rank + 1), &mut |key, child| {
            let mut fields = ground.fields(key, address);
            let (len, mask) = (u64::from(fields.u32()?), fields.u32()?);
            let offsets: Vec<u64> = (0..rank).map(|_| fields.u64()).collect::<Result<_>>()?;
            ground.charge(64 + 8 * rank as u64)?;
            found.push((offsets, child, len, mask));
            Ok(())
        })?;
        for (mut place, child, len, mask) in found {
            for (at, chunk) in place.iter_mut().zip(&self.chunking.dims) {
                *at /= chunk;
            }
            self.keep(&place, child, len, mask)?;
        }
        Ok(())
    }

    fn second_tree(&mut self, address: u64) -> Result<()> {
        let rank = self.counts.len();
        let ground = self.ground;
        let tree = SecondTree::open(ground, address, "index of chunks")?;
        let (record, filtered) = (tree.record, tree.kind == 11);
        let fixed = ground.sizes.offset + 8 * rank + if filtered { 4 } else { 0 };
        let width = record.checked_sub(fixed).filter(|n| *n <= 8 && (*n > 0) == filtered);
        let width = width.ok_or_else(|| ground.broken(address, "records of impossible size"))?;
        let (bytes, mut found) = (self.bytes, Vec::new());
        tree.each(&mut |record, at| {
            let mut fields = ground.fields(record, at);
            let child = fields.address()?;
            let (len, mask) =
                if filtered { (fields.uint(width)?, fields.u32()?) } else { (bytes, 0) };
            let place: Vec<u64> = (0..rank).map(|_| fields.u64()).collect::<Result<_>>()?;
            ground.charge(64 + 8 * rank as u64)?;
            found.extend(child.map(|child| (place, child, len, mask)));
            Ok(())
        })?;
        found
            .into_iter()
            .try_for_each(|(place, child, len, mask)| self.keep(&place, child, len, mask))
    }

    /// Keeps the chunk that an element of an array tells, if it was written.
    fn element(
        &mut self,
        fields: &mut Fields<'_>,
        width: usize,
        k: u64,
        slowest: Option<usize>,
    ) -> Result<()> {
        let address = fields.address()?;
        let (len, mask) =
            if self.filtered { (fields.uint(width)?, fields.u32()?) } else { (self.bytes, 0) };
        match address {
            Some(address) => {
                let place = self.place(k, &self.most, slowest)?;
                self.keep(&place, address, len, mask)
            }
            None => Ok(()),
        }
    }

    /// Bytes of a stored length in elements of `size` bytes.
    fn width(&self, size: usize, at: u64) -> Result<usize> {
        let fixed = self.ground.sizes.offset + if self.filtered { 4 } else { 0 };
        let width = size.checked_sub(fixed).filter(|n| *n <= 8 && (*n > 0) == self.filtered);
        width.ok_or_else(|| self.ground.broken(at, "chunk records of impossible size"))
    }

    /// Section VII.C.
    fn fixed_array(&mut self, address: u64) -> Result<()> {
        let ground = self.ground;
        let len = 12 + ground.sizes.offset + ground.sizes.length;
        let bytes = ground.structure(address, len as u64, "fixed array")?;
        let mut fields = ground.fields(&bytes, address);
        fields.expect(*b"FAHD")?;
        fields.version(&[0], "a fixed array")?;
        fields.skip(1)?;
        let (size, page_bits) = (usize::from(fields.u8()?), fields.u8()?);
        let count = fields.length()?;
        let block = fields.address()?;
        verify(&bytes[..len - 4], last_word(&bytes), ground.place(address), "fixed array")?;
        let Some(block) = block else { return Ok(()) };
        let width = self.width(size, address)?;
        if page_bits > 32 {
            return Err(ground.broken(address, "pages larger than any array"));
        }
        let page = 1_u64 << page_bits;
        let pages = if count > page { count.div_ceil(page) } else { 0 };
        let prefix = 6 + ground.sizes.offset as u64;
        let body = if pages == 0 { count.saturating_mul(size as u64) } else { pages.div_ceil(8) };
        let bytes = ground.structure(
            block,
            prefix.saturating_add(body).saturating_add(4),
            "fixed array",
        )?;
        let sum = bytes.len() - 4;
        verify(&bytes[..sum], last_word(&bytes), ground.place(block), "fixed array")?;
        let mut fields = ground.fields(&bytes, block);
        fields.expect(*b"FADB")?;
        fields.skip(prefix as usize - 4)?;
        if pages == 0 {
            return (0..count).try_for_each(|k| self.element(&mut fields, width, k, None));
        }
        let written = fields.take(body as usize)?;
        let mut at = block + bytes.len() as u64;
        for number in 0..pages {
            let first = number * page;
            let own = page.min(count - first);
            if written[number as usize / 8] & (0x80 >> (number % 8)) != 0 {
                self.page(at, first, own, size, width, None)?;
            }
            at = at.saturating_add(own * size as u64 + 4);
        }
        Ok(())
    }

    /// Elements with a checksum of their own.
    fn page(
        &mut self,
        at: u64,
        first: u64,
        count: u64,
        size: usize,
        width: usize,
        slowest: Option<usize>,
    ) -> Result<()> {
        let ground = self.ground;
        let len = count.saturating_mul(size as u64).saturating_add(4);
        let bytes = ground.structure(at, len, "page of chunks")?;
        let sum = bytes.len() - 4;
        verify(&bytes[..sum], last_word(&bytes), ground.place(at), "page of chunks")?;
        let mut fields = ground.fields(&bytes, at);
        (0..count).try_for_each(|k| self.element(&mut fields, width, first + k, slowest))
    }

    /// Section VII.D: an index block, then data blocks that grow, most of them behind secondary blocks.
    fn extensible_array(&mut self, address: u64) -> Result<()> {
        let ground = self.ground;
        let (offset, length) = (ground.sizes.offset, ground.sizes.length);
        let len = 12 + 6 * length + offset + 4;
        let bytes = ground.structure(address, len as u64, "extensible array")?;
        let mut fields = ground.fields(&bytes, address);
        fields.expect(*b"EAHD")?;
        fields.version(&[0], "an extensible array")?;
        fields.skip(1)?;
        let size = usize::from(fields.u8()?);
        let [bits, in_index, least, pointers, page_bits] = fields.wire.array()?;
        fields.skip(6 * length)?;
        let index = fields.address()?;
        verify(&bytes[..len - 4], last_word(&bytes), ground.place(address), "extensible array")?;
        let Some(index) = index else { return Ok(()) };
        let fine = bits <= 64 && least.is_power_of_two() && pointers.is_power_of_two();
        if !fine || page_bits > 32 || u32::from(bits) < least.ilog2() {
            return Err(ground.broken(address, "an extensible array with impossible sizes"));
        }
        let slowest = self.most.iter().position(Option::is_none);
        let array = Extensible {
            size,
            width: self.width(size, address)?,
            offset_bytes: usize::from(bits).div_ceil(8),
            page: 1 << page_bits,
            slowest,
        };
        let levels = 1 + u32::from(bits) - least.ilog2();
        let direct_levels = 2 * pointers.ilog2();
        let direct = 2 * (u64::from(pointers) - 1);
        let far = u64::from(levels.saturating_sub(direct_levels));
        let prefix = 6 + offset;
        let len = prefix + usize::from(in_index) * size + (direct + far) as usize * offset + 4;
        let bytes = ground.structure(index, len as u64, "extensible array")?;
        verify(&bytes[..len - 4], last_word(&bytes), ground.place(index), "extensible array")?;
        let mut fields = ground.fields(&bytes, index);
        fields.expect(*b"EAIB")?;
        fields.skip(prefix - 4)?;
        for k in 0..u64::from(in_index) {
            self.element(&mut fields, array.width, k, slowest)?;
        }
        let mut first = u64::from(in_index);
        for level in 0..levels {
            // The number of data blocks doubles every second level, their length in the others.
            let blocks = 1_u64 << (level / 2);
            let own = u64::from(least) << level.div_ceil(2);
            if level < direct_levels {
                for _ in 0..blocks {
                    if let Some(at) = fields.address()? {
                        self.data_block(&array, at, first, own, None)?;
                    }
                    first = first.saturating_add(own);
                }
            } else {
                if let Some(at) = fields.address()? {
                    self.secondary_block(&array, at, first, blocks, own)?;
                }
                first = first.saturating_add(blocks.saturating_mul(own));
            }
        }
        Ok(())
    }

    fn secondary_block(
        &mut self,
        array: &Extensible,
        at: u64,
        mut first: u64,
        blocks: u64,
        own: u64,
    ) -> Result<()> {
        let ground = self.ground;
        let pages = if own > array.page { own / array.page } else { 0 };
        let map = pages.div_ceil(8);
        let prefix = 6 + ground.sizes.offset + array.offset_bytes;
        let body = blocks.saturating_mul(map + ground.sizes.offset as u64);
        let len = body.saturating_add(prefix as u64 + 4);
        let bytes = ground.structure(at, len, "extensible array")?;
        let sum = bytes.len() - 4;
        verify(&bytes[..sum], last_word(&bytes), ground.place(at), "extensible array")?;
        let mut fields = ground.fields(&bytes, at);
        fields.expect(*b"EASB")?;
        fields.skip(prefix - 4)?;
        let maps = fields.take((blocks * map) as usize)?;
        for block in 0..blocks {
            if let Some(at) = fields.address()? {
                let from = (block * map) as usize;
                let written = (pages > 0).then(|| &maps[from..from + map as usize]);
                self.data_block(array, at, first, own, written)?;
            }
            first = first.saturating_add(own);
        }
        Ok(())
    }

    fn data_block(
        &mut self,
        array: &Extensible,
        at: u64,
        first: u64,
        own: u64,
        written: Option<&[u8]>,
    ) -> Result<()> {
        let ground = self.ground;
        let prefix = 6 + ground.sizes.offset + array.offset_bytes;
        let paged = own > array.page;
        let body = if paged { 0 } else { own.saturating_mul(array.size as u64) };
        let len = body.saturating_add(prefix as u64 + 4);
        let bytes = ground.structure(at, len, "extensible array")?;
        let sum = bytes.len() - 4;
        verify(&bytes[..sum], last_word(&bytes), ground.place(at), "extensible array")?;
        let mut fields = ground.fields(&bytes, at);
        fields.expect(*b"EADB")?;
        fields.skip(prefix - 4)?;
        if !paged {
            return (0..own).try_for_each(|k| {
                self.element(&mut fields, array.width, first.saturating_add(k), array.slowest)
            });
        }
        let mut at = at + len;
        for page in 0..own / array.page {
            let bit = written.is_none_or(|map| map[page as usize / 8] & (0x80 >> (page % 8)) != 0);
            if bit {
                let start = first.saturating_add(page * array.page);
                self.page(at, start, array.page, array.size, array.width, array.slowest)?;
            }
            at = at.saturating_add(array.page * array.size as u64 + 4);
        }
        Ok(())
    }
}

/// How the elements of an extensible array are written.
struct Extensible {
    size: usize,
    width: usize,
    offset_bytes: usize,
    page: u64,
    slowest: Option<usize>,
}
