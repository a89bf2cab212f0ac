//! The keys of a store: files in folders, or members of a zip archive.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use spile_codecs::{Pipeline, Step};
use spile_core::error::{Error, Result};
use spile_core::layout::{Codec as _, Extent};
use spile_core::limits::{Budget, Limits};
use spile_core::source::{Part, Source};

use crate::zip::{self, Member};

/// Approximate memory of a file or folder name, in bytes.
pub(crate) const FILE_BYTES: u64 = 256;

/// Names of metadata documents.
pub(crate) const DOCUMENTS: [&str; 5] =
    ["zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"];

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ItemKind {
    File,
    Folder,
    /// Not read, for this reason.
    Refused(&'static str),
}

/// An entry of a folder.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) name: String,
    pub(crate) kind: ItemKind,
}

/// The stored bytes of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored {
    pub(crate) extent: Extent,
    /// Length of the content if it is deflated.
    pub(crate) deflated: Option<u64>,
}

/// Where the keys of a store are.
pub(crate) enum Store {
    Folder {
        path: PathBuf,
        /// The path without symbolic links.
        real: PathBuf,
        /// Files in use.
        files: Vec<PathBuf>,
    },
    Zip(Archive),
}

/// A store in a zip archive.
pub(crate) struct Archive {
    source: Source,
    members: Vec<Member>,
    /// Entries of each folder; files have the number of their member.
    folders: BTreeMap<String, BTreeMap<String, Option<usize>>>,
    /// Folder of the root node, with a slash, or empty.
    root: String,
}

/// An error about a key outside of the store.
pub(crate) fn escapes(message: &str) -> Error {
    Error::malformed("zarr-010", message)
}

impl Store {
    /// The store in a folder; `None` if it has no metadata document.
    pub(crate) fn folder(path: &Path) -> Result<Option<Self>> {
        if !DOCUMENTS[..3].iter().any(|name| path.join(name).is_file()) {
            return Ok(None);
        }
        let real = std::fs::canonicalize(path).map_err(|e| Error::io(path, e))?;
        Ok(Some(Self::Folder { path: path.to_path_buf(), real, files: Vec::new() }))
    }

    /// The store in a zip archive; `None` if it has no metadata document.
    pub(crate) fn zip(source: Source, budget: &mut Budget) -> Result<Option<Self>> {
        let members = zip::members(&source, budget)?;
        let mut folders: BTreeMap<String, BTreeMap<String, Option<usize>>> = BTreeMap::new();
        for (k, member) in members.iter().enumerate() {
            let name = member.name.trim_end_matches('/');
            let is_valid = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\\');
            if !name.split('/').all(is_valid) {
                return Err(escapes(&format!(
                    "zip archive: the member \"{}\" is outside of the store",
                    name.escape_debug()
                )));
            }
            let (mut at, mut is_file) = (name, !member.name.ends_with('/'));
            loop {
                let (folder, own) = at.rsplit_once('/').unwrap_or(("", at));
                let items = folders.entry(folder.into()).or_default();
                // A later member replaces an earlier one of the same name.
                let before = items.insert(own.into(), is_file.then_some(k));
                if folder.is_empty() || before == Some(None) {
                    break;
                }
                budget.charge(FILE_BYTES + folder.len() as u64, "the zip directory")?;
                (at, is_file) = (folder, false);
            }
        }
        let mut root = String::new();
        loop {
            let Some(items) = folders.get(root.trim_end_matches('/')) else { return Ok(None) };
            if DOCUMENTS[..3].iter().any(|name| matches!(items.get(*name), Some(Some(_)))) {
                break;
            }
            // Archives of the folder itself contain only that folder.
            let mut inner = items.iter().filter(|(_, member)| member.is_none());
            match (inner.next(), inner.next()) {
                (Some((name, _)), None) => root = format!("{root}{name}/"),
                _ => return Ok(None),
            }
        }
        Ok(Some(Self::Zip(Archive { source, members, folders, root })))
    }

