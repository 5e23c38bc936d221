//! The probe: a task's place, waits, arguments, processor time and kernel state, in one reply.
//!
//! Questions to gdb are typed MI commands that name thread and frame, so that gdb's selection does not change;
//! `/proc` provides the rest. A task keeps each probe to compare the next one with.

use sdm_debug::calls::is_file;
use sdm_debug::command::ProbeSpec;
use sdm_debug::fold::{FoldRules, RawThread, fold_task, innermost_user_frame, is_whole};
use sdm_debug::probe::{Call, ProcessState, TaskProbe, TaskWaits, ThreadWait, WaitFor};
use sdm_debug::{Event, Failure, Reply};
use sdm_inspect::kernel;
use sdm_mpi::mpi_name;
use sdm_mpi::symbols::is_of_mpi;

use super::call::{call, polled_call};
use super::frame_states::frame_states;
use super::frames::GdbFrame;
use super::locks::lock;
use super::ranks::window_locks;
use super::return_tracking::{follow, follow_call};
use super::stack::{ReadThread, read_threads};
use super::stack_end::too_deep;
use super::torch::operations;
use super::{variables, world_rank};
use crate::gdb::Gdb;
use crate::state::last_probe::{FrameState, Probed};
use crate::state::return_tracking::{Followed, Returns};

/// A thread counts as starved if it has used less processor time than this since the previous probe, in nanoseconds.
/// Stopping and resuming alone take about as much.
const STARVED_NS: u64 = 200_000;
/// Maximum number of threads of one task whose waits are examined.
const THREADS_MAX: usize = 64;
/// Maximum number of threads, other than the main one, whose MPI calls are compared.
const BESIDE_MAX: usize = 16;

/// Answers a probe. For a running task only the kernel is asked, not gdb.
pub(crate) async fn probe(gdb: &Gdb, spec: ProbeSpec) -> Result<Reply, Failure> {
    let (pid, stopped) = {
        let state = gdb.get();
        (state.pid(), state.activity.is_stopped())
    };
    let mut last = gdb.edit().probed.take().unwrap_or_default();
    let followed = std::mem::take(&mut last.followed);
    let compared = Some(&last).filter(|last| spec.compare && last.is_whole);
    let cpu_ms = pid.and_then(|pid| gdb.host().cpu_ms(pid));
    let since = Some(&last).filter(|_| spec.compare);
    let spent = |before: &Probed| cpu_ms?.checked_sub(before.cpu_ms?);
    let process = pid.and_then(|pid| gdb.host().process_state(pid));
    let mut probe = TaskProbe {
        cpu_ms: since.and_then(spent),
        process: process.map(|(letter, wait_channel)| ProcessState {
            letter,
            wait_channel,
        }),
        ..TaskProbe::default()
    };
    let mut now = if stopped {
        let selected = Selected::of(gdb).await?;
        let before = PriorProbe {
            last: &last,
            compared,
            followed,
        };
        let now = look(gdb, spec, &mut probe, before).await?;
        drop(selected);
        now
    } else {
        Probed {
            followed,
            ..last.clone()
        }
    };
    now.cpu_ms = cpu_ms;
    gdb.edit().probed = Some(now);
    Ok(Reply::Probe(Box::new(probe)))
}

/// The thread and frame selected in gdb, which drop selects again. Up to gdb 12 a command that names a thread changes
/// the selection.
struct Selected {
    gdb: Gdb,
    /// The commands that restore the selection; none in a gdb of several tasks, where the selection is only in the
    /// driver's state.
    lines: Vec<String>,
}

impl Selected {
    async fn of(gdb: &Gdb) -> Result<Self, Failure> {
        let mut lines = Vec::new();
        if gdb.get().origin.scope().is_none() {
            let info = gdb.mi("-thread-info").await?;
            let frame = gdb.mi("-stack-info-frame").await?;
            let level = frame.tuple("frame").and_then(|frame| frame.number("level"));
            let current = info.number::<u32>("current-thread-id");
            if let Some((thread, level)) = current.zip(level) {
                let level: u32 = level;
                lines.push(format!("-thread-select {thread}"));
                lines.push(format!("-stack-select-frame {level}"));
            }
        }
        Ok(Self {
            gdb: gdb.clone(),
            lines,
        })
    }
}

impl Drop for Selected {
    fn drop(&mut self) {
        for line in &self.lines {
            self.gdb.post(line);
        }
    }
}

/// Earlier data with which a probe is compared.
struct PriorProbe<'a> {
    /// The last probe.
    last: &'a Probed,
    /// The last probe, if this one is to be compared with it.
    compared: Option<&'a Probed>,
    followed: Followed,
}

