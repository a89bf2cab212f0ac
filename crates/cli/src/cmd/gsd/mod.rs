//! `spile gsd`.

mod change;
mod log;

use clap::{Args, Subcommand};
use spile::error::Result;

use super::watch;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

/// Operations on GSD files.
///
/// Frames count from 0. Writes are atomic.
#[derive(Debug, Args)]
pub(crate) struct GsdArgs {
    #[command(subcommand)]
    operation: Operation,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
enum Operation {
    /// Upgrade files to version 2.1 in place
    Upgrade(change::UpgradeArgs),
    /// Copy selected frames to a new file
    Trim(change::TrimArgs),
    /// Concatenate files
    Merge(change::MergeArgs),
    /// Append the frames of other files to a file, which keeps its version
    Append(change::AppendArgs),
    Log(log::LogArgs),
    /// The same as `spile watch`
    Watch(watch::WatchArgs),
}

pub(crate) fn run(args: &GsdArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    match &args.operation {
        Operation::Upgrade(args) => change::upgrade(args, context, out),
        Operation::Trim(args) => change::trim(args, context, out),
        Operation::Merge(args) => change::merge(args, context, out),
        Operation::Append(args) => change::append(args, context, out),
        Operation::Log(args) => log::run(args, context, out),
        Operation::Watch(args) => watch::run(args, context, out),
    }
}
