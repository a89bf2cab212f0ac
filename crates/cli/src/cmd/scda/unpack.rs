//! `spile scda unpack`.

use std::io::{self, BufWriter};

use spile::sink::{FolderSink, Overwrite, Sink};
use spile_scda::wire::{Breaks, Kind};
use spile_scda::{Content, File, Section};

use super::manifest::{Letter, MANIFEST, Row, Sizes, Text};
use super::{Done, LineBreaks, open};
use crate::cmd::prelude::*;

/// Size of the copy buffer in bytes.
const COPY_BYTES: u64 = 1 << 20;

/// Maximum number of element sizes in the manifest; more are written to a file.
const MAX_INLINE_SIZES: usize = 16;

/// Write a manifest and one data file per section.
///
/// The folder contains `manifest.json` with the file header and the sections, the data of section 3 in
/// `3.bin` and, for a V section with many elements, their sizes in `3.sizes`, one number per line.
/// `spile scda pack` restores the file.
#[derive(Debug, Args)]
pub(crate) struct UnpackArgs {
    /// Input file (scda); - is standard input
    file: PathBuf,
    /// Output folder, which must be new or empty
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Do not decode compressed sections
    #[arg(long)]
    raw: bool,
}

pub(super) fn run(args: &UnpackArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    not_standard_output(&args.output)?;
    let file = open(&args.file, !args.raw, context)?;
    if file.header().breaks == Breaks::Other {
        context.warn(&args.file, "unknown line-break style; written as unix");
    }
    // An empty folder is replaced.
    let empty = args.output.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    let overwrite = if empty { Overwrite::Replace } else { Overwrite::Never };
    let folder = FolderSink::create(&args.output, overwrite)?;
    let locate = |e: Error| e.with_path(&args.file).with_format("scda");
    write_all(&file, &folder).map_err(locate)?;
    folder.commit()?;
    Done::copied(&args.file, &file, &args.output).report(context, out)
}

/// Writes manifest and data files to a folder.
fn write_all(file: &File, folder: &FolderSink) -> Result<()> {
    let mut manifest = BufWriter::new(folder.file(MANIFEST)?);
    let header = file.header();
    let breaks = if header.breaks == Breaks::Mime { LineBreaks::Mime } else { LineBreaks::Unix };
    writeln!(manifest, "{{")?;
    writeln!(manifest, "  \"vendor\": {},", json(&Text::from(header.vendor.as_slice()))?)?;
    writeln!(manifest, "  \"user\": {},", json(&Text::from(header.user.as_slice()))?)?;
    writeln!(manifest, "  \"breaks\": {},", json(&breaks)?)?;
    if let Some(index) = file.index() {
        let checksums = index.has_checksums();
        writeln!(manifest, "  \"index\": true,\n  \"checksums\": {checksums},")?;
    }
    write!(manifest, "  \"sections\": [")?;
    let last = file.sections().len().saturating_sub(1);
    let width = last.to_string().len();
    for (number, section) in file.sections().iter().enumerate() {
        let name = format!("{number:0width$}");
        let row = write_section(file, section, folder, &name)
            .map_err(|e| e.in_object(format!("section {number}, {}", section.title())))?;
        write!(manifest, "\n    {}{}", json(&row)?, if number < last { "," } else { "\n  " })?;
    }
    writeln!(manifest, "]\n}}")?;
    Ok(manifest.flush()?)
}

fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value).map_err(io::Error::from)?)
}

/// Writes the data of a section and returns its entry of the manifest.
fn write_section(file: &File, section: &Section, folder: &FolderSink, name: &str) -> Result<Row> {
    let data_name = format!("{name}.bin");
    copy(&file.content(section)?, &mut folder.file(&data_name)?)?;
    let size = match section.kind {
        Kind::Inline => None,
        Kind::Block | Kind::Array => Some(Sizes::One(section.size)),
        Kind::Varray => Some(write_sizes(&section.sizes(), folder, &format!("{name}.sizes"))?),
    };
    Ok(Row {
        kind: match section.kind {
            Kind::Inline => Letter::I,
            Kind::Block => Letter::B,
            Kind::Array => Letter::A,
            Kind::Varray => Letter::V,
        },
        user: Text::from(section.user()),
        number: matches!(section.kind, Kind::Array | Kind::Varray).then_some(section.count),
        size,
        encoded: section.encoded,
        file: Some(data_name),
        text: None,
        hex: None,
    })
}

fn copy(content: &Content, to: &mut Sink) -> Result<()> {
    let mut buffer = vec![0; content.len().min(COPY_BYTES) as usize];
    let mut at = 0;
    while at < content.len() {
        let piece = &mut buffer[..(content.len() - at).min(COPY_BYTES) as usize];
        content.fetch(at, piece)?;
        to.write_all(piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// Returns the sizes of elements for the manifest; many sizes are written to a file.
fn write_sizes(sizes: &[u64], folder: &FolderSink, name: &str) -> Result<Sizes> {
    if sizes.len() <= MAX_INLINE_SIZES {
        return Ok(Sizes::List(sizes.to_vec()));
    }
    let mut file = BufWriter::new(folder.file(name)?);
    for size in sizes {
        writeln!(file, "{size}")?;
    }
    file.flush()?;
    Ok(Sizes::File(name.into()))
}
