//! Compressions. Every function decodes to exactly the length of `out` or fails.

use std::cell::RefCell;
use std::fmt::Display;

use libdeflater::{DecompressionError, Decompressor};
use spile_core::error::{Error, Result};

use crate::{Step, expect_length, invalid, take, too_short};

thread_local! {
    // Creating a decompressor costs more than decoding a small chunk.
    static INFLATE: RefCell<Decompressor> = RefCell::new(Decompressor::new());
}

/// Fails unless a decoder returned the length of `out`.
fn complete(name: &str, len: std::result::Result<usize, impl Display>, out: &[u8]) -> Result<()> {
    match len {
        Ok(len) => expect_length(len, out),
        Err(error) => Err(invalid(format!("invalid {name} data: {error}"))),
    }
}

pub(crate) fn gzip(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let len = INFLATE.with_borrow_mut(|inflate| inflate.gzip_decompress(stored, out));
    complete("gzip", len, out)
}

pub(crate) fn zlib(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let len = INFLATE.with_borrow_mut(|inflate| inflate.zlib_decompress(stored, out));
    complete("zlib", len, out)
}

pub(crate) fn deflate(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let len = INFLATE.with_borrow_mut(|inflate| inflate.deflate_decompress(stored, out));
    complete("deflate", len, out)
}

/// Decodes gzip, zlib or deflate data of unknown length and returns it; `None` if `out` is too short.
pub(crate) fn inflate(step: Step, stored: &[u8], out: &mut [u8]) -> Result<Option<usize>> {
    let len = INFLATE.with_borrow_mut(|inflate| match step {
        Step::Gzip => inflate.gzip_decompress(stored, out),
        Step::Zlib => inflate.zlib_decompress(stored, out),
        _ => inflate.deflate_decompress(stored, out),
    });
    match len {
        Ok(len) => Ok(Some(len)),
        Err(DecompressionError::InsufficientSpace) => Ok(None),
        Err(error) => Err(invalid(format!("invalid {} data: {error}", step.name()))),
    }
}

pub(crate) fn zstd(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let len = zstd_at_most(stored, out)?;
    expect_length(len, out)
}

/// Decodes to the start of `out` and returns the decoded length.
#[cfg(all(feature = "zstd", not(target_family = "wasm")))]
pub(crate) fn zstd_at_most(stored: &[u8], out: &mut [u8]) -> Result<usize> {
    thread_local! {
        static ZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    }
    let len = ZSTD.with_borrow_mut(|kept| {
        let mut decoder = kept.take().map_or_else(zstd::bulk::Decompressor::new, Ok)?;
        let len = decoder.decompress_to_buffer(stored, out);
        *kept = Some(decoder);
        len
    });
    len.map_err(|error: std::io::Error| invalid(format!("invalid zstd data: {error}")))
}

#[cfg(not(all(feature = "zstd", not(target_family = "wasm"))))]
pub(crate) fn zstd_at_most(stored: &[u8], out: &mut [u8]) -> Result<usize> {
    let len = ruzstd::decoding::FrameDecoder::new().decode_all(stored, out);
    len.map_err(|error| invalid(format!("invalid zstd data: {error}")))
}

pub(crate) fn snappy(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let len = snap::raw::Decoder::new().decompress(stored, out);
    complete("snappy", len, out)
}

pub(crate) fn lz4(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let len = lz4_flex::block::decompress_into(stored, out);
    complete("lz4", len, out)
}

pub(crate) fn lz4_with_length(mut stored: &[u8], out: &mut [u8]) -> Result<()> {
    expect_length(u32::from_le_bytes(*take(&mut stored)?) as usize, out)?;
    lz4(stored, out)
}

/// Decodes the HDF5 filter 32004: the decoded length (64 bits), the length of a block (32 bits), and the stored
/// length (32 bits) before each block, all big-endian. A block of its decoded length is not compressed.
pub(crate) fn lz4_blocks(mut from: &[u8], out: &mut [u8]) -> Result<()> {
    let len = u64::from_be_bytes(*take(&mut from)?);
    expect_length(usize::try_from(len).unwrap_or(usize::MAX), out)?;
    let block = u32::from_be_bytes(*take(&mut from)?) as usize;
    if block == 0 {
        return Err(invalid("lz4: block size is 0"));
    }
    for target in out.chunks_mut(block) {
        let len = u32::from_be_bytes(*take(&mut from)?) as usize;
        let (data, next) = from.split_at_checked(len).ok_or_else(too_short)?;
        from = next;
        if len == target.len() {
            target.copy_from_slice(data);
        } else {
            lz4(data, target)?;
        }
    }
    Ok(())
}

