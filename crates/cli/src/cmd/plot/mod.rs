//! `spile plot`.
//!
//! | module | content |
//! |---|---|
//! | `array_part` | arrays and selections of the arguments |
//! | `grid` | coordinates and cell edges of a dimension |
//! | `lines` | line plots |
//! | `heatmap` | heat maps |
//! | `points` | scatter plots and histograms |
//! | `series` | time series over all frames |
//! | `json` | the data of a figure as JSON |
//! | `terminal_graphics` | detection of graphics protocols |

mod array_part;
mod grid;
mod heatmap;
mod json;
mod lines;
mod points;
mod series;
mod terminal_graphics;

use std::io::IsTerminal as _;

use spile::dtype::Kind;
use spile::layout::{ArrayDesc, Layout};
use spile::read::Array;
use spile::select::{Slice, Span};
use spile::sink::Sink;
use spile_plot::{Axis, ColourMode, Figure};

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
/// specifies another. Arrays with few values per frame are plotted over all frames.
///
/// Two arrays are a scatter plot with the first along x, or a two-dimensional histogram if they have more than
/// 10000 points: 'x/electron px/electron', 'position[:,0] position[:,1]'.
///
/// Axes show the coordinates of the array, if any. Non-finite values, and with --log values <= 0, are gaps.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of the command line.
pub(crate) struct PlotArgs {
    /// File; - is standard input
    file: PathBuf,
    /// Array, or part of it as NAME[SELECTION]; optional if the file has one array, or one with several
    /// dimensions
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    name: Option<String>,
    /// Part of the array, as for `spile cat`; or second array, plotted along y
    #[arg(value_name = "SELECTION|Y", allow_hyphen_values = true)]
    second: Option<String>,
    /// Write an image (.svg or .png) instead of plotting in the terminal
    #[arg(short, long, value_name = "OUTPUT")]
    output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    overwrite: bool,
    /// Width of the image in pixels [default: 800], or of the plot in characters
    #[arg(long, value_name = "N")]
    width: Option<u32>,
    /// Height of the image in pixels [default: 450, heat maps 600], or of the plot in lines
    #[arg(long, value_name = "N")]
    height: Option<u32>,
    /// Title [default: name of the file]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Frame of an array that has frames; -1 is the last
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    frame: Option<i64>,
    /// Draw lines: one per column, or one for two arrays
    #[arg(long, group = "kind")]
    lines: bool,
    /// Draw a heat map, also of few columns
    #[arg(long, group = "kind")]
    heatmap: bool,
    /// Draw a scatter plot, also of many points
    #[arg(long, group = "kind")]
    points: bool,
    /// Draw a histogram of one or two arrays
    #[arg(long, group = "kind")]
    hist: bool,
    /// Number of bins, along x and y
    #[arg(long, value_name = "N[xM]", value_parser = parse_bins)]
    bins: Option<(usize, usize)>,
    /// Weights of the histogram
    #[arg(long, value_name = "NAME")]
    weight: Option<String>,
    /// Logarithmic colour scale, or y axis
    #[arg(long)]
    log: bool,
    /// Diverging colour scale (blue to red) centred at zero
    #[arg(long, conflicts_with = "log")]
    symmetric: bool,
    /// Limits of the colour scale, or of the y axis
    #[arg(long, value_name = "LOW:HIGH", value_parser = parse_limits, allow_hyphen_values = true)]
    range: Option<(f64, f64)>,
    /// Limits of the x axis
    #[arg(long, value_name = "LOW:HIGH", value_parser = parse_limits, allow_hyphen_values = true)]
    x_range: Option<(f64, f64)>,
    /// Limits of the y axis
    #[arg(long, value_name = "LOW:HIGH", value_parser = parse_limits, allow_hyphen_values = true)]
    y_range: Option<(f64, f64)>,
    /// Plot the second dimension along x
    #[arg(long)]
    transpose: bool,
    /// Dark background
    #[arg(long)]
    dark: bool,
    /// Use the kitty graphics protocol (kitty, WezTerm, Ghostty, Konsole) [default: detected]
    #[arg(long, conflicts_with_all = ["output", "sixel", "text"])]
    kitty: bool,
    /// Use sixel graphics [default: detected]
    #[arg(long, conflicts_with_all = ["output", "text"])]
    sixel: bool,
    /// Use characters
    #[arg(long, conflicts_with = "output")]
    text: bool,
}

