//! The elements of a file, found in one pass: names, attributes, byte ranges.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Deref;
use std::sync::OnceLock;

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;

use crate::event::{Data, Event, Events, Form, Item, says_qe_syntax};
use crate::wire::{Tag, Type};

/// An element: a tag with what is inside it.
#[derive(Clone, Debug)]
pub struct Element {
    /// Its begin tag, or its only one.
    pub tag: Tag,
    /// The element it is in.
    pub parent: Option<usize>,
    /// Levels above it.
    pub depth: u32,
    /// `<name/>`: it has no end tag.
    pub empty: bool,
    /// First byte.
    pub offset: u64,
    /// Behind its last byte.
    pub end: u64,
    /// The elements directly inside it, in the order of the file.
    pub children: Vec<usize>,
    /// What else is directly inside it.
    pub data: Pieces,
    /// The type of its data.
    pub kind: Option<Type>,
}

impl Element {
    /// The file that it stands for.
    pub fn link(&self) -> Option<String> {
        self.tag.text_of("iotk_link")
    }
}

/// The data of an element; almost always one piece or none, which take no memory of their own.
#[derive(Clone, Debug, Default)]
pub struct Pieces(Held);

#[derive(Clone, Debug, Default)]
enum Held {
    #[default]
    None,
    One(Data),
    Several(Vec<Data>),
}

impl Pieces {
    fn push(&mut self, data: Data) {
        self.0 = match std::mem::take(&mut self.0) {
            Held::None => Held::One(data),
            Held::One(first) => Held::Several(vec![first, data]),
            Held::Several(mut all) => {
                all.push(data);
                Held::Several(all)
            }
        };
    }
}

impl Deref for Pieces {
    type Target = [Data];

    fn deref(&self) -> &[Data] {
        match &self.0 {
            Held::None => &[],
            Held::One(data) => std::slice::from_ref(data),
            Held::Several(all) => all,
        }
    }
}

/// A place in a file where it departs from the letter of the format.
pub(crate) struct Remark {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) offset: u64,
    /// It costs data.
    pub(crate) grave: bool,
}

/// Children of a parent by name, in the order of the file: a missing name costs one look.
struct Names {
    /// Number of the group by the hash of parent and name, or by the next one that was free.
    groups: HashMap<u64, usize>,
    hasher: RandomState,
    /// First of each group in `ids`, and the end.
    starts: Vec<usize>,
    ids: Vec<usize>,
}

impl Names {
    fn of(elements: &[Element]) -> Self {
        let hasher = RandomState::new();
        let mut groups: HashMap<u64, usize> = HashMap::with_capacity(elements.len());
        // An element of each group, and the group of each element.
        let mut firsts: Vec<usize> = Vec::new();
        let mut group_of = Vec::with_capacity(elements.len());
        for (id, element) in elements.iter().enumerate() {
            let name = element.tag.name();
            let mut hash = hasher.hash_one((element.parent, name));
            let group = loop {
                let group = *groups.entry(hash).or_insert(firsts.len());
                let Some(first) = firsts.get(group) else {
                    firsts.push(id);
                    break group;
                };
                if is_named(&elements[*first], element.parent, name) {
                    break group;
                }
                hash = hash.wrapping_add(1);
            };
            group_of.push(group);
        }
        let mut starts = vec![0; firsts.len() + 1];
        for group in &group_of {
            starts[group + 1] += 1;
        }
        for k in 1..starts.len() {
            starts[k] += starts[k - 1];
        }
        let mut next = starts.clone();
        let mut ids = vec![0; elements.len()];
        for (id, group) in group_of.into_iter().enumerate() {
            ids[next[group]] = id;
            next[group] += 1;
        }
        Self { groups, hasher, starts, ids }
    }

    fn get(&self, elements: &[Element], parent: Option<usize>, name: &[u8]) -> &[usize] {
        let mut hash = self.hasher.hash_one((parent, name));
        while let Some(group) = self.groups.get(&hash) {
            let ids = &self.ids[self.starts[*group]..self.starts[group + 1]];
            if ids.first().is_some_and(|id| is_named(&elements[*id], parent, name)) {
                return ids;
            }
            hash = hash.wrapping_add(1);
        }
        &[]
    }
}

fn is_named(element: &Element, parent: Option<usize>, name: &[u8]) -> bool {
    element.parent == parent && element.tag.name() == name
}

