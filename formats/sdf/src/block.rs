//! Blocks: header and metadata. The blocks of a file are read from the summary at its end or from the
//! block headers (section 6).

use std::borrow::Cow;

use spile_core::wire::fetch;
use spile_core::{
    ArrayDesc, DType, Error, ErrorKind, Extent, Extents, Hint, Layout, Limits, Order, Result,
    Shape, Source, Wire,
};

use crate::wire::block_type::BlockType;
use crate::wire::meta::Meta;
use crate::wire::{BlockHeader, FileHeader};

/// Bytes read after a block header in the first attempt to get all metadata.
const METADATA_GUESS: u64 = 1024;

/// Hint for damaged files.
pub(crate) const SALVAGE: Hint =
    Hint::Operation { name: "salvage", effect: Cow::Borrowed("recovers every intact block") };

/// Header and metadata of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The header.
    pub header: BlockHeader,
    /// The metadata.
    pub meta: Meta,
    /// Offset of the header that was read: in the summary, if the file has one.
    pub offset: u64,
    /// Offset of the metadata.
    pub meta_offset: u64,
    /// Length of the metadata that were decoded, in bytes.
    pub meta_length: u64,
}

impl Block {
    /// The block type.
    pub fn kind(&self) -> BlockType {
        BlockType::from_code(self.header.blocktype)
    }

    /// Identifier and name for messages, on one line: `block "ex" (Electric Field/Ex)`.
    pub fn title(&self) -> String {
        let BlockHeader { id, name, .. } = &self.header;
        let [id, name] = [id, name].map(|text| text.replace('\n', "\\n"));
        if name.is_empty() || name == id {
            format!("block \"{id}\"")
        } else {
            format!("block \"{id}\" ({name})")
        }
    }

    /// Location of the data; the value of a constant is in the metadata.
    pub fn data(&self) -> Extent {
        match &self.meta {
            Meta::Constant(value) => Extent { offset: self.meta_offset, len: value.len() as u64 },
            _ => Extent { offset: self.header.data_location, len: self.header.data_length },
        }
    }

    /// All data as a one-dimensional array of the block's data type, or of bytes if the data type is
    /// unknown or does not divide the length.
    pub fn raw(&self, file: &FileHeader) -> ArrayDesc {
        let Extent { offset, len } = self.data();
        let fits = |dtype: &DType| len.is_multiple_of(dtype.size() as u64);
        let dtype = self.header.datatype.dtype(file.order).filter(fits);
        let dtype = dtype.unwrap_or(DType::opaque(1));
        stored(dtype, Shape::new([len / dtype.size() as u64]), Extent { offset, len })
    }

    /// The data as bytes.
    pub(crate) fn bytes(&self) -> ArrayDesc {
        let (offset, len) = (self.header.data_location, self.header.data_length);
        stored(DType::opaque(1), Shape::new([len]), Extent { offset, len })
    }

    /// Fails if the data extend beyond the end of the file (sdf-014).
    pub(crate) fn require_data(&self, source: &Source) -> Result<()> {
        let Extent { offset, len } = self.data();
        let end = offset.checked_add(len);
        if len == 0 || end.is_some_and(|end| end <= source.len()) {
            return Ok(());
        }
        let message = format!(
            "unexpected end of file: {len} bytes of data extend beyond byte {}",
            source.len()
        );
        Err(Error::truncated("sdf-014", message).in_object(self.title()).at(offset).hint(SALVAGE))
    }

    /// Parses the block at the start of `bytes`, which begin at `offset` of the file.
    pub(crate) fn parse(bytes: &[u8], offset: u64, file: &FileHeader) -> Result<Self> {
        let mut wire = Wire::new(bytes, offset, file.order, "sdf-009");
        let mut header = BlockHeader::default();
        header
            .fields(&mut wire, file)
            .map_err(|e| e.in_object(format!("block at byte {offset}")))?;
        let meta_offset = wire.offset();
        if header.info_length.is_none() {
            // Revision 0 does not store the length; the metadata end at the data or the next block.
            let ends = [header.next, header.data_location];
            let end = ends.into_iter().filter(|end| *end >= meta_offset).min();
            header.info_length = Some(end.map_or(0, |end| end - meta_offset));
        }
        let meta = Meta::read(&mut wire, &header, file)
            .map_err(|e| e.in_object(format!("block \"{}\"", header.id)))?;
        if !file.has_info_length() {
            header.info_length = None;
        }
        let meta_length = wire.offset() - meta_offset;
        Ok(Self { header, meta, offset, meta_offset, meta_length })
    }

    /// Reads the block at `offset` and charges it to `budget`.
    pub(crate) fn read(
        source: &Source,
        file: &FileHeader,
        offset: u64,
        budget: &mut Budget,
    ) -> Result<Self> {
        let left = source.len().saturating_sub(offset);
        let mut window = file.block_header_length.saturating_add(METADATA_GUESS).min(left);
        loop {
            budget.fits(window)?;
            let bytes = fetch(source, offset, window as usize)?;
            match Self::parse(&bytes, offset, file) {
                Err(e) if e.kind() == ErrorKind::Truncated && window < left => {
                    window = window.saturating_mul(8).min(left);
                }
                Ok(block) => {
                    budget.charge(block.meta_offset + block.meta_length - offset)?;
                    return Ok(block);
                }
                Err(e) => return Err(e.hint(SALVAGE)),
            }
        }
    }
}

/// An array stored in `extent`, first index fastest.
pub(crate) fn stored(dtype: DType, shape: Shape, extent: Extent) -> ArrayDesc {
    let extents = Extents::one(extent.offset, extent.len);
    ArrayDesc::new(dtype, shape, Layout::Plain { extents, order: Order::F })
}

