//! The tree of a file: every chunk name is an array with one shape per frame.

mod survey;

use std::sync::Arc;

use spile_core::format::{Native, Object, Region, RegionKind};
use spile_core::{
    ArrayDesc, Attrs, DType, Dataset, Error, FrameAxis, FrameCell, FrameTable, Layout, Limits,
    NodeId, OpenOptions, Order, Parsed, ROOT, Result, Role, Semantics, Shape, Source, Tree, Value,
    convert,
};

use crate::read::{File, HOOMD, STEP, layout, shape};
use crate::semantics::{
    BOX, Fallback, Values, dims, encode_names, fallback, field, meaning, read_box, summary,
};
use crate::wire::{About, SLOT, Type};

use survey::{Column, Survey};

/// The array of particle positions of the HOOMD schema.
pub(crate) const POSITIONS: &str = "particles/position";

/// The computed array with the cell vectors of [`BOX`] as rows.
pub(crate) const CELL: &str = "configuration/cell";

/// Memory of a region in bytes.
const REGION_COST: u64 = 24;

/// An open file and what is known of its index entries.
struct OpenFile {
    file: File,
    survey: Survey,
}

/// Builds the tree from the name list and a bounded number of index entries. Fails if those entries
/// are not in order (gsd-012) or if entries follow the end of the index (gsd-015).
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let file = File::from_source(&source, &options.limits)?;
    file.index.require_complete_sample()?;
    parse_after(source, file, Survey::new(), &options.limits)
}

/// Builds the tree from a survey of the first entries and the entries after them.
fn parse_after(source: Source, file: File, mut survey: Survey, limits: &Limits) -> Result<Parsed> {
    let index = &file.index;
    let frames = index.limited_frames()?;
    survey.extend(index)?;
    let mut tree = Tree::new(limits);
    let header = file.header();
    let hoomd = header.schema == HOOMD;
    tree.set_attrs(ROOT, header_attrs(&header.about()))?;
    let mut warnings = Vec::new();
    // A name that only invalid entries have is an array that cannot be read.
    let unreadable = Column { first: Shape::new([0, 1]), columns: false };
    let damaged = survey.damaged.keys().filter(|id| survey.kinds(**id).next().is_none());
    let damaged = damaged.map(|id| ((*id, Type::UInt8), &unreadable));
    let found = survey.columns.iter().map(|(key, column)| (*key, column));
    for ((id, kind), column) in found.chain(damaged) {
        let lengths = column.first.lengths();
        let rank = if column.columns { 2 } else { 1 };
        let kinds: Vec<Type> = survey.kinds(id).collect();
        let is_first = kinds.first().is_none_or(|first| *first == kind);
        let cost = size_of::<ChunkTable>() + size_of_val(&*kinds);
        tree.charge(cost as u64, "the tables of chunks")?;
        let table =
            ChunkTable { file: file.clone(), id, kind, kinds, columns: column.columns, frames };
        let layout = Layout::PerFrame(Arc::new(table));
        let desc = ArrayDesc::new(kind.dtype(), Shape::new(&lengths[..rank]), layout);
        let name = if index.names.contains(id) {
            index.names.display(id)
        } else {
            format!("no-name-{id}").into()
        };
        let node = add(&mut tree, &name, desc, hoomd)?;
        if let Some(damage) = survey.damaged.get(&id).filter(|_| is_first) {
            warnings.push(damage.finding(&tree.node(node).path, survey.complete));
        }
    }
    if index.form().is_v0_0_1() && index.count > 0 && index.names.id(STEP.as_bytes()).is_none() {
        let layout = Layout::PerFrame(Arc::new(Steps { file: file.clone(), frames }));
        add(&mut tree, STEP, ArrayDesc::new(DType::U64, Shape::new([1]), layout), hoomd)?;
    }
    if hoomd {
        add_meanings(&mut tree)?;
        if tree.at(BOX).is_some() && tree.at(CELL).is_none() {
            let layout = Layout::PerFrame(Arc::new(Cells { file: file.clone(), frames }));
            let mut desc = ArrayDesc::new(DType::F64, Shape::new([3, 3]), layout);
            desc.dims = vec!["vector".into(), "component".into()];
            let desc = desc.with_semantics(Semantics::role(Role::Cell));
            let group = tree.node_at("configuration")?;
            tree.add_array(group, "cell", desc)?;
        }
    }
    tree.set_frames(Arc::new(Steps { file: file.clone(), frames }));
    let summary = summary_of(&file, &survey);
    Ok(Parsed::new(source, tree)
        .with_summary(summary)
        .with_warnings(warnings)
        .with_native(OpenFile { file, survey }))
}

