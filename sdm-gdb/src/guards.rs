//! Guards: when an operation is dropped they undo its counters and delete the objects that it made in gdb.

use super::gdb::Gdb;
use super::state::objects::Object;

/// Breakpoints in gdb that are not in the driver's state yet. Drop deletes them in gdb.
pub(super) struct NewBreakpoints {
    gdb: Gdb,
    numbers: Vec<u32>,
}

impl NewBreakpoints {
    /// Guards breakpoints that gdb has just made; `numbers` are gdb's.
    pub(super) fn new(gdb: &Gdb, numbers: impl IntoIterator<Item = u32>) -> Self {
        Self {
            gdb: gdb.clone(),
            numbers: numbers.into_iter().collect(),
        }
    }

    /// gdb's number of the first breakpoint; `None` if there is none.
    pub(super) fn first(&self) -> Option<u32> {
        self.numbers.first().copied()
    }

    /// Releases the breakpoints into the driver's state, and returns gdb's numbers.
    pub(super) fn keep(mut self) -> Vec<u32> {
        std::mem::take(&mut self.numbers)
    }

    /// Guards the breakpoints of another guard too.
    pub(super) fn join(&mut self, other: Self) {
        self.numbers.extend(other.keep());
    }
}

impl Drop for NewBreakpoints {
    fn drop(&mut self) {
        if !self.numbers.is_empty() {
            self.gdb
                .post(format!("-break-delete {}", list(&self.numbers)));
        }
    }
}

/// Numbers as a space-separated list, as MI accepts them.
pub(super) fn list(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    words.join(" ")
}

/// A variable object in gdb that is not in the driver's state yet. Drop deletes it in gdb.
pub(super) struct MadeObject {
    gdb: Gdb,
    /// Name of the variable object; empty once the object is in the driver's state.
    name: String,
}

impl MadeObject {
    /// Guards the variable object of this name, which gdb has just made.
    pub(super) fn new(gdb: &Gdb, name: &str) -> Self {
        Self {
            gdb: gdb.clone(),
            name: name.to_owned(),
        }
    }

    /// Releases the variable object into the driver's state.
    pub(super) fn keep(mut self, object: Object) {
        let name = std::mem::take(&mut self.name);
        self.gdb.edit().objects.insert(name, object);
    }
}

impl Drop for MadeObject {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            self.gdb.post(format!("-var-delete {}", self.name));
        }
    }
}

/// Exists while a command waits for the program to stop. Meanwhile a stop by a signal that the driver has sent answers
/// that command; later such a stop belongs to no command.
pub(super) struct InterruptGuard(Gdb);

impl InterruptGuard {
    pub(super) fn new(gdb: &Gdb) -> Self {
        gdb.edit().interrupts.asked += 1;
        Self(gdb.clone())
    }
}

impl Drop for InterruptGuard {
    fn drop(&mut self) {
        self.0.edit().interrupts.asked -= 1;
    }
}

/// Exists while a command detaches from the program. The end of the session waits for that command.
pub(super) struct DetachGuard(Gdb);

impl DetachGuard {
    pub(super) fn new(gdb: &Gdb) -> Self {
        gdb.edit().letting_go += 1;
        Self(gdb.clone())
    }
}

impl Drop for DetachGuard {
    fn drop(&mut self) {
        self.0.edit().letting_go -= 1;
    }
}
