//! Files that consist of other files, as one tree: multiblock files (`.vtm`), whose blocks are groups, and parallel
//! files (`.pvtu`, `.pvti`, ...), whose pieces are groups.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use spile_core::error::{ErrorKind, Result};
use spile_core::format::{OpenOptions, Parsed};
use spile_core::layout::{Coord, Extent};
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree};

use crate::collection;
use crate::multiblock::{self, GENERATED};
use crate::to_tree::{self, Contents, Naming};
use crate::xml::{Document, Element};

/// Whether a file of this type consists of other files, and its tree of theirs.
pub(crate) fn is_joined(kind: &str) -> bool {
    is_blocks(kind) || is_parallel(kind)
}

fn is_blocks(kind: &str) -> bool {
    matches!(kind, "vtkMultiBlockDataSet" | "vtkMultiPieceDataSet")
}

fn is_parallel(kind: &str) -> bool {
    kind.strip_prefix('P').is_some_and(|rest| to_tree::KINDS.contains(&rest))
}

/// Names and paths of the files that a file refers to.
fn files(path: &Path, root: &Element) -> Result<Vec<(String, PathBuf)>> {
    let kind = root.attr("type").unwrap_or_default();
    if is_blocks(kind) {
        return multiblock::files(path, root);
    }
    let list = root.child(kind).ok_or_else(|| root.malformed(format!("no element {kind}")))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let pieces = list.children.iter().filter(|child| child.name == "Piece");
    let one = |(k, piece): (usize, &Element)| {
        let file = collection::below(folder, piece.attr("Source").unwrap_or_default(), piece)?;
        Ok((format!("Piece{k}"), file))
    };
    pieces.enumerate().map(one).collect()
}

/// Paths of the existing files that the file at `path` refers to, in the order of its joined source; none if it
/// refers to none or cannot be read.
pub(crate) fn parts(path: &Path, options: &OpenOptions) -> Vec<PathBuf> {
    read_parts(path, options).unwrap_or_default()
}

/// Paths of the existing files that the file at `path` refers to, in the order of its joined source. Fails if it cannot
/// be read.
pub(crate) fn read_parts(path: &Path, options: &OpenOptions) -> Result<Vec<PathBuf>> {
    let refers = ["vtm", "pvd", "pvtu", "pvti", "pvtr", "pvts", "pvtp"];
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
    if !refers.contains(&ending.as_str()) {
        return Ok(Vec::new());
    }
    let source = Source::open(path)?;
    let document = to_tree::read_document(&source, &options.limits)?;
    if document.is_collection() {
        return Ok(collection::parts(&source, &document.root));
    }
    let files = files(path, &document.root).unwrap_or_default();
    Ok(files.into_iter().map(|(_, path)| path).filter(|path| path.is_file()).collect())
}

/// Reports missing files.
pub(crate) fn missing(path: &Path, root: &Element, report: &mut Report) -> Result<()> {
    for (_, file) in files(path, root)?.iter().filter(|(_, file)| !file.is_file()) {
        let name = file.display().to_string();
        report.error("vtk-012", "file of the collection does not exist").in_object(name);
    }
    Ok(())
}

