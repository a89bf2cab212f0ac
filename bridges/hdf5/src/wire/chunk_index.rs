//! Chunk indexes (sections VII and III.A): the address and stored size of every chunk.

use spile_core::error::{Error, Result};

use super::btree::{BTreeV2, for_each_v1};
use super::messages::{ChunkIndex, ChunkedLayout, Dataspace};
use super::{Context, Fields};

/// A stored chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChunkRecord {
    /// Index in the grid of chunks, last dimension fastest.
    pub(crate) number: u64,
    pub(crate) address: u64,
    /// Stored size in bytes.
    pub(crate) len: u64,
    /// Bit `k` is set if filter `k` was not applied.
    pub(crate) mask: u32,
}

/// The grid of chunks while an index is read.
struct Grid<'a> {
    ctx: &'a Context,
    chunked: &'a ChunkedLayout,
    /// Number of chunks along each dimension, for the current shape.
    counts: Vec<u64>,
    /// Number of chunks along each dimension, for the maximum shape; `None` is unlimited.
    max_counts: Vec<Option<u64>>,
    /// Size of an unfiltered chunk in bytes.
    bytes: u64,
    filtered: bool,
    records: Vec<ChunkRecord>,
}

/// All chunks in the index, ordered by number. `filtered` says that the dataset has a filter pipeline.
pub(crate) fn read_chunk_index<'a>(
    ctx: &'a Context,
    chunked: &'a ChunkedLayout,
    space: &Dataspace,
    filtered: bool,
) -> Result<Vec<ChunkRecord>> {
    let Some(address) = chunked.address else { return Ok(Vec::new()) };
    let malformed = |what: &str| ctx.malformed(address, what);
    if chunked.dims.len() != space.dims.len() {
        return Err(malformed("chunks and dataset have different ranks"));
    }
    let elements = chunked.dims.iter().try_fold(chunked.element, |n, d| n.checked_mul(*d));
    let bytes = elements.filter(|n| *n > 0);
    let bytes = bytes.ok_or_else(|| malformed("invalid chunk size"))?;
    let per = |(length, chunk): (&u64, &u64)| length.div_ceil(*chunk);
    let mut grid = Grid {
        ctx,
        chunked,
        counts: space.dims.iter().zip(&chunked.dims).map(per).collect(),
        max_counts: space
            .max_dims
            .iter()
            .zip(&chunked.dims)
            .map(|(m, c)| m.map(|m| m.div_ceil(*c)))
            .collect(),
        bytes,
        filtered,
        records: Vec::new(),
    };
    match &chunked.index {
        ChunkIndex::BTreeV1 => grid.btree_v1(address)?,
        ChunkIndex::Single(size) => {
            let (len, mask) = size.unwrap_or((bytes, 0));
            grid.add(&vec![0; space.dims.len()], address, len, mask)?;
        }
        ChunkIndex::Implicit => {
            let all = grid.counts.iter().try_fold(1_u64, |n, c| n.checked_mul(*c));
            let present: Vec<Option<u64>> = grid.counts.iter().copied().map(Some).collect();
            let all = all.ok_or_else(|| malformed("number of chunks exceeds 64 bits"))?;
            for number in 0..all {
                let position = grid.position(number, &present, None)?;
                // Chunks are stored in the order of the maximum shape.
                let k =
                    position.iter().zip(&grid.max_counts).try_fold(0_u64, |k, (at, max_counts)| {
                        k.checked_mul((*max_counts)?)?.checked_add(*at)
                    });
                let at = k.and_then(|k| k.checked_mul(bytes)?.checked_add(address));
                let at = at.ok_or_else(|| malformed("chunk address exceeds 64 bits"))?;
                grid.add(&position, at, bytes, 0)?;
            }
        }
        ChunkIndex::FixedArray => grid.fixed_array(address)?,
        ChunkIndex::ExtensibleArray => grid.extensible_array(address)?,
        ChunkIndex::BTreeV2 => grid.btree_v2(address)?,
    }
    grid.records.sort_unstable_by_key(|piece| piece.number);
    grid.records.dedup_by_key(|piece| piece.number);
    Ok(grid.records)
}

