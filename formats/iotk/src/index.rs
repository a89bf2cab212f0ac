//! The index of all elements of a file: names, attributes, byte ranges, found in one pass.

mod builder;
mod cursor;

use std::collections::HashMap;
use std::sync::OnceLock;

use spile_core::{Limits, Report, Result, Source};

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
    /// The data directly inside the element; usually one piece.
    pub data: Vec<Data>,
    /// The type of the data.
    pub kind: Option<Type>,
}

impl Element {
    /// The file that the element links to, as written in `iotk_link`.
    pub fn link(&self) -> Option<String> {
        self.tag.get_text("iotk_link")
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

/// Elements by parent and name, in file order.
type ByName = HashMap<(Option<usize>, Vec<u8>), Vec<usize>>;

/// The index of all elements of a file.
#[derive(Default)]
pub struct Index {
    elements: Vec<Element>,
    roots: Vec<usize>,
    /// Built by the first search for a name.
    by_name: OnceLock<ByName>,
    /// `<?iotk ...?>` before the first element.
    head: Vec<Tag>,
    markup: Vec<Markup>,
    qe_syntax: Option<bool>,
    /// Deviations from the format that lose no data.
    pub(crate) report: Report,
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

    pub(crate) fn element_mut(&mut self, id: usize) -> &mut Element {
        &mut self.elements[id]
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
        let all = self.by_name.get_or_init(|| {
            let mut all = ByName::with_capacity(self.elements.len());
            for (id, element) in self.elements.iter().enumerate() {
                all.entry((element.parent, element.tag.name().to_vec())).or_default().push(id);
            }
            all
        });
        all.get(&(parent, name.as_bytes().to_vec())).map_or(&[], |ids| ids)
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
