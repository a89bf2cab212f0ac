//! `spile iotk dump`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use spile::convert::write_element;
use spile::error::{Error, Result};
use spile::read::Axes;
use spile::select::{Selection, Slice};
use spile_iotk::{Element, File};

use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

#[derive(Debug, Args)]
pub(super) struct DumpArgs {
    /// IOTK files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Values of an array to show at most
    #[arg(long, value_name = "N", default_value_t = 6)]
    values: u64,
}

/// One element of the tree.
#[derive(Serialize)]
struct Row {
    path: String,
    depth: u32,
    attributes: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Values>,
}

#[derive(Serialize)]
struct Values {
    #[serde(rename = "type")]
    kind: String,
    shape: Vec<u64>,
    first: Vec<String>,
    more: u64,
}

pub(super) fn run(args: &DumpArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_file(&args.files, out, |entry, out| {
        let file = File::from_source(context.source(entry.path)?, &context.limits)
            .map_err(|e| e.with_path(entry.path).with_format("iotk"))?;
        let elements = file.index().elements();
        let row = |id: usize| -> Result<Row> {
            let element = &elements[id];
            let path = file.index().path(id);
            let data = values(&file, id, args.values).map_err(|e| e.with_path(entry.path))?;
            Ok(Row { path, depth: element.depth, attributes: attributes(element), data })
        };
        if context.json {
            let mut document = out.document()?;
            document.field("file", &entry.name())?;
            document
                .list("elements", |add| (0..elements.len()).try_for_each(|id| add(row(id)?)))?;
            document.end()?;
            return Ok(Exit::Yes);
        }
        out.heading(entry)?;
        for (id, element) in elements.iter().enumerate() {
            let row = row(id)?;
            let indent = "  ".repeat(row.depth as usize);
            write!(out, "{indent}{}", element.tag.title())?;
            for (name, value) in &row.attributes {
                write!(out, " {name}={value:?}")?;
            }
            if let Some(data) = row.data {
                let shape = spile::shape::Shape::new(data.shape);
                write!(out, "  {} [{shape}]: {}", data.kind, data.first.join(" "))?;
                if data.more > 0 {
                    write!(out, " ... {} more", data.more)?;
                }
            }
            writeln!(out)?;
        }
        Ok(Exit::Yes)
    })
}

/// The attributes that are not about how data are stored.
fn attributes(element: &Element) -> Vec<(String, String)> {
    let storage = ["type", "size", "kind", "len"];
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let all = element.tag.attributes();
    let all = all.map(|a| (text(a.name), text(&spile_iotk::wire::unescape(a.value))));
    all.filter(|(name, _)| element.kind.is_none() || !storage.contains(&name.as_str())).collect()
}

/// The first values of an element, read as far as they are shown.
fn values(file: &File, id: usize, most: u64) -> Result<Option<Values>> {
    let place = |e: Error| e.in_object(format!("element {}", file.index().path(id)));
    let Some(array) = file.array(id)? else { return Ok(None) };
    let dtype = array.dtype();
    let lengths = array.shape().lengths();
    let count = array.shape().count().unwrap_or(0);
    // Along the first index, which runs fastest.
    let mut part: Vec<Slice> = vec![Slice::Index(0); lengths.len()];
    let shown = lengths.first().map_or(1, |n| (*n).min(most)).min(count);
    let mut first = Vec::new();
    if shown > 0 {
        if let Some(slice) = part.first_mut() {
            *slice = Slice::Range { start: Some(0), stop: Some(shown as i64), step: 1 };
        }
        let bytes = array.read(&Selection(part), Axes::Stored).map_err(place)?;
        for element in bytes.chunks(dtype.size().max(1)) {
            let mut text = String::new();
            write_element(dtype, element, &mut text);
            first.push(text);
        }
    }
    let shape = lengths.to_vec();
    Ok(Some(Values { kind: dtype.to_string(), shape, first, more: count - shown }))
}
