//! Entries and sections as they lie in the file (section 2 of the paper).

use rayon::prelude::*;
use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;
use spile_core::wire::fetch;

use crate::digits::{put_count, quick_count};

/// Bytes of the file header (Figure 1).
pub const FILE_HEADER: u64 = 128;

/// Bytes of a section's type and user string.
pub const SECTION_HEADER: u64 = 64;

/// Bytes of a count entry, and what everything is aligned to.
pub const ENTRY: u64 = 32;

/// Bytes of the longest fixed part of a section: type, user string and two counts.
pub(crate) const LONGEST_HEAD: usize = (SECTION_HEADER + 2 * ENTRY) as usize;

/// Longest vendor string.
pub const VENDOR: usize = 20;

/// Longest user string.
pub const USER: usize = 58;

/// Entries of sizes that are parsed at once.
pub(crate) const ENTRIES_AT_ONCE: usize = 4096;

/// Which line breaks a padding ends with (section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaks {
    /// `\n`.
    Unix,
    /// `\r\n`.
    Mime,
    /// Neither; legal all the same.
    Other,
}

/// Type of a data section (sections 2.3 to 2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 32 bytes.
    Inline,
    /// A given number of bytes.
    Block,
    /// Elements of one size.
    Array,
    /// Elements of different sizes.
    Varray,
}

impl Kind {
    /// The letter in the file.
    pub const fn letter(self) -> char {
        match self {
            Self::Inline => 'I',
            Self::Block => 'B',
            Self::Array => 'A',
            Self::Varray => 'V',
        }
    }

    fn of(letter: u8) -> Option<Self> {
        [Self::Inline, Self::Block, Self::Array, Self::Varray]
            .into_iter()
            .find(|kind| kind.letter() as u8 == letter)
    }
}

/// What the file header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Format version, 0xa0 and up.
    pub version: u8,
    /// Who wrote it.
    pub vendor: Vec<u8>,
    /// What the user says about it.
    pub user: Vec<u8>,
    /// Line breaks of the paddings.
    pub breaks: Breaks,
}

impl FileHeader {
    /// Reads and checks the first 128 bytes.
    pub fn read(source: &Source) -> Result<Self> {
        Self::parse(&fetch(source, 0, FILE_HEADER as usize)?)
    }

    /// Checks the first 128 bytes of a file, or all of a shorter one.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let common = b"scdat".iter().zip(bytes).take_while(|(a, b)| a == b).count();
        if bytes.is_empty() || common < bytes.len().min(5) {
            let message = "an scda file begins with \"scdat\" and its version";
            return Err(Error::not_this_format("scda-001", message).at(common as u64));
        }
        if (bytes.len() as u64) < FILE_HEADER {
            let message = format!("the file header has {} of 128 bytes", bytes.len());
            return Err(Error::truncated("scda-007", message).in_object("file header").at(0));
        }
        let bad = |code, at, message: &str| {
            Error::malformed(code, message).in_object("file header").at(at)
        };
        let hex = |b: u8| (b as char).to_digit(16).filter(|_| !b.is_ascii_uppercase());
        let version = match (hex(bytes[5]), hex(bytes[6])) {
            (Some(high), Some(low)) if high >= 10 => (16 * high + low) as u8,
            _ => return Err(bad("scda-002", 5, "versions are a0 to ff, in small letters")),
        };
        if bytes[7] != b' ' {
            return Err(bad("scda-002", 7, "a space follows the version"));
        }
        let (vendor, first) = unpad(&bytes[8..32])
            .ok_or_else(|| bad("scda-003", 8, "the vendor string is not padded"))?;
        if &bytes[32..34] != b"F " {
            return Err(bad("scda-004", 32, "the first section is not a file header"));
        }
        let (user, second) = unpad(&bytes[34..96])
            .ok_or_else(|| bad("scda-003", 34, "the user string is not padded"))?;
        let breaks = if first == second { first } else { Breaks::Other };
        Ok(Self { version, vendor: vendor.to_vec(), user: user.to_vec(), breaks })
    }
}

/// The fixed part of a section: type, user string and counts, without the sizes of a V section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Its type.
    pub kind: Kind,
    /// Its user string.
    pub user: Vec<u8>,
    /// Its first byte.
    pub offset: u64,
    /// Number of elements; 0 for I and B.
    pub count: u64,
    /// Bytes of an element (A) or of the block (B); 0 for I and V.
    pub size: u64,
    /// The byte after it: the first of the data, or of the sizes of a V section.
    pub end: u64,
    /// Line breaks of its entries.
    pub breaks: Breaks,
}

