//! Finding and reading chunks.

use std::ffi::{CString, c_char, c_int, c_void};

use spile_core::error::Error;
use spile_gsd::Chunk;
use spile_gsd::wire::Form;

use super::layout::CEntry;
use super::{Handle, Open, code, element, text, with, with_state};
use crate::memory::bytes_mut;

/// Entries in a page of [`Found`].
const PAGE: u64 = 128;

/// The results of [`gsd_find_chunk`] by the number of their entry. They are never moved, so that they stay valid
/// while the file is open.
#[derive(Default)]
pub(super) struct Found {
    pages: Vec<Option<Box<[CEntry; PAGE as usize]>>>,
}

impl Found {
    fn keep(&mut self, number: u64, entry: CEntry) -> *const CEntry {
        let page = (number / PAGE) as usize;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new([CEntry::default(); _]));
        let kept = &mut page[(number % PAGE) as usize];
        *kept = entry;
        kept
    }
}

/// Shows frames that another process has committed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_refresh(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with(handle, |state| match &mut state.open {
            Open::Read(file) => Ok(file.refresh()?),
            Open::Write(_) => Ok(()),
        })
    })
}

/// Finds a chunk; null if it does not exist or on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_find_chunk(
    handle: Handle,
    frame: u64,
    name: *const c_char,
) -> *const CEntry {
    // SAFETY: condition of this function.
    let found = unsafe {
        with_state(handle, |state| {
            let chunk = state.reader()?.find_chunk(frame, text(name)?)?;
            let Some(Chunk { number, entry, data, .. }) = chunk else {
                return Ok(std::ptr::null());
            };
            let kind = data.kind.code(Form::V2).unwrap_or(1);
            let (m, id) = (entry.m as u32, entry.id as u16);
            let (n, location) = (entry.n, entry.location);
            let found = CEntry { frame, n, location, m, id, kind, flags: 0 };
            Ok(state.found.keep(number, found))
        })
    };
    found.unwrap_or(std::ptr::null())
}

/// Reads the data of a chunk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_read_chunk(
    handle: Handle,
    data: *mut c_void,
    chunk: *const CEntry,
) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with_state(handle, |state| {
            let chunk = chunk.as_ref().filter(|_| !data.is_null());
            let chunk = chunk.ok_or_else(|| Error::argument("chunk or data are null"))?;
            let malformed = || Error::malformed("gsd-010", "invalid index entry");
            let kind = element(chunk.kind.into()).ok_or_else(malformed)?;
            let offset = u64::try_from(chunk.location).ok().filter(|offset| *offset > 0);
            let offset = offset.ok_or_else(malformed)?;
            let size = kind.bytes(chunk.n, chunk.m.into()).ok_or_else(malformed)?;
            let source = state.reader()?.source();
            if offset.checked_add(size).is_none_or(|end| end > i64::MAX as u64) {
                return Err(malformed().into());
            }
            Ok(source.read_exact_at(offset, bytes_mut(data, size))?)
        })
    })
}

/// Number of committed frames; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_nframes(handle: Handle) -> u64 {
    // SAFETY: condition of this function.
    let frames = unsafe {
        with_state(handle, |state| match &mut state.open {
            Open::Read(file) => Ok(file.nframes()?),
            Open::Write(_) => Ok(state.writer()?.committed_frames()),
        })
    };
    frames.unwrap_or(0)
}

/// The first name with the prefix `match_`, or the next one after `prev`; null at the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_find_matching_chunk_name(
    handle: Handle,
    match_: *const c_char,
    prev: *const c_char,
) -> *const c_char {
    // SAFETY: condition of this function.
    let found = unsafe {
        with_state(handle, |state| {
            if match_.is_null() {
                return Ok(std::ptr::null());
            }
            let prefix = text(match_)?;
            if prev.is_null() {
                // Names are only added, so that earlier results stay valid.
                let names = state.reader()?.find_matching_names("");
                let new = names.into_iter().skip(state.names.len());
                let new: Vec<CString> = new.filter_map(|name| CString::new(name).ok()).collect();
                state.names.extend(new);
            }
            let seen = state.names.iter().position(|name| name.as_ptr() == prev);
            let next = if prev.is_null() { Some(0) } else { seen.map(|k| k + 1) };
            let rest = next.and_then(|next| state.names.get(next..)).unwrap_or_default();
            let next = rest.iter().find(|name| name.as_bytes().starts_with(prefix.as_bytes()));
            Ok(next.map_or(std::ptr::null(), |name| name.as_ptr()))
        })
    };
    found.unwrap_or(std::ptr::null())
}
