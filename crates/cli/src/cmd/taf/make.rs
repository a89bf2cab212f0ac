//! `spile taf create`.

use spile::dtype::DType;
use spile::layout::{ArrayDesc, Coord};
use spile::read::{Array, Axes};
use spile::select::{Selection, Slice};
use spile::semantics::Role;
use spile_taf::ops::{self, Create};
use spile_taf::wire::parse_type;

use super::{as_one_array, cat, parse_range, report};
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
    /// Use the first column as the grid of dimension 1; it stays a column if it is not evenly spaced
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
    let file = as_one_array(context.open(source)?, context);
    let mut options = Create {
        dtype: args.dtype,
        grids: Vec::new(),
        comments: args.comment.iter().flat_map(|c| [c.as_bytes(), b"\n"].concat()).collect(),
        overwrite: args.new.overwrite(),
    };
    for text in &args.grid {
        let (Some(start), Some(step)) = parse_range(text, "--grid")? else {
            return Err(Error::argument("--grid: expected START:STEP, for example 0:1e-9"));
        };
        options.grids.push((start, step));
    }
    let channels = channels(&file).map_err(|e| e.with_path(source))?;
    let channels = channels.filter(|channels| args.grid_column || channels.columns.len() > 1);
    let clipped = if let Some(Channels { mut names, mut columns, grid }) = channels {
        match grid {
            Coord::Uniform { start, step } if args.grid.is_empty() => {
                options.grids = vec![(start, step)];
            }
            Coord::Node(id) if args.grid_column => {
                names.insert(0, file.tree().node(id).path.clone());
                columns.insert(0, file.array_at(id)?);
                keep_grid(source, 0, &mut options, context);
            }
            _ => {}
        }
        let names = format!("columns: {}\n", names.join(", "));
        options.comments.extend_from_slice(names.as_bytes());
        let map = ops::map_of(&columns, options.dtype).map_err(|e| e.with_path(source))?;
        ops::create_columns(output, &columns, map, &options)?
    } else {
        let (_, desc) = cat::only_array(file.tree()).map_err(|e| e.with_path(source))?;
        let array = file.open_array(desc).map_err(|e| e.with_path(source))?;
        let mut part = Selection::all();
        if args.grid_column {
            let found = match desc.coords.first() {
                Some(Coord::Uniform { start, step }) if desc.has_grid_column() => {
                    Ok((*start, *step))
                }
                _ => grid_from_column(&array).map_err(|e| e.with_path(source))?,
            };
            match found {
                Ok(grid) => {
                    options.grids = vec![grid];
                    part = data_columns();
                }
                Err(row) => keep_grid(source, row, &mut options, context),
            }
        }
        ops::create(output, &array, &part, &options)?
    };
    report(output, None, Some(clipped), context, out)
}

/// Says that the grid is the first column of the file, because only evenly spaced grids are in the header. Row `row`
/// deviates, or rows in general.
fn keep_grid(source: &Path, row: usize, options: &mut Create, context: &Context) {
    let place = if row > 0 { format!("row {}: ", row + 1) } else { String::new() };
    let message =
        format!("{place}the grid is not evenly spaced; it is the first column of the TAF file");
    context.warn(source, &message);
    options.comments.extend_from_slice(b"column 1: grid of dimension 1\n");
}

/// The channels of a file and their common grid.
struct Channels {
    names: Vec<String>,
    columns: Vec<Array>,
    grid: Coord,
}

/// The channels of a file; `None` if its arrays are anything else.
fn channels(file: &Dataset) -> Result<Option<Channels>> {
    let tree = file.tree();
    let mut like: Option<&ArrayDesc> = None;
    let (mut names, mut columns) = (Vec::new(), Vec::new());
    for (id, node, desc) in tree.main_arrays() {
        let desc = tree.resolve(desc)?;
        let first = *like.get_or_insert(desc);
        let is_trace = desc.semantics().role == Role::Trace && desc.shape.rank() == 1;
        let alike = (&desc.shape, &desc.coords) == (&first.shape, &first.coords);
        if !(is_trace && alike && desc.dtype.is_real()) {
            return Ok(None);
        }
        names.push(node.path.clone());
        columns.push(file.array_at(id)?);
    }
    let grid = like.and_then(|desc| desc.coords.first()).cloned();
    let grid = grid.filter(|grid| *grid != Coord::None);
    Ok(grid.map(|grid| Channels { names, columns, grid }))
}

/// Start and step of the first column; the number of the first row that is not evenly spaced, from 0, if there is one.
fn grid_from_column(array: &Array) -> Result<std::result::Result<(f64, f64), usize>> {
    let rank = array.shape().rank();
    if rank != 2 {
        return Err(Error::argument(format!(
            "--grid-column requires an array with 2 dimensions, found {rank}"
        )));
    }
    let grid = array.read_f64(&Selection(vec![Slice::ALL, Slice::Index(0)]), Axes::Stored)?;
    Ok(match grid[..] {
        [] => Ok((1.0, 1.0)),
        [only] => Ok((only, 1.0)),
        _ => Coord::spacing(&grid),
    })
}

/// Selects all columns except the first.
pub(super) fn data_columns() -> Selection {
    Selection(vec![Slice::ALL, Slice::Range { start: Some(1), stop: None, step: 1 }])
}
