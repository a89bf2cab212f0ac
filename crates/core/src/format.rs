//! What a format offers: a small required trait and optional abilities.

mod write;

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::metadata::StoredMetadata;
use crate::{
    ArrayDesc, Attrs, Dataset, Error, Finding, Limits, NodeId, Registry, Report, Result, Sink,
    Source, Tree,
};

pub use write::{
    Capabilities, Compression, Compressor, FolderWriter, FormatWriter, GuestAttribute, Loss,
    LossKind, RegionFile, Regions, WriteOptions, Writer, ensure_replaceable, write_file,
    write_file_if, write_stream, writer_of,
};

/// Number of first bytes of a file that probing examines.
pub const HEAD_BYTES: usize = 4096;

/// Extent of support; the table in the README is made from these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// Not supported.
    None,
    /// Supported with gaps that the format's FORMAT.md names.
    Partial,
    /// The entire specification.
    Complete,
}

impl Grade {
    /// Name used in listings and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Complete => "complete",
        }
    }
}

/// What a format is and how far it is supported.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FormatInfo {
    /// Short name, as in commands and codes.
    pub name: &'static str,
    /// Full name.
    pub title: &'static str,
    /// Typical users.
    pub users: &'static str,
    /// The specification it follows.
    pub specification: &'static str,
    /// Usual file name extensions, without the dot.
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

/// The first bytes of a file, for probing.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    /// Up to [`HEAD_BYTES`] bytes.
    pub bytes: &'a [u8],
    /// Length of the file.
    pub len: u64,
}

/// Confidence of a format that a file belongs to it: 0 none, 100 certain.
pub type Score = u8;

/// How a file is opened.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// Limits for opening and reading.
    pub limits: Limits,
    /// Adds arrays that are computed from others, if the format defines them.
    pub derived: bool,
    /// Fails for truncated and unfinished files. Otherwise formats that can read the intact objects of such a file do so,
    /// with a warning.
    pub require_complete: bool,
    /// The formats of the members of a folder, which may be other ones than that of the folder. Empty unless
    /// the folder is opened by a [`Registry`], so that formats do not depend on each other's crates.
    pub formats: Registry,
}

impl OpenOptions {
    /// Options with these limits.
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// These options with derived arrays.
    pub fn with_derived(self, derived: bool) -> Self {
        Self { derived, ..self }
    }

    /// These options with the formats of members of a folder.
    pub fn with_formats(self, formats: Registry) -> Self {
        Self { formats, ..self }
    }
}

impl From<&Limits> for OpenOptions {
    fn from(limits: &Limits) -> Self {
        Self::with_limits(*limits)
    }
}

/// A file format. Everything beyond recognising and opening files is an optional ability.
pub trait Format: Send + Sync {
    /// Name, extensions and extent of support.
    fn info(&self) -> &'static FormatInfo;

    /// Confidence that a file beginning like this is of this format. The file name is not considered.
    fn probe(&self, head: Head<'_>) -> Score;

    /// Parses the metadata of a file. Reads no array values.
    fn open(&self, source: Source, options: &OpenOptions) -> Result<Parsed>;

    /// The optional abilities.
    fn abilities(&self) -> Abilities<'_> {
        Abilities::default()
    }
}

/// The optional abilities of a format.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Abilities<'a> {
    /// Writes datasets.
    pub writer: Option<Writer<'a>>,
    /// Checks files against the specification.
    pub checker: Option<&'a dyn Checker>,
    /// Recovers damaged files.
    pub salvager: Option<&'a dyn Salvager>,
    /// Opens folders as one dataset.
    pub folder: Option<&'a dyn FolderFormat>,
    /// Opens the files of a run as frames of one dataset.
    pub series: Option<&'a dyn Series>,
    /// Concatenates files that have frames of their own.
    pub concatenator: Option<&'a dyn Concatenator>,
    /// The format's files are files of another format with a certain content.
    pub guest: Option<&'a dyn Guest>,
}

impl<'a> Abilities<'a> {
    /// Returns these abilities with a writer of files.
    pub fn writer(self, writer: &'a dyn FormatWriter) -> Self {
        Self { writer: Some(Writer::File(writer)), ..self }
    }

