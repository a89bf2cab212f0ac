//! `spile records`.

use clap::ValueEnum;
use spile::convert::write_element;
use spile::read::Axes;
use spile::select::{Selection, Slice};
use spile::wire::ByteOrder;
use spile_iotk::records::{self, Template};
use spile_iotk::wire::record::{Framing, Record};

use super::convert::{Job, WriteArgs};
use crate::cmd::prelude::*;

/// List the records of a Fortran unformatted file.
///
/// With --as, the records have the given types: TYPES are the fields of a record separated by commas, of several
/// records separated by semicolons; the last record describes all further ones. A field is TYPE*COUNT=NAME with
/// the types i1 to i8, u1 to u8, f4, f8, c8, c16, l4 (logical), S10 (text). COUNT is a number, the name of a
/// preceding integer, or empty for the rest of the record; several counts are dimensions, first index fastest:
/// 'f8', 'i4,f8*3', 'i4=n;f8*3*n=x'.
///
/// Markers of 4 or 8 bytes in both byte orders are detected. Records split into sub-records, as compilers write
/// them beyond 2 GiB, are joined.
#[derive(Debug, Args)]
pub(crate) struct RecordsArgs {
    /// Fortran unformatted file; - is standard input
    file: PathBuf,
    /// Types of the records
    #[arg(long = "as", value_name = "TYPES")]
    types: Option<Template>,
    /// Write the arrays to a file, as `spile convert` does, instead of listing them
    #[arg(short, long, value_name = "OUTPUT", requires = "types")]
    output: Option<PathBuf>,
    #[command(flatten)]
    write: WriteArgs,
    /// Maximum number of values per array [default: 6]
    #[arg(long, value_name = "N")]
    values: Option<u64>,
    /// Byte order [default: detected]
    #[arg(long, value_name = "ORDER")]
    endian: Option<Endian>,
    /// Size of the record markers: 4 or 8 bytes [default: detected]
    #[arg(long, value_name = "N")]
    marker: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Endian {
    Little,
    Big,
}

/// Default number of values.
const VALUES: u64 = 6;

pub(crate) fn run(args: &RecordsArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let source = context.source(&args.file)?;
    let locate = |e: Error| e.with_path(&args.file).with_format("iotk");
    if args.marker.is_some_and(|bytes| bytes != 4 && bytes != 8) {
        return Err(Error::argument("--marker: expected 4 or 8"));
    }
    let given = if args.endian.is_some() || args.marker.is_some() {
        let found = Framing::detect(&source)?.unwrap_or_default();
        let order = match args.endian {
            Some(Endian::Little) => ByteOrder::Little,
            Some(Endian::Big) => ByteOrder::Big,
            None => found.order,
        };
        Some(Framing { marker: args.marker.unwrap_or(found.marker), order })
    } else {
        None
    };
    let framing = records::framing(&source, given).map_err(locate)?;
    let Some(template) = &args.types else {
        return list(args, &source, framing, context, out).map_err(locate);
    };
    let limits = &context.limits;
    let file = records::open(source, Some(framing), template, limits).map_err(locate)?;
    if let Some(path) = &args.output {
        let format = args.write.target(path)?;
        return Job { from: &args.file, to: path, format, write: &args.write }
            .run(&file, context, out);
    }
    typed(args, &file, context, out).map_err(locate)
}

/// Lists number, offset, length and sub-records.
fn list(
    args: &RecordsArgs,
    source: &spile::Source,
    framing: Framing,
    context: &Context,
    out: &mut Output,
) -> Result<Exit> {
    let order = if framing.order == ByteOrder::Little { "little" } else { "big" };
    let limits = &context.limits;
    if context.json {
        let mut document = out.document()?;
        document.field("file", &args.file.to_string_lossy())?;
        document.field("marker", &framing.marker)?;
        document.field("byte_order", &order)?;
        document.list("records", |add| {
            records::each_record(source, framing, limits, |number, record| {
                add(json!({
                    "record": number,
                    "offset": first_byte(record),
                    "bytes": record.content.len(),
                    "subrecords": record.content.parts().len(),
                }))
            })
        })?;
        document.end()?;
        return Ok(Exit::Yes);
    }
    writeln!(out, "markers of {} bytes, {order}-endian", framing.marker)?;
    let columns = [
        ("record", Align::Right),
        ("offset", Align::Right),
        ("bytes", Align::Right),
        ("sub-records", Align::Right),
    ];
    let mut table = Table::new(&columns);
    records::each_record(source, framing, limits, |number, record| {
        let parts = record.content.parts().len();
        let cells = [number, first_byte(record), record.content.len(), parts as u64];
        table.row(cells.map(|cell| cell.to_string()), out)
    })?;
    table.print(out)?;
    Ok(Exit::Yes)
}

/// Offset of the first byte after the marker.
fn first_byte(record: &Record) -> u64 {
    record.content.parts().first().map_or(record.offset, |part| part.offset)
}

#[derive(Serialize)]
struct Row {
    name: String,
    #[serde(rename = "type")]
    dtype: String,
    shape: Vec<u64>,
    first: Vec<String>,
}

/// Lists arrays with their first values, first index fastest.
fn typed(args: &RecordsArgs, file: &Dataset, context: &Context, out: &mut Output) -> Result<Exit> {
    let most = args.values.unwrap_or(VALUES);
    let row = |id, node: &spile::tree::Node| -> Result<Row> {
        let array = file.array_at(id)?;
        let lengths = array.shape().lengths().to_vec();
        let mut part = vec![Slice::Index(0); lengths.len()];
        if let (Some(slice), Some(count)) = (part.first_mut(), lengths.first()) {
            *slice = Slice::range(0, (*count).min(most));
        }
        let mut first = Vec::new();
        if !lengths.contains(&0) {
            let bytes = array.read_bytes(&Selection(part), Axes::Stored)?;
            for element in bytes.chunks(array.dtype().size().max(1)) {
                let mut text = String::new();
                write_element(array.dtype(), element, &mut text);
                first.push(text);
            }
        }
        let (name, dtype) = (node.path.clone(), array.dtype().to_string());
        Ok(Row { name, dtype, shape: lengths, first })
    };
    if context.json {
        let mut document = out.document()?;
        document.field("file", &args.file.to_string_lossy())?;
        document.list("arrays", |add| {
            file.arrays().try_for_each(|(id, node, _)| {
                add(serde_json::to_value(row(id, node)?).unwrap_or_default())
            })
        })?;
        document.end()?;
        return Ok(Exit::Yes);
    }
    for (id, node, _) in file.arrays() {
        let Row { name, dtype, shape, first } = row(id, node)?;
        let shape = spile::shape::Shape::new(shape);
        let all = shape.count().unwrap_or(0);
        let more = all.saturating_sub(first.len() as u64);
        let more = if more > 0 { format!(" ... {more} more") } else { String::new() };
        writeln!(out, "{name}  {dtype} [{shape}]: {}{more}", text::one_line(&first.join(" ")))?;
    }
    Ok(Exit::Yes)
}
