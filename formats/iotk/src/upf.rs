//! UPF pseudopotentials of all kinds as the elements of UPF v2.
//!
//! | kind | first element | module |
//! |---|---|---|
//! | v1: named sections without types | `PP_INFO`, `PP_HEADER` | `v1` |
//! | v2, with the attribute `type` or without it (Quantum ESPRESSO 6.6 and later) | `UPF` | |
//! | XML by the schema of Quantum ESPRESSO | `qe_pp:pseudo` | `schema` |
//!
//! `attributes` has the types of attributes, `functions` the arrays over the radius.

mod attributes;
mod functions;
mod schema;
mod v1;

use spile_core::{Attrs, NodeId, ROOT, Report, Result, Source, Tree, Value};

pub(crate) use attributes::{add_types, is_text, typed_value};
pub(crate) use functions::add_functions;

use crate::index::{Element, Index};
use crate::read::File;
use crate::to_tree::FileTree;
use crate::wire::Type;

/// The group with the pseudopotential.
pub(crate) const ROOT_NAME: &str = "UPF";

/// The version of the elements in the tree.
const VERSION: &str = "2.0.1";

/// The kinds of UPF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    V1,
    V2,
    Schema,
}

/// The kind of UPF of a file whose first element has this name.
pub(crate) fn kind_of(name: &[u8]) -> Option<Kind> {
    match name {
        b"UPF" => Some(Kind::V2),
        b"qe_pp:pseudo" => Some(Kind::Schema),
        name if name.starts_with(b"PP_") => Some(Kind::V1),
        _ => None,
    }
}

/// The kind of UPF of a file, if it is one.
pub(crate) fn kind(index: &Index) -> Option<Kind> {
    let first = index.roots().first()?;
    kind_of(index.elements()[*first].tag.name())
}

/// Adds the missing attribute `type` to the tags of elements with numbers: `PP_R` and all others that
/// begin with a number and are not in `PP_INFO`.
pub(crate) fn add_missing_types(index: &mut Index, source: &Source) -> Result<()> {
    if !matches!(kind(index), Some(Kind::V2 | Kind::Schema)) {
        return Ok(());
    }
    let is = |element: &Element, prefix: &[u8]| {
        let name = element.tag.name();
        name.len() >= prefix.len() && name[..prefix.len()].eq_ignore_ascii_case(prefix)
    };
    let mut in_info = vec![false; index.elements().len()];
    for id in 0..index.elements().len() {
        let element = &index.elements()[id];
        in_info[id] = is(element, b"PP_INFO") || element.parent.is_some_and(|above| in_info[above]);
        let [data] = &element.data[..] else { continue };
        let untyped = element.kind.is_none() && element.tag.get_raw("type").is_none();
        if in_info[id] || !untyped || !element.children.is_empty() || !is(element, b"PP_") {
            continue;
        }
        let Some(part) = data.extents.parts().first() else { continue };
        let head = source.read_vec(part.offset, part.len.min(4_096))?;
        if std::str::from_utf8(&head).ok().and_then(first_number).is_some() {
            let element = index.element_mut(id);
            element.tag = element.tag.with_attribute("type", "real", "");
            element.kind = Some(Type::Real);
        }
    }
    Ok(())
}

/// The first word of `text` if it is a number.
fn first_number(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next().and_then(number)
}

/// A real number as Fortran writes it: `1.0D0` and `1.0E0` are the same.
pub(crate) fn number(word: &str) -> Option<f64> {
    let digits = word.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    let plain = word.replace(['d', 'D'], "e");
    plain.parse().ok().filter(|_| digits)
}

/// The tree of a UPF file that does not have the elements of v2; `None` for all other files.
pub(crate) fn to_tree(file: &File) -> Result<Option<FileTree>> {
    let mut report = Report::default();
    let tree = match kind(file.index()) {
        Some(Kind::V1) => v1::to_tree(file, &mut report)?,
        Some(Kind::Schema) => schema::to_tree(file, &mut report)?,
        _ => return Ok(None),
    };
    let nodes = vec![ROOT; file.index().elements().len()];
    let mismatches = report.findings.into_iter().map(|finding| (ROOT, finding)).collect();
    Ok(Some(FileTree { tree, nodes, mismatches }))
}

/// The root of the pseudopotential in a tree.
fn root(tree: &Tree) -> Option<NodeId> {
    tree.child(ROOT, ROOT_NAME).filter(|id| tree.array(*id).is_none())
}

/// Local potential, projectors and pseudo wavefunctions.
pub(crate) fn highlights(tree: &Tree) -> Vec<NodeId> {
    let Some(root) = root(tree) else { return Vec::new() };
    let below = |group: &str, name: &str| tree.child(tree.child(root, group)?, name);
    let found = [
        tree.child(root, "PP_LOCAL"),
        below("PP_NONLOCAL", "projectors"),
        below("PP_PSWFC", "wavefunctions"),
    ];
    let with_radius = |id: &NodeId| {
        let coord = tree.array(*id).and_then(|desc| desc.coords.last());
        coord.is_some_and(|coord| coord.node().is_some())
    };
    found.into_iter().flatten().filter(with_radius).collect()
}

/// Summary rows: element, valence, functional and so on.
pub(crate) fn summary(file: &File, tree: &Tree) -> Attrs {
    let mut rows = Attrs::from([("holds", "pseudopotential".into())]);
    let form = match kind(file.index()) {
        Some(Kind::V1) => Some("version 1, shown as version 2"),
        Some(Kind::Schema) => Some("qe_pp schema, shown as version 2"),
        _ => None,
    };
    rows.extend(form.map(|form| ("UPF".to_string(), Value::from(form))));
    let Some(header) = root(tree).and_then(|root| tree.child(root, "PP_HEADER")) else {
        return rows;
    };
    for (what, key) in [
        ("element", "element"),
        ("type", "pseudo_type"),
        ("valence", "z_valence"),
        ("functional", "functional"),
        ("relativistic", "relativistic"),
    ] {
        if let Some(value) = tree.node(header).attrs.get(key) {
            let text = value.to_string();
            let words: Vec<&str> = text.split_ascii_whitespace().collect();
            if !words.is_empty() {
                rows.push(what, words.join(" "));
            }
        }
    }
    rows
}
