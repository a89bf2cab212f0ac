//! A part of a dataset as a dataset: some objects, some frames, parts of dimensions.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use spile_core::select::Span;
use spile_core::{
    ArrayDesc, Axes, ByteOrder, Coord, Dataset, Error, Extents, FrameAxis, FrameCell, FrameTable,
    Hint, Layout, NodeId, Order, ROOT, Result, Selection, Shape, Tree,
};

use crate::pick::Pick;

/// The part of a dataset that `pick` selects, with the groups above it, the coordinates and the meshes
/// of its arrays.
pub fn subset(whole: &Dataset, pick: &Pick) -> Result<Dataset> {
    let (old, limits) = (whole.tree(), whole.limits());
    let mut wanted: HashSet<NodeId> = pick.nodes(old)?.into_iter().map(|(id, _)| id).collect();
    let mut todo: Vec<NodeId> = wanted.iter().copied().collect();
    while let Some(id) = todo.pop() {
        let node = old.node(id);
        let mut needed = vec![node.parent];
        if let Some(array) = &node.array {
            needed.extend(array.semantics().mesh);
            needed.extend(array.coords.iter().filter_map(Coord::node));
            needed.extend(array.layout.same());
        }
        todo.extend(needed.into_iter().filter(|id| *id != ROOT && wanted.insert(*id)));
    }
    let frames = match old.frames() {
        None => None,
        Some(axis) => Some(pick.frames(axis.len())?.collect::<Arc<[u64]>>()),
    };
    if let Some(frames) = frames.as_ref().filter(|_| pick.has_frames()) {
        retain_in(old, frames, &mut wanted);
    }
    let mut tree = Tree::new(limits);
    tree.set_attrs(ROOT, old.attrs().clone())?;
    let mut ids = HashMap::from([(ROOT, ROOT)]);
    pick.known(old)?;
    let mut room = limits.memory / 2;
    for (id, node) in old.iter().filter(|(id, _)| wanted.contains(id)) {
        let parent = ids[&node.parent];
        let new = match &node.array {
            None => tree.add_group(parent, &node.name)?,
            Some(array) => {
                let part = sliced(whole, array, pick, &mut room);
                let part = part.map_err(|e| e.in_object(format!("\"{}\"", node.path)))?;
                tree.add_array(parent, &node.name, part)?
            }
        };
        ids.insert(id, new);
        tree.node_mut(new).id.clone_from(&node.id);
        tree.set_attrs(new, node.attrs.clone())?;
    }
    // References may be to later arrays, so they are mapped last.
    for id in wanted.iter().map(|id| ids[id]) {
        if let Some(desc) = tree.array_mut(id) {
            renumber(desc, &ids, frames.as_ref());
        }
        fit(&mut tree, id);
    }
    if let (Some(axis), Some(frames)) = (old.frames(), frames) {
        tree.set_frames(Arc::new(SomeFrames { of: axis.clone(), frames }));
    }
    // Warnings about objects that were not selected do not apply.
    let applies = |object: &str| !object.starts_with('"') || pick.wants(object.trim_matches('"'));
    let part = whole.with_tree(tree);
    Ok(part.retain_warnings(|found| found.object.as_deref().is_none_or(applies)))
}

/// Removes the arrays that exist in other frames only, and groups that contain nothing else.
fn retain_in(tree: &Tree, frames: &Arc<[u64]>, wanted: &mut HashSet<NodeId>) {
    let array = |id: NodeId| tree.node(id).array.as_ref();
    let sources: HashSet<NodeId> =
        wanted.iter().filter_map(|id| array(*id)?.layout.same()).collect();
    let parents: HashSet<NodeId> = wanted.iter().map(|id| tree.node(*id).parent).collect();
    let mut removed = HashSet::new();
    for id in wanted.iter().filter(|id| !sources.contains(id)) {
        if let Some(Layout::PerFrame(table)) = array(*id).map(|desc| &desc.layout) {
            let some: &dyn FrameTable = &SomeCells::new(table.clone(), frames.clone());
            if some.cells().next().is_none() {
                removed.insert(*id);
            }
        }
    }
    // What is computed from a removed array has only its default.
    let is_kept = |id: &NodeId| match array(*id).map(|desc| &desc.layout) {
        Some(Layout::PerFrame(table)) => {
            let from = table.computed_from().and_then(|path| tree.at(path));
            !removed.contains(id) && from.is_none_or(|from| !removed.contains(&from))
        }
        _ => true,
    };
    wanted.retain(is_kept);
    let mut kept = HashSet::new();
    for mut id in wanted.iter().copied() {
        if array(id).is_some() || !parents.contains(&id) {
            while id != ROOT && kept.insert(id) {
                id = tree.node(id).parent;
            }
        }
    }
    *wanted = kept;
}

