//! The index of a file: finding its end, unfinished commits, sequential scans.
//!
//! | file | content |
//! |---|---|
//! | `pages` | pages of entries, read on demand |
//! | `lookup` | entries by frame and name |
//! | `data_range` | validation of entries |

mod data_range;
mod lookup;
mod pages;

use std::ops::Range;
use std::sync::OnceLock;

use spile_core::error::human_bytes;
use spile_core::{Error, Hint, Limits, Result, Source};

use crate::names::Names;
use crate::ops::NameRule;
use crate::wire::{Abi, Block, Entry, Form, Header};
use pages::{PAGE, PageCache};

pub use data_range::DataRange;

/// Bytes of the index that a scan reads at once.
const SCAN: u64 = 256 << 10;

/// Free entries after the end of the index that are read when a file is opened.
const AHEAD: u64 = 256;

/// Entries up to which [`sample`] covers the whole range.
const SMALL: u64 = 8192;

/// Frames that a file with few entries may have.
const EMPTY_FRAMES: u64 = 1 << 20;

/// Pages in a sample of a larger range.
const SAMPLE_PAGES: u64 = 32;

/// Header, names and index of a file.
pub(crate) struct Index {
    pub(crate) source: Source,
    pub(crate) header: Header,
    pub(crate) names: Names,
    /// Number of entries in use.
    pub(crate) count: u64,
    /// Number of entries that the allocated block has room for, as far as it is inside the file.
    pub(crate) capacity: u64,
    /// The last commit was not completed: its entries are not part of the index.
    pub(crate) torn: bool,
    /// The last non-empty entry after the end of the index, where all must be empty. The entry that ends
    /// the index is damaged then.
    pub(crate) entry_after_end: Option<u64>,
    limits: Limits,
    cache: PageCache,
    last_frame: OnceLock<u64>,
}

impl Index {
    /// Reads header and names and finds the end of the index by bisection. In files of 0.0.1, whose
    /// names are in the entries, all entries are read.
    pub(crate) fn open(source: &Source, limits: &Limits) -> Result<Self> {
        // A writer may move the index while its end is searched.
        let mut before = None;
        for _ in 0..100 {
            let mut index = Self::new(source, Header::read(source)?, limits)?;
            let mut found = index.find_end(0)?;
            let now = (index.header.clone(), index.count);
            if !found && before.as_ref() == Some(&now) {
                // No other process is writing: this is damage by a power failure.
                index.entry_after_end = index.last_used(index.count..index.capacity)?;
                found = true;
            }
            before = Some(now);
            if found {
                // Names are written before the entries that use them, so they are read after them.
                index.read_names(0)?;
                return Ok(index);
            }
        }
        Err(Error::malformed("gsd-005", "the index was moved 100 times while it was read")
            .in_object("index")
            .at(8))
    }

    /// Opens the index at the location in `header`, which may differ from the header of the file, with
    /// `header.stored_count` entries.
    pub(crate) fn with_header(source: &Source, header: Header, limits: &Limits) -> Result<Self> {
        let mut index = Self::new(source, header, limits)?;
        index.count = index.header.stored_count.unwrap_or(0).min(index.capacity);
        index.read_names(0)?;
        Ok(index)
    }

    fn new(source: &Source, mut header: Header, limits: &Limits) -> Result<Self> {
        let capacity = capacity(source, &mut header)?;
        Ok(Self {
            source: source.clone(),
            header,
            names: Names::new(limits),
            count: 0,
            capacity,
            torn: false,
            entry_after_end: None,
            limits: *limits,
            cache: PageCache::default(),
            last_frame: OnceLock::new(),
        })
    }

