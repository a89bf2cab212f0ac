//! `spile index`.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use clap::Args;
use spile::error::{Error, Result};
use spile::format::Reader;
use spile::index::{Indexed, write_h5};
use spile::limits::Limits;
use spile::sink::Sink;
use spile_ops::index::LeftOut;
use spile_ops::subset::Subset;

use super::overwrite;
use crate::args::PickArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, text};

/// Let other programs read a file in place.
///
/// The index is Kerchunk's JSON: a virtual Zarr store whose chunks are ranges of the original, for
/// xarray and zarr. With --h5 it is a small HDF5 file whose datasets are the bytes of the original
/// (external storage), for h5py, MATLAB and IDL. Both name the original by its absolute path. Exit 3:
/// some arrays cannot be pointed to, and are listed; --strict refuses that.
#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    /// The file, or a folder that is one dataset
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The new index
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// As HDF5 with external storage
    #[arg(long)]
    h5: bool,
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
    let place = |e: Error| e.with_path(&args.file);
    let opened = context.open(&args.file).map_err(place)?;
    let pick = args.pick.pick()?;
    let subset;
    let content: &dyn Reader = if pick.is_all() {
        &*opened.reader
    } else {
        subset = Subset::new(&*opened.reader, &pick, &context.limits)?;
        &subset
    };
    let mut sink = Sink::create(&args.output, overwrite(args.overwrite))?;
    let form = if args.h5 { hdf5 } else { kerchunk };
    let done = form(content, &mut sink, &context.limits)
        .map_err(|e| place(e).with_format(opened.format.info().name))?;
    if let (true, Some(first)) = (args.strict, done.left_out.first()) {
        let count = text::count(done.left_out.len() as u64, "array");
        let message = format!("{count} would be left out, first {}: {}", first.path, first.why);
        return Err(Error::argument(message).with_path(&args.file).hint(
            "without --strict they are left out; `spile convert` to Zarr or HDF5 has them all",
        ));
    }
    sink.commit()?;
    report(args, &done, context, out)?;
    Ok(if done.left_out.is_empty() { Exit::Yes } else { Exit::Partial })
}

/// Kerchunk's JSON.
fn kerchunk(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<Done> {
    let index = spile_ops::index(content, limits)?;
    let mut buffered = BufWriter::new(sink);
    index.write(&mut buffered)?;
    buffered.flush()?;
    Ok(Done { arrays: index.arrays, bytes: Some(index.bytes), left_out: index.left_out })
}

/// HDF5 with external storage.
fn hdf5(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<Done> {
    let Indexed { arrays, left } = write_h5(content, sink, limits)?;
    let left_out = left.into_iter().map(|left| LeftOut { path: left.path, why: left.why });
    Ok(Done { arrays: arrays as u64, bytes: None, left_out: left_out.collect() })
}

fn report(args: &IndexArgs, done: &Done, context: &Context, out: &mut Output) -> Result<()> {
    if context.json {
        let mut document = out.document()?;
        document.field("file", &args.file.to_string_lossy())?;
        document.field("output", &args.output.to_string_lossy())?;
        document.field("arrays", &done.arrays)?;
        document.field("bytes", &done.bytes)?;
        document.field("left_out", &done.left_out)?;
        return document.end();
    }
    for left in &done.left_out {
        context.warn(&args.file, &format!("left out: {}: {}", left.path, left.why));
    }
    if !context.quiet {
        let name = text::clean(&args.output.to_string_lossy()).into_owned();
        let arrays = text::count(done.arrays, "array");
        let size = done.bytes.map_or(String::new(), |bytes| format!(", {}", text::size(bytes)));
        writeln!(out, "{name}: {arrays}{size} in place")?;
    }
    Ok(out.flush()?)
}
