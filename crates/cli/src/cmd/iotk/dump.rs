//! `spile iotk dump`.

use std::cell::Cell;
use std::fmt::Write as _;

use spile::convert::write_element;
use spile::dtype::Kind;
use spile::error::ErrorKind;
use spile::read::Axes;
use spile::select::{Selection, Slice};
use spile_iotk::{Element, File};

use crate::cmd::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct DumpArgs {
    /// IOTK files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Maximum number of values per array [default: as many as fit on the line, or 6 with --json]
    #[arg(long, value_name = "N")]
    values: Option<u64>,
}

/// Default number of values.
const VALUES: u64 = 6;

/// Width of a line, and displayed characters of a string.
const WIDTH: usize = 80;
const STRING: usize = 40;

/// One element of the tree.
#[derive(Serialize)]
struct Row {
    path: String,
    depth: u32,
    attributes: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Values>,
    /// Reason why the data cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Values {
    #[serde(rename = "type")]
    kind: String,
    shape: Vec<u64>,
    first: Vec<String>,
    more: u64,
    #[serde(skip)]
    strings: bool,
}

pub(super) fn run(args: &DumpArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_file(&args.files, out, |entry, out| {
        let file = File::from_source(context.source(entry.path)?, &context.limits)
            .map_err(|e| e.with_path(entry.path).with_format("iotk"))?;
        let elements = file.index().elements();
        let damaged = Cell::new(0);
        let row = |id: usize| -> Result<Row> {
            let element = &elements[id];
            let path = file.index().path(id);
            // A damaged element does not stop the output.
            let (data, error) = match values(&file, id, args.values.unwrap_or(VALUES)) {
                Ok(data) => (data, None),
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                Err(error) => (None, Some(format!("{} ({})", error.message(), error.code()))),
            };
            damaged.set(damaged.get() + u64::from(error.is_some()));
            let (depth, attributes) = (element.depth, attributes(element));
            Ok(Row { path, depth, attributes, data, error })
        };
        let exit = || if damaged.get() > 0 { Exit::Partial } else { Exit::Yes };
        if context.json {
            let mut document = out.document()?;
            document.field("file", &entry.name())?;
            document
                .list("elements", |add| (0..elements.len()).try_for_each(|id| add(row(id)?)))?;
            document.end()?;
            return Ok(exit());
        }
        out.heading(entry)?;
        for (id, element) in elements.iter().enumerate() {
            let row = row(id)?;
            let mut line = "  ".repeat(row.depth as usize);
            line.extend(element.tag.name_lossy().escape_debug());
            for (name, value) in &row.attributes {
                let _ = write!(line, " {}={value:?}", name.escape_debug());
            }
            if let Some(data) = row.data {
                show(&data, args.values.is_none(), &mut line);
            }
            if let Some(error) = row.error {
                let _ = write!(line, "  error: {error}");
            }
            writeln!(out, "{line}")?;
        }
        Ok(exit())
    })
}

/// The first characters of a string, quoted and with control characters escaped.
fn quoted(text: &str) -> String {
    let cut = text.char_indices().nth(STRING).map(|(at, _)| at);
    let end = if cut.is_some() { "..." } else { "" };
    format!("{:?}{end}", &text[..cut.unwrap_or(text.len())])
}

/// Appends type, shape and values to a line; with `fit` only the values that fit on it.
fn show(data: &Values, fit: bool, line: &mut String) {
    let shape = spile::shape::Shape::new(data.shape.clone());
    let _ = write!(line, "  {} [{shape}]:", data.kind);
    let mut more = data.more;
    for (k, value) in data.first.iter().enumerate() {
        let value = if data.strings { &quoted(value) } else { value };
        // Space for the number of further values.
        if fit && k > 0 && line.len() + value.len() + 16 > WIDTH {
            more += (data.first.len() - k) as u64;
            break;
        }
        let _ = write!(line, " {value}");
    }
    if more > 0 {
        let _ = write!(line, " ... {more} more");
    }
}

/// The attributes, without those of the storage (type, size, kind, len).
fn attributes(element: &Element) -> Vec<(String, String)> {
    let storage = ["type", "size", "kind", "len"];
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = element.tag.attributes();
    let all = all.map(|a| (text(a.name), text(&spile_iotk::wire::unescape(a.value))));
    all.filter(|(name, _)| element.kind.is_none() || !storage.contains(&name.as_str())).collect()
}

/// The first `most` values of an element.
fn values(file: &File, id: usize, most: u64) -> Result<Option<Values>> {
    let locate = |e: Error| e.in_object(format!("element {}", file.index().path(id)));
    let Some(array) = file.array(id)? else { return Ok(None) };
    let dtype = array.dtype();
    let lengths = array.shape().lengths();
    let count = array.shape().count().unwrap_or(0);
    // Along the first index, which varies fastest.
    let mut part: Vec<Slice> = vec![Slice::Index(0); lengths.len()];
    let shown = lengths.first().map_or(1, |n| (*n).min(most)).min(count);
    let mut first = Vec::new();
    if shown > 0 {
        if let Some(slice) = part.first_mut() {
            *slice = Slice::Range { start: Some(0), stop: Some(shown as i64), step: 1 };
        }
        let bytes = array.read_bytes(&Selection(part), Axes::Stored).map_err(locate)?;
        for element in bytes.chunks(dtype.size().max(1)) {
            let mut text = String::new();
            write_element(dtype, element, &mut text);
            first.push(text);
        }
    }
    let (shape, strings) = (lengths.to_vec(), dtype.kind() == Kind::Text);
    Ok(Some(Values { kind: dtype.to_string(), shape, first, more: count - shown, strings }))
}
