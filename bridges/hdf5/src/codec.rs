//! Decoding of filtered chunks.

use std::cell::RefCell;

use libdeflater::Decompressor;
use spile_core::error::{Error, Result};

use crate::wire::messages::Filter;

thread_local! {
    // Creating a decompressor costs more than decoding a small chunk.
    static INFLATE: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// A supported filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Deflate,
    /// Size of an element in bytes.
    Shuffle(usize),
    Fletcher,
    Lzf,
}

impl Step {
    fn compresses(self) -> bool {
        matches!(self, Self::Deflate | Self::Lzf)
    }
}

/// The filter pipeline of a dataset, in the order of encoding.
#[derive(Clone, Debug)]
pub(crate) struct Filters {
    steps: Vec<Step>,
    name: String,
}

impl Filters {
    /// Fails with `Unsupported` if a filter is not supported. `element` is the size of an element in bytes,
    /// `at` the file offset for errors.
    pub(crate) fn new(filters: &[Filter], element: u64, at: u64) -> Result<Self> {
        let mut steps = Vec::new();
        let mut names = Vec::new();
        for filter in filters {
            let (step, name) = match filter.id {
                1 => (Step::Deflate, "deflate"),
                2 => {
                    let size = filter.values.first().map_or(element, |n| u64::from(*n));
                    (Step::Shuffle(size as usize), "shuffle")
                }
                3 => (Step::Fletcher, "fletcher32"),
                32000 => (Step::Lzf, "lzf"),
                other => {
                    let known = match other {
                        4 => "szip",
                        5 => "nbit",
                        6 => "scaleoffset",
                        307 => "bzip2",
                        32001 => "blosc",
                        32004 => "lz4",
                        32008 => "bitshuffle",
                        32013 => "zfp",
                        32015 => "zstd",
                        32026 => "blosc2",
                        _ => filter.name.as_str(),
                    };
                    let message = match known {
                        "" => format!("filter {other} is not supported"),
                        "szip" => "szip compression is not supported".to_string(),
                        known => format!("filter {known} ({other}) is not supported"),
                    };
                    let error = Error::unsupported("hdf5-010", message).at(at);
                    return Err(error.hint("h5repack -f GZIP=4 IN OUT recompresses the data"));
                }
            };
            steps.push(step);
            names.push(name);
        }
        if steps.iter().filter(|step| step.compresses()).count() > 1 {
            let message = "more than one compression filter is not supported";
            return Err(Error::unsupported("hdf5-010", message).at(at));
        }
        Ok(Self { steps, name: names.join(", ") })
    }

    /// Names of the filters, separated by commas.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Decodes `stored` to `out`, a complete chunk. Bit `k` of `mask` is set if filter `k` was not applied.
    /// Fails with `Malformed` if the data do not decode to exactly `out`.
    pub(crate) fn decode(&self, mask: u32, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let applied = |k: usize| mask >> k.min(31) & 1 == 0;
        let mut now: Vec<u8> = Vec::new();
        let mut changed = false;
        for (k, step) in self.steps.iter().enumerate().rev().filter(|(k, _)| applied(*k)) {
            let from: &[u8] = if changed { &now } else { stored };
            // Each earlier checksum adds four bytes.
            let before = &self.steps[..k];
            let sums =
                before.iter().enumerate().filter(|(k, s)| **s == Step::Fletcher && applied(*k));
            let size = out.len() + 4 * sums.count();
            let next = match step {
                Step::Deflate => inflate(from, size)?,
                Step::Lzf => lzf(from, size)?,
                Step::Fletcher => verify_fletcher32(from)?.to_vec(),
                Step::Shuffle(element) => unshuffle(from, *element),
            };
            (now, changed) = (next, true);
        }
        let last: &[u8] = if changed { &now } else { stored };
        if last.len() != out.len() {
            let message = format!("chunk: expected {} bytes, found {}", out.len(), last.len());
            return Err(malformed(message));
        }
        out.copy_from_slice(last);
        Ok(())
    }
}

fn malformed(message: impl Into<String>) -> Error {
    Error::malformed("hdf5-012", message)
}

