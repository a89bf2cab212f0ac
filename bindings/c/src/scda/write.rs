//! Writing (A.4).

use std::ffi::{c_char, c_int, c_void};

use spile_scda::Elements;

use super::{Handle, to_rank, with};
use crate::memory::{bytes, indirect, integers};

/// Writes 32 bytes of `root` (A.4.1).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fwrite_inline(
    f: Handle,
    dbytes: *const c_void,
    userstr: *const c_char,
    root: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let (user, root) = (file.user(userstr), to_rank(root));
            let here = file.rank() == root;
            let data = if here { bytes(dbytes, 32) } else { &[] };
            file.writer()?.inline(user, root, data.first_chunk())
        })
    }
}

/// Writes a block of `root` (A.4.2).
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
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let (user, root) = (file.user(userstr), to_rank(root));
            let here = file.rank() == root && !(dbytes.is_null() && size > 0);
            let data = here.then(|| bytes(dbytes, size));
            file.writer()?.block(user, root, size, data, encode != 0)
        })
    }
}

/// Writes an array of elements of equal size (A.4.3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fwrite_array(
    f: Handle,
    dbytes: *const c_void,
    counts: *const u64,
    size: u64,
    is_indirect: c_int,
    userstr: *const c_char,
    encode: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let (user, counts) = (file.user(userstr), integers(counts, file.ranks()));
            let mine = counts.get(file.rank()).copied().unwrap_or(0);
            let parts;
            let data = if is_indirect != 0 {
                parts = indirect(dbytes, mine, |_| size);
                Elements::Indirect(&parts)
            } else {
                Elements::Contiguous(bytes(dbytes, mine.saturating_mul(size)))
            };
            let writer = file.writer()?;
            writer.prepare(is_indirect != 0, None::<()>, Ok(()));
            writer.array(user, counts, size, data, encode != 0)
        })
    }
}

/// Writes an array of elements of different sizes (A.4.4).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fwrite_varray(
    f: Handle,
    dbytes: *const c_void,
    counts: *const u64,
    sizes: *const u64,
    bytes_of_ranks: *const u64,
    is_indirect: c_int,
    userstr: *const c_char,
    encode: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let (user, counts) = (file.user(userstr), integers(counts, file.ranks()));
            let mine = counts.get(file.rank()).copied().unwrap_or(0);
            let sizes = integers(sizes, mine);
            let (sums, checked) = file.check_sums(sizes, bytes_of_ranks);
            // No data if the sum is wrong.
            let total = if checked.is_ok() { sums[file.rank()] } else { 0 };
            let parts;
            let data = if is_indirect != 0 {
                // No sizes, if they are more than the memory.
                parts = indirect(dbytes, sizes.len() as u64, |k| sizes[k]);
                Elements::Indirect(&parts)
            } else {
                Elements::Contiguous(bytes(dbytes, total))
            };
            let writer = file.writer()?;
            writer.prepare((is_indirect != 0, sums), None::<()>, checked);
            writer.varray(user, counts, sizes, data, encode != 0)
        })
    }
}
