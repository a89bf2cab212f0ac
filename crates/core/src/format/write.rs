//! Writing datasets: what a writer offers, its options, and losses.

use std::collections::HashSet;
use std::path::Path;
use std::str::FromStr;

use super::{Folder, Format};
use crate::sink::FolderSink;
use crate::{Coord, DType, Dataset, Error, Limits, Order, Overwrite, Result, Sink};

/// Most points of a uniform coordinate that are written for an array without elements.
const MOST_POINTS: u64 = 1 << 20;

/// What a format can store without help.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Largest number of dimensions.
    pub rank: usize,
    /// The order in which it stores the elements of an array.
    pub order: Order,
    /// It has frames.
    pub frames: bool,
    /// It has this element type.
    pub dtype: fn(DType) -> bool,
    /// The type for single bytes.
    pub byte: DType,
    /// An object may have this name.
    pub name: fn(&str) -> bool,
    /// Arrays that a writer adds by itself.
    pub adds: &'static [&'static str],
}

/// What is lost; see [`Loss`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LossKind {
    /// An array is not written.
    Array,
    /// A group is not written.
    Group,
    /// An attribute is not written, or with another value.
    Attribute,
    /// An array or group gets another name.
    Name,
    /// The element type changes.
    Type,
    /// The shape changes.
    Shape,
    /// Names of dimensions are not written.
    Dimensions,
    /// Coordinates are not written.
    Coordinates,
    /// The linear scaling is not written: stored values change.
    Scaling,
    /// Role, mesh, centring, components, point set or missing values are not written.
    Meaning,
    /// The frame axis, or frames of an array, are not written.
    Frames,
    /// Values change.
    Values,
}

impl LossKind {
    /// The word used in messages and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Group => "group",
            Self::Attribute => "attribute",
            Self::Name => "name",
            Self::Type => "type",
            Self::Shape => "shape",
            Self::Dimensions => "dimensions",
            Self::Coordinates => "coordinates",
            Self::Scaling => "scaling",
            Self::Meaning => "meaning",
            Self::Frames => "frames",
            Self::Values => "values",
        }
    }
}

/// Something that does not arrive in a written file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Path of the object; empty for the root.
    pub path: String,
    /// What is lost.
    pub kind: LossKind,
    /// The attribute, where one is lost.
    pub name: Option<String>,
    /// Why, in the terms of the target: `VTK has no string attributes`.
    pub reason: String,
}

impl Loss {
    /// A loss of `kind` at `path`.
    pub fn new(path: impl Into<String>, kind: LossKind, reason: impl Into<String>) -> Self {
        Self { path: path.into(), kind, name: None, reason: reason.into() }
    }

    /// The loss of an attribute.
    pub fn attribute(
        path: impl Into<String>,
        name: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self { name: Some(name.into()), ..Self::new(path, LossKind::Attribute, reason) }
    }
}

/// How a dataset is written. The default is the format's own choice for everything.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Write stored numbers instead of physical values, without scaling and missing values.
    pub stored: bool,
    /// Compression of the values.
    pub compression: Option<Compression>,
    /// Lengths of chunks by name of the dimension.
    pub chunks: Vec<(String, u64)>,
    /// Lengths of shards, which contain several chunks, by name of the dimension.
    pub shards: Vec<(String, u64)>,
    /// The content is that of a [`Guest`](super::Guest): it is written without metadata of its own, with soft links
    /// of these paths and targets. Applied by HDF5.
    pub guest_links: Option<Vec<(String, String)>>,
    /// Attributes of a [`Guest`](super::Guest) with types that values of a tree do not have. Applied by HDF5.
    pub guest_attributes: Vec<GuestAttribute>,
}

/// An attribute with an element type of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct GuestAttribute {
    /// Path of the object; empty for the root.
    pub path: String,
    /// Name.
    pub name: String,
    /// Element type, little-endian.
    pub dtype: DType,
    /// Lengths; none for a single element.
    pub dims: Vec<u64>,
    /// The elements.
    pub bytes: Vec<u8>,
}

impl WriteOptions {
    /// Whether an option is set. Fails with an argument error if one is set that is not in the list of `accepted`
    /// ones: `compression`, `chunks`, `shards`.
    fn check(&self, name: &str, accepted: &[&str]) -> Result<bool> {
        let set = [
            ("compression", self.compression.is_some()),
            ("chunks", !self.chunks.is_empty()),
            ("shards", !self.shards.is_empty()),
        ];
        match set.iter().find(|(option, set)| *set && !accepted.contains(option)) {
            Some((option, _)) => Err(Error::argument(format!("{name} files have no {option}"))),
            None => Ok(set.iter().any(|(_, set)| *set)),
        }
    }
}

