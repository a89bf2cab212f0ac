//! Groups, datasets and attributes of a file as a tree.
//!
//! An object that cannot be read is a finding with its path; all others are in the tree.

pub(crate) mod array;
pub(crate) mod scales;
mod value;

use std::collections::{HashMap, HashSet};

use spile_core::error::{Error, Result};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::metadata::StoredMetadata;
use spile_core::report::{Finding, Report};
use spile_core::semantics::{Role, Semantics};
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};
use spile_interchange::cf;

use crate::wire::attribute::{Attribute, attributes};
use crate::wire::group::{Link, Target, is_group, links};
use crate::wire::header::{Header, kind};
use crate::wire::heap::GlobalHeaps;
use crate::wire::{Context, is_fatal};
use array::{Content, Dataset};
use value::Decoder;

/// Attributes that only netCDF libraries write.
const NETCDF: [&str; 4] = ["_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict"];

/// Largest number of soft links that are followed for one link, as in the HDF5 library.
const MAX_LINKS: u32 = 16;

/// All metadata of a file.
pub(crate) struct Contents {
    pub(crate) tree: Tree,
    pub(crate) report: Report,
    /// Path and description of every dataset, before stored metadata are applied.
    pub(crate) datasets: Vec<(String, ArrayDesc)>,
    /// The attribute `_NCProperties`.
    pub(crate) writer: Option<String>,
    /// The attribute [`scales::DESCRIPTION`] of the root group.
    pub(crate) metadata: Option<StoredMetadata>,
}

/// Reads the hierarchy from the root group.
pub(crate) fn parse(ctx: &Context) -> Result<Contents> {
    let root = Header::read(ctx, ctx.root)?;
    let mut walk = Walk {
        ctx,
        tree: Tree::new(&ctx.limits),
        report: Report::default(),
        heaps: GlobalHeaps::default(),
        nodes: HashMap::from([(ctx.root, ROOT)]),
        dimensions: HashMap::new(),
        attributes: Vec::new(),
        links: Vec::new(),
        skipped: HashMap::new(),
        netcdf: false,
        writer: None,
        metadata: None,
    };
    // The end-of-file address counts from byte 0, also after a user block.
    if ctx.end > ctx.source.len() {
        let message = format!(
            "unexpected end of file: expected {} bytes, found {}",
            ctx.end,
            ctx.source.len()
        );
        walk.report.error("hdf5-014", message).at(ctx.source.len());
    }
    walk.group(ROOT, &root)?;
    walk.resolve_links()?;
    let arrays = walk.tree.arrays().filter(|(_, _, desc)| !matches!(desc.layout, Layout::Same(_)));
    let datasets = arrays.map(|(_, node, desc)| (node.path.clone(), desc.clone())).collect();
    walk.decode_attributes()?;
    let Walk { mut tree, report, writer, metadata, .. } = walk;
    cf::set_roles(&mut tree)?;
    Ok(Contents { tree, report, datasets, writer, metadata })
}

/// Path and target of a link that is not the first hard link to its object.
struct PendingLink {
    parent: NodeId,
    name: String,
    target: Target,
}

/// The state of reading a hierarchy.
pub(crate) struct Walk<'a> {
    ctx: &'a Context,
    pub(crate) tree: Tree,
    report: Report,
    heaps: GlobalHeaps,
    /// Nodes by object header address.
    pub(crate) nodes: HashMap<u64, NodeId>,
    /// Names of netCDF dimensions without a variable, by object header address.
    pub(crate) dimensions: HashMap<u64, String>,
    /// Stored attributes of each node.
    attributes: Vec<(NodeId, Vec<Attribute>)>,
    links: Vec<PendingLink>,
    /// Paths of objects that cannot be read, by object header address.
    skipped: HashMap<u64, String>,
    pub(crate) netcdf: bool,
    writer: Option<String>,
    metadata: Option<StoredMetadata>,
}

