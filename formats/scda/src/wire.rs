//! On-disk structures: paddings, count entries, the file header and raw sections (section 2 of the
//! specification).

mod entries;

use spile_core::wire::fetch;
use spile_core::{Error, Result, Source};

pub(crate) use entries::{ENTRIES_AT_ONCE, check_entries, read_starts, sum_entries};
pub use entries::{count, format_entries, parse_entries};

/// Bytes of the file header (Figure 1).
pub const FILE_HEADER: u64 = 128;

/// Bytes of a section's type and user string.
pub const SECTION_HEADER: u64 = 64;

/// Bytes of a count entry; also the alignment of all sections.
pub const ENTRY: u64 = 32;

/// Bytes of the longest section header: type, user string and two counts.
pub(crate) const LONGEST_HEAD: usize = (SECTION_HEADER + 2 * ENTRY) as usize;

/// Maximum length of a vendor string in bytes.
pub const VENDOR: usize = 20;

/// Maximum length of a user string in bytes.
pub const USER: usize = 58;

/// Line break style of a padding (section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breaks {
    /// `\n`.
    Unix,
    /// `\r\n`.
    Mime,
    /// Any other two bytes, which the specification allows.
    Other,
}

/// Type of a data section (sections 2.3 to 2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 32 bytes.
    Inline,
    /// One block of bytes.
    Block,
    /// Elements of equal size.
    Array,
    /// Elements of different sizes.
    Varray,
}

impl Kind {
    /// The letter that identifies the type in the file.
    pub const fn letter(self) -> char {
        match self {
            Self::Inline => 'I',
            Self::Block => 'B',
            Self::Array => 'A',
            Self::Varray => 'V',
        }
    }

    fn from_letter(letter: u8) -> Option<Self> {
        [Self::Inline, Self::Block, Self::Array, Self::Varray]
            .into_iter()
            .find(|kind| kind.letter() as u8 == letter)
    }
}

/// The file header (Figure 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHeader {
    /// Format version, 0xa0 and up.
    pub version: u8,
    /// Vendor string: the program that wrote the file.
    pub vendor: Vec<u8>,
    /// User string of the file.
    pub user: Vec<u8>,
    /// Line break style of the paddings; [`Breaks::Other`] if the two strings differ.
    pub breaks: Breaks,
}

impl FileHeader {
    /// Reads and validates the first 128 bytes.
    pub fn read(source: &Source) -> Result<Self> {
        Self::parse(&fetch(source, 0, FILE_HEADER as usize)?)
    }

    /// Validates the first 128 bytes of a file, or all bytes of a shorter file.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let common = b"scdat".iter().zip(bytes).take_while(|(a, b)| a == b).count();
        if bytes.is_empty() || common < bytes.len().min(5) {
            let message = "expected \"scdat\" and a version at the start of the file";
            return Err(Error::not_this_format("scda-001", message).at(common as u64));
        }
        if (bytes.len() as u64) < FILE_HEADER {
            let message = format!(
                "unexpected end of file: expected a file header of 128 bytes, found {}",
                bytes.len()
            );
            return Err(Error::truncated("scda-007", message).in_object("file header").at(0));
        }
        let bad = |code, at, message: &str| {
            Error::malformed(code, message).in_object("file header").at(at)
        };
        let hex = |b: u8| (b as char).to_digit(16).filter(|_| !b.is_ascii_uppercase());
        let version = match (hex(bytes[5]), hex(bytes[6])) {
            (Some(high), Some(low)) if high >= 10 => (16 * high + low) as u8,
            _ => return Err(bad("scda-002", 5, "expected a version from a0 to ff in lower case")),
        };
        if bytes[7] != b' ' {
            return Err(bad("scda-002", 7, "expected a space after the version"));
        }
        let (vendor, first) = unpad(&bytes[8..32])
            .ok_or_else(|| bad("scda-003", 8, "invalid padding of the vendor string"))?;
        if &bytes[32..34] != b"F " {
            return Err(bad("scda-004", 32, "expected the section type \"F \" of the file header"));
        }
        let (user, second) = unpad(&bytes[34..96])
            .ok_or_else(|| bad("scda-003", 34, "invalid padding of the user string"))?;
        let breaks = if first == second { first } else { Breaks::Other };
        Ok(Self { version, vendor: vendor.to_vec(), user: user.to_vec(), breaks })
    }
}

/// A section header: type, user string and counts, without the size entries of a V section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Section type.
    pub kind: Kind,
    /// User string.
    pub user: Box<[u8]>,
    /// Offset of the section in the file.
    pub offset: u64,
    /// Number of elements; 0 for I and B.
    pub count: u64,
    /// Bytes of an element (A) or of the block (B); 0 for I and V.
    pub size: u64,
    /// Line break style of the entries.
    pub breaks: Breaks,
}

