//! Writing frames.

use std::ffi::{c_char, c_int, c_void};

use spile_core::error::{Error, Result};
use spile_gsd::wire::Type;
use spile_gsd::{Commit, Mode};

use super::{Handle, Open, TYPE_CODES, get, text, with};
use crate::memory::bytes;

/// Sets when frames are committed: by [`gsd_seed_flush`] only (0), or after this number of frames. With `durable`,
/// commits wait for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_set_commit(handle: Handle, frames: u64, durable: c_int) -> c_int {
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| {
            let commit = if frames == 0 { Commit::OnFlush } else { Commit::Frames(frames) };
            handle.writer()?.set_mode(Mode { commit, durable: durable != 0 });
            Ok(())
        })
    }
}

/// Size of the write buffer in bytes; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_get_maximum_write_buffer_size(handle: Handle) -> u64 {
    // SAFETY: condition of this function.
    unsafe { get(handle, 0, |handle| Ok(handle.writer()?.buffer_size() as u64)) }
}

/// Sets the size of the write buffer in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_set_maximum_write_buffer_size(
    handle: Handle,
    size: u64,
) -> c_int {
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| {
            handle.writer()?.set_buffer_size(buffer_size(size)?);
            Ok(())
        })
    }
}

/// Maximum number of uncommitted index entries; 0 on failure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_get_index_entries_to_buffer(handle: Handle) -> u64 {
    // SAFETY: condition of this function.
    unsafe { get(handle, 0, |handle| Ok(handle.writer()?.pending_limit() as u64)) }
}

/// Sets the maximum number of uncommitted index entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_set_index_entries_to_buffer(
    handle: Handle,
    entries: u64,
) -> c_int {
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| {
            handle.writer()?.set_pending_limit(buffer_size(entries)?);
            Ok(())
        })
    }
}

/// The size of a buffer. Fails unless it is from 1 to 2^40.
fn buffer_size(number: u64) -> Result<usize> {
    usize::try_from(number).ok().filter(|n| (1..=1 << 40).contains(n)).ok_or_else(|| {
        Error::argument(format!("expected a buffer size from 1 to 2^40, found {number}"))
    })
}

/// Ends a frame.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_end_frame(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    unsafe { with(handle, |handle| handle.writer()?.end_frame()) }
}

/// Commits all ended frames and waits for the disk.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_flush(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    unsafe { with(handle, |handle| handle.writer()?.flush()) }
}

/// Removes all frames.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_truncate(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| {
            let open = handle.take_writer()?;
            handle.file = Open::Write(Some(Box::new(open.truncate()?)));
            Ok(())
        })
    }
}

/// Converts the file to the newest version of the format, atomically.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_upgrade(handle: Handle) -> c_int {
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| {
            let open = handle.take_writer()?;
            handle.file = Open::Write(Some(Box::new(open.upgrade()?)));
            Ok(())
        })
    }
}

/// Adds a chunk to the current frame.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_seed_write_chunk(
    handle: Handle,
    name: *const c_char,
    kind: u8,
    n: u64,
    m: u64,
    step: u64,
    data: *const c_void,
) -> c_int {
    // SAFETY: condition of this function.
    unsafe {
        with(handle, |handle| {
            let kind = Type::from_code(TYPE_CODES, kind)
                .ok_or_else(|| Error::argument(format!("unknown element type {kind}")))?;
            let size = n.checked_mul(m).and_then(|count| count.checked_mul(kind.size()));
            let data = bytes(data, size.unwrap_or(u64::MAX));
            let writer = handle.writer()?;
            writer.set_step(step);
            writer.write_chunk(text(name)?, kind, n, m, data)
        })
    }
}