    /// Returns these abilities with a writer of folders.
    pub fn folder_writer(self, writer: &'a dyn FolderWriter) -> Self {
        Self { writer: Some(Writer::Folder(writer)), ..self }
    }

    /// Returns these abilities with a checker.
    pub fn checker(self, checker: &'a dyn Checker) -> Self {
        Self { checker: Some(checker), ..self }
    }

    /// Returns these abilities with recovery of damaged files.
    pub fn salvager(self, salvager: &'a dyn Salvager) -> Self {
        Self { salvager: Some(salvager), ..self }
    }

    /// Returns these abilities with opening of folders.
    pub fn folder(self, folder: &'a dyn FolderFormat) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// Returns these abilities with opening of the files of a run.
    pub fn series(self, series: &'a dyn Series) -> Self {
        Self { series: Some(series), ..self }
    }

    /// Returns these abilities with concatenation of files.
    pub fn concatenator(self, concatenator: &'a dyn Concatenator) -> Self {
        Self { concatenator: Some(concatenator), ..self }
    }

    /// Returns these abilities with recognition in files of another format.
    pub fn guest(self, guest: &'a dyn Guest) -> Self {
        Self { guest: Some(guest), ..self }
    }
}

/// Result of [`Format::open`].
pub struct Parsed {
    /// The bytes that the tree refers to.
    pub source: Source,
    /// Groups, arrays and attributes.
    pub tree: Tree,
    /// Summary shown by `spile info`, in the terms of the format.
    pub summary: Attrs,
    /// Warnings collected while opening.
    pub warnings: Vec<Finding>,
    /// Metadata of spile that is stored in the file, to be applied by core.
    pub metadata: Option<StoredMetadata>,
    /// Access to the format's own structures.
    pub native: Option<Box<dyn Native>>,
}

impl Parsed {
    /// A tree over bytes, without summary, warnings, metadata or native access.
    pub fn new(source: Source, tree: Tree) -> Self {
        let (summary, warnings) = (Attrs::new(), Vec::new());
        Self { source, tree, summary, warnings, metadata: None, native: None }
    }

    /// Returns `self` with this summary.
    pub fn with_summary(self, summary: Attrs) -> Self {
        Self { summary, ..self }
    }

    /// Returns `self` with these warnings.
    pub fn with_warnings(self, warnings: Vec<Finding>) -> Self {
        Self { warnings, ..self }
    }

    /// Returns `self` with metadata of spile that is stored in the file.
    pub fn with_metadata(self, metadata: Option<StoredMetadata>) -> Self {
        Self { metadata, ..self }
    }

    /// Returns `self` with access to the format's own structures.
    pub fn with_native(self, native: impl Native + 'static) -> Self {
        Self { native: Some(Box::new(native)), ..self }
    }
}

/// Access to the structures of an open file in the terms of its format.
pub trait Native: Send + Sync {
    /// Calls `each` for every byte range with a meaning, in file order.
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()>;

