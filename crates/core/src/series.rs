//! The files of a run as one dataset: each file is a frame.
//!
//! The tree is the union of the trees of all files; its arrays have frame tables. Coordinates that are
//! equal in all files have no frames. The first length of an array may differ between files, and files
//! may lack arrays. Floats of different precision are read as `float64`. A file that cannot be opened is
//! skipped and reported in [`Dataset::warnings`].
//!
//! Attributes are kept if they are equal in all files. The root attributes `step` and `time` of the files
//! form the frame axis.

use std::collections::{HashMap, HashSet};
use std::mem::replace;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::frames::{Cells, Moments};
use crate::limits::Budget;
use crate::metadata::{coords_from_meta, coords_to_meta};
use crate::source::Part;
use crate::{
    ArrayDesc, Attrs, Coord, DType, Dataset, Error, ErrorKind, Finding, Format, FrameCell, Layout,
    Limits, Node, NodeId, OpenOptions, Parsed, ROOT, Report, Result, Source, Tree, Value,
};
use column::{Column, as_f64, is_float, mesh_of, same_as, stored_bytes};

mod column;

/// Largest number of files that are opened at once while the series is built, and whose trees are in memory.
const BATCH: u64 = 64;

/// The trees of these files use at most this fraction (1/SHARE) of the memory limit.
const SHARE: u64 = 4;

/// Larger coordinates, in bytes, are not compared between files.
const SHARED_BYTES: u64 = 1 << 20;

/// Number of warnings of files that are kept.
const KNOWN_WARNINGS: usize = 1_000;

/// Approximate size in bytes of a frame in the table of an array.
const CELL_BYTES: u64 = 256;

/// Approximate size in bytes of an object of the union, without names and attributes.
const ENTRY_BYTES: usize = 256;

/// Number, step and time of a file.
#[derive(Clone, Debug, PartialEq)]
struct Moment {
    file: usize,
    step: Option<u64>,
    time: Option<f64>,
}

/// Opens `files` as one dataset with the path `folder`. Frames are ordered by time, then step, then the
/// order of `files`. Reads metadata and coordinates. Fails if no file can be opened or the memory limit is
/// exceeded.
pub fn open(
    format: &dyn Format,
    folder: &Path,
    files: &[PathBuf],
    options: &OpenOptions,
) -> Result<Parsed> {
    let groups: Vec<Vec<PathBuf>> = files.iter().map(|file| vec![file.clone()]).collect();
    open_groups(format, folder, &groups, options)
}

/// Opens files that refer to other files as one dataset, as [`open`] does. Each group is a file and the files
/// that its [joined](Source::joined) source has after it.
pub fn open_groups(
    format: &dyn Format,
    folder: &Path,
    groups: &[Vec<PathBuf>],
    options: &OpenOptions,
) -> Result<Parsed> {
    // Created before any file is opened, so that later changes are detected on reading.
    let source = Source::joined(folder, &groups.concat())?;
    let mut starts = Vec::with_capacity(groups.len() + 1);
    let mut part = 0;
    for group in groups {
        starts.push(source.parts().get(part).map_or(0, Part::start));
        part += group.len();
    }
    starts.push(source.len());
    let mut part = 0;
    let remote = groups.iter().map(|group| {
        part += group.len();
        source.remote_part(part - group.len())
    });
    let remote: Vec<Option<Source>> = remote.collect();
    let mut union = Union::new(&options.limits);
    let mut failure = None;
    // The size of the first tree decides how many are in memory at the same time.
    let (mut first, mut batch, mut largest) = (0, 1, 1);
    while first < groups.len() {
        let members = &groups[first..groups.len().min(first + batch)];
        let known = &union.coordinates;
        let paths: Vec<&Path> =
            members.iter().map(|group| group.first().map_or(folder, PathBuf::as_path)).collect();
        let share = options.limits.memory / members.len() as u64;
        let shared = OpenOptions { limits: options.limits.with_memory(share), ..*options };
        let opened: Vec<Result<Member>> = (paths.par_iter().zip(&remote[first..]))
            .map(|(path, remote)| Member::open(format, path, remote.as_ref(), known, &shared))
            .collect();
        for (k, (path, mut member)) in paths.iter().zip(opened).enumerate() {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let file = first + k;
            if members.len() > 1 && member.as_ref().is_err_and(|e| e.kind() == ErrorKind::Limit) {
                // It is larger than those before.
                let known = &union.coordinates;
                member = Member::open(format, path, remote[file].as_ref(), known, options);
            }
            if let Ok(member) = &member {
                largest = member.tree.charged().max(largest);
            }
            match member {
                // Its offsets would be those of other files.
                Ok(member) if member.len > starts[file + 1] - starts[file] => {
                    let message = "skipped: it refers to other files";
                    union.report.error("core-series", message).in_object(name);
                    failure.get_or_insert(Error::unsupported("core-series", message));
                }
                Ok(member) => union.add(file, starts[file], &name, member)?,
                Err(e) if e.kind() == ErrorKind::Limit => return Err(e.with_path(path)),
                Err(error) => {
                    union.report.error("core-series", skipped(&error)).in_object(name);
                    failure.get_or_insert(error.with_path(path));
                }
            }
        }
        first += members.len();
        batch = (options.limits.memory / SHARE / largest).clamp(1, BATCH) as usize;
    }
    match failure {
        Some(failure) if union.moments.is_empty() => Err(failure),
        _ => union.finish(source, groups.len()),
    }
}

