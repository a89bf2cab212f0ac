//! How fields are read and written: one description of a structure serves both ways.

use spile_core::error::{Error, Result};
use spile_core::wire::{ByteOrder, Wire};

/// Fields of a structure, one after the other: read into the values, or written from them. Every
/// structure is described once and serves both ways.
pub(crate) trait Fields {
    fn i4(&mut self, value: &mut i32) -> Result<()>;
    fn i8(&mut self, value: &mut i64) -> Result<()>;
    fn r4(&mut self, value: &mut f32) -> Result<()>;
    fn r8(&mut self, value: &mut f64) -> Result<()>;
    /// A number of 16 bytes, in memory little-endian.
    fn r16(&mut self, value: &mut Vec<u8>) -> Result<()>;
    fn bytes(&mut self, value: &mut Vec<u8>, length: usize) -> Result<()>;
    fn text(&mut self, value: &mut String, length: usize) -> Result<()>;
    /// A field that breaks a rule.
    fn refuse(&self, message: String) -> Error;

    /// A number of things, in four bytes.
    fn count(&mut self, value: &mut u64) -> Result<()> {
        let mut raw = i32::try_from(*value)
            .map_err(|_| self.refuse(format!("{value} does not fit the 4 bytes of its field")))?;
        self.i4(&mut raw)?;
        *value = u64::try_from(raw)
            .map_err(|_| self.refuse(format!("{raw} is not a number of elements")))?;
        Ok(())
    }

    /// A number of things or a place in the file, in eight bytes.
    fn long_count(&mut self, value: &mut u64) -> Result<()> {
        let mut raw = i64::try_from(*value)
            .map_err(|_| self.refuse(format!("{value} does not fit the 8 bytes of its field")))?;
        self.i8(&mut raw)?;
        *value = u64::try_from(raw)
            .map_err(|_| self.refuse(format!("{raw} is neither a number nor a place")))?;
        Ok(())
    }

    /// `number` fields of one kind. The list grows as bytes are found, so a lying number costs
    /// nothing.
    fn list<T: Default>(
        &mut self,
        values: &mut Vec<T>,
        number: usize,
        mut each: impl FnMut(&mut Self, &mut T) -> Result<()>,
    ) -> Result<()>
    where
        Self: Sized,
    {
        for k in 0..number {
            if k == values.len() {
                values.push(T::default());
            }
            each(self, &mut values[k])?;
        }
        Ok(())
    }

    fn texts(&mut self, values: &mut Vec<String>, number: usize, length: usize) -> Result<()>
    where
        Self: Sized,
    {
        self.list(values, number, |f, v| f.text(v, length))
    }
}

impl Fields for Wire<'_> {
    fn i4(&mut self, value: &mut i32) -> Result<()> {
        *value = self.i32()?;
        Ok(())
    }

    fn i8(&mut self, value: &mut i64) -> Result<()> {
        *value = self.i64()?;
        Ok(())
    }

    fn r4(&mut self, value: &mut f32) -> Result<()> {
        *value = self.f32()?;
        Ok(())
    }

    fn r8(&mut self, value: &mut f64) -> Result<()> {
        *value = self.f64()?;
        Ok(())
    }

    fn r16(&mut self, value: &mut Vec<u8>) -> Result<()> {
        let mut number: [u8; 16] = self.array()?;
        if self.order() == ByteOrder::Big {
            number.reverse();
        }
        *value = number.to_vec();
        Ok(())
    }

    fn bytes(&mut self, value: &mut Vec<u8>, length: usize) -> Result<()> {
        *value = self.take(length)?.to_vec();
        Ok(())
    }

    fn text(&mut self, value: &mut String, length: usize) -> Result<()> {
        *value = Wire::text(self, length)?;
        Ok(())
    }

    fn refuse(&self, message: String) -> Error {
        self.malformed("sdf-011", message)
    }
}

/// Collects the bytes of a structure.
pub(crate) struct Out {
    pub(crate) bytes: Vec<u8>,
    order: ByteOrder,
}

impl Out {
    pub(crate) fn new(order: ByteOrder) -> Self {
        Self { bytes: Vec::new(), order }
    }

    fn put<const N: usize>(&mut self, mut little: [u8; N]) {
        if self.order == ByteOrder::Big {
            little.reverse();
        }
        self.bytes.extend_from_slice(&little);
    }
}

impl Fields for Out {
    fn i4(&mut self, value: &mut i32) -> Result<()> {
        self.put(value.to_le_bytes());
        Ok(())
    }

    fn i8(&mut self, value: &mut i64) -> Result<()> {
        self.put(value.to_le_bytes());
        Ok(())
    }

    fn r4(&mut self, value: &mut f32) -> Result<()> {
        self.put(value.to_le_bytes());
        Ok(())
    }

    fn r8(&mut self, value: &mut f64) -> Result<()> {
        self.put(value.to_le_bytes());
        Ok(())
    }

    fn r16(&mut self, value: &mut Vec<u8>) -> Result<()> {
        let mut number = [0; 16];
        number.iter_mut().zip(value).for_each(|(byte, value)| *byte = *value);
        self.put(number);
        Ok(())
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

    fn refuse(&self, message: String) -> Error {
        Error::argument(message)
    }
}

/// A text as the Fortran library stores it: a NUL behind it, then spaces; cut where it is longer
/// than the field, without breaking a character.
pub(crate) fn padded(text: &str, length: usize) -> Vec<u8> {
    let mut bytes = cut(text, length).as_bytes().to_vec();
    if bytes.len() < length {
        bytes.push(0);
    }
    bytes.resize(length, b' ');
    bytes
}

/// As much of `text` as fits `length` bytes.
pub(crate) fn cut(text: &str, length: usize) -> &str {
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
    fn texts_are_padded_as_fortran_does_and_read_back() {
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