    /// Calls `each` for every object of the format itself, in file order.
    fn objects(&self, dataset: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()>;

    /// The arrays that show the content of the file in one figure, with the same coordinate along their last
    /// dimension; empty if the format has no such choice.
    fn highlights(&self, tree: &Tree) -> Vec<NodeId> {
        let _ = tree;
        Vec::new()
    }

    /// Parses what a running writer has appended; `None` if there is nothing new or the format
    /// cannot grow.
    fn refresh(&self, source: &Source, limits: &Limits) -> Result<Option<Parsed>> {
        let _ = (source, limits);
        Ok(None)
    }
}

/// Purpose of a byte range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegionKind {
    /// Describes the data.
    Header,
    /// Array data.
    Data,
    /// Human-readable text.
    Text,
    /// Padding.
    Padding,
    /// Not known.
    Unknown,
}

impl RegionKind {
    /// The word used in listings and JSON.
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

/// A byte range with a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// Purpose of the bytes.
    pub kind: RegionKind,
    /// Its name in the terms of the format.
    pub name: String,
    /// Its value as text.
    pub value: String,
}

impl Region {
    /// A byte range with its name and value.
    pub fn new(
        offset: u64,
        len: u64,
        kind: RegionKind,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        Self { offset, len, kind, name: name.into(), value: value.into() }
    }
}

/// One of the format's own objects: a section, a block, a chunk, a record.
#[derive(Clone, Debug)]
pub struct Object {
    /// Its name.
    pub path: String,
    /// Its native identifier, where that differs from the name.
    pub id: Option<String>,
    /// Its frame.
    pub frame: Option<u64>,
    /// Its type in the terms of the format.
    pub kind: String,
    /// Its bytes; never [`crate::layout::Layout::PerFrame`].
    pub array: ArrayDesc,
}

impl Object {
    /// An object without identifier and frame.
    pub fn new(path: impl Into<String>, kind: impl Into<String>, array: ArrayDesc) -> Self {
        Self { path: path.into(), id: None, frame: None, kind: kind.into(), array }
    }
}

/// Checks files against the specification of a format.
pub trait Checker: Format {
    /// Reports everything the specification forbids; `strict` adds what readers need not reject. Fails
    /// only if the file could not be examined at all. By default these are the errors and warnings of
    /// opening the file.
    fn check(&self, source: &Source, limits: &Limits, strict: bool) -> Result<Report> {
        let _ = strict;
        Report::of_opening(self.open(source.clone(), &limits.into()))
    }
}

/// Recovers damaged files.
pub trait Salvager: Send + Sync {
    /// Writes everything readable of a damaged file as a valid one; the caller commits `target`.
    fn salvage(&self, source: &Source, target: &mut Sink, limits: &Limits) -> Result<Salvage>;
}

/// Opens folders as one dataset.
pub trait FolderFormat: Send + Sync {
    /// Parses a folder; `None` if it is not of this format.
    fn open_folder(&self, folder: &Folder, options: &OpenOptions) -> Result<Option<Parsed>>;
}

/// Which files of a folder form runs. The files of a run are one dataset, each a frame.
pub trait Series: Send + Sync {
    /// The runs in `folder`: the one with most files first.
    fn runs(&self, folder: &Folder) -> Vec<Run>;
}

/// The files of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Pattern of the file names, for example `normal*.sdf`.
    pub pattern: String,
    /// The files, in the order of their names.
    pub files: Vec<PathBuf>,
}

/// Concatenates files that have frames of their own, where frames depend on rules of the format.
pub trait Concatenator: Send + Sync {
    /// Writes a new file `target` with the frames of all `files`, in that order.
    fn concatenate(&self, files: &[PathBuf], target: &Path, limits: &Limits) -> Result<()>;
}

/// A format whose files are files of another format with a certain content. It does not depend on the
/// crate of the other format (the host): the registry passes the host to the guest.
pub trait Guest: Send + Sync {
    /// The format of the files.
    fn host(&self) -> &'static dyn Format;

    /// Whether an opened file of the host has the content of this format.
    fn recognises(&self, content: &Dataset) -> bool;

    /// The file as seen by this format.
    fn view(&self, content: &Dataset) -> Result<Parsed>;
}

/// What [`Salvager::salvage`] could and could not recover.
#[derive(Clone, Debug, Default)]
pub struct Salvage {
    /// Objects in the new file.
    pub kept: Vec<String>,
    /// Objects, or parts of them, that are not.
    pub lost: Vec<String>,
}

/// The files of a folder.
#[derive(Clone, Debug)]
pub struct Folder {
    path: PathBuf,
    files: Vec<PathBuf>,
}

impl Folder {
    /// Lists a folder, which may be a URL.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if let Some(files) = crate::source::list(path)? {
            return Ok(Self { path: path.to_path_buf(), files });
        }
        let list = || -> std::io::Result<Vec<PathBuf>> {
            let mut files = Vec::new();
            for entry in std::fs::read_dir(path)? {
                let entry = entry?;
                // Links are followed; a dangling link is not a file.
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

    /// Some files of a folder, for example those that match a pattern, sorted by name.
    pub fn of_files(path: impl Into<PathBuf>, mut files: Vec<PathBuf>) -> Self {
        files.sort();
        Self { path: path.into(), files }
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its files sorted by name, without hidden ones.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Its files with that extension, sorted by name.
    pub fn with_extension(&self, extension: &str) -> Vec<PathBuf> {
        let ends =
            |file: &&PathBuf| file.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension));
        self.files.iter().filter(ends).cloned().collect()
    }
}
