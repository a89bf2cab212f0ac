//! `spile index`.

use std::io::BufWriter;

use spile::format::{WriteOptions, Writer, writer_of};
use spile::index::{Indexed, write_h5};
use spile::sink::{FolderSink, Overwrite, Sink};
use spile_ops::index::{DOCUMENTS, LeftOut};
use spile_ops::subset::subset;

use crate::cmd::prelude::*;

/// Write an index that lets other programs read a file in place.
///
/// The default is Kerchunk JSON: a virtual Zarr store whose chunks are byte ranges of the original, for
/// xarray and zarr. --parquet writes the same references as a folder of Parquet tables that are loaded on
/// demand, for large numbers of chunks. --h5 writes a small HDF5 file with external storage, for h5py, MATLAB
/// and IDL. The index contains the absolute path of the original. A frame that does not store an array has the
/// values that its format defines, for example those of frame 0 (HOOMD). Arrays that cannot be referenced are
/// listed and the exit status is 3; with --strict that is an error.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of the command line.
pub(crate) struct IndexArgs {
    /// File, or folder that is one dataset
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    /// Write HDF5 with external storage
    #[arg(long, conflicts_with = "parquet")]
    h5: bool,
    /// Write a folder of Parquet tables
    #[arg(long)]
    parquet: bool,
    /// Fail if an array cannot be referenced
    #[arg(long)]
    strict: bool,
    /// Reference only frames that store an array, without values that a format defines for the others
    #[arg(long)]
    stored: bool,
    #[command(flatten)]
    pick: PickArgs,
}

/// The content of an index.
struct Done {
    arrays: u64,
    /// Referenced bytes, if counted.
    bytes: Option<u64>,
    left_out: Vec<LeftOut>,
}

pub(crate) fn run(args: &IndexArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    args.output.file()?;
    let locate = |e: Error| e.with_path(&args.file);
    let opened = context.open(&args.file).map_err(locate)?;
    let pick = args.pick.pick_of(&opened).map_err(locate)?;
    let picked = if pick.is_all() { opened } else { subset(&opened, &pick)? };
    let content = if args.stored { picked } else { picked.effective() };
    let locate = |e: Error| match content.format() {
        Some(format) => locate(e).with_format(format.name),
        None => locate(e),
    };
    let done = if args.parquet {
        let folder = folder(args)?;
        let done = write_parquet(&content, &folder).map_err(locate)?;
        check_strict(args, &done)?;
        folder.commit()?;
        done
    } else {
        let mut sink = Sink::create(args.output.path(), args.output.overwrite())?;
        let write = if args.h5 { write_hdf5 } else { write_json };
        let done = write(&content, &mut sink).map_err(locate)?;
        check_strict(args, &done)?;
        sink.commit()?;
        done
    };
    report(args, &done, context, out)?;
    Ok(if done.left_out.is_empty() { Exit::Yes } else { Exit::Partial })
}

/// With --strict, returns an error if an array was skipped.
fn check_strict(args: &IndexArgs, done: &Done) -> Result<()> {
    let (true, Some(first)) = (args.strict, done.left_out.first()) else { return Ok(()) };
    let count = text::count(done.left_out.len() as u64, "array");
    let message =
        format!("{count} cannot be referenced; the first is {}: {}", first.path, first.why);
    Err(Error::argument(message).with_path(&args.file).hint(
        "without --strict they are skipped; `spile convert` to Zarr or HDF5 copies all arrays",
    ))
}

/// Creates the output folder. An existing folder is replaced only if it is an index.
fn folder(args: &IndexArgs) -> Result<FolderSink> {
    let output = args.output.path();
    if args.output.overwrite() == Overwrite::Replace
        && output.is_dir()
        && !output.join(DOCUMENTS).is_file()
    {
        return Err(
            Error::argument("the folder is not an index and is not replaced").with_path(output)
        );
    }
    FolderSink::create(output, args.output.overwrite())
}

/// Writes Kerchunk references as Parquet tables.
fn write_parquet(content: &Dataset, folder: &FolderSink) -> Result<Done> {
    let index = spile_ops::index(content)?;
    let Writer::File(parquet) = writer_of(spile::REGISTRY.named("parquet")?)? else {
        return Err(Error::unsupported("", "this build cannot write Parquet"));
    };
    let documents = index.documents().to_string();
    folder.file(DOCUMENTS)?.write_all(documents.as_bytes())?;
    for table in index.tables(content.limits()) {
        let (name, table) = table?;
        parquet.write(&table, &mut folder.file(&name)?, &WriteOptions::default())?;
    }
    Ok(Done { arrays: index.arrays, bytes: Some(index.bytes), left_out: index.left_out })
}

/// Writes Kerchunk JSON.
fn write_json(content: &Dataset, sink: &mut Sink) -> Result<Done> {
    let index = spile_ops::index(content)?;
    let mut buffered = BufWriter::new(sink);
    index.write(&mut buffered)?;
    buffered.flush()?;
    Ok(Done { arrays: index.arrays, bytes: Some(index.bytes), left_out: index.left_out })
}

/// Writes HDF5 with external storage.
fn write_hdf5(content: &Dataset, sink: &mut Sink) -> Result<Done> {
    let Indexed { arrays, skipped } = write_h5(content, sink)?;
    let left_out = skipped.into_iter().map(|array| LeftOut { path: array.path, why: array.reason });
    Ok(Done { arrays: arrays as u64, bytes: None, left_out: left_out.collect() })
}

fn report(args: &IndexArgs, done: &Done, context: &Context, out: &mut Output) -> Result<()> {
    if context.json {
        return out.object(&[
            ("file", json!(args.file.to_string_lossy())),
            ("output", json!(args.output.path().to_string_lossy())),
            ("arrays", json!(done.arrays)),
            ("bytes", json!(done.bytes)),
            ("left_out", json!(done.left_out)),
        ]);
    }
    for left in &done.left_out {
        context.warn(&args.file, &format!("skipped: {}: {}", left.path, left.why));
    }
    if !context.quiet {
        let name = text::one_line(&args.output.path().to_string_lossy()).into_owned();
        let arrays = text::count(done.arrays, "array");
        let size = done.bytes.map_or(String::new(), |bytes| format!(", {}", text::size(bytes)));
        writeln!(out, "{name}: {arrays}{size} referenced")?;
    }
    Ok(out.flush()?)
}
