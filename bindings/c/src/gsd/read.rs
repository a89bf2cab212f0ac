//! Reading frames.

use std::ffi::{CString, c_char, c_int, c_void};

use spile_core::error::Error;
use spile_gsd::Chunk;
use spile_gsd::wire::Type;

use super::{Handle, Open, TYPE_CODES, text, with};
use crate::memory::bytes_mut;

/// Number of results of [`gsd_find_chunk`] that stay valid.
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
///
/// # Safety
/// See `gsd.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_last_step(handle: Handle) -> u64 {
    let mut last = 0;
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| {
            last = handle.reader()?.last_step()?.unwrap_or(0);
            Ok(())
        });
    }
    last
}

/// Number of ended frames; 0 on failure.
///
/// # Safety
/// See `gsd.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_nframes(handle: Handle) -> u64 {
    let mut frames = 0;
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| {
            frames = match &mut handle.file {
                Open::Read(file) => file.nframes()?,
                Open::Write(_) => handle.writer()?.nframes(),
            };
            Ok(())
        });
    }
    frames
}

/// Reads frames that another process has added.
///
/// # Safety
/// See `gsd.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_refresh(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| match &mut handle.file {
            Open::Read(file) => file.refresh(),
            Open::Write(_) => Ok(()),
        })
    }
}

/// Finds a chunk by frame and name. Returns null if it does not exist or on failure.
///
/// # Safety
/// See `gsd.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_find_chunk(
    handle: Handle,
    frame: u64,
    name: *const c_char,
) -> *const CallerEntry {
    let mut entry = std::ptr::null();
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| {
            let Some(chunk) = handle.reader()?.find_chunk(frame, text(name)?)? else {
                return Ok(());
            };
            if handle.found.len() == REMEMBERED {
                handle.found.pop_front();
            }
            handle.found.push_back(Box::new(CallerEntry::new(&chunk)));
            entry = handle.found.back().map_or(std::ptr::null(), |last| &raw const **last);
            Ok(())
        });
    }
    entry
}

/// Reads the data of a chunk.
///
/// # Safety
/// See `gsd.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_read_chunk(
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
            handle.reader()?.source().read_exact_at(chunk.location as u64, into)
        })
    }
}

/// Returns the first chunk name with the prefix `match_`, or the one after `prev`; null at the end.
///
/// # Safety
/// See `gsd.h`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_find_matching_chunk_name(
    handle: Handle,
    match_: *const c_char,
    prev: *const c_char,
) -> *const c_char {
    let mut found = std::ptr::null();
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| {
            let prefix = text(match_)?;
            if prev.is_null() {
                let names = handle.reader()?.find_matching_names(prefix);
                handle.names = names.into_iter().filter_map(|n| CString::new(n).ok()).collect();
            }
            let seen = handle.names.iter().position(|name| name.as_ptr() == prev);
            let next = if prev.is_null() { Some(0) } else { seen.map(|k| k + 1) };
            let next = next.and_then(|next| handle.names.get(next));
            found = next.map_or(std::ptr::null(), |name| name.as_ptr());
            Ok(())
        });
    }
    found
}
