//! Ends the program at the first large allocation.
//!
//! Memory that is asked for but never touched does not count as resident, so libFuzzer's own
//! limit would miss a length that was believed before it was checked.

use std::alloc::{GlobalAlloc, Layout, System};

/// Several times the limits that targets give, far below what a lying length asks for.
const LARGEST: usize = 64 << 20;

struct Budget;

#[global_allocator]
static BUDGET: Budget = Budget;

fn check(size: usize) {
    if size > LARGEST {
        let _ = std::io::Write::write_all(
            &mut std::io::stderr(),
            b"an allocation far beyond the limits was asked for\n",
        );
        std::process::abort();
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
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