    /// Opens the file again, to see what was committed since.
    pub(crate) fn reopen(&self) -> Result<Self> {
        let header = Header::read(&self.source)?;
        if (header.index, header.names) != (self.header.index, self.header.names) {
            return Self::open(&self.source, &self.limits);
        }
        let old = self.count;
        let header = Header { form: self.header.form, ..header };
        let mut index = Self::new(&self.source, header, &self.limits)?;
        index.names = self.names.clone();
        if !index.find_end(old)? {
            return Self::open(&self.source, &self.limits);
        }
        index.read_names(old.min(index.count))?;
        Ok(index)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    pub(crate) fn form(&self) -> Form {
        self.header.form
    }

    /// Offset of an entry in the file.
    pub(crate) fn offset(&self, k: u64) -> u64 {
        self.header.index.location + k * self.form().entry_size()
    }

    /// Finds the number of entries, which is at least `from`. Returns false if the index was moved
    /// meanwhile.
    fn find_end(&mut self, from: u64) -> Result<bool> {
        if let Some(count) = self.header.stored_count {
            if count > self.capacity {
                let message =
                    format!("{count} entries in an index with room for {}", self.capacity);
                return Err(Error::malformed("gsd-005", message).in_object("index").at(160));
            }
            self.count = count;
            return Ok(true);
        }
        // The first entry without a location ends the index.
        let (mut low, mut high) = (from.min(self.capacity), self.capacity);
        // Few entries were added since the last time, so search upwards from there first.
        let mut step = 1;
        while from > 0 && low + step < high {
            if self.read_entry(low + step - 1)?.location == 0 {
                high = low + step;
                break;
            }
            low += step;
            step *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.read_entry(middle)?.location == 0 {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        self.count = low;
        // A marker is written before its entries, so it must be read after them.
        let header = Header::read(&self.source)?;
        if header.index != self.header.index {
            return Ok(false);
        }
        self.header = Header { form: self.header.form, ..header };
        self.apply_marker()?;
        if self.count == self.capacity && self.capacity < self.header.index.allocated {
            return Err(truncated_error(&self.source, self.header.index));
        }
        self.check_after_end()
    }

    /// The last entry in `range` that has a location.
    fn last_used(&self, range: Range<u64>) -> Result<Option<u64>> {
        let mut last = None;
        self.scan(range, |k, entry| {
            last = if entry.location == 0 { last } else { Some(k) };
            Ok(())
        })?;
        Ok(last)
    }

    /// Checks that the entries after the end are empty. If the entry at the end has lost only its
    /// location, it is part of the index, and so are those after it. Returns false if a writer is
    /// adding entries.
    fn check_after_end(&mut self) -> Result<bool> {
        let near = self.count..self.capacity.min(self.count.saturating_add(AHEAD));
        if self.torn || self.last_used(near)?.is_none() {
            return Ok(true);
        }
        let end = self.read_entry(self.count)?;
        if end.location != 0 {
            return Ok(false);
        }
        let last = self.last_used(self.count..self.capacity)?;
        if end.frame != 0 || end.n != 0 {
            self.count = last.map_or(self.count, |last| last + 1);
        } else {
            self.entry_after_end = last;
        }
        Ok(true)
    }

    /// Reads all free entries and returns the last one that is not empty.
    pub(crate) fn find_entry_after_end(&self) -> Result<Option<u64>> {
        if self.entry_after_end.is_some() || self.torn || self.count == self.capacity {
            return Ok(self.entry_after_end);
        }
        if self.header.stored_count.is_some() {
            return Ok(None);
        }
        let last = self.last_used(self.count..self.capacity)?;
        // Entries that a writer is adding are not damage.
        Ok(if last.is_some() && self.read_entry(self.count)?.location == 0 { last } else { None })
    }

    /// Fails with gsd-015 if any free entry is not empty: the index is incomplete.
    pub(crate) fn require_complete(&self) -> Result<()> {
        if self.find_entry_after_end()?.is_some() { Err(self.gap_error()) } else { Ok(()) }
    }

    /// Fails with gsd-015 if a free entry in a sample of them is not empty.
    pub(crate) fn require_complete_sample(&self) -> Result<()> {
        if self.capacity - self.count <= SMALL {
            return self.require_complete();
        }
        let mut used = self.entry_after_end;
        for range in sample(self.count..self.capacity) {
            if used.is_none() && !self.torn && self.header.stored_count.is_none() {
                used = self.last_used(range)?;
            }
        }
        let ended = self.read_entry(self.count)?.location == 0;
        if used.is_some() && ended { Err(self.gap_error()) } else { Ok(()) }
    }

    /// The index ends before its last entry.
    pub(crate) fn gap_error(&self) -> Error {
        Error::malformed("gsd-015", "an empty entry ends the index, but others follow")
            .in_object("index")
            .at(self.offset(self.count))
            .hint(Hint::salvage("recovers the frames on both sides"))
    }

    /// Unique, non-empty names for a new file.
    pub(crate) fn distinct_names(&self, rule: NameRule) -> Result<Names> {
        self.names.distinct(rule, self.count > 0)
    }

    /// Excludes the entries of an unfinished commit and includes those of a finished one.
    fn apply_marker(&mut self) -> Result<()> {
        let Some(marker) = self.header.marker else { return self.drop_partial_entry() };
        if marker.first >= marker.end || marker.end > self.capacity {
            return Ok(());
        }
        if marker.first > self.count {
            // Either all entries before the marker are written by now, or the marker is outdated.
            if self.are_complete(marker.first - 1..marker.first, 0)? {
                self.count = marker.first;
            }
            return Ok(());
        }
        let first = self.read_entry(marker.first)?.frame;
        // The first bytes of an entry of 0.0.1, with the frame, may be missing.
        let partial = self.form().is_v0_0_1() && first < marker.frame;
        if first != marker.frame
            && !partial
            && self.are_complete(marker.first..marker.first + 1, 0)?
        {
            return Ok(());
        }
        if self.are_complete(marker.first..marker.end, marker.frame)? {
            self.count = self.count.max(marker.end);
        } else {
            (self.count, self.torn) = (marker.first, true);
        }
        Ok(())
    }

    /// All entries in `range` are completely written and none is of a frame before `frame`. Disk sectors
    /// are written atomically. Entries since 0.2 do not cross sectors, and the type is their last field.
    /// Entries of 0.0.1 do, and their checksum covers neither frame nor name.
    fn are_complete(&self, range: Range<u64>, mut frame: u64) -> Result<bool> {
        let first = self.form().is_v0_0_1();
        let mut all = true;
        self.scan_bytes(range, |_, bytes| {
            let entry = self.parse(bytes)?;
            let complete = if first { bytes[8] != 0 } else { entry.code != 0 };
            all &= entry.location != 0 && entry.checksum_ok && complete && entry.frame >= frame;
            frame = entry.frame;
            Ok(())
        })?;
        Ok(all)
    }

    /// Excludes the entry of an unfinished commit of one entry, which has no marker: it is the last
    /// entry, the only one of its frame, and has type 0, which no version writes.
    fn drop_partial_entry(&mut self) -> Result<()> {
        let Some(last) = self.count.checked_sub(1).filter(|_| !self.form().is_v0_0_1()) else {
            return Ok(());
        };
        let entry = self.read_entry(last)?;
        if entry.code != 0 || entry.flags != 0 {
            return Ok(());
        }
        if last == 0 || self.read_entry(last - 1)?.frame != entry.frame {
            (self.count, self.torn) = (last, true);
        }
        Ok(())
    }

    /// Reads the name list; in 0.0.1, numbers the names in the entries from `from` on.
    fn read_names(&mut self, from: u64) -> Result<()> {
        if !self.form().is_v0_0_1() {
            self.names = Names::read(&self.source, &self.header, &self.limits)?;
            return Ok(());
        }
        let mut names = std::mem::take(&mut self.names);
        let done = self.scan_bytes(from..self.count, |_, bytes| {
            names.intern(crate::wire::inline_name(&bytes[8..41])).map(drop)
        });
        self.names = names;
        done
    }

    pub(crate) fn parse(&self, bytes: &[u8]) -> Result<Entry> {
        Entry::parse(self.form(), bytes, |name| self.names.id(name).unwrap_or(u32::MAX))
    }

    /// Reads entry `k` from the file, not from the cache.
    pub(crate) fn read_entry(&self, k: u64) -> Result<Entry> {
        let mut bytes = [0; 88];
        let bytes = &mut bytes[..self.form().entry_size() as usize];
        self.source.read_exact_at(self.offset(k), bytes)?;
        self.parse(bytes)
    }

    fn scan_bytes(
        &self,
        range: Range<u64>,
        mut each: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let size = self.form().entry_size();
        let most = SCAN / size;
        let mut buffer = Vec::new();
        let mut k = range.start;
        while k < range.end {
            let part = most.min(range.end - k);
            buffer.resize((part * size) as usize, 0);
            self.source.read_exact_at(self.offset(k), &mut buffer)?;
            for bytes in buffer.chunks_exact(size as usize) {
                each(k, bytes)?;
                k += 1;
            }
        }
        Ok(())
    }

    /// Reads the entries of `range` in order and calls `each` with number and content. Entries are not
    /// validated.
    pub(crate) fn scan(
        &self,
        range: Range<u64>,
        mut each: impl FnMut(u64, Entry) -> Result<()>,
    ) -> Result<()> {
        self.scan_bytes(range, |k, bytes| each(k, self.parse(bytes)?))
    }

    /// Number of frames: frame number of the last entry plus one.
    pub(crate) fn frames(&self) -> Result<u64> {
        let Some(last) = self.count.checked_sub(1) else { return Ok(0) };
        let frame = self.last_frame()?;
        frame.checked_add(1).ok_or_else(|| {
            Error::malformed("gsd-016", format!("frame number {frame}"))
                .in_object("index")
                .at(self.offset(last))
        })
    }

    /// Number of frames, for loops over all frames. Fails if it is out of proportion to the number of
    /// entries: empty frames take no space, so a damaged frame number can be arbitrarily large.
    pub(crate) fn limited_frames(&self) -> Result<u64> {
        let frames = self.frames()?;
        self.allow_frames(frames)?;
        Ok(frames)
    }

    /// Fails if `frames` is too large for a loop over all frames of this file.
    pub(crate) fn allow_frames(&self, frames: u64) -> Result<()> {
        if frames > EMPTY_FRAMES.max(self.count.saturating_mul(4)) {
            return Err(Error::limit(format!("{frames} frames in {} chunks", self.count))
                .in_object("index")
                .at(self.offset(self.count.saturating_sub(1))));
        }
        Ok(())
    }
}

/// About [`SAMPLE_PAGES`] pages of `range`, evenly spaced, first and last included; the whole range if
/// it is small.
pub(crate) fn sample(range: Range<u64>) -> Vec<Range<u64>> {
    if range.end - range.start <= SMALL {
        return vec![range];
    }
    let last = range.end - PAGE;
    let step = (last - range.start) / (SAMPLE_PAGES - 1);
    let starts = (0..SAMPLE_PAGES - 1).map(|k| range.start + k * step).chain([last]);
    starts.map(|start| start..start + PAGE).collect()
}

/// Number of entries that the index has room for. Determines the layout of 0.0.1 where the header leaves
/// it open. The free end of an index that was moved to the end of the file may be missing.
fn capacity(source: &Source, header: &mut Header) -> Result<u64> {
    let Block { location, allocated } = header.index;
    let at = if header.form == Form::V1 || header.form == Form::V2 { 8 } else { 144 };
    let bad = |message: &str| Err(Error::malformed("gsd-005", message).in_object("index").at(at));
    if location < header.form.header_size() || allocated == 0 {
        return bad("index location or size is 0 or inside the header");
    }
    if location >> 63 != 0 || allocated >> 50 != 0 {
        return bad("the index is larger than any file");
    }
    let present = source.current_len()?.saturating_sub(location);
    if header.form == Form::V0_0_1(Abi::I386) {
        header.form = Form::V0_0_1(layout(source, location, allocated, present)?);
    }
    let size = header.form.entry_size();
    if present >= allocated * size {
        return Ok(allocated);
    }
    let moved = match header.names {
        Some(names) => names.location < location,
        None => location > header.form.header_size(),
    };
    if !moved || present < size {
        return Err(truncated_error(source, header.index));
    }
    Ok(present / size)
}

fn truncated_error(source: &Source, index: Block) -> Error {
    let message = format!(
        "index of {} entries: the file ends after {}",
        index.allocated,
        human_bytes(source.len())
    );
    Error::truncated("gsd-005", message)
        .in_object("index")
        .at(index.location)
        .hint(Hint::salvage("recovers every complete frame"))
}

/// Distinguishes 32-bit and packed entries by their checksums, in an empty index by its length.
fn layout(source: &Source, location: u64, allocated: u64, present: u64) -> Result<Abi> {
    for k in 0..allocated.min(16) {
        for abi in [Abi::I386, Abi::Packed] {
            let form = Form::V0_0_1(abi);
            let mut bytes = [0; 84];
            let bytes = &mut bytes[..form.entry_size() as usize];
            if source.read_at_most(location + k * form.entry_size(), bytes)? < bytes.len() {
                continue;
            }
            let entry = Entry::parse(form, bytes, |_| 0)?;
            if entry.checksum_ok && entry.location != 0 {
                return Ok(abi);
            }
        }
    }
    let fits = present >= allocated * Form::V0_0_1(Abi::I386).entry_size();
    Ok(if fits { Abi::I386 } else { Abi::Packed })
}
