//! The directory of a zip archive: stored and deflated members, with or without 64-bit fields. Sections refer to
//! APPNOTE.TXT 6.3.

use spile_core::error::{Error, Result};
use spile_core::layout::Extent;
use spile_core::limits::Budget;
use spile_core::source::Source;

/// Local header (4.3.7).
pub(crate) const LOCAL: [u8; 4] = *b"PK\x03\x04";
/// Entry of the directory (4.3.12).
const ENTRY: [u8; 4] = *b"PK\x01\x02";
/// End of the directory (4.3.16).
const END: [u8; 4] = *b"PK\x05\x06";
/// 64-bit end of the directory (4.3.14) and its locator (4.3.15).
const END64: [u8; 4] = *b"PK\x06\x06";
const LOCATOR: [u8; 4] = *b"PK\x06\x07";

const LOCAL_LEN: u64 = 30;
const ENTRY_LEN: usize = 46;
const END_LEN: u64 = 22;
const END64_LEN: u64 = 56;
const LOCATOR_LEN: u64 = 20;
const MAX_COMMENT: u64 = 65_535;

/// Extra field with 64-bit values (4.5.3).
const ZIP64: u16 = 1;
/// Flag: encrypted (4.4.4).
const ENCRYPTED: u16 = 1;

/// A member of an archive.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Its stored bytes.
    pub(crate) extent: Extent,
    /// Length of the content if it is deflated.
    pub(crate) deflated: Option<u64>,
    /// Why it cannot be read.
    pub(crate) refused: Option<&'static str>,
}

fn malformed(message: &str) -> Error {
    Error::malformed("zarr-011", format!("zip archive: {message}"))
}

/// The members of an archive, in the order of its directory.
pub(crate) fn members(source: &Source, budget: &mut Budget) -> Result<Vec<Member>> {
    let (start, len) = directory(source)?;
    budget.limits().allow(budget.used().saturating_add(len), "the zip directory")?;
    let bytes = source.read_vec(start, len)?;
    let mut rest = bytes.as_slice();
    let mut members = Vec::new();
    while rest.starts_with(&ENTRY) {
        let fields = rest.get(..ENTRY_LEN).ok_or_else(|| malformed("truncated directory"))?;
        let (flags, method) = (u16_at(fields, 8), u16_at(fields, 10));
        let mut sizes = [24, 20, 42].map(|at| u64::from(u32_at(fields, at)));
        let [name, extra, comment] = [28, 30, 32].map(|at| usize::from(u16_at(fields, at)));
        let all = rest.get(ENTRY_LEN..).and_then(|rest| rest.get(..name + extra + comment));
        let all = all.ok_or_else(|| malformed("truncated directory"))?;
        rest = &rest[ENTRY_LEN + all.len()..];
        long_fields(&all[name..name + extra], &mut sizes);
        budget.charge(256 + 3 * name as u64, "the zip directory")?;
        let name = String::from_utf8_lossy(&all[..name]).into_owned();
        let [size, stored, header] = sizes;
        let refused = match method {
            _ if flags & ENCRYPTED != 0 => Some("the member of the zip archive is encrypted"),
            0 if size != stored => Some("the member of the zip archive has an invalid size"),
            0 | 8 => None,
            _ => Some("the compression of the member of the zip archive is not supported"),
        };
        let extent = Extent { offset: data(source, header, stored)?, len: stored };
        let deflated = (method == 8).then_some(size);
        members.push(Member { name, extent, deflated, refused });
    }
    Ok(members)
}

/// Offset and length of the directory.
fn directory(source: &Source) -> Result<(u64, u64)> {
    let len = source.len();
    let tail_len = len.min(END_LEN + MAX_COMMENT);
    let tail = source.read_vec(len - tail_len, tail_len)?;
    let at = tail.windows(END_LEN as usize).rposition(|window| window.starts_with(&END));
    let at = at.ok_or_else(|| malformed("no end of the directory"))?;
    let end = &tail[at..];
    let (mut size, mut start) = (u64::from(u32_at(end, 12)), u64::from(u32_at(end, 16)));
    let end_at = len - tail_len + at as u64;
    if let Some(locator) = end_at.checked_sub(LOCATOR_LEN) {
        let locator = source.read_vec(locator, LOCATOR_LEN)?;
        if locator.starts_with(&LOCATOR) {
            let end64 = source.read_vec(u64_at(&locator, 8), END64_LEN)?;
            if !end64.starts_with(&END64) {
                return Err(malformed("no 64-bit end of the directory"));
            }
            (size, start) = (u64_at(&end64, 40), u64_at(&end64, 48));
        }
    }
    if start.checked_add(size).is_none_or(|end| end > end_at) {
        return Err(malformed("the directory is outside of the file"));
    }
    Ok((start, size))
}

/// Replaces sizes that do not fit in 32 bits by their 64-bit values.
fn long_fields(mut extra: &[u8], sizes: &mut [u64; 3]) {
    while let Some((head, rest)) = extra.split_first_chunk::<4>() {
        let len = usize::from(u16_at(head, 2)).min(rest.len());
        let (field, next) = rest.split_at(len);
        if u16_at(head, 0) == ZIP64 {
            let mut values = field.as_chunks::<8>().0.iter();
            for size in sizes.iter_mut().filter(|size| **size == u64::from(u32::MAX)) {
                *size = values.next().map_or(*size, |value| u64::from_le_bytes(*value));
            }
        }
        extra = next;
    }
}

/// Offset of the stored bytes of the member with a local header at `header`.
fn data(source: &Source, header: u64, stored: u64) -> Result<u64> {
    let local = source.read_vec(header, LOCAL_LEN)?;
    if !local.starts_with(&LOCAL) {
        return Err(malformed("no local header of a member"));
    }
    let names = u64::from(u16_at(&local, 26)) + u64::from(u16_at(&local, 28));
    let data = header + LOCAL_LEN + names;
    if data.checked_add(stored).is_none_or(|end| end > source.len()) {
        return Err(malformed("a member is longer than the file"));
    }
    Ok(data)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |raw| u16::from_le_bytes(*raw))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |raw| u32::from_le_bytes(*raw))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |raw| u64::from_le_bytes(*raw))
}
