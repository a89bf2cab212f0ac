//! Reading frames.

use std::ffi::{CString, c_char, c_int, c_void};

use spile_core::error::Error;
use spile_gsd::Chunk;
use spile_gsd::wire::Type;

use super::{Handle, Open, TYPE_CODES, get, text, with};
use crate::memory::bytes_mut;

/// Number of results of [`gsd_seed_find_chunk`] that stay valid.
const REMEMBERED: usize = 256;

/// `gsd_index_entry_t`.
#[repr(C)]
pub struct CallerEntry {
    frame: u64,
    n: u64,
    m: u64,
    step: u64,
    location: i64,
    bytes: u64,
    kind: u8,
}

impl CallerEntry {
    fn new(chunk: &Chunk) -> Self {
        let kind = chunk.data.kind;
        Self {
            frame: chunk.entry.frame,
            n: chunk.entry.n,
            m: chunk.entry.m,
            step: chunk.entry.step,
            location: chunk.entry.location,
            bytes: chunk.data.len,
            kind: kind.code(TYPE_CODES).unwrap_or(Type::UInt8.code(TYPE_CODES).unwrap_or(1)),
        }
    }
}

/// Step of the last committed frame; 0 without frames.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_get_last_step(handle: Handle) -> u64 {
    // SAFETY: condition of this function.
    unsafe { get(handle, 0, |handle| Ok(handle.reader()?.last_step()?.unwrap_or(0))) }
}

/// Number of ended frames; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_get_nframes(handle: Handle) -> u64 {
    // SAFETY: condition of this function.
    unsafe {
        get(handle, 0, |handle| match &mut handle.file {
            Open::Read(file) => file.nframes(),
            Open::Write(_) => Ok(handle.writer()?.nframes()),
        })
    }
}

/// Reads frames that another process has added.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_refresh(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| match &mut handle.file {
            Open::Read(file) => file.refresh(),
            Open::Write(_) => Ok(()),
        })
    }
}

/// Finds a chunk by frame and name. Returns null if it does not exist or on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_find_chunk(
    handle: Handle,
    frame: u64,
    name: *const c_char,
) -> *const CallerEntry {
    // SAFETY: condition of this function.
    unsafe {
        get(handle, std::ptr::null(), |handle| {
            let Some(chunk) = handle.reader()?.find_chunk(frame, text(name)?)? else {
                return Ok(std::ptr::null());
            };
            if handle.found.len() == REMEMBERED {
                handle.found.pop_front();
            }
            handle.found.push_back(Box::new(CallerEntry::new(&chunk)));
            Ok(handle.found.back().map_or(std::ptr::null(), |last| &raw const **last))
        })
    }
}

/// Reads the data of a chunk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_read_chunk(
    handle: Handle,
    data: *mut c_void,
    chunk: *const CallerEntry,
) -> c_int {
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| {
            let chunk = chunk.as_ref().filter(|chunk| chunk.location >= 0);
            let chunk = chunk.ok_or_else(|| Error::argument("invalid chunk"))?;
            if data.is_null() && chunk.bytes > 0 {
                return Err(Error::argument("the buffer is null"));
            }
            let into = if chunk.bytes > 0 { bytes_mut(data, chunk.bytes) } else { &mut [] };
            if into.len() as u64 != chunk.bytes {
                return Err(Error::argument("the chunk exceeds the address space"));
            }
            handle.reader()?.source().read_exact_at(chunk.location as u64, into)
        })
    }
}

/// Returns the first chunk name with the prefix `match_`, or the one after `prev`; null at the end.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_find_matching_chunk_name(
    handle: Handle,
    match_: *const c_char,
    prev: *const c_char,
) -> *const c_char {
    // SAFETY: condition of this function.
    unsafe {
        get(handle, std::ptr::null(), |handle| {
            let prefix = text(match_)?;
            if prev.is_null() {
                let names = handle.reader()?.find_matching_names(prefix);
                handle.names = names.into_iter().filter_map(|n| CString::new(n).ok()).collect();
            }
            let seen = handle.names.iter().position(|name| name.as_ptr() == prev);
            let next = if prev.is_null() { Some(0) } else { seen.map(|k| k + 1) };
            let next = next.and_then(|next| handle.names.get(next));
            Ok(next.map_or(std::ptr::null(), |name| name.as_ptr()))
        })
    }
}
