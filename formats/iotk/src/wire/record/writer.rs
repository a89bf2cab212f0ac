//! [`RecordWriter`].

use std::io::Write;

use spile_core::{Error, Result};

use super::{Framing, SUBRECORD};

/// Writes records and splits long ones into sub-records.
pub struct RecordWriter<W> {
    out: W,
    framing: Framing,
    limit: u64,
    /// Bytes of the record in later sub-records, and bytes left in the current sub-record.
    left: u64,
    sub: u64,
    sub_len: u64,
    first: bool,
}

impl<W: Write> RecordWriter<W> {
    /// A writer with sub-records of at most `limit` bytes; [`SUBRECORD`] is the limit of compilers.
    /// Fails if the limit is 0 or does not fit the markers.
    pub fn new(out: W, framing: Framing, limit: u64) -> Result<Self> {
        if limit == 0 || (framing.marker == 4 && limit > i32::MAX as u64) {
            let message = format!("sub-records of {limit} bytes do not fit the markers");
            return Err(Error::argument(message).hint(format!("the usual limit is {SUBRECORD}")));
        }
        Ok(Self { out, framing, limit, left: 0, sub: 0, sub_len: 0, first: true })
    }

    /// The framing.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Begins a record of `len` bytes.
    pub fn begin(&mut self, len: u64) -> Result<()> {
        (self.left, self.first) = (len, true);
        self.start_part()
    }

    /// Writes a record from pieces in memory.
    pub fn record(&mut self, pieces: &[&[u8]]) -> Result<()> {
        self.begin(pieces.iter().map(|piece| piece.len() as u64).sum())?;
        pieces.iter().try_for_each(|piece| self.write(piece))?;
        self.end()
    }

    /// Writes the next bytes of the record. Fails if they exceed its length.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.sub == 0 {
                if self.left == 0 {
                    return Err(Error::argument(
                        "more bytes than the declared length of the record",
                    ));
                }
                self.end_part()?;
                self.first = false;
                self.start_part()?;
            }
            let (now, later) = bytes.split_at((bytes.len() as u64).min(self.sub) as usize);
            self.out.write_all(now)?;
            self.sub -= now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Ends the record. Fails if bytes are missing.
    pub fn end(&mut self) -> Result<()> {
        if self.sub > 0 || self.left > 0 {
            return Err(Error::argument("fewer bytes than the declared length of the record"));
        }
        self.end_part()
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn start_part(&mut self) -> Result<()> {
        self.sub = self.left.min(self.limit);
        self.sub_len = self.sub;
        self.left -= self.sub;
        let sign = if self.left > 0 { -1 } else { 1 };
        self.write_marker(sign * self.sub_len as i64)
    }

    fn end_part(&mut self) -> Result<()> {
        let sign = if self.first { 1 } else { -1 };
        self.write_marker(sign * self.sub_len as i64)
    }

    fn write_marker(&mut self, value: i64) -> Result<()> {
        let (bytes, len) = self.framing.encode(value);
        self.out.write_all(&bytes[..len])?;
        Ok(())
    }
}
