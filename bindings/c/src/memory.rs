//! The caller's memory as slices.

use std::ffi::{CStr, c_char, c_void};

/// The bytes of a C string; none where there is none.
///
/// # Safety
/// `text` is null or ends with a zero.
pub(crate) unsafe fn words<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: the caller says so.
    if text.is_null() { &[] } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
}

/// `count` bytes; none where there is no memory, or more than memory can hold.
///
/// # Safety
/// `data` is null or has `count` bytes.
pub(crate) unsafe fn bytes<'a>(data: *const c_void, count: u64) -> &'a [u8] {
    match usize::try_from(count).ok().filter(|n| isize::try_from(*n).is_ok()) {
        // SAFETY: the caller says so.
        Some(count) if !data.is_null() => unsafe { std::slice::from_raw_parts(data.cast(), count) },
        _ => &[],
    }
}

/// `count` bytes to fill.
///
/// # Safety
/// `data` is not null and has `count` bytes, which nobody else uses.
pub(crate) unsafe fn bytes_mut<'a>(data: *mut c_void, count: u64) -> &'a mut [u8] {
    match usize::try_from(count).ok().filter(|n| isize::try_from(*n).is_ok()) {
        // SAFETY: the caller says so.
        Some(count) => unsafe { std::slice::from_raw_parts_mut(data.cast(), count) },
        None => &mut [],
    }
}

/// `count` numbers; none where there is no memory.
///
/// # Safety
/// `data` is null or has `count` numbers.
pub(crate) unsafe fn numbers<'a>(data: *const u64, count: u64) -> &'a [u64] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(data, count as usize) }
}

/// The elements at `count` pointers.
///
/// # Safety
/// `data` is null or has `count` pointers, each to as many bytes as `size_of` says.
pub(crate) unsafe fn scattered<'a>(
    data: *const c_void,
    count: u64,
    size_of: impl Fn(usize) -> u64,
) -> Vec<&'a [u8]> {
    if data.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller says so.
    unsafe {
        let pointers = std::slice::from_raw_parts(data.cast::<*const c_void>(), count as usize);
        pointers.iter().enumerate().map(|(k, data)| bytes(*data, size_of(k))).collect()
    }
}

/// The memory at `count` pointers.
///
/// # Safety
/// As for [`scattered`], and nobody else uses the memory.
pub(crate) unsafe fn scattered_mut<'a>(
    data: *mut c_void,
    count: u64,
    size_of: impl Fn(usize) -> u64,
) -> Vec<&'a mut [u8]> {
    // SAFETY: the caller says so.
    unsafe {
        let pointers = std::slice::from_raw_parts(data.cast::<*mut c_void>(), count as usize);
        let one = |(k, data): (usize, &*mut c_void)| {
            if data.is_null() { &mut [][..] } else { bytes_mut(*data, size_of(k)) }
        };
        pointers.iter().enumerate().map(one).collect()
    }
}

/// Writes a value where there is a place for it.
///
/// # Safety
/// `place` is null or can be written.
pub(crate) unsafe fn put<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller says so.
        unsafe { *place = value };
    }
}
