//! Writes any dataset as an IOTK file.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::Path;

use spile_core::format::{Capabilities, FormatWriter, Loss, LossKind, WriteOptions};
use spile_core::{
    ArrayDesc, Attrs, ByteOrder, DType, Dataset, Error, Extents, Kind, Layout, Node, NodeId, Order,
    ROOT, Report, Result, Shape, Sink, Tree, Value,
};
use spile_interchange::losses::compare;

use crate::Iotk;
use crate::cast::fortran;
use crate::save;
use crate::scalar::Style;
use crate::semantics::{self, ASSEMBLED};
use crate::to_tree::{
    COMMENTS, DEFAULT_VERSION, FILE_VERSION, HEAD, STORAGE, attributes, markup_value,
};
use crate::wire::{Control, Tag, Type};
use crate::write::tag_text::{format_value, write_values};
use crate::write::{MAX_RANK, Target, Writer, fortran_type, markup_of, written_markup};

/// Extensions of text files; all other files are binary.
const TEXT_EXTENSIONS: [&str; 4] = ["xml", "upf", "txt", "html"];

impl FormatWriter for Iotk {
    fn capabilities(&self) -> Option<Capabilities> {
        Some(Capabilities {
            rank: MAX_RANK,
            order: Order::F,
            frames: false,
            dtype: is_own_type,
            byte: DType::I8,
            name: is_tag_name,
            adds: &[],
        })
    }

    fn keeps_scaling(&self) -> bool {
        true
    }

    fn losses(&self, content: &Dataset, path: &Path) -> Result<Vec<Loss>> {
        losses(content, path)
    }

    /// Writes `content`: groups are elements, arrays are elements with data. If any array has not
    /// exactly one dimension, all are written with `qe_syntax`, which stores shapes. Fails with
    /// iotk-017 for frames and for elements of variable length.
    fn write(&self, content: &Dataset, sink: &mut Sink, _: &WriteOptions) -> Result<Vec<Loss>> {
        let plan = Plan::new(content.tree())?;
        let target = target_of(sink.path());
        let mut writer = Writer::new(BufWriter::new(&mut *sink), target, Style::Exact)?;
        plan.write(&mut writer, |writer, id| writer.array(&content.array_at(id)?, 1))?;
        writer.finish()?;
        Ok(Vec::new())
    }
}

/// What writing does not keep: the tree is compared with the one that reading gives.
fn losses(content: &Dataset, path: &Path) -> Result<Vec<Loss>> {
    let plan = Plan::new(content.tree())?;
    // Fails for what cannot be written.
    let mut tags = Writer::new(std::io::sink(), target_of(path), Style::Exact)?;
    plan.write(&mut tags, |_, _| Ok(()))?;
    let (read, nodes) = plan.predict()?;
    Ok(compare("IOTK", (plan.tree, &read), &nodes, |node| {
        let kind = if node.array.is_some() { LossKind::Array } else { LossKind::Group };
        (kind, "IOTK has no elements with both data and child elements".into())
    }))
}

fn target_of(path: &Path) -> Target {
    if is_text_name(path) { Target::Text } else { Target::default() }
}

/// Whether files with such a name are written as text.
pub fn is_text_name(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    TEXT_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension))
}

/// What is written next.
enum Step<'a> {
    Node(NodeId),
    Markup(Control, &'a [u8]),
    End,
}

/// Which nodes of a tree are written, and how.
struct Plan<'a> {
    tree: &'a Tree,
    /// By number of the node. Not written are arrays that reading assembles again, and nodes below
    /// arrays: an element has either data or child elements.
    written: Vec<bool>,
    /// With `qe_syntax`, which stores shapes.
    qe_syntax: bool,
}