/// Decodes an LZ4 frame (LZ4 Frame Format 1.6). Checksums are not verified.
pub(crate) fn lz4_frame(mut from: &[u8], out: &mut [u8]) -> Result<()> {
    if u32::from_le_bytes(*take(&mut from)?) != 0x184d_2204 {
        return Err(invalid("lz4: expected the magic number of a frame"));
    }
    let [flags, _] = *take::<2>(&mut from)?;
    let set = |bit: u8| flags & (1 << bit) != 0;
    if flags >> 6 != 1 || set(0) {
        return Err(invalid("lz4: frame version or dictionary is not supported"));
    }
    // Content size and header checksum.
    let skipped = if set(3) { 9 } else { 1 };
    from = from.get(skipped..).ok_or_else(too_short)?;
    let mut at = 0;
    loop {
        let size = u32::from_le_bytes(*take(&mut from)?);
        if size == 0 {
            return expect_length(at, out);
        }
        let len = (size & 0x7fff_ffff) as usize;
        let (block, next) = from.split_at_checked(len).ok_or_else(too_short)?;
        from = next.get(if set(4) { 4 } else { 0 }..).ok_or_else(too_short)?;
        let (before, target) = out.split_at_mut(at);
        at += if size & 0x8000_0000 != 0 {
            let target = target.get_mut(..len).ok_or_else(|| invalid("lz4: frame is too long"))?;
            target.copy_from_slice(block);
            len
        } else {
            // Blocks refer to up to 64 KiB before them, unless they are independent.
            let window = if set(5) { 0 } else { before.len().min(64 << 10) };
            let window = &before[before.len() - window..];
            lz4_flex::block::decompress_into_with_dict(block, target, window)
                .map_err(|error| invalid(format!("invalid lz4 data: {error}")))?
        };
    }
}

/// Decodes LZF: runs of literal bytes and back references.
pub(crate) fn lzf(stored: &[u8], out: &mut [u8]) -> Result<()> {
    let mut decoded = || {
        let mut input = stored.iter();
        let mut at = 0;
        while let Some(control) = input.next() {
            let control = usize::from(*control);
            if control < 32 {
                let (rest, end) = copy_run(input.as_slice(), control + 1, out, at)?;
                (input, at) = (rest.iter(), end);
                continue;
            }
            let mut len = (control >> 5) + 2;
            if len == 9 {
                len += usize::from(*input.next()?);
            }
            let back = ((control & 31) << 8 | usize::from(*input.next()?)) + 1;
            at = copy_back(out, at, back, len)?;
        }
        (at == out.len()).then_some(())
    };
    decoded().ok_or_else(|| invalid_data("LZF"))
}

/// Copies `len` bytes from `back` bytes before `at` to `at`; they may overlap. Returns the end of the copy, or
/// `None` if it is outside of `out`.
pub(crate) fn copy_back(out: &mut [u8], at: usize, back: usize, len: usize) -> Option<usize> {
    let start = at.checked_sub(back).filter(|start| *start < at)?;
    let end = at.checked_add(len).filter(|end| *end <= out.len())?;
    if back >= SHORT && len <= SHORT && at + SHORT <= out.len() {
        // A copy of constant length is faster; later bytes replace those after the end.
        let copied = *out[start..].first_chunk::<SHORT>()?;
        *out[at..].first_chunk_mut::<SHORT>()? = copied;
        return Some(end);
    }
    // What has been copied is copied, too.
    let mut done = 0;
    while done < len {
        let more = (back + done).min(len - done);
        out.copy_within(start..start + more, at + done);
        done += more;
    }
    Some(end)
}

/// Length in bytes of the copies of constant length.
const SHORT: usize = 16;

/// Copies the first `len` bytes of `from` to `at`. Returns the rest of `from` and the end of the copy, or `None` if one
/// of them is too short.
pub(crate) fn copy_run<'a>(
    from: &'a [u8],
    len: usize,
    out: &mut [u8],
    at: usize,
) -> Option<(&'a [u8], usize)> {
    let (run, rest) = from.split_at_checked(len)?;
    let end = at.checked_add(len)?;
    let target = out.get_mut(at..)?;
    match (from.first_chunk::<SHORT>(), target.first_chunk_mut::<SHORT>()) {
        (Some(from), Some(to)) if len <= SHORT => *to = *from,
        _ => target.get_mut(..len)?.copy_from_slice(run),
    }
    Some((rest, end))
}

pub(crate) fn invalid_data(name: &str) -> Error {
    invalid(format!("invalid {name} data"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lzf_back_references_may_overlap() {
        // One literal, then ten copies of it.
        let mut out = [0; 11];
        lzf(&[0, b'x', 7 << 5, 1, 0], &mut out).unwrap();
        assert_eq!(out, [b'x'; 11]);
        assert!(lzf(&[0, b'x', 7 << 5, 1, 5], &mut out).is_err());
        assert!(lzf(&[3, b'x'], &mut [0; 4]).is_err());
        assert!(lzf(&[], &mut out).is_err());
    }
}
