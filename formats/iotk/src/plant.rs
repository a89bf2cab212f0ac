//! Any tree as an IOTK file.

use std::collections::HashMap;
use std::io::BufWriter;

use spile_core::dtype::{DType, Kind};
use spile_core::error::{Error, Result};
use spile_core::format::Reader;
use spile_core::layout::Layout;
use spile_core::limits::Limits;
use spile_core::read::Array;
use spile_core::sink::Sink;
use spile_core::tree::{Node, NodeId, ROOT, Tree};

use crate::number::Style;
use crate::recast::fortran;
use crate::schema::ASSEMBLED;
use crate::spell::write_values;
use crate::wire::{Tag, Type};
use crate::write::{Target, Writer, fortran_type};

/// Names of texts end like this; everything else is written in records.
const TEXTS: [&str; 4] = ["xml", "upf", "txt", "html"];

/// Writes `content`: groups are elements, arrays are elements with data. Where an array has not
/// exactly one dimension, all are written with `qe_syntax`, which has shapes.
pub(crate) fn write_tree(content: &dyn Reader, sink: &mut Sink, limits: &Limits) -> Result<()> {
    let tree = content.tree();
    let ending = sink.path().extension().and_then(|e| e.to_str()).unwrap_or_default();
    let text = TEXTS.iter().any(|known| known.eq_ignore_ascii_case(ending));
    let target = if text { Target::Text } else { Target::default() };
    let shaped = tree.arrays().any(|(_, node, desc)| !assembled(node) && desc.shape.rank() != 1);
    let mut children: HashMap<NodeId, Vec<NodeId>> = HashMap::new();
    for (id, node) in tree.iter().filter(|(_, node)| !assembled(node)) {
        children.entry(node.parent).or_default().push(id);
    }
    let mut writer = Writer::new(BufWriter::new(&mut *sink), target, Style::Exact)?;
    writer.head("1.0", shaped)?;
    for attr in tree.attrs() {
        let mut text = b"iotk".to_vec();
        write_values(std::slice::from_ref(attr), &[], &mut text);
        writer.instruction(&Tag::new(text))?;
    }
    // Depth first without recursion: `None` ends an element.
    let mut stack: Vec<Option<NodeId>> = Vec::new();
    let push = |stack: &mut Vec<Option<NodeId>>, parent: NodeId| {
        let inside = children.get(&parent).map_or(&[][..], |list| list);
        stack.extend(inside.iter().rev().map(|id| Some(*id)));
    };
    push(&mut stack, ROOT);
    while let Some(next) = stack.pop() {
        let Some(id) = next else {
            writer.end()?;
            continue;
        };
        let node = tree.node(id);
        let name = tag_name(tree, node);
        let Some(desc) = &node.array else {
            let mut text = name.into_bytes();
            // A group that says a type would be taken for data.
            let says_type = node.attrs.iter().any(|(name, value)| {
                name == "type" && Type::named(value.to_string().trim().as_bytes()).is_some()
            });
            write_values(&node.attrs, if says_type { &["type"] } else { &[] }, &mut text);
            if children.contains_key(&id) {
                writer.begin(&Tag::new(text))?;
                stack.push(None);
                push(&mut stack, id);
            } else {
                writer.empty(&Tag::new(text))?;
            }
            continue;
        };
        let place = |e: Error| e.in_object(format!("array \"{}\"", node.path));
        let resolved = tree.resolve(desc)?;
        let misplaced = match resolved.layout {
            Layout::PerFrame(_) => Some("frames have no place in IOTK"),
            _ if resolved.ragged().is_some() => Some("elements of different lengths"),
            _ => None,
        };
        if let Some(message) = misplaced {
            return Err(place(Error::unsupported("iotk-017", message)));
        }
        let array = Array::open(content.source(), tree, desc, limits).map_err(place)?;
        if shaped {
            writer.dat_qe(&name, &node.attrs, &array).map_err(place)?;
        } else {
            writer.dat(&name, &node.attrs, &array).map_err(place)?;
        }
    }
    writer.finish()?;
    Ok(())
}

fn assembled(node: &Node) -> bool {
    node.attrs.iter().any(|(name, _)| name == ASSEMBLED)
}

/// Elements of this type are the same when they are read.
pub(crate) fn is_own_type(dtype: DType) -> bool {
    matches!(dtype.kind(), Kind::Int | Kind::Float | Kind::Complex)
        && fortran(dtype, None) == (dtype, 1)
        && fortran_type(dtype).is_ok()
}

/// A tag may be called like this.
pub(crate) fn is_tag_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    // With `qe_syntax` a tag that is called like a type holds data.
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(letter)
        && Type::named(name.as_bytes()).is_none()
}

/// The name of a node as a tag. Namesakes have the same name again: readers tell them apart.
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
