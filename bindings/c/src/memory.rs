//! The caller's memory as slices. A slice that would exceed the address space is empty; the library then
//! rejects the argument because the lengths do not match.

use std::ffi::{CStr, c_char, c_void};

/// `count` as the length of a slice of `T`; `None` if it exceeds the address space.
fn slice_len<T>(count: u64) -> Option<usize> {
    let bytes = count.checked_mul(size_of::<T>() as u64)?;
    isize::try_from(bytes).ok()?;
    usize::try_from(count).ok()
}

/// The bytes of a C string without the NUL; empty if `text` is null.
///
/// # Safety
/// `text` is null or ends with a NUL.
pub(crate) unsafe fn c_string<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: condition of this function.
    if text.is_null() { &[] } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
}

/// The bytes of a C string without the NUL, or its first `length` bytes, at most `longest` bytes; empty if `text` is
/// null.
///
/// # Safety
/// `text` is null, or has a NUL or the bytes that are returned.
pub(crate) unsafe fn short_string<'a>(
    text: *const c_char,
    length: Option<usize>,
    longest: usize,
) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    let mut end = length.unwrap_or(0).min(longest);
    // SAFETY: condition of this function.
    unsafe {
        while length.is_none() && end < longest && *text.add(end) != 0 {
            end += 1;
        }
        std::slice::from_raw_parts(text.cast(), end)
    }
}

/// `count` values; empty if `data` is null or `count` exceeds the address space.
///
/// # Safety
/// `data` is null or has `count` values.
unsafe fn values<'a, T>(data: *const T, count: u64) -> &'a [T] {
    match slice_len::<T>(count) {
        // SAFETY: condition of this function.
        Some(count) if !data.is_null() => unsafe { std::slice::from_raw_parts(data, count) },
        _ => &[],
    }
}

/// `count` bytes; empty if `data` is null or `count` exceeds the address space.
///
/// # Safety
/// `data` is null or has `count` bytes.
pub(crate) unsafe fn bytes<'a>(data: *const c_void, count: u64) -> &'a [u8] {
    // SAFETY: condition of this function.
    unsafe { values(data.cast(), count) }
}

/// `count` bytes to fill; empty if `data` is null or `count` exceeds the address space.
///
/// # Safety
/// `data` is null or has `count` bytes that are not used elsewhere.
pub(crate) unsafe fn bytes_mut<'a>(data: *mut c_void, count: u64) -> &'a mut [u8] {
    match slice_len::<u8>(count) {
        // SAFETY: condition of this function.
        Some(count) if !data.is_null() => unsafe {
            std::slice::from_raw_parts_mut(data.cast(), count)
        },
        _ => &mut [],
    }
}

/// `count` integers; empty if `data` is null or `count` exceeds the address space.
///
/// # Safety
/// `data` is null or has `count` integers.
pub(crate) unsafe fn integers<'a>(data: *const u64, count: u64) -> &'a [u64] {
    // SAFETY: condition of this function.
    unsafe { values(data, count) }
}

/// An empty vector with capacity for `count` slices; `None` if there is not enough memory.
fn reserve<T>(count: usize) -> Option<Vec<T>> {
    let mut slices = Vec::new();
    slices.try_reserve_exact(count).ok().map(|()| slices)
}

/// The elements at `count` pointers; empty if `data` is null or `count` exceeds the memory.
///
/// # Safety
/// `data` is null or has `count` pointers; pointer `k` is null or has `size_of(k)` bytes.
pub(crate) unsafe fn indirect<'a>(
    data: *const c_void,
    count: u64,
    size_of: impl Fn(usize) -> u64,
) -> Vec<&'a [u8]> {
    // SAFETY: condition of this function.
    let pointers = unsafe { values(data.cast::<*const c_void>(), count) };
    let Some(mut elements) = reserve(pointers.len()) else { return Vec::new() };
    // SAFETY: condition of this function.
    let element = |(k, data): (usize, &*const c_void)| unsafe { bytes(*data, size_of(k)) };
    elements.extend(pointers.iter().enumerate().map(element));
    elements
}

/// The buffers at `count` pointers; empty if `data` is null or `count` exceeds the memory.
///
/// # Safety
/// `data` is null or has `count` pointers; pointer `k` is null or has `size_of(k)` bytes that are not used
/// elsewhere.
pub(crate) unsafe fn indirect_mut<'a>(
    data: *mut c_void,
    count: u64,
    size_of: impl Fn(usize) -> u64,
) -> Vec<&'a mut [u8]> {
    // SAFETY: condition of this function.
    let pointers = unsafe { values(data.cast::<*mut c_void>().cast_const(), count) };
    let Some(mut buffers) = reserve(pointers.len()) else { return Vec::new() };
    // SAFETY: condition of this function.
    let buffer = |(k, data): (usize, &*mut c_void)| unsafe { bytes_mut(*data, size_of(k)) };
    buffers.extend(pointers.iter().enumerate().map(buffer));
    buffers
}

/// Writes `value` to `target` unless it is null.
///
/// # Safety
/// `target` is null or can be written.
pub(crate) unsafe fn put<T>(target: *mut T, value: T) {
    if !target.is_null() {
        // SAFETY: condition of this function.
        unsafe { *target = value };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_that_exceed_the_address_space_give_empty_slices() {
        let numbers = [1_u64];
        let pointers = [numbers.as_ptr().cast::<c_void>()];
        for count in [u64::MAX, 1 << 63, 1 << 61, 1 << 60] {
            // SAFETY: no memory is accessed for these counts.
            unsafe {
                assert!(integers(numbers.as_ptr(), count).is_empty());
                assert!(indirect(pointers.as_ptr().cast(), count, |_| 8).is_empty());
            }
        }
        // SAFETY: one integer, one pointer.
        unsafe {
            assert_eq!(integers(numbers.as_ptr(), 1), [1]);
            assert_eq!(indirect(pointers.as_ptr().cast(), 1, |_| 8).len(), 1);
        }
    }
}
