//! The handle on an open file: its tree, the bytes behind it, and the limits for reading them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::format::{Folder, FormatInfo, Native, Object, Region, Run};
use crate::semantics::Cell;
use crate::{
    Array, ArrayDesc, Attrs, Axes, Error, Finding, Format, FrameAxis, FrameTable, Hint, Limits,
    Node, NodeId, OpenOptions, Order, Parsed, Report, Result, Role, Selection, Source, Tree,
    metadata, source,
};

/// Number of other series of a folder that a warning names.
const KNOWN_RUNS: usize = 8;

/// An open file, folder or series. Cloning is cheap; clones share everything. The [crate] documentation has an
/// example.
#[derive(Clone)]
pub struct Dataset(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    source: Source,
    tree: Tree,
    limits: Limits,
    format: Option<&'static FormatInfo>,
    summary: Attrs,
    warnings: Vec<Finding>,
    native: Option<Arc<dyn Native>>,
}

impl Dataset {
    /// A tree over the bytes of `source`, with the limits of the tree and no format.
    pub fn new(source: Source, tree: Tree) -> Self {
        let limits = *tree.limits();
        let (format, native) = (None, None);
        let (summary, warnings) = (Attrs::new(), Vec::new());
        Self(Arc::new(Inner { source, tree, limits, format, summary, warnings, native }))
    }

    /// The bytes of `source` with an empty tree, to [open arrays](Dataset::open_array) that are not nodes.
    pub fn of_bytes(source: Source, limits: &Limits) -> Self {
        Self::new(source, Tree::new(limits))
    }

    /// Opens the bytes of `source` as `format`. Reads metadata only.
    pub fn open(format: &dyn Format, source: Source, options: &OpenOptions) -> Result<Self> {
        let from = source.clone();
        source.limit_cache(options.limits.memory);
        let opened = format.open(source, options);
        let opened = opened.and_then(|parsed| Self::from_parsed(format.info(), parsed, options));
        opened.map_err(|e| e.with_format(format.info().name).in_source(&from))
    }

    /// Opens a file, or a folder that is one dataset, as `format`. Reads metadata only.
    pub fn open_path(
        format: &dyn Format,
        path: impl AsRef<Path>,
        options: &OpenOptions,
    ) -> Result<Self> {
        let path = path.as_ref();
        if !source::is_folder(path) {
            return Self::open(format, Source::open_within(path, &options.limits)?, options);
        }
        let opened = Self::open_folder(format, &Folder::open(path)?, options)?;
        opened.ok_or_else(|| {
            let name = format.info().name;
            let message = format!("the folder is not a {name} dataset");
            Error::not_this_format("core-folder", message).with_path(path)
        })
    }

    /// Opens a folder as one dataset of `format`; `None` if it is not one.
    pub fn open_folder(
        format: &dyn Format,
        folder: &Folder,
        options: &OpenOptions,
    ) -> Result<Option<Self>> {
        let opened = match (format.abilities().folder, format.abilities().series) {
            (Some(ability), _) => ability.open_folder(folder, options),
            (None, Some(series)) => {
                let runs = series.runs(folder);
                let Some((first, others)) = runs.split_first() else { return Ok(None) };
                let all = crate::series::open(format, folder.path(), &first.files, options);
                all.map(|parsed| Some(warn_of_others(folder, first, others, parsed)))
            }
            (None, None) => return Ok(None),
        };
        let dataset = opened
            .and_then(|p| p.map(|p| Self::from_parsed(format.info(), p, options)).transpose());
        dataset.map_err(|e| e.with_format(format.info().name).with_path(folder.path()))
    }

    /// Opens `files` of one run as frames of one dataset called `name`, sorted by time.
    pub fn open_series(
        format: &dyn Format,
        name: &Path,
        files: &[PathBuf],
        options: &OpenOptions,
    ) -> Result<Self> {
        let opened = crate::series::open(format, name, files, options);
        let opened = opened.and_then(|parsed| Self::from_parsed(format.info(), parsed, options));
        opened.map_err(|e| e.with_format(format.info().name))
    }

