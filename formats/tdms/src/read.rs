//! All segments of a file: properties of its objects, and where the values of each channel are.

use std::collections::HashMap;

use spile_core::format::{Region, RegionKind};
use spile_core::{Attrs, ByteOrder, DType, Error, Extent, Limits, Report, Result, Source, Wire};

use crate::wire::{Daqmx, Index, LEAD_IN, LeadIn, Object, Scaler, Type, Values, path_parts};

/// Memory of an entry in the lists of objects and of byte ranges.
const ENTRY_COST: u64 = 64;

/// Values of a channel in a part of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// First value.
    pub(crate) offset: u64,
    pub(crate) count: u64,
    /// Bytes from one value to the next; the number of bytes of all values for text.
    pub(crate) stride: u64,
}

/// Where the values of a channel, or of one of its DAQmx scalers, are.
#[derive(Default)]
pub(crate) struct Lane {
    /// The scaler; `None` for values of other channels.
    pub(crate) scaler: Option<Scaler>,
    pub(crate) runs: Vec<Run>,
}

/// An object of the file: the file itself, a group or a channel.
pub(crate) struct Entry {
    /// Group, and channel.
    pub(crate) parts: Vec<String>,
    pub(crate) properties: Attrs,
    /// Type of the values; `None` for objects without values.
    pub(crate) kind: Option<Type>,
    /// The values: one lane, or one for each scaler of a DAQmx channel.
    pub(crate) lanes: Vec<Lane>,
    /// Why its values cannot be read.
    pub(crate) problem: Option<String>,
    /// Byte order of its segments.
    order: ByteOrder,
    /// Index of the current segment.
    index: Option<Index>,
}

/// The content of a file.
#[derive(Default)]
pub(crate) struct File {
    pub(crate) entries: Vec<Entry>,
    pub(crate) headers: Vec<Region>,
    pub(crate) segments: u64,
    pub(crate) report: Report,
}

/// State of reading the segments in turn.
struct Reader<'a> {
    source: &'a Source,
    limits: &'a Limits,
    file: File,
    known: HashMap<String, usize>,
    /// Objects with values in the current segment, in their order.
    active: Vec<usize>,
    used: u64,
}

impl File {
    /// Reads the lead-in and the metadata of every segment.
    pub(crate) fn read(source: &Source, limits: &Limits) -> Result<Self> {
        let (file, known, active) = (Self::default(), HashMap::new(), Vec::new());
        let mut reader = Reader { source, limits, file, known, active, used: 0 };
        let mut at = 0;
        while at < source.len() {
            if at > 0 && source.len() - at < LEAD_IN {
                reader.incomplete(at);
                break;
            }
            at = reader.segment(at)?;
        }
        Ok(reader.file)
    }
}