fn skipped(error: &Error) -> String {
    match error.offset() {
        Some(at) => format!("skipped: {} (at byte {at})", error.message()),
        None => format!("skipped: {}", error.message()),
    }
}

/// The metadata of one file.
struct Member {
    /// Length of its source in bytes.
    len: u64,
    tree: Tree,
    summary: Attrs,
    warnings: Vec<Finding>,
    /// What decides its coordinates, by path; nothing where that is known already.
    coordinates: Vec<(String, Option<Vec<u8>>)>,
}

impl Member {
    fn open(
        format: &dyn Format,
        path: &Path,
        remote: Option<&Source>,
        known: &HashMap<String, Vec<u8>>,
        options: &OpenOptions,
    ) -> Result<Self> {
        // A file that is being written may have objects without their values.
        let options = OpenOptions { require_complete: true, ..*options };
        let source = remote.map_or_else(|| Source::open(path), |source| Ok(source.clone()))?;
        let dataset = Dataset::open(format, source, &options)?;
        let (tree, source) = (dataset.tree(), dataset.source());
        if tree.frames().is_some() {
            return Err(Error::unsupported("core-series", "a file of a series cannot have frames"));
        }
        let mut coordinates = Vec::new();
        // Arrays in the group of a coordinate are coordinates, too: nodes next to cell centres.
        let used = tree.arrays().flat_map(|(_, _, array)| &array.coords).filter_map(Coord::node);
        let groups: HashSet<NodeId> = used.map(|id| tree.node(id).parent).collect();
        for (_, node, desc) in tree.arrays().filter(|(_, node, _)| groups.contains(&node.parent)) {
            let Some(extents) = stored_bytes(&desc.layout) else { continue };
            if extents.iter().map(|extents| extents.len()).sum::<u64>() > SHARED_BYTES {
                continue;
            }
            let mut decides =
                format!("{} {} {:?} {:?}", desc.dtype, desc.shape, desc.map, desc.layout)
                    .into_bytes();
            for part in extents.iter().flat_map(|extents| extents.parts()) {
                decides.extend(source.read_vec(part.offset, part.len)?);
            }
            let new = known.get(&node.path) != Some(&decides);
            coordinates.push((node.path.clone(), new.then_some(decides)));
        }
        let (summary, warnings) = (dataset.summary().clone(), dataset.warnings().to_vec());
        Ok(Self { len: source.len(), tree: tree.clone(), summary, warnings, coordinates })
    }

    fn moment(&self, file: usize) -> Moment {
        let attrs = self.tree.attrs();
        Moment { file, step: attrs.get_u64("step"), time: attrs.get_f64("time") }
    }
}

/// A node of the union.
struct Entry {
    parent: usize,
    name: String,
    path: String,
    id: Option<String>,
    /// The identifier differs between files.
    mixed: bool,
    attrs: Attrs,
    array: Option<Column>,
}

/// The union of the trees of all files.
struct Union {
    moments: Vec<Moment>,
    /// The root first, parents before children.
    entries: Vec<Entry>,
    /// By path, and whether they are arrays in the file: an array in one file is a group in a file that has only
    /// arrays below it.
    places: HashMap<(String, bool), usize>,
    /// What decides the coordinates of the first file.
    coordinates: HashMap<String, Vec<u8>>,
    budget: Budget,
    summary: Attrs,
    report: Report,
}

impl Union {
    fn new(limits: &Limits) -> Self {
        let (name, path) = (String::new(), String::new());
        let (id, mixed, attrs) = (None, false, Attrs::new());
        let root = Entry { parent: 0, name, path, id, mixed, attrs, array: None };
        Self {
            moments: Vec::new(),
            entries: vec![root],
            places: HashMap::from([((String::new(), false), 0)]),
            coordinates: HashMap::new(),
            budget: Budget::new(limits),
            summary: Attrs::new(),
            report: Report::default(),
        }
    }