    /// The dataset of a parsed file: applies the metadata stored in it. For formats with options of their
    /// own; others are opened with [`Dataset::open`].
    pub fn from_parsed(
        format: &'static FormatInfo,
        parsed: Parsed,
        options: &OpenOptions,
    ) -> Result<Self> {
        let Parsed { source, mut tree, summary, warnings, metadata, native } = parsed;
        tree.set_unreadable(&warnings)?;
        let (format, limits) = (Some(format), options.limits);
        let native = native.map(Arc::from);
        let plain =
            Self(Arc::new(Inner { source, tree, limits, format, summary, warnings, native }));
        metadata::restore(plain, metadata)
    }

    /// Returns a dataset with another tree over the same bytes.
    pub fn with_tree(&self, tree: Tree) -> Self {
        let Inner { source, limits, format, summary, warnings, native, .. } = &*self.0;
        let (source, summary, warnings) = (source.clone(), summary.clone(), warnings.clone());
        let (limits, format, native) = (*limits, *format, native.clone());
        Self(Arc::new(Inner { source, tree, limits, format, summary, warnings, native }))
    }

    fn change(self, change: impl FnOnce(&mut Inner)) -> Self {
        let mut inner = Arc::unwrap_or_clone(self.0);
        change(&mut inner);
        Self(Arc::new(inner))
    }

    /// Returns this dataset with more warnings.
    pub fn with_warnings(self, more: impl IntoIterator<Item = Finding>) -> Self {
        self.change(|inner| inner.warnings.extend(more))
    }

    /// Returns this dataset with only the warnings for which `keep` is true.
    pub fn retain_warnings(self, keep: impl FnMut(&Finding) -> bool) -> Self {
        self.change(|inner| inner.warnings.retain(keep))
    }

    /// Returns this dataset with other limits for later reads.
    pub fn with_limits(self, limits: Limits) -> Self {
        self.change(|inner| inner.limits = limits)
    }

    /// Groups, arrays and attributes.
    pub fn tree(&self) -> &Tree {
        &self.0.tree
    }

    /// The bytes.
    pub fn source(&self) -> &Source {
        &self.0.source
    }

