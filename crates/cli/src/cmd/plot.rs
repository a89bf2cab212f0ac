//! `spile plot`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use spile::dtype::{DType, Kind};
use spile::error::{Error, Result};
use spile::format::Opened;
use spile::layout::{ArrayDesc, Coord};
use spile::read::{Array, Axes};
use spile::reduce::envelope;
use spile::select::{Selection, Slice, Span};
use spile::sink::Sink;
use spile::tree::{Node, Value};
use spile_ops::json::Real;
use spile_plot::{Axis, Figure, Points, Series};

use super::{cat, overwrite};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

/// More lines than this cannot be told apart.
const MOST_SERIES: u64 = 12;

/// Pixels of a PNG for each unit of the drawing.
const PNG_SCALE: f32 = 2.0;

/// Draw the columns of an array as lines, in the terminal or into a file.
///
/// The first dimension is the x axis, with the array's grid where it has one; every other index
/// is a line of its own. Arrays of any length are drawn whole: each pixel shows the smallest and
/// the largest value that fall on it.
#[derive(Debug, Args)]
pub(crate) struct PlotArgs {
    /// The file; - is standard input
    file: PathBuf,
    /// The array; a file with only one needs no name
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    name: Option<String>,
    /// The part of it
    #[arg(value_name = "SELECTION", allow_hyphen_values = true)]
    selection: Option<String>,
    /// Write a picture, .svg or .png, instead of drawing in the terminal
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the picture if it exists
    #[arg(long)]
    overwrite: bool,
    /// Width of the picture in pixels [default: 800], or of the drawing in characters
    #[arg(long, value_name = "N")]
    width: Option<u32>,
    /// Height of the picture in pixels [default: 450], or of the drawing in lines
    #[arg(long, value_name = "N")]
    height: Option<u32>,
    /// Title [default: the file's name]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// The frame, of an array that has frames
    #[arg(long, value_name = "N")]
    frame: Option<u64>,
}

pub(crate) fn run(args: &PlotArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let place = |e: Error| e.with_path(&args.file);
    let file = context.open(&args.file)?;
    let (name, part) = (args.name.as_deref(), args.selection.as_deref());
    let (node, desc, selection) = cat::choose(file.reader.tree(), name, part).map_err(place)?;
    let (_, array) = cat::open(&file, desc, args.frame, context).map_err(place)?;
    let label = label(array.dtype(), &node.name).map_err(place)?;
    let (columns, rows) = terminal_size(args, context);
    let (width, height) = (args.width.unwrap_or(800), args.height.unwrap_or(450));
    let picture = args.output.is_some();
    let name = args.file.file_name().unwrap_or(args.file.as_os_str()).to_string_lossy();
    let mut figure = Figure {
        title: args.title.clone().unwrap_or_else(|| name.into_owned()),
        y: Axis::new(label, unit(node)),
        width: if picture { width } else { 800 },
        height: if picture { height } else { 450 },
        ..Figure::default()
    };
    // A character of the terminal is two dots wide.
    let dots =
        if picture { (figure.plot_width() as f32 * PNG_SCALE) as usize } else { 2 * columns };
    let (mut x, mut series) = draw(&array, desc, &selection, dots).map_err(place)?;
    if let Some(label) = along_points(&file, desc, &selection, &mut series, context) {
        x = label;
    }
    (figure.x, figure.series) = (x, series);
    if context.json {
        return json(args, &figure, out);
    }
    let Some(path) = &args.output else {
        writeln!(out, "{}", figure.to_terminal(columns, rows, out.colour))?;
        return Ok(Exit::Yes);
    };
    let bytes = match path.extension().and_then(|e| e.to_str()) {
        Some("svg") => figure.to_svg().into_bytes(),
        Some("png") => figure.to_png(PNG_SCALE).map_err(|e| Error::argument(e.to_string()))?,
        _ => {
            return Err(Error::argument("the picture's name ends in .svg or .png").with_path(path));
        }
    };
    let mut sink = Sink::create(path, overwrite(args.overwrite))?;
    sink.write_all(&bytes)?;
    sink.commit()?;
    Ok(Exit::Yes)
}

/// What the values are; an error where they are no numbers.
fn label(dtype: DType, name: &str) -> Result<String> {
    match dtype.kind() {
        Kind::Text | Kind::Opaque => {
            let message = format!("\"{name}\" has no numbers to draw, but {dtype}");
            Err(Error::argument(message).hint("`spile cat` prints it"))
        }
        Kind::Complex | Kind::ComplexX87 => Ok(format!("real part of {name}")),
        _ => Ok(name.to_string()),
    }
}

fn terminal_size(args: &PlotArgs, context: &Context) -> (usize, usize) {
    let columns = args.width.map_or(context.width.unwrap_or(80), |w| w as usize);
    let rows = args.height.map_or(20, |h| h as usize);
    (columns.clamp(20, 500), rows.clamp(6, 200))
}

