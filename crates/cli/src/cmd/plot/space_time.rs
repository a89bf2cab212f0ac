//! Heat maps of one dimension of an array over all frames: x-t diagrams.

use rayon::prelude::*;
use spile::error::{Error, Result};
use spile::layout::Coord;
use spile::read::{Array, Axes};
use spile::select::{Selection, Span};
use spile::semantics::Role;
use spile_plot::{Axis, Figure, HeatMap};

use super::array_part::{self, ArrayPart};
use super::grid::Grid;
use super::{Job, index, series, slice};

/// Estimated memory per value in bytes.
const VALUE_BYTES: u64 = 24;

/// Maximum number of columns if the coordinates differ between frames.
const MAX_COLUMNS: f64 = 4096.0;

/// Whether an array with many values per frame is drawn over space and time: a field.
pub(super) fn is_suitable(job: &Job<'_>, chosen: &ArrayPart<'_>) -> bool {
    let has_coordinates = chosen.desc.coords.iter().any(|coord| *coord != Coord::None);
    let is_field = chosen.desc.semantics().role == Role::Field || has_coordinates;
    is_field && !job.args.lines && chosen.desc.semantics().role != Role::Points
}

/// The values along the first selected dimension in all frames. Of further dimensions the middle index is used.
pub(super) fn draw(
    job: &Job<'_>,
    chosen: &ArrayPart<'_>,
    first: &Array,
    frames: u64,
) -> Result<Figure> {
    let mut spans = chosen.selection.resolve(first.shape())?;
    let kept: Vec<usize> = (0..spans.len()).filter(|k| !spans[*k].dropped).collect();
    let [along, more @ ..] = &kept[..] else {
        return Err(Error::argument("a diagram over time requires a dimension"));
    };
    for k in more {
        let span = &mut spans[*k];
        *span = Span { start: index(*span, span.count / 2), count: 1, step: 1, dropped: true };
    }
    let span = spans[*along];
    let bytes = frames.saturating_mul(span.count).saturating_mul(VALUE_BYTES);
    job.context.limits.allow(bytes, "the values of all frames")?;
    let selection = Selection(spans.iter().map(|span| slice(*span)).collect());
    let grid = Grid::new(job, chosen, *along, span);
    let rows: Vec<(Vec<f64>, Vec<f64>)> = (0..frames)
        .into_par_iter()
        .map(|frame| {
            let Some(array) = job.file.open_array_in_frame(chosen.desc, frame)? else {
                return Ok((Vec::new(), Vec::new()));
            };
            Ok((
                points(job, chosen, *along, span, frame)?,
                array.read_f64(&selection, Axes::Stored)?,
            ))
        })
        .collect::<Result<_>>()?;
    let (times, time) = series::axis(job, frames)?;
    let increasing = times.is_sorted_by(|a, b| a < b) && times.iter().all(|time| time.is_finite());
    let numbers = || ((0..frames).map(|k| k as f64).collect(), Axis::integer("frame"));
    let (times, time) = if increasing { (times, time) } else { numbers() };
    let (x, values) = columns(&rows, span.count as usize);
    let has_coordinates = rows.iter().any(|(points, _)| !points.is_empty());
    let mut figure = job.figure(&part_name(chosen, &spans, !more.is_empty()), 600);
    let axis = match chosen.desc.coords.get(*along) {
        // The coordinates of a moving window are those of a frame.
        Some(Coord::Node(id)) if has_coordinates && !grid.has_coordinates => {
            let name = chosen.desc.dims.get(*along).map_or("grid", String::as_str);
            Axis::new(name, array_part::unit(job.file.tree().node(*id)))
        }
        _ if has_coordinates => grid.axis,
        _ => Grid::index(chosen.desc, *along, span).axis,
    };
    (figure.x, figure.y) = (job.x_axis(axis), job.y_axis(time));
    figure.map = Some(HeatMap {
        x,
        y: edges(&times),
        values,
        colour: job.values(chosen, first),
        diverging: job.args.symmetric,
        sparse: false,
    });
    Ok(figure)
}

/// The coordinates of the selected part in a frame; empty if there are none.
fn points(
    job: &Job<'_>,
    chosen: &ArrayPart<'_>,
    along: usize,
    span: Span,
    frame: u64,
) -> Result<Vec<f64>> {
    match chosen.desc.coords.get(along) {
        Some(Coord::Uniform { start, step }) => {
            Ok((0..span.count).map(|k| start + index(span, k) as f64 * step).collect())
        }
        Some(Coord::Node(id)) => {
            let Some(array) = job.file.array_in_frame(*id, frame)? else { return Ok(Vec::new()) };
            if array.shape().rank() != 1 {
                return Ok(Vec::new());
            }
            array.read_f64(&Selection(vec![slice(Span { dropped: false, ..span })]), Axes::Stored)
        }
        _ => Ok(Vec::new()),
    }
}

