//! The threads of a task other than its main thread: whether one of them can continue.
//!
//! A task is judged by its main thread. If the main thread waits in MPI while another thread computes, the other thread
//! can still send the message that other tasks wait for. So the wait of the main thread proves nothing.

use sdm_debug::probe::{TaskWaits, ThreadWait, WaitFor};
use sdm_debug::reply::TaskStacks;
use sdm_debug::rules::Probes;
use sdm_idset::IdSet;
use sdm_mpi::mpi_name;

use super::motion::SamePlace;
use super::wait::{Wait, WaitKind, place};

/// Maximum number of computing threads that are named for one task.
const COMPUTING_MAX: usize = 8;

/// The tasks that wait in MPI, by the activity of their other threads.
pub(super) struct MpiWaits {
    /// Tasks that can go on only through other tasks.
    pub(super) waiting: IdSet,
    /// Tasks whose main thread waits, while another thread of the task can go on.
    pub(super) acting: IdSet,
    /// Tasks of `waiting` with several threads in MPI. Any of these threads can let the task go on.
    pub(super) beside: IdSet,
}

impl MpiWaits {
    pub(super) fn of(last: Option<&Probes>, still: &[SamePlace], never: &IdSet) -> Self {
        let beside = last.map(OtherThreads::of).unwrap_or_default();
        let of_one = last.map(of_one_thread).unwrap_or_default();
        let in_place = |is: fn(&SamePlace) -> bool| {
            let groups = still.iter().filter(|group| is(group));
            IdSet::union_all(groups.map(|group| &group.tasks)).difference(never)
        };
        let in_mpi = in_place(|group| group.wait.is_mpi());
        let acting = beside.acting.intersection(&in_mpi);
        // A rank whose main thread waits for other threads waits for what these wait for. The waiting
        // functions are not known by name everywhere.
        let for_threads = in_place(|group| group.wait.kind == WaitKind::Lock);
        let parked = in_place(|group| !group.wait.is_mpi()).intersection(&parked(last));
        let for_threads = for_threads.union(&parked).intersection(&beside.in_mpi);
        let waiting = in_mpi.difference(&acting).union(&for_threads);
        Self {
            beside: waiting.intersection(&beside.in_mpi).difference(&of_one),
            waiting,
            acting,
        }
    }
}

/// Moves tasks to the place of another thread, if their main thread waits for other threads and exactly one of these is
/// in MPI.
pub(super) fn by_other_threads(last: Option<&Probes>, still: Vec<SamePlace>) -> Vec<SamePlace> {
    let of_one = last.map(of_one_thread).unwrap_or_default();
    let stacks = last.map(|last| &last.stacks[..]).unwrap_or_default();
    let mut places: Vec<SamePlace> = Vec::new();
    for mut group in still {
        let mut elsewhere = group.tasks.intersection(&of_one);
        if group.wait.is_mpi() {
            elsewhere = IdSet::new();
        }
        group.tasks.subtract(&elsewhere);
        for (tasks, stacks) in stacks {
            let tasks = tasks.intersection(&elsewhere);
            let wait = in_mpi(stacks).filter(|_| !tasks.is_empty());
            let Some(wait) = wait else { continue };
            match places.iter_mut().find(|place| place.wait == wait) {
                Some(place) => place.tasks.union_with(&tasks),
                None => places.push(SamePlace { tasks, wait }),
            }
        }
        if !group.tasks.is_empty() {
            places.push(group);
        }
    }
    places
}

/// Tasks whose main thread waits for other threads, of which exactly one is in an MPI call with known
/// arguments.
fn of_one_thread(last: &Probes) -> IdSet {
    let parked = last.waits.iter().filter(|(_, waits)| {
        let in_mpi = waits
            .call
            .as_ref()
            .and_then(|call| mpi_name(&call.function));
        in_mpi.is_some() && waits.main().is_some_and(WaitFor::is_for_a_thread)
    });
    let parked = IdSet::union_all(parked.map(|(tasks, _)| tasks));
    let alone = last.stacks.iter();
    let alone = alone.filter(|(_, stacks)| in_mpi(stacks).is_some());
    IdSet::union_all(alone.map(|(tasks, _)| tasks)).intersection(&parked)
}

/// The place of the only thread other than the main one that is in an MPI call. None if there is not
/// exactly one.
fn in_mpi(stacks: &TaskStacks) -> Option<Wait> {
    let others = stacks.threads.iter().filter(|thread| !thread.main);
    let mut in_mpi = others.filter_map(|thread| {
        let wait = Wait::of_frames(&thread.frames).filter(Wait::is_mpi)?;
        Some((thread.count, wait))
    });
    let (count, wait) = in_mpi.next()?;
    (count == 1 && in_mpi.next().is_none()).then_some(wait)
}

