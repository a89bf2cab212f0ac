//! `spile scda recode`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};
use spile::error::Result;
use spile::sink::Sink;
use spile_scda::{Change, Coding, Recode, changes, recode};

use super::super::{not_standard_output, overwrite};
use super::{Changes, Done, Style, open};
use crate::args::OutputArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

/// Compress or decompress a file, or change its line breaks.
///
/// Vendor string, user strings and data are unchanged. Sections that already have the requested form are
/// copied. I sections cannot be compressed.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["encode", "decode", "breaks"]).required(true).multiple(true))]
#[allow(clippy::struct_excessive_bools)] // Flags of the command line.
pub(super) struct RecodeArgs {
    /// Input file (scda); - is standard input
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    /// Compress all sections
    #[arg(long, conflicts_with = "decode")]
    encode: bool,
    /// Decompress all sections
    #[arg(long)]
    decode: bool,
    /// Line breaks of padding and compressed data [default: unchanged]
    #[arg(long, value_name = "STYLE")]
    breaks: Option<Style>,
    /// Compression level, 0 to 12
    #[arg(
        long,
        value_name = "N",
        default_value = "9",
        requires = "encode",
        conflicts_with = "decode",
        value_parser = clap::value_parser!(u32).range(0..=12)
    )]
    level: u32,
    /// Replace the output file if it exists
    #[arg(long)]
    overwrite: bool,
    /// Report what would be done without writing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &RecodeArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    not_standard_output(args.output.path(), "the output")?;
    let file = open(&args.file, true, context)?;
    if file.header().version != 0xa0 {
        let version = file.header().version;
        context.warn(&args.file, &format!("version {version:02x} is written as version a0"));
    }
    let how = Recode {
        coding: match (args.encode, args.decode) {
            (true, _) => Coding::Encode,
            (_, true) => Coding::Decode,
            _ => Coding::Keep,
        },
        breaks: args.breaks.map(Into::into),
        level: args.level,
        overwrite: overwrite(args.overwrite),
    };
    let done = if args.dry_run {
        // Checks whether the file can be written.
        Sink::create(args.output.path(), how.overwrite)?;
        changes(&file, how.coding)
    } else {
        recode(&file, args.output.path(), &how)
    };
    let done = done.map_err(|e| e.with_path(&args.file).with_format("scda"))?;
    let number = |change| done.iter().filter(|done| **done == change).count();
    let done = Done {
        file: Some(args.file.to_string_lossy().into_owned()),
        output: args.output.path().to_string_lossy().into_owned(),
        sections: done.len() as u64,
        data_bytes: file.sections().iter().map(|section| section.len).sum(),
        changes: Some(Changes {
            kept: number(Change::Kept),
            encoded: number(Change::Encoded),
            decoded: number(Change::Decoded),
        }),
        dry_run: args.dry_run,
    };
    done.report(context, out)
}
