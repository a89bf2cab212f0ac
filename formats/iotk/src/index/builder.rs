//! Builds an index from events. All memory is charged to the limits before it is allocated.

use spile_core::{Error, Finding, Limits, Result};

use super::{Element, Index, Markup};
use crate::event::{Event, Item, declared_qe_syntax};
use crate::upf;
use crate::wire::{Control, Tag, Type};

/// Upper bounds of the memory in index and tree together, in bytes: for an element, for a piece of
/// data, for an attribute, for a comment or instruction. Names, paths and values are extra.
const ELEMENT: u64 = 1_000;
const DATA: u64 = 60;
const PIECE: u64 = 1_000;
const ATTRIBUTE: u64 = 200;
const MARKUP: u64 = 400;

pub(crate) struct Builder<'a> {
    pub(crate) index: Index,
    /// Elements without an end tag yet, outermost first.
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

    /// Adds an event. Fails with iotk-008 at an end tag without its begin tag.
    pub(crate) fn add(&mut self, item: Item) -> Result<()> {
        if let Some(warning) = item.warning {
            let (code, message) = *warning;
            self.warn(code, message, item.offset)?;
        }
        self.index.qe_syntax = declared_qe_syntax(&item.event).or(self.index.qe_syntax);
        let range = (item.offset, item.end);
        match item.event {
            Event::Tag(Control::Begin, tag) => {
                if self.is_lenient() {
                    self.close_same(&tag, item.offset)?;
                }
                let id = self.add_element(tag, item.kind, item.attributes, false, range)?;
                self.open.push(id);
                Ok(())
            }
            Event::Tag(Control::Empty, tag) => {
                self.add_element(tag, None, item.attributes, true, range).map(drop)
            }
            Event::Tag(Control::End, tag) => self.close(&tag, item.offset, item.end),
            Event::Tag(Control::Comment, tag) => {
                self.add_markup(Control::Comment, tag.into_text(), item.offset)
            }
            Event::Tag(Control::Instruction, tag) => self.add_instruction(tag, item.offset),
            Event::Data(data) => {
                let Some(id) = self.open.last().copied() else {
                    self.charge(2 * size_of::<Finding>() as u64, item.offset)?;
                    let message = "data outside of all elements are ignored";
                    self.index.report.warn("iotk-033", message).at(item.offset);
                    return Ok(());
                };
                let more = if self.index.elements[id].data.is_empty() { DATA } else { PIECE };
                self.charge(
                    more + 64 * (data.extents.parts().len() + data.literal.len()) as u64,
                    item.offset,
                )?;
                // Most elements have one piece of data; the vector would have room for four.
                let pieces = &mut self.index.elements[id].data;
                if pieces.is_empty() {
                    pieces.reserve_exact(1);
                }
                pieces.push(data);
                Ok(())
            }
        }
    }

    fn warn(&mut self, code: &'static str, message: String, offset: u64) -> Result<()> {
        self.charge(2 * size_of::<Finding>() as u64 + message.len() as u64, offset)?;
        self.index.report.warn(code, message).at(offset);
        Ok(())
    }

    fn charge(&mut self, bytes: u64, offset: u64) -> Result<()> {
        self.used = self.used.saturating_add(bytes);
        self.limits.allow(self.used, "the index of the tags").map(drop).map_err(|e| e.at(offset))
    }

    fn add_instruction(&mut self, tag: Tag, offset: u64) -> Result<()> {
        let first = self.index.elements.is_empty();
        if first && tag.name() == b"iotk" {
            let attributes = tag.attributes().count() as u64;
            self.charge(MARKUP + ATTRIBUTE * attributes + 8 * tag.text().len() as u64, offset)?;
            self.index.head.push(tag);
            return Ok(());
        }
        // Every text has this line; a binary file has none.
        if first && tag.text() == b"xml version=\"1.0\"" {
            return Ok(());
        }
        self.add_markup(Control::Instruction, tag.into_text(), offset)
    }

    fn add_markup(&mut self, control: Control, text: Vec<u8>, offset: u64) -> Result<()> {
        self.charge(MARKUP + 4 * text.len() as u64, offset)?;
        let parent = self.open.last().copied();
        let siblings = match parent {
            Some(parent) => &self.index.elements[parent].children,
            None => &self.index.roots,
        };
        let position = siblings.len();
        self.index.markup.push(Markup { parent, position, control, text });
        Ok(())
    }

    fn add_element(
        &mut self,
        tag: Tag,
        kind: Option<Type>,
        attributes: usize,
        empty: bool,
        (offset, end): (u64, u64),
    ) -> Result<usize> {
        let id = self.index.elements.len();
        if id as u64 >= self.limits.nodes {
            return Err(Error::limit(format!("more than {} tags", self.limits.nodes)).at(offset));
        }
        if self.open.len() as u64 >= u64::from(self.limits.depth) {
            let message = format!("tags nested deeper than {}", self.limits.depth);
            return Err(Error::limit(message).at(offset));
        }
        let path = self.paths.get(self.open.len().wrapping_sub(1)).copied().unwrap_or(0)
            + tag.name().len() as u64
            + 1;
        let text = 8 * tag.text().len() as u64;
        self.charge(ELEMENT + ATTRIBUTE * attributes as u64 + 3 * path + text, offset)?;
        self.paths.truncate(self.open.len());
        self.paths.push(path);
        let index = &mut self.index;
        let parent = self.open.last().copied();
        match parent {
            Some(parent) => index.elements[parent].children.push(id),
            None => index.roots.push(id),
        }
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
        Ok(id)
    }

    fn close(&mut self, tag: &Tag, offset: u64, end: u64) -> Result<()> {
        let name = tag.name().escape_ascii();
        if self.is_lenient() && !self.close_inner(tag, offset)? {
            return Ok(());
        }
        let Some(id) = self.open.last().copied() else {
            let message = format!("expected a begin tag or the end of the file, found </{name}>");
            return Err(Error::malformed("iotk-008", message).at(offset));
        };
        let element = &mut self.index.elements[id];
        if element.tag.name() != tag.name() {
            let message = format!(
                "expected </{}> for the element that begins at byte {}, found </{name}>",
                element.tag.name().escape_ascii(),
                element.offset
            );
            return Err(self.in_element(Error::malformed("iotk-008", message).at(offset)));
        }
        element.end = end;
        self.open.pop();
        Ok(())
    }

    /// True for pseudopotentials, of which many have end tags without begin tags and free text that
    /// looks like tags.
    fn is_lenient(&self) -> bool {
        let first = self.index.roots.first().map(|id| &self.index.elements[*id]);
        first.is_some_and(|root| upf::kind_of(root.tag.name()).is_some())
    }

    /// Closes the open elements inside the one that `tag` ends. False if there is no such element: the
    /// tag is ignored. Both are reported.
    fn close_inner(&mut self, tag: &Tag, offset: u64) -> Result<bool> {
        let named = |id: &usize| self.index.elements[*id].tag.name() == tag.name();
        let Some(found) = self.open.iter().rposition(named) else {
            let name = tag.name().escape_ascii();
            let message = format!("an end tag without its begin tag is ignored: </{name}>");
            self.warn("iotk-044", message, offset)?;
            return Ok(false);
        };
        for id in self.open.split_off(found + 1) {
            let element = &mut self.index.elements[id];
            element.end = offset;
            let name = element.tag.name().escape_ascii();
            let message = format!("expected </{name}>, found the end of an outer element");
            self.warn("iotk-045", message, offset)?;
        }
        Ok(true)
    }

    /// Closes the innermost open element if it has the name of `tag`: pseudopotentials have no element in one of
    /// the same name, but some have a begin tag where an end tag belongs. It is reported.
    fn close_same(&mut self, tag: &Tag, offset: u64) -> Result<()> {
        let same = |id: &usize| self.index.elements[*id].tag.name() == tag.name();
        let Some(id) = self.open.pop_if(|id| same(id)) else { return Ok(()) };
        self.index.elements[id].end = offset;
        let name = tag.name().escape_ascii();
        let message = format!("expected </{name}>, found <{name}>");
        self.warn("iotk-045", message, offset)
    }

    /// Adds the path of the innermost open element to `error`.
    pub(crate) fn in_element(&self, error: Error) -> Error {
        match self.open.last() {
            Some(id) => error.in_object(format!("element {}", self.index.path(*id))),
            None => error,
        }
    }

    /// The error for a file of `len` bytes that ends now, if an element is open.
    pub(crate) fn unclosed(&self, len: u64) -> Option<Error> {
        let id = self.open.last()?;
        let element = &self.index.elements[*id];
        let name = element.tag.name().escape_ascii();
        let message = format!(
            "unexpected end of file: expected </{name}> for the element that begins at byte {}",
            element.offset
        );
        Some(self.in_element(Error::truncated("iotk-009", message).at(len)))
    }
}
