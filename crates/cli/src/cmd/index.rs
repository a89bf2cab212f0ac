//! `spile index`.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use clap::Args;
use spile::error::{Error, Result};
use spile::Dataset;
use spile::format::{Writer, writer_of};
use spile::index::{Indexed, write_h5};
use spile::sink::{FolderSink, Sink};
use spile_ops::index::{DOCUMENTS, LeftOut};
use spile_ops::subset::subset;

use super::{not_standard_output, overwrite};
use crate::args::{OutputArgs, PickArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, text};

/// Let other programs read a file in place.
///
/// The index is Kerchunk's JSON: a virtual Zarr store whose chunks are ranges of the original, for
/// xarray and zarr. With --parquet it is the same as a folder of tables, of which a reader opens only
/// those it needs: better for very many chunks. With --h5 it is a small HDF5 file whose datasets are the bytes of the original
/// (external storage), for h5py, MATLAB and IDL. All of them name the original by its absolute path. Exit 3:
/// some arrays cannot be pointed to, and are listed; --strict refuses that.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // They are switches of the command line.
pub(crate) struct IndexArgs {
    /// The file, or a folder that is one dataset
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    /// As HDF5 with external storage
    #[arg(long, conflicts_with = "parquet")]
    h5: bool,
    /// As a folder of tables in Parquet
    #[arg(long)]
    parquet: bool,
    /// Refuse to leave out anything
    #[arg(long)]
    strict: bool,
    /// Replace the index if it exists
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    pick: PickArgs,
}

/// What an index has, and what it has not.
struct Done {
    arrays: u64,
    /// Bytes of the original that it points to, where they were counted.
    bytes: Option<u64>,
    left_out: Vec<LeftOut>,
}

pub(crate) fn run(args: &IndexArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    not_standard_output(args.output.path(), "an index")?;
    let place = |e: Error| e.with_path(&args.file);
    let opened = context.open(&args.file).map_err(place)?;
    let pick = args.pick.pick()?;
    let content = if pick.is_all() { opened } else { subset(&opened, &pick)? };
    let place = |e: Error| match content.format() {
        Some(format) => place(e).with_format(format.name),
        None => place(e),
    };
    let done = if args.parquet {
        let folder = folder(args)?;
        let done = tables(&content, &folder).map_err(place)?;
        refuse(args, &done)?;
        folder.commit()?;
        done
    } else {
        let mut sink = Sink::create(args.output.path(), overwrite(args.overwrite))?;
        let form = if args.h5 { hdf5 } else { kerchunk };
        let done = form(&content, &mut sink).map_err(place)?;
        refuse(args, &done)?;
        sink.commit()?;
        done
    };
    report(args, &done, context, out)?;
    Ok(if done.left_out.is_empty() { Exit::Yes } else { Exit::Partial })
}

/// With --strict, an error if anything was left out.
fn refuse(args: &IndexArgs, done: &Done) -> Result<()> {
    let (true, Some(first)) = (args.strict, done.left_out.first()) else { return Ok(()) };
    let count = text::count(done.left_out.len() as u64, "array");
    let message = format!("{count} would be left out, first {}: {}", first.path, first.why);
    Err(Error::argument(message)
        .with_path(&args.file)
        .hint("without --strict they are left out; `spile convert` to Zarr or HDF5 has them all"))
}

/// The new folder. One that is there is replaced with everything in it, so it has to be an index.
fn folder(args: &IndexArgs) -> Result<FolderSink> {
    let output = args.output.path();
    if args.overwrite && output.is_dir() && !output.join(DOCUMENTS).is_file() {
        return Err(Error::argument("is a folder of other files, no index; it is not replaced")
            .with_path(output));
    }
    FolderSink::create(output, overwrite(args.overwrite))
}

/// Kerchunk's tables.
fn tables(content: &Dataset, folder: &FolderSink) -> Result<Done> {
    let index = spile_ops::index(content)?;
    let Writer::File(parquet) = writer_of(spile::REGISTRY.named("parquet")?)? else {
        return Err(Error::unsupported("", "Parquet is not written as a file"));
    };
    let documents = index.documents().to_string();
    folder.file(DOCUMENTS)?.write_all(documents.as_bytes())?;
    for table in index.tables(content.limits()) {
        let (name, table) = table?;
        parquet.write(&table, &mut folder.file(&name)?)?;
    }
    Ok(Done { arrays: index.arrays, bytes: Some(index.bytes), left_out: index.left_out })
}

/// Kerchunk's JSON.
fn kerchunk(content: &Dataset, sink: &mut Sink) -> Result<Done> {
    let index = spile_ops::index(content)?;
    let mut buffered = BufWriter::new(sink);
    index.write(&mut buffered)?;
    buffered.flush()?;
    Ok(Done { arrays: index.arrays, bytes: Some(index.bytes), left_out: index.left_out })
}

/// HDF5 with external storage.
fn hdf5(content: &Dataset, sink: &mut Sink) -> Result<Done> {
    let Indexed { arrays, skipped } = write_h5(content, sink)?;
    let left_out = skipped.into_iter().map(|array| LeftOut { path: array.path, why: array.reason });
    Ok(Done { arrays: arrays as u64, bytes: None, left_out: left_out.collect() })
}

fn report(args: &IndexArgs, done: &Done, context: &Context, out: &mut Output) -> Result<()> {
    if context.json {
        let mut document = out.document()?;
        document.field("file", &args.file.to_string_lossy())?;
        document.field("output", &args.output.path().to_string_lossy())?;
        document.field("arrays", &done.arrays)?;
        document.field("bytes", &done.bytes)?;
        document.field("left_out", &done.left_out)?;
        return document.end();
    }
    for left in &done.left_out {
        context.warn(&args.file, &format!("left out: {}: {}", left.path, left.why));
    }
    if !context.quiet {
        let name = text::clean(&args.output.path().to_string_lossy()).into_owned();
        let arrays = text::count(done.arrays, "array");
        let size = done.bytes.map_or(String::new(), |bytes| format!(", {}", text::size(bytes)));
        writeln!(out, "{name}: {arrays}{size} in place")?;
    }
    Ok(out.flush()?)
}
