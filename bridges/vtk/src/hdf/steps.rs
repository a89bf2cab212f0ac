//! Time steps of a file: each dataset has the values of all steps.

use std::sync::Arc;

use spile_core::Dataset;
use spile_core::computed::{Computed, Function};
use spile_core::error::{Error, Result};
use spile_core::frames::{FrameCell, FrameTable, Moments};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::read::{Array, Axes};
use spile_core::select::{Selection, Slice};
use spile_core::shape::{Order, Shape};
use spile_core::tree::{NodeId, Tree};

use super::{ROOT_GROUP, SECTIONS, STEP_NUMBERS, STEPS};

/// Elements that are read at once, except for longer rows.
const PIECE: u64 = 1 << 16;

/// A file with time steps as if each step was a file: arrays that change have frames.
pub(super) struct Unrolled {
    /// The tree of the file with other arrays.
    pub(super) tree: Tree,
    pub(super) moments: Moments,
}

fn unsupported(message: impl Into<String>) -> Error {
    Error::unsupported("vtk-030", message)
}

/// The steps of a file; `None` if it has none. `blocks` are the groups of its grids. Fails if a step has several parts.
pub(super) fn unrolled(content: &Dataset, blocks: &[(NodeId, String)]) -> Result<Option<Unrolled>> {
    let tree = content.tree();
    let steps = |group: NodeId| tree.child(group, STEPS);
    let Some(first) = blocks.iter().find_map(|(group, _)| steps(*group)) else { return Ok(None) };
    let moments = moments(content, first)?;
    let mut unrolled = Unrolled { tree: tree.clone(), moments };
    let frames = unrolled.moments.0.len();
    let top = tree.at(ROOT_GROUP);
    if let Some((group, steps)) = top.and_then(|top| Some((top, steps(top)?)))
        && !blocks.iter().any(|(block, _)| *block == group)
    {
        Block { content, group, steps, frames }.fields(&mut unrolled.tree)?;
    }
    for (group, kind) in blocks {
        let Some(steps) = steps(*group) else { continue };
        let block = Block { content, group: *group, steps, frames };
        block.unroll(kind, &mut unrolled.tree)?;
    }
    Ok(Some(unrolled))
}

/// Steps and times.
fn moments(content: &Dataset, steps: NodeId) -> Result<Moments> {
    let tree = content.tree();
    let count = tree.node(steps).attrs.get_u64("NSteps").unwrap_or(0);
    content.limits().allow(count.saturating_mul(64), "the time steps")?;
    let values = tree.child(steps, "Values");
    let shown = values.is_none_or(|id| tree.node(id).attrs.get_bool("times") != Some(false));
    let (mut times, mut numbers) = (None, None);
    if let Some(id) = values.filter(|_| shown) {
        times = Some(content.array_at(id)?.read::<Vec<f64>>(":")?);
    }
    if let Some(id) = tree.child(steps, STEP_NUMBERS) {
        numbers = Some(content.array_at(id)?.read::<Vec<u64>>(":")?);
    }
    let times = times.filter(|times| times.len() as u64 == count);
    let numbers = numbers.filter(|numbers| numbers.len() as u64 == count);
    let moment = |k: usize| {
        (numbers.as_ref().map(|numbers| numbers[k]), times.as_ref().map(|times| times[k]))
    };
    Ok(Moments((0..count as usize).map(moment).collect()))
}

/// A grid with time steps.
struct Block<'a> {
    content: &'a Dataset,
    group: NodeId,
    steps: NodeId,
    frames: usize,
}

/// First rows and numbers of rows in each step.
struct Rows {
    first: Vec<u64>,
    count: Vec<u64>,
}

