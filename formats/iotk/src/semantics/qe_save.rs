//! The folder `prefix.save` of Quantum ESPRESSO as one dataset: `data-file.xml` and the files that it
//! links to. A link is replaced by the root of the linked file. Links are followed inside the folder
//! only and each file once, so cycles of links end; a further link is reported.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use spile_core::format::{Folder, FolderFormat};
use spile_core::limits::Budget;
use spile_core::source::Part;
use spile_core::{
    Attrs, Error, ErrorKind, Limits, NodeId, OpenOptions, Parsed, ROOT, Report, Result, Source,
    Tree,
};

use crate::read::{File, inside};
use crate::save::earlier::{self, Facts};
use crate::to_tree::{COMMENTS, FileTree, to_tree};
use crate::{Iotk, plane_waves, save, semantics};

/// The file that links to all others, up to version 6.1, and the description since then.
const MAIN: [&str; 2] = ["data-file.xml", "data-file-schema.xml"];

/// Endings of files with densities: records or text.
const MAGNETIZATION_ENDINGS: [&str; 2] = [".dat", ".xml"];

/// Upper bound of the memory of a node.
const NODE_BYTES: u64 = 1_000;

/// A file of the folder.
struct Member {
    path: PathBuf,
    /// Path relative to the folder.
    name: String,
    len: u64,
    built: FileTree,
    summary: Attrs,
    /// The link to this file: the index of the linking file, and a node of its tree.
    from: Option<(usize, NodeId)>,
}

impl FolderFormat for Iotk {
    /// Opens `folder`, or returns `None` if it has no main file. Linked files that cannot be read are
    /// reported as warnings.
    fn open_folder(&self, folder: &Folder, options: &OpenOptions) -> Result<Option<Parsed>> {
        let mut candidates = MAIN.iter().map(|name| folder.path().join(name));
        let Some(main) = candidates.find(|path| path.is_file()) else { return Ok(None) };
        let mut report = Report::default();
        let mut members = Members::new(folder.path(), &options.limits)?;
        members.add(&main, None, &mut report).map_err(|e| e.with_path(&main))?;
        // Copies of the pseudopotentials, which no file links to.
        for path in folder.with_extension("upf") {
            if let Err(error) = inside(&path, &members.folder) {
                let message = format!("the symbolic link is not followed: {}", error.message());
                report.warn(error.code(), message).in_object(members.name(&path)).at(0);
                continue;
            }
            members.try_add(&path, None, &mut report)?;
        }
        let mut next = 0;
        while let Some(links) = members.links.get_mut(next).map(std::mem::take) {
            for (node, path) in links {
                members.try_add(&path, Some((next, node)), &mut report)?;
            }
            next += 1;
        }
        let current = members.all[0].built.tree.child(ROOT, save::ROOT_NAME).is_some();
        if !current {
            members.add_unlinked(&mut report)?;
        }
        let waves = if current {
            plane_waves::folder::report_others(folder, &main, &mut report);
            plane_waves::folder::open(folder, &members.folder, options, &mut report)?
        } else {
            Vec::new()
        };
        let members = members.all;
        let paths = members.iter().map(|member| member.path.clone());
        let paths: Vec<PathBuf> = paths.chain(waves.iter().map(|wave| wave.path.clone())).collect();
        let source = Source::joined(folder.path(), &paths)?;
        let mut tree = join(&members, &source, &options.limits, &mut report)?;
        let mut rows = summary(&members, waves.len());
        rows.extend(plane_waves::folder::summary(&waves));
        if current {
            let places: Vec<(u64, u64)> = (members.len()..paths.len())
                .map(|k| {
                    let next = source.parts().get(k + 1).map_or(source.len(), Part::start);
                    (source.parts()[k].start(), next)
                })
                .collect();
            save::add_plane_waves(&mut tree, waves, &places, &mut report)?;
            save::report_missing(&tree, &source, folder, &mut report)?;
        } else {
            let has = |stem: &str| {
                tree.iter().any(|(_, node)| {
                    node.parent == ROOT
                        && MAGNETIZATION_ENDINGS
                            .iter()
                            .any(|end| node.name == format!("{stem}{end}"))
                })
            };
            earlier::report_missing(&tree, &source, has, &mut report);
        }
        let parsed = Parsed::new(source, tree).with_summary(rows);
        Ok(Some(parsed.with_warnings(report.findings)))
    }
}

