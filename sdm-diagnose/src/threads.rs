//! The threads beside the one that is judged: whether any of them can do something for its task.
//!
//! A task is judged by its main thread. Where that waits in MPI and another thread computes, the task can still send
//! what the others wait for, so nothing is proved by its wait.

use sdm_debug::probe::{TaskWaits, WaitFor};
use sdm_debug::reply::TaskStacks;
use sdm_debug::rules::Probes;
use sdm_idset::IdSet;

use super::seen::SamePlace;
use super::wait::{Wait, WaitKind};

/// Who waits in MPI.
pub(super) struct Waiting {
    /// They can go on only by what others do.
    pub(super) waiting: IdSet,
    /// Their main threads wait, while another thread of theirs can go on.
    pub(super) acting: IdSet,
    /// Those of the waiting that have several threads in MPI: any of them can be what the task goes on by.
    pub(super) beside: IdSet,
}

impl Waiting {
    pub(super) fn of(last: Option<&Probes>, still: &[SamePlace], never: &IdSet) -> Self {
        let beside = last.map(Beside::of).unwrap_or_default();
        let in_place = |is: fn(&SamePlace) -> bool| {
            let groups = still.iter().filter(|group| is(group));
            IdSet::union_all(groups.map(|group| &group.tasks)).difference(never)
        };
        let in_mpi = in_place(|group| group.wait.is_mpi());
        let acting = beside.acting.intersection(&in_mpi);
        // Whose main thread waits for other threads waits for what these wait for. The functions that wait so have no
        // names everywhere.
        let for_threads = in_place(|group| group.wait.kind == WaitKind::Lock);
        let parked = in_place(|group| !group.wait.is_mpi()).intersection(&parked(last));
        let for_threads = for_threads.union(&parked).intersection(&beside.in_mpi);
        let waiting = in_mpi.difference(&acting).union(&for_threads);
        Self {
            beside: waiting.intersection(&beside.in_mpi),
            waiting,
            acting,
        }
    }
}

/// Whose main thread the kernel has in a wait for another thread.
fn parked(last: Option<&Probes>) -> IdSet {
    let waits = last.map(|last| &last.waits[..]).unwrap_or_default();
    let parked = waits.iter();
    let parked = parked.filter(|(_, waits)| waits.main().is_some_and(is_for_a_thread));
    IdSet::union_all(parked.map(|(tasks, _)| tasks))
}

/// True for a wait for another thread of the process.
pub(super) fn is_for_a_thread(what: &WaitFor) -> bool {
    match what {
        WaitFor::Lock(_) | WaitFor::Join(_) => true,
        WaitFor::SystemCall(name) => name == "futex",
        WaitFor::Resource(_) | WaitFor::Polling => false,
    }
}

/// What the threads beside the main one do, by tasks.
#[derive(Default)]
struct Beside {
    /// Another thread can go on by itself: it computes, sleeps, reads or polls.
    acting: IdSet,
    /// Others are in calls of MPI's, and none can go on by itself.
    in_mpi: IdSet,
}

/// The threads beside the main one, counted by what they do.
#[derive(Default)]
struct Counted {
    locks: u32,
    in_mpi: u32,
    rest: u32,
}

impl Beside {
    fn of(last: &Probes) -> Self {
        let mut beside = Self::default();
        for (tasks, stacks) in &last.stacks {
            let counted = Counted::of(stacks);
            let mut acting = IdSet::new();
            if counted.rest > 0 {
                let parked = last.waits.iter();
                let parked = parked.filter(|(_, waits)| !counted.goes_on(waits));
                let parked = IdSet::union_all(parked.map(|(who, _)| who));
                acting = tasks.difference(&parked);
            }
            if counted.in_mpi > 0 {
                beside.in_mpi.union_with(&tasks.difference(&acting));
            }
            beside.acting.union_with(&acting);
        }
        beside
    }
}

impl Counted {
    fn of(stacks: &TaskStacks) -> Self {
        let mut counted = Self::default();
        for thread in &stacks.threads {
            let others = thread.count.saturating_sub(thread.main.into());
            let of_kind = match Wait::of_frames(&thread.frames).map(|wait| wait.kind) {
                Some(WaitKind::Lock) => &mut counted.locks,
                Some(WaitKind::Collective | WaitKind::Message | WaitKind::Mpi) => {
                    &mut counted.in_mpi
                }
                _ => &mut counted.rest,
            };
            *of_kind += others;
        }
        counted
    }

    /// True where not all of the rest are known to wait for another thread. Which thread stands where is not said,
    /// so that those in a function that locks are taken to be among those that the kernel has in such a wait.
    fn goes_on(&self, waits: &TaskWaits) -> bool {
        let beside = waits.threads.iter().filter(|wait| wait.thread != 1);
        let parked = beside.filter(|wait| is_for_a_thread(&wait.what));
        parked.count() < (self.rest + self.locks) as usize
    }
}
