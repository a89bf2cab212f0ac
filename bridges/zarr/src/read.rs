//! A folder of metadata and chunks as a tree.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use spile_core::description::Description;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::layout::{ArrayDesc, Coord, Linear};
use spile_core::limits::Limits;
use spile_core::report::{Finding, Report};
use spile_core::source::{Part, Source};
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};

use crate::chunks::{Stored, layout};
use crate::wire::{self, ArrayMeta, DIMENSIONS, bad, object};
use crate::write::shown;

/// The attribute of the root that says what Zarr cannot.
pub(crate) const DESCRIPTION: &str = "spile";

/// About what is remembered of a file.
const FILE_BYTES: u64 = 256;

/// An open store.
pub struct Store {
    source: Source,
    tree: Tree,
    version: u64,
    arrays: Vec<(String, String, ArrayDesc)>,
    findings: Vec<Finding>,
}

/// A node of the hierarchy.
struct Entry {
    path: String,
    attrs: wire::Object,
    /// Set for arrays: what is said, and the files by the numbers of their chunks.
    array: Option<(ArrayMeta, BTreeMap<u64, usize>)>,
}

/// What is found while the folders are walked.
struct Walk<'a> {
    limits: &'a Limits,
    files: Vec<PathBuf>,
    entries: Vec<Entry>,
    report: Report,
    version: u64,
}

impl Store {
    /// Opens the store in `folder`; nothing if there is none.
    pub fn open(folder: &Path, limits: &Limits) -> Result<Option<Self>> {
        let here = |name: &str| folder.join(name).is_file();
        if !["zarr.json", ".zarray", ".zgroup"].iter().any(|name| here(name)) {
            return Ok(None);
        }
        let mut walk = Walk {
            limits,
            files: Vec::new(),
            entries: Vec::new(),
            report: Report::default(),
            version: 0,
        };
        walk.node(folder, String::new(), 0)?;
        walk.finish(folder).map(Some)
    }

    /// 2 or 3.
    pub fn version(&self) -> u64 {
        self.version
    }
}

