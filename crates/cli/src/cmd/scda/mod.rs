//! `spile scda`.

mod clean;
mod manifest;
mod pack;
mod recode;
mod unpack;

use clap::{Subcommand, ValueEnum};
use serde::Deserialize;
use spile_scda::File;
use spile_scda::wire::Breaks;

use crate::cmd::prelude::*;

/// Operations on scda files.
///
/// Sections count from 0, as in `spile cat FILE 3`. Writes are atomic.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum Operation {
    /// Create a file from a manifest and data files
    Pack(pack::PackArgs),
    /// Write a manifest and one data file per section
    Unpack(unpack::UnpackArgs),
    /// Compress or decompress a file, or change its line breaks
    Recode(recode::RecodeArgs),
    /// List and remove unfinished files of parallel jobs that were killed
    Clean(clean::CleanArgs),
}

pub(crate) fn run(operation: &Operation, context: &Context, out: &mut Output) -> Result<Exit> {
    match operation {
        Operation::Pack(args) => pack::run(args, context, out),
        Operation::Unpack(args) => unpack::run(args, context, out),
        Operation::Recode(args) => recode::run(args, context, out),
        Operation::Clean(args) => clean::run(args, context, out),
    }
}

/// Line-break styles on the command line and in manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum LineBreaks {
    Unix,
    Mime,
}

impl From<LineBreaks> for Breaks {
    fn from(breaks: LineBreaks) -> Self {
        match breaks {
            LineBreaks::Unix => Self::Unix,
            LineBreaks::Mime => Self::Mime,
        }
    }
}

/// Opens an scda file; `-` is standard input.
fn open(path: &Path, decode: bool, context: &Context) -> Result<File> {
    File::from_source(context.source(path)?, decode, &context.limits)
        .map_err(|e| e.with_path(path).with_format("scda"))
}

/// The result of an operation.
#[derive(Default, Serialize)]
struct Done {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    output: String,
    sections: u64,
    /// Uncompressed size of all data.
    data_bytes: u64,
    #[serde(flatten)]
    changes: Option<Changes>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

/// Number of sections by kind of change.
#[derive(Serialize)]
struct Changes {
    kept: usize,
    encoded: usize,
    decoded: usize,
}

impl Done {
    /// The result of copying all sections of a file.
    fn copied(path: &Path, file: &File, output: &Path) -> Self {
        Self {
            file: Some(path.to_string_lossy().into_owned()),
            output: output.to_string_lossy().into_owned(),
            sections: file.sections().len() as u64,
            data_bytes: file.sections().iter().map(|section| section.len).sum(),
            ..Self::default()
        }
    }

    /// Prints the result with --json, -v or --dry-run.
    fn report(&self, context: &Context, out: &mut Output) -> Result<Exit> {
        if context.json {
            out.json(self)?;
        } else if context.verbose || self.dry_run && !context.quiet {
            let output = text::one_line(&self.output);
            let sections = text::count(self.sections, "section");
            let data = text::size(self.data_bytes);
            let changes = self.changes.as_ref().map_or_else(String::new, |c| {
                format!("; {} kept, {} encoded, {} decoded", c.kept, c.encoded, c.decoded)
            });
            let note = if self.dry_run { " (dry run)" } else { "" };
            writeln!(out, "{output}: {sections}, {data} of data{changes}{note}")?;
        }
        Ok(Exit::Yes)
    }
}
