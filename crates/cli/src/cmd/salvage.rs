//! `spile salvage`.

use spile::format::{Grade, Salvage};
use spile::sink::Sink;

use crate::batch::{Batch, Item, Words};
use crate::cmd::prelude::*;

/// Recover the readable parts of damaged files.
///
/// The input files are not modified. Exit status: 0 nothing was lost, 3 some content was lost and is listed,
/// 2 nothing could be recovered. Folders are searched recursively for files of known formats.
#[derive(Debug, Args)]
pub(crate) struct SalvageArgs {
    /// Damaged files, or folders
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Output path [default: NAME-salvaged next to the input]
    #[arg(short, long, value_name = "OUTPUT")]
    output: Option<PathBuf>,
    /// Output folder; the files keep their names
    #[arg(long, value_name = "FOLDER", conflicts_with = "output")]
    into: Option<PathBuf>,
    /// Replace the output if it exists
    #[arg(long)]
    overwrite: bool,
}

pub(crate) fn run(args: &SalvageArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let batch = Batch::new(&args.files, &context.options());
    let single = args.files.len() == 1 && batch.items.len() == 1 && !batch.searched;
    if let Some(output) = &args.output {
        not_standard_output(output)?;
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
    let format = spile::REGISTRY.probe_within(&source, &context.limits)?;
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
    let columns = [
        ("kept", Align::Right),
        ("lost", Align::Right),
        ("file", Align::Left),
        ("written", Align::Left),
    ];
    let words = Words { ok: "complete", not_ok: "partial", others: "skipped" };
    let searched = batch.searched;
    batch.run(columns, &words, (style::WARN, Exit::Partial), context, out, |item, entry, out| {
        // Files in folders whose format does not support salvaging are skipped.
        let format = match item.folder {
            Some(format) => format,
            None => spile::REGISTRY.probe_within(&context.source(&item.path)?, &context.limits)?,
        };
        if searched && format.info().salvage == Grade::None {
            return Ok(None);
        }
        let target = args.target(&item.path, &item.relative);
        let saved = save(args, item, &target, context)?;
        if context.json || context.verbose {
            report(&item.path, &target, &saved, context, out)?;
        }
        let (kept, lost) = (saved.kept.len().to_string(), saved.lost.len().to_string());
        let target = target.to_string_lossy().into_owned();
        Ok(Some((saved.lost.is_empty(), [kept, lost, entry.name(), target])))
    })
}
