//! Operations on complete files: upgrade, trim, merge, append.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spile_core::format::Concatenator;
use spile_core::{Error, Hint, Limits, Overwrite, Result, Sink, Source};

use crate::Gsd;
use crate::names::Names;
use crate::read::{Chunk, File, HOOMD, STEP};
use crate::semantics::{
    Precision, Resolved, Trajectory, TrajectoryWriter, Values, default_values, field, has_fallback,
    missing_value,
};
use crate::wire::{Entry, Form, HEADER, Header, SLOT, Type, tables_for};
use crate::write::{Mode, SequentialWriter, Writer, check_chunk, check_names};

/// Result of an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upgraded {
    /// Number of chunks in the index.
    pub chunks: u64,
    /// Number of steps of 0.0.1 that became chunks `configuration/step`.
    pub steps: u64,
}

/// Names of chunks in an upgraded file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRule {
    /// Names are kept.
    #[default]
    Keep,
    /// Bytes of names that are not UTF-8 are replaced by `%` and two hexadecimal digits.
    Utf8,
}

/// Converts a file of any version to 2.1 in place. Data are not moved: a new index and a new name list
/// are appended, and one write of the header activates them, so that the upgrade is atomic. If a write or
/// sync fails, the file has its old content.
pub fn upgrade(path: impl AsRef<Path>, rule: NameRule, limits: &Limits) -> Result<Upgraded> {
    let path = path.as_ref();
    let sink = Sink::edit_alone(path)?;
    let file = File::open(path, limits)?;
    let old = file.source().read_vec(0, HEADER.min(file.source().current_len()?))?;
    let len = file.source().current_len()?;
    let done = upgrade_on(&sink, &file, rule);
    if done.is_err() {
        let _ = sink.write_all_at(0, &old).and_then(|()| sink.set_len(len));
    }
    done.map_err(|e| e.with_path(path).with_format("gsd"))
}

fn upgrade_on(sink: &Sink, file: &File, rule: NameRule) -> Result<Upgraded> {
    let index = &file.index;
    index.require_complete()?;
    let form = index.form();
    let mut names = index.distinct_names(rule)?;
    let own_steps = form.is_v0_0_1() && index.names.id(STEP.as_bytes()).is_none();
    let step_id = if own_steps { names.intern(STEP.as_bytes())? } else { u32::MAX };
    check_names(&names)?;
    let entries = index.count.saturating_mul(if own_steps { 2 } else { 1 });
    let header = Header::new(Form::V2, 2 << 16 | 1, &index.header.about());
    let size = Form::V2.entry_size();
    // Index, names, then the steps of 0.0.1, all appended.
    let location = file.source().current_len()?.next_multiple_of(size);
    let list = names.encode(Form::V2, 0);
    let (index_block, names_block) =
        tables_for(location, entries, index.frames()?, list.len() as u64);
    let mut tail = names_block.location + names_block.allocated * SLOT;
    sink.reserve(tail)?;
    sink.write_all_at(names_block.location, &list)?;
    let mut done = Upgraded { chunks: 0, steps: 0 };
    let mut frame: Vec<Entry> = Vec::new();
    let mut write = |frame: &mut Vec<Entry>, step: Option<u64>| -> Result<()> {
        if let (Some(first), Some(step)) = (frame.first().copied(), step) {
            sink.write_all_at(tail, &step.to_le_bytes())?;
            let code = Type::UInt64.code(Form::V2).unwrap_or(0);
            let location = tail as i64;
            frame.push(Entry { n: 1, m: 1, location, id: step_id, code, step: 0, ..first });
            tail += 8;
            done.steps += 1;
        }
        frame.sort_by_key(|entry| entry.id);
        let mut bytes = Vec::with_capacity(frame.len() * size as usize);
        for entry in frame.iter() {
            entry.encode(Form::V2, &[], &mut bytes);
        }
        sink.write_all_at(location + done.chunks * size, &bytes)?;
        done.chunks += frame.len() as u64;
        frame.clear();
        Ok(())
    };
    let mut step = None;
    file.each_chunk(|chunk| {
        let chunk = chunk?;
        if frame.first().is_some_and(|e| e.frame > chunk.entry.frame) {
            return Err(Error::malformed("gsd-012", "the frames are not in ascending order")
                .in_frame(chunk.entry.frame)
                .hint(Hint::salvage("sorts the frames")));
        }
        if frame.first().is_some_and(|e| e.frame != chunk.entry.frame) {
            write(&mut frame, step)?;
        }
        let (kind, Entry { n, m, .. }) = (chunk.data.kind.known(), chunk.entry);
        let in_chunk = |e: Error| e.in_object(format!("chunk \"{}\"", chunk.name));
        let code = check_chunk(kind, n, m).map_err(in_chunk)?;
        step = own_steps.then_some(chunk.entry.step);
        frame.push(Entry { code, flags: 0, step: 0, ..chunk.entry });
        Ok(())
    })?;
    write(&mut frame, step)?;
    let header = header.with_blocks(index_block, Some(names_block));
    sink.sync()?;
    sink.write_all_at(0, &header.raw)?;
    sink.sync()?;
    Ok(done)
}