    /// Entries of the folder with this key, sorted by name. Names that are not UTF-8 are ignored.
    pub(crate) fn list(&self, key: &str, budget: &Budget) -> Result<Vec<Item>> {
        let mut bytes = budget.used();
        let mut charge = |name: &str| {
            bytes = bytes.saturating_add(name.len() as u64 + 64);
            budget.limits().allow(bytes, "the list of files").map(|_| ())
        };
        let mut items = Vec::new();
        match self {
            Self::Folder { path, real, .. } => {
                let folder = path.join(key);
                let failed = |e| Error::io(&folder, e);
                for entry in std::fs::read_dir(&folder).map_err(failed)? {
                    let entry = entry.map_err(failed)?;
                    let Ok(name) = entry.file_name().into_string() else { continue };
                    charge(&name)?;
                    let kind = entry.file_type().map_err(failed)?;
                    let kind = match kind {
                        _ if kind.is_symlink() => linked(&entry.path(), real),
                        _ if kind.is_dir() => ItemKind::Folder,
                        _ if kind.is_file() => ItemKind::File,
                        _ => ItemKind::Refused("not a regular file"),
                    };
                    items.push(Item { name, kind });
                }
                items.sort_by(|a, b| a.name.cmp(&b.name));
            }
            Self::Zip(archive) => {
                let folder = format!("{}{key}", archive.root);
                let found = archive.folders.get(folder.trim_end_matches('/'));
                for (name, member) in found.into_iter().flatten() {
                    charge(name)?;
                    let refused = member.and_then(|k| archive.members[k].refused);
                    let kind = match (refused, member) {
                        (Some(reason), _) => ItemKind::Refused(reason),
                        (None, Some(_)) => ItemKind::File,
                        (None, None) => ItemKind::Folder,
                    };
                    items.push(Item { name: name.clone(), kind });
                }
            }
        }
        Ok(items)
    }

    /// Number of the file with this key, for [`Store::finish`].
    pub(crate) fn file(&mut self, key: &str, budget: &mut Budget) -> Result<usize> {
        match self {
            Self::Folder { path, files, .. } => {
                let file = path.join(key);
                budget.charge(FILE_BYTES + file.as_os_str().len() as u64, "the list of files")?;
                files.push(file);
                Ok(files.len() - 1)
            }
            Self::Zip(archive) => {
                let name = format!("{}{key}", archive.root);
                let (folder, own) = name.rsplit_once('/').unwrap_or(("", &name));
                let member = archive.folders.get(folder).and_then(|items| items.get(own));
                let missing = || escapes("zip archive: no such member");
                member.copied().flatten().ok_or_else(missing)
            }
        }
    }

    /// The content of the file with this number.
    pub(crate) fn content(&self, number: usize, limits: &Limits) -> Result<Vec<u8>> {
        match self {
            Self::Folder { files, .. } => {
                let path = &files[number];
                let failed = |e| Error::io(path, e);
                let len = std::fs::metadata(path).map_err(failed)?.len();
                limits.allow(len, "the metadata")?;
                std::fs::read(path).map_err(failed)
            }
            Self::Zip(archive) => {
                let Member { extent, deflated, .. } = archive.members[number];
                limits.allow(extent.len.max(deflated.unwrap_or(0)), "the metadata")?;
                let stored = archive.source.read_vec(extent.offset, extent.len)?;
                let Some(len) = deflated else { return Ok(stored) };
                let mut content = vec![0; len as usize];
                Pipeline::chained(vec![Step::Deflate], "zarr-011", 0)
                    .decode(&stored, &mut content)?;
                Ok(content)
            }
        }
    }

    /// The source with all files, and their bytes by number.
    pub(crate) fn finish(self) -> Result<(Source, Vec<Stored>)> {
        match self {
            Self::Folder { path, files, .. } => {
                let source = Source::joined(path, &files)?;
                let parts = source.parts();
                let stored = |(k, part): (usize, &Part)| {
                    let end = parts.get(k + 1).map_or(source.len(), Part::start);
                    let extent = Extent { offset: part.start(), len: end - part.start() };
                    Stored { extent, deflated: None }
                };
                let stored = parts.iter().enumerate().map(stored).collect();
                Ok((source, stored))
            }
            Self::Zip(Archive { source, members, .. }) => {
                let stored =
                    |member: &Member| Stored { extent: member.extent, deflated: member.deflated };
                let stored = members.iter().map(stored).collect();
                Ok((source, stored))
            }
        }
    }

    /// Byte ranges of the members of a zip archive with their names, in file order; empty for folders.
    pub(crate) fn members(&self) -> Vec<(Extent, String)> {
        let Self::Zip(archive) = self else { return Vec::new() };
        let members = archive.members.iter();
        let mut members: Vec<_> =
            members.map(|member| (member.extent, member.name.clone())).collect();
        members.sort_by_key(|(extent, _)| extent.offset);
        members
    }
}

/// What a symbolic link in a store with the real path `root` is.
fn linked(path: &Path, root: &Path) -> ItemKind {
    match std::fs::canonicalize(path) {
        Ok(target) if target.is_dir() => {
            ItemKind::Refused("symbolic links to folders are not followed")
        }
        Ok(target) if !target.starts_with(root) => {
            ItemKind::Refused("the symbolic link leads out of the store")
        }
        Ok(target) if target.is_file() => ItemKind::File,
        Ok(_) => ItemKind::Refused("not a regular file"),
        Err(_) => ItemKind::Refused("the symbolic link leads nowhere"),
    }
}
