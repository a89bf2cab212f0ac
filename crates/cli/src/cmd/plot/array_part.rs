//! Resolves the arguments to arrays and selections.

use spile::dtype::Kind;
use spile::error::Result;
use spile::layout::ArrayDesc;
use spile::select::Selection;
use spile::semantics::Role;
use spile::tree::{Node, Tree, Value};

use super::super::cat;
use super::Job;

/// An array and a selection.
pub(super) struct ArrayPart<'a> {
    pub(super) node: &'a Node,
    pub(super) desc: &'a ArrayDesc,
    pub(super) selection: Selection,
    /// The selection as written in NAME[SELECTION].
    part: Option<String>,
}

impl ArrayPart<'_> {
    /// The last two components of the path, for example `Px/electron`, with the selection.
    pub(super) fn label(&self) -> String {
        let mut parts: Vec<&str> = self.node.path.rsplit('/').take(2).collect();
        parts.reverse();
        let part = self.part.as_ref().map_or_else(String::new, |part| format!("[{part}]"));
        parts.join("/") + &part
    }
}

/// The array to plot, and the second array if there is one.
pub(super) fn from_args<'a>(job: &Job<'a>) -> Result<(ArrayPart<'a>, Option<ArrayPart<'a>>)> {
    let tree = job.file.tree();
    match job.names.into() {
        (None, _) => Ok((all_of(main_array(tree)?), None)),
        (Some(arg), None) => match parse(tree, arg) {
            Ok(chosen) => Ok((chosen, None)),
            // A single argument may be a selection of the main array. A number that is not an id of a file
            // with several arrays is reported as a missing object.
            Err(missing) => match (arg.parse::<Selection>(), main_array(tree)) {
                (Ok(selection), Ok((node, desc))) => {
                    Ok((ArrayPart { node, desc, selection, part: None }, None))
                }
                (Ok(_), Err(ambiguous)) if arg.parse::<u64>().is_err() => Err(ambiguous),
                _ => Err(missing),
            },
        },
        (Some(first), Some(second)) => {
            let first = parse(tree, first)?;
            // A channel may be called "2".
            if tree.at(second).is_some_and(|id| tree.array(id).is_some()) {
                return Ok((first, Some(parse(tree, second)?)));
            }
            match second.parse::<Selection>() {
                Ok(selection) => Ok((ArrayPart { selection, ..first }, None)),
                // With these characters it is an invalid selection rather than a name.
                Err(invalid) if second.contains([':', ',']) && parse(tree, second).is_err() => {
                    Err(invalid)
                }
                Err(_) => Ok((first, Some(parse(tree, second)?))),
            }
        }
    }
}

/// Parses `NAME` or `NAME[SELECTION]`.
pub(super) fn parse<'a>(tree: &'a Tree, arg: &str) -> Result<ArrayPart<'a>> {
    let Err(missing) = tree.find(arg) else {
        let (node, desc, selection) = cat::resolve(tree, Some(arg), None)?;
        return Ok(ArrayPart { node, desc, selection, part: None });
    };
    let part = arg.strip_suffix(']').and_then(|rest| rest.rsplit_once('['));
    let (name, part) = part.ok_or(missing)?;
    tree.find(name)?;
    let (node, desc, selection) = cat::resolve(tree, Some(name), Some(part))?;
    Ok(ArrayPart { node, desc, selection, part: Some(part.to_string()) })
}

pub(super) fn all_of<'a>((node, desc): (&'a Node, &'a ArrayDesc)) -> ArrayPart<'a> {
    ArrayPart { node, desc, selection: Selection::all(), part: None }
}

/// The real and the imaginary part of a complex array, with its selection; `None` for other arrays.
pub(super) fn complex_parts<'a>(
    tree: &'a Tree,
    chosen: &ArrayPart<'a>,
) -> Option<[ArrayPart<'a>; 2]> {
    let part = |name: &str| {
        let id = tree.at(&format!("{}.{name}", chosen.node.path))?;
        let (node, desc) = (tree.node(id), tree.array(id)?);
        let (selection, part) = (chosen.selection.clone(), chosen.part.clone());
        Some(ArrayPart { node, desc, selection, part })
    };
    let complex = chosen.desc.dtype.kind() == Kind::Complex;
    complex.then(|| Some([part("real")?, part("imag")?])).flatten()
}

/// The only array of a file, or the only trace, or the only one with several dimensions.
fn main_array(tree: &Tree) -> Result<(&Node, &ArrayDesc)> {
    let only = |fits: fn(&ArrayDesc) -> bool| {
        let mut arrays = tree.main_arrays().filter(|(_, _, desc)| fits(desc));
        let first = arrays.next().map(|(_, node, desc)| (node, desc));
        first.filter(|_| arrays.next().is_none())
    };
    cat::only_array(tree).or_else(|ambiguous| {
        only(|desc| desc.semantics().role == Role::Trace)
            .or_else(|| only(|desc| desc.shape.rank() > 1))
            .ok_or(ambiguous)
    })
}

/// The name of a column of a table.
pub(super) fn column_name(chosen: &ArrayPart<'_>, at: &[String]) -> Option<String> {
    let [number] = at else { return None };
    let names = match chosen.node.attrs.get("columns") {
        Some(Value::List(names)) if chosen.desc.is_table() => names,
        _ => return None,
    };
    Some(names.get(number.parse::<usize>().ok()?)?.to_string())
}

/// The unit of an array; empty if unknown.
pub(super) fn unit(node: &Node) -> String {
    attribute(node, "units")
}

/// The text of an attribute; empty if missing.
pub(super) fn attribute(node: &Node, name: &str) -> String {
    node.attrs.get_str(name).unwrap_or_default().to_string()
}
