//! The names of chunks and their numbers.

use std::collections::HashMap;
use std::sync::Arc;

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;

use crate::wire::{Form, Header, SLOT};

/// Memory that a name takes besides its bytes, which are kept three times.
const NAME_COST: u64 = 200;

/// Names by number and numbers by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    list: Vec<Vec<u8>>,
    /// The same for people.
    texts: Vec<Arc<str>>,
    numbers: HashMap<Vec<u8>, u32>,
    /// Names up to the one that ends the list; those behind it are only there for files whose
    /// writer took an empty name.
    pub(crate) proper: usize,
    /// Bytes of the list up to its end.
    pub(crate) used: u64,
    /// The list fills its room to the last byte.
    pub(crate) unterminated: bool,
    cost: u64,
}

impl Names {
    /// Reads the name list of a file (none in 0.0.1, whose entries bring their own names).
    pub(crate) fn read(source: &Source, header: &Header, limits: &Limits) -> Result<Self> {
        let Some(block) = header.names else { return Ok(Self::default()) };
        let bad = |message: String| {
            let offset = if header.form == Form::Second { 160 } else { 24 };
            Error::malformed("gsd-006", message).in_object("name list").at(offset)
        };
        let cut = |message: String| {
            Error::truncated("gsd-006", message).in_object("name list").at(block.location)
        };
        if block.location < header.form.header_size() || block.allocated == 0 {
            return Err(bad("the name list has no place".into()));
        }
        let bytes = block.allocated.checked_mul(SLOT).filter(|bytes| bytes >> 63 == 0);
        let bytes = bytes.ok_or_else(|| bad("the name list is larger than any file".into()))?;
        let present = source.current_len()?.saturating_sub(block.location).min(bytes);
        if present == 0 {
            return Err(cut("the name list lies behind the end of the file".into()));
        }
        limits.allow(present, "the name list")?;
        let raw = source.read_vec(block.location, present)?;
        // Only room that is not in use may be missing.
        if present < bytes && !raw.ends_with(&[0, 0]) {
            return Err(cut("the file ends inside the name list".into()));
        }
        let mut names = Self::default();
        if header.form == Form::List {
            let end = raw.iter().rposition(|b| *b != 0).map_or(0, |k| k + 1);
            names.unterminated = raw.last().is_some_and(|b| *b != 0);
            for name in raw[..end].split(|b| *b == 0).filter(|_| end > 0) {
                names.push(name, limits)?;
            }
            let list = &names.list;
            names.proper = list.iter().position(Vec::is_empty).unwrap_or(list.len());
            names.used = list[..names.proper].iter().map(|n| n.len() as u64 + 1).sum();
        } else {
            for slot in raw.chunks(SLOT as usize) {
                let end = slot.iter().position(|b| *b == 0).unwrap_or(slot.len());
                names.unterminated |= end == slot.len();
                if end == 0 {
                    break;
                }
                names.push(&slot[..end], limits)?;
            }
            names.proper = names.list.len();
            names.used = names.proper as u64 * SLOT;
        }
        Ok(names)
    }

    fn push(&mut self, name: &[u8], limits: &Limits) -> Result<u32> {
        self.cost += NAME_COST + 3 * name.len() as u64;
        if self.cost > 1 << 18 {
            limits.allow(self.cost, "the names of the chunks")?;
        }
        let id = self.list.len() as u32;
        self.list.push(name.to_vec());
        self.texts.push(String::from_utf8_lossy(name).into());
        // The first of two names is the one that is found.
        self.numbers.entry(name.to_vec()).or_insert(id);
        Ok(id)
    }

    /// The number of a name that is new or known.
    pub(crate) fn intern(&mut self, name: &[u8], limits: &Limits) -> Result<u32> {
        if let Some(id) = self.numbers.get(name) {
            return Ok(*id);
        }
        let id = self.push(name, limits)?;
        self.proper = self.list.len();
        Ok(id)
    }

    /// The number of a name.
    pub(crate) fn id(&self, name: &[u8]) -> Option<u32> {
        self.numbers.get(name).copied()
    }

    /// The bytes of a name; an empty name has none.
    pub(crate) fn raw(&self, id: u32) -> &[u8] {
        self.list.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// The name for people.
    pub(crate) fn text(&self, id: u32) -> Arc<str> {
        self.texts.get(id as usize).map_or_else(|| "".into(), Arc::clone)
    }

    /// The number belongs to a name. An empty list is one empty name: that is what remains of a
    /// file whose only chunk had no name.
    pub(crate) fn has(&self, id: u32) -> bool {
        (id as usize) < self.list.len().max(1)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// All of them, in the order of their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.list.iter().map(Vec::as_slice)
    }

    /// The names as a new file has them: none is empty, and no two are the same. Old code cut long
    /// names, so that different chunks may have equal ones. An empty list that is `used` is one
    /// empty name, see [`Names::has`].
    pub(crate) fn distinct(&self, used: bool, limits: &Limits) -> Result<Self> {
        let mut names = Self::default();
        for id in 0..self.len().max(usize::from(used)) as u32 {
            let mut name = self.raw(id).to_vec();
            if name.is_empty() {
                name = format!("unnamed-{id}").into_bytes();
            }
            while names.id(&name).is_some() {
                name.push(b'~');
            }
            names.intern(&name, limits)?;
        }
        Ok(names)
    }

    /// No two are the same.
    pub(crate) fn are_distinct(&self) -> bool {
        self.numbers.len() == self.list.len()
    }

    /// Every name is text that no other name has: a chunk can be told by it alone.
    pub(crate) fn are_plain(&self) -> bool {
        self.are_distinct()
            && self.iter().all(|name| !name.is_empty() && std::str::from_utf8(name).is_ok())
    }
}