impl Head {
    /// Reads the header of the section at `offset`; `None` at the end of the file.
    pub fn read(source: &Source, offset: u64) -> Result<Option<Self>> {
        let bytes = fetch(source, offset, LONGEST_HEAD)?;
        Self::parse(&bytes, offset, source.len())
    }

    /// Parses the header of the section at `offset` of a file of `file_len` bytes; `bytes` begin at
    /// `offset`. `None` at the end of the file.
    pub(crate) fn parse(bytes: &[u8], offset: u64, file_len: u64) -> Result<Option<Self>> {
        if offset == file_len {
            return Ok(None);
        }
        let cut = || {
            let message =
                format!("unexpected end of file at byte {file_len}: incomplete section header");
            Error::truncated("scda-007", message).at(offset)
        };
        let user = bytes.get(..64).ok_or_else(cut)?;
        let kind = Kind::from_letter(user[0]).filter(|_| user[1] == b' ').ok_or_else(|| {
            let message = format!(
                "expected a section type (I, B, A or V), found \"{}\"",
                user[..2].escape_ascii()
            );
            Error::malformed("scda-004", message).at(offset)
        })?;
        let (user, mut breaks) = unpad(&user[2..]).ok_or_else(|| {
            Error::malformed("scda-003", "invalid padding of the user string").at(offset + 2)
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
        Ok(Some(Self { kind, user: user.into(), offset, count, size, breaks }))
    }

    /// Offset of the first byte after the header: of the data, or of the size entries of a V section.
    pub fn end(&self) -> u64 {
        let counts = match self.kind {
            Kind::Inline => 0,
            Kind::Block | Kind::Varray => 1,
            Kind::Array => 2,
        };
        self.offset + SECTION_HEADER + counts * ENTRY
    }

    /// Offset of the first data byte.
    pub fn data(&self) -> u64 {
        match self.kind {
            Kind::Varray => self.end().saturating_add(self.count.saturating_mul(ENTRY)),
            _ => self.end(),
        }
    }

    /// Type and user string for messages: `A "density"`.
    pub fn title(&self) -> String {
        format!("{} \"{}\"", self.kind.letter(), self.user.escape_ascii())
    }

    /// Data bytes of an I, B or A section. Fails if the product of count and size overflows.
    pub fn data_len(&self) -> Result<u64> {
        match self.kind {
            Kind::Inline => Ok(ENTRY),
            Kind::Block => Ok(self.size),
            _ => self.count.checked_mul(self.size).ok_or_else(|| {
                let (count, size) = (self.count, self.size);
                Error::malformed(
                    "scda-006",
                    format!("{count} elements of {size} bytes exceed the maximum file size"),
                )
                .at(self.offset + SECTION_HEADER)
            }),
        }
    }

    /// Offset of the first byte after a section of `len` data bytes. Fails if data and padding
    /// exceed a file of `file_len` bytes.
    pub fn section_end(&self, file_len: u64, len: u64) -> Result<u64> {
        let data = self.data();
        let end = data.checked_add(len).and_then(|e| e.checked_add(padding(self.kind, len)));
        match end {
            Some(end) if end <= file_len => Ok(end),
            Some(_) => {
                let left = file_len.saturating_sub(data);
                let message = format!(
                    "unexpected end of file: expected {len} data bytes and padding, found {left} bytes"
                );
                Err(Error::truncated("scda-007", message).at(self.offset))
            }
            None => {
                let message = format!("{len} data bytes exceed the maximum file size");
                Err(Error::malformed("scda-006", message).at(self.offset))
            }
        }
    }
}

/// A section as stored in the file, without its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    /// Type, user string and counts.
    pub head: Head,
    /// Stored data bytes.
    pub len: u64,
}

impl Raw {
    /// Offset of the first data byte.
    pub fn data(&self) -> u64 {
        self.head.data()
    }

    /// Offset of the first byte after the data.
    pub fn data_end(&self) -> u64 {
        self.data() + self.len
    }

    /// Offset of the first byte after the section.
    pub fn end(&self) -> u64 {
        self.data_end() + padding(self.head.kind, self.len)
    }
}

/// Sizes of the elements whose offsets are `starts`.
pub(crate) fn differences(starts: &[u64]) -> Vec<u64> {
    starts.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// Number of padding bytes after `len` data bytes of a section (section 2.1.2); 0 for I.
pub fn padding(kind: Kind, len: u64) -> u64 {
    if kind == Kind::Inline { 0 } else { data_padding(len) }
}

/// Number of padding bytes after `len` data bytes: 7 to 38, up to a multiple of 32.
pub fn data_padding(len: u64) -> u64 {
    7 + (ENTRY - (len + 7) % ENTRY) % ENTRY
}

/// The padding after `len` data bytes, the last of which is `last`.
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

/// The input of a padded entry and its line break style (section 2.1.1), parsed from the right: two
/// arbitrary bytes, one or more dashes, one space. `None` if the padding is invalid.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_round_trips() {
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
}