    fn add(&mut self, file: usize, start: u64, name: &str, member: Member) -> Result<()> {
        let first = self.moments.is_empty();
        self.moments.push(member.moment(file));
        let Member { tree, summary, warnings, coordinates, .. } = member;
        // A run of thousands of files may repeat a warning in each: every object is reported once.
        for finding in warnings {
            let known = self.report.findings.iter().take(KNOWN_WARNINGS);
            let same = |f: &Finding| f.code == finding.code && f.object == finding.object;
            if self.report.findings.len() < KNOWN_WARNINGS && !known.into_iter().any(same) {
                let message = format!("{name}: {}", finding.message);
                self.report.findings.push(Finding { message, ..finding });
            }
        }
        if first {
            self.entries[0].attrs.clone_from(tree.attrs());
            self.summary = summary;
        } else {
            self.entries[0].attrs.retain(|name, value| tree.attrs().get(name) == Some(value));
            self.summary.retain(|name, value| summary.get(name) == Some(value));
        }
        for (_, node) in tree.iter() {
            let place = |node: &Node| (node.path.clone(), node.array.is_some());
            if self.is_shared(node) {
                self.share(node, &tree, file, start, name)?;
                continue;
            }
            let Some(&k) = self.places.get(&place(node)) else {
                self.places.insert(place(node), self.entries.len());
                let bytes = size_of::<Entry>() + 3 * node.path.len() + ENTRY_BYTES;
                let bytes = (bytes as u64).saturating_add(node.attrs.memory());
                self.budget.charge(bytes, "the arrays of the series")?;
                let array = node.array.as_ref().map(|desc| Column::new(desc, &tree, start));
                self.entries.push(Entry {
                    parent: self.places[&place(tree.node(node.parent))],
                    name: node.name.clone(),
                    path: node.path.clone(),
                    id: node.id.clone(),
                    mixed: false,
                    attrs: node.attrs.clone(),
                    array: array.transpose()?,
                });
                let new = self.entries.len() - 1;
                self.cell(new, file, start, name, node.array.as_ref(), &tree)?;
                continue;
            };
            let entry = &mut self.entries[k];
            if entry.array.is_some() && node.array.is_none() {
                continue;
            }
            entry.attrs.retain(|name, value| node.attrs.get(name) == Some(value));
            if entry.id != node.id {
                let known = replace(&mut entry.mixed, true);
                if let (false, Some(first), Some(own)) = (known, &entry.id, &node.id) {
                    let message = format!(
                        "identifier \"{own}\" in {name}, \"{first}\" before; arrays are matched by path"
                    );
                    let object = format!("\"{}\"", node.path);
                    self.report.warn("core-series", message).in_object(object);
                }
            }
            self.cell(k, file, start, name, node.array.as_ref(), &tree)?;
        }
        for (path, decides) in coordinates {
            if let (true, Some(decides)) = (first, &decides) {
                self.coordinates.insert(path.clone(), decides.clone());
            }
            let alike = decides.is_none_or(|own| self.coordinates.get(&path) == Some(&own));
            let entry = self.places.get(&(path, true));
            let entry = entry.and_then(|k| self.entries[*k].array.as_mut());
            if let (Some(column), true) = (entry, alike) {
                column.alike += 1;
            }
        }
        Ok(())
    }

    /// Whether a node of a new kind is the same object as a known one: a group that only exists for the arrays below
    /// it, and an array.
    fn is_shared(&self, node: &Node) -> bool {
        let is_array = node.array.is_some();
        if self.places.contains_key(&(node.path.clone(), is_array)) {
            return false;
        }
        let known = self.places.get(&(node.path.clone(), !is_array)).map(|k| &self.entries[*k]);
        let implied = |id: &Option<String>, attrs: &Attrs| id.is_none() && attrs.is_empty();
        match known {
            Some(known) if is_array => known.array.is_none() && implied(&known.id, &known.attrs),
            Some(_) => implied(&node.id, &node.attrs),
            None => false,
        }
    }

    /// Adds a node to the entry with its path, which is an array from now on.
    fn share(
        &mut self,
        node: &Node,
        tree: &Tree,
        file: usize,
        start: u64,
        name: &str,
    ) -> Result<()> {
        let is_array = node.array.is_some();
        let k = self.places[&(node.path.clone(), !is_array)];
        self.places.insert((node.path.clone(), is_array), k);
        let Some(desc) = &node.array else { return Ok(()) };
        let entry = &mut self.entries[k];
        (entry.id, entry.attrs) = (node.id.clone(), node.attrs.clone());
        entry.array = Some(Column::new(desc, tree, start)?);
        self.cell(k, file, start, name, node.array.as_ref(), tree)
    }

