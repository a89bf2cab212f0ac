//! The contents of a file: groups, arrays and attributes, stored flat and found by path.

mod attrs;
mod value;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::limits::Budget;
use crate::report::Severity;
use crate::{ArrayDesc, Coord, Error, Finding, FrameAxis, Hint, Layout, Limits, Result};

pub use attrs::{Attrs, Iter as AttrsIter};
pub use value::Value;

/// Largest number of dimensions of an array, that of NetCDF. A file can declare many more in a few bytes, and each takes
/// a name, a coordinate and a stride.
const MAX_RANK: usize = 1024;

/// Identifies a node within its tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    /// Number of the node: 0 is the root, the others follow in file order.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The root group.
pub const ROOT: NodeId = NodeId(0);

/// A group or an array.
#[derive(Clone, Debug)]
pub struct Node {
    /// Last part of the path, made unique among its siblings.
    pub name: String,
    /// The full path, without a leading slash; empty for the root.
    pub path: String,
    /// The group it is in; the root is in itself.
    pub parent: NodeId,
    /// The native identifier of the format, where that differs from the name.
    pub id: Option<String>,
    /// Set for arrays.
    pub array: Option<ArrayDesc>,
    /// Attributes.
    pub attrs: Attrs,
}

/// All nodes of a file. A clone shares the nodes until they are changed.
#[derive(Clone)]
pub struct Tree {
    nodes: Vec<Arc<Node>>,
    /// Nodes by the hash of their paths; the paths themselves are in the nodes.
    paths: HashTable<NodeId>,
    hasher: DefaultHashBuilder,
    /// The last number given to repeated names of a path, so that a million of them stay linear.
    namesakes: HashMap<String, u64>,
    frames: Option<Arc<dyn FrameAxis>>,
    /// Objects that are not in the tree because they cannot be read, by path, and the reason.
    unreadable: HashMap<String, Finding>,
    budget: Budget,
}

impl Tree {
    /// A tree with an empty root.
    pub fn new(limits: &Limits) -> Self {
        let root = Node {
            name: String::new(),
            path: String::new(),
            parent: ROOT,
            id: None,
            array: None,
            attrs: Attrs::new(),
        };
        Self {
            nodes: vec![Arc::new(root)],
            paths: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            namesakes: HashMap::new(),
            frames: None,
            unreadable: HashMap::new(),
            budget: Budget::new(limits),
        }
    }

    /// The limits that it was made with.
    pub fn limits(&self) -> &Limits {
        self.budget.limits()
    }

    /// Charges memory that is kept beside the nodes, before it is allocated: tables of frames, sizes or
    /// chunks. Fails with a `Limit` error that names `what`.
    pub fn charge(&mut self, bytes: u64, what: &str) -> Result<()> {
        self.budget.charge(bytes, what)
    }

    /// Bytes charged so far.
    pub(crate) fn charged(&self) -> u64 {
        self.budget.used()
    }

    /// Sets the attributes of a node and charges their memory.
    pub fn set_attrs(&mut self, id: NodeId, attrs: Attrs) -> Result<()> {
        self.budget.charge(attrs.memory(), "attributes")?;
        self.node_mut(id).attrs = attrs;
        Ok(())
    }

    /// Appends an attribute to a node and charges its memory.
    pub fn push_attr(&mut self, id: NodeId, name: &str, value: impl Into<Value>) -> Result<()> {
        let value = value.into();
        self.budget.charge(Attrs::cost(name, &value), "attributes")?;
        self.node_mut(id).attrs.push(name, value);
        Ok(())
    }

    /// Reserves memory for that many more nodes.
    pub fn reserve(&mut self, nodes: usize) {
        self.nodes.reserve(nodes);
        let (all, hasher) = (&self.nodes, &self.hasher);
        self.paths.reserve(nodes, |id| hasher.hash_one(all[id.0 as usize].path.as_str()));
    }

    /// The node with exactly this path.
    pub fn at(&self, path: &str) -> Option<NodeId> {
        if path.is_empty() {
            return Some(ROOT);
        }
        let hash = self.hasher.hash_one(path);
        self.paths.find(hash, |id| self.node(*id).path == path).copied()
    }

    /// Adds a group to `parent`.
    pub fn add_group(&mut self, parent: NodeId, name: &str) -> Result<NodeId> {
        self.add(parent, name, None)
    }

