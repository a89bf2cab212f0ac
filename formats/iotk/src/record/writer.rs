//! Writing records.

use std::io::Write;

use spile_core::error::{Error, Result};

use super::{Framing, SUBRECORD};

/// Writes records, cut into sub-records where they are too long.
pub struct RecordWriter<W> {
    out: W,
    framing: Framing,
    limit: u64,
    /// Bytes of the record still to come, and those of the sub-record in hand.
    left: u64,
    sub: u64,
    sub_len: u64,
    first: bool,
}

impl<W: Write> RecordWriter<W> {
    /// Records with sub-records of at most `limit` bytes; [`SUBRECORD`] is what compilers do.
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

    /// Starts a record of `len` bytes, which must follow.
    pub fn begin(&mut self, len: u64) -> Result<()> {
        (self.left, self.first) = (len, true);
        self.start_part()
    }

    /// A record that is in memory, in pieces.
    pub fn record(&mut self, pieces: &[&[u8]]) -> Result<()> {
        self.begin(pieces.iter().map(|piece| piece.len() as u64).sum())?;
        pieces.iter().try_for_each(|piece| self.write(piece))?;
        self.end()
    }

    /// The next bytes of the record.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.sub == 0 {
                if self.left == 0 {
                    return Err(Error::argument("more bytes than the record was to have"));
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

    /// Ends the record.
    pub fn end(&mut self) -> Result<()> {
        if self.sub > 0 || self.left > 0 {
            return Err(Error::argument("fewer bytes than the record was to have"));
        }
        self.end_part()
    }

    /// Gives back what it writes to.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn start_part(&mut self) -> Result<()> {
        self.sub = self.left.min(self.limit);
        self.sub_len = self.sub;
        self.left -= self.sub;
        let sign = if self.left > 0 { -1 } else { 1 };
        self.mark(sign * self.sub_len as i64)
    }

    fn end_part(&mut self) -> Result<()> {
        let sign = if self.first { 1 } else { -1 };
        self.mark(sign * self.sub_len as i64)
    }

    fn mark(&mut self, value: i64) -> Result<()> {
        let (bytes, len) = self.framing.encode(value);
        self.out.write_all(&bytes[..len])?;
        Ok(())
    }
}