/// A compression method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compressor {
    /// No compression.
    None,
    /// Deflate, in the framing of the format.
    Gzip,
    /// Zstandard.
    Zstd,
    /// Snappy.
    Snappy,
    /// LZ4.
    Lz4,
}

/// A compression method and its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compression {
    /// The method.
    pub compressor: Compressor,
    /// The level, if not the default of the method.
    pub level: Option<i32>,
}

impl FromStr for Compression {
    type Err = Error;

    /// Parses `zstd`, `zstd:3`, `gzip`, `gzip:9`, `snappy`, `lz4` or `none`.
    fn from_str(text: &str) -> Result<Self> {
        let (name, level) = match text.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (text, None),
        };
        let known = [
            ("none", Compressor::None),
            ("gzip", Compressor::Gzip),
            ("zstd", Compressor::Zstd),
            ("snappy", Compressor::Snappy),
            ("lz4", Compressor::Lz4),
        ];
        let unknown = || Error::argument(format!("unknown compression \"{text}\""));
        let found = known.iter().find(|(known, _)| *known == name);
        let (_, compressor) = *found.ok_or_else(|| {
            unknown().hint("supported are none, gzip[:1-9], zstd[:1-22], snappy and lz4")
        })?;
        let most = match compressor {
            Compressor::Gzip => 9,
            Compressor::Zstd => 22,
            _ => 0,
        };
        let level =
            level.map(|level| level.parse().ok().filter(|level| (1..=most).contains(level)));
        let level = level.map(|level| level.ok_or_else(unknown)).transpose()?;
        Ok(Self { compressor, level })
    }
}

/// Writes datasets as files of one format.
pub trait FormatWriter: Send + Sync {
    /// What the format can store, where a dataset beyond that can be flattened to plain arrays with its
    /// metadata stored beside them; `None` if the format has its own way for everything.
    fn capabilities(&self) -> Option<Capabilities> {
        None
    }

    /// `content` follows a convention of the format that other programs require, such as a schema. It is never
    /// flattened where it can be written, because those programs could not read it.
    fn is_own(&self, content: &Dataset) -> bool {
        let _ = content;
        false
    }

    /// The format has a convention for linear scaling and missing values. Other formats get datasets with
    /// [physical values](Dataset::physical).
    fn keeps_scaling(&self) -> bool {
        false
    }

    /// The options that the writer applies: `compression`, `chunks`, `shards`. Others are refused.
    fn options(&self) -> &'static [&'static str] {
        &[]
    }

    /// Fails with an argument error if `options` are set that cannot be applied to `content`, such as a compression
    /// that the format does not have or the length of an unknown dimension; [`FormatWriter::write`] refuses the
    /// same. Reads no values. `path` is the name of the new file.
    fn check_options(&self, content: &Dataset, path: &Path, options: &WriteOptions) -> Result<()> {
        let _ = (content, path, options);
        Ok(())
    }

    /// The writer writes to [streams](Sink::stream): from the beginning to the end of the file.
    fn streams(&self) -> bool {
        false
    }

    /// Everything of `content` that [`FormatWriter::write`] does not keep, computed from metadata alone:
    /// linear in the number of objects, reads no values, creates no files. `path` is the name of the new
    /// file: some formats have several forms with different extensions. Fails with the error of `write`
    /// where the content cannot be written at all.
    fn losses(&self, content: &Dataset, path: &Path) -> Result<Vec<Loss>>;

    /// Writes `content` to `sink`; the caller commits it. Returns losses that were found only while
    /// writing, beyond [`FormatWriter::losses`].
    fn write(
        &self,
        content: &Dataset,
        sink: &mut Sink,
        options: &WriteOptions,
    ) -> Result<Vec<Loss>>;
}

/// Writes datasets as folders of one format.
pub trait FolderWriter: Send + Sync {
    /// The format has a convention for linear scaling and missing values. Other formats get datasets with
    /// [physical values](Dataset::physical).
    fn keeps_scaling(&self) -> bool {
        false
    }

