//! `spile watch`.

use std::time::Duration;

use spile::format::Folder;
use spile::layout::ArrayDesc;
use spile::os::Stamp;
use spile::semantics::Role;
use spile_ops::watch::{Frame, Growth, frames, growth, watch};

use super::info::moment;
use crate::cmd::prelude::*;

/// Follow a run: print a line for every new frame until interrupted.
///
/// Of a file without frames, such as a TAF signal, a line is printed when an array has become longer. Frames of a trajectory are shown once they are committed; a dump in a folder once it no longer changes.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Trajectory, signal, or folder with the dumps of a run
    file: PathBuf,
    /// Polling interval in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Start with the existing frames
    #[arg(long)]
    all: bool,
    /// Stop after this many frames
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

fn stamp(path: &Path) -> Result<Stamp> {
    std::fs::metadata(path).map(|meta| Stamp::from(&meta)).map_err(|e| Error::io(path, e))
}

/// The stamps of all files of a dataset; files that are removed meanwhile are ignored.
fn stamps(path: &Path) -> Result<Vec<Stamp>> {
    if !path.is_dir() {
        return Ok(vec![stamp(path)?]);
    }
    Ok(Folder::open(path)?.files().iter().filter_map(|file| stamp(file).ok()).collect())
}

pub(crate) fn run(args: &WatchArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let path = &args.file;
    let pause = Duration::try_from_secs_f64(args.interval.clamp(0.001, 86_400.0))
        .unwrap_or(Duration::from_secs(1));
    let open = || spile::open_with(path, &context.options());
    let before = stamp(path)?;
    let (mut inode, mut seen) = (before.identity, stamps(path)?);
    let mut dataset = open()?;
    let is_trace = |desc: &ArrayDesc| desc.semantics().role == Role::Trace;
    if dataset.tree().frames().is_none() && dataset.arrays().any(|(_, _, desc)| is_trace(desc)) {
        return follow(args, (dataset, before), pause, context, out);
    }
    // The state when the dataset was opened; `seen` is the state of the previous poll.
    let mut opened = seen.clone();
    let count = |dataset: &Dataset| frames(dataset).map_err(|e| e.with_path(path));
    let mut next = if args.all { 0 } else { count(&dataset)? };
    let mut left = args.count.unwrap_or(u64::MAX);
    loop {
        let frames = count(&dataset)?;
        // Frames may have been removed.
        next = next.min(frames);
        while next < frames && left > 0 {
            let frame = watch(&dataset, next).map_err(|e| e.with_path(path))?;
            show(&frame, context, out)?;
            next += 1;
            left -= 1;
        }
        out.flush()?;
        if left == 0 {
            return Ok(Exit::Yes);
        }
        std::thread::sleep(pause);
        let (same, now) = (stamp(path)?.identity == inode, stamps(path)?);
        if !same {
            // The file was replaced.
            (inode, next) = (stamp(path)?.identity, 0);
            (dataset, opened) = (open()?, now.clone());
        } else if dataset.refresh().map_err(|e| e.with_path(path))? {
            // New frames are in the dataset.
        } else if now != opened && now == seen {
            (dataset, opened) = (open()?, now.clone());
        }
        seen = now;
    }
}

/// Prints a line for every array that has become longer since the dataset was opened; the stamp is older.
fn follow(
    args: &WatchArgs,
    (mut last, mut seen): (Dataset, Stamp),
    pause: Duration,
    context: &Context,
    out: &mut Output,
) -> Result<Exit> {
    let path = &args.file;
    let mut left = args.count.unwrap_or(u64::MAX);
    while left > 0 {
        out.flush()?;
        std::thread::sleep(pause);
        let now = stamp(path)?;
        if now == seen {
            continue;
        }
        seen = now;
        // A file that is being written may not be complete; the next change is awaited.
        let Ok(dataset) = spile::open_with(path, &context.options()) else { continue };
        let Ok(found) = growth(&last, &dataset) else { continue };
        for grown in found {
            show_growth(&grown, &dataset, context, out)?;
            left = left.saturating_sub(1);
        }
        last = dataset;
    }
    Ok(Exit::Yes)
}

fn show_growth(
    grown: &Growth,
    dataset: &Dataset,
    context: &Context,
    out: &mut Output,
) -> Result<()> {
    if context.json {
        return out.json(grown);
    }
    let Growth { array, dimension, from, to, .. } = grown;
    let shape = dataset.array(array).map_or(String::new(), |array| array.shape().to_string());
    let number = dimension + 1;
    write!(out, "{array}  {shape}  dimension {number}: {from} -> {to}")?;
    if let (Some(min), Some(max), Some(mean)) = (grown.min, grown.max, grown.mean) {
        let [min, max, mean] = [min, max, mean].map(|value| text::short(value.0));
        write!(out, "  min {min}  max {max}  mean {mean}")?;
    }
    Ok(writeln!(out)?)
}

fn show(frame: &Frame, context: &Context, out: &mut Output) -> Result<()> {
    if context.json {
        return out.json(frame);
    }
    let moment = moment(&frame.moment).map_or(String::new(), |moment| format!("  {moment}"));
    let arrays = text::count(frame.arrays, "array");
    Ok(writeln!(out, "frame {}{moment}  {arrays}, {}", frame.frame, text::size(frame.bytes))?)
}
