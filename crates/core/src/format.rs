//! What every format offers, and how a file finds its format.

mod registry;

use std::path::{Path, PathBuf};

use crate::description::{Holds, dressed};
use crate::error::{Error, Result};
use crate::layout::ArrayDesc;
use crate::limits::Limits;
use crate::report::{Finding, Report};
use crate::sink::{FolderSink, Overwrite, Sink};
use crate::source::Source;
use crate::tree::{Attrs, Tree, Value};

pub use registry::{Opened, Registry};

/// Bytes of a file's beginning that probing looks at.
pub const HEAD_BYTES: usize = 4096;

/// How far a capability goes; the table in the README is made from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// Not there.
    None,
    /// There, with gaps that the format's page names.
    Partial,
    /// All of the specification.
    Complete,
}

/// What a format is and what we do with it.
#[derive(Clone, Copy, Debug)]
pub struct FormatInfo {
    /// Short name, as in commands and codes.
    pub name: &'static str,
    /// Full name.
    pub title: &'static str,
    /// Who has such files.
    pub users: &'static str,
    /// The text it is built by.
    pub specification: &'static str,
    /// Usual file name endings, without the dot.
    pub extensions: &'static [&'static str],
    /// Reading.
    pub read: Grade,
    /// Writing.
    pub write: Grade,
    /// Checking against the specification.
    pub check: Grade,
    /// Recovery of damaged files.
    pub salvage: Grade,
}

/// The beginning of a file, for probing.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Up to [`HEAD_BYTES`] bytes.
    pub bytes: &'a [u8],
    /// Length of the whole file.
    pub len: u64,
}

/// How sure a format is that a file is its own: 0 not at all, 100 beyond doubt.
pub type Score = u8;

/// What a part of a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Describes the data.
    Header,
    /// The data.
    Data,
    /// Words for people.
    Text,
    /// Nothing.
    Padding,
    /// Not known.
    Unknown,
}

impl Role {
    /// The word that stands in listings and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Header => "header",
            Self::Data => "data",
            Self::Text => "text",
            Self::Padding => "padding",
            Self::Unknown => "unknown",
        }
    }
}

/// A range of bytes with a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// What it is for.
    pub role: Role,
    /// Its name in the format's own words.
    pub name: String,
    /// What it says.
    pub value: String,
}

/// One of the format's own objects: a section, a block, a chunk, a record.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its name.
    pub path: String,
    /// Its other name, where it has two.
    pub id: Option<String>,
    /// Its frame.
    pub frame: Option<u64>,
    /// Its type in the format's own words.
    pub kind: String,
    /// Its bytes; never [`crate::layout::Layout::PerFrame`].
    pub array: ArrayDesc,
}

/// An open file.
pub trait Reader: Send + Sync {
    /// What is in it.
    fn tree(&self) -> &Tree;

    /// Its bytes.
    fn source(&self) -> &Source;

    /// What a person wants to know first, in the format's own words.
    fn summary(&self) -> Vec<(String, Value)>;

    /// What was noticed while it was opened and did not stop that.
    fn findings(&self) -> &[Finding] {
        &[]
    }

    /// The same with what was added to the file since, where the format knows how to find that without
    /// going through all of it again. Who holds this one goes on seeing what it saw.
    fn refreshed(&self, limits: &Limits) -> Result<Option<Box<dyn Reader>>> {
        let _ = limits;
        Ok(None)
    }

    /// Every byte range with its meaning, in the order of the file.
    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()>;

    /// The format's own objects, in the order of the file.
    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()>;
}

/// A tree whose bytes are not one file: many files read as one, or something made.
pub struct Dataset {
    /// The bytes.
    pub source: Source,
    /// What is in it.
    pub tree: Tree,
    /// What a person wants to know first.
    pub summary: Attrs,
    /// What was noticed while it was opened.
    pub findings: Vec<Finding>,
}

impl Dataset {
    /// A tree over bytes, with nothing said about it.
    pub fn new(source: Source, tree: Tree) -> Self {
        Self { source, tree, summary: Vec::new(), findings: Vec::new() }
    }
}

impl Reader for Dataset {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn summary(&self) -> Attrs {
        self.summary.clone()
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn regions(&self, _: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        Err(one_by_one())
    }

    fn objects(&self, _: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        Err(one_by_one())
    }
}

fn one_by_one() -> Error {
    Error::unsupported("", "these are many files").hint("look at them one by one")
}

/// What [`Format::salvage`] could and could not save.
#[derive(Clone, Debug, Default)]
pub struct Salvage {
    /// Objects that are in the new file.
    pub kept: Vec<String>,
    /// Objects, or parts of them, that are not.
    pub lost: Vec<String>,
}

/// A folder, for formats whose datasets are more than a file.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    files: Vec<PathBuf>,
}

impl Folder {
    /// Lists a folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let list = || -> std::io::Result<Vec<PathBuf>> {
            let mut files = Vec::new();
            for entry in std::fs::read_dir(path)? {
                let entry = entry?;
                // What a link points to counts; a link to nothing is no file.
                let file = std::fs::metadata(entry.path()).is_ok_and(|meta| meta.is_file());
                if file && !entry.file_name().to_string_lossy().starts_with('.') {
                    files.push(entry.path());
                }
            }
            files.sort();
            Ok(files)
        };
        let files = list().map_err(|e| Error::io(path, e))?;
        Ok(Self { path: path.to_path_buf(), files })
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its files, in the order of their names; none whose name begins with a dot.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Those with that ending.
    pub fn with_extension(&self, extension: &str) -> Vec<PathBuf> {
        let ends =
            |file: &&PathBuf| file.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension));
        self.files.iter().filter(ends).cloned().collect()
    }
}

