//! Band structures: energies against the distance along the k-points.

use spile::error::{Error, Result};
use spile::layout::ArrayDesc;
use spile::read::{Array, Axes};
use spile::select::{Selection, Span};
use spile::shape::Order;
use spile_plot::{Figure, Series};

use super::array_part::ArrayPart;
use super::grid::Grid;
use super::{Job, slice};

/// Names of the last two dimensions of a band structure.
const DIMS: [&str; 2] = ["k", "band"];

/// Arrays beside the bands that are drawn as horizontal lines, and their names in the legend.
const LEVELS: [(&str, &str); 3] = [
    ("fermi_energy", "Fermi energy"),
    ("two_fermi_energies", "Fermi energies"),
    ("highestOccupiedLevel", "highest occupied level"),
];

/// Whether the selection is a band structure with several k-points.
pub(super) fn is_suitable(desc: &ArrayDesc, spans: &[Span]) -> bool {
    let inside = desc.dims.len().checked_sub(2).map(|at| (&desc.dims[at..], at));
    inside.is_some_and(|(dims, at)| {
        let points = spans.get(at);
        dims == DIMS && points.is_some_and(|span| !span.dropped && span.count > 1)
    })
}

pub(super) fn draw(
    job: &Job<'_>,
    chosen: &ArrayPart<'_>,
    array: &Array,
    spans: &[Span],
) -> Result<Figure> {
    let k = spans.len() - 2;
    let selection = Selection(spans.iter().map(|span| slice(*span)).collect());
    let values = array.read_f64(&selection, Axes::Order(Order::C))?;
    let count = |span: &Span| usize::try_from(span.count).unwrap_or(usize::MAX);
    let (points, bands) = (count(&spans[k]), count(&spans[k + 1]));
    let grid = Grid::new(job, chosen, k, spans[k]);
    let x: Vec<f64> = (0..spans[k].count).map(|k| grid.point(k)).collect();
    let mut figure = job.figure("", 600);
    let mut y_axis = job.values(chosen, array);
    if y_axis.unit == "eV" {
        y_axis.label = "energy".into();
    }
    let mut axis = grid.axis;
    if grid.has_coordinates {
        axis.label = "distance along the k-points".into();
    }
    // The bands of a spin are one line with gaps.
    let each = points.saturating_mul(bands).max(1);
    let several = values.len() > each;
    for (spin, block) in values.chunks(each).enumerate() {
        let (mut xs, mut ys) = (Vec::new(), Vec::new());
        for band in 0..bands {
            xs.extend(x.iter().copied().chain([f64::NAN]));
            ys.extend(block.iter().skip(band).step_by(bands).copied().chain([f64::NAN]));
        }
        let label = match (several, spin) {
            (false, _) => "bands".to_string(),
            (true, 0) => "spin up".to_string(),
            (true, 1) => "spin down".to_string(),
            (true, _) => format!("spin {spin}"),
        };
        figure.series.push(Series::line(label, xs, ys));
    }
    if let Some((label, levels)) = levels(job, chosen, &y_axis.unit)? {
        let ends = || [x.first(), x.last()].into_iter().flatten().copied().chain([f64::NAN]);
        let xs = levels.iter().flat_map(|_| ends()).collect();
        let ys = levels.iter().flat_map(|level| [*level, *level, f64::NAN]).collect();
        figure.series.push(Series::line(label, xs, ys));
    }
    (figure.x, figure.y) = (job.x_axis(axis), job.y_axis(y_axis));
    Ok(figure)
}

/// The first of [`LEVELS`] beside the bands in this unit, with its values.
fn levels(
    job: &Job<'_>,
    chosen: &ArrayPart<'_>,
    unit: &str,
) -> Result<Option<(&'static str, Vec<f64>)>> {
    for (name, label) in LEVELS {
        let Some(id) = job.file.tree().child(chosen.node.parent, name) else { continue };
        let array = job.file.array_at(id)?;
        if array.units().unwrap_or_default() != unit || unit.is_empty() {
            continue;
        }
        let values: Vec<f64> = array.read("...")?;
        if values.len() > 16 {
            return Err(Error::argument(format!("expected one or two numbers in \"{name}\"")));
        }
        return Ok(Some((label, values)));
    }
    Ok(None)
}
