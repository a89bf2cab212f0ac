//! `spile taf`: operations that modify a file (comments, grids, elements, dimensions).

use clap::ValueEnum;
use spile_taf::ops;

use super::{BoundsArgs, TargetArgs, open_input, report};
use crate::cmd::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct CommentArgs {
    /// TAF file
    file: PathBuf,
    /// Text of the comment
    #[arg(allow_hyphen_values = true)]
    text: String,
}

pub(super) fn add_comment(args: &CommentArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    ops::add_comment(&args.file, &args.text, &context.limits)?;
    report(&args.file, None, None, context, out)
}

pub(super) fn set_comment(args: &CommentArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    ops::set_comment(&args.file, &args.text, &context.limits)?;
    report(&args.file, None, None, context, out)
}

#[derive(Debug, Args)]
pub(crate) struct AdjustArgs {
    /// TAF file
    file: PathBuf,
    /// Dimension, counted from 1
    dimension: usize,
    change: GridChange,
    /// New value, shift or factor; for span the first and the last grid value
    #[arg(required = true, num_args = 1..=2, allow_negative_numbers = true, value_name = "VALUE")]
    values: Vec<f64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum GridChange {
    /// Add a constant to the grid
    Shift,
    /// Multiply the grid by a constant
    Scale,
    /// Set the first grid value
    Start,
    /// Set the grid spacing
    Step,
    /// Set the first and the last grid value
    Span,
}

pub(super) fn adjust(args: &AdjustArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let change = match (args.change, &args.values[..]) {
        (GridChange::Shift, [value]) => ops::Adjust::Shift(*value),
        (GridChange::Scale, [value]) => ops::Adjust::Scale(*value),
        (GridChange::Start, [value]) => ops::Adjust::Start(*value),
        (GridChange::Step, [value]) => ops::Adjust::Step(*value),
        (GridChange::Span, [min, max]) => ops::Adjust::Span(*min, *max),
        _ => return Err(Error::argument("expected two values for span, otherwise one")),
    };
    ops::adjust(&args.file, args.dimension, change, &context.limits)?;
    report(&args.file, None, None, context, out)
}

#[derive(Debug, Args)]
pub(crate) struct AppendArgs {
    /// TAF file
    file: PathBuf,
    /// Elements to append: any file with one array; - is standard input
    input: PathBuf,
    /// Dimension to append along, counted from 1 [default: the last]; samples of an N x 1 trace: 1
    #[arg(short, long, value_name = "N")]
    dimension: Option<usize>,
    /// Copy the file whatever its size, so that other programs see no intermediate state
    #[arg(long)]
    safe: bool,
}

pub(super) fn append(args: &AppendArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let (_, array) = open_input(&args.input, context)?;
    let done = ops::append_along(&args.file, &array, args.dimension, args.safe, &context.limits)?;
    let [old, new] = &done.shapes;
    // The elements of a trace can be samples or a column.
    let is_trace = old.lengths().iter().skip(1).all(|length| *length == 1);
    if is_trace && !context.json && !context.quiet {
        let (file, dimension) = (args.file.to_string_lossy(), done.dimension);
        writeln!(out, "{file}: appended along dimension {dimension}: {old} -> {new}")?;
    }
    let shown = Some(new).filter(|_| !is_trace || context.json);
    report(&args.file, shown, Some(done.clipped), context, out)
}

#[derive(Debug, Args)]
pub(crate) struct ReplaceArgs {
    /// TAF file
    file: PathBuf,
    /// New elements: any file with one array of the same shape; - is standard input
    input: PathBuf,
}

pub(super) fn replace(args: &ReplaceArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let (_, array) = open_input(&args.input, context)?;
    let clipped = ops::replace(&args.file, &array, &context.limits)?;
    report(&args.file, None, Some(clipped), context, out)
}

#[derive(Debug, Args)]
pub(crate) struct CropArgs {
    /// TAF file
    file: PathBuf,
    /// Dimension, counted from 1
    dimension: usize,
    #[command(flatten)]
    bounds: BoundsArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn crop(args: &CropArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let bounds = args.bounds.bounds()?;
    if bounds == ops::Bounds::default() {
        return Err(Error::argument("expected bounds: --grid, --index or both"));
    }
    let target = args.target.target();
    let shape = ops::crop(&args.file, args.dimension, bounds, &target, &context.limits)?;
    report(args.target.written(&args.file), Some(&shape), None, context, out)
}

#[derive(Debug, Args)]
pub(crate) struct PermuteArgs {
    /// TAF file
    file: PathBuf,
    /// New order of the dimensions: 2,3,1
    #[arg(value_delimiter = ',', required = true)]
    order: Vec<usize>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn permute(args: &PermuteArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let shape = ops::permute(&args.file, &args.order, &args.target.target(), &context.limits)?;
    report(args.target.written(&args.file), Some(&shape), None, context, out)
}

#[derive(Debug, Args)]
pub(crate) struct TransposeArgs {
    /// TAF file
    file: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn transpose(args: &TransposeArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let shape = ops::transpose(&args.file, &args.target.target(), &context.limits)?;
    report(args.target.written(&args.file), Some(&shape), None, context, out)
}