    /// The options that the writer applies: `compression`, `chunks`, `shards`. Others are refused.
    fn options(&self) -> &'static [&'static str] {
        &[]
    }

    /// Fails if `options` cannot be applied to `content`; see [`FormatWriter::check_options`].
    fn check_options(&self, content: &Dataset, options: &WriteOptions) -> Result<()> {
        let _ = (content, options);
        Ok(())
    }

    /// Everything of `content` that is not kept; see [`FormatWriter::losses`].
    fn losses(&self, content: &Dataset, path: &Path) -> Result<Vec<Loss>>;

    /// Writes `content` to `folder`; the caller commits it. Returns losses found only while writing.
    fn write_folder(
        &self,
        content: &Dataset,
        folder: &FolderSink,
        options: &WriteOptions,
    ) -> Result<Vec<Loss>>;

    /// The folder as files that several processes can write; none if the format has no such files.
    fn regions(
        &self,
        content: &Dataset,
        options: &WriteOptions,
    ) -> Result<Option<Box<dyn Regions>>> {
        let _ = (content, options);
        Ok(None)
    }
}

/// A folder whose values are in files that are written independently of each other, by several processes:
/// chunks of arrays. The result is that of [`FolderWriter::write_folder`].
pub trait Regions: Send + Sync {
    /// Writes everything except the files of [`Regions::files`]. Called by one process.
    fn write_layout(&mut self, folder: &FolderSink) -> Result<()>;

    /// The other files, in the same order in every process.
    fn files(&self) -> &[RegionFile];

    /// Writes the file with this number in [`Regions::files`].
    fn write_region(&self, number: usize, sink: &mut Sink) -> Result<()>;
}

/// A file of [`Regions`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionFile {
    /// Path in the folder, with `/` as separator.
    pub name: String,
    /// Number of bytes of the values, uncompressed.
    pub bytes: u64,
}

/// How a format is written.
#[derive(Clone, Copy)]
pub enum Writer<'a> {
    /// As a file.
    File(&'a dyn FormatWriter),
    /// As a folder.
    Folder(&'a dyn FolderWriter),
}

impl Writer<'_> {
    /// The dataset that is written: `content` with physical values where the format has no convention for
    /// scaling, or with stored values if these are requested. Exchange formats, which have no
    /// [capabilities](FormatWriter::capabilities), get the [effective](Dataset::effective) values of every frame.
    pub fn prepare(self, content: &Dataset, options: &WriteOptions) -> Dataset {
        let effective =
            (self.is_exchange() && content.tree().frames().is_some()).then(|| content.effective());
        let content = effective.as_ref().unwrap_or(content);
        let keeps = match self {
            Self::File(writer) => writer.keeps_scaling(),
            Self::Folder(writer) => writer.keeps_scaling(),
        };
        match (options.stored, keeps) {
            (true, _) => content.stored(),
            (false, true) => content.clone(),
            (false, false) => content.physical(),
        }
    }

    /// Whether the format is an exchange format: it has no [capabilities](FormatWriter::capabilities).
    fn is_exchange(self) -> bool {
        match self {
            Self::File(writer) => writer.capabilities().is_none(),
            Self::Folder(_) => true,
        }
    }

    /// Fails with `Limit` if an exchange format would store the points of a uniform coordinate whose number is in the
    /// metadata alone: the array has no elements.
    fn check_points(self, content: &Dataset) -> Result<()> {
        let arrays = content.arrays().filter(|(_, _, desc)| desc.shape.count() == Some(0));
        for (_, node, desc) in arrays.filter(|_| self.is_exchange()) {
            let axes = desc.shape.lengths().iter().zip(&desc.coords);
            let mut uniform = axes.filter(|(_, coord)| matches!(coord, Coord::Uniform { .. }));
            if let Some((points, _)) = uniform.find(|(points, _)| **points > MOST_POINTS) {
                let message = format!(
                    "an array without elements has a coordinate of {points} points, at most {MOST_POINTS} are written"
                );
                return Err(Error::limit(message).in_object(format!("\"{}\"", node.path)));
            }
        }
        Ok(())
    }

    /// Everything of `content` that is not written; see [`FormatWriter::losses`]. Fails if an option is set that
    /// the format does not have or that [cannot be applied](FormatWriter::check_options).
    pub fn losses(
        self,
        format: &dyn Format,
        content: &Dataset,
        path: &Path,
        options: &WriteOptions,
    ) -> Result<Vec<Loss>> {
        self.check_points(content)?;
        let prepared = self.prepare(content, options);
        let accepted = match self {
            Self::File(writer) => writer.options(),
            Self::Folder(writer) => writer.options(),
        };
        if options.check(format.info().name, accepted)? {
            match self {
                Self::File(writer) => writer.check_options(&prepared, path, options)?,
                Self::Folder(writer) => writer.check_options(&prepared, options)?,
            }
        }
        let mut losses = match self {
            Self::File(writer) => writer.losses(&prepared, path)?,
            Self::Folder(writer) => writer.losses(&prepared, path)?,
        };
        let lost = losses.iter().filter(|loss| loss.kind == LossKind::Array);
        let lost: HashSet<String> = lost.map(|loss| loss.path.clone()).collect();
        for (id, node, old) in content.arrays() {
            let new = prepared.tree().array(id);
            if lost.contains(&node.path)
                || new.is_none_or(|new| new.has_scaling() || !old.has_scaling())
            {
                continue;
            }
            let values = if options.stored { "stored" } else { "physical" };
            let reason = format!("{values} values are written");
            if old.map.is_some() {
                losses.push(Loss::new(&node.path, LossKind::Scaling, reason.clone()));
            } else if new.is_some_and(|new| new.dtype != old.dtype) {
                losses.push(Loss::new(&node.path, LossKind::Type, reason.clone()));
            }
            if !old.semantics().missing.is_none() {
                losses.push(Loss::new(&node.path, LossKind::Meaning, reason));
            }
        }
        Ok(losses)
    }
}

