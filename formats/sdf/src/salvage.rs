//! What can be saved of a file that was never closed, failed, was cut, or has a damaged summary:
//! every whole block, into a finished file.

use spile_core::error::{Error, Result};
use spile_core::format::Salvage;
use spile_core::layout::Extent;
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::sink::Sink;
use spile_core::source::Source;
use spile_core::wire::{Wire, fetch};

use crate::index::{self, Block, Budget, follow};
use crate::kind::BlockType;
use crate::meta::Meta;
use crate::wire::FileHeader;
use crate::write::Writer;

pub(crate) fn salvage(source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
    let file = FileHeader::read(source)
        .map_err(|e| e.hint("the file header is not whole; without it nothing can be read"))?;
    let mut saved = Salvage::default();
    let mut found = walk(source, &file, limits, &mut saved)?;
    if file.summary_size > 0 && file.nblocks > 0 {
        match index::summary(source, &file, limits) {
            Ok(listed) => found = prefer(source, listed, &found, &mut saved),
            Err(error) => {
                saved.lost.push(format!("the summary: {}; a new one was made", error.message()));
                Report::default().absorb(error)?;
            }
        }
    }
    let mut writer = Writer::new(target, &file)?;
    // Data of contiguous blocks, where they were and where they are now.
    let mut moved: Vec<(Extent, Extent)> = Vec::new();
    for mut block in found {
        if let Err(error) = block.require_data(source) {
            saved.lost.push(format!("{}: {}", block.title(), error.message()));
            if !keep_rows(&mut block, source) {
                continue;
            }
        }
        if let Meta::Constant(_) = block.meta {
            // Its value is in the metadata, whatever length its header gives.
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
        saved.kept.push(block.title());
    }
    writer.finish()?;
    Ok(saved)
}

/// Leaves a station block the rows that are whole: each is a moment of its own. False for other
/// blocks, and where there is no such row.
fn keep_rows(block: &mut Block, source: &Source) -> bool {
    let Meta::Station(station) = &mut block.meta else { return false };
    let there = source.len().saturating_sub(block.header.data_location);
    let rows = there.checked_div(station.entry_len).unwrap_or(0).min(station.nelements);
    station.nelements = rows;
    block.header.data_length = rows * station.entry_len;
    rows > 0
}

/// The blocks as they lie in the file; what is no block is passed over.
fn walk(
    source: &Source,
    file: &FileHeader,
    limits: &Limits,
    saved: &mut Salvage,
) -> Result<Vec<Block>> {
    let mut budget = Budget::new(file, limits);
    let mut blocks: Vec<Block> = Vec::new();
    let mut offset = file.first_block;
    // Where the block before ends by its own account: its pointer to the next may be wrong.
    let mut behind = offset;
    // A file that was closed says where its blocks end; any other is read to its end.
    let summary = if file.summary_size > 0 { file.summary_location } else { u64::MAX };
    let end = source.len().min(summary);
    let number = usize::try_from(file.nblocks).ok().filter(|n| *n > 0);
    loop {
        let block = if offset < end {
            Block::read(source, file, offset, &mut budget)
                .and_then(|block| plausible(&block, source).map(|()| block))
                .and_then(|block| match follow(&block) {
                    Err(error) if !sensible(&block, source) => Err(error),
                    next => Ok((next.unwrap_or(own_end(&block)), block)),
                })
        } else {
            Err(Error::malformed("sdf-016", "the blocks end here").at(offset))
        };
        if let (Ok((_, block)), Some(first)) = (&block, blocks.first())
            && repeats(block, first)
        {
            break;
        }
        let sure = block.as_ref().is_ok_and(|(_, block)| convincing(block, source));
        // The number of blocks may be wrong, too, but what follows them may be anything.
        if number.is_some_and(|n| blocks.len() >= n) && !sure {
            break;
        }
        if offset != behind && !sure {
            let until = if offset > behind { offset.min(end) } else { end };
            if let Some(found) = search(source, file, behind, until, &mut budget)? {
                if found > behind {
                    let message = format!("what follows byte {behind}: no block before {found}");
                    saved.lost.push(message);
                }
                (offset, behind) = (found, found);
                continue;
            }
        }
        match block {
            Ok((next, block)) => {
                behind = own_end(&block);
                blocks.push(block);
                offset = next;
            }
            Err(_) if offset >= end => break,
            Err(error) => {
                let message = format!("what follows byte {offset}: {}", error.message());
                Report::default().absorb(error)?;
                saved.lost.push(message);
                match search(source, file, offset + 1, end, &mut budget)? {
                    Some(found) => (offset, behind) = (found, found),
                    None => break,
                }
            }
        }
    }
    if let Some(n) = number.filter(|n| *n > blocks.len()) {
        saved.lost.push(format!("{} of {n} blocks could not be reached", n - blocks.len()));
    }
    Ok(blocks)
}

/// The byte behind a block: behind its data, where these follow its metadata.
fn own_end(block: &Block) -> u64 {
    let info = block.header.info_length.unwrap_or(block.meta_length);
    let end = block.meta_offset.saturating_add(info);
    let Extent { offset, len } = block.data();
    if offset == end { end.saturating_add(len) } else { end }
}

/// The next place from `from` on and before `end` that looks like a block: its data begin exactly
/// where its metadata end. Only since revision 1 do headers tell where that is; before, only `from`
/// itself is looked at.
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
        return Ok(here.is_ok_and(|block| convincing(&block, source)).then_some(from));
    }
    let info_at = file.string_length as usize + 68;
    let mut at = from;
    while at < end {
        let window = (SEARCH + head).min(source.len().saturating_sub(at));
        budget.fits(window)?;
        let bytes = fetch(source, at, window as usize)?;
        let places = bytes.windows(head as usize).take(SEARCH as usize);
        for (place, header) in (at..end).zip(places) {
            let mut data = Wire::new(&header[8..], place, file.order, "sdf-009");
            let mut info = Wire::new(&header[info_at..], place, file.order, "sdf-009");
            let behind = u64::from(info.u32()?).checked_add(place + head);
            if Some(data.u64()?) != behind {
                continue;
            }
            let block = Block::read(source, file, place, budget);
            if block.is_ok_and(|block| convincing(&block, source)) {
                return Ok(Some(place));
            }
        }
        at += SEARCH;
    }
    Ok(None)
}

