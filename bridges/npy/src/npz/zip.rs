//! Zip archives as far as NumPy needs them: members stored or deflated, with or without the 64-bit
//! fields. Sections are those of APPNOTE.TXT 6.3.

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

use crate::inflate::RATIO;
use crate::place::{Deflated, Place};

/// Local header (4.3.7).
pub(crate) const LOCAL: [u8; 4] = *b"PK\x03\x04";
/// Entry of the directory (4.3.12).
const ENTRY: [u8; 4] = *b"PK\x01\x02";
/// End of the directory (4.3.16): an archive without members is nothing else.
pub(crate) const END: [u8; 4] = *b"PK\x05\x06";
/// The same with 64 bits (4.3.14), and where that is (4.3.15).
const END64: [u8; 4] = *b"PK\x06\x06";
const LOCATOR: [u8; 4] = *b"PK\x06\x07";

const LOCAL_LEN: u64 = 30;
const ENTRY_LEN: u64 = 46;
const END_LEN: u64 = 22;
const END64_LEN: u64 = 56;
const LOCATOR_LEN: u64 = 20;

/// A number that stands in a 64-bit field elsewhere (4.4.1.4).
const ELSEWHERE: u32 = u32::MAX;
const ELSEWHERE16: u16 = u16::MAX;

/// The extra field with the 64-bit numbers (4.5.3).
const ZIP64: u16 = 1;
/// An extra field that only takes room, so that the data begin at a round number.
const PADDING: u16 = 0xd935;

/// The data begin at a multiple of this.
const ALIGNMENT: u64 = 64;

/// The 1st of January 1980: equal content gives equal files.
const DATE: u16 = 1 << 5 | 1;

/// Encrypted (4.4.4).
const ENCRYPTED: u16 = 1;
/// The name is UTF-8.
const UTF8: u16 = 1 << 11;

/// A file in the archive.
pub(crate) struct Member {
    pub(crate) name: String,
    method: u16,
    flags: u16,
    pub(crate) crc: u32,
    /// Bytes that it takes.
    pub(crate) stored: u64,
    /// Bytes that it has.
    pub(crate) size: u64,
    /// Its local header.
    pub(crate) header: u64,
    /// Its bytes.
    pub(crate) data: u64,
}

/// All members, in the order of the directory.
pub(crate) struct Directory {
    pub(crate) offset: u64,
    pub(crate) members: Vec<Member>,
}

impl Directory {
    pub(crate) fn read(source: &Source, limits: &Limits) -> Result<Self> {
        let tail = source.len().min(END_LEN + u64::from(u16::MAX));
        let start = source.len() - tail;
        let bytes = fetch(source, start, tail as usize)?;
        let end = last_end(&bytes).ok_or_else(|| {
            let cut = fetch(source, 0, 4).is_ok_and(|head| head == LOCAL);
            let message = "the directory of the archive is not at the end of the file";
            if cut {
                Error::truncated("npz-002", message).at(source.len())
            } else {
                Error::not_this_format(
                    "npz-001",
                    "a zip archive begins with PK and ends with its directory",
                )
                .at(0)
            }
        })?;
        let end_offset = start + end as u64;
        let mut wire = Wire::new(&bytes[end..], end_offset, ByteOrder::Little, "npz-002");
        wire.skip(10)?;
        let (count, size, offset) = (wire.u16()?, wire.u32()?, wire.u32()?);
        let (mut count, mut size, mut offset) =
            (u64::from(count), u64::from(size), u64::from(offset));
        let mut directory_end = end_offset;
        if let Some(found) = end64(source, end_offset)? {
            (count, size, offset, directory_end) = found;
        }
        let bad = |message: String| Error::malformed("npz-003", message).at(end_offset);
        // Whatever stands before an archive moves all of it.
        let moved = size.checked_add(offset).and_then(|n| directory_end.checked_sub(n));
        let moved = moved.ok_or_else(|| {
            bad(format!("a directory of {size} bytes at byte {offset} does not fit the file"))
        })?;
        if count > size / ENTRY_LEN {
            return Err(bad(format!("{count} members do not fit a directory of {size} bytes")));
        }
        let offset = offset + moved;
        let bytes = fetch(source, offset, limits.allow(size, "the directory of the archive")?)?;
        let mut wire = Wire::new(&bytes, offset, ByteOrder::Little, "npz-002");
        let mut members = Vec::new();
        for _ in 0..count {
            let mut member = Member::entry(&mut wire)?;
            let place = |e: Error| e.in_object(format!("\"{}\"", member.name));
            member.data = member.locate(source, moved, offset).map_err(place)?;
            member.header += moved;
            members.push(member);
        }
        Ok(Self { offset, members })
    }
}

