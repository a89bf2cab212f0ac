//! An open Zarr store: the nodes of a folder, with the files of their chunks.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use spile_core::Dataset;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{Native, Object, Parsed, Region, RegionKind};
use spile_core::layout::ArrayDesc;
use spile_core::limits::{Budget, Limits};
use spile_core::metadata::json_memory;
use spile_core::report::Report;
use spile_core::source::{Part, Source};
use spile_core::tree::{Attrs, Value};

use crate::to_tree::{self, Contents};
use crate::wire::{self, ArrayMeta, DIMENSIONS, malformed, parse_object};

/// Approximate memory of a file or folder name, in bytes.
const FILE_BYTES: u64 = 256;

/// The arrays of an open store.
struct Store(Vec<StoredArray>);

/// An array of the store, before stored metadata are applied.
pub(crate) struct StoredArray {
    pub(crate) path: String,
    /// The data type as the metadata name it.
    pub(crate) data_type: String,
    pub(crate) desc: ArrayDesc,
}

/// A node of the hierarchy.
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) attrs: wire::Object,
    /// Set for arrays: the metadata, and the files by chunk number.
    pub(crate) array: Option<(ArrayMeta, BTreeMap<u64, usize>)>,
}

/// A parsed metadata document: attributes, and for arrays their metadata, which may be unsupported.
struct Node {
    attrs: wire::Object,
    array: Option<Result<ArrayMeta>>,
}

/// The state of reading a hierarchy.
struct Walk<'a> {
    limits: &'a Limits,
    files: Vec<PathBuf>,
    entries: Vec<Entry>,
    report: Report,
    version: u64,
    budget: Budget,
}

/// Opens the store in `folder`; `None` if the folder is not a store. An array that cannot be read is a
/// warning of severity error. Fails if the metadata of the root are malformed or the metadata exceed
/// `limits`.
pub(crate) fn open(folder: &Path, limits: &Limits) -> Result<Option<Parsed>> {
    let has = |name: &str| folder.join(name).is_file();
    if !["zarr.json", ".zarray", ".zgroup"].iter().any(|name| has(name)) {
        return Ok(None);
    }
    let mut walk = Walk {
        limits,
        files: Vec::new(),
        entries: Vec::new(),
        report: Report::default(),
        version: 0,
        budget: Budget::new(limits),
    };
    walk.node(folder, "", 0)?;
    let Walk { files, entries, mut report, version, .. } = walk;
    let source = Source::joined(folder, &files)?;
    let Contents { tree, arrays, metadata } =
        to_tree::parse(&source, entries, &mut report, limits)?;
    let summary = Attrs::from([
        ("version", Value::UInt(version)),
        ("arrays", Value::UInt(arrays.len() as u64)),
        ("files", Value::UInt(files.len() as u64)),
        ("bytes", Value::UInt(source.len())),
    ]);
    let parsed = Parsed::new(source, tree).with_summary(summary).with_warnings(report.findings);
    Ok(Some(parsed.with_metadata(metadata).with_native(Store(arrays))))
}

