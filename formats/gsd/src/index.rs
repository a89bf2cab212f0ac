//! The index: entries read when they are needed, found by bisection, and never trusted unseen.

use std::ops::Range;

use spile_core::error::{Error, Result, human_bytes};
use spile_core::limits::Limits;
use spile_core::source::Source;

use crate::names::Names;
use crate::pages::Pages;
use crate::wire::{Abi, Block, Entry, Form, Header};

/// Bytes of the index that a scan holds.
const SCAN: u64 = 256 << 10;

/// Entries behind the end that are looked at when a file is opened: damage is rarely larger.
const AHEAD: u64 = 256;

/// Header, names and index of a file.
pub(crate) struct Index {
    pub(crate) source: Source,
    pub(crate) header: Header,
    pub(crate) names: Names,
    /// Entries that count.
    pub(crate) count: u64,
    /// Entries there is room for, in the file as it is.
    pub(crate) room: u64,
    /// A commit that was never finished: its entries do not count.
    pub(crate) torn: bool,
    /// The last of entries behind the end, where there must be none: what ended the index too
    /// early is damage.
    pub(crate) beyond: Option<u64>,
    limits: Limits,
    pub(crate) pages: Pages,
}

impl Index {
    /// Reads header and names and finds the end of the index. Nothing else is read, except from
    /// files of 0.0.1, whose names are in the entries.
    pub(crate) fn open(source: &Source, limits: &Limits) -> Result<Self> {
        // A live file may move its index while we look for the end of it.
        let mut before = None;
        for _ in 0..100 {
            let mut index = Self::start(source, Header::read(source)?, limits)?;
            let mut found = index.find_end(0)?;
            let now = (index.header.clone(), index.count);
            if !found && before.as_ref() == Some(&now) {
                // Nobody is writing: a power failure has left an end that is none.
                index.beyond = index.last_used(index.count..index.room)?;
                found = true;
            }
            before = Some(now);
            if found {
                // After the entries: names are written before the entries that use them.
                index.read_names(0)?;
                return Ok(index);
            }
        }
        Err(Error::malformed("gsd-005", "the index is moving all the time")
            .in_object("index")
            .at(8))
    }

    /// An index that is where `header` says, whatever the file's own header says; its entries are
    /// counted already.
    pub(crate) fn on(source: &Source, header: Header, limits: &Limits) -> Result<Self> {
        let mut index = Self::start(source, header, limits)?;
        index.count = index.header.counted.unwrap_or(0).min(index.room);
        index.read_names(0)?;
        Ok(index)
    }

    fn start(source: &Source, mut header: Header, limits: &Limits) -> Result<Self> {
        let room = room(source, &mut header)?;
        Ok(Self {
            source: source.clone(),
            header,
            names: Names::default(),
            count: 0,
            room,
            torn: false,
            beyond: None,
            limits: *limits,
            pages: Pages::default(),
        })
    }

