//! `spile taf`: operations that do not modify the file (probe, read, summarize, map, export, backup).

use std::io::{self, Write};

use spile::reduce::Stats;
use spile::sink::Sink;
use spile_ops::json::{Attr, Real};
use spile_taf::wire::type_name;
use spile_taf::{File, ops};

use super::{BoundsArgs, report};
use crate::cmd::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct FilesArgs {
    /// TAF files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// TAF file
    file: PathBuf,
    #[command(flatten)]
    bounds: BoundsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// TAF file
    file: PathBuf,
    /// Output path; - is standard output [default: -]
    #[arg(short, long, value_name = "OUTPUT")]
    output: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    overwrite: bool,
}

/// Opens a file and prints its warnings.
fn open(path: &Path, context: &Context) -> Result<File> {
    let file = File::open(path, &context.limits)?;
    context.print_warnings(path, &file.warnings());
    Ok(file)
}

pub(super) fn probe(args: &FilesArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_file(&args.files, out, |entry, out| {
        let file = Dataset::open_path(&spile_taf::Taf, entry.path, &context.options())?;
        context.print_warnings(entry.path, file.warnings());
        if context.json {
            let mut document = out.document()?;
            document.field("file", &entry.name())?;
            for (name, value) in file.summary() {
                document.field(&name.replace(' ', "_"), &Attr(value))?;
            }
            return document.end();
        }
        out.heading(entry)?;
        let fields: Vec<(String, String)> =
            file.summary().iter().map(|(name, value)| (name.into(), value.to_string())).collect();
        text::fields(&fields, usize::MAX, out)
    })
}

pub(super) fn read(args: &ReadArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let file = open(&args.file, context)?;
    let bounds = args.bounds.bounds()?;
    if !context.json {
        ops::write_rows(&file, bounds, out).map_err(|e| e.with_path(&args.file))?;
        return Ok(Exit::Yes);
    }
    let mut document = out.document()?;
    document.field("file", &args.file.to_string_lossy())?;
    document.raw("rows", |out| {
        let mut rows = JsonRows { out, line: Vec::new(), first: true };
        ops::write_rows(&file, bounds, &mut rows).map_err(|e| e.with_path(&args.file))?;
        let close: &[u8] = if rows.first { b"[]" } else { b"]" };
        Ok(rows.out.write_all(close)?)
    })?;
    document.end()?;
    Ok(Exit::Yes)
}

/// Converts tab-separated lines to JSON lists.
struct JsonRows<'a> {
    out: &'a mut dyn Write,
    line: Vec<u8>,
    first: bool,
}

impl Write for JsonRows<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            self.line.extend_from_slice(piece);
            if !piece.ends_with(b"\n") {
                continue;
            }
            let open: &[u8] = if std::mem::take(&mut self.first) { b"[[" } else { b",[" };
            self.out.write_all(open)?;
            for (k, token) in self.line.trim_ascii_end().split(|b| *b == b'\t').enumerate() {
                let token: &[u8] = match token {
                    b"nan" => b"\"NaN\"",
                    b"inf" => b"\"Infinity\"",
                    b"-inf" => b"\"-Infinity\"",
                    number => number,
                };
                self.out.write_all(if k == 0 { b"" } else { b"," })?;
                self.out.write_all(token)?;
            }
            self.out.write_all(b"]")?;
            self.line.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(super) fn summarize(args: &FilesArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    const NAMES: [&str; 7] = ["column", "n", "finite", "min", "max", "mean", "std"];
    context.each_file(&args.files, out, |entry, out| {
        let file = open(entry.path, context)?;
        // No rows per column if there is only one column or no element.
        let empty = file.header().shape().count() == Some(0);
        let columns = if file.columns() == 1 || empty { 0 } else { file.columns() };
        let all = || std::iter::once(None).chain((0..columns).map(Some));
        let numbers = |s: &Stats| [s.min, s.max, s.mean, s.std].map(Real);
        if context.json {
            let mut document = out.document()?;
            document.field("file", &entry.name())?;
            document.list("columns", |add| {
                all().try_for_each(|column| {
                    let stats = file.summarize(column)?;
                    let values = [json!(stats.count), json!(stats.finite)].into_iter();
                    let values = values.chain(numbers(&stats).map(|number| json!(number)));
                    let mut row: serde_json::Map<_, _> =
                        NAMES[1..].iter().map(ToString::to_string).zip(values).collect();
                    // The entire array has no number.
                    row.extend(column.map(|column| (NAMES[0].to_string(), json!(column + 1))));
                    add(row)
                })
            })?;
            return document.end();
        }
        out.heading(entry)?;
        let mut table = Table::new(&NAMES.map(|name| (name, Align::Right)));
        for column in all() {
            let stats = file.summarize(column)?;
            let column = column.map_or("all".into(), |column| (column + 1).to_string());
            let [min, max, mean, std] = numbers(&stats).map(|number| text::short(number.0));
            let (n, finite) = (stats.count.to_string(), stats.finite.to_string());
            table.row([column, n, finite, min, max, mean, std], out)?;
        }
        table.print(out)
    })
}

