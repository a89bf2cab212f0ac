//! Everything that must hold for the data of an entry to be read.

use spile_core::error::{Error, Result, human_bytes};

use crate::index::Index;
use crate::wire::{Block, Entry, Form, SLOT, Type};

/// Where the data of a chunk are, after every check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Element type.
    pub kind: Type,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// Why the data of an entry cannot be read.
#[derive(Clone, Copy)]
pub(crate) enum Fault {
    Checksum,
    Type,
    Flags,
    Name,
    Size,
    Empty,
    Location,
}

impl Place {
    /// Where an entry of 2.0 or later says that its data are. Only for one that is checked.
    #[inline]
    pub(crate) fn stated(entry: &Entry) -> Option<Self> {
        let kind = entry.kind(Form::List)?;
        let len = kind.bytes(entry.n, entry.m)?;
        Some(Self { kind, offset: u64::try_from(entry.location).ok()?, len })
    }
}

impl Index {
    /// The data of an entry can be read.
    pub(crate) fn is_readable(&self, entry: &Entry) -> bool {
        let place = self.check_entry(entry);
        place.is_ok_and(|place| place.offset + place.len <= self.source.len())
    }

    /// Everything that must hold for the data of an entry to be read.
    #[inline]
    pub(crate) fn place(&self, k: u64, entry: &Entry) -> Result<Place> {
        match self.check_entry(entry) {
            Ok(place) if place.offset + place.len <= self.source.len() => Ok(place),
            checked => self.look_again(checked, entry).map_err(|e| self.at(k, entry, e)),
        }
    }

    /// Adds to an error which entry it is about.
    pub(crate) fn at(&self, k: u64, entry: &Entry, error: Error) -> Error {
        let name = self.names.text(entry.id);
        error.in_object(format!("chunk \"{name}\"")).in_frame(entry.frame).at(self.offset(k))
    }

    /// Everything but the end of the file. Every lookup passes here.
    #[inline]
    pub(crate) fn check_entry(&self, entry: &Entry) -> std::result::Result<Place, Fault> {
        let form = self.form();
        if !entry.sound {
            return Err(Fault::Checksum);
        }
        let Some(kind) = entry.kind(form) else { return Err(Fault::Type) };
        if entry.flags != 0 {
            return Err(Fault::Flags);
        }
        if !self.names.has(entry.id) {
            return Err(Fault::Name);
        }
        let Some(len) = kind.bytes(entry.n, entry.m) else { return Err(Fault::Size) };
        if entry.location == 0 {
            return Err(Fault::Empty);
        }
        let Ok(offset) = u64::try_from(entry.location) else { return Err(Fault::Location) };
        // Both are below 2^63.
        let end = offset + len;
        if offset < form.header_size() || (len > 0 && self.is_taken(offset, end)) {
            return Err(Fault::Location);
        }
        Ok(Place { kind, offset, len })
    }

    /// Between these bytes there is something other than data.
    #[inline]
    pub(crate) fn is_taken(&self, start: u64, end: u64) -> bool {
        let overlaps = |from: u64, bytes: u64| start < from.saturating_add(bytes) && from < end;
        let Block { location, allocated } = self.header.index;
        let size = self.form().entry_size();
        start < self.form().header_size()
            || overlaps(location, allocated.saturating_mul(size))
            || (self.header.names)
                .is_some_and(|n| overlaps(n.location, n.allocated.saturating_mul(SLOT)))
    }

    /// What is wrong with an entry. A file that someone is writing may have grown since it was
    /// opened: then nothing is.
    #[cold]
    fn look_again(
        &self,
        checked: std::result::Result<Place, Fault>,
        entry: &Entry,
    ) -> Result<Place> {
        let (code, message) = match checked {
            Ok(place) => {
                let Place { offset, len, .. } = place;
                if offset + len <= self.source.current_len()? {
                    return Ok(place);
                }
                let message = format!(
                    "{} at byte {offset}, the file ends after {}",
                    human_bytes(len),
                    human_bytes(self.source.len())
                );
                return Err(Error::truncated("gsd-009", message)
                    .hint("`spile salvage` keeps every frame that is whole"));
            }
            Err(Fault::Checksum) => ("gsd-013", "the checksum of the entry is wrong".into()),
            Err(Fault::Type) => ("gsd-007", format!("there is no element type {}", entry.code)),
            Err(Fault::Flags) => ("gsd-008", format!("flags {} where there are none", entry.flags)),
            Err(Fault::Name) => {
                ("gsd-011", format!("name number {} of {}", entry.id, self.names.len()))
            }
            Err(Fault::Size) => {
                let name = entry.kind(self.form()).map_or_else(String::new, Type::name);
                ("gsd-014", format!("{} x {} {name} fit no file", entry.n, entry.m))
            }
            Err(Fault::Empty) => ("gsd-015", "an entry without a location amid others".into()),
            Err(Fault::Location) => {
                ("gsd-010", format!("the data cannot lie at {}", entry.location))
            }
        };
        Err(Error::malformed(code, message))
    }
}
