//! `spile gsd`: upgrade, trim, merge and append.

use spile_gsd::ops::{self, NameRule};
use spile_gsd::{File, Mode};
use spile_ops::Pick;

use crate::cmd::prelude::*;

#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    /// GSD files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Replace bytes of chunk names that are not UTF-8 by %XX
    #[arg(long)]
    utf8_names: bool,
}

pub(super) fn upgrade(args: &UpgradeArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let rule = if args.utf8_names { NameRule::Utf8 } else { NameRule::Keep };
    context.each_file(&args.files, out, |entry, out| {
        let before = File::open(entry.path, &context.limits)?.header().version_text();
        let done = ops::upgrade(entry.path, rule, &context.limits)?;
        if context.json {
            out.object(&[
                ("file", json!(entry.name())),
                ("from", json!(before)),
                ("to", json!("2.1")),
                ("chunks", json!(done.chunks)),
                ("steps", json!(done.steps)),
            ])?;
        } else if context.verbose {
            writeln!(out, "{}: {before} to 2.1", text::one_line(&entry.name()))?;
        }
        Ok(())
    })
}

#[derive(Debug, Args)]
pub(crate) struct TrimArgs {
    /// GSD file
    file: PathBuf,
    /// Frames to keep, as a slice: 5, 0:100, 0:100:10, -1
    #[arg(allow_hyphen_values = true)]
    frames: String,
    #[command(flatten)]
    new: NewFileArgs,
}

pub(super) fn trim(args: &TrimArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let file = File::open(&args.file, &context.limits)?;
    let frames = Pick::default().with_frames(&args.frames)?.frames(file.nframes()?)?;
    let mut frames = frames.peekable();
    if frames.peek().is_none() {
        return Err(Error::argument(format!("{} selects no frames", args.frames)));
    }
    let to = args.new.file()?;
    let count = ops::trim(&args.file, frames, to, args.new.overwrite(), &context.limits)?;
    report(to, count, context, out)
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// GSD files, in order
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    new: NewFileArgs,
}

pub(super) fn merge(args: &MergeArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let to = args.new.file()?;
    let frames = ops::merge(&args.files, to, args.new.overwrite(), &context.limits)?;
    report(to, frames, context, out)
}

#[derive(Debug, Args)]
pub(crate) struct AppendArgs {
    /// GSD file to extend
    file: PathBuf,
    /// GSD files with the same schema
    #[arg(required = true, value_name = "MORE")]
    more: Vec<PathBuf>,
}

pub(super) fn append(args: &AppendArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let mut frames = 0;
    for more in &args.more {
        frames += ops::append(&args.file, more, Mode::default(), &context.limits)?;
    }
    report(&args.file, frames, context, out)
}

/// Prints the result with --json or -v.
fn report(file: &Path, frames: u64, context: &Context, out: &mut Output) -> Result<Exit> {
    let file = file.to_string_lossy();
    if context.json {
        out.object(&[("file", json!(file)), ("frames", json!(frames))])?;
    } else if context.verbose {
        writeln!(out, "{}: {}", text::one_line(&file), text::count(frames, "frame"))?;
    }
    Ok(Exit::Yes)
}
