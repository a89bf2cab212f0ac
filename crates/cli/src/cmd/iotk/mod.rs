//! `spile iotk`.

mod convert;
mod dump;

use clap::{Args, Subcommand};
use spile::error::Result;

use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

/// Operations on IOTK files.
#[derive(Debug, Args)]
pub(crate) struct IotkArgs {
    #[command(subcommand)]
    operation: Operation,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
enum Operation {
    /// Convert between binary and text without loss
    Convert(convert::ConvertArgs),
    /// Print the tree of tags with the first values of arrays
    Dump(dump::DumpArgs),
}

pub(crate) fn run(args: &IotkArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    match &args.operation {
        Operation::Convert(args) => convert::run(args, context, out),
        Operation::Dump(args) => dump::run(args, context, out),
    }
}
