//! Encoding and decoding of fields. Each structure is described once, for both directions.

use spile_core::{ByteOrder, Error, Result, Wire};

use super::DataType;

/// Sequence of fields. [`Wire`] decodes the fields into the values, [`Encoder`] encodes the values.
pub(crate) trait Fields {
    /// A number of `N` bytes, little-endian in memory. Returns the bytes that were read or written.
    fn number<const N: usize>(&mut self, value: [u8; N]) -> Result<[u8; N]>;
    fn bytes(&mut self, value: &mut Vec<u8>, length: usize) -> Result<()>;
    fn text(&mut self, value: &mut String, length: usize) -> Result<()>;
    /// Error for a field with an invalid value.
    fn invalid(&self, message: String) -> Error;

    fn i4(&mut self, value: &mut i32) -> Result<()> {
        *value = i32::from_le_bytes(self.number(value.to_le_bytes())?);
        Ok(())
    }

    fn i8(&mut self, value: &mut i64) -> Result<()> {
        *value = i64::from_le_bytes(self.number(value.to_le_bytes())?);
        Ok(())
    }

    fn r8(&mut self, value: &mut f64) -> Result<()> {
        *value = f64::from_le_bytes(self.number(value.to_le_bytes())?);
        Ok(())
    }

    /// One byte that is not 0 if `value` is true.
    fn flag(&mut self, value: &mut bool) -> Result<()> {
        *value = self.number([u8::from(*value)])? != [0];
        Ok(())
    }

    fn datatype(&mut self, value: &mut DataType) -> Result<()> {
        let mut code = value.code();
        self.i4(&mut code)?;
        *value = DataType::from_code(code);
        Ok(())
    }

    /// A count, stored as a 4-byte integer.
    fn count(&mut self, value: &mut u64) -> Result<()> {
        let mut raw = i32::try_from(*value)
            .map_err(|_| self.invalid(format!("{value} does not fit into a 4-byte field")))?;
        self.i4(&mut raw)?;
        *value = u64::try_from(raw)
            .map_err(|_| self.invalid(format!("expected a count, found {raw}")))?;
        Ok(())
    }

    /// A count or an offset, stored as an 8-byte integer.
    fn long_count(&mut self, value: &mut u64) -> Result<()> {
        let mut raw = i64::try_from(*value)
            .map_err(|_| self.invalid(format!("{value} does not fit into an 8-byte field")))?;
        self.i8(&mut raw)?;
        *value = u64::try_from(raw)
            .map_err(|_| self.invalid(format!("expected a count or an offset, found {raw}")))?;
        Ok(())
    }

    /// `count` fields of one type. Memory grows with the bytes read, not with `count`.
    fn list<T: Default>(
        &mut self,
        values: &mut Vec<T>,
        count: usize,
        mut each: impl FnMut(&mut Self, &mut T) -> Result<()>,
    ) -> Result<()> {
        for k in 0..count {
            if k == values.len() {
                values.push(T::default());
            }
            each(self, &mut values[k])?;
        }
        Ok(())
    }

    /// `count` strings of `length` bytes each.
    fn strings(&mut self, values: &mut Vec<String>, count: usize, length: usize) -> Result<()> {
        self.list(values, count, |f, v| f.text(v, length))
    }
}

impl Fields for Wire<'_> {
    fn number<const N: usize>(&mut self, _: [u8; N]) -> Result<[u8; N]> {
        let mut number = self.array()?;
        if self.order() == ByteOrder::Big {
            number.reverse();
        }
        Ok(number)
    }

    fn bytes(&mut self, value: &mut Vec<u8>, length: usize) -> Result<()> {
        *value = self.take(length)?.to_vec();
        Ok(())
    }

    fn text(&mut self, value: &mut String, length: usize) -> Result<()> {
        *value = Wire::text(self, length)?;
        Ok(())
    }

    fn invalid(&self, message: String) -> Error {
        self.malformed("sdf-011", message)
    }
}

/// Encodes fields into `bytes`.
pub(crate) struct Encoder {
    pub(crate) bytes: Vec<u8>,
    order: ByteOrder,
}

impl Encoder {
    pub(crate) fn new(order: ByteOrder) -> Self {
        Self { bytes: Vec::new(), order }
    }
}

impl Fields for Encoder {
    fn number<const N: usize>(&mut self, value: [u8; N]) -> Result<[u8; N]> {
        let mut stored = value;
        if self.order == ByteOrder::Big {
            stored.reverse();
        }
        self.bytes.extend_from_slice(&stored);
        Ok(value)
    }

    fn bytes(&mut self, value: &mut Vec<u8>, length: usize) -> Result<()> {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.bytes.resize(at + length, 0);
        Ok(())
    }

    fn text(&mut self, value: &mut String, length: usize) -> Result<()> {
        self.bytes.extend(padded(value, length));
        Ok(())
    }

    fn invalid(&self, message: String) -> Error {
        Error::argument(message)
    }
}

/// `text` as the Fortran library stores it: terminated by NUL, padded with spaces to `length` bytes;
/// truncated at a character boundary if it is longer.
pub(crate) fn padded(text: &str, length: usize) -> Vec<u8> {
    let mut bytes = truncated(text, length).as_bytes().to_vec();
    if bytes.len() < length {
        bytes.push(0);
    }
    bytes.resize(length, b' ');
    bytes
}

/// The longest prefix of `text` of at most `length` bytes.
pub(crate) fn truncated(text: &str, length: usize) -> &str {
    let mut end = text.len().min(length);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_padded_as_the_fortran_library_does_and_round_trip() {
        assert_eq!(padded("ex", 6), b"ex\0   ");
        assert_eq!(padded("", 3), b"\0  ");
        assert_eq!(padded("exactly", 7), b"exactly");
        assert_eq!(padded("too long", 3), b"too");
        assert_eq!(padded("gr\u{fc}n", 3), b"gr\0");
        for text in ["", "a", "abc", "with space"] {
            let bytes = padded(text, 10);
            let mut wire = Wire::new(&bytes, 0, ByteOrder::Little, "x");
            assert_eq!(Wire::text(&mut wire, 10).unwrap(), text);
        }
    }
}