/// Application and schema as attributes of the root.
pub(crate) fn header_attrs(about: &About) -> Attrs {
    Attrs::from([
        ("application", about.application.as_str().into()),
        ("schema", about.schema.as_str().into()),
        ("schema_version", Value::UInt(about.schema_version.into())),
    ])
}

fn summary_of(file: &File, survey: &Survey) -> Attrs {
    let header = file.header();
    let schema = format!("{} {}", header.schema, header.schema_version_text());
    let mut rows = Attrs::from([
        ("version", header.version_text().into()),
        ("application", header.application.as_str().into()),
        ("schema", schema.into()),
        ("chunks", file.nchunks().into()),
        ("names", (file.index.names.len() as u64).into()),
    ]);
    rows.extend(summary(file));
    if file.has_torn_commit() {
        let text = "a commit is in progress or was interrupted; its frames are not included";
        rows.push("unfinished", text);
    }
    let damaged: u64 = survey.damaged.values().map(|damage| damage.chunks).sum();
    if damaged > 0 {
        let bound = if survey.complete { "" } else { "at least " };
        let unit = if damaged == 1 { "chunk" } else { "chunks" };
        rows.push("damaged", format!("{bound}{damaged} {unit}"));
    }
    rows
}

/// Sets the meaning of all arrays of a HOOMD file.
fn add_meanings(tree: &mut Tree) -> Result<()> {
    let positions = tree.at(POSITIONS).filter(|id| tree.array(*id).is_some());
    let meanings = tree.arrays().filter_map(|(id, node, _)| {
        let meaning = meaning(node.id.as_deref().unwrap_or(&node.path), positions);
        (meaning != Semantics::default()).then_some((id, meaning))
    });
    let meanings: Vec<(NodeId, Semantics)> = meanings.collect();
    for (id, meaning) in meanings {
        let text = meaning.point_set.as_ref().map_or(0, String::len);
        tree.charge((size_of::<Semantics>() + text) as u64, "the meaning of arrays")?;
        if let Some(array) = tree.array_mut(id) {
            *array.semantics_mut() = meaning;
        }
    }
    Ok(())
}

/// Adds an array at the path of a chunk name.
fn add(tree: &mut Tree, name: &str, mut desc: ArrayDesc, hoomd: bool) -> Result<NodeId> {
    if hoomd {
        desc.dims = desc.dims.iter().zip(dims(name)).map(|(_, dim)| dim.into()).collect();
    }
    let (group, last) = name.rsplit_once('/').unwrap_or(("", name));
    let group = tree.node_at(group)?;
    let node = tree.add_array(group, last, desc)?;
    if tree.node(node).path != name {
        tree.node_mut(node).id = Some(name.to_string());
    }
    Ok(node)
}

/// Chunks of one name and element type in all frames.
struct ChunkTable {
    file: File,
    id: u32,
    kind: Type,
    /// All element types of the name that have an array.
    kinds: Vec<Type>,
    columns: bool,
    frames: u64,
}

