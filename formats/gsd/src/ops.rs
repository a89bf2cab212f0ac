//! Operations on whole files: upgrade, trim, merge, append.

use std::borrow::Borrow;
use std::collections::{BTreeSet, HashMap};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::sink::{Overwrite, Sink};
use spile_core::source::Source;

use crate::assemble::Assembler;
use crate::names::Names;
use crate::read::{Chunk, File, HOOMD, STEP};
use crate::schema::{
    Precision, Resolved, Trajectory, TrajectoryWriter, Values, default_values, falls_back, field,
    no_value,
};
use crate::wire::{Block, Entry, Form, Header, SLOT, Type};
use crate::write::{Mode, Writer};

/// What an upgrade did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upgraded {
    /// Chunks in the index.
    pub chunks: u64,
    /// Steps that became chunks `configuration/step`, from a file of 0.0.1.
    pub steps: u64,
}

/// Makes a file of any version one of 2.1. Data stay where they are: a new index and a new name
/// list are written behind them, and one write of the header puts them in force. Until then the
/// file is what it was; afterwards it is the new one.
pub fn upgrade(path: impl AsRef<Path>, limits: &Limits) -> Result<Upgraded> {
    let path = path.as_ref();
    let sink = Sink::edit_alone(path)?;
    let file = File::open(path, limits)?;
    upgrade_on(&sink, &file, limits).map_err(|e| e.with_path(path).with_format("gsd"))
}

fn upgrade_on(sink: &Sink, file: &File, limits: &Limits) -> Result<Upgraded> {
    let index = &file.index;
    index.require_whole()?;
    let form = index.form();
    let mut names = index.distinct_names(limits)?;
    let own_steps = form.is_first() && index.names.id(STEP.as_bytes()).is_none();
    let step_id = if own_steps { names.intern(STEP.as_bytes(), limits)? } else { u32::MAX };
    let entries = index.count.saturating_mul(if own_steps { 2 } else { 1 });
    let header = Header::new(Form::List, 2 << 16 | 1, &index.header.about());
    let size = Form::List.entry_size();
    let room = Form::List.room(entries, index.frames()?);
    let allocated = room.max(header.index.allocated).next_power_of_two();
    // Index, names, then the steps of 0.0.1, all behind what is there.
    let location = file.source().current_len()?.next_multiple_of(size);
    let list: Vec<u8> = names.iter().flat_map(|name| [name, &b"\0"[..]].concat()).collect();
    let slots = (list.len() as u64 + 1).div_ceil(SLOT).max(header.form.first_slots());
    let names_at = location + allocated * size;
    let mut tail = names_at + slots * SLOT;
    sink.reserve(tail)?;
    sink.write_all_at(names_at, &list)?;
    let mut done = Upgraded { chunks: 0, steps: 0 };
    let mut frame: Vec<Entry> = Vec::new();
    let mut write = |frame: &mut Vec<Entry>, step: Option<u64>| -> Result<()> {
        if let (Some(first), Some(step)) = (frame.first().copied(), step) {
            sink.write_all_at(tail, &step.to_le_bytes())?;
            let code = Type::UInt64.code(Form::List).unwrap_or(0);
            let location = tail as i64;
            frame.push(Entry { n: 1, m: 1, location, id: step_id, code, step: 0, ..first });
            tail += 8;
            done.steps += 1;
        }
        frame.sort_by_key(|entry| entry.id);
        let mut bytes = Vec::with_capacity(frame.len() * size as usize);
        for entry in frame.iter() {
            entry.encode(Form::List, &[], &mut bytes);
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
            return Err(Error::malformed("gsd-012", "the frames are not in order")
                .in_frame(chunk.entry.frame)
                .hint("`spile salvage` puts them in order"));
        }
        if frame.first().is_some_and(|e| e.frame != chunk.entry.frame) {
            write(&mut frame, step)?;
        }
        // What 0.0.1 did not know are bytes.
        let kind = if matches!(chunk.place.kind, Type::Unknown(_)) {
            Type::UInt8
        } else {
            chunk.place.kind
        };
        let code = kind.code(Form::List).unwrap_or(0);
        step = own_steps.then_some(chunk.entry.step);
        frame.push(Entry { code, flags: 0, step: 0, ..chunk.entry });
        Ok(())
    })?;
    write(&mut frame, step)?;
    let header = header.with_blocks(
        Block { location, allocated },
        Some(Block { location: names_at, allocated: slots }),
    );
    sink.sync()?;
    sink.write_all_at(0, &header.raw)?;
    sink.sync()?;
    Ok(done)
}

