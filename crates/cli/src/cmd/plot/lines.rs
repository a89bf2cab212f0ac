//! Line plots of columns of an array.

use spile::error::{Error, Result};
use spile::layout::ArrayDesc;
use spile::read::{Array, Axes};
use spile::recording::SEGMENT;
use spile::reduce::{envelope, even_cuts};
use spile::select::{Selection, Slice, Span};
use spile_plot::{Axis, Figure, Series};

use super::array_part::{self, ArrayPart};
use super::grid::{self, Grid};
use super::{Job, MAX_SERIES, index, slice};

/// Number of points up to which all are read for a logarithmic x axis.
const MAX_LOG_POINTS: usize = 1 << 19;

pub(super) fn draw(
    job: &Job<'_>,
    chosen: &ArrayPart<'_>,
    array: &Array,
    spans: &[Span],
    frame: Option<u64>,
) -> Result<Figure> {
    let mut figure = job.figure(&job.in_frame(String::new(), frame), 450);
    figure.y = job.y_axis(job.values(chosen, array));
    // A character has two dots horizontally.
    let dots = match job.canvas.pixels {
        Some(_) => job.canvas.resolution(&figure).0,
        None => 2 * job.canvas.columns,
    };
    let (x, series) = columns(job, array, chosen, spans, dots)?;
    (figure.x, figure.series) = (job.x_axis(x), series);
    Ok(figure)
}

/// The x axis and one line per column of the selection.
fn columns(
    job: &Job<'_>,
    array: &Array,
    chosen: &ArrayPart<'_>,
    spans: &[Span],
    buckets: usize,
) -> Result<(Axis, Vec<Series>)> {
    let x = x_dimension(chosen.desc, spans).ok_or_else(|| {
        Error::argument("a plot requires more than a single element").hint("`spile cat` prints it")
    })?;
    let mut spans = spans.to_vec();
    spans[x] = grid::window(job, chosen, x, spans[x], job.args.x_range);
    let spans = &spans[..];
    let others = || spans.iter().enumerate().filter(|(k, _)| *k != x);
    let columns: u64 = others().map(|(_, s)| s.count).fold(1, u64::saturating_mul);
    if columns > MAX_SERIES {
        return Err(Error::argument(format!(
            "too many lines: the selection has {columns} columns, the maximum is {MAX_SERIES}"
        ))
        .hint("select columns, for example ':, 0:3'"));
    }
    let grid = Grid::new(job, chosen, x, spans[x]);
    // A logarithmic axis shows the first points as far apart as the last ones.
    let buckets = if job.args.log_x { buckets.max(MAX_LOG_POINTS) } else { buckets };
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
        slices[x] = slice(spans[x]);
        let label = match array_part::column_name(chosen, &label) {
            Some(name) => name,
            None if columns == 1 => String::new(),
            None => match chosen.desc.dims.first() {
                Some(name) if name == SEGMENT => format!("segment {}", label.join(", ")),
                _ => format!("column {}", label.join(", ")),
            },
        };
        series.push(line(array, &Selection(slices), buckets, &grid, label)?);
    }
    Ok((grid.axis, series))
}

/// The dimension along x: the first, and of segments the time.
fn x_dimension(desc: &ArrayDesc, spans: &[Span]) -> Option<usize> {
    let mut kept = (0..spans.len()).filter(|k| !spans[*k].dropped);
    let of_segments = desc.dims.first().is_some_and(|name| name == SEGMENT);
    if of_segments { kept.next_back() } else { kept.next() }
}

fn line(
    array: &Array,
    part: &Selection,
    buckets: usize,
    grid: &Grid,
    label: String,
) -> Result<Series> {
    let selected = array.select(part, Axes::Stored)?;
    let count = selected.count();
    if count <= 2 * buckets as u64 {
        let y = array.read_f64(part, Axes::Stored)?;
        return Ok(Series::line(label, (0..count).map(|k| grid.point(k)).collect(), y));
    }
    let found = envelope(&selected, buckets)?;
    if let Some((start, step)) = grid.spacing() {
        let width = step * count as f64 / found.low.len() as f64;
        return Ok(Series::envelope(label, start, width, found.low, found.high));
    }
    // The points are not evenly spaced: a line between the extremes of each bucket.
    let cuts = even_cuts(count, found.low.len());
    let middles = cuts.windows(2).map(|cut| grid.point(cut[0].midpoint(cut[1])));
    let x = middles.flat_map(|x| [x, x]).collect();
    let y = found.low.iter().zip(&found.high).flat_map(|(low, high)| [*low, *high]).collect();
    Ok(Series::line(label, x, y))
}
