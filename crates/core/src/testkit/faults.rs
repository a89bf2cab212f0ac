//! Writes that fail on purpose, and a record of all of them, for tests of those who promise something
//! about files that are cut.
//!
//! From [`arm`] to [`disarm`] the calls are counted and kept that this thread makes to write, reserve
//! or sync a [`crate::sink::Sink`], and one of them may fail. Of a write, a part may be in the file
//! by then.

use std::cell::{Cell, RefCell};
use std::io;

/// How calls fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The call that fails, counted from 0.
    pub call: usize,
    /// Of the bytes of a write, so many hundredths reach the file.
    pub part: usize,
    /// All later calls fail, too, and write nothing.
    pub lasting: bool,
}

/// Something that was done to a file, or would have been.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Bytes at a place.
    Write(u64, Vec<u8>),
    /// The file is so long, at least.
    Reserve(u64),
    /// Everything before is on the disk.
    Sync,
}

thread_local! {
    static FAULT: Cell<Option<Fault>> = const { Cell::new(None) };
    static CALLS: RefCell<Option<Vec<Call>>> = const { RefCell::new(None) };
}

/// Keeps all calls from now on, of which one may fail.
pub fn arm(fault: Option<Fault>) {
    FAULT.set(fault);
    CALLS.set(Some(Vec::new()));
}

/// Calls so far.
pub fn calls() -> usize {
    CALLS.with_borrow(|calls| calls.as_ref().map_or(0, Vec::len))
}

/// Lets nothing fail any more, and gives the calls that were kept.
pub fn disarm() -> Vec<Call> {
    FAULT.set(None);
    CALLS.take().unwrap_or_default()
}

/// Keeps a call. If it fails: how many bytes of it are written, and why not all.
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
    Some((written, io::Error::other("a fault that was asked for")))
}