impl Block<'_> {
    fn tree(&self) -> &Tree {
        self.content.tree()
    }

    /// The integers of a dataset below a group; `None` if it does not exist.
    fn numbers(&self, group: NodeId, path: &str) -> Result<Option<Vec<u64>>> {
        let mut at = Some(group);
        for name in path.splitn(2, '/') {
            at = at.and_then(|id| self.tree().child(id, name));
        }
        let Some(id) = at.filter(|id| self.tree().node(*id).array.is_some()) else {
            return Ok(None);
        };
        let array = self.content.array_at(id)?;
        let bytes = array.shape().count().unwrap_or(u64::MAX).saturating_mul(16);
        self.content.limits().allow(bytes, "the time steps")?;
        let numbers: Vec<i64> = array.read("...")?;
        let positive = |number: i64| {
            u64::try_from(number).map_err(|_| self.malformed(path, "a negative number"))
        };
        numbers.into_iter().map(positive).collect::<Result<_>>().map(Some)
    }

    /// One row of `columns` numbers per step; zeros if they are not in the file. VTK writes another row at the end.
    fn per_step(&self, path: &str, columns: usize) -> Result<Vec<u64>> {
        let wanted = self.frames * columns;
        match self.numbers(self.steps, path)? {
            None => Ok(vec![0; wanted]),
            Some(mut numbers) if [wanted, wanted + columns].contains(&numbers.len()) => {
                numbers.truncate(wanted);
                Ok(numbers)
            }
            Some(numbers) => {
                let message = format!("expected {wanted} numbers, found {}", numbers.len());
                Err(self.malformed(path, &message))
            }
        }
    }

    fn malformed(&self, what: &str, message: &str) -> Error {
        let path = &self.tree().node(self.steps).path;
        Error::malformed("vtk-032", message.to_string()).in_object(format!("\"{path}/{what}\""))
    }

    /// `values[at[k]]` for each step.
    fn pick(&self, what: &str, values: &[u64], at: &[u64]) -> Result<Vec<u64>> {
        let value = |k: &u64| usize::try_from(*k).ok().and_then(|k| values.get(k)).copied();
        let missing = || self.malformed(what, "a number is outside of the dataset");
        at.iter().map(|k| value(k).ok_or_else(missing)).collect()
    }

    fn unroll(&self, kind: &str, tree: &mut Tree) -> Result<()> {
        if kind.ends_with("Grid") && kind != "UnstructuredGrid" || kind == "ImageData" {
            return self.unroll_grid(tree);
        }
        let parts = self.per_step("NumberOfParts", 1)?;
        if self.numbers(self.steps, "NumberOfParts")?.is_some() && parts.iter().any(|n| *n != 1) {
            return Err(unsupported("several parts in a time step"));
        }
        let part = self.per_step("PartOffsets", 1)?;
        let counts = |group: NodeId, name: &str| -> Result<(Vec<u64>, Vec<u64>)> {
            let all = self.numbers(group, name)?.unwrap_or_default();
            Ok((self.pick(name, &all, &part)?, all))
        };
        let (points, _) = counts(self.group, "NumberOfPoints")?;
        let rows = Rows { first: self.per_step("PointOffsets", 1)?, count: points };
        self.replace(tree, self.group, "Points", &rows)?;
        self.data(tree, "PointData", &rows)?;
        let sections: Vec<NodeId> = if kind == "PolyData" {
            let own = SECTIONS.iter().filter_map(|(name, _)| self.tree().child(self.group, name));
            own.collect()
        } else {
            vec![self.group]
        };
        let columns = sections.len().max(1);
        let starts = self.per_step("CellOffsets", columns)?;
        let corners = self.per_step("ConnectivityIdOffsets", columns)?;
        let mut all = Rows { first: vec![0; self.frames], count: vec![0; self.frames] };
        for (c, section) in sections.iter().enumerate() {
            let column = |list: &[u64]| -> Vec<u64> {
                list.iter().skip(c).step_by(columns).copied().collect()
            };
            let (cells, of_parts) = counts(*section, "NumberOfCells")?;
            let (ids, _) = counts(*section, "NumberOfConnectivityIds")?;
            let first = column(&starts);
            let mut sums = vec![0_u64];
            for count in &of_parts {
                sums.push(sums.last().copied().unwrap_or(0).saturating_add(*count));
            }
            // Every part begins with an offset of its own.
            let offset = |(start, part): (&u64, &u64)| {
                let before = sums.partition_point(|sum| sum < start) as u64;
                let before = if kind == "PolyData" { before.min(*part) } else { *part };
                start.saturating_add(before)
            };
            let offsets = Rows {
                first: first.iter().zip(&part).map(offset).collect(),
                count: cells.iter().map(|count| count.saturating_add(1)).collect(),
            };
            self.replace(tree, *section, "Offsets", &offsets)?;
            let connectivity = Rows { first: column(&corners), count: ids };
            self.replace(tree, *section, "Connectivity", &connectivity)?;
            for k in 0..self.frames {
                all.first[k] = all.first[k].saturating_add(first[k]);
                all.count[k] = all.count[k].saturating_add(cells[k]);
            }
            self.replace(tree, *section, "Types", &Rows { first, count: cells })?;
        }
        self.data(tree, "CellData", &all)?;
        self.fields(tree)
    }

    /// The arrays of a structured grid, whose first index is that of the step.
    fn unroll_grid(&self, tree: &mut Tree) -> Result<()> {
        for axis in ["X", "Y", "Z"] {
            let moved = self.per_step(&format!("{axis}CoordinatesOffsets"), 1)?;
            if moved.iter().any(|first| *first != 0) {
                return Err(unsupported("a grid that moves"));
            }
        }
        let still = self.per_step("PointOffsets", 1)?;
        let rows = |first: Vec<u64>| Rows { count: Vec::new(), first };
        self.replace(tree, self.group, "Points", &rows(still))?;
        let zeros = || rows(vec![0; self.frames]);
        self.data(tree, "PointData", &zeros())?;
        self.data(tree, "CellData", &zeros())?;
        self.fields(tree)
    }

    /// Unrolls arrays of a section, whose rows are `usual` unless they have offsets of their own.
    fn data(&self, tree: &mut Tree, section: &str, usual: &Rows) -> Result<()> {
        let Some(group) = self.tree().child(self.group, section) else { return Ok(()) };
        for name in self.names(group) {
            let offsets = format!("{section}Offsets/{name}");
            let known = self.numbers(self.steps, &offsets)?.is_some();
            let first = if known { self.per_step(&offsets, 1)? } else { usual.first.clone() };
            self.replace(tree, group, &name, &Rows { first, count: usual.count.clone() })?;
        }
        Ok(())
    }

    /// Unrolls field data.
    fn fields(&self, tree: &mut Tree) -> Result<()> {
        let Some(group) = self.tree().child(self.group, "FieldData") else { return Ok(()) };
        for name in self.names(group) {
            let (offsets, sizes) =
                (format!("FieldDataOffsets/{name}"), format!("FieldDataSizes/{name}"));
            if self.numbers(self.steps, &offsets)?.is_none()
                || self.numbers(self.steps, &sizes)?.is_none()
            {
                continue;
            }
            let first = self.per_step(&offsets, 1)?;
            let count = self.per_step(&sizes, 2)?.into_iter().skip(1).step_by(2).collect();
            self.replace(tree, group, &name, &Rows { first, count })?;
        }
        Ok(())
    }

    fn names(&self, group: NodeId) -> Vec<String> {
        let inside = self.tree().arrays().filter(|(_, node, _)| node.parent == group);
        inside.map(|(_, node, _)| node.name.clone()).collect()
    }

    /// Replaces an array by its rows in each step; without counts by one index of its first dimension.
    fn replace(&self, tree: &mut Tree, group: NodeId, name: &str, rows: &Rows) -> Result<()> {
        let Some(id) = self.tree().child(group, name) else { return Ok(()) };
        let Some(own) = self.tree().array(id) else { return Ok(()) };
        let array = self.tree().resolve(own)?.clone();
        let lengths = array.shape.lengths();
        let all = lengths.first().copied().unwrap_or(0);
        let by_index = rows.count.is_empty();
        let count = |k: usize| rows.count.get(k).copied().unwrap_or(1);
        let fits = |k: usize| {
            rows.first
                .get(k)
                .and_then(|first| first.checked_add(count(k)))
                .is_some_and(|n| n <= all)
        };
        if !(0..self.frames).all(fits) {
            let path = &self.tree().node(id).path;
            let message = "a time step has values after the end of the dataset";
            return Err(Error::malformed("vtk-032", message).in_object(format!("\"{path}\"")));
        }
        let cell = |k: usize| -> Result<FrameCell> {
            let tail = lengths.get(1..).unwrap_or_default().iter().copied();
            let row = (!by_index).then_some(count(k));
            let shape = Shape::new(row.into_iter().chain(tail).collect::<Vec<_>>());
            Ok(FrameCell { shape, layout: slice(&array, rows.first[k], count(k))? })
        };
        let mut same = (0..self.frames).map(|k| (rows.first[k], count(k)));
        let first = same.next();
        let Some(target) = tree.array_mut(id) else { return Ok(()) };
        if first.is_none() {
            return Ok(());
        }
        *target = ArrayDesc::new(array.dtype, Shape::new([0]), Layout::Inline([].into(), Order::C));
        let FrameCell { shape, layout } = cell(0)?;
        let is_static = same.all(|own| Some(own) == first);
        let layout = if is_static {
            layout
        } else {
            let cells = (0..self.frames).map(cell).collect::<Result<Vec<_>>>()?;
            let bytes = 256_u64.saturating_mul(self.frames as u64);
            self.content.limits().allow(bytes, "the time steps")?;
            Layout::PerFrame(Arc::new(Steps(cells)))
        };
        *target = ArrayDesc::new(array.dtype, shape, layout);
        Ok(())
    }
}

