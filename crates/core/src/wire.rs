//! Checked reads of fixed-size fields. Errors contain the byte offset in the file.

use std::borrow::Cow;

use crate::{Error, Result, Source};

/// Byte order of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// Byte order of this machine.
    pub const NATIVE: Self = if cfg!(target_endian = "big") { Self::Big } else { Self::Little };

    /// The byte order in which `mark` is `value`; `None` if it is in neither.
    pub fn detect(mark: [u8; 4], value: u32) -> Option<Self> {
        if u32::from_le_bytes(mark) == value {
            Some(Self::Little)
        } else if u32::from_be_bytes(mark) == value {
            Some(Self::Big)
        } else {
            None
        }
    }
}

/// A cursor over bytes of a file that are in memory.
#[derive(Clone, Debug)]
pub struct Wire<'a> {
    bytes: &'a [u8],
    position: usize,
    base: u64,
    order: ByteOrder,
    /// Error code of a structure that ends early.
    truncated: &'static str,
}

macro_rules! number {
    ($($name:ident: $type:ty),*) => {$(
        #[doc = concat!("The next `", stringify!($type), "`.")]
        pub fn $name(&mut self) -> Result<$type> {
            let raw = self.array()?;
            Ok(match self.order {
                ByteOrder::Little => <$type>::from_le_bytes(raw),
                ByteOrder::Big => <$type>::from_be_bytes(raw),
            })
        }
    )*};
}

impl<'a> Wire<'a> {
    /// A cursor at the start of `bytes`, which are at offset `base` of the file. Reading past their end is
    /// a `Truncated` error with the code `truncated`.
    pub fn new(bytes: &'a [u8], base: u64, order: ByteOrder, truncated: &'static str) -> Self {
        Self { bytes, position: 0, base, order, truncated }
    }

    number!(u8: u8, u16: u16, u32: u32, u64: u64, i8: i8, i16: i16, i32: i32, i64: i64, f32: f32,
            f64: f64);

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let rest = &self.bytes[self.position..];
        let Some(found) = rest.get(..n) else {
            let message =
                format!("unexpected end of file: expected {n} bytes, found {}", rest.len());
            return Err(Error::truncated(self.truncated, message).at(self.offset()));
        };
        self.position += n;
        Ok(found)
    }

    /// Skips `n` bytes.
    pub fn skip(&mut self, n: usize) -> Result<()> {
        self.take(n).map(drop)
    }

    /// Reads a text field of `n` bytes: truncated at the first NUL, trailing spaces removed, invalid UTF-8
    /// replaced by U+FFFD.
    pub fn text(&mut self, n: usize) -> Result<String> {
        let raw = self.take(n)?;
        let raw = &raw[..memchr::memchr(0, raw).unwrap_or(n)];
        // Fast path for valid UTF-8.
        let text =
            std::str::from_utf8(raw).map_or_else(|_| String::from_utf8_lossy(raw), Cow::Borrowed);
        Ok(text.trim_end_matches(' ').to_string())
    }

    /// Reads bytes that must equal `expected`; otherwise fails with `Malformed` and `code`.
    pub fn expect(&mut self, expected: &[u8], code: &'static str) -> Result<()> {
        let at = self.offset();
        let found = self.take(expected.len())?;
        if found == expected {
            return Ok(());
        }
        let message =
            format!("expected \"{}\", found \"{}\"", expected.escape_ascii(), found.escape_ascii());
        Err(Error::malformed(code, message).at(at))
    }

    /// A `Malformed` error at the current offset.
    pub fn malformed(&self, code: &'static str, message: impl Into<String>) -> Error {
        Error::malformed(code, message).at(self.offset())
    }

    /// Offset in the file of the next byte.
    pub fn offset(&self) -> u64 {
        self.base + self.position as u64
    }

    /// Number of bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// The current byte order.
    pub fn order(&self) -> ByteOrder {
        self.order
    }

    /// Sets the byte order of the following reads.
    pub fn set_order(&mut self, order: ByteOrder) {
        self.order = order;
    }
}

/// Reads up to `len` bytes at `offset`; fewer at the end of the file. A [`Wire`] over them then reports
/// the field at which a truncated file ends.
pub fn fetch(source: &Source, offset: u64, len: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    let got = source.read_at_most(offset, &mut bytes)?;
    bytes.truncate(got);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_truncated_field_is_reported_at_its_first_byte() {
        let mut wire = Wire::new(&[1, 0, 0], 100, ByteOrder::Little, "x-1");
        assert_eq!(wire.u8().unwrap(), 1);
        let error = wire.u32().unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Truncated, "x-1"));
        assert_eq!(error.offset(), Some(101));
    }

    #[test]
    fn both_orders_read_the_same_number() {
        let value = 0x0102_0e0f_u32;
        for (bytes, order) in
            [(value.to_le_bytes(), ByteOrder::Little), (value.to_be_bytes(), ByteOrder::Big)]
        {
            assert_eq!(ByteOrder::detect(bytes, value), Some(order));
            assert_eq!(Wire::new(&bytes, 0, order, "x").u32().unwrap(), value);
        }
        assert_eq!(ByteOrder::detect(*b"abcd", value), None);
    }

    #[test]
    fn text_ends_at_nul_and_loses_padding() {
        let mut wire = Wire::new(b"Ex  \0junk", 0, ByteOrder::Little, "x");
        assert_eq!(wire.text(9).unwrap(), "Ex");
    }
}