/// Opens a file that consists of other files. Files that cannot be read are reported.
pub(crate) fn open(source: &Source, document: Document, limits: &Limits) -> Result<Parsed> {
    let root = &document.root;
    let kind = root.attr("type").unwrap_or_default().to_string();
    let path = source.path().ok_or_else(|| {
        root.unsupported("a file of several files in memory has no folder with its files")
    })?;
    let mut report = Report::default();
    missing(path, root, &mut report)?;
    let files: Vec<(String, PathBuf)> =
        files(path, root)?.into_iter().filter(|(_, file)| file.is_file()).collect();
    limits.allow(files.len() as u64 * 512, "the list of files")?;
    let paths = [path.to_path_buf()].into_iter().chain(files.iter().map(|(_, file)| file.clone()));
    let joined = Source::joined(path, &paths.collect::<Vec<_>>())?;
    // The paths of arrays are unique only in a file that was written with its blocks.
    let ours = document.comment.is_some();
    let mut tree = Tree::new(limits);
    let mut stored = Vec::new();
    let fields = to_tree::field_data(source, &document, limits)?;
    report.findings.extend(fields.report.findings);
    merge(&mut tree, &fields.tree, 0)?;
    stored.extend(fields.stored);
    for ((name, file), part) in files.iter().zip(joined.parts().iter().skip(1)) {
        let prefix = if ours { format!("{GENERATED}/{name}") } else { name.clone() };
        let naming = Naming { prefix, with_paths: ours };
        let opened = Source::open(file).and_then(|source| {
            let document = to_tree::read_document(&source, limits)?;
            let nested = document.root.attr("type").is_some_and(is_joined);
            if nested || document.is_collection() {
                return Err(document.root.unsupported("nested collections are not supported"));
            }
            to_tree::contents(&source, document, limits, naming)
        });
        match opened {
            Ok(Contents { tree: own, stored: arrays, report: findings, .. }) => {
                let start = part.start();
                merge(&mut tree, &own, start)?;
                report.findings.extend(findings.findings);
                for (extent, mut object) in arrays {
                    object.array.layout = object.array.layout.shifted(start)?;
                    let offset = extent.offset.saturating_add(start);
                    stored.push((Extent { offset, ..extent }, object));
                }
            }
            Err(error) if error.kind() == ErrorKind::Limit => return Err(error.with_path(file)),
            Err(error) => report.absorb(error.in_object(format!("\"{name}\"")))?,
        }
    }
    let summary = Attrs::from([
        ("kind", kind.into()),
        ("version", root.attr("version").unwrap_or_default().into()),
        ("files", (files.len() as u64).into()),
        ("arrays", (stored.len() as u64).into()),
    ]);
    let parsed = Parsed::new(joined, tree).with_summary(summary);
    let parsed = parsed.with_metadata(to_tree::stored_metadata(document.comment));
    Ok(parsed.with_warnings(report.findings).with_native(to_tree::Arrays::new(stored)))
}

/// Adds the nodes of `own`, whose bytes begin at `start` of the joined source. Of arrays with the same path the
/// first is kept: blocks share coordinates.
fn merge(tree: &mut Tree, own: &Tree, start: u64) -> Result<()> {
    let mut ids: HashMap<NodeId, NodeId> = HashMap::from([(ROOT, ROOT)]);
    let mut added = Vec::new();
    for (name, value) in own.attrs().iter() {
        if !tree.attrs().contains(name) {
            tree.push_attr(ROOT, name, value.clone())?;
        }
    }
    for (id, node) in own.iter().filter(|(id, _)| *id != ROOT) {
        let Some(parent) = ids.get(&node.parent).copied() else { continue };
        let known = tree.child(parent, &node.name);
        let new = match (known, &node.array) {
            (Some(known), None) => known,
            (Some(known), Some(_)) if tree.node(known).array.is_some() => known,
            (known, Some(desc)) => {
                let mut desc = desc.clone();
                desc.layout = desc.layout.shifted(start)?;
                let id = match known {
                    Some(known) => {
                        tree.node_mut(known).array = Some(desc);
                        known
                    }
                    None => tree.add_array(parent, &node.name, desc)?,
                };
                added.push(id);
                id
            }
            (None, None) => tree.add_group(parent, &node.name)?,
        };
        for (name, value) in node.attrs.iter() {
            if !tree.node(new).attrs.contains(name) {
                tree.push_attr(new, name, value.clone())?;
            }
        }
        ids.insert(id, new);
    }
    for id in added {
        let Some(desc) = &mut tree.node_mut(id).array else { continue };
        for coord in &mut desc.coords {
            if let Coord::Node(node) = coord {
                *coord = ids.get(node).map_or(Coord::None, |id| Coord::Node(*id));
            }
        }
        if let Some(meaning) = &mut desc.meaning {
            meaning.mesh = meaning.mesh.and_then(|mesh| ids.get(&mesh).copied());
        }
    }
    Ok(())
}