impl<'a> Plan<'a> {
    fn new(tree: &'a Tree) -> Result<Self> {
        let assembled = |node: &Node| node.array.is_some() && node.attrs.contains(ASSEMBLED);
        let mut wanted = vec![true; tree.len() + 1];
        for (id, node) in tree.iter() {
            wanted[id.index()] = !assembled(node);
        }
        let plan = Self::of(tree, &wanted);
        if !wanted.contains(&false) {
            return Ok(plan);
        }
        let (read, nodes) = plan.predict()?;
        for (id, _, own) in tree.arrays() {
            let again = nodes[id.index()].and_then(|id| read.node(id).array.as_ref());
            let same = again.is_some_and(|again| {
                little(own.dtype) == little(again.dtype) && own.shape == again.shape
            });
            wanted[id.index()] |= !same;
        }
        Ok(Self::of(tree, &wanted))
    }

    /// Writes the wanted nodes that have no array above them.
    fn of(tree: &'a Tree, wanted: &[bool]) -> Self {
        let mut plan = Self { tree, written: vec![true; tree.len() + 1], qe_syntax: false };
        for (id, node) in tree.iter() {
            let below_array = tree.array(node.parent).is_some();
            let written = plan.written[node.parent.index()] && !below_array && wanted[id.index()];
            plan.written[id.index()] = written;
            let shaped = node.array.as_ref().is_some_and(|array| array.shape.rank() != 1);
            plan.qe_syntax |= written && shaped;
        }
        plan
    }

    /// The nodes that are written.
    fn nodes(&self) -> impl Iterator<Item = (NodeId, &'a Node)> {
        self.tree.iter().filter(|(id, _)| self.written[id.index()])
    }

    /// Writes everything; `data` writes the data of an array.
    fn write<W: Write>(
        &self,
        writer: &mut Writer<W>,
        mut data: impl FnMut(&mut Writer<W>, NodeId) -> Result<()>,
    ) -> Result<()> {
        let tree = self.tree;
        for (_, node, desc) in tree.arrays().filter(|_| writer.is_text()) {
            // Flattened elements are byte ranges, which a text does not have.
            if tree.resolve(desc)?.ragged().is_some() {
                let message = "elements of variable length cannot be restored from text";
                return Err(Error::argument(message)
                    .in_object(format!("array \"{}\"", node.path))
                    .hint("a binary file keeps them"));
            }
        }
        let mut children: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
        for (id, node) in self.nodes() {
            children.entry(node.parent).or_default().push(id);
        }
        let mut root_markup = markup_of(tree.attrs());
        self.write_head(writer, &mut root_markup)?;
        let children_of = |parent: NodeId| children.get(&parent).map_or(&[][..], |list| list);
        // Depth first without recursion.
        let mut stack: Vec<Step> = Vec::new();
        push_content(&mut stack, children_of(ROOT), root_markup);
        while let Some(step) = stack.pop() {
            let id = match step {
                Step::Node(id) => id,
                Step::Markup(control, text) => {
                    writer.markup(control, text)?;
                    continue;
                }
                Step::End => {
                    writer.end()?;
                    continue;
                }
            };
            let node = tree.node(id);
            let Some(desc) = &node.array else {
                let (tag, markup) = (self.group_tag(node), markup_of(&node.attrs));
                if children.contains_key(&id) || !markup.is_empty() {
                    writer.begin(&tag)?;
                    stack.push(Step::End);
                    push_content(&mut stack, children_of(id), markup);
                } else {
                    writer.empty(&tag)?;
                }
                continue;
            };
            let in_array = |e: Error| e.in_object(format!("array \"{}\"", node.path));
            let resolved = tree.resolve(desc)?;
            let unsupported = match resolved.layout.frames() {
                Some(_) => Some("IOTK has no frames"),
                _ if resolved.ragged().is_some() => Some("IOTK has no elements of variable length"),
                _ => None,
            };
            if let Some(message) = unsupported {
                return Err(in_array(Error::unsupported("iotk-017", message)));
            }
            let ArrayDesc { dtype, map, shape, .. } = resolved;
            let (name, qe_syntax) = (self.tag_name(node), self.qe_syntax);
            let written = writer
                .begin_array(&name, &node.attrs, (*dtype, *map, shape), qe_syntax)
                .and_then(|()| data(writer, id))
                .and_then(|()| writer.end_array(&node.attrs, qe_syntax));
            written.map_err(in_array)?;
        }
        Ok(())
    }

