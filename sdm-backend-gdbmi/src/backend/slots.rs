//! A slot of the backend, with the backend's data about it.

use std::cell::Cell;

use crate::gdb_instance::{Interest, Slot};

/// A slot, and the backend's data about it.
pub(super) struct KnownSlot {
    pub(super) slot: Box<dyn Slot>,
    /// Number of tasks that the slot serves now.
    pub(super) task_count: usize,
    /// The descriptors of the slot that the owner watches.
    pub(super) watched: Vec<Interest>,
    /// True once the slot was seen to be down, which is final.
    is_down: Cell<bool>,
}

impl KnownSlot {
    pub(super) fn new(slot: Box<dyn Slot>) -> Self {
        Self {
            slot,
            task_count: 0,
            watched: Vec::new(),
            is_down: Cell::new(false),
        }
    }

    pub(super) fn is_down(&self) -> bool {
        if !self.is_down.get() {
            self.is_down.set(self.slot.is_down());
        }
        self.is_down.get()
    }
}