    /// Looks again: the same file with what was committed since.
    pub(crate) fn reopen(&self) -> Result<Self> {
        let header = Header::read(&self.source)?;
        if (header.index, header.names) != (self.header.index, self.header.names) {
            return Self::open(&self.source, &self.limits);
        }
        let old = self.count;
        let mut index = Self {
            source: self.source.clone(),
            header: Header { form: self.header.form, ..header },
            names: self.names.clone(),
            count: 0,
            room: self.room,
            torn: false,
            beyond: None,
            limits: self.limits,
            pages: Pages::default(),
        };
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

    /// Byte of an entry.
    pub(crate) fn offset(&self, k: u64) -> u64 {
        self.header.index.location + k * self.form().entry_size()
    }

    /// Finds the number of entries, at least `from` of which are known to be there. False if the
    /// index has moved meanwhile.
    fn find_end(&mut self, from: u64) -> Result<bool> {
        if let Some(count) = self.header.counted {
            if count > self.room {
                let message =
                    format!("{count} entries are counted, there is room for {}", self.room);
                return Err(Error::malformed("gsd-005", message).in_object("index").at(160));
            }
            self.count = count;
            return Ok(true);
        }
        // The first entry without a location ends the index.
        let (mut low, mut high) = (from.min(self.room), self.room);
        // Little was added since the last look, if anything.
        let mut step = 1;
        while from > 0 && low + step < high {
            if self.fresh(low + step - 1)?.location == 0 {
                high = low + step;
                break;
            }
            low += step;
            step *= 2;
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if self.fresh(middle)?.location == 0 {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        self.count = low;
        // What a commit announces is written before its entries: only a marker that is read after
        // them is sure to know about all that were seen.
        let header = Header::read(&self.source)?;
        if header.index != self.header.index {
            return Ok(false);
        }
        self.header = Header { form: self.header.form, ..header };
        self.apply_marker()?;
        if self.count == self.room && self.room < self.header.index.allocated {
            return Err(cut(&self.source, self.header.index));
        }
        self.look_beyond()
    }

    /// The last entry of `range` that has a location.
    fn last_used(&self, range: Range<u64>) -> Result<Option<u64>> {
        let mut last = None;
        self.scan(range, |k, entry| {
            last = if entry.location == 0 { last } else { Some(k) };
            Ok(())
        })?;
        Ok(last)
    }

    /// Looks whether the index really ends here. An entry that only lost its location is counted:
    /// it costs itself, not all that follow. False if somebody is adding entries right now.
    fn look_beyond(&mut self) -> Result<bool> {
        let near = self.count..self.room.min(self.count.saturating_add(AHEAD));
        if self.torn || self.last_used(near)?.is_none() {
            return Ok(true);
        }
        let end = self.fresh(self.count)?;
        if end.location != 0 {
            return Ok(false);
        }
        let last = self.last_used(self.count..self.room)?;
        if end.frame != 0 || end.n != 0 {
            self.count = last.map_or(self.count, |last| last + 1);
        } else {
            self.beyond = last;
        }
        Ok(true)
    }

    /// The last of entries behind the end, wherever it is: all free room is read.
    pub(crate) fn find_beyond(&self) -> Result<Option<u64>> {
        if self.beyond.is_some() || self.torn || self.count == self.room {
            return Ok(self.beyond);
        }
        if self.header.counted.is_some() {
            return Ok(None);
        }
        let last = self.last_used(self.count..self.room)?;
        // What somebody is adding right now is not damage.
        Ok(if last.is_some() && self.fresh(self.count)?.location == 0 { last } else { None })
    }

    /// An error if there are entries behind the end, which would be passed over. For whoever goes
    /// through the whole file anyway.
    pub(crate) fn require_whole(&self) -> Result<()> {
        if self.find_beyond()?.is_some() { Err(self.hole()) } else { Ok(()) }
    }

    /// The index ends before its last entry.
    pub(crate) fn hole(&self) -> Error {
        Error::malformed("gsd-015", "an empty entry ends the index, and others follow")
            .in_object("index")
            .at(self.offset(self.count))
            .hint("`spile salvage` keeps the frames on both sides")
    }

    /// The names as a new file has them.
    pub(crate) fn distinct_names(&self, limits: &Limits) -> Result<Names> {
        self.names.distinct(self.count > 0, limits)
    }

    /// Leaves out what an unfinished commit has written, and counts what a finished one has.
    fn apply_marker(&mut self) -> Result<()> {
        let Some(marker) = self.header.marker else { return self.drop_cut_entry() };
        if marker.first >= marker.end || marker.end > self.room {
            return Ok(());
        }
        if marker.first > self.count {
            // Either all before it is there by now, or the marker is older than the index.
            if self.are_there(marker.first - 1..marker.first, 0)? {
                self.count = marker.first;
            }
            return Ok(());
        }
        let first = self.fresh(marker.first)?.frame;
        // Of an entry of 0.0.1 the first bytes may be missing, and with them the frame.
        let cut = self.form().is_first() && first < marker.frame;
        if first != marker.frame && !cut && self.are_there(marker.first..marker.first + 1, 0)? {
            return Ok(());
        }
        if self.are_there(marker.first..marker.end, marker.frame)? {
            self.count = self.count.max(marker.end);
        } else {
            (self.count, self.torn) = (marker.first, true);
        }
        Ok(())
    }

    /// All of these entries have been written as a whole, none of them before `frame`. A sector of
    /// the disk is written at once: entries of later versions do not cross any, and their type comes
    /// last; those of 0.0.1 do, and their checksum knows neither frame nor name.
    fn are_there(&self, range: Range<u64>, mut frame: u64) -> Result<bool> {
        let first = self.form().is_first();
        let mut all = true;
        self.scan_bytes(range, |_, bytes| {
            let entry = self.parse(bytes)?;
            let whole = if first { bytes[8] != 0 } else { entry.code != 0 };
            all &= entry.location != 0 && entry.sound && whole && entry.frame >= frame;
            frame = entry.frame;
            Ok(())
        })?;
        Ok(all)
    }

    /// A commit of one entry has no marker. If it was cut, the entry is the last, is alone in its
    /// frame and has no type, which no version writes.
    fn drop_cut_entry(&mut self) -> Result<()> {
        let Some(last) = self.count.checked_sub(1).filter(|_| !self.form().is_first()) else {
            return Ok(());
        };
        let entry = self.fresh(last)?;
        if entry.code != 0 || entry.flags != 0 {
            return Ok(());
        }
        if last == 0 || self.fresh(last - 1)?.frame != entry.frame {
            (self.count, self.torn) = (last, true);
        }
        Ok(())
    }

    /// Reads the name list, or gives the names in the entries of 0.0.1 their numbers.
    fn read_names(&mut self, from: u64) -> Result<()> {
        if !self.form().is_first() {
            self.names = Names::read(&self.source, &self.header, &self.limits)?;
            return Ok(());
        }
        let mut names = std::mem::take(&mut self.names);
        let done = self.scan_bytes(from..self.count, |_, bytes| {
            names.intern(crate::wire::first_name(&bytes[8..41]), &self.limits).map(drop)
        });
        self.names = names;
        done
    }

    pub(crate) fn parse(&self, bytes: &[u8]) -> Result<Entry> {
        Entry::parse(self.form(), bytes, |name| self.names.id(name).unwrap_or(u32::MAX))
    }

    /// An entry, read from the file now.
    pub(crate) fn fresh(&self, k: u64) -> Result<Entry> {
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

    /// Hands out entries one after the other, unchecked.
    pub(crate) fn scan(
        &self,
        range: Range<u64>,
        mut each: impl FnMut(u64, Entry) -> Result<()>,
    ) -> Result<()> {
        self.scan_bytes(range, |k, bytes| each(k, self.parse(bytes)?))
    }

    /// Number of frames: the last entry's frame and those before it.
    pub(crate) fn frames(&self) -> Result<u64> {
        let Some(last) = self.count.checked_sub(1) else { return Ok(0) };
        let frame = self.last_frame()?;
        frame.checked_add(1).ok_or_else(|| {
            Error::malformed("gsd-012", format!("frame number {frame}"))
                .in_object("index")
                .at(self.offset(last))
        })
    }

    /// The same for whoever goes through all of them: empty frames cost nothing in the file, so
    /// that a damaged number can promise more than anybody has time for.
    pub(crate) fn countable_frames(&self, limits: &Limits) -> Result<u64> {
        let frames = self.frames()?;
        self.allow_frames(frames, limits)?;
        Ok(frames)
    }

    /// So many frames of this file can be gone through one by one.
    pub(crate) fn allow_frames(&self, frames: u64, limits: &Limits) -> Result<()> {
        if frames > limits.nodes.max(self.count.saturating_mul(4)) {
            return Err(Error::limit(format!("{frames} frames in {} chunks", self.count))
                .in_object("index")
                .at(self.offset(self.count.saturating_sub(1))));
        }
        Ok(())
    }
}

/// Entries that the index has room for. Settles the layout of 0.0.1 where the header leaves it
/// open. Of an index that has moved to the end of the file, free room may be missing.
fn room(source: &Source, header: &mut Header) -> Result<u64> {
    let Block { location, allocated } = header.index;
    let at = if header.form == Form::Slots || header.form == Form::List { 8 } else { 144 };
    let bad = |message: &str| Err(Error::malformed("gsd-005", message).in_object("index").at(at));
    if location < header.form.header_size() || allocated == 0 {
        return bad("the index has no place");
    }
    if location >> 63 != 0 || allocated >> 50 != 0 {
        return bad("the index is larger than any file");
    }
    let present = source.current_len()?.saturating_sub(location);
    if header.form == Form::First(Abi::I386) {
        header.form = Form::First(layout(source, location, allocated, present)?);
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
        return Err(cut(source, header.index));
    }
    Ok(present / size)
}

fn cut(source: &Source, index: Block) -> Error {
    let message = format!(
        "the index has {} entries, the file ends after {}",
        index.allocated,
        human_bytes(source.len())
    );
    Error::truncated("gsd-005", message)
        .in_object("index")
        .at(index.location)
        .hint("`spile salvage` keeps every frame that is whole")
}

/// 32-bit or packed entries: the ones whose checksums are right. In an empty index both are, and
/// only its length can tell.
fn layout(source: &Source, location: u64, allocated: u64, present: u64) -> Result<Abi> {
    for k in 0..allocated.min(16) {
        for abi in [Abi::I386, Abi::Packed] {
            let form = Form::First(abi);
            let mut bytes = [0; 84];
            let bytes = &mut bytes[..form.entry_size() as usize];
            if source.read_at_most(location + k * form.entry_size(), bytes)? < bytes.len() {
                continue;
            }
            let entry = Entry::parse(form, bytes, |_| 0)?;
            if entry.sound && entry.location != 0 {
                return Ok(abi);
            }
        }
    }
    let fits = present >= allocated * Form::First(Abi::I386).entry_size();
    Ok(if fits { Abi::I386 } else { Abi::Packed })
}
