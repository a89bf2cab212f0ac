//! The tree view of a file: tags are groups, data are arrays, attributes are typed.

use std::collections::HashMap;

use spile_core::dtype::{DType, Kind};
use spile_core::error::Result;
use spile_core::layout::ArrayDesc;
use spile_core::shape::Shape;
use spile_core::tree::{Attrs, NodeId, ROOT, Value};

use crate::element_data::describe_data;
use crate::index::{Diagnostic, Markup};
use crate::read::File;
use crate::wire::{Control, Tag, Type, unescape, write_attribute};
use crate::write::tag_text::format_value;

/// Attributes that describe how data are stored. The tree has them as type and shape of the array.
pub(crate) const STORAGE: [&str; 18] = [
    "type",
    "size",
    "kind",
    "len",
    "fmt",
    "columns",
    "rank",
    "n1",
    "n2",
    "n3",
    "n4",
    "n5",
    "n6",
    "n7",
    "trunc",
    "spile_fmt",
    "spile_kind",
    "spile_type",
];

/// The attribute with the original text of attributes whose numbers would be written differently:
/// `tau="0.10E+00 0.20E+00" weight=" 1.0"`.
pub(crate) const SPELLING: &str = "iotk_spelling";

/// The attribute with the comments and processing instructions of a node: a list of
/// `position <!--text-->` and `position <?text?>`, where the position is the number of child nodes
/// before it.
pub(crate) const COMMENTS: &str = "iotk_comments";

/// The attribute of the head with the version of the program's file, and the version that is not an
/// attribute of the tree.
pub(crate) const FILE_VERSION: &str = "file_version";
pub(crate) const DEFAULT_VERSION: &str = "1.0";

/// Attributes of the head that are not attributes of the tree.
const HEAD: [&str; 4] = ["version", FILE_VERSION, "binary", "qe_syntax"];

/// An attribute with more numbers than this stays text.
const MAX_LIST: usize = 64;

impl File {
    /// Fills the tree from the index.
    pub(crate) fn build_tree(&mut self) -> Result<()> {
        for tag in self.index.head_tags() {
            self.tree.node_mut(ROOT).attrs.extend(attributes(tag, &HEAD));
        }
        if let Some(version) = self.index.head(FILE_VERSION).filter(|v| v != DEFAULT_VERSION) {
            let attrs = &mut self.tree.node_mut(ROOT).attrs;
            attrs.push((FILE_VERSION.to_string(), Value::Text(version)));
        }
        let mut nodes: Vec<NodeId> = Vec::with_capacity(self.index.elements().len());
        for id in 0..self.index.elements().len() {
            let parent = self.index.elements()[id].parent.map_or(ROOT, |parent| nodes[parent]);
            let node = self.add_element(id, parent)?;
            if self.index.elements()[id].tag.get_raw("iotk_link").is_some() {
                self.links.push((id, node));
            }
            nodes.push(node);
        }
        let mut comments: HashMap<NodeId, Vec<Value>> = HashMap::new();
        for markup in self.index.markup() {
            let node = markup.parent.map_or(ROOT, |parent| nodes[parent]);
            // The text of an element with children is in arrays before the children.
            let texts = match markup.parent {
                Some(_) if self.tree.node(node).array.is_some() => 0,
                Some(parent) => self.index.elements()[parent].data.len(),
                None => 0,
            };
            comments.entry(node).or_default().push(markup_value(markup, texts));
        }
        for (node, list) in comments {
            let attrs = &mut self.tree.node_mut(node).attrs;
            attrs.push((COMMENTS.to_string(), Value::List(list)));
        }
        Ok(())
    }

