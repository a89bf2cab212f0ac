//! Which arrays a file has: element types and ranks of its names, taken from index entries.
//!
//! Small indexes are read completely, of larger ones a sample of pages. Names that are not in the sample
//! are searched from the first entry on until all are found; usually frame 0 has them.

use std::collections::{BTreeMap, BTreeSet};

use spile_core::{Error, Finding, Hint, Report, Result, Shape};

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

/// Chunks of one name that cannot be read.
#[derive(Clone)]
pub(super) struct Damage {
    /// Number of chunks.
    pub(super) chunks: u64,
    /// Why the first one cannot be read.
    first: Finding,
}

impl Damage {
    /// The finding for the array at `path`; `complete` if all chunks were examined.
    pub(super) fn finding(&self, path: &str, complete: bool) -> Finding {
        let mut finding = self.first.clone();
        if self.chunks > 1 || !complete {
            let bound = if complete { "" } else { "at least " };
            let unit = if self.chunks == 1 { "chunk" } else { "chunks" };
            let (count, first) = (self.chunks, &self.first.message);
            finding.message = format!("{bound}{count} {unit} cannot be read; the first: {first}");
        }
        finding.in_object(path).hint(Hint::salvage("recovers every complete frame"));
        finding
    }
}

/// Content of the index entries that were read.
#[derive(Clone)]
pub(super) struct Survey {
    /// Number of entries, read or skipped, and frame of the last one.
    pub(super) entries: u64,
    frame: u64,
    pub(super) columns: BTreeMap<(u32, Type), Column>,
    /// Invalid entries by name id.
    pub(super) damaged: BTreeMap<u32, Damage>,
    /// All entries were read.
    pub(super) complete: bool,
}

impl Survey {
    pub(super) fn new() -> Self {
        let (columns, damaged) = (BTreeMap::new(), BTreeMap::new());
        Self { entries: 0, frame: 0, columns, damaged, complete: true }
    }

    /// Adds the entries from `self.entries` on. Fails with gsd-012 if the frames of those it reads are
    /// not in order. Invalid entries are errors only when their frame is read.
    pub(super) fn extend(&mut self, index: &Index) -> Result<()> {
        let ranges = sample(self.entries..index.count);
        self.complete &= ranges.len() == 1;
        for range in ranges {
            index.scan(range, |k, entry| {
                if entry.frame < self.frame {
                    return Err(index.order_error(k, self.frame));
                }
                self.frame = entry.frame;
                if let Err(error) = index.locate(k, &entry) {
                    self.add_damage(entry.id, error)?;
                }
                self.add(index, &entry)
            })?;
        }
        self.entries = index.count;
        if self.complete { Ok(()) } else { self.find_missing(index) }
    }

    fn add(&mut self, index: &Index, entry: &Entry) -> Result<()> {
        let kind = entry.kind(index.form()).filter(|_| entry.bytes(index.form()).is_some());
        let Some(kind) = kind.filter(|_| index.names.contains(entry.id)) else {
            return Ok(());
        };
        let known = (self.columns.len() + self.damaged.len()) as u64;
        let column = self
            .columns
            .entry((entry.id, kind))
            .or_insert_with(|| Column { first: shape(entry, true), columns: false });
        column.columns |= entry.m != 1;
        if known > 1000 {
            index.limits().allow(known * ARRAY_COST, "the list of arrays")?;
        }
        Ok(())
    }

    fn add_damage(&mut self, id: u32, error: Error) -> Result<()> {
        if !error.is_about_content() {
            return Err(error);
        }
        if let Some(damage) = self.damaged.get_mut(&id) {
            damage.chunks += 1;
            return Ok(());
        }
        let mut report = Report::default();
        report.absorb(error)?;
        let findings = report.findings.into_iter();
        self.damaged.extend(findings.map(|first| (id, Damage { chunks: 1, first })));
        Ok(())
    }

    /// Searches the names that were not in the sample.
    fn find_missing(&mut self, index: &Index) -> Result<()> {
        let ids = 0..index.names.len() as u32;
        let mut missing: BTreeSet<u32> =
            ids.filter(|id| self.kinds(*id).next().is_none()).collect();
        let mut start = 0;
        while start < index.count && !missing.is_empty() {
            let end = index.count.min(start + STEP);
            index.scan(start..end, |k, entry| {
                if missing.contains(&entry.id) {
                    // Invalid entries of the sample are already counted.
                    if !self.damaged.contains_key(&entry.id)
                        && let Err(error) = index.locate(k, &entry)
                    {
                        self.add_damage(entry.id, error)?;
                    }
                    self.add(index, &entry)?;
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
