//! Frames into a file.

use std::ffi::{c_char, c_int, c_void};

use spile::error::{Error, Result};
use spile::limits::Limits;
use spile_gsd::wire::Type;
use spile_gsd::{Commit, Mode, Writer};

use super::{Handle, NUMBERS, Open, text, with};
use crate::memory::bytes;

/// When frames become visible to others: after every call of [`gsd_flush`] (0), or whenever so
/// many have ended; with `durable`, safe from power failures by then.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_commit(handle: Handle, frames: u64, durable: c_int) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            let commit = if frames == 0 { Commit::OnFlush } else { Commit::Frames(frames) };
            handle.writer()?.set_mode(Mode { commit, durable: durable != 0 });
            Ok(())
        })
    }
}

/// Most bytes of data that are collected before they are written; 0 on failure.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_maximum_write_buffer_size(handle: Handle) -> u64 {
    let mut size = 0;
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            size = handle.writer()?.buffer_size() as u64;
            Ok(())
        });
    }
    size
}

/// Collects at most so many bytes from now on.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_maximum_write_buffer_size(handle: Handle, size: u64) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            handle.writer()?.set_buffer_size(amount(size)?);
            Ok(())
        })
    }
}

/// Most index entries that wait for a commit; 0 on failure.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_get_index_entries_to_buffer(handle: Handle) -> u64 {
    let mut entries = 0;
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            entries = handle.writer()?.pending_limit() as u64;
            Ok(())
        });
    }
    entries
}

/// Lets at most so many entries wait from now on.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_set_index_entries_to_buffer(handle: Handle, entries: u64) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            handle.writer()?.set_pending_limit(amount(entries)?);
            Ok(())
        })
    }
}

/// A size of a buffer: none is no buffer, and memory has an end.
fn amount(number: u64) -> Result<usize> {
    usize::try_from(number)
        .ok()
        .filter(|n| (1..=1 << 40).contains(n))
        .ok_or_else(|| Error::argument(format!("{number} is no size of a buffer")))
}

/// Ends a frame.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_end_frame(handle: Handle) -> c_int {
    // SAFETY: the caller says so.
    unsafe { with(handle, |handle| handle.writer()?.end_frame()) }
}

/// Commits all frames that have ended, and waits for the disk.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_flush(handle: Handle) -> c_int {
    // SAFETY: the caller says so.
    unsafe { with(handle, |handle| handle.writer()?.flush()) }
}

/// Takes all frames out of the file.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_truncate(handle: Handle) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            handle.writer()?;
            if let Open::Write(writer) = &mut handle.file
                && let Some(open) = writer.take()
            {
                *writer = Some(Box::new(open.truncate()?));
            }
            Ok(())
        })
    }
}

/// Makes a file of the newest version of this one, with the same frames, in one step.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_upgrade(handle: Handle) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            handle.writer()?;
            if let Open::Write(writer) = &mut handle.file
                && let Some(open) = writer.take()
            {
                let limits = Limits::default();
                let (mode, buffer, entries) =
                    (open.mode(), open.buffer_size(), open.pending_limit());
                open.close()?;
                spile_gsd::ops::upgrade(&handle.path, &limits)?;
                let mut again = Writer::append(&handle.path, mode, &limits)?;
                again.set_buffer_size(buffer);
                again.set_pending_limit(entries);
                *writer = Some(Box::new(again));
            }
            Ok(())
        })
    }
}

/// Adds a chunk to the current frame.
///
/// # Safety
/// As `gsd.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gsd_write_chunk(
    handle: Handle,
    name: *const c_char,
    kind: u8,
    n: u64,
    m: u64,
    step: u64,
    data: *const c_void,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe {
        with(handle, |handle| {
            let kind = Type::from_code(NUMBERS, kind)
                .ok_or_else(|| Error::argument(format!("{kind} is not an element type")))?;
            let size = n.checked_mul(m).and_then(|count| count.checked_mul(kind.size()));
            let data = bytes(data, size.unwrap_or(u64::MAX));
            let writer = handle.writer()?;
            writer.set_step(step);
            writer.write_chunk(text(name)?, kind, n, m, data)
        })
    }
}
