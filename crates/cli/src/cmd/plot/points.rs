//! One array against another, and histograms of one or two.

use spile::error::{Error, Result};
use spile::read::{Array, Axes, Selected};
use spile::reduce::{Bins, Stats, histogram as count, statistics};
use spile_plot::{Axis, Figure, HeatMap, Points, Series};

use super::Job;
use super::words::{self, Chosen};

/// More points than this are counted instead of drawn.
const MOST_DRAWN: u64 = 10_000;

/// More than this are not drawn even if asked for.
const MOST_POINTS: u64 = 1_000_000;

/// Bins of a map along each axis, where nobody says how many.
const BINS: (f64, f64) = (24.0, 400.0);

pub(super) fn draw(job: &Job<'_>, x: &Chosen<'_>, y: &Chosen<'_>) -> Result<Figure> {
    let args = job.args;
    if args.heatmap {
        let error = Error::argument("two arrays make points, a line or a histogram");
        return Err(error.hint("leave --heatmap away, or name one array"));
    }
    let (frame, x_array) = job.open(x)?;
    let (_, y_array) = job.open(y)?;
    let (x_part, y_part) = (along(x, &x_array)?, along(y, &y_array)?);
    let elements = x_part.count();
    if elements != y_part.count() {
        let (a, b) = (&x.node.path, &y.node.path);
        let message = format!("{a} has {elements} elements, but {b} has {}", y_part.count());
        return Err(Error::argument(message).hint("points need as many along x as along y"));
    }
    let mut figure = job.figure(&job.in_frame(String::new(), frame), 560);
    let (x_range, y_range) = (figure.x.range, figure.y.range);
    figure.x = Axis { range: x_range, ..plain(job, x, &x_array) };
    figure.y = Axis { range: y_range, ..plain(job, y, &y_array) };
    let counted = args.hist || args.bins.is_some() || args.weight.is_some() || args.symmetric;
    if args.lines || args.points || (elements <= MOST_DRAWN && !counted) {
        if elements > MOST_POINTS {
            let message = format!("{elements} points are too many to draw one by one");
            return Err(Error::argument(message).hint("--hist counts how many fall on each spot"));
        }
        figure.y.log = args.log;
        figure.y.range = y_range.or(args.range);
        let (x_values, y_values) = (read(x, &x_array)?, read(y, &y_array)?);
        let make = if args.lines { Series::line } else { Series::dots };
        figure.series = vec![make(String::new(), x_values, y_values)];
        return Ok(in_proportion(job, figure));
    }
    let (mut nx, mut ny) = args.bins.unwrap_or_else(|| {
        let most = job.paper.spots(&figure);
        let fine = (2.5 * (elements as f64).cbrt()).clamp(BINS.0, BINS.1) as usize;
        (fine.min(most.0), fine.min(most.1))
    });
    let (x_stats, y_stats) = (statistics(&x_part)?, statistics(&y_part)?);
    if job.args.bins.is_none() {
        nx = whole_bins(nx, &x_stats, x_range);
        ny = whole_bins(ny, &y_stats, y_range);
    }
    let bins = [bins(&x_stats, x_range, nx)?, bins(&y_stats, y_range, ny)?];
    let mut map = HeatMap { sparse: true, diverging: args.symmetric, ..HeatMap::default() };
    map.colour = counting(job)?;
    let edges = |b: &Bins| (0..=b.count).map(|k| b.edge(k)).collect::<Vec<_>>();
    if let [Some(bx), Some(by)] = &bins {
        map.values = weighted(job, &[(&x_part, *bx), (&y_part, *by)])?;
        // Where there is nothing, nothing is drawn.
        map.values.iter_mut().filter(|v| **v == 0.0).for_each(|v| *v = f64::NAN);
        (map.x, map.y) = (edges(bx), edges(by));
    }
    figure.map = Some(map);
    Ok(in_proportion(job, figure))
}

/// The same, with distances that look the same both ways where both axes have the same unit.
fn in_proportion(job: &Job<'_>, figure: Figure) -> Figure {
    let alike = !figure.x.unit.is_empty() && figure.x.unit == figure.y.unit && !figure.y.log;
    let free = job.paper.picture == Some((None, None));
    if free && alike { figure.with_equal_aspect() } else { figure }
}

