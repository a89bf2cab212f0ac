//! `spile hash`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use spile::Dataset;
use spile::error::Result;

use crate::args::PickArgs;
use crate::context::{Context, Entry};
use crate::exit::Exit;
use crate::print::{Output, text};

/// Print checksums of the content of files.
///
/// The digest of a file is independent of byte order, element order and compression. -v and --json add the
/// SHA-256 of every array: stored values, without scaling, as little-endian bytes in the element order of the
/// file. With --select or --frames only the checksums of arrays are printed.
#[derive(Debug, Args)]
pub(crate) struct HashArgs {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print checksums of native objects: sections, blocks, chunks, records
    #[arg(long, conflicts_with_all = ["select", "frames"])]
    native: bool,
    #[command(flatten)]
    pick: PickArgs,
}

pub(crate) fn run(args: &HashArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    context.each_file(&args.files, out, |entry, out| {
        let file = context.open(entry.path)?;
        match (args.native, context.json) {
            (true, true) => native_json(entry, &file, out)?,
            (true, false) => {
                out.heading(entry)?;
                spile_ops::hash::native(&file, &mut |row| {
                    line(&row.sha256, &row.path, row.frame, out)
                })?;
            }
            (false, true) => json(args, entry, &file, out)?,
            (false, false) => show(args, entry, &file, context, out)?,
        }
        Ok(Exit::Yes)
    })
}

fn native_json(entry: Entry<'_>, file: &Dataset, out: &mut Output) -> Result<()> {
    let mut document = out.document_of(entry, file)?;
    document.list("objects", |add| spile_ops::hash::native(file, add))?;
    document.end()
}

fn json(args: &HashArgs, entry: Entry<'_>, file: &Dataset, out: &mut Output) -> Result<()> {
    let pick = args.pick.pick()?;
    let mut document = out.document_of(entry, file)?;
    if pick.is_all() {
        document.field("digest", &spile_ops::content(file)?)?;
    }
    document.list("arrays", |add| spile_ops::hash(file, &pick, add))?;
    document.end()
}

fn show(
    args: &HashArgs,
    entry: Entry<'_>,
    file: &Dataset,
    context: &Context,
    out: &mut Output,
) -> Result<()> {
    let pick = args.pick.pick()?;
    if pick.is_all() {
        line(&spile_ops::content(file)?, &entry.name(), None, out)?;
        if !context.verbose {
            return Ok(());
        }
    } else {
        out.heading(entry)?;
    }
    spile_ops::hash(file, &pick, &mut |row| line(&row.sha256, &row.path, row.frame, out))
}

/// Prints a line in the format of `sha256sum`.
fn line(sum: &str, name: &str, frame: Option<u64>, out: &mut Output) -> Result<()> {
    write!(out, "{sum}  {}", text::one_line(name))?;
    if let Some(frame) = frame {
        write!(out, " [{frame}]")?;
    }
    writeln!(out)?;
    Ok(())
}
