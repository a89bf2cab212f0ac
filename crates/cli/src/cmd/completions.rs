//! `spile completions`.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::Cli;
use crate::cmd::prelude::*;

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
        out.object(&[
            ("shell", json!(args.shell.to_string())),
            ("script", json!(String::from_utf8_lossy(&script))),
        ])?;
    } else {
        out.write_all(&script)?;
    }
    Ok(Exit::Yes)
}
