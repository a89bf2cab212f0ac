//! A part of a file as if it were all of it: some objects, some frames.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use spile_core::error::Result;
use spile_core::format::{Object, Reader, Region};
use spile_core::frames::{FrameAxis, FrameCell, FrameTable};
use spile_core::layout::{ArrayDesc, Coord, Layout};
use spile_core::limits::Limits;
use spile_core::report::Finding;
use spile_core::source::Source;
use spile_core::tree::{Attrs, NodeId, ROOT, Tree};

use crate::pick::Pick;

/// A part of an open file. Groups above what was picked are there, too, and so are the coordinates
/// of its arrays.
pub struct Subset<'a> {
    whole: &'a dyn Reader,
    tree: Tree,
}

impl<'a> Subset<'a> {
    /// What `pick` picks.
    pub fn new(whole: &'a dyn Reader, pick: &Pick, limits: &Limits) -> Result<Self> {
        let old = whole.tree();
        let mut wanted: HashSet<NodeId> = pick.nodes(old)?.into_iter().map(|(id, _)| id).collect();
        let mut todo: Vec<NodeId> = wanted.iter().copied().collect();
        while let Some(id) = todo.pop() {
            let node = old.node(id);
            let mut needed = vec![node.parent];
            if let Some(array) = &node.array {
                needed.extend(array.coords.iter().filter_map(|coord| match coord {
                    Coord::Node(id) => Some(*id),
                    _ => None,
                }));
                if let Layout::Same(id) = array.layout {
                    needed.push(id);
                }
            }
            todo.extend(needed.into_iter().filter(|id| *id != ROOT && wanted.insert(*id)));
        }
        let frames = match old.frames() {
            None => None,
            Some(axis) => Some(pick.frames(axis.len())?.collect::<Arc<[u64]>>()),
        };
        let mut tree = Tree::new(limits);
        tree.node_mut(ROOT).attrs.clone_from(old.attrs());
        let mut ids = HashMap::from([(ROOT, ROOT)]);
        for (id, node) in old.iter().filter(|(id, _)| wanted.contains(id)) {
            let parent = ids[&node.parent];
            let new = match &node.array {
                None => tree.add_group(parent, &node.name)?,
                Some(array) => tree.add_array(parent, &node.name, array.clone())?,
            };
            ids.insert(id, new);
            let copy = tree.node_mut(new);
            (copy.id, copy.attrs) = (node.id.clone(), node.attrs.clone());
        }
        // Arrays that come later are known only now.
        for id in wanted.iter().map(|id| ids[id]) {
            if let Some(desc) = &mut tree.node_mut(id).array {
                renumber(desc, &ids, frames.as_ref());
            }
        }
        if let (Some(axis), Some(frames)) = (old.frames(), frames) {
            tree.set_frames(Arc::new(SomeFrames { of: axis.clone(), frames }));
        }
        Ok(Self { whole, tree })
    }
}

fn renumber(desc: &mut ArrayDesc, ids: &HashMap<NodeId, NodeId>, frames: Option<&Arc<[u64]>>) {
    for coord in &mut desc.coords {
        if let Coord::Node(id) = coord {
            *coord = ids.get(id).map_or(Coord::None, |new| Coord::Node(*new));
        }
    }
    match (&desc.layout, frames) {
        (Layout::Same(id), _) => {
            if let Some(new) = ids.get(id) {
                desc.layout = Layout::Same(*new);
            }
        }
        (Layout::PerFrame(table), Some(frames)) => {
            let (of, frames) = (table.clone(), frames.clone());
            desc.layout = Layout::PerFrame(Arc::new(SomeCells { of, frames }));
        }
        _ => {}
    }
}

impl Reader for Subset<'_> {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn source(&self) -> &Source {
        self.whole.source()
    }

    fn summary(&self) -> Attrs {
        self.whole.summary()
    }

    fn findings(&self) -> &[Finding] {
        self.whole.findings()
    }

    fn regions(&self, each: &mut dyn FnMut(Region) -> Result<()>) -> Result<()> {
        self.whole.regions(each)
    }

    fn objects(&self, each: &mut dyn FnMut(Object) -> Result<()>) -> Result<()> {
        self.whole.objects(each)
    }
}

struct SomeFrames {
    of: Arc<dyn FrameAxis>,
    frames: Arc<[u64]>,
}

impl FrameAxis for SomeFrames {
    fn len(&self) -> u64 {
        self.frames.len() as u64
    }

    fn step(&self, frame: u64) -> Result<Option<u64>> {
        self.frames.get(frame as usize).map_or(Ok(None), |frame| self.of.step(*frame))
    }

    fn time(&self, frame: u64) -> Result<Option<f64>> {
        self.frames.get(frame as usize).map_or(Ok(None), |frame| self.of.time(*frame))
    }
}

struct SomeCells {
    of: Arc<dyn FrameTable>,
    frames: Arc<[u64]>,
}

impl FrameTable for SomeCells {
    fn len(&self) -> u64 {
        self.frames.len() as u64
    }

    fn cell(&self, frame: u64) -> Result<Option<FrameCell>> {
        let frame = self.frames.get(frame as usize).copied().filter(|f| *f < self.of.len());
        frame.map_or(Ok(None), |frame| self.of.cell(frame))
    }

    fn instead(&self, frame: u64) -> Result<Option<String>> {
        let frame = self.frames.get(frame as usize).copied().filter(|f| *f < self.of.len());
        frame.map_or(Ok(None), |frame| self.of.instead(frame))
    }
}
