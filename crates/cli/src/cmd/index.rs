//! `spile index`.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use clap::Args;
use spile::error::{Error, Result};
use spile::format::Reader;
use spile::sink::Sink;
use spile_ops::subset::Subset;

use super::{index_h5, overwrite};
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
    #[arg(long, conflicts_with_all = ["strict", "select", "frames"])]
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

pub(crate) fn run(args: &IndexArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    if args.h5 {
        let replace = overwrite(args.overwrite);
        return index_h5::run(&args.file, &args.output, replace, context, out);
    }
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
    let index = spile_ops::index(content, &context.limits).map_err(place)?;
    if let (true, Some(first)) = (args.strict, index.left_out.first()) {
        let count = text::count(index.left_out.len() as u64, "array");
        let message = format!("{count} would be left out, first {}: {}", first.path, first.why);
        return Err(Error::argument(message)
            .with_path(&args.file)
            .hint("without --strict they are left out; `spile convert` to Zarr has them all"));
    }
    let mut sink = Sink::create(&args.output, overwrite(args.overwrite))?;
    let mut buffered = BufWriter::new(&mut sink);
    index.write(&mut buffered)?;
    buffered.flush()?;
    drop(buffered);
    sink.commit()?;
    let exit = if index.left_out.is_empty() { Exit::Yes } else { Exit::Partial };
    if context.json {
        let mut document = out.document()?;
        document.field("file", &args.file.to_string_lossy())?;
        document.field("output", &args.output.to_string_lossy())?;
        document.field("arrays", &index.arrays)?;
        document.field("bytes", &index.bytes)?;
        document.field("left_out", &index.left_out)?;
        document.end()?;
        return Ok(exit);
    }
    for left in &index.left_out {
        context.warn(&args.file, &format!("left out: {}: {}", left.path, left.why));
    }
    if !context.quiet {
        let name = text::clean(&args.output.to_string_lossy()).into_owned();
        let (arrays, size) = (text::count(index.arrays, "array"), text::size(index.bytes));
        writeln!(out, "{name}: {arrays}, {size} in place")?;
        out.flush()?;
    }
    Ok(exit)
}
