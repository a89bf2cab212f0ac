//! `spile iotk`.

mod convert;
mod dump;

use clap::Subcommand;

use crate::cmd::prelude::*;

/// Operations on IOTK files.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum Operation {
    /// Convert between binary and text without loss
    Convert(convert::ConvertArgs),
    /// Print the tree of tags with the first values of arrays
    Dump(dump::DumpArgs),
}

pub(crate) fn run(operation: &Operation, context: &Context, out: &mut Output) -> Result<Exit> {
    match operation {
        Operation::Convert(args) => convert::run(args, context, out),
        Operation::Dump(args) => dump::run(args, context, out),
    }
}
