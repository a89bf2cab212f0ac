//! The arrays that show the content of a file, in one figure.

use spile::error::{Error, Result};
use spile::read::{Array, Axes};
use spile::select::Selection;
use spile::shape::Order;
use spile::tree::NodeId;
use spile_plot::{Axis, Figure, Points, Series};

use super::{Job, array_part};

/// Maximum number of lines.
const MOST: usize = 24;

/// Draws lines over the last dimension of all arrays `shown`, which have the same coordinate.
pub(super) fn draw(job: &Job<'_>, shown: &[NodeId]) -> Result<Figure> {
    let mut figure = job.figure("", 600);
    let mut units: Vec<String> = Vec::new();
    for id in shown {
        let node = job.file.tree().node(*id);
        let array = job.file.array_at(*id)?;
        let Some(last) = array.shape().rank().checked_sub(1) else { continue };
        let coordinate = array.coord_at(last)?;
        let x = coordinate.read()?;
        if figure.series.is_empty() {
            let points = node.array.as_ref().and_then(|desc| desc.coords.last()?.node());
            let unit = points.map(|id| array_part::unit(job.file.tree().node(id)));
            let unit = unit.unwrap_or_default();
            figure.x = Axis::new(array.dims()[last].clone(), unit);
        }
        let unit = array_part::unit(node);
        let of_unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        let title = array.long_name().unwrap_or(&node.name);
        units.push(unit);
        let values = read(&array)?;
        let rows = values.chunks(x.len().max(1));
        let several = values.len() > x.len();
        for (k, row) in rows.enumerate() {
            // The array "projectors" has the rows "projector 1", ...
            let one = node.name.strip_suffix('s').unwrap_or(&node.name);
            let name = if several { format!("{one} {}", k + 1) } else { title.to_string() };
            let label = format!("{name}{of_unit}");
            figure.series.push(Series::line(label, x.clone(), row.to_vec()));
        }
    }
    if figure.series.len() > MOST {
        let message = format!("more than {MOST} functions; specify an array");
        return Err(Error::argument(message).hint("`spile ls` lists the arrays"));
    }
    units.dedup();
    let unit = if let [one] = &units[..] { one.clone() } else { String::new() };
    let end = figure.series.iter().filter_map(|series| significant_end(&series.points));
    let end = end.fold(f64::NEG_INFINITY, f64::max);
    let axis = std::mem::take(&mut figure.x);
    let first = figure.series.iter().find_map(|series| match &series.points {
        Points::Line { x, .. } => x.first().copied(),
        _ => None,
    });
    let range = first.filter(|first| *first < end).map(|first| (first, end));
    figure.x = job.x_axis(Axis { range, ..axis });
    let (range, log) = (job.args.range, job.args.log);
    figure.y = job.y_axis(Axis { range, log, ..Axis::new("value", unit) });
    Ok(figure)
}

/// The last point at which a line has at least this share of its largest absolute value.
const SHARE: f64 = 0.05;

/// The point after which a line is small.
fn significant_end(points: &Points) -> Option<f64> {
    let Points::Line { x, y } = points else { return None };
    let largest = y.iter().filter(|y| y.is_finite()).fold(0.0, |most: f64, y| most.max(y.abs()));
    let last = y.iter().rposition(|y| y.abs() >= SHARE * largest && largest > 0.0)?;
    x.get(last).copied()
}

/// All values, last dimension fastest.
fn read(array: &Array) -> Result<Vec<f64>> {
    array.limits().allow(array.shape().bytes(16)?, "the values of a figure")?;
    array.read_f64(&Selection::all(), Axes::Order(Order::C))
}