/// An array in each step.
struct Steps(Vec<FrameCell>);

impl FrameTable for Steps {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        Ok(usize::try_from(frame).ok().and_then(|frame| self.0.get(frame)).cloned())
    }
}

/// The layout of rows of an array in C order.
fn slice(array: &ArrayDesc, first: u64, count: u64) -> Result<Layout> {
    let tail = Shape::new(array.shape.lengths().get(1..).unwrap_or_default());
    let row = tail.bytes(array.dtype.size())?;
    let bytes = |rows: u64| {
        rows.checked_mul(row).ok_or_else(|| unsupported("the size of a dataset overflows"))
    };
    if bytes(count)? == 0 {
        return Ok(Layout::Inline([].into(), Order::C));
    }
    if let Some(layout) = array.layout.rows(bytes(first)?, bytes(count)?) {
        return Ok(layout);
    }
    let elements = tail.count().unwrap_or(0).max(1);
    Ok(Layout::Computed(Arc::new(Computed {
        inputs: vec![array.clone()],
        function: Arc::new(Window { first, row: elements }),
        piece: (PIECE / elements).clamp(1, count) * elements,
        order: Order::C,
    })))
}

/// Rows of an array.
struct Window {
    first: u64,
    /// Elements of a row.
    row: u64,
}

