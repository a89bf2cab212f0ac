//! Definition levels: which rows of a page have a value. The encoded levels follow their length.

use spile_core::error::{Error, Result};
use spile_core::limits::Limits;
use spile_core::source::Source;

use crate::rle;

/// Reads the levels of `values` rows at `offset`. Returns their length in bytes, and runs of rows with and
/// without a value.
pub(crate) fn read(
    source: &Source,
    offset: u64,
    end: u64,
    values: u64,
    limits: &Limits,
) -> Result<(u64, Vec<(u64, bool)>)> {
    let bad = |what: &str| Error::malformed("parquet-005", what.to_string()).at(offset);
    let short = || bad("definition levels exceed the page");
    if end - offset < 4 {
        return Err(short());
    }
    let mut len = [0; 4];
    source.read_exact_at(offset, &mut len)?;
    let len = u64::from(u32::from_le_bytes(len));
    if len > end - offset - 4 {
        return Err(short());
    }
    limits.allow(len.saturating_mul(8 * 16), "the definition levels")?;
    let bytes = source.read_vec(offset + 4, len)?;
    let runs = decode(&bytes, values).ok_or_else(|| bad("invalid definition levels"))?;
    Ok((len + 4, runs))
}

/// Decodes levels into runs of rows with (`true`) and without a value. `None` if they are invalid.
pub(crate) fn decode(bytes: &[u8], values: u64) -> Option<Vec<(u64, bool)>> {
    let mut runs: Vec<(u64, bool)> = Vec::new();
    rle::decode(bytes, 1, values, |level, count| {
        let defined = match level {
            0 => false,
            1 => true,
            _ => return None,
        };
        match runs.last_mut() {
            Some((n, own)) if *own == defined => *n += count,
            _ => runs.push((count, defined)),
        }
        Some(())
    })?;
    Some(runs)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn adjacent_runs_are_merged() {
        assert_eq!(decode(&[6, 1], 3), Some(vec![(3, true)]));
        assert_eq!(decode(&[6, 1, 4, 0], 5), Some(vec![(3, true), (2, false)]));
        assert_eq!(decode(&[3, 0b0000_0111], 5), Some(vec![(3, true), (2, false)]));
        assert_eq!(decode(&[4, 1, 3, 0b1], 5), Some(vec![(3, true), (2, false)]));
        for bad in [&[][..], &[6], &[0, 1], &[6, 2], &[3]] {
            assert_eq!(decode(bad, 5), None, "{bad:?}");
        }
    }
}
