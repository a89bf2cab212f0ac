//! `spile taf`: create and convert.

use spile::dtype::DType;
use spile::layout::Coord;
use spile::read::{Array, Axes};
use spile::select::{Selection, Slice};
use spile::tree::Node;
use spile::wire::ByteOrder;
use spile_dig::SampleFormat;
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
fn data_columns() -> Selection {
    Selection(vec![Slice::ALL, Slice::Range { start: Some(1), stop: None, step: 1 }])
}

#[derive(Debug, Args)]
pub(crate) struct ConvertArgs {
    /// Files or patterns
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output path, for one file with one array [default: NAME.taf next to the input]
    #[arg(short, long, value_name = "OUTPUT")]
    output: Option<PathBuf>,
    /// Samples of .dig files are signed
    #[arg(long)]
    dig_signed: bool,
    /// Samples of .dig files are big-endian
    #[arg(long)]
    dig_big_endian: bool,
    /// Replace the output if it exists
    #[arg(long)]
    overwrite: bool,
}

impl ConvertArgs {
    fn open(&self, path: &Path, context: &Context) -> Result<Dataset> {
        if !self.dig_signed && !self.dig_big_endian {
            return context.open(path);
        }
        let order = if self.dig_big_endian { ByteOrder::Big } else { ByteOrder::Little };
        let stored = SampleFormat { signed: self.dig_signed, order };
        let file = spile_dig::open(context.source(path)?, stored, &context.options());
        let file = file.map_err(|e| e.with_path(path).with_format("dig"))?;
        context.print_warnings(path, file.warnings());
        Ok(file)
    }
}

pub(super) fn convert(args: &ConvertArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let mut some = false;
    let exit = context.each_file(&args.files, out, |entry, out| {
        let file = super::as_one_array(args.open(entry.path, context)?, context);
        let count = file.tree().arrays().count();
        for (k, (_, node, desc)) in file.tree().arrays().enumerate() {
            let target = if let Some(output) = &args.output {
                if entry.many || count > 1 {
                    return Err(Error::argument("-o requires one file with one array"));
                }
                output.clone()
            } else if count == 1 {
                entry.path.with_extension("taf")
            } else {
                let stem = entry.path.file_stem().unwrap_or_default().to_string_lossy();
                entry.path.with_file_name(format!("{stem}-{}.taf", k + 1))
            };
            if target == entry.path {
                return Err(Error::argument("the file is already TAF; nothing was written"));
            }
            let array = file.open_array(desc)?;
            let clipped = convert_one(args, &target, &array, node, &entry.name())?;
            some = true;
            report(&target, None, Some(clipped), context, out)?;
        }
        Ok(())
    })?;
    // Some arrays of a file may have been written before it failed.
    Ok(if exit == Exit::Error && some { Exit::Partial } else { exit })
}

/// Writes an array with its grid; attributes become comments. Returns the number of clipped values.
fn convert_one(
    args: &ConvertArgs,
    target: &Path,
    array: &Array,
    node: &Node,
    file: &str,
) -> Result<u64> {
    let desc =
        node.array.as_ref().ok_or_else(|| Error::argument("expected an array, found a group"))?;
    let dtype = ops::type_for(array.dtype()).ok_or_else(|| {
        Error::argument(format!("TAF does not support {} elements", array.dtype()))
    })?;
    let grid = |coord: &Coord| match coord {
        Coord::Uniform { start, step } => (*start, *step),
        Coord::None | Coord::Node(_) => (1.0, 1.0),
    };
    let grids = desc.coords.iter().map(grid).collect();
    let part = if desc.has_grid_column() { data_columns() } else { Selection::all() };
    let mut comments = format!("{} of {file}\n", node.path);
    for (name, value) in &node.attrs {
        comments.push_str(&format!("{name}: {value}").replace(['\n', '\r'], " "));
        comments.push('\n');
    }
    let comments = comments.into_bytes();
    let options = Create { dtype, grids, comments, overwrite: overwrite(args.overwrite) };
    ops::create(target, array, &part, &options)
}