impl Head {
    /// Reads the fixed part of the section at `offset`, or nothing at the end of the file.
    pub fn read(source: &Source, offset: u64) -> Result<Option<Self>> {
        let bytes = fetch(source, offset, LONGEST_HEAD)?;
        Self::parse(&bytes, offset, source.len())
    }

    /// The fixed part of the section at `offset` of a file of `file_len` bytes, from the bytes
    /// there.
    pub(crate) fn parse(bytes: &[u8], offset: u64, file_len: u64) -> Result<Option<Self>> {
        if offset == file_len {
            return Ok(None);
        }
        let cut = || {
            let message = format!("the file ends after {file_len} bytes");
            Error::truncated("scda-007", message).at(offset)
        };
        let user = bytes.get(..64).ok_or_else(cut)?;
        let kind = Kind::of(user[0]).filter(|_| user[1] == b' ').ok_or_else(|| {
            let message = format!("\"{}\" is not the type of a section", user[..2].escape_ascii());
            Error::malformed("scda-004", message).at(offset)
        })?;
        let (user, mut breaks) = unpad(&user[2..]).ok_or_else(|| {
            Error::malformed("scda-003", "the user string is not padded").at(offset + 2)
        })?;
        let mut end = offset + SECTION_HEADER;
        let mut number = |letter: u8| -> Result<u64> {
            let at = (end - offset) as usize;
            let entry = bytes.get(at..at + ENTRY as usize).ok_or_else(cut)?;
            let (value, style) = count(entry, letter, end)?;
            if style != breaks {
                breaks = Breaks::Other;
            }
            end += ENTRY;
            Ok(value)
        };
        let (count, size) = match kind {
            Kind::Inline => (0, 0),
            Kind::Block => (0, number(b'E')?),
            Kind::Array => (number(b'N')?, number(b'E')?),
            Kind::Varray => (number(b'N')?, 0),
        };
        Ok(Some(Self { kind, user: user.to_vec(), offset, count, size, end, breaks }))
    }

    /// Bytes of the data of a section that is not V.
    pub fn data_len(&self) -> Result<u64> {
        match self.kind {
            Kind::Inline => Ok(ENTRY),
            Kind::Block => Ok(self.size),
            _ => self.count.checked_mul(self.size).ok_or_else(|| {
                let (count, size) = (self.count, self.size);
                Error::malformed(
                    "scda-006",
                    format!("{count} elements of {size} bytes fit no file"),
                )
                .at(self.offset + SECTION_HEADER)
            }),
        }
    }

    /// The byte after a section whose `len` data bytes begin at `data`; they and their padding have
    /// to be inside a file of `file_len` bytes.
    pub fn section_end(&self, file_len: u64, data: u64, len: u64) -> Result<u64> {
        let end = data.checked_add(len).and_then(|e| e.checked_add(padding(self.kind, len)));
        match end {
            Some(end) if end <= file_len => Ok(end),
            Some(_) => {
                let left = file_len.saturating_sub(data);
                let message =
                    format!("the data need {len} bytes and their padding, {left} are left");
                Err(Error::truncated("scda-007", message).at(self.offset))
            }
            None => {
                let message = format!("{len} bytes fit no file");
                Err(Error::malformed("scda-006", message).at(self.offset))
            }
        }
    }
}

/// A section without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// Type, user string and counts.
    pub head: Head,
    /// First byte of the data.
    pub data: u64,
    /// Bytes of the data.
    pub len: u64,
    /// For V: bytes before each element, and the total at the end.
    pub starts: Vec<u64>,
    /// The byte after the section.
    pub end: u64,
}

impl Raw {
    /// Reads the section at `offset`, or nothing at the end of the file.
    pub fn read(source: &Source, offset: u64, limits: &Limits) -> Result<Option<Self>> {
        let Some(head) = Head::read(source, offset)? else { return Ok(None) };
        let mut starts = Vec::new();
        let (data, len) = if head.kind == Kind::Varray {
            starts = read_sizes(source, head.end, head.count, b'E', limits)?;
            (head.end + ENTRY * head.count, starts.last().copied().unwrap_or(0))
        } else {
            (head.end, head.data_len()?)
        };
        let end = head.section_end(source.len(), data, len)?;
        Ok(Some(Self { head, data, len, starts, end }))
    }

    /// For V: bytes of each element.
    pub fn sizes(&self) -> Vec<u64> {
        differences(&self.starts)
    }