    /// Adds an element to `parent`: an array if it has one piece of data and no children, else a
    /// group.
    fn add_element(&mut self, id: usize, parent: NodeId) -> Result<NodeId> {
        let element = &self.index.elements()[id];
        // With `qe_syntax` the type is a tag, which is merged into its parent.
        if element.parent.is_some_and(|above| self.type_child(above) == Some(id)) {
            return Ok(parent);
        }
        let carrier = self.type_child(id).unwrap_or(id);
        let name = element.tag.name_lossy();
        let with_data = &self.index.elements()[carrier];
        let leaf = with_data.children.is_empty() && with_data.data.len() < 2;
        let mut data = self.data(carrier)?;
        if let Some(data) = data.as_mut().filter(|data| data.fault.is_none()) {
            restore_opaque(&self.index.elements()[carrier].tag, &mut data.array);
        }
        let hidden: &[&str] = if data.is_some() && leaf { &STORAGE } else { &[] };
        let attrs = attributes(&element.tag, hidden);
        if let Some(data) = &data {
            let offset = self.index.elements()[carrier].offset;
            for (diagnostic, is_error) in [(&data.warning, false), (&data.fault, true)] {
                if let Some((code, message)) = diagnostic.clone() {
                    self.diagnostics.push(Diagnostic { code, message, offset, is_error });
                }
            }
        }
        let at = self.index.elements()[id].offset;
        let node = match data {
            Some(data) if leaf => self.tree.add_array(parent, &name, data.array),
            Some(data) => self.add_pieces(parent, &name, carrier, data.array),
            None => self.tree.add_group(parent, &name),
        };
        let node = node.map_err(|e| e.at(at))?;
        self.tree.node_mut(node).attrs = attrs;
        Ok(node)
    }

    /// Adds a group with all data of an element that has children or several pieces of data.
    fn add_pieces(
        &mut self,
        parent: NodeId,
        name: &str,
        element: usize,
        first: ArrayDesc,
    ) -> Result<NodeId> {
        let group = self.tree.add_group(parent, name)?;
        self.tree.add_array(group, "text", first)?;
        for data in &self.index.elements()[element].data[1..] {
            let (source, untyped) = (&self.source, Tag::default());
            let piece = describe_data(&untyped, None, data, self.form, source, &self.limits)?;
            self.tree.add_array(group, "text", piece.array)?;
        }
        Ok(group)
    }

    /// The only child of an element if that is a type tag of `qe_syntax` with its data.
    fn type_child(&self, id: usize) -> Option<usize> {
        let element = &self.index.elements()[id];
        let [child] = element.children[..] else { return None };
        let inner = &self.index.elements()[child];
        let typed =
            inner.tag.get_raw("type").is_none() && Type::from_name(inner.tag.name()).is_some();
        let leaf = typed && inner.kind.is_some() && inner.children.is_empty();
        (leaf && element.data.is_empty() && element.kind.is_none()).then_some(child)
    }
}

/// A comment or instruction as an item of [`COMMENTS`]; `texts` arrays precede the child elements.
fn markup_value(markup: &Markup, texts: usize) -> Value {
    let (open, close) = markup.control.delimiters();
    let position = (markup.position + texts).to_string();
    let item = [position.as_bytes(), b" ", open, &markup.text, close].concat();
    String::from_utf8(item).map_or_else(|e| Value::Bytes(e.into_bytes()), Value::Text)
}

/// Position, kind and text of the items of [`COMMENTS`]. `None` if `value` has another form.
pub(crate) fn parse_markup(value: &Value) -> Option<Vec<(usize, Control, &[u8])>> {
    let Value::List(items) = value else { return None };
    items.iter().map(parse_markup_item).collect()
}

fn parse_markup_item(item: &Value) -> Option<(usize, Control, &[u8])> {
    let bytes = match item {
        Value::Text(text) => text.as_bytes(),
        Value::Bytes(bytes) => bytes.as_slice(),
        _ => return None,
    };
    let blank = bytes.iter().position(|b| *b == b' ')?;
    let position = std::str::from_utf8(&bytes[..blank]).ok()?.parse().ok()?;
    [Control::Comment, Control::Instruction].into_iter().find_map(|control| {
        let (open, close) = control.delimiters();
        let text = bytes[blank + 1..].strip_prefix(open)?.strip_suffix(close)?;
        Some((position, control, text))
    })
}