/// The last record of the end with a comment that fits.
fn last_end(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(END_LEN as usize)?;
    (0..=last).rev().find(|at| {
        let record = &bytes[*at..];
        let comment = usize::from(record[20]) | usize::from(record[21]) << 8;
        record.starts_with(&END) && comment <= record.len() - END_LEN as usize
    })
}

/// Number of members, bytes and place of the directory, and its end, where they are given in 64 bits.
fn end64(source: &Source, end: u64) -> Result<Option<(u64, u64, u64, u64)>> {
    let Some(at) = end.checked_sub(LOCATOR_LEN) else { return Ok(None) };
    let locator = fetch(source, at, LOCATOR_LEN as usize)?;
    if !locator.starts_with(&LOCATOR) {
        return Ok(None);
    }
    let mut wire = Wire::new(&locator, at, ByteOrder::Little, "npz-002");
    wire.skip(8)?;
    let said = wire.u64()?;
    // Where something stands before the archive, the record is still right before the locator.
    let before = at.saturating_sub(END64_LEN);
    for place in [said, before] {
        let record = fetch(source, place.min(source.len()), END64_LEN as usize)?;
        if !record.starts_with(&END64) {
            continue;
        }
        let mut wire = Wire::new(&record, place, ByteOrder::Little, "npz-002");
        wire.skip(32)?;
        return Ok(Some((wire.u64()?, wire.u64()?, wire.u64()?, place)));
    }
    Err(Error::malformed("npz-003", "the 64-bit end of the directory is not where it should be")
        .at(at))
}

/// The 64-bit numbers among the extra fields (4.5.3).
struct Wide<'a>(Wire<'a>);

fn zip64(fields: &[u8], at: u64) -> Result<Wide<'_>> {
    let mut extra = Wire::new(fields, at, ByteOrder::Little, "npz-003");
    let mut wide = Wire::new(&[], at, ByteOrder::Little, "npz-003");
    while extra.remaining() >= 4 {
        let (kind, len) = (extra.u16()?, extra.u16()?);
        // Some writers leave bytes at the end that are no field.
        let Ok(field) = extra.take(usize::from(len)) else { break };
        if kind == ZIP64 {
            wide = Wire::new(field, at, ByteOrder::Little, "npz-003");
        }
    }
    Ok(Wide(wide))
}

impl Wide<'_> {
    /// A number, or the next of those that do not fit 32 bits.
    fn number(&mut self, short: u32) -> Result<u64> {
        if short == ELSEWHERE && self.0.remaining() > 0 { self.0.u64() } else { Ok(short.into()) }
    }
}

impl Member {
    /// One entry of the directory (4.3.12).
    fn entry(wire: &mut Wire<'_>) -> Result<Self> {
        let at = wire.offset();
        wire.expect(&ENTRY, "npz-003")?;
        wire.skip(4)?;
        let (flags, method) = (wire.u16()?, wire.u16()?);
        wire.skip(4)?;
        let (crc, stored, size) = (wire.u32()?, wire.u32()?, wire.u32()?);
        let [name, extra, comment] = [wire.u16()?, wire.u16()?, wire.u16()?].map(usize::from);
        wire.skip(8)?;
        let header = wire.u32()?;
        let name = String::from_utf8_lossy(wire.take(name)?).into_owned();
        let mut wide = zip64(wire.take(extra)?, at)?;
        wire.skip(comment)?;
        // Only the fields that do not fit are there, in this order (4.5.3).
        let (size, stored) = (wide.number(size)?, wide.number(stored)?);
        let header = wide.number(header)?;
        Ok(Self { name, method, flags, crc, stored, size, header, data: 0 })
    }

    /// Where the bytes begin: the local header has names and fields of its own lengths.
    fn locate(&self, source: &Source, moved: u64, end: u64) -> Result<u64> {
        let at = self.header.saturating_add(moved).min(source.len());
        let bytes = fetch(source, at, LOCAL_LEN as usize)?;
        let mut wire = Wire::new(&bytes, at, ByteOrder::Little, "npz-002");
        wire.expect(&LOCAL, "npz-004")?;
        wire.skip(22)?;
        let data = at + LOCAL_LEN + u64::from(wire.u16()?) + u64::from(wire.u16()?);
        if data.checked_add(self.stored).is_none_or(|last| last > end) {
            let message = format!("{} bytes at byte {data} reach into the directory", self.stored);
            return Err(Error::malformed("npz-005", message).at(at));
        }
        Ok(data)
    }

