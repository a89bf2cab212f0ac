//! `spile taf`: operations that modify a file (comments, grids, elements, dimensions).

use std::path::PathBuf;

use clap::{Args, Subcommand};
use spile::error::{Error, Result};
use spile_taf::{File, ops};

use super::{BoundsArgs, Done, TargetArgs, open_input};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

#[derive(Debug, Args)]
pub(super) struct CommentArgs {
    /// TAF file
    file: PathBuf,
    /// Text of the comment
    #[arg(allow_hyphen_values = true)]
    text: String,
}

pub(super) fn add_comment(args: &CommentArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    ops::add_comment(&args.file, &args.text, &context.limits)?;
    Done::new(&args.file).report(context, out)
}

pub(super) fn set_comment(args: &CommentArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    ops::set_comment(&args.file, &args.text, &context.limits)?;
    Done::new(&args.file).report(context, out)
}

#[derive(Debug, Args)]
pub(super) struct AdjustArgs {
    /// TAF file
    file: PathBuf,
    /// Dimension, counted from 1
    dimension: usize,
    #[command(subcommand)]
    change: GridChange,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
enum GridChange {
    /// Add a constant to the grid
    Shift {
        #[arg(allow_hyphen_values = true)]
        value: f64,
    },
    /// Multiply the grid by a constant
    Scale {
        #[arg(allow_hyphen_values = true)]
        value: f64,
    },
    /// Set the first grid value
    Start {
        #[arg(allow_hyphen_values = true)]
        value: f64,
    },
    /// Set the grid spacing
    Step {
        #[arg(allow_hyphen_values = true)]
        value: f64,
    },
    /// Set the first and the last grid value
    Span {
        #[arg(allow_hyphen_values = true)]
        min: f64,
        #[arg(allow_hyphen_values = true)]
        max: f64,
    },
}

pub(super) fn adjust(args: &AdjustArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let change = match args.change {
        GridChange::Shift { value } => ops::Adjust::Shift(value),
        GridChange::Scale { value } => ops::Adjust::Scale(value),
        GridChange::Start { value } => ops::Adjust::Start(value),
        GridChange::Step { value } => ops::Adjust::Step(value),
        GridChange::Span { min, max } => ops::Adjust::Span(min, max),
    };
    ops::adjust(&args.file, args.dimension, change, &context.limits)?;
    Done::new(&args.file).report(context, out)
}

#[derive(Debug, Args)]
pub(super) struct AppendArgs {
    /// TAF file
    file: PathBuf,
    /// Elements to append: any file with one array; - is standard input
    input: PathBuf,
    /// Rewrite the whole file, so that a crash cannot lose comments
    #[arg(long)]
    safe: bool,
}

pub(super) fn append(args: &AppendArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let (_, array) = open_input(&args.input, context)?;
    let clipped = ops::append(&args.file, &array, args.safe, &context.limits)?;
    let shape = File::open(&args.file, &context.limits)?.header().shape();
    Done::new(&args.file).shape(&shape).clipped(clipped).report(context, out)
}

#[derive(Debug, Args)]
pub(super) struct ReplaceArgs {
    /// TAF file
    file: PathBuf,
    /// New elements: any file with one array of the same shape; - is standard input
    input: PathBuf,
}

pub(super) fn replace(args: &ReplaceArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let (_, array) = open_input(&args.input, context)?;
    let clipped = ops::replace(&args.file, &array, &context.limits)?;
    Done::new(&args.file).clipped(clipped).report(context, out)
}

#[derive(Debug, Args)]
pub(super) struct CropArgs {
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
    Done::new(args.target.written(&args.file)).shape(&shape).report(context, out)
}

#[derive(Debug, Args)]
pub(super) struct PermuteArgs {
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
    Done::new(args.target.written(&args.file)).shape(&shape).report(context, out)
}

#[derive(Debug, Args)]
pub(super) struct TransposeArgs {
    /// TAF file
    file: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn transpose(args: &TransposeArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let shape = ops::transpose(&args.file, &args.target.target(), &context.limits)?;
    Done::new(args.target.written(&args.file)).shape(&shape).report(context, out)
}
