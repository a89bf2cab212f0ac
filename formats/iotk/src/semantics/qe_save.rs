//! The folder `prefix.save` of Quantum ESPRESSO as one dataset: `data-file.xml`, and where it has
//! links, what they lead to. A link stands for the root of another file; it is followed inside the
//! folder only and each file once, so links in a circle do no harm.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use spile_core::error::{Error, ErrorKind, Result};
use spile_core::format::{Dataset, Folder, Reader};
use spile_core::layout::Coord;
use spile_core::limits::Limits;
use spile_core::report::Report;
use spile_core::source::Source;
use spile_core::tree::{NodeId, ROOT, Tree, Value};

use crate::read::File;
use crate::semantics;

/// The file that has all others.
const MAIN: &str = "data-file.xml";

/// What a node of a tree may take.
const NODE_BYTES: u64 = 1_000;

/// A folder `prefix.save`.
pub struct Save;

/// A file that belongs to it.
struct Member {
    path: PathBuf,
    /// As seen from the folder.
    name: String,
    len: u64,
    tree: Tree,
    summary: Vec<(String, Value)>,
    /// The link that leads here: a file, and a node of its tree.
    from: Option<(usize, NodeId)>,
}

impl Save {
    /// Opens a folder, unless it is no such folder.
    pub fn open(folder: &Folder, limits: &Limits) -> Result<Option<Dataset>> {
        let main = folder.path().join(MAIN);
        if !main.is_file() {
            return Ok(None);
        }
        let mut report = Report::default();
        let mut members = Members::new(folder.path(), limits)?;
        members.add(&main, None, &mut report).map_err(|e| e.with_path(&main))?;
        // Copies of the pseudopotentials; nothing has a link to them.
        for path in folder.with_extension("upf") {
            members.try_add(&path, None, &mut report)?;
        }
        let mut next = 0;
        while let Some(links) = members.links.get_mut(next).map(std::mem::take) {
            for (node, path) in links {
                members.try_add(&path, Some((next, node)), &mut report)?;
            }
            next += 1;
        }
        let members = members.all;
        let paths: Vec<PathBuf> = members.iter().map(|member| member.path.clone()).collect();
        let source = Source::joined(folder.path(), &paths)?;
        let tree = join(&members, &source, limits)?;
        let summary = summary(&members);
        Ok(Some(Dataset { source, tree, summary, findings: report.findings }))
    }
}

/// The files that were found so far.
struct Members<'a> {
    folder: PathBuf,
    limits: &'a Limits,
    all: Vec<Member>,
    /// Where the links of each file lead.
    links: Vec<Vec<(NodeId, PathBuf)>>,
    seen: HashSet<PathBuf>,
    nodes: u64,
}

impl<'a> Members<'a> {
    fn new(folder: &Path, limits: &'a Limits) -> Result<Self> {
        let folder = folder.canonicalize().map_err(|e| Error::io(folder, e))?;
        let (all, links, seen) = (Vec::new(), Vec::new(), HashSet::new());
        Ok(Self { folder, limits, all, links, seen, nodes: 0 })
    }