/// Writes the given frames of a file, in this order, to a new file. Returns their number. Fails if a
/// frame does not exist.
pub fn trim(
    from: &Path,
    frames: impl IntoIterator<Item = impl Borrow<u64>>,
    to: &Path,
    overwrite: Overwrite,
    limits: &Limits,
) -> Result<u64> {
    let file = File::open(from, limits)?;
    file.index.require_complete().map_err(|e| e.with_path(from))?;
    let all = file.nframes()?;
    let mut plan = Vec::new();
    for frame in frames {
        let frame = *frame.borrow();
        if frame >= all {
            let message = format!("no frame {frame}; the file has {all} frames");
            return Err(Error::argument(message).with_path(from));
        }
        let count = plan.len() as u64 + 1;
        file.index.allow_frames(count).map_err(|e| e.with_path(from))?;
        allow_plan(count, limits)?;
        plan.push((0, frame));
    }
    join(&[file], &plan, to, overwrite)?;
    Ok(plan.len() as u64)
}

/// Charges the list of frames to the memory limit.
fn allow_plan(frames: u64, limits: &Limits) -> Result<()> {
    let bytes = frames.saturating_mul(size_of::<(usize, u64)>() as u64);
    limits.allow(bytes, "the list of frames").map(drop)
}

/// Concatenates the frames of several files in a new file and returns their number. Fails if the schemas
/// differ.
pub fn merge(
    from: &[impl AsRef<Path>],
    to: &Path,
    overwrite: Overwrite,
    limits: &Limits,
) -> Result<u64> {
    let mut files: Vec<File> = Vec::new();
    let mut plan = Vec::new();
    for path in from {
        let file = File::open(path, limits)?;
        let schema = &file.header().schema;
        if let Some(first) = files.first().map(|first| &first.header().schema)
            && first != schema
        {
            let message =
                format!("expected schema \"{first}\" as in the first file, found \"{schema}\"");
            return Err(Error::argument(message).with_path(path));
        }
        file.index.require_complete().map_err(|e| e.with_path(path))?;
        let frames = file.index.limited_frames()?;
        allow_plan(frames.saturating_add(plan.len() as u64), limits)?;
        plan.extend((0..frames).map(|frame| (files.len(), frame)));
        files.push(file);
    }
    join(&files, &plan, to, overwrite)?;
    Ok(plan.len() as u64)
}

impl Concatenator for Gsd {
    fn concatenate(&self, files: &[PathBuf], target: &Path, limits: &Limits) -> Result<()> {
        merge(files, target, Overwrite::Never, limits).map(drop)
    }
}

/// Appends the frames of `from` to the file `to` and returns their number. Fails if the schemas differ.
/// After a failure `to` has its old frames.
pub fn append(to: &Path, from: &Path, mode: Mode, limits: &Limits) -> Result<u64> {
    let file = File::open(from, limits)?;
    file.index.require_complete().map_err(|e| e.with_path(from))?;
    let frames = file.index.limited_frames()?;
    let mut writer = Writer::append(to, mode, limits)?;
    let (here, there) = (&writer.header().schema, &file.header().schema);
    if here != there {
        let message = format!("expected schema \"{here}\", found \"{there}\"");
        return Err(Error::argument(message).with_path(from));
    }
    let (hoomd, before) = (here == HOOMD, writer.content());
    if hoomd {
        let double = writer.reader()?.find_chunk(0, "particles/position")?;
        let double = double.is_some_and(|chunk| chunk.data.kind == Type::Double);
        let precision = if double { Precision::Double } else { Precision::Single };
        let mut writer = TrajectoryWriter::from_writer(writer, precision)?;
        let done = append_snapshots(&mut writer, file, frames);
        writer.into_writer().close_or_undo(&before, done)?;
    } else {
        let done = append_chunks(&mut writer, &file, frames).map_err(|e| e.with_path(from));
        writer.close_or_undo(&before, done)?;
    }
    Ok(frames)
}

