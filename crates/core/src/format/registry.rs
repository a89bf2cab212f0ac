//! How a file finds its format.

use std::path::Path;

use super::{Folder, Format, Guest, HEAD_BYTES, Head, Reader};
use crate::description::dressed;
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::source::Source;

/// The formats a program knows.
#[derive(Clone, Copy)]
pub struct Registry(pub &'static [&'static dyn Format]);

impl Registry {
    /// The format called `name`.
    pub fn named(&self, name: &str) -> Result<&'static dyn Format> {
        self.0.iter().find(|f| f.info().name == name).copied().ok_or_else(|| {
            let error = Error::argument(format!("\"{name}\" is not a format"));
            let ends = |f: &&&dyn Format| f.info().extensions.contains(&name);
            if let Some(meant) = self.0.iter().find(ends) {
                let meant = meant.info().name;
                return error.hint(format!("files that end in .{name} are {meant}"));
            }
            let known: Vec<_> = self.0.iter().map(|f| f.info().name).collect();
            error.hint(format!("known are {}", known.join(", ")))
        })
    }

    /// The format whose file this is: that of its first bytes, or one that lives in such files and
    /// recognises what is in it.
    pub fn probe(&self, source: &Source) -> Result<&'static dyn Format> {
        let host = self.host(source)?;
        if self.guests(host).next().is_none() {
            return Ok(host);
        }
        // What cannot be opened is the host's to explain.
        let content = host.open(source.clone(), &Limits::default());
        let found = content.ok().and_then(|content| self.guest_of(host, &*content));
        Ok(found.map_or(host, |(format, _)| format))
    }

    /// The formats that live in files of `host`.
    fn guests(
        &self,
        host: &dyn Format,
    ) -> impl Iterator<Item = (&'static dyn Format, &'static dyn Guest)> {
        let name = host.info().name;
        let all = self.0.iter().filter_map(|format| Some((*format, format.guest()?)));
        all.filter(move |(_, guest)| guest.host().info().name == name)
    }

    fn guest_of(
        &self,
        host: &dyn Format,
        content: &dyn Reader,
    ) -> Option<(&'static dyn Format, &'static dyn Guest)> {
        self.guests(host).find(|(_, guest)| guest.recognises(content))
    }

    /// The format whose bytes these are. The file's name only decides between formats that both
    /// recognise the bytes; where none does, it chooses whose explanation is given.
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
            _ => Err(self.unknown(source)),
        }
    }

    /// Opens a file in whatever format it is.
    pub fn open(&self, source: Source, limits: &Limits) -> Result<Opened> {
        self.open_by(source, limits, |format, source| format.open(source, limits))
    }

    /// The same, with arrays that are computed from others.
    pub fn open_derived(&self, source: Source, limits: &Limits) -> Result<Opened> {
        self.open_by(source, limits, |format, source| format.open_derived(source, limits))
    }

    fn open_by(
        &self,
        source: Source,
        limits: &Limits,
        open: impl FnOnce(&'static dyn Format, Source) -> Result<Box<dyn Reader>>,
    ) -> Result<Opened> {
        let mut format = self.host(&source)?;
        let path = source.path().map(Path::to_path_buf);
        let reader = open(format, source).and_then(|reader| {
            let reader = dressed(reader, limits)?;
            let Some((own, guest)) = self.guest_of(format, &*reader) else { return Ok(reader) };
            format = own;
            guest.view(reader, limits)
        });
        let reader = reader.map_err(|e| {
            let e = e.with_format(format.info().name);
            match path {
                Some(path) => e.with_path(path),
                None => e,
            }
        })?;
        Ok(Opened { format, reader })
    }

    /// Opens a file, or a folder that is one dataset.
    pub fn open_path(&self, path: impl AsRef<Path>, limits: &Limits) -> Result<Opened> {
        let path = path.as_ref();
        if !path.is_dir() {
            return self.open(Source::open(path)?, limits);
        }
        let folder = Folder::open(path)?;
        for format in self.0 {
            let opened = format.open_folder(&folder, limits);
            let opened = opened.map_err(|e| e.with_format(format.info().name).with_path(path))?;
            if let Some(reader) = opened {
                return Ok(Opened { format: *format, reader });
            }
        }
        Err(Error::not_this_format("core-folder", "a folder without files that belong together")
            .with_path(path)
            .hint("name files, or a folder with the dumps of a run (*.sdf, prefix.save)"))
    }

    /// The format whose datasets are folders and that says this folder is one, be it damaged or not.
    pub fn folder_format(
        &self,
        path: &Path,
        limits: &Limits,
    ) -> Result<Option<&'static dyn Format>> {
        if !path.is_dir() {
            return Ok(None);
        }
        let folder = Folder::open(path)?;
        let is_one =
            |format: &&&dyn Format| !matches!(format.open_folder(&folder, limits), Ok(None));
        Ok(self.0.iter().filter(|format| format.is_folder()).find(is_one).copied())
    }

    fn unknown(&self, source: &Source) -> Error {
        let known: Vec<_> = self.0.iter().map(|f| f.info().name).collect();
        let message = if source.is_empty() {
            "the file is empty".to_string()
        } else {
            format!("no known format begins like this (tried {})", known.join(", "))
        };
        let error = Error::not_this_format("core-unknown", message).at(0);
        match source.path() {
            Some(path) => error.with_path(path),
            None => error,
        }
    }
}

/// An open file and the format it turned out to be.
pub struct Opened {
    /// The format.
    pub format: &'static dyn Format,
    /// The file.
    pub reader: Box<dyn Reader>,
}
