//! Which blocks a file has: read from the summary at its end, or block by block (section 6).

use spile_core::dtype::DType;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::layout::{ArrayDesc, Extent, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::wire::{Wire, fetch};

use crate::kind::BlockType;
use crate::meta::Meta;
use crate::wire::{BlockHeader, FileHeader};

/// Bytes read beside a block header in the hope that they hold the metadata.
const METADATA_GUESS: u64 = 1024;

/// The way out of every damage.
pub(crate) const SALVAGE: &str = "`spile salvage` saves the blocks that are whole";

/// A block: its header and metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The header.
    pub header: BlockHeader,
    /// The metadata.
    pub meta: Meta,
    /// First byte of the header that was read: in the summary, if the file has one.
    pub offset: u64,
    /// First byte of the metadata.
    pub meta_offset: u64,
    /// Bytes of the metadata that were understood.
    pub meta_length: u64,
}

impl Block {
    /// Its type.
    pub fn kind(&self) -> BlockType {
        BlockType::from_code(self.header.blocktype)
    }

    /// The block in words: `block "ex" (Electric Field/Ex)`.
    pub fn title(&self) -> String {
        // One line, whatever the file says: what follows must not look like a line of its own.
        let BlockHeader { id, name, .. } = &self.header;
        let [id, name] = [id, name].map(|text| text.replace('\n', "\\n"));
        if name.is_empty() || name == id {
            format!("block \"{id}\"")
        } else {
            format!("block \"{id}\" ({name})")
        }
    }

    /// Where its data are; the value of a constant is in the metadata.
    pub fn data(&self) -> Extent {
        match &self.meta {
            Meta::Constant(value) => Extent { offset: self.meta_offset, len: value.len() as u64 },
            _ => Extent { offset: self.header.data_location, len: self.header.data_length },
        }
    }

    /// All of its data in a row, as its data type says; bytes where that says nothing.
    pub fn raw(&self, file: &FileHeader) -> ArrayDesc {
        let Extent { offset, len } = self.data();
        let fits = |dtype: &DType| len.is_multiple_of(dtype.size() as u64);
        let dtype = self.header.datatype.dtype(file.order).filter(fits);
        let dtype = dtype.unwrap_or(DType::opaque(1));
        let shape = Shape::new([len / dtype.size() as u64]);
        let layout = Layout::Plain { extents: Extents::one(offset, len), order: Order::F };
        ArrayDesc::new(dtype, shape, layout)
    }

    /// Fails where the data go past the end of the file.
    pub(crate) fn require_data(&self, source: &Source) -> Result<()> {
        let Extent { offset, len } = self.data();
        let end = offset.checked_add(len);
        if len == 0 || end.is_some_and(|end| end <= source.len()) {
            return Ok(());
        }
        let message = format!("{len} bytes of data go past the end of the file, {}", source.len());
        Err(Error::truncated("sdf-014", message).in_object(self.title()).at(offset).hint(SALVAGE))
    }

