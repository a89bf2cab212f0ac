//! `spile cat`.

use spile::error::ErrorKind;
use spile::layout::ArrayDesc;
use spile::read::{Array, Axes};
use spile::select::{Selection, Slice};
use spile::tree::{Node, Tree};
use spile_ops::Pick;
use spile_ops::cat::{self, Csv, Values};

use crate::cmd::prelude::*;

/// Number of names in the hint of an ambiguous argument.
const NAMES: usize = 5;

/// Print the values of an array or of a part of it.
///
/// A selection has the syntax of NumPy: '0:100, 3', '::10', '-5:', '..., 0'. Indices count from 0. Frames
/// are the first dimension of an array that has frames: '-1' is the last frame, '0:10, :, 2' a column of the
/// first ten frames. Without a selection all frames are printed. A frame that does not store the array has the
/// values that its format defines, for example those of frame 0 (HOOMD). Each line is a row; columns are separated by
/// tabs. The last index varies fastest, independent of the order in the file.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Options of the command line.
pub(crate) struct CatArgs {
    /// File; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Path or native id of the array; optional if the file has one array
    // Two arguments with one value each: a list that allows hyphens would accept options as values.
    #[arg(value_name = "NAME", allow_hyphen_values = true)]
    name: Option<String>,
    /// Part of the array [default: all]
    #[arg(value_name = "SELECTION", allow_hyphen_values = true)]
    selection: Option<String>,
    /// Write little-endian bytes instead of text
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Print comma-separated values
    #[arg(long, conflicts_with_all = ["json", "raw"])]
    csv: bool,
    /// Begin with a line of names and units
    #[arg(long, requires = "csv")]
    header: bool,
    /// Print one line per element, with the coordinates of all dimensions
    #[arg(long, requires = "csv")]
    coords: bool,
    /// Print one frame; the selection applies to that frame. -1 is the last
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    frame: Option<i64>,
    /// Print frames, as a slice: 0:100, ::10; the selection applies to each frame
    #[arg(long, value_name = "A:B:C", conflicts_with = "frame", allow_hyphen_values = true)]
    frames: Option<String>,
    /// Print one element, counted from 0, also if the elements have different lengths
    #[arg(long, value_name = "N", conflicts_with = "selection")]
    element: Option<u64>,
    /// Print stored values, without scaling, and only frames that store the array
    #[arg(long)]
    stored: bool,
}

impl CatArgs {
    /// The positional arguments that may start with a hyphen.
    pub(crate) fn positionals(&self) -> [Option<&str>; 2] {
        [self.name.as_deref(), self.selection.as_deref()]
    }

    /// The frames to print. Without --frame and --frames they are the first dimension of the selection.
    fn frames(&self, selection: &mut Selection) -> Result<Pick> {
        let all = Pick::default();
        match (self.frame, &self.frames) {
            (Some(frame), _) => all.with_frames(&frame.to_string()),
            (None, Some(frames)) => all.with_frames(frames),
            (None, None) => Ok(match split_frames(selection) {
                Some(slice) => all.with_frame_slice(slice),
                None => all,
            }),
        }
    }
}

pub(crate) fn run(args: &CatArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_path(vec![Ok(args.file.clone())], out, |entry, out| {
        let opened = context.open(entry.path)?;
        let file = if args.stored { opened } else { opened.effective() };
        let tree = file.tree();
        let (node, desc, mut selection) =
            resolve(tree, args.name.as_deref(), args.selection.as_deref())?;
        let resolved = tree.resolve(desc)?;
        let (frames, single) = match resolved.layout.frames() {
            Some(table) => {
                let pick = args.frames(&mut selection)?;
                let single = pick.is_one_frame() || table.len() == 1;
                (Some(pick.frames(table.len())?), single)
            }
            None if args.frame.is_some() || args.frames.is_some() => {
                return Err(Error::argument(format!("\"{}\" has no frames", node.path)));
            }
            None => (None, true),
        };
        if let (None, Some(number)) = (&frames, args.element) {
            selection = element(resolved, number)?;
        }
        let part = Part { file: &file, node, desc, selection };
        let Some(frames) = frames else {
            let array = file.open_array(desc).map_err(|e| part.locate(e))?;
            return part.print(args, entry, None, args.header, &array, context, out);
        };
        let mut header = args.header;
        for frame in frames {
            let array = file.open_array_in_frame(desc, frame).map_err(|e| part.locate(e))?;
            let Some(array) = array else {
                if single {
                    let message = format!("frame {frame} does not have \"{}\"", node.path);
                    return Err(Error::argument(message));
                }
                continue;
            };
            if !single && !args.raw && !args.csv && !context.json {
                match array.shape().rank() {
                    0 => write!(out, "{frame}\t")?,
                    _ => writeln!(out, "# frame {frame}")?,
                }
            }
            // One frame of a CSV file has no column of frames.
            let frame = (!single || context.json).then_some(frame);
            part.print(args, entry, frame, header, &array, context, out)?;
            header = false;
        }
        Ok(())
    })
}

/// A selection of an array of a file.
struct Part<'a> {
    file: &'a Dataset,
    node: &'a Node,
    desc: &'a ArrayDesc,
    selection: Selection,
}

