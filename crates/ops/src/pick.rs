//! Selection of objects, frames and parts of dimensions.

use std::collections::BTreeSet;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use spile_core::{
    ArrayDesc, Error, FrameTable, Hint, Node, NodeId, Result, Selection, Shape, Slice, Tree,
};

/// A selection of objects, frames and parts of dimensions; the default selects everything.
#[derive(Clone, Debug, Default)]
pub struct Pick {
    globs: Option<GlobSet>,
    patterns: Vec<String>,
    frames: Option<Slice>,
    slices: Vec<(String, Slice)>,
}

impl Pick {
    /// Objects whose path, native identifier, or a group above them matches one of `patterns`. `*` and `?`
    /// stay within one level, `**` crosses levels.
    pub fn new(patterns: &[String]) -> Result<Self> {
        if patterns.is_empty() {
            return Ok(Self::default());
        }
        let mut set = GlobSetBuilder::new();
        let mut add = |pattern: &str| -> std::result::Result<(), globset::Error> {
            let clean = pattern.trim_matches('/');
            set.add(GlobBuilder::new(clean).literal_separator(true).build()?);
            Ok(())
        };
        for pattern in patterns {
            add(pattern).map_err(|e| bad_pattern(pattern, &e))?;
        }
        let globs = set.build().map_err(|e| bad_pattern(&patterns.join(" "), &e))?;
        Ok(Self { globs: Some(globs), patterns: patterns.to_vec(), ..Self::default() })
    }

    /// Selects frames by a slice: `5`, `0:100:10`.
    pub fn with_frames(mut self, frames: &str) -> Result<Self> {
        let slices = frames.parse::<Selection>()?.0;
        match slices[..] {
            [] => Ok(self),
            [slice @ (Slice::Index(_) | Slice::Range { .. })] => {
                self.frames = Some(slice);
                Ok(self)
            }
            _ => Err(Error::argument(format!("\"{frames}\" does not name frames"))
                .hint("write 5, 0:100 or 0:100:10")),
        }
    }

    /// Selects the frames of a slice.
    pub fn with_frame_slice(mut self, frames: Slice) -> Self {
        self.frames = Some(frames);
        self
    }

    /// Whether one frame is selected by its number.
    pub fn is_one_frame(&self) -> bool {
        matches!(self.frames, Some(Slice::Index(_)))
    }

    /// Selects parts of dimensions by name, each written as `X=0:100:10` or `X=5`.
    pub fn with_slices(mut self, slices: &[String]) -> Result<Self> {
        for text in slices {
            let bad = || {
                Error::argument(format!("\"{text}\" does not name a part of a dimension"))
                    .hint("write X=5, X=0:100 or X=0:100:10 with the name of a dimension")
            };
            let (name, part) = text.rsplit_once('=').ok_or_else(bad)?;
            let slice = match part.parse::<Selection>()?.0[..] {
                // One index is a part of length one: the dimension stays.
                [Slice::Index(at)] => Slice::Range {
                    start: Some(at),
                    stop: at.checked_add(1).filter(|stop| *stop != 0),
                    step: 1,
                },
                [slice @ Slice::Range { .. }] => slice,
                _ => return Err(bad()),
            };
            self.slices.push((name.trim().to_string(), slice));
        }
        Ok(self)
    }

    /// The selected part of an array with these dimensions; none if it is the entire array.
    pub fn slice(&self, dims: &[String]) -> Option<Selection> {
        let of = |dim: &String| self.slices.iter().find(|(name, _)| name == dim);
        dims.iter().any(|dim| of(dim).is_some()).then(|| {
            let slices = dims.iter().map(|dim| of(dim).map_or(Slice::ALL, |(_, slice)| *slice));
            Selection(slices.collect())
        })
    }