/// How often the values of one array occur.
pub(super) fn histogram(job: &Job<'_>, chosen: &Chosen<'_>) -> Result<Figure> {
    let (frame, array) = job.open(chosen)?;
    if job.args.symmetric {
        let error = Error::argument("--symmetric is about colours, and bars have none");
        return Err(error.hint("name a second array for a histogram of both"));
    }
    // Values alone may have any number of dimensions, but not when weights stand beside them.
    let part = match job.args.weight {
        Some(_) => along(chosen, &array)?,
        None => array.select(&chosen.selection, Axes::Stored)?,
    };
    let stats = statistics(&part)?;
    let mut figure = job.figure(&job.in_frame(String::new(), frame), 450);
    let (x_range, y_range) = (figure.x.range, figure.y.range);
    figure.x = Axis { range: x_range, ..plain(job, chosen, &array) };
    figure.y = counting(job)?;
    figure.y.range = y_range.or(job.args.range);
    let number = match job.args.bins {
        Some((n, _)) => n,
        None => whole_bins(scott(&stats).min(job.paper.spots(&figure).0), &stats, x_range),
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

/// The name, the unit and nothing else: `--log` and `--range` are about counts.
fn plain(job: &Job<'_>, chosen: &Chosen<'_>, array: &Array) -> Axis {
    Axis { range: None, log: false, ..job.values(chosen, array) }
}

/// The axis of counts or of summed weights.
fn counting(job: &Job<'_>) -> Result<Axis> {
    let axis = match &job.args.weight {
        None => Axis::integer("count"),
        Some(word) => {
            let weight = words::named(job.file.tree(), word)?;
            Axis::new(format!("sum of {}", weight.label()), words::unit(weight.node))
        }
    };
    Ok(Axis { range: job.args.range, log: job.args.log, ..axis })
}

/// Counts, or sums of the weight where there is one.
fn weighted(job: &Job<'_>, axes: &[(&Selected<'_>, Bins)]) -> Result<Vec<f64>> {
    let Some(word) = &job.args.weight else { return count(axes, None) };
    let weight = words::named(job.file.tree(), word)?;
    let (_, array) = job.open(&weight)?;
    let part = along(&weight, &array)?;
    let elements = axes.first().map_or(0, |(x, _)| x.count());
    if part.count() != elements {
        let (path, given) = (&weight.node.path, part.count());
        let message = format!("{path} has {given} elements, but {elements} need a weight");
        return Err(Error::argument(message));
    }
    count(axes, Some(&part))
}

/// The selection, if it runs along one dimension.
fn along<'a>(chosen: &Chosen<'_>, array: &'a Array) -> Result<Selected<'a>> {
    let part = array.select(&chosen.selection, Axes::Stored)?;
    if !array.dtype().is_real() {
        let (path, dtype) = (&chosen.node.path, array.dtype());
        let message = format!("{path} has {dtype} elements, which have no place on an axis");
        return Err(Error::argument(message));
    }
    if part.spans().iter().filter(|s| s.count != 1).count() > 1 {
        let (path, shape) = (&chosen.node.path, array.shape());
        let message = format!("{path} has {shape} elements; an axis needs one dimension");
        let one = vec![":"].into_iter().chain(vec!["0"; array.shape().rank() - 1]);
        let hint = format!("for example '{path}[{}]'", one.collect::<Vec<_>>().join(", "));
        return Err(Error::argument(message).hint(hint));
    }
    Ok(part)
}

fn read(chosen: &Chosen<'_>, array: &Array) -> Result<Vec<f64>> {
    array.read_f64(&chosen.selection, Axes::Stored)
}

/// Bins over the range asked for, or else over all values; nothing where there are no values.
fn bins(stats: &Stats, asked: Option<(f64, f64)>, number: usize) -> Result<Option<Bins>> {
    if let Some((low, high)) = asked {
        return Bins::new(low, high, number).map(Some);
    }
    if stats.finite == 0 {
        return Ok(None);
    }
    let (mut low, mut high) = (stats.min, stats.max);
    if stats.exact.is_some() && whole(stats, number) {
        // A bin for every whole number, with the number in its middle.
        (low, high) = (low - 0.5, high + 0.5);
    }
    if low == high {
        let half = if low == 0.0 { 0.5 } else { low.abs() * 0.05 };
        (low, high) = (low - half, high + half);
    }
    Bins::new(low, high, number).map(Some)
}

/// Whether every whole number from the least to the greatest has a bin of its own.
fn whole(stats: &Stats, number: usize) -> bool {
    stats.max - stats.min + 1.0 == number as f64
}

/// At most `number` bins, but no more than there are whole numbers: some would stay empty.
fn whole_bins(number: usize, stats: &Stats, asked: Option<(f64, f64)>) -> usize {
    let numbers = stats.max - stats.min + 1.0;
    if stats.exact.is_some() && asked.is_none() && numbers <= 2.0 * number as f64 {
        return (numbers as usize).max(1);
    }
    number
}

/// The number of bins by Scott's rule: 3.49 standard deviations over the cube root of the count.
fn scott(stats: &Stats) -> usize {
    let width = 3.49 * stats.std / (stats.finite as f64).cbrt();
    let number = ((stats.max - stats.min) / width).ceil();
    if number.is_finite() { (number as usize).clamp(8, 400) } else { 8 }
}
