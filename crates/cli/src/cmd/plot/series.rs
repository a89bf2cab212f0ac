//! Time series: values of an array over all frames.

use rayon::prelude::*;
use spile::error::{Error, Result};
use spile::read::{Array, Axes};
use spile_plot::{Axis, Figure, Series};

use super::array_part::{self, ArrayPart};
use super::{Job, MAX_SERIES, space_time};

/// Estimated memory per value in bytes.
const VALUE_BYTES: u64 = 64;

pub(super) fn draw(job: &Job<'_>, chosen: &ArrayPart<'_>, frames: u64) -> Result<Figure> {
    let limits = &job.context.limits;
    let open = |frame: u64| job.file.open_array_in_frame(chosen.desc, frame);
    // The first frame with the array defines the lines.
    let mut first = None;
    for frame in 0..frames {
        first = open(frame)?;
        if first.is_some() {
            break;
        }
    }
    let first = first.ok_or_else(|| Error::argument("no frame contains this array"))?;
    if !first.dtype().is_real() {
        let message = format!("a time series requires real numbers, found {}", first.dtype());
        return Err(Error::argument(message).hint("`spile cat` prints them"));
    }
    let selected = first.select(&chosen.selection, Axes::Stored)?;
    let count = selected.count();
    if count > 1 && (count > MAX_SERIES || job.args.heatmap) && space_time::is_suitable(job, chosen)
    {
        return space_time::draw(job, chosen, &first, frames);
    }
    if count == 0 || count > MAX_SERIES {
        let message = format!("the array has {frames} frames of {count} elements; specify a frame");
        let hint = "for example --frame 0; up to 12 selected elements are plotted over all frames";
        return Err(Error::argument(message).hint(hint));
    }
    limits.allow(frames.saturating_mul(count * VALUE_BYTES), "the values of all frames")?;
    let names = names(&first, chosen)?;

    let rows: Vec<Vec<f64>> = (0..frames)
        .into_par_iter()
        .map(|frame| {
            let values = match open(frame)? {
                Some(array) => array.read_f64(&chosen.selection, Axes::Stored)?,
                None => Vec::new(),
            };
            Ok(values)
        })
        .collect::<Result<_>>()?;
    let (x, axis) = axis(job, frames)?;
    let line = |k: usize| rows.iter().map(|row| row.get(k).copied().unwrap_or(f64::NAN)).collect();
    let mut figure = job.figure("", 450);
    (figure.x, figure.y) = (job.x_axis(axis), job.y_axis(job.values(chosen, &first)));
    figure.series = names
        .into_iter()
        .enumerate()
        .map(|(k, name)| Series::line(name, x.clone(), line(k)))
        .collect();
    Ok(figure)
}

/// The labels of the lines: name and index.
fn names(array: &Array, chosen: &ArrayPart<'_>) -> Result<Vec<String>> {
    let spans = chosen.selection.resolve(array.shape())?;
    let total: u64 = spans.iter().map(|s| s.count).product();
    if total == 1 {
        return Ok(vec![String::new()]);
    }
    // Storage order: the fastest dimension first.
    let mut order: Vec<usize> = (0..spans.len()).collect();
    if array.order() == spile::shape::Order::C {
        order.reverse();
    }
    let name = |mut number: u64| {
        let mut at = vec![String::new(); spans.len()];
        for k in &order {
            at[*k] = super::index(spans[*k], number % spans[*k].count).to_string();
            number /= spans[*k].count;
        }
        format!("{}[{}]", chosen.node.name, at.join(", "))
    };
    Ok((0..total).map(name).collect())
}

/// The times of all frames, or their steps, or their numbers, with the axis.
pub(super) fn axis(job: &Job<'_>, frames: u64) -> Result<(Vec<f64>, Axis)> {
    let numbers = || (0..frames).map(|k| k as f64).collect();
    let Some(axis) = job.file.tree().frames().filter(|axis| axis.len() == frames) else {
        return Ok((numbers(), Axis::integer("frame")));
    };
    let times: Option<Vec<f64>> =
        (0..frames).into_par_iter().map(|k| axis.time(k)).collect::<Result<_>>()?;
    if let Some(times) = times {
        return Ok((times, Axis::new("time", unit_of_time(job))));
    }
    let steps: Option<Vec<u64>> =
        (0..frames).into_par_iter().map(|k| axis.step(k)).collect::<Result<_>>()?;
    Ok(match steps {
        Some(steps) => (steps.into_iter().map(|s| s as f64).collect(), Axis::integer("step")),
        None => (numbers(), Axis::integer("frame")),
    })
}

/// The unit of the array "time"; empty if there is none.
fn unit_of_time(job: &Job<'_>) -> String {
    let tree = job.file.tree();
    tree.find("time").map_or_else(|_| String::new(), |id| array_part::unit(tree.node(id)))
}