    /// Fails if a slice names a dimension that no array has.
    pub fn known(&self, tree: &Tree) -> Result<()> {
        for (name, _) in &self.slices {
            let mut dims = tree.arrays().flat_map(|(_, _, array)| &array.dims);
            if !dims.any(|dim| dim == name) {
                let all: BTreeSet<&String> =
                    tree.arrays().flat_map(|(_, _, array)| &array.dims).collect();
                let all: Vec<&str> = all.into_iter().take(20).map(String::as_str).collect();
                return Err(Error::argument(format!("no array has a dimension \"{name}\""))
                    .hint(format!("there are {}", all.join(", "))));
            }
        }
        Ok(())
    }

    /// Whether frames are selected.
    pub fn has_frames(&self) -> bool {
        self.frames.is_some()
    }

    /// Whether everything is selected.
    pub fn is_all(&self) -> bool {
        self.globs.is_none() && self.frames.is_none() && self.slices.is_empty()
    }

    /// Whether the object at `path`, or a group above it, is selected.
    pub fn wants(&self, path: &str) -> bool {
        let Some(globs) = &self.globs else { return true };
        let groups = path.match_indices('/').map(|(end, _)| &path[..end]);
        // A name may contain the characters of patterns.
        let exact = |path: &str| self.patterns.iter().any(|p| p.trim_matches('/') == path);
        let matches = |path: &str| globs.is_match(path) || exact(path);
        matches(path) || groups.into_iter().any(matches)
    }

    /// Whether the node is selected by its path, a group above it, or its native identifier.
    pub fn wants_node(&self, node: &Node) -> bool {
        self.wants(&node.path) || node.id.as_ref().is_some_and(|id| self.wants(id))
    }

    /// The same selection with the native identifiers of `tree` that differ from a pattern only in case, for
    /// patterns that are not a path or an identifier.
    pub fn with_ids_of(&self, tree: &Tree) -> Self {
        let mut pick = self.clone();
        let ids = || tree.iter().filter_map(|(_, node)| node.id.as_deref());
        for pattern in self.patterns.iter().map(|pattern| pattern.trim_matches('/')) {
            if tree.at(pattern).is_none() && !ids().any(|id| id == pattern) {
                let alike = ids().filter(|id| id.eq_ignore_ascii_case(pattern));
                pick.patterns.extend(alike.map(String::from));
            }
        }
        pick
    }

    /// The selected nodes in file order; the case of identifiers is ignored. Fails if nothing matches the patterns.
    pub fn nodes<'a>(&self, tree: &'a Tree) -> Result<Vec<(NodeId, &'a Node)>> {
        let pick = self.with_ids_of(tree);
        let found: Vec<_> = tree.iter().filter(|(_, node)| pick.wants_node(node)).collect();
        if found.is_empty() && self.globs.is_some() {
            let asked = self.patterns.join(" ");
            return Err(
                Error::argument(format!("no object matches \"{asked}\"")).hint(Hint::ListObjects)
            );
        }
        Ok(found)
    }

    /// The selected arrays in file order.
    pub fn arrays<'a>(&self, tree: &'a Tree) -> Result<Vec<(&'a Node, &'a ArrayDesc)>> {
        let nodes = self.nodes(tree)?;
        Ok(nodes.into_iter().filter_map(|(_, n)| n.array.as_ref().map(|a| (n, a))).collect())
    }

    /// The selected ones of `count` frames.
    pub fn frames(&self, count: u64) -> Result<impl Iterator<Item = u64> + use<>> {
        let slice = self.frames.unwrap_or(Slice::ALL);
        let span = match (slice, Selection(vec![slice]).resolve(&Shape::new([count]))) {
            (_, Ok(spans)) => spans[0],
            (Slice::Index(frame), Err(_)) => {
                let message = format!("no frame {frame}: the number of frames is {count}");
                return Err(Error::argument(message));
            }
            (_, Err(error)) => return Err(error),
        };
        Ok((0..span.count).map(move |k| (span.start as i64 + k as i64 * span.step) as u64))
    }

    /// The selected frames in which one of the arrays with these tables may exist, up to the end of the shortest
    /// table; an error ends the iteration. Without a selection, frames without them cost nothing.
    pub fn frames_of<'a>(
        &self,
        tables: &[&'a dyn FrameTable],
    ) -> Result<Box<dyn Iterator<Item = Result<u64>> + 'a>> {
        let len = tables.iter().map(|table| table.len()).min().unwrap_or(0);
        if self.has_frames() {
            return Ok(Box::new(self.frames(len)?.map(Ok)));
        }
        let (tables, mut from) = (tables.to_vec(), Some(0));
        Ok(Box::new(std::iter::from_fn(move || {
            let start = from?;
            let next = |first: Option<u64>, table: &&dyn FrameTable| {
                Ok(first.into_iter().chain(table.next(start)?).min())
            };
            let next = tables.iter().try_fold(None, next);
            let next = next.map(|frame| frame.filter(|frame| *frame < len)).transpose();
            from = next.as_ref().and_then(|found| found.as_ref().ok()?.checked_add(1));
            next
        })))
    }
}

