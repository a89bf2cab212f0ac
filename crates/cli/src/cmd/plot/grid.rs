//! Coordinates of a dimension and the edges of its cells.

use spile::layout::{ArrayDesc, Coord};
use spile::read::{Array, Axes};
use spile::reduce::even_cuts;
use spile::select::{Selection, Slice, Span};
use spile::tree::{Node, NodeId};
use spile_plot::Axis;

use super::super::cat;
use super::array_part::ArrayPart;
use super::{Job, array_part, index, slice};

/// Maximum number of coordinates that are read; of more only a few samples are read.
const MAX_POINTS: u64 = 1 << 22;

/// The cells along one dimension of a selection.
pub(super) struct Grid {
    /// Name and unit.
    pub(super) axis: Axis,
    /// The dimension has coordinates; otherwise indices are used.
    pub(super) has_coordinates: bool,
    cells: Cells,
    count: u64,
}

enum Cells {
    /// The centre of cell `k` is `first + k * step`.
    Uniform { first: f64, step: f64 },
    /// The centre of each cell; the lower edge of each cell and the upper edge of the last.
    Each { centres: Vec<f64>, edges: Vec<f64> },
}

impl Grid {
    pub(super) fn new(job: &Job<'_>, chosen: &ArrayPart<'_>, dimension: usize, span: Span) -> Self {
        let desc = chosen.desc;
        let found = match desc.coords.get(dimension) {
            Some(Coord::Uniform { start, step })
                if start.is_finite() && step.is_finite() && *step != 0.0 =>
            {
                let first = start + span.start as f64 * step;
                Some(Cells::Uniform { first, step: step * span.step as f64 })
            }
            Some(Coord::Node(_)) => points(job, desc, dimension, span),
            _ => None,
        };
        let Some(cells) = found else {
            let mut grid = Self::index(desc, dimension, span);
            if desc.coords.get(dimension).is_some_and(|coord| coord.node().is_some()) {
                // The name of the dimension is that of its coordinates, which are not shown.
                grid.axis.label = "index".into();
            }
            return grid;
        };
        let name = desc.dims.get(dimension).map_or("", String::as_str);
        let unit = match desc.coords.get(dimension) {
            Some(Coord::Node(id)) => array_part::unit(job.file.tree().node(*id)),
            // The unit of a uniform grid is an attribute of the array.
            _ => array_part::attribute(chosen.node, &format!("{name}_units")),
        };
        let axis = Axis::new(named(desc, dimension).unwrap_or("grid"), unit);
        Self { axis, has_coordinates: true, cells, count: span.count }
    }

    /// The indices of a dimension.
    pub(super) fn index(desc: &ArrayDesc, dimension: usize, span: Span) -> Self {
        let axis = Axis::integer(named(desc, dimension).unwrap_or("index"));
        let cells = Cells::Uniform { first: span.start as f64, step: span.step as f64 };
        Self { axis, has_coordinates: false, cells, count: span.count }
    }

    /// The first point and the step, if the points are evenly spaced.
    pub(super) fn spacing(&self) -> Option<(f64, f64)> {
        match &self.cells {
            Cells::Uniform { first, step } => Some((*first, *step)),
            Cells::Each { centres, .. } => match centres[..] {
                [first, .., last] => {
                    let step = (last - first) / (centres.len() - 1) as f64;
                    let deviation = |(k, v): (usize, &f64)| (v - first - k as f64 * step).abs();
                    let even =
                        centres.iter().enumerate().all(|at| deviation(at) < 1e-3 * step.abs());
                    even.then_some((first, step))
                }
                _ => None,
            },
        }
    }

    /// The lower edge of cell `k`; for `k == count` the upper edge of the last cell.
    pub(super) fn edge(&self, k: u64) -> f64 {
        match &self.cells {
            Cells::Uniform { first, step } => first - step / 2.0 + k as f64 * step,
            Cells::Each { edges, .. } => edges.get(k as usize).copied().unwrap_or(f64::NAN),
        }
    }

    /// The centre of cell `k`.
    pub(super) fn point(&self, k: u64) -> f64 {
        match &self.cells {
            Cells::Uniform { first, step } => first + k as f64 * step,
            Cells::Each { centres, .. } => centres.get(k as usize).copied().unwrap_or(f64::NAN),
        }
    }

