//! Attaches to a running process.

use std::time::Duration;

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::command::AttachSpec;
use sdm_debug::event::Phase;
use sdm_debug::reply::StopReason;
use sdm_debug::{Event, Failure, FailureCode, Reply, TaskState};

use super::end::{leave_process, not_begun};
use super::stop::place_stop;
use crate::action::Action;
use crate::gdb::Gdb;
use crate::state::State;
use crate::state::signals::Sigcont;
use crate::text::base_name;

/// Time that the process has to stop after gdb has reported the attach.
const STOP_WAIT: Duration = Duration::from_secs(10);
/// Number of checks whether the kernel lets the process stop, and the pause before each check.
const KERNEL_LOOKS: u32 = 8;
const KERNEL_WAIT: Duration = Duration::from_millis(250);

/// A process to attach to.
#[derive(Clone, Copy, Debug)]
pub struct AttachTarget {
    /// Pid of the process.
    pub(crate) pid: i32,
    /// True if neither memory nor code of the process may be changed.
    pub(crate) read_only: bool,
    /// True if the process's launcher has stopped it for a debugger.
    pub(crate) held: bool,
}

impl AttachTarget {
    /// The process with this pid, with the settings of an attach.
    pub fn new(pid: i32, spec: &AttachSpec) -> Self {
        let (read_only, held) = (spec.read_only, spec.held);
        Self {
            pid,
            read_only,
            held,
        }
    }
}

pub(crate) async fn attach(gdb: Gdb, id: CommandId, process: AttachTarget) {
    let result = match ready(&gdb, true).await {
        Ok(()) => attach_to(&gdb, process).await,
        Err(failure) => Err(failure),
    };
    if result.is_err() {
        not_begun(&gdb);
    }
    gdb.answer(id, result);
}

/// Like `attach`, in a gdb that holds other tasks too; `first` if this is the first task of the gdb.
pub(crate) async fn attach_among(gdb: Gdb, id: CommandId, process: AttachTarget, first: bool) {
    let added = match add_inferior(&gdb).await {
        Ok(()) => ready(&gdb, first).await,
        Err(failure) => Err(failure),
    };
    let apart = gdb.get().lacks.is_before_12;
    if apart {
        not_begun(&gdb);
        gdb.edit().attach_apart(id);
        return;
    }
    let result = match added {
        Ok(()) => attach_to(&gdb, process).await,
        Err(failure) => Err(failure),
    };
    if result.is_err() {
        not_begun(&gdb);
    }
    gdb.answer(id, result);
}

/// Abandons an attach. If gdb has begun to attach, the attach continues and is followed by a detach. An interrupted
/// attach would leave the process stopped, or have it killed.
pub(crate) async fn give_up(gdb: Gdb) {
    gdb.until(|state| (!state.commands.is_clearing()).then_some(()))
        .await;
    if gdb.get().pid().is_some() {
        gdb.until_within(STOP_WAIT, is_held_or_over).await;
        gdb.edit().stops.clear();
        // If this fails, gdb detaches at its own end, which follows.
        let _ = leave_process(&gdb).await;
    }
    not_begun(&gdb);
}

/// The reason why the kernel does not let the process be stopped; `None` if it does. A thread of such a process waits
/// uninterruptibly for a device, a file server or a child of `vfork` at each check. gdb would wait for it without
/// end, and answer for none of its other processes.
async fn kept_by_kernel(gdb: &Gdb, pid: i32) -> Option<String> {
    let threads = gdb.host().threads(pid);
    let waiting = threads.iter().filter(|(_, it)| it.state == 'D');
    let states = waiting.map(|(id, _)| (*id, gdb.host().process_state(*id)));
    let mut waiting: Vec<_> = states.collect();
    for _ in 0..KERNEL_LOOKS {
        let is_kept = |(id, state): &(i32, Option<(char, String)>)| {
            let now = gdb.host().process_state(*id);
            now.as_ref().is_some_and(|(letter, _)| *letter == 'D') && now == *state
        };
        waiting.retain(is_kept);
        if waiting.is_empty() {
            return None;
        }
        gdb.until_within(KERNEL_WAIT, |_| None::<()>).await;
    }
    let (id, (_, channel)) = waiting.into_iter().find_map(|(id, it)| Some((id, it?)))?;
    let what = match id == pid {
        true => "the process",
        false => "a thread of the process",
    };
    let within = match channel.as_str() {
        "" | "0" => String::new(),
        _ => format!(", in {channel}"),
    };
    Some(format!(
        "{what} is in an uninterruptible wait in the kernel (state D{within}) and cannot be stopped"
    ))
}

async fn add_inferior(gdb: &Gdb) -> Result<(), Failure> {
    let results = gdb.mi("-add-inferior").await?;
    let group = results.text("inferior").unwrap_or_default();
    if let Some(scope) = gdb.edit().origin.scope_mut() {
        scope.set_group(group);
    }
    Ok(())
}

