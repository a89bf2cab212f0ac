//! The tree view: every chunk name is an array with one shape a frame.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::frames::{FrameAxis, FrameCell, FrameTable};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{NodeId, ROOT, Tree, Value};

use crate::index::Index;
use crate::read::{File, HOOMD, STEP, layout, shape};
use crate::schema::{Trajectory, dims};
use crate::wire::{SLOT, Type};

/// Memory that an array of the tree takes.
const ARRAY_COST: u64 = 600;

/// What a region in the order of the file takes.
const REGION_COST: u64 = 24;

/// A file with its tree.
pub struct View {
    file: File,
    tree: Tree,
    survey: Survey,
}

/// What one name stands for, in one element type.
#[derive(Clone)]
struct Column {
    first: Shape,
    /// Some frame has more than one column.
    columns: bool,
}

/// What the index entries say about the arrays of a file.
#[derive(Clone, Default)]
struct Survey {
    /// Entries that were looked at, and the frame of the last.
    entries: u64,
    frame: u64,
    columns: BTreeMap<(u32, Type), Column>,
    /// Names of entries that say nothing about their array.
    damaged: BTreeSet<u32>,
    /// Chunks whose entries cannot be used.
    wrong: u64,
}

impl Survey {
    /// Looks at the entries that it has not seen. One that cannot be read is an error where its frame is
    /// read; entries out of order are one now, because then nothing can be found.
    fn go_on(&mut self, index: &Index, limits: &Limits) -> Result<()> {
        index.scan(self.entries..index.count, |k, entry| {
            if entry.frame < self.frame {
                let message = format!("frame {} behind frame {}", entry.frame, self.frame);
                let error = Error::malformed("gsd-012", message)
                    .hint("`spile salvage` puts the frames in order");
                return Err(index.at(k, &entry, error));
            }
            self.frame = entry.frame;
            self.wrong += u64::from(index.place(k, &entry).is_err());
            // What is wrong with the entry is told when it is read.
            let sized = entry.kind(index.form()).filter(|_| entry.bytes(index.form()).is_some());
            let Some(kind) = sized.filter(|_| index.names.has(entry.id)) else {
                self.damaged.insert(entry.id);
                return Ok(());
            };
            let known = self.columns.len() as u64;
            let column = self
                .columns
                .entry((entry.id, kind))
                .or_insert_with(|| Column { first: shape(&entry, true), columns: false });
            column.columns |= entry.m != 1;
            if known > 1000 {
                limits.allow(known * ARRAY_COST, "the list of arrays")?;
            }
            Ok(())
        })?;
        self.entries = index.count;
        Ok(())
    }
}

impl View {
    /// Looks at every index entry once, to know which arrays there are.
    pub fn new(file: File, limits: &Limits) -> Result<Self> {
        file.index.require_whole()?;
        Self::with(file, Survey::default(), limits)
    }