/// Lines of text, by task, about threads that compute while the main thread of the task waits for threads, as in a
/// barrier of OpenMP.
pub(super) fn computing(last: &Probes) -> Vec<(IdSet, Vec<String>)> {
    let mut found = Vec::new();
    for (tasks, stacks) in &last.stacks {
        let is_lock = Wait::of(stacks).is_some_and(|wait| wait.kind == WaitKind::Lock);
        let tasks = match is_lock {
            true => tasks.clone(),
            false => tasks.intersection(&parked(Some(last))),
        };
        let counted = Counted::of(stacks);
        let acting = counted.acting(last, &tasks);
        let busy = acting.difference(&counted.in_system_calls(last));
        // A function of a library computes if its thread is in no system call.
        let all = [WaitKind::Running, WaitKind::Other];
        for (tasks, kinds) in [(acting.difference(&busy), &all[..1]), (busy, &all)] {
            let others = stacks.threads.iter().filter(|thread| !thread.main);
            let running = others
                .filter_map(|thread| Wait::of_frames(&thread.frames))
                .filter(|wait| kinds.contains(&wait.kind))
                .take(COMPUTING_MAX);
            let line = |wait: Wait| {
                let place = place(&wait.frame);
                format!("another thread of its process computes in {place}")
            };
            let lines: Vec<String> = running.map(line).collect();
            if !tasks.is_empty() && !lines.is_empty() {
                found.push((tasks, lines));
            }
        }
    }
    found
}

/// Tasks with several threads, all of which wait for locks or ends of threads without a time limit. Threads of
/// runtimes do not count.
pub(super) fn among_threads(last: &Probes) -> IdSet {
    let mut among = IdSet::new();
    for (tasks, stacks) in &last.stacks {
        let threads: u32 = stacks.threads.iter().map(|thread| thread.count).sum();
        let all_wait = |waits: &TaskWaits| {
            let is_for_one =
                |wait: &ThreadWait| matches!(wait.what, WaitFor::Lock(_) | WaitFor::Join(_));
            threads > 1
                && waits.threads.len() == threads as usize
                && waits.threads.iter().all(is_for_one)
        };
        let waiting = last.waits.iter().filter(|(_, waits)| all_wait(waits));
        among.union_with(&IdSet::union_all(waiting.map(|(who, _)| who)).intersection(tasks));
    }
    among
}

/// Tasks whose main thread waits for another thread, according to the kernel.
fn parked(last: Option<&Probes>) -> IdSet {
    let waits = last.map(|last| &last.waits[..]).unwrap_or_default();
    let parked = waits.iter();
    let parked = parked.filter(|(_, waits)| waits.main().is_some_and(WaitFor::is_for_a_thread));
    IdSet::union_all(parked.map(|(tasks, _)| tasks))
}

/// The activity of the threads other than the main one, by task.
#[derive(Default)]
struct OtherThreads {
    /// Tasks with a thread that can go on by itself: it computes, sleeps, reads or polls.
    acting: IdSet,
    /// Tasks with other threads in MPI calls, and with no other thread that can go on by itself.
    in_mpi: IdSet,
}

/// Number of threads other than the main one, by activity.
#[derive(Default)]
struct Counted {
    locks: u32,
    in_mpi: u32,
    rest: u32,
}

impl OtherThreads {
    fn of(last: &Probes) -> Self {
        let mut beside = Self::default();
        for (tasks, stacks) in &last.stacks {
            let counted = Counted::of(stacks);
            let acting = counted.acting(last, tasks);
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

    /// The tasks among `tasks` with a thread that can go on by itself. All of them have the thread counts of `self`.
    fn acting(&self, last: &Probes, tasks: &IdSet) -> IdSet {
        if self.rest == 0 {
            return IdSet::new();
        }
        let parked = last.waits.iter();
        let parked = parked.filter(|(_, waits)| !self.goes_on(waits));
        tasks.difference(&IdSet::union_all(parked.map(|(who, _)| who)))
    }

    /// Tasks in which one of the threads counted in `rest` may be in a system call.
    fn in_system_calls(&self, last: &Probes) -> IdSet {
        let all = self.rest + self.locks + self.in_mpi;
        let waits = last.waits.iter().filter(|(_, waits)| {
            let others = waits.threads.iter().filter(|wait| wait.thread != 1);
            others.count() + self.rest as usize > all as usize
        });
        IdSet::union_all(waits.map(|(who, _)| who))
    }

    /// True unless all threads counted in `rest` are known to wait for another thread. The place of these threads is
    /// unknown, so threads in a locking function are counted with those that the kernel reports.
    fn goes_on(&self, waits: &TaskWaits) -> bool {
        let beside = waits.threads.iter().filter(|wait| wait.thread != 1);
        let parked = beside.filter(|wait| wait.what.is_for_a_thread());
        parked.count() < (self.rest + self.locks) as usize
    }
}
