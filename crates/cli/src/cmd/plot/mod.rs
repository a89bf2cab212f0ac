//! `spile plot`.
//!
//! | file | what is in it |
//! |---|---|
//! | `words` | which arrays and which parts of them are meant |
//! | `grid` | where the points of a dimension are |
//! | `lines` | columns as lines |
//! | `heat` | two dimensions as colours |
//! | `points` | one array against another, and histograms |
//! | `series` | values over all frames |
//! | `json` | what would be drawn, as numbers |
//! | `offered` | graphics that the terminal knows |

mod grid;
mod heat;
mod json;
mod lines;
mod offered;
mod points;
mod series;
mod words;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use spile::dtype::Kind;
use spile::error::{Error, Result};
use spile::Dataset;
use spile::layout::{ArrayDesc, Layout};
use spile::read::Array;
use spile::select::Span;
use spile::sink::Sink;
use spile_plot::{Axis, ColourMode, Figure};

use super::{cat, overwrite};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;
use offered::Graphics;
use words::Chosen;

/// More lines than this cannot be told apart.
const MOST_SERIES: u64 = 12;

/// Pixels of a PNG for each unit of the drawing.
const PNG_SCALE: f32 = 2.0;

/// Draw an array in the terminal or into a file.
///
/// One dimension, or a few long columns, are lines; each pixel shows the smallest and the largest
/// value that fall on it. Two dimensions are a map of colours, the first along x; each pixel shows
/// the mean of the finite values that fall on it. Of further dimensions the middle is taken, and
/// the title says so, unless SELECTION says which part is meant. An array with few values a frame
/// is drawn over all frames.
///
/// Two arrays are points, the first along x, or where there are more than 10000 a map of how many
/// fall on each spot: 'x/electron px/electron', 'position[:,0] position[:,1]'.
///
/// Axes are the array's coordinates, at their true distances, where it has some. What is neither
/// finite nor, with --log, positive is a gap.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // They are switches of the command line.
pub(crate) struct PlotArgs {
    /// The file; - is standard input
    file: PathBuf,
    /// The array, or a part of it as NAME[SELECTION]; a file with only one array, or only one of
    /// several dimensions, needs no name
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    name: Option<String>,
    /// The part of it, as for `spile cat`; or a second array, to be drawn along y
    #[arg(value_name = "SELECTION|Y", allow_hyphen_values = true)]
    second: Option<String>,
    /// Write a picture, .svg or .png, instead of drawing in the terminal
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the picture if it exists
    #[arg(long)]
    overwrite: bool,
    /// Width of the picture in pixels [default: 800], or of the drawing in characters
    #[arg(long, value_name = "N")]
    width: Option<u32>,
    /// Height of the picture in pixels [default: 450, maps 600], or of the drawing in lines
    #[arg(long, value_name = "N")]
    height: Option<u32>,
    /// Title [default: the file's name]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Frame of an array that has frames; -1 is the last
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    frame: Option<i64>,
    /// Draw columns as lines, and two arrays as one line
    #[arg(long, group = "kind")]
    lines: bool,
    /// Draw two dimensions as colours, however few columns there are
    #[arg(long, group = "kind")]
    heatmap: bool,
    /// Draw two arrays as points, however many there are
    #[arg(long, group = "kind")]
    points: bool,
    /// Draw how often the values of one or two arrays occur
    #[arg(long, group = "kind")]
    hist: bool,
    /// The number of bins, along x and y
    #[arg(long, value_name = "N[xM]", value_parser = bins)]
    bins: Option<(usize, usize)>,
    /// Sum this array in each bin instead of counting
    #[arg(long, value_name = "NAME")]
    weight: Option<String>,
    /// Logarithmic colours; where there are none, logarithmic values
    #[arg(long)]
    log: bool,
    /// Colours from blue to red that part at zero
    #[arg(long, conflicts_with = "log")]
    symmetric: bool,
    /// The values at the ends of the colours; where there are none, of the y axis
    #[arg(long, value_name = "LOW:HIGH", value_parser = ends, allow_hyphen_values = true)]
    range: Option<(f64, f64)>,
    /// The ends of the x axis
    #[arg(long, value_name = "LOW:HIGH", value_parser = ends, allow_hyphen_values = true)]
    x_range: Option<(f64, f64)>,
    /// The ends of the y axis
    #[arg(long, value_name = "LOW:HIGH", value_parser = ends, allow_hyphen_values = true)]
    y_range: Option<(f64, f64)>,
    /// The second dimension along x
    #[arg(long)]
    transpose: bool,
    /// Light on dark
    #[arg(long)]
    dark: bool,
    /// Draw in the terminal with the graphics of kitty, WezTerm, Ghostty and Konsole [default: where the
    /// environment says that it is one of these]
    #[arg(long, conflicts_with_all = ["output", "sixel", "text"])]
    kitty: bool,
    /// Draw in the terminal with sixel graphics [default: where the environment says that it has them]
    #[arg(long, conflicts_with_all = ["output", "text"])]
    sixel: bool,
    /// Draw in the terminal with characters
    #[arg(long, conflicts_with = "output")]
    text: bool,
}