/// Memory budget for the metadata of all blocks.
pub(crate) struct Budget {
    limits: Limits,
    /// Bytes of memory per byte of metadata.
    weight: u64,
    used: u64,
    blocks: u64,
}

impl Budget {
    pub(crate) fn new(file: &FileHeader, limits: &Limits) -> Self {
        // A block and its tree node need several times the bytes of the stored metadata; the ratio
        // is highest for short strings.
        let weight = if file.string_length < 32 { 64 } else { 8 };
        Self { limits: *limits, weight, used: 0, blocks: 0 }
    }

    /// Fails if `bytes` more of metadata exceed the budget.
    pub(crate) fn fits(&self, bytes: u64) -> Result<()> {
        let total = self.used.saturating_add(bytes).saturating_mul(self.weight);
        self.limits.allow(total, "the metadata of the blocks").map(drop)
    }

    fn charge(&mut self, bytes: u64) -> Result<()> {
        self.fits(bytes)?;
        self.used += bytes;
        self.blocks += 1;
        if self.blocks > self.limits.nodes {
            return Err(Error::limit(format!("more than {} blocks", self.limits.nodes)));
        }
        Ok(())
    }
}

/// Offset of the block after `block`. Fails if it is not after the header of `block` (sdf-010), so
/// that the chain of blocks cannot be a cycle.
pub(crate) fn next_offset(block: &Block) -> Result<u64> {
    if block.header.next >= block.meta_offset {
        return Ok(block.header.next);
    }
    let message = format!(
        "expected the next block after byte {}, found offset {}",
        block.meta_offset, block.header.next
    );
    let error = Error::malformed("sdf-010", message);
    Err(error.in_object(block.title()).at(block.offset).hint(SALVAGE))
}

/// Reads all blocks of a file; `read` returns the block with a number and an offset, the first of which
/// is `first`.
fn read_chain(
    file: &FileHeader,
    first: u64,
    mut read: impl FnMut(i32, u64) -> Result<Block>,
) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut offset = first;
    for k in 0..file.nblocks {
        let block = read(k, offset)?;
        if k + 1 < file.nblocks {
            offset = next_offset(&block)?;
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// Reads the blocks from the summary.
pub(crate) fn read_summary(
    source: &Source,
    file: &FileHeader,
    limits: &Limits,
) -> Result<Vec<Block>> {
    let (start, size) = (file.summary_location, file.summary_size);
    if start.checked_add(size).is_none_or(|end| end > source.len()) {
        let message = format!(
            "unexpected end of file: the summary of {size} bytes at byte {start} extends beyond \
             byte {}",
            source.len()
        );
        let error = Error::truncated("sdf-008", message).in_object("summary");
        return Err(error.at(source.len()).hint(SALVAGE));
    }
    let mut budget = Budget::new(file, limits);
    budget.fits(size)?;
    let bytes = source.read_vec(start, size)?;
    read_chain(file, start, |k, offset| {
        let rest = offset.checked_sub(start).and_then(|at| bytes.get(usize::try_from(at).ok()?..));
        let rest = rest.ok_or_else(|| {
            let message = format!("offset of block {k}, {offset}, is outside the summary");
            Error::malformed("sdf-010", message).in_object("summary").at(start)
        })?;
        if rest.is_empty() {
            return Err(wrong_count(file, k));
        }
        let block = Block::parse(rest, offset, file)?;
        budget.charge(block.meta_offset + block.meta_length - offset)?;
        Ok(block)
    })
}

/// Reads the blocks from their headers, in the order of the file.
pub(crate) fn read_headers(
    source: &Source,
    file: &FileHeader,
    limits: &Limits,
) -> Result<Vec<Block>> {
    let mut budget = Budget::new(file, limits);
    read_chain(file, file.first_block, |k, offset| {
        if file.summary_size > 0 && offset == file.summary_location {
            return Err(wrong_count(file, k));
        }
        Block::read(source, file, offset, &mut budget)
    })
}

/// Error for a file with fewer blocks than its header states.
fn wrong_count(file: &FileHeader, found: i32) -> Error {
    let message = format!("expected {} blocks, found {found}", file.nblocks);
    Error::malformed("sdf-012", message).in_object("file header").at(68).hint(SALVAGE)
}

/// Fails if the writer did not close the file (sdf-006) or reported an error (sdf-007).
fn require_closed(source: &Source, file: &FileHeader) -> Result<()> {
    let failed = |message: String, code| {
        Err(Error::truncated(code, message).in_object("file header").at(68).hint(SALVAGE))
    };
    match file.nblocks {
        1.. => Ok(()),
        // The file contains no block; nothing is missing.
        0 if source.len() <= file.first_block => Ok(()),
        0 => failed("the file was not closed: the number of blocks is 0".into(), "sdf-006"),
        code => {
            let code = code.unsigned_abs();
            let message = format!("writing failed at block {}, error {}", code / 64, code % 64);
            failed(message, "sdf-007")
        }
    }
}

/// Reads the blocks from the summary, or from the block headers if the summary is missing or
/// damaged.
pub(crate) fn read_blocks(
    source: &Source,
    file: &FileHeader,
    limits: &Limits,
) -> Result<Vec<Block>> {
    require_closed(source, file)?;
    if file.summary_size == 0 || file.nblocks == 0 {
        return read_headers(source, file, limits);
    }
    read_summary(source, file, limits).or_else(|error| match error.kind() {
        // The summary is a copy of the block headers.
        ErrorKind::Malformed | ErrorKind::Truncated if error.code() != "sdf-008" => {
            read_headers(source, file, limits).map_err(|_| error)
        }
        _ => Err(error),
    })
}