fn unit(node: &Node) -> String {
    node.attrs
        .iter()
        .find_map(|(name, value)| match value {
            Value::Text(text) if name == "units" => Some(text.clone()),
            _ => None,
        })
        .unwrap_or_default()
}

/// The x axis and a line for every column of the selection.
fn draw(
    array: &Array,
    desc: &ArrayDesc,
    selection: &Selection,
    buckets: usize,
) -> Result<(Axis, Vec<Series>)> {
    let spans = selection.resolve(array.shape())?;
    let x = spans.iter().position(|s| !s.dropped).ok_or_else(|| {
        Error::argument("a single element cannot be drawn").hint("`spile cat` prints it")
    })?;
    let others = || spans.iter().enumerate().filter(|(k, _)| *k != x);
    let columns: u64 = others().map(|(_, s)| s.count).fold(1, u64::saturating_mul);
    if columns > MOST_SERIES {
        return Err(Error::argument(format!(
            "{columns} columns make {columns} lines, too many to see"
        ))
        .hint("select some, for example ':, 0:3'"));
    }
    let (start, step) = grid(desc, x, spans[x]);
    let mut series = Vec::new();
    for column in 0..columns {
        let mut left = column;
        let mut slices = vec![Slice::ALL; spans.len()];
        let mut label = Vec::new();
        for (k, span) in others() {
            let index = span.start.wrapping_add_signed((left % span.count) as i64 * span.step);
            left /= span.count;
            slices[k] = Slice::Index(index as i64);
            label.push((index + 1).to_string());
        }
        let (from, count) = (spans[x].start as i64, spans[x].count as i64);
        let stop = from + count * spans[x].step;
        slices[x] = Slice::Range {
            start: Some(from),
            // A negative stop would count from the end.
            stop: (stop >= 0).then_some(stop),
            step: spans[x].step,
        };
        let label =
            if columns == 1 { String::new() } else { format!("column {}", label.join(", ")) };
        series.push(line(array, &Selection(slices), buckets, start, step, label)?);
    }
    Ok((axis(desc, x), series))
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

/// The grid of a selected dimension: its coordinates if they are usable, else the index.
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

/// Moves lines from their index to the points of the x axis, where these are an array of their own,
/// in order, and evenly spaced if there are too many to draw one by one.
fn along_points(
    file: &Opened,
    desc: &ArrayDesc,
    selection: &Selection,
    series: &mut [Series],
    context: &Context,
) -> Option<Axis> {
    let tree = file.reader.tree();
    let spans = selection.resolve(&tree.resolve(desc).ok()?.shape).ok()?;
    let x = spans.iter().position(|s| !s.dropped)?;
    let Some(Coord::Node(id)) = desc.coords.get(x) else { return None };
    let node = tree.node(*id);
    let (_, points) = cat::open(file, node.array.as_ref()?, None, context).ok()?;
    let span = spans[x];
    let at = |k: u64| span.start.wrapping_add_signed(k as i64 * span.step);
    let one = |k: u64| -> Option<f64> {
        let part = Selection(vec![Slice::Index(i64::try_from(at(k)).ok()?)]);
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
        }
    }
    Some(Axis::new(desc.dims.get(x).map_or("", String::as_str), unit(node)))
}

fn axis(desc: &ArrayDesc, dimension: usize) -> Axis {
    let name = desc.dims.get(dimension).map_or("", String::as_str);
    let label = match desc.coords.get(dimension) {
        Some(Coord::Uniform { .. }) if name == format!("dim{}", dimension + 1) => "grid",
        _ if name == format!("dim{}", dimension + 1) => "index",
        _ => name,
    };
    Axis::new(label, "")
}

/// What would be drawn, as numbers.
fn json(args: &PlotArgs, figure: &Figure, out: &mut Output) -> Result<Exit> {
    #[derive(Serialize)]
    struct Line {
        label: String,
        start: Real,
        step: Real,
        low: Vec<Real>,
        high: Vec<Real>,
    }
    let reals = |values: &[f64]| values.iter().map(|v| Real(*v)).collect::<Vec<_>>();
    let series: Vec<Line> = figure
        .series
        .iter()
        .map(|s| match &s.points {
            Points::Line { x, y } => Line {
                label: s.label.clone(),
                start: Real(x.first().copied().unwrap_or(0.0)),
                step: Real(if x.len() > 1 { x[1] - x[0] } else { 1.0 }),
                low: reals(y),
                high: reals(y),
            },
            Points::Envelope { start, step, low, high } => Line {
                label: s.label.clone(),
                start: Real(*start),
                step: Real(*step),
                low: reals(low),
                high: reals(high),
            },
        })
        .collect();
    let mut document = out.document()?;
    document.field("file", &args.file.to_string_lossy())?;
    document.field("series", &series)?;
    document.end()?;
    Ok(Exit::Yes)
}
