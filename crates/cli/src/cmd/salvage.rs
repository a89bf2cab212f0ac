//! `spile salvage`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use spile::error::Result;
use spile::sink::Sink;

use super::overwrite;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, text};

/// Save what can be read of a damaged file into a sound one.
///
/// The damaged file is not touched. Exit 0: nothing was lost; 3: something was, and it is listed.
#[derive(Debug, Args)]
pub(crate) struct SalvageArgs {
    /// The damaged file
    file: PathBuf,
    /// The new file [default: NAME-salvaged beside the old one]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the output file if it exists
    #[arg(long)]
    overwrite: bool,
}

pub(crate) fn run(args: &SalvageArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let source = context.source(&args.file)?;
    let target = args.output.clone().unwrap_or_else(|| {
        let stem = args.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut name = format!("{stem}-salvaged");
        if let Some(extension) = args.file.extension() {
            name = format!("{name}.{}", extension.to_string_lossy());
        }
        args.file.with_file_name(name)
    });
    let mut sink = Sink::create(&target, overwrite(args.overwrite))?;
    let format = spile::REGISTRY.probe(&source)?;
    let saved = format
        .salvage(&source, &mut sink, &context.limits)
        .map_err(|e| e.with_path(&args.file).with_format(format.info().name))?;
    sink.commit()?;
    if context.json {
        let mut document = out.document()?;
        document.field("file", &args.file.to_string_lossy())?;
        document.field("output", &target.to_string_lossy())?;
        document.field("kept", &saved.kept)?;
        document.field("lost", &saved.lost)?;
        document.end()?;
    } else if !context.quiet {
        let mut fields = vec![("written".into(), target.to_string_lossy().into_owned())];
        fields.extend(saved.kept.iter().map(|what| ("kept".into(), what.clone())));
        fields.extend(saved.lost.iter().map(|what| ("lost".into(), what.clone())));
        text::fields(&fields, usize::MAX, out)?;
        out.flush()?;
    }
    Ok(if saved.lost.is_empty() { Exit::Yes } else { Exit::Partial })
}
