//! A counting allocator for test crates.
//!
//! Include this file with `#[path]` and pass [`METER`] to `Suite::with_meter`. It is not part of the
//! library because a binary has only one global allocator.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spile_core::testkit::Meter;

/// The system allocator with counters.
struct Counting;

static HELD: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
static START: AtomicU64 = AtomicU64::new(0);
static TOTAL: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

/// Peak of allocated bytes since the last reset.
pub(crate) const METER: Meter = Meter {
    reset: || {
        let held = HELD.load(Relaxed);
        START.store(held, Relaxed);
        PEAK.store(held, Relaxed);
    },
    peak: || PEAK.load(Relaxed).saturating_sub(START.load(Relaxed)),
};

/// Bytes allocated since the start of the process, freed or not: a measure of work.
#[allow(dead_code)] // Used by one test.
pub(crate) fn total() -> u64 {
    TOTAL.load(Relaxed)
}

fn allocated(bytes: usize) {
    TOTAL.fetch_add(bytes as u64, Relaxed);
    let held = HELD.fetch_add(bytes as u64, Relaxed) + bytes as u64;
    PEAK.fetch_max(held, Relaxed);
}

fn freed(bytes: usize) {
    HELD.fetch_sub(bytes as u64, Relaxed);
}

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: the contract of the caller is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // In the worst case both blocks exist at the same time.
        allocated(size);
        freed(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}
