//! `spile taf create`.

use spile::dtype::DType;
use spile::layout::Coord;
use spile::read::{Array, Axes};
use spile::select::{Selection, Slice};
use spile_taf::ops::{self, Create};
use spile_taf::wire::parse_type;

use super::{open_input, parse_range, report};
use crate::cmd::prelude::*;
use crate::hint;

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// NumPy array, text columns or any file with one array; - is standard input
    #[arg(required_unless_present = "example", value_name = "INPUT")]
    input: Option<PathBuf>,
    #[command(flatten)]
    new: NewFileArgs,
    /// Element type: uint8..uint64, int8..int64, flt32, flt64, or bits 8, 16, 32, 64
    #[arg(short = 't', long = "type", default_value = "flt32", value_parser = parse_dtype)]
    dtype: DType,
    /// Grid of a dimension as START:STEP; repeat for further dimensions
    #[arg(long, value_name = "START:STEP", allow_hyphen_values = true)]
    grid: Vec<String>,
    /// Use the first column as the grid of dimension 1
    #[arg(long, conflicts_with = "grid")]
    grid_column: bool,
    /// Comment; can be repeated
    #[arg(long, value_name = "TEXT")]
    comment: Vec<String>,
    /// Create an example of the TAF report with 2 or 3 dimensions
    #[arg(long, value_name = "N", conflicts_with_all = ["input", "grid", "grid_column", "comment"])]
    example: Option<u32>,
}

fn parse_dtype(text: &str) -> std::result::Result<DType, String> {
    parse_type(text).map_err(|e| {
        let hint = e.suggestion().map(|hint| hint::render(hint, None)).unwrap_or_default();
        format!("{}; {hint}", e.message())
    })
}

pub(super) fn create(args: &CreateArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let output = args.new.file()?;
    if let Some(dimensions) = args.example {
        ops::example(output, dimensions, args.new.overwrite())?;
        return report(output, None, None, context, out);
    }
    let source = args.input.as_deref().unwrap_or(Path::new("-"));
    let (_, array) = open_input(source, context)?;
    let mut options = Create {
        dtype: args.dtype,
        grids: Vec::new(),
        comments: args.comment.iter().flat_map(|c| [c.as_bytes(), b"\n"].concat()).collect(),
        overwrite: args.new.overwrite(),
    };
    let mut part = Selection::all();
    if args.grid_column {
        options.grids = vec![grid_from_column(&array).map_err(|e| e.with_path(source))?];
        part = data_columns();
    }
    for text in &args.grid {
        let (Some(start), Some(step)) = parse_range(text, "--grid")? else {
            return Err(Error::argument("--grid: expected START:STEP, for example 0:1e-9"));
        };
        options.grids.push((start, step));
    }
    let clipped = ops::create(output, &array, &part, &options)?;
    report(output, None, Some(clipped), context, out)
}

/// Start and step of the first column, which must be evenly spaced.
fn grid_from_column(array: &Array) -> Result<(f64, f64)> {
    let rank = array.shape().rank();
    if rank != 2 {
        return Err(Error::argument(format!(
            "--grid-column requires an array with 2 dimensions, found {rank}"
        )));
    }
    let grid = array.read_f64(&Selection(vec![Slice::ALL, Slice::Index(0)]), Axes::Stored)?;
    match grid[..] {
        [] => Ok((1.0, 1.0)),
        [only] => Ok((only, 1.0)),
        _ => Coord::spacing(&grid).map_err(|row| {
            Error::argument(format!("row {}: the first column is not evenly spaced", row + 1))
        }),
    }
}

/// Selects all columns except the first.
pub(super) fn data_columns() -> Selection {
    Selection(vec![Slice::ALL, Slice::Range { start: Some(1), stop: None, step: 1 }])
}