impl Walk<'_> {
    /// Adds a file of the store and returns its number.
    fn add_file(&mut self, path: PathBuf) -> Result<usize> {
        self.budget.charge(FILE_BYTES + path.as_os_str().len() as u64, "the list of files")?;
        self.files.push(path);
        Ok(self.files.len() - 1)
    }

    /// The JSON object in a file; `None` if there is no such file.
    fn document(&mut self, path: PathBuf) -> Result<Option<wire::Object>> {
        let text = match std::fs::metadata(&path) {
            Ok(meta) if meta.is_file() => {
                self.limits.allow(self.budget.used().saturating_add(meta.len()), "the metadata")?;
                std::fs::read(&path).map_err(|e| Error::io(&path, e))?
            }
            _ => return Ok(None),
        };
        self.budget.charge(json_memory(&text), "the metadata")?;
        let parsed = parse_object(&text).map_err(|e| e.with_path(&path));
        self.add_file(path)?;
        parsed.map(Some)
    }

    /// The metadata of the node in `folder`; `None` if the folder is not a node. Fails if the type of the
    /// node is not known.
    fn metadata(&mut self, folder: &Path) -> Result<Option<Node>> {
        if let Some(mut meta) = self.document(folder.join("zarr.json"))? {
            self.version = self.version.max(3);
            let format = meta.get("zarr_format").and_then(Json::as_u64);
            if format != Some(3) {
                return Err(malformed("zarr.json: expected \"zarr_format\": 3"));
            }
            let attrs = match meta.remove("attributes") {
                Some(Json::Object(attrs)) => attrs,
                _ => wire::Object::new(),
            };
            let array = match meta.get("node_type").and_then(Json::as_str) {
                Some("group") => None,
                Some("array") => Some(ArrayMeta::version_3(&meta, self.limits)),
                _ => return Err(malformed("zarr.json: expected node_type \"group\" or \"array\"")),
            };
            return Ok(Some(Node { attrs, array }));
        }
        if let Some(meta) = self.document(folder.join(".zarray"))? {
            self.version = self.version.max(2);
            let mut attrs = self.document(folder.join(".zattrs"))?.unwrap_or_default();
            let array = Some(ArrayMeta::version_2(&meta, &attrs, self.limits));
            attrs.remove(DIMENSIONS);
            return Ok(Some(Node { attrs, array }));
        }
        if self.document(folder.join(".zgroup"))?.is_some() {
            self.version = self.version.max(2);
            let attrs = self.document(folder.join(".zattrs"))?.unwrap_or_default();
            return Ok(Some(Node { attrs, array: None }));
        }
        Ok(None)
    }

    /// Reads the node in `folder` and all nodes below it.
    fn node(&mut self, folder: &Path, path: &str, depth: u32) -> Result<()> {
        if depth > self.limits.depth {
            return Err(Error::limit(format!("nested deeper than {}", self.limits.depth)));
        }
        self.budget.charge(FILE_BYTES + 2 * path.len() as u64, "the nodes")?;
        let is_root = path.is_empty();
        match self.metadata(folder) {
            Ok(None) => Ok(()),
            Ok(Some(Node { attrs, array: None })) => {
                self.entries.push(Entry { path: path.to_string(), attrs, array: None });
                self.children(folder, path, depth)
            }
            Ok(Some(Node { attrs, array: Some(array) })) => {
                let path = if is_root { "data" } else { path }.to_string();
                match array {
                    Ok(meta) => {
                        self.budget.charge(2 * meta.fill.len() as u64, "the fill values")?;
                        let chunks = self.chunks(folder, &meta)?;
                        self.entries.push(Entry { path, attrs, array: Some((meta, chunks)) });
                        Ok(())
                    }
                    Err(e) if is_root && e.kind() != ErrorKind::Unsupported => {
                        Err(e.in_object(format!("\"{path}\"")).with_path(folder))
                    }
                    Err(e) => report_array(&mut self.report, &path, e),
                }
            }
            Err(e) if is_root => Err(e.with_path(folder)),
            Err(e) => {
                report_array(&mut self.report, path, e)?;
                // It may be a group.
                self.children(folder, path, depth)
            }
        }
    }

    /// Reads the nodes in the folders of a group.
    fn children(&mut self, folder: &Path, path: &str, depth: u32) -> Result<()> {
        for name in self.list(folder)? {
            let child = folder.join(&name);
            if child.is_dir() {
                let slash = if path.is_empty() { "" } else { "/" };
                self.node(&child, &format!("{path}{slash}{name}"), depth + 1)?;
            }
        }
        Ok(())
    }

    /// The files with chunks of an array, by chunk number.
    fn chunks(&mut self, folder: &Path, meta: &ArrayMeta) -> Result<BTreeMap<u64, usize>> {
        let grid = meta.grid();
        let mut found = BTreeMap::new();
        // Levels of folders below that of the array.
        let deepest = if meta.keys.separator == '/' { meta.shape.rank() + 1 } else { 1 };
        let mut folders = vec![(folder.to_path_buf(), String::new(), 1)];
        while let Some((folder, prefix, depth)) = folders.pop() {
            for name in self.list(&folder)? {
                let (path, key) = (folder.join(&name), format!("{prefix}{name}"));
                if path.is_dir() {
                    if depth < deepest {
                        self.budget
                            .charge(FILE_BYTES + path.as_os_str().len() as u64, "the chunks")?;
                        folders.push((path, format!("{key}/"), depth + 1));
                    }
                } else if let Some(number) = meta.keys.number(&key, &grid) {
                    found.insert(number, self.add_file(path)?);
                }
            }
        }
        Ok(found)
    }

    /// Names in a folder, sorted; names that are not UTF-8 are ignored.
    fn list(&self, folder: &Path) -> Result<Vec<String>> {
        let failed = |e| Error::io(folder, e);
        let (mut names, mut bytes) = (Vec::new(), self.budget.used());
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
                bytes = bytes.saturating_add(name.len() as u64 + 64);
                self.limits.allow(bytes, "the list of files")?;
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }
}

/// Reports that an array or node cannot be read. Returns errors that are not about the array.
pub(crate) fn report_array(report: &mut Report, path: &str, error: Error) -> Result<()> {
    report.absorb(error.in_object(format!("\"{path}\"")))
}

impl Native for Store {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let source = dataset.source();
        let (parts, folder) = (source.parts(), source.path());
        for (k, part) in parts.iter().enumerate() {
            let end = parts.get(k + 1).map_or(source.len(), Part::start);
            let name = folder.and_then(|folder| part.path().strip_prefix(folder).ok());
            let name = name.unwrap_or(part.path()).to_string_lossy().into_owned();
            let last = name.rsplit('/').next().unwrap_or(&name);
            let meta = matches!(last, "zarr.json" | ".zarray" | ".zgroup" | ".zattrs");
            let kind = if meta { RegionKind::Header } else { RegionKind::Data };
            let (offset, value) = (part.start(), String::new());
            each(Region { offset, len: end - offset, kind, name, value })?;
        }
        Ok(())
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for StoredArray { path, data_type, desc } in &self.0 {
            each(Object {
                path: path.clone(),
                id: None,
                frame: None,
                kind: data_type.clone(),
                array: desc.clone(),
            })?;
        }
        Ok(())
    }
}