/// Detects gdb's features, and carries out the user's `handle` lines. With `prepare` it sends the initial settings too.
async fn ready(gdb: &Gdb, prepare: bool) -> Result<(), Failure> {
    let answers = match prepare {
        true => super::start::prepare(gdb),
        false => Vec::new(),
    };
    super::registers::look(gdb).await?;
    for answer in answers {
        answer.await?;
    }
    super::start::carry_out_handles(gdb).await;
    Ok(())
}

/// Reports that gdb has no symbols of a program whose file was removed or replaced. gdb would open the path again, even
/// by `/proc/PID/exe`, and another user may have put a file there.
pub(super) fn tell_lost_program(gdb: &Gdb) {
    let text = "the program's file was removed or replaced after its start, so gdb has no symbols: stacks have addresses only and may be wrong; after `detach`, `sdm stacks PID` shows the functions without gdb";
    gdb.tell(Event::Notice {
        text: text.to_owned(),
    });
}

async fn attach_to(gdb: &Gdb, process: AttachTarget) -> Result<Reply, Failure> {
    let pid = process.pid;
    // These texts do not name the task, so that equal failures of several tasks are merged.
    let failed = |text: &str| Failure::new(FailureCode::AttachFailed, text);
    let is_gone = || {
        let state = gdb.host().process_state(pid);
        state.is_none_or(|(letter, _)| matches!(letter, 'Z' | 'X'))
    };
    let gone = || failed("the process no longer exists");
    if is_gone() {
        return Err(gone());
    }
    if let Some(program) = gdb.host().program(pid) {
        let name = program.to_string_lossy();
        gdb.edit().program_name = base_name(name.trim_end_matches(" (deleted)")).to_owned();
    }
    // Otherwise gdb would enter the container's mount namespace to read its files, which only root may do.
    let root = gdb.host().root(pid);
    if let Some(root) = &root {
        gdb.mi(format!("-gdb-set sysroot {root}")).await?;
    }
    if let Some(text) = kept_by_kernel(gdb, pid).await {
        return Err(failed(&text));
    }
    gdb.tell(Event::Progress(Phase::Gdb));
    let wait = gdb.get().config.symbols_wait;
    if root.is_none() && gdb.host().has_lost_program(pid) {
        tell_lost_program(gdb);
    }
    let answer = gdb.send_within(format!("-target-attach {pid}"), wait).await;
    if let Err(failure) = answer {
        if is_gone() {
            return Err(gone());
        }
        if failure.code == FailureCode::GdbDead {
            return Err(failure);
        }
        let text = failure.text.trim_end_matches('.');
        return Err(failed(&format!("gdb cannot attach to the process: {text}")).with_hint(
            "the process must be yours, not traced already, and allowed by /proc/sys/kernel/yama/ptrace_scope; or run sdm as root; `sdm doctor PID` checks this (target, attach)",
        ));
    }
    gdb.tell(Event::Progress(Phase::Symbols));
    // gdb reads the symbols of every process to which it was told to attach.
    gdb.until_told(STOP_WAIT, wait, is_held_or_over).await;
    // No other operation may handle this stop. It stays in the queue until its place is known, so that an operation
    // that abandons the attach before does not wait for it.
    let results = gdb.get().stops.front().map(|stop| stop.results.clone());
    let Some(results) = results else {
        let gone = gdb.get().why_not_live();
        return Err(gone.unwrap_or_else(|| failed("the process did not stop after gdb attached")));
    };
    let stop = place_stop(gdb, StopReason::Attached, &results).await;
    gdb.edit().stops.pop_front();
    super::uninserted_breakpoints::now(gdb);
    // The process may have been killed meanwhile.
    let gone = gdb.get().why_not_live();
    match gone {
        Some(failure) => Err(failure),
        None => {
            gdb.edit().set_task(TaskState::Stopped);
            tracing::info!(pid, "attached");
            if process.held {
                wake(gdb, pid);
            }
            Ok(Reply::Stopped(stop))
        }
    }
}

/// `Some` once gdb has reported a stop of the process, or its end.
pub(super) fn is_held_or_over(state: &State) -> Option<()> {
    let over = !state.activity.is_live();
    (over || !state.stops.is_empty()).then_some(())
}

/// Sends SIGCONT to a process that a SIGSTOP had stopped before the attach, so that the process runs on after the
/// detach. Meanwhile gdb keeps it stopped.
pub(super) fn wake(gdb: &Gdb, pid: i32) {
    let mut state = gdb.edit();
    state.handling.sigcont = Sigcont::Unsaid;
    let signal = Signal::SIGCONT;
    state
        .actions
        .push_back(Action::SignalProgram { pid, signal });
}
