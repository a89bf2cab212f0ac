//! `spile taf`: the file operations of Table 3-1 of the TAF report.

mod change;
mod convert;
mod make;
mod show;

use clap::Subcommand;
use spile::read::Array;
use spile::shape::Shape;
use spile_taf::ops::{Bounds, Target};

use super::{cat, overwrite, plot};
use crate::cmd::prelude::*;

/// Operations on TAF files.
///
/// Dimensions and indices count from 1, as in the TAF report. Changes of arrays are atomic.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
#[allow(clippy::large_enum_variant)] // One value per process.
pub(crate) enum Operation {
    /// Print header, offsets and comments; reads no array data
    Probe(show::FilesArgs),
    /// Print grid values and elements
    Read(show::ReadArgs),
    /// Print statistics of the array and of its columns
    Summarize(show::FilesArgs),
    /// Print offset and type of the elements, for memory mapping
    Map(show::FilesArgs),
    /// Write grid, columns and comments of a two-dimensional array as text
    Export(show::ExportArgs),
    /// Plot the columns
    Plot(plot::PlotArgs),
    /// Append a comment
    #[command(alias = "addComment")]
    AddComment(change::CommentArgs),
    /// Replace all comments; an empty text removes them
    #[command(alias = "setComment")]
    SetComment(change::CommentArgs),
    /// Change the implicit grid of a dimension
    Adjust(change::AdjustArgs),
    /// Append elements along the last dimension, or another
    Append(change::AppendArgs),
    /// Replace the elements
    Replace(change::ReplaceArgs),
    /// Crop a dimension
    Crop(change::CropArgs),
    /// Permute the dimensions
    Permute(change::PermuteArgs),
    /// Transpose a two-dimensional array
    Transpose(change::TransposeArgs),
    /// Copy a file to NAME-backup-K.taf in the same folder
    Backup(show::FilesArgs),
    /// Create a file from a NumPy array, text columns, or standard input
    Create(make::CreateArgs),
    /// Convert the arrays of files of any format to NAME.taf
    Convert(convert::ConvertArgs),
}

pub(crate) fn run(operation: &Operation, context: &Context, out: &mut Output) -> Result<Exit> {
    match operation {
        Operation::Probe(args) => show::probe(args, context, out),
        Operation::Read(args) => show::read(args, context, out),
        Operation::Summarize(args) => show::summarize(args, context, out),
        Operation::Map(args) => show::map(args, context, out),
        Operation::Export(args) => show::export(args, context, out),
        Operation::Plot(args) => plot::run(args, context, out),
        Operation::AddComment(args) => change::add_comment(args, context, out),
        Operation::SetComment(args) => change::set_comment(args, context, out),
        Operation::Adjust(args) => change::adjust(args, context, out),
        Operation::Append(args) => change::append(args, context, out),
        Operation::Replace(args) => change::replace(args, context, out),
        Operation::Crop(args) => change::crop(args, context, out),
        Operation::Permute(args) => change::permute(args, context, out),
        Operation::Transpose(args) => change::transpose(args, context, out),
        Operation::Backup(args) => show::backup(args, context, out),
        Operation::Create(args) => make::create(args, context, out),
        Operation::Convert(args) => convert::convert(args, context, out),
    }
}

/// Output options of an operation that modifies a file.
#[derive(Debug, Args)]
struct TargetArgs {
    /// Output path [default: modify the input]
    #[arg(short, long, value_name = "OUTPUT")]
    output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    overwrite: bool,
}

impl TargetArgs {
    fn target(&self) -> Target {
        match &self.output {
            Some(path) => Target::File(path.clone(), overwrite(self.overwrite)),
            None => Target::InPlace,
        }
    }

    /// The written file.
    fn written<'a>(&'a self, file: &'a Path) -> &'a Path {
        self.output.as_deref().unwrap_or(file)
    }
}

/// Inclusive bounds of a dimension.
#[derive(Debug, Args)]
struct BoundsArgs {
    /// Inclusive grid bounds: 0:1e-6, :5, -2:
    #[arg(long, value_name = "MIN:MAX", allow_hyphen_values = true)]
    grid: Option<String>,
    /// Inclusive index bounds, counted from 1: 1:1000
    #[arg(long, value_name = "FROM:TO")]
    index: Option<String>,
}

impl BoundsArgs {
    fn bounds(&self) -> Result<Bounds> {
        let mut bounds = Bounds::default();
        if let Some(text) = &self.grid {
            let (low, high) = parse_range(text, "--grid")?;
            bounds.grid = Some((low.unwrap_or(f64::NEG_INFINITY), high.unwrap_or(f64::INFINITY)));
        }
        if let Some(text) = &self.index {
            let (Some(from), Some(to)) = parse_range(text, "--index")? else {
                return Err(Error::argument("--index: expected FROM:TO, for example 1:1000"));
            };
            bounds.index = Some((parse_index(from)?, parse_index(to)?));
        }
        Ok(bounds)
    }
}

/// Parses `A:B`, where each side is optional.
fn parse_range(text: &str, option: &str) -> Result<(Option<f64>, Option<f64>)> {
    let bad = || {
        Error::argument(format!(
            "{option}: expected two numbers separated by a colon, found \"{text}\""
        ))
    };
    let side = |part: &str| match part.trim() {
        "" => Ok(None),
        number => number.parse::<f64>().map(Some).map_err(|_| bad()),
    };
    let (a, b) = text.split_once(':').ok_or_else(bad)?;
    Ok((side(a)?, side(b)?))
}

/// Converts a number, which may be written as 5e8, to an index.
fn parse_index(number: f64) -> Result<u64> {
    if number >= 0.0 && number.fract() == 0.0 && number < 9e15 {
        return Ok(number as u64);
    }
    Err(Error::argument(format!("expected an index, found {number}")))
}

/// Opens a file with one array.
fn open_input(path: &Path, context: &Context) -> Result<(Dataset, Array)> {
    let file = as_one_array(context.open(path)?, context);
    let tree = file.tree();
    let (_, desc) = cat::only_array(tree).map_err(|e| e.with_path(path))?;
    let array = file.open_array(desc).map_err(|e| e.with_path(path))?;
    Ok((file, array))
}

/// A table whose columns are all numbers as one array of rows and columns; any other file as it is.
fn as_one_array(file: Dataset, context: &Context) -> Dataset {
    let named = |name: &str| spile::REGISTRY.named(name).ok();
    let is_table = file.format().is_some_and(|info| info.name == "csv");
    let columns = named("columns").filter(|_| is_table && file.tree().arrays().count() > 1);
    let open = |format| Dataset::open(format, file.source().clone(), &context.options()).ok();
    columns.and_then(open).unwrap_or(file)
}

/// Prints the result of an operation with --json or -v: the shape of the array if it changed, and the number of
/// clipped values, which is always printed.
fn report(
    path: &Path,
    shape: Option<&Shape>,
    clipped: Option<u64>,
    context: &Context,
    out: &mut Output,
) -> Result<Exit> {
    let file = path.to_string_lossy();
    if context.json {
        let mut document = out.document()?;
        document.field("file", &file)?;
        document.some("shape", shape.map(Shape::lengths).as_ref())?;
        document.some("clipped", clipped.as_ref())?;
        document.end()?;
        return Ok(Exit::Yes);
    }
    if let Some(clipped) = clipped.filter(|n| *n > 0 && !context.quiet) {
        writeln!(out, "{file}: {clipped} values were clipped")?;
    }
    if let Some(shape) = shape.filter(|_| context.verbose) {
        writeln!(out, "{file}: {shape}")?;
    }
    Ok(Exit::Yes)
}
