//! Cancellation of everything that the process reads and writes.
//!
//! [`Source::stop`](crate::Source::stop) cancels the operations on one source. [`stop_all`] cancels all: reads of
//! every source and writes of every sink fail, so that running operations return an error and remove their
//! unfinished output. A program calls it when it is interrupted; the library installs no signal handlers.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

static STOPPED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static UNINTERRUPTED: Cell<bool> = const { Cell::new(false) };
}

/// With `true`, all reads and writes of this process fail with an `Io` error until it is called with `false`.
pub fn stop_all(stopped: bool) {
    STOPPED.store(stopped, Ordering::Relaxed);
}

/// Calls `work` on this thread with reads and writes that succeed although they are [stopped](stop_all), to undo
/// a change that was stopped.
pub fn uninterrupted<T>(work: impl FnOnce() -> T) -> T {
    let before = UNINTERRUPTED.replace(true);
    let done = work();
    UNINTERRUPTED.set(before);
    done
}

/// Whether reads and writes of this thread are to fail.
#[inline]
pub(crate) fn is_stopped() -> bool {
    STOPPED.load(Ordering::Relaxed) && !UNINTERRUPTED.get()
}

/// Fails if everything is [stopped](stop_all). For loops that neither read nor write.
#[inline]
pub fn ensure_running() -> Result<()> {
    if is_stopped() { Err(cancelled()) } else { Ok(()) }
}

#[cold]
pub(crate) fn cancelled() -> Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "cancelled by the caller").into()
}
