//! `spile index`.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use clap::Args;
use spile::error::{Error, Result};
use spile::format::Reader;
use spile::sink::Sink;
use spile_ops::subset::Subset;

use super::overwrite;
use crate::args::PickArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, text};

/// Write where the arrays of a file lie, so that xarray and zarr open the original bytes.
///
/// The index is Kerchunk's JSON: a virtual Zarr store whose chunks are ranges of the file, which
/// must stay where it is. Arrays that cannot be expressed like this are named and left out; --strict
/// refuses them.
#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    /// The file, or a folder that is one dataset
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The new index
    #[arg(value_name = "OUT.json")]
    output: PathBuf,
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
    if context.json {
        let mut document = out.document()?;
        document.field("file", &args.file.to_string_lossy())?;
        document.field("output", &args.output.to_string_lossy())?;
        document.field("arrays", &index.arrays)?;
        document.field("bytes", &index.bytes)?;
        document.field("left_out", &index.left_out)?;
        document.end()?;
        return Ok(Exit::Yes);
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
    Ok(Exit::Yes)
}
