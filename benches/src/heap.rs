//! Number of allocated bytes and of allocations: the system's allocator, counted thread by thread.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allocator of a bench that counts: `#[global_allocator] static A: Counted = Counted;`
pub struct Counted;

thread_local! {
    static BYTES: Cell<u64> = const { Cell::new(0) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Number of bytes that this thread has allocated and not freed; 0 if [`Counted`] is not the allocator.
#[must_use]
pub fn bytes() -> u64 {
    BYTES.get()
}

/// Number of allocations and of growing reallocations by this thread.
#[must_use]
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

fn count(more: usize, less: usize) {
    // Memory of another thread may be freed here: the count may be negative for a while.
    BYTES.set(
        BYTES
            .get()
            .wrapping_add(more as u64)
            .wrapping_sub(less as u64),
    );
    if more > 0 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    }
}

// SAFETY: every call is passed on to the system's allocator as it came, and counting allocates
// nothing: the cells are made without an initialiser and have nothing to drop.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: the caller's promises are the ones that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes, layout.size());
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, bytes) }
    }
}