impl PlotArgs {
    /// The positional arguments that may start with a hyphen.
    pub(crate) fn positionals(&self) -> [Option<&str>; 2] {
        [self.name.as_deref(), self.second.as_deref()]
    }
}

/// Parses `LOW:HIGH` with LOW < HIGH.
fn parse_limits(text: &str) -> std::result::Result<(f64, f64), String> {
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
    let kind = match &args.output {
        None if args.kitty => Target::Kitty,
        None if args.sixel => Target::Sixel,
        None => match detected_graphics(args, out.colour) {
            Some(Graphics::Kitty) => Target::Kitty,
            Some(Graphics::Sixel) => Target::Sixel,
            None => Target::Text,
        },
        Some(path) => match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => Target::Svg(path),
            Some("png") => Target::Png(path),
            _ => {
                let error =
                    Error::argument("expected an output file with the extension .svg or .png");
                return Err(error.with_path(path));
            }
        },
    };
    let file = context.open(&args.file)?;
    let job = Job { args, context, file: &file, canvas: Canvas::new(args, context, kind) };
    let figure = draw(&job).map_err(|e| e.with_path(&args.file))?;
    if context.json {
        return json::write(args, &figure, out);
    }
    let png = || figure.to_png(PNG_SCALE).map_err(|e| Error::argument(e.to_string()));
    match kind {
        Target::Text => {
            let Canvas { columns, rows, .. } = job.canvas;
            writeln!(out, "{}", figure.to_terminal(columns, rows, colour_mode(out.colour)))?;
        }
        Target::Kitty => {
            // Without --width the image is as wide as the terminal.
            let columns = args.width.is_none().then_some(job.canvas.columns);
            out.write_all(spile_plot::kitty(&png()?, columns).as_bytes())?;
        }
        Target::Sixel => {
            let sixel = figure.to_sixel(1.0).map_err(|e| Error::argument(e.to_string()))?;
            out.write_all(sixel.as_bytes())?;
        }
        Target::Svg(path) => save(path, figure.to_svg().as_bytes(), args)?,
        Target::Png(path) => save(path, &png()?, args)?,
    }
    Ok(Exit::Yes)
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
    context: &'a Context,
    file: &'a Dataset,
    canvas: Canvas,
}

impl Job<'_> {
    /// A figure without data; `default_height` is in pixels.
    fn figure(&self, what: &str, default_height: u32) -> Figure {
        // The path of a folder may be `.`.
        let path = std::path::absolute(&self.args.file).unwrap_or_default();
        let name = path.file_name().unwrap_or(self.args.file.as_os_str());
        let mut title = name.to_string_lossy().into_owned();
        if !what.is_empty() {
            title = format!("{title}: {what}");
        }
        let (width, height) = self.canvas.pixels.unwrap_or_default();
        Figure {
            title: self.args.title.clone().unwrap_or(title),
            width: width.unwrap_or(800),
            height: height.unwrap_or(default_height),
            dark: self.args.dark,
            ..Figure::default()
        }
    }

    /// An axis with the limits of --x-range.
    fn x_axis(&self, axis: Axis) -> Axis {
        Axis { range: self.args.x_range.or(axis.range), ..axis }
    }

    /// An axis with the limits of --y-range.
    fn y_axis(&self, axis: Axis) -> Axis {
        Axis { range: self.args.y_range.or(axis.range), ..axis }
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
        let name = chosen.label();
        let label = match array.dtype().kind() {
            Kind::Complex | Kind::ComplexX87 => format!("real part of {name}"),
            _ => name,
        };
        let (range, log) = (self.args.range, self.args.log);
        Axis { range, log, ..Axis::new(label, array_part::unit(chosen.node)) }
    }
}

fn draw(job: &Job<'_>) -> Result<Figure> {
    let args = job.args;
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
    if let Layout::PerFrame(table) = &job.file.tree().resolve(x.desc)?.layout
        && args.frame.is_none()
        && table.len() > 1
    {
        return series::draw(job, &x, table.len());
    }
    let (frame, array) = job.open(&x)?;
    let mut spans = x.selection.resolve(array.shape())?;
    skip_grid_column(x.desc, &array, &mut spans);
    if heatmap::is_suitable(args, x.desc, &spans) {
        heatmap::draw(job, &x, &array, spans, frame)
    } else if args.symmetric {
        let error = Error::argument("--symmetric applies to heat maps, not to line plots");
        Err(error.hint("--heatmap draws a two-dimensional array as a heat map"))
    } else {
        lines::draw(job, &x, &array, &spans, frame)
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