impl Walk<'_> {
    fn group(&mut self, node: NodeId, header: &Header) -> Result<()> {
        let (found, errors) = attributes(self.ctx, header)?;
        self.keep_attributes(node, found, errors)?;
        let (links, errors) = links(self.ctx, header)?;
        let path = self.tree.node(node).path.clone();
        for error in errors {
            // The link may have a name; its path is then complete.
            let name = error.object().filter(|name| name.starts_with('"')).map(String::from);
            let object = match name {
                Some(name) => format!("\"{}\"", self.path(node, name.trim_matches('"'))),
                None if path.is_empty() => "a link of the root group".to_string(),
                None => format!("a link of \"{path}\""),
            };
            self.report_error(object, error)?;
        }
        for Link { name, target, .. } in links {
            match target {
                Target::Hard(address)
                    if !self.nodes.contains_key(&address)
                        && !self.skipped.contains_key(&address) =>
                {
                    if let Err(error) = self.object(node, &name, address) {
                        let path = self.path(node, &name);
                        self.ctx.charge(2 * path.len() as u64)?;
                        self.report_error(format!("\"{path}\""), error)?;
                        self.skipped.insert(address, path);
                    }
                }
                target => self.links.push(PendingLink { parent: node, name, target }),
            }
        }
        Ok(())
    }

    fn path(&self, parent: NodeId, name: &str) -> String {
        match self.tree.node(parent).path.as_str() {
            "" => name.to_string(),
            path => format!("{path}/{name}"),
        }
    }

    /// Reports that `object` cannot be read. The structure that the error names moves to the message.
    /// Returns fatal errors.
    fn report_error(&mut self, object: String, error: Error) -> Result<()> {
        if is_fatal(&error) {
            return Err(error);
        }
        self.ctx.charge((object.len() + error.message().len() + 256) as u64)?;
        self.report.absorb(error)?;
        if let Some(Finding { object: named, message, .. }) = self.report.findings.last_mut()
            && let Some(structure) = named.replace(object)
            && !structure.starts_with('"')
            && !structure.starts_with("attribute")
        {
            *message = format!("{structure}: {message}");
        }
        Ok(())
    }

    fn object(&mut self, parent: NodeId, name: &str, address: u64) -> Result<()> {
        let header = Header::read(self.ctx, address)?;
        let path = self.tree.node(parent).path.len() + name.len();
        self.ctx.charge(512 + 2 * path as u64)?;
        if header.find(kind::LAYOUT).is_some() || header.find(kind::DATASPACE).is_some() {
            return self.dataset(parent, name, &header);
        }
        if is_group(&header) {
            let node = self.tree.add_group(parent, name)?;
            self.nodes.insert(address, node);
            return self.group(node, &header);
        }
        // A named datatype has no data.
        if header.find(kind::DATATYPE).is_none() {
            let message = "object is not a group, a dataset or a named datatype";
            return Err(Error::unsupported("hdf5-017", message).at(self.ctx.file_offset(address)));
        }
        Ok(())
    }

    fn dataset(&mut self, parent: NodeId, name: &str, header: &Header) -> Result<()> {
        let (found, errors) = attributes(self.ctx, header)?;
        if scales::is_without_variable(&found) {
            self.dimensions.insert(header.address, name.to_string());
            self.netcdf = true;
            return Ok(());
        }
        let no_paths = |_| None;
        let decoder = Decoder { ctx: self.ctx, heaps: &self.heaps, path: &no_paths };
        let node = match Dataset::read(self.ctx, header)?.content(&decoder)? {
            Content::Array { desc, opaque } => {
                self.ctx.charge(128 * desc.shape.rank() as u64)?;
                let node = self.tree.add_array(parent, name, desc)?;
                self.note_opaque(node, opaque)?;
                node
            }
            Content::Table(columns) => {
                let node = self.tree.add_group(parent, name)?;
                for column in columns {
                    let desc = column.desc.with_semantics(Semantics::role(Role::Table));
                    let id = self.tree.add_array(node, &column.name, desc)?;
                    self.note_opaque(id, column.opaque)?;
                }
                node
            }
        };
        self.nodes.insert(header.address, node);
        self.keep_attributes(node, found, errors)
    }

    /// Notes that core has no type for the elements of an array.
    fn note_opaque(&mut self, node: NodeId, what: Option<&'static str>) -> Result<()> {
        if let Some(what) = what {
            let path = &self.tree.node(node).path;
            self.ctx.charge(256 + path.len() as u64)?;
            let message = format!("{what}: read as opaque bytes");
            self.report.note("hdf5-023", message).in_object(format!("\"{path}\""));
        }
        Ok(())
    }

    fn keep_attributes(
        &mut self,
        node: NodeId,
        found: Vec<Attribute>,
        errors: Vec<Error>,
    ) -> Result<()> {
        for error in errors {
            self.report_attribute(node, error)?;
        }
        self.netcdf |= found.iter().any(|a| NETCDF.contains(&a.name.as_str()));
        self.attributes.push((node, found));
        Ok(())
    }

    /// Reports that an attribute of `node` cannot be read.
    fn report_attribute(&mut self, node: NodeId, error: Error) -> Result<()> {
        let owner = match self.tree.node(node).path.as_str() {
            "" => "the root group".to_string(),
            path => format!("\"{path}\""),
        };
        let name = error.object().filter(|name| name.starts_with("attribute"));
        let object = format!("{} of {owner}", name.unwrap_or("an attribute"));
        self.report_error(object, error)
    }

    /// Adds links to datasets as references to the same array; links to objects that cannot be read are
    /// errors, others notes.
    fn resolve_links(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.links);
        let mut by_path = HashMap::new();
        for (k, link) in pending.iter().enumerate() {
            let path = self.path(link.parent, &link.name);
            self.ctx.charge(path.len() as u64 + 128)?;
            by_path.insert(path, k);
        }
        let mut resolver = Resolver {
            walk: self,
            pending: &pending,
            by_path,
            resolved: vec![State::Unresolved; pending.len()],
        };
        for k in 0..pending.len() {
            resolver.link(k, 0);
        }
        let resolved = std::mem::take(&mut resolver.resolved);
        let skipped: HashSet<&str> = self.skipped.values().map(String::as_str).collect();
        let mut findings = Vec::new();
        let mut arrays = Vec::new();
        for (link, state) in pending.iter().zip(resolved) {
            let node = if let State::Node(id) = state { Some(id) } else { None };
            let message = match (&link.target, node.map(|id| self.tree.node(id))) {
                (_, Some(node)) if node.array.is_some() => {
                    arrays.extend(node.array.clone().zip(state.node()).map(|found| (link, found)));
                    continue;
                }
                (_, Some(node)) => format!("link to the group \"/{}\", listed once", node.path),
                (Target::External, _) => "external link, not followed".to_string(),
                (Target::Hard(address), _) => match self.skipped.get(address) {
                    Some(path) => format!("link to \"/{path}\", which cannot be read"),
                    None => "link to an object that is not in the tree".to_string(),
                },
                (Target::Soft(path), _) if skipped.contains(path.trim_matches('/')) => {
                    format!("soft link to \"{path}\", which cannot be read")
                }
                (Target::Soft(path), _) => format!("soft link to \"{path}\", which does not exist"),
            };
            let path = self.path(link.parent, &link.name);
            self.ctx.charge((path.len() + message.len() + 256) as u64)?;
            let is_lost = match &link.target {
                Target::External => true,
                Target::Hard(address) => self.skipped.contains_key(address),
                Target::Soft(path) => skipped.contains(path.trim_matches('/')),
            };
            findings.push((path, message, is_lost));
        }
        for (path, message, is_lost) in findings {
            let finding = if is_lost {
                self.report.error("hdf5-020", message)
            } else {
                self.report.note("hdf5-020", message)
            };
            finding.in_object(format!("\"{path}\""));
        }
        let owners: HashMap<NodeId, usize> =
            self.attributes.iter().enumerate().map(|(k, (node, _))| (*node, k)).collect();
        for (link, (desc, id)) in arrays {
            let path = self.tree.node(link.parent).path.len() + link.name.len();
            self.ctx.charge((512 + 2 * path + 128 * desc.shape.rank()) as u64)?;
            let alias = ArrayDesc { layout: Layout::Same(id), ..desc };
            let node = self.tree.add_array(link.parent, &link.name, alias)?;
            if let Some(k) = owners.get(&id) {
                let found = &self.attributes[*k].1;
                self.ctx.charge(found.iter().map(Attribute::memory).sum())?;
                let copy = found.clone();
                self.attributes.push((node, copy));
            }
        }
        Ok(())
    }

    /// Decodes all attributes: dimension scales and scaling go to the arrays, `_NCProperties` and stored
    /// metadata are kept apart, the others go to the nodes.
    fn decode_attributes(&mut self) -> Result<()> {
        let path = |address: u64| {
            let node = self.nodes.get(&address).map(|id| self.tree.node(*id));
            node.map(|node| format!("/{}", node.path))
        };
        let decoder = Decoder { ctx: self.ctx, heaps: &self.heaps, path: &path };
        let mut dimension_scales = scales::Scales::default();
        let mut errors = Vec::new();
        let mut values: Vec<(NodeId, Attrs)> = Vec::new();
        for (node, attributes) in &self.attributes {
            let mut kept = Attrs::new();
            for attribute in attributes {
                let decoded = match dimension_scales.take(self.ctx, &decoder, *node, attribute) {
                    Ok(true) => continue,
                    Ok(false) => decoder.attribute(attribute),
                    Err(error) => Err(error),
                };
                match decoded {
                    Ok(value) if attribute.name == "_NCProperties" => {
                        self.writer = Some(value.to_string());
                    }
                    Ok(Value::Text(text))
                        if *node == ROOT && attribute.name == scales::DESCRIPTION =>
                    {
                        let stored = StoredMetadata::new(text, scales::DESCRIPTION_NAME);
                        self.metadata = Some(stored.at(self.ctx.file_offset(attribute.at)));
                    }
                    Ok(value) => {
                        kept.push(attribute.name.as_str(), scales::unwrap(value, self.netcdf));
                    }
                    Err(error) if is_fatal(&error) => return Err(error),
                    Err(error) => {
                        self.ctx.charge(256)?;
                        let name = format!("attribute \"{}\"", attribute.name);
                        errors.push((*node, name, error));
                    }
                }
            }
            values.push((*node, kept));
        }
        for (node, name, error) in errors {
            self.report_attribute(node, error.in_object(name))?;
        }
        for (node, kept) in values {
            self.tree.set_attrs(node, kept)?;
            cf::apply(&mut self.tree, node)?;
        }
        dimension_scales.apply(self);
        Ok(())
    }
}

