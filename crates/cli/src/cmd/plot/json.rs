//! The data of a figure as JSON.

use serde::Serialize;
use spile::error::Result;
use spile::layout::Coord;
use spile_ops::json::Real;
use spile_plot::{Axis, Figure, HeatMap, Points, Series};

use super::PlotArgs;
use crate::exit::Exit;
use crate::print::Output;

pub(super) fn write(args: &PlotArgs, figure: &Figure, out: &mut Output) -> Result<Exit> {
    let mut document = out.document()?;
    document.field("file", &args.file.to_string_lossy())?;
    document.field("title", &figure.title)?;
    document.field("x", &AxisInfo::of(&figure.x))?;
    document.field("y", &AxisInfo::of(&figure.y))?;
    if let Some(map) = &figure.map {
        document.field("map", &Map::of(map))?;
    } else {
        let series: Vec<Line<'_>> = figure.series.iter().map(Line::of).collect();
        document.field("series", &series)?;
    }
    document.end()?;
    Ok(Exit::Yes)
}

fn reals(values: &[f64]) -> Vec<Real> {
    values.iter().map(|v| Real(*v)).collect()
}

#[derive(Serialize)]
struct AxisInfo<'a> {
    label: &'a str,
    unit: &'a str,
}

impl<'a> AxisInfo<'a> {
    fn of(axis: &'a Axis) -> Self {
        Self { label: &axis.label, unit: &axis.unit }
    }
}

#[derive(Serialize)]
struct Map<'a> {
    #[serde(flatten)]
    named: AxisInfo<'a>,
    x_edges: Vec<Real>,
    y_edges: Vec<Real>,
    rows: Vec<Vec<Real>>,
}

impl<'a> Map<'a> {
    fn of(map: &'a HeatMap) -> Self {
        let columns = map.x.len().saturating_sub(1).max(1);
        Self {
            named: AxisInfo::of(&map.colour),
            x_edges: reals(&map.x),
            y_edges: reals(&map.y),
            rows: map.values.chunks(columns).map(reals).collect(),
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Line<'a> {
    Uniform { label: &'a str, start: Real, step: Real, low: Vec<Real>, high: Vec<Real> },
    Points { label: &'a str, x: Vec<Real>, y: Vec<Real> },
}

impl<'a> Line<'a> {
    fn of(series: &'a Series) -> Self {
        let label = series.label.as_str();
        match &series.points {
            Points::Line { x, y } => match Coord::spacing(x) {
                Ok((start, step)) => {
                    let (start, step) = (Real(start), Real(step));
                    Self::Uniform { label, start, step, low: reals(y), high: reals(y) }
                }
                Err(_) => Self::Points { label, x: reals(x), y: reals(y) },
            },
            Points::Dots { x, y } => Self::Points { label, x: reals(x), y: reals(y) },
            Points::Envelope { start, step, low, high } => {
                let (start, step) = (Real(*start), Real(*step));
                Self::Uniform { label, start, step, low: reals(low), high: reals(high) }
            }
            Points::Bars { start, step, high } => {
                let (start, step) = (Real(*start), Real(*step));
                let low = vec![Real(0.0); high.len()];
                Self::Uniform { label, start, step, low, high: reals(high) }
            }
        }
    }
}
