//! `spile taf convert`.

use std::collections::HashMap;

use spile::dtype::DType;
use spile::layout::{ArrayDesc, COLUMN, Coord, Layout, Linear};
use spile::read::Array;
use spile::recording::SEGMENT;
use spile::select::Selection;
use spile::semantics::{Role, Semantics};
use spile::shape::{Order, Shape};
use spile::tree::{Attrs, Node, ROOT, Tree, Value};
use spile::wire::ByteOrder;
use spile_dig::SampleFormat;
use spile_taf::metadata_line;
use spile_taf::ops::{self, Create};

use super::make::data_columns;
use super::report;
use crate::cmd::prelude::*;
use crate::context::{Entry, expand};

/// Name of the array of a TAF file.
const DATA: &str = "data";

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of the command line.
pub(crate) struct ConvertArgs {
    /// Files or patterns
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output path, for one file with one array [default: NAME.taf next to the input]
    #[arg(short, long, value_name = "OUTPUT")]
    output: Option<PathBuf>,
    /// Write the channels of a file as the columns of one TAF file
    #[arg(long)]
    stack: bool,
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
    // Inputs that would have the same output keep their extension: x.wfm.taf and x.csv.taf.
    let mut users: HashMap<PathBuf, usize> = HashMap::new();
    for path in args.files.iter().flat_map(|file| expand(file)).flatten() {
        *users.entry(path.with_extension("")).or_default() += 1;
    }
    let mut some = false;
    let exit = context.each_file(&args.files, out, |entry, out| {
        let file = super::as_one_array(args.open(entry.path, context)?, context);
        let mut base = entry.path.with_extension("");
        if users.get(&base).is_some_and(|users| *users > 1) {
            base = entry.path.to_path_buf();
        }
        let outputs = if args.stack {
            vec![(String::new(), Piece::stacked(&file, entry.path, context)?)]
        } else {
            Piece::each(&file)?
        };
        let outputs = match args.output {
            Some(_) => vec![single(outputs, &entry, context)?],
            None => outputs,
        };
        for (suffix, piece) in outputs {
            let mut name = base.file_name().unwrap_or_default().to_os_string();
            name.push(format!("{suffix}.taf"));
            let target = args.output.clone().unwrap_or_else(|| base.with_file_name(name));
            if target == entry.path {
                return Err(Error::argument("the file is already TAF; nothing was written"));
            }
            let clipped = piece.write(&file, &target, &entry.name(), args)?;
            some = true;
            report(&target, None, Some(clipped), context, out)?;
        }
        Ok(())
    })?;
    // Some arrays of a file may have been written before it failed.
    Ok(if exit == Exit::Error && some { Exit::Partial } else { exit })
}

/// The array for the output of -o: the only one that is not a coordinate of others.
fn single(
    outputs: Vec<(String, Piece)>,
    entry: &Entry<'_>,
    context: &Context,
) -> Result<(String, Piece)> {
    let (mut main, others): (Vec<_>, Vec<_>) =
        outputs.into_iter().partition(|(_, piece)| !piece.is_coordinate);
    match (main.pop(), main.len()) {
        (Some(one), 0) if !entry.many => {
            for (_, other) in others {
                context.warn(entry.path, &format!("not written: {} (a coordinate)", other.title));
            }
            Ok(one)
        }
        _ => {
            let error = Error::argument("-o requires one file with one array");
            Err(error.hint("`--stack` writes the channels of a file as columns"))
        }
    }
}

/// The array of an output file.
struct Piece {
    /// First line of the comments.
    title: String,
    /// The array, with its first index fastest.
    desc: ArrayDesc,
    attrs: Attrs,
    /// Columns of a stacked array.
    columns: Vec<Array>,
    /// Other arrays have it as coordinate.
    is_coordinate: bool,
}

impl Piece {
    /// The arrays of a file, with the end of the name of each file: a number for several arrays, and the name for
    /// coordinates of others.
    fn each(file: &Dataset) -> Result<Vec<(String, Self)>> {
        let tree = file.tree();
        let main = tree.main_arrays().filter(|(_, node, _)| !node.attrs.contains("bit"));
        let main: Vec<_> = main.map(|(id, ..)| id).collect();
        let mut outputs = Vec::new();
        let mut number = 0;
        // Digital lines are bits of the samples; `--stack` writes them.
        for (id, node, desc) in tree.arrays().filter(|(_, node, _)| !node.attrs.contains("bit")) {
            let is_main = main.contains(&id);
            number += usize::from(is_main);
            let suffix = match (is_main, main.len()) {
                (true, 1) => String::new(),
                (true, _) => format!("-{number}"),
                (false, _) => format!("-{}", node.path.replace('/', "-")),
            };
            outputs.push((suffix, Self::of(node, tree.resolve(desc)?, !is_main)));
        }
        Ok(outputs)
    }

    fn of(node: &Node, desc: &ArrayDesc, is_coordinate: bool) -> Self {
        let mut attrs = node.attrs.clone();
        attrs.remove("coordinates");
        if let (true, Some(Value::List(names))) = (desc.has_grid_column(), attrs.get("columns")) {
            // The column of the grid is not written.
            let names = names.iter().skip(1).cloned().collect();
            attrs.set("columns", Value::List(names));
        }
        let mut desc = desc.clone();
        let of_segments = desc.shape.rank() == 2
            && desc.order() == Order::C
            && desc.dims.first().is_some_and(|name| name == SEGMENT);
        if let Some(layout) = desc.layout.in_order(Order::F).filter(|_| of_segments) {
            // The first dimension of TAF is the time; each segment is a column.
            let lengths: Vec<u64> = desc.shape.lengths().iter().rev().copied().collect();
            (desc.shape, desc.layout) = (Shape::new(lengths), layout);
            desc.dims.reverse();
            desc.coords.reverse();
        }
        if !attrs.contains("long_name") {
            attrs.push("long_name", node.path.as_str());
        }
        Self { title: node.path.clone(), desc, attrs, columns: Vec::new(), is_coordinate }
    }