    /// Writes what precedes the first element: declaration, head, and the attributes of the root. An
    /// `<?xml ...?>` declaration is taken from `markup`.
    fn write_head<W: Write>(
        &self,
        writer: &mut Writer<W>,
        markup: &mut Vec<(usize, Control, &[u8])>,
    ) -> Result<()> {
        let is_xml = |(_, control, text): &(usize, Control, &[u8])| {
            *control == Control::Instruction && Tag::new(*text).name() == b"xml"
        };
        match markup.first().copied().filter(is_xml) {
            Some((_, control, text)) => {
                markup.remove(0);
                writer.markup(control, text)?;
            }
            None => writer.declaration()?,
        }
        let version = self.tree.attrs().get_str(FILE_VERSION);
        writer.head_tags(version.unwrap_or(DEFAULT_VERSION), self.qe_syntax)?;
        self.root_tags().iter().try_for_each(|tag| writer.instruction(tag))
    }

    /// The attributes of the root as `<?iotk ...?>` instructions, one each, as the library writes them.
    fn root_tags(&self) -> Vec<Tag> {
        let mut attrs = self.tree.attrs().clone();
        if attrs.get_str(FILE_VERSION).is_some() {
            attrs.remove(FILE_VERSION);
        }
        let mut text = b"iotk".to_vec();
        write_values(&attrs, &HEAD, &mut text);
        let one = |attribute: &[u8]| Tag::new([b"iotk ", attribute].concat());
        Tag::new(text).attributes().map(|attribute| one(attribute.text)).collect()
    }

    fn group_tag(&self, node: &Node) -> Tag {
        // A group with a known `type` would be read as data.
        let typed = node.attrs.iter().any(|(name, value)| {
            name == "type" && Type::from_name(format_value(value).trim_ascii()).is_some()
        });
        let mut text = self.tag_name(node).into_bytes();
        write_values(&node.attrs, if typed { &["type"] } else { &[] }, &mut text);
        Tag::new(text)
    }

    /// The name of a node as a tag name. `x~2`, the second `x` of a group, is `x` again.
    fn tag_name(&self, node: &Node) -> String {
        let plain = match node.name.rsplit_once('~') {
            Some((base, number))
                if number.parse::<u64>().is_ok()
                    && self.tree.child(node.parent, base).is_some() =>
            {
                base
            }
            _ => &node.name,
        };
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_:.-".contains(c) || !c.is_ascii();
        let clean = |c: char| if allowed(c) { c } else { '_' };
        let name: String = plain.chars().map(clean).collect();
        let first = name.chars().next().unwrap_or('_');
        if self.qe_syntax && Type::from_name(name.as_bytes()).is_some() {
            // A tag named like a type has data.
            format!("{name}_")
        } else if first.is_ascii_alphabetic() || !first.is_ascii() || matches!(first, '_' | ':') {
            name
        } else {
            format!("_{name}")
        }
    }

