//! `spile convert --into`: several files at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use spile::format::{Format, Loss};
use spile_ops::convert;

use super::{Done, Job, WriteArgs, group_text, loss_text, print_losses, verb};
use crate::batch::{Batch, Item, Tally};
use crate::cmd::prelude::*;
use crate::progress;

/// Largest number of lines about losses after the table.
const LINES: usize = 10;

/// The outcome of one file.
enum Outcome {
    Converted(Done),
    /// The output exists.
    Skipped,
}

/// A file to be converted.
struct Entry {
    from: PathBuf,
    to: PathBuf,
}

/// Number of files by outcome.
#[derive(Default, Serialize)]
struct Counts {
    files: u64,
    written: u64,
    skipped: u64,
    failed: u64,
    /// Files with something that was not written.
    with_losses: u64,
    /// Files in searched folders with an unrecognised format.
    unknown: u64,
}

pub(super) fn run(
    files: &[PathBuf],
    folder: &Path,
    write: &WriteArgs,
    context: &Context,
    out: &mut Output,
) -> Result<Exit> {
    let format = write.target(Path::new(""))?;
    let Batch { items, unknown, .. } = Batch::new(files, &context.options());
    let entries: Vec<Result<Entry>> =
        items.into_iter().map(|item| item.and_then(|item| entry(item, folder, format))).collect();
    ensure_distinct(&entries)?;
    // Warnings of every file would hide the result.
    let silent = Context { quiet: !context.verbose, progress: false, ..*context };
    let (number, count) = (AtomicU64::new(0), entries.len() as u64);
    let convert = |entry: Result<Entry>| -> Result<(Entry, Outcome)> {
        if context.progress {
            progress::set_file_number(number.fetch_add(1, Ordering::Relaxed), count);
        }
        let entry = entry?;
        let done = convert_one(&entry, format, write, &silent);
        let done = done.map_err(|e| e.with_path(&entry.from))?;
        Ok((entry, done))
    };
    let outcomes: Vec<_> = entries.into_par_iter().map(convert).collect();
    report(&outcomes, format, write, unknown, context, out)
}

/// The output of a file: its path in the folder of the arguments with the extension of the format.
fn entry(item: Item, folder: &Path, format: &dyn Format) -> Result<Entry> {
    let extension = format.info().extensions.first().copied().unwrap_or(format.info().name);
    let stem = item.relative.file_stem().unwrap_or_default().to_string_lossy();
    let to = folder.join(item.relative.with_file_name(format!("{stem}.{extension}")));
    let same = |path: &Path| path.canonicalize().ok();
    if same(&to).is_some_and(|to| Some(to) == same(&item.path)) {
        return Err(Error::argument("the output is the input").with_path(&item.path));
    }
    Ok(Entry { from: item.path, to })
}

/// Fails if two files have the same output.
fn ensure_distinct(entries: &[Result<Entry>]) -> Result<()> {
    let mut known: HashMap<&Path, &Path> = HashMap::new();
    for Entry { from, to } in entries.iter().filter_map(|entry| entry.as_ref().ok()) {
        if let Some(other) = known.insert(to, from) {
            let message =
                format!("{} and {} have the same output", other.display(), from.display());
            return Err(Error::argument(message)
                .with_path(to)
                .hint("convert them with different folders after --into"));
        }
    }
    Ok(())
}

fn convert_one(
    entry: &Entry,
    format: &'static dyn Format,
    write: &WriteArgs,
    context: &Context,
) -> Result<Outcome> {
    let Entry { from, to } = entry;
    if !write.overwrite && to.symlink_metadata().is_ok() {
        return Ok(Outcome::Skipped);
    }
    let content = context.open(from)?;
    if let (false, Some(above)) = (write.dry_run, to.parent()) {
        std::fs::create_dir_all(above).map_err(|e| Error::io(above, e))?;
    }
    Job { from, to, format, write }.convert(&content).map(Outcome::Converted)
}