/// Restores the type of opaque elements, which are written as integers (`spile_type`).
fn restore_opaque(tag: &Tag, array: &mut ArrayDesc) {
    let Some(original) = tag.get_text("spile_type").and_then(|name| name.parse::<DType>().ok())
    else {
        return;
    };
    let (size, lengths) = (original.size() as u64, array.shape.lengths());
    if original.kind() != Kind::Opaque
        || size == 0
        || (array.dtype.kind(), array.dtype.size()) != (Kind::Int, 1)
    {
        return;
    }
    let shape = match lengths {
        _ if size == 1 => lengths.to_vec(),
        [all] if tag.get_raw("rank").is_none() && all.is_multiple_of(size) => vec![all / size],
        [first, rest @ ..] if tag.get_raw("rank").is_some() && *first == size => rest.to_vec(),
        _ => return,
    };
    let (shape, layout) = (Shape::new(shape), array.layout.clone());
    *array = ArrayDesc::new(original, shape, layout);
}

/// The attributes of a tag except the hidden ones, with typed values. Numbers that the writer would
/// write differently are also in [`SPELLING`].
fn attributes(tag: &Tag, hidden: &[&str]) -> Attrs {
    let mut attrs = Attrs::new();
    let mut spelling = Vec::new();
    for attribute in tag.attributes() {
        if hidden.iter().any(|name| name.as_bytes() == attribute.name) {
            continue;
        }
        let name = String::from_utf8_lossy(attribute.name).into_owned();
        let plain = unescape(attribute.value);
        let value = match std::str::from_utf8(&plain) {
            Ok(text) => parse_value(&name, text),
            Err(_) => Value::Bytes(plain.to_vec()),
        };
        if format_value(&value) != *plain {
            write_attribute(&name, &plain, &mut spelling);
        }
        attrs.push((name, value));
    }
    if !spelling.is_empty() {
        let text = String::from_utf8_lossy(spelling.trim_ascii_start()).into_owned();
        attrs.push((SPELLING.to_string(), Value::Text(text)));
    }
    attrs
}

/// The typed value of an attribute: integers, finite reals, complex pairs and short lists are
/// numbers, all else is text. Logicals stay text because `F` may be fluorine, and versions because
/// 1.10 is not 1.1.
///
/// A single word is a number only if the writer gives the same text back or if it has an exponent or
/// blanks around it, as Fortran prints numbers: `007` and `1.10` are text, `1.000E+00` and `  3` are
/// numbers.
pub(crate) fn parse_value(name: &str, text: &str) -> Value {
    let as_text = || Value::Text(text.to_string());
    if name.to_ascii_lowercase().ends_with("version") {
        return as_text();
    }
    if let Some((re, im)) = text.split_once(',') {
        let real = |part: &str| {
            let value = part.trim().parse::<f64>().ok();
            value.filter(|x| x.is_finite() && part.contains('.'))
        };
        return match (real(re), real(im)) {
            (Some(re), Some(im)) => Value::Complex(re, im),
            _ => as_text(),
        };
    }
    let words: Vec<&str> = text.split_ascii_whitespace().take(MAX_LIST + 1).collect();
    if words.is_empty() || words.len() > MAX_LIST {
        return as_text();
    }
    let numbers = words.iter().map(|word| parse_number(word)).collect::<Option<Vec<Value>>>();
    match numbers {
        Some(mut numbers) if numbers.len() == 1 => {
            let number = numbers.remove(0);
            let printed = words[0] != text || text.contains(['e', 'E']);
            let exact = format_value(&number) == text.as_bytes();
            if exact || printed { number } else { as_text() }
        }
        Some(numbers) => Value::List(numbers),
        None => as_text(),
    }
}

/// An integer without leading zeros or plus sign, or a finite real. Integers that do not fit 64 bits
/// are not numbers, because a real would lose digits.
fn parse_number(word: &str) -> Option<Value> {
    if word.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-')) {
        let number: i64 = word.parse().ok()?;
        return (number.to_string() == word).then_some(Value::Int(number));
    }
    word.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float)
}
