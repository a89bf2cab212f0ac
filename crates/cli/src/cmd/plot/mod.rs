//! `spile plot`.
//!
//! | module | content |
//! |---|---|
//! | `array_part` | arrays and selections of the arguments |
//! | `grid` | coordinates and cell edges of a dimension |
//! | `bands` | band structures |
//! | `lines` | line plots |
//! | `overlay` | several channels or files in one figure, or above each other |
//! | `heatmap` | heat maps |
//! | `overview` | the arrays that show the content of a file |
//! | `points` | scatter plots and histograms |
//! | `series` | time series over all frames |
//! | `space_time` | heat maps over one dimension and all frames |
//! | `json` | the data of a figure as JSON |
//! | `terminal_graphics` | detection of graphics protocols |

mod array_part;
mod bands;
mod grid;
mod heatmap;
mod json;
mod lines;
mod overlay;
mod overview;
mod points;
mod series;
mod space_time;
mod terminal_graphics;

use std::io::IsTerminal as _;

use spile::dtype::Kind;
use spile::layout::ArrayDesc;
use spile::read::Array;
use spile::select::{Slice, Span};
use spile::semantics::Role;
use spile::sink::Sink;
use spile_ops::complex::with_parts;
use spile_plot::{Axis, ColourMode, Figure, Stack, Theme};

use super::{cat, overwrite};
use crate::cmd::prelude::*;
use array_part::ArrayPart;
use terminal_graphics::Graphics;

/// Maximum number of lines in a figure.
const MAX_SERIES: u64 = 12;

/// Pixels of a PNG per unit of the figure.
const PNG_SCALE: f32 = 2.0;

/// Plot arrays in the terminal or to an image file.
///
/// One-dimensional arrays and tables with few columns are line plots; each pixel column shows minimum and
/// maximum of its values. Two-dimensional arrays are heat maps with the first dimension along x; each pixel
/// shows the mean of its finite values. Of further dimensions the middle index is used unless SELECTION
/// specifies another. Arrays with few values per frame are plotted over all frames; fields of a run are heat maps
/// over their first dimension and time, unless --frame selects a dump. Arrays with the dimensions k and band are
/// band structures: energies against the distance along the k-points, with the Fermi energy.
///
/// Without NAME, the figure of a pseudopotential shows local potential, projectors and pseudo wavefunctions.
///
/// Complex arrays are plotted as their real and imaginary parts.
///
/// Two arrays are a scatter plot with the first along x, or a two-dimensional histogram if they have more than
/// 10000 points: 'x/electron px/electron', 'position[:,0] position[:,1]'.
///
/// The channels of an oscilloscope file, and arrays of the same name of several files ('a.trc b.trc'), are drawn over
/// each other, or with --stack above each other; so are channels with different units.
///
/// Axes show the coordinates of the array, if any. Non-finite values, and on logarithmic axes values <= 0, are gaps.
#[derive(Debug, Default, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of the command line.
pub(crate) struct PlotArgs {
    /// File; - is standard input
    pub(super) file: PathBuf,
    /// Array, or part of it as NAME[SELECTION]; optional if the file has one array, or one with several
    /// dimensions
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    pub(super) name: Option<String>,
    /// Part of the array, as for `spile cat`; or second array, plotted along y
    #[arg(value_name = "SELECTION|Y", allow_hyphen_values = true)]
    pub(super) second: Option<String>,
    /// Further files to plot; also in place of NAME and SELECTION
    #[arg(value_name = "FILE")]
    pub(super) more: Vec<PathBuf>,
    /// Write an image (.svg or .png) instead of plotting in the terminal
    #[arg(short, long, value_name = "OUTPUT")]
    pub(super) output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    pub(super) overwrite: bool,
    /// Width of the image in pixels [default: 800], or of the plot in characters
    #[arg(long, value_name = "N")]
    pub(super) width: Option<u32>,
    /// Height of the image in pixels [default: 450, heat maps 600], or of the plot in lines
    #[arg(long, value_name = "N")]
    pub(super) height: Option<u32>,
    /// Title [default: name of the file]
    #[arg(long, value_name = "TEXT")]
    pub(super) title: Option<String>,
    /// Label of the x axis [default: name and unit of the coordinate]
    #[arg(long, value_name = "TEXT")]
    pub(super) xlabel: Option<String>,
    /// Label of the y axis [default: name and unit of the array]
    #[arg(long, value_name = "TEXT")]
    pub(super) ylabel: Option<String>,
    /// Frame of an array that has frames; -1 is the last
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(super) frame: Option<i64>,
    /// Draw lines: one per column, or one for two arrays
    #[arg(long, group = "kind")]
    pub(super) lines: bool,
    /// Draw a heat map, also of few columns
    #[arg(long, group = "kind")]
    pub(super) heatmap: bool,
    /// Draw a scatter plot, also of many points
    #[arg(long, group = "kind")]
    pub(super) points: bool,
    /// Draw a histogram of one or two arrays
    #[arg(long, group = "kind")]
    pub(super) hist: bool,
    /// Number of bins, along x and y
    #[arg(long, value_name = "N[xM]", value_parser = parse_bins)]
    pub(super) bins: Option<(usize, usize)>,
    /// Weights of the histogram
    #[arg(long, value_name = "NAME")]
    pub(super) weight: Option<String>,
    /// Logarithmic colour scale, or y axis
    #[arg(long)]
    pub(super) log: bool,
    /// Logarithmic x axis
    #[arg(long)]
    pub(super) log_x: bool,
    /// Diverging colour scale (blue to red) centred at zero
    #[arg(long, conflicts_with = "log")]
    pub(super) symmetric: bool,
    /// Limits of the colour scale, or of the y axis
    #[arg(long, value_name = "LOW:HIGH", value_parser = parse_limits, allow_hyphen_values = true)]
    pub(super) range: Option<(f64, f64)>,
    /// Limits of the x axis
    #[arg(long, value_name = "LOW:HIGH", value_parser = parse_limits, allow_hyphen_values = true)]
    pub(super) x_range: Option<(f64, f64)>,
    /// Limits of the y axis
    #[arg(long, value_name = "LOW:HIGH", value_parser = parse_limits, allow_hyphen_values = true)]
    pub(super) y_range: Option<(f64, f64)>,
    /// Plot the second dimension along x
    #[arg(long)]
    pub(super) transpose: bool,
    /// Draw channels and files above each other, with the same x axis
    #[arg(long)]
    pub(super) stack: bool,
    /// Colours: light, dark, or print (black and grey on white)
    #[arg(long, value_name = "NAME", value_enum, default_value_t = ThemeName::Light, hide_possible_values = true, hide_default_value = true)]
    pub(super) theme: ThemeName,
    /// Dark background: --theme dark
    #[arg(long, conflicts_with = "theme")]
    pub(super) dark: bool,
    /// Use the kitty graphics protocol (kitty, WezTerm, Ghostty, Konsole) [default: detected]
    #[arg(long, conflicts_with_all = ["output", "sixel", "text"])]
    pub(super) kitty: bool,
    /// Use sixel graphics [default: detected]
    #[arg(long, conflicts_with_all = ["output", "text"])]
    pub(super) sixel: bool,
    /// Use characters
    #[arg(long, conflicts_with = "output")]
    pub(super) text: bool,
}

