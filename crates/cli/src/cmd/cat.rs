//! `spile cat`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use spile::error::{Error, ErrorKind, Result};
use spile::Dataset;
use spile::layout::{ArrayDesc, Layout};
use spile::read::{Array, Axes};
use spile::select::{Selection, Slice};
use spile::tree::{Node, Tree};
use spile_ops::Pick;
use spile_ops::cat::{self, Values};

use crate::context::{Context, Entry};
use crate::exit::Exit;
use crate::print::Output;

/// Names shown when one has to be chosen.
const NAMES: usize = 5;

/// Print the values of an array, or of a part of it.
///
/// A selection is written as in Python, with commas between dimensions: '0:100, 3', '::10', '-5:',
/// '..., 0'. Indices count from zero. Rows are lines, columns are separated by tabs; whatever the
/// order in the file, the last index runs fastest.
#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    /// The file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The array; a file with only one needs no name
    // Two arguments of one value each: a list that allows hyphens would swallow options.
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    name: Option<String>,
    /// The part of it
    #[arg(value_name = "SELECTION", allow_hyphen_values = true)]
    selection: Option<String>,
    /// Write little-endian bytes instead of text
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// The frame, of an array that has frames
    #[arg(long, value_name = "N")]
    frame: Option<u64>,
    /// Several frames, as a slice: 0:100, ::10; a single value is a line with the frame's number
    #[arg(long, value_name = "A:B:C", conflicts_with = "frame", allow_hyphen_values = true)]
    frames: Option<String>,
    /// One element, counted from zero, of an array whose elements have different lengths too
    #[arg(long, value_name = "N", conflicts_with = "selection")]
    element: Option<u64>,
    /// Values as stored, before any linear map
    #[arg(long)]
    stored: bool,
}

pub(crate) fn run(args: &CatArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_file(std::slice::from_ref(&args.file), out, |entry, out| {
        let file = context.open(entry.path)?;
        let Some(frames) = &args.frames else {
            print(args, entry, &file, args.frame, context, out)?;
            return Ok(Exit::Yes);
        };
        let tree = file.tree();
        let (_, desc, _) = choose(tree, args.name.as_deref(), args.selection.as_deref())?;
        let Layout::PerFrame(table) = &tree.resolve(desc)?.layout else {
            return Err(Error::argument("this array has no frames").hint("leave --frames away"));
        };
        for frame in Pick::default().with_frames(frames)?.frames(table.len())? {
            // Not every frame has every array.
            let Some(cell) = table.cell(frame)? else { continue };
            if !args.raw && !context.json {
                match cell.shape.rank() {
                    0 => write!(out, "{frame}\t")?,
                    _ => writeln!(out, "# frame {frame}")?,
                }
            }
            print(args, entry, &file, Some(frame), context, out)?;
        }
        Ok(Exit::Yes)
    })
}

fn print(
    args: &CatArgs,
    entry: Entry<'_>,
    file: &Dataset,
    frame: Option<u64>,
    context: &Context,
    out: &mut Output,
) -> Result<()> {
    let tree = file.tree();
    let (node, desc, mut selection) =
        choose(tree, args.name.as_deref(), args.selection.as_deref())?;
    if let Some(number) = args.element {
        selection = element(tree.resolve(desc)?, number)?;
    }
    // A wrong selection and a full disk are not the array's fault.
    let place = |e: Error| match e.kind() {
        ErrorKind::Argument | ErrorKind::Io => e,
        _ => e.in_object(format!("\"{}\"", node.path)),
    };
    let (frame, array) = open(file, desc, frame, context).map_err(place)?;
    let values = if args.stored { Values::Stored } else { Values::Mapped };
    if context.json {
        let shape = array.select(&selection, Axes::Stored)?.shape();
        let mut document = out.document_of(entry, file)?;
        document.field("path", &node.path)?;
        document.some("id", node.id.as_ref())?;
        document.some("frame", frame.as_ref())?;
        document.field("dtype", &cat::dtype(&array, values).to_string())?;
        document.field("shape", shape.lengths())?;
        document.raw("values", |out| cat::json(&array, &selection, values, out)).map_err(place)?;
        return document.end();
    }
    let write = if args.raw { cat::raw } else { cat::text };
    write(&array, &selection, values, out).map_err(place)
}

