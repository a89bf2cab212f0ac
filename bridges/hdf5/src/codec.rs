//! What filters do to a chunk, undone.

use std::cell::RefCell;

use libdeflater::Decompressor;
use spile_core::error::{Error, Result};

use crate::space::{Filter, unsupported};

thread_local! {
    // Making one costs more than a small chunk; each thread keeps its own.
    static INFLATE: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// One step, as it is undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Deflate,
    /// Bytes of an element.
    Shuffle(usize),
    Fletcher,
    Lzf,
}

impl Step {
    fn compresses(self) -> bool {
        matches!(self, Self::Deflate | Self::Lzf)
    }
}

/// The steps of a dataset, first to last when writing.
#[derive(Clone, Debug)]
pub(crate) struct Filters {
    steps: Vec<Step>,
    name: String,
}

impl Filters {
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
                        _ if filter.name.is_empty() => "unknown",
                        _ => &filter.name,
                    };
                    let message = format!("the filter \"{known}\" ({other}) is not read");
                    return Err(unsupported(at, message)
                        .hint("h5repack -f GZIP=4 makes a file that is read"));
                }
            };
            steps.push(step);
            names.push(name);
        }
        if steps.iter().filter(|step| step.compresses()).count() > 1 {
            return Err(unsupported(at, "chunks that are compressed twice"));
        }
        Ok(Self { steps, name: names.join(", ") })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Fills `out`, a whole chunk, from what is stored; steps with a bit in `mask` were left out.
    pub(crate) fn undo(&self, mask: u32, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let done = |k: usize| mask >> k.min(31) & 1 == 0;
        let mut now: Vec<u8> = Vec::new();
        let mut changed = false;
        for (k, step) in self.steps.iter().enumerate().rev().filter(|(k, _)| done(*k)) {
            let from: &[u8] = if changed { &now } else { stored };
            // Every checksum that was there before makes a chunk four bytes longer.
            let before = &self.steps[..k];
            let sums = before.iter().enumerate().filter(|(k, s)| **s == Step::Fletcher && done(*k));
            let size = out.len() + 4 * sums.count();
            let next = match step {
                Step::Deflate => inflate(from, size)?,
                Step::Lzf => lzf(from, size)?,
                Step::Fletcher => checked(from)?.to_vec(),
                Step::Shuffle(element) => unshuffled(from, *element),
            };
            (now, changed) = (next, true);
        }
        let last: &[u8] = if changed { &now } else { stored };
        if last.len() != out.len() {
            let message = format!("a chunk has {} bytes, not {}", last.len(), out.len());
            return Err(bad(message));
        }
        out.copy_from_slice(last);
        Ok(())
    }
}

fn bad(message: impl Into<String>) -> Error {
    Error::malformed("hdf5-012", message)
}

fn inflate(stored: &[u8], size: usize) -> Result<Vec<u8>> {
    let mut out = vec![0; size];
    let done = INFLATE.with_borrow_mut(|inflate| inflate.zlib_decompress(stored, &mut out));
    match done {
        Ok(n) if n == size => Ok(out),
        Ok(n) => Err(bad(format!("a compressed chunk has {n} bytes, not {size}"))),
        Err(_) => Err(bad("a compressed chunk is damaged")),
    }
}

/// Bytes of the same place in every element stand together.
fn unshuffled(stored: &[u8], element: usize) -> Vec<u8> {
    let count = stored.len().checked_div(element).unwrap_or(0);
    let mut out = stored.to_vec();
    if element > 1 && count > 1 {
        for (place, plane) in stored.chunks_exact(count).take(element).enumerate() {
            for (k, byte) in plane.iter().enumerate() {
                out[k * element + place] = *byte;
            }
        }
    }
    out
}

/// Bytes in front of their Fletcher checksum.
fn checked(stored: &[u8]) -> Result<&[u8]> {
    let (bytes, sum) = stored
        .split_last_chunk::<4>()
        .ok_or_else(|| bad("a chunk is shorter than its checksum"))?;
    let stored = u32::from_le_bytes(*sum);
    let computed = fletcher(bytes);
    // Old versions of the library swapped the bytes of each half.
    let swapped = (computed & 0x00ff_00ff) << 8 | (computed >> 8) & 0x00ff_00ff;
    if stored == computed || stored == swapped {
        return Ok(bytes);
    }
    Err(bad(format!("a chunk's checksum is {computed:#010x}, stored is {stored:#010x}")))
}

/// Fletcher's checksum of big-endian words of 16 bits.
fn fletcher(bytes: &[u8]) -> u32 {
    let (mut a, mut b) = (0_u32, 0_u32);
    let fold = |n: u32| (n & 0xffff) + (n >> 16);
    // As many words as fit 32 bits without an overflow.
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

/// LibLZF's format: runs of literal bytes, and copies of what came before.
fn lzf(stored: &[u8], size: usize) -> Result<Vec<u8>> {
    let cut = || bad("a chunk of LZF is damaged");
    let mut out: Vec<u8> = Vec::with_capacity(size);
    let mut rest = stored.iter().copied();
    while let Some(control) = rest.next() {
        let control = usize::from(control);
        if control < 32 {
            for _ in 0..=control {
                out.push(rest.next().ok_or_else(cut)?);
            }
        } else {
            let mut len = control >> 5;
            if len == 7 {
                len += usize::from(rest.next().ok_or_else(cut)?);
            }
            let low = usize::from(rest.next().ok_or_else(cut)?);
            let back = ((control & 31) << 8 | low) + 1;
            let from = out.len().checked_sub(back).ok_or_else(cut)?;
            for k in from..from + len + 2 {
                out.push(out[k]);
            }
        }
        if out.len() > size {
            return Err(cut());
        }
    }
    if out.len() == size { Ok(out) } else { Err(cut()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffling_is_undone() {
        assert_eq!(unshuffled(&[1, 2, 3, 11, 12, 13, 9], 2), [1, 11, 2, 12, 3, 13, 9]);
        assert_eq!(unshuffled(&[1, 2, 3], 8), [1, 2, 3]);
        assert_eq!(unshuffled(&[1, 2, 3], 0), [1, 2, 3]);
    }

    #[test]
    fn copies_of_lzf_may_overlap() {
        // One literal, then ten copies of it.
        assert_eq!(lzf(&[0, b'x', 7 << 5, 1, 0], 11).unwrap(), [b'x'; 11]);
        assert!(lzf(&[0, b'x', 7 << 5, 1, 5], 11).is_err());
        assert!(lzf(&[3, b'x'], 4).is_err());
    }
}