    /// Where its content is; an error where it cannot be read.
    pub(crate) fn place<'a>(&self, source: &'a Source) -> Result<Place<'a>> {
        let fail = |message: String| Error::unsupported("npz-006", message).at(self.header);
        if self.flags & ENCRYPTED != 0 {
            return Err(fail("it is encrypted".into()));
        }
        let deflated = match self.method {
            0 if self.size == self.stored => None,
            0 => {
                let message = format!("{} bytes are stored in {}", self.size, self.stored);
                return Err(Error::malformed("npz-005", message).at(self.header));
            }
            8 => Some(Deflated { stored: self.stored, crc: self.crc }),
            other => return Err(fail(format!("its compression method is {other}"))),
        };
        // No stream inflates to more: the size is a lie, and nobody has to find that out by trying.
        if deflated.is_some() && self.size / RATIO > self.stored {
            let message = format!("{} bytes cannot be deflated to {}", self.size, self.stored);
            return Err(Error::malformed("npz-007", message).at(self.header));
        }
        Ok(Place { source, offset: self.data, len: self.size, deflated })
    }

    /// The member whose own header is at `at`, if there is one.
    pub(crate) fn local_at(source: &Source, at: u64) -> Result<Option<Self>> {
        let bytes = fetch(source, at.min(source.len()), LOCAL_LEN as usize)?;
        if bytes.len() < LOCAL_LEN as usize || !bytes.starts_with(&LOCAL) {
            return Ok(None);
        }
        let mut wire = Wire::new(&bytes, at, ByteOrder::Little, "npz-002");
        wire.skip(6)?;
        let (flags, method) = (wire.u16()?, wire.u16()?);
        wire.skip(4)?;
        let (crc, stored, size) = (wire.u32()?, wire.u32()?, wire.u32()?);
        let [name, extra] = [wire.u16()?, wire.u16()?].map(u64::from);
        let start = at + LOCAL_LEN;
        let bytes = fetch(source, start, (name + extra) as usize)?;
        let Some((name, fields)) = bytes.split_at_checked(name as usize) else { return Ok(None) };
        let name = String::from_utf8_lossy(name).into_owned();
        let mut wide = zip64(fields, at)?;
        let (size, stored) = (wide.number(size)?, wide.number(stored)?);
        let data = start + bytes.len() as u64;
        Ok(Some(Self { name, method, flags, crc, stored, size, header: at, data }))
    }

    /// Its sizes follow its data, or were never written.
    pub(crate) fn is_open(&self) -> bool {
        let unknown = self.stored == 0 || self.stored == u64::from(ELSEWHERE);
        unknown && self.crc == 0
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.method == 0
    }

    /// Sets the size of a stored member, once that is known.
    pub(crate) fn settle(&mut self, size: u64) {
        (self.stored, self.size) = (size, size);
    }

    /// Where the next header may be: some members have their sizes again behind their data (4.3.9).
    pub(crate) fn behind(&self, source: &Source, end: u64) -> Result<u64> {
        for gap in [0, 12, 16, 20, 24] {
            let at = end.saturating_add(gap);
            let mark = fetch(source, at.min(source.len()), 4)?;
            if mark == LOCAL || mark == ENTRY {
                return Ok(at);
            }
        }
        Ok(end)
    }

    /// The same member in an archive where it begins at `header`.
    pub(crate) fn moved(&self, header: u64) -> Result<Self> {
        let mut member = Self::stored(&self.name, self.size, header)?;
        (member.method, member.crc, member.stored) = (self.method, self.crc, self.stored);
        Ok(member)
    }

    /// A stored member that begins at `header`, with its data at a round number.
    pub(crate) fn stored(name: &str, size: u64, header: u64) -> Result<Self> {
        let short = u16::try_from(name.len()).ok().filter(|n| *n < 1 << 15);
        short.ok_or_else(|| Error::unsupported("npz-011", "a name of more than 32 KiB"))?;
        let flags = if name.is_ascii() { 0 } else { UTF8 };
        let (name, method, crc, data) = (name.to_string(), 0, 0, 0);
        let mut member = Self { name, method, flags, crc, stored: size, size, header, data };
        let least = header + LOCAL_LEN + member.name.len() as u64 + member.wide().len() as u64;
        // The field that takes room has four bytes at least.
        member.data = (least + 4).next_multiple_of(ALIGNMENT);
        Ok(member)
    }

    /// The 64-bit sizes for the local header, which has either both or none (4.5.3).
    fn wide(&self) -> Vec<u8> {
        let mut field = Vec::new();
        if self.size.max(self.stored) >= u64::from(ELSEWHERE) {
            field.extend(ZIP64.to_le_bytes());
            field.extend(16_u16.to_le_bytes());
            field.extend(self.size.to_le_bytes());
            field.extend(self.stored.to_le_bytes());
        }
        field
    }

    /// The numbers that the local header and the directory share.
    fn shared(&self, version: u16) -> Vec<u8> {
        let fit = |n: u64| u32::try_from(n).unwrap_or(ELSEWHERE);
        let mut bytes = version.to_le_bytes().to_vec();
        for field in [self.flags, self.method, 0, DATE] {
            bytes.extend(field.to_le_bytes());
        }
        for field in [self.crc, fit(self.stored), fit(self.size)] {
            bytes.extend(field.to_le_bytes());
        }
        bytes
    }

    /// The local header, up to the data.
    pub(crate) fn local(&self) -> Vec<u8> {
        let wide = self.wide();
        let before = self.header + LOCAL_LEN + (self.name.len() + wide.len()) as u64;
        let room = (self.data - before - 4) as u16;
        let extra = wide.len() as u16 + 4 + room;
        let mut bytes = LOCAL.to_vec();
        bytes.extend(self.shared(if wide.is_empty() { 20 } else { 45 }));
        bytes.extend((self.name.len() as u16).to_le_bytes());
        bytes.extend(extra.to_le_bytes());
        bytes.extend(self.name.as_bytes());
        bytes.extend(wide);
        bytes.extend(PADDING.to_le_bytes());
        bytes.extend(room.to_le_bytes());
        bytes.resize(bytes.len() + usize::from(room), 0);
        bytes
    }

    fn in_directory(&self, bytes: &mut Vec<u8>) {
        let large = |n: u64| n >= u64::from(ELSEWHERE);
        let mut wide = Vec::new();
        for field in [self.size, self.stored, self.header] {
            if large(field) {
                wide.extend(field.to_le_bytes());
            }
        }
        let version: u16 = if wide.is_empty() { 20 } else { 45 };
        bytes.extend(ENTRY);
        bytes.extend(version.to_le_bytes());
        bytes.extend(self.shared(version));
        bytes.extend((self.name.len() as u16).to_le_bytes());
        bytes.extend((if wide.is_empty() { 0 } else { wide.len() as u16 + 4 }).to_le_bytes());
        bytes.extend([0; 10]);
        bytes.extend(u32::try_from(self.header).unwrap_or(ELSEWHERE).to_le_bytes());
        bytes.extend(self.name.as_bytes());
        if !wide.is_empty() {
            bytes.extend(ZIP64.to_le_bytes());
            bytes.extend((wide.len() as u16).to_le_bytes());
            bytes.extend(wide);
        }
    }
}

