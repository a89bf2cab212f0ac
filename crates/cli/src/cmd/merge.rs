//! `spile merge`.

use spile::format::Format;
use spile::sink::TemporaryFolder;
use spile::{Dataset, Limits, Source};

use super::convert::{Job, WriteArgs};
use crate::cmd::prelude::*;

/// Combine the files of a run; each input becomes one frame.
///
/// Frames are sorted by time. Arrays may be missing in some files, and their lengths may differ. Files that
/// contain frames (GSD) are concatenated. The options are those of `convert`.
#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Files of one format
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output path
    #[arg(short, long, value_name = "OUTPUT")]
    output: PathBuf,
    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(args: &MergeArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let target = args.write.target(&args.output)?;
    let format = probe_common(&args.files, &context.limits)?;
    let job = Job { from: &args.files[0], to: &args.output, format: target, write: &args.write };
    if let Some(concatenator) = format.abilities().concatenator {
        // Files that contain frames are concatenated by the rules of their format.
        let folder = TemporaryFolder::create(parent(&args.output))?;
        let target = folder.path().join("merged");
        concatenator.concatenate(&args.files, &target, &context.limits)?;
        let merged = context.open(&target).map_err(Error::without_path)?;
        return job.run(&merged, context, out);
    }
    let folder = parent(&args.files[0]);
    let merged = Dataset::open_series(format, folder, &args.files, &context.options())?;
    context.print_warnings(folder, merged.warnings());
    job.run(&merged, context, out)
}

/// The common format of all files.
fn probe_common(files: &[PathBuf], limits: &Limits) -> Result<&'static dyn Format> {
    let probe = |path: &PathBuf| {
        let source = Source::open(path)?;
        spile::REGISTRY.probe_within(&source, limits).map_err(|e| e.with_path(path))
    };
    let first = probe(&files[0])?;
    for path in &files[1..] {
        let (one, other) = (first.info().name, probe(path)?.info().name);
        if one != other {
            let message = format!("expected {one} as in the first file, found {other}");
            return Err(Error::argument(message)
                .with_path(path)
                .hint("convert files of different formats one by one"));
        }
    }
    Ok(first)
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
