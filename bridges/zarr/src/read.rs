//! The nodes of a store, with the files of their chunks.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::limits::{Budget, Limits};
use spile_core::metadata::json_memory;
use spile_core::report::Report;

use crate::store::{FILE_BYTES, Item, ItemKind, Store, escapes};
use crate::wire::{self, ArrayMeta, DIMENSIONS, malformed, parse_object};

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

/// The nodes of a store, while they are read.
pub(crate) struct Walk<'a> {
    limits: &'a Limits,
    pub(crate) store: Store,
    pub(crate) entries: Vec<Entry>,
    pub(crate) report: Report,
    /// Highest version of a metadata document.
    pub(crate) version: u64,
    /// Number of files: metadata documents and chunks.
    pub(crate) files: u64,
    budget: Budget,
}

/// The nodes of a store, groups before their content. An array that cannot be read is a finding. Fails if the
/// metadata of the root are malformed or the metadata exceed `limits`.
pub(crate) fn read_store(store: Store, budget: Budget, limits: &Limits) -> Result<Walk<'_>> {
    let (entries, report) = (Vec::new(), Report::default());
    let mut walk = Walk { limits, store, entries, report, version: 0, files: 0, budget };
    walk.node("", 0)?;
    Ok(walk)
}

/// The key of `name` in the folder `key`.
fn join(key: &str, name: &str) -> String {
    if key.is_empty() { name.into() } else { format!("{key}/{name}") }
}

impl Walk<'_> {
    /// Adds a file of the store and returns its number.
    fn add_file(&mut self, key: &str) -> Result<usize> {
        self.files += 1;
        self.store.file(key, &mut self.budget)
    }

    /// The JSON object in the document `name` of the node `key`, whose folder has these `items`; `None` if there
    /// is no such document.
    fn document(&mut self, key: &str, name: &str, items: &[Item]) -> Result<Option<wire::Object>> {
        let Ok(found) = items.binary_search_by(|item| item.name.as_str().cmp(name)) else {
            return Ok(None);
        };
        match items[found].kind {
            ItemKind::File => {}
            ItemKind::Folder => return Ok(None),
            ItemKind::Refused(reason) => return Err(escapes(&format!("{name}: {reason}"))),
        }
        let number = self.add_file(&join(key, name))?;
        let rest = self.limits.memory.saturating_sub(self.budget.used());
        let text = self.store.content(number, &self.limits.with_memory(rest))?;
        self.budget.charge(json_memory(&text), "the metadata")?;
        parse_object(&text)
            .map(Some)
            .map_err(|e| Error::malformed(e.code(), format!("{name}: {}", e.message())))
    }

    /// The metadata of the node `key`; `None` if the folder is not a node. Fails if the type of the node is not
    /// known.
    fn metadata(&mut self, key: &str, items: &[Item]) -> Result<Option<Node>> {
        if let Some(mut meta) = self.document(key, "zarr.json", items)? {
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
        if let Some(meta) = self.document(key, ".zarray", items)? {
            self.version = self.version.max(2);
            let mut attrs = self.document(key, ".zattrs", items)?.unwrap_or_default();
            let array = Some(ArrayMeta::version_2(&meta, &attrs, self.limits));
            attrs.remove(DIMENSIONS);
            return Ok(Some(Node { attrs, array }));
        }
        if self.document(key, ".zgroup", items)?.is_some() {
            self.version = self.version.max(2);
            let attrs = self.document(key, ".zattrs", items)?.unwrap_or_default();
            return Ok(Some(Node { attrs, array: None }));
        }
        Ok(None)
    }

    /// Reads the node `key` and all nodes below it.
    fn node(&mut self, key: &str, depth: u32) -> Result<()> {
        if depth > self.limits.depth {
            return Err(Error::limit(format!("nested deeper than {}", self.limits.depth)));
        }
        self.budget.charge(FILE_BYTES + 2 * key.len() as u64, "the nodes")?;
        let items = self.store.list(key, &self.budget)?;
        let is_root = key.is_empty();
        match self.metadata(key, &items) {
            // Nodes may be in a folder that is not a node.
            Ok(None) => self.children(key, items, depth),
            Ok(Some(Node { attrs, array: None })) => {
                self.entries.push(Entry { path: key.to_string(), attrs, array: None });
                self.children(key, items, depth)
            }
            Ok(Some(Node { attrs, array: Some(array) })) => {
                let path = if is_root { "data" } else { key }.to_string();
                let read = array.and_then(|meta| {
                    self.budget.charge(2 * meta.fill.len() as u64, "the fill values")?;
                    let chunks = self.chunks(key, items, &meta)?;
                    Ok((meta, chunks))
                });
                match read {
                    Ok(array) => {
                        self.entries.push(Entry { path, attrs, array: Some(array) });
                        Ok(())
                    }
                    Err(e) if is_root && e.kind() != ErrorKind::Unsupported => {
                        Err(e.in_object(format!("\"{path}\"")))
                    }
                    Err(e) => report_array(&mut self.report, &path, e),
                }
            }
            Err(e) if is_root => Err(e),
            Err(e) => {
                report_array(&mut self.report, key, e)?;
                // It may be a group.
                self.children(key, items, depth)
            }
        }
    }

    /// Reads the nodes in the folders of a group.
    fn children(&mut self, key: &str, items: Vec<Item>, depth: u32) -> Result<()> {
        for Item { name, kind } in items {
            match kind {
                ItemKind::File => {}
                ItemKind::Folder => self.node(&join(key, &name), depth + 1)?,
                ItemKind::Refused(reason) => {
                    report_array(&mut self.report, &join(key, &name), escapes(reason))?;
                }
            }
        }
        Ok(())
    }

    /// The files with chunks of an array whose folder has these `items`, by chunk number.
    fn chunks(
        &mut self,
        key: &str,
        items: Vec<Item>,
        meta: &ArrayMeta,
    ) -> Result<BTreeMap<u64, usize>> {
        let grid = meta.grid();
        let mut found = BTreeMap::new();
        // Levels of folders below that of the array.
        let deepest = if meta.keys.separator == '/' { meta.shape.rank() + 1 } else { 1 };
        let mut folders = vec![(String::new(), 1)];
        let mut first = Some(items);
        while let Some((prefix, depth)) = folders.pop() {
            let items = match first.take() {
                Some(items) => items,
                None => self.store.list(&join(key, prefix.trim_end_matches('/')), &self.budget)?,
            };
            for Item { name, kind } in items {
                let own = format!("{prefix}{name}");
                match kind {
                    ItemKind::Folder if depth < deepest => {
                        self.budget.charge(FILE_BYTES + own.len() as u64, "the chunks")?;
                        folders.push((format!("{own}/"), depth + 1));
                    }
                    ItemKind::File => {
                        if let Some(number) = meta.keys.number(&own, &grid) {
                            found.insert(number, self.add_file(&join(key, &own))?);
                        }
                    }
                    ItemKind::Refused(reason) if meta.keys.may_begin(&own) => {
                        return Err(escapes(&format!("chunk {own}: {reason}")));
                    }
                    _ => {}
                }
            }
        }
        Ok(found)
    }
}

/// Reports that an array or node cannot be read. Returns errors that are not about the array.
pub(crate) fn report_array(report: &mut Report, path: &str, error: Error) -> Result<()> {
    report.absorb(error.in_object(format!("\"{path}\"")))
}
