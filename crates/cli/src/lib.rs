//! The program `spile`, as a function: the command and the Python package both call it. The only
//! crate that prints.
//!
//! | file | what is in it |
//! |---|---|
//! | `args` | the whole command line; help, man pages and completions are made from it |
//! | `context` | what all verbs share: limits, files, how to report a failure |
//! | `cmd/<verb>` | one file a verb: arguments, a call into `ops`, a call into `print` |
//! | `print` | text, tables and JSON on standard output |
//! | `progress` | a bar on standard error while a long file is read |
//! | `exit` | what the exit status means |
#![forbid(unsafe_code)]

mod args;
mod batch;
mod cmd;
mod context;
mod exit;
mod hint;
mod print;
mod progress;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser as _};
use spile::error::{Error, Result};

use args::{Cli, Command};
use context::Context;
use exit::Exit;
use print::Output;

/// More threads than this only take time to start.
const MOST_JOBS: usize = 512;

/// Does what a command line says, whose first word is the program's name, and gives the exit status.
pub fn main(words: Vec<OsString>) -> u8 {
    let cli = match parse(words) {
        Ok(cli) => cli,
        // Help and version go to standard output, everything else is exit 2. A failure to print
        // that cannot be printed either.
        Err(error) => {
            let _ = error.print();
            return error.exit_code().try_into().unwrap_or(2);
        }
    };
    let context = Context::new(&cli.global);
    match run(&cli, &context) {
        Ok(exit) => exit.into(),
        Err(error) => context.fail(&error).into(),
    }
}

fn run(cli: &Cli, context: &Context) -> Result<Exit> {
    if let Command::Other(words) = &cli.command {
        return Err(unknown_command(&words[0]));
    }
    reject_options(&cli.command)?;
    if let Some(jobs) = cli.global.jobs {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.get().min(MOST_JOBS));
        pool.build_global().map_err(|e| Error::argument(format!("-j {jobs}: {e}")))?;
    }
    let mut out = Output::stdout(context)?;
    let exit = cmd::run(&cli.command, context, &mut out)?;
    out.flush()?;
    progress::hide();
    Ok(exit)
}

/// `spile FILE` is `spile info --arrays FILE`: what clap takes for an unknown command is a file, if there
/// is one or if no command has a similar name.
fn parse(mut words: Vec<OsString>) -> std::result::Result<Cli, clap::Error> {
    // `spile help VERB` is `spile VERB --help`.
    if words.get(1).is_some_and(|word| word == "help") && !Path::new("help").exists() {
        words.remove(1);
        words.push("--help".into());
    }
    let cli = match Cli::try_parse_from(&words) {
        Err(error) if error.kind() == ErrorKind::InvalidUtf8 => {
            // Names of commands are text, those of files need not be.
            let file = words.iter().position(|word| word.to_str().is_none());
            let mut with_verb = words;
            let at = file.unwrap_or(1);
            with_verb.splice(at..at, ["info".into(), "--arrays".into()]);
            return Cli::try_parse_from(with_verb).map_err(|_| error);
        }
        other => other?,
    };
    let Command::Other(rest) = &cli.command else { return Ok(cli) };
    if !Path::new(&rest[0]).exists() && !similar_commands(&rest[0]).is_empty() {
        return Ok(cli);
    }
    let at = words.len() - rest.len();
    let mut with_verb = words;
    with_verb.splice(at..at, ["info".into(), "--arrays".into()]);
    Cli::try_parse_from(with_verb)
}

/// Selections may begin with a hyphen, so clap takes unknown options for them.
fn reject_options(command: &Command) -> Result<()> {
    let (verb, words) = match command {
        Command::Cat(args) => ("cat", args.words()),
        Command::Plot(args) => ("plot", args.words()),
        _ => return Ok(()),
    };
    let Some(option) = words.into_iter().flatten().find(|word| word.starts_with("--")) else {
        return Ok(());
    };
    let command = Cli::command();
    let verb = command.find_subcommand(verb);
    let known = command.get_arguments().chain(verb.into_iter().flat_map(|v| v.get_arguments()));
    let known: Vec<String> =
        known.filter_map(|a| Some(format!("--{}", a.get_long()?))).collect();
    let near = spile::tree::closest(option, known.iter().map(String::as_str));
    let meant = match near.first() {
        Some(near) => format!(" (did you mean {near}?)"),
        None => String::new(),
    };
    Err(Error::argument(format!("unknown option {option}{meant}")))
}

fn similar_commands(word: &OsString) -> Vec<String> {
    let command = Cli::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    spile::tree::closest(&word.to_string_lossy(), names)
}

fn unknown_command(word: &OsString) -> Error {
    let names = similar_commands(word).join("` or `spile ");
    Error::argument(format!("\"{}\" is neither a command nor a file", word.to_string_lossy()))
        .hint(format!("did you mean `spile {names}`?"))
}