fn bad_pattern(pattern: &str, error: &globset::Error) -> Error {
    Error::argument(format!("\"{pattern}\" is not a pattern: {}", error.kind()))
}

#[cfg(test)]
mod tests {
    use spile_core::{DType, Limits, ROOT};

    use super::*;

    fn pick(pattern: &str) -> Pick {
        Pick::new(&[pattern.to_string()]).unwrap()
    }

    #[test]
    fn a_pattern_stays_in_its_level_and_a_group_brings_its_content() {
        assert!(pick("Electric*/E?").wants("Electric Field/Ex"));
        assert!(!pick("*").is_all());
        assert!(!pick("E?").wants("Electric Field/Ex"));
        assert!(pick("**/E?").wants("a/b/Ey"));
        assert!(pick("Electric*").wants("Electric Field/Ex"));
        assert!(pick("/a/").wants("a/b/c"));
        assert!(!pick("a").wants("ab/c"));
        assert!(Pick::new(&["[".into()]).is_err());
    }

    #[test]
    fn the_case_of_identifiers_is_ignored_unless_one_is_equal() {
        let mut tree = Tree::new(&Limits::default());
        for (path, id) in [("Field Ex", "ex"), ("Ions", "n/Ion"), ("ions", "n/ion")] {
            let desc = ArrayDesc::inline(DType::U8, Shape::new([0]), Vec::new());
            let node = tree.add_array(ROOT, path, desc).unwrap();
            tree.node_mut(node).id = Some(id.into());
        }
        let found = |patterns: &[&str]| -> Vec<String> {
            let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            let nodes = Pick::new(&patterns).unwrap().nodes(&tree).unwrap();
            nodes.into_iter().map(|(_, node)| node.path.clone()).collect()
        };
        assert_eq!(found(&["EX"]), ["Field Ex"]);
        assert_eq!(found(&["Ions", "Ex"]), ["Field Ex", "Ions"]);
        assert_eq!(found(&["n/ion"]), ["ions"]);
        assert_eq!(found(&["N/ION"]), ["Ions", "ions"]);
        assert!(Pick::new(&["E".into()]).unwrap().nodes(&tree).is_err());
    }

    #[test]
    fn frames_are_slices() {
        let frames = |text: &str, n| -> Vec<u64> {
            Pick::default().with_frames(text).unwrap().frames(n).unwrap().collect()
        };
        assert_eq!(frames("0:10:4", 9), [0, 4, 8]);
        assert_eq!(frames("-1", 9), [8]);
        assert_eq!(frames("::-2", 5), [4, 2, 0]);
        assert_eq!(frames(":", 0), [0; 0]);
        assert!(Pick::default().with_frames("1,2").is_err());
        assert!(Pick::default().with_frames("9").unwrap().frames(9).is_err());
    }
}
