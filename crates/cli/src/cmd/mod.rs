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
pub(crate) mod records;
pub(crate) mod salvage;
pub(crate) mod scda;
pub(crate) mod sdf;
pub(crate) mod spectrum;
pub(crate) mod stat;
pub(crate) mod taf;
pub(crate) mod tour;
pub(crate) mod watch;

/// What every verb uses.
mod prelude {
    pub(super) use std::io::Write as _;
    pub(super) use std::path::{Path, PathBuf};

    pub(super) use anstyle::Style;
    pub(super) use clap::Args;
    pub(super) use serde::Serialize;
    pub(super) use serde_json::json;
    pub(super) use spile::Dataset;
    pub(super) use spile::error::{Error, Result};

    pub(super) use crate::args::{
        NewFileArgs, OutputArgs, PickArgs, not_standard_output, overwrite,
    };
    pub(super) use crate::context::{Context, Entry};
    pub(super) use crate::exit::Exit;
    pub(super) use crate::print::{Align, Output, Table, style, text};
}

use crate::args::Command;
use prelude::*;

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
        Command::Records(args) => records::run(args, context, out),
        Command::Spectrum(args) => spectrum::spectrum(args, context, out),
        Command::Spectrogram(args) => spectrum::over_time(args, context, out),
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
