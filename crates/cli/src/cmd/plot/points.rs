//! Scatter plots of two arrays, and histograms of one or two.

use spile::error::{Error, Result};
use spile::read::{Array, Axes, Selected};
use spile::reduce::{Bins, Stats, histogram as count, statistics};
use spile_plot::{Axis, Figure, HeatMap, Points, Series};

use super::Job;
use super::array_part::{self, ArrayPart};

/// Maximum number of points of a scatter plot by default; more are drawn as a histogram.
const MAX_DRAWN: u64 = 10_000;

/// Maximum number of points of a scatter plot.
const MAX_POINTS: u64 = 1_000_000;

/// Minimum and maximum default number of bins along each axis.
const BINS: (f64, f64) = (24.0, 400.0);

pub(super) fn draw(job: &Job<'_>, x: &ArrayPart<'_>, y: &ArrayPart<'_>) -> Result<Figure> {
    let args = job.args;
    if args.heatmap {
        let error = Error::argument("--heatmap requires one array");
        return Err(error.hint("two arrays are drawn as points, as a line or as a histogram"));
    }
    let (frame, x_array) = job.open(x)?;
    let (_, y_array) = job.open(y)?;
    let (x_part, y_part) = (one_dimensional(x, &x_array)?, one_dimensional(y, &y_array)?);
    let elements = x_part.count();
    if elements != y_part.count() {
        let (a, b) = (&x.node.path, &y.node.path);
        let message = format!("{a} has {elements} elements, but {b} has {}", y_part.count());
        return Err(Error::argument(message).hint("both arrays need the same number of elements"));
    }
    let mut figure = job.figure(&job.in_frame(String::new(), frame), 560);
    let (x_range, y_range) = (args.x_range, args.y_range);
    figure.x = job.x_axis(value_axis(job, x, &x_array));
    figure.y = job.y_axis(value_axis(job, y, &y_array));
    let counted = args.hist || args.bins.is_some() || args.weight.is_some() || args.symmetric;
    if args.lines || args.points || (elements <= MAX_DRAWN && !counted) {
        if elements > MAX_POINTS {
            let message = format!("too many points: {elements}, the maximum is {MAX_POINTS}");
            return Err(Error::argument(message).hint("--hist draws a histogram"));
        }
        figure.y.log = args.log;
        figure.y.range = y_range.or(args.range);
        let (x_values, y_values) = (read(x, &x_array)?, read(y, &y_array)?);
        let make = if args.lines { Series::line } else { Series::dots };
        figure.series = vec![make(String::new(), x_values, y_values)];
        return Ok(with_aspect(job, figure));
    }
    let (mut nx, mut ny) = args.bins.unwrap_or_else(|| {
        let most = job.canvas.resolution(&figure);
        let fine = (2.5 * (elements as f64).cbrt()).clamp(BINS.0, BINS.1) as usize;
        (fine.min(most.0), fine.min(most.1))
    });
    let (x_stats, y_stats) = (statistics(&x_part)?, statistics(&y_part)?);
    if job.args.bins.is_none() {
        nx = integer_bins(nx, &x_stats, x_range);
        ny = integer_bins(ny, &y_stats, y_range);
    }
    let bins = [bins(&x_stats, x_range, nx)?, bins(&y_stats, y_range, ny)?];
    let mut map = HeatMap { sparse: true, diverging: args.symmetric, ..HeatMap::default() };
    map.colour = count_axis(job)?;
    let edges = |b: &Bins| (0..=b.count).map(|k| b.edge(k)).collect::<Vec<_>>();
    if let [Some(bx), Some(by)] = &bins {
        map.values = weighted(job, &[(&x_part, *bx), (&y_part, *by)])?;
        // Empty bins are not drawn.
        map.values.iter_mut().filter(|v| **v == 0.0).for_each(|v| *v = f64::NAN);
        (map.x, map.y) = (edges(bx), edges(by));
    }
    figure.map = Some(map);
    Ok(with_aspect(job, figure))
}

/// Sets an equal aspect ratio if both axes have the same unit and no size was given.
fn with_aspect(job: &Job<'_>, figure: Figure) -> Figure {
    let alike = !figure.x.unit.is_empty() && figure.x.unit == figure.y.unit && !figure.y.log;
    let free = job.canvas.pixels == Some((None, None));
    if free && alike { figure.with_equal_aspect() } else { figure }
}