    /// All channels of a file with the same length and grid as columns. Fails if channels differ in either.
    fn stacked(file: &Dataset, path: &Path, context: &Context) -> Result<Self> {
        let tree = file.tree();
        let is_trace = |desc: &ArrayDesc| desc.semantics().role == Role::Trace;
        let mut channels = Vec::new();
        for (_, node, desc) in tree.main_arrays() {
            let desc = tree.resolve(desc)?;
            if is_trace(desc) && desc.shape.rank() == 1 && desc.dtype.is_real() {
                channels.push((node, desc));
            } else {
                context.warn(path, &format!("not written: {} (not a channel)", node.path));
            }
        }
        let [(first, like), others @ ..] = &channels[..] else {
            let error = Error::argument("the file has no channels of one dimension");
            return Err(error.hint("without `--stack` each array is one TAF file"));
        };
        for (node, desc) in others {
            if (&desc.shape, &desc.coords) != (&like.shape, &like.coords) {
                let message = format!(
                    "\"{}\" and \"{}\" differ in length or time base",
                    first.path, node.path
                );
                let error = Error::argument(message);
                return Err(error.hint("without `--stack` each channel is one TAF file"));
            }
        }
        let text = |node: &Node| Value::from(node.attrs.get_str("units").unwrap_or_default());
        let units: Vec<Value> = channels.iter().map(|(node, _)| text(node)).collect();
        let names = channels.iter().map(|(node, _)| Value::from(node.path.as_str())).collect();
        let mut attrs = Attrs::from([("columns", Value::List(names))]);
        match &units[..] {
            [one, rest @ ..] if rest.iter().all(|unit| unit == one) => {
                attrs.set("units", one.clone());
            }
            _ => attrs.set("column_units", Value::List(units)),
        }
        // Attributes that all channels share.
        for (name, value) in &first.attrs {
            let shared = others.iter().all(|(node, _)| node.attrs.get(name) == Some(value));
            if shared && !attrs.contains(name) {
                attrs.push(name, value.clone());
            }
        }
        let columns: Result<Vec<Array>> =
            channels.iter().map(|(_, desc)| file.open_array(desc)).collect();
        let alike = |desc: &ArrayDesc| (desc.dtype, desc.map) == (like.dtype, like.map);
        let (dtype, map) = if channels.iter().all(|(_, desc)| alike(desc)) {
            (like.dtype, like.map)
        } else {
            (DType::F64, None)
        };
        let length = like.shape.lengths().first().copied().unwrap_or(0);
        let shape = Shape::new([length, channels.len() as u64]);
        let zeros = vec![0; dtype.size()];
        let mut desc = ArrayDesc::new(dtype, shape, Layout::Fill(zeros.into()));
        desc.dims = like.dims.iter().cloned().chain([COLUMN.into()]).collect();
        desc.coords = like.coords.iter().cloned().chain([Coord::None]).collect();
        desc.map = map;
        let title = format!("{} channels", channels.len());
        let desc = desc.with_semantics(Semantics::role(Role::Trace));
        Ok(Self { title, desc, attrs, columns: columns?, is_coordinate: false })
    }

    /// Writes the array with its grid; attributes become comments, for people and as metadata. Returns the number of
    /// clipped values.
    fn write(self, file: &Dataset, target: &Path, name: &str, args: &ConvertArgs) -> Result<u64> {
        let Self { title, mut desc, attrs, columns, .. } = self;
        let dtype = ops::type_for(desc.dtype).ok_or_else(|| {
            Error::argument(format!("TAF does not support {} elements", desc.dtype))
        })?;
        let mut comments = format!("{title} of {name}\n");
        for (name, value) in &attrs {
            comments.push_str(&format!("{name}: {value}").replace(['\n', '\r'], " "));
            comments.push('\n');
        }
        let part = if desc.has_grid_column() { data_columns() } else { Selection::all() };
        let (map, physical): (Option<Linear>, ArrayDesc) = (desc.map, desc.clone());
        // A TAF file has at least two dimensions, all with a grid; without coordinates it is 1, 2, 3, ...
        if let [length] = *desc.shape.lengths() {
            desc.shape = Shape::new([length, 1]);
            desc.dims.push("dim2".into());
            desc.coords.push(Coord::None);
        }
        for coord in &mut desc.coords {
            if !matches!(coord, Coord::Uniform { .. }) {
                *coord = Coord::Uniform { start: 1.0, step: 1.0 };
            }
        }
        let grid = |coord: &Coord| match coord {
            Coord::Uniform { start, step } => (*start, *step),
            Coord::None | Coord::Node(_) => (1.0, 1.0),
        };
        let grids = desc.coords.iter().map(grid).collect();
        // The metadata describe the array; its values are not read from here.
        desc.layout = Layout::Fill(vec![0; desc.dtype.size()].into());
        let mut tree = Tree::new(file.limits());
        let id = tree.add_array(ROOT, DATA, desc)?;
        tree.set_attrs(id, attrs)?;
        let content = Dataset::new(file.source().clone(), tree);
        comments.push_str(&metadata_line(&content, id)?);
        let comments = comments.into_bytes();
        let options = Create { dtype, grids, comments, overwrite: overwrite(args.overwrite) };
        if columns.is_empty() {
            ops::create(target, &file.open_array(&physical)?, &part, &options)
        } else {
            ops::create_columns(target, &columns, map, &options)
        }
    }
}
