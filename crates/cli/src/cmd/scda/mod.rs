//! `spile scda`: files taken apart, put together and recoded.

mod manifest;
mod pack;
mod recode;
mod unpack;

use std::path::Path;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use spile::error::Result;
use spile_scda::File;
use spile_scda::wire::Breaks;

use crate::context::Context;
use crate::exit::Exit;
use crate::print::{Output, text};

/// Operations on scda files.
///
/// Sections count from 0, as `spile cat FILE 3` does. What is written appears whole or not at all.
#[derive(Debug, Args)]
pub(crate) struct ScdaArgs {
    #[command(subcommand)]
    operation: Operation,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
enum Operation {
    /// Make a file from a manifest and data files
    Pack(pack::PackArgs),
    /// Take a file apart: a manifest and a data file for each section
    Unpack(unpack::UnpackArgs),
    /// The same content compressed or not, with Unix or MIME line breaks
    Recode(recode::RecodeArgs),
}

pub(crate) fn run(args: &ScdaArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    match &args.operation {
        Operation::Pack(args) => pack::run(args, context, out),
        Operation::Unpack(args) => unpack::run(args, context, out),
        Operation::Recode(args) => recode::run(args, context, out),
    }
}

/// The two line-break styles, as they are called on the command line and in manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Style {
    Unix,
    Mime,
}

impl From<Style> for Breaks {
    fn from(style: Style) -> Self {
        match style {
            Style::Unix => Self::Unix,
            Style::Mime => Self::Mime,
        }
    }
}

/// Opens an scda file; `-` is standard input.
fn open(path: &Path, decode: bool, context: &Context) -> Result<File> {
    File::from_source(context.source(path)?, decode, &context.limits)
        .map_err(|e| e.with_path(path).with_format("scda"))
}

/// What was done, or would be.
#[derive(Serialize)]
struct Done {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    output: String,
    sections: u64,
    /// Bytes of all data, not compressed.
    data_bytes: u64,
    #[serde(flatten)]
    changes: Option<Changes>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dry_run: bool,
}

/// How many sections became what.
#[derive(Serialize)]
struct Changes {
    kept: usize,
    encoded: usize,
    decoded: usize,
}

impl Done {
    /// Silence is success; what was only tried is told.
    fn tell(&self, context: &Context, out: &mut Output) -> Result<Exit> {
        use std::io::Write as _;
        if context.json {
            out.json(self)?;
        } else if context.verbose || self.dry_run && !context.quiet {
            let output = text::clean(&self.output);
            let sections = text::count(self.sections, "section");
            let data = text::size(self.data_bytes);
            let changes = self.changes.as_ref().map_or_else(String::new, |c| {
                format!("; {} kept, {} encoded, {} decoded", c.kept, c.encoded, c.decoded)
            });
            let note = if self.dry_run { " (nothing was written)" } else { "" };
            writeln!(out, "{output}: {sections}, data of {data}{changes}{note}")?;
        }
        Ok(Exit::Yes)
    }
}