/// The selected part of an array: byte ranges of the file, or values in memory while there is `room`.
fn sliced(whole: &Dataset, array: &ArrayDesc, pick: &Pick, room: &mut u64) -> Result<ArrayDesc> {
    let tree = whole.tree();
    let real = tree.resolve(array)?;
    let Some(selection) = pick.slice(&array.dims).or_else(|| pick.slice(&real.dims)) else {
        return Ok(array.clone());
    };
    let spans = selection.resolve(&array.shape)?;
    let mut part = array.clone();
    part.shape = part_shape(&spans);
    for (coord, span) in part.coords.iter_mut().zip(&spans) {
        if let Coord::Uniform { start, step } = coord {
            *start += span.start as f64 * *step;
            *step *= span.step as f64;
        }
    }
    if let Some(of) = real.layout.frames() {
        let (whole, desc) = (whole.clone(), real.clone());
        part.layout = Layout::changed_frames(of, move |FrameCell { shape, layout: stored }| {
            let desc = ArrayDesc { shape, layout: stored, ..desc.clone() };
            // Encoded frames are read when they are looked up.
            let layout = layout(&whole, &desc, &selection, &mut |_| Ok(()))?;
            let shape = part_shape(&selection.resolve(&desc.shape)?);
            Ok(Some(FrameCell { shape, layout }))
        });
        return Ok(part);
    }
    if array.ragged().is_some() {
        return Err(Error::unsupported("", "slicing elements of variable length is not supported"));
    }
    let mut take = |bytes: u64| -> Result<()> {
        *room = room.checked_sub(bytes).ok_or_else(|| {
            Error::limit("the selected parts of all arrays exceed the memory limit")
                .hint(Hint::RaiseMemory)
        })?;
        Ok(())
    };
    part.layout = layout(whole, real, &selection, &mut take)?;
    if part.layout.is_always_little() {
        part.dtype = part.dtype.with_order(ByteOrder::Little);
    }
    Ok(part)
}

/// The shape of the part of an array in these spans.
fn part_shape(spans: &[Span]) -> Shape {
    Shape::new(spans.iter().map(|span| span.count).collect::<Vec<_>>())
}

/// The layout of the selected part of an array: byte ranges if they need less memory than the values,
/// otherwise the values. `take` is called with the memory that it needs.
fn layout(
    dataset: &Dataset,
    array: &ArrayDesc,
    selection: &Selection,
    take: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<Layout> {
    let spans = selection.resolve(&array.shape)?;
    let bytes = part_shape(&spans).bytes(array.dtype.size())?;
    if let Some(runs) = Runs::of(array, &spans).filter(|runs| runs.cost() < bytes) {
        take(runs.cost())?;
        return runs.layout();
    }
    take(bytes)?;
    let values = dataset.open_array(array)?.read_bytes(selection, Axes::Order(Order::C))?;
    Ok(Layout::Inline(values.into(), Order::C))
}

/// The byte ranges of a part of an array that is stored without encoding.
struct Runs<'a> {
    extents: &'a Extents,
    order: Order,
    /// Offset of the first range, and the length of each, in bytes.
    first: u64,
    len: u64,
    /// Number and stride in bytes, from slowest to fastest.
    axes: Vec<(u64, i64)>,
}

impl<'a> Runs<'a> {
    /// None for other layouts, or if the array is longer than any file.
    fn of(array: &'a ArrayDesc, spans: &[Span]) -> Option<Self> {
        let (extents, order) = array.layout.plain()?;
        let lengths = array.shape.lengths();
        if spans.iter().any(|span| span.count == 0) {
            return None;
        }
        // All indices below are inside the array, whose size in bytes was checked: nothing overflows.
        i64::try_from(array.shape.bytes(array.dtype.size()).ok()?).ok()?;
        let (mut first, mut stride, mut together) = (0, array.dtype.size() as u64, true);
        let mut runs = Self { extents, order, first: 0, len: stride, axes: Vec::new() };
        for axis in order.slowest_first(lengths.len()).into_iter().rev() {
            let Span { start, count, step, .. } = spans[axis];
            first += start * stride;
            together &= step == 1 || count == 1;
            if together {
                runs.len *= count;
            } else {
                // The step of a single element may have any length.
                let distance = if count > 1 { step * stride as i64 } else { 0 };
                runs.axes.insert(0, (count, distance));
            }
            together &= count == lengths[axis];
            stride *= lengths[axis];
        }
        Some(Self { first, ..runs })
    }

    /// Approximate memory of the ranges in bytes.
    fn cost(&self) -> u64 {
        let count = self.axes.iter().map(|(count, _)| *count).fold(1, u64::saturating_mul);
        count.saturating_mul(24).saturating_mul(self.extents.parts().len() as u64)
    }

    fn layout(&self) -> Result<Layout> {
        let mut starts = vec![self.first];
        for (count, distance) in &self.axes {
            let along = |first: u64| {
                (0..*count).map(move |k| first.wrapping_add_signed(k as i64 * distance))
            };
            starts = starts.into_iter().flat_map(along).collect();
        }
        let pieces = starts.into_iter().flat_map(|start| self.extents.pieces(start, self.len));
        let parts = pieces.filter(|part| part.len > 0).collect();
        Ok(Layout::Plain { extents: Extents::several(parts)?, order: self.order })
    }
}

