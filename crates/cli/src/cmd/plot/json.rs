//! The data of a figure as JSON.

use serde_json::{Value, json};
use spile::layout::Coord;
use spile_ops::json::Real;
use spile_plot::{Axis, Figure, HeatMap, Points, Series};

use super::PlotArgs;
use crate::cmd::prelude::*;

/// Writes the figure, or several above each other as `panels`.
pub(super) fn write(args: &PlotArgs, figures: &[Figure], out: &mut Output) -> Result<Exit> {
    let file = ("file", json!(args.file.to_string_lossy()));
    if let [figure] = figures {
        let fields: Vec<_> = [file].into_iter().chain(fields(figure)).collect();
        out.object(&fields)?;
        return Ok(Exit::Yes);
    }
    let panel = |figure| Value::Object(fields(figure).map(|(k, v)| (k.to_string(), v)).collect());
    out.object(&[file, ("panels", figures.iter().map(panel).collect())])?;
    Ok(Exit::Yes)
}

/// Title, axes and data of a figure.
fn fields(figure: &Figure) -> impl Iterator<Item = (&'static str, Value)> + use<> {
    let axis = |axis: &Axis| json!({ "label": axis.label, "unit": axis.unit });
    let data = match &figure.map {
        Some(map) => ("map", heat_map(map)),
        None => ("series", figure.series.iter().map(series).collect()),
    };
    let fields =
        [("title", json!(figure.title)), ("x", axis(&figure.x)), ("y", axis(&figure.y)), data];
    fields.into_iter()
}

fn reals(values: &[f64]) -> Vec<Real> {
    values.iter().map(|v| Real(*v)).collect()
}

fn heat_map(map: &HeatMap) -> Value {
    let columns = map.x.len().saturating_sub(1).max(1);
    json!({
        "label": map.colour.label,
        "unit": map.colour.unit,
        "x_edges": reals(&map.x),
        "y_edges": reals(&map.y),
        "rows": map.values.chunks(columns).map(reals).collect::<Vec<_>>(),
    })
}

fn series(series: &Series) -> Value {
    let label = &series.label;
    let uniform = |start: f64, step: f64, low: &[f64], high: &[f64]| {
        let (start, step, low, high) = (Real(start), Real(step), reals(low), reals(high));
        json!({ "label": label, "start": start, "step": step, "low": low, "high": high })
    };
    match &series.points {
        Points::Line { x, y } if let Ok((start, step)) = Coord::spacing(x) => {
            uniform(start, step, y, y)
        }
        Points::Line { x, y } | Points::Dots { x, y } => {
            json!({ "label": label, "x": reals(x), "y": reals(y) })
        }
        Points::Envelope { start, step, low, high } => uniform(*start, *step, low, high),
        Points::Bars { start, step, high } => uniform(*start, *step, &vec![0.0; high.len()], high),
    }
}