impl Walk<'_> {
    fn file(&mut self, path: PathBuf) -> Result<usize> {
        self.limits.allow((self.files.len() as u64 + 1) * FILE_BYTES, "the list of files")?;
        self.files.push(path);
        Ok(self.files.len() - 1)
    }

    /// A document, where it is there.
    fn document(&mut self, path: PathBuf) -> Result<Option<wire::Object>> {
        let text = match std::fs::metadata(&path) {
            Ok(meta) if meta.is_file() => {
                // What is parsed takes much more memory than its text.
                self.limits.allow(meta.len().saturating_mul(16), "the metadata")?;
                std::fs::read(&path).map_err(|e| Error::io(&path, e))?
            }
            _ => return Ok(None),
        };
        let parsed = object(&text).map_err(|e| e.with_path(&path))?;
        self.file(path)?;
        Ok(Some(parsed))
    }

    /// The node in `folder`, and all below it.
    fn node(&mut self, folder: &Path, path: String, depth: u32) -> Result<()> {
        if depth > self.limits.depth {
            return Err(Error::limit(format!("nested deeper than {}", self.limits.depth)));
        }
        let place = |e: Error| e.in_object(format!("\"{path}\"")).with_path(folder);
        let (array, attrs) = if let Some(mut meta) = self.document(folder.join("zarr.json"))? {
            self.version = self.version.max(3);
            if meta.get("zarr_format").and_then(Json::as_u64) != Some(3) {
                return Err(place(bad("zarr.json is of version 3")));
            }
            let attrs = match meta.remove("attributes") {
                Some(Json::Object(attrs)) => attrs,
                _ => wire::Object::new(),
            };
            let array = match meta.get("node_type").and_then(Json::as_str) {
                Some("group") => None,
                Some("array") => Some(ArrayMeta::version_3(&meta)),
                _ => return Err(place(bad("a node is a group or an array"))),
            };
            (array, attrs)
        } else if let Some(meta) = self.document(folder.join(".zarray"))? {
            self.version = self.version.max(2);
            let mut attrs = self.document(folder.join(".zattrs"))?.unwrap_or_default();
            let array = ArrayMeta::version_2(&meta, &attrs);
            attrs.remove(DIMENSIONS);
            (Some(array), attrs)
        } else if self.document(folder.join(".zgroup"))?.is_some() {
            self.version = self.version.max(2);
            (None, self.document(folder.join(".zattrs"))?.unwrap_or_default())
        } else {
            return Ok(());
        };
        match array.transpose() {
            Ok(None) => {
                self.entries.push(Entry { path: path.clone(), attrs, array: None });
                for name in list(folder).map_err(|e| Error::io(folder, e))? {
                    let below = folder.join(&name);
                    if below.is_dir() {
                        let slash = if path.is_empty() { "" } else { "/" };
                        self.node(&below, format!("{path}{slash}{name}"), depth + 1)?;
                    }
                }
            }
            Ok(Some(meta)) => {
                let chunks = self.chunks(folder, &meta)?;
                let path = if path.is_empty() { "data".into() } else { path };
                self.entries.push(Entry { path, attrs, array: Some((meta, chunks)) });
            }
            // One array that cannot be read leaves the others as they are.
            Err(e) if e.kind() == ErrorKind::Unsupported => {
                let message = format!("left out: {}", e.message());
                self.report.warn("zarr-003", message).in_object(format!("\"{path}\""));
            }
            Err(e) => return Err(place(e)),
        }
        Ok(())
    }

    /// The files that hold chunks of an array, by number.
    fn chunks(&mut self, folder: &Path, meta: &ArrayMeta) -> Result<BTreeMap<u64, usize>> {
        let grid = meta.grid();
        let mut found = BTreeMap::new();
        // Folders between the array's and its chunks.
        let deepest = if meta.keys.separator == '/' { meta.shape.rank() + 1 } else { 1 };
        let mut folders = vec![(folder.to_path_buf(), String::new(), 1)];
        while let Some((folder, prefix, depth)) = folders.pop() {
            for name in list(&folder).map_err(|e| Error::io(&folder, e))? {
                let (path, key) = (folder.join(&name), format!("{prefix}{name}"));
                if path.is_dir() {
                    if depth < deepest {
                        folders.push((path, format!("{key}/"), depth + 1));
                    }
                } else if let Some(number) = meta.keys.number(&key, &grid) {
                    found.insert(number, self.file(path)?);
                }
            }
        }
        Ok(found)
    }

    fn finish(mut self, folder: &Path) -> Result<Store> {
        let source = Source::joined(folder, &self.files)?;
        let mut plain = Tree::new(self.limits);
        let mut arrays = Vec::new();
        let mut description = None;
        for entry in std::mem::take(&mut self.entries) {
            let (parent, name) = entry.path.rsplit_once('/').unwrap_or(("", &entry.path));
            let parent = plain.group_at(parent)?;
            let mut attrs = entry.attrs;
            let id = if let Some((meta, files)) = entry.array {
                let desc = describe(&source, meta, &files, &mut attrs, &mut arrays, &entry.path)
                    .map_err(|e| e.in_object(format!("\"{}\"", entry.path)))?;
                plain.add_array(parent, name, desc)?
            } else if entry.path.is_empty() {
                description = attrs.remove(DESCRIPTION);
                ROOT
            } else {
                plain.add_group(parent, name)?
            };
            plain.node_mut(id).attrs = values(attrs);
        }
        point(&mut plain);
        let text = description.as_ref().and_then(Json::as_str);
        let tree = match text.map(|text| Description::parse(text.as_bytes(), self.limits)) {
            Some(Ok(description)) => {
                let mut tree = description.dress(&source, &plain, self.limits)?;
                renew(&mut tree, &plain, &description);
                tree
            }
            Some(Err(e)) if e.kind() == ErrorKind::Limit => return Err(e),
            Some(Err(e)) => {
                self.report.warn("zarr-007", format!("not looked at: {}", e.message()));
                plain
            }
            None => plain,
        };
        let (version, findings) = (self.version, self.report.findings);
        Ok(Store { source, tree, version, arrays, findings })
    }
}

/// Everything about an array but its coordinates; `attrs` loses what is said in other words.
fn describe(
    source: &Source,
    meta: ArrayMeta,
    files: &BTreeMap<u64, usize>,
    attrs: &mut wire::Object,
    arrays: &mut Vec<(String, String, ArrayDesc)>,
    path: &str,
) -> Result<ArrayDesc> {
    let stored = Stored::new(source, files);
    let (words, dims) = (meta.words.clone(), meta.dims.clone());
    let layout = layout(source, &meta, stored)?;
    let mut desc = ArrayDesc::new(meta.dtype, meta.shape, layout);
    arrays.push((path.to_string(), words, desc.clone()));
    for (own, name) in desc.dims.iter_mut().zip(dims) {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            *own = name;
        }
    }
    let number = |name: &str| attrs.get(name).and_then(Json::as_f64);
    let (slope, intercept) = (number("scale_factor"), number("add_offset"));
    if desc.dtype.is_real() && (slope.is_some() || intercept.is_some()) {
        let (slope, intercept) = (slope.unwrap_or(1.0), intercept.unwrap_or(0.0));
        desc.map = Some(Linear::new(intercept, slope));
        attrs.remove("scale_factor");
        attrs.remove("add_offset");
    }
    Ok(desc)
}

