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

/// Bytes copied at once.
const COPY: u64 = 1 << 20;

/// Up to so many sizes stand in the manifest itself.
const FEW: usize = 16;

/// Take a file apart: a manifest and a data file for each section.
///
/// The folder gets `manifest.json`, which describes the file header and every section, the bytes
/// of section 3 in `3.bin` and, of a V section with many elements, their sizes in `3.sizes`, a
/// number a line. `spile scda pack` makes the same file of it again.
#[derive(Debug, Args)]
pub(super) struct UnpackArgs {
    /// An scda file; - is standard input
    file: PathBuf,
    /// The folder to make; it must be new, or empty
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Do not decode compressed sections: every section as it lies in the file
    #[arg(long)]
    raw: bool,
}

pub(super) fn run(args: &UnpackArgs, context: &Context, out: &mut Output) -> Result<Exit> {
    not_standard_output(&args.output, "a folder")?;
    let file = open(&args.file, !args.raw, context)?;
    if file.header().breaks == Breaks::Other {
        context.warn(&args.file, "has line breaks of neither style; the manifest says unix");
    }
    let folder = Folder::create(&args.output)?;
    let wrote = |e: Error| e.with_path(&args.file).with_format("scda");
    write_all(&file, folder.path()).map_err(wrote)?;
    folder.appear()?;
    let done = Done {
        file: Some(args.file.to_string_lossy().into_owned()),
        output: args.output.to_string_lossy().into_owned(),
        sections: file.sections().len() as u64,
        data_bytes: file.sections().iter().map(|section| section.len).sum(),
        changes: None,
        dry_run: false,
    };
    done.tell(context, out)
}

/// Writes manifest and data into a folder.
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

/// Writes the data of a section and gives its line of the manifest.
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
    let mut buffer = vec![0; content.len().min(COPY) as usize];
    let mut at = 0;
    while at < content.len() {
        let piece = &mut buffer[..(content.len() - at).min(COPY) as usize];
        content.fetch(at, piece)?;
        to.write_all(piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// The sizes of elements: in the manifest, or in a file of their own where they are many.
fn write_sizes(sizes: &[u64], folder: &Path, name: &str) -> Result<Sizes> {
    if sizes.len() <= FEW {
        return Ok(Sizes::List(sizes.to_vec()));
    }
    let mut file = DataFile::create(folder, name)?;
    for size in sizes {
        writeln!(file, "{size}")?;
    }
    file.finish()?;
    Ok(Sizes::File(name.into()))
}

/// A file in the folder that is being made.
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

/// A folder that appears whole: made beside its place, under a name that begins with a dot.
struct Folder<'a> {
    target: &'a Path,
    temporary: tempfile::TempDir,
}

impl<'a> Folder<'a> {
    fn create(target: &'a Path) -> Result<Self> {
        let taken = || {
            Error::new(ErrorKind::Exists, "", "exists already; nothing was written")
                .with_path(target)
                .hint("name a folder that does not exist yet")
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
            .ok_or_else(|| Error::argument("is not the name of a new folder").with_path(target))?;
        let beside = target.parent().filter(|p| !p.as_os_str().is_empty());
        let temporary = tempfile::Builder::new()
            .prefix(&format!(".{}.", name.to_string_lossy()))
            .suffix(".part")
            .permissions(fs::Permissions::from_mode(0o777))
            .tempdir_in(beside.unwrap_or(Path::new(".")))
            .map_err(|e| Error::io(target, e))?;
        Ok(Self { target, temporary })
    }

    fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Gives the folder its name. What is there by now is replaced only if it is an empty folder.
    fn appear(self) -> Result<()> {
        fs::rename(self.temporary.path(), self.target).map_err(|e| Error::io(self.target, e))?;
        // There is nothing left to clean up.
        let _ = self.temporary.keep();
        Ok(())
    }
}
