//! Bytes to tree.

use std::collections::HashMap;

use spile_core::description::Description;
use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::report::{Finding, Report};
use spile_core::source::Source;
use spile_core::tree::{NodeId, ROOT, Tree, Value};

use crate::attribute::{Attribute, Decoder, attributes};
use crate::dataset::{Dataset, Found};
use crate::group::{Target, is_group, links};
use crate::header::{Header, kind};
use crate::heap::GlobalHeaps;
use crate::scales;
use crate::wire::{Ground, Seen};

/// An open file.
pub(crate) struct File {
    source: Source,
    tree: Tree,
    findings: Vec<Finding>,
    superblock: u8,
    /// Who wrote it, where a netCDF file says so.
    writer: Option<String>,
    objects: Vec<(String, ArrayDesc)>,
    seen: Vec<Seen>,
}

/// What a netCDF library leaves in its files, and nobody else.
const NETCDF: [&str; 4] = ["_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict"];

/// What the walk has met.
pub(crate) struct Walk<'a> {
    pub(crate) ground: &'a Ground,
    pub(crate) tree: Tree,
    pub(crate) report: Report,
    heaps: GlobalHeaps,
    /// Objects by their addresses.
    pub(crate) nodes: HashMap<u64, NodeId>,
    /// Dimensions that are no variables: their names.
    pub(crate) bare_scales: HashMap<u64, String>,
    /// What is said about each node.
    pub(crate) said: Vec<(NodeId, Vec<Attribute>)>,
    /// Names for objects that are somewhere else in the file.
    aliases: Vec<(NodeId, String, Target)>,
    pub(crate) netcdf: bool,
}

impl File {
    pub(crate) fn open(source: Source, limits: &Limits) -> Result<Self> {
        let ground = Ground::new(&source, limits)?;
        let root = Header::read(&ground, ground.root)?;
        let mut walk = Walk {
            ground: &ground,
            tree: Tree::new(limits),
            report: Report::default(),
            heaps: GlobalHeaps::default(),
            nodes: HashMap::new(),
            bare_scales: HashMap::new(),
            said: Vec::new(),
            aliases: Vec::new(),
            netcdf: false,
        };
        // Counted from the beginning of the file, whatever stands before the superblock.
        let end = ground.end;
        if end > source.len() {
            let message = format!("the file ends after {} of {end} bytes", source.len());
            walk.report.error("hdf5-014", message).at(source.len());
        }
        walk.nodes.insert(ground.root, ROOT);
        walk.group(ROOT, &root)?;
        walk.aliases()?;
        let mut objects = Vec::new();
        for (_, node, desc) in walk.tree.arrays() {
            if !matches!(desc.layout, Layout::Same(_)) {
                objects.push((node.path.clone(), desc.clone()));
            }
        }
        let writer = walk.explain()?;
        let Walk { mut tree, mut report, .. } = walk;
        if let Some(dressed) = dressed(&ground, &source, &mut tree, &mut report)? {
            tree = dressed;
        }
        let superblock = ground.superblock;
        let seen = ground.into_seen();
        let findings = report.findings;
        Ok(Self { source, tree, findings, superblock, writer, objects, seen })
    }

    pub(crate) fn findings(&self) -> &[Finding] {
        &self.findings
    }
}

/// The tree that a description speaks of, where there is one that fits.
fn dressed(
    ground: &Ground,
    source: &Source,
    plain: &mut Tree,
    report: &mut Report,
) -> Result<Option<Tree>> {
    let attrs = &mut plain.node_mut(ROOT).attrs;
    let Some(at) = attrs.iter().position(|(name, _)| name == scales::DESCRIPTION) else {
        return Ok(None);
    };
    let Value::Text(text) = &attrs[at].1 else { return Ok(None) };
    let text = text.clone();
    let dress = || {
        Description::parse(text.as_bytes(), &ground.limits)?.dress(source, plain, &ground.limits)
    };
    match dress() {
        Ok(tree) => Ok(Some(tree)),
        Err(error) if fatal(&error) => Err(error),
        Err(error) => {
            let message = format!("{}; the file is read without it", error.message());
            report.warn("hdf5-024", message).in_object("the attribute \"spile\"");
            Ok(None)
        }
    }
}

/// Only a budget that is used up, or a system that fails, ends the walk: the rest of a damaged file
/// is still worth reading.
pub(crate) fn fatal(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Limit | ErrorKind::Io)
}