impl FrameTable for ChunkTable {
    fn len(&self) -> u64 {
        self.frames
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let index = &self.file.index;
        let code = self.kind.code(index.form());
        if let Some((k, entry)) = index.find(frame, self.id, |e| Some(e.code) == code)? {
            let data = index.locate(k, &entry)?;
            if entry.m != 1 && !self.columns {
                let message = format!("expected 1 column, found {}", entry.m);
                let error = Error::unsupported("gsd-019", message);
                return Err(index.add_context(k, &entry, error));
            }
            return Ok(Some(FrameCell {
                shape: shape(&entry, self.columns),
                layout: layout(data),
            }));
        }
        // A chunk of another type belongs to another array; an invalid entry may be the one.
        let Some((k, entry)) = index.find(frame, self.id, |_| true)? else { return Ok(None) };
        let found = index.locate(k, &entry)?.kind;
        if self.kinds.contains(&found) {
            return Ok(None);
        }
        let message = format!("expected element type {}, found {}", self.kind.name(), found.name());
        Err(index.add_context(k, &entry, Error::unsupported("gsd-019", message)))
    }

    fn next(&self, frame: u64) -> Result<Option<u64>> {
        self.file.index.next_frame(frame)
    }

    fn effective_next(&self, frame: u64) -> Result<Option<u64>> {
        let inherits = self.file.header().schema == HOOMD;
        if inherits { Ok((frame < self.frames).then_some(frame)) } else { self.next(frame) }
    }

    /// A frame without the chunk has the values of frame 0 or the default of the HOOMD schema.
    fn effective_cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let own = self.cell(frame)?;
        let index = &self.file.index;
        if own.is_some() || self.file.header().schema != HOOMD || !index.names.contains(self.id) {
            return Ok(own);
        }
        // A chunk of another type is one of the other arrays with this name.
        if index.find(frame, self.id, |_| true)?.is_some() {
            return Ok(None);
        }
        let (first, in_first) = (self.cell(0)?, index.find(0, self.id, |_| true)?.is_some());
        let name = index.names.display(self.id);
        Ok(match fallback(&self.file, frame, &name, in_first)? {
            Fallback::First => first,
            Fallback::Default(rows, values) if self.kinds.first() == Some(&self.kind) => {
                let columns = field(&name).map_or(1, |field| field.columns);
                let lengths = if self.columns { vec![rows, columns] } else { vec![rows] };
                let shape = Shape::new(lengths);
                let bytes = shape.bytes(self.kind.size() as usize)?;
                let bytes = index.limits().allow(bytes, "the default of a chunk")?;
                let layout = default_layout(self.kind, bytes, values)
                    .map_err(|e| e.in_object(format!("array \"{name}\"")).in_frame(frame))?;
                Some(FrameCell { shape, layout })
            }
            Fallback::Names(names) if self.columns && self.kind.size() == 1 => {
                let Values { n, m, bytes, .. } = encode_names(names);
                let layout = Layout::Inline(bytes.into(), Order::C);
                Some(FrameCell { shape: Shape::new([n, m]), layout })
            }
            Fallback::Default(..) | Fallback::Names(_) | Fallback::None => None,
        })
    }
}

/// An array of `all` bytes with these values, repeated. Fails if the element type cannot store them.
fn default_layout(kind: Type, all: usize, values: &[f64]) -> Result<Layout> {
    let mut bytes = Vec::new();
    if convert::from_f64(kind.dtype(), None, values, &mut bytes) != Some(0) {
        let message = format!("expected a type that can store {values:?}, found {}", kind.name());
        return Err(Error::unsupported("gsd-019", message));
    }
    if let ([first, rest @ ..], Some(element)) = (values, bytes.get(..kind.size() as usize))
        && rest.iter().all(|value| value == first)
    {
        return Ok(Layout::Fill(element.into()));
    }
    let times = all.checked_div(bytes.len()).unwrap_or(0);
    Ok(Layout::Inline(bytes.repeat(times).into(), Order::C))
}

/// Time steps of the frames; for files of 0.0.1, which store them in the index, also an array.
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

    fn next(&self, frame: u64) -> Result<Option<u64>> {
        self.file.index.next_frame(frame)
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let step = self.file.step(frame)?;
        Ok(step.map(|step| FrameCell {
            shape: Shape::new([1]),
            layout: Layout::Inline(step.to_le_bytes().into(), Order::C),
        }))
    }
}

