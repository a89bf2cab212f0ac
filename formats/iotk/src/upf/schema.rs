//! UPF by the XML schema of Quantum ESPRESSO: names are in lower case, elements of the same name have an
//! index, and the values of the header are elements.

use spile_core::{Attrs, NodeId, ROOT, Report, Result, Tree, Value};

use super::{ROOT_NAME, VERSION, typed_value};
use crate::index::{Element, Index};
use crate::read::File;
use crate::to_tree::{STORAGE, attributes};
use crate::wire::unescape;

/// Groups of v2 around elements that the schema has without them.
const GROUPS: [(&[u8], &str, &str); 2] = [
    (b"pp_gipaw_core_orbital", "PP_GIPAW_CORE_ORBITALS", "number_of_core_orbitals"),
    (b"pp_gipaw_orbital", "PP_GIPAW_ORBITALS", "number_of_valence_orbitals"),
];

/// Builds the tree. Data that do not match their tags are added to `report`.
pub(super) fn to_tree(file: &File, report: &mut Report) -> Result<Tree> {
    let mut tree = Tree::new(file.limits());
    let index = file.index();
    let mut nodes = vec![ROOT; index.elements().len()];
    for id in 0..index.elements().len() {
        let element = &index.elements()[id];
        nodes[id] = match element.parent {
            None => {
                let root = tree.add_group(ROOT, ROOT_NAME)?;
                tree.push_attr(root, "version", VERSION)?;
                root
            }
            Some(parent) => {
                add(&mut tree, file, nodes[parent], id, report).map_err(|e| e.at(element.offset))?
            }
        };
    }
    add_spin_orbit(&mut tree)?;
    Ok(tree)
}

fn add(
    tree: &mut Tree,
    file: &File,
    parent: NodeId,
    id: usize,
    report: &mut Report,
) -> Result<NodeId> {
    let index = file.index();
    let element = &index.elements()[id];
    let own = element.tag.name();
    if !own.starts_with(b"pp_") && element.children.is_empty() {
        // A value of the header or of another element.
        let text = scalar_text(file, element)?;
        let name = element.tag.name_lossy();
        let name = if name == "type" { "pseudo_type".to_string() } else { name };
        tree.push_attr(parent, &name, typed_value(&name, &text))?;
        for (key, value) in typed_attributes(element, &[]) {
            tree.push_attr(parent, &format!("{name}_{key}"), value)?;
        }
        return Ok(parent);
    }
    let parent = match GROUPS.iter().find(|(name, ..)| *name == own) {
        Some((_, group, count)) => group_inside(tree, parent, group, count)?,
        None => parent,
    };
    let name = v2_name(index, element);
    let Some(data) = file.data(id)?.filter(|_| element.children.is_empty()) else {
        let group = tree.add_group(parent, &name)?;
        tree.set_attrs(group, typed_attributes(element, &[]))?;
        return Ok(group);
    };
    let mut found = Report::default();
    data.report(element.offset, &mut found);
    let node = tree.add_array(parent, &name, data.array)?;
    tree.set_attrs(node, typed_attributes(element, &STORAGE))?;
    for mut finding in found.findings {
        finding.in_object(tree.node(node).path.clone());
        report.findings.push(finding);
    }
    Ok(node)
}

/// The group `name` in `parent`, which is added if it is missing, with the attribute `count` of `parent`.
fn group_inside(tree: &mut Tree, parent: NodeId, name: &str, count: &str) -> Result<NodeId> {
    if let Some(group) = tree.child(parent, name) {
        return Ok(group);
    }
    let number = tree.node(parent).attrs.get(count).cloned();
    let group = tree.add_group(parent, name)?;
    if let Some(number) = number {
        tree.push_attr(group, count, number)?;
    }
    Ok(group)
}

/// The text of an element with a single value.
fn scalar_text(file: &File, element: &Element) -> Result<String> {
    let mut text = Vec::new();
    for part in element.data.iter().flat_map(|data| data.extents.parts()) {
        file.limits().allow(part.len + text.len() as u64, "the text of an element")?;
        text.extend_from_slice(&file.source().read_vec(part.offset, part.len)?);
    }
    Ok(String::from_utf8_lossy(&unescape(&text)).trim().to_string())
}

fn typed_attributes(element: &Element, hidden: &[&str]) -> Attrs {
    let plain = attributes(&element.tag, hidden).into_iter();
    let typed = plain.filter(|(name, _)| name != crate::to_tree::SPELLING).map(|(name, value)| {
        let value = match value {
            Value::Text(text) => typed_value(&name, &text),
            other => other,
        };
        (name, value)
    });
    typed.collect()
}

/// The name in v2: `PP_BETA.1`, `PP_QIJ.1.2`, `PP_QIJL.1.2.0`.
fn v2_name(index: &Index, element: &Element) -> String {
    let name = element.tag.name_lossy();
    if !name.starts_with("pp_") {
        return name;
    }
    let get = |key: &str| element.tag.get_text(key).map(|text| text.trim().to_string());
    let keys: &[&str] = match name.as_str() {
        "pp_qij" => &["first_index", "second_index"],
        "pp_qijl" => &["first_index", "second_index", "angular_momentum"],
        // The group of the wavefunctions has the same name as those in `pp_full_wfc`.
        "pp_pswfc" if !in_full(index, element) => &[],
        _ => &["index"],
    };
    keys.iter()
        .filter_map(|key| get(key))
        .fold(name.to_ascii_uppercase(), |name, number| format!("{name}.{number}"))
}

fn in_full(index: &Index, element: &Element) -> bool {
    element.parent.is_some_and(|parent| index.elements()[parent].tag.name() == b"pp_full_wfc")
}

/// Adds the total angular momenta, which the schema has as attributes of wavefunctions and projectors,
/// as the elements of v2.
fn add_spin_orbit(tree: &mut Tree) -> Result<()> {
    let mut groups = Vec::new();
    for (_, node, _) in tree.arrays() {
        let get = |key: &str| node.attrs.get(key).cloned();
        let Some(index) = node.attrs.get_u64("index") else { continue };
        let (name, pairs) = if node.name.starts_with("PP_CHI.") && get("jchi").is_some() {
            let keys = [
                ("els", "label"),
                ("nn", "nn"),
                ("lchi", "l"),
                ("jchi", "jchi"),
                ("oc", "occupation"),
            ];
            (format!("PP_RELWFC.{index}"), keys.to_vec())
        } else if node.name.starts_with("PP_BETA.") && get("tot_ang_mom").is_some() {
            (
                format!("PP_RELBETA.{index}"),
                vec![("lll", "angular_momentum"), ("jjj", "tot_ang_mom")],
            )
        } else {
            continue;
        };
        let mut attrs = Attrs::from([("index", Value::UInt(index))]);
        for (key, from) in pairs {
            attrs.extend(get(from).map(|value| (key.to_string(), value)));
        }
        groups.push((name, attrs));
    }
    let Some(root) = super::root(tree).filter(|_| !groups.is_empty()) else { return Ok(()) };
    let parent = tree.add_group(root, "PP_SPIN_ORB")?;
    for (name, attrs) in groups {
        let group = tree.add_group(parent, &name)?;
        tree.set_attrs(group, attrs)?;
    }
    Ok(())
}