/// All elements of a file.
#[derive(Default)]
pub struct Index {
    elements: Vec<Element>,
    roots: Vec<usize>,
    /// Made when a name is first looked for.
    names: OnceLock<Names>,
    /// `<?iotk ...?>` before the first element.
    head: Vec<Tag>,
    qe_syntax: Option<bool>,
    pub(crate) remarks: Vec<Remark>,
}

/// Memory that an element takes beside its tag, here and in the tree, at most.
const OVERHEAD: u64 = 1_000;

impl Index {
    /// Reads all tags.
    pub fn build(source: &Source, form: Form, limits: &Limits) -> Result<Self> {
        let mut builder = Builder::new(limits);
        let mut events = Events::new(source, form, limits);
        // Inside which element, too.
        while let Some(item) = events.next().map_err(|e| builder.place(e))? {
            builder.take(item)?;
        }
        match builder.unclosed(source.len()) {
            Some(error) => Err(error),
            None => Ok(builder.index),
        }
    }

    /// The elements, in the order of their begin tags.
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// The outermost elements; usually one.
    pub fn roots(&self) -> &[usize] {
        &self.roots
    }

    /// What the head says: `version`, `file_version`, ...
    pub fn head(&self, name: &str) -> Option<String> {
        self.head.iter().find_map(|tag| tag.text_of(name))
    }

    /// The instructions of the head.
    pub fn head_tags(&self) -> &[Tag] {
        &self.head
    }

    /// Types are tags of their own.
    pub fn qe_syntax(&self) -> bool {
        self.qe_syntax == Some(true)
    }

    /// The elements called `name` directly inside `parent`, in the order of the file.
    pub fn named(&self, parent: Option<usize>, name: &str) -> &[usize] {
        let names = self.names.get_or_init(|| Names::of(&self.elements));
        names.get(&self.elements, parent, name.as_bytes())
    }

    /// The first element at a path such as `Root/a.1/b`.
    pub fn find(&self, path: &str) -> Option<usize> {
        let mut at = None;
        for name in path.split('/').filter(|part| !part.is_empty()) {
            at = Some(*self.named(at, name).first()?);
        }
        at
    }

    /// The path of an element.
    pub fn path(&self, element: usize) -> String {
        let mut names = vec![self.elements[element].tag.title()];
        let mut at = self.elements[element].parent;
        while let Some(parent) = at {
            names.push(self.elements[parent].tag.title());
            at = self.elements[parent].parent;
        }
        names.reverse();
        names.join("/")
    }
}