/// Probes a stopped task. If its main thread's stack is incomplete, the last complete probe is kept for the next
/// comparison.
async fn look(
    gdb: &Gdb,
    spec: ProbeSpec,
    probe: &mut TaskProbe,
    before: PriorProbe<'_>,
) -> Result<Probed, Failure> {
    let (threads, beyond) = read_threads(gdb).await?;
    let config = gdb.get().config.clone();
    let fold = &config.fold;
    let raw: Vec<RawThread> = threads.iter().map(|thread| thread.raw.clone()).collect();
    let main = threads.iter().find(|thread| thread.raw.main);
    let PriorProbe {
        last,
        compared,
        followed,
    } = before;
    let mut now = last.clone();
    let whole = main.or(threads.first()).filter(|thread| {
        let has_named_end = is_whole(&thread.raw.frames, fold);
        let outermost = thread.frames.last();
        // In a stack without names, the same outermost address in two probes shows that both stacks were complete. A
        // stack that ends at a function with a name because gdb cannot unwind it is cut, however often it ends there.
        // So is each other stack of a thread that had a named end.
        let is_named = outermost.is_some_and(|frame| frame.function().is_some());
        let is_cut = last.has_named_end || is_named && thread.raw.stopped.is_some();
        // Of a deeper stack the innermost frames are known in every sample.
        let is_deep = thread.raw.stopped.as_ref() == Some(&too_deep());
        let address = outermost.map(GdbFrame::address);
        let same_end = !is_cut && address.is_some() && last.outermost == address;
        now.outermost = address;
        now.has_named_end |= has_named_end;
        same_end || has_named_end || is_deep
    });
    let Some(thread) = whole else {
        probe.partial = true;
        now.followed = followed;
        return Ok(now);
    };
    let mut stacks = fold_task(&raw, fold, false);
    stacks.helpers += beyond;
    probe.stacks = Some(stacks);
    if let Err(failure) = note_states(gdb, (&threads, thread), fold, &mut now).await {
        tell_missing(gdb, "its variables", failure)?;
        now.followed = followed;
        return Ok(now);
    }
    now.thread = thread.kernel_id;
    now.is_whole = true;
    note_time(gdb, thread, probe, compared, &mut now);
    now.exchange = exchange(gdb, &threads);
    if let Some(before) = compared {
        note_changes(probe, (before, &now), &followed);
    }
    drop(followed);
    if spec.waits {
        // This is the last probe.
        let mut found = TaskWaits::default();
        if let Err(failure) = waits(gdb, &threads, &mut found).await {
            tell_missing(
                gdb,
                "the calls in which the threads of this process wait, with their arguments,",
                failure,
            )?;
        }
        probe.waits = Some(found);
        world_rank::check(gdb, thread.id).await;
    } else {
        let others = threads.iter().filter(|one| one.id != thread.id);
        let calls = others.filter_map(|one| follow_call(gdb, one, fold));
        now.followed = Followed {
            main: follow(gdb, thread, &now.frames, fold),
            beside: calls.take(BESIDE_MAX).map(Returns::of_call).collect(),
        };
    }
    Ok(now)
}

/// Reads the states of the frames of the judged thread, and of other threads in MPI calls.
async fn note_states(
    gdb: &Gdb,
    (threads, judged): (&[ReadThread], &ReadThread),
    fold: &FoldRules,
    now: &mut Probed,
) -> Result<(), Failure> {
    let frames = frame_states(gdb, judged, fold).await?;
    now.beside = beside(gdb, threads, judged.id, fold).await?;
    now.frames = frames;
    Ok(())
}

/// Notes the changes since the last complete probe.
fn note_changes(probe: &mut TaskProbe, (before, now): (&Probed, &Probed), followed: &Followed) {
    let compared = now.since(before, followed);
    probe.inner_changed = Some(compared.inner_changed);
    probe.outer_changed = Some(compared.outer_changed);
    probe.unfollowed = followed.main.refused && !compared.inner_changed;
    probe.within = compared.within;
    let exchange = now.exchange.zip(before.exchange);
    probe.exchanged =
        !compared.inner_changed && exchange.is_some_and(|(now, before)| now != before);
}

/// Reports the parts that a probe lacks because its budget was used up. Any other failure is returned.
fn tell_missing(gdb: &Gdb, what: &str, failure: Failure) -> Result<(), Failure> {
    if !variables::is_missing(&failure) {
        return Err(failure);
    }
    let text = format!("{what} could not all be read: {}", failure.text);
    gdb.tell(Event::Notice { text });
    Ok(())
}