/// A file format.
pub trait Format: Send + Sync {
    /// What it is.
    fn info(&self) -> &'static FormatInfo;

    /// How sure it is that a file beginning like this is its own. The name is not shown to it.
    fn probe(&self, head: Head<'_>) -> Score;

    /// Reads the metadata.
    fn open(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>>;

    /// The same, with arrays that are computed from others when they are read, where the format has
    /// such.
    fn open_derived(&self, source: Source, limits: &Limits) -> Result<Box<dyn Reader>> {
        self.open(source, limits)
    }

    /// Opens a folder as one dataset, where the format has such a thing and this is one.
    fn open_folder(&self, folder: &Folder, limits: &Limits) -> Result<Option<Box<dyn Reader>>> {
        let _ = (folder, limits);
        Ok(None)
    }

    /// What it can hold natively, where anything else can be kept in a
    /// [description](crate::description) beside plain arrays.
    fn holds(&self) -> Option<Holds> {
        None
    }

    /// Looks for everything the specification forbids. `strict` adds what readers need not mind.
    /// An error means that the file could not be examined at all.
    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report>;

    /// Writes what is in `content` as this format; `sink` is committed by the caller.
    fn write(&self, content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
        let _ = (content, sink, limits);
        Err(Error::unsupported("", format!("{} files cannot be written", self.info().name)))
    }

    /// Its datasets are folders: they are opened with [`Format::open_folder`] and written with
    /// [`Format::write_folder`].
    fn is_folder(&self) -> bool {
        false
    }

    /// The same as [`Format::write`] for a format whose datasets are folders.
    fn write_folder(
        &self,
        content: &dyn Reader,
        folder: &FolderSink,
        limits: &Limits,
    ) -> Result<()> {
        let _ = (content, folder, limits);
        Err(Error::unsupported("", format!("{} folders cannot be written", self.info().name)))
    }

    /// Set for a format whose files are files of another one with a certain content.
    fn guest(&self) -> Option<&dyn Guest> {
        None
    }

    /// Saves what can be read of a damaged file into a sound one.
    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage> {
        let _ = (source, target, limits);
        Err(Error::unsupported("", format!("{} files cannot be salvaged", self.info().name)))
    }
}

/// A format that lives in files of another: those say by their content, not by their first bytes, whose
/// they are. It never sees the other format's crate; who makes the registry hands it over.
pub trait Guest {
    /// The format whose files these are.
    fn host(&self) -> &'static dyn Format;

    /// The host's file has this format's content.
    fn recognises(&self, content: &dyn Reader) -> bool;

    /// The file in this format's own view.
    fn view(&self, content: Box<dyn Reader>, limits: &Limits) -> Result<Box<dyn Reader>>;
}

/// Opens what is known to be of `format`: a file, or a folder that is one dataset.
pub fn open_as(format: &dyn Format, path: &Path, limits: &Limits) -> Result<Box<dyn Reader>> {
    if !path.is_dir() {
        return dressed(format.open(Source::open(path)?, limits)?, limits);
    }
    let name = format.info().name;
    let opened = format.open_folder(&Folder::open(path)?, limits)?;
    let opened = opened.ok_or_else(|| {
        Error::not_this_format("core-folder", format!("the folder is no {name} dataset"))
            .with_path(path)
    })?;
    dressed(opened, limits)
}

/// Writes `content` to a new `path` that will soon be removed: nothing waits for the disk.
pub fn write_scratch(
    format: &dyn Format,
    content: &dyn Reader,
    path: &Path,
    limits: &Limits,
) -> Result<()> {
    if !format.is_folder() {
        return write_file(format, content, path, Overwrite::Never, limits);
    }
    let sink = FolderSink::create(path, Overwrite::Never)?;
    format.write_folder(content, &sink, limits)?;
    sink.commit_unsynced()
}

/// Writes `content` to `path` as `format`, a file or a folder, whole or not at all.
pub fn write_file(
    format: &dyn Format,
    content: &dyn Reader,
    path: &Path,
    overwrite: Overwrite,
    limits: &Limits,
) -> Result<()> {
    if !format.is_folder() {
        let mut sink = Sink::create(path, overwrite)?;
        format.write(content, &mut sink, limits)?;
        return sink.commit();
    }
    if overwrite == Overwrite::Replace && path.is_dir() {
        replaceable(format, path, limits)?;
    }
    let sink = FolderSink::create(path, overwrite)?;
    format.write_folder(content, &sink, limits)?;
    sink.commit()
}

/// A folder is replaced with everything in it, so it has to be empty or a dataset of the format: a
/// mistyped name must not cost a person their files.
fn replaceable(format: &dyn Format, path: &Path, limits: &Limits) -> Result<()> {
    let empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    // One that is damaged is one, too.
    if empty || !matches!(format.open_folder(&Folder::open(path)?, limits), Ok(None)) {
        return Ok(());
    }
    let name = format.info().name;
    Err(Error::argument(format!(
        "is a folder of other files, no {name} dataset; it is not replaced"
    ))
    .with_path(path))
}
