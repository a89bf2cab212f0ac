//! The tree view of a file: tags are groups, data are arrays, attributes are typed.

use std::collections::HashMap;
use std::path::Path;

use spile_core::format::{Native, Object, Region};
use spile_core::{
    ArrayDesc, Attrs, DType, Dataset, Finding, Kind, NodeId, OpenOptions, Parsed, ROOT, Report,
    Result, Shape, Source, Tree, Value,
};

use crate::element_data::{describe_data, stored_bytes};
use crate::event::Form;
use crate::index::{Element, Index};
use crate::plane_waves::records;
use crate::read::File;
use crate::regions;
use crate::save::{self, earlier::Facts};
use crate::semantics;
use crate::upf;
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
pub(crate) const HEAD: [&str; 4] = ["version", FILE_VERSION, "binary", "qe_syntax"];

/// An attribute with more numbers than this stays text.
const MAX_LIST: usize = 64;

/// Opens the file in `source`. Data that do not match their tags are warnings.
pub(crate) fn open(source: Source, options: &OpenOptions) -> Result<Parsed> {
    let file = File::from_source(source, &options.limits)?;
    let mut report = file.index().report.clone();
    semantics::report_incomplete(&file, &mut report);
    let mut built = to_tree(&file)?;
    let spins = save::spin_bands(&built.tree, file.source());
    let facts = Facts::read(&mut built.tree, file.source())?;
    semantics::add(&mut built.tree, spins, facts.as_ref(), &mut report).map_err(|e| e.at(0))?;
    built.report(|node| built.tree.node(node).path.clone(), &mut report);
    let rows = summary(&file, &built.tree);
    let parsed = Parsed::new(file.source().clone(), built.tree).with_summary(rows);
    Ok(parsed.with_warnings(report.findings).with_native(file))
}

/// The tree of a file, without the arrays and meaning that [`crate::semantics`] adds.
pub(crate) struct FileTree {
    pub(crate) tree: Tree,
    /// The node of each element.
    pub(crate) nodes: Vec<NodeId>,
    /// Data that do not match their tags, and their nodes.
    pub(crate) mismatches: Vec<(NodeId, Finding)>,
}

impl FileTree {
    /// Adds what does not match to `report`; `path` gives the path of a node.
    pub(crate) fn report(&self, path: impl Fn(NodeId) -> String, report: &mut Report) {
        for (node, finding) in &self.mismatches {
            let mut finding = finding.clone();
            if *node != ROOT {
                finding.in_object(path(*node));
            }
            report.findings.push(finding);
        }
    }
}

/// Builds the tree of a file.
pub(crate) fn to_tree(file: &File) -> Result<FileTree> {
    if let Some(built) = upf::to_tree(file)? {
        return Ok(built);
    }
    let mut tree = Tree::new(file.limits());
    if let Form::Binary(framing) = file.form()
        && let Some(waves) = records::parse(file.source(), file.raw_records(), framing.order)?
    {
        let name = file.source().path().and_then(Path::file_stem).unwrap_or_default();
        waves.named(&name.to_string_lossy()).add(&mut tree, ROOT, None)?;
        return Ok(FileTree { tree, nodes: Vec::new(), mismatches: Vec::new() });
    }
    for (k, record) in file.raw_records().iter().enumerate() {
        let added =
            tree.add_array(ROOT, &format!("record.{}", k + 1), stored_bytes(&record.content));
        added.map_err(|e| e.at(record.offset))?;
    }
    let index = file.index();
    for tag in index.head_tags() {
        for (name, value) in attributes(tag, &HEAD) {
            tree.push_attr(ROOT, &name, value)?;
        }
    }
    if let Some(version) = index.head(FILE_VERSION).filter(|v| v != DEFAULT_VERSION) {
        tree.push_attr(ROOT, FILE_VERSION, version)?;
    }
    let nodes = Vec::with_capacity(index.elements().len());
    let mut builder = Builder { file, built: FileTree { tree, nodes, mismatches: Vec::new() } };
    for id in 0..index.elements().len() {
        let node = builder.add_element(id).map_err(|e| e.at(index.elements()[id].offset))?;
        builder.built.nodes.push(node);
    }
    let FileTree { mut tree, nodes, mismatches } = builder.built;
    let mut comments: HashMap<NodeId, Vec<Value>> = HashMap::new();
    for markup in index.markup() {
        let node = markup.parent.map_or(ROOT, |parent| nodes[parent]);
        let position = match markup.parent {
            // After the data.
            Some(_) if tree.array(node).is_some() => 0,
            // The text of an element with children is in arrays before the children.
            Some(parent) => markup.position + index.elements()[parent].data.len(),
            None => markup.position,
        };
        let item = markup_value(position, markup.control, &markup.text);
        comments.entry(node).or_default().push(item);
    }
    for (node, list) in comments {
        tree.push_attr(node, COMMENTS, Value::List(list))?;
    }
    Ok(FileTree { tree, nodes, mismatches })
}

struct Builder<'a> {
    file: &'a File,
    built: FileTree,
}

