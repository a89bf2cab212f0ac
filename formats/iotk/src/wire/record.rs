//! Records of a Fortran unformatted file: `length | bytes | length`.
//!
//! This module is independent of tags and reads any file that a Fortran program wrote with
//! `form='unformatted'`. Markers have four or eight bytes in either byte order, which is not stored;
//! [`Framing::detect`] tries all on the first record. A record longer than the limit of the compiler
//! is split into sub-records: a negative leading marker means that another one follows, a negative
//! trailing marker that one precedes.

mod writer;

use std::borrow::Cow;

use spile_core::error::human_bytes;
use spile_core::wire::fetch;
use spile_core::{ByteOrder, Error, Extent, Extents, Limits, Result, Source, Wire};

pub use writer::RecordWriter;

/// The longest sub-record that compilers write with four-byte markers, in bytes.
pub const SUBRECORD: u64 = 2_147_483_639;

/// Bytes that are read at once while markers are read.
const WINDOW: usize = 64 << 10;

/// Bytes that are read after data were skipped, so that opening a file reads little besides markers and tags.
const AFTER_SKIP: usize = 1 << 10;

/// The record markers of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// Size of a marker in bytes: 4 or 8.
    pub marker: u64,
    /// Byte order of markers and data.
    pub order: ByteOrder,
}

impl Default for Framing {
    fn default() -> Self {
        Self { marker: 4, order: ByteOrder::Little }
    }
}

impl Framing {
    const ALL: [Self; 4] = [
        Self { marker: 4, order: ByteOrder::Little },
        Self { marker: 4, order: ByteOrder::Big },
        Self { marker: 8, order: ByteOrder::Little },
        Self { marker: 8, order: ByteOrder::Big },
    ];

    /// The framing in which the first record is complete, or `None`.
    pub fn detect(source: &Source) -> Result<Option<Self>> {
        for framing in Self::ALL {
            if framing.plausible(&fetch(source, 0, 16)?) {
                let limits = Limits::default().with_memory(1 << 20);
                let first = Records::new(source.clone(), framing, &limits).next();
                if matches!(first, Ok(Some(_))) {
                    return Ok(Some(framing));
                }
            }
        }
        // The first record of an IOTK file has four bytes, even if its end is damaged.
        let head = fetch(source, 0, 8)?;
        Ok(Self::ALL.into_iter().find(|framing| framing.read(&head) == Some(4)))
    }

    /// The framing of a file that begins with `head`, from these bytes only.
    pub(crate) fn detect_head(head: &[u8]) -> Option<Self> {
        let agrees = |framing: &Self| {
            let (Some(lead), marker) = (framing.read(head), framing.marker) else { return false };
            let end = marker.saturating_add(lead.unsigned_abs());
            let trail = usize::try_from(end).ok().and_then(|end| head.get(end..));
            let trail = trail.and_then(|bytes| framing.read(bytes));
            lead != 0 && trail.is_some() && trail == lead.checked_abs()
        };
        Self::ALL.into_iter().find(agrees)
    }

    /// A length of zero is accepted for the default framing only.
    fn plausible(self, head: &[u8]) -> bool {
        self.read(head).is_some_and(|lead| lead != 0 || self == Self::default())
    }

    /// The marker at the beginning of `bytes`.
    fn read(self, bytes: &[u8]) -> Option<i64> {
        // Fast path for the most frequent framing.
        if self == Self::default() {
            return bytes.first_chunk().map(|raw| i64::from(i32::from_le_bytes(*raw)));
        }
        let mut wire = Wire::new(bytes, 0, self.order, "iotk-003");
        if self.marker == 8 { wire.i64().ok() } else { wire.i32().ok().map(i64::from) }
    }

    /// The first record in `bytes`, if it is complete and not split into sub-records.
    pub(crate) fn first(self, bytes: &[u8]) -> Option<&[u8]> {
        let lead = self.read(bytes)?;
        let (from, len) = (self.marker as usize, usize::try_from(lead).ok()?);
        let record = bytes.get(from..from.checked_add(len)?)?;
        (self.read(&bytes[from + len..]) == Some(lead)).then_some(record)
    }

    /// The four-byte integer at the beginning of `bytes`.
    pub(crate) fn integer(self, bytes: &[u8]) -> Option<i32> {
        let raw = *bytes.first_chunk()?;
        Some(match self.order {
            ByteOrder::Little => i32::from_le_bytes(raw),
            ByteOrder::Big => i32::from_be_bytes(raw),
        })
    }