    /// Adds an array to `parent`.
    pub fn add_array(&mut self, parent: NodeId, name: &str, array: ArrayDesc) -> Result<NodeId> {
        self.add(parent, name, Some(array))
    }

    /// The group at `path`, created with its parents where missing. A part of the path that is already
    /// an array gets a group beside it (`name~2`).
    pub fn group_at(&mut self, path: &str) -> Result<NodeId> {
        self.path_at(path, |node| node.array.is_none())
    }

    /// The node at `path`, created as a group with its parents where missing. Unlike in
    /// [`Tree::group_at`], an array of the path becomes the parent.
    pub fn node_at(&mut self, path: &str) -> Result<NodeId> {
        self.path_at(path, |_| true)
    }

    /// The node at `path`; parts that are missing, or for which `fits` is false, are created as groups.
    fn path_at(&mut self, path: &str, fits: impl Fn(&Node) -> bool) -> Result<NodeId> {
        let mut at = ROOT;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            at = match self.child(at, part).filter(|id| fits(self.node(*id))) {
                Some(id) => id,
                None => self.add_group(at, part)?,
            };
        }
        Ok(at)
    }

    fn add(&mut self, parent: NodeId, name: &str, array: Option<ArrayDesc>) -> Result<NodeId> {
        if self.nodes.len() as u64 >= self.limits().nodes.min(u64::from(u32::MAX)) {
            return Err(Error::limit(format!("more than {} objects", self.limits().nodes)));
        }
        let prefix = &self.nodes[parent.0 as usize].path;
        let depth = if prefix.is_empty() { 0 } else { prefix.matches('/').count() + 1 };
        if depth >= self.limits().depth as usize {
            return Err(Error::limit(format!("nested deeper than {}", self.limits().depth)));
        }
        if let Some(rank) = array.as_ref().map(|array| array.shape.rank()).filter(|n| *n > MAX_RANK)
        {
            return Err(Error::limit(format!(
                "{rank} dimensions, at most {MAX_RANK} are supported"
            )));
        }
        // A slash inside a name would add a level.
        let clean = match name {
            "" => Cow::Borrowed("_"),
            name if name.contains('/') => Cow::Owned(name.replace('/', "\u{2215}")),
            name => Cow::Borrowed(name),
        };
        let join = |last: &str| match prefix.as_str() {
            "" => last.to_string(),
            prefix => [prefix, "/", last].concat(),
        };
        let mut path = join(&clean);
        let mut unique = clean.clone();
        // Objects with the same name all stay reachable.
        if self.at(&path).is_some() {
            let mut count = self.namesakes.get(&path).copied().unwrap_or(1);
            let first = path.clone();
            while self.at(&path).is_some() {
                count += 1;
                unique = Cow::Owned(format!("{clean}~{count}"));
                path = join(&unique);
            }
            self.namesakes.insert(first, count);
        }
        let cost = size_of::<Node>() + 2 * size_of::<u64>() + unique.len() + path.len();
        let desc = array.as_ref().map_or(0, |array| array.dims.iter().map(|d| 40 + d.len()).sum());
        self.budget.charge((cost + desc) as u64, "the tree of groups and arrays")?;
        let id = NodeId(self.nodes.len() as u32);
        let hash = self.hasher.hash_one(path.as_str());
        let name = unique.into_owned();
        let node = Node { name, path, parent, id: None, array, attrs: Attrs::new() };
        self.nodes.push(Arc::new(node));
        let (nodes, hasher) = (&self.nodes, &self.hasher);
        let hash_of = |id: &NodeId| hasher.hash_one(nodes[id.0 as usize].path.as_str());
        self.paths.insert_unique(hash, id, hash_of);
        Ok(id)
    }

    /// A node; `id` must come from this tree.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    /// A node, to be changed; `id` must come from this tree.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        Arc::make_mut(&mut self.nodes[id.0 as usize])
    }

    /// The array that is node `id`; `None` for groups.
    pub fn array(&self, id: NodeId) -> Option<&ArrayDesc> {
        self.node(id).array.as_ref()
    }

    /// The array that is node `id`, to be changed; `None` for groups.
    pub fn array_mut(&mut self, id: NodeId) -> Option<&mut ArrayDesc> {
        self.node_mut(id).array.as_mut()
    }

    /// The attributes of the root.
    pub fn attrs(&self) -> &Attrs {
        &self.nodes[0].attrs
    }

    /// The child of `parent` called `name`.
    pub fn child(&self, parent: NodeId, name: &str) -> Option<NodeId> {
        let prefix = &self.node(parent).path;
        if prefix.is_empty() { self.at(name) } else { self.at(&format!("{prefix}/{name}")) }
    }

    /// Keeps the reasons why objects are not in the tree: findings of severity error with the path of the object in
    /// quotation marks. Fails if the budget is exceeded.
    pub(crate) fn set_unreadable(&mut self, findings: &[Finding]) -> Result<()> {
        for finding in findings.iter().filter(|finding| finding.severity == Severity::Error) {
            let path =
                finding.object.as_deref().and_then(|o| o.strip_prefix('"')?.strip_suffix('"'));
            if let Some(path) = path.filter(|path| self.at(path).is_none()) {
                let bytes = 2 * path.len() + finding.message.len() + 2 * size_of::<Finding>();
                self.budget.charge(bytes as u64, "objects that cannot be read")?;
                self.unreadable.insert(path.to_string(), finding.clone());
            }
        }
        Ok(())
    }

    /// The node at `path` or with that native identifier, whose case is ignored if only one node has it; the error
    /// is the reason why the object cannot be read, or suggests similar names.
    pub fn find(&self, path: &str) -> Result<NodeId> {
        let query = path.trim_matches('/');
        if let Some(id) = self.at(query) {
            return Ok(id);
        }
        if let Some(k) = self.nodes.iter().position(|n| n.id.as_deref() == Some(query)) {
            return Ok(NodeId(k as u32));
        }
        let same = |n: &Node| n.id.as_deref().is_some_and(|id| id.eq_ignore_ascii_case(query));
        let mut alike = self.nodes.iter().enumerate().filter(|(_, node)| same(node));
        if let (Some((k, _)), None) = (alike.next(), alike.next()) {
            return Ok(NodeId(k as u32));
        }
        if let Some(finding) = self.unreadable.get(query) {
            let error = Error::unsupported(finding.code, &*finding.message);
            let error = error.in_object(format!("\"{query}\""));
            let error = finding.offset.into_iter().fold(error, Error::at);
            return Err(finding.hint.clone().into_iter().fold(error, Error::hint));
        }
        let error = Error::argument(format!("no object named \"{query}\""));
        let names: Vec<String> = closest(query, self.nodes[1..].iter().map(|n| n.path.as_str()));
        Err(if names.is_empty() {
            error.hint(Hint::ListObjects)
        } else {
            error.hint(Hint::DidYouMean(names))
        })
    }

    /// All nodes but the root, parents before their children, in file order.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().skip(1).map(|(k, node)| (NodeId(k as u32), &**node))
    }

    /// All arrays, in file order.
    pub fn arrays(&self) -> impl Iterator<Item = (NodeId, &Node, &ArrayDesc)> {
        self.iter().filter_map(|(id, node)| node.array.as_ref().map(|array| (id, node, array)))
    }

    /// All arrays that are not coordinates of another array, in file order. The attribute `coordinates` of an
    /// array names further coordinates (CF conventions, section 5).
    pub fn main_arrays(&self) -> impl Iterator<Item = (NodeId, &Node, &ArrayDesc)> {
        let coords = self.arrays().flat_map(|(_, _, array)| &array.coords);
        let mut coords: HashSet<NodeId> = coords.filter_map(Coord::node).collect();
        for (_, node, _) in self.arrays() {
            let names = node.attrs.get_str("coordinates").unwrap_or_default();
            let named = |name| self.child(node.parent, name).or_else(|| self.at(name));
            coords.extend(names.split_whitespace().filter_map(named));
        }
        self.arrays().filter(move |(id, ..)| !coords.contains(id))
    }

    /// Number of nodes without the root.
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// There is only the root.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The frame axis, where the file has one.
    pub fn frames(&self) -> Option<&Arc<dyn FrameAxis>> {
        self.frames.as_ref()
    }

    /// Sets the frame axis.
    pub fn set_frames(&mut self, frames: Arc<dyn FrameAxis>) {
        self.frames = Some(frames);
    }

    /// The array that `array` refers to, following [`Layout::Same`].
    pub fn resolve<'a>(&'a self, array: &'a ArrayDesc) -> Result<&'a ArrayDesc> {
        let mut at = array;
        for _ in 0..16 {
            let Layout::Same(id) = at.layout else { return Ok(at) };
            at = self.nodes.get(id.0 as usize).and_then(|n| n.array.as_ref()).ok_or_else(|| {
                Error::malformed("core-same", "an array refers to a node that is not an array")
            })?;
        }
        Err(Error::malformed("core-same", "arrays refer to each other in a cycle"))
    }
}