impl Builder<'_> {
    /// Adds an element to the node of its parent: an array if it has one piece of data and no
    /// children, else a group.
    fn add_element(&mut self, id: usize) -> Result<NodeId> {
        let index = self.file.index();
        let element = &index.elements()[id];
        let parent = element.parent.map_or(ROOT, |parent| self.built.nodes[parent]);
        // With `qe_syntax` the type is a tag, which is merged into its parent.
        if element.parent.is_some_and(|above| type_child(index, above) == Some(id)) {
            return Ok(parent);
        }
        let carrier = type_child(index, id).unwrap_or(id);
        let name = element.tag.name_lossy();
        let with_data = &index.elements()[carrier];
        let leaf = with_data.children.is_empty() && with_data.data.len() < 2;
        let tree = &mut self.built.tree;
        let Some(mut data) = self.file.tree_data(carrier)? else {
            let node = tree.add_group(parent, &name)?;
            tree.set_attrs(node, attributes(&element.tag, &[]))?;
            return Ok(node);
        };
        if data.fault.is_none() {
            restore_opaque(&with_data.tag, &mut data.array);
        }
        let mut mismatches = Report::default();
        data.report(with_data.offset, &mut mismatches);
        let (node, array);
        if leaf {
            array = tree.add_array(parent, &name, data.array)?;
            node = array;
        } else {
            // A group with all data of an element that has children or several pieces of data.
            node = tree.add_group(parent, &name)?;
            array = tree.add_array(node, "text", data.array)?;
            for piece in &with_data.data[1..] {
                let untyped = Tag::default();
                let (form, bytes) = (self.file.form(), self.file.bytes());
                let piece = describe_data(&untyped, None, piece, form, bytes)?;
                tree.add_array(node, "text", piece.array)?;
            }
        }
        for mismatch in mismatches.findings {
            let size = size_of::<Finding>() + size_of::<(NodeId, Finding)>();
            tree.charge((size + 2 * mismatch.message.len()) as u64, "findings")?;
            self.built.mismatches.push((array, mismatch));
        }
        tree.set_attrs(node, attributes(&element.tag, if leaf { &STORAGE } else { &[] }))?;
        Ok(node)
    }
}

/// The only child of an element if that is a type tag of `qe_syntax` with its data.
fn type_child(index: &Index, id: usize) -> Option<usize> {
    let element = &index.elements()[id];
    let [child] = element.children[..] else { return None };
    let inner = &index.elements()[child];
    let typed = inner.tag.get_raw("type").is_none() && Type::from_name(inner.tag.name()).is_some();
    let leaf = typed && inner.kind.is_some() && inner.children.is_empty();
    (leaf && element.data.is_empty() && element.kind.is_none()).then_some(child)
}

/// A comment or instruction as an item of [`COMMENTS`].
pub(crate) fn markup_value(position: usize, control: Control, text: &[u8]) -> Value {
    let (open, close) = control.delimiters();
    let item = [position.to_string().as_bytes(), b" ", open, text, close].concat();
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
pub(crate) fn attributes(tag: &Tag, hidden: &[&str]) -> Attrs {
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
        attrs.push(name, value);
    }
    if !spelling.is_empty() {
        let text = String::from_utf8_lossy(spelling.trim_ascii_start()).into_owned();
        attrs.push(SPELLING, text);
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
    if name.to_ascii_lowercase().ends_with("version") || upf::is_text(name) {
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

/// Key facts about the file.
fn summary(file: &File, tree: &Tree) -> Attrs {
    let index = file.index();
    let form = match file.form() {
        Form::Text => "text".to_string(),
        Form::Binary(framing) => {
            format!("binary, {}-byte markers, {:?}-endian", framing.marker, framing.order)
                .to_lowercase()
        }
    };
    let mut rows = Attrs::from([("form", form.into())]);
    for name in ["version", "file_version"] {
        rows.extend(index.head(name).map(|v| (name.replace('_', " "), Value::Text(v))));
    }
    if index.qe_syntax() {
        rows.push("syntax", "qe_syntax");
    }
    if let [root] = index.roots() {
        rows.push("root", index.elements()[*root].tag.name_lossy());
    }
    if file.raw_records().is_empty() {
        rows.push("elements", index.elements().len() as u64);
    } else {
        rows.push("records without tags", file.raw_records().len() as u64);
    }
    let is_link = |element: &&Element| element.tag.get_raw("iotk_link").is_some();
    let links = index.elements().iter().filter(is_link).count() as u64;
    if links > 0 {
        rows.push("links", links);
    }
    rows.extend(semantics::summary(file, tree));
    rows
}

impl Native for File {
    fn highlights(&self, tree: &Tree) -> Vec<NodeId> {
        upf::highlights(tree)
    }

    fn regions(&self, _: &Dataset, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        regions::regions(self, each)
    }

    /// The stored data: bytes of records in the byte order of the file, or characters.
    fn objects(&self, _: &Dataset, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        for (id, element) in self.index().elements().iter().enumerate() {
            for data in &element.data {
                let kind = element.kind.map_or("text", Type::name);
                each(Object::new(self.index().path(id), kind, stored_bytes(&data.extents)))?;
            }
        }
        for (k, record) in self.raw_records().iter().enumerate() {
            let path = format!("record.{}", k + 1);
            each(Object::new(path, "record", stored_bytes(&record.content)))?;
        }
        Ok(())
    }
}
