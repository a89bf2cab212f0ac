//! Line plots of columns of an array.

use spile::error::{Error, Result};
use spile::layout::{ArrayDesc, Coord};
use spile::read::{Array, Axes};
use spile::reduce::envelope;
use spile::select::{Selection, Slice, Span};
use spile_plot::{Axis, Figure, Points, Series};

use super::super::cat;
use super::array_part::{self, ArrayPart};
use super::{Job, MAX_SERIES, index};

pub(super) fn draw(
    job: &Job<'_>,
    chosen: &ArrayPart<'_>,
    array: &Array,
    spans: &[Span],
    frame: Option<u64>,
) -> Result<Figure> {
    let mut figure = job.figure(&job.in_frame(String::new(), frame), 450);
    let y_range = job.args.y_range;
    figure.y = job.values(chosen, array);
    figure.y.range = y_range.or(figure.y.range);
    // A character has two dots horizontally.
    let dots = match job.canvas.pixels {
        Some(_) => job.canvas.resolution(&figure).0,
        None => 2 * job.canvas.columns,
    };
    let (mut x, mut series) = columns(array, chosen, spans, dots)?;
    if let Some(label) = apply_coordinates(job, chosen.desc, spans, &mut series) {
        x = label;
    }
    figure.x = Axis { range: figure.x.range, ..x };
    figure.series = series;
    Ok(figure)
}

/// The x axis and one line per column of the selection.
fn columns(
    array: &Array,
    chosen: &ArrayPart<'_>,
    spans: &[Span],
    buckets: usize,
) -> Result<(Axis, Vec<Series>)> {
    let x = spans.iter().position(|s| !s.dropped).ok_or_else(|| {
        Error::argument("a plot requires more than a single element").hint("`spile cat` prints it")
    })?;
    let others = || spans.iter().enumerate().filter(|(k, _)| *k != x);
    let columns: u64 = others().map(|(_, s)| s.count).fold(1, u64::saturating_mul);
    if columns > MAX_SERIES {
        return Err(Error::argument(format!(
            "too many lines: the selection has {columns} columns, the maximum is {MAX_SERIES}"
        ))
        .hint("select columns, for example ':, 0:3'"));
    }
    let (start, step) = grid(chosen.desc, x, spans[x]);
    let mut series = Vec::new();
    for column in 0..columns {
        let mut left = column;
        let mut slices = vec![Slice::ALL; spans.len()];
        let mut label = Vec::new();
        for (k, span) in others() {
            let index = index(*span, left % span.count);
            left /= span.count;
            slices[k] = Slice::Index(index as i64);
            label.push(index.to_string());
        }
        let (from, count) = (spans[x].start as i64, spans[x].count as i64);
        let stop = from + count * spans[x].step;
        slices[x] = Slice::Range {
            start: Some(from),
            // A negative stop counts from the end.
            stop: (stop >= 0).then_some(stop),
            step: spans[x].step,
        };
        let label = match array_part::column_name(chosen, &label) {
            Some(name) => name,
            None if columns == 1 => String::new(),
            None => format!("column {}", label.join(", ")),
        };
        series.push(line(array, &Selection(slices), buckets, start, step, label)?);
    }
    Ok((axis(chosen, x), series))
}

fn line(
    array: &Array,
    part: &Selection,
    buckets: usize,
    start: f64,
    step: f64,
    label: String,
) -> Result<Series> {
    let selected = array.select(part, Axes::Stored)?;
    let count = selected.count();
    if count <= 2 * buckets as u64 {
        let y = array.read_f64(part, Axes::Stored)?;
        let x = (0..count).map(|k| start + k as f64 * step).collect();
        return Ok(Series::line(label, x, y));
    }
    let found = envelope(&selected, buckets)?;
    let width = step * count as f64 / found.low.len() as f64;
    Ok(Series::envelope(label, start, width, found.low, found.high))
}

/// Start and step of a dimension: its uniform coordinates, or the index.
fn grid(desc: &ArrayDesc, dimension: usize, span: Span) -> (f64, f64) {
    let (start, step) = match desc.coords.get(dimension) {
        Some(Coord::Uniform { start, step })
            if start.is_finite() && step.is_finite() && *step != 0.0 =>
        {
            (*start, *step)
        }
        _ => (0.0, 1.0),
    };
    (start + span.start as f64 * step, step * span.step as f64)
}

/// Replaces the x values of lines by a coordinate array, if it is monotonic and, for envelopes, evenly
/// spaced. Returns the axis.
fn apply_coordinates(
    job: &Job<'_>,
    desc: &ArrayDesc,
    spans: &[Span],
    series: &mut [Series],
) -> Option<Axis> {
    let tree = job.file.tree();
    let x = spans.iter().position(|s| !s.dropped)?;
    let Some(Coord::Node(id)) = desc.coords.get(x) else { return None };
    let node = tree.node(*id);
    let (_, points) = cat::open_in_frame(job.file, node.array.as_ref()?, None).ok()?;
    let span = spans[x];
    let one = |k: u64| -> Option<f64> {
        let part = Selection(vec![Slice::Index(i64::try_from(index(span, k)).ok()?)]);
        points.read_f64(&part, Axes::Stored).ok()?.first().copied()
    };
    let last = span.count.checked_sub(1).filter(|last| *last > 0)?;
    let (start, end) = (one(0)?, one(last)?);
    let step = (end - start) / last as f64;
    for line in series.iter_mut() {
        match &mut line.points {
            Points::Line { x, .. } => {
                let new: Vec<f64> = (0..span.count).map(one).collect::<Option<_>>()?;
                let rising = new.is_sorted_by(|a, b| a < b) || new.is_sorted_by(|a, b| a > b);
                if new.len() != x.len() || !rising {
                    return None;
                }
                *x = new;
            }
            Points::Envelope { start: first, step: width, low, .. } => {
                let even = |k: u64| {
                    one(k).is_some_and(|v| (v - start - k as f64 * step).abs() < 1e-3 * step.abs())
                };
                if step == 0.0 || ![1, last / 3, last / 2, last - 1].into_iter().all(even) {
                    return None;
                }
                (*first, *width) = (start, step * span.count as f64 / low.len() as f64);
            }
            Points::Dots { .. } | Points::Bars { .. } => return None,
        }
    }
    Some(Axis::new(desc.dims.get(x).map_or("", String::as_str), array_part::unit(node)))
}

fn axis(chosen: &ArrayPart<'_>, dimension: usize) -> Axis {
    let desc = chosen.desc;
    let name = desc.dims.get(dimension).map_or("", String::as_str);
    let unnamed = name == format!("dim{}", dimension + 1);
    match desc.coords.get(dimension) {
        Some(Coord::Uniform { .. }) => {
            // The unit of a uniform grid is an attribute of the array.
            let unit = array_part::attribute(chosen.node, &format!("{name}_units"));
            Axis::new(if unnamed { "grid" } else { name }, unit)
        }
        _ => Axis::integer(if unnamed { "index" } else { name }),
    }
}
