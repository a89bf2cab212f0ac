//! Which arrays are meant, and which parts of them.

use spile::error::Result;
use spile::layout::ArrayDesc;
use spile::select::Selection;
use spile::tree::{Node, Tree, Value};

use super::super::cat;
use super::{Job, PlotArgs};

/// An array and a part of it.
pub(super) struct Chosen<'a> {
    pub(super) node: &'a Node,
    pub(super) desc: &'a ArrayDesc,
    pub(super) selection: Selection,
    /// The part as it was written with the name.
    part: Option<String>,
}

impl Chosen<'_> {
    /// A short name: the last two parts of the path, because `Px/electron` tells more than
    /// `electron`.
    pub(super) fn label(&self) -> String {
        let mut parts: Vec<&str> = self.node.path.rsplit('/').take(2).collect();
        parts.reverse();
        let part = self.part.as_ref().map_or_else(String::new, |part| format!("[{part}]"));
        parts.join("/") + &part
    }
}

/// The array to draw, and the second one where there are two.
pub(super) fn choose<'a>(job: &Job<'a>) -> Result<(Chosen<'a>, Option<Chosen<'a>>)> {
    let (args, tree) = (job.args, job.file.tree());
    let PlotArgs { name, second, .. } = args;
    match (name.as_deref(), second.as_deref()) {
        (None, _) => Ok((whole(main(tree)?), None)),
        (Some(word), None) => match named(tree, word) {
            Ok(chosen) => Ok((chosen, None)),
            // A lone word may be a part of the only array there is, but a bare number that is
            // not meant an object.
            Err(missing) => match (word.parse::<Selection>(), main(tree)) {
                (Ok(selection), Ok((node, desc))) => {
                    Ok((Chosen { node, desc, selection, part: None }, None))
                }
                (Ok(_), Err(which)) if word.parse::<u64>().is_err() => Err(which),
                _ => Err(missing),
            },
        },
        (Some(word), Some(second)) => {
            let first = named(tree, word)?;
            match second.parse::<Selection>() {
                Ok(selection) => Ok((Chosen { selection, ..first }, None)),
                // Nobody calls an array like this; it is a selection with a slip.
                Err(slip) if second.contains([':', ',']) && named(tree, second).is_err() => {
                    Err(slip)
                }
                Err(_) => Ok((first, Some(named(tree, second)?))),
            }
        }
    }
}

/// The array that `word` names, as `NAME` or `NAME[SELECTION]`.
pub(super) fn named<'a>(tree: &'a Tree, word: &str) -> Result<Chosen<'a>> {
    let Err(missing) = tree.find(word) else {
        let (node, desc, selection) = cat::choose(tree, Some(word), None)?;
        return Ok(Chosen { node, desc, selection, part: None });
    };
    let part = word.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
    let (name, part) = part.ok_or(missing)?;
    tree.find(name)?;
    let (node, desc, selection) = cat::choose(tree, Some(name), Some(part))?;
    Ok(Chosen { node, desc, selection, part: Some(part.to_string()) })
}

fn whole<'a>((node, desc): (&'a Node, &'a ArrayDesc)) -> Chosen<'a> {
    Chosen { node, desc, selection: Selection::all(), part: None }
}

/// The array that a file is about: the only one, or the only one of several dimensions.
fn main(tree: &Tree) -> Result<(&Node, &ArrayDesc)> {
    cat::only(tree).or_else(|unclear| {
        let mut arrays = tree.arrays().filter(|(_, _, desc)| desc.shape.rank() > 1);
        match (arrays.next(), arrays.next()) {
            (Some((_, node, desc)), None) => Ok((node, desc)),
            _ => Err(unclear),
        }
    })
}

/// What the file calls a column of its table.
pub(super) fn column(chosen: &Chosen<'_>, at: &[String]) -> Option<String> {
    let [number] = at else { return None };
    let names = match chosen.node.attrs.get("columns") {
        Some(Value::List(names)) if chosen.desc.is_table() => names,
        _ => return None,
    };
    Some(names.get(number.parse::<usize>().ok()?)?.to_string())
}

/// The unit of an array; empty where unknown.
pub(super) fn unit(node: &Node) -> String {
    attribute(node, "units")
}

/// The text of an attribute; empty where there is none.
pub(super) fn attribute(node: &Node, name: &str) -> String {
    node.attrs.get_str(name).unwrap_or_default().to_string()
}