    /// The limits for reading.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// The format, unless the dataset was assembled in memory.
    pub fn format(&self) -> Option<&'static FormatInfo> {
        self.0.format
    }

    /// Summary shown by `spile info`, in the terms of the format.
    pub fn summary(&self) -> &Attrs {
        &self.0.summary
    }

    /// Warnings collected while opening.
    pub fn warnings(&self) -> &[Finding] {
        &self.0.warnings
    }

    /// Attributes of the root.
    pub fn attrs(&self) -> &Attrs {
        self.tree().attrs()
    }

    /// All arrays in file order.
    pub fn arrays(&self) -> impl Iterator<Item = (NodeId, &Node, &ArrayDesc)> {
        self.tree().arrays()
    }

    /// The array at a path, or with that native identifier. Fails for groups and for arrays that
    /// exist per frame; see [`Dataset::frame`].
    pub fn array(&self, name: &str) -> Result<Array> {
        self.array_at(self.tree().find(name)?)
    }

    /// The array that is node `id`. Fails for groups and for arrays that exist per frame.
    pub fn array_at(&self, id: NodeId) -> Result<Array> {
        let desc = self.desc(id)?;
        Array::open(self, Some(id), desc).map_err(|e| self.in_object(id, e))
    }

    /// An array that is not a node of the tree but lies in the same bytes: one of the format's own
    /// objects, or a part of an array.
    pub fn open_array(&self, desc: &ArrayDesc) -> Result<Array> {
        Array::open(self, None, desc)
    }

    /// The array that is node `id` in frame number `frame`; `None` if that frame does not have it. An
    /// array without frames is the same in all of them.
    pub fn array_in_frame(&self, id: NodeId, frame: u64) -> Result<Option<Array>> {
        let desc = self.desc(id)?;
        let opened = Array::open_frame(self, Some(id), desc, frame, |table, k| table.cell(k));
        opened.map_err(|e| self.in_object(id, e).in_frame(frame))
    }

    /// The values of the array that is node `id` that apply in frame number `frame`: those of
    /// [`Dataset::array_in_frame`], or those that the format defines for a frame without the array.
    pub fn effective_array_in_frame(&self, id: NodeId, frame: u64) -> Result<Option<Array>> {
        let desc = self.desc(id)?;
        let cell = |table: &dyn FrameTable, k| table.effective_cell(k);
        let opened = Array::open_frame(self, Some(id), desc, frame, cell);
        opened.map_err(|e| self.in_object(id, e).in_frame(frame))
    }

    /// [`Dataset::array_in_frame`] for an array that is not a node of the tree.
    pub fn open_array_in_frame(&self, desc: &ArrayDesc, frame: u64) -> Result<Option<Array>> {
        Array::open_frame(self, None, desc, frame, |table, k| table.cell(k))
    }

    fn desc(&self, id: NodeId) -> Result<&ArrayDesc> {
        let node = self.tree().node(id);
        node.array.as_ref().ok_or_else(|| {
            Error::argument(format!("\"{}\" is a group, not an array", node.path))
                .hint(Hint::ListObjects)
        })
    }

    fn in_object(&self, id: NodeId, error: Error) -> Error {
        error.in_object(format!("\"{}\"", self.tree().node(id).path))
    }

    /// Frame number `k`, counted from 0; negative numbers count from the end. Fails with the number of
    /// frames where it does not exist.
    pub fn frame(&self, k: i64) -> Result<Frame> {
        let count = self.tree().frames().map_or(0, |axis| axis.len());
        let number = if k < 0 { count.checked_add_signed(k) } else { Some(k.unsigned_abs()) };
        let number = number.filter(|number| *number < count).ok_or_else(|| {
            let message = match count {
                0 => "the dataset has no frames".to_string(),
                _ => format!("no frame {k}: the dataset has {count} frames"),
            };
            Error::argument(message)
        })?;
        Ok(Frame { dataset: self.clone(), number })
    }

    /// The periodic cell in frame number `frame`: the first array with role [`Role::Cell`] and shape (3, 3)
    /// that exists in it. A cell without frames is that of all frames. `None` if there is no such array;
    /// fails if a vector is not finite.
    pub fn cell(&self, frame: u64) -> Result<Option<Cell>> {
        for (id, _, desc) in self.arrays() {
            if desc.semantics().role != Role::Cell || desc.shape.lengths() != [3, 3] {
                continue;
            }
            let Some(array) = self.array_in_frame(id, frame)? else { continue };
            let values = array.read_f64(&Selection::all(), Axes::Order(Order::C))?;
            let (rows, rest) = values.as_chunks::<3>();
            let ([a, b, c], []) = (rows, rest) else { continue };
            if !values.iter().all(|value| value.is_finite()) {
                let error = Error::malformed("core-cell", "the cell vectors are not finite");
                return Err(self.in_object(id, error).in_frame(frame));
            }
            let units = array.units().map(Into::into);
            return Ok(Some(Cell { vectors: [*a, *b, *c], units }));
        }
        Ok(None)
    }

    /// Adds what a running writer has appended. Returns whether there is anything new.
    pub fn refresh(&mut self) -> Result<bool> {
        let Some(native) = &self.0.native else { return Ok(false) };
        let Some(format) = self.0.format else { return Ok(false) };
        let parsed = native.refresh(&self.0.source, &self.0.limits);
        let in_file = |e: Error| e.with_format(format.name).in_source(&self.0.source);
        let Some(parsed) = parsed.map_err(in_file)? else { return Ok(false) };
        let options = OpenOptions { limits: self.0.limits, ..OpenOptions::default() };
        *self = Self::from_parsed(format, parsed, &options)?;
        Ok(true)
    }

    /// Calls `each` for every byte range with a meaning, in file order.
    pub fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        self.native()?.regions(self, each)
    }

    /// Calls `each` for every object of the format itself, in file order.
    pub fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        self.native()?.objects(self, each)
    }

    /// The arrays that show the content of the file in one figure; empty where the format has no such choice.
    pub fn highlights(&self) -> Vec<NodeId> {
        self.0.native.as_deref().map_or_else(Vec::new, |native| native.highlights(self.tree()))
    }

    fn native(&self) -> Result<&dyn Native> {
        self.0.native.as_deref().ok_or_else(|| {
            Error::unsupported("", "byte ranges are not available for this dataset")
                .hint("open the files of a series one by one")
        })
    }
}

