//! `spile gsd`.

mod change;
mod log;

use clap::Subcommand;

use super::watch;
use crate::cmd::prelude::*;

/// Operations on GSD files.
///
/// Frames count from 0. Writes are atomic.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum Operation {
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

pub(crate) fn run(operation: &Operation, context: &Context, out: &mut Output) -> Result<Exit> {
    match operation {
        Operation::Upgrade(args) => change::upgrade(args, context, out),
        Operation::Trim(args) => change::trim(args, context, out),
        Operation::Merge(args) => change::merge(args, context, out),
        Operation::Append(args) => change::append(args, context, out),
        Operation::Log(args) => log::run(args, context, out),
        Operation::Watch(args) => watch::run(args, context, out),
    }
}
