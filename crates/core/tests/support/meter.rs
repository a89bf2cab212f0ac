//! An allocator that counts, for test crates that want the suite to watch their memory.
//!
//! Include this file with `#[path]` and hand [`METER`] to `Suite::with_meter`. It is not part of
//! the library because an allocator cannot be written without `unsafe`.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use spile_core::testkit::Meter;

/// The system's allocator with a tally.
struct Counting;

static HELD: AtomicU64 = AtomicU64::new(0);
static PEAK: AtomicU64 = AtomicU64::new(0);
static START: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static COUNTING: Counting = Counting;

/// Bytes asked for and not given back since the last reset, at their most.
pub(crate) const METER: Meter = Meter {
    reset: || {
        let held = HELD.load(Relaxed);
        START.store(held, Relaxed);
        PEAK.store(held, Relaxed);
    },
    peak: || PEAK.load(Relaxed).saturating_sub(START.load(Relaxed)),
};

fn take(bytes: usize) {
    let held = HELD.fetch_add(bytes as u64, Relaxed) + bytes as u64;
    PEAK.fetch_max(held, Relaxed);
}

fn give(bytes: usize) {
    HELD.fetch_sub(bytes as u64, Relaxed);
}

// SAFETY: every call is handed on unchanged to the system's allocator; only numbers are kept.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: our caller's promise is the one that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        give(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may exist for a moment, as in the worst case they do.
        take(size);
        give(layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}