/// Writes some frames of one file, in this order, into a new one. Returns their number.
pub fn trim(
    from: &Path,
    frames: impl IntoIterator<Item = impl Borrow<u64>>,
    to: &Path,
    overwrite: Overwrite,
    limits: &Limits,
) -> Result<u64> {
    let file = File::open(from, limits)?;
    file.index.require_whole().map_err(|e| e.with_path(from))?;
    let all = file.nframes()?;
    let mut plan = Vec::new();
    for frame in frames {
        let frame = *frame.borrow();
        if frame >= all {
            let message = format!("there is no frame {frame}; the file has {all}");
            return Err(Error::argument(message).with_path(from));
        }
        // All frames of a file with a damaged number are more than there is time or room for.
        let taken = plan.len() as u64 + 1;
        file.index.allow_frames(taken, limits).map_err(|e| e.with_path(from))?;
        allow_plan(taken, limits)?;
        plan.push((0, frame));
    }
    join(&[file], &plan, to, overwrite, limits)?;
    Ok(plan.len() as u64)
}

/// The list of frames of a new file must fit the budget.
fn allow_plan(frames: u64, limits: &Limits) -> Result<()> {
    let bytes = frames.saturating_mul(size_of::<(usize, u64)>() as u64);
    limits.allow(bytes, "the list of frames").map(drop)
}

/// Writes the frames of several files one after the other into a new one. Their schemas must be
/// the same.
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
            let message = format!("the schema is \"{schema}\", the first file's is \"{first}\"");
            return Err(Error::argument(message).with_path(path));
        }
        file.index.require_whole().map_err(|e| e.with_path(path))?;
        let frames = file.index.countable_frames(limits)?;
        allow_plan(frames.saturating_add(plan.len() as u64), limits)?;
        plan.extend((0..frames).map(|frame| (files.len(), frame)));
        files.push(file);
    }
    join(&files, &plan, to, overwrite, limits)?;
    Ok(plan.len() as u64)
}

/// Adds the frames of `from` to the file `to`, in its own version. Each frame appears whole; where
/// it fails, the frames before are there. Returns the number of frames that were added.
pub fn append(to: &Path, from: &Path, mode: Mode, limits: &Limits) -> Result<u64> {
    let file = File::open(from, limits)?;
    file.index.require_whole().map_err(|e| e.with_path(from))?;
    let frames = file.index.countable_frames(limits)?;
    let mut writer = Writer::append(to, mode, limits)?;
    let (here, there) = (&writer.header().schema, &file.header().schema);
    if here != there {
        let message = format!("the schema is \"{there}\", that of the file is \"{here}\"");
        return Err(Error::argument(message).with_path(from));
    }
    if here == HOOMD {
        let double = writer.reader()?.find_chunk(0, "particles/position")?;
        let double = double.is_some_and(|chunk| chunk.place.kind == Type::Double);
        let precision = if double { Precision::Double } else { Precision::Single };
        let mut writer = TrajectoryWriter::on(writer, precision)?;
        let trajectory = Trajectory::new(file)?;
        let logged = writer.logged();
        for frame in 0..frames {
            let mut snapshot = trajectory.read(frame)?;
            // What the frame lacks it must not take from frame 0 of its new file.
            for name in &logged {
                snapshot.log.entry(name.clone()).or_insert(None);
            }
            writer.write(&snapshot)?;
        }
        writer.close()?;
        return Ok(frames);
    }
    let names = file.index.distinct_names(limits)?;
    for frame in 0..frames {
        for (id, part) in plain(&file, frame)? {
            let (Some(id), Part::Copied(chunk)) = (id, part) else { continue };
            let name = std::str::from_utf8(names.raw(id)).map_err(|_| {
                let error = Error::unsupported("gsd-036", "the name is not UTF-8");
                error.in_object(format!("chunk \"{}\"", chunk.name)).with_path(from)
            })?;
            let bytes = file.read_chunk(&chunk)?;
            writer.set_step(chunk.entry.step);
            let (n, m) = (chunk.entry.n, chunk.entry.m);
            writer.write_chunk(name, chunk.place.kind, n, m, &bytes)?;
        }
        writer.end_frame()?;
    }
    writer.close()?;
    Ok(frames)
}

