//! The tree of a file: fields and groups where sections follow the convention, plain sections
//! everywhere else.

use spile_core::description;
use spile_core::dtype::DType;
use spile_core::error::{ErrorKind, Result};
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::limits::Limits;
use spile_core::read::{Array, Axes};
use spile_core::select::Selection;
use spile_core::shape::{Order, Shape};
use spile_core::source::Source;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree, Value};

use super::{Described, Field, Group, unfit};
use crate::read::Section;
use crate::wire::{FileHeader, Kind};

/// A section that looks like a part of the convention and is none: its number, and why.
pub(crate) type Doubt = (usize, String);

/// Makes the tree. Without `typed` all sections are shown as they are.
pub(crate) fn view(
    source: &Source,
    header: &FileHeader,
    sections: &[Section],
    typed: bool,
    limits: &Limits,
) -> Result<(Tree, Vec<Doubt>)> {
    let mut view = View {
        source,
        limits,
        tree: Tree::new(limits),
        doubts: Vec::new(),
        root_described: false,
        fields: Vec::new(),
        held: 0,
    };
    let mut number = 0;
    while let Some(section) = sections.get(number) {
        let taken = if typed { view.described(sections, number)? } else { 0 };
        if taken == 0 {
            view.plain(number, section)?;
        }
        number += taken.max(1);
    }
    if !view.root_described {
        view.header(header);
    }
    view.link();
    Ok((view.tree, view.doubts))
}

struct View<'a> {
    source: &'a Source,
    limits: &'a Limits,
    tree: Tree,
    doubts: Vec<Doubt>,
    root_described: bool,
    /// Fields whose points may be in fields that come later.
    fields: Vec<(NodeId, Field)>,
    /// Bytes of all attributes.
    held: u64,
}

impl View<'_> {
    /// The user string of the file, where no description of the root speaks for it.
    fn header(&mut self, header: &FileHeader) {
        if !header.user.is_empty() {
            let text = match String::from_utf8(header.user.clone()) {
                Ok(text) => Value::Text(text),
                Err(_) => Value::Bytes(header.user.clone()),
            };
            self.tree.node_mut(ROOT).attrs.push(("user".into(), text));
        }
    }

    fn plain(&mut self, number: usize, section: &Section) -> Result<()> {
        let name = String::from_utf8_lossy(&section.user).into_owned();
        let node = self.tree.add_array(ROOT, &name, section.array.clone())?;
        let node = self.tree.node_mut(node);
        node.id = Some(number.to_string());
        node.attrs.push(("section".into(), section.kind.letter().to_string().into()));
        Ok(())
    }

    /// Adds the group or field that section `number` describes; gives how many sections it has.
    fn described(&mut self, sections: &[Section], number: usize) -> Result<usize> {
        let section = &sections[number];
        if !Described::announced(section.kind, &section.user) {
            return Ok(0);
        }
        let added =
            self.text(section).and_then(|text| match Described::parse(&section.user, &text)? {
                Described::Group(group) => self.group(group),
                Described::Field(field) => self.field(*field, number + 1, sections),
            });
        match added {
            Err(e) if e.kind() == ErrorKind::Malformed => {
                self.doubts.push((number, e.message().into()));
                Ok(0)
            }
            added => added,
        }
    }

    fn text(&self, section: &Section) -> Result<Vec<u8>> {
        Described::allow(section.len, self.limits)?;
        let array = Array::open(self.source, &self.tree, &section.array, self.limits)?;
        array.read(&Selection::all(), Axes::Stored)
    }

    fn group(&mut self, group: Group) -> Result<usize> {
        let node = self.tree.node_at(&group.group)?;
        self.root_described |= node == ROOT;
        self.hold(&group.attrs)?;
        self.tree.node_mut(node).attrs.extend(group.attrs);
        Ok(1)
    }

    fn field(&mut self, field: Field, number: usize, sections: &[Section]) -> Result<usize> {
        let section =
            sections.get(number).ok_or_else(|| unfit("no section with the data follows"))?;
        let order = if field.fortran_order { Order::F } else { Order::C };
        let layout = match &section.array.layout {
            Layout::Plain { extents, .. } => Layout::Plain { extents: extents.clone(), order },
            other => other.clone(),
        };
        let mut desc = ArrayDesc::new(field.dtype, whole(&field, section)?, layout);
        if section.kind == Kind::Varray && desc.shape.bytes(field.dtype.size())? == section.len {
            // Lengths that add up by chance do not make an array of one number an element.
            desc.dtype = DType::opaque(1);
        }
        if !field.dims.is_empty() {
            desc.dims.clone_from(&field.dims);
        }
        desc.map = field.map.as_ref().map(Into::into);
        let (group, name) = field.name.rsplit_once('/').unwrap_or(("", &field.name));
        let parent = self.tree.node_at(group)?;
        let id = self.tree.add_array(parent, name, desc)?;
        self.hold(&field.attrs)?;
        let node = self.tree.node_mut(id);
        node.id = Some(number.to_string());
        node.attrs.clone_from(&field.attrs);
        self.fields.push((id, field));
        Ok(2)
    }

    /// Attributes stay in memory: all of them together are in the budget.
    fn hold(&mut self, attrs: &Attrs) -> Result<()> {
        let bytes: u64 = attrs.iter().map(|(name, value)| name.len() as u64 + size_of(value)).sum();
        self.held = self.held.saturating_add(bytes);
        self.limits.allow(self.held, "the attributes").map(drop)
    }

    /// Finds the fields that hold the points of others.
    fn link(&mut self) {
        for (id, field) in std::mem::take(&mut self.fields) {
            let find = |path: &str| {
                let part = |at: NodeId, part: &str| self.tree.child(at, part);
                let found = path.split('/').try_fold(ROOT, part)?;
                self.tree.node(found).array.is_some().then_some(found)
            };
            let rank = self.tree.node(id).array.as_ref().map_or(0, |array| array.shape.rank());
            let coords = description::coords(&field.coords, rank, find);
            if let Some(array) = &mut self.tree.node_mut(id).array {
                array.coords = coords;
            }
        }
    }
}

/// The shape of the field in `section`, if it is there.
fn whole(field: &Field, section: &Section) -> Result<Shape> {
    let shape = field.whole(section.kind, section.count, section.size)?;
    if field.fortran_order && section.encoded && shape.rank() > 1 {
        return Err(unfit("a tree has no place for compressed elements in Fortran's order"));
    }
    let starts = match &section.array.layout {
        Layout::Ragged { starts, .. } => &starts[..],
        Layout::Encoded { decoded, .. } if section.kind == Kind::Varray => decoded,
        _ => &[],
    };
    let item = field.bytes()?;
    let wrong = |w: &[u64]| !(w[1] - w[0]).is_multiple_of(item);
    match starts.windows(2).position(wrong) {
        Some(k) => Err(unfit(format!("element {k} is not made of items of {item} bytes"))),
        None => Ok(shape),
    }
}

fn size_of(value: &Value) -> u64 {
    let inside = match value {
        Value::Text(text) => text.len() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::List(list) => list.iter().map(size_of).sum(),
        _ => 0,
    };
    inside + std::mem::size_of::<Value>() as u64
}