    /// Adds the shape and layout of entry `k` in `file`.
    fn cell(
        &mut self,
        k: usize,
        file: usize,
        start: u64,
        name: &str,
        desc: Option<&ArrayDesc>,
        tree: &Tree,
    ) -> Result<()> {
        let Entry { array, path, .. } = &mut self.entries[k];
        let (Some(column), Some(desc)) = (array, desc) else { return Ok(()) };
        let own = tree.resolve(desc)?;
        let coords = coords_to_meta(tree, &desc.coords);
        for (k, known) in column.coords.iter_mut().enumerate() {
            if coords.get(k) != Some(known) {
                *known = None;
            }
        }
        if column.same != same_as(desc, tree) {
            column.same = None;
        }
        if column.mesh != mesh_of(desc, tree) {
            column.mesh = None;
        }
        if own.dtype != column.first.dtype
            && is_float(own.dtype)
            && is_float(column.first.dtype)
            && own.map.is_none()
            && column.first.map.is_none()
        {
            column.widen();
        }
        let widened = column.widened && is_float(own.dtype) && own.map.is_none();
        let dtype = if widened { DType::F64 } else { own.dtype };
        let first = column.first.dtype;
        // Single bytes have no order.
        let alike = dtype.with_order(first.order()) == first && dtype.word() == 1;
        let differs = if dtype != first && !alike {
            format!("expected {first}, found {dtype}")
        } else if own.shape.rank() != column.first.shape.rank() {
            format!("expected {} dimensions, found {}", column.first.shape.rank(), own.shape.rank())
        } else if own.map != column.first.map {
            "different scaling".into()
        } else {
            let mut layout = own.layout.shifted(start)?;
            if own.dtype != dtype {
                layout = as_f64(own.dtype, layout);
            }
            column.cells.push((file, FrameCell { shape: own.shape.clone(), layout }));
            return self.budget.charge(CELL_BYTES, "the frame tables of the series");
        };
        let message = format!("skipped in {name}: {differs}");
        self.report.warn("core-series", message).in_object(format!("\"{path}\""));
        Ok(())
    }

    fn finish(mut self, source: Source, files: usize) -> Result<Parsed> {
        self.moments.sort_by(|a, b| {
            let time = |m: &Moment| m.time.unwrap_or(f64::NEG_INFINITY);
            time(a).total_cmp(&time(b)).then(a.step.cmp(&b.step)).then(a.file.cmp(&b.file))
        });
        let mut frames = vec![None; files];
        for (frame, moment) in self.moments.iter().enumerate() {
            frames[moment.file] = Some(frame);
        }
        let count = self.moments.len();
        let mut tree = Tree::new(self.budget.limits());
        tree.node_mut(ROOT).attrs = std::mem::take(&mut self.entries[0].attrs);
        let mut ids = vec![ROOT];
        let mut links = Vec::new();
        for entry in self.entries.into_iter().skip(1) {
            let parent = ids[entry.parent];
            let id = match entry.array {
                None => tree.add_group(parent, &entry.name)?,
                Some(column) => {
                    let (mut desc, coords) = (column.first, column.coords);
                    let everywhere =
                        column.alike == count && column.cells.len() == count && !column.widened;
                    if !everywhere && column.same.is_none() {
                        let mut cells = vec![None; count];
                        for (file, cell) in column.cells {
                            if let Some(frame) = frames[file] {
                                cells[frame] = Some(cell);
                            }
                        }
                        if let Some(cell) = cells.iter().flatten().next() {
                            desc.shape = cell.shape.clone();
                        }
                        desc.layout = Layout::PerFrame(Arc::new(Cells(cells)));
                    }
                    let id = tree.add_array(parent, &entry.name, desc)?;
                    links.push((id, coords, column.same, column.mesh));
                    id
                }
            };
            let node = tree.node_mut(id);
            (node.id, node.attrs) = (entry.id.filter(|_| !entry.mixed), entry.attrs);
            ids.push(id);
        }
        let find = |path: &str| self.places.get(&(path.into(), true)).map(|k| ids[*k]);
        // A mesh is a group, or an array.
        let mesh_at = |path: &String| {
            let place = |array| self.places.get(&(path.clone(), array)).map(|k| ids[*k]);
            place(false).or_else(|| place(true))
        };
        for (id, coords, same, mesh) in links {
            if let Some(desc) = tree.array_mut(id) {
                desc.coords = coords_from_meta(&coords, desc.coords.len(), find);
                if let Some(meaning) = &mut desc.meaning {
                    meaning.mesh = mesh.as_ref().and_then(mesh_at);
                }
                if let Some(other) = same.as_deref().and_then(find) {
                    desc.layout = Layout::Same(other);
                }
            }
        }
        let moments = self.moments.iter().map(|moment| (moment.step, moment.time));
        tree.set_frames(Arc::new(Moments(moments.collect())));
        let mut summary = Attrs::from([("files", Value::UInt(files as u64))]);
        if count < files {
            summary.push("left out", Value::UInt((files - count) as u64));
        }
        summary.extend(self.summary);
        let parsed = Parsed::new(source, tree).with_summary(summary);
        Ok(parsed.with_warnings(self.report.findings))
    }
}

#[cfg(test)]
mod tests;