impl Grid<'_> {
    /// Adds the chunk at `position` of the grid; chunks outside the current shape are ignored.
    fn add(&mut self, position: &[u64], address: u64, len: u64, mask: u32) -> Result<()> {
        let mut number = 0_u64;
        for (at, count) in position.iter().zip(&self.counts) {
            if at >= count {
                return Ok(());
            }
            let next = number.checked_mul(*count).and_then(|n| n.checked_add(*at));
            number = next
                .ok_or_else(|| self.ctx.malformed(address, "number of chunks exceeds 64 bits"))?;
        }
        let at = self.ctx.file_offset(address);
        if at.checked_add(len).is_none_or(|end| end > self.ctx.source.len()) {
            let left = self.ctx.source.len().saturating_sub(at);
            let message = format!(
                "chunk {number}: unexpected end of file: expected {len} bytes, found {left}"
            );
            return Err(Error::truncated("hdf5-003", message).at(at));
        }
        // A growing vector needs up to three times the memory of its elements.
        self.ctx.charge(size_of::<ChunkRecord>() as u64 * 3)?;
        self.records.push(ChunkRecord { number, address, len, mask });
        Ok(())
    }

    /// Position in the grid of entry `k` of an index over the grid `max_counts`. Dimension `unlimited`
    /// counts as the slowest.
    fn position(
        &self,
        k: u64,
        max_counts: &[Option<u64>],
        unlimited: Option<usize>,
    ) -> Result<Vec<u64>> {
        let rank = self.counts.len();
        let mut order: Vec<usize> = (0..rank).collect();
        if let Some(unlimited) = unlimited {
            order.remove(unlimited);
            order.insert(0, unlimited);
        }
        let mut position = vec![0; rank];
        let mut rest = k;
        for (step, dim) in order.iter().enumerate().rev() {
            match max_counts[*dim] {
                // Only the slowest dimension may be unlimited.
                None if step == 0 => position[*dim] = rest,
                Some(count) if count > 0 => {
                    (position[*dim], rest) = (rest % count, rest / count);
                }
                _ => {
                    let address = self.chunked.address.unwrap_or(0);
                    return Err(self
                        .ctx
                        .malformed(address, "chunk index type does not match the maximum shape"));
                }
            }
            if step == 0 && max_counts[*dim].is_some() && rest > 0 {
                // After the last chunk; `add` ignores it.
                position[*dim] = u64::MAX;
            }
        }
        Ok(position)
    }

    fn btree_v1(&mut self, address: u64) -> Result<()> {
        let (ctx, dims) = (self.ctx, &self.chunked.dims);
        for_each_v1(ctx, address, 1, 8 + 8 * (dims.len() + 1), &mut |key, child| {
            let mut fields = ctx.fields(key, address);
            let (len, mask) = (u64::from(fields.u32()?), fields.u32()?);
            let scaled = dims.iter().map(|chunk| Ok(fields.u64()? / chunk));
            let position = scaled.collect::<Result<Vec<u64>>>()?;
            self.add(&position, child, len, mask)
        })
    }

    fn btree_v2(&mut self, address: u64) -> Result<()> {
        let (ctx, rank) = (self.ctx, self.counts.len());
        let tree = BTreeV2::open(ctx, address, "index of chunks")?;
        let (record, filtered) = (tree.record, tree.kind == 11);
        let width = self.width(record.saturating_sub(8 * rank), filtered, address)?;
        tree.for_each(&mut |record, at| {
            let mut fields = ctx.fields(record, at);
            let child = fields.address()?;
            let (len, mask) = self.stored_size(&mut fields, width)?;
            let position: Vec<u64> = (0..rank).map(|_| fields.u64()).collect::<Result<_>>()?;
            child.map_or(Ok(()), |child| self.add(&position, child, len, mask))
        })
    }

    /// Adds the chunk of element `k` of a fixed or extensible array, if it is allocated.
    fn element(
        &mut self,
        fields: &mut Fields<'_>,
        width: usize,
        k: u64,
        unlimited: Option<usize>,
    ) -> Result<()> {
        let address = fields.address()?;
        let (len, mask) = self.stored_size(fields, width)?;
        let Some(address) = address else { return Ok(()) };
        let position = self.position(k, &self.max_counts, unlimited)?;
        self.add(&position, address, len, mask)
    }

    /// Stored size in bytes and filter mask of a chunk. `width` is the width of the size, 0 without filters.
    fn stored_size(&self, fields: &mut Fields<'_>, width: usize) -> Result<(u64, u32)> {
        if width == 0 { Ok((self.bytes, 0)) } else { Ok((fields.uint(width)?, fields.u32()?)) }
    }

    /// Width of the stored size in records of `size` bytes without their position; 0 without filters.
    fn width(&self, size: usize, filtered: bool, at: u64) -> Result<usize> {
        let fixed = self.ctx.sizes.offset + if filtered { 4 } else { 0 };
        let width = size.checked_sub(fixed).filter(|n| *n <= 8 && (*n > 0) == filtered);
        width.ok_or_else(|| self.ctx.malformed(at, "chunk records of invalid size"))
    }

    /// Fixed array (section VII.C).
    fn fixed_array(&mut self, address: u64) -> Result<()> {
        let ctx = self.ctx;
        let len = 12 + ctx.sizes.offset + ctx.sizes.length;
        let bytes = ctx.read_checked(address, len as u64, b"FAHD", "fixed array")?;
        let mut fields = ctx.fields(&bytes, address + 4);
        fields.version(&[0], "fixed array")?;
        fields.skip(1)?;
        let (size, page_bits) = (usize::from(fields.u8()?), fields.u8()?);
        let count = fields.length()?;
        let block = fields.address()?;
        let Some(block) = block else { return Ok(()) };
        let width = self.width(size, self.filtered, address)?;
        if page_bits > 32 {
            return Err(ctx.malformed(address, "fixed array with invalid page size"));
        }
        let page = 1_u64 << page_bits;
        let pages = if count > page { count.div_ceil(page) } else { 0 };
        let prefix = 6 + ctx.sizes.offset as u64;
        let body = if pages == 0 { count.saturating_mul(size as u64) } else { pages.div_ceil(8) };
        let len = body.saturating_add(prefix + 4);
        let bytes = ctx.read_checked(block, len, b"FADB", "fixed array")?;
        let mut fields = ctx.fields(&bytes, block + 4);
        fields.skip(prefix as usize - 4)?;
        if pages == 0 {
            return (0..count).try_for_each(|k| self.element(&mut fields, width, k, None));
        }
        let written = fields.take(body as usize)?;
        let mut at = block + len;
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

    /// Reads a page of `count` elements; the first is element `first`.
    fn page(
        &mut self,
        at: u64,
        first: u64,
        count: u64,
        size: usize,
        width: usize,
        unlimited: Option<usize>,
    ) -> Result<()> {
        let ctx = self.ctx;
        let len = count.saturating_mul(size as u64).saturating_add(4);
        let bytes = ctx.read_checked(at, len, b"", "page of chunk records")?;
        let mut fields = ctx.fields(&bytes, at);
        (0..count).try_for_each(|k| self.element(&mut fields, width, first + k, unlimited))
    }

    /// Extensible array (section VII.D): an index block, data blocks of growing size, and secondary blocks
    /// that list most of the data blocks.
    fn extensible_array(&mut self, address: u64) -> Result<()> {
        let ctx = self.ctx;
        let (offset, length) = (ctx.sizes.offset, ctx.sizes.length);
        let len = 12 + 6 * length + offset + 4;
        let bytes = ctx.read_checked(address, len as u64, b"EAHD", "extensible array")?;
        let mut fields = ctx.fields(&bytes, address + 4);
        fields.version(&[0], "extensible array")?;
        fields.skip(1)?;
        let size = usize::from(fields.u8()?);
        let [bits, in_index, least, pointers, page_bits] = fields.array()?;
        fields.skip(6 * length)?;
        let index = fields.address()?;
        let Some(index) = index else { return Ok(()) };
        let fine = bits <= 64 && least.is_power_of_two() && pointers.is_power_of_two();
        if !fine || page_bits > 32 || u32::from(bits) < least.ilog2() {
            return Err(ctx.malformed(address, "extensible array with invalid sizes"));
        }
        let unlimited = self.max_counts.iter().position(Option::is_none);
        let array = Extensible {
            size,
            width: self.width(size, self.filtered, address)?,
            offset_bytes: usize::from(bits).div_ceil(8),
            page: 1 << page_bits,
            unlimited,
        };
        let levels = 1 + u32::from(bits) - least.ilog2();
        let direct_levels = 2 * pointers.ilog2();
        let direct = 2 * (u64::from(pointers) - 1);
        let far = u64::from(levels.saturating_sub(direct_levels));
        let prefix = 6 + offset;
        let len = prefix + usize::from(in_index) * size + (direct + far) as usize * offset + 4;
        let bytes = ctx.read_checked(index, len as u64, b"EAIB", "extensible array")?;
        let mut fields = ctx.fields(&bytes, index + 4);
        fields.skip(prefix - 4)?;
        for k in 0..u64::from(in_index) {
            self.element(&mut fields, array.width, k, unlimited)?;
        }
        let mut first = u64::from(in_index);
        for level in 0..levels {
            // The number of data blocks doubles at even levels, their length at odd ones.
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
        let ctx = self.ctx;
        let pages = if own > array.page { own / array.page } else { 0 };
        let map = pages.div_ceil(8);
        let prefix = 6 + ctx.sizes.offset + array.offset_bytes;
        let body = blocks.saturating_mul(map + ctx.sizes.offset as u64);
        let len = body.saturating_add(prefix as u64 + 4);
        let bytes = ctx.read_checked(at, len, b"EASB", "extensible array")?;
        let mut fields = ctx.fields(&bytes, at + 4);
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
        let ctx = self.ctx;
        let prefix = 6 + ctx.sizes.offset + array.offset_bytes;
        let paged = own > array.page;
        let body = if paged { 0 } else { own.saturating_mul(array.size as u64) };
        let len = body.saturating_add(prefix as u64 + 4);
        let bytes = ctx.read_checked(at, len, b"EADB", "extensible array")?;
        let mut fields = ctx.fields(&bytes, at + 4);
        fields.skip(prefix - 4)?;
        if !paged {
            return (0..own).try_for_each(|k| {
                self.element(&mut fields, array.width, first.saturating_add(k), array.unlimited)
            });
        }
        let mut at = at + len;
        for page in 0..own / array.page {
            let bit = written.is_none_or(|map| map[page as usize / 8] & (0x80 >> (page % 8)) != 0);
            if bit {
                let start = first.saturating_add(page * array.page);
                self.page(at, start, array.page, array.size, array.width, array.unlimited)?;
            }
            at = at.saturating_add(array.page * array.size as u64 + 4);
        }
        Ok(())
    }
}

/// The element format of an extensible array.
struct Extensible {
    size: usize,
    width: usize,
    offset_bytes: usize,
    page: u64,
    unlimited: Option<usize>,
}
