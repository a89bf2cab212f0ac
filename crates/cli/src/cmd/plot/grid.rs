//! Where the points of a dimension are, and where the cells around them end.

use spile::layout::{ArrayDesc, Coord};
use spile::read::{Array, Axes};
use spile::reduce::even_cuts;
use spile::select::{Selection, Slice, Span};
use spile::tree::{Node, NodeId};
use spile_plot::Axis;

use super::super::cat;
use super::words::Chosen;
use super::{Job, index, words};

/// More coordinates than this are looked at in a few places only.
const MOST_POINTS: u64 = 1 << 22;

/// The cells along one dimension of a selection.
pub(super) struct Grid {
    /// The name and the unit.
    pub(super) axis: Axis,
    /// There are coordinates, not just numbers of elements.
    pub(super) real: bool,
    edges: Edges,
    count: u64,
}

enum Edges {
    /// Cell `k` begins at `start + k * step`.
    Even { start: f64, step: f64 },
    /// Where each begins, and where the last ends.
    Each(Vec<f64>),
}

impl Grid {
    pub(super) fn new(job: &Job<'_>, chosen: &Chosen<'_>, dimension: usize, span: Span) -> Self {
        let desc = chosen.desc;
        let found = match desc.coords.get(dimension) {
            Some(Coord::Uniform { start, step })
                if start.is_finite() && step.is_finite() && *step != 0.0 =>
            {
                Some(around(start + span.start as f64 * step, step * span.step as f64))
            }
            Some(Coord::Node(_)) => points(job, desc, dimension, span),
            _ => None,
        };
        let name = desc.dims.get(dimension).map_or("", String::as_str);
        let nameless = name == format!("dim{}", dimension + 1);
        let unit = match desc.coords.get(dimension) {
            Some(Coord::Node(id)) => words::unit(job.file.tree().node(*id)),
            // An even grid is no array that could have a unit of its own.
            _ => words::attribute(chosen.node, &format!("{name}_units")),
        };
        let real = found.is_some();
        let label = match (nameless, real) {
            (false, _) => name,
            (true, true) => "grid",
            (true, false) => "index",
        };
        let axis = if real { Axis::new(label, unit) } else { Axis::integer(label) };
        let edges = found.unwrap_or_else(|| around(span.start as f64, span.step as f64));
        Self { axis, real, edges, count: span.count }
    }

    /// Where cell `k` begins; where the last one ends for `k == count`.
    pub(super) fn edge(&self, k: u64) -> f64 {
        match &self.edges {
            Edges::Even { start, step } => start + k as f64 * step,
            Edges::Each(edges) => edges.get(k as usize).copied().unwrap_or(f64::NAN),
        }
    }

    /// The middle of cell `k`.
    pub(super) fn point(&self, k: u64) -> f64 {
        f64::midpoint(self.edge(k), self.edge(k + 1))
    }

    /// The cells joined to at most `most` that are about as wide as each other on paper.
    pub(super) fn cuts(&self, most: usize) -> Vec<u64> {
        let Edges::Each(edges) = &self.edges else { return even_cuts(self.count, most) };
        if self.count <= most as u64 {
            return (0..=self.count).collect();
        }
        let (first, last) = (self.edge(0), self.edge(self.count));
        let mut cuts: Vec<u64> = (0..=most)
            .map(|k| {
                let part = k as f64 / most as f64;
                let at = first * (1.0 - part) + last * part;
                let passed = |e: &f64| if first < last { *e < at } else { *e > at };
                // The edge next to it, on either side.
                let after = edges.partition_point(passed).min(edges.len() - 1);
                let before = after.saturating_sub(1);
                let nearer = (edges[before] - at).abs() < (edges[after] - at).abs();
                (if nearer { before } else { after }) as u64
            })
            .collect();
        // Wide cells stay whole, so some cuts fall on the same edge.
        cuts[0] = 0;
        cuts[most] = self.count;
        cuts.dedup();
        cuts
    }
}

/// Cells of one width around points.
fn around(first: f64, step: f64) -> Edges {
    Edges::Even { start: first - step / 2.0, step }
}

/// The cells around points that are an array of their own, if they are in order.
fn points(job: &Job<'_>, desc: &ArrayDesc, dimension: usize, span: Span) -> Option<Edges> {
    let Some(Coord::Node(id)) = desc.coords.get(dimension) else { return None };
    let tree = job.file.tree();
    let points = open(job, tree.node(*id))?;
    let length = tree.resolve(desc).ok()?.shape.lengths().get(dimension).copied()?;
    let given = points.shape().count()?;
    let read = |slice: Slice| points.read_f64(&Selection(vec![slice]), Axes::Stored).ok();
    if span.count == 0 {
        return None;
    }
    if span.count > MOST_POINTS {
        return evenly(span, |k| read(Slice::Index(i64::try_from(index(span, k)).ok()?))?.pop());
    }
    // One more than there are elements are the edges themselves.
    if given == length + 1 && span.step == 1 {
        let edges = read(Slice::range(span.start, span.start + span.count + 1))?;
        return ordered(&edges).then_some(Edges::Each(edges));
    }
    if given < length {
        return None;
    }
    let end = index(span, span.count - 1) as i64 + span.step.signum();
    let slice = Slice::Range {
        start: Some(span.start as i64),
        // A negative stop would count from the end.
        stop: (end >= 0).then_some(end),
        step: span.step,
    };
    let centres = read(slice)?;
    match centres[..] {
        _ if !ordered(&centres) => None,
        [one] => Some(around(one, neighbour(&points_near(&read, span, length)?, one)?)),
        _ => nodes(job, *id, length, span, &centres).or_else(|| between(&centres)),
    }
}

