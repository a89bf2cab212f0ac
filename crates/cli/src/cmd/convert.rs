//! `spile convert`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use spile::error::{Error, Result};
use spile::format::{Format, Reader};
use spile_ops::convert::{self, convert};
use spile_ops::diff::Row;
use spile_ops::subset::Subset;

use super::{diff, overwrite};
use crate::args::PickArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, style, text};

/// Write a file as another format.
///
/// The new file's format is that of its name's ending, or -t. What the format cannot hold is told before
/// anything is written; --dry-run tells only that, --strict refuses it. The new file appears whole or not
/// at all. --verify reads it again and compares every value.
#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // They are switches of the command line.
pub(crate) struct ConvertArgs {
    /// The file; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The new file
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// The format of the new file
    #[arg(short, long, value_name = "FORMAT")]
    to: Option<String>,
    /// Tell what would be done and lost; write nothing
    #[arg(long)]
    dry_run: bool,
    /// Refuse to lose anything
    #[arg(long)]
    strict: bool,
    /// Read the new file and compare
    #[arg(long)]
    verify: bool,
    /// Replace the output file if it exists
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    pick: PickArgs,
}

pub(crate) fn run(args: &ConvertArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let format = convert::target(&spile::REGISTRY, args.to.as_deref(), &args.output)?;
    let opened = context.open(&args.file).map_err(|e| e.with_path(&args.file))?;
    let pick = args.pick.pick()?;
    let subset;
    let content: &dyn Reader = if pick.is_all() {
        &*opened.reader
    } else {
        subset = Subset::new(&*opened.reader, &pick, &context.limits)?;
        &subset
    };
    let place = |e: Error| e.with_path(&args.file);
    let losses = convert::losses(format, content, &args.output, &context.limits);
    let losses = losses.map_err(place)?;
    if args.strict && !losses.is_empty() {
        let name = format.info().name;
        let lost = text::count(losses.len() as u64, "thing");
        return Err(Error::argument(format!(
            "{lost} would be lost in {name}, first {}",
            told(&losses[0])
        ))
        .with_path(&args.file)
        .hint("--dry-run lists all of them; without --strict they are left out"));
    }
    let mut differences = Vec::new();
    if !args.dry_run {
        let replace = overwrite(args.overwrite);
        convert(format, content, &args.output, replace, &context.limits).map_err(place)?;
        if args.verify {
            let found = convert::verify(format, content, &args.output, &losses, &context.limits)?;
            differences = found.differences;
        }
    }
    report(args, format, content, &losses, &differences, context, out)?;
    Ok(if differences.is_empty() { Exit::Yes } else { Exit::No })
}

fn report(
    args: &ConvertArgs,
    format: &dyn Format,
    content: &dyn Reader,
    losses: &[Row],
    differences: &[Row],
    context: &Context,
    out: &mut Output,
) -> Result<()> {
    let bytes = std::fs::metadata(&args.output).map(|meta| meta.len()).ok();
    let arrays = content.tree().arrays().count() as u64;
    if context.json {
        let mut document = out.document()?;
        document.field("file", &args.file.to_string_lossy())?;
        document.field("output", &args.output.to_string_lossy())?;
        document.field("format", format.info().name)?;
        document.field("written", &!args.dry_run)?;
        document.field("arrays", &arrays)?;
        document.field("lost", losses)?;
        document.field("differences", differences)?;
        return document.end();
    }
    for loss in losses {
        context.warn(&args.file, &format!("lost: {}", told(loss)));
    }
    for difference in differences {
        let word = out.paint(style::BAD, "differs:");
        writeln!(out, "{word} {}", text::clean(&told(difference)))?;
    }
    if !context.quiet {
        let name = shown(&args.output);
        let what = text::count(arrays, "array");
        let title = format.info().name;
        match (args.dry_run, bytes) {
            (false, Some(bytes)) => {
                let checked = if args.verify && differences.is_empty() { ", verified" } else { "" };
                writeln!(out, "{name}: {title}, {what}, {}{checked}", text::size(bytes))?;
            }
            _ => writeln!(out, "{name}: would be {title}, {what}")?,
        }
    }
    Ok(out.flush()?)
}

fn told(row: &Row) -> String {
    let path = if row.path.is_empty() { "the file" } else { &row.path };
    format!("{path}: {}", diff::sentence(row))
}

fn shown(path: &Path) -> String {
    text::clean(&path.to_string_lossy()).into_owned()
}
