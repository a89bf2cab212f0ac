//! Finding the format of a file.

use std::fmt;
use std::path::Path;

use crate::format::{Folder, Guest, HEAD_BYTES, Head};
use crate::source::is_folder;
use crate::{Dataset, Error, ErrorKind, Format, Hint, Limits, OpenOptions, Result, Source};

/// The formats that a program supports.
#[derive(Clone, Copy, Default)]
pub struct Registry(pub &'static [&'static dyn Format]);

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|format| format.info().name)).finish()
    }
}

impl Registry {
    /// The format called `name`.
    pub fn named(&self, name: &str) -> Result<&'static dyn Format> {
        self.0.iter().find(|f| f.info().name == name).copied().ok_or_else(|| {
            let error = Error::argument(format!("unknown format \"{name}\""));
            let all = || self.0.iter().map(|f| f.info());
            let by_extension = all().filter(|f| f.extensions.contains(&name)).map(|f| f.name);
            let mut names: Vec<_> = by_extension.collect();
            if names.is_empty() {
                names = all().map(|f| f.name).collect();
            }
            error.hint(Hint::ChooseFormat(names))
        })
    }

    /// The format of the file: the one that recognises its first bytes, or a guest of that format that
    /// recognises its content.
    pub fn probe(&self, source: &Source) -> Result<&'static dyn Format> {
        self.probe_within(source, &Limits::default())
    }

    /// The format of the file, as [`Registry::probe`] finds it. The content is opened with `limits`.
    pub fn probe_within(&self, source: &Source, limits: &Limits) -> Result<&'static dyn Format> {
        let host = self.host(source)?;
        if self.guests(host).next().is_none() {
            return Ok(host);
        }
        // If it cannot be opened, the host reports why.
        let content = Dataset::open(host, source.clone(), &limits.into());
        let found = content.ok().and_then(|content| self.guest_of(host, &content));
        Ok(found.map_or(host, |(format, _)| format))
    }

    /// The formats that live in files of `host`.
    fn guests(
        &self,
        host: &dyn Format,
    ) -> impl Iterator<Item = (&'static dyn Format, &'static dyn Guest)> {
        let name = host.info().name;
        let all = self.0.iter().filter_map(|format| Some((*format, format.abilities().guest?)));
        all.filter(move |(_, guest)| guest.host().info().name == name)
    }

    fn guest_of(
        &self,
        host: &dyn Format,
        content: &Dataset,
    ) -> Option<(&'static dyn Format, &'static dyn Guest)> {
        self.guests(host).find(|(_, guest)| guest.recognises(content))
    }

    /// The format that recognises the first bytes. The file name decides between formats that are
    /// equally sure; where none recognises the bytes, the format of that name is tried.
    fn host(&self, source: &Source) -> Result<&'static dyn Format> {
        let bytes = crate::wire::fetch(source, 0, HEAD_BYTES)?;
        let head = Head { bytes: &bytes, len: source.len() };
        let extension = source.path().and_then(Path::extension).and_then(|e| e.to_str());
        let named = |f: &dyn Format| {
            extension.is_some_and(|e| f.info().extensions.iter().any(|x| x.eq_ignore_ascii_case(e)))
        };
        let shared = self.0.iter().filter(|format| named(**format)).count() > 1;
        let scored = self.0.iter().map(|f| (f.probe(head), named(*f), *f));
        match scored.max_by_key(|(score, named, _)| (*score, *named)) {
            Some((score, _, format)) if score > 0 => Ok(format),
            // Several vendors use the same extension: the last of them says nothing about the others.
            Some((_, true, format)) if !(shared && is_other(format, source)) => Ok(format),
            _ => Err(unrecognised(source)),
        }
    }

    /// Opens a file in whatever format it is. Reads metadata only.
    pub fn open(&self, source: Source, options: &OpenOptions) -> Result<Dataset> {
        let host = self.host(&source)?;
        let dataset = Dataset::open(host, source, options)?;
        let Some((format, guest)) = self.guest_of(host, &dataset) else { return Ok(dataset) };
        let viewed = guest.view(&dataset);
        let viewed = viewed.and_then(|p| Dataset::from_parsed(format.info(), p, options));
        viewed.map_err(|e| e.with_format(format.info().name).in_source(dataset.source()))
    }

    /// Opens a file, or a folder that is one dataset. Reads metadata only.
    pub fn open_path(&self, path: impl AsRef<Path>, options: &OpenOptions) -> Result<Dataset> {
        let path = path.as_ref();
        if !is_folder(path) {
            return self.open(Source::open_within(path, &options.limits)?, options);
        }
        let folder = Folder::open(path)?;
        let options = &options.with_formats(*self);
        for format in self.0 {
            if let Some(dataset) = Dataset::open_folder(*format, &folder, options)? {
                return Ok(dataset);
            }
        }
        Err(Error::not_this_format("core-folder", "the folder is not a dataset of a known format")
            .with_path(path)
            .hint("name files, or a folder that one program wrote as one dataset or run"))
    }

    /// The format that opens this folder as one dataset, damaged or not.
    pub fn folder_format(
        &self,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<Option<&'static dyn Format>> {
        if !path.is_dir() {
            return Ok(None);
        }
        let folder = Folder::open(path)?;
        let options = &options.with_formats(*self);
        let is_one = |format: &&&dyn Format| {
            let opened = format.abilities().folder.map(|f| f.open_folder(&folder, options));
            matches!(opened, Some(Ok(Some(_)) | Err(_)))
        };
        Ok(self.0.iter().find(is_one).copied())
    }
}

/// Whether a format that does not recognise the first bytes finds another format in the file.
fn is_other(format: &dyn Format, source: &Source) -> bool {
    let opened = format.open(source.clone(), &OpenOptions::default());
    opened.is_err_and(|error| error.kind() == ErrorKind::NotThisFormat)
}

fn unrecognised(source: &Source) -> Error {
    let message = if source.is_empty() { "the file is empty" } else { "unrecognised file format" };
    Error::not_this_format("core-unknown", message).in_source(source)
}