/// Bytes that are looked through at once.
const SEARCH: u64 = 1 << 20;

/// The block is a copy of the first one: a summary that the header does not know of begins here.
pub(crate) fn repeats(block: &Block, first: &Block) -> bool {
    let key = |b: &Block| (b.header.id.clone(), b.header.data_location, b.header.blocktype);
    key(block) == key(first)
}

/// Nothing about it speaks against a block that its writer has finished.
pub(crate) fn convincing(block: &Block, source: &Source) -> bool {
    let header = &block.header;
    let ends = header.data_location.checked_add(header.data_length);
    let after = ends.is_some_and(|end| end <= header.next && header.next <= source.len());
    sensible(block, source) && after
}

/// The same, wherever it says that the next block is.
fn sensible(block: &Block, source: &Source) -> bool {
    let header = &block.header;
    let known = !matches!(block.meta, Meta::Other(_)) && header.datatype.code() <= 8;
    let named = !header.id.is_empty() && !header.id.contains(char::is_control);
    known && named && block.require_data(source).is_ok()
}

/// Room that was reserved and never written reads as zeros, and garbage as anything.
fn plausible(block: &Block, source: &Source) -> Result<()> {
    let unknown = matches!(block.kind(), BlockType::Null | BlockType::Unknown(_));
    let nowhere = block.header.data_location < block.meta_offset && block.header.data_length > 0;
    let outside = block.header.next > source.len().saturating_add(block.header.data_length);
    if unknown && (nowhere || outside || block.header.id.is_empty()) {
        return Err(Error::malformed("sdf-016", "this is no block").at(block.offset));
    }
    Ok(())
}

/// The blocks as the summary lists them, which is what readers see; where that puts data outside
/// the file, what the block says itself. With a whole summary no header was needed, but blocks
/// that nobody counted are only found by theirs.
fn prefer(source: &Source, listed: Vec<Block>, found: &[Block], saved: &mut Salvage) -> Vec<Block> {
    saved.lost.clear();
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