/// Cell vectors of the frames.
struct Cells {
    file: File,
    frames: u64,
}

impl FrameTable for Cells {
    fn len(&self) -> u64 {
        self.frames
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        Ok(read_box(&self.file, frame)?.map(|[lx, ly, lz, xy, xz, yz]| {
            let rows = [[lx, 0.0, 0.0], [xy * ly, ly, 0.0], [xz * lz, yz * lz, lz]];
            let bytes: Vec<u8> = rows.as_flattened().iter().flat_map(|x| x.to_le_bytes()).collect();
            FrameCell { shape: Shape::new([3, 3]), layout: Layout::Inline(bytes.into(), Order::C) }
        }))
    }

    fn computed_from(&self) -> Option<&str> {
        Some(BOX)
    }
}

impl Native for OpenFile {
    fn refresh(&self, source: &Source, limits: &Limits) -> Result<Option<Parsed>> {
        let old = &self.file.index;
        let index = old.reopen()?;
        if index.entry_after_end.is_some() {
            return Err(index.gap_error());
        }
        if (&index.header, index.count, index.torn) == (&old.header, old.count, old.torn) {
            return Ok(None);
        }
        // An upgrade changes entries and type codes.
        let same = index.form() == old.form() && index.count >= self.survey.entries;
        let survey = if same { self.survey.clone() } else { Survey::new() };
        parse_after(source.clone(), File { index: Arc::new(index) }, survey, limits).map(Some)
    }

    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let index = &self.file.index;
        let (header, form, len) = (&index.header, index.form(), dataset.source().len());
        let cost = index.count.saturating_mul(REGION_COST);
        dataset.limits().allow(cost, "the regions of all chunks")?;
        // Offset, length, and entry number; header, index and names have the largest numbers.
        let mut parts: Vec<(u64, u64, u64)> = vec![(0, form.header_size(), u64::MAX)];
        parts.push((header.index.location, index.capacity * form.entry_size(), u64::MAX - 1));
        if let Some(names) = header.names {
            parts.push((names.location, names.allocated.saturating_mul(SLOT), u64::MAX - 2));
        }
        index.scan(0..index.count, |k, entry| {
            if let Ok(data) = index.locate(k, &entry)
                && data.len > 0
            {
                parts.push((data.offset, data.len, k));
            }
            Ok(())
        })?;
        parts.sort_unstable();
        let mut end = 0;
        for (offset, bytes, what) in parts {
            // Overlapping bytes belong to the chunk with the lower offset.
            let (from, to) = (offset.max(end), offset.saturating_add(bytes).min(len));
            if from >= to {
                continue;
            }
            let (kind, name, value) = match what {
                u64::MAX => {
                    (RegionKind::Header, "header".into(), format!("GSD {}", header.version_text()))
                }
                n if n == u64::MAX - 1 => {
                    let value = format!("{} of {} entries", index.count, header.index.allocated);
                    (RegionKind::Header, "index".into(), value)
                }
                n if n == u64::MAX - 2 => {
                    (RegionKind::Header, "names".into(), format!("{} names", index.names.len()))
                }
                k => {
                    let entry = index.entry(k)?;
                    let element = entry.kind(form).map_or(String::new(), Type::name);
                    let value = format!("{} x {} {element}", entry.n, entry.m);
                    let name = format!("frame {} {}", entry.frame, index.names.display(entry.id));
                    (RegionKind::Data, name, value)
                }
            };
            each(Region { offset: from, len: to - from, kind, name, value })?;
            end = to;
        }
        Ok(())
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        self.file.each_chunk(|chunk| {
            let chunk = chunk?;
            each(Object {
                id: Some(chunk.entry.id.to_string()),
                frame: Some(chunk.entry.frame),
                kind: chunk.data.kind.name(),
                array: chunk.desc(),
                path: chunk.name.to_string(),
            })
        })
    }
}