impl Function for Window {
    fn name(&self) -> &'static str {
        "rows of a time step"
    }

    fn memory(&self, count: u64) -> u64 {
        count.saturating_mul(16)
    }

    fn compute(&self, inputs: &[Array], first: u64, out: &mut [u8]) -> Result<()> {
        let Some(array) = inputs.first() else { return Ok(()) };
        let from = self.first + first / self.row;
        let rows = (out.len() / array.dtype().size().max(1)) as u64 / self.row;
        let selection = Selection(vec![Slice::range(from, from + rows), Slice::Rest]);
        out.copy_from_slice(&array.read_bytes(&selection, Axes::Order(Order::C))?);
        Ok(())
    }
}

/// The same change of an array, or of each frame of it.
pub(super) fn each_frame(
    array: ArrayDesc,
    change: impl Fn(FrameCell) -> Result<FrameCell> + Send + Sync + Clone + 'static,
) -> Result<ArrayDesc> {
    let ArrayDesc { shape, layout, .. } = array.clone();
    let (layout, shape) = match layout {
        Layout::PerFrame(table) => {
            let first = table.cell(0)?.map(&change).transpose()?;
            let shape = first.map_or(shape, |cell| cell.shape);
            (Layout::changed_frames(&table, move |cell| change(cell).map(Some)), shape)
        }
        layout => {
            let cell = change(FrameCell { shape, layout })?;
            (cell.layout, cell.shape)
        }
    };
    Ok(ArrayDesc { shape, layout, ..array })
}