/// Colours of a figure.
#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
pub(super) enum ThemeName {
    #[default]
    Light,
    Dark,
    Print,
}

impl PlotArgs {
    /// The colours of the figure.
    fn theme(&self) -> Theme {
        match self.theme {
            ThemeName::Light if !self.dark => Theme::Light,
            ThemeName::Light | ThemeName::Dark => Theme::Dark,
            ThemeName::Print => Theme::Print,
        }
    }

    /// The positional arguments that may start with a hyphen.
    pub(crate) fn positionals(&self) -> [Option<&str>; 2] {
        [self.name.as_deref(), self.second.as_deref()]
    }
}

/// Parses `LOW:HIGH` with LOW < HIGH.
pub(super) fn parse_limits(text: &str) -> std::result::Result<(f64, f64), String> {
    let number = |part: &str| part.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    let limits = text.split_once(':').and_then(|(a, b)| Some((number(a)?, number(b)?)));
    limits
        .filter(|(a, b)| a < b)
        .ok_or_else(|| "expected LOW:HIGH, for example -1.5:2e3".to_string())
}

/// Parses `N` or `NxM`.
fn parse_bins(text: &str) -> std::result::Result<(usize, usize), String> {
    let number = |part: &str| part.trim().parse().ok().filter(|n| (1..=10_000).contains(n));
    let both = match text.split_once('x') {
        Some((x, y)) => number(x).zip(number(y)),
        None => number(text).map(|n| (n, n)),
    };
    both.ok_or_else(|| "expected N or NxM, each from 1 to 10000, for example 200x100".to_string())
}

