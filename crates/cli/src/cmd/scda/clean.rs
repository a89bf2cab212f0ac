//! `spile scda clean`.

use std::fs;
use std::io::Read as _;
use std::time::{Duration, SystemTime};

use crate::cmd::prelude::*;

/// List and remove unfinished files of parallel jobs that were killed.
///
/// An MPI job writes `.NAME.XXXXXX.part` until the file is complete. The file remains if the job is killed. Files that a
/// process of this machine has open, or that were modified recently, are listed but not removed: a job may still
/// write them.
#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// Folders
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Minutes without modification after which a file is removed
    #[arg(long, value_name = "MINUTES", default_value = "60")]
    older: u64,
    /// List the files without removing them
    #[arg(long)]
    dry_run: bool,
}

/// An unfinished file.
#[derive(Serialize)]
struct Found {
    file: String,
    bytes: u64,
    /// Minutes since the last modification.
    minutes: u64,
    removed: bool,
    /// Why it was not removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<&'static str>,
}

pub(super) fn run(args: &CleanArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    for folder in &args.folders {
        let entries = fs::read_dir(folder).map_err(|e| Error::io(folder, e))?;
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(|e| Error::io(folder, e))?.path();
            if is_unfinished(&path) {
                paths.push(path);
            }
        }
        paths.sort();
        for path in paths {
            let found = clean(args, &path)?;
            if context.json {
                out.json(&found)?;
            } else if !context.quiet {
                let (file, size) = (text::one_line(&found.file), text::size(found.bytes));
                let state = if found.removed { "removed" } else { found.kept.unwrap_or("listed") };
                writeln!(out, "{file}: {size}, modified {} min ago: {state}", found.minutes)?;
            }
        }
    }
    Ok(Exit::Yes)
}

fn clean(args: &CleanArgs, path: &Path) -> Result<Found> {
    let meta = fs::metadata(path).map_err(|e| Error::io(path, e))?;
    let age = meta.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
    let age = age.unwrap_or(Duration::ZERO);
    let kept = if age < Duration::from_secs(args.older.saturating_mul(60)) {
        Some("kept, it was modified recently")
    } else if is_open(path) {
        Some("kept, a process has it open")
    } else {
        None
    };
    let removed = kept.is_none() && !args.dry_run;
    if removed {
        fs::remove_file(path).map_err(|e| Error::io(path, e))?;
    }
    let (file, bytes) = (path.to_string_lossy().into_owned(), meta.len());
    Ok(Found { file, bytes, minutes: age.as_secs() / 60, removed, kept })
}

/// Whether a file has the temporary name of an unfinished file and is empty or begins like an scda file.
fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let middle = name.strip_prefix('.').and_then(|name| name.strip_suffix(".part"));
    let random = middle.and_then(|middle| middle.rsplit_once('.')).map_or("", |(_, random)| random);
    let named = random.len() == 6 && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !named || !fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file()) {
        return false;
    }
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(5).read_to_end(&mut start));
    // The header of a file whose disk space is reserved may not be written yet.
    read.is_ok() && (start == b"scdat" || start.iter().all(|byte| *byte == 0))
}

/// Whether a process of this machine has the file open, as far as can be seen.
fn is_open(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut handles = processes.filter_map(|process| fs::read_dir(process.path().join("fd")).ok());
    handles.any(|all| {
        all.flatten().any(|handle| fs::read_link(handle.path()).is_ok_and(|to| to == path))
    })
}