/// The directory of members, and its end, for byte `offset` of the archive.
pub(crate) fn directory(members: &[Member], offset: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for member in members {
        member.in_directory(&mut bytes);
    }
    let (count, size) = (members.len() as u64, bytes.len() as u64);
    let short = |n: u64| u16::try_from(n).unwrap_or(ELSEWHERE16);
    let fit = |n: u64| u32::try_from(n).unwrap_or(ELSEWHERE);
    if short(count) == ELSEWHERE16 || fit(size) == ELSEWHERE || fit(offset) == ELSEWHERE {
        let at = offset + size;
        bytes.extend(END64);
        bytes.extend((END64_LEN - 12).to_le_bytes());
        bytes.extend([45, 0, 45, 0]);
        bytes.extend([0; 8]);
        for field in [count, count, size, offset] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(LOCATOR);
        bytes.extend([0; 4]);
        bytes.extend(at.to_le_bytes());
        bytes.extend(1_u32.to_le_bytes());
    }
    bytes.extend(END);
    bytes.extend([0; 4]);
    bytes.extend(short(count).to_le_bytes());
    bytes.extend(short(count).to_le_bytes());
    bytes.extend(fit(size).to_le_bytes());
    bytes.extend(fit(offset).to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written of an archive with members of these sizes is read as the same; the data are holes.
    fn round_trip(sizes: &[u64]) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let write = |at: u64, bytes: &[u8]| {
            std::os::unix::fs::FileExt::write_all_at(file.as_file(), bytes, at).unwrap();
        };
        let (mut members, mut end) = (Vec::new(), 0);
        for (k, size) in sizes.iter().enumerate() {
            let member = Member::stored(&format!("member {k} é.npy"), *size, end).unwrap();
            let local = member.local();
            assert_eq!(member.header + local.len() as u64, member.data);
            assert_eq!(member.data % ALIGNMENT, 0);
            write(member.header, &local);
            end = member.data + size;
            members.push(member);
        }
        write(end, &directory(&members, end));
        let read =
            Directory::read(&Source::open(file.path()).unwrap(), &Limits::default()).unwrap();
        let facts = |m: &Member| (m.name.clone(), m.size, m.stored, m.header, m.data, m.flags);
        let both = [&members, &read.members].map(|all| all.iter().map(facts).collect::<Vec<_>>());
        assert_eq!(both[0], both[1]);
    }

    #[test]
    fn small_and_large_archives_read_back() {
        round_trip(&[]);
        round_trip(&[0, 1, 64]);
        round_trip(&[5 << 30, 3, (1 << 32) - 1, 7]);
        round_trip(&[3 << 30, 3 << 30, 3]);
    }

    #[test]
    fn more_members_than_sixteen_bits_count() {
        round_trip(&vec![1; 70_000]);
    }
}
