//! An allocator that aborts at the first large allocation.
//!
//! Allocated memory that is never touched is not resident, so the limit of libFuzzer does not detect an allocation
//! with an unchecked length.

use std::alloc::{GlobalAlloc, Layout, System};

/// Several times the limits of the targets, far below typical invalid lengths.
const LARGEST: usize = 64 << 20;

struct Budget;

#[global_allocator]
static BUDGET: Budget = Budget;

fn check(size: usize) {
    if size > LARGEST {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"allocation far beyond the limits\n",
        );
        std::process::abort();
    }
}

// SAFETY: every call is passed to the allocator of the system unchanged.
unsafe impl GlobalAlloc for Budget {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        unsafe { System.dealloc(old, layout) }
    }
}
