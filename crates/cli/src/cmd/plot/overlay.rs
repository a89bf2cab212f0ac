//! Several channels or files: over each other in one figure, or above each other.

use spile::dtype::Kind;
use spile::layout::ArrayDesc;
use spile::semantics::Role;
use spile::tree::Node;
use spile_ops::complex;
use spile_plot::{Axis, Figure, Series};

use super::array_part::{self, ArrayPart};
use super::{Canvas, Job, PlotArgs, draw, lines};
use crate::cmd::prelude::*;

/// Maximum number of lines over each other, and of figures above each other.
const MAX_CHANNELS: usize = 28;

/// Default height of one of several figures in pixels.
const PANEL_HEIGHT: u32 = 180;

/// The figures of a command: one, or several above each other.
pub(super) fn figures(
    args: &PlotArgs,
    names: [Option<&str>; 2],
    files: &[(&Path, Dataset)],
    context: &Context,
    canvas: Canvas,
) -> Result<Vec<Figure>> {
    let jobs: Vec<Job<'_>> =
        files.iter().map(|(path, file)| Job { args, path, names, context, file, canvas }).collect();
    let channels = channels(&jobs)?;
    if let ([job], true) = (&jobs[..], channels.len() < 2) {
        let figure = draw(job).map_err(|e| e.with_path(job.path))?;
        if args.stack && figure.map.is_none() && figure.series.len() > 1 {
            return Ok(panels(args, each_series(figure)));
        }
        return Ok(vec![figure]);
    }
    if channels.len() > MAX_CHANNELS {
        let message =
            format!("too many channels: {}, the maximum is {MAX_CHANNELS}", channels.len());
        return Err(Error::argument(message).hint("name a channel, for example CH1"));
    }
    let mut all = Vec::new();
    for (job, chosen) in &channels {
        let figure = channel(job, chosen).map_err(|e| e.with_path(job.path))?;
        all.push((label(job, chosen, jobs.len()), figure));
    }
    let is_line = channels.iter().any(|(_, chosen)| chosen.node.attrs.contains("bit"));
    let alike = |figure: &Figure| {
        let first = &all[0].1;
        (&figure.x.unit, &figure.y.unit) == (&first.x.unit, &first.y.unit)
            && figure.x.label == first.x.label
            && figure.map.is_none()
    };
    // Digital lines and values of different units would hide each other.
    if args.stack || is_line || !all.iter().all(|(_, figure)| alike(figure)) {
        return Ok(panels(args, all));
    }
    Ok(vec![overlaid(&jobs, all)])
}

