//! Which arrays a file has: element types and ranks of its names, taken from index entries.
//!
//! Small indexes are read completely, of larger ones a sample of pages. Names that are not in the sample
//! are searched from the first entry on until all are found; usually frame 0 has them.

use std::collections::{BTreeMap, BTreeSet};

use spile_core::error::Result;
use spile_core::limits::Limits;
use spile_core::shape::Shape;

use crate::index::{Index, sample};
use crate::read::shape;
use crate::wire::{Entry, Type};

/// Memory of an array of the tree in bytes.
const ARRAY_COST: u64 = 600;

/// Entries that are read between two checks whether all names are found.
const STEP: u64 = 2048;

/// Chunks of one name and element type.
#[derive(Clone)]
pub(super) struct Column {
    /// Rows and columns of the first chunk.
    pub(super) first: Shape,
    /// A chunk has another number of columns than 1.
    pub(super) columns: bool,
}

/// Content of the index entries that were read.
#[derive(Clone)]
pub(super) struct Survey {
    /// Number of entries, read or skipped, and frame of the last one.
    pub(super) entries: u64,
    frame: u64,
    pub(super) columns: BTreeMap<(u32, Type), Column>,
    /// Name ids of entries with an invalid type, size or name.
    pub(super) damaged: BTreeSet<u32>,
    /// Number of invalid entries.
    pub(super) invalid: u64,
    /// All entries were read.
    pub(super) complete: bool,
}

impl Survey {
    pub(super) fn new() -> Self {
        let (columns, damaged) = (BTreeMap::new(), BTreeSet::new());
        Self { entries: 0, frame: 0, columns, damaged, invalid: 0, complete: true }
    }

    /// Adds the entries from `self.entries` on. Fails with gsd-012 if the frames of those it reads are
    /// not in order. Invalid entries are errors only when their frame is read.
    pub(super) fn extend(&mut self, index: &Index, limits: &Limits) -> Result<()> {
        let ranges = sample(self.entries..index.count);
        self.complete &= ranges.len() == 1;
        for range in ranges {
            index.scan(range, |k, entry| {
                if entry.frame < self.frame {
                    return Err(index.order_error(k, self.frame));
                }
                self.frame = entry.frame;
                self.invalid += u64::from(index.locate(k, &entry).is_err());
                self.add(index, &entry, limits)
            })?;
        }
        self.entries = index.count;
        if self.complete { Ok(()) } else { self.find_missing(index, limits) }
    }

    fn add(&mut self, index: &Index, entry: &Entry, limits: &Limits) -> Result<()> {
        let kind = entry.kind(index.form()).filter(|_| entry.bytes(index.form()).is_some());
        let Some(kind) = kind.filter(|_| index.names.contains(entry.id)) else {
            self.damaged.insert(entry.id);
            return Ok(());
        };
        let known = self.columns.len() as u64;
        let column = self
            .columns
            .entry((entry.id, kind))
            .or_insert_with(|| Column { first: shape(entry, true), columns: false });
        column.columns |= entry.m != 1;
        if known > 1000 {
            limits.allow(known * ARRAY_COST, "the list of arrays")?;
        }
        Ok(())
    }

    /// Searches the names that were not in the sample.
    fn find_missing(&mut self, index: &Index, limits: &Limits) -> Result<()> {
        let ids = 0..index.names.len() as u32;
        let mut missing: BTreeSet<u32> =
            ids.filter(|id| self.kinds(*id).next().is_none()).collect();
        let mut start = 0;
        while start < index.count && !missing.is_empty() {
            let end = index.count.min(start + STEP);
            index.scan(start..end, |_, entry| {
                if missing.contains(&entry.id) {
                    self.add(index, &entry, limits)?;
                    if self.kinds(entry.id).next().is_some() {
                        missing.remove(&entry.id);
                    }
                }
                Ok(())
            })?;
            start = end;
        }
        Ok(())
    }

    /// Element types of a name.
    pub(super) fn kinds(&self, id: u32) -> impl Iterator<Item = Type> {
        let columns = self.columns.range((id, Type::UInt8)..);
        columns.map(|(key, _)| *key).take_while(move |key| key.0 == id).map(|key| key.1)
    }
}