/// The writer of a format, or an `Unsupported` error.
pub fn writer_of(format: &dyn Format) -> Result<Writer<'_>> {
    let none =
        || Error::unsupported("", format!("writing {} is not supported", format.info().name));
    format.abilities().writer.ok_or_else(none)
}

/// Writes `content` to `path` as `format`, a file or a folder. The write is atomic. Returns losses that
/// were found only while writing.
pub fn write_file(
    format: &dyn Format,
    content: &Dataset,
    path: &Path,
    overwrite: Overwrite,
) -> Result<Vec<Loss>> {
    write_file_if(format, content, path, overwrite, &WriteOptions::default(), |_| Ok(()))
}

/// [`write_file`] that discards the output if `accept` refuses the losses found while writing.
pub fn write_file_if(
    format: &dyn Format,
    content: &Dataset,
    path: &Path,
    overwrite: Overwrite,
    options: &WriteOptions,
    accept: impl FnOnce(&[Loss]) -> Result<()>,
) -> Result<Vec<Loss>> {
    let losses;
    let writer = writer_of(format)?;
    writer.check_points(content)?;
    let content = &writer.prepare(content, options);
    match writer {
        Writer::File(writer) => {
            let mut sink = Sink::create(path, overwrite)?;
            losses = writer.write(content, &mut sink, options)?;
            accept(&losses)?;
            sink.commit()?;
        }
        Writer::Folder(writer) => {
            if overwrite == Overwrite::Replace && path.is_dir() {
                ensure_replaceable(format, path, content.limits())?;
            }
            let sink = FolderSink::create(path, overwrite)?;
            losses = writer.write_folder(content, &sink, options)?;
            accept(&losses)?;
            sink.commit()?;
        }
    }
    Ok(losses)
}

/// Writes `content` to a stream such as standard output. Returns losses that were found only while writing.
/// Fails if the format cannot be written from beginning to end.
pub fn write_stream(
    format: &dyn Format,
    content: &Dataset,
    sink: &mut Sink,
    options: &WriteOptions,
) -> Result<Vec<Loss>> {
    let name = format.info().name;
    match writer_of(format)? {
        Writer::File(writer) if writer.streams() => {
            let content = Writer::File(writer).prepare(content, options);
            writer.write(&content, sink, options)
        }
        Writer::File(_) => Err(Error::argument(format!(
            "{name} files are not written from beginning to end, so they cannot be written to a pipe"
        ))),
        Writer::Folder(_) => Err(Error::argument(format!(
            "{name} datasets are folders and cannot be written to a pipe"
        ))),
    }
}

/// Fails if the folder `path` is neither empty nor a dataset of the format. Replacing a folder deletes
/// everything in it, and a mistyped name must not delete other files.
pub fn ensure_replaceable(format: &dyn Format, path: &Path, limits: &Limits) -> Result<()> {
    let empty = std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    let opened = || Dataset::open_folder(format, &Folder::open(path)?, &limits.into());
    // A damaged dataset is one, too.
    if empty || !matches!(opened(), Ok(None)) {
        return Ok(());
    }
    let name = format.info().name;
    let message = format!("the folder is not a {name} dataset and is not replaced");
    Err(Error::argument(message).with_path(path))
}
