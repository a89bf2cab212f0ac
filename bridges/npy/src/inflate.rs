//! Deflated members of an archive. A deflate stream can only be read from its beginning.

use flate2::{Crc, Decompress, FlushDecompress, Status};
use spile_core::error::{Error, Result};
use spile_core::layout::Codec;

/// No deflate stream inflates to more than so many times its length (1032, and a little more for very
/// short ones).
pub(crate) const RATIO: u64 = 1100;

/// Bytes that are inflated only to be passed over, at once.
const PASSED_OVER: usize = 32 << 10;

/// Inflates the bytes of a stream that follow the first few.
pub(crate) struct Inflate {
    /// Bytes before those that are wanted.
    skip: u64,
    /// Bytes of the whole stream once inflated.
    size: u64,
    /// The sum of them all.
    crc: Option<u32>,
}

impl Inflate {
    pub(crate) fn new(skip: u64, size: u64, crc: Option<u32>) -> Self {
        Self { skip, size, crc }
    }

    /// Stored bytes that are enough for the first `len` inflated ones: blocks that could not be
    /// compressed are a little longer than their content, and the tables of a block come first.
    pub(crate) fn beginning(len: u64, stored: u64) -> usize {
        len.saturating_mul(2).saturating_add(PASSED_OVER as u64).min(stored) as usize
    }

    /// Fills `out` from the stream, of which `stored` may be only the beginning.
    pub(crate) fn fill(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut stream = Decompress::new(false);
        let mut sum = Crc::new();
        let mut passed = vec![0; self.skip.min(PASSED_OVER as u64) as usize];
        let mut left = self.skip;
        while left > 0 {
            let part = &mut passed[..left.min(PASSED_OVER as u64) as usize];
            inflate(&mut stream, stored, part)?;
            sum.update(part);
            left -= part.len() as u64;
        }
        inflate(&mut stream, stored, out)?;
        // The sum is only known of the whole.
        let whole = self.skip.checked_add(out.len() as u64) == Some(self.size);
        if let (true, Some(crc)) = (whole, self.crc) {
            sum.update(out);
            if sum.sum() != crc {
                return Err(bad("the bytes do not have the sum that the archive says"));
            }
        }
        Ok(())
    }
}

/// The next bytes of the stream, as many as fit `out`.
fn inflate(stream: &mut Decompress, stored: &[u8], out: &mut [u8]) -> Result<()> {
    let mut done = 0;
    while done < out.len() {
        let (read, written) = (stream.total_in(), stream.total_out());
        let rest = stored.get(read as usize..).unwrap_or_default();
        let status = stream
            .decompress(rest, &mut out[done..], FlushDecompress::None)
            .map_err(|_| bad("the deflate stream is damaged"))?;
        done += (stream.total_out() - written) as usize;
        let stuck = stream.total_in() == read && stream.total_out() == written;
        if done < out.len() && (status == Status::StreamEnd || stuck) {
            return Err(bad("the deflate stream ends early"));
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
