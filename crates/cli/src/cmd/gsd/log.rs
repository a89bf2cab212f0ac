//! `spile gsd log`.

use spile::convert;
use spile::dtype::DType;
use spile_gsd::File;
use spile_gsd::semantics::{LogColumn, Trajectory};
use spile_gsd::wire::Type;
use spile_ops::json::write_element;

use crate::cmd::prelude::*;

/// Print the logged quantities of a HOOMD file as a table with one line per frame.
///
/// The first column is the time step. A quantity with several components has one column per component,
/// numbered from 0. Frames without a value have the value of frame 0, or an empty field if frame 0 has none.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// GSD file
    file: PathBuf,
    /// Separate columns by commas instead of tabs
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

pub(super) fn run(args: &LogArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let file = File::open(&args.file, &context.limits)?;
    let log = Trajectory::new(file)
        .and_then(|trajectory| trajectory.read_log())
        .map_err(|e| e.with_path(&args.file).with_format("gsd"))?;
    for name in &log.varying {
        let message = format!("not printed: \"{name}\" (its shape or type changes between frames)");
        context.warn(&args.file, &message);
    }
    let exit = if log.varying.is_empty() { Exit::Yes } else { Exit::Partial };
    if context.json {
        let mut document = out.document()?;
        document.field("file", &args.file.to_string_lossy())?;
        document.field("step", &log.steps)?;
        document.raw("columns", |out| {
            let columns = log.columns.iter().map(|column| column_json(column, log.steps.len()));
            Ok(write!(out, "{{{}}}", columns.collect::<Vec<_>>().join(","))?)
        })?;
        document.end()?;
        return Ok(exit);
    }
    let separator = if args.csv { "," } else { "\t" };
    let line = |cells: Vec<String>| {
        cells.iter().map(|cell| quoted(cell, args.csv)).collect::<Vec<_>>().join(separator)
    };
    let mut names = vec!["step".to_string()];
    for column in &log.columns {
        match width(column) {
            1 => names.push(column.name.clone()),
            width => names.extend((0..width).map(|k| format!("{}[{k}]", column.name))),
        }
    }
    writeln!(out, "{}", line(names))?;
    for (frame, step) in log.steps.iter().enumerate() {
        let values = log.columns.iter().flat_map(|column| cells(column, frame as u64));
        writeln!(out, "{}", line(std::iter::once(step.to_string()).chain(values).collect()))?;
    }
    Ok(exit)
}

/// Number of columns of a quantity; a string has one.
fn width(column: &LogColumn) -> u64 {
    if column.kind == Type::Character { 1 } else { column.width() }
}

fn quoted(text: &str, csv: bool) -> String {
    if csv && text.contains([',', '"', '\n']) {
        return format!("\"{}\"", text.replace('"', "\"\""));
    }
    text.replace(['\t', '\n'], " ")
}

fn cells(column: &LogColumn, frame: u64) -> Vec<String> {
    let Some(values) = column.values(frame) else {
        return vec![String::new(); width(column) as usize];
    };
    if column.kind == Type::Character {
        return vec![String::from_utf8_lossy(&values.bytes).trim_end_matches('\0').to_string()];
    }
    elements(column, &values.bytes, convert::write_element)
}

/// The elements of a value as text.
fn elements(column: &LogColumn, bytes: &[u8], write: fn(DType, &[u8], &mut String)) -> Vec<String> {
    let dtype = column.kind.dtype();
    let element = |bytes: &[u8]| {
        let mut text = String::new();
        write(dtype, bytes, &mut text);
        text
    };
    bytes.chunks(dtype.size()).map(element).collect()
}

/// A field with the values of a quantity: per frame a value, a list of values, or null.
fn column_json(column: &LogColumn, frames: usize) -> String {
    let value = |frame: usize| {
        let Some(values) = column.values(frame as u64) else { return "null".to_string() };
        if column.kind == Type::Character {
            return json!(String::from_utf8_lossy(&values.bytes)).to_string();
        }
        let list = elements(column, &values.bytes, write_element).join(",");
        if column.width() == 1 { list } else { format!("[{list}]") }
    };
    let list = (0..frames).map(value).collect::<Vec<_>>().join(",");
    format!("{}:[{list}]", json!(column.name))
}