fn append_snapshots(writer: &mut TrajectoryWriter, file: File, frames: u64) -> Result<()> {
    let trajectory = Trajectory::new(file)?;
    let logged = writer.logged();
    for frame in 0..frames {
        let mut snapshot = trajectory.read(frame)?;
        // Quantities that the frame lacks must not fall back to frame 0 of the target.
        for name in &logged {
            snapshot.log.entry(name.clone()).or_insert(None);
        }
        writer.write(&snapshot)?;
    }
    Ok(())
}

fn append_chunks(writer: &mut Writer, file: &File, frames: u64) -> Result<()> {
    let names = file.index.distinct_names(NameRule::Keep)?;
    for frame in 0..frames {
        for (id, part) in frame_parts(file, frame)? {
            if let Part::Step(step) = part
                && !writer.header().form.is_v0_0_1()
            {
                writer.write_chunk(STEP, Type::UInt64, 1, 1, &step.to_le_bytes())?;
            }
            let (Some(id), Part::Copied(chunk)) = (id, part) else { continue };
            let name = std::str::from_utf8(names.bytes(id)).map_err(|_| {
                let error = Error::unsupported("gsd-036", "the name is not UTF-8");
                error
                    .in_object(format!("chunk \"{}\"", chunk.name))
                    .hint(Hint::operation("gsd upgrade", "can replace such names"))
            })?;
            let bytes = file.read_chunk(&chunk)?;
            writer.set_step(chunk.entry.step);
            let (n, m) = (chunk.entry.n, chunk.entry.m);
            writer.write_chunk(name, chunk.data.kind, n, m, &bytes)?;
        }
        writer.end_frame()?;
    }
    Ok(())
}

/// A chunk of a new file.
pub(crate) enum Part {
    /// A copy of an existing chunk.
    Copied(Chunk),
    /// A default that differs from frame 0 of the new file.
    Default(Values),
    /// A step of 0.0.1, which is stored in the index.
    Step(u64),
}

impl Part {
    /// Writes the chunk to a new file; `source` contains the copied chunks.
    pub(crate) fn write(
        &self,
        frame: u64,
        id: u32,
        source: &Source,
        out: &mut SequentialWriter<'_>,
    ) -> Result<()> {
        match self {
            Self::Copied(chunk) => {
                let kind = chunk.data.kind.known();
                out.chunk(frame, id, (kind, chunk.entry.n, chunk.entry.m), |sink| {
                    sink.copy_from(source, chunk.data.offset, chunk.data.len)
                })
            }
            Self::Default(values) => {
                out.bytes(frame, id, (values.kind, values.n, values.m), &values.bytes)
            }
            Self::Step(step) => out.bytes(frame, id, (Type::UInt64, 1, 1), &step.to_le_bytes()),
        }
    }
}

fn join(files: &[File], plan: &[(usize, u64)], to: &Path, overwrite: Overwrite) -> Result<()> {
    let Some(one) = files.first() else {
        return Err(Error::argument("expected at least one file"));
    };
    let about = one.header().about();
    let hoomd = about.schema == HOOMD;
    let trajectories: Vec<Option<Trajectory>> = files
        .iter()
        .map(|file| if hoomd { Trajectory::new(file.clone()).map(Some) } else { Ok(None) })
        .collect::<Result<_>>()?;
    // New name ids, by file and old id.
    let mut names = Names::new(one.index.limits());
    let mut renamed: Vec<Vec<u32>> = Vec::new();
    for file in files {
        if hoomd && !file.index.names.are_unique_text() {
            return Err(Error::unsupported("gsd-036", "chunk names are not unique UTF-8")
                .in_object("name list")
                .hint(Hint::operation("gsd upgrade", "makes equal names unique")));
        }
        let own = file.index.distinct_names(NameRule::Keep)?;
        renamed.push(own.iter().map(|name| names.intern(name)).collect::<Result<_>>()?);
    }
    let step = names.intern(STEP.as_bytes())?;
    let mut first = First::new();
    let mut parts = |number: usize| -> Result<Vec<(u32, Part)>> {
        let (which, frame) = plan[number];
        let Some(trajectory) = &trajectories[which] else {
            let new = |id: Option<u32>| id.map_or(step, |id| renamed[which][id as usize]);
            return Ok(frame_parts(&files[which], frame)?
                .into_iter()
                .map(|(k, p)| (new(k), p))
                .collect());
        };
        let resolved = trajectory.resolve(frame)?;
        let parts = hoomd_parts(&resolved, which, number == 0, &mut first)?;
        let known = parts
            .into_iter()
            .filter_map(|(name, part)| names.id(name.as_bytes()).map(|id| (id, part)));
        let mut parts: Vec<_> = known.collect();
        if parts.is_empty() {
            // Trailing frames without chunks do not exist.
            parts.push((step, Part::Step(files[which].step(frame)?.unwrap_or(0))));
        }
        Ok(parts)
    };
    let (mut entries, mut in_first) = (0, BTreeSet::new());
    // Logged quantities that frame 0 lacks.
    let mut late = BTreeMap::new();
    for number in 0..plan.len() {
        let parts = parts(number)?;
        entries += parts.len() as u64;
        if number == 0 {
            in_first.extend(parts.iter().map(|(id, _)| *id));
        } else if hoomd && files.len() > 1 {
            let logged = |id: &u32| !in_first.contains(id) && names.bytes(*id).starts_with(b"log/");
            for (id, part) in parts.iter().filter(|(id, _)| logged(id)) {
                let Part::Copied(Chunk { entry, data, .. }) = part else { continue };
                if matches!(data.kind, Type::Float | Type::Double) {
                    late.entry(*id).or_insert((data.kind, entry.n, entry.m, data.len));
                }
            }
        }
    }
    // gsd.hoomd does not read frames without a quantity that frame 0 lacks, too.
    entries += late.len() as u64;
    let mut sink = Sink::create(to, overwrite)?;
    let mut out = SequentialWriter::new(&mut sink, &about, &names, entries, plan.len() as u64)?;
    for (number, (which, _)) in plan.iter().enumerate() {
        for (id, part) in parts(number)? {
            part.write(number as u64, id, files[*which].source(), &mut out)?;
        }
        for (id, (kind, n, m, len)) in late.iter().filter(|_| number == 0) {
            one.index.limits().allow(*len, "a logged quantity")?;
            let values = missing_value("", *kind, *n, *m)?;
            out.bytes(0, *id, (*kind, *n, *m), &values.bytes)?;
        }
    }
    out.finish()?;
    sink.commit()
}

