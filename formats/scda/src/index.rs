//! Index and checksums at the end of a file: a convention on top of scda. See `FORMAT.md`.
//!
//! The A section [`INDEX`] has one element per part of the file: its offset, the data bytes of its last section and,
//! optionally, its CRC-32. The I section [`INDEX`], the last one of the file, has the offset of the A section.

use std::cell::RefCell;

use libdeflater::Crc;
use spile_core::comm::{Comm, SharedSink};
use spile_core::wire::fetch;
use spile_core::{Error, Limits, Result, Source};

use crate::wire::{
    Breaks, ENTRY, FILE_HEADER, Head, Kind, SECTION_HEADER, count, format_entries, parse_entries,
};

/// User string of both sections.
pub(crate) const INDEX: &[u8] = b"spile index 00";

/// Bytes of the last section.
const TRAILER: u64 = SECTION_HEADER + ENTRY;

/// Letters of the count entries of an element: offset, data bytes, checksum.
const LETTERS: [u8; 3] = *b"OLC";

/// Consecutive bytes of a file from the beginning of a section: one section, or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Offset of the first byte.
    pub offset: u64,
    /// Offset of the first byte after the part.
    pub end: u64,
    /// Data bytes of its last section.
    pub len: u64,
    /// CRC-32 of the part.
    pub crc: Option<u32>,
}

/// The index of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    parts: Vec<Part>,
}

impl Index {
    /// Reads the index of a file; `None` if it has none, or an invalid one.
    pub(crate) fn read(source: &Source, limits: &Limits) -> Result<Option<Self>> {
        let read = |at, len| fetch(source, at, len);
        Self::read_with(source.len(), limits, read)
    }

    /// Reads the index of a file of `file_len` bytes. `fetch` returns the bytes at an offset, up to a length or the end
    /// of the file.
    pub(crate) fn read_with(
        file_len: u64,
        limits: &Limits,
        fetch: impl Fn(u64, usize) -> Result<Vec<u8>>,
    ) -> Result<Option<Self>> {
        let Some(trailer) = file_len.checked_sub(TRAILER).filter(|at| *at > FILE_HEADER) else {
            return Ok(None);
        };
        let last = fetch(trailer, TRAILER as usize)?;
        let Some(offset) = parse_trailer(&last, trailer, file_len) else { return Ok(None) };
        let head = Head::parse(&fetch(offset, 128)?, offset, file_len);
        let Ok(Some(head)) = head else { return Ok(None) };
        let entries = head.size / ENTRY;
        let right = head.kind == Kind::Array
            && *head.user == *INDEX
            && head.size.is_multiple_of(ENTRY)
            && (2..=3).contains(&entries);
        let bytes = head.data_len().unwrap_or(u64::MAX);
        if !right || head.section_end(file_len, bytes).ok() != Some(trailer) {
            return Ok(None);
        }
        // Twice the text: an index that does not fit is not used.
        if limits.allow(bytes.saturating_mul(2), "the index").is_err() {
            return Ok(None);
        }
        let table = fetch(head.end(), bytes as usize)?;
        Ok(parse_table(&table, entries as usize, offset).map(|parts| Self { parts }))
    }

    /// The parts in file order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether the parts have checksums.
    pub fn has_checksums(&self) -> bool {
        self.parts.iter().any(|part| part.crc.is_some())
    }

    /// Offset of the index itself.
    pub fn offset(&self) -> u64 {
        self.parts.last().map_or(FILE_HEADER, |part| part.end)
    }

    /// The part that contains the byte at `offset`.
    pub(crate) fn part_at(&self, offset: u64) -> Option<&Part> {
        let after = self.parts.partition_point(|part| part.offset <= offset);
        self.parts.get(after.checked_sub(1)?).filter(|part| offset < part.end)
    }

    /// Data bytes of a section, if it is the last one of a part and ends where the part ends.
    pub(crate) fn data_len(&self, head: &Head, file_len: u64) -> Option<u64> {
        let part = self.part_at(head.offset)?;
        (head.section_end(file_len, part.len).ok()? == part.end).then_some(part.len)
    }
}

