//! A `.npy` file as a tree.

use spile_core::dtype::DType;
use spile_core::error::{Error, Result};
use spile_core::format::{Object, Reader, Region, Role};
use spile_core::layout::{ArrayDesc, Extents, Layout};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::tree::{NodeId, ROOT, Tree, Value};

use crate::location::Location;
use crate::utf32;
use crate::wire::{Element, Header};

pub(crate) struct File {
    source: Source,
    pub(crate) header: Header,
    tree: Tree,
}

impl File {
    pub(crate) fn open(source: Source, limits: &Limits) -> Result<Self> {
        let location = Location::file(&source);
        let header = Header::read(&location, limits)?;
        let mut tree = Tree::new(limits);
        header.add_to(&mut tree, ROOT, "data", &location)?;
        Ok(Self { source, header, tree })
    }
}

impl Header {
    /// Adds the array to `parent`, or a group with one array per field of a structured type.
    pub(crate) fn add_to(
        &self,
        tree: &mut Tree,
        parent: NodeId,
        name: &str,
        location: &Location<'_>,
    ) -> Result<NodeId> {
        let (fields, size) = match &self.element {
            Element::Scalar(dtype) | Element::Time(dtype, _) => {
                let bytes = self.shape.bytes(dtype.size())?;
                let layout = location.layout(self.data_offset, bytes, self.order);
                let desc = ArrayDesc::new(*dtype, self.shape.clone(), layout);
                let id = tree.add_array(parent, name, desc)?;
                if let Element::Time(_, units) = &self.element {
                    tree.node_mut(id).attrs.push(("units".into(), Value::Text(units.clone())));
                }
                return Ok(id);
            }
            Element::Utf32(count, order) => {
                let dtype = DType::text(4 * count);
                let bytes = self.shape.bytes(dtype.size())?;
                let layout =
                    utf32::layout(location, self.data_offset, bytes, *count, *order, self.order);
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
            [rows] if location.deflated.is_none() => *rows,
            _ => {
                let message =
                    "structured arrays of several dimensions or compressed ones are not supported";
                return Err(Error::unsupported("npy-006", message).at(location.offset_of(0)));
            }
        };
        let group = tree.add_group(parent, name)?;
        for field in fields {
            let at = self.data_offset + field.offset as u64;
            let one = field.dtype.size() as u64;
            let layout = if self.shape.rank() == 0 {
                location.layout(at, one, self.order)
            } else {
                let bytes = if rows == 0 { 0 } else { (rows - 1) * size + one };
                let extents = Extents::one(location.offset + at, bytes);
                Layout::Rows { extents, stride: size, order: self.order }
            };
            let (group_path, last) = field.name.rsplit_once('/').unwrap_or(("", &field.name));
            let path = format!("{}/{group_path}", tree.node(group).path);
            let parent = if group_path.is_empty() { group } else { tree.group_at(&path)? };
            tree.add_array(parent, last, ArrayDesc::new(field.dtype, self.shape.clone(), layout))?;
        }
        Ok(group)
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
        let (major, minor) = self.header.version;
        vec![
            ("version".into(), format!("{major}.{minor}").into()),
            ("stored as".into(), self.header.descr.clone().into()),
            ("shape".into(), self.header.shape.to_string().into()),
        ]
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        let header = &self.header;
        let bytes = header.shape.bytes(header.element.size())?;
        let mut emit = |offset, len, role, name: &str, value: String| {
            each(Region { offset, len, role, name: name.into(), value })
        };
        let start = header.dictionary_offset;
        emit(0, start, Role::Header, "magic", format!("version {}", header.version.0))?;
        emit(start, header.data_offset - start, Role::Header, "dictionary", header.descr.clone())?;
        emit(header.data_offset, bytes, Role::Data, "array", header.shape.to_string())?;
        let end = header.data_offset + bytes;
        if self.source.len() > end {
            emit(end, self.source.len() - end, Role::Unknown, "rest", String::new())?;
        }
        Ok(())
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (_, node, array) in self.tree.arrays() {
            each(Object {
                path: node.path.clone(),
                id: None,
                frame: None,
                kind: match &self.header.element {
                    Element::Scalar(_) | Element::Time(..) | Element::Utf32(..) => {
                        self.header.descr.clone()
                    }
                    Element::Structured(..) => array.dtype.numpy().unwrap_or_default(),
                },
                array: array.clone(),
            })?;
        }
        Ok(())
    }
}
