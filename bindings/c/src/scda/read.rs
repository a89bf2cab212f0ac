//! A.5: reading.

use std::ffi::{c_char, c_int, c_void};

use spile::error::Error;
use spile_scda::Slots;

use super::{Handle, rank_number, with};
use crate::memory::{bytes_mut, numbers, put, scattered_mut};

/// A.5.1: reads what the next section is; its type is 0 at the end of the file.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_section_header(
    f: Handle,
    kind: *mut c_char,
    count: *mut u64,
    size: *mut u64,
    userstr: *mut c_char,
    decode: *mut c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: the caller says so.
    unsafe {
        with(f, err, |file| {
            let cursor = file.cursor()?;
            if let Some(open) = cursor.section() {
                let letter = open.kind.letter();
                let message = format!("the data of the {letter} section were not read or skipped");
                return Err(Error::argument(message));
            }
            let wanted = !decode.is_null() && *decode != 0;
            let found = cursor.next(wanted)?;
            let (letter, numbers, decoded, user) = match found {
                Some(header) => (
                    header.kind.letter() as u8,
                    (header.count, header.size),
                    header.decoded,
                    header.user,
                ),
                None => (0, (0, 0), false, Vec::new()),
            };
            put(kind, letter as c_char);
            put(count, numbers.0);
            put(size, numbers.1);
            put(decode, c_int::from(decoded));
            file.give_user(&user, userstr);
            Ok(())
        })
    }
}

/// A.5.2: reads 32 bytes on `root`.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_inline_data(
    f: Handle,
    dbytes: *mut c_void,
    root: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: the caller says so.
    unsafe {
        with(f, err, |file| {
            let root = rank_number(root);
            let wanted = file.rank() == root && !dbytes.is_null();
            let into = wanted.then(|| bytes_mut(dbytes, 32));
            file.cursor()?.inline_into(root, into.and_then(|into| into.first_chunk_mut()))
        })
    }
}

/// A.5.3: reads the bytes of a block on `root`.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_block_data(
    f: Handle,
    dbytes: *mut c_void,
    size: u64,
    root: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: the caller says so.
    unsafe {
        with(f, err, |file| {
            let root = rank_number(root);
            let wanted = file.rank() == root && !dbytes.is_null();
            let into = wanted.then(|| bytes_mut(dbytes, size));
            file.cursor()?.block_into(root, into)
        })
    }
}

/// A.5.4: reads this rank's elements of one size.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_array_data(
    f: Handle,
    dbytes: *mut c_void,
    counts: *const u64,
    size: u64,
    indirect: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: the caller says so.
    unsafe {
        with(f, err, |file| {
            let counts = numbers(counts, file.ranks());
            let mine = counts.get(file.rank()).copied().unwrap_or(0);
            let apart = indirect != 0 && !dbytes.is_null();
            let mut parts = if apart { scattered_mut(dbytes, mine, |_| size) } else { Vec::new() };
            let into = if dbytes.is_null() {
                None
            } else if apart {
                Some(Slots::Indirect(&mut parts))
            } else {
                Some(Slots::Contiguous(bytes_mut(dbytes, mine.saturating_mul(size))))
            };
            file.cursor()?.array_into(counts, into)
        })
    }
}

/// A.5.5: reads the sizes of this rank's elements.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_varray_sizes(
    f: Handle,
    sizes: *mut u64,
    counts: *const u64,
    err: *mut c_int,
) -> Handle {
    // SAFETY: the caller says so.
    unsafe {
        with(f, err, |file| {
            let counts = numbers(counts, file.ranks());
            let found = file.cursor()?.sizes(counts)?;
            if !sizes.is_null() {
                std::ptr::copy_nonoverlapping(found.as_ptr(), sizes, found.len());
            }
            Ok(())
        })
    }
}

/// A.5.6: reads this rank's elements of different sizes.
///
/// # Safety
/// As `scda.h` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_varray_data(
    f: Handle,
    dbytes: *mut c_void,
    counts: *const u64,
    sizes: *const u64,
    bytes_of_ranks: *const u64,
    indirect: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: the caller says so.
    unsafe {
        with(f, err, |file| {
            let counts = numbers(counts, file.ranks());
            let mine = counts.get(file.rank()).copied().unwrap_or(0);
            let wanted = !dbytes.is_null();
            let sizes = if wanted { numbers(sizes, mine) } else { &[] };
            let total = file.check_sums(wanted, sizes, bytes_of_ranks)?;
            let apart = wanted && indirect != 0 && sizes.len() as u64 == mine;
            let mut parts =
                if apart { scattered_mut(dbytes, mine, |k| sizes[k]) } else { Vec::new() };
            let into = if !wanted {
                None
            } else if indirect != 0 {
                Some(Slots::Indirect(&mut parts))
            } else {
                Some(Slots::Contiguous(bytes_mut(dbytes, total)))
            };
            file.cursor()?.varray_into(counts, into)
        })
    }
}