impl Part<'_> {
    /// Prints the values of the array, or of one of its frames.
    #[allow(clippy::too_many_arguments)] // The options of the output.
    fn print(
        &self,
        args: &CatArgs,
        entry: Entry<'_>,
        frame: Option<u64>,
        header: bool,
        array: &Array,
        context: &Context,
        out: &mut Output,
    ) -> Result<()> {
        let Self { file, node, desc, selection } = self;
        let values = if args.stored { Values::Stored } else { Values::Mapped };
        let written = if args.csv {
            let options = Csv { header, coords: args.coords, frame };
            cat::csv(file, (node, desc), array, selection, (values, options), out)
        } else if context.json {
            let shape = array.select(selection, Axes::Stored)?.shape();
            let mut document = out.document_of(entry, file)?;
            document.field("path", &node.path)?;
            document.some("id", node.id.as_ref())?;
            document.some("frame", frame.as_ref())?;
            document.field("dtype", &cat::dtype(array, values).to_string())?;
            document.field("shape", shape.lengths())?;
            let written = document.raw("values", |out| cat::json(array, selection, values, out));
            written.and_then(|()| document.end())
        } else {
            let write = if args.raw { cat::raw } else { cat::text };
            write(array, selection, values, out)
        };
        written.map_err(|e| self.locate(e))
    }

    /// Adds the array to an error about its content.
    fn locate(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::Argument | ErrorKind::Io => error,
            _ => error.in_object(format!("\"{}\"", self.node.path)),
        }
    }
}

/// Removes and returns the slice of the frames, the first dimension of a selection.
fn split_frames(selection: &mut Selection) -> Option<Slice> {
    match selection.0.first() {
        None | Some(Slice::Rest) => None,
        Some(_) => Some(selection.0.remove(0)),
    }
}

/// The selection of one element. Elements of different lengths are stored as one sequence of bytes, in
/// which an element is a range.
fn element(desc: &ArrayDesc, number: u64) -> Result<Selection> {
    let count = desc.shape.lengths().first().copied().unwrap_or(0);
    if number >= count {
        let message = format!("no element {number}: the array has {count}");
        return Err(Error::argument(message));
    }
    let Some(starts) = desc.ragged() else {
        return Ok(Selection(vec![Slice::Index(i64::try_from(number).unwrap_or(i64::MAX))]));
    };
    let range = usize::try_from(number).ok().and_then(|k| starts.get(k..)?.first_chunk());
    let [from, to] =
        range.ok_or_else(|| Error::argument("the table of element sizes is too short"))?;
    Ok(Selection(vec![Slice::range(*from, *to)]))
}

/// Resolves the arguments NAME and SELECTION. A single argument is a name or, in a file with one array, a
/// selection.
pub(super) fn resolve<'a>(
    tree: &'a Tree,
    name: Option<&str>,
    selection: Option<&str>,
) -> Result<(&'a Node, &'a ArrayDesc, Selection)> {
    let ((node, desc), selection) = match (name, selection) {
        (None, _) => (only_array(tree)?, Selection::all()),
        (Some(name), Some(selection)) => (named_array(tree, name)?, selection.parse()?),
        (Some(arg), None) => match (named_array(tree, arg), arg.parse::<Selection>()) {
            // A number that is not an id of a file with several arrays.
            (Err(missing), Ok(selection)) => match only_array(tree) {
                Err(_) if arg.parse::<u64>().is_ok() => return Err(missing),
                one => (one?, selection),
            },
            (found, _) => (found?, Selection::all()),
        },
    };
    Ok((node, desc, selection))
}

fn named_array<'a>(tree: &'a Tree, name: &str) -> Result<(&'a Node, &'a ArrayDesc)> {
    let node = tree.node(tree.find(name)?);
    if let Some(desc) = &node.array {
        return Ok((node, desc));
    }
    let inside = format!("{}/", node.path);
    let names = tree.arrays().map(|(_, n, _)| &n.path).filter(|p| p.starts_with(&inside));
    Err(ambiguous(format!("\"{name}\" is a group; specify an array"), names))
}

/// The only array of a file that is not a coordinate of another.
pub(super) fn only_array(tree: &Tree) -> Result<(&Node, &ArrayDesc)> {
    let mut arrays = tree.main_arrays();
    match (arrays.next(), arrays.next()) {
        (Some((_, node, desc)), None) => Ok((node, desc)),
        (None, _) => Err(Error::argument("the file has no arrays")),
        _ => {
            let message = format!("the file has {} arrays; specify one", tree.arrays().count());
            Err(ambiguous(message, tree.arrays().map(|(_, node, _)| &node.path)))
        }
    }
}

/// An error with example names as hint.
fn ambiguous<'a>(message: String, names: impl Iterator<Item = &'a String>) -> Error {
    let mut names: Vec<&str> = names.map(String::as_str).take(NAMES + 1).collect();
    let more = names.len() > NAMES;
    names.truncate(NAMES);
    let error = Error::argument(message);
    if names.is_empty() {
        return error;
    }
    error.hint(format!("for example {}{}", names.join(", "), if more { ", ..." } else { "" }))
}

/// Opens an array in frame `frame`, which may be negative, or in the only frame. Returns the number of the
/// frame and the array.
pub(super) fn open_in_frame(
    file: &Dataset,
    node: &Node,
    desc: &ArrayDesc,
    frame: Option<i64>,
) -> Result<(Option<u64>, Array)> {
    let path = &node.path;
    let count = match file.tree().resolve(desc)?.layout.frames() {
        Some(table) => table.len(),
        None if frame.is_some() => {
            return Err(Error::argument(format!("\"{path}\" has no frames")));
        }
        None => return Ok((None, file.open_array(desc)?)),
    };
    if frame.is_none() && count != 1 {
        return Err(Error::argument(format!("\"{path}\" has {count} frames; specify one"))
            .hint("for example --frame 0, or --frame -1 for the last"));
    }
    let picked = Pick::default().with_frames(&frame.unwrap_or(0).to_string())?;
    let frame = picked.frames(count)?.next().unwrap_or(0);
    let array = file.open_array_in_frame(desc, frame)?;
    let missing = || Error::argument(format!("frame {frame} does not have \"{path}\""));
    Ok((Some(frame), array.ok_or_else(missing)?))
}
