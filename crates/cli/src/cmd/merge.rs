//! `spile merge`.

use std::path::{Path, PathBuf};

use clap::Args;
use spile::error::{Error, Result};
use spile::format::Format;
use spile::{series, sink::Overwrite, source::Source};

use super::convert::{HowArgs, Job};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

/// Join the files of a run to one, a file a frame.
///
/// Dumps become frames in the order of their times; arrays may come and go and change their lengths. GSD
/// files have frames of their own, which follow each other. The new file is written as `convert` writes it.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Files of one format
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The new file
    #[arg(short, long, value_name = "OUTPUT")]
    output: PathBuf,
    #[command(flatten)]
    how: HowArgs,
}

pub(crate) fn run(args: &MergeArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let target = args.how.target(&args.output)?;
    let format = common_format(&args.files)?;
    let job = Job { from: &args.files[0], to: &args.output, format: target, how: &args.how };
    if format.info().name == "gsd" {
        // Frames of a GSD file may stand for what its first frame says: its own library's rules join
        // them, and what they give is written as anything.
        let folder = tempfile::tempdir_in(parent(&args.output))?;
        let whole = folder.path().join("merged.gsd");
        spile_gsd::ops::merge(&args.files, &whole, Overwrite::Never, &context.limits)?;
        let merged = context.open(&whole).map_err(Error::without_path)?;
        return job.run(&*merged.reader, context, out);
    }
    let folder = parent(&args.files[0]);
    let merged = series::open(format, folder, &args.files, &context.limits)?;
    context.tell(folder, &merged.findings);
    job.run(&merged, context, out)
}

/// The format that all files have.
fn common_format(files: &[PathBuf]) -> Result<&'static dyn Format> {
    let probe = |path: &PathBuf| {
        let source = Source::open(path)?;
        spile::REGISTRY.probe(&source).map_err(|e| e.with_path(path))
    };
    let first = probe(&files[0])?;
    for path in &files[1..] {
        let (one, other) = (first.info().name, probe(path)?.info().name);
        if one != other {
            let message = format!("this is {other}, the first file is {one}");
            return Err(Error::argument(message)
                .with_path(path)
                .hint("files of different formats are converted one by one"));
        }
    }
    Ok(first)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
