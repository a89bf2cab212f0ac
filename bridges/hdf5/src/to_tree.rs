//! Groups, datasets and attributes of a file as a tree.
//!
//! An object that cannot be read is a finding with its path; all others are in the tree.

mod chunked;
mod dataset;
mod decoder;
mod fields;
mod files;
mod links;
pub(crate) mod mat;
mod references;
pub(crate) mod scales;
mod unlimited;
mod virtual_dataset;

use std::collections::{HashMap, HashSet};

use spile_core::Dataset;
use spile_core::error::{Error, Result};
use spile_core::format::{Native, Object, OpenOptions, Parsed, Region, RegionKind};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::metadata::StoredMetadata;
use spile_core::report::{Finding, Report};
use spile_core::semantics::Role;
use spile_core::source::Source;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};
use spile_interchange::cf;

use crate::wire::attribute::{Attribute, attributes};
use crate::wire::group::{Link, Target, is_group, links};
use crate::wire::header::{Header, kind};
use crate::wire::heap::GlobalHeaps;
use crate::wire::{self, Context, Readable, is_fatal};
use dataset::{Content, StoredDataset};
use decoder::Decoder;
use files::OtherFiles;
use links::PendingLink;
use virtual_dataset::{PendingVirtual, SourceFiles};

/// Attributes that only netCDF libraries write.
const NETCDF: [&str; 4] = ["_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict"];

/// The structures of an open file.
struct File {
    /// Datasets of the file; links to the same dataset count once.
    datasets: Vec<(String, ArrayDesc)>,
    metadata: Vec<wire::Region>,
}

/// Reads all metadata. Objects that cannot be read are warnings of severity error. Fails if there is no
/// HDF5 superblock or root group, or if the metadata exceed the limits.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    open_with(source, options, &SourceFiles::default())
}

/// [`open`] of a file that may be the source of virtual datasets in one of the files that are being opened.
fn open_with(source: Source, options: &OpenOptions, sources: &SourceFiles) -> Result<Parsed> {
    let ctx = Context::new(&source, &options.limits)?;
    let root = Header::read(&ctx, ctx.root)?;
    let mut walk = Walk {
        ctx: &ctx,
        tree: Tree::new(&options.limits),
        report: Report::default(),
        heaps: GlobalHeaps::default(),
        nodes: HashMap::from([(ctx.root, ROOT)]),
        dimensions: HashMap::new(),
        dimension_ids: HashMap::new(),
        extents: unlimited::Extents::default(),
        texts: HashSet::new(),
        attributes: Vec::new(),
        links: Vec::new(),
        virtual_datasets: Vec::new(),
        files: OtherFiles::default(),
        sources,
        references: Vec::new(),
        skipped: HashMap::new(),
        netcdf: false,
        writer: None,
        metadata: None,
    };
    // The end-of-file address counts from byte 0, also after a user block.
    let len = source.len();
    if ctx.end > len {
        let message = format!("unexpected end of file: expected {} bytes, found {len}", ctx.end);
        walk.report.error("hdf5-014", message).at(len);
    }
    walk.group(ROOT, &root)?;
    walk.resolve_virtual(options)?;
    walk.resolve_references()?;
    walk.resolve_links()?;
    let arrays = walk.tree.arrays().filter(|(_, _, desc)| desc.layout.same().is_none());
    let datasets: Vec<_> =
        arrays.map(|(_, node, desc)| (node.path.clone(), desc.clone())).collect();
    walk.decode_attributes()?;
    let Walk { mut tree, report, writer, metadata, files, .. } = walk;
    cf::set_roles(&mut tree)?;
    let mut summary = Attrs::from([
        ("superblock", Value::UInt(u64::from(ctx.superblock))),
        ("datasets", Value::UInt(datasets.len() as u64)),
    ]);
    summary.extend(writer.map(|text| ("written by", Value::from(text))));
    let source = files.join(source)?;
    let parsed = Parsed::new(source, tree).with_summary(summary).with_warnings(report.findings);
    let file = File { datasets, metadata: ctx.into_regions() };
    Ok(parsed.with_metadata(metadata).with_native(file))
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
    /// The same names, by identifier of the dimension.
    pub(crate) dimension_ids: HashMap<u64, String>,
    /// Unlimited dimensions.
    pub(crate) extents: unlimited::Extents,
    /// Arrays of variable-length texts.
    pub(crate) texts: HashSet<NodeId>,
    /// Stored attributes of each node.
    attributes: Vec<(NodeId, Vec<Attribute>)>,
    links: Vec<PendingLink>,
    virtual_datasets: Vec<PendingVirtual>,
    files: OtherFiles,
    /// Other files with sources of virtual datasets.
    sources: &'a SourceFiles,
    /// Arrays of references.
    references: Vec<NodeId>,
    /// Paths of objects that cannot be read, by object header address.
    skipped: HashMap<u64, String>,
    pub(crate) netcdf: bool,
    writer: Option<String>,
    metadata: Option<StoredMetadata>,
}