/// The offset in the last section of a file.
fn parse_trailer(bytes: &[u8], at: u64, file_len: u64) -> Option<u64> {
    let head = Head::parse(bytes, at, file_len).ok()??;
    if head.kind != Kind::Inline || *head.user != *INDEX {
        return None;
    }
    let entry = bytes.get(SECTION_HEADER as usize..)?;
    let (offset, _) = count(entry, b'O', at).ok()?;
    (FILE_HEADER..at).contains(&offset).then_some(offset)
}

/// The parts in a table with `entries` count entries per element. They must follow each other up to `end`.
fn parse_table(table: &[u8], entries: usize, end: u64) -> Option<Vec<Part>> {
    let size = entries * ENTRY as usize;
    let mut parts: Vec<Part> = Vec::with_capacity(table.len().checked_div(size)?);
    for element in table.chunks_exact(size) {
        let mut values = [0; 3];
        let pairs = element.as_chunks::<{ ENTRY as usize }>().0.iter().zip(LETTERS);
        for ((entry, letter), value) in pairs.zip(&mut values) {
            parse_entries(entry, letter, 0, std::slice::from_mut(value)).ok()?;
        }
        let [offset, len, crc] = values;
        let crc = if entries == 3 { Some(u32::try_from(crc).ok()?) } else { None };
        match parts.last_mut() {
            None if offset != 0 => return None,
            Some(before) if before.offset >= offset => return None,
            Some(before) => before.end = offset,
            None => {}
        }
        parts.push(Part { offset, end, len, crc });
    }
    let last = parts.last()?;
    (last.offset < end).then_some(parts)
}

/// The table of an index as text.
pub(crate) fn format_table(parts: &[Part], breaks: Breaks) -> Vec<u8> {
    let mut table = Vec::new();
    let mut entry = Vec::new();
    for part in parts {
        let crc = part.crc.map(u64::from);
        let values = [Some(part.offset), Some(part.len), crc];
        for (letter, value) in LETTERS.into_iter().zip(values) {
            if let Some(value) = value {
                format_entries(letter, &[value], breaks, &mut entry);
                table.extend_from_slice(&entry);
            }
        }
    }
    table
}

/// Bytes of an element of the index.
pub(crate) fn element_size(checksums: bool) -> u64 {
    ENTRY * if checksums { 3 } else { 2 }
}

/// A file whose written bytes are summed up.
pub(crate) struct Summed<'c> {
    file: Box<dyn SharedSink + 'c>,
    /// Begin, end and checksum of consecutive bytes of this rank, if checksums are computed.
    pieces: Option<RefCell<Vec<(u64, u64, Crc)>>>,
}

impl<'c> Summed<'c> {
    pub(crate) fn new(file: Box<dyn SharedSink + 'c>, checksums: bool) -> Self {
        Self { file, pieces: checksums.then(RefCell::default) }
    }

    /// What this rank contributes to the checksum of the part that ends at `end`, all of whose bytes were written
    /// since the last call. The checksum is the exclusive or of the contributions.
    pub(crate) fn take_sum(&self, end: u64) -> u32 {
        let Some(pieces) = &self.pieces else { return 0 };
        pieces.take().iter().fold(0, |sum, (_, until, crc)| {
            sum ^ followed_by(crc.sum(), end.saturating_sub(*until))
        })
    }

    fn add(&self, mut offset: u64, parts: &[&[u8]]) {
        let Some(pieces) = &self.pieces else { return };
        let mut pieces = pieces.borrow_mut();
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let end = offset + part.len() as u64;
            if let Some((_, until, crc)) = pieces.iter_mut().find(|(_, until, _)| *until == offset)
            {
                crc.update(part);
                *until = end;
            } else {
                let mut crc = Crc::new();
                crc.update(part);
                pieces.push((offset, end, crc));
            }
            offset = end;
        }
    }
}

impl SharedSink for Summed<'_> {
    fn reserve(&self, end: u64) -> Result<bool> {
        self.file.reserve(end)
    }

    fn write(&self, offset: u64, parts: &[&[u8]], longest: u64) -> Result<()> {
        self.add(offset, parts);
        self.file.write(offset, parts, longest)
    }

    fn write_alone(&self, offset: u64, parts: &[&[u8]]) -> Result<()> {
        self.add(offset, parts);
        self.file.write_alone(offset, parts)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.file.finish()
    }
}

