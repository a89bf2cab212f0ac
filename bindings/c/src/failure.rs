//! Error codes, and the message of the last error of a thread.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use spile_core::error::{Error, ErrorKind, Result};

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs the body of an exported function. An error is stored as a code in `err` and as a message for
/// [`last_message`]. A panic is an error, too.
///
/// # Safety
/// `err` is null or points to an `int`.
pub(crate) unsafe fn guard<T>(err: *mut c_int, body: impl FnOnce() -> Result<T>) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        Err(Error::unsupported("core-panic", "internal error; please report it"))
    });
    let (number, done) = match done {
        Ok(done) => (0, Some(done)),
        Err(error) => {
            let hint = error.suggestion().map(|hint| format!("; {hint}")).unwrap_or_default();
            LAST.set(format!("{error}{hint}"));
            (error.kind().number(), None)
        }
    };
    if !err.is_null() {
        // SAFETY: condition of this function.
        unsafe { *err = number };
    }
    done
}

/// Description of an error code; `None` for an unknown code.
pub(crate) fn describe_code(number: c_int) -> Option<&'static str> {
    if number == 0 {
        return Some("no error");
    }
    let kind = ErrorKind::ALL.into_iter().find(|kind| kind.number() == number)?;
    Some(match kind {
        ErrorKind::Io => "input or output failed",
        ErrorKind::NotThisFormat => "the file has another format",
        ErrorKind::Malformed => "the file is corrupt: it violates the format",
        ErrorKind::Truncated => "the file is corrupt: it is truncated",
        ErrorKind::Unsupported => "the file uses a feature that is not supported",
        ErrorKind::Limit => "a size exceeds the memory or file limit",
        ErrorKind::Argument => "invalid argument or order of calls",
        ErrorKind::Exists => "the file already exists",
    })
}

/// Message of the last error of this thread.
pub(crate) fn last_message() -> String {
    LAST.with_borrow(Clone::clone)
}

/// Copies `text` and a NUL into `buffer`, which has `*length` bytes, truncated if necessary. `*length` becomes
/// the number of bytes before the NUL. Returns 0, or -1 for invalid arguments.
///
/// # Safety
/// `length` points to an `int`, and `buffer` to `*length` bytes.
pub(crate) unsafe fn copy_text(text: &str, buffer: *mut c_char, length: *mut c_int) -> c_int {
    if buffer.is_null() || length.is_null() {
        return -1;
    }
    // SAFETY: condition of this function.
    unsafe {
        let Some(capacity) = usize::try_from(*length).ok().and_then(|n| n.checked_sub(1)) else {
            return -1;
        };
        let copied = text.len().min(capacity);
        std::ptr::copy_nonoverlapping(text.as_ptr().cast(), buffer, copied);
        *buffer.add(copied) = 0;
        *length = copied as c_int;
    }
    0
}
