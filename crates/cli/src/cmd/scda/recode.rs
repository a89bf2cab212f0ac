//! `spile scda recode`.

use clap::ArgGroup;
use spile::sink::Sink;
use spile_scda::{Change, Coding, Recode, changes, recode};

use super::{Changes, Done, LineBreaks, open};
use crate::cmd::prelude::*;

/// Compress or decompress a file, or change its line breaks.
///
/// Vendor string, user strings and data are unchanged. Sections that already have the requested form are
/// copied. I sections cannot be compressed.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").args(["encode", "decode", "breaks"]).required(true).multiple(true))]
#[allow(clippy::struct_excessive_bools)] // Flags of the command line.
pub(crate) struct RecodeArgs {
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
    breaks: Option<LineBreaks>,
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
    /// Report what would be done without writing
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &RecodeArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let output = args.output.file()?;
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
        overwrite: args.output.overwrite(),
    };
    let done = if args.dry_run {
        // Checks whether the file can be written.
        Sink::create(output, how.overwrite)?;
        changes(&file, how.coding)
    } else {
        recode(&file, output, &how)
    };
    let done = done.map_err(|e| e.with_path(&args.file).with_format("scda"))?;
    let number = |change| done.iter().filter(|done| **done == change).count();
    let changes = Changes {
        kept: number(Change::Kept),
        encoded: number(Change::Encoded),
        decoded: number(Change::Decoded),
    };
    let copied = Done::copied(&args.file, &file, output);
    Done { changes: Some(changes), dry_run: args.dry_run, ..copied }.report(context, out)
}
