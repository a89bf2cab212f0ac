//! What can be saved of a damaged file: every frame whose chunks are all whole.
//!
//! An index that moved leaves its older copies behind. Where the newest is lost with the end of the
//! file, the older ones still know most frames, and they can be found: all begin with the same
//! entry.

use std::collections::BTreeMap;
use std::io::Write as _;

use spile_core::error::Result;
use spile_core::format::Salvage;
use spile_core::limits::Limits;
use spile_core::sink::Sink;
use spile_core::source::Source;

use crate::assemble::Assembler;
use crate::index::{Index, Place};
use crate::read::{STEP, is_damage};
use crate::wire::{Block, Entry, Form, HEADER, Header, SLOT, Type};

/// Bytes looked through at once.
const WINDOW: usize = 1 << 20;

/// Frames named one by one in the report.
const TOLD: usize = 20;

/// Memory that a chunk takes until it is written.
const CHUNK_COST: u64 = 96;

pub(crate) fn salvage(source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
    let mut report = Salvage::default();
    let (index, whole) = open(source, limits, &mut report)?;
    // Of the last frame of an index that was cut, entries may be missing.
    let last = index.count.checked_sub(1).filter(|_| !whole);
    let doubtful = last.map(|k| index.entry(k)).transpose()?.map(|entry| entry.frame);
    limits.allow(index.room.saturating_mul(CHUNK_COST), "the places of all chunks")?;
    // Frame by frame, wherever in the index its entries are.
    let mut frames: BTreeMap<u64, Vec<(Entry, Place)>> = BTreeMap::new();
    let mut lost: BTreeMap<u64, String> = BTreeMap::new();
    let mut empty = 0_u64;
    // With a doubtful index everything that looks like an entry is tried.
    let end = if index.count > 0 { index.count } else { index.room };
    index.scan(0..end, |k, entry| {
        if entry.location == 0 && entry.n == 0 && entry.frame == 0 {
            empty += 1;
            return Ok(());
        }
        match index.place(k, &entry) {
            Ok(place) => frames.entry(entry.frame).or_default().push((entry, place)),
            Err(error) if is_damage(&error) => {
                let what = format!("{} ({})", error.message(), error.code());
                lost.entry(entry.frame).or_insert(what);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    })?;
    if let Some(frame) = doubtful {
        lost.entry(frame).or_insert("the index ends here; nobody knows how much is missing".into());
    }
    for frame in lost.keys() {
        frames.remove(frame);
    }
    // What is saved can be read: no number that promises more frames than anybody counts.
    while let Some((&frame, _)) = frames.last_key_value()
        && index.allow_frames(frame.saturating_add(1), limits).is_err()
    {
        frames.remove(&frame);
        lost.insert(frame, "its number is far beyond those of the others".into());
    }
    let mut names: Vec<Vec<u8>> = index.names.iter().map(<[u8]>::to_vec).collect();
    if names.is_empty() && !frames.is_empty() {
        names.push(Vec::new());
    }
    for (k, name) in names.iter_mut().enumerate().filter(|(_, name)| name.is_empty()) {
        *name = format!("unnamed-{k}").into_bytes();
        report.lost.push(format!("the name of the chunks that are now \"unnamed-{k}\""));
    }
    // The steps of 0.0.1 are in its entries, which the new file does not have.
    let steps = index.form().is_first() && index.names.id(STEP.as_bytes()).is_none();
    let step_id = names.len() as u32;
    if steps {
        names.push(STEP.into());
    }
    let chunks: u64 = frames.values().map(|chunks| chunks.len() as u64).sum();
    let entries = chunks + if steps { frames.len() as u64 } else { 0 };
    let mut out = Assembler::new(target, &index.header.about(), &names, entries)?;
    // Frames keep their numbers unless some before them are lost.
    let gaps: Vec<u64> = lost.keys().copied().collect();
    for (frame, chunks) in &frames {
        let number = frame - gaps.partition_point(|gap| gap < frame) as u64;
        for (entry, place) in chunks {
            // What 0.0.1 did not know are bytes.
            let kind = match place.kind {
                Type::Unknown(_) => Type::UInt8,
                kind => kind,
            };
            out.chunk(number, entry.id, (kind, entry.n, entry.m), |sink| {
                sink.copy_from(source, place.offset, place.len)
            })?;
        }
        if let Some((last, _)) = chunks.last().filter(|_| steps) {
            out.chunk(number, step_id, (Type::UInt64, 1, 1), |sink| {
                Ok(sink.write_all(&last.step.to_le_bytes())?)
            })?;
        }
    }
    out.finish()?;
    report.kept.push(format!("{} frames, {chunks} chunks", frames.len()));
    let told = lost.iter().take(TOLD).map(|(frame, what)| format!("frame {frame}: {what}"));
    report.lost.extend(told);
    if lost.len() > TOLD {
        report.lost.push(format!("{} frames more", lost.len() - TOLD));
    }
    if empty > 0 && index.count > 0 {
        report.lost.push(format!("{empty} entries of the index, which are empty"));
    }
    Ok(report)
}

/// Opens the index as it is, or an older copy of it, and tells whether its end is known.
fn open(source: &Source, limits: &Limits, report: &mut Salvage) -> Result<(Index, bool)> {
    let error = match Index::open(source, limits) {
        Ok(index) => return Ok((index, true)),
        Err(error) if is_damage(&error) => error,
        Err(error) => return Err(error),
    };
    let header = Header::read(source)?;
    report.lost.push(format!("{} ({})", error.message(), error.code()));
    let size = header.form.entry_size();
    let home =
        Block { location: header.form.header_size(), allocated: header.form.first_entries() };
    // The index where every file has its first one, then its copies, the last of which has most.
    let mut blocks = vec![home];
    let first = spile_core::wire::fetch(source, home.location, size as usize)?;
    if first.len() as u64 == size && first.iter().any(|b| *b != 0) {
        for location in occurrences(source, &first, limits)? {
            if location > home.location {
                let allocated = source.len().saturating_sub(location) / size;
                blocks.push(Block { location, allocated });
            }
        }
    }
    let names = names(source, &header, limits)?;
    let mut known = Vec::new();
    for block in blocks {
        let allocated = entries(source, header.form, block)?;
        // Older copies are full: only where the index is, or was first, is its end to be seen.
        let place = block.location == home.location || block.location == header.index.location;
        let behind = block.location + allocated * size;
        let next = spile_core::wire::fetch(source, behind, size as usize)?;
        let ended = next.len() as u64 == size && next.iter().all(|b| *b == 0);
        let whole = place && ended && allocated < block.allocated;
        known.push((Block { allocated, ..block }, whole));
    }
    known.sort_by_key(|(block, _)| std::cmp::Reverse(block.allocated));
    for (block, whole) in known.into_iter().filter(|(block, _)| block.allocated > 0) {
        let header = header.clone().with_blocks(block, names).with_marker(None);
        if let Ok(index) = Index::open_as(source, header, block.allocated, limits) {
            return Ok((index, whole));
        }
    }
    Err(error)
}

/// How many entries from a place on look like entries: frames do not decrease, locations are
/// inside the file.
fn entries(source: &Source, form: Form, block: Block) -> Result<u64> {
    let size = form.entry_size();
    let (mut count, mut frame) = (0, 0);
    while count < block.allocated {
        let bytes = spile_core::wire::fetch(source, block.location + count * size, size as usize)?;
        if (bytes.len() as u64) < size {
            break;
        }
        let entry = Entry::parse(form, &bytes, |_| 0)?;
        let inside = u64::try_from(entry.location).is_ok_and(|at| at >= form.header_size());
        let known = entry.kind(form).is_some() && entry.flags == 0 && entry.sound;
        if !inside || !known || entry.frame < frame || entry.bytes(form).is_none() {
            break;
        }
        frame = entry.frame;
        count += 1;
    }
    Ok(count)
}

/// The name list, where it is or where it was first.
fn names(source: &Source, header: &Header, limits: &Limits) -> Result<Option<Block>> {
    let Some(block) = header.names else { return Ok(None) };
    let usable = |block: Block| -> Result<bool> {
        let header = header.clone().with_blocks(header.index, Some(block));
        match crate::names::Names::read(source, &header, limits) {
            Ok(names) => Ok(names.len() > 0),
            Err(error) if is_damage(&error) => Ok(false),
            Err(error) => Err(error),
        }
    };
    if usable(block)? {
        return Ok(Some(block));
    }
    let location = HEADER + header.form.first_entries() * header.form.entry_size();
    let home = Block { location, allocated: header.form.first_slots() };
    // A list that moved begins with the names of its first place.
    let first = spile_core::wire::fetch(source, location, SLOT as usize)?;
    let start = first.split(|b| *b == 0).next().unwrap_or(&[]).to_vec();
    if start.len() >= 4 {
        for location in occurrences(source, &start, limits)?.into_iter().rev() {
            let mut allocated = home.allocated;
            while allocated > 0 && location + allocated * SLOT > source.len() {
                allocated /= 2;
            }
            let block = Block { location, allocated };
            if allocated > 0 && location != home.location && usable(block)? {
                return Ok(Some(block));
            }
        }
    }
    Ok(Some(home)
        .filter(|home| home.location + home.allocated * SLOT <= source.len())
        .or(Some(block)))
}

/// Every place of `pattern` in the file, up to a thousand.
fn occurrences(source: &Source, pattern: &[u8], limits: &Limits) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    let mut buffer = vec![0; WINDOW.min(limits.worker_buffer(1).max(pattern.len() * 4))];
    let mut at = 0;
    loop {
        let got = source.read_at_most(at, &mut buffer)?;
        let bytes = &buffer[..got];
        if got < pattern.len() {
            return Ok(found);
        }
        let places = bytes.windows(pattern.len()).enumerate().filter(|(_, w)| *w == pattern);
        found.extend(places.map(|(k, _)| at + k as u64));
        if found.len() > 1000 {
            return Ok(found);
        }
        at += (got - pattern.len() + 1) as u64;
    }
}

impl Index {
    /// Opens an index that something else than the header has found.
    fn open_as(source: &Source, header: Header, count: u64, limits: &Limits) -> Result<Self> {
        let header = Header { counted: Some(count), ..header };
        Self::on(source, header, limits)
    }
}
