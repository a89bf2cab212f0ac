//! Links that are not the first hard link to their object.

use std::collections::{HashMap, HashSet};

use spile_core::error::Result;
use spile_core::layout::{ArrayDesc, Layout};
use spile_core::report::Severity;
use spile_core::tree::{NodeId, ROOT};

use super::Walk;
use crate::wire::attribute::Attribute;
use crate::wire::group::Target;

/// Largest number of soft links that are followed for one link, as in the HDF5 library.
const MAX_LINKS: u32 = 16;

/// Path and target of a link that is not the first hard link to its object.
pub(super) struct PendingLink {
    pub(super) parent: NodeId,
    pub(super) name: String,
    pub(super) target: Target,
}

impl Walk<'_> {
    /// Adds links to datasets as references to the same array; links to objects that cannot be read are
    /// errors, others notes.
    pub(super) fn resolve_links(&mut self) -> Result<()> {
        let pending = std::mem::take(&mut self.links);
        let mut by_path = HashMap::new();
        for (k, link) in pending.iter().enumerate() {
            let path = self.path(link.parent, &link.name);
            self.ctx.charge(path.len() as u64 + 128)?;
            by_path.insert(path, k);
        }
        let mut resolver = Resolver {
            walk: self,
            pending: &pending,
            by_path,
            resolved: vec![State::Unresolved; pending.len()],
        };
        for k in 0..pending.len() {
            resolver.link(k, 0);
        }
        let resolved = std::mem::take(&mut resolver.resolved);
        let skipped: HashSet<&str> = self.skipped.values().map(String::as_str).collect();
        let mut arrays = Vec::new();
        for (link, state) in pending.iter().zip(resolved) {
            let node = state.node().map(|id| (id, self.tree.node(id)));
            let (severity, message) = match (&link.target, node) {
                (_, Some((id, node))) => {
                    if let Some(array) = &node.array {
                        arrays.push((link, array.clone(), id));
                        continue;
                    }
                    let message = format!("link to the group \"/{}\", listed once", node.path);
                    (Severity::Note, message)
                }
                (Target::External, _) => (Severity::Error, "external link, not followed".into()),
                (Target::Hard(address), _) => match self.skipped.get(address) {
                    Some(path) => {
                        (Severity::Error, format!("link to \"/{path}\", which cannot be read"))
                    }
                    None => (Severity::Note, "link to an object that is not in the tree".into()),
                },
                (Target::Soft(path), _) if skipped.contains(path.trim_matches('/')) => {
                    (Severity::Error, format!("soft link to \"{path}\", which cannot be read"))
                }
                (Target::Soft(path), _) => {
                    (Severity::Note, format!("soft link to \"{path}\", which does not exist"))
                }
            };
            let path = self.path(link.parent, &link.name);
            self.ctx.charge((path.len() + message.len() + 256) as u64)?;
            let finding = self.report.note("hdf5-020", message).in_object(format!("\"{path}\""));
            finding.severity = severity;
        }
        let owners: HashMap<NodeId, usize> =
            self.attributes.iter().enumerate().map(|(k, (node, _))| (*node, k)).collect();
        for (link, desc, id) in arrays {
            let path = self.tree.node(link.parent).path.len() + link.name.len();
            self.ctx.charge((512 + 2 * path + 128 * desc.shape.rank()) as u64)?;
            let alias = ArrayDesc { layout: Layout::Same(id), ..desc };
            let node = self.tree.add_array(link.parent, &link.name, alias)?;
            if let Some(k) = owners.get(&id) {
                let found = &self.attributes[*k].1;
                self.ctx.charge(found.iter().map(Attribute::memory).sum())?;
                let copy = found.clone();
                self.attributes.push((node, copy));
            }
        }
        Ok(())
    }
}

/// Resolution of one link.
#[derive(Clone, Copy)]
enum State {
    Unresolved,
    /// The link is being followed: meeting it again is a cycle.
    Active,
    Node(NodeId),
    Dangling,
}

impl State {
    fn node(self) -> Option<NodeId> {
        if let Self::Node(id) = self { Some(id) } else { None }
    }
}

/// Follows links that are not in the tree yet; each is resolved once.
struct Resolver<'a, 'b> {
    walk: &'a Walk<'b>,
    pending: &'a [PendingLink],
    by_path: HashMap<String, usize>,
    resolved: Vec<State>,
}

impl Resolver<'_, '_> {
    fn link(&mut self, k: usize, depth: u32) -> Option<NodeId> {
        if !matches!(self.resolved[k], State::Unresolved) || depth > MAX_LINKS {
            return self.resolved[k].node();
        }
        self.resolved[k] = State::Active;
        let (walk, pending) = (self.walk, self.pending);
        let PendingLink { parent, target, .. } = &pending[k];
        let found = match target {
            Target::Hard(address) => walk.nodes.get(address).copied(),
            Target::Soft(path) => self.soft(*parent, path, depth),
            Target::External => None,
        };
        self.resolved[k] = found.map_or(State::Dangling, State::Node);
        found
    }

    /// The object at the path of a soft link in the group `parent`.
    fn soft(&mut self, parent: NodeId, path: &str, depth: u32) -> Option<NodeId> {
        let mut at = if path.starts_with('/') { ROOT } else { parent };
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            at = if let Some(child) = self.walk.tree.child(at, part) {
                child
            } else {
                let link = *self.by_path.get(&self.walk.path(at, part))?;
                self.link(link, depth + 1)?
            };
        }
        Some(at)
    }
}
