//! Recovers every intact block of a file that was not closed, was truncated, or has damaged block
//! headers or a damaged summary, and writes a complete file.

use spile_core::format::{Salvage, Salvager};
use spile_core::wire::fetch;
use spile_core::{Error, Extent, Limits, Report, Result, Sink, Source, Wire};

use crate::Sdf;
use crate::block::{self, Block, Budget, next_offset};
use crate::wire::FileHeader;
use crate::wire::block_type::BlockType;
use crate::wire::meta::Meta;
use crate::write::Writer;

impl Salvager for Sdf {
    /// Copies all intact blocks of `source` to `target`. Fails if the file header is damaged.
    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        let file = FileHeader::read(source).map_err(|e| {
            e.hint("the file header is damaged; no block can be recovered without it")
        })?;
        let mut salvage = Salvage::default();
        let (found, summary) = find(source, &file, limits, &mut salvage)?;
        let missing = !salvage.lost.is_empty()
            || found.iter().any(|block| block.require_data(source).is_err());
        salvage.lost.extend(summary.map(|message| format!("summary: {message}; written again")));
        let mut header = file.clone();
        if missing && file.restart {
            // A simulation cannot continue from a part of a dump.
            header.restart = false;
            salvage.lost.push("restart flag: cleared, because blocks are missing".into());
        }
        let mut writer = Writer::new(target, &header)?;
        // Old and new location of the data of contiguous blocks.
        let mut moved: Vec<(Extent, Extent)> = Vec::new();
        for mut block in found {
            if let Err(error) = block.require_data(source) {
                salvage.lost.push(format!("{}: {}", block.title(), error.message()));
                if !keep_rows(&mut block, source) {
                    continue;
                }
            }
            if let Meta::Constant(_) = block.meta {
                // The value is in the metadata; the data length in the header is ignored.
                block.header.data_length = 0;
            }
            let data = block.data();
            let inside = moved.iter().find_map(|(old, new)| {
                let start = block.header.data_location.checked_sub(old.offset)?;
                let fits = start.checked_add(data.len)? <= old.len && data.len > 0;
                fits.then(|| Extent { offset: new.offset + start, len: block.header.data_length })
            });
            let inside = inside.filter(|_| block.header.data_length > 0);
            let extent = writer.copy(source, &block.header, &block.meta, inside)?;
            if block.kind().is_contiguous() {
                moved.push((data, extent));
            }
            salvage.kept.push(block.title());
        }
        writer.finish()?;
        Ok(salvage)
    }
}

/// The blocks of a file, and why its summary cannot be read. What is missing is added to `salvage`.
fn find(
    source: &Source,
    file: &FileHeader,
    limits: &Limits,
    salvage: &mut Salvage,
) -> Result<(Vec<Block>, Option<String>)> {
    let found = scan(source, file, limits, salvage)?;
    if file.summary_size == 0 || file.nblocks <= 0 {
        return Ok((found, None));
    }
    match block::read_summary(source, file, limits) {
        Ok(listed) => Ok((prefer_summary(source, listed, &found, salvage), None)),
        Err(error) => {
            let message = error.message().to_string();
            Report::default().absorb(error)?;
            Ok((found, Some(message)))
        }
    }
}

/// The blocks of a file whose data are complete, and stations with their complete rows. What is missing is added to
/// `salvage`.
pub(crate) fn intact_blocks(
    source: &Source,
    file: &FileHeader,
    limits: &Limits,
    salvage: &mut Salvage,
) -> Result<Vec<Block>> {
    let (mut found, _) = find(source, file, limits, salvage)?;
    found.retain_mut(|block| match block.require_data(source) {
        Ok(()) => true,
        Err(error) => {
            salvage.lost.push(format!("{}: {}", block.title(), error.message()));
            keep_rows(block, source)
        }
    });
    Ok(found)
}

/// Reduces a truncated station block to its complete rows. Returns false for other blocks and if no
/// row is complete.
fn keep_rows(block: &mut Block, source: &Source) -> bool {
    let Meta::Station(station) = &mut block.meta else { return false };
    let available = source.len().saturating_sub(block.header.data_location);
    let rows = available.checked_div(station.entry_len).unwrap_or(0).min(station.nelements);
    station.nelements = rows;
    block.header.data_length = rows * station.entry_len;
    rows > 0
}