/// Fingerprint of a task's data exchange; `None` if none of its threads is in MPI, or if the data cannot be read.
fn exchange(gdb: &Gdb, threads: &[ReadThread]) -> Option<u128> {
    let frames = threads.iter().flat_map(|thread| &thread.raw.frames);
    let mut functions = frames.flat_map(|frame| &frame.function);
    let pid = gdb.get().pid()?;
    functions
        .any(|function| mpi_name(function).is_some())
        .then(|| gdb.host().exchange(pid))
        .flatten()
}

/// The frames of up to `BESIDE_MAX` other threads that are in MPI calls, by kernel thread id. Any of these threads
/// can be the one that makes progress.
async fn beside(
    gdb: &Gdb,
    threads: &[ReadThread],
    judged: u32,
    fold: &FoldRules,
) -> Result<Vec<(Option<i32>, Vec<FrameState>)>, Failure> {
    let in_mpi = |thread: &&ReadThread| {
        let user = innermost_user_frame(&thread.raw.frames, fold);
        let inside = user.and_then(|user| user.inside);
        thread.id != judged && inside.is_some_and(|call| mpi_name(&call).is_some())
    };
    let mut beside = Vec::new();
    for thread in threads.iter().filter(in_mpi).take(BESIDE_MAX) {
        let frames = frame_states(gdb, thread, fold).await?;
        beside.push((thread.kernel_id, frames));
    }
    Ok(beside)
}

/// Determines whether the main thread lacked a processor since the previous probe: it has run too little, and does not
/// wait in a system call.
fn note_time(
    gdb: &Gdb,
    thread: &ReadThread,
    probe: &mut TaskProbe,
    before: Option<&Probed>,
    now: &mut Probed,
) {
    let (Some(pid), Some(id)) = (gdb.get().pid(), thread.kernel_id) else {
        return;
    };
    now.ran_ns = gdb.host().ran_ns(pid, id);
    let ran = |before: &Probed| now.ran_ns?.checked_sub(before.ran_ns?);
    let idle = before.and_then(ran).is_some_and(|ns| ns < STARVED_NS);
    let waits = match gdb.host().system_call(pid, id) {
        None | Some((-1, _)) => false,
        Some((number, _)) => kernel::name_of(number).as_deref() != Some("sched_yield"),
    };
    probe.starved = idle && !waits;
}

/// Adds the waits of the threads to `waits`. After a failure it has the waits that were found before.
async fn waits(gdb: &Gdb, threads: &[ReadThread], waits: &mut TaskWaits) -> Result<(), Failure> {
    let config = gdb.get().config.clone();
    let fold = &config.fold;
    for thread in threads.iter().take(THREADS_MAX) {
        let Some(user) = innermost_user_frame(&thread.raw.frames, fold) else {
            continue;
        };
        if thread.raw.main
            && let Some(function) = &user.inside
        {
            waits.call = without_arguments(thread, function, user.index);
            waits.call = match polled_call(gdb, thread, function, user.index).await? {
                Some(polled) => Some(polled),
                None => call(gdb, thread, function, user.index).await?,
            };
            let call = waits.call.iter_mut();
            call.for_each(|call| call.arguments.extend(operations(call, threads)));
        }
        let lock = match super::python::lock(thread, threads, user.index) {
            Some(lock) => Some(WaitFor::Lock(lock)),
            None => lock(gdb, thread, threads, user.index).await?,
        };
        let what = match lock {
            Some(lock) => Some(lock),
            None => match user.inside.as_deref().and_then(mpi_name) {
                Some(operation) if operation.starts_with("file_") => at_files(gdb, thread),
                // MPI polls, so its current system call is meaningless.
                Some(_) => None,
                None => outside(gdb, thread),
            },
        };
        let number = thread.number;
        waits.threads.extend(what.map(|what| ThreadWait {
            thread: number,
            what,
        }));
    }
    // Only threads of the process can end these waits, and none of them can go on.
    if is_closed(gdb, threads, waits) {
        tell_closed(waits);
    }
    if let Some(thread) = threads.first() {
        let (locks, epochs) = window_locks(gdb, thread.id).await?;
        waits.window_locks = locks;
        let call = waits.call.iter_mut();
        call.for_each(|call| call.arguments.extend(epochs.clone()));
    }
    if waits.main().is_some_and(WaitFor::is_for_a_thread) {
        let other = call_of_another(gdb, threads).await?;
        waits.call = other.or(waits.call.take());
    }
    Ok(())
}