/// Up to three of `names` that are similar to `query`.
pub fn closest<'a>(query: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let query = query.to_lowercase();
    let mut scored: Vec<(usize, &str)> = names
        .map(|name| {
            let last = name.rsplit('/').next().unwrap_or(name);
            let distance = |n: &str| edits(&query, &n.to_lowercase());
            (distance(name).min(distance(last)), name)
        })
        .filter(|(distance, name)| *distance <= 1 + query.chars().count().min(name.len()) / 3)
        .collect();
    scored.sort_unstable();
    scored.into_iter().take(3).map(|(_, name)| name.to_string()).collect()
}

/// Levenshtein distance of the first 64 characters.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::shape::Shape;

    fn array() -> ArrayDesc {
        ArrayDesc::inline(DType::U8, Shape::new([1]), [7])
    }

    #[test]
    fn namesakes_both_stay_reachable() {
        let mut tree = Tree::new(&Limits::default());
        let group = tree.group_at("Electric Field").unwrap();
        let first = tree.add_array(group, "Ex", array()).unwrap();
        let second = tree.add_array(group, "Ex", array()).unwrap();
        assert_eq!(tree.find("Electric Field/Ex").unwrap(), first);
        assert_eq!(tree.find("/Electric Field/Ex~2").unwrap(), second);
        assert_eq!(tree.group_at("Electric Field").unwrap(), group);
    }

    #[test]
    fn identifiers_are_found_in_any_case_if_they_are_unique() {
        let mut tree = Tree::new(&Limits::default());
        for (name, id) in [("Px", "px/Electron"), ("Ex", "ex"), ("Ex averaged", "EX")] {
            let node = tree.add_array(ROOT, name, array()).unwrap();
            tree.node_mut(node).id = Some(id.into());
        }
        assert_eq!(tree.find("PX/electron").unwrap(), tree.at("Px").unwrap());
        assert_eq!(tree.find("EX").unwrap(), tree.at("Ex averaged").unwrap());
        assert!(tree.find("eX").is_err());
    }

    #[test]
    fn a_hundred_thousand_namesakes_take_no_time() {
        let mut tree = Tree::new(&Limits::default());
        tree.add_array(ROOT, "x~3", array()).unwrap();
        for _ in 0..100_000 {
            tree.add_array(ROOT, "x", array()).unwrap();
        }
        // The name that was taken already is passed over.
        assert!(tree.find("x~100001").is_ok() && tree.find("x~100002").is_err());
        assert_eq!(tree.len(), 100_001);
    }

    #[test]
    fn a_mistyped_name_gets_a_suggestion() {
        let mut tree = Tree::new(&Limits::default());
        for name in ["pressure", "velocity", "density"] {
            tree.add_array(ROOT, name, array()).unwrap();
        }
        let error = tree.find("presure").unwrap_err();
        assert_eq!(error.suggestion(), Some(&Hint::DidYouMean(vec!["pressure".into()])));
        assert_eq!(tree.find("qqqq").unwrap_err().suggestion(), Some(&Hint::ListObjects));
    }

    #[test]
    fn the_number_and_depth_of_objects_are_limited() {
        let limits = Limits { nodes: 4, depth: 2, ..Limits::default() };
        let mut tree = Tree::new(&limits);
        assert!(tree.group_at("a/b/c").is_err());
        for k in 0..10 {
            let added = tree.add_array(ROOT, &k.to_string(), array());
            assert_eq!(added.is_ok(), tree.len() <= 3 && added.is_ok(), "{k}");
        }
        assert_eq!(tree.len(), 3);
    }

    #[test]
    fn references_in_a_circle_are_an_error() {
        let mut tree = Tree::new(&Limits::default());
        let a = tree.add_array(ROOT, "a", array()).unwrap();
        let mut same = array();
        same.layout = Layout::Same(a);
        let b = tree.add_array(ROOT, "b", same.clone()).unwrap();
        assert!(tree.resolve(&same).is_ok());
        tree.node_mut(a).array.as_mut().unwrap().layout = Layout::Same(b);
        assert!(tree.resolve(&same).is_err());
    }
}