/// Reads the block headers in the order of the file and searches for the next header after damaged
/// bytes.
fn scan(
    source: &Source,
    file: &FileHeader,
    limits: &Limits,
    salvage: &mut Salvage,
) -> Result<Vec<Block>> {
    let mut budget = Budget::new(file, limits);
    let mut blocks: Vec<Block> = Vec::new();
    let mut offset = file.first_block;
    // End of the previous block, computed from its lengths; its `next` field may be wrong.
    let mut previous_end = offset;
    // Blocks end at the summary, or at the end of a file that was not closed.
    let summary = if file.summary_size > 0 { file.summary_location } else { u64::MAX };
    let end = source.len().min(summary);
    let count = usize::try_from(file.nblocks).ok().filter(|n| *n > 0);
    loop {
        let block = if offset < end {
            Block::read(source, file, offset, &mut budget)
                .and_then(|block| plausible(&block, source).map(|()| block))
                .and_then(|block| match next_offset(&block) {
                    Err(error) if !is_valid(&block, source) => Err(error),
                    next => Ok((next.unwrap_or(block_end(&block)), block)),
                })
        } else {
            Err(Error::malformed("sdf-016", "expected a block header").at(offset))
        };
        if let (Ok((_, block)), Some(first)) = (&block, blocks.first())
            && is_copy(block, first)
        {
            break;
        }
        let complete = block.as_ref().is_ok_and(|(_, block)| is_complete(block, source));
        // The number of blocks may be wrong; further blocks must be complete.
        if count.is_some_and(|n| blocks.len() >= n) && !complete {
            break;
        }
        if offset != previous_end && !complete {
            let until = if offset > previous_end { offset.min(end) } else { end };
            if let Some(found) = search(source, file, previous_end, until, &mut budget)? {
                if found > previous_end {
                    let message = format!("bytes {previous_end} to {found}: no block header found");
                    salvage.lost.push(message);
                }
                (offset, previous_end) = (found, found);
                continue;
            }
        }
        match block {
            Ok((next, block)) => {
                previous_end = block_end(&block);
                blocks.push(block);
                offset = next;
            }
            Err(_) if offset >= end => break,
            Err(error) => {
                let message = format!("block at byte {offset}: {}", error.message());
                Report::default().absorb(error)?;
                salvage.lost.push(message);
                match search(source, file, offset + 1, end, &mut budget)? {
                    Some(found) => (offset, previous_end) = (found, found),
                    None => break,
                }
            }
        }
    }
    if let Some(n) = count.filter(|n| *n > blocks.len()) {
        salvage.lost.push(format!("{} of {n} blocks not found", n - blocks.len()));
    }
    Ok(blocks)
}

/// Offset of the first byte after a block: after its data if these follow its metadata.
fn block_end(block: &Block) -> u64 {
    let info = block.header.info_length.unwrap_or(block.meta_length);
    let end = block.meta_offset.saturating_add(info);
    let Extent { offset, len } = block.data();
    if offset == end { end.saturating_add(len) } else { end }
}

/// Offset of the first complete block between `from` and `end` whose data follow its metadata.
/// Headers of revision 0 do not store the length of the metadata; only offset `from` is tried.
fn search(
    source: &Source,
    file: &FileHeader,
    from: u64,
    end: u64,
    budget: &mut Budget,
) -> Result<Option<u64>> {
    let head = file.block_header_length;
    if !file.has_info_length() {
        let here = Block::read(source, file, from, budget);
        return Ok(here.is_ok_and(|block| is_complete(&block, source)).then_some(from));
    }
    let info_at = file.string_length as usize + 68;
    let mut at = from;
    while at < end {
        let window = (SEARCH + head).min(source.len().saturating_sub(at));
        budget.fits(window)?;
        let bytes = fetch(source, at, window as usize)?;
        let headers = bytes.windows(head as usize).take(SEARCH as usize);
        for (offset, header) in (at..end).zip(headers) {
            let mut data = Wire::new(&header[8..], offset, file.order, "sdf-009");
            let mut info = Wire::new(&header[info_at..], offset, file.order, "sdf-009");
            let meta_end = u64::from(info.u32()?).checked_add(offset + head);
            if Some(data.u64()?) != meta_end {
                continue;
            }
            let block = Block::read(source, file, offset, budget);
            if block.is_ok_and(|block| is_complete(&block, source)) {
                return Ok(Some(offset));
            }
        }
        at += SEARCH;
    }
    Ok(None)
}

/// Bytes searched per read.
const SEARCH: u64 = 1 << 20;

/// The block is a copy of the first one: the first entry of a summary whose location is unknown.
pub(crate) fn is_copy(block: &Block, first: &Block) -> bool {
    let key = |b: &Block| (b.header.id.clone(), b.header.data_location, b.header.blocktype);
    key(block) == key(first)
}

/// The block is valid and its `next` field is consistent with its data and the file.
pub(crate) fn is_complete(block: &Block, source: &Source) -> bool {
    let header = &block.header;
    let ends = header.data_location.checked_add(header.data_length);
    let after = ends.is_some_and(|end| end <= header.next && header.next <= source.len());
    is_valid(block, source) && after
}

/// The block has a known type, an identifier and all of its data.
fn is_valid(block: &Block, source: &Source) -> bool {
    let header = &block.header;
    let known = !matches!(block.meta, Meta::Other(_)) && header.datatype.code() <= 8;
    let named = !header.id.is_empty() && !header.id.contains(char::is_control);
    known && named && block.require_data(source).is_ok()
}

/// Fails for bytes that are not a block header, such as zeros that were never overwritten.
fn plausible(block: &Block, source: &Source) -> Result<()> {
    let unknown = matches!(block.kind(), BlockType::Null | BlockType::Unknown(_));
    let overlaps = block.header.data_location < block.meta_offset && block.header.data_length > 0;
    let outside = block.header.next > source.len().saturating_add(block.header.data_length);
    if unknown && (overlaps || outside || block.header.id.is_empty()) {
        return Err(Error::malformed("sdf-016", "expected a block header").at(block.offset));
    }
    Ok(())
}

/// The blocks of the summary, which readers use. A block whose data are outside the file according
/// to the summary is replaced by its own header; blocks beyond the stored number are appended.
fn prefer_summary(
    source: &Source,
    listed: Vec<Block>,
    found: &[Block],
    salvage: &mut Salvage,
) -> Vec<Block> {
    salvage.lost.clear();
    let choose = |(k, block): (usize, Block)| match found.get(k) {
        Some(own)
            if own.header.id == block.header.id
                && block.require_data(source).is_err()
                && own.require_data(source).is_ok() =>
        {
            own.clone()
        }
        _ => block,
    };
    let uncounted = found.get(listed.len()..).unwrap_or(&[]).to_vec();
    listed.into_iter().enumerate().map(choose).chain(uncounted).collect()
}