    /// Adds a file that may be damaged: the others are none the worse for it.
    fn try_add(
        &mut self,
        path: &Path,
        from: Option<(usize, NodeId)>,
        report: &mut Report,
    ) -> Result<()> {
        match self.add(path, from, report) {
            Err(error) if error.kind() == ErrorKind::Limit => Err(error.with_path(path)),
            Err(error) => {
                let message = format!("left out: {}", error.message());
                let told = report.error("iotk-039", message).in_object(self.name(path));
                if let Some(at) = error.offset() {
                    told.at(at);
                }
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    fn add(
        &mut self,
        path: &Path,
        from: Option<(usize, NodeId)>,
        report: &mut Report,
    ) -> Result<()> {
        let path = path.canonicalize().map_err(|e| Error::io(path, e))?;
        if !self.seen.insert(path.clone()) {
            return Ok(());
        }
        let name = self.name(&path);
        let file = File::open(&path, self.limits)?;
        let mut links = Vec::new();
        for (element, node) in file.links() {
            let element = &file.index().elements()[*element];
            // What is no IOTK file has no tree.
            if element.tag.get_bool("iotk_raw") == Some(true) {
                continue;
            }
            match file.link_target(element, &self.folder) {
                Ok(target) => links.extend(target.map(|target| (*node, target))),
                Err(error) => {
                    let message = format!("not followed: {}", error.message());
                    let link = element.link().unwrap_or_default();
                    let object = format!("link \"{link}\" in {name}");
                    report.warn(error.code(), message).in_object(object).at(element.offset);
                }
            }
        }
        let (len, summary, tree) =
            (file.source().len(), semantics::summary(&file), file.into_tree());
        self.nodes += tree.len() as u64;
        let needed = self.nodes.saturating_mul(NODE_BYTES);
        self.limits.allow(needed, "the trees of the linked files")?;
        self.all.push(Member { path, name, len, tree, summary, from });
        self.links.push(links);
        Ok(())
    }

    /// The path of a file as seen from the folder.
    fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// One tree of all.
fn join(members: &[Member], source: &Source, limits: &Limits) -> Result<Tree> {
    let mut tree = Tree::new(limits);
    let mut places: Vec<HashMap<NodeId, NodeId>> = Vec::new();
    for (k, member) in members.iter().enumerate() {
        let start = source.parts()[k].start();
        let end = source.parts().get(k + 1).map_or(source.len(), spile_core::source::Part::start);
        if end - start != member.len {
            let message = "the file was changed while it was read";
            return Err(Error::malformed("iotk-039", message).with_path(&member.path));
        }
        let link = member.from.and_then(|(file, node)| places[file].get(&node).copied());
        let place = match (link, k) {
            (Some(node), _) => node,
            (None, 0) => ROOT,
            (None, _) => tree.add_group(ROOT, &member.name)?,
        };
        places.push(graft(&mut tree, place, link.is_some(), &member.tree, start)?);
    }
    semantics::add_bands(&mut tree, limits)?;
    Ok(tree)
}

/// Puts a tree below `place`. A link stands for the root of the other file, if it has one.
fn graft(
    tree: &mut Tree,
    place: NodeId,
    link: bool,
    other: &Tree,
    start: u64,
) -> Result<HashMap<NodeId, NodeId>> {
    let mut places = HashMap::from([(ROOT, place)]);
    let mut roots = other.iter().filter(|(_, node)| node.parent == ROOT);
    let only = roots.next().filter(|(_, node)| link && node.array.is_none());
    if let Some((root, node)) = only.filter(|_| roots.next().is_none()) {
        places.insert(root, place);
        tree.node_mut(place).attrs.extend(node.attrs.iter().cloned());
        // It has led here, and must not lead anywhere again.
        for (name, _) in &mut tree.node_mut(place).attrs {
            if name == "iotk_link" {
                *name = "linked_file".to_string();
            }
        }
    } else {
        tree.node_mut(place).attrs.extend(other.attrs().iter().cloned());
    }
    for (id, node) in other.iter() {
        if places.contains_key(&id) {
            continue;
        }
        let parent = places[&node.parent];
        let new = match &node.array {
            None => tree.add_group(parent, &node.name)?,
            Some(desc) => {
                let mut desc = desc.clone();
                desc.layout = desc.layout.shifted(start)?;
                for coord in &mut desc.coords {
                    if let Coord::Node(other) = coord {
                        *coord = places.get(other).map_or(Coord::None, |id| Coord::Node(*id));
                    }
                }
                tree.add_array(parent, &node.name, desc)?
            }
        };
        tree.node_mut(new).attrs.clone_from(&node.attrs);
        places.insert(id, new);
    }
    Ok(places)
}

/// What the folder has, file by file; files of the same name in many folders are told together.
fn summary(members: &[Member]) -> Vec<(String, Value)> {
    let holds = |member: &Member| {
        let row = member.summary.iter().find(|(what, _)| what == "holds");
        row.map_or_else(|| "other data".to_string(), |(_, text)| text.to_string())
    };
    let mut rows = vec![("holds".to_string(), Value::from("a calculation of Quantum ESPRESSO"))];
    rows.extend(members[0].summary.iter().filter(|(what, _)| what != "holds").cloned());
    rows.push(("files".into(), (members.len() as u64).into()));
    let mut alike: BTreeMap<&str, Vec<&Member>> = BTreeMap::new();
    for member in &members[1..] {
        let last = member.name.rsplit('/').next().unwrap_or(&member.name);
        alike.entry(last).or_default().push(member);
    }
    for (name, group) in alike {
        match &group[..] {
            [one] => rows.push((one.name.clone(), holds(one).into())),
            [first, .., last] => {
                let text = format!(
                    "in {} folders, {} to {}: {}",
                    group.len(),
                    first.name.strip_suffix(name).unwrap_or_default().trim_end_matches('/'),
                    last.name.strip_suffix(name).unwrap_or_default().trim_end_matches('/'),
                    // That of the first is not that of all.
                    holds(first).split(", k-point").next().unwrap_or_default(),
                );
                rows.push((name.to_string(), text.into()));
            }
            [] => {}
        }
    }
    rows
}