/// Names in a folder, in order; those that are no text are nobody's.
fn list(folder: &Path) -> std::io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        names.extend(entry?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Lets every dimension that has the name of a line of as many points, in the array's group or one
/// above it, have these points.
fn point(tree: &mut Tree) {
    let arrays: Vec<NodeId> = tree.arrays().map(|(id, ..)| id).collect();
    for id in arrays {
        let node = tree.node(id);
        let (Some(array), mut group) = (&node.array, node.parent) else { continue };
        let mut coords = array.coords.clone();
        loop {
            for (k, coord) in coords.iter_mut().enumerate() {
                let line = tree.child(group, &array.dims[k]).filter(|line| *line != id);
                let points = line.and_then(|line| tree.node(line).array.as_ref());
                let fits = points.is_some_and(|p| p.shape.lengths() == [array.shape.lengths()[k]]);
                if let (Coord::None, Some(line), true) = (&*coord, line, fits) {
                    *coord = Coord::Node(line);
                }
            }
            if group == ROOT {
                break;
            }
            group = tree.node(group).parent;
        }
        if let Some(array) = &mut tree.node_mut(id).array {
            array.coords = coords;
        }
    }
}

/// Attributes that others have changed, added or removed since the description was written.
fn renew(tree: &mut Tree, plain: &Tree, description: &Description) {
    let places: HashMap<&str, &str> = description.moves().collect();
    let nodes: Vec<NodeId> = std::iter::once(ROOT).chain(tree.iter().map(|(id, _)| id)).collect();
    for id in nodes {
        let node = tree.node_mut(id);
        let path = places.get(node.path.as_str()).copied().unwrap_or(&node.path);
        let now = plain.at(path).map(|id| &plain.node(id).attrs);
        let Some(now) = now else { continue };
        let there = |name: &str| now.iter().find(|(own, _)| own == name).map(|(_, value)| value);
        let names: Vec<String> = node.attrs.iter().map(|(name, _)| name.clone()).collect();
        // Namesakes have no place in JSON; they stay as they are described.
        let once = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
        node.attrs.retain(|(name, _)| !once(name) || there(name).is_some());
        for (name, value) in node.attrs.iter_mut().filter(|(name, _)| once(name)) {
            if let Some(new) = there(name).filter(|new| **new != said(shown(value))) {
                *value = new.clone();
            }
        }
        let new = now.iter().filter(|(name, _)| {
            !names.contains(name) && !matches!(name.as_str(), "scale_factor" | "add_offset")
        });
        node.attrs.extend(new.cloned());
    }
}

/// What JSON says in our words.
fn values(attrs: wire::Object) -> Attrs {
    attrs.into_iter().map(|(name, value)| (name, said(value))).collect()
}

fn said(value: Json) -> Value {
    match value {
        Json::Bool(truth) => Value::Bool(truth),
        Json::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(whole), _) => Value::UInt(whole),
            (_, Some(whole)) => Value::Int(whole),
            _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text),
        Json::Array(list) => Value::List(list.into_iter().map(said).collect()),
        other => Value::Text(other.to_string()),
    }
}

impl Reader for Store {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn summary(&self) -> Attrs {
        let count = |n: usize| Value::UInt(n as u64);
        vec![
            ("version".into(), Value::UInt(self.version)),
            ("arrays".into(), count(self.arrays.len())),
            ("files".into(), count(self.source.parts().len())),
            ("bytes".into(), Value::UInt(self.source.len())),
        ]
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let (parts, folder) = (self.source.parts(), self.source.path());
        for (k, part) in parts.iter().enumerate() {
            let end = parts.get(k + 1).map_or(self.source.len(), Part::start);
            let name = folder.and_then(|folder| part.path().strip_prefix(folder).ok());
            let name = name.unwrap_or(part.path()).to_string_lossy().into_owned();
            let last = name.rsplit('/').next().unwrap_or(&name);
            let meta = matches!(last, "zarr.json" | ".zarray" | ".zgroup" | ".zattrs");
            let role = if meta { Role::Header } else { Role::Data };
            let (offset, value) = (part.start(), String::new());
            each(Region { offset, len: end - offset, role, name, value })?;
        }
        Ok(())
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (path, words, array) in &self.arrays {
            each(Object {
                path: path.clone(),
                id: None,
                frame: None,
                kind: words.clone(),
                array: array.clone(),
            })?;
        }
        Ok(())
    }
}

impl ArrayMeta {
    /// Files along each dimension.
    pub(crate) fn grid(&self) -> spile_core::shape::Shape {
        let lengths = self.shape.lengths().iter().zip(self.chunk.lengths());
        spile_core::shape::Shape::new(lengths.map(|(n, c)| n.div_ceil(*c)).collect::<Vec<_>>())
    }
}
