//! The index of all elements of a file: names, attributes, byte ranges, found in one pass.

mod builder;
mod cursor;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::ops::Deref;
use std::sync::OnceLock;

use spile_core::error::Result;
use spile_core::limits::Limits;
use spile_core::report::{Finding, Report};
use spile_core::source::Source;

use crate::element_data::ElementData;
use crate::event::{Data, Events, Form};
use crate::wire::{Control, Tag, Type};

pub(crate) use builder::Builder;
pub use cursor::Cursor;

/// An element: its begin tag and its content.
#[derive(Clone, Debug)]
pub struct Element {
    /// The begin tag, or the tag of an empty element.
    pub tag: Tag,
    /// The enclosing element.
    pub parent: Option<usize>,
    /// Number of enclosing elements.
    pub depth: u32,
    /// True for `<name/>`.
    pub empty: bool,
    /// Offset of the first byte.
    pub offset: u64,
    /// Offset after the last byte.
    pub end: u64,
    /// The child elements, in file order.
    pub children: Vec<usize>,
    /// The data directly inside the element.
    pub data: Pieces,
    /// The type of the data.
    pub kind: Option<Type>,
}

impl Element {
    /// The file that the element links to, as written in `iotk_link`.
    pub fn link(&self) -> Option<String> {
        self.tag.get_text("iotk_link")
    }
}

/// The data of an element, a slice of [`Data`]. Up to one piece is stored without an allocation.
#[derive(Clone, Debug, Default)]
pub struct Pieces(PieceList);

#[derive(Clone, Debug, Default)]
enum PieceList {
    #[default]
    None,
    One(Data),
    Several(Vec<Data>),
}

impl Pieces {
    fn push(&mut self, data: Data) {
        self.0 = match std::mem::take(&mut self.0) {
            PieceList::None => PieceList::One(data),
            PieceList::One(first) => PieceList::Several(vec![first, data]),
            PieceList::Several(mut all) => {
                all.push(data);
                PieceList::Several(all)
            }
        };
    }
}

impl Deref for Pieces {
    type Target = [Data];

    fn deref(&self) -> &[Data] {
        match &self.0 {
            PieceList::None => &[],
            PieceList::One(data) => std::slice::from_ref(data),
            PieceList::Several(all) => all,
        }
    }
}

/// A comment or a processing instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Markup {
    /// The enclosing element, or `None` outside of all elements.
    pub parent: Option<usize>,
    /// Number of child elements of `parent` before it.
    pub position: usize,
    /// [`Control::Comment`] or [`Control::Instruction`].
    pub control: Control,
    /// The text between the delimiters; escapes are not resolved.
    pub text: Vec<u8>,
}

/// A deviation of a file from the format.
pub(crate) struct Diagnostic {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) offset: u64,
    /// Data are lost.
    pub(crate) is_error: bool,
}

impl Diagnostic {
    /// What does not match between the data of an element at `offset` and its tag.
    pub(crate) fn of_data(data: &ElementData, offset: u64) -> Vec<Self> {
        let found = [(&data.warning, false), (&data.fault, true)];
        let found = found.into_iter().filter_map(|(found, is_error)| {
            let (code, message) = found.clone()?;
            Some(Self { code, message, offset, is_error })
        });
        found.collect()
    }

    /// Adds this to `report`.
    pub(crate) fn report<'a>(&self, report: &'a mut Report) -> &'a mut Finding {
        let message = self.message.clone();
        let finding = match self.is_error {
            true => report.error(self.code, message),
            false => report.warn(self.code, message),
        };
        finding.at(self.offset)
    }
}

/// Hash table of the children of each element by name, in file order.
struct Names {
    /// Group number by the hash of parent and name; on a collision, by the next free hash.
    groups: HashMap<u64, usize>,
    hasher: RandomState,
    /// Index in `ids` of the first member of each group, then the length of `ids`.
    starts: Vec<usize>,
    ids: Vec<usize>,
}

impl Names {
    fn new(elements: &[Element]) -> Self {
        let hasher = RandomState::new();
        let mut groups: HashMap<u64, usize> = HashMap::with_capacity(elements.len());
        // The first element of each group, and the group of each element.
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

/// The index of all elements of a file.
#[derive(Default)]
pub struct Index {
    elements: Vec<Element>,
    roots: Vec<usize>,
    /// Built by the first search for a name.
    names: OnceLock<Names>,
    /// `<?iotk ...?>` before the first element.
    head: Vec<Tag>,
    markup: Vec<Markup>,
    qe_syntax: Option<bool>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Index {
    /// Reads all tags of `source`. Fails if tags do not nest, at the end of the file inside an
    /// element, and if the index exceeds the limits.
    pub fn build(source: &Source, form: Form, limits: &Limits) -> Result<Self> {
        let mut builder = Builder::new(limits);
        let mut events = Events::new(source, form, limits);
        while let Some(item) = events.next().map_err(|e| builder.in_element(e))? {
            builder.add(item)?;
        }
        match builder.unclosed(source.len()) {
            Some(error) => Err(error),
            None => Ok(builder.index),
        }
    }

    /// All elements, in the order of their begin tags.
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// The outermost elements, usually one.
    pub fn roots(&self) -> &[usize] {
        &self.roots
    }

    /// An attribute of the `<?iotk ...?>` head: `version`, `file_version`, ...
    pub fn head(&self, name: &str) -> Option<String> {
        self.head.iter().find_map(|tag| tag.get_text(name))
    }

    /// Comments and processing instructions outside of the head, in file order.
    pub fn markup(&self) -> &[Markup] {
        &self.markup
    }

    /// The `<?iotk ...?>` instructions before the first element.
    pub fn head_tags(&self) -> &[Tag] {
        &self.head
    }

    /// True if the head declares `qe_syntax`, in which types are tags.
    pub fn qe_syntax(&self) -> bool {
        self.qe_syntax == Some(true)
    }

    /// The children of `parent` named `name`, in file order; outermost elements if `parent` is `None`.
    pub fn named(&self, parent: Option<usize>, name: &str) -> &[usize] {
        let names = self.names.get_or_init(|| Names::new(&self.elements));
        names.get(&self.elements, parent, name.as_bytes())
    }

    /// The first element with a path such as `Root/a.1/b`.
    pub fn find(&self, path: &str) -> Option<usize> {
        let mut at = None;
        for name in path.split('/').filter(|part| !part.is_empty()) {
            at = Some(*self.named(at, name).first()?);
        }
        at
    }

    /// The path of an element, names separated by `/`.
    pub fn path(&self, element: usize) -> String {
        let mut names = vec![self.elements[element].tag.name_lossy()];
        let mut at = self.elements[element].parent;
        while let Some(parent) = at {
            names.push(self.elements[parent].tag.name_lossy());
            at = self.elements[parent].parent;
        }
        names.reverse();
        names.join("/")
    }
}
