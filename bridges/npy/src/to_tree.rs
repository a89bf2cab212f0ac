//! A `.npy` file as a tree.

use spile_core::Dataset;
use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Native, Object, OpenOptions, Parsed, Region, RegionKind};
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::semantics::{Role, Semantics};
use spile_core::source::Source;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree};

use crate::stream::Stream;
use crate::utf32;
use crate::wire::{Element, Header};

/// Reads the header of a file.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let (header, tree) = read(&source, &options.limits)?;
    let (major, minor) = header.version;
    let summary = Attrs::from([
        ("version", format!("{major}.{minor}").into()),
        ("stored as", header.descr.as_str().into()),
        ("shape", header.shape.to_string().into()),
    ]);
    Ok(Parsed::new(source, tree).with_summary(summary).with_native(header))
}

/// Reads the header of a file and the tree with its array.
pub(crate) fn read(source: &Source, limits: &Limits) -> Result<(Header, Tree)> {
    let stream = Stream::file(source);
    let header = Header::read(&stream, limits)?;
    let mut tree = Tree::new(limits);
    header.add_to(&mut tree, ROOT, "data", &stream)?;
    Ok((header, tree))
}

impl Header {
    /// Adds the array to `parent`, or a group with one array per field of a structured type.
    pub(crate) fn add_to(
        &self,
        tree: &mut Tree,
        parent: NodeId,
        name: &str,
        stream: &Stream<'_>,
    ) -> Result<NodeId> {
        let (fields, size) = match &self.element {
            Element::Scalar(dtype) | Element::Time(dtype, _) => {
                let bytes = self.shape.bytes(dtype.size())?;
                let layout = stream.layout(self.data_offset, bytes, self.order);
                let desc = ArrayDesc::new(*dtype, self.shape.clone(), layout);
                let id = tree.add_array(parent, name, desc)?;
                if let Element::Time(_, units) = &self.element {
                    tree.push_attr(id, "units", units.as_str())?;
                }
                return Ok(id);
            }
            Element::Utf32(count, order) => {
                let dtype = DType::text(4 * count);
                let bytes = self.shape.bytes(dtype.size())?;
                let layout =
                    utf32::layout(stream, self.data_offset, bytes, *count, *order, self.order);
                return tree.add_array(
                    parent,
                    name,
                    ArrayDesc::new(dtype, self.shape.clone(), layout),
                );
            }
            Element::Structured(fields, size) => (fields, *size as u64),
        };
        let rows = match self.shape.lengths() {
            [] => 1,
            [rows] if stream.deflated.is_none() => *rows,
            _ => {
                let message =
                    "structured arrays of several dimensions or compressed ones are not supported";
                return Err(Error::unsupported("npy-006", message).at(stream.offset_of(0)));
            }
        };
        let group = tree.add_group(parent, name)?;
        for field in fields {
            let at = self.data_offset + field.offset as u64;
            let one = field.dtype.size() as u64;
            let layout = if self.shape.rank() == 0 {
                stream.layout(at, one, self.order)
            } else {
                let bytes = if rows == 0 { 0 } else { (rows - 1) * size + one };
                let extents = Extents::one(stream.offset + at, bytes);
                Layout::Rows { extents, stride: size, order: self.order }
            };
            let (group_path, last) = field.name.rsplit_once('/').unwrap_or(("", &field.name));
            let path = format!("{}/{group_path}", tree.node(group).path);
            let parent = if group_path.is_empty() { group } else { tree.group_at(&path)? };
            let desc = ArrayDesc::new(field.dtype, self.shape.clone(), layout);
            tree.add_array(parent, last, desc.with_semantics(Semantics::role(Role::Table)))?;
        }
        Ok(group)
    }
}

impl Native for Header {
    fn regions(&self, dataset: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let mut emit = |offset, end, kind, name: &str, value: String| {
            let region = Region { offset, len: end - offset, kind, name: name.into(), value };
            if end > offset { each(region) } else { Ok(()) }
        };
        let (start, end) = (self.dictionary_offset, self.end()?);
        emit(0, start, RegionKind::Header, "magic", format!("version {}", self.version.0))?;
        emit(start, self.data_offset, RegionKind::Header, "dictionary", self.descr.clone())?;
        emit(self.data_offset, end, RegionKind::Data, "array", self.shape.to_string())?;
        emit(end, dataset.source().len().max(end), RegionKind::Unknown, "rest", String::new())
    }

    fn objects(&self, dataset: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (_, node, array) in dataset.arrays() {
            let kind = match &self.element {
                Element::Structured(..) => array.dtype.numpy().unwrap_or_default(),
                _ => self.descr.clone(),
            };
            let (path, array) = (node.path.clone(), array.clone());
            each(Object { path, id: None, frame: None, kind, array })?;
        }
        Ok(())
    }
}
