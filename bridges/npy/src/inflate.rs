//! Deflated members of an archive. A deflate stream can only be decoded from its beginning.

use flate2::{Crc, Decompress, FlushDecompress, Status};
use spile_core::error::{Error, Result};
use spile_core::layout::Codec;

/// Upper bound of the compression ratio of deflate: 1032, and slightly more for very short streams.
pub(crate) const RATIO: u64 = 1100;

/// Size of the buffer for skipped bytes.
const SKIP_BUFFER: usize = 32 << 10;

/// Decodes the part of a deflate stream after the first `skip` bytes.
pub(crate) struct Inflate {
    /// Decoded bytes to skip.
    skip: u64,
    /// Decoded size of the entire stream.
    size: u64,
    /// CRC-32 of the entire decoded stream.
    crc: Option<u32>,
}

impl Inflate {
    pub(crate) fn new(skip: u64, size: u64, crc: Option<u32>) -> Self {
        Self { skip, size, crc }
    }

    /// Number of stored bytes that suffice to decode the first `len` bytes: incompressible blocks are slightly
    /// longer than their content, and blocks begin with their tables.
    pub(crate) fn stored_prefix(len: u64, stored: u64) -> usize {
        len.saturating_mul(2).saturating_add(SKIP_BUFFER as u64).min(stored) as usize
    }

    /// Fills `out` from the stream; `stored` may be a prefix of it. The CRC is verified if `out` reaches the end.
    pub(crate) fn fill(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut stream = Decompress::new(false);
        let mut sum = Crc::new();
        let mut skipped = vec![0; self.skip.min(SKIP_BUFFER as u64) as usize];
        let mut left = self.skip;
        while left > 0 {
            let part = &mut skipped[..left.min(SKIP_BUFFER as u64) as usize];
            inflate(&mut stream, stored, part)?;
            sum.update(part);
            left -= part.len() as u64;
        }
        inflate(&mut stream, stored, out)?;
        let complete = self.skip.checked_add(out.len() as u64) == Some(self.size);
        if let (true, Some(crc)) = (complete, self.crc) {
            sum.update(out);
            if sum.sum() != crc {
                let found = sum.sum();
                return Err(bad(&format!(
                    "CRC-32 mismatch: expected {crc:08x}, found {found:08x}"
                )));
            }
        }
        Ok(())
    }
}

/// Decodes the next bytes of the stream until `out` is full.
fn inflate(stream: &mut Decompress, stored: &[u8], out: &mut [u8]) -> Result<()> {
    let mut done = 0;
    while done < out.len() {
        let (read, written) = (stream.total_in(), stream.total_out());
        let rest = stored.get(read as usize..).unwrap_or_default();
        let status = stream
            .decompress(rest, &mut out[done..], FlushDecompress::None)
            .map_err(|_| bad("invalid deflate stream"))?;
        done += (stream.total_out() - written) as usize;
        let stuck = stream.total_in() == read && stream.total_out() == written;
        if done < out.len() && (status == Status::StreamEnd || stuck) {
            return Err(bad("unexpected end of the deflate stream"));
        }
    }
    Ok(())
}

impl Codec for Inflate {
    fn name(&self) -> &'static str {
        "deflate"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        self.fill(stored, out)
    }
}

fn bad(message: &str) -> Error {
    Error::malformed("npz-008", message)
}
