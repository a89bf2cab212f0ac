//! The command line program `spile` as a library: called by the binary and by the Python package. The
//! only crate that prints.
//!
//! | module | content |
//! |---|---|
//! | `args` | definition of the command line; help, man pages and completions are generated from it |
//! | `context` | global options, opening files, errors and warnings |
//! | `batch` | several files and folders at once |
//! | `cmd/<verb>` | one module per verb: arguments, a call of `ops`, a call of `print` |
//! | `print` | text, tables and JSON on standard output |
//! | `hint` | hints of errors in terms of the command line |
//! | `progress` | progress bar on standard error |
//! | `exit` | exit status |
//! | `interrupt` | SIGINT and SIGTERM |
//! | [`samples`] | sample files |
#![forbid(unsafe_code)]

mod args;
mod batch;
mod cmd;
mod context;
mod exit;
mod hint;
mod interrupt;
mod print;
mod progress;
mod raw_samples;
pub mod samples;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser as _};
use spile::error::{Error, Result};

use args::{Cli, Command};
use context::Context;
use exit::Exit;
use print::Output;

/// Upper limit of `--jobs`.
const MAX_THREADS: usize = 512;

/// Runs a command line, whose first argument is the name of the program, and returns the exit status.
pub fn main(args: Vec<OsString>) -> u8 {
    let cli = match parse(raw_samples::joined(args)).map_err(reworded) {
        Ok(cli) => cli,
        // Help and version are printed on standard output with exit status 0, errors have 2. A failure
        // to print them cannot be reported.
        Err(error) => {
            let _ = error.print();
            return error.exit_code().try_into().unwrap_or(2);
        }
    };
    let context = Context::new(&cli.global);
    interrupt::install();
    let done = run(&cli, &context);
    match (interrupt::status(), done) {
        (Some(status), _) => status,
        (None, Ok(exit)) => exit.into(),
        (None, Err(error)) => context.fail(&error).into(),
    }
}

/// Runs a command line, whose first argument is the name of the program, and returns what it would print on standard
/// output. For other front ends: nothing is printed, and errors are returned.
pub fn call(args: Vec<OsString>) -> Result<Vec<u8>> {
    let wrong = |e: clap::Error| Error::argument(reworded(e).to_string().trim().to_string());
    let cli = parse(args).map_err(wrong)?;
    let context =
        Context { progress: false, colour: false, width: None, ..Context::new(&cli.global) };
    reject_options(&cli.command)?;
    let mut out = Output::kept(&context);
    cmd::run(&cli.command, &context, &mut out)?;
    out.into_bytes()
}

fn run(cli: &Cli, context: &Context) -> Result<Exit> {
    if let Command::Other(args) = &cli.command {
        return Err(unknown_command(&args[0]));
    }
    reject_options(&cli.command)?;
    if let Some(jobs) = cli.global.jobs {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.get().min(MAX_THREADS));
        pool.build_global().map_err(|e| Error::argument(format!("-j {jobs}: {e}")))?;
    }
    let mut out = Output::stdout(context)?;
    let exit = cmd::run(&cli.command, context, &mut out)?;
    out.flush()?;
    progress::hide();
    Ok(exit)
}

/// Parses the command line. `spile FILE` is `spile info --arrays FILE`: an unknown command is taken as a
/// file if such a file exists or if no command has a similar name.
fn parse(mut args: Vec<OsString>) -> std::result::Result<Cli, clap::Error> {
    // `spile help VERB` is `spile VERB --help`.
    if args.get(1).is_some_and(|arg| arg == "help") && !Path::new("help").exists() {
        args.remove(1);
        args.push("--help".into());
        // A name that is not a command would be taken as a file.
        let verb = args[1].to_string_lossy();
        if !verb.starts_with('-') && Cli::command().find_subcommand(&*verb).is_none() {
            let message = format!("unknown command \"{verb}\"; `spile help` lists all");
            return Err(Cli::command().error(ErrorKind::InvalidSubcommand, message));
        }
    }
    let parsed = Cli::try_parse_from(&args);
    let at = match &parsed {
        // Names of commands are UTF-8, file names need not be.
        Err(error) if error.kind() == ErrorKind::InvalidUtf8 => {
            args.iter().position(|arg| arg.to_str().is_none()).unwrap_or(1)
        }
        Ok(Cli { command: Command::Other(rest), .. })
            if Path::new(&rest[0]).exists() || similar_commands(&rest[0]).is_empty() =>
        {
            args.len() - rest.len()
        }
        _ => return parsed,
    };
    args.splice(at..at, ["info".into(), "--arrays".into()]);
    Cli::try_parse_from(args).map_err(|error| parsed.err().unwrap_or(error))
}

/// An error about an unknown option in the words of [`reject_options`]; other errors are unchanged.
fn reworded(error: clap::Error) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    match (error.kind(), text(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(option)) if option.starts_with('-') => {
            let similar = text(ContextKind::SuggestedArg);
            clap::Error::raw(ErrorKind::UnknownArgument, unknown_option(option, similar) + "\n")
        }
        _ => error,
    }
}

fn unknown_option(option: &str, similar: Option<&str>) -> String {
    let similar = similar.map_or(String::new(), |similar| format!(" (did you mean {similar}?)"));
    format!("unknown option {option}{similar}")
}

/// Reports unknown options of `cat` and `plot`, which clap accepts as positional arguments because
/// selections may start with a hyphen.
fn reject_options(command: &Command) -> Result<()> {
    let (verb, positionals) = match command {
        Command::Cat(args) => ("cat", args.positionals()),
        Command::Plot(args) => ("plot", args.positionals()),
        _ => return Ok(()),
    };
    let Some(option) = positionals.into_iter().flatten().find(|arg| arg.starts_with("--")) else {
        return Ok(());
    };
    let command = Cli::command();
    let verb = command.find_subcommand(verb);
    let known =
        command.get_arguments().chain(verb.into_iter().flat_map(clap::Command::get_arguments));
    let known: Vec<String> = known.filter_map(|a| Some(format!("--{}", a.get_long()?))).collect();
    let similar = spile::tree::closest(option, known.iter().map(String::as_str));
    Err(Error::argument(unknown_option(option, similar.first().map(String::as_str))))
}

fn similar_commands(name: &OsString) -> Vec<String> {
    let command = Cli::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    spile::tree::closest(&name.to_string_lossy(), names)
}

fn unknown_command(name: &OsString) -> Error {
    let names = similar_commands(name).join("` or `spile ");
    Error::argument(format!("unknown command or file \"{}\"", name.to_string_lossy()))
        .hint(format!("did you mean `spile {names}`?"))
}