pub(crate) fn run(args: &PlotArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let target = Target::of(args, out.colour)?;
    let first = context.open(&args.file)?;
    let (names, paths) = overlay::split(args, &first);
    let mut files = vec![(args.file.as_path(), first)];
    for path in paths {
        files.push((path, context.open(path)?));
    }
    draw_files(args, names, &files, target, context, out)
}

/// Draws the traces of a dataset that was computed from the file of `args`.
pub(super) fn show(
    args: &PlotArgs,
    content: Dataset,
    context: &Context,
    out: &mut Output,
) -> Result<Exit> {
    let target = Target::of(args, out.colour)?;
    draw_files(args, [None; 2], &[(args.file.as_path(), content)], target, context, out)
}

/// Whether a file name is that of a picture.
pub(super) fn is_picture(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "svg" || extension == "png")
}

fn draw_files(
    args: &PlotArgs,
    names: [Option<&str>; 2],
    files: &[(&Path, Dataset)],
    kind: Target<'_>,
    context: &Context,
    out: &mut Output,
) -> Result<Exit> {
    let canvas = Canvas::new(args, context, kind);
    let mut parts = Vec::new();
    for (path, file) in files {
        parts.push((*path, with_parts(file).map_err(|e| e.with_path(path))?));
    }
    let files = &parts[..];
    let figures = overlay::figures(args, names, files, context, canvas)?;
    for figure in &figures {
        let hidden = figure.not_positive();
        // The power of a spectrum is 0 at frequency 0, because the mean is removed.
        if hidden > 1 || (hidden == 1 && !are_spectra(files)) {
            let points = text::count(hidden as u64, "point");
            let message = format!("{points} with values <= 0 not on the logarithmic axis");
            context.warn(&args.file, &message);
        }
    }
    if context.json {
        return json::write(args, &figures, out);
    }
    let stack = Stack::new(figures);
    let error = |e: spile_plot::PlotError| Error::argument(e.to_string());
    match kind {
        Target::Text => {
            let Canvas { columns, rows, .. } = canvas;
            writeln!(out, "{}", stack.to_terminal(columns, rows, colour_mode(out.colour)))?;
        }
        Target::Kitty => {
            // Without --width the image is as wide as the terminal.
            let columns = args.width.is_none().then_some(canvas.columns);
            let png = stack.to_png(PNG_SCALE).map_err(error)?;
            out.write_all(spile_plot::kitty(&png, columns).as_bytes())?;
        }
        Target::Sixel => out.write_all(stack.to_sixel(1.0).map_err(error)?.as_bytes())?,
        Target::Svg(path) => save(path, stack.to_svg().as_bytes(), args)?,
        Target::Png(path) => save(path, &stack.to_png(PNG_SCALE).map_err(error)?, args)?,
    }
    Ok(Exit::Yes)
}

/// Whether the arrays are spectra.
fn are_spectra(files: &[(&Path, Dataset)]) -> bool {
    files.iter().all(|(_, file)| {
        file.arrays().all(|(_, _, desc)| desc.dims.iter().any(|d| d == "frequency"))
    })
}

/// The graphics protocol of the terminal. `None` if standard output is not a terminal, without colour, or
/// with a size in characters.
fn detected_graphics(args: &PlotArgs, colour: bool) -> Option<Graphics> {
    let sized = args.width.is_some() || args.height.is_some();
    let wanted = colour && !sized && !args.text && std::io::stdout().is_terminal();
    wanted.then(|| terminal_graphics::detect(|name| std::env::var(name).ok())).flatten()
}

fn save(path: &Path, bytes: &[u8], args: &PlotArgs) -> Result<()> {
    let mut sink = Sink::create(path, overwrite(args.overwrite))?;
    sink.write_all(bytes)?;
    sink.commit()
}

/// Destination of the figure.
#[derive(Clone, Copy)]
enum Target<'a> {
    Text,
    Kitty,
    Sixel,
    Svg(&'a Path),
    Png(&'a Path),
}

impl<'a> Target<'a> {
    fn of(args: &'a PlotArgs, colour: bool) -> Result<Self> {
        let Some(path) = &args.output else {
            let detected = || match detected_graphics(args, colour) {
                Some(Graphics::Kitty) => Self::Kitty,
                Some(Graphics::Sixel) => Self::Sixel,
                None => Self::Text,
            };
            return Ok(match (args.kitty, args.sixel) {
                (true, _) => Self::Kitty,
                (_, true) => Self::Sixel,
                _ => detected(),
            });
        };
        match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => Ok(Self::Svg(path)),
            Some("png") => Ok(Self::Png(path)),
            _ => {
                let message = "expected an output file with the extension .svg or .png";
                Err(Error::argument(message).with_path(path))
            }
        }
    }
}