fn inflate(stored: &[u8], size: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; size];
    let done = INFLATE.with_borrow_mut(|inflate| inflate.zlib_decompress(stored, &mut out));
    match done {
        Ok(n) if n == size => Ok(out),
        Ok(n) => Err(malformed(format!("deflate: expected {size} bytes, found {n}"))),
        Err(_) => Err(malformed("deflate: invalid data")),
    }
}

/// Reverses the shuffle filter, which stores byte `k` of all elements together.
fn unshuffle(stored: &[u8], element: usize) -> Vec<u8> {
    let count = stored.len().checked_div(element).unwrap_or(0);
    let mut out = stored.to_vec();
    if element > 1 && count > 1 {
        for (byte_index, plane) in stored.chunks_exact(count).take(element).enumerate() {
            for (k, byte) in plane.iter().enumerate() {
                out[k * element + byte_index] = *byte;
            }
        }
    }
    out
}

/// The bytes before a valid Fletcher-32 checksum.
fn verify_fletcher32(stored: &[u8]) -> Result<&[u8]> {
    let (bytes, sum) = stored
        .split_last_chunk::<4>()
        .ok_or_else(|| malformed("chunk is shorter than its checksum"))?;
    let stored = u32::from_le_bytes(*sum);
    let computed = fletcher(bytes);
    // Library versions before 1.6.3 swapped the bytes of each half.
    let swapped = (computed & 0x00ff_00ff) << 8 | (computed >> 8) & 0x00ff_00ff;
    if stored == computed || stored == swapped {
        return Ok(bytes);
    }
    Err(malformed(format!(
        "chunk checksum mismatch: computed {computed:#010x}, stored {stored:#010x}"
    )))
}

/// Fletcher-32 checksum of big-endian 16-bit words.
fn fletcher(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (0_u32, 0_u32);
    let fold = |n: u32| (n & 0xffff) + (n >> 16);
    // 360 words do not overflow 32 bits.
    for block in bytes.chunks(720) {
        for word in block.chunks(2) {
            let low = word.get(1).copied().unwrap_or(0);
            a += u32::from(word[0]) << 8 | u32::from(low);
            b += a;
        }
        (a, b) = (fold(a), fold(b));
    }
    (a, b) = (fold(a), fold(b));
    b << 16 | a
}

/// Decodes LZF: runs of literal bytes and back references.
fn lzf(stored: &[u8], size: usize) -> Result<Vec<u8>> {
    let invalid = || malformed("LZF: invalid data");
    let mut out: Vec<u8> = Vec::with_capacity(size);
    let mut rest = stored.iter().copied();
    while let Some(control) = rest.next() {
        let control = usize::from(control);
        if control < 32 {
            for _ in 0..=control {
                out.push(rest.next().ok_or_else(invalid)?);
            }
        } else {
            let mut len = control >> 5;
            if len == 7 {
                len += usize::from(rest.next().ok_or_else(invalid)?);
            }
            let low = usize::from(rest.next().ok_or_else(invalid)?);
            let back = ((control & 31) << 8 | low) + 1;
            let from = out.len().checked_sub(back).ok_or_else(invalid)?;
            for k in from..from + len + 2 {
                out.push(out[k]);
            }
        }
        if out.len() > size {
            return Err(invalid());
        }
    }
    if out.len() == size { Ok(out) } else { Err(invalid()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unshuffle_reverses_shuffle() {
        assert_eq!(unshuffle(&[1, 2, 3, 11, 12, 13, 9], 2), [1, 11, 2, 12, 3, 13, 9]);
        assert_eq!(unshuffle(&[1, 2, 3], 8), [1, 2, 3]);
        assert_eq!(unshuffle(&[1, 2, 3], 0), [1, 2, 3]);
    }

    #[test]
    fn lzf_back_references_may_overlap() {
        // One literal, then ten copies of it.
        assert_eq!(lzf(&[0, b'x', 7 << 5, 1, 0], 11).unwrap(), [b'x'; 11]);
        assert!(lzf(&[0, b'x', 7 << 5, 1, 5], 11).is_err());
        assert!(lzf(&[3, b'x'], 4).is_err());
    }
}