impl PlotArgs {
    /// The positional arguments that may begin with a hyphen.
    pub(crate) fn words(&self) -> [Option<&str>; 2] {
        [self.name.as_deref(), self.second.as_deref()]
    }
}

/// `LOW:HIGH`, two different numbers.
fn ends(text: &str) -> std::result::Result<(f64, f64), String> {
    let number = |part: &str| part.trim().parse::<f64>().ok().filter(|v| v.is_finite());
    let ends = text.split_once(':').and_then(|(a, b)| Some((number(a)?, number(b)?)));
    ends.filter(|(a, b)| a < b).ok_or_else(|| "write LOW:HIGH, for example -1.5:2e3".to_string())
}

/// `N` or `NxM`.
fn bins(text: &str) -> std::result::Result<(usize, usize), String> {
    let number = |part: &str| part.trim().parse().ok().filter(|n| (1..=10_000).contains(n));
    let both = match text.split_once('x') {
        Some((x, y)) => number(x).zip(number(y)),
        None => number(text).map(|n| (n, n)),
    };
    both.ok_or_else(|| "write N or NxM, each from 1 to 10000, for example 200x100".to_string())
}

pub(crate) fn run(args: &PlotArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let kind = match &args.output {
        None if args.kitty => Target::Kitty,
        None if args.sixel => Target::Sixel,
        None => match offered(args, out.colour) {
            Some(Graphics::Kitty) => Target::Kitty,
            Some(Graphics::Sixel) => Target::Sixel,
            None => Target::Text,
        },
        Some(path) => match path.extension().and_then(|e| e.to_str()) {
            Some("svg") => Target::Svg(path),
            Some("png") => Target::Png(path),
            _ => {
                let error = Error::argument("the picture's name ends in .svg or .png");
                return Err(error.with_path(path));
            }
        },
    };
    let file = context.open(&args.file)?;
    let job = Job { args, context, file: &file, paper: Paper::new(args, context, kind) };
    let figure = draw(&job).map_err(|e| e.with_path(&args.file))?;
    if context.json {
        return json::write(args, &figure, out);
    }
    let png = || figure.to_png(PNG_SCALE).map_err(|e| Error::argument(e.to_string()));
    match kind {
        Target::Text => {
            let Paper { columns, rows, .. } = job.paper;
            writeln!(out, "{}", figure.to_terminal(columns, rows, screen(out.colour)))?;
        }
        Target::Kitty => {
            // Without a width in pixels the picture is as wide as the terminal.
            let columns = args.width.is_none().then_some(job.paper.columns);
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

/// The graphics of the terminal, if that is where the picture goes; who wants no colours, or a size in
/// characters, wants characters.
fn offered(args: &PlotArgs, colour: bool) -> Option<Graphics> {
    let sized = args.width.is_some() || args.height.is_some();
    let wanted = colour && !sized && !args.text && std::io::stdout().is_terminal();
    wanted.then(|| offered::graphics(|name| std::env::var(name).ok())).flatten()
}

fn save(path: &Path, bytes: &[u8], args: &PlotArgs) -> Result<()> {
    let mut sink = Sink::create(path, overwrite(args.overwrite))?;
    sink.write_all(bytes)?;
    sink.commit()
}

/// Where the picture goes.
#[derive(Clone, Copy)]
enum Target<'a> {
    Text,
    Kitty,
    Sixel,
    Svg(&'a Path),
    Png(&'a Path),
}

/// How much room there is.
#[derive(Clone, Copy)]
struct Paper {
    /// Characters, of a drawing as text.
    columns: usize,
    rows: usize,
    /// Pixels, of a picture.
    picture: Option<(Option<u32>, Option<u32>)>,
}

impl Paper {
    fn new(args: &PlotArgs, context: &Context, target: Target<'_>) -> Self {
        let columns = args.width.map_or(context.width.unwrap_or(80), |w| w as usize);
        let rows = args.height.map_or(20, |h| h as usize);
        let picture = !matches!(target, Target::Text);
        Self {
            columns: columns.clamp(20, 500),
            rows: rows.clamp(6, 200),
            picture: picture.then_some((args.width, args.height)),
        }
    }

    /// The spots along x and y that can be told apart inside the axes of `figure`.
    fn spots(&self, figure: &Figure) -> (usize, usize) {
        let fine = |length: u32| (f64::from(length) * f64::from(PNG_SCALE)) as usize;
        match self.picture {
            Some(_) => (fine(figure.plot_width()), fine(figure.plot_height())),
            None => (self.columns, 2 * self.rows),
        }
    }
}

/// What a picture is drawn from.
struct Job<'a> {
    args: &'a PlotArgs,
    context: &'a Context,
    file: &'a Dataset,
    paper: Paper,
}

impl Job<'_> {
    /// A figure with a title and a size but no data; `tall` is the height of a picture.
    fn figure(&self, what: &str, tall: u32) -> Figure {
        // A folder may be `.`, which is no name.
        let path = std::path::absolute(&self.args.file).unwrap_or_default();
        let name = path.file_name().unwrap_or(self.args.file.as_os_str());
        let mut title = name.to_string_lossy().into_owned();
        if !what.is_empty() {
            title = format!("{title}: {what}");
        }
        let (width, height) = self.paper.picture.unwrap_or_default();
        let axis = |range| Axis { range, ..Axis::default() };
        Figure {
            title: self.args.title.clone().unwrap_or(title),
            x: axis(self.args.x_range),
            y: axis(self.args.y_range),
            width: width.unwrap_or(800),
            height: height.unwrap_or(tall),
            dark: self.args.dark,
            ..Figure::default()
        }
    }

    /// What a picture of a frame is called: with its time, or its step, where the file tells.
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

    /// The array that was chosen, in its frame.
    fn open(&self, chosen: &Chosen<'_>) -> Result<(Option<u64>, Array)> {
        if let Layout::PerFrame(table) = &self.file.tree().resolve(chosen.desc)?.layout
            && self.args.frame.is_none()
            && table.len() > 1
        {
            let message = format!("{} has {} frames; name one", chosen.node.path, table.len());
            return Err(Error::argument(message).hint("for example --frame 0"));
        }
        let (frame, array) = cat::open(self.file, chosen.desc, self.args.frame)?;
        match array.dtype().kind() {
            Kind::Text | Kind::Opaque => {
                let (name, dtype) = (&chosen.node.name, array.dtype());
                let message = format!("\"{name}\" has no numbers to draw, but {dtype}");
                Err(Error::argument(message).hint("`spile cat` prints it"))
            }
            _ => Ok((frame, array)),
        }
    }

    /// The y axis, or the colours, for values of an array.
    fn values(&self, chosen: &Chosen<'_>, array: &Array) -> Axis {
        let name = chosen.label();
        let label = match array.dtype().kind() {
            Kind::Complex | Kind::ComplexX87 => format!("real part of {name}"),
            _ => name,
        };
        let (range, log) = (self.args.range, self.args.log);
        Axis { range, log, ..Axis::new(label, words::unit(chosen.node)) }
    }
}

fn draw(job: &Job<'_>) -> Result<Figure> {
    let args = job.args;
    let (x, y) = words::choose(job)?;
    if let Some(y) = y {
        return points::draw(job, &x, &y);
    }
    if args.hist {
        return points::histogram(job, &x);
    }
    for (given, option) in [(args.bins.is_some(), "--bins"), (args.weight.is_some(), "--weight")] {
        if given {
            let error = Error::argument(format!("{option} belongs to a histogram"));
            return Err(error.hint("add --hist, or name a second array"));
        }
    }
    if args.points {
        let error = Error::argument("points need two arrays");
        return Err(error.hint("the first is drawn along x, the second along y"));
    }
    if let Layout::PerFrame(table) = &job.file.tree().resolve(x.desc)?.layout
        && args.frame.is_none()
        && table.len() > 1
    {
        return series::draw(job, &x, table.len());
    }
    let (frame, array) = job.open(&x)?;
    let mut spans = x.selection.resolve(array.shape())?;
    leave_out_grid(x.desc, &array, &mut spans);
    if heat::suits(args, x.desc, &spans) {
        heat::draw(job, &x, &array, spans, frame)
    } else if args.symmetric {
        let error = Error::argument("--symmetric is about colours, and lines have none");
        Err(error.hint("--heatmap draws two dimensions as colours"))
    } else {
        lines::draw(job, &x, &array, &spans, frame)
    }
}

/// A first column that is the grid is not drawn over itself, unless it was asked for.
fn leave_out_grid(desc: &ArrayDesc, array: &Array, spans: &mut [Span]) {
    if let ([_, columns], [_, all]) = (spans, array.shape().lengths())
        && desc.has_grid_column()
        && (columns.start, columns.count, columns.step) == (0, *all, 1)
        && columns.count > 1
    {
        (columns.start, columns.count) = (1, columns.count - 1);
    }
}

/// The index that element `k` of a span stands for.
fn index(span: Span, k: u64) -> u64 {
    span.start.wrapping_add_signed(k as i64 * span.step)
}

/// A number in a title: four digits are enough there.
fn short(value: f64) -> String {
    let rounded = format!("{value:.3e}").parse().unwrap_or(value);
    let plain = (1e-3..1e6).contains(&value.abs()) || value == 0.0;
    if plain { format!("{rounded}") } else { format!("{rounded:e}") }
}

/// The colours that the terminal knows, by its own word.
fn screen(colour: bool) -> ColourMode {
    let known = std::env::var("COLORTERM").is_ok_and(|v| v == "truecolor" || v == "24bit");
    match (colour, known) {
        (false, _) => ColourMode::Plain,
        (true, false) => ColourMode::Ansi256,
        (true, true) => ColourMode::TrueColour,
    }
}