    /// The tree that reading the written file gives, and the node of each node in it.
    fn predict(&self) -> Result<(Tree, Vec<Option<NodeId>>)> {
        let mut read = Tree::new(self.tree.limits());
        let mut nodes = vec![None; self.tree.len() + 1];
        let mut children = vec![0; self.tree.len() + 1];
        nodes[0] = Some(ROOT);
        for (id, node) in self.nodes() {
            let Some(parent) = nodes[node.parent.index()] else { continue };
            let name = self.tag_name(node);
            let new = match &node.array {
                None => read.add_group(parent, &name)?,
                Some(desc) => {
                    let desc = self.predict_array(self.tree.resolve(desc)?)?;
                    read.add_array(parent, &name, desc)?
                }
            };
            nodes[id.index()] = Some(new);
            children[node.parent.index()] += 1;
        }
        let mut root: Attrs =
            self.root_tags().iter().flat_map(|tag| attributes(tag, &HEAD)).collect();
        let version = self.tree.attrs().get_str(FILE_VERSION);
        root.extend(
            version.filter(|v| *v != DEFAULT_VERSION).map(|v| (FILE_VERSION, Value::from(v))),
        );
        root.extend(predict_markup(self.tree.attrs(), children[0], true));
        read.set_attrs(ROOT, root)?;
        for (id, node) in self.nodes() {
            let Some(new) = nodes[id.index()] else { continue };
            let mut attrs = if node.array.is_some() {
                let mut text = self.tag_name(node).into_bytes();
                write_values(&node.attrs, &STORAGE, &mut text);
                attributes(&Tag::new(text), &STORAGE)
            } else {
                attributes(&self.group_tag(node), &[])
            };
            attrs.extend(predict_markup(&node.attrs, children[id.index()], false));
            read.set_attrs(new, attrs)?;
        }
        let spins = save::added_spin_bands(self.tree);
        semantics::add(&mut read, spins, None, &mut Report::default())?;
        for (id, node, _) in self.tree.arrays().filter(|(id, ..)| !self.written[id.index()]) {
            let parent = nodes[node.parent.index()];
            let again = parent.and_then(|parent| read.child(parent, &node.name));
            nodes[id.index()] = again.filter(|id| read.node(*id).attrs.contains(ASSEMBLED));
        }
        Ok((read, nodes))
    }

    /// An array as it is read back.
    fn predict_array(&self, desc: &ArrayDesc) -> Result<ArrayDesc> {
        let (written, each) = fortran(desc.dtype, desc.map);
        let restored = desc.dtype.kind() == Kind::Opaque && each > 0;
        let dtype = if restored { desc.dtype } else { written };
        let mut lengths = desc.shape.lengths().to_vec();
        if each == 0 {
            lengths.insert(0, 0);
        }
        if !self.qe_syntax {
            lengths = vec![lengths.iter().product()];
        }
        let shape = Shape::new(lengths);
        let extents = Extents::one(0, shape.bytes(dtype.size())?);
        Ok(ArrayDesc::new(dtype, shape, Layout::Plain { extents, order: Order::F }))
    }
}

/// The comments and instructions of a node with that many children as they are read back.
fn predict_markup(attrs: &Attrs, children: usize, root: bool) -> Option<(&'static str, Value)> {
    let markup = markup_of(attrs).into_iter().filter(|(_, control, text)| {
        let tag = Tag::new(*text);
        // Before the first element these are the head.
        let head = tag.name() == b"iotk" || *text == b"xml version=\"1.0\"";
        !(root && *control == Control::Instruction && head)
    });
    let items: Vec<Value> = markup
        .map(|(position, control, text)| {
            markup_value(position.min(children), control, &written_markup(control, text))
        })
        .collect();
    (!items.is_empty()).then_some((COMMENTS, Value::List(items)))
}

fn little(dtype: DType) -> DType {
    dtype.with_order(ByteOrder::Little)
}

/// Pushes the content of a group in reverse order: each comment before the child at its position.
fn push_content<'a>(
    stack: &mut Vec<Step<'a>>,
    children: &[NodeId],
    markup: Vec<(usize, Control, &'a [u8])>,
) {
    let mut markup = markup.into_iter().rev().peekable();
    for (position, id) in children.iter().enumerate().rev() {
        while let Some((_, control, text)) = markup.next_if(|(at, ..)| *at > position) {
            stack.push(Step::Markup(control, text));
        }
        stack.push(Step::Node(*id));
    }
    stack.extend(markup.map(|(_, control, text)| Step::Markup(control, text)));
}

/// True if elements of this type are read back as the same type.
fn is_own_type(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Int | Kind::Float | Kind::Complex)
        && fortran(dtype, None) == (dtype, 1)
        && fortran_type(dtype).is_ok()
}

/// True if `name` can be the name of a tag without a change.
fn is_tag_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    // With `qe_syntax` a tag named like a type has data.
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(allowed)
        && Type::from_name(name.as_bytes()).is_none()
}