/// Removes coordinates whose length differs from that of the dimension.
fn fit(tree: &mut Tree, id: NodeId) {
    let Some(array) = tree.array(id) else { return };
    let fits = |(coord, len): (&Coord, &u64)| match coord {
        Coord::Node(points) => tree.array(*points).is_some_and(|points| {
            // Coordinates with more than one dimension are checked where they are used.
            points.shape.rank() != 1 || points.shape.lengths() == [*len]
        }),
        _ => true,
    };
    let fits: Vec<bool> = array.coords.iter().zip(array.shape.lengths()).map(fits).collect();
    if let Some(array) = tree.array_mut(id) {
        for (coord, _) in array.coords.iter_mut().zip(fits).filter(|(_, fits)| !fits) {
            *coord = Coord::None;
        }
    }
}

fn renumber(desc: &mut ArrayDesc, ids: &HashMap<NodeId, NodeId>, frames: Option<&Arc<[u64]>>) {
    for coord in &mut desc.coords {
        if let Coord::Node(id) = coord {
            *coord = ids.get(id).map_or(Coord::None, |new| Coord::Node(*new));
        }
    }
    if let Some(meaning) = &mut desc.meaning {
        meaning.mesh = meaning.mesh.and_then(|mesh| ids.get(&mesh).copied());
    }
    match (&desc.layout, frames) {
        (Layout::Same(id), _) => {
            if let Some(new) = ids.get(id) {
                desc.layout = Layout::Same(*new);
            }
        }
        (Layout::PerFrame(table), Some(frames)) => {
            let some = SomeCells::new(table.clone(), frames.clone());
            desc.layout = Layout::PerFrame(Arc::new(some));
        }
        _ => {}
    }
}

struct SomeFrames {
    of: Arc<dyn FrameAxis>,
    frames: Arc<[u64]>,
}

impl FrameAxis for SomeFrames {
    fn len(&self) -> u64 {
        self.frames.len() as u64
    }

    fn step(&self, frame: u64) -> Result<Option<u64>> {
        self.frames.get(frame as usize).map_or(Ok(None), |frame| self.of.step(*frame))
    }

    fn time(&self, frame: u64) -> Result<Option<f64>> {
        self.frames.get(frame as usize).map_or(Ok(None), |frame| self.of.time(*frame))
    }
}

struct SomeCells {
    of: Arc<dyn FrameTable>,
    frames: Arc<[u64]>,
    /// The frames are in the order of the file.
    ascending: bool,
}

impl FrameTable for SomeCells {
    fn len(&self) -> u64 {
        self.frames.len() as u64
    }

    /// The first selected frame has the values that apply in it, and so have later ones unless they are the same as in
    /// the first: a format in which frames inherit from the first one then gives all frames the values of the source.
    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let Some(source) = self.source(frame) else { return Ok(None) };
        let own = self.of.cell(source)?;
        if own.is_some() || !self.starts_later() {
            return Ok(own);
        }
        let effective = self.of.effective_cell(source)?;
        if frame == 0 {
            return Ok(effective);
        }
        let first = self.source(0);
        let first = first.map_or(Ok(None), |first| self.of.effective_cell(first))?;
        let inherits = effective.as_ref().zip(first.as_ref()).is_some_and(|(a, b)| is_same(a, b));
        Ok(effective.filter(|_| !inherits))
    }

    fn next(&self, frame: u64) -> Result<Option<u64>> {
        let Some(first) = self.frames.get(frame as usize) else { return Ok(None) };
        if !self.ascending {
            return Ok(Some(frame));
        }
        let next = if self.starts_later() {
            self.of.effective_next(*first)?
        } else {
            self.of.next(*first)?
        };
        let Some(next) = next else { return Ok(None) };
        let frame = self.frames.partition_point(|own| *own < next) as u64;
        Ok((frame < self.len()).then_some(frame))
    }

    fn effective_cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        self.source(frame).map_or(Ok(None), |frame| self.of.effective_cell(frame))
    }
}

impl SomeCells {
    fn new(of: Arc<dyn FrameTable>, frames: Arc<[u64]>) -> Self {
        let ascending = frames.is_sorted();
        Self { of, frames, ascending }
    }

    /// The first selected frame is not the first one of the source.
    fn starts_later(&self) -> bool {
        self.source(0).is_some_and(|first| first > 0)
    }

    /// The number of a frame in the source.
    fn source(&self, frame: u64) -> Option<u64> {
        self.frames.get(frame as usize).copied().filter(|f| *f < self.of.len())
    }
}

/// Whether two cells are the same elements of the file, or of the same constant.
fn is_same(a: &FrameCell, b: &FrameCell) -> bool {
    a.shape == b.shape
        && match (&a.layout, &b.layout) {
            (Layout::Plain { extents: a, order }, Layout::Plain { extents: b, order: other }) => {
                a.parts() == b.parts() && order == other
            }
            (Layout::Fill(a), Layout::Fill(b)) => a == b,
            (Layout::Inline(a, order), Layout::Inline(b, other)) => a == b && order == other,
            _ => false,
        }
}