/// Makes an index of events.
pub(crate) struct Builder<'a> {
    pub(crate) index: Index,
    /// Elements without an end yet, outermost first.
    pub(crate) open: Vec<usize>,
    /// Length of the path of each open element.
    paths: Vec<u64>,
    used: u64,
    limits: &'a Limits,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(limits: &'a Limits) -> Self {
        Self { index: Index::default(), open: Vec::new(), paths: Vec::new(), used: 0, limits }
    }

    pub(crate) fn take(&mut self, item: Item) -> Result<()> {
        if let Some(remark) = item.remark {
            let (code, message) = *remark;
            self.count(2 * size_of::<Remark>() as u64 + message.len() as u64, item.offset)?;
            self.index.remarks.push(Remark { code, message, offset: item.offset, grave: false });
        }
        self.index.qe_syntax = says_qe_syntax(&item.event).or(self.index.qe_syntax);
        match item.event {
            Event::Begin(tag) => {
                let id = self.add(tag, item.kind, false, (item.offset, item.end))?;
                self.open.push(id);
                Ok(())
            }
            Event::Empty(tag) => self.add(tag, None, true, (item.offset, item.end)).map(drop),
            Event::End(tag) => self.close(&tag, item.offset, item.end),
            Event::Comment(_) => Ok(()),
            Event::Instruction(tag) => {
                if self.index.elements.is_empty() && tag.name() == b"iotk" {
                    self.count(tag.text().len() as u64, item.offset)?;
                    self.index.head.push(tag);
                }
                Ok(())
            }
            Event::Data(data) => {
                let table = 200 + 64 * data.parts.count() as u64;
                self.count(table, item.offset)?;
                if let Some(id) = self.open.last() {
                    self.index.elements[*id].data.push(data);
                } else {
                    let message = "data outside of all elements are left out".to_string();
                    self.index.remarks.push(Remark {
                        code: "iotk-033",
                        message,
                        offset: item.offset,
                        grave: false,
                    });
                }
                Ok(())
            }
        }
    }

    fn count(&mut self, bytes: u64, offset: u64) -> Result<()> {
        self.used = self.used.saturating_add(bytes);
        self.limits.allow(self.used, "the index of the tags").map(drop).map_err(|e| e.at(offset))
    }

    fn add(
        &mut self,
        tag: Tag,
        kind: Option<Type>,
        empty: bool,
        (offset, end): (u64, u64),
    ) -> Result<usize> {
        let index = &mut self.index;
        let id = index.elements.len();
        if id as u64 >= self.limits.nodes {
            return Err(Error::limit(format!("more than {} tags", self.limits.nodes)).at(offset));
        }
        if self.open.len() as u64 >= u64::from(self.limits.depth) {
            let message = format!("tags nested deeper than {}", self.limits.depth);
            return Err(Error::limit(message).at(offset));
        }
        let parent = self.open.last().copied();
        match parent {
            Some(parent) => index.elements[parent].children.push(id),
            None => index.roots.push(id),
        }
        let path = self.paths.get(self.open.len().wrapping_sub(1)).copied().unwrap_or(0)
            + tag.name().len() as u64
            + 1;
        self.paths.truncate(self.open.len());
        self.paths.push(path);
        let bytes = OVERHEAD + 3 * path + 8 * tag.text().len() as u64;
        index.elements.push(Element {
            tag,
            parent,
            depth: self.open.len() as u32,
            empty,
            offset,
            end,
            children: Vec::new(),
            data: Pieces::default(),
            kind,
        });
        self.count(bytes, offset)?;
        Ok(id)
    }

    fn close(&mut self, tag: &Tag, offset: u64, end: u64) -> Result<()> {
        let name = tag.name().escape_ascii();
        let Some(id) = self.open.last().copied() else {
            let message = format!("</{name}> ends nothing");
            return Err(Error::malformed("iotk-008", message).at(offset));
        };
        let element = &mut self.index.elements[id];
        if element.tag.name() != tag.name() {
            let message = format!(
                "</{name}> where </{}> was expected; that one begins at byte {}",
                element.tag.name().escape_ascii(),
                element.offset
            );
            return Err(self.place(Error::malformed("iotk-008", message).at(offset)));
        }
        element.end = end;
        self.open.pop();
        Ok(())
    }

    /// Names the element that is being read.
    fn place(&self, error: Error) -> Error {
        match self.open.last() {
            Some(id) => error.in_object(format!("element {}", self.index.path(*id))),
            None => error,
        }
    }

    pub(crate) fn unclosed(&self, len: u64) -> Option<Error> {
        let id = self.open.last()?;
        let element = &self.index.elements[*id];
        let name = element.tag.name().escape_ascii();
        let message = format!("the file ends before </{name}>, begun at byte {}", element.offset);
        Some(self.place(Error::truncated("iotk-009", message).at(len)))
    }
}

/// Walks through an index as a Fortran program walks through a file: it stands inside an element,
/// behind what it read last.
///
/// A name is looked for from there to the end of the element, then backwards to its beginning, and
/// never inside other elements. Nothing is read again: a name that is missing costs one look.
#[derive(Clone)]
pub struct Cursor<'a> {
    index: &'a Index,
    inside: Option<usize>,
    /// Everything up to this element was passed.
    last: Option<usize>,
}

impl<'a> Cursor<'a> {
    /// Before the first element.
    pub fn new(index: &'a Index) -> Self {
        Self { index, inside: None, last: None }
    }

    /// The element it stands in.
    pub fn inside(&self) -> Option<usize> {
        self.inside
    }

    /// Looks for an element at this level and stands behind it, or stays where it is.
    pub fn scan(&mut self, name: &str) -> Option<usize> {
        let found = self.index.named(self.inside, name);
        let next = found.partition_point(|id| Some(*id) <= self.last);
        let hit = found.get(next).or_else(|| found[..next].last()).copied()?;
        self.last = Some(hit);
        Some(hit)
    }

    /// Looks for an element at this level and goes into it.
    pub fn begin(&mut self, name: &str) -> Option<usize> {
        let hit = self.scan(name).filter(|id| !self.index.elements[*id].empty)?;
        (self.inside, self.last) = (Some(hit), None);
        Some(hit)
    }

    /// Leaves the element it stands in; false at the outermost level.
    pub fn end(&mut self) -> bool {
        let Some(inside) = self.inside else { return false };
        (self.inside, self.last) = (self.index.elements[inside].parent, Some(inside));
        true
    }
}