    /// The section in words: `A "density"`.
    pub fn title(&self) -> String {
        format!("{} \"{}\"", self.head.kind.letter(), self.head.user.escape_ascii())
    }
}

/// The sizes of elements that begin at `starts`.
pub(crate) fn differences(starts: &[u64]) -> Vec<u64> {
    starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Bytes that follow `len` data bytes (section 2.1.2): at least 7, to a multiple of 32.
pub fn padding(kind: Kind, len: u64) -> u64 {
    if kind == Kind::Inline { 0 } else { data_padding(len) }
}

/// The unique number from 7 to 38 that fills up to a multiple of 32.
pub fn data_padding(len: u64) -> u64 {
    7 + (ENTRY - (len + 7) % ENTRY) % ENTRY
}

/// The bytes that pad `len` data bytes, the last of which is `last`.
pub fn data_padding_bytes(len: u64, last: Option<u8>, breaks: Breaks) -> Vec<u8> {
    let total = data_padding(len) as usize;
    let (open, close): (&[u8], &[u8]) = match breaks {
        Breaks::Mime => (b"\r\n", b"\r\n\r\n"),
        _ => (b"\n=", b"\n\n"),
    };
    let open = if last == Some(b'\n') { b"==" } else { open };
    let mut out = open.to_vec();
    out.resize(total - close.len(), b'=');
    out.extend_from_slice(close);
    out
}

/// The input of a padded entry and its line breaks (section 2.1.1), parsed from the right: two
/// free bytes, one or more dashes, one space.
pub fn unpad(padded: &[u8]) -> Option<(&[u8], Breaks)> {
    let (rest, free) = padded.split_last_chunk::<2>()?;
    let end = rest.iter().rposition(|b| *b != b'-')?;
    if end + 1 == rest.len() || rest[end] != b' ' {
        return None;
    }
    let breaks = match free {
        b"-\n" => Breaks::Unix,
        b"\r\n" => Breaks::Mime,
        _ => Breaks::Other,
    };
    Some((&rest[..end], breaks))
}

/// `input` padded to `length` bytes.
pub fn pad(input: &[u8], length: usize, breaks: Breaks) -> Vec<u8> {
    let mut out = input.to_vec();
    out.push(b' ');
    out.resize(length - 2, b'-');
    out.extend_from_slice(if breaks == Breaks::Mime { b"\r\n" } else { b"-\n" });
    out
}

/// Makes `out` the count entries of `values`, 32 bytes each.
pub fn format_entries(letter: u8, values: &[u64], breaks: Breaks, out: &mut Vec<u8>) {
    let mut blank = [b'-'; ENTRY as usize];
    (blank[0], blank[1]) = (letter, b' ');
    blank[30..].copy_from_slice(if breaks == Breaks::Mime { b"\r\n" } else { b"-\n" });
    out.resize(values.len() * ENTRY as usize, 0);
    for (entry, value) in out.as_chunks_mut::<{ ENTRY as usize }>().0.iter_mut().zip(values) {
        *entry = blank;
        put_count(entry, *value);
    }
}

/// The value of a 32-byte count entry. Counts have 1 to 26 digits and no leading zero; those that
/// no file can hold are refused, never wrapped.
pub fn count(entry: &[u8], letter: u8, offset: u64) -> Result<(u64, Breaks)> {
    let bad = |message: String| Error::malformed("scda-005", message).at(offset);
    if entry.first() != Some(&letter) || entry.get(1) != Some(&b' ') {
        let found = entry[..2.min(entry.len())].escape_ascii();
        return Err(bad(format!("expected the count \"{} \", found \"{found}\"", letter as char)));
    }
    let (digits, breaks) =
        unpad(&entry[2..]).ok_or_else(|| bad("the count is not padded".into()))?;
    let plain = !digits.is_empty()
        && digits.len() <= 26
        && digits.iter().all(u8::is_ascii_digit)
        && (digits[0] != b'0' || digits.len() == 1);
    if !plain {
        return Err(bad(format!("\"{}\" is not a count", digits.escape_ascii())));
    }
    let value = digits.iter().fold(0_u128, |v, d| v * 10 + u128::from(d - b'0'));
    match u64::try_from(value) {
        Ok(value) if value < 1 << 63 => Ok((value, breaks)),
        _ => Err(Error::malformed("scda-006", format!("{value} fits no file")).at(offset)),
    }
}

/// The sizes of `number` elements as running sums, with the total at the end.
pub fn read_sizes(
    source: &Source,
    offset: u64,
    number: u64,
    letter: u8,
    limits: &Limits,
) -> Result<Vec<u64>> {
    let mut starts = read_entries(source, offset, number, letter, limits)?;
    let mut sum = 0_u64;
    for (k, size) in starts.iter_mut().enumerate() {
        let before = sum;
        sum = sum.checked_add(*size).filter(|s| *s < 1 << 63).ok_or_else(|| {
            let at = offset + k as u64 * ENTRY;
            Error::malformed("scda-006", "the sizes add up to more than any file holds").at(at)
        })?;
        *size = before;
    }
    starts.push(sum);
    Ok(starts)
}

/// The values of `number` count entries. They must lie inside the file before memory is asked for.
pub fn read_entries(
    source: &Source,
    offset: u64,
    number: u64,
    letter: u8,
    limits: &Limits,
) -> Result<Vec<u64>> {
    entries_fit(number, offset, source.len())?;
    let bytes = limits.allow((number + 1).saturating_mul(8), "the sizes of the elements")?;
    let mut values = Vec::with_capacity(bytes / 8);
    values.resize(bytes / 8 - 1, 0_u64);
    values.par_chunks_mut(ENTRIES_AT_ONCE).enumerate().try_for_each_init(
        Vec::new,
        |bytes, (part, values)| {
            let at = offset + (part * ENTRIES_AT_ONCE) as u64 * ENTRY;
            bytes.resize(values.len() * ENTRY as usize, 0);
            source.read_exact_at(at, bytes)?;
            parse_entries(bytes, letter, at, values)
        },
    )?;
    Ok(values)
}

/// `number` count entries at `offset` lie inside a file of `file_len` bytes.
pub(crate) fn entries_fit(number: u64, offset: u64, file_len: u64) -> Result<()> {
    let end = number.checked_mul(ENTRY).and_then(|bytes| bytes.checked_add(offset));
    if end.is_some_and(|end| end <= file_len) {
        return Ok(());
    }
    let message = format!("{number} sizes need more than the file has");
    Err(Error::truncated("scda-007", message).at(offset))
}

/// The values of the count entries in `bytes`, which lie at byte `at` of the file.
pub fn parse_entries(bytes: &[u8], letter: u8, at: u64, values: &mut [u64]) -> Result<()> {
    let entries = bytes.as_chunks::<{ ENTRY as usize }>().0;
    for (k, (entry, value)) in entries.iter().zip(values).enumerate() {
        *value = match quick_count(entry, letter) {
            Some(value) => value,
            None => count(entry, letter, at + k as u64 * ENTRY)?.0,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_gives_the_input_back() {
        for input in [&b""[..], b"-", b" -", b"a -- b -", &[b'-'; 58], b"\0\xff\n"] {
            for breaks in [Breaks::Unix, Breaks::Mime] {
                let padded = pad(input, 62, breaks);
                assert_eq!(padded.len(), 62);
                assert_eq!(unpad(&padded), Some((input, breaks)));
            }
        }
        assert_eq!(unpad(b"abc -xy"), Some((&b"abc"[..], Breaks::Other)));
        for bad in [&b"abc"[..], b"abc-----\n", b"abc \r\n", b"", b"------"] {
            assert_eq!(unpad(bad), None);
        }
    }

    #[test]
    fn data_padding_is_between_7_and_38() {
        for len in 0..200 {
            let p = data_padding(len);
            assert!((7..=38).contains(&p) && (len + p).is_multiple_of(32));
            for breaks in [Breaks::Unix, Breaks::Mime] {
                for last in [None, Some(b'x'), Some(b'\n')] {
                    assert_eq!(data_padding_bytes(len, last, breaks).len() as u64, p);
                }
            }
        }
        assert_eq!(data_padding_bytes(0, None, Breaks::Unix)[..3], *b"\n==");
    }

    #[test]
    fn counts_are_strict() {
        let entry = |digits: &str| {
            let mut bytes = b"E ".to_vec();
            bytes.extend(pad(digits.as_bytes(), 30, Breaks::Unix));
            count(&bytes, b'E', 0).map(|c| c.0)
        };
        assert_eq!(entry("0").unwrap(), 0);
        assert_eq!(entry("9223372036854775807").unwrap(), (1 << 63) - 1);
        for bad in ["", "05", "+5", "5a", " 5", "5 ", "-1"] {
            assert_eq!(entry(bad).unwrap_err().code(), "scda-005", "{bad}");
        }
        for large in ["9223372036854775808", "99999999999999999999999999"] {
            assert_eq!(entry(large).unwrap_err().code(), "scda-006", "{large}");
        }
    }
}