/// The files found so far.
struct Members<'a> {
    folder: PathBuf,
    limits: &'a Limits,
    budget: Budget,
    all: Vec<Member>,
    /// Targets of the links of each file.
    links: Vec<Vec<(NodeId, PathBuf)>>,
    seen: HashSet<PathBuf>,
}

impl<'a> Members<'a> {
    fn new(folder: &Path, limits: &'a Limits) -> Result<Self> {
        let folder = folder.canonicalize().map_err(|e| Error::io(folder, e))?;
        let (all, links, seen) = (Vec::new(), Vec::new(), HashSet::new());
        Ok(Self { folder, limits, budget: Budget::new(limits), all, links, seen })
    }

    /// Adds the files of a run up to version 6.1 that no file links to: magnetization densities, and eigenvalues.
    fn add_unlinked(&mut self, report: &mut Report) -> Result<()> {
        let endings = MAGNETIZATION_ENDINGS.iter();
        let names =
            endings.flat_map(|end| earlier::MAGNETIZATION.map(|(stem, _)| format!("{stem}{end}")));
        let names: Vec<String> = names.chain([earlier::EIGENVALUES.to_string()]).collect();
        let paths: Vec<PathBuf> = names.iter().map(|name| self.folder.join(name)).collect();
        for path in paths {
            let real = path.canonicalize().ok().filter(|real| real.is_file());
            if real.is_none_or(|real| self.seen.contains(&real)) {
                continue;
            }
            if let Err(error) = inside(&path, &self.folder) {
                let message = format!("the symbolic link is not followed: {}", error.message());
                report.warn(error.code(), message).in_object(self.name(&path)).at(0);
                continue;
            }
            self.try_add(&path, None, report)?;
        }
        Ok(())
    }