/// Size of the figure.
#[derive(Clone, Copy)]
struct Canvas {
    /// Size in characters, for text.
    columns: usize,
    rows: usize,
    /// Size in pixels, for an image; `None` for text.
    pixels: Option<(Option<u32>, Option<u32>)>,
}

impl Canvas {
    fn new(args: &PlotArgs, context: &Context, target: Target<'_>) -> Self {
        let columns = args.width.map_or(context.width.unwrap_or(80), |w| w as usize);
        let rows = args.height.map_or(20, |h| h as usize);
        let is_image = !matches!(target, Target::Text);
        Self {
            columns: columns.clamp(20, 500),
            rows: rows.clamp(6, 200),
            pixels: is_image.then_some((args.width, args.height)),
        }
    }

    /// The resolution along x and y inside the axes of `figure`.
    fn resolution(&self, figure: &Figure) -> (usize, usize) {
        let fine = |length: u32| (f64::from(length) * f64::from(PNG_SCALE)) as usize;
        match self.pixels {
            Some(_) => (fine(figure.plot_width()), fine(figure.plot_height())),
            None => (self.columns, 2 * self.rows),
        }
    }
}

/// The input of a figure.
struct Job<'a> {
    args: &'a PlotArgs,
    path: &'a Path,
    /// Array, and part of it or second array.
    names: [Option<&'a str>; 2],
    context: &'a Context,
    file: &'a Dataset,
    canvas: Canvas,
}

impl Job<'_> {
    /// A figure without data; `default_height` is in pixels.
    fn figure(&self, what: &str, default_height: u32) -> Figure {
        // The path of a folder may be `.`.
        let path = std::path::absolute(self.path).unwrap_or_default();
        let name = path.file_name().unwrap_or(self.path.as_os_str());
        let mut title = name.to_string_lossy().into_owned();
        if !what.is_empty() {
            title = format!("{title}: {what}");
        }
        let (width, height) = self.canvas.pixels.unwrap_or_default();
        Figure {
            title: self.args.title.clone().unwrap_or(title),
            width: width.unwrap_or(800),
            height: height.unwrap_or(default_height),
            theme: self.args.theme(),
            ..Figure::default()
        }
    }

    /// An axis with the limits of --x-range, --log-x and --xlabel.
    fn x_axis(&self, axis: Axis) -> Axis {
        let range = self.args.x_range.or(axis.range);
        labelled(Axis { range, log: self.args.log_x, ..axis }, self.args.xlabel.as_ref())
    }

    /// An axis with the limits of --y-range and --ylabel.
    fn y_axis(&self, axis: Axis) -> Axis {
        let range = self.args.y_range.or(axis.range);
        labelled(Axis { range, ..axis }, self.args.ylabel.as_ref())
    }

    /// Adds the number of the frame, and its time or step, to a title.
    fn in_frame(&self, what: String, frame: Option<u64>) -> String {
        let Some(frame) = frame else { return what };
        let axis = self.file.tree().frames();
        let time = axis.and_then(|axis| axis.time(frame).ok().flatten());
        let step = axis.and_then(|axis| axis.step(frame).ok().flatten());
        let when = match (time, step) {
            (Some(time), _) => format!(" (time {})", short(time)),
            (None, Some(step)) => format!(" (step {step})"),
            (None, None) => String::new(),
        };
        let comma = if what.is_empty() { "" } else { ", " };
        format!("{what}{comma}frame {frame}{when}")
    }

    /// Opens an array in the frame given by --frame.
    fn open(&self, chosen: &ArrayPart<'_>) -> Result<(Option<u64>, Array)> {
        let (frame, array) =
            cat::open_in_frame(self.file, chosen.node, chosen.desc, self.args.frame)?;
        match array.dtype().kind() {
            Kind::Text | Kind::Opaque => {
                let (name, dtype) = (&chosen.node.name, array.dtype());
                let message = format!("cannot plot \"{name}\": expected numbers, found {dtype}");
                Err(Error::argument(message).hint("`spile cat` prints it"))
            }
            _ => Ok((frame, array)),
        }
    }

    /// The y axis or colour scale for the values of an array.
    fn values(&self, chosen: &ArrayPart<'_>, array: &Array) -> Axis {
        let (range, log) = (self.args.range, self.args.log);
        let integer = chosen.node.attrs.contains("bit");
        let unit = array_part::unit(chosen.node);
        let mut axis = Axis { range, log, integer, ..Axis::new(chosen.label(), unit) };
        let is_spectrum = chosen.desc.dims.iter().any(|name| name == "frequency");
        let is_trace = chosen.desc.semantics().role == Role::Trace;
        if matches!(array.dtype().kind(), Kind::Complex | Kind::ComplexX87) {
            axis.label = format!("real part of {}", axis.label);
        } else if let Some(name) = chosen.node.attrs.get_str("long_name").filter(|_| is_spectrum) {
            axis.label = name.to_string();
        } else if is_trace && axis.label == "data" {
            // The name says nothing about the quantity.
            axis.label = overlay::quantity(&axis).into();
        }
        axis
    }
}