/// A chunk of a frame of the new file.
pub(crate) enum Part {
    Copied(Chunk),
    /// A default that must be written, because frame 0 of the new file says otherwise.
    Made(Values),
    /// A step that 0.0.1 keeps in the index.
    Step(u64),
}

impl Part {
    /// Adds it to a new file; `source` has the chunks that are copied.
    pub(crate) fn write(
        &self,
        frame: u64,
        id: u32,
        source: &Source,
        out: &mut Assembler<'_>,
    ) -> Result<()> {
        match self {
            Self::Copied(chunk) => {
                // What 0.0.1 did not know are bytes.
                let kind = match chunk.place.kind {
                    Type::Unknown(_) => Type::UInt8,
                    kind => kind,
                };
                out.chunk(frame, id, (kind, chunk.entry.n, chunk.entry.m), |sink| {
                    sink.copy_from(source, chunk.place.offset, chunk.place.len)
                })
            }
            Self::Made(values) => out.chunk(frame, id, (values.kind, values.n, values.m), |sink| {
                Ok(sink.write_all(&values.bytes)?)
            }),
            Self::Step(step) => out.chunk(frame, id, (Type::UInt64, 1, 1), |sink| {
                Ok(sink.write_all(&step.to_le_bytes())?)
            }),
        }
    }
}

fn join(
    files: &[File],
    plan: &[(usize, u64)],
    to: &Path,
    overwrite: Overwrite,
    limits: &Limits,
) -> Result<()> {
    let Some(about) = files.first().map(|file| file.header().about()) else {
        return Err(Error::argument("there is nothing to merge"));
    };
    let hoomd = about.schema == HOOMD;
    let trajectories: Vec<Option<Trajectory>> = files
        .iter()
        .map(|file| if hoomd { Trajectory::new(file.clone()).map(Some) } else { Ok(None) })
        .collect::<Result<_>>()?;
    // The new number of each name, file by file.
    let mut names = Names::default();
    let mut renamed: Vec<Vec<u32>> = Vec::new();
    for file in files {
        if hoomd && !file.index.names.are_plain() {
            return Err(Error::unsupported("gsd-036", "two names are equal, or one is no text")
                .in_object("name list")
                .hint("`spile gsd upgrade` tells equal names apart"));
        }
        let own = file.index.distinct_names(limits)?;
        renamed.push(own.iter().map(|name| names.intern(name, limits)).collect::<Result<_>>()?);
    }
    let step = names.intern(STEP.as_bytes(), limits)?;
    let mut first = First::new();
    let mut parts = |number: usize| -> Result<Vec<(u32, Part)>> {
        let (which, frame) = plan[number];
        let Some(trajectory) = &trajectories[which] else {
            let new = |id: Option<u32>| id.map_or(step, |id| renamed[which][id as usize]);
            return Ok(plain(&files[which], frame)?
                .into_iter()
                .map(|(k, p)| (new(k), p))
                .collect());
        };
        let resolved = trajectory.resolve(frame)?;
        let parts = hoomd_parts(resolved, which, number == 0, &mut first, limits)?;
        let known = parts
            .into_iter()
            .filter_map(|(name, part)| names.id(name.as_bytes()).map(|id| (id, part)));
        let mut parts: Vec<_> = known.collect();
        if parts.is_empty() {
            // A frame without chunks would not exist at the end of a file.
            parts.push((step, Part::Step(files[which].step(frame)?.unwrap_or(0))));
        }
        Ok(parts)
    };
    let mut entries = 0;
    for number in 0..plan.len() {
        entries += parts(number)?.len() as u64;
    }
    let mut sink = Sink::create(to, overwrite)?;
    let list: Vec<Vec<u8>> = names.iter().map(<[u8]>::to_vec).collect();
    let mut out = Assembler::new(&mut sink, &about, &list, entries, plan.len() as u64)?;
    for (number, (which, _)) in plan.iter().enumerate() {
        for (id, part) in parts(number)? {
            part.write(number as u64, id, files[*which].source(), &mut out)?;
        }
    }
    out.finish()?;
    sink.commit()
}

