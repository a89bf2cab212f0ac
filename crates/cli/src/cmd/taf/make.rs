//! Operations that make files: create and convert.

use std::path::{Path, PathBuf};

use clap::Args;
use spile::dtype::DType;
use spile::error::{Error, Result};
use spile::layout::Coord;
use spile::read::{Array, Axes};
use spile::select::{Selection, Slice};
use spile_taf::ops::{self, Create};
use spile_taf::wire::type_named;

use super::super::overwrite;
use super::{Done, input, pair};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

/// A first column counts as a grid if its points are within this part of a step.
const UNIFORM: f64 = 1e-6;

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// NumPy array, text columns or any file with one array; - is standard input
    #[arg(required_unless_present = "example", value_name = "INPUT")]
    input: Option<PathBuf>,
    /// The file to make
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Element type: uint8..uint64, int8..int64, flt32, flt64, or bits 8, 16, 32, 64
    #[arg(short = 't', long = "type", default_value = "flt32", value_parser = named)]
    dtype: DType,
    /// Grid of a dimension as START:STEP, once for each from the first on
    #[arg(long, value_name = "START:STEP", allow_hyphen_values = true)]
    grid: Vec<String>,
    /// The first column is the grid of dimension 1, not data
    #[arg(long, conflicts_with = "grid")]
    grid_column: bool,
    /// A comment; may be given several times
    #[arg(long, value_name = "TEXT")]
    comment: Vec<String>,
    /// Make one of the TAF report's examples, with 2 or 3 dimensions
    #[arg(long, value_name = "N", conflicts_with_all = ["input", "grid", "grid_column", "comment"])]
    example: Option<u32>,
    /// Replace the output file if it exists
    #[arg(long)]
    overwrite: bool,
}

fn named(text: &str) -> std::result::Result<DType, String> {
    type_named(text).map_err(|e| format!("{}; {}", e.message(), e.hint_text().unwrap_or_default()))
}

pub(super) fn create(args: &CreateArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    if args.output == Path::new("-") {
        return Err(Error::argument("a TAF file cannot go to standard output; name a file"));
    }
    if let Some(dimensions) = args.example {
        ops::example(&args.output, dimensions, overwrite(args.overwrite))?;
        return Done::new(&args.output).tell(context, out);
    }
    let source = args.input.as_deref().unwrap_or(Path::new("-"));
    let (_, array) = input(source, context)?;
    let mut options = Create {
        dtype: args.dtype,
        grids: Vec::new(),
        comments: args.comment.iter().flat_map(|c| [c.as_bytes(), b"\n"].concat()).collect(),
        overwrite: overwrite(args.overwrite),
    };
    let mut part = Selection::all();
    if args.grid_column {
        options.grids = vec![grid_of(&array).map_err(|e| e.with_path(source))?];
        part = Selection(vec![Slice::ALL, Slice::Range { start: Some(1), stop: None, step: 1 }]);
    }
    for text in &args.grid {
        let (Some(start), Some(step)) = pair(text, "--grid")? else {
            return Err(Error::argument("--grid needs a start and a step, for example 0:1e-9"));
        };
        options.grids.push((start, step));
    }
    let clipped = ops::create(&args.output, &array, &part, &options)?;
    Done::new(&args.output).clipped(clipped).tell(context, out)
}

/// Start and step of a first column that is evenly spaced.
fn grid_of(array: &Array) -> Result<(f64, f64)> {
    let rank = array.shape().rank();
    if rank != 2 {
        return Err(Error::argument(format!("a grid column needs two dimensions, not {rank}")));
    }
    let grid = array.read_f64(&Selection(vec![Slice::ALL, Slice::Index(0)]), Axes::Stored)?;
    let (Some(first), Some(last)) = (grid.first(), grid.last()) else {
        return Ok((1.0, 1.0));
    };
    let step = if grid.len() > 1 { (last - first) / (grid.len() - 1) as f64 } else { 1.0 };
    let odd = grid.iter().enumerate().find(|(k, x)| {
        let off = (first + *k as f64 * step - **x).abs();
        !off.is_finite() || off > UNIFORM * step.abs()
    });
    match odd {
        None => Ok((*first, step)),
        Some((row, _)) => {
            Err(Error::argument(format!("the first column is not evenly spaced, row {}", row + 1)))
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct ConvertArgs {
    /// Files or patterns
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    overwrite: bool,
}

pub(super) fn convert(args: &ConvertArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let mut some = false;
    let exit = context.each_file(&args.files, out, |entry, out| {
        let file = context.open(entry.path)?;
        let tree = file.reader.tree();
        let count = tree.arrays().count();
        for (k, (_, node, desc)) in tree.arrays().enumerate() {
            let target = if count == 1 {
                entry.path.with_extension("taf")
            } else {
                let stem = entry.path.file_stem().unwrap_or_default().to_string_lossy();
                entry.path.with_file_name(format!("{stem}-{}.taf", k + 1))
            };
            if target == entry.path {
                return Err(Error::argument("is a TAF file already; nothing was written"));
            }
            let array = Array::open(file.reader.source(), tree, desc, &context.limits)?;
            let dtype = ops::type_for(array.dtype()).ok_or_else(|| {
                Error::argument(format!("{} elements have no place in TAF", array.dtype()))
            })?;
            let grid = |coord: &Coord| match coord {
                Coord::Uniform { start, step } => (*start, *step),
                Coord::None | Coord::Node(_) => (1.0, 1.0),
            };
            let options = Create {
                dtype,
                grids: desc.coords.iter().map(grid).collect(),
                comments: format!("{} of {}\n", node.path, entry.name()).into_bytes(),
                overwrite: overwrite(args.overwrite),
            };
            let clipped = ops::create(&target, &array, &Selection::all(), &options)?;
            some = true;
            Done::new(&target).clipped(clipped).tell(context, out)?;
        }
        Ok(Exit::Yes)
    })?;
    // One bad file does not stop the rest.
    Ok(if exit == Exit::Error && some { Exit::Partial } else { exit })
}
