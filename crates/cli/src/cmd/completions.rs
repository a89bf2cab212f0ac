//! `spile completions`.

use std::io::Write as _;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use spile::error::Result;

use crate::args::Cli;
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    // The generator panics on write errors, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "spile", &mut script);
    if context.json {
        let mut document = out.document()?;
        document.field("shell", &args.shell.to_string())?;
        document.field("script", &String::from_utf8_lossy(&script))?;
        document.end()?;
    } else {
        out.write_all(&script)?;
    }
    Ok(Exit::Yes)
}