impl Reader<'_> {
    /// Charges memory for lists that grow with the file.
    fn charge(&mut self, entries: u64) -> Result<()> {
        self.used = self.used.saturating_add(entries.saturating_mul(ENTRY_COST));
        self.limits.allow(self.used, "the list of segments").map(drop)
    }

    fn incomplete(&mut self, at: u64) {
        let message = "unexpected end of file: the last segment is incomplete";
        self.file.report.warn("tdms-006", message).at(at);
    }

    /// Reads the segment at byte `at`; returns the offset of the next.
    fn segment(&mut self, at: u64) -> Result<u64> {
        let lead = LeadIn::read(self.source, at)?;
        let (start, total) = (at + LEAD_IN, self.source.len());
        let stated = lead.len.and_then(|len| start.checked_add(len)).unwrap_or(u64::MAX);
        let end = stated.min(total);
        if stated > total {
            self.incomplete(at);
        }
        let data = match start.checked_add(lead.data).filter(|data| *data <= end) {
            Some(data) => data,
            // The metadata of the last segment are incomplete: it has no values.
            None if stated > total => return Ok(total),
            None => {
                let message = format!(
                    "the raw data start {} bytes after the lead-in, beyond the segment",
                    lead.data
                );
                return Err(Error::malformed("tdms-007", message).at(at + 20));
            }
        };
        self.charge(4)?;
        self.file.segments += 1;
        self.file.headers.push(Region::new(at, LEAD_IN, RegionKind::Header, "lead-in", ""));
        if lead.has_metadata {
            let what = "metadata";
            self.file.headers.push(Region::new(start, lead.data, RegionKind::Header, what, ""));
            self.metadata(&lead, start)?;
        }
        if lead.has_data && end > data {
            let incomplete = stated > total;
            self.data(&lead, data, end, incomplete)?;
        }
        Ok(end)
    }

    fn metadata(&mut self, lead: &LeadIn, start: u64) -> Result<()> {
        let len = self.limits.allow(lead.data.saturating_mul(4), "the metadata")? as u64 / 4;
        let bytes = self.source.read_vec(start, len)?;
        let mut wire = Wire::new(&bytes, start, lead.order, "tdms-002");
        let count = wire.u32()?;
        if lead.new_objects {
            self.active.clear();
        }
        for _ in 0..count {
            let object = Object::read(&mut wire, lead.order)?;
            let properties = object.properties.len() as u64;
            self.charge(4 + 2 * properties)?;
            self.object(object, start, lead.order)?;
        }
        Ok(())
    }

    fn object(&mut self, object: Object, at: u64, order: ByteOrder) -> Result<()> {
        let number = if let Some(number) = self.known.get(&object.path) {
            *number
        } else {
            let parts = path_parts(&object.path).ok_or_else(|| {
                let message = format!("invalid object path {:?}", object.path);
                Error::malformed("tdms-008", message).at(at)
            })?;
            self.known.insert(object.path.clone(), self.file.entries.len());
            self.file.entries.push(Entry {
                parts,
                properties: Attrs::new(),
                kind: None,
                lanes: Vec::new(),
                problem: None,
                order,
                index: None,
            });
            self.file.entries.len() - 1
        };
        let Some(entry) = self.file.entries.get_mut(number) else { return Ok(()) };
        for (name, value) in object.properties {
            entry.properties.set(name, value);
        }
        match object.values {
            Values::None => {
                self.active.retain(|active| *active != number);
                return Ok(());
            }
            Values::Same if entry.index.is_none() && entry.problem.is_none() => {
                let message = format!("\"{}\" repeats an index that no segment has", object.path);
                return Err(Error::malformed("tdms-009", message).at(at));
            }
            Values::Same => {}
            Values::Index(index) => {
                let lanes: Vec<Option<Scaler>> = match &index.daqmx {
                    Some(daqmx) => daqmx.scalers.iter().copied().map(Some).collect(),
                    None => vec![None],
                };
                let text = !matches!(index.kind, Type::Plain(_)) && entry.order != order;
                if text && entry.kind.is_some() {
                    entry.problem.get_or_insert_with(|| "the byte order changes".into());
                } else if entry.kind.is_none() {
                    entry.order = order;
                }
                // The place of a scaler in a row may change.
                let same = |(lane, scaler): (&Lane, &Option<Scaler>)| {
                    let meaning = |s: &Scaler| (s.dtype, s.bit.is_some(), s.scale);
                    lane.scaler.as_ref().map(meaning) == scaler.as_ref().map(meaning)
                };
                match entry.kind {
                    Some(kind)
                        if kind != index.kind
                            || entry.lanes.len() != lanes.len()
                            || !entry.lanes.iter().zip(&lanes).all(same) =>
                    {
                        let message = "the type of the values changes between segments";
                        entry.problem.get_or_insert_with(|| message.into());
                    }
                    Some(_) => {}
                    None => {
                        entry.kind = Some(index.kind);
                        let lane = |scaler| Lane { scaler, runs: Vec::new() };
                        entry.lanes = lanes.into_iter().map(lane).collect();
                    }
                }
                entry.index = Some(index);
            }
            Values::Unsupported(what) => {
                entry.index = None;
                entry.problem.get_or_insert(what);
                // Without the size of its values those that follow cannot be located, except DAQmx values.
            }
        }
        if !self.active.contains(&number) {
            self.active.push(number);
        }
        Ok(())
    }

    /// Locates the values of a segment, which repeats its chunk until the end.
    fn data(&mut self, lead: &LeadIn, start: u64, end: u64, incomplete: bool) -> Result<()> {
        let indices: Vec<Option<Index>> = (self.active.iter())
            .map(|number| self.file.entries.get(*number).and_then(|entry| entry.index.clone()))
            .collect();
        let is_daqmx = indices.iter().flatten().any(|index| index.daqmx.is_some());
        if is_daqmx {
            return self.daqmx(&indices, start, end);
        }
        let all: Option<Vec<Index>> = indices.into_iter().collect();
        let Some(indices) = all else {
            self.lose("a channel of the segment has values of an unsupported type");
            return Ok(());
        };
        let sizes: Option<Vec<u64>> = indices.iter().map(|index| index.kind.size()).collect();
        // The values of a single channel are contiguous, in any case.
        if lead.interleaved && indices.len() > 1 {
            let Some(sizes) = sizes else {
                self.lose("text is interleaved");
                return Ok(());
            };
            return self.interleaved(&sizes, start, end);
        }
        let bytes = |index: &Index| match index.kind.size() {
            Some(size) => index.count.checked_mul(size),
            None => Some(index.text_bytes),
        };
        let chunk = indices.iter().try_fold(0_u64, |sum, index| sum.checked_add(bytes(index)?));
        let chunk =
            chunk.ok_or_else(|| Error::malformed("tdms-010", "the size of a chunk").at(start))?;
        if chunk == 0 {
            return Ok(());
        }
        // A single channel is one run, however many chunks there are.
        if let ([index], [number]) = (&indices[..], &self.active[..])
            && let Some(size) = index.kind.size().filter(|size| *size > 0)
        {
            let run = Run { offset: start, count: (end - start) / size, stride: size };
            let number = *number;
            return self.push(number, 0, run);
        }
        let mut at = start;
        while at < end {
            // A last chunk that is shorter has fewer values of every channel, unless the file ends in it.
            let rest = end - at;
            let share = |count: u64| {
                let is_short = rest < chunk && !incomplete && sizes.is_some();
                let part = || u128::from(count) * u128::from(rest) / u128::from(chunk);
                if is_short { part() as u64 } else { count }
            };
            for (index, number) in indices.iter().zip(self.active.clone()) {
                let left = end.saturating_sub(at);
                let whole = match index.kind.size() {
                    Some(size) => share(index.count).saturating_mul(size),
                    None => index.text_bytes,
                };
                match index.kind.size() {
                    Some(0) => {}
                    Some(size) => {
                        let count = whole.min(left) / size;
                        self.push(number, 0, Run { offset: at, count, stride: size })?;
                    }
                    // Incomplete text has no offsets that hold.
                    None if whole <= left => {
                        let run = Run { offset: at, count: index.count, stride: whole };
                        self.push(number, 0, run)?;
                    }
                    None => {}
                }
                at = at.saturating_add(whole);
            }
            if rest < chunk {
                break;
            }
        }
        Ok(())
    }

    fn interleaved(&mut self, sizes: &[u64], start: u64, end: u64) -> Result<()> {
        let row: u64 = sizes.iter().sum();
        if row == 0 {
            return Ok(());
        }
        let count = (end - start) / row;
        let mut offset = start;
        for (size, number) in sizes.iter().zip(self.active.clone()) {
            self.push(number, 0, Run { offset, count, stride: row })?;
            offset += size;
        }
        Ok(())
    }

    /// Locates DAQmx values: rows of one or several buffers per chunk.
    fn daqmx(&mut self, indices: &[Option<Index>], start: u64, end: u64) -> Result<()> {
        let known = || indices.iter().flatten().filter_map(|i| Some((i.count, i.daqmx.as_ref()?)));
        let Some((_, first)) = known().next() else { return Ok(()) };
        let widths = first.widths.clone();
        let rows = |buffer: usize| {
            let uses = |daqmx: &Daqmx| daqmx.scalers.iter().any(|s| s.buffer as usize == buffer);
            known().filter(|(_, daqmx)| uses(daqmx)).map(|(count, _)| count).max().unwrap_or(0)
        };
        let mut starts = Vec::new();
        let mut chunk = 0_u64;
        for (buffer, width) in widths.iter().enumerate() {
            starts.push(chunk);
            let bytes = rows(buffer).checked_mul(*width);
            let sum = bytes.and_then(|bytes| chunk.checked_add(bytes));
            chunk =
                sum.ok_or_else(|| Error::malformed("tdms-010", "the size of a chunk").at(start))?;
        }
        if chunk == 0 {
            return Ok(());
        }
        let mut at = start;
        while at < end {
            for (index, number) in indices.iter().zip(self.active.clone()) {
                let Some((index, daqmx)) =
                    index.as_ref().and_then(|i| Some((i, i.daqmx.as_ref()?)))
                else {
                    continue;
                };
                for (lane, scaler) in daqmx.scalers.iter().enumerate() {
                    let buffer = scaler.buffer as usize;
                    let (Some(width), Some(before)) = (widths.get(buffer), starts.get(buffer))
                    else {
                        let message =
                            format!("a DAQmx channel is in buffer {buffer}, of {}", widths.len());
                        return Err(Error::malformed("tdms-011", message).at(start));
                    };
                    let size = scaler.dtype.size() as u64;
                    if scaler.offset.saturating_add(size) > *width {
                        let message = format!("a DAQmx value exceeds its row of {width} bytes");
                        return Err(Error::malformed("tdms-011", message).at(start));
                    }
                    let offset = at + before + scaler.offset;
                    // Rows that end before the end of the file.
                    let complete = match end.checked_sub(offset + size) {
                        Some(left) => left / width + 1,
                        None => 0,
                    };
                    let count = index.count.min(complete);
                    self.push(number, lane, Run { offset, count, stride: *width })?;
                }
            }
            at = at.saturating_add(chunk);
        }
        Ok(())
    }

    fn push(&mut self, number: usize, lane: usize, run: Run) -> Result<()> {
        self.charge(1)?;
        let entry = self.file.entries.get_mut(number).filter(|_| run.count > 0);
        if let Some(lane) = entry.and_then(|entry| entry.lanes.get_mut(lane)) {
            lane.runs.push(run);
        }
        Ok(())
    }

    /// The values of this segment cannot be located.
    fn lose(&mut self, why: &str) {
        for number in &self.active {
            if let Some(entry) = self.file.entries.get_mut(*number) {
                entry.problem.get_or_insert_with(|| why.into());
            }
        }
    }
}

