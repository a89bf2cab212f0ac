//! Types of the attributes of UPF elements. In v2 all are text; the names are known.

use spile_core::{Attrs, NodeId, Result, Tree, Value};

use super::number;
use crate::to_tree::SPELLING;
use crate::wire::{parse_logical, write_attribute};
use crate::write::tag_text::format_value;

/// Attributes with text, which may look like a number or a logical: the element `F`, the label `2D`.
const TEXT: [&str; 13] = [
    "generated",
    "author",
    "date",
    "comment",
    "element",
    "pseudo_type",
    "relativistic",
    "functional",
    "label",
    "els",
    "shape",
    "version",
    "nl",
];

/// Whether the attribute `name` is text.
pub(crate) fn is_text(name: &str) -> bool {
    TEXT.contains(&name)
}

/// Logical attributes.
const LOGICAL: [&str; 10] = [
    "is_ultrasoft",
    "is_paw",
    "is_coulomb",
    "has_so",
    "has_wfc",
    "has_gipaw",
    "paw_as_gipaw",
    "core_correction",
    "with_metagga_info",
    "q_with_l",
];

/// The value of the attribute `name` with this text: a logical, a number, or text without blanks around
/// it.
pub(crate) fn typed_value(name: &str, text: &str) -> Value {
    let text = text.trim();
    if LOGICAL.contains(&name)
        && let Some(flag) = parse_logical(text.as_bytes())
    {
        return Value::Bool(flag);
    }
    if is_text(name) || text.contains(char::is_whitespace) {
        return text.into();
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Value::Int(integer);
    }
    number(text).filter(|value| value.is_finite()).map_or_else(|| text.into(), Value::Float)
}

/// Gives the attributes of `nodes` the values that `typed` returns for their names and texts. Text that the writer
/// would write differently is added to [`SPELLING`].
pub(crate) fn add_types(
    tree: &mut Tree,
    nodes: &[NodeId],
    typed: impl Fn(&str, &str) -> Value,
) -> Result<()> {
    for id in nodes {
        let own = std::mem::take(&mut tree.node_mut(*id).attrs);
        let mut spelling = String::new();
        let mut all = Attrs::new();
        for (name, value) in own {
            let Value::Text(text) = &value else {
                all.push(name, value);
                continue;
            };
            if name == SPELLING {
                spelling = format!("{text} {spelling}");
                continue;
            }
            if name.starts_with("iotk_") || matches!(name.as_str(), "units" | "long_name") {
                all.push(name, value);
                continue;
            }
            let new = typed(&name, text);
            if format_value(&new) != text.as_bytes() {
                let mut written = Vec::new();
                write_attribute(&name, text.as_bytes(), &mut written);
                spelling.push_str(&String::from_utf8_lossy(&written));
            }
            all.push(name, new);
        }
        if !spelling.trim().is_empty() {
            all.push(SPELLING, spelling.trim());
        }
        tree.set_attrs(*id, all)?;
    }
    Ok(())
}