impl Walk<'_> {
    fn group(&mut self, node: NodeId, header: &Header) -> Result<()> {
        self.attributes(node, header)?;
        for link in links(self.ground, header)? {
            match link.target {
                Target::Hard(address) => {
                    if self.nodes.contains_key(&address) {
                        self.aliases.push((node, link.name, Target::Hard(address)));
                    } else if let Err(error) = self.object(node, &link.name, address) {
                        self.leave_out(node, &link.name, error)?;
                    }
                }
                other => self.aliases.push((node, link.name, other)),
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

    /// An object that cannot be read is told, and the others are read on.
    fn leave_out(&mut self, parent: NodeId, name: &str, error: Error) -> Result<()> {
        if fatal(&error) {
            return Err(error);
        }
        self.ground.charge(256)?;
        let path = self.path(parent, name);
        self.report.absorb(error.in_object(path))?;
        Ok(())
    }

    fn object(&mut self, parent: NodeId, name: &str, address: u64) -> Result<()> {
        let header = Header::read(self.ground, address)?;
        self.ground.charge(512)?;
        if header.find(kind::LAYOUT).is_some() || header.find(kind::SPACE).is_some() {
            return self.dataset(parent, name, &header);
        }
        if !is_group(&header) {
            // A type with a name says nothing by itself.
            return Ok(());
        }
        let node = self.tree.add_group(parent, name)?;
        self.nodes.insert(address, node);
        self.group(node, &header)
    }

    fn dataset(&mut self, parent: NodeId, name: &str, header: &Header) -> Result<()> {
        let (said, errors) = attributes(self.ground, header)?;
        if scales::is_bare(&said) {
            self.bare_scales.insert(header.address, name.to_string());
            self.netcdf = true;
            return Ok(());
        }
        let dataset = Dataset::read(self.ground, header)?;
        let nobody = |_| None;
        let decoder = Decoder { ground: self.ground, heaps: &self.heaps, path: &nobody };
        let found = dataset.describe(&decoder)?;
        let node = match found {
            Found::Array { desc, bare } => {
                if let Some(what) = bare {
                    let path = self.path(parent, name);
                    let message = format!("{what}: kept as bytes");
                    self.report.note("hdf5-023", message).in_object(path);
                }
                self.tree.add_array(parent, name, desc)?
            }
            Found::Table(columns) => {
                let node = self.tree.add_group(parent, name)?;
                for (name, desc) in columns {
                    self.tree.add_array(node, &name, desc)?;
                }
                node
            }
        };
        self.nodes.insert(header.address, node);
        self.keep(node, said, errors)
    }

    fn attributes(&mut self, node: NodeId, header: &Header) -> Result<()> {
        match attributes(self.ground, header) {
            Ok((said, errors)) => self.keep(node, said, errors),
            Err(error) if fatal(&error) => Err(error),
            Err(error) => self.keep(node, Vec::new(), vec![error]),
        }
    }

    fn keep(&mut self, node: NodeId, said: Vec<Attribute>, errors: Vec<Error>) -> Result<()> {
        let path = self.tree.node(node).path.clone();
        for error in errors {
            self.tell(&path, error)?;
        }
        self.netcdf |= said.iter().any(|a| NETCDF.contains(&a.name.as_str()));
        self.said.push((node, said));
        Ok(())
    }

    /// An attribute that cannot be read.
    pub(crate) fn tell(&mut self, path: &str, error: Error) -> Result<()> {
        if fatal(&error) {
            return Err(error);
        }
        self.ground.charge(256)?;
        let place = if path.is_empty() { "the file" } else { path };
        self.report.absorb(error.in_object(place))?;
        Ok(())
    }

    /// Second names for what is there already.
    fn aliases(&mut self) -> Result<()> {
        for (parent, name, target) in std::mem::take(&mut self.aliases) {
            let path = self.path(parent, &name);
            let found = match &target {
                Target::Hard(address) => self.nodes.get(address).copied(),
                Target::Soft(text) => self.follow(parent, text),
                Target::Outside => None,
            };
            let array = found.and_then(|id| Some((id, self.tree.node(id).array.clone()?)));
            if let Some((id, desc)) = array {
                let alias = ArrayDesc { layout: Layout::Same(id), ..desc };
                let node = self.tree.add_array(parent, &name, alias)?;
                let said = self.said.iter().find(|(of, _)| *of == id);
                let said = said.map(|(_, said)| said.clone()).unwrap_or_default();
                self.ground.charge(said.iter().map(|a| a.data.len() as u64 + 128).sum())?;
                self.said.push((node, said));
                continue;
            }
            self.ground.charge(256)?;
            let message = match (&target, found) {
                (Target::Outside, _) => "leads to another file; not followed".to_string(),
                (Target::Soft(text), None) => format!("leads to \"{text}\", which is not there"),
                _ => "a second name of a group; it is listed once".to_string(),
            };
            self.report.note("hdf5-020", message).in_object(path);
        }
        Ok(())
    }

    /// The object at the path of a soft link.
    fn follow(&self, parent: NodeId, path: &str) -> Option<NodeId> {
        let mut at = if path.starts_with('/') { ROOT } else { parent };
        for part in path.split('/').filter(|p| !p.is_empty() && *p != ".") {
            at = self.tree.child(at, part)?;
        }
        Some(at)
    }

    /// Attributes, and the dimensions that they speak of.
    fn explain(&mut self) -> Result<Option<String>> {
        let paths = |address: u64| {
            let node = self.nodes.get(&address).map(|id| self.tree.node(*id));
            node.map(|node| format!("/{}", node.path))
        };
        let decoder = Decoder { ground: self.ground, heaps: &self.heaps, path: &paths };
        let mut found = scales::Scales::default();
        let mut writer = None;
        let mut errors = Vec::new();
        let mut values: Vec<(NodeId, Vec<(String, Value)>)> = Vec::new();
        for (node, said) in &self.said {
            let mut kept = Vec::new();
            for attribute in said {
                if found.take(self.ground, &decoder, *node, attribute) {
                    continue;
                }
                match decoder.attribute(attribute) {
                    Ok(value) if attribute.name == "_NCProperties" => {
                        writer = Some(value.to_string());
                    }
                    Ok(value) => {
                        kept.push((attribute.name.clone(), scales::plain(value, self.netcdf)));
                    }
                    Err(error) => {
                        let name = format!("attribute \"{}\"", attribute.name);
                        let path = self.tree.node(*node).path.clone();
                        errors.push((path, error.in_object(name)));
                    }
                }
            }
            values.push((*node, kept));
        }
        for (path, error) in errors {
            self.tell(&path, error)?;
        }
        for (node, mut kept) in values {
            if let Some(array) = &mut self.tree.node_mut(node).array {
                scales::take_map(array, &mut kept);
            }
            self.tree.node_mut(node).attrs = kept;
        }
        found.apply(self);
        Ok(writer)
    }
}

impl Reader for File {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        &self.source
    }

    fn summary(&self) -> Vec<(String, Value)> {
        let mut said = vec![("superblock".to_string(), Value::UInt(u64::from(self.superblock)))];
        said.push(("datasets".into(), Value::UInt(self.objects.len() as u64)));
        said.extend(
            self.writer.iter().map(|text| ("written by".to_string(), text.as_str().into())),
        );
        said
    }

    fn findings(&self) -> &[Finding] {
        &self.findings
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut all: Vec<(u64, u64, Role, &str)> = Vec::new();
        all.extend(self.seen.iter().map(|s| (s.offset, s.len, Role::Header, s.name)));
        for (path, desc) in &self.objects {
            for part in parts(&desc.layout) {
                all.push((part.0, part.1, Role::Data, path));
            }
        }
        all.sort_by_key(|(offset, len, ..)| (*offset, u64::MAX - len));
        let mut end = 0;
        for (offset, len, role, name) in all {
            // Columns of a table share their rows, and some structures are looked at twice.
            let last = offset.saturating_add(len).min(self.source.len());
            if offset < end || last <= offset {
                continue;
            }
            if offset > end {
                let (name, value) = (String::new(), String::new());
                each(Region { offset: end, len: offset - end, role: Role::Unknown, name, value })?;
            }
            let value = if role == Role::Data { "data" } else { "" }.to_string();
            each(Region { offset, len: last - offset, role, name: name.into(), value })?;
            end = last;
        }
        let len = self.source.len().saturating_sub(end);
        if len > 0 {
            let (name, value) = (String::new(), String::new());
            each(Region { offset: end, len, role: Role::Unknown, name, value })?;
        }
        Ok(())
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (path, array) in &self.objects {
            each(Object {
                path: path.clone(),
                id: None,
                frame: None,
                kind: "dataset".into(),
                array: array.clone(),
            })?;
        }
        Ok(())
    }
}

/// The ranges of a layout.
fn parts(layout: &Layout) -> Vec<(u64, u64)> {
    match layout {
        Layout::Plain { extents, .. } | Layout::Rows { extents, .. } => {
            extents.parts().iter().map(|part| (part.offset, part.len)).collect()
        }
        _ => Vec::new(),
    }
}
