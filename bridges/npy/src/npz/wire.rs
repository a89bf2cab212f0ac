//! Structures of zip archives used by NumPy: stored and deflated members, with or without 64-bit fields.
//! Sections refer to APPNOTE.TXT 6.3.

use spile_core::error::{Error, ErrorKind, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::wire::{ByteOrder, Wire, fetch};

use crate::stream::{Deflated, RATIO, Stream};

/// Local header (4.3.7).
pub(crate) const LOCAL: [u8; 4] = *b"PK\x03\x04";
/// Entry of the directory (4.3.12).
const ENTRY: [u8; 4] = *b"PK\x01\x02";
/// End of the directory (4.3.16). An empty archive begins with it.
pub(crate) const END: [u8; 4] = *b"PK\x05\x06";
/// 64-bit end of the directory (4.3.14) and its locator (4.3.15).
const END64: [u8; 4] = *b"PK\x06\x06";
const LOCATOR: [u8; 4] = *b"PK\x06\x07";

const LOCAL_LEN: u64 = 30;
const ENTRY_LEN: u64 = 46;
const END_LEN: u64 = 22;
const END64_LEN: u64 = 56;
const LOCATOR_LEN: u64 = 20;

/// Marks a value that is in a 64-bit field (4.4.1.4).
const IN_ZIP64: u32 = u32::MAX;
const IN_ZIP64_16: u16 = u16::MAX;

/// Extra field with 64-bit values (4.5.3).
const ZIP64: u16 = 1;
/// Extra field that aligns the data.
const PADDING: u16 = 0xd935;

/// Alignment of the data in bytes.
const ALIGNMENT: u64 = 64;

/// 1980-01-01, so that equal content gives equal files.
const DATE: u16 = 1 << 5 | 1;

/// Flag: encrypted (4.4.4).
const ENCRYPTED: u16 = 1;
/// Flag: the name is UTF-8.
const UTF8: u16 = 1 << 11;

/// Memory charged for a member: entry, header and tree node.
const MEMBER: u64 = 1 << 10;

/// A member of the archive.
pub(crate) struct Member {
    pub(crate) name: String,
    method: u16,
    flags: u16,
    pub(crate) crc: u32,
    /// Compressed size.
    pub(crate) stored: u64,
    /// Decoded size.
    pub(crate) size: u64,
    /// Offset of the local header.
    pub(crate) header: u64,
    /// Offset of the data.
    pub(crate) data: u64,
}

/// The members in the order of the directory.
pub(crate) struct Directory {
    pub(crate) offset: u64,
    pub(crate) members: Vec<Member>,
    /// Members whose local header is invalid.
    pub(crate) invalid: Vec<Error>,
}

impl Directory {
    /// Reads the directory at the end of the file and locates the data of all members.
    pub(crate) fn read(source: &Source, limits: &Limits) -> Result<Self> {
        let tail = source.len().min(END_LEN + u64::from(u16::MAX));
        let start = source.len() - tail;
        let bytes = fetch(source, start, tail as usize)?;
        let end = last_end(&bytes).ok_or_else(|| {
            let cut = fetch(source, 0, 4).is_ok_and(|head| head == LOCAL);
            let message = "no directory of the archive at the end of the file";
            if cut {
                Error::truncated("npz-002", message).at(source.len())
            } else {
                Error::not_this_format(
                    "npz-001",
                    "not a zip archive: no directory at the end of the file",
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
        // Data before the archive shifts all offsets.
        let moved = size.checked_add(offset).and_then(|n| directory_end.checked_sub(n));
        let moved = moved.ok_or_else(|| {
            bad(format!("directory of {size} bytes at byte {offset} exceeds the file"))
        })?;
        if count > size / ENTRY_LEN {
            return Err(bad(format!("directory of {size} bytes is too short for {count} members")));
        }
        let offset = offset + moved;
        let memory = count.saturating_mul(MEMBER).saturating_add(size.saturating_mul(4));
        limits.allow(memory, "the directory of the archive")?;
        let bytes = fetch(source, offset, size as usize)?;
        let mut wire = Wire::new(&bytes, offset, ByteOrder::Little, "npz-002");
        let (mut members, mut invalid) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let mut member = Member::entry(&mut wire)?;
            match member.locate(source, moved, offset) {
                Ok(data) => {
                    member.data = data;
                    member.header += moved;
                    members.push(member);
                }
                Err(e) if matches!(e.kind(), ErrorKind::Malformed | ErrorKind::Truncated) => {
                    invalid.push(e.in_object(member.object()));
                }
                Err(e) => return Err(e),
            }
        }
        Ok(Self { offset, members, invalid })
    }
}

/// Position of the last end record whose comment fits.
fn last_end(bytes: &[u8]) -> Option<usize> {
    let last = bytes.len().checked_sub(END_LEN as usize)?;
    (0..=last).rev().find(|at| {
        let record = &bytes[*at..];
        let comment = usize::from(record[20]) | usize::from(record[21]) << 8;
        record.starts_with(&END) && comment <= record.len() - END_LEN as usize
    })
}

/// Number of members, size, offset and end of the directory from the 64-bit record; `None` if there is none.
fn end64(source: &Source, end: u64) -> Result<Option<(u64, u64, u64, u64)>> {
    let Some(at) = end.checked_sub(LOCATOR_LEN) else { return Ok(None) };
    let locator = fetch(source, at, LOCATOR_LEN as usize)?;
    if !locator.starts_with(&LOCATOR) {
        return Ok(None);
    }
    let mut wire = Wire::new(&locator, at, ByteOrder::Little, "npz-002");
    wire.skip(8)?;
    let given = wire.u64()?;
    // If data precede the archive, the record is still directly before the locator.
    let before = at.saturating_sub(END64_LEN);
    for pos in [given, before] {
        let record = fetch(source, pos.min(source.len()), END64_LEN as usize)?;
        if !record.starts_with(&END64) {
            continue;
        }
        let mut wire = Wire::new(&record, pos, ByteOrder::Little, "npz-002");
        wire.skip(32)?;
        return Ok(Some((wire.u64()?, wire.u64()?, wire.u64()?, pos)));
    }
    let message = "no 64-bit end of the directory at the offset given by its locator";
    Err(Error::malformed("npz-003", message).at(at))
}

/// Reads the 64-bit values of an extra field (4.5.3).
struct Wide<'a>(Wire<'a>);

/// Finds the 64-bit values in the extra fields.
fn zip64(fields: &[u8], at: u64) -> Result<Wide<'_>> {
    let mut extra = Wire::new(fields, at, ByteOrder::Little, "npz-003");
    let mut wide = Wire::new(&[], at, ByteOrder::Little, "npz-003");
    while extra.remaining() >= 4 {
        let (kind, len) = (extra.u16()?, extra.u16()?);
        // Some writers add trailing bytes that are not a field.
        let Ok(field) = extra.take(usize::from(len)) else { break };
        if kind == ZIP64 {
            wide = Wire::new(field, at, ByteOrder::Little, "npz-003");
        }
    }
    Ok(Wide(wide))
}

impl Wide<'_> {
    /// The value `short`, or the next 64-bit value if it does not fit in 32 bits.
    fn value(&mut self, short: u32) -> Result<u64> {
        if short == IN_ZIP64 && self.0.remaining() > 0 { self.0.u64() } else { Ok(short.into()) }
    }
}

impl Member {
    /// Name of the member for errors and findings.
    pub(crate) fn object(&self) -> String {
        format!("\"{}\"", self.name)
    }

    /// Parses an entry of the directory (4.3.12).
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
        // Only fields that do not fit in 32 bits are present, in this order (4.5.3).
        let (size, stored) = (wide.value(size)?, wide.value(stored)?);
        let header = wide.value(header)?;
        Ok(Self { name, method, flags, crc, stored, size, header, data: 0 })
    }

    /// Offset of the data, from the lengths in the local header.
    fn locate(&self, source: &Source, moved: u64, end: u64) -> Result<u64> {
        let at = self.header.saturating_add(moved).min(source.len());
        let bytes = fetch(source, at, LOCAL_LEN as usize)?;
        let mut wire = Wire::new(&bytes, at, ByteOrder::Little, "npz-002");
        wire.expect(&LOCAL, "npz-004")?;
        wire.skip(22)?;
        let data = at + LOCAL_LEN + u64::from(wire.u16()?) + u64::from(wire.u16()?);
        if data.checked_add(self.stored).is_none_or(|last| last > end) {
            let message = format!("{} bytes at byte {data} overlap the directory", self.stored);
            return Err(Error::malformed("npz-005", message).at(at));
        }
        Ok(data)
    }

    /// The content. Fails if the member is encrypted, uses another compression or has
    /// inconsistent sizes.
    pub(crate) fn content<'a>(&self, source: &'a Source) -> Result<Stream<'a>> {
        let fail = |message: String| Error::unsupported("npz-006", message).at(self.header);
        if self.flags & ENCRYPTED != 0 {
            return Err(fail("encrypted members are not supported".into()));
        }
        let deflated = match self.method {
            0 if self.size == self.stored => None,
            0 => {
                let message = format!(
                    "stored member of {} bytes with a compressed size of {}",
                    self.size, self.stored
                );
                return Err(Error::malformed("npz-005", message).at(self.header));
            }
            8 => Some(Deflated { stored: self.stored, crc: self.crc }),
            other => return Err(fail(format!("compression method {other} is not supported"))),
        };
        if deflated.is_some() && self.size / RATIO > self.stored {
            let message =
                format!("{} bytes of deflate cannot decode to {}", self.stored, self.size);
            return Err(Error::malformed("npz-007", message).at(self.header));
        }
        Ok(Stream { source, offset: self.data, len: self.size, deflated })
    }

    /// Parses the local header at `at`; `None` if there is none.
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
        let (size, stored) = (wide.value(size)?, wide.value(stored)?);
        let data = start + bytes.len() as u64;
        Ok(Some(Self { name, method, flags, crc, stored, size, header: at, data }))
    }

    /// Whether the local header has no sizes: they follow the data or were never written.
    pub(crate) fn has_no_size(&self) -> bool {
        let unknown = self.stored == 0 || self.stored == u64::from(IN_ZIP64);
        unknown && self.crc == 0
    }

    pub(crate) fn is_stored(&self) -> bool {
        self.method == 0
    }

    /// Sets the size of a stored member.
    pub(crate) fn set_size(&mut self, size: u64) {
        (self.stored, self.size) = (size, size);
    }

    /// Offset of the header after data that end at `end`: a data descriptor may follow them (4.3.9).
    pub(crate) fn next_header(source: &Source, end: u64) -> Result<u64> {
        for gap in [0, 12, 16, 20, 24] {
            let at = end.saturating_add(gap);
            let magic = fetch(source, at.min(source.len()), 4)?;
            if magic == LOCAL || magic == ENTRY {
                return Ok(at);
            }
        }
        Ok(end)
    }

    /// A copy of the member for an archive where its local header is at `header`.
    pub(crate) fn moved(&self, header: u64) -> Result<Self> {
        let mut member = Self::stored(&self.name, self.size, header)?;
        (member.method, member.crc, member.stored) = (self.method, self.crc, self.stored);
        Ok(member)
    }

    /// A stored member with its local header at `header` and aligned data.
    pub(crate) fn stored(name: &str, size: u64, header: u64) -> Result<Self> {
        let short = u16::try_from(name.len()).ok().filter(|n| *n < 1 << 15);
        short.ok_or_else(|| Error::unsupported("npz-011", "name longer than 32 KiB"))?;
        let flags = if name.is_ascii() { 0 } else { UTF8 };
        let (name, method, crc, data) = (name.to_string(), 0, 0, 0);
        let mut member = Self { name, method, flags, crc, stored: size, size, header, data };
        let least = header + LOCAL_LEN + member.name.len() as u64 + member.wide().len() as u64;
        // The padding field has at least four bytes.
        member.data = (least + 4).next_multiple_of(ALIGNMENT);
        Ok(member)
    }

    /// The 64-bit sizes of the local header: both or none (4.5.3).
    fn wide(&self) -> Vec<u8> {
        let mut field = Vec::new();
        if self.size.max(self.stored) >= u64::from(IN_ZIP64) {
            field.extend(ZIP64.to_le_bytes());
            field.extend(16_u16.to_le_bytes());
            field.extend(self.size.to_le_bytes());
            field.extend(self.stored.to_le_bytes());
        }
        field
    }

    /// Fields that the local header and the directory have in common.
    fn shared(&self, version: u16) -> Vec<u8> {
        let fit = |n: u64| u32::try_from(n).unwrap_or(IN_ZIP64);
        let mut bytes = version.to_le_bytes().to_vec();
        for field in [self.flags, self.method, 0, DATE] {
            bytes.extend(field.to_le_bytes());
        }
        for field in [self.crc, fit(self.stored), fit(self.size)] {
            bytes.extend(field.to_le_bytes());
        }
        bytes
    }

    /// Encodes the local header, including the padding before the data.
    pub(crate) fn local(&self) -> Vec<u8> {
        let wide = self.wide();
        let before = self.header + LOCAL_LEN + (self.name.len() + wide.len()) as u64;
        let padding = (self.data - before - 4) as u16;
        let extra = wide.len() as u16 + 4 + padding;
        let mut bytes = LOCAL.to_vec();
        bytes.extend(self.shared(if wide.is_empty() { 20 } else { 45 }));
        bytes.extend((self.name.len() as u16).to_le_bytes());
        bytes.extend(extra.to_le_bytes());
        bytes.extend(self.name.as_bytes());
        bytes.extend(wide);
        bytes.extend(PADDING.to_le_bytes());
        bytes.extend(padding.to_le_bytes());
        bytes.resize(bytes.len() + usize::from(padding), 0);
        bytes
    }

    /// Appends the entry of the directory.
    fn append_entry(&self, bytes: &mut Vec<u8>) {
        let large = |n: u64| n >= u64::from(IN_ZIP64);
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
        bytes.extend(u32::try_from(self.header).unwrap_or(IN_ZIP64).to_le_bytes());
        bytes.extend(self.name.as_bytes());
        if !wide.is_empty() {
            bytes.extend(ZIP64.to_le_bytes());
            bytes.extend((wide.len() as u16).to_le_bytes());
            bytes.extend(wide);
        }
    }
}