/// Edges of common columns, and the values of all rows in them; NaN where a row has none.
fn columns(rows: &[(Vec<f64>, Vec<f64>)], count: usize) -> (Vec<f64>, Vec<f64>) {
    let is_good = |points: &[f64]| {
        points.len() == count
            && points.iter().all(|p| p.is_finite())
            && points.is_sorted_by(|a, b| a < b)
    };
    let known: Vec<&[f64]> = rows
        .iter()
        .filter(|(_, values)| !values.is_empty())
        .map(|(points, _)| &points[..])
        .collect();
    let padded = |values: &[f64]| -> Vec<f64> {
        (0..count).map(|k| values.get(k).copied().unwrap_or(f64::NAN)).collect()
    };
    let Some(first) = known.first().filter(|_| count > 1 && known.iter().all(|p| is_good(p)))
    else {
        let all = rows.iter().flat_map(|(_, values)| padded(values)).collect();
        return ((0..=count).map(|k| k as f64 - 0.5).collect(), all);
    };
    if known.iter().all(|points| points == first) {
        return (edges(first), rows.iter().flat_map(|(_, values)| padded(values)).collect());
    }
    // A moving window: the columns are those of the whole way.
    let ends = |points: &[f64]| points.first().copied().zip(points.last().copied());
    let ends: Vec<(f64, f64)> = known.iter().filter_map(|points| ends(points)).collect();
    let low = ends.iter().map(|e| e.0).fold(f64::INFINITY, f64::min);
    let high = ends.iter().map(|e| e.1).fold(f64::NEG_INFINITY, f64::max);
    let step = (first[count - 1] - first[0]) / (count - 1) as f64;
    let number = ((high - low) / step + 1.0).round().clamp(2.0, MAX_COLUMNS) as usize;
    let step = (high - low) / (number - 1) as f64;
    let mut all = Vec::with_capacity(rows.len() * number);
    for (points, values) in rows {
        let width = match points[..] {
            [a, .., b] => (b - a) / (points.len() - 1) as f64,
            _ => 0.0,
        };
        for column in 0..number {
            let at = low + column as f64 * step;
            let after = points.partition_point(|p| *p < at);
            let near = [after.checked_sub(1), Some(after)].into_iter().flatten();
            let near = near.filter_map(|k| Some((k, (points.get(k)? - at).abs())));
            let best =
                near.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, off)| *off <= 0.5001 * width);
            all.push(best.and_then(|(k, _)| values.get(k).copied()).unwrap_or(f64::NAN));
        }
    }
    let centres: Vec<f64> = (0..number).map(|k| low + k as f64 * step).collect();
    (edges(&centres), all)
}

/// Edges between increasing points, and beyond the first and the last.
fn edges(points: &[f64]) -> Vec<f64> {
    match points {
        [] => vec![0.0, 1.0],
        [one] => vec![one - 0.5, one + 0.5],
        [first, second, ..] => {
            let mut edges = vec![first - (second - first) / 2.0];
            edges.extend(points.windows(2).map(|w| f64::midpoint(w[0], w[1])));
            let n = points.len();
            edges.push(points[n - 1] + (points[n - 1] - points[n - 2]) / 2.0);
            edges
        }
    }
}

/// The name of the array with the displayed part; empty if all of it is displayed.
fn part_name(chosen: &ArrayPart<'_>, spans: &[Span], middle: bool) -> String {
    if !spans.iter().any(|span| span.dropped) {
        return String::new();
    }
    let text = |s: &Span| if s.dropped { s.start.to_string() } else { ":".into() };
    let part: Vec<String> = spans.iter().map(text).collect();
    let middle = if middle { " (the middle)" } else { "" };
    format!("{}[{}]{middle}", chosen.node.name, part.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moving_window_fills_its_part_of_each_row() {
        let rows = vec![
            (vec![0.0, 1.0, 2.0], vec![10.0, 11.0, 12.0]),
            (vec![], vec![]),
            (vec![2.0, 3.0, 4.0], vec![22.0, 23.0, 24.0]),
        ];
        let (edges, values) = columns(&rows, 3);
        assert_eq!(edges, [-0.5, 0.5, 1.5, 2.5, 3.5, 4.5]);
        let shown: Vec<Option<f64>> = values.iter().map(|v| v.is_finite().then_some(*v)).collect();
        let (a, n) = (|v: f64| Some(v), None);
        assert_eq!(shown[..5], [a(10.0), a(11.0), a(12.0), n, n]);
        assert_eq!(shown[5..10], [n; 5]);
        assert_eq!(shown[10..], [n, n, a(22.0), a(23.0), a(24.0)]);
    }

    #[test]
    fn rows_on_the_same_grid_keep_their_columns() {
        let rows = vec![
            (vec![0.0, 1.0, 4.0], vec![1.0, 2.0, 3.0]),
            (vec![0.0, 1.0, 4.0], vec![4.0, 5.0, 6.0]),
        ];
        let (edges, values) = columns(&rows, 3);
        assert_eq!(
            (edges, values),
            (vec![-0.5, 0.5, 2.5, 5.5], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
        );
        let without = vec![(vec![], vec![1.0, 2.0])];
        assert_eq!(columns(&without, 2), (vec![-0.5, 0.5, 1.5], vec![1.0, 2.0]));
    }
}
