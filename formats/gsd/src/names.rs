//! Chunk names and their numbers (ids).

use std::collections::HashMap;
use std::sync::Arc;

use spile_core::{Error, Limits, Result, Source};

use crate::ops::NameRule;
use crate::wire::{Form, Header, SLOT};

/// Memory of a name in bytes, besides its characters, which are kept three times.
const NAME_COST: u64 = 200;

/// Names by id and ids by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Names {
    list: Vec<Vec<u8>>,
    /// The names as UTF-8, with replacement characters where they are not.
    display: Vec<Arc<str>>,
    ids: HashMap<Vec<u8>, u32>,
    /// Number of names before the first empty one, which ends the list. Names after it are read because
    /// some writers accepted empty names.
    pub(crate) listed: usize,
    /// Bytes of the list up to its end.
    pub(crate) used: u64,
    /// The last name has no NUL terminator.
    pub(crate) unterminated: bool,
    cost: u64,
    limits: Limits,
}

impl Names {
    /// No names yet.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { limits: *limits, ..Self::default() }
    }

    /// Reads the name list of a file. It is empty in 0.0.1, where names are in the entries.
    pub(crate) fn read(source: &Source, header: &Header, limits: &Limits) -> Result<Self> {
        let Some(block) = header.names else { return Ok(Self::new(limits)) };
        let bad = |message: String| {
            let offset = if header.form == Form::V0_2 { 160 } else { 24 };
            Error::malformed("gsd-006", message).in_object("name list").at(offset)
        };
        let truncated = |message: String| {
            Error::truncated("gsd-006", message).in_object("name list").at(block.location)
        };
        if block.location < header.form.header_size() || block.allocated == 0 {
            return Err(bad("name list location or size is 0 or inside the header".into()));
        }
        let bytes = block.allocated.checked_mul(SLOT).filter(|bytes| bytes >> 63 == 0);
        let bytes = bytes.ok_or_else(|| bad("the name list is larger than any file".into()))?;
        let present = source.current_len()?.saturating_sub(block.location).min(bytes);
        if present == 0 {
            return Err(truncated("the name list is after the end of the file".into()));
        }
        limits.allow(present, "the name list")?;
        let raw = source.read_vec(block.location, present)?;
        // Only the unused end may be missing.
        if present < bytes && !raw.ends_with(&[0, 0]) {
            return Err(truncated("the file ends inside the name list".into()));
        }
        let mut names = Self::new(limits);
        if header.form == Form::V2 {
            let end = raw.iter().rposition(|b| *b != 0).map_or(0, |k| k + 1);
            names.unterminated = raw.last().is_some_and(|b| *b != 0);
            for name in raw[..end].split(|b| *b == 0).filter(|_| end > 0) {
                names.push(name)?;
            }
            let list = &names.list;
            names.listed = list.iter().position(Vec::is_empty).unwrap_or(list.len());
            names.used = list[..names.listed].iter().map(|n| n.len() as u64 + 1).sum();
        } else {
            for slot in raw.chunks(SLOT as usize) {
                let end = slot.iter().position(|b| *b == 0).unwrap_or(slot.len());
                names.unterminated |= end == slot.len();
                if end == 0 {
                    break;
                }
                names.push(&slot[..end])?;
            }
            names.listed = names.list.len();
            names.used = names.listed as u64 * SLOT;
        }
        Ok(names)
    }

    fn push(&mut self, name: &[u8]) -> Result<u32> {
        self.cost += NAME_COST + 3 * name.len() as u64;
        if self.cost > 1 << 18 {
            self.limits.allow(self.cost, "the names of the chunks")?;
        }
        let id = self.list.len() as u32;
        self.list.push(name.to_vec());
        self.display.push(String::from_utf8_lossy(name).into());
        // Lookup by name finds the first of two equal names.
        self.ids.entry(name.to_vec()).or_insert(id);
        Ok(id)
    }

    /// The id of a name, which is added if it is new.
    pub(crate) fn intern(&mut self, name: &[u8]) -> Result<u32> {
        if let Some(id) = self.ids.get(name) {
            return Ok(*id);
        }
        let id = self.push(name)?;
        self.listed = self.list.len();
        Ok(id)
    }

    /// The id of a name.
    pub(crate) fn id(&self, name: &[u8]) -> Option<u32> {
        self.ids.get(name).copied()
    }

    /// `id` if it is the id of this name.
    pub(crate) fn id_at(&self, id: u32, name: &[u8]) -> Option<u32> {
        // The first of two equal names is the one that is found.
        let distinct = self.ids.len() == self.list.len();
        Some(id).filter(|_| distinct && self.list.get(id as usize).is_some_and(|own| own == name))
    }

    /// The bytes of a name; none for an unknown id.
    pub(crate) fn bytes(&self, id: u32) -> &[u8] {
        self.list.get(id as usize).map_or(&[], Vec::as_slice)
    }

    /// The name for display; empty for an unknown id.
    pub(crate) fn display(&self, id: u32) -> Arc<str> {
        self.display.get(id as usize).map_or_else(|| "".into(), Arc::clone)
    }

    /// The id is valid. In an empty list id 0 is an empty name, as in a file whose only chunk has an
    /// empty name.
    pub(crate) fn contains(&self, id: u32) -> bool {
        (id as usize) < self.list.len().max(1)
    }

    /// Number of names.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// All names in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.list.iter().map(Vec::as_slice)
    }

    /// The names in the encoding of the name list, from the `first`-th on: NUL-terminated in 2.x, in slots
    /// of 64 bytes before.
    pub(crate) fn encode(&self, form: Form, first: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for name in self.iter().skip(first) {
            bytes.extend_from_slice(name);
            let padding = if form == Form::V2 { 1 } else { SLOT as usize - name.len() };
            bytes.resize(bytes.len() + padding, 0);
        }
        bytes
    }

    /// Unique, non-empty names for a new file. Old versions truncated long names, so that names of
    /// different chunks may be equal. `used` adds the empty name of an empty list, see
    /// [`Names::contains`].
    pub(crate) fn distinct(&self, rule: NameRule, used: bool) -> Result<Self> {
        let mut names = Self::new(&self.limits);
        for id in 0..self.len().max(usize::from(used)) as u32 {
            let mut name = match rule {
                NameRule::Keep => self.bytes(id).to_vec(),
                NameRule::Utf8 => utf8(self.bytes(id)).into_bytes(),
            };
            if name.is_empty() {
                name = format!("unnamed-{id}").into_bytes();
            }
            while names.id(&name).is_some() {
                name.push(b'~');
            }
            names.intern(&name)?;
        }
        Ok(names)
    }

    /// All names are non-empty UTF-8 and different from each other.
    pub(crate) fn are_unique_text(&self) -> bool {
        self.ids.len() == self.list.len()
            && self.iter().all(|name| !name.is_empty() && std::str::from_utf8(name).is_ok())
    }
}

/// The name, with bytes that are not UTF-8 as `%` and two hexadecimal digits.
fn utf8(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for part in name.utf8_chunks() {
        text.push_str(part.valid());
        text.extend(part.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    text
}
