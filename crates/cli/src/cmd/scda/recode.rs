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

/// Write the content of a file anew: compressed or not, with Unix or MIME line breaks.
///
/// Vendor and user strings and all data stay the same. Sections that have the wanted form already
/// are kept, deflate streams and all; I sections have no compressed form.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["encode", "decode", "breaks"]).required(true).multiple(true))]
#[allow(clippy::struct_excessive_bools)] // They are switches of the command line.
pub(super) struct RecodeArgs {
    /// An scda file; - is standard input
    file: PathBuf,
    #[command(flatten)]
    output: OutputArgs,
    /// Compress all sections
    #[arg(long, conflicts_with = "decode")]
    encode: bool,
    /// Decompress all sections
    #[arg(long)]
    decode: bool,
    /// Line breaks of all paddings and of compressed data [default: as they are]
    #[arg(long, value_name = "STYLE")]
    breaks: Option<Style>,
    /// How hard to compress, 0 to 12
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
    /// Tell what would be done; write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &RecodeArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    not_standard_output(args.output.path(), "an scda file")?;
    let file = open(&args.file, true, context)?;
    if file.header().version != 0xa0 {
        let version = file.header().version;
        context.warn(&args.file, &format!("is of version {version:02x}; version a0 is written"));
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
        // Started and dropped: whether the file could be written.
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
    done.tell(context, out)
}