    /// Adds a file. A file that cannot be read is reported.
    fn try_add(
        &mut self,
        path: &Path,
        from: Option<(usize, NodeId)>,
        report: &mut Report,
    ) -> Result<()> {
        match self.add(path, from, report) {
            Err(error) if error.kind() == ErrorKind::Limit => Err(error.with_path(path)),
            Err(error) => {
                let message = format!("cannot read the file: {}", error.message());
                let finding = report.error("iotk-039", message).in_object(self.name(path));
                if let Some(at) = error.offset() {
                    finding.at(at);
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
        let name = self.name(&path);
        if !self.seen.insert(path.clone()) {
            let message = "the link is not followed: the file is shown at its first link";
            let link = from.map(|(file, node)| {
                let member = &self.all[file];
                format!("link {} in {}", member.built.tree.node(node).path, member.name)
            });
            report.warn("iotk-048", message).in_object(link.unwrap_or(name)).at(0);
            return Ok(());
        }
        let file = File::open(&path, self.limits)?;
        let mut links = Vec::new();
        let built = to_tree(&file)?;
        for (element, node) in file.index().elements().iter().zip(&built.nodes) {
            // The target of a raw link is not an IOTK file.
            if element.tag.get_bool("iotk_raw") == Some(true) {
                continue;
            }
            match file.link_target(element, &self.folder) {
                Ok(target) => links.extend(target.map(|target| (*node, target))),
                Err(error) => {
                    let message = format!("the link is not followed: {}", error.message());
                    let link = element.link().unwrap_or_default();
                    let object = format!("link \"{link}\" in {name}");
                    report.warn(error.code(), message).in_object(object).at(element.offset);
                }
            }
        }
        let needed = (built.tree.len() as u64).saturating_mul(NODE_BYTES);
        self.budget.charge(needed, "the trees of the linked files")?;
        let mut found = file.index().report.clone();
        semantics::report_incomplete(&file, &mut found);
        for mut finding in found.findings {
            finding.in_object(name.clone());
            report.findings.push(finding);
        }
        let (len, summary) = (file.source().len(), semantics::summary(&file, &built.tree));
        self.all.push(Member { path, name, len, built, summary, from });
        self.links.push(links);
        Ok(())
    }

    /// The path of a file relative to the folder.
    fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.folder).unwrap_or(path).to_string_lossy().into_owned()
    }
}

/// Joins the trees of all files and adds their meaning.
fn join(members: &[Member], source: &Source, limits: &Limits, report: &mut Report) -> Result<Tree> {
    let mut tree = Tree::new(limits);
    let mut mappings: Vec<HashMap<NodeId, NodeId>> = Vec::new();
    for (k, member) in members.iter().enumerate() {
        let start = source.parts()[k].start();
        let end = source.parts().get(k + 1).map_or(source.len(), Part::start);
        if end - start != member.len {
            let message = "the file changed while it was read";
            return Err(Error::malformed("iotk-020", message).with_path(&member.path));
        }
        let link = member.from.and_then(|(file, node)| mappings[file].get(&node).copied());
        let target = match (link, k) {
            (Some(node), _) => node,
            (None, 0) => ROOT,
            (None, _) => tree.add_group(ROOT, &member.name)?,
        };
        let mapping = graft(&mut tree, target, link.is_some(), &member.built.tree, start)?;
        member.built.report(|node| tree.node(mapping[&node]).path.clone(), report);
        mappings.push(mapping);
    }
    let spins = save::spin_bands(&tree, source);
    let facts = Facts::read(&mut tree, source)?;
    semantics::add(&mut tree, spins, facts.as_ref(), report)?;
    Ok(tree)
}

/// Adds the nodes of `other` below `target` and returns the new id of each. If `target` is a link and
/// `other` has one root, the root is merged into `target`.
fn graft(
    tree: &mut Tree,
    target: NodeId,
    link: bool,
    other: &Tree,
    start: u64,
) -> Result<HashMap<NodeId, NodeId>> {
    let mut mapping = HashMap::from([(ROOT, target)]);
    let mut roots = other.iter().filter(|(_, node)| node.parent == ROOT);
    let only = roots.next().filter(|(_, node)| link && node.array.is_none());
    if let Some((root, node)) = only.filter(|_| roots.next().is_none()) {
        mapping.insert(root, target);
        let own = std::mem::take(&mut tree.node_mut(target).attrs);
        // The comment of a link describes the link, which is resolved.
        let own = own.into_iter().filter(|(name, _)| name != COMMENTS);
        let all = own.chain(node.attrs.clone()).map(|(name, value)| {
            (if name == "iotk_link" { "linked_file".into() } else { name }, value)
        });
        tree.set_attrs(target, all.collect())?;
    } else {
        for (name, value) in other.attrs() {
            tree.push_attr(target, name, value.clone())?;
        }
    }
    for (id, node) in other.iter() {
        if mapping.contains_key(&id) {
            continue;
        }
        let parent = mapping[&node.parent];
        let new = match &node.array {
            None => tree.add_group(parent, &node.name)?,
            Some(desc) => {
                let mut desc = desc.clone();
                desc.layout = desc.layout.shifted(start)?;
                tree.add_array(parent, &node.name, desc)?
            }
        };
        tree.set_attrs(new, node.attrs.clone())?;
        mapping.insert(id, new);
    }
    Ok(mapping)
}

/// Summary rows of the files and of `others`, one per file; files of the same name in several folders share a row.
fn summary(members: &[Member], others: usize) -> Attrs {
    let content =
        |member: &Member| member.summary.get_str("holds").unwrap_or("other data").to_string();
    let mut rows = Attrs::from([("holds", "a calculation of Quantum ESPRESSO".into())]);
    rows.extend(members[0].summary.clone().into_iter().filter(|(what, _)| what != "holds"));
    rows.push("files", (members.len() + others) as u64);
    let mut by_name: BTreeMap<&str, Vec<&Member>> = BTreeMap::new();
    for member in &members[1..] {
        let last = member.name.rsplit('/').next().unwrap_or(&member.name);
        by_name.entry(last).or_default().push(member);
    }
    for (name, group) in by_name {
        match &group[..] {
            [one] => rows.push(&*one.name, content(one)),
            [first, .., last] => {
                let text = format!(
                    "in {} folders, {} to {}: {}",
                    group.len(),
                    first.name.strip_suffix(name).unwrap_or_default().trim_end_matches('/'),
                    last.name.strip_suffix(name).unwrap_or_default().trim_end_matches('/'),
                    // The k-point is that of the first file only.
                    content(first).split(", k-point").next().unwrap_or_default(),
                );
                rows.push(name, text);
            }
            [] => {}
        }
    }
    rows
}
