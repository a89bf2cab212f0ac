//! The verbs, one module each: arguments, a call of `ops`, a call of `print`.

pub(crate) mod cat;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod formats;
pub(crate) mod gsd;
pub(crate) mod hash;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod iotk;
pub(crate) mod ls;
pub(crate) mod man;
pub(crate) mod map;
pub(crate) mod merge;
pub(crate) mod plot;
pub(crate) mod salvage;
pub(crate) mod scda;
pub(crate) mod sdf;
pub(crate) mod stat;
pub(crate) mod taf;
pub(crate) mod tour;
pub(crate) mod watch;

use std::path::Path;

use spile::error::{Error, Result};
use spile::sink::Overwrite;

use crate::args::Command;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

/// Runs a command.
pub(crate) fn run(command: &Command, context: &Context, out: &mut Output) -> Result<Exit> {
    match command {
        Command::Info(args) => info::run(args, context, out),
        Command::Ls(args) => ls::run(args, context, out),
        Command::Cat(args) => cat::run(args, context, out),
        Command::Stat(args) => stat::run(args, context, out),
        Command::Map(args) => map::run(args, context, out),
        Command::Check(args) => check::run(args, context, out),
        Command::Convert(args) => convert::run(args, context, out),
        Command::Diff(args) => diff::run(args, context, out),
        Command::Merge(args) => merge::run(args, context, out),
        Command::Hash(args) => hash::run(args, context, out),
        Command::Index(args) => index::run(args, context, out),
        Command::Plot(args) => plot::run(args, context, out),
        Command::Salvage(args) => salvage::run(args, context, out),
        Command::Watch(args) => watch::run(args, context, out),
        Command::Sdf(args) => sdf::run(args, context, out),
        Command::Iotk(args) => iotk::run(args, context, out),
        Command::Taf(args) => taf::run(args, context, out),
        Command::Scda(args) => scda::run(args, context, out),
        Command::Gsd(args) => gsd::run(args, context, out),
        Command::Tour(args) => tour::run(args, context, out),
        Command::Formats(args) => formats::run(args, context, out),
        Command::Completions(args) => completions::run(args, context, out),
        Command::Man(args) => man::run(args, context, out),
        // Replaced by `info` or rejected after parsing.
        Command::Other(_) => Err(Error::argument("unknown command")),
    }
}

/// Rejects `-` as output: writes are atomic and not sequential, so they need a path.
fn not_standard_output(path: &Path, what: &str) -> Result<()> {
    if path == Path::new("-") {
        let message = format!("{what} cannot be written to standard output; specify a path");
        return Err(Error::argument(message));
    }
    Ok(())
}

/// The value of the option `--overwrite`.
fn overwrite(allowed: bool) -> Overwrite {
    if allowed { Overwrite::Replace } else { Overwrite::Never }
}