impl Walk<'_> {
    fn group(&mut self, node: NodeId, header: &Header) -> Result<()> {
        self.keep_attributes(node, attributes(self.ctx, header)?)?;
        let Readable { found: links, errors } = links(self.ctx, header)?;
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
        let own = attributes(self.ctx, header)?;
        let no_paths = |_| None;
        let decoder = Decoder { ctx: self.ctx, heaps: &self.heaps, path: &no_paths };
        if scales::is_without_variable(&own.found) {
            if let Some(id) = own.found.iter().find(|a| a.name == "_Netcdf4Dimid")
                && let Some(id) = scales::dimension_id(&decoder, id)?
            {
                self.dimension_ids.insert(id, name.to_string());
            }
            self.dimensions.insert(header.address, name.to_string());
            self.netcdf = true;
            return Ok(());
        }
        let name = name.strip_prefix(scales::NOT_A_COORDINATE).unwrap_or(name);
        let stored = StoredDataset::read(self.ctx, header, &self.files)?;
        if let Some((desc, mappings)) = stored.virtual_dataset(&decoder)? {
            let (name, address) = (name.to_string(), header.address);
            let pending = PendingVirtual { parent, name, address, attributes: own, desc, mappings };
            self.virtual_datasets.push(pending);
            return Ok(());
        }
        let content = stored.content(&decoder)?;
        let (unlimited, is_text) = (stored.unlimited(), stored.is_variable_length());
        let (node, sizes) = self.add_content(parent, name, content)?;
        self.nodes.insert(header.address, node);
        if sizes.is_none() {
            self.extents.add(node, unlimited);
        }
        if is_text {
            self.texts.insert(node);
        }
        let mut own = own;
        if let Some(sizes) = sizes {
            // The dimensions of the dataset are those of the sizes.
            let is_dimension = |a: &Attribute| a.name.starts_with("DIMENSION_L");
            let (dimensions, others) = own.found.into_iter().partition(is_dimension);
            own.found = others;
            self.attributes.push((sizes, dimensions));
        }
        self.keep_attributes(node, own)
    }

    /// Adds the content of a dataset, or of a member of a compound datatype. Returns its node, and that of the
    /// sizes of variable-length numbers.
    fn add_content(
        &mut self,
        parent: NodeId,
        name: &str,
        content: Content,
    ) -> Result<(NodeId, Option<NodeId>)> {
        let mut sizes_node = None;
        let node = match content {
            Content::Array { desc, opaque } => {
                self.ctx.charge(128 * desc.shape.rank() as u64)?;
                let node = self.tree.add_array(parent, name, desc)?;
                self.note_opaque(node, opaque)?;
                node
            }
            Content::Items { values, sizes } => {
                self.ctx.charge(128 * sizes.shape.rank() as u64 + 512)?;
                let node = self.tree.add_array(parent, name, values)?;
                let sizes = self.tree.add_array(parent, &format!("{name}.sizes"), sizes)?;
                let meaning = format!("number of items of each element of {name}");
                self.tree.push_attr(sizes, "long_name", meaning)?;
                sizes_node = Some(sizes);
                node
            }
            Content::References(desc) => {
                self.ctx.charge(128 * desc.shape.rank() as u64)?;
                let node = self.tree.add_array(parent, name, desc)?;
                self.references.push(node);
                node
            }
            Content::Members(members) => {
                let node = self.tree.add_group(parent, name)?;
                for (name, content) in members {
                    match content.and_then(|content| self.add_content(node, &name, content)) {
                        Ok((id, _)) => {
                            if let Some(array) = &mut self.tree.node_mut(id).array {
                                array.semantics_mut().role = Role::Table;
                            }
                        }
                        Err(error) => {
                            let path = self.path(node, &name);
                            self.report_error(format!("\"{path}\""), error)?;
                        }
                    }
                }
                node
            }
        };
        Ok((node, sizes_node))
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

    fn keep_attributes(&mut self, node: NodeId, read: Readable<Attribute>) -> Result<()> {
        let Readable { found, errors } = read;
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
        dimension_scales.apply(self)
    }
}

impl Native for File {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let len = dataset.source().len();
        let metadata = self.metadata.iter().map(|s| (s.offset, s.len, RegionKind::Header, s.name));
        let mut all: Vec<(u64, u64, RegionKind, &str)> = metadata.collect();
        for (path, desc) in &self.datasets {
            if let Layout::Plain { extents, .. } | Layout::Rows { extents, .. } = &desc.layout {
                let parts = extents.parts().iter();
                all.extend(parts.map(|p| (p.offset, p.len, RegionKind::Data, path.as_str())));
            }
        }
        all.sort_by_key(|(offset, len, ..)| (*offset, u64::MAX - len));
        // Ends the last gap.
        all.push((len, 0, RegionKind::Unknown, ""));
        let mut end = 0;
        for (offset, own, kind, name) in all {
            // Columns of a table overlap, and some structures are read twice.
            let last = offset.saturating_add(own).min(len);
            if offset < end || (last <= offset && offset != len) {
                continue;
            }
            let gap = (end, offset, RegionKind::Unknown, "");
            for (offset, end, kind, name) in [gap, (offset, last, kind, name)] {
                let value = if kind == RegionKind::Data { "data" } else { "" }.into();
                if end > offset {
                    each(Region { offset, len: end - offset, kind, name: name.into(), value })?;
                }
            }
            end = last;
        }
        Ok(())
    }

    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (path, array) in self.datasets.iter().cloned() {
            each(Object { path, id: None, frame: None, kind: "dataset".into(), array })?;
        }
        Ok(())
    }
}