    /// Boundaries of at most `most` groups of cells with about equal widths.
    pub(super) fn cuts(&self, most: usize) -> Vec<u64> {
        let Cells::Each { edges, .. } = &self.cells else { return even_cuts(self.count, most) };
        if self.count <= most as u64 {
            return (0..=self.count).collect();
        }
        let (first, last) = (self.edge(0), self.edge(self.count));
        let mut cuts: Vec<u64> = (0..=most)
            .map(|k| {
                let part = k as f64 / most as f64;
                let at = first * (1.0 - part) + last * part;
                let passed = |e: &f64| if first < last { *e < at } else { *e > at };
                // The nearest edge.
                let after = edges.partition_point(passed).min(edges.len() - 1);
                let before = after.saturating_sub(1);
                let nearer = (edges[before] - at).abs() < (edges[after] - at).abs();
                (if nearer { before } else { after }) as u64
            })
            .collect();
        // Wide cells are not divided, so cuts may coincide.
        cuts[0] = 0;
        cuts[most] = self.count;
        cuts.dedup();
        cuts
    }
}

/// The part of a span whose points are in `range`, with a further point at both ends, so that lines reach the edges.
/// All of it without a range and for points that are not monotonic.
pub(super) fn window(
    job: &Job<'_>,
    chosen: &ArrayPart<'_>,
    dimension: usize,
    span: Span,
    range: Option<(f64, f64)>,
) -> Span {
    let Some((low, high)) = range.filter(|_| span.count > 1) else { return span };
    let grid = Grid::new(job, chosen, dimension, span);
    let last = span.count - 1;
    let rising = grid.point(0) <= grid.point(last);
    // The number of points before `value` in the direction of the grid.
    let before = |value: f64| {
        let (mut from, mut to) = (0, span.count);
        while from < to {
            let middle = from + (to - from) / 2;
            let point = grid.point(middle);
            if if rising { point < value } else { point > value } {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        from
    };
    let (near, far) = if rising { (low, high) } else { (high, low) };
    let from = before(near).saturating_sub(1);
    let to = (before(far) + 2).min(span.count);
    let count = to.saturating_sub(from);
    Span { start: index(span, from), count, ..span }
}

/// The name of a dimension, if it has one.
fn named(desc: &ArrayDesc, dimension: usize) -> Option<&str> {
    let name = desc.dims.get(dimension)?;
    (*name != format!("dim{}", dimension + 1)).then_some(name)
}

/// The cells around the points of a coordinate array, if it is monotonic.
fn points(job: &Job<'_>, desc: &ArrayDesc, dimension: usize, span: Span) -> Option<Cells> {
    let Some(Coord::Node(id)) = desc.coords.get(dimension) else { return None };
    let tree = job.file.tree();
    let points = open(job, tree.node(*id))?;
    let length = tree.resolve(desc).ok()?.shape.lengths().get(dimension).copied()?;
    let given = points.shape().count()?;
    let read = |slice: Slice| points.read_f64(&Selection(vec![slice]), Axes::Stored).ok();
    if span.count == 0 {
        return None;
    }
    if span.count > MAX_POINTS {
        let (first, step) = sampled_spacing(span.count, |k| {
            read(Slice::Index(i64::try_from(index(span, k)).ok()?))?.pop()
        })?;
        return Some(Cells::Uniform { first, step });
    }
    // A coordinate array with one more element contains the edges.
    if given == length + 1 && span.step == 1 {
        let edges = read(Slice::range(span.start, span.start + span.count + 1))?;
        let centres = edges.windows(2).map(|w| f64::midpoint(w[0], w[1])).collect();
        return is_monotonic(&edges).then_some(Cells::Each { centres, edges });
    }
    if given < length {
        return None;
    }
    let centres = read(slice(span))?;
    match centres[..] {
        _ if !is_monotonic(&centres) => None,
        [first] => {
            let from = span.start.saturating_sub(1);
            // The distance to the neighbours is the width of a single cell.
            let near = read(Slice::range(from, (span.start + 2).min(length)))?;
            Some(Cells::Uniform { first, step: cell_width(&near, first) })
        }
        _ => {
            let nodes = mesh_nodes(job, *id, length, span, &centres);
            let edges = nodes.or_else(|| midpoint_edges(&centres))?;
            Some(Cells::Each { centres, edges })
        }
    }
}

/// Opens a one-dimensional coordinate array, in the selected frame or without frames.
fn open(job: &Job<'_>, node: &Node) -> Option<Array> {
    let desc = node.array.as_ref()?;
    let open = |frame| cat::open_in_frame(job.file, node, desc, frame);
    let (_, points) = open(job.args.frame).or_else(|_| open(None)).ok()?;
    (points.shape().rank() == 1).then_some(points)
}

fn is_monotonic(points: &[f64]) -> bool {
    points.iter().all(|p| p.is_finite())
        && (points.is_sorted_by(|a, b| a < b) || points.is_sorted_by(|a, b| a > b))
}

/// The first point and the step of `count` points, if a few samples are evenly spaced.
fn sampled_spacing(count: u64, point: impl Fn(u64) -> Option<f64>) -> Option<(f64, f64)> {
    let last = count.checked_sub(1).filter(|last| *last > 0)?;
    let (start, end) = (point(0)?, point(last)?);
    let step = (end - start) / last as f64;
    let near =
        |k: u64| point(k).is_some_and(|v| (v - start - k as f64 * step).abs() < 1e-3 * step.abs());
    [1, last / 3, last / 2, last - 1].into_iter().all(near).then_some((start, step))
}

/// The nodes of the mesh if the points are cell centres: an array in the same group with one more element
/// whose midpoints are the points. The nodes define the cell widths of a non-uniform mesh.
fn mesh_nodes(
    job: &Job<'_>,
    points: NodeId,
    length: u64,
    span: Span,
    centres: &[f64],
) -> Option<Vec<f64>> {
    let tree = job.file.tree();
    let parent = tree.node(points).parent;
    let siblings = tree.arrays().filter(|(_, node, desc)| {
        node.parent == parent && desc.shape.lengths() == [length + 1] && span.step == 1
    });
    siblings.filter_map(|(_, node, _)| open(job, node)).find_map(|array| {
        let part = Slice::range(span.start, span.start + span.count + 1);
        let nodes = array.read_f64(&Selection(vec![part]), Axes::Stored).ok()?;
        let middle = |(w, c): (&[f64], &f64)| {
            (f64::midpoint(w[0], w[1]) - c).abs() <= 1e-6 * (w[1] - w[0]).abs()
        };
        let fits = nodes.len() == centres.len() + 1 && is_monotonic(&nodes);
        (fits && nodes.windows(2).zip(centres).all(middle)).then_some(nodes)
    })
}

/// Edges at the midpoints between at least two points.
fn midpoint_edges(centres: &[f64]) -> Option<Vec<f64>> {
    let (&[first, second, ..], &[.., before, last]) = (centres, centres) else { return None };
    let mut edges = vec![first - (second - first) / 2.0];
    edges.extend(centres.windows(2).map(|w| f64::midpoint(w[0], w[1])));
    edges.push(last + (last - before) / 2.0);
    Some(edges)
}

/// The width of a single cell: the distance of neighbouring points, or without neighbours the absolute value
/// of the point.
fn cell_width(near: &[f64], point: f64) -> f64 {
    let width = near.windows(2).map(|w| w[1] - w[0]).fold(f64::NAN, f64::max);
    match point {
        _ if width.is_finite() && width != 0.0 => width,
        0.0 => 1.0,
        _ => point.abs(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_cells_are_grouped_and_wide_cells_are_not_divided() {
        // Ten cells of width 0.01 and one of width 0.9.
        let mut edges: Vec<f64> = (0..=10).map(|k| f64::from(k) / 100.0).collect();
        edges.push(1.0);
        for reversed in [false, true] {
            let (mut edges, mut want) = (edges.clone(), vec![0, 10, 11]);
            if reversed {
                edges.reverse();
                want = vec![0, 1, 11];
            }
            let grid = Grid {
                axis: Axis::default(),
                has_coordinates: true,
                cells: Cells::Each { centres: Vec::new(), edges },
                count: 11,
            };
            assert_eq!(grid.cuts(10), want);
            assert_eq!(grid.cuts(11).len(), 12);
            let cuts = grid.cuts(3);
            assert!(cuts.is_sorted_by(|a, b| a < b) && cuts[0] == 0 && cuts.last() == Some(&11));
        }
        let even = Grid {
            axis: Axis::default(),
            has_coordinates: false,
            cells: Cells::Uniform { first: 0.0, step: 1.0 },
            count: 9,
        };
        assert_eq!((even.cuts(3), even.edge(9), even.point(4)), (vec![0, 3, 6, 9], 8.5, 4.0));
    }
}
