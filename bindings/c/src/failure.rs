//! Errors as numbers, with the words kept for who asks.

use std::cell::RefCell;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use spile::error::{Error, ErrorKind, Result};

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs what a function of the interface does. A failure becomes a number in `err` and words for
/// [`last_message`]; a panic, which would be our mistake, does not pass into the caller.
///
/// # Safety
/// `err` is null or points to an `int`.
pub(crate) unsafe fn guard<T>(err: *mut c_int, body: impl FnOnce() -> Result<T>) -> Option<T> {
    let done = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| {
        Err(Error::unsupported("core-panic", "a mistake in spile; please report it"))
    });
    let (number, done) = match done {
        Ok(done) => (0, Some(done)),
        Err(error) => {
            let hint = error.hint_text().map(|hint| format!("; {hint}")).unwrap_or_default();
            LAST.set(format!("{error}{hint}"));
            (error.kind().number(), None)
        }
    };
    if !err.is_null() {
        // SAFETY: the caller says so.
        unsafe { *err = number };
    }
    done
}

/// What a number means, or nothing for one that is none of ours.
pub(crate) fn meaning(number: c_int) -> Option<&'static str> {
    if number == 0 {
        return Some("no error");
    }
    let kind = ErrorKind::ALL.into_iter().find(|kind| kind.number() == number)?;
    Some(match kind {
        ErrorKind::Io => "the file system refused",
        ErrorKind::NotThisFormat => "the file is of another format",
        ErrorKind::Malformed => "the file is corrupt: it breaks a rule of its format",
        ErrorKind::Truncated => "the file is corrupt: it ends too early",
        ErrorKind::Unsupported => "the file is legal, but not known to this version",
        ErrorKind::Limit => "more than this machine can hold",
        ErrorKind::Argument => "an argument or the order of calls makes no sense",
        ErrorKind::Exists => "the file exists already",
    })
}

/// The words of the last failure of this thread.
pub(crate) fn last_message() -> String {
    LAST.with_borrow(Clone::clone)
}

/// Copies `words` and a zero into `room`, which has `length` bytes, cut where it must be; `length`
/// becomes the number of bytes before the zero.
///
/// # Safety
/// `length` points to an `int`, and `room` to as many bytes.
pub(crate) unsafe fn copy_words(words: &str, room: *mut c_char, length: *mut c_int) -> c_int {
    if room.is_null() || length.is_null() {
        return -1;
    }
    // SAFETY: the caller says so.
    unsafe {
        let Some(most) = usize::try_from(*length).ok().and_then(|n| n.checked_sub(1)) else {
            return -1;
        };
        let copied = words.len().min(most);
        std::ptr::copy_nonoverlapping(words.as_ptr().cast(), room, copied);
        *room.add(copied) = 0;
        *length = copied as c_int;
    }
    0
}