/// CRC-32 of all bytes of `part`, on all ranks; each reads an equal share with `read`, which is collective and gets an
/// offset, a buffer, and the maximum bytes of a rank.
pub(crate) fn sum_part(
    comm: &dyn Comm,
    part: &Part,
    read: impl Fn(u64, &mut [u8], u64) -> Result<()>,
) -> (Result<()>, u32) {
    const AT_ONCE: u64 = 16 << 20;
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let bytes = part.end - part.offset;
    let share = bytes.div_ceil(ranks);
    let mut at = part.offset + (rank * share).min(bytes);
    let end = part.offset + ((rank + 1) * share).min(bytes);
    let mut buffer = vec![0; (end - at).min(AT_ONCE) as usize];
    let (mut crc, mut result) = (Crc::new(), Ok(()));
    for _ in 0..share.div_ceil(AT_ONCE) {
        let piece = &mut buffer[..(end - at).min(AT_ONCE) as usize];
        result = result.and(read(at, piece, share.min(AT_ONCE)));
        crc.update(piece);
        at += piece.len() as u64;
    }
    (result, followed_by(crc.sum(), part.end - end))
}

/// Fails if the checksum of a part differs from that of the index.
pub(crate) fn compare_sums(part: &Part, expected: u32, found: u32) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let (begin, end) = (part.offset, part.end);
    let message = format!(
        "the checksum of bytes {begin} to {end} is {found:08x}, the index has {expected:08x}"
    );
    Err(Error::malformed("scda-013", message).at(begin))
}

/// CRC-32 of bytes with this checksum and `zeros` more bytes that contribute nothing: the checksum of a sequence is the
/// exclusive or of this value for all of its pieces.
pub(crate) fn followed_by(crc: u32, zeros: u64) -> u32 {
    // The polynomial x^8, squared for each bit of the number of bytes.
    let (mut power, mut factor, mut left) = (1 << 31, 1 << 23, zeros);
    while left > 0 {
        if left & 1 == 1 {
            power = multiply(factor, power);
        }
        factor = multiply(factor, factor);
        left >>= 1;
    }
    multiply(power, crc)
}

/// Product of two polynomials modulo that of CRC-32; the highest bit is the coefficient of x^0.
fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    for bit in (0..32).rev() {
        if a >> bit & 1 == 1 {
            product ^= b;
        }
        b = b >> 1 ^ if b & 1 == 1 { 0xedb8_8320 } else { 0 };
    }
    product
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_checksum_of_pieces_is_that_of_all_bytes(
            pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..300), 0..6)
        ) {
            let all = pieces.concat();
            let mut end = 0;
            let mut sum = 0;
            for piece in &pieces {
                end += piece.len();
                sum ^= followed_by(libdeflater::crc32(piece), (all.len() - end) as u64);
            }
            prop_assert_eq!(sum, libdeflater::crc32(&all));
        }
    }

    #[test]
    fn large_distances_are_shifted() {
        // Shifting twice is shifting by the sum.
        let crc = libdeflater::crc32(b"abc");
        let (a, b) = ((1 << 40) + 12345, (1 << 35) + 7);
        assert_eq!(followed_by(followed_by(crc, a), b), followed_by(crc, a + b));
    }

    #[test]
    fn tables_round_trip() {
        let parts = [
            Part { offset: 0, end: 128, len: 0, crc: Some(u32::MAX) },
            Part { offset: 128, end: 512, len: 90, crc: Some(7) },
        ];
        let table = format_table(&parts, Breaks::Unix);
        assert_eq!(parse_table(&table, 3, 512).unwrap(), parts);
        assert_eq!(parse_table(&table, 3, 128), None);
        let without = parts.map(|part| Part { crc: None, ..part });
        let table = format_table(&without, Breaks::Mime);
        assert_eq!(parse_table(&table, 2, 512).unwrap(), without);
        assert_eq!(parse_table(&table[64..], 2, 512), None);
    }
}