    /// The same where some of the entries were looked at before.
    fn with(file: File, mut survey: Survey, limits: &Limits) -> Result<Self> {
        let index = &file.index;
        let frames = index.countable_frames(limits)?;
        survey.go_on(index, limits)?;
        let mut tree = Tree::new(limits);
        let header = file.header();
        let hoomd = header.schema == HOOMD;
        let attrs = &mut tree.node_mut(ROOT).attrs;
        attrs.push(("application".into(), header.application.clone().into()));
        attrs.push(("schema".into(), header.schema.clone().into()));
        attrs.push(("schema_version".into(), Value::UInt(header.schema_version.into())));
        // A name that only damaged entries have is an array that cannot be read.
        let found = &survey.columns;
        let known =
            |id: u32| found.range((id, Type::UInt8)..).next().is_some_and(|(k, _)| k.0 == id);
        let lost = Column { first: Shape::new([0, 1]), columns: false };
        let damaged = survey.damaged.iter().filter(|id| !known(**id));
        let damaged = damaged.map(|id| ((*id, Type::UInt8), &lost));
        for ((id, kind), column) in found.iter().map(|(key, column)| (*key, column)).chain(damaged)
        {
            let lengths = column.first.lengths();
            let rank = if column.columns { 2 } else { 1 };
            let table = Table { file: file.clone(), id, kind, columns: column.columns, frames };
            let layout = Layout::PerFrame(Arc::new(table));
            let desc = ArrayDesc::new(kind.dtype(), Shape::new(&lengths[..rank]), layout);
            let name = if index.names.has(id) {
                index.names.text(id)
            } else {
                format!("no-name-{id}").into()
            };
            add(&mut tree, &name, desc, hoomd)?;
        }
        if index.form().is_first() && index.count > 0 && index.names.id(STEP.as_bytes()).is_none() {
            let layout = Layout::PerFrame(Arc::new(Steps { file: file.clone(), frames }));
            add(&mut tree, STEP, ArrayDesc::new(DType::U64, Shape::new([1]), layout), hoomd)?;
        }
        tree.set_frames(Arc::new(Steps { file: file.clone(), frames }));
        Ok(Self { file, tree, survey })
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// Adds a chunk under its name, whose slashes are levels.
fn add(tree: &mut Tree, name: &str, mut desc: ArrayDesc, hoomd: bool) -> Result<NodeId> {
    if hoomd {
        desc.dims = desc.dims.iter().zip(dims(name)).map(|(_, dim)| dim.into()).collect();
    }
    let (group, last) = name.rsplit_once('/').unwrap_or(("", name));
    let group = tree.group_at(group)?;
    let node = tree.add_array(group, last, desc)?;
    if tree.node(node).path != name {
        tree.node_mut(node).id = Some(name.to_string());
    }
    Ok(node)
}

/// The frames of one name and element type.
struct Table {
    file: File,
    id: u32,
    kind: Type,
    columns: bool,
    frames: u64,
}

impl FrameTable for Table {
    fn len(&self) -> u64 {
        self.frames
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let index = &self.file.index;
        let code = self.kind.code(index.form());
        let Some((k, entry)) = index.find(frame, self.id, |e| Some(e.code) == code)? else {
            return index.require_absent(frame, self.id).map(|()| None);
        };
        let place = index.place(k, &entry)?;
        Ok(Some(FrameCell { shape: shape(&entry, self.columns), layout: layout(place) }))
    }

    /// The tree shows what the file has; what that means to HOOMD is said beside it.
    fn instead(&self, frame: u64) -> Result<Option<String>> {
        if self.file.header().schema != HOOMD {
            return Ok(None);
        }
        let name = self.file.index.names.text(self.id);
        Trajectory::new(self.file.clone())?.instead(frame, &name)
    }
}

/// The steps of the frames; for files of 0.0.1, which keep them in the index, also as an array.
struct Steps {
    file: File,
    frames: u64,
}

impl FrameAxis for Steps {
    fn len(&self) -> u64 {
        self.frames
    }

    fn step(&self, frame: u64) -> Result<Option<u64>> {
        self.file.step(frame)
    }

    fn time(&self, _: u64) -> Result<Option<f64>> {
        Ok(None)
    }
}

impl FrameTable for Steps {
    fn len(&self) -> u64 {
        self.frames
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let step = self.file.step(frame)?;
        Ok(step.map(|step| FrameCell {
            shape: Shape::new([1]),
            layout: Layout::Inline(step.to_le_bytes().into(), Order::C),
        }))
    }
}

impl Reader for View {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        self.file.source()
    }

    fn summary(&self) -> Vec<(String, Value)> {
        let header = self.file.header();
        let schema = format!("{} {}", header.schema, header.schema_version_text());
        let mut rows = vec![
            ("version".into(), header.version_text().into()),
            ("application".into(), header.application.clone().into()),
            ("schema".into(), schema.into()),
            ("chunks".into(), self.file.nchunks().into()),
            ("names".into(), (self.file.index.names.len() as u64).into()),
        ];
        rows.extend(crate::schema::summary(&self.file));
        if self.file.has_torn_commit() {
            rows.push((
                "unfinished".into(),
                "a commit is under way or was cut; its frames are not here yet".into(),
            ));
        }
        let wrong = self.survey.wrong;
        if wrong > 0 {
            let told = if wrong == 1 { "1 chunk".into() } else { format!("{wrong} chunks") };
            rows.push(("damaged".into(), format!("{told}; `spile check` tells which").into()));
        }
        rows
    }

    fn refreshed(&self, limits: &Limits) -> Result<Option<Box<dyn Reader>>> {
        let mut file = self.file.clone();
        file.refresh()?;
        let index = &file.index;
        if index.beyond.is_some() {
            return Err(index.hole());
        }
        // An upgrade numbers entries and types anew.
        let same = index.form() == self.file.index.form() && index.count >= self.survey.entries;
        let survey = if same { self.survey.clone() } else { Survey::default() };
        Ok(Some(Box::new(Self::with(file, survey, limits)?)))
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let index = &self.file.index;
        let (header, form, len) = (&index.header, index.form(), self.source().len());
        let cost = index.count.saturating_mul(REGION_COST);
        index.limits().allow(cost, "the places of all chunks")?;
        // (offset, length, what): the header, the tables, then chunks by number.
        let mut parts: Vec<(u64, u64, u64)> = vec![(0, form.header_size(), u64::MAX)];
        parts.push((header.index.location, index.room * form.entry_size(), u64::MAX - 1));
        if let Some(names) = header.names {
            parts.push((names.location, names.allocated.saturating_mul(SLOT), u64::MAX - 2));
        }
        index.scan(0..index.count, |k, entry| {
            if let Ok(place) = index.place(k, &entry)
                && place.len > 0
            {
                parts.push((place.offset, place.len, k));
            }
            Ok(())
        })?;
        parts.sort_unstable();
        let mut end = 0;
        for (offset, bytes, what) in parts {
            // Of bytes that two chunks claim, the first has them.
            let (from, to) = (offset.max(end), offset.saturating_add(bytes).min(len));
            if from >= to {
                continue;
            }
            let (role, name, value) = match what {
                u64::MAX => {
                    (Role::Header, "header".into(), format!("GSD {}", header.version_text()))
                }
                n if n == u64::MAX - 1 => {
                    let value = format!("{} of {} entries", index.count, header.index.allocated);
                    (Role::Header, "index".into(), value)
                }
                n if n == u64::MAX - 2 => {
                    (Role::Header, "names".into(), format!("{} names", index.names.len()))
                }
                k => {
                    let entry = index.entry(k)?;
                    let kind = entry.kind(form).map_or(String::new(), Type::name);
                    let value = format!("{} x {} {kind}", entry.n, entry.m);
                    let name = format!("frame {} {}", entry.frame, index.names.text(entry.id));
                    (Role::Data, name, value)
                }
            };
            each(Region { offset: from, len: to - from, role, name, value })?;
            end = to;
        }
        Ok(())
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        self.file.each_chunk(|chunk| {
            let chunk = chunk?;
            each(Object {
                id: Some(chunk.entry.id.to_string()),
                frame: Some(chunk.entry.frame),
                kind: chunk.place.kind.name(),
                array: chunk.desc(),
                path: chunk.name.to_string(),
            })
        })
    }
}