/// True if each thread of the process waits for another one without a time limit. Threads of an MPI library do not
/// count: they wake no thread of the program.
fn is_closed(gdb: &Gdb, threads: &[ReadThread], waits: &TaskWaits) -> bool {
    let config = gdb.get().config.clone();
    let is_user = |thread: &ReadThread| {
        let user = innermost_user_frame(&thread.raw.frames, &config.fold);
        user.is_some()
    };
    let is_of_library = |thread: &ReadThread| {
        let frames = &thread.raw.frames;
        frames.iter().any(|frame| is_of_mpi(&frame.module))
    };
    let waits_for_thread = |thread: &ReadThread| {
        let mut waits = waits.threads.iter();
        let known = waits.find(|wait| wait.thread == thread.number);
        known.is_some_and(|wait| wait.what.is_for_a_thread())
    };
    let is_stuck = |thread: &ReadThread| match is_user(thread) {
        true => waits_for_thread(thread) && waits_for_own(gdb, thread),
        false => is_of_library(thread) || waits_for_own(gdb, thread),
    };
    threads.len() <= THREADS_MAX && threads.iter().all(is_stuck)
}

/// A call of which only the place is known; `None` without such a frame.
fn without_arguments(thread: &ReadThread, function: &str, index: usize) -> Option<Call> {
    let user = thread.frames.get(index)?;
    Some(Call {
        function: function.to_owned(),
        place: user.stack_frame(),
        source: String::new(),
        arguments: Vec::new(),
    })
}

/// Marks futex waits as endless in a process of which every thread waits. Without a futex wait, the main thread gets a
/// second wait if the holder of a lock is not known. A lock keeps its name.
fn tell_closed(waits: &mut TaskWaits) {
    let is_futex = |what: &WaitFor| matches!(what, WaitFor::SystemCall(name) if name == "futex");
    let is_open = |what: &WaitFor| match what {
        WaitFor::Lock(lock) => lock.holder.is_none() && !lock.orphaned,
        what => is_futex(what),
    };
    if !waits.threads.iter().any(|wait| is_open(&wait.what)) {
        return;
    }
    for wait in waits.threads.iter_mut().filter(|wait| is_futex(&wait.what)) {
        wait.what = WaitFor::Nobody;
    }
    if !waits
        .threads
        .iter()
        .any(|wait| wait.what == WaitFor::Nobody)
    {
        waits.threads.push(ThreadWait {
            thread: 1,
            what: WaitFor::Nobody,
        });
    }
}

/// True for a thread in a futex wait without a time limit, which only threads of its own process can end.
fn waits_for_own(gdb: &Gdb, thread: &ReadThread) -> bool {
    let Some((pid, id)) = gdb.get().pid().zip(thread.kernel_id) else {
        return false;
    };
    let call = gdb.host().system_call(pid, id);
    call.is_some_and(|call| {
        let word = kernel::futex_wait(call);
        kernel::waits_for_own(call) || word.is_some_and(|(at, _)| !gdb.host().is_shared(pid, at))
    })
}

/// The MPI call of the only other thread that is in one; `None` if there are several such threads, or none.
async fn call_of_another(gdb: &Gdb, threads: &[ReadThread]) -> Result<Option<Call>, Failure> {
    let config = gdb.get().config.clone();
    let others = threads.iter().filter(|thread| !thread.raw.main);
    let mut in_mpi = others.filter_map(|thread| {
        let user = innermost_user_frame(&thread.raw.frames, &config.fold)?;
        let function = user.inside.filter(|name| mpi_name(name).is_some())?;
        Some((thread, function, user.index))
    });
    let Some((thread, function, index)) = in_mpi.next().filter(|_| in_mpi.next().is_none()) else {
        return Ok(None);
    };
    call(gdb, thread, &function, index).await
}

/// The wait of a thread that is in an MPI file operation: on a file, or polling for other ranks. `None` if its system
/// call is not known.
fn at_files(gdb: &Gdb, thread: &ReadThread) -> Option<WaitFor> {
    let (pid, id) = (gdb.get().pid()?, thread.kernel_id?);
    let (number, _) = gdb.host().system_call(pid, id)?;
    match kernel::name_of(number) {
        Some(call) if is_file(&call) => outside(gdb, thread),
        Some(_) => Some(WaitFor::Polling),
        None => (number < 0).then_some(WaitFor::Polling),
    }
}

/// The wait that the kernel reports for a thread: its system call, or for the main thread the resource that it waits
/// for, if known. `None` if the kernel reports none.
fn outside(gdb: &Gdb, thread: &ReadThread) -> Option<WaitFor> {
    let (pid, id) = (gdb.get().pid()?, thread.kernel_id?);
    let resource = match thread.raw.main {
        true => gdb.host().resource(pid, id),
        false => None,
    };
    let call = || kernel::name_with(gdb.host().system_call(pid, id)?);
    resource
        .map(WaitFor::Resource)
        .or_else(|| call().map(WaitFor::SystemCall))
}
