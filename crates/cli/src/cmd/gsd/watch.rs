//! `spile gsd watch`: the frames of a running job as they come.

use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use spile::error::{Error, Result};
use spile_gsd::File;

use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, text};

/// Follow a file that is being written: a line for every frame that is committed.
///
/// Runs until it is interrupted. Frames that a writer is still committing are not shown.
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// A GSD file
    file: PathBuf,
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
    /// Begin with the frames that are there already
    #[arg(long)]
    all: bool,
    /// End after this many frames
    #[arg(long, value_name = "N")]
    count: Option<u64>,
}

#[derive(Serialize)]
struct Line {
    frame: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<u64>,
    chunks: u64,
    bytes: u64,
}

/// Which file it is, whatever its name.
fn inode(path: &Path) -> Result<u64> {
    Ok(std::fs::metadata(path).map_err(|e| Error::io(path, e))?.ino())
}

pub(super) fn run(args: &WatchArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let place = |e: Error| e.with_path(&args.file).with_format("gsd");
    let pause = Duration::try_from_secs_f64(args.interval.clamp(0.001, 86_400.0))
        .unwrap_or(Duration::from_secs(1));
    let mut known = inode(&args.file)?;
    let mut file = File::open(&args.file, &context.limits)?;
    let mut next = if args.all { 0 } else { file.nframes().map_err(place)? };
    let mut left = args.count.unwrap_or(u64::MAX);
    loop {
        let frames = file.nframes().map_err(place)?;
        while next < frames && left > 0 {
            let chunks = file.frame(next).map_err(place)?;
            let line = Line {
                frame: next,
                step: file.step(next).map_err(place)?,
                chunks: chunks.len() as u64,
                bytes: chunks.iter().map(|chunk| chunk.place.len).sum(),
            };
            if context.json {
                out.json(&line)?;
            } else {
                let step = line.step.map_or(String::new(), |step| format!("  step {step}"));
                let what = text::count(line.chunks, "chunk");
                writeln!(out, "frame {}{step}  {what}, {}", line.frame, text::size(line.bytes))?;
            }
            next += 1;
            left -= 1;
        }
        out.flush()?;
        if left == 0 {
            return Ok(Exit::Yes);
        }
        std::thread::sleep(pause);
        if inode(&args.file)? == known {
            file.refresh().map_err(place)?;
        } else {
            // A new file has taken the place of the old one.
            (known, next) = (inode(&args.file)?, 0);
            file = File::open(&args.file, &context.limits)?;
        }
    }
}
