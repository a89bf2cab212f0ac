//! The elements of a file, found in one pass: names, attributes, byte ranges.

use std::collections::HashMap;
use std::sync::OnceLock;

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;

use crate::event::{Data, Event, Events, Form, Item, data_type, says_qe_syntax};
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
    pub data: Vec<Data>,
    /// The type of its data.
    pub kind: Option<Type>,
}

impl Element {
    /// The file that it stands for.
    pub fn link(&self) -> Option<String> {
        self.tag.text_of("iotk_link")
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
type Names = HashMap<(Option<usize>, Vec<u8>), Vec<usize>>;

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
        let names = self.names.get_or_init(|| {
            let mut names = Names::with_capacity(self.elements.len());
            for (id, element) in self.elements.iter().enumerate() {
                let key = (element.parent, element.tag.name().to_vec());
                names.entry(key).or_default().push(id);
            }
            names
        });
        names.get(&(parent, name.as_bytes().to_vec())).map_or(&[], |found| found)
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
        if let Some((code, message)) = item.remark {
            self.count(2 * size_of::<Remark>() as u64 + message.len() as u64, item.offset)?;
            self.index.remarks.push(Remark { code, message, offset: item.offset, grave: false });
        }
        self.index.qe_syntax = says_qe_syntax(&item.event).or(self.index.qe_syntax);
        match item.event {
            Event::Begin(tag) => {
                let id = self.add(tag, false, item.offset, item.end)?;
                self.open.push(id);
                Ok(())
            }
            Event::Empty(tag) => self.add(tag, true, item.offset, item.end).map(drop),
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
                    let list = &mut self.index.elements[*id].data;
                    // Almost always the only one: no room for more.
                    if list.is_empty() {
                        list.reserve_exact(1);
                    }
                    list.push(data);
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

    fn add(&mut self, tag: Tag, empty: bool, offset: u64, end: u64) -> Result<usize> {
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
        let kind = data_type(&tag, index.qe_syntax).filter(|_| !empty);
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
            data: Vec::new(),
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
