//! Writing of data: lines of a text, or a record.

use std::io::Write;

use spile_core::convert::swap;
use spile_core::{Array, ByteOrder, DType, Error, Order, Result};

use super::{Out, Writer};
use crate::cast::{Cast, fortran};
use crate::scalar::{Scalar, Style};
use crate::wire::escape;

/// Bytes of numbers formatted at once; their text is about three times as long.
const BLOCK: usize = 64 << 10;

impl<W: Write> Writer<W> {
    /// Writes the data of an element, first index fastest: `columns` numbers per line, one string per
    /// line.
    pub(crate) fn array(&mut self, array: &Array, columns: u64) -> Result<()> {
        let (style, inline) = (self.style, self.inline);
        let (stored, map) = (array.dtype().with_order(ByteOrder::Little), array.map());
        let (dtype, each) = fortran(stored, map);
        let count = array.shape().count().unwrap_or(0).saturating_mul(each);
        let all = array.all_in(Order::F)?;
        let recast = || (dtype != stored || map.is_some()).then(|| Cast::new(stored, map, dtype));
        let out = match &mut self.out {
            Out::Text(out) => out,
            Out::Binary(_) => {
                let bytes = count.checked_mul(dtype.size() as u64);
                self.begin_data(
                    bytes
                        .ok_or_else(|| Error::limit("the data exceed the largest possible file"))?,
                )?;
                let together = array.order() == Order::F || array.shape().rank() < 2;
                if let (None, true, Some(bytes)) = (recast(), together, array.view()) {
                    self.data_bytes(array.dtype(), bytes)?;
                } else {
                    let mut recast = recast();
                    all.stream(|_, bytes| match &mut recast {
                        Some(recast) => self.data_bytes(dtype, recast.apply(bytes)?),
                        None => self.data_bytes(dtype, bytes),
                    })?;
                }
                return self.end_data();
            }
        };
        let Some((scalar, _)) = Scalar::of(dtype) else {
            let end: &[u8] = if inline { b"" } else { b"\n" };
            let size = dtype.size();
            if size == 0 {
                let lines = array.limits().allow(count, "empty lines")?;
                out.write_all(&b"\n".repeat(if inline { 0 } else { lines }))?;
                return Ok(());
            }
            let mut line = Vec::new();
            all.stream(|_, bytes| {
                for field in bytes.chunks_exact(size) {
                    line.clear();
                    escape(field, &mut line);
                    if inline {
                        keep_on_line(&mut line);
                    }
                    line.extend_from_slice(end);
                    out.write_all(&line)?;
                }
                Ok(())
            })?;
            return Ok(());
        };
        if count == 0 {
            out.write_all(b"\n")?;
        }
        let lines = Lines { scalar, size: dtype.size(), style, columns, count, inline };
        all.with_smaller_blocks(BLOCK).ordered(
            |block, bytes| match recast() {
                Some(mut recast) => Ok(lines.format(block.first * each, recast.apply(bytes)?)),
                None => Ok(lines.format(block.first, bytes)),
            },
            |text| Ok(out.write_all(&text)?),
        )
    }

    /// Writes strings of full length with a Fortran format: `per_line` to a line, not escaped.
    pub(crate) fn fields(&mut self, array: &Array, per_line: u64) -> Result<()> {
        let size = array.dtype().size().max(1);
        let Out::Text(out) = &mut self.out else { return self.array(array, 1) };
        let count = array.shape().count().unwrap_or(0);
        array.all()?.stream(|block, bytes| {
            for (k, field) in bytes.chunks_exact(size).enumerate() {
                let number = block.first + k as u64 + 1;
                out.write_all(field)?;
                if number.is_multiple_of(per_line.max(1)) || number == count {
                    out.write_all(b"\n")?;
                }
            }
            Ok(())
        })
    }

    /// Begins a data record of `len` bytes in a binary file.
    pub(crate) fn begin_data(&mut self, len: u64) -> Result<()> {
        let Out::Binary(records) = &mut self.out else { return Ok(()) };
        let all = len
            .checked_add(self.header as u64)
            .ok_or_else(|| Error::limit("the data exceed the largest possible file"))?;
        records.begin(all)?;
        records.write(&[0; 8][..self.header])
    }

    /// Writes elements of a data record; `dtype` has their byte order.
    pub(crate) fn data_bytes(&mut self, dtype: DType, bytes: &[u8]) -> Result<()> {
        let Out::Binary(records) = &mut self.out else { return Ok(()) };
        if !dtype.needs_swap(records.framing().order) {
            return records.write(bytes);
        }
        let mut block = Vec::new();
        for part in bytes.chunks(BLOCK / dtype.size().max(1) * dtype.size().max(1)) {
            block.clear();
            block.extend_from_slice(part);
            swap(&mut block, dtype.word());
            records.write(&block)?;
        }
        Ok(())
    }

    pub(crate) fn end_data(&mut self) -> Result<()> {
        let Out::Binary(records) = &mut self.out else { return Ok(()) };
        records.end()
    }
}

/// Escapes a leading line end of a string on the line of its tags. It would be read as the line end
/// after the begin tag.
fn keep_on_line(line: &mut Vec<u8>) {
    let reference: &[u8] = match line[..] {
        [b'\n', ..] => b"&#10;",
        [b'\r', b'\n', ..] => b"&#13;",
        _ => return,
    };
    line.splice(..1, reference.iter().copied());
}

/// Layout of numbers in lines.
struct Lines {
    scalar: Scalar,
    /// Size of an element in bytes.
    size: usize,
    style: Style,
    columns: u64,
    /// Number of elements.
    count: u64,
    /// True if the value is on the line of the tags.
    inline: bool,
}

impl Lines {
    /// The text of little-endian elements; `first` is the index of the first element in the array.
    fn format(&self, first: u64, bytes: &[u8]) -> Vec<u8> {
        let mut text = Vec::with_capacity(4 * bytes.len());
        let end: &[u8] = if self.inline { b"" } else { b"\n" };
        let columns = self.columns.max(1);
        let mut column = first % columns;
        let mut left = self.count - first;
        for element in bytes.chunks_exact(self.size) {
            let (real, imaginary) = element.split_at(self.scalar.size());
            self.scalar.write(real, self.style, &mut text);
            if !imaginary.is_empty() {
                text.push(b',');
                self.scalar.write(imaginary, self.style, &mut text);
            }
            (column, left) = (column + 1, left - 1);
            if column == columns || left == 0 {
                text.extend_from_slice(end);
                column = 0;
            } else {
                text.push(b' ');
            }
        }
        text
    }
}
