//! `spile salvage`.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anstyle::Style;
use clap::Args;
use serde_json::json;
use spile::error::{Error, Result};
use spile::format::{Grade, Salvage};
use spile::sink::Sink;

use super::{not_standard_output, overwrite};
use crate::batch::{Batch, Item, Tally};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Align, Output, Table, style, text};
use crate::progress;

/// Recover the readable parts of damaged files.
///
/// The input files are not modified. Exit status: 0 nothing was lost, 3 some content was lost and is listed,
/// 2 nothing could be recovered. Folders are searched recursively for files of known formats.
#[derive(Debug, Args)]
pub(crate) struct SalvageArgs {
    /// Damaged files, or folders
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output file [default: NAME-salvaged next to the input]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Output folder; the files keep their names
    #[arg(long, value_name = "FOLDER", conflicts_with = "output")]
    into: Option<PathBuf>,
    /// Replace output files that exist
    #[arg(long)]
    overwrite: bool,
}

pub(crate) fn run(args: &SalvageArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let batch = Batch::new(&args.files, &context.options());
    let single = args.files.len() == 1 && batch.items.len() == 1 && !batch.searched;
    if let Some(output) = &args.output {
        not_standard_output(output, "the output")?;
    }
    if !single && args.output.is_some() {
        let message = "-o requires a single input file";
        return Err(Error::argument(message).hint("specify an output folder with --into"));
    }
    if !single {
        return many(args, batch, context, out);
    }
    let Some(item) = batch.items.into_iter().next() else { return Ok(Exit::Yes) };
    let item = item?;
    let target = args.target(&item.path, &item.relative);
    let saved = save(args, &item, &target, context)?;
    report(&item.path, &target, &saved, context, out)?;
    Ok(if saved.lost.is_empty() { Exit::Yes } else { Exit::Partial })
}

impl SalvageArgs {
    fn target(&self, file: &Path, relative: &Path) -> PathBuf {
        if let Some(output) = &self.output {
            return output.clone();
        }
        if let Some(folder) = &self.into {
            return folder.join(relative);
        }
        let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut name = format!("{stem}-salvaged");
        if let Some(extension) = file.extension() {
            name = format!("{name}.{}", extension.to_string_lossy());
        }
        file.with_file_name(name)
    }
}

fn save(args: &SalvageArgs, item: &Item, target: &Path, context: &Context) -> Result<Salvage> {
    let file = &item.path;
    if let Some(format) = item.folder {
        let message = format!("salvaging {} folders is not supported", format.info().name);
        return Err(Error::unsupported("", message).with_path(file).hint(
            "`spile check` lists the damaged arrays; `spile convert --select` copies the others",
        ));
    }
    let source = context.source(file)?;
    if let (Some(_), Some(folder)) = (&args.into, target.parent()) {
        std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
    }
    let mut sink = Sink::create(target, overwrite(args.overwrite))?;
    let format = spile::REGISTRY.probe(&source)?;
    let salvager = format.abilities().salvager.ok_or_else(|| {
        let message = format!("salvaging {} files is not supported", format.info().name);
        Error::unsupported("", message).with_path(file)
    })?;
    let saved = salvager
        .salvage(&source, &mut sink, &context.limits)
        .map_err(|e| e.with_path(file).with_format(format.info().name))?;
    sink.commit()?;
    Ok(saved)
}

fn report(
    file: &Path,
    target: &Path,
    saved: &Salvage,
    context: &Context,
    out: &mut Output,
) -> Result<()> {
    if context.json {
        out.object(&[
            ("file", json!(file.to_string_lossy())),
            ("output", json!(target.to_string_lossy())),
            ("kept", json!(saved.kept)),
            ("lost", json!(saved.lost)),
        ])?;
    } else if !context.quiet {
        let mut fields = vec![("written".into(), target.to_string_lossy().into_owned())];
        fields.extend(saved.kept.iter().map(|what| ("kept".into(), what.clone())));
        fields.extend(saved.lost.iter().map(|what| ("lost".into(), what.clone())));
        text::fields(&fields, usize::MAX, out)?;
        out.flush()?;
    }
    Ok(())
}

/// Salvages several files and prints a table.
fn many(args: &SalvageArgs, batch: Batch, context: &Context, out: &mut Output) -> Result<Exit> {
    let mut tally = Tally { unknown: batch.unknown, ..Tally::default() };
    let columns = [
        ("verdict", Align::Left),
        ("kept", Align::Right),
        ("lost", Align::Right),
        ("file", Align::Left),
        ("written", Align::Left),
    ];
    let mut table = Table::new(&columns);
    let count = batch.items.len();
    for (number, item) in batch.items.into_iter().enumerate() {
        progress::set_file_number(number as u64, count as u64);
        let saved = item.and_then(|item| {
            // Files in folders whose format does not support salvaging are skipped.
            let format = match item.folder {
                Some(format) => format,
                None => spile::REGISTRY.probe(&context.source(&item.path)?)?,
            };
            if batch.searched && format.info().salvage == Grade::None {
                return Ok(None);
            }
            let target = args.target(&item.path, &item.relative);
            let saved = save(args, &item, &target, context);
            Ok(Some((saved.map_err(|e| e.with_path(&item.path))?, item.path, target)))
        });
        let plain = |text: String| (text, Style::new());
        let cells = match saved {
            Ok(None) => {
                tally.unknown += 1;
                continue;
            }
            Ok(Some((saved, path, target))) => {
                tally.files += 1;
                let complete = saved.lost.is_empty();
                *(if complete { &mut tally.ok } else { &mut tally.not_ok }) += 1;
                if context.json || context.verbose {
                    report(&path, &target, &saved, context, out)?;
                }
                let (word, colour) =
                    if complete { ("complete", style::GOOD) } else { ("partial", style::WARN) };
                [
                    (word.to_string(), colour),
                    plain(saved.kept.len().to_string()),
                    plain(saved.lost.len().to_string()),
                    plain(path.to_string_lossy().into_owned()),
                    plain(target.to_string_lossy().into_owned()),
                ]
            }
            Err(error) => {
                tally.files += 1;
                tally.failed += 1;
                out.flush()?;
                context.fail(&error);
                let name = error.path().map(|path| path.to_string_lossy().into_owned());
                let dash = || plain("-".into());
                let bad = ("failed".to_string(), style::BAD);
                [bad, dash(), dash(), plain(name.unwrap_or_default()), dash()]
            }
        };
        table.styled(cells, out)?;
    }
    if context.json {
        out.json(&tally)?;
    } else if !context.quiet {
        table.print(out)?;
        writeln!(out, "{}", tally.summary("complete", "partial", "skipped"))?;
    }
    Ok(tally.exit(Exit::Partial))
}