fn report(
    outcomes: &[Result<(Entry, Outcome)>],
    format: &'static dyn Format,
    write: &WriteArgs,
    unknown: u64,
    context: &Context,
    out: &mut Output,
) -> Result<Exit> {
    let mut counts = Counts { unknown, ..Counts::default() };
    let mut tally = Tally::default();
    let columns = [
        ("result", Align::Left),
        ("losses", Align::Right),
        ("size", Align::Right),
        ("file", Align::Left),
        ("output", Align::Left),
    ];
    let mut table = Table::new(&columns);
    let dash = || "-".to_string();
    for outcome in outcomes {
        counts.files += 1;
        let (word, cells) = match outcome {
            Ok((Entry { from, to }, Outcome::Converted(done))) => {
                counts.written += u64::from(!write.dry_run);
                counts.with_losses += u64::from(!done.plan.losses.is_empty());
                *(if done.differences.is_empty() { &mut tally.ok } else { &mut tally.not_ok }) += 1;
                if context.json {
                    Job { from, to, format, write }.json(done, out)?;
                } else if context.verbose {
                    print_losses(from, &done.plan.losses, context);
                }
                let word = match (done.differences.is_empty(), write.dry_run) {
                    (false, _) => ("differs", style::BAD),
                    (true, true) => ("to do", style::CALM),
                    (true, false) => ("written", style::GOOD),
                };
                let bytes = if write.dry_run { None } else { convert::size(to).ok() };
                let size = bytes.map_or_else(dash, spile::error::human_bytes);
                let losses = done.plan.losses.len().to_string();
                (word, [losses, size, from.display().to_string(), to.display().to_string()])
            }
            Ok((Entry { from, to }, Outcome::Skipped)) => {
                (counts.skipped, tally.ok) = (counts.skipped + 1, tally.ok + 1);
                if context.json {
                    out.object(&[
                        ("file", json!(from.to_string_lossy())),
                        ("output", json!(to.to_string_lossy())),
                        ("format", json!(format.info().name)),
                        ("written", json!(false)),
                        ("skipped", json!(true)),
                    ])?;
                }
                let [from, to] = [from, to].map(|path| path.display().to_string());
                (("skipped", style::FAINT), [dash(), dash(), from, to])
            }
            Err(error) => {
                (counts.failed, tally.failed) = (counts.failed + 1, tally.failed + 1);
                out.flush()?;
                context.fail(error);
                let from = error.path().map_or_else(dash, |path| path.display().to_string());
                (("failed", style::BAD), [dash(), dash(), from, dash()])
            }
        };
        if !context.json && !context.quiet {
            let cells = cells.into_iter().map(|cell| (cell, Style::new()));
            table.styled(std::iter::once((word.0.to_string(), word.1)).chain(cells), out)?;
        }
    }
    if context.json {
        out.json(&counts)?;
    } else if !context.quiet {
        table.print(out)?;
        if !context.verbose {
            summarise(outcomes, out)?;
        }
        writeln!(out, "{}", counts.text(write.dry_run))?;
    }
    Ok(tally.exit(Exit::No))
}

/// Prints each kind and reason of losses once, with the number of files and the first losses.
fn summarise(outcomes: &[Result<(Entry, Outcome)>], out: &mut Output) -> Result<()> {
    // The same object of many files is one loss here.
    let key =
        |loss: &'_ Loss| (loss.path.clone(), loss.kind, loss.name.clone(), loss.reason.clone());
    let mut files: HashMap<_, u64> = HashMap::new();
    let mut distinct: Vec<&Loss> = Vec::new();
    let losses = outcomes.iter().filter_map(|outcome| match outcome {
        Ok((_, Outcome::Converted(done))) => Some(&done.plan.losses),
        _ => None,
    });
    for loss in losses.flatten() {
        let count = files.entry(key(loss)).or_default();
        *count += 1;
        if *count == 1 {
            distinct.push(loss);
        }
    }
    let groups = convert::group(distinct);
    for group in groups.iter().take(LINES) {
        let most = group.losses.iter().map(|loss| files[&key(loss)]).max().unwrap_or(0);
        let text = match group.losses.as_slice() {
            [loss] => loss_text(loss),
            _ => group_text(group),
        };
        let word = out.paint(style::WARN, verb(group.kind));
        writeln!(out, "{word} in {}: {text}", text::count(most, "file"))?;
    }
    if groups.len() > LINES {
        writeln!(out, "not written: {} other reasons; -v lists all", groups.len() - LINES)?;
    }
    Ok(())
}

impl Counts {
    /// One line, for example `12 files: 9 written (2 with losses), 2 skipped (output exists), 1 failed`.
    fn text(&self, dry_run: bool) -> String {
        let converted = self.files - self.skipped - self.failed;
        let losses = match self.with_losses {
            0 => String::new(),
            n => format!(" ({n} with losses)"),
        };
        let word = if dry_run { "to be written" } else { "written" };
        let mut parts = vec![format!("{converted} {word}{losses}")];
        if self.skipped > 0 {
            parts.push(format!("{} skipped (output exists)", self.skipped));
        }
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        let unknown = match self.unknown {
            0 => String::new(),
            n => format!("; {} of unknown format", text::count(n, "other")),
        };
        format!("{}: {}{unknown}", text::count(self.files, "file"), parts.join(", "))
    }
}