/// A histogram of one array.
pub(super) fn histogram(job: &Job<'_>, chosen: &ArrayPart<'_>) -> Result<Figure> {
    let (frame, array) = job.open(chosen)?;
    if job.args.symmetric {
        let error =
            Error::argument("--symmetric applies to heat maps, not to histograms of one array");
        return Err(error.hint("add a second array for a two-dimensional histogram"));
    }
    // With weights the array must be one-dimensional.
    let part = match job.args.weight {
        Some(_) => one_dimensional(chosen, &array)?,
        None => array.select(&chosen.selection, Axes::Stored)?,
    };
    let stats = statistics(&part)?;
    let mut figure = job.figure(&job.in_frame(String::new(), frame), 450);
    let x_range = job.args.x_range;
    figure.x = job.x_axis(value_axis(job, chosen, &array));
    figure.y = job.y_axis(count_axis(job)?);
    let number = match job.args.bins {
        Some((n, _)) => n,
        None => {
            integer_bins(scott_bins(&stats).min(job.canvas.resolution(&figure).0), &stats, x_range)
        }
    };
    let bins = bins(&stats, x_range, number)?;
    let (start, step, high) = match bins {
        Some(b) => {
            let step = b.high / b.count as f64 - b.low / b.count as f64;
            (b.low, step, weighted(job, &[(&part, b)])?)
        }
        None => (0.0, 1.0, Vec::new()),
    };
    figure.series =
        vec![Series { label: String::new(), points: Points::Bars { start, step, high } }];
    Ok(figure)
}

/// The axis of the values, without `--log` and `--range`, which apply to the counts.
fn value_axis(job: &Job<'_>, chosen: &ArrayPart<'_>, array: &Array) -> Axis {
    Axis { range: None, log: false, ..job.values(chosen, array) }
}

/// The axis of counts or of summed weights.
fn count_axis(job: &Job<'_>) -> Result<Axis> {
    let axis = match &job.args.weight {
        None => Axis::integer("count"),
        Some(name) => {
            let weight = array_part::parse(job.file.tree(), name)?;
            Axis::new(format!("sum of {}", weight.label()), array_part::unit(weight.node))
        }
    };
    Ok(Axis { range: job.args.range, log: job.args.log, ..axis })
}

/// The counts of a histogram, or the sums of weights.
fn weighted(job: &Job<'_>, axes: &[(&Selected<'_>, Bins)]) -> Result<Vec<f64>> {
    let Some(name) = &job.args.weight else { return count(axes, None) };
    let weight = array_part::parse(job.file.tree(), name)?;
    let (_, array) = job.open(&weight)?;
    let part = one_dimensional(&weight, &array)?;
    let elements = axes.first().map_or(0, |(x, _)| x.count());
    if part.count() != elements {
        let (path, given) = (&weight.node.path, part.count());
        let message = format!("expected {elements} weights, {path} has {given} elements");
        return Err(Error::argument(message));
    }
    count(axes, Some(&part))
}

/// The selection, which must be one-dimensional and of real numbers.
fn one_dimensional<'a>(chosen: &ArrayPart<'_>, array: &'a Array) -> Result<Selected<'a>> {
    let part = array.select(&chosen.selection, Axes::Stored)?;
    if !array.dtype().is_real() {
        let (path, dtype) = (&chosen.node.path, array.dtype());
        let message = format!("an axis requires real numbers, {path} has {dtype} elements");
        return Err(Error::argument(message));
    }
    if part.spans().iter().filter(|s| s.count != 1).count() > 1 {
        let (path, shape) = (&chosen.node.path, array.shape());
        let message = format!("an axis requires one dimension, {path} has {shape} elements");
        let one = vec![":"].into_iter().chain(vec!["0"; array.shape().rank() - 1]);
        let hint = format!("for example '{path}[{}]'", one.collect::<Vec<_>>().join(", "));
        return Err(Error::argument(message).hint(hint));
    }
    Ok(part)
}

fn read(chosen: &ArrayPart<'_>, array: &Array) -> Result<Vec<f64>> {
    array.read_f64(&chosen.selection, Axes::Stored)
}

/// Bins over the given limits, or over all values; `None` without finite values.
fn bins(stats: &Stats, limits: Option<(f64, f64)>, number: usize) -> Result<Option<Bins>> {
    if let Some((low, high)) = limits {
        return Bins::new(low, high, number).map(Some);
    }
    if stats.finite == 0 {
        return Ok(None);
    }
    let (mut low, mut high) = (stats.min, stats.max);
    if stats.exact.is_some() && has_integer_bins(stats, number) {
        // One bin per integer, centred at the integer.
        (low, high) = (low - 0.5, high + 0.5);
    }
    if low == high {
        let half = if low == 0.0 { 0.5 } else { low.abs() * 0.05 };
        (low, high) = (low - half, high + half);
    }
    Bins::new(low, high, number).map(Some)
}

/// Whether every integer from minimum to maximum has its own bin.
fn has_integer_bins(stats: &Stats, number: usize) -> bool {
    stats.max - stats.min + 1.0 == number as f64
}

/// The number of bins, at most one per integer for integer values.
fn integer_bins(number: usize, stats: &Stats, limits: Option<(f64, f64)>) -> usize {
    let numbers = stats.max - stats.min + 1.0;
    if stats.exact.is_some() && limits.is_none() && numbers <= 2.0 * number as f64 {
        return (numbers as usize).max(1);
    }
    number
}

/// The number of bins by Scott's rule: 3.49 standard deviations over the cube root of the count.
fn scott_bins(stats: &Stats) -> usize {
    let width = 3.49 * stats.std / (stats.finite as f64).cbrt();
    let number = ((stats.max - stats.min) / width).ceil();
    if number.is_finite() { (number as usize).clamp(8, 400) } else { 8 }
}
