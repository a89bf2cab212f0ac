//! Writes that fail on purpose, for tests of those who promise something about files that are cut.
//!
//! [`arm`] lets one of the calls to come fail, counted from 0, of those that this thread makes to
//! write, reserve or sync a [`crate::sink::Sink`]. Of a write, a part may be in the file by then.

use std::cell::Cell;
use std::io;

/// How calls fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The call that fails.
    pub call: u64,
    /// Of the bytes of a write, so many hundredths reach the file.
    pub part: usize,
    /// All later calls fail, too, and write nothing.
    pub lasting: bool,
}

thread_local! {
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

/// Sets what fails from now on; nothing counts the calls only.
pub fn arm(fault: Option<Fault>) {
    FAULT.set(fault);
    CALLS.set(0);
}

/// Lets nothing fail any more, and says how many calls there were.
pub fn disarm() -> u64 {
    FAULT.set(None);
    CALLS.get()
}

/// Counts a call with so many bytes. If it fails: how many of them are written, and why not all.
pub(crate) fn strike(bytes: usize) -> Option<(usize, io::Error)> {
    let call = CALLS.get();
    CALLS.set(call + 1);
    let fault = FAULT.get()?;
    let now = call == fault.call;
    if !(now || fault.lasting && call > fault.call) {
        return None;
    }
    let written = if now { bytes * fault.part.min(100) / 100 } else { 0 };
    Some((written, io::Error::other("a fault that was asked for")))
}