/// Chunks of a frame with their name ids, for schemas without fallback. The step of 0.0.1 has no id.
fn frame_parts(file: &File, frame: u64) -> Result<Vec<(Option<u32>, Part)>> {
    let mut seen = BTreeSet::new();
    let mut parts: Vec<(Option<u32>, Part)> = Vec::new();
    let mut step = None;
    // Of several chunks with the same name the last one is used.
    for chunk in file.frame(frame)?.into_iter().rev() {
        step = step.or(Some(chunk.entry.step));
        if seen.insert(chunk.entry.id) {
            parts.push((Some(chunk.entry.id), Part::Copied(chunk)));
        }
    }
    let own = file.index.names.id(STEP.as_bytes()).is_some_and(|id| seen.contains(&id));
    if let Some(step) = step.filter(|_| file.index.form().is_v0_0_1() && !own) {
        parts.push((None, Part::Step(step)));
    }
    Ok(parts)
}

/// Chunks of frame 0 of a new file by name, each with the number of the file it is copied from.
pub(crate) type First = HashMap<Arc<str>, (usize, Chunk)>;

/// Chunks of a frame of a HOOMD file, such that its values are the same after another frame 0: those that
/// differ from frame 0 of the new file. The new frame 0 (`is_first`) sets `first`.
pub(crate) fn hoomd_parts(
    resolved: &Resolved<'_>,
    which: usize,
    is_first: bool,
    first: &mut First,
) -> Result<Vec<(Arc<str>, Part)>> {
    let chunks = resolved.chunks();
    if is_first {
        *first = chunks.iter().map(|(name, c)| (name.clone(), (which, c.clone()))).collect();
    }
    let mut parts = Vec::new();
    for (name, (_, chunk)) in first.iter().filter(|(name, _)| !chunks.contains_key(*name)) {
        let Some(known) = field(name) else {
            if name.starts_with("log/") {
                resolved.limits().allow(chunk.data.len, "a logged quantity")?;
                let (kind, n, m) = (chunk.data.kind, chunk.entry.n, chunk.entry.m);
                parts.push((name.clone(), Part::Default(missing_value(name, kind, n, m)?)));
            }
            continue;
        };
        parts.push((name.clone(), Part::Default(default_values(known, resolved)?)));
    }
    // In the order of the file, so that the new file is always the same.
    parts.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    let mut chunks: Vec<_> = chunks.into_iter().collect();
    chunks.sort_unstable_by_key(|(_, chunk)| chunk.number);
    for (name, chunk) in chunks {
        let same = has_fallback(&name)
            && first.get(&name).is_some_and(|(file, c)| (*file, c.number) == (which, chunk.number));
        if is_first || !same {
            parts.push((name, Part::Copied(chunk)));
        }
    }
    Ok(parts)
}
