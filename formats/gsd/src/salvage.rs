//! Recovery of damaged files: in the HOOMD schema every frame whose chunks are all readable, otherwise every
//! readable chunk.
//!
//! An index that was moved leaves its old copies in the file. If the index is lost with the end of the
//! file, these copies contain most frames. They are found by their first entry, which all have in common.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spile_core::format::{Salvage, Salvager};
use spile_core::{Error, Limits, Result, Sink, Source};

use crate::Gsd;
use crate::index::Index;
use crate::ops::{First, NameRule, Part, hoomd_parts};
use crate::read::{File, HOOMD, STEP};
use crate::semantics::{Trajectory, has_fallback};
use crate::wire::{Block, Entry, Form, HEADER, Header, SLOT};
use crate::write::SequentialWriter;

/// Bytes that are searched at once.
const WINDOW: usize = 1 << 20;

/// Maximum number of lost frames that the report lists.
const MAX_LISTED: usize = 20;

/// Memory of a chunk in bytes.
const CHUNK_COST: u64 = 128;

/// Consecutive frames without chunks that are accepted, unless there are more of them before.
const MAX_GAP: u64 = 1000;

/// Index entries and their numbers by frame.
type Frames = BTreeMap<u64, Vec<(u64, Entry)>>;

impl Salvager for Gsd {
    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        let mut report = Salvage::default();
        let (index, complete) = open(source, limits, &mut report)?;
        // Entries of the last frame of a truncated index may be missing.
        let last = index.count.checked_sub(1).filter(|_| !complete);
        let incomplete = last.map(|k| index.read_entry(k)).transpose()?.map(|entry| entry.frame);
        limits.allow(index.capacity.saturating_mul(CHUNK_COST), "the list of chunks")?;
        let file = File { index: Arc::new(index) };
        let index = &file.index;
        // Entries of a frame need not be contiguous.
        let mut frames = Frames::new();
        let mut lost: BTreeMap<u64, String> = BTreeMap::new();
        // Invalid entries of frame 0.
        let mut broken: Vec<Entry> = Vec::new();
        // Without the rules of HOOMD, no value depends on another chunk.
        let hoomd = index.header.schema == HOOMD;
        // By frame: the first lost chunk, what is wrong with it, and the number of lost chunks.
        let mut lost_chunks: BTreeMap<u64, (Arc<str>, String, u64)> = BTreeMap::new();
        let (mut empty, mut strays, mut newest) = (0_u64, 0_u64, 0);
        // If the end of the index is unknown, all entries of the block are tried.
        let after_end = index.find_entry_after_end()?;
        let end = if index.count > 0 && after_end.is_none() { index.count } else { index.capacity };
        let too_high = entries_too_high(index, end)?;
        index.scan(0..end, |k, entry| {
            if too_high.contains(&k) {
                strays += 1;
                return Ok(());
            }
            if is_empty(&entry) {
                // Empty entries before the end are a gap.
                empty += u64::from(k < after_end.unwrap_or(index.count));
                return Ok(());
            }
            // The frame number of an entry out of order may be damaged, so the frame itself is kept.
            let late = entry.frame < newest;
            newest = newest.max(entry.frame);
            let known = || {
                let frame = frames.get(&entry.frame);
                frame.is_some_and(|chunks| chunks.iter().any(|(_, e)| e.id == entry.id))
            };
            let stray = late && (index.names.bytes(entry.id).is_empty() || known());
            match index.locate(k, &entry) {
                Ok(_) if stray => strays += 1,
                Ok(_) => frames.entry(entry.frame).or_default().push((k, entry)),
                Err(error) if late && error.is_about_content() => strays += 1,
                Err(error) if error.is_about_content() => {
                    let what = format!("{} ({})", error.message(), error.code());
                    if !hoomd {
                        let name = index.names.display(entry.id);
                        let frame = lost_chunks.entry(entry.frame).or_insert((name, what, 0));
                        frame.2 += 1;
                        return Ok(());
                    }
                    lost.entry(entry.frame).or_insert(what);
                    if entry.frame == 0 {
                        broken.push(entry);
                    }
                }
                Err(error) => return Err(error),
            }
            Ok(())
        })?;
        let all_chunks = lost_chunks.iter().filter(|(frame, _)| !frames.contains_key(frame));
        lost.extend(all_chunks.map(|(frame, (_, what, _))| (*frame, what.clone())));
        if let Some(frame) = incomplete {
            lost.entry(frame)
                .or_insert("the index is truncated here; chunks may be missing".into());
        }
        let first = frames.get(&0).cloned().unwrap_or_default();
        for frame in lost.keys() {
            frames.remove(frame);
        }
        for frame in drop_far_frames(&mut frames, &lost) {
            lost.insert(frame, "its number is far larger than those before it".into());
        }
        let trajectory = if hoomd && lost.contains_key(&0) {
            without_first_frame(&file, &first, &broken, &mut frames, &mut lost, &mut report)?
        } else {
            None
        };
        let mut names = index.names.distinct(NameRule::Keep, !frames.is_empty())?;
        for id in (0..names.len() as u32).filter(|id| index.names.bytes(*id).is_empty()) {
            let name = names.display(id);
            report.lost.push(format!("the name of chunks that are written as \"{name}\""));
        }
        // Steps of 0.0.1 become chunks.
        let steps = index.form().is_v0_0_1() && index.names.id(STEP.as_bytes()).is_none();
        let step_id = if steps { names.intern(STEP.as_bytes())? } else { u32::MAX };
        let mut first = First::new();
        let mut parts = |number: usize, frame: u64| -> Result<Vec<(u32, Part)>> {
            let mut chunks = Vec::new();
            for (k, entry) in &frames[&frame] {
                chunks.push(file.chunk(*k, *entry)?);
            }
            let step = chunks.last().filter(|_| steps).map(|chunk| chunk.entry.step);
            let mut parts: Vec<(u32, Part)> = Vec::new();
            if let Some(trajectory) = &trajectory {
                let resolved = trajectory.resolve_chunks(frame, chunks)?;
                for (name, part) in hoomd_parts(&resolved, 0, number == 0, &mut first)? {
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
        let all = frames.last_key_value().map_or(0, |(frame, _)| frame + 1);
        let mut out = SequentialWriter::new(target, &index.header.about(), &names, entries, all)?;
        // Frame numbers decrease by the number of lost frames before them.
        let gaps: Vec<u64> = lost.keys().copied().collect();
        for (number, frame) in frames.keys().enumerate() {
            let new_frame = frame - gaps.partition_point(|gap| gap < frame) as u64;
            for (id, part) in parts(number, *frame)? {
                part.write(new_frame, id, source, &mut out)?;
            }
        }
        out.finish()?;
        let chunks: usize = frames.values().map(Vec::len).sum();
        report.kept.push(format!("{} frames, {chunks} chunks", frames.len()));
        let listed =
            lost.iter().take(MAX_LISTED).map(|(frame, what)| format!("frame {frame}: {what}"));
        report.lost.extend(listed);
        if lost.len() > MAX_LISTED {
            report.lost.push(format!("{} more frames", lost.len() - MAX_LISTED));
        }
        lost_chunks.retain(|frame, _| frames.contains_key(frame));
        let listed = lost_chunks.iter().take(MAX_LISTED).map(|(frame, (name, what, count))| {
            let others =
                if *count > 1 { format!(", and {} more", count - 1) } else { String::new() };
            format!("chunk \"{name}\" of frame {frame}: {what}{others}")
        });
        report.lost.extend(listed);
        if lost_chunks.len() > MAX_LISTED {
            let more = lost_chunks.len() - MAX_LISTED;
            report.lost.push(format!("chunks of {more} more frames"));
        }
        if strays > 0 {
            report
                .lost
                .push(format!("{strays} entries out of order that belong to no known frame"));
        }
        if empty > 0 {
            report.lost.push(format!("{empty} index entries that are empty"));
        }
        Ok(report)
    }
}

/// Removes the frames after a gap that is much larger than those before it, and returns their numbers. Frames
/// without chunks take no space, so a damaged number could add any number of them.
fn drop_far_frames(frames: &mut Frames, lost: &BTreeMap<u64, String>) -> BTreeSet<u64> {
    let mut known: BTreeSet<u64> = frames.keys().chain(lost.keys()).copied().collect();
    let (mut gap, mut next, mut far) = (MAX_GAP, 0, None);
    for frame in &known {
        if frame - next > gap {
            far = Some(*frame);
            break;
        }
        gap = gap.max((frame - next).saturating_mul(2));
        next = frame.saturating_add(1);
    }
    let dropped = far.map_or(BTreeSet::new(), |far| known.split_off(&far));
    for frame in &dropped {
        frames.remove(frame);
    }
    dropped
}

fn is_empty(entry: &Entry) -> bool {
    entry.location == 0 && entry.n == 0 && entry.frame == 0
}

/// Numbers of the entries before `end` whose frame is larger than those of later entries: entries are ordered by
/// frame, so theirs is damaged. The others are a longest sequence in order.
fn entries_too_high(index: &Index, end: u64) -> Result<BTreeSet<u64>> {
    let mut frames: Vec<(u64, u64)> = Vec::new();
    index.scan(0..end, |k, entry| {
        if !is_empty(&entry) {
            frames.push((k, entry.frame));
        }
        Ok(())
    })?;
    // Patience sorting: the last entries of the best sequences of each length, and the predecessors of all.
    let mut last: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(frames.len());
    for (at, (_, frame)) in frames.iter().enumerate() {
        let length = last.partition_point(|k| frames[*k].1 <= *frame);
        before.push(length.checked_sub(1).map(|shorter| last[shorter]));
        if length == last.len() {
            last.push(at);
        } else {
            last[length] = at;
        }
    }
    let mut found = BTreeSet::new();
    let mut next = last.last().copied();
    let mut at = frames.len();
    let mut following = u64::MAX;
    while at > 0 {
        at -= 1;
        if next == Some(at) {
            following = frames[at].1;
            next = before[at];
        } else if frames[at].1 > following {
            found.insert(frames[at].0);
        }
    }
    Ok(found)
}

/// For a HOOMD file whose frame 0 is lost: a trajectory that resolves the fallback with the readable
/// chunks of frame 0. Chunks that are lost are added to the report; frames that depend on a lost count
/// (`<group>/N`) are lost too.
fn without_first_frame(
    file: &File,
    first: &[(u64, Entry)],
    broken: &[Entry],
    frames: &mut Frames,
    lost: &mut BTreeMap<u64, String>,
    report: &mut Salvage,
) -> Result<Option<Trajectory>> {
    let names = &file.index.names;
    let readable = first.iter().map(|(k, entry)| file.chunk(*k, *entry));
    let trajectory = Trajectory::with_first_frame(file.clone(), readable.collect::<Result<_>>()?);
    let known = broken.iter().all(|entry| names.contains(entry.id));
    if !known || !names.are_unique_text() {
        report
            .lost
            .push("values of frame 0 without a usable name that other frames fall back to".into());
    }
    if !names.are_unique_text() {
        return Ok(None);
    }
    let missing: BTreeSet<u32> = broken.iter().map(|entry| entry.id).collect();
    for id in
        missing.into_iter().filter(|id| names.contains(*id) && has_fallback(&names.display(*id)))
    {
        let name = names.display(id);
        let lacks = |chunks: &[(u64, Entry)]| chunks.iter().all(|(_, entry)| entry.id != id);
        let affected: Vec<u64> =
            frames.iter().filter(|(_, chunks)| lacks(chunks)).map(|(frame, _)| *frame).collect();
        let Some(frame) = affected.first() else { continue };
        if name.ends_with("/N") {
            for frame in affected {
                frames.remove(&frame);
                lost.insert(frame, format!("\"{name}\" of frame 0, which it requires, is lost"));
            }
            continue;
        }
        let which = match affected.len() {
            1 => format!("frame {frame}"),
            n => format!("{n} frames, first frame {frame}"),
        };
        report
            .lost
            .push(format!("\"{name}\" of {which}, stored in frame 0; replaced by the default"));
    }
    Ok(Some(trajectory))
}

/// Opens the index or the largest usable copy of it. Returns whether it is complete.
fn open(source: &Source, limits: &Limits, report: &mut Salvage) -> Result<(Index, bool)> {
    let error = match Index::open(source, limits) {
        Ok(index) => return Ok((index, true)),
        Err(error) if error.is_about_content() => error,
        Err(error) => return Err(error),
    };
    let header = Header::read(source)?;
    report.lost.push(format!("{} ({})", error.message(), error.code()));
    let size = header.form.entry_size();
    let initial =
        Block { location: header.form.header_size(), allocated: header.form.initial_entries() };
    // The initial location of the index and copies of it.
    let mut blocks = vec![initial];
    let first = spile_core::wire::fetch(source, initial.location, size as usize)?;
    if first.len() as u64 == size && first.iter().any(|b| *b != 0) {
        for location in occurrences(source, &first, limits)? {
            if location > initial.location {
                let allocated = source.len().saturating_sub(location) / size;
                blocks.push(Block { location, allocated });
            }
        }
    }
    let names = find_names(source, &header, limits)?;
    let mut known = Vec::new();
    for block in blocks {
        let allocated = plausible_entries(source, header.form, block)?;
        // Old copies are full; only the current and the initial location can show the end.
        let known_location =
            block.location == initial.location || block.location == header.index.location;
        let end = block.location + allocated * size;
        let next = spile_core::wire::fetch(source, end, size as usize)?;
        let ended = next.len() as u64 == size && next.iter().all(|b| *b == 0);
        let complete = known_location && ended && allocated < block.allocated;
        known.push((Block { allocated, ..block }, complete));
    }
    known.sort_by_key(|(block, _)| std::cmp::Reverse(block.allocated));
    for (block, complete) in known.into_iter().filter(|(block, _)| block.allocated > 0) {
        let header = header.clone().with_blocks(block, names).with_marker(None);
        let header = Header { stored_count: Some(block.allocated), ..header };
        if let Ok(index) = Index::with_header(source, header, limits) {
            return Ok((index, complete));
        }
    }
    // The hint of the error is to call salvage, so it is replaced.
    let object = error.object().unwrap_or("index").to_string();
    Err(Error::new(error.kind(), error.code(), error.message())
        .in_object(object)
        .at(error.offset().unwrap_or(0))
        .hint("nothing can be recovered: no usable index entry or name"))
}

/// Number of plausible entries at the start of a block: frames do not decrease, all fields are valid.
fn plausible_entries(source: &Source, form: Form, block: Block) -> Result<u64> {
    let size = form.entry_size();
    let (mut count, mut frame) = (0, 0);
    while count < block.allocated {
        let bytes = spile_core::wire::fetch(source, block.location + count * size, size as usize)?;
        if (bytes.len() as u64) < size {
            break;
        }
        let entry = Entry::parse(form, &bytes, |_| 0)?;
        let inside = u64::try_from(entry.location).is_ok_and(|at| at >= form.header_size());
        let known = entry.kind(form).is_some() && entry.flags == 0 && entry.checksum_ok;
        if !inside || !known || entry.frame < frame || entry.bytes(form).is_none() {
            break;
        }
        frame = entry.frame;
        count += 1;
    }
    Ok(count)
}

/// Location of a usable name list: the current one, a copy, or the initial one.
fn find_names(source: &Source, header: &Header, limits: &Limits) -> Result<Option<Block>> {
    let Some(block) = header.names else { return Ok(None) };
    let usable = |block: Block| -> Result<bool> {
        let header = header.clone().with_blocks(header.index, Some(block));
        match crate::names::Names::read(source, &header, limits) {
            Ok(names) => Ok(names.len() > 0),
            Err(error) if error.is_about_content() => Ok(false),
            Err(error) => Err(error),
        }
    };
    if usable(block)? {
        return Ok(Some(block));
    }
    let location = HEADER + header.form.initial_entries() * header.form.entry_size();
    let initial = Block { location, allocated: header.form.initial_slots() };
    // A list that was moved starts with the names of the initial one.
    let first = spile_core::wire::fetch(source, location, SLOT as usize)?;
    let start = first.split(|b| *b == 0).next().unwrap_or(&[]).to_vec();
    if start.len() >= 4 {
        for location in occurrences(source, &start, limits)?.into_iter().rev() {
            let mut allocated = initial.allocated;
            while allocated > 0 && location + allocated * SLOT > source.len() {
                allocated /= 2;
            }
            let block = Block { location, allocated };
            if allocated > 0 && location != initial.location && usable(block)? {
                return Ok(Some(block));
            }
        }
    }
    Ok(Some(initial)
        .filter(|initial| initial.location + initial.allocated * SLOT <= source.len())
        .or(Some(block)))
}

/// Offsets of `pattern` in the file, about a thousand at most.
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
        let matches = bytes.windows(pattern.len()).enumerate().filter(|(_, w)| *w == pattern);
        found.extend(matches.map(|(k, _)| at + k as u64));
        if found.len() > 1000 {
            return Ok(found);
        }
        at += (got - pattern.len() + 1) as u64;
    }
}
