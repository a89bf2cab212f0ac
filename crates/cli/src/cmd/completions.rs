//! `spile completions`.

use std::io::Write as _;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use spile::error::Result;

use crate::args::Cli;
use crate::exit::Exit;
use crate::print::Output;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, out: &mut Output) -> Result<Exit> {
    // Into memory first: the generator panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "spile", &mut script);
    out.write_all(&script)?;
    Ok(Exit::Yes)
}