    fn encode(self, value: i64) -> ([u8; 8], usize) {
        let mut out = [0; 8];
        match (self.marker, self.order) {
            (8, ByteOrder::Little) => out = value.to_le_bytes(),
            (8, ByteOrder::Big) => out = value.to_be_bytes(),
            (_, ByteOrder::Little) => out[..4].copy_from_slice(&(value as i32).to_le_bytes()),
            (_, ByteOrder::Big) => out[..4].copy_from_slice(&(value as i32).to_be_bytes()),
        }
        (out, if self.marker == 8 { 8 } else { 4 })
    }
}

/// The location of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Offset of the first marker.
    pub offset: u64,
    /// The bytes between the markers; several ranges if there are sub-records.
    pub content: Extents,
    /// Offset after the last marker.
    pub end: u64,
}

/// The records of a file in order. Only markers are read.
pub struct Records {
    window: Window,
    framing: Framing,
    at: u64,
    limits: Limits,
    /// Bytes of markers read so far.
    scanned: u64,
}

impl Records {
    /// Records from the beginning of `source`.
    pub fn new(source: Source, framing: Framing, limits: &Limits) -> Self {
        Self { window: Window::new(source), framing, at: 0, limits: *limits, scanned: 0 }
    }

    /// Offset of the next record.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// Continues at the record at `offset`.
    pub fn seek(&mut self, offset: u64) {
        self.at = offset;
    }

    /// Bytes of markers read so far, including those read more than once.
    pub(crate) fn scanned(&self) -> u64 {
        self.scanned
    }

    /// The bytes in memory from the next record on: at least `least` unless the file ends before.
    pub(crate) fn ahead(&mut self, least: usize) -> Result<&[u8]> {
        self.window.rest(self.at, least)
    }

    /// The next record, or `None` at the end of the file.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Record>> {
        let offset = self.at;
        let mut at = offset;
        if at >= self.window.len() {
            return Ok(None);
        }
        let mut parts: Vec<Extent> = Vec::new();
        loop {
            let in_record = |e: Error| e.in_object(format!("record at byte {offset}"));
            let lead = self.marker(at).map_err(in_record)?;
            let (data, len) = (at + self.framing.marker, lead.unsigned_abs());
            let end = data.checked_add(len).filter(|end| *end <= self.window.len());
            let Some(end) = end else {
                let message = format!(
                    "unexpected end of file: expected a record of {}, the file has {}",
                    human_bytes(len),
                    human_bytes(self.window.len())
                );
                return Err(Error::truncated("iotk-003", message).at(at));
            };
            let trail = self.marker(end).map_err(in_record)?;
            // The second marker is negative if a sub-record precedes.
            let expected = if parts.is_empty() { len as i64 } else { -(len as i64) };
            if trail != expected {
                let message =
                    format!("expected {expected} in the trailing record marker, found {trail}");
                return Err(Error::malformed("iotk-004", message).at(end));
            }
            parts.push(Extent { offset: data, len });
            let table = size_of_val(&*parts) as u64;
            self.limits.allow(table, "the list of sub-records").map_err(in_record)?;
            at = end + self.framing.marker;
            if lead >= 0 {
                break;
            }
        }
        self.at = at;
        Ok(Some(Record { offset, content: Extents::several(parts)?, end: at }))
    }

    /// Reads the first `len` bytes of a record into `out`, or all if it is shorter.
    pub fn beginning(&mut self, record: &Record, len: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        for part in record.content.parts() {
            let mut left = (part.len.min((len - out.len()) as u64)) as usize;
            let mut at = part.offset;
            while left > 0 {
                let bytes = self.window.get(at, left.min(WINDOW))?;
                out.extend_from_slice(bytes);
                left -= bytes.len();
                at += bytes.len() as u64;
            }
        }
        Ok(())
    }

    fn marker(&mut self, at: u64) -> Result<i64> {
        let (framing, size) = (self.framing, self.framing.marker as usize);
        self.scanned += size as u64;
        let bytes = self.window.get(at, size)?;
        framing.read(bytes).ok_or_else(|| {
            Error::truncated("iotk-003", "unexpected end of file inside a record marker").at(at)
        })
    }
}

/// A block of the file in memory, so that nearby markers need one read.
pub(crate) struct Window {
    source: Source,
    base: u64,
    bytes: Vec<u8>,
    /// Bytes of the last read.
    size: usize,
}

impl Window {
    pub(crate) fn new(source: Source) -> Self {
        Self { source, base: 0, bytes: Vec::new(), size: AFTER_SKIP }
    }

