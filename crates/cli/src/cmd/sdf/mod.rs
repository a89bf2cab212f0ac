//! `spile sdf`.

mod particles;

use std::{fs, io};

use clap::Subcommand;
use spile::read::Axes;
use spile::select::Selection;
use spile_sdf::{Block, BlockType, File, Meta, archive};

use crate::cmd::prelude::*;
use particles::{EnergyArgs, HistogramArgs, TrackArgs};

/// Input decks, source code and particles of SDF files.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum Operation {
    /// Print the input decks stored in a dump
    Deck(DeckArgs),
    Source(SourceArgs),
    Track(TrackArgs),
    Histogram(HistogramArgs),
    Energy(EnergyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct DeckArgs {
    /// Files; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Extract the source code stored in a file to a new folder.
///
/// Links, and names that lead out of the folder, are skipped; the exit status is then 3.
#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// SDF file
    file: PathBuf,
    /// New output folder [default: NAME-source next to the file]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

pub(crate) fn run(operation: &Operation, context: &Context, out: &mut Output) -> Result<Exit> {
    match operation {
        Operation::Deck(args) => deck(args, context, out),
        Operation::Source(args) => source(args, context, out),
        Operation::Track(args) => particles::track(args, context, out),
        Operation::Histogram(args) => particles::histogram(args, context, out),
        Operation::Energy(args) => particles::energy(args, context, out),
    }
}

fn open(path: &Path, context: &Context) -> Result<File> {
    File::from_source(context.source(path)?, &context.limits)
        .map_err(|e| e.with_path(path).with_format("sdf"))
}

fn bytes(file: &File, block: &Block) -> Result<Vec<u8>> {
    file.raw(block)?.read_bytes(&Selection::all(), Axes::Stored)
}

fn deck(args: &DeckArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    #[derive(Serialize)]
    struct Deck<'a> {
        id: &'a str,
        name: &'a str,
        text: String,
    }
    context.each_file(&args.files, out, |entry, out| {
        let file = open(entry.path, context)?;
        let is_deck = |b: &&Block| match &b.meta {
            Meta::Datablock { mimetype, .. } => {
                b.header.id.starts_with("input_deck") || mimetype == "text/plain"
            }
            _ => false,
        };
        let mut decks = Vec::new();
        for block in file.blocks().iter().filter(is_deck) {
            let text = String::from_utf8_lossy(&bytes(&file, block)?).into_owned();
            decks.push(Deck { id: &block.header.id, name: &block.header.name, text });
        }
        if decks.is_empty() {
            return Err(Error::argument("the file contains no input deck").hint(
                "EPOCH stores decks in restart dumps, and in all dumps with dump_input_decks",
            ));
        }
        if context.json {
            return out.object(&[("file", json!(entry.name())), ("decks", json!(decks))]);
        }
        out.heading(entry)?;
        for deck in &decks {
            if decks.len() > 1 && !context.quiet {
                let line = out.paint(style::FAINT, &format!("# {}", text::one_line(deck.name)));
                writeln!(out, "{line}")?;
            }
            // Tabs are expanded, other control characters are escaped.
            for line in deck.text.lines() {
                writeln!(out, "{}", text::one_line(&line.replace('\t', "        ")))?;
            }
        }
        Ok(())
    })
}

fn source(args: &SourceArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    if let Some(output) = &args.output {
        not_standard_output(output)?;
    }
    let file = open(&args.file, context)?;
    let is_source = |b: &&Block| match &b.meta {
        Meta::Datablock { mimetype, .. } => mimetype.contains("tar"),
        _ => b.kind() == BlockType::Source,
    };
    let blocks: Vec<&Block> = file.blocks().iter().filter(is_source).collect();
    let mut found = archive::Archive::default();
    for block in &blocks {
        let unpacked = archive::unpack(&bytes(&file, block)?, "source", &context.limits);
        let part = unpacked.map_err(|e| e.in_object(block.title()).with_path(&args.file))?;
        // Several archives may contain the same names.
        let plain = |c: char| if c.is_alphanumeric() { c } else { '_' };
        let prefix: String = block.header.id.chars().map(plain).collect();
        let target =
            |path: PathBuf| if blocks.len() > 1 { Path::new(&prefix).join(path) } else { path };
        found.files.extend(part.files.into_iter().map(|(path, data)| (target(path), data)));
        found.refused.extend(part.refused);
    }
    if found.files.is_empty() && found.refused.is_empty() {
        return Err(Error::argument("the file contains no source code").with_path(&args.file));
    }
    let folder = args.output.clone().unwrap_or_else(|| {
        let stem = args.file.file_stem().unwrap_or_default().to_string_lossy();
        args.file.with_file_name(format!("{stem}-source"))
    });
    // A new folder contains no links.
    fs::create_dir(&folder).map_err(|e| Error::io(&folder, e))?;
    let mut written = Vec::new();
    for (path, data) in &found.files {
        let target = folder.join(path);
        let write = || -> io::Result<()> {
            if let Some(above) = target.parent() {
                fs::create_dir_all(above)?;
            }
            fs::File::create_new(&target)?.write_all(data)
        };
        match write() {
            Ok(()) => written.push(target.to_string_lossy().into_owned()),
            // Two entries with the same name, or a file with the name of a folder.
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory
                ) =>
            {
                found.refused.push(format!("{}: duplicate name", path.display()));
            }
            Err(e) => return Err(Error::io(&target, e)),
        }
    }
    if context.json {
        out.object(&[
            ("file", json!(args.file.to_string_lossy())),
            ("folder", json!(folder.to_string_lossy())),
            ("written", json!(written)),
            ("refused", json!(found.refused)),
        ])?;
    } else if !context.quiet {
        for name in &written {
            writeln!(out, "{}", text::one_line(name))?;
        }
        out.flush()?;
        for what in &found.refused {
            context.warn(&args.file, &format!("skipped: {what}"));
        }
    }
    Ok(if found.refused.is_empty() { Exit::Yes } else { Exit::Partial })
}
