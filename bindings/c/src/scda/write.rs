//! A.4: writing.

use std::ffi::{c_char, c_int, c_void};

use spile_scda::Elements;

use super::{Handle, rank_number, with};
use crate::memory::{bytes, numbers, scattered};

/// A.4.1: writes 32 bytes of `root`.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fwrite_inline(
    f: Handle,
    dbytes: *const c_void,
    userstr: *const c_char,
    root: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: the caller says so.
    unsafe {
        with(f, err, |file| {
            let (user, root) = (file.user(userstr), rank_number(root));
            let here = file.rank() == root;
            let data = if here { bytes(dbytes, 32) } else { &[] };
            file.writer()?.inline(user, root, data.first_chunk())
        })
    }
}

/// A.4.2: writes a block of `root`.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fwrite_block(
    f: Handle,
    dbytes: *const c_void,
    size: u64,
    userstr: *const c_char,
    root: c_int,
    encode: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: the caller says so.
    unsafe {
        with(f, err, |file| {
            let (user, root) = (file.user(userstr), rank_number(root));
            let here = file.rank() == root && !(dbytes.is_null() && size > 0);
            let data = here.then(|| bytes(dbytes, size));
            file.writer()?.block(user, root, size, data, encode != 0)
        })
    }
}

/// A.4.3: writes an array of elements of one size.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fwrite_array(
    f: Handle,
    dbytes: *const c_void,
    counts: *const u64,
    size: u64,
    indirect: c_int,
    userstr: *const c_char,
    encode: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: the caller says so.
    unsafe {
        with(f, err, |file| {
            let (user, counts) = (file.user(userstr), numbers(counts, file.ranks()));
            let mine = counts.get(file.rank()).copied().unwrap_or(0);
            let parts = if indirect != 0 { scattered(dbytes, mine, |_| size) } else { Vec::new() };
            let data = if indirect != 0 {
                Elements::Indirect(&parts)
            } else {
                Elements::Contiguous(bytes(dbytes, mine.saturating_mul(size)))
            };
            file.writer()?.array(user, counts, size, data, encode != 0)
        })
    }
}

/// A.4.4: writes an array of elements of different sizes.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fwrite_varray(
    f: Handle,
    dbytes: *const c_void,
    counts: *const u64,
    sizes: *const u64,
    bytes_of_ranks: *const u64,
    indirect: c_int,
    userstr: *const c_char,
    encode: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: the caller says so.
    unsafe {
        with(f, err, |file| {
            let (user, counts) = (file.user(userstr), numbers(counts, file.ranks()));
            let mine = counts.get(file.rank()).copied().unwrap_or(0);
            let sizes = numbers(sizes, mine);
            let total = file.check_sums(true, sizes, bytes_of_ranks)?;
            let known = sizes.len() as u64 == mine;
            let parts = if indirect != 0 && known {
                scattered(dbytes, mine, |k| sizes[k])
            } else {
                Vec::new()
            };
            let data = if indirect != 0 {
                Elements::Indirect(&parts)
            } else {
                Elements::Contiguous(bytes(dbytes, total))
            };
            file.writer()?.varray(user, counts, sizes, data, encode != 0)
        })
    }
}
