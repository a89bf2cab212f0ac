//! What can be saved of a damaged file: every frame whose chunks are all whole.
//!
//! An index that moved leaves its older copies behind. Where the newest is lost with the end of the
//! file, the older ones still know most frames, and they can be found: all begin with the same
//! entry.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spile_core::error::{Error, Result};
use spile_core::format::Salvage;
use spile_core::limits::Limits;
use spile_core::sink::Sink;
use spile_core::source::Source;

use crate::assemble::Assembler;
use crate::index::Index;
use crate::ops::{First, Part, hoomd_parts};
use crate::read::{File, HOOMD, STEP, is_damage};
use crate::schema::{Trajectory, falls_back};
use crate::wire::{Block, Entry, Form, HEADER, Header, SLOT};

/// Bytes looked through at once.
const WINDOW: usize = 1 << 20;

/// Frames named one by one in the report.
const TOLD: usize = 20;

/// Memory that a chunk takes until it is written.
const CHUNK_COST: u64 = 96;

/// Index entries by frame, with their numbers.
type Frames = BTreeMap<u64, Vec<(u64, Entry)>>;

pub(crate) fn salvage(source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
    let mut report = Salvage::default();
    let (index, whole) = open(source, limits, &mut report)?;
    // Of the last frame of an index that was cut, entries may be missing.
    let last = index.count.checked_sub(1).filter(|_| !whole);
    let doubtful = last.map(|k| index.entry(k)).transpose()?.map(|entry| entry.frame);
    limits.allow(index.room.saturating_mul(CHUNK_COST), "the places of all chunks")?;
    let file = File { index: Arc::new(index) };
    let index = &file.index;
    // Frame by frame, wherever in the index its entries are.
    let mut frames = Frames::new();
    let mut lost: BTreeMap<u64, String> = BTreeMap::new();
    // What was wrong with frame 0, chunk by chunk.
    let mut broken: Vec<Entry> = Vec::new();
    let (mut empty, mut strays, mut newest) = (0_u64, 0_u64, 0);
    // With a doubtful index everything that looks like an entry is tried.
    let beyond = index.find_beyond()?;
    let end = if index.count > 0 && beyond.is_none() { index.count } else { index.room };
    index.scan(0..end, |k, entry| {
        if entry.location == 0 && entry.n == 0 && entry.frame == 0 {
            // Free room ends an index; before that, it is a hole.
            empty += u64::from(k < beyond.unwrap_or(index.count));
            return Ok(());
        }
        // An entry out of order may have lost its frame number: it costs no other frame.
        let late = entry.frame < newest;
        newest = newest.max(entry.frame);
        let known = || {
            let frame = frames.get(&entry.frame);
            frame.is_some_and(|chunks| chunks.iter().any(|(_, e)| e.id == entry.id))
        };
        let stray = late && (index.names.raw(entry.id).is_empty() || known());
        match index.place(k, &entry) {
            Ok(_) if stray => strays += 1,
            Ok(_) => frames.entry(entry.frame).or_default().push((k, entry)),
            Err(error) if late && is_damage(&error) => strays += 1,
            Err(error) if is_damage(&error) => {
                let what = format!("{} ({})", error.message(), error.code());
                lost.entry(entry.frame).or_insert(what);
                if entry.frame == 0 {
                    broken.push(entry);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(())
    })?;
    if let Some(frame) = doubtful {
        lost.entry(frame).or_insert("the index ends here; nobody knows how much is missing".into());
    }
    let first = frames.get(&0).cloned().unwrap_or_default();
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
    let trajectory = if lost.contains_key(&0) && index.header.schema == HOOMD {
        without_first(&file, &first, &broken, &mut frames, &mut lost, &mut report)?
    } else {
        None
    };
    let mut names = index.names.distinct(!frames.is_empty(), limits)?;
    for id in (0..names.len() as u32).filter(|id| index.names.raw(*id).is_empty()) {
        let name = names.text(id);
        report.lost.push(format!("the name of the chunks that are now \"{name}\""));
    }
    // The steps of 0.0.1 are in its entries, which the new file does not have.
    let steps = index.form().is_first() && index.names.id(STEP.as_bytes()).is_none();
    let step_id = if steps { names.intern(STEP.as_bytes(), limits)? } else { u32::MAX };
    let mut home = First::new();
    let mut parts = |number: usize, frame: u64| -> Result<Vec<(u32, Part)>> {
        let mut chunks = Vec::new();
        for (k, entry) in &frames[&frame] {
            chunks.push(file.chunk(*k, *entry)?);
        }
        let step = chunks.last().filter(|_| steps).map(|chunk| chunk.entry.step);
        let mut parts: Vec<(u32, Part)> = Vec::new();
        if let Some(trajectory) = &trajectory {
            let resolved = trajectory.resolve_with(frame, chunks)?;
            for (name, part) in hoomd_parts(resolved, 0, number == 0, &mut home, limits)? {
                parts.extend(names.id(name.as_bytes()).map(|id| (id, part)));
            }
        } else {
            parts.extend(chunks.into_iter().map(|chunk| (chunk.entry.id, Part::Copied(chunk))));
        }
        parts.extend(step.map(|step| (step_id, Part::Step(step))));
        Ok(parts)
    };
    let mut entries = 0;
    for (number, frame) in frames.keys().enumerate() {
        entries += parts(number, *frame)?.len() as u64;
    }
    let list: Vec<Vec<u8>> = names.iter().map(<[u8]>::to_vec).collect();
    let all = frames.last_key_value().map_or(0, |(frame, _)| frame + 1);
    let mut out = Assembler::new(target, &index.header.about(), &list, entries, all)?;
    // Frames keep their numbers unless some before them are lost.
    let gaps: Vec<u64> = lost.keys().copied().collect();
    for (number, frame) in frames.keys().enumerate() {
        let place = frame - gaps.partition_point(|gap| gap < frame) as u64;
        for (id, part) in parts(number, *frame)? {
            part.write(place, id, source, &mut out)?;
        }
    }
    out.finish()?;
    let chunks: usize = frames.values().map(Vec::len).sum();
    report.kept.push(format!("{} frames, {chunks} chunks", frames.len()));
    let told = lost.iter().take(TOLD).map(|(frame, what)| format!("frame {frame}: {what}"));
    report.lost.extend(told);
    if lost.len() > TOLD {
        report.lost.push(format!("{} frames more", lost.len() - TOLD));
    }
    if strays > 0 {
        report.lost.push(format!("{strays} entries that are out of order and of no known frame"));
    }
    if empty > 0 {
        report.lost.push(format!("{empty} entries of the index, which are empty"));
    }
    Ok(report)
}

/// Frames of a HOOMD file whose frame 0 is lost: what they took from it and can still be read goes
/// into them. What cannot is told, and frames whose number of particles it was are lost too.
fn without_first(
    file: &File,
    first: &[(u64, Entry)],
    broken: &[Entry],
    frames: &mut Frames,
    lost: &mut BTreeMap<u64, String>,
    report: &mut Salvage,
) -> Result<Option<Trajectory>> {
    let names = &file.index.names;
    let readable = first.iter().map(|(k, entry)| file.chunk(*k, *entry));
    let trajectory = Trajectory::behind(file.clone(), readable.collect::<Result<_>>()?);
    let known = broken.iter().all(|entry| names.has(entry.id));
    if !known || !names.are_plain() {
        report.lost.push("what other frames took from frame 0, as far as it had no name".into());
    }
    if !names.are_plain() {
        return Ok(None);
    }
    let missing: BTreeSet<u32> = broken.iter().map(|entry| entry.id).collect();
    for id in missing.into_iter().filter(|id| names.has(*id) && falls_back(&names.text(*id))) {
        let name = names.text(id);
        let lacks = |chunks: &[(u64, Entry)]| chunks.iter().all(|(_, entry)| entry.id != id);
        let concerned: Vec<u64> =
            frames.iter().filter(|(_, chunks)| lacks(chunks)).map(|(frame, _)| *frame).collect();
        let Some(frame) = concerned.first() else { continue };
        if name.ends_with("/N") {
            for frame in concerned {
                frames.remove(&frame);
                lost.insert(frame, format!("\"{name}\" of frame 0, which it needs, is lost"));
            }
            continue;
        }
        let which = match concerned.len() {
            1 => format!("frame {frame}"),
            n => format!("{n} frames from frame {frame} on"),
        };
        report.lost.push(format!(
            "\"{name}\" of {which}, which was in frame 0; the default stands there now"
        ));
    }
    Ok(Some(trajectory))
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
    // Not with its own hint, which is to do what has just failed.
    let place = error.object().unwrap_or("index").to_string();
    Err(Error::new(error.kind(), error.code(), error.message())
        .in_object(place)
        .at(error.offset().unwrap_or(0))
        .hint("nothing can be saved: the file has no index entry or no name that can be used"))
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
