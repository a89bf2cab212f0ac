//! `spile scda unpack`.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use spile::error::{Error, ErrorKind, Result};
use spile_scda::wire::{Breaks, Kind};
use spile_scda::{Content, File, Section};

use super::super::not_standard_output;
use super::manifest::{MANIFEST, Row, Sizes, Text};
use super::{Done, Style, open};
use crate::context::Context;
use crate::exit::Exit;
use crate::print::Output;

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
pub(super) struct UnpackArgs {
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
    not_standard_output(&args.output, "the output")?;
    let file = open(&args.file, !args.raw, context)?;
    if file.header().breaks == Breaks::Other {
        context.warn(&args.file, "unknown line-break style; written as unix");
    }
    let folder = Folder::create(&args.output)?;
    let locate = |e: Error| e.with_path(&args.file).with_format("scda");
    write_all(&file, folder.path()).map_err(locate)?;
    folder.commit()?;
    let done = Done {
        file: Some(args.file.to_string_lossy().into_owned()),
        output: args.output.to_string_lossy().into_owned(),
        sections: file.sections().len() as u64,
        data_bytes: file.sections().iter().map(|section| section.len).sum(),
        changes: None,
        dry_run: false,
    };
    done.report(context, out)
}

/// Writes manifest and data files to a folder.
fn write_all(file: &File, folder: &Path) -> Result<()> {
    let mut manifest = DataFile::create(folder, MANIFEST)?;
    let header = file.header();
    let breaks = if header.breaks == Breaks::Mime { Style::Mime } else { Style::Unix };
    writeln!(manifest, "{{")?;
    writeln!(manifest, "  \"vendor\": {},", json(&Text::from(header.vendor.as_slice()))?)?;
    writeln!(manifest, "  \"user\": {},", json(&Text::from(header.user.as_slice()))?)?;
    writeln!(manifest, "  \"breaks\": {},", json(&breaks)?)?;
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
    manifest.finish()
}

fn json(value: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(value).map_err(io::Error::from)?)
}

/// Writes the data of a section and returns its entry of the manifest.
fn write_section(file: &File, section: &Section, folder: &Path, name: &str) -> Result<Row> {
    let data_name = format!("{name}.bin");
    let mut data = DataFile::create(folder, &data_name)?;
    copy(&file.content(section)?, &mut data)?;
    data.finish()?;
    let size = match section.kind {
        Kind::Inline => None,
        Kind::Block | Kind::Array => Some(Sizes::One(section.size)),
        Kind::Varray => Some(write_sizes(&section.sizes(), folder, &format!("{name}.sizes"))?),
    };
    Ok(Row {
        kind: section.kind.letter(),
        user: Text::from(section.user()),
        number: matches!(section.kind, Kind::Array | Kind::Varray).then_some(section.count),
        size,
        encoded: section.encoded,
        file: data_name,
    })
}

fn copy(content: &Content, to: &mut DataFile) -> Result<()> {
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
fn write_sizes(sizes: &[u64], folder: &Path, name: &str) -> Result<Sizes> {
    if sizes.len() <= MAX_INLINE_SIZES {
        return Ok(Sizes::List(sizes.to_vec()));
    }
    let mut file = DataFile::create(folder, name)?;
    for size in sizes {
        writeln!(file, "{size}")?;
    }
    file.finish()?;
    Ok(Sizes::File(name.into()))
}

/// A file in the output folder.
struct DataFile {
    path: PathBuf,
    writer: BufWriter<fs::File>,
}

impl DataFile {
    fn create(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(name);
        let file = fs::File::create_new(&path).map_err(|e| Error::io(&path, e))?;
        Ok(Self { path, writer: BufWriter::with_capacity(64 << 10, file) })
    }

    fn finish(self) -> Result<()> {
        let Self { path, writer } = self;
        let written = writer.into_inner().map_err(io::IntoInnerError::into_error);
        written.and_then(|file| file.sync_all()).map_err(|e| Error::io(path, e))
    }
}

impl Write for DataFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes).map_err(|e| Error::io(&self.path, e).into())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// An output folder that is written to a temporary folder and renamed when complete.
struct Folder<'a> {
    target: &'a Path,
    temporary: tempfile::TempDir,
}

impl<'a> Folder<'a> {
    fn create(target: &'a Path) -> Result<Self> {
        let taken = || {
            Error::new(ErrorKind::Exists, "", "already exists; nothing was written")
                .with_path(target)
                .hint("specify a new folder")
        };
        match fs::read_dir(target) {
            Ok(entries) => {
                if entries.count() > 0 {
                    return Err(taken());
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) if e.kind() == io::ErrorKind::NotADirectory => return Err(taken()),
            Err(e) => return Err(Error::io(target, e)),
        }
        let name = target
            .file_name()
            .ok_or_else(|| Error::argument("the path has no folder name").with_path(target))?;
        let parent = target.parent().filter(|p| !p.as_os_str().is_empty());
        let temporary = tempfile::Builder::new()
            .prefix(&format!(".{}.", name.to_string_lossy()))
            .suffix(".part")
            .permissions(fs::Permissions::from_mode(0o777))
            .tempdir_in(parent.unwrap_or(Path::new(".")))
            .map_err(|e| Error::io(target, e))?;
        Ok(Self { target, temporary })
    }

    fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Renames the temporary folder to the target. Only an empty folder is replaced.
    fn commit(self) -> Result<()> {
        fs::rename(self.temporary.path(), self.target).map_err(|e| Error::io(self.target, e))?;
        // The temporary folder no longer exists.
        let _ = self.temporary.keep();
        Ok(())
    }
}