impl Entry {
    /// Byte order of text and times.
    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    /// Number of values.
    pub(crate) fn count(&self) -> u64 {
        self.lanes.iter().map(Lane::count).min().unwrap_or(0)
    }

    /// Numbers of the scales of its DAQmx scalers.
    pub(crate) fn scales(&self) -> Vec<u32> {
        self.lanes.iter().filter_map(|lane| Some(lane.scaler?.scale)).collect()
    }
}

impl Lane {
    /// The lane without values from number `count` on: the scalers of a channel have equally many.
    pub(crate) fn first(&self, count: u64) -> Self {
        let mut left = count;
        let mut runs = Vec::new();
        for run in &self.runs {
            let count = run.count.min(left);
            left -= count;
            if count > 0 {
                runs.push(Run { count, ..*run });
            }
        }
        Self { scaler: self.scaler, runs }
    }

    /// Number of values.
    pub(crate) fn count(&self) -> u64 {
        self.runs.iter().map(|run| run.count).fold(0, u64::saturating_add)
    }

    /// Contiguous byte ranges of all values of `size` bytes, adjacent ones joined; `None` if values are apart.
    pub(crate) fn contiguous(&self, size: u64) -> Option<Vec<Extent>> {
        let mut parts: Vec<Extent> = Vec::new();
        for run in &self.runs {
            if run.stride != size && run.count > 1 {
                return None;
            }
            let len = run.count * size;
            match parts.last_mut() {
                Some(last) if last.offset + last.len == run.offset => last.len += len,
                _ => parts.push(Extent { offset: run.offset, len }),
            }
        }
        Some(parts)
    }

    /// Byte ranges of values at a constant distance, and the distance; `None` if it differs between segments. Every
    /// range but the last is complete rows.
    pub(crate) fn rows(&self, dtype: DType, file: u64) -> Option<(Vec<Extent>, u64)> {
        let stride = self.runs.first()?.stride;
        let last = self.runs.len() - 1;
        let mut parts = Vec::new();
        for (k, run) in self.runs.iter().enumerate() {
            let rows = run.count.checked_mul(stride)?;
            let len = if k == last { rows - stride + dtype.size() as u64 } else { rows };
            let inside = run.offset.checked_add(len).is_some_and(|end| end <= file);
            if run.stride != stride || !inside {
                return None;
            }
            parts.push(Extent { offset: run.offset, len });
        }
        Some((parts, stride))
    }
}