/// A frame of a file whose schema says nothing about other frames: chunks by the number of their
/// name. What has no number is the step.
fn plain(file: &File, frame: u64) -> Result<Vec<(Option<u32>, Part)>> {
    let mut seen = BTreeSet::new();
    let mut parts: Vec<(Option<u32>, Part)> = Vec::new();
    let mut step = None;
    // Of two chunks of a name the last counts.
    for chunk in file.frame(frame)?.into_iter().rev() {
        step = step.or(Some(chunk.entry.step));
        if seen.insert(chunk.entry.id) {
            parts.push((Some(chunk.entry.id), Part::Copied(chunk)));
        }
    }
    let own = file.index.names.id(STEP.as_bytes()).is_some_and(|id| seen.contains(&id));
    if let Some(step) = step.filter(|_| file.index.form().is_first() && !own) {
        parts.push((None, Part::Step(step)));
    }
    Ok(parts)
}

/// What frame 0 of a new file has, and from which of the old ones: its chunks by name.
pub(crate) type First = HashMap<Arc<str>, (usize, Chunk)>;

/// A frame of a HOOMD file: what it has or takes from its own frame 0, so that it means the same
/// behind another frame 0. The frame that becomes frame 0 itself fills in `first`.
pub(crate) fn hoomd_parts(
    resolved: Resolved<'_>,
    which: usize,
    home: bool,
    first: &mut First,
    limits: &Limits,
) -> Result<Vec<(Arc<str>, Part)>> {
    if home {
        let chunks = resolved.chunks.iter();
        *first = chunks.map(|(name, chunk)| (name.clone(), (which, chunk.clone()))).collect();
    }
    let mut parts = Vec::new();
    for (name, (_, chunk)) in first.iter() {
        if resolved.chunks.contains_key(name) {
            continue;
        }
        let Some(known) = field(name) else {
            if name.starts_with("log/") {
                limits.allow(chunk.place.len, "a logged quantity")?;
                let (kind, n, m) = (chunk.place.kind, chunk.entry.n, chunk.entry.m);
                parts.push((name.clone(), Part::Made(no_value(name, kind, n, m)?)));
            }
            continue;
        };
        let made = default_values(name, resolved.rows(known), false, limits)?;
        parts.extend(made.map(|values| (name.clone(), Part::Made(values))));
    }
    for (name, chunk) in resolved.chunks {
        let said = falls_back(&name)
            && first.get(&name).is_some_and(|(file, c)| (*file, c.number) == (which, chunk.number));
        if home || !said {
            parts.push((name, Part::Copied(chunk)));
        }
    }
    Ok(parts)
}