/// The selection that is one element. Elements of different lengths are handed out as one run of
/// bytes, of which an element is a range.
fn element(desc: &ArrayDesc, number: u64) -> Result<Selection> {
    let count = desc.shape.lengths().first().copied().unwrap_or(0);
    if number >= count {
        let message = format!("there is no element {number}, the array has {count}");
        return Err(Error::argument(message));
    }
    let Some(starts) = desc.ragged() else {
        return Ok(Selection(vec![Slice::Index(i64::try_from(number).unwrap_or(i64::MAX))]));
    };
    let range = usize::try_from(number).ok().and_then(|k| starts.get(k..)?.first_chunk());
    let [from, to] = range.ok_or_else(|| Error::argument("the table of elements is too short"))?;
    Ok(Selection(vec![Slice::range(*from, *to)]))
}

/// The array and the part of it that are meant. A lone word is a name or, in a file with one
/// array, a selection.
pub(super) fn choose<'a>(
    tree: &'a Tree,
    name: Option<&str>,
    selection: Option<&str>,
) -> Result<(&'a Node, &'a ArrayDesc, Selection)> {
    let ((node, desc), selection) = match (name, selection) {
        (None, _) => (only(tree)?, Selection::all()),
        (Some(name), Some(selection)) => (named(tree, name)?, selection.parse()?),
        (Some(word), None) => match (named(tree, word), word.parse::<Selection>()) {
            // A bare number that is neither meant an object.
            (Err(missing), Ok(selection)) => match only(tree) {
                Err(_) if word.parse::<u64>().is_ok() => return Err(missing),
                one => (one?, selection),
            },
            (found, _) => (found?, Selection::all()),
        },
    };
    Ok((node, desc, selection))
}

fn named<'a>(tree: &'a Tree, name: &str) -> Result<(&'a Node, &'a ArrayDesc)> {
    let node = tree.node(tree.find(name)?);
    if let Some(desc) = &node.array {
        return Ok((node, desc));
    }
    let inside = format!("{}/", node.path);
    let names = tree.arrays().map(|(_, n, _)| &n.path).filter(|p| p.starts_with(&inside));
    Err(which(format!("\"{name}\" is a group; name an array"), names))
}

pub(super) fn only(tree: &Tree) -> Result<(&Node, &ArrayDesc)> {
    let mut arrays = tree.arrays();
    match (arrays.next(), arrays.next()) {
        (Some((_, node, desc)), None) => Ok((node, desc)),
        (None, _) => Err(Error::argument("there is no array in this file")),
        _ => {
            let message = format!("there are {} arrays; name one", tree.arrays().count());
            Err(which(message, tree.arrays().map(|(_, node, _)| &node.path)))
        }
    }
}

fn which<'a>(message: String, names: impl Iterator<Item = &'a String>) -> Error {
    let mut names: Vec<&str> = names.map(String::as_str).take(NAMES + 1).collect();
    let more = names.len() > NAMES;
    names.truncate(NAMES);
    let error = Error::argument(message);
    if names.is_empty() {
        return error;
    }
    error.hint(format!("for example {}{}", names.join(", "), if more { ", ..." } else { "" }))
}

/// The array, in the frame that was asked for or in the only one there is.
pub(super) fn open(
    file: &Dataset,
    desc: &ArrayDesc,
    frame: Option<u64>,
    context: &Context,
) -> Result<(Option<u64>, Array)> {
    let tree = file.tree();
    let table = match &tree.resolve(desc)?.layout {
        Layout::PerFrame(table) => Some(table),
        _ => None,
    };
    let frame = match (table.map(|table| table.len()), frame) {
        (None, None) => return Ok((None, file.open_array(desc)?)),
        (None, Some(_)) => {
            return Err(Error::argument("this array has no frames").hint("leave --frame away"));
        }
        (Some(_), Some(frame)) => frame,
        (Some(1), None) => 0,
        (Some(n), None) => {
            return Err(Error::argument(format!("this array has {n} frames; name one"))
                .hint("for example --frame 0; `cat` prints several with --frames 0:10"));
        }
    };
    if let Some(array) = file.open_array_in_frame(desc, frame)? {
        return Ok((Some(frame), array));
    }
    Err(Error::argument(format!("frame {frame} does not have this array")))
}
