//! Writes any dataset as an IOTK file.

use std::collections::HashMap;
use std::io::BufWriter;

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::Layout;
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::sink::Sink;
use spile_core::tree::{Node, NodeId, ROOT, Tree, Value};

use crate::cast::fortran;
use crate::scalar::Style;
use crate::semantics::ASSEMBLED;
use crate::to_tree::{DEFAULT_VERSION, FILE_VERSION};
use crate::wire::{Control, Tag, Type};
use crate::write::tag_text::write_values;
use crate::write::{Target, Writer, fortran_type, markup_of};

/// Extensions of text files; all other files are binary.
const TEXT_EXTENSIONS: [&str; 4] = ["xml", "upf", "txt", "html"];

/// What is written next.
enum Step<'a> {
    Node(NodeId),
    Markup(Control, &'a [u8]),
    End,
}

/// Writes `content`: groups are elements, arrays are elements with data. If any array has not
/// exactly one dimension, all are written with `qe_syntax`, which stores shapes. Fails with iotk-017
/// for frames and for elements of variable length.
pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let tree = content.tree();
    let extension = sink.path().extension().and_then(|e| e.to_str()).unwrap_or_default();
    let text = TEXT_EXTENSIONS.iter().any(|known| known.eq_ignore_ascii_case(extension));
    let target = if text { Target::Text } else { Target::default() };
    let shaped = tree.arrays().any(|(_, node, desc)| !is_assembled(node) && desc.shape.rank() != 1);
    let mut children: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for (id, node) in tree.iter().filter(|(_, node)| !is_assembled(node)) {
        children.entry(node.parent).or_default().push(id);
    }
    let mut writer = Writer::new(BufWriter::new(&mut *sink), target, Style::Exact)?;
    let mut root_markup = markup_of(tree.attrs());
    write_head(&mut writer, tree, shaped, &mut root_markup)?;
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
        let name = tag_name(tree, node);
        let Some(desc) = &node.array else {
            let mut text = name.into_bytes();
            // A group with a known `type` would be read as data.
            let has_type = node.attrs.iter().any(|(name, value)| {
                name == "type" && Type::from_name(value.to_string().trim().as_bytes()).is_some()
            });
            write_values(&node.attrs, if has_type { &["type"] } else { &[] }, &mut text);
            let markup = markup_of(&node.attrs);
            if children.contains_key(&id) || !markup.is_empty() {
                writer.begin(&Tag::new(text))?;
                stack.push(Step::End);
                push_content(&mut stack, children_of(id), markup);
            } else {
                writer.empty(&Tag::new(text))?;
            }
            continue;
        };
        let in_array = |e: Error| e.in_object(format!("array \"{}\"", node.path));
        let resolved = tree.resolve(desc)?;
        let unsupported = match resolved.layout {
            Layout::PerFrame(_) => Some("IOTK has no frames"),
            _ if resolved.ragged().is_some() => Some("IOTK has no elements of variable length"),
            _ => None,
        };
        if let Some(message) = unsupported {
            return Err(in_array(Error::unsupported("iotk-017", message)));
        }
        let array = Array::open(content.source(), tree, desc, limits).map_err(in_array)?;
        if shaped {
            writer.dat_qe(&name, &node.attrs, &array).map_err(in_array)?;
        } else {
            writer.dat(&name, &node.attrs, &array).map_err(in_array)?;
        }
    }
    writer.finish()?;
    Ok(())
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

/// Writes what precedes the first element: declaration, head, and the attributes of the root as
/// `<?iotk ...?>` instructions. An `<?xml ...?>` declaration is taken from `markup`.
fn write_head<W: std::io::Write>(
    writer: &mut Writer<W>,
    tree: &Tree,
    qe_syntax: bool,
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
    let version = tree.attrs().iter().find_map(|(name, value)| match value {
        Value::Text(text) if name == FILE_VERSION => Some(text.as_str()),
        _ => None,
    });
    writer.head_tags(version.unwrap_or(DEFAULT_VERSION), qe_syntax)?;
    // One instruction per attribute, as the library writes them.
    let mut text = b"iotk".to_vec();
    write_values(tree.attrs(), &[], &mut text);
    let tag = Tag::new(text);
    for attribute in tag.attributes() {
        if version.is_some() && attribute.name == FILE_VERSION.as_bytes() {
            continue;
        }
        writer.instruction(&Tag::new([b"iotk ", attribute.text].concat()))?;
    }
    Ok(())
}

/// True for arrays that the semantics of Quantum ESPRESSO add to the tree.
fn is_assembled(node: &Node) -> bool {
    node.attrs.iter().any(|(name, _)| name == ASSEMBLED)
}

/// True if elements of this type are read back as the same type.
pub(crate) fn is_own_type(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Int | Kind::Float | Kind::Complex)
        && fortran(dtype, None) == (dtype, 1)
        && fortran_type(dtype).is_ok()
}

/// True if `name` can be the name of a tag without a change.
pub(crate) fn is_tag_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    // With `qe_syntax` a tag named like a type has data.
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(allowed)
        && Type::from_name(name.as_bytes()).is_none()
}

/// The name of a node as a tag name. `x~2`, the second `x` of a group, is `x` again.
fn tag_name(tree: &Tree, node: &Node) -> String {
    let plain = match node.name.rsplit_once('~') {
        Some((base, number))
            if number.parse::<u64>().is_ok() && tree.child(node.parent, base).is_some() =>
        {
            base
        }
        _ => &node.name,
    };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_:.-".contains(c) || !c.is_ascii();
    let clean = |c: char| if allowed(c) { c } else { '_' };
    let name: String = plain.chars().map(clean).collect();
    let first = name.chars().next().unwrap_or('_');
    if first.is_ascii_alphabetic() || !first.is_ascii() || matches!(first, '_' | ':') {
        name
    } else {
        format!("_{name}")
    }
}
