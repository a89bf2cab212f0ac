//! Validation of index entries: every check that an entry must pass before its data are read.

use spile_core::error::human_bytes;
use spile_core::{Error, Hint, Result};

use super::Index;
use crate::wire::{Block, Entry, SLOT, Type};

/// Position and element type of the data of a chunk. The range is inside the file and outside the
/// header, the index and the name list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataRange {
    /// Element type.
    pub kind: Type,
    /// First byte.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
}

impl Index {
    /// Validates entry `k` and returns where its data are. Fails with the offset of the entry if a
    /// field is invalid or the data are not in the file.
    pub(crate) fn locate(&self, k: u64, entry: &Entry) -> Result<DataRange> {
        self.validate(entry).map_err(|e| self.add_context(k, entry, e))
    }

    /// Adds chunk name, frame and offset of entry `k` to an error.
    pub(crate) fn add_context(&self, k: u64, entry: &Entry, error: Error) -> Error {
        let name = self.names.display(entry.id);
        error.in_object(format!("chunk \"{name}\"")).in_frame(entry.frame).at(self.offset(k))
    }

    fn validate(&self, entry: &Entry) -> Result<DataRange> {
        let form = self.form();
        let malformed = |code, message: String| Err(Error::malformed(code, message));
        if !entry.checksum_ok {
            return malformed("gsd-013", "wrong checksum of the index entry".into());
        }
        let Some(kind) = entry.kind(form) else {
            return malformed("gsd-007", format!("unknown element type {}", entry.code));
        };
        if entry.flags != 0 {
            return malformed("gsd-008", format!("expected flags 0, found {}", entry.flags));
        }
        if !self.names.contains(entry.id) {
            let message = format!("name {} of {} names", entry.id, self.names.len());
            return malformed("gsd-011", message);
        }
        let Some(len) = kind.bytes(entry.n, entry.m) else {
            let size = format!("{} x {} {}", entry.n, entry.m, kind.name());
            return malformed("gsd-014", format!("{size} is larger than any file"));
        };
        if entry.location == 0 {
            return malformed("gsd-015", "entry without a location inside the index".into());
        }
        let outside = |offset: &u64| {
            *offset >= form.header_size() && (len == 0 || !self.is_reserved(*offset, offset + len))
        };
        let Some(offset) = u64::try_from(entry.location).ok().filter(outside) else {
            return malformed("gsd-010", format!("invalid data location {}", entry.location));
        };
        // A file that is being written may have grown since it was opened.
        let end = offset + len;
        if end > self.source.len() && end > self.source.current_len()? {
            let file = human_bytes(self.source.len());
            let message =
                format!("{} at byte {offset}: the file ends after {file}", human_bytes(len));
            return Err(Error::truncated("gsd-009", message)
                .hint(Hint::salvage("recovers every complete frame")));
        }
        Ok(DataRange { kind, offset, len })
    }

    /// The header, the index or the name list overlaps `start..end`.
    fn is_reserved(&self, start: u64, end: u64) -> bool {
        let overlaps = |from: u64, bytes: u64| start < from.saturating_add(bytes) && from < end;
        let Block { location, allocated } = self.header.index;
        start < self.form().header_size()
            || overlaps(location, allocated.saturating_mul(self.form().entry_size()))
            || (self.header.names)
                .is_some_and(|n| overlaps(n.location, n.allocated.saturating_mul(SLOT)))
    }

    /// Offset after the header, the index and the name list.
    pub(crate) fn end_of_blocks(&self) -> u64 {
        let end = |at: u64, bytes: u64| at.saturating_add(bytes);
        let Block { location, allocated } = self.header.index;
        let index = end(location, allocated.saturating_mul(self.form().entry_size()));
        let names =
            self.header.names.map_or(0, |n| end(n.location, n.allocated.saturating_mul(SLOT)));
        index.max(names).max(self.form().header_size())
    }
}
