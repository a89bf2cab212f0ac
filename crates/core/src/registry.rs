//! Finding the format of a file.

use std::path::Path;

use crate::format::{Folder, Guest, HEAD_BYTES, Head, Writer};
use crate::{Dataset, Error, Format, Hint, OpenOptions, Result, Source};

/// The formats that a program supports.
#[derive(Clone, Copy)]
pub struct Registry(pub &'static [&'static dyn Format]);

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
        let host = self.host(source)?;
        if self.guests(host).next().is_none() {
            return Ok(host);
        }
        // If it cannot be opened, the host reports why.
        let content = Dataset::open(host, source.clone(), &OpenOptions::default());
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
    /// equally sure; where none recognises the bytes, it chooses whose error is reported.
    fn host(&self, source: &Source) -> Result<&'static dyn Format> {
        let bytes = crate::wire::fetch(source, 0, HEAD_BYTES)?;
        let head = Head { bytes: &bytes, len: source.len() };
        let extension = source.path().and_then(Path::extension).and_then(|e| e.to_str());
        let named = |f: &dyn Format| {
            extension.is_some_and(|e| f.info().extensions.iter().any(|x| x.eq_ignore_ascii_case(e)))
        };
        let scored = self.0.iter().map(|f| (f.probe(head), named(*f), *f));
        match scored.max_by_key(|(score, named, _)| (*score, *named)) {
            Some((score, _, format)) if score > 0 => Ok(format),
            Some((_, true, format)) => Ok(format),
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
        if !path.is_dir() {
            return self.open(Source::open(path)?, options);
        }
        let folder = Folder::open(path)?;
        for format in self.0 {
            if let Some(dataset) = Dataset::open_folder(*format, &folder, options)? {
                return Ok(dataset);
            }
        }
        Err(Error::not_this_format("core-folder", "the folder is not a dataset of a known format")
            .with_path(path)
            .hint("name files, or a folder that one program wrote as one dataset or run"))
    }

    /// The format whose datasets are folders and of which this folder is one, damaged or not.
    pub fn folder_format(
        &self,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<Option<&'static dyn Format>> {
        if !path.is_dir() {
            return Ok(None);
        }
        let folder = Folder::open(path)?;
        let is_one = |format: &&&dyn Format| {
            let opened = format.abilities().folder.map(|f| f.open_folder(&folder, options));
            matches!(opened, Some(Ok(Some(_)) | Err(_)))
        };
        let folders = self.0.iter().filter(|format| is_folder(**format));
        Ok(folders.into_iter().find(is_one).copied())
    }
}

/// The datasets of the format are folders.
pub fn is_folder(format: &dyn Format) -> bool {
    matches!(format.abilities().writer, Some(Writer::Folder(_)))
}

fn unrecognised(source: &Source) -> Error {
    let message = if source.is_empty() { "the file is empty" } else { "unrecognised file format" };
    Error::not_this_format("core-unknown", message).in_source(source)
}