/// The arguments that are not files: array, and selection or second array; and the further files.
pub(super) fn split<'a>(
    args: &'a PlotArgs,
    first: &Dataset,
) -> ([Option<&'a str>; 2], Vec<&'a Path>) {
    let mut names = Vec::new();
    let mut paths = Vec::new();
    for word in args.positionals().into_iter().flatten() {
        let is_name = array_part::parse(first.tree(), word).is_ok();
        if !is_name && Path::new(word).is_file() {
            paths.push(Path::new(word));
        } else {
            names.push(word);
        }
    }
    paths.extend(args.more.iter().map(PathBuf::as_path));
    let mut names = names.into_iter();
    ([names.next(), names.next()], paths)
}

/// The arrays to draw: the named one of each file, or its only one, or else all its channels.
fn channels<'a>(jobs: &'a [Job<'a>]) -> Result<Vec<(&'a Job<'a>, ArrayPart<'a>)>> {
    let mut all = Vec::new();
    for job in jobs {
        if job.names[0].is_some() {
            if let Ok((chosen, None)) = array_part::from_args(job)
                && let Some(parts) = array_part::complex_parts(job.file.tree(), &chosen)
            {
                all.extend(parts.map(|part| (job, part)));
                continue;
            }
            // A single file with a name or two arrays is not an overlay.
            if jobs.len() > 1 {
                let (chosen, second) =
                    array_part::from_args(job).map_err(|e| e.with_path(job.path))?;
                if second.is_some() {
                    let message =
                        "two arrays of several files cannot be plotted against each other";
                    return Err(Error::argument(message));
                }
                all.push((job, chosen));
            }
            continue;
        }
        let arrays = || job.file.tree().main_arrays().map(|(_, node, desc)| (node, desc));
        let is_part = |node: &Node| node.attrs.contains(complex::PART);
        let is_trace = |desc: &ArrayDesc| desc.semantics().role == Role::Trace;
        let mut traces: Vec<(&Node, &ArrayDesc)> =
            arrays().filter(|(_, desc)| is_trace(desc) && desc.dtype.is_real()).collect();
        // Complex arrays, if there are no others.
        let is_complex =
            |(node, desc): (&Node, &ArrayDesc)| is_part(node) || desc.dtype.kind() == Kind::Complex;
        if traces.is_empty() && arrays().all(is_complex) {
            traces = arrays().filter(|(node, _)| is_part(node)).collect();
        }
        if traces.is_empty() && jobs.len() > 1 {
            let (chosen, _) = array_part::from_args(job).map_err(|e| e.with_path(job.path))?;
            all.push((job, chosen));
        }
        all.extend(traces.into_iter().map(|array| (job, array_part::all_of(array))));
    }
    Ok(all)
}

/// The figure of one channel.
fn channel(job: &Job<'_>, chosen: &ArrayPart<'_>) -> Result<Figure> {
    let (frame, array) = job.open(chosen)?;
    let mut spans = chosen.selection.resolve(array.shape())?;
    super::skip_grid_column(chosen.desc, &array, &mut spans);
    if super::heatmap::is_suitable(job.args, chosen.desc, &spans) {
        return super::heatmap::draw(job, chosen, &array, spans, frame);
    }
    lines::draw(job, chosen, &array, &spans, frame)
}

/// Name of a channel in a legend; with the name of its file if there are several.
fn label(job: &Job<'_>, chosen: &ArrayPart<'_>, files: usize) -> String {
    if files == 1 {
        return chosen.label();
    }
    let name = job.path.file_name().unwrap_or(job.path.as_os_str()).to_string_lossy();
    match job.file.tree().main_arrays().count() {
        1 => name.into_owned(),
        _ => format!("{name}: {}", chosen.label()),
    }
}

/// One figure per series, with its label.
fn each_series(mut figure: Figure) -> Vec<(String, Figure)> {
    let series = std::mem::take(&mut figure.series);
    let single = |one: Series| (one.label.clone(), Figure { series: vec![one], ..figure.clone() });
    series.into_iter().map(single).collect()
}

/// All series in one figure.
fn overlaid(jobs: &[Job<'_>], all: Vec<(String, Figure)>) -> Figure {
    let mut figures = all.into_iter();
    let Some((name, mut first)) = figures.next() else { return Figure::default() };
    let common = first.y.label.clone();
    let mut same = true;
    rename(&mut first, &name);
    for (name, mut figure) in figures {
        same &= figure.y.label == common;
        rename(&mut figure, &name);
        first.series.append(&mut figure.series);
    }
    let args = jobs[0].args;
    if args.ylabel.is_none() && !same {
        first.y.label = quantity(&first.y).into();
    }
    if args.title.is_none() && jobs.len() > 1 {
        first.title = String::new();
    }
    first
}

/// Puts the name of a channel before the labels of its lines.
fn rename(figure: &mut Figure, name: &str) {
    for series in &mut figure.series {
        series.label = match series.label.as_str() {
            "" => name.to_string(),
            label => format!("{name} {label}"),
        };
    }
}

/// The quantity of a unit.
pub(super) fn quantity(axis: &Axis) -> &'static str {
    match axis.unit.as_str() {
        "V" | "mV" | "uV" | "µV" => "voltage",
        "A" | "mA" => "current",
        "W" => "power",
        "Ω" | "Ohm" | "ohm" => "resistance",
        "dB" | "dBm" | "dBV" => "level",
        unit if unit.ends_with("/Hz") => "power spectral density",
        "V^2" | "V²" => "power spectrum",
        _ => "value",
    }
}

/// The figures above each other, with the same range along x. Only the first has a title, and only the last has a label
/// along x.
fn panels(args: &PlotArgs, all: Vec<(String, Figure)>) -> Vec<Figure> {
    let count = all.len();
    let ends = |figure: &Figure| figure.x_range();
    let ranges: Vec<(f64, f64)> = all.iter().filter_map(|(_, figure)| ends(figure)).collect();
    let same_axis =
        all.iter().all(|(_, f)| (&f.x.unit, &f.x.label) == (&all[0].1.x.unit, &all[0].1.x.label));
    let shared = ranges.iter().copied().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let height = args.height.map_or(PANEL_HEIGHT, |height| (height / count as u32).max(1));
    let mut figures = Vec::new();
    for (k, (name, mut figure)) in all.into_iter().enumerate() {
        figure.height = height;
        if args.ylabel.is_none() {
            figure.y.label = name;
        }
        if k > 0 {
            figure.title = String::new();
        } else if !figure.title.is_empty() {
            figure.height += 24;
        }
        if same_axis {
            figure.x.range = args.x_range.or(shared);
            if k + 1 < count {
                figure.x.bare = true;
            } else {
                figure.height += 20;
            }
        }
        figures.push(figure);
    }
    figures
}
