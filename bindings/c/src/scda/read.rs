//! Reading (A.5).

use std::ffi::{c_char, c_int, c_void};

use spile_core::error::{Error, Result};
use spile_scda::Slots;

use super::{Handle, ScdaFile, to_rank, with};
use crate::memory::{bytes_mut, indirect_mut, integers, put};

impl ScdaFile {
    /// Number of elements of this rank. 0 if `counts` is not a partition of the current section: the library
    /// then rejects `counts`, and the pointers of the caller are not read.
    fn elements_of_rank(&mut self, counts: &[u64]) -> Result<u64> {
        let rank = self.rank();
        let count = self.cursor()?.section().map(|header| header.count);
        let sum = counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count));
        Ok(counts.get(rank).copied().filter(|_| sum.is_some() && sum == count).unwrap_or(0))
    }
}

/// Fails if the caller's size is not that of the section; other errors are found by the library.
fn check_size(found: Option<u64>, given: u64) -> Result<()> {
    match found {
        Some(found) if found != given => {
            Err(Error::argument(format!("expected a size of {found} bytes, found {given}")))
        }
        _ => Ok(()),
    }
}

/// Reads the header of the next section (A.5.1). The type is 0 at the end of the file.
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
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let cursor = file.cursor()?;
            if let Some(open) = cursor.section() {
                let letter = open.kind.letter();
                let message =
                    format!("the data of the {letter} section have not been read or skipped");
                return Err(Error::argument(message));
            }
            let header = cursor.next(!decode.is_null() && *decode != 0)?;
            let (letter, numbers, decoded, user) = match header {
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
            file.copy_user(&user, userstr);
            Ok(())
        })
    }
}

/// Reads 32 bytes on `root` (A.5.2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_inline_data(
    f: Handle,
    dbytes: *mut c_void,
    root: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let root = to_rank(root);
            let read = file.rank() == root && !dbytes.is_null();
            let into = read.then(|| bytes_mut(dbytes, 32));
            file.cursor()?.inline_into(root, into.and_then(|into| into.first_chunk_mut()))
        })
    }
}

/// Reads the bytes of a block on `root` (A.5.3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_block_data(
    f: Handle,
    dbytes: *mut c_void,
    size: u64,
    root: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let root = to_rank(root);
            let read = file.rank() == root && !dbytes.is_null();
            let into = read.then(|| bytes_mut(dbytes, size));
            let cursor = file.cursor()?;
            let found = cursor.section().map(|header| header.size);
            cursor.prepare(size, None::<()>, check_size(found, size));
            cursor.block_into(root, into)
        })
    }
}

/// Reads this rank's elements of equal size (A.5.4).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_array_data(
    f: Handle,
    dbytes: *mut c_void,
    counts: *const u64,
    size: u64,
    indirect: c_int,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let counts = integers(counts, file.ranks());
            let mine = file.elements_of_rank(counts)?;
            let mut parts;
            let into = if dbytes.is_null() {
                None
            } else if indirect != 0 {
                parts = indirect_mut(dbytes, mine, |_| size);
                Some(Slots::Indirect(&mut parts))
            } else {
                Some(Slots::Contiguous(bytes_mut(dbytes, mine.saturating_mul(size))))
            };
            let cursor = file.cursor()?;
            let found = cursor.section().map(|header| header.size);
            cursor.prepare((size, indirect != 0), None::<()>, check_size(found, size));
            cursor.array_into(counts, into)
        })
    }
}

/// Reads the sizes of this rank's elements (A.5.5).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn scda_fread_varray_sizes(
    f: Handle,
    sizes: *mut u64,
    counts: *const u64,
    err: *mut c_int,
) -> Handle {
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let counts = integers(counts, file.ranks());
            let found = file.cursor()?.sizes(counts)?;
            if !sizes.is_null() {
                std::ptr::copy_nonoverlapping(found.as_ptr(), sizes, found.len());
            }
            Ok(())
        })
    }
}

/// Reads this rank's elements of different sizes (A.5.6).
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
    // SAFETY: condition of this function.
    unsafe {
        with(f, err, |file| {
            let counts = integers(counts, file.ranks());
            let mine = file.elements_of_rank(counts)?;
            let read = !dbytes.is_null();
            let sizes = if read { integers(sizes, mine) } else { &[] };
            let (sums, checked) = file.check_sums(sizes, bytes_of_ranks);
            let checked = if read { checked } else { Ok(()) };
            let total = if read && checked.is_ok() { sums[file.rank()] } else { 0 };
            // A process without a buffer may pass no sizes.
            let given = (!sums.is_empty()).then_some(sums);
            let mut parts;
            let into = if !read {
                None
            } else if indirect != 0 {
                parts = indirect_mut(dbytes, sizes.len() as u64, |k| sizes[k]);
                Some(Slots::Indirect(&mut parts))
            } else {
                Some(Slots::Contiguous(bytes_mut(dbytes, total)))
            };
            let cursor = file.cursor()?;
            cursor.prepare(indirect != 0, given, checked);
            cursor.varray_into(counts, into)
        })
    }
}
