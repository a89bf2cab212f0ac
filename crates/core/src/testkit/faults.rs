//! Fault injection for writes, for tests of crash safety.
//!
//! Between [`arm`] and [`disarm`], the calls of this thread that write, reserve or sync a
//! [`crate::sink::Sink`] are recorded, and one of them may fail. A failing write may be partial.

use std::cell::{Cell, RefCell};
use std::io;

/// The call that fails, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Number of the call, from 0.
    pub call: usize,
    /// Percentage of the bytes of a failing write that reach the file.
    pub part: usize,
    /// All later calls fail, too, without writing.
    pub lasting: bool,
}

/// A recorded call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Offset and bytes of a write.
    Write(u64, Vec<u8>),
    /// Minimum length in bytes.
    Reserve(u64),
    /// Flush to disk.
    Sync,
    /// Flush of a folder to disk.
    SyncFolder,
}

thread_local! {
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
    static CALLS: RefCell<Option<Vec<Call>>> = const { RefCell::new(None) };
}

/// Starts recording calls; `fault` is the one that fails.
pub fn arm(fault: Option<Fault>) {
    FAULT.set(fault);
    CALLS.set(Some(Vec::new()));
}

/// Number of recorded calls.
pub fn calls() -> usize {
    CALLS.with_borrow(|calls| calls.as_ref().map_or(0, Vec::len))
}

/// Stops recording and returns the calls.
pub fn disarm() -> Vec<Call> {
    FAULT.set(None);
    CALLS.take().unwrap_or_default()
}

/// Records a call. If it is to fail, returns the number of bytes to write and the error.
pub(crate) fn strike(make: impl FnOnce() -> Call) -> Option<(usize, io::Error)> {
    let (number, bytes) = CALLS.with_borrow_mut(|calls| {
        let calls = calls.as_mut()?;
        let call = make();
        let bytes = if let Call::Write(_, bytes) = &call { bytes.len() } else { 0 };
        calls.push(call);
        Some((calls.len() - 1, bytes))
    })?;
    let fault = FAULT.get()?;
    let now = number == fault.call;
    if !(now || fault.lasting && number > fault.call) {
        return None;
    }
    let written = if now { bytes * fault.part.min(100) / 100 } else { 0 };
    Some((written, io::Error::other("injected fault")))
}