/// A list of points, in the frame that is drawn or the same for all.
fn open(job: &Job<'_>, node: &Node) -> Option<Array> {
    let place = node.array.as_ref()?;
    let open = |frame| cat::open(job.file, place, frame);
    let (_, points) = open(job.args.frame).or_else(|_| open(None)).ok()?;
    (points.shape().rank() == 1).then_some(points)
}

fn ordered(points: &[f64]) -> bool {
    points.iter().all(|p| p.is_finite())
        && (points.is_sorted_by(|a, b| a < b) || points.is_sorted_by(|a, b| a > b))
}

/// Cells around very many points, if the few that are looked at are evenly spaced.
fn evenly(span: Span, one: impl Fn(u64) -> Option<f64>) -> Option<Edges> {
    let last = span.count - 1;
    let (start, end) = (one(0)?, one(last)?);
    let step = (end - start) / last as f64;
    let near =
        |k: u64| one(k).is_some_and(|v| (v - start - k as f64 * step).abs() < 1e-3 * step.abs());
    [1, last / 3, last / 2, last - 1].into_iter().all(near).then(|| around(start, step))
}

/// The nodes of the mesh, where the points are the middles between them: an array beside the
/// points with one more element. Only these tell how wide each cell of an uneven mesh is.
fn nodes(job: &Job<'_>, points: NodeId, length: u64, span: Span, centres: &[f64]) -> Option<Edges> {
    let tree = job.file.tree();
    let parent = tree.node(points).parent;
    let beside = tree.arrays().filter(|(_, node, desc)| {
        node.parent == parent && desc.shape.lengths() == [length + 1] && span.step == 1
    });
    beside.filter_map(|(_, node, _)| open(job, node)).find_map(|array| {
        let part = Slice::range(span.start, span.start + span.count + 1);
        let nodes = array.read_f64(&Selection(vec![part]), Axes::Stored).ok()?;
        let middle = |(w, c): (&[f64], &f64)| {
            (f64::midpoint(w[0], w[1]) - c).abs() <= 1e-6 * (w[1] - w[0]).abs()
        };
        let fits = nodes.len() == centres.len() + 1 && ordered(&nodes);
        (fits && nodes.windows(2).zip(centres).all(middle)).then_some(Edges::Each(nodes))
    })
}

/// Cells that end in the middle between points, of which there are at least two.
fn between(centres: &[f64]) -> Option<Edges> {
    let (&[first, second, ..], &[.., before, last]) = (centres, centres) else { return None };
    let mut edges = vec![first - (second - first) / 2.0];
    edges.extend(centres.windows(2).map(|w| f64::midpoint(w[0], w[1])));
    edges.push(last + (last - before) / 2.0);
    Some(Edges::Each(edges))
}

/// The points next to a single one, which tell how wide its cell is.
fn points_near(
    read: &impl Fn(Slice) -> Option<Vec<f64>>,
    span: Span,
    length: u64,
) -> Option<Vec<f64>> {
    let from = span.start.saturating_sub(1);
    read(Slice::range(from, (span.start + 2).min(length)))
}

fn neighbour(near: &[f64], one: f64) -> Option<f64> {
    let steps = near.windows(2).map(|w| w[1] - w[0]);
    // A point all alone is as wide as it is large.
    let alone = if one == 0.0 { 1.0 } else { one.abs() };
    Some(steps.fold(f64::NAN, f64::max)).filter(|s| s.is_finite() && *s != 0.0).or(Some(alone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_cells_are_joined_and_wide_ones_stay_whole() {
        // Ten cells as narrow as a hundredth and one as wide as all the rest.
        let mut edges: Vec<f64> = (0..=10).map(|k| f64::from(k) / 100.0).collect();
        edges.push(1.0);
        for turn in [false, true] {
            let (mut edges, mut want) = (edges.clone(), vec![0, 10, 11]);
            if turn {
                edges.reverse();
                want = vec![0, 1, 11];
            }
            let grid =
                Grid { axis: Axis::default(), real: true, edges: Edges::Each(edges), count: 11 };
            assert_eq!(grid.cuts(10), want);
            assert_eq!(grid.cuts(11).len(), 12);
            let cuts = grid.cuts(3);
            assert!(cuts.is_sorted_by(|a, b| a < b) && cuts[0] == 0 && cuts.last() == Some(&11));
        }
        let even = Grid { axis: Axis::default(), real: false, edges: around(0.0, 1.0), count: 9 };
        assert_eq!((even.cuts(3), even.edge(9), even.point(4)), (vec![0, 3, 6, 9], 8.5, 4.0));
    }
}