    pub(crate) fn len(&self) -> u64 {
        self.source.len()
    }

    /// `len` bytes at `at`, at most the size of a window; fewer at the end of the file.
    pub(crate) fn get(&mut self, at: u64, len: usize) -> Result<&[u8]> {
        let end = self.base + self.bytes.len() as u64;
        let missing = at.saturating_add(len as u64) > end && end < self.source.len();
        if at < self.base || missing {
            let near = at >= self.base && at <= end;
            self.size = if near { (8 * self.size).min(WINDOW) } else { AFTER_SKIP };
            self.bytes.resize(self.size.max(len.min(WINDOW)), 0);
            let got = self.source.read_at_most(at, &mut self.bytes)?;
            self.bytes.truncate(got);
            self.base = at;
        }
        let from = ((at - self.base) as usize).min(self.bytes.len());
        let to = from.saturating_add(len).min(self.bytes.len());
        Ok(&self.bytes[from..to])
    }

    /// The bytes in memory from `at` on: at least `least` unless the file ends before.
    pub(crate) fn rest(&mut self, at: u64, least: usize) -> Result<&[u8]> {
        self.get(at, least)?;
        let from = ((at - self.base) as usize).min(self.bytes.len());
        Ok(&self.bytes[from..])
    }

    /// The bytes from `from` to `to`; the window is not moved.
    pub(crate) fn part(&self, from: u64, to: u64, limits: &Limits) -> Result<Cow<'_, [u8]>> {
        let len = to.saturating_sub(from);
        limits.allow(len, "a tag")?;
        let inside = from
            .checked_sub(self.base)
            .and_then(|start| self.bytes.get(start as usize..usize::try_from(start + len).ok()?));
        match inside {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => self.source.read_vec(from, len).map(Cow::Owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(framing: Framing, limit: u64, records: &[Vec<u8>]) -> Vec<u8> {
        let mut writer = RecordWriter::new(Vec::new(), framing, limit).unwrap();
        for record in records {
            writer.record(&[record]).unwrap();
        }
        writer.into_inner()
    }

    proptest! {
        #[test]
        fn records_of_any_framing_read_back(
            records in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 1..8),
            framing in (0_usize..4).prop_map(|k| Framing::ALL[k]),
            limit in 1_u64..200,
        ) {
            let bytes = write(framing, limit, &records);
            let source = Source::memory(bytes);
            if !records[0].is_empty() && (records[0].len() as u64) <= limit {
                prop_assert!(Framing::detect(&source).unwrap().is_some());
            }
            let mut reader = Records::new(source.clone(), framing, &Limits::default());
            for record in &records {
                let found = reader.next().unwrap().unwrap();
                let mut back = Vec::new();
                reader.beginning(&found, record.len(), &mut back).unwrap();
                prop_assert_eq!(&back, record);
                prop_assert_eq!(found.content.len(), record.len() as u64);
            }
            prop_assert_eq!(reader.next().unwrap(), None);
        }
    }

    #[test]
    fn markers_that_disagree_are_reported_with_their_offset() {
        let mut bytes = write(Framing::default(), SUBRECORD, &[vec![1; 8], vec![2; 8]]);
        bytes[16 + 12] = 9;
        let mut reader =
            Records::new(Source::memory(bytes.clone()), Framing::default(), &Limits::default());
        assert!(reader.next().is_ok());
        let error = reader.next().unwrap_err();
        assert_eq!((error.code(), error.offset()), ("iotk-004", Some(28)));
        bytes[16] = 200;
        let mut reader =
            Records::new(Source::memory(bytes), Framing::default(), &Limits::default());
        reader.seek(16);
        assert_eq!(reader.next().unwrap_err().code(), "iotk-003");
    }

    #[test]
    fn the_minimum_integer_is_not_a_record_length() {
        let mut bytes = i64::MIN.to_le_bytes().to_vec();
        bytes.resize(64, 7);
        assert_eq!(Framing::detect_head(&bytes), None);
        assert_eq!(Framing::detect(&Source::memory(bytes)).unwrap(), None);
    }

    #[test]
    fn the_writer_rejects_records_of_another_length_than_declared() {
        let mut writer = RecordWriter::new(Vec::new(), Framing::default(), 4).unwrap();
        writer.begin(6).unwrap();
        writer.write(&[0; 5]).unwrap();
        assert!(writer.end().is_err());
        assert!(writer.write(&[0; 2]).is_err());
        assert!(RecordWriter::new(Vec::new(), Framing::default(), 1 << 31).is_err());
    }
}
