//! `spile tour`: a demonstration on sample files.

use std::fs;

use clap::Parser as _;

use crate::args::Cli;
use crate::cmd::prelude::*;
use crate::samples;

/// Titles and commands.
const STEPS: [(&str, &str); 14] = [
    ("Supported formats:", "formats"),
    ("Summary of a file:", "info trajectory.gsd"),
    (
        "Arrays of several files:",
        "ls -l long.gsd prefix.save/charge-density.dat checkpoint.scda scaled.taf shot.trc columns.txt",
    ),
    ("Values of an array:", "cat run/0001.sdf ex 20:24,:5"),
    ("Statistics:", "stat signal.taf scaled.taf"),
    ("A plot of a million samples in the terminal:", "plot signal.taf --height 16"),
    ("A field as an image:", "plot run/0001.sdf ex --symmetric -o ex.png"),
    ("Some frames of a trajectory:", "gsd trim long.gsd ::25 -o short.gsd"),
    ("Logged quantities of a simulation:", "gsd log short.gsd"),
    ("Byte ranges and their meaning:", "map scaled.taf"),
    ("Check of the files in a folder:", "check run"),
    ("Check of a truncated file:", "check truncated.sdf"),
    ("Recovery of the truncated file:", "salvage truncated.sdf -o recovered.sdf"),
    ("Checksums, independent of the layout:", "hash scaled.taf recovered.sdf"),
];

#[derive(Debug, Args)]
pub(crate) struct TourArgs {
    /// New folder for the sample files [default: a temporary folder]
    folder: Option<PathBuf>,
}

pub(crate) fn run(args: &TourArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    let folder = match &args.folder {
        Some(folder) => {
            fs::create_dir(folder).map_err(|e| Error::io(folder, e))?;
            folder.clone()
        }
        None => tempfile::Builder::new().prefix("spile-tour-").tempdir()?.keep(),
    };
    samples::write_all(&folder)?;
    // The commands run in the folder of the samples, so that they can be copied as printed.
    let folder = fs::canonicalize(&folder).map_err(|e| Error::io(&folder, e))?;
    std::env::set_current_dir(&folder).map_err(|e| Error::io(&folder, e))?;
    if context.json {
        out.object(&[("folder", json!(folder.to_string_lossy()))])?;
    } else {
        writeln!(out, "Sample files: {}", folder.display())?;
    }
    for (title, command) in STEPS {
        step(title, command, context, out)?;
    }
    if !context.json {
        writeln!(
            out,
            "\nEnd of the tour. `spile help` lists all commands. The sample files are in"
        )?;
        writeln!(out, "{}", folder.display())?;
    }
    Ok(Exit::Yes)
}

/// Prints and runs one command.
fn step(title: &str, command: &str, context: &Context, out: &mut Output) -> Result<()> {
    let line = format!("spile {command}");
    if context.json {
        out.object(&[("step", json!(title)), ("command", json!(line))])?;
    } else {
        let line = out.paint(style::NAME, &format!("$ {line}"));
        writeln!(out, "\n{title}\n{line}")?;
    }
    let cli = Cli::try_parse_from(line.split(' ')).map_err(|e| Error::argument(e.to_string()))?;
    if let Err(error) = super::run(&cli.command, context, out) {
        out.flush()?;
        context.fail(&error);
    }
    Ok(())
}
