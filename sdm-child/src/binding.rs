//! The processors that a program may use, and those for its gdb.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use sdm_system::proc;

/// The processors of a program, and those of its gdb.
///
/// A launcher binds its processes to the processors of one rank. The program spins on these and would leave its
/// debugger no time. The server therefore uses all permitted processors, and so does each gdb once it has started its
/// program. The program keeps the launcher's binding, which it would also inherit without SDM.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The processors that the launcher has bound the program to.
    pub program: CpuSet,
    /// All processors that this process may use.
    wide: CpuSet,
}

impl Binding {
    /// Lets this thread and its future children use all permitted processors. `None` if this thread was not bound, or
    /// if that is unknown.
    #[must_use]
    pub fn widen() -> Option<Self> {
        let own = Pid::from_raw(0);
        let program = sched_getaffinity(own).ok()?;
        let mut wide = CpuSet::new();
        for cpu in 0..CpuSet::count() {
            wide.set(cpu).ok()?;
        }
        // The kernel removes the processors that this process must not use.
        sched_setaffinity(own, &wide).ok()?;
        let wide = sched_getaffinity(own).ok()?;
        (wide != program).then_some(Self { program, wide })
    }

    /// Lets all threads of a process use all permitted processors.
    pub fn free(&self, pid: i32) {
        for thread in proc::of(pid).thread_ids().into_iter().flatten() {
            // The thread may have ended.
            let _ = sched_setaffinity(Pid::from_raw(thread), &self.wide);
        }
    }
}