/// Adds a warning if the folder has other runs than `first`, which is opened.
fn warn_of_others(folder: &Folder, first: &Run, others: &[Run], mut parsed: Parsed) -> Parsed {
    if others.is_empty() {
        return parsed;
    }
    let name = |run: &Run| match run.files.len() {
        1 => format!("{} (1 file)", run.pattern),
        count => format!("{} ({count} files)", run.pattern),
    };
    let listed: Vec<String> = others.iter().take(KNOWN_RUNS).map(name).collect();
    let more = match others.len() - listed.len() {
        0 => String::new(),
        count => format!(" and {count} others"),
    };
    let (opened, listed) = (name(first), listed.join(", "));
    let message = format!("the folder has several series; opened {opened}, ignored {listed}{more}");
    let mut report = Report::default();
    let finding = report.warn("core-series", message);
    finding.in_object(folder.path().display().to_string());
    finding.hint("open another series by the pattern of its file names");
    parsed.warnings.extend(report.findings);
    parsed
}

/// One frame of a dataset.
#[derive(Clone)]
pub struct Frame {
    dataset: Dataset,
    number: u64,
}

impl Frame {
    /// Number of the frame, counted from 0.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Simulation step, where the format has it.
    pub fn step(&self) -> Result<Option<u64>> {
        self.axis().map_or(Ok(None), |axis| axis.step(self.number))
    }

    /// Simulation time, where the format has it.
    pub fn time(&self) -> Result<Option<f64>> {
        self.axis().map_or(Ok(None), |axis| axis.time(self.number))
    }

    fn axis(&self) -> Option<&dyn FrameAxis> {
        self.dataset.tree().frames().map(|axis| &**axis)
    }

    /// The array at a path, or with that native identifier, in this frame. Fails where the frame does
    /// not have it.
    pub fn array(&self, name: &str) -> Result<Array> {
        let id = self.dataset.tree().find(name)?;
        let array = self.dataset.array_in_frame(id, self.number)?;
        array.ok_or_else(|| {
            let message = "the array does not exist in this frame";
            self.dataset.in_object(id, Error::argument(message)).in_frame(self.number)
        })
    }
}

/// Whether the array of a tree exists per frame.
pub fn is_per_frame(tree: &Tree, desc: &ArrayDesc) -> bool {
    tree.resolve(desc).is_ok_and(|desc| desc.layout.frames().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::layout::Layout;
    use crate::semantics::Semantics;
    use crate::shape::Shape;
    use crate::tree::ROOT;

    #[test]
    fn the_cell_has_three_finite_vectors_as_rows() {
        let cell = |lengths: &[u64], last: f64, order: Order| {
            let mut tree = Tree::new(&Limits::default());
            let stored = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, last];
            let bytes: Vec<u8> = stored.iter().flat_map(|v: &f64| v.to_le_bytes()).collect();
            let layout = Layout::Inline(bytes.into(), order);
            let desc = ArrayDesc::new(DType::F64, Shape::new(lengths), layout);
            let desc = desc.with_semantics(Semantics::role(Role::Cell));
            let id = tree.add_array(ROOT, "box", desc).unwrap();
            tree.push_attr(id, "units", "bohr").unwrap();
            Dataset::new(Source::memory([]), tree).cell(7)
        };
        let read = cell(&[3, 3], 9.0, Order::F).unwrap().unwrap();
        assert_eq!(read.vectors, [[1.0, 4.0, 7.0], [2.0, 5.0, 8.0], [3.0, 6.0, 9.0]]);
        assert_eq!(read.units.as_deref(), Some("bohr"));
        assert_eq!(cell(&[9], 9.0, Order::C).unwrap(), None);
        assert_eq!(cell(&[3, 3], f64::NAN, Order::C).unwrap_err().code(), "core-cell");
    }
}