    /// Reads the block at the beginning of `bytes`, which are the file's from `offset` on.
    fn parse(bytes: &[u8], offset: u64, file: &FileHeader) -> Result<Self> {
        let mut wire = Wire::new(bytes, offset, file.order, "sdf-009");
        let mut header = BlockHeader::default();
        header
            .fields(&mut wire, file)
            .map_err(|e| e.in_object(format!("block at byte {offset}")))?;
        let meta_offset = wire.offset();
        if header.info_length.is_none() {
            // Revision 0 does not tell; the metadata end where something else begins.
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

    /// Reads the block at `offset` of the file.
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

/// Memory for the metadata of all blocks together.
pub(crate) struct Budget {
    limits: Limits,
    weight: u64,
    used: u64,
    blocks: u64,
}

impl Budget {
    pub(crate) fn new(file: &FileHeader, limits: &Limits) -> Self {
        // A block in memory, with its place in the tree, takes several times its bytes in the
        // file; very short strings take most.
        let weight = if file.string_length < 32 { 64 } else { 8 };
        Self { limits: *limits, weight, used: 0, blocks: 0 }
    }

    /// `bytes` of the file can be held beside what is held already.
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

/// The next block has to lie behind this one, or the chain would never end.
pub(crate) fn follow(block: &Block) -> Result<u64> {
    if block.header.next >= block.meta_offset {
        return Ok(block.header.next);
    }
    let message = format!("the next block is said to be at byte {}, not behind", block.header.next);
    let error = Error::malformed("sdf-010", message);
    Err(error.in_object(block.title()).at(block.offset).hint(SALVAGE))
}

/// The blocks as the summary lists them.
pub(crate) fn summary(source: &Source, file: &FileHeader, limits: &Limits) -> Result<Vec<Block>> {
    let (start, size) = (file.summary_location, file.summary_size);
    if start.checked_add(size).is_none_or(|end| end > source.len()) {
        let message = format!(
            "the summary of {size} bytes at byte {start} goes past the end of the file, {}",
            source.len()
        );
        return Err(Error::truncated("sdf-008", message)
            .in_object("summary")
            .at(source.len())
            .hint(SALVAGE));
    }
    let mut budget = Budget::new(file, limits);
    budget.fits(size)?;
    let bytes = source.read_vec(start, size)?;
    // No more than there is room for: a header has more than 64 bytes.
    let room = usize::try_from(size / 64).unwrap_or(0);
    let mut blocks = Vec::with_capacity(room.min(usize::try_from(file.nblocks).unwrap_or(0)));
    let mut offset = start;
    for k in 0..file.nblocks {
        let rest = offset.checked_sub(start).and_then(|at| bytes.get(usize::try_from(at).ok()?..));
        let rest = rest.ok_or_else(|| {
            let message = format!("block {k} is said to be at byte {offset}, outside the summary");
            Error::malformed("sdf-010", message).in_object("summary").at(start)
        })?;
        if rest.is_empty() {
            return Err(miscounted(file, k));
        }
        let block = Block::parse(rest, offset, file)?;
        budget.charge(block.meta_offset + block.meta_length - offset)?;
        if k + 1 < file.nblocks {
            offset = follow(&block)?;
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// The blocks as they lie in the file, one after the other.
pub(crate) fn inline(source: &Source, file: &FileHeader, limits: &Limits) -> Result<Vec<Block>> {
    let mut budget = Budget::new(file, limits);
    let mut blocks = Vec::new();
    let mut offset = file.first_block;
    for k in 0..file.nblocks {
        if file.summary_size > 0 && offset == file.summary_location {
            return Err(miscounted(file, k));
        }
        let block = Block::read(source, file, offset, &mut budget)?;
        if k + 1 < file.nblocks {
            offset = follow(&block)?;
        }
        blocks.push(block);
    }
    Ok(blocks)
}

/// Where the blocks end before as many were found as the header counts.
fn miscounted(file: &FileHeader, found: i32) -> Error {
    let message = format!("{} blocks are counted, {found} are there", file.nblocks);
    Error::malformed("sdf-010", message).in_object("file header").at(68).hint(SALVAGE)
}

/// Fails for a file that its writer has not finished.
pub(crate) fn finished(source: &Source, file: &FileHeader) -> Result<()> {
    let failed = |message: String, code| {
        Err(Error::truncated(code, message).in_object("file header").at(68).hint(SALVAGE))
    };
    match file.nblocks {
        1.. => Ok(()),
        // Closed without a block, or killed before the first: nothing is missing either way.
        0 if source.len() <= file.first_block => Ok(()),
        0 => failed(
            "the file was never closed; its number of blocks is still zero".into(),
            "sdf-006",
        ),
        code => {
            let code = code.unsigned_abs();
            let message = format!("writing failed at block {}, error {}", code / 64, code % 64);
            failed(message, "sdf-007")
        }
    }
}

/// The blocks, from the summary where it is sound.
pub(crate) fn read(source: &Source, file: &FileHeader, limits: &Limits) -> Result<Vec<Block>> {
    finished(source, file)?;
    if file.summary_size == 0 || file.nblocks == 0 {
        return inline(source, file, limits);
    }
    summary(source, file, limits).or_else(|error| match error.kind() {
        // A summary that is there but damaged is no reason to give up: it is a copy.
        ErrorKind::Malformed | ErrorKind::Truncated if error.code() != "sdf-008" => {
            inline(source, file, limits).map_err(|_| error)
        }
        _ => Err(error),
    })
}