pub(super) fn map(args: &FilesArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_file(&args.files, out, |entry, out| {
        let file = open(entry.path, context)?;
        let header = file.header();
        let (offset, shape) = (header.data_offset(), header.shape());
        let dtype = type_name(header.dtype);
        let numpy = format!(
            "numpy.memmap({:?}, \"<{}{}\", \"r\", {offset}, {}, \"F\")",
            entry.name(),
            dtype.chars().next().unwrap_or('u'),
            header.dtype.size(),
            format!("{:?}", shape.lengths()).replace('[', "(").replace(']', ")"),
        );
        if context.json {
            let mut document = out.document()?;
            document.field("file", &entry.name())?;
            document.field("offset", &offset)?;
            document.field("type", dtype)?;
            document.field("shape", shape.lengths())?;
            document.field("order", "F")?;
            document.some("intercept", header.map().map(|m| Real(m.intercept)).as_ref())?;
            document.some("slope", header.map().map(|m| Real(m.slope)).as_ref())?;
            document.field("numpy", &numpy)?;
            return document.end();
        }
        out.heading(entry)?;
        let mut fields = vec![
            ("elements".into(), format!("{shape} {dtype}, little-endian, Fortran order")),
            ("offset".into(), offset.to_string()),
        ];
        if let Some(map) = header.map() {
            let float = |x: f64| spile::tree::Value::Float(x).to_string();
            let formula = format!("{} + {} * stored", float(map.intercept), float(map.slope));
            fields.push(("value".into(), formula));
        }
        fields.push(("in Python".into(), numpy));
        text::fields(&fields, usize::MAX, out)
    })
}

pub(super) fn export(args: &ExportArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let file = open(&args.file, context)?;
    let Some(path) = args.output.as_deref().filter(|path| *path != Path::new("-")) else {
        ops::export(&file, out).map_err(|e| e.with_path(&args.file))?;
        return Ok(Exit::Yes);
    };
    let sink = Sink::create(path, overwrite(args.overwrite))?;
    let mut buffered = io::BufWriter::with_capacity(256 << 10, sink);
    ops::export(&file, &mut buffered).map_err(|e| e.with_path(&args.file))?;
    let sink = buffered.into_inner().map_err(io::IntoInnerError::into_error)?;
    sink.commit()?;
    report(path, Some(&file.header().shape()), None, context, out)
}

pub(super) fn backup(args: &FilesArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_file(&args.files, out, |entry, out| {
        // Only TAF files are copied.
        drop(open(entry.path, context)?);
        let copy = ops::backup(entry.path)?;
        if context.json {
            out.object(&[
                ("file", json!(entry.name())),
                ("backup", json!(copy.to_string_lossy())),
            ])?;
        } else if !context.quiet {
            writeln!(out, "{}", text::one_line(&copy.to_string_lossy()))?;
        }
        Ok(())
    })
}