fn draw(job: &Job<'_>) -> Result<Figure> {
    let args = job.args;
    if args.name.is_none() && !args.hist && !args.points && !args.heatmap {
        let shown = job.file.highlights();
        if !shown.is_empty() {
            return overview::draw(job, &shown);
        }
    }
    let (x, y) = array_part::from_args(job)?;
    if let Some(y) = y {
        return points::draw(job, &x, &y);
    }
    if args.hist {
        return points::histogram(job, &x);
    }
    for (given, option) in [(args.bins.is_some(), "--bins"), (args.weight.is_some(), "--weight")] {
        if given {
            let error = Error::argument(format!("{option} requires a histogram"));
            return Err(error.hint("add --hist or a second array"));
        }
    }
    if args.points {
        let error = Error::argument("--points requires two arrays");
        return Err(error.hint("the first is plotted along x, the second along y"));
    }
    if let Some(table) = job.file.tree().resolve(x.desc)?.layout.frames()
        && args.frame.is_none()
        && table.len() > 1
    {
        return series::draw(job, &x, table.len());
    }
    let (frame, array) = job.open(&x)?;
    let mut spans = x.selection.resolve(array.shape())?;
    skip_grid_column(x.desc, &array, &mut spans);
    if !args.heatmap && !args.lines && bands::is_suitable(x.desc, &spans) {
        return bands::draw(job, &x, &array, &spans);
    }
    if heatmap::is_suitable(args, x.desc, &spans) {
        heatmap::draw(job, &x, &array, spans, frame)
    } else if args.symmetric {
        let error = Error::argument("--symmetric applies to heat maps, not to line plots");
        Err(error.hint("--heatmap draws a two-dimensional array as a heat map"))
    } else {
        lines::draw(job, &x, &array, &spans, frame)
    }
}

/// An axis with a label given by the user, which may contain a unit.
fn labelled(axis: Axis, label: Option<&String>) -> Axis {
    match label {
        Some(label) => Axis { label: label.clone(), ..axis },
        None => axis,
    }
}

/// Removes a first column that contains the coordinates, unless columns were selected.
fn skip_grid_column(desc: &ArrayDesc, array: &Array, spans: &mut [Span]) {
    if let ([_, columns], [_, all]) = (spans, array.shape().lengths())
        && desc.has_grid_column()
        && (columns.start, columns.count, columns.step) == (0, *all, 1)
        && columns.count > 1
    {
        (columns.start, columns.count) = (1, columns.count - 1);
    }
}

/// The index of element `k` of a span.
fn index(span: Span, k: u64) -> u64 {
    span.start.wrapping_add_signed(k as i64 * span.step)
}

/// The slice that resolves to this span.
fn slice(span: Span) -> Slice {
    if span.dropped {
        return Slice::Index(span.start as i64);
    }
    let stop = span.start as i64 + span.count as i64 * span.step;
    // A negative stop counts from the end.
    Slice::Range {
        start: Some(span.start as i64),
        stop: (stop >= 0).then_some(stop),
        step: span.step,
    }
}

/// A number with four digits, for titles.
fn short(value: f64) -> String {
    let rounded = format!("{value:.3e}").parse().unwrap_or(value);
    let plain = (1e-3..1e6).contains(&value.abs()) || value == 0.0;
    if plain { format!("{rounded}") } else { format!("{rounded:e}") }
}

/// The colour mode of the terminal according to COLORTERM.
fn colour_mode(colour: bool) -> ColourMode {
    let known = std::env::var("COLORTERM").is_ok_and(|v| v == "truecolor" || v == "24bit");
    match (colour, known) {
        (false, _) => ColourMode::Plain,
        (true, false) => ColourMode::Ansi256,
        (true, true) => ColourMode::TrueColour,
    }
}
