//! Creating files, writing frames, commits and buffers.

use std::ffi::{c_char, c_int, c_void};
use std::time::Duration;

use spile_core::error::{Error, Result};
use spile_core::sink::Overwrite;
use spile_gsd::wire::{About, Form};
use spile_gsd::{Commit, Mode, Version, Writer};

use super::layout::NAME;
use super::{
    APPEND, Failure, Handle, Open, clear, code, element, fill, path, run, text, with, with_state,
};
use crate::memory::bytes;

/// The text, truncated to the length of a name.
fn truncated(text: &str) -> &str {
    let end = (0..=NAME.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// # Safety
/// The texts end with a NUL.
unsafe fn create(
    fname: *const c_char,
    application: *const c_char,
    schema: *const c_char,
    schema_version: u32,
    overwrite: Overwrite,
) -> Result<Writer> {
    // SAFETY: condition of this function.
    let (path, application, schema) = unsafe { (path(fname), text(application)?, text(schema)?) };
    let (application, schema) = (truncated(application).into(), truncated(schema).into());
    let about = About { application, schema, schema_version };
    Writer::create(path, overwrite, Version::V2_1, &about, Mode::default())
}

/// Creates an empty file; an existing file is replaced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_create(
    fname: *const c_char,
    application: *const c_char,
    schema: *const c_char,
    schema_version: u32,
) -> c_int {
    // SAFETY: condition of this function.
    code(run(|| unsafe {
        Ok(create(fname, application, schema, schema_version, Overwrite::Replace)?.close()?)
    }))
}

/// Creates a file and opens it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_create_and_open(
    handle: Handle,
    fname: *const c_char,
    application: *const c_char,
    schema: *const c_char,
    schema_version: u32,
    flags: c_int,
    exclusive_create: c_int,
) -> c_int {
    code(run(|| {
        // SAFETY: condition of this function.
        let handle = unsafe { clear(handle)? };
        if !matches!(flags, 1 | APPEND) {
            return Err(Failure::NotWritable);
        }
        let overwrite = if exclusive_create == 0 { Overwrite::Replace } else { Overwrite::Never };
        // SAFETY: condition of this function.
        unsafe {
            let writer = create(fname, application, schema, schema_version, overwrite)?;
            fill(handle, path(fname), flags, Open::Write(Some(Box::new(writer))))
        }
    }))
}

/// Completes the current frame.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_end_frame(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe { with(handle, |state| Ok(state.writer()?.end_frame()?)) })
}

/// Commits the completed frames and waits for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_flush(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe { with(handle, |state| Ok(state.writer()?.flush()?)) })
}

/// Removes all frames.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_truncate(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe { with(handle, |state| state.replace_writer(Writer::truncate)) })
}

/// Converts the file to version 2.1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_upgrade(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with(handle, |state| {
            if !state.writer().is_ok_and(|writer| writer.is_flushed()) {
                let message = "expected a file that is open for writing, without chunks to flush";
                return Err(Error::argument(message).into());
            }
            state.replace_writer(Writer::upgrade)
        })
    })
}

/// Commits automatically after a number of frames or a time; 0 for neither.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_commit(handle: Handle, frames: u64, seconds: f64) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with(handle, |state| {
            let time = Duration::try_from_secs_f64(seconds);
            let commit = match (frames, time) {
                (0, Ok(Duration::ZERO)) => Commit::OnFlush,
                (frames, Ok(Duration::ZERO)) => Commit::Frames(frames),
                (0, Ok(time)) => Commit::Every(time),
                _ => return Err(Error::argument("expected frames or seconds").into()),
            };
            let writer = state.writer()?;
            writer.set_mode(Mode { commit, ..writer.mode() });
            Ok(())
        })
    })
}

/// Adds a chunk to the current frame.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_write_chunk(
    handle: Handle,
    name: *const c_char,
    kind: c_int,
    n: u64,
    m: u32,
    flags: u8,
    data: *const c_void,
) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with_state(handle, |state| {
            let wrong = |message: String| Failure::from(Error::argument(message));
            let kind = element(kind).ok_or_else(|| wrong(format!("unknown type {kind}")))?;
            let m = u64::from(m);
            if flags != 0 || m == 0 || n > 0 && data.is_null() {
                return Err(wrong("expected flags 0, columns and data".into()));
            }
            let size = n.checked_mul(m).and_then(|count| count.checked_mul(kind.size()));
            let data = if n == 0 { &[] } else { bytes(data, size.unwrap_or(u64::MAX)) };
            let writer = state.writer()?;
            let name = text(name)?;
            let name = if writer.header().form == Form::V1 { truncated(name) } else { name };
            Ok(writer.write_chunk(name, kind, n, m, data)?)
        })
    })
}

/// Size of the write buffer in bytes; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_maximum_write_buffer_size(handle: Handle) -> u64 {
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |state| match &state.open {
            Open::Read(_) => Ok(state.buffer),
            Open::Write(_) => Ok(state.writer()?.buffer_size() as u64),
        })
    }
    .unwrap_or(0)
}

/// Sets the size of the write buffer in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_maximum_write_buffer_size(handle: Handle, size: u64) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with(handle, |state| {
            let bytes = positive(size)?;
            match &state.open {
                Open::Read(_) => state.buffer = size,
                Open::Write(_) => state.writer()?.set_buffer_size(bytes),
            }
            Ok(())
        })
    })
}

/// Number of index entries in memory; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_index_entries_to_buffer(handle: Handle) -> u64 {
    // SAFETY: condition of this function.
    unsafe { with(handle, |state| Ok(state.writer()?.pending_limit() as u64)) }.unwrap_or(0)
}

/// Sets the number of index entries in memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_index_entries_to_buffer(handle: Handle, number: u64) -> c_int {
    // SAFETY: condition of this function.
    code(unsafe {
        with(handle, |state| {
            state.writer()?.set_pending_limit(positive(number)?);
            Ok(())
        })
    })
}

fn positive(number: u64) -> Result<usize> {
    let number = usize::try_from(number).ok().filter(|n| (1..=1 << 40).contains(n));
    number.ok_or_else(|| Error::argument("expected a number from 1 to 2^40"))
}