/// Encodes the directory at byte `offset` and its end records.
pub(crate) fn encode_directory(members: &[Member], offset: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for member in members {
        member.append_entry(&mut bytes);
    }
    let (count, size) = (members.len() as u64, bytes.len() as u64);
    let short = |n: u64| u16::try_from(n).unwrap_or(IN_ZIP64_16);
    let fit = |n: u64| u32::try_from(n).unwrap_or(IN_ZIP64);
    if short(count) == IN_ZIP64_16 || fit(size) == IN_ZIP64 || fit(offset) == IN_ZIP64 {
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

    /// Writes an archive with members of these sizes, whose data are holes, and reads its directory.
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
        write(end, &encode_directory(&members, end));
        let read =
            Directory::read(&Source::open(file.path()).unwrap(), &Limits::default()).unwrap();
        let facts = |m: &Member| (m.name.clone(), m.size, m.stored, m.header, m.data, m.flags);
        let both = [&members, &read.members].map(|all| all.iter().map(facts).collect::<Vec<_>>());
        assert_eq!(both[0], both[1]);
    }

    #[test]
    fn small_and_large_archives_round_trip() {
        round_trip(&[]);
        round_trip(&[0, 1, 64]);
        round_trip(&[5 << 30, 3, (1 << 32) - 1, 7]);
        round_trip(&[3 << 30, 3 << 30, 3]);
    }

    #[test]
    fn more_than_65535_members_round_trip() {
        round_trip(&vec![1; 70_000]);
    }
}
