//! Operations that change a file: comments, grids, elements, dimensions.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use spile::error::{Error, Result};
use spile_taf::{File, ops};

use super::{BoundsArgs, Done, TargetArgs, input};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

#[derive(Debug, Args)]
pub(super) struct CommentArgs {
    /// A TAF file
    file: PathBuf,
    /// The text
    #[arg(allow_hyphen_values = true)]
    text: String,
}

pub(super) fn add_comment(args: &CommentArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    ops::add_comment(&args.file, &args.text, &context.limits)?;
    Done::new(&args.file).tell(context, out)
}

pub(super) fn set_comment(args: &CommentArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    ops::set_comment(&args.file, &args.text, &context.limits)?;
    Done::new(&args.file).tell(context, out)
}

#[derive(Debug, Args)]
pub(super) struct AdjustArgs {
    /// A TAF file
    file: PathBuf,
    /// The dimension, the first is 1
    dimension: usize,
    #[command(subcommand)]
    how: How,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
enum How {
    /// Add to the grid
    Shift {
        #[arg(allow_hyphen_values = true)]
        value: f64,
    },
    /// Multiply the grid
    Scale {
        #[arg(allow_hyphen_values = true)]
        value: f64,
    },
    /// Begin the grid here
    Start {
        #[arg(allow_hyphen_values = true)]
        value: f64,
    },
    /// Space the grid so
    Step {
        #[arg(allow_hyphen_values = true)]
        value: f64,
    },
    /// Make the grid cover a range
    Span {
        #[arg(allow_hyphen_values = true)]
        min: f64,
        #[arg(allow_hyphen_values = true)]
        max: f64,
    },
}

pub(super) fn adjust(args: &AdjustArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let how = match args.how {
        How::Shift { value } => ops::Adjust::Shift(value),
        How::Scale { value } => ops::Adjust::Scale(value),
        How::Start { value } => ops::Adjust::Start(value),
        How::Step { value } => ops::Adjust::Step(value),
        How::Span { min, max } => ops::Adjust::Span(min, max),
    };
    ops::adjust(&args.file, args.dimension, how, &context.limits)?;
    Done::new(&args.file).tell(context, out)
}

#[derive(Debug, Args)]
pub(super) struct AppendArgs {
    /// A TAF file
    file: PathBuf,
    /// The elements to add: any file with one array; - is standard input
    input: PathBuf,
    /// Rewrite the file, so that a crash cannot even cost comments
    #[arg(long)]
    safe: bool,
}

pub(super) fn append(args: &AppendArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let (_, array) = input(&args.input, context)?;
    let clipped = ops::append(&args.file, &array, args.safe, &context.limits)?;
    let shape = File::open(&args.file, &context.limits)?.header().shape();
    Done::new(&args.file).shape(&shape).clipped(clipped).tell(context, out)
}

#[derive(Debug, Args)]
pub(super) struct ReplaceArgs {
    /// A TAF file
    file: PathBuf,
    /// The new elements: any file with one array of the same size; - is standard input
    input: PathBuf,
}

pub(super) fn replace(args: &ReplaceArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let (_, array) = input(&args.input, context)?;
    let clipped = ops::replace(&args.file, &array, &context.limits)?;
    Done::new(&args.file).clipped(clipped).tell(context, out)
}

#[derive(Debug, Args)]
pub(super) struct CropArgs {
    /// A TAF file
    file: PathBuf,
    /// The dimension, the first is 1
    dimension: usize,
    #[command(flatten)]
    bounds: BoundsArgs,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn crop(args: &CropArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let bounds = args.bounds.bounds()?;
    if bounds == ops::Bounds::default() {
        return Err(Error::argument("name bounds with --grid, --index or both"));
    }
    let target = args.target.target();
    let shape = ops::crop(&args.file, args.dimension, bounds, &target, &context.limits)?;
    Done::new(args.target.written(&args.file)).shape(&shape).tell(context, out)
}

#[derive(Debug, Args)]
pub(super) struct PermuteArgs {
    /// A TAF file
    file: PathBuf,
    /// The old dimensions in their new order: 2,3,1
    #[arg(value_delimiter = ',', required = true)]
    order: Vec<usize>,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn permute(args: &PermuteArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let shape = ops::permute(&args.file, &args.order, &args.target.target(), &context.limits)?;
    Done::new(args.target.written(&args.file)).shape(&shape).tell(context, out)
}

#[derive(Debug, Args)]
pub(super) struct TransposeArgs {
    /// A TAF file
    file: PathBuf,
    #[command(flatten)]
    target: TargetArgs,
}

pub(super) fn transpose(args: &TransposeArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let shape = ops::transpose(&args.file, &args.target.target(), &context.limits)?;
    Done::new(args.target.written(&args.file)).shape(&shape).tell(context, out)
}
