//! Numbers separated by blanks.

use spile_core::text_records::parse_float;
use spile_core::{Codec, Error, Result};

/// Parses the values of a grid, first index fastest or slowest.
pub(crate) struct Values {
    /// Points along each index in the text, fastest first, and how many of them are in the array: the last one
    /// may repeat the first.
    pub(crate) points: Vec<(u64, u64)>,
    /// The code of the error for text that is not such a grid.
    pub(crate) code: &'static str,
}

impl Codec for Values {
    fn name(&self) -> &'static str {
        "text"
    }

    fn decode(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let mut words = fields(stored);
        let mut slots = out.as_chunks_mut::<8>().0.iter_mut();
        let mut index = vec![0_u64; self.points.len()];
        let total = self.points.iter().fold(1_u64, |all, (n, _)| all.saturating_mul(*n));
        for found in 0..total {
            let Some(word) = words.next() else {
                let message = format!("expected {total} values, found {found}");
                return Err(Error::truncated(self.code, message));
            };
            let value = parse_float(word).ok_or_else(|| {
                let message =
                    format!("expected a number, found {:?}", String::from_utf8_lossy(word));
                Error::malformed(self.code, message)
            })?;
            let inside = index.iter().zip(&self.points).all(|(at, (_, kept))| at < kept);
            if let Some(slot) = inside.then(|| slots.next()).flatten() {
                *slot = value.to_le_bytes();
            }
            for (at, (points, _)) in index.iter_mut().zip(&self.points) {
                *at += 1;
                if *at < *points {
                    break;
                }
                *at = 0;
            }
        }
        if words.next().is_some() {
            let message = format!("expected {total} values, found more");
            return Err(Error::malformed(self.code, message));
        }
        Ok(())
    }
}

/// The words of a text.
pub(crate) fn fields(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// The integer in a word.
pub(crate) fn integer(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// The finite number in a word.
pub(crate) fn real(word: &[u8]) -> Option<f64> {
    parse_float(word).filter(|value| value.is_finite())
}