/// Resolution of one link.
#[derive(Clone, Copy)]
enum State {
    Unresolved,
    /// The link is being followed: meeting it again is a cycle.
    Active,
    Node(NodeId),
    Dangling,
}

impl State {
    fn node(self) -> Option<NodeId> {
        if let Self::Node(id) = self { Some(id) } else { None }
    }
}

/// Follows links that are not in the tree yet; each is resolved once.
struct Resolver<'a, 'b> {
    walk: &'a Walk<'b>,
    pending: &'a [PendingLink],
    by_path: HashMap<String, usize>,
    resolved: Vec<State>,
}

impl Resolver<'_, '_> {
    fn link(&mut self, k: usize, depth: u32) -> Option<NodeId> {
        if !matches!(self.resolved[k], State::Unresolved) || depth > MAX_LINKS {
            return self.resolved[k].node();
        }
        self.resolved[k] = State::Active;
        let (walk, pending) = (self.walk, self.pending);
        let PendingLink { parent, target, .. } = &pending[k];
        let found = match target {
            Target::Hard(address) => walk.nodes.get(address).copied(),
            Target::Soft(path) => self.soft(*parent, path, depth),
            Target::External => None,
        };
        self.resolved[k] = found.map_or(State::Dangling, State::Node);
        found
    }

    /// The object at the path of a soft link in the group `parent`.
    fn soft(&mut self, parent: NodeId, path: &str, depth: u32) -> Option<NodeId> {
        let mut at = if path.starts_with('/') { ROOT } else { parent };
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            at = if let Some(child) = self.walk.tree.child(at, part) {
                child
            } else {
                let link = *self.by_path.get(&self.walk.path(at, part))?;
                self.link(link, depth + 1)?
            };
        }
        Some(at)
    }
}
