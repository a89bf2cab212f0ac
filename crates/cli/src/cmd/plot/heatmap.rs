//! Heat maps of two dimensions of an array.

use spile::error::{Error, Result};
use spile::layout::{ArrayDesc, Coord};
use spile::read::Array;
use spile::recording::SEGMENT;
use spile::reduce::raster;
use spile::select::{Selection, Span};
use spile_plot::{Axis, Figure, HeatMap};

use super::array_part::ArrayPart;
use super::grid::{self, Grid};
use super::{Job, MAX_SERIES, PlotArgs, index, short, slice};

/// Estimated memory per cell in bytes.
const CELL_BYTES: u64 = 128;

/// Arrays with at most this number of columns are line plots.
const MAX_LINE_COLUMNS: u64 = 4;

/// Whether the selection is drawn as a heat map by default: it has two dimensions with coordinates, or more
/// columns than a line plot supports, or a similar number of rows and columns.
pub(super) fn is_suitable(args: &PlotArgs, desc: &ArrayDesc, spans: &[Span]) -> bool {
    let kept: Vec<usize> = (0..spans.len()).filter(|k| !spans[*k].dropped).collect();
    if args.heatmap || args.lines || kept.len() < 2 {
        return args.heatmap;
    }
    if desc.dims.first().is_some_and(|name| name == SEGMENT) {
        return args.symmetric || spans[kept[0]].count > MAX_SERIES;
    }
    let columns = kept[1..].iter().map(|k| spans[*k].count).fold(1, u64::saturating_mul);
    // The coordinates 1, 2, 3, ... only number the columns.
    let numbering = Coord::Uniform { start: 1.0, step: 1.0 };
    let has_coordinates = |k: &&usize| match desc.coords.get(**k) {
        None | Some(Coord::None) => false,
        Some(coord) => *coord != numbering,
    };
    let both =
        kept.iter().take(2).filter(has_coordinates).count() == 2 && columns > MAX_LINE_COLUMNS;
    let wide = columns > MAX_LINE_COLUMNS && columns > spans[kept[0]].count / 4;
    args.symmetric || columns > MAX_SERIES || both || wide
}

pub(super) fn draw(
    job: &Job<'_>,
    chosen: &ArrayPart<'_>,
    array: &Array,
    mut spans: Vec<Span>,
    frame: Option<u64>,
) -> Result<Figure> {
    let args = job.args;
    let kept: Vec<usize> = (0..spans.len()).filter(|k| !spans[*k].dropped).collect();
    let &[first, second, ref more @ ..] = &kept[..] else {
        let error = Error::argument("a heat map requires two dimensions");
        return Err(error.hint("without --heatmap the array is drawn as a line"));
    };
    if spans.iter().any(|s| s.count == 0) {
        let error = Error::argument(format!(
            "the selection of an array of {} elements is empty",
            array.shape()
        ));
        return Err(error.hint("`spile ls -l` prints the shape"));
    }
    // The middle index of further dimensions is used.
    for k in more {
        let span = &mut spans[*k];
        *span = Span { start: index(*span, span.count / 2), count: 1, step: 1, dropped: true };
    }
    // The time of segments is along x.
    let of_segments = chosen.desc.dims.first().is_some_and(|name| name == SEGMENT);
    let swapped = args.transpose != (of_segments && first == 0);
    let (x, y) = if swapped { (second, first) } else { (first, second) };
    spans[x] = grid::window(job, chosen, x, spans[x], args.x_range);
    spans[y] = grid::window(job, chosen, y, spans[y], args.y_range);
    let selection = Selection(spans.iter().map(|s| slice(*s)).collect());
    let what = part_name(job, chosen, &spans, !more.is_empty());

    let (x_grid, y_grid) =
        (Grid::new(job, chosen, x, spans[x]), Grid::new(job, chosen, y, spans[y]));
    let mut figure = job.figure(&job.in_frame(what, frame), 600);
    figure.x = job.x_axis(labelled_axis(&x_grid, x));
    figure.y = job.y_axis(labelled_axis(&y_grid, y));
    let (columns, rows) = cell_counts(job, &figure);
    let (x_cuts, y_cuts) = (x_grid.cuts(columns), y_grid.cuts(rows));
    let values = raster(array, &selection, (x, &x_cuts), (y, &y_cuts))?;
    figure.map = Some(HeatMap {
        x: x_cuts.iter().map(|k| x_grid.edge(*k)).collect(),
        y: y_cuts.iter().map(|k| y_grid.edge(*k)).collect(),
        values,
        colour: job.values(chosen, array),
        diverging: args.symmetric,
        sparse: false,
    });
    // Equal aspect ratio if both axes have the same unit.
    let alike = x_grid.has_coordinates == y_grid.has_coordinates && figure.x.unit == figure.y.unit;
    let measured = !(x_grid.has_coordinates && figure.x.unit.is_empty());
    if job.canvas.pixels == Some((None, None)) && alike && measured {
        return Ok(figure.with_equal_aspect());
    }
    Ok(figure)
}

/// The number of cells along x and y, limited by resolution and memory.
fn cell_counts(job: &Job<'_>, figure: &Figure) -> (usize, usize) {
    let (columns, rows) = job.canvas.resolution(figure);
    let most = (job.context.limits.memory / CELL_BYTES).max(64) as f64;
    let less = (most / (columns as f64 * rows as f64)).sqrt().min(1.0);
    let fit = |n: usize| ((n as f64 * less) as usize).max(1);
    (fit(columns), fit(rows))
}

/// The axis of a dimension; axes without a name are numbered.
fn labelled_axis(grid: &Grid, dimension: usize) -> Axis {
    const ORDER: [&str; 3] = ["first", "second", "third"];
    let mut axis = grid.axis.clone();
    if axis.label == "index" {
        axis.label = match ORDER.get(dimension) {
            Some(word) => format!("{word} index"),
            None => format!("index {}", dimension + 1),
        };
    }
    axis
}

/// The name of the array with the displayed part; empty if all of it is displayed.
fn part_name(job: &Job<'_>, chosen: &ArrayPart<'_>, spans: &[Span], middle: bool) -> String {
    if !spans.iter().any(|s| s.dropped) {
        return String::new();
    }
    let text = |s: &Span| if s.dropped { s.start.to_string() } else { ":".into() };
    let part: Vec<String> = spans.iter().map(text).collect();
    let mut name = format!("{}[{}]", chosen.node.name, part.join(", "));
    for (k, span) in spans.iter().enumerate().filter(|(_, s)| s.dropped) {
        let grid = Grid::new(job, chosen, k, *span);
        if grid.has_coordinates {
            let Axis { label, unit, .. } = &grid.axis;
            let value = short(grid.point(0));
            name.push_str(format!(", {label} = {value} {unit}").trim_end());
        }
    }
    if middle {
        name.push_str(" (the middle)");
    }
    name
}
