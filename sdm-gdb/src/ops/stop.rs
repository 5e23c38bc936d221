//! Decides the outcome of a stop: answer the open run, report to the front-end, or resume the program.
//!
//! For a reported stop the innermost frame of the user's code is selected and shown.

mod hits;
mod unreasoned;

use sdm_debug::command::{PointSpec, StepKind};
use sdm_debug::fold::innermost_user_frame;
use sdm_debug::quotes::bare;
use sdm_debug::reply::{CatchHit, Stop, StopReason, WatchHit};
use sdm_debug::{Event, Reply, TaskState};

use unreasoned::{reason_without_word, removed_watches};

use super::breakpoints::{caught, delete_ended};
use super::broken_steps::{go_on_or_end, stepped, stepped_out};
use super::current_signal::current_signal;
use super::frames::GdbFrame;
use super::internal::insert_internal;
use super::mpi_error::LastCall;
use super::python;
use super::run::resume_silently;
use super::stack::{list_frames, thread_select};
use crate::action::Action;
use crate::gdb::Gdb;
use crate::state::StopRecord;
use crate::state::activity::RunKind;
use crate::state::breakpoints::{Owner, watch_number};
use crate::state::internal::{Finder, Internal};
use crate::text::{console_line, last_text, reasons, value};
use sdm_mi::Results;

/// The outcome of a stop.
enum Verdict {
    /// Report the stop to the front-end.
    Report(StopReason),
    /// Resume the program as before: nothing needs the stop.
    GoOn,
    /// `finish` is complete; gdb may give a returned value.
    Returned,
    /// Open MPI is about to abort, for an error whose class is still to be read.
    FatalError,
    /// MPICH has found an error, which may be fatal.
    MpichError,
    /// The program is about to end by a call of this function, whose argument is still to be read.
    Ends(LastCall),
    /// A step has ended; more may follow.
    Stepped,
    /// A step that began inside a runtime or a call has left it. It continues from the source line that was shown to
    /// the user. The fields are the kind and the number of steps.
    SteppedOut(StepKind, u32),
    /// The catchpoint with this number has caught a signal that gdb does not name.
    CaughtSignal(u32),
    /// The program has received a signal that gdb does not name.
    UnnamedSignal,
    /// LeakSanitizer may be about to check for leaks.
    LeakCheck,
    /// Valgrind has stopped the program. `sent` is true if SDM has sent a signal, which may be the only cause. `asked`
    /// is true if a command waits for a stop.
    ByValgrind { sent: bool, asked: bool },
    /// The program under Valgrind is about to fork; `has` is true if it has forked.
    Forks { has: bool },
    /// A sanitizer, or the library that checks the use of MPI, reports an error.
    Found(Finder),
    /// The program is about to call `MPI_Comm_rank` for the first time.
    World,
    /// A start has reached a first instruction, mostly the dynamic linker's. It continues to the program's entry
    /// point, or until an exec wrapper has executed the program.
    ToEntry,
}

/// Handles a stop: answers the open run, reports the stop, or resumes the program.
pub(crate) async fn handle_stop(gdb: Gdb, mut stop: StopRecord) {
    if gdb.get().activity.is_executing() || !gdb.get().activity.is_live() {
        // The program was already resumed, for example by a console command of the user.
        return;
    }
    let verdict = match hits::outcome_of(&gdb, &stop).await {
        hits::Hit::Stops(owner) => {
            stop.owner = owner;
            judge(&gdb, &stop)
        }
        hits::Hit::Passed => Verdict::GoOn,
        hits::Hit::Resumed => return,
    };
    let own;
    let mut record = &stop.results;
    if stop.other_ended {
        own = select_own(&gdb).await;
        record = &own;
    }
    let Some(reason) = carry_through(&gdb, verdict, record).await else {
        return;
    };
    delete_ended(&gdb).await;
    insert_internal(&gdb).await;
    look_for_libraries(&gdb).await;
    super::world_rank::check(&gdb, thread_of(record)).await;
    let mut stop = place_stop(&gdb, reason, record).await;
    if super::check_errors::is_suppressed(&gdb, &stop).await {
        match gone_on(&gdb, record).await {
            Some(reason) => stop = place_stop(&gdb, reason, record).await,
            None => return,
        }
    }
    report(&gdb, stop);
}

/// Carries out a verdict, and returns the reason to report; `None` if the program continues.
async fn carry_through(gdb: &Gdb, verdict: Verdict, record: &Results) -> Option<StopReason> {
    Some(match verdict {
        Verdict::Report(reason) => reason,
        Verdict::GoOn => return gone_on(gdb, record).await,
        Verdict::Stepped => return stepped(gdb).await,
        Verdict::SteppedOut(step, count) => return stepped_out(gdb, step, count).await,
        Verdict::Returned => StopReason::FunctionFinished {
            value: super::values::returned(gdb, record).await,
        },
        Verdict::CaughtSignal(number) => {
            let name = current_signal(gdb).await.unwrap_or_else(|| "?".to_owned());
            let hit = CatchHit::Signal { name };
            StopReason::Catch { number, hit }
        }
        Verdict::LeakCheck => {
            super::leaks::prepare(gdb).await;
            return gone_on(gdb, record).await;
        }
        Verdict::FatalError => StopReason::Internal {
            what: super::mpi_error::aborting(gdb).await,
        },
        Verdict::MpichError => match super::mpi_error::of_mpich(gdb).await {
            Some(what) => StopReason::Internal { what },
            None => return gone_on(gdb, record).await,
        },
        Verdict::Ends(call) => StopReason::Internal {
            what: super::mpi_error::ending(gdb, call).await,
        },
        Verdict::World => {
            super::world_rank::reached(gdb, thread_of(record)).await;
            return gone_on(gdb, record).await;
        }
        Verdict::Forks { has } => {
            super::valgrind::fork(gdb, has).await;
            return gone_on(gdb, record).await;
        }
        Verdict::ByValgrind { sent, asked } => match super::valgrind::read(gdb, sent).await {
            Some(finding) => StopReason::Finding(Box::new(finding)),
            None if sent && asked => StopReason::Interrupted,
            None => return gone_on(gdb, record).await,
        },
        Verdict::Found(finder) => match super::findings::read(gdb, finder).await {
            Some(finding) => StopReason::Finding(Box::new(finding)),
            None => return gone_on(gdb, record).await,
        },
        Verdict::UnnamedSignal => StopReason::Signal {
            name: current_signal(gdb).await.unwrap_or_else(|| "?".to_owned()),
            meaning: "gdb does not know this signal, so it cannot be passed on".to_owned(),
        },
        Verdict::ToEntry if gdb.get().origin.wrapped().is_some() => {
            return super::exec_wrapper::go_on(gdb).await;
        }
        Verdict::ToEntry => return go_to_entry(gdb, record).await,
    })
}

/// gdb's number of the stopped thread.
fn thread_of(record: &Results) -> u32 {
    let number = last_text(record, "thread-id");
    number.and_then(|it| it.parse().ok()).unwrap_or(1)
}

/// Resumes the program as before. Returns the reason of the stop if the run has ended here, or if the program cannot be
/// resumed; `None` if it runs on.
async fn gone_on(gdb: &Gdb, record: &Results) -> Option<StopReason> {
    match end_of_run(gdb, record) {
        Some(verdict) => Box::pin(carry_through(gdb, verdict, record)).await,
        None => go_on_or_end(gdb).await,
    }
}

/// The verdict on a stop that ends a run; `None` if the run has not ended. gdb names this end before a breakpoint at
/// the same place.
fn end_of_run(gdb: &Gdb, record: &Results) -> Option<Verdict> {
    let kind = gdb.get().activity.run_kind();
    reasons(record).find_map(|reason| match (reason, kind) {
        ("function-finished" | "location-reached", Some(RunKind::StepOut(step, count))) => {
            Some(Verdict::SteppedOut(step, count))
        }
        ("function-finished", _) | ("location-reached", Some(RunKind::Finish)) => {
            Some(Verdict::Returned)
        }
        ("location-reached", _) | ("end-stepping-range", Some(RunKind::To)) => {
            Some(Verdict::Report(StopReason::LocationReached))
        }
        ("end-stepping-range", _) => Some(Verdict::Stepped),
        _ => None,
    })
}

/// Selects the task's own process again, if gdb has switched to another one; returns its frame.
async fn select_own(gdb: &Gdb) -> Results {
    let number = gdb.get().processes.number();
    if let Some(number) = number {
        // If this fails, the following commands report it.
        let _ = gdb.mi(console_line(&format!("inferior {number}"))).await;
    }
    gdb.mi("-stack-info-frame").await.unwrap_or_default()
}

/// Has gdb search for newly loaded libraries, if it gets no notifications of them (see [`Action::ClearCode`]).
async fn look_for_libraries(gdb: &Gdb) {
    let wanted = gdb.get().origin.is_read_only_process();
    if wanted {
        // Without this, frames in a new library would have no names.
        let _ = gdb.mi(console_line("sharedlibrary")).await;
        super::uninserted_breakpoints::now(gdb);
    }
}

pub(crate) fn report(gdb: &Gdb, stop: Stop) {
    let mut state = gdb.edit();
    if state.activity.is_executing() || !state.activity.is_live() {
        return;
    }
    let run = state.activity.take_run();
    state.set_task(TaskState::Stopped);
    let is_known = state.origin.take_known_stop();
    match run.and_then(|run| run.id) {
        Some(id) => state.answer(id, Ok(Reply::Stopped(stop))),
        None if is_known => {}
        None => state.actions.push_back(Action::Event(Event::Stopped(stop))),
    }
}

fn judge(gdb: &Gdb, stop: &StopRecord) -> Verdict {
    let record = &stop.results;
    let kind = gdb.get().activity.run_kind();
    match last_text(record, "reason") {
        _ if stop.other_ended => {
            let text = "a child process of the rank has ended";
            Verdict::Report(StopReason::Other(text.to_owned()))
        }
        _ if let Some(scope) = &stop.scope => Verdict::Report(scope.clone()),
        Some("breakpoint-hit") => judge_breakpoint(gdb, stop, kind),
        Some("signal-received") => judge_signal(gdb, stop, kind),
        Some("no-history") => Verdict::Report(StopReason::NoHistory),
        Some("end-stepping-range" | "location-reached" | "function-finished") => {
            end_of_run(gdb, record).unwrap_or(Verdict::Stepped)
        }
        Some("exec") if kind == Some(RunKind::StartToProgram) => Verdict::ToEntry,
        Some(reason) => judge_point(gdb, stop, reason),
        None if matches!(stop.owner, Some(Owner::User(_))) => judge_point(gdb, stop, ""),
        None if kind == Some(RunKind::StartToFirst) => Verdict::ToEntry,
        // gdb gives no reason after an attach, and when a run reaches gdb's own temporary breakpoint.
        None => match kind {
            Some(RunKind::StepOut(step, count)) => Verdict::SteppedOut(step, count),
            kind => Verdict::Report(reason_without_word(kind)),
        },
    }
}

fn judge_breakpoint(gdb: &Gdb, stop: &StopRecord, kind: Option<RunKind>) -> Verdict {
    // A program whose handler takes what `abort` raises may go on.
    let abort = Some(Owner::Internal(Internal::Hold("abort")));
    if stop.owner == abort && is_left_to_program(gdb, "SIGABRT") {
        return Verdict::GoOn;
    }
    if let Some(Owner::User(_)) = stop.owner {
        return judge_point(gdb, stop, "breakpoint-hit");
    }
    let mut state = gdb.edit();
    let mpi = &mut state.breakpoints.mpi;
    match (stop.owner, kind) {
        (Some(Owner::Internal(Internal::Found(finder))), _) => Verdict::Found(finder),
        (Some(Owner::Internal(Internal::LeakCheck)), _) => Verdict::LeakCheck,
        (Some(Owner::Internal(Internal::World)), _) => Verdict::World,
        (Some(Owner::Internal(Internal::Fork)), _) => Verdict::Forks { has: false },
        (Some(Owner::Internal(Internal::Forked)), _) => Verdict::Forks { has: true },
        // `MPI_Abort` ends with `abort` or `_exit`. The program is stopped only once.
        (Some(Owner::Internal(what)), _) if mpi.aborting && what.is_end() => Verdict::GoOn,
        (Some(Owner::Internal(Internal::FatalError)), _) => {
            mpi.aborting = true;
            Verdict::FatalError
        }
        (Some(Owner::Internal(Internal::MpichError)), _) if mpi.aborting => Verdict::GoOn,
        (Some(Owner::Internal(Internal::MpichError)), _) => Verdict::MpichError,
        (Some(Owner::Internal(Internal::Hold(what))), _) => {
            mpi.aborting = what == sdm_mpi::symbols::ABORT;
            match mpi.aborting {
                true => Verdict::Ends(LastCall::Abort),
                false => Verdict::Report(StopReason::Internal {
                    what: what.to_owned(),
                }),
            }
        }
        (Some(Owner::Internal(Internal::Exit)), _) if mpi.is_open() => {
            Verdict::Ends(LastCall::ExitBeforeFinalize)
        }
        (Some(_), _) => Verdict::GoOn,
        (None, Some(RunKind::StartToMain)) => Verdict::Report(StopReason::AtMain),
        (None, Some(RunKind::StartToEntry)) => Verdict::Report(StopReason::AtEntry),
        (None, _) => {
            let number = last_text(&stop.results, "bkptno").unwrap_or("?");
            let text = format!("gdb's own breakpoint {number}");
            Verdict::Report(StopReason::Other(text))
        }
    }
}

fn judge_signal(gdb: &Gdb, stop: &StopRecord, kind: Option<RunKind>) -> Verdict {
    let record = &stop.results;
    let name = last_text(record, "signal-name").unwrap_or("0");
    let asked = gdb.get().interrupts.asked > 0;
    let sent = match name {
        // gdb uses "0" for a stop that it made itself.
        "0" => kind == Some(RunKind::StartToFirst) || asked || stop.signal_sent,
        _ => stop.signal_sent,
    };
    match kind {
        Some(RunKind::StartToFirst) if name == "0" && !asked => Verdict::ToEntry,
        _ if name == "SIGTRAP" && gdb.get().origin.valgrind().is_some() => {
            Verdict::ByValgrind { sent, asked }
        }
        _ if sent && asked => Verdict::Report(StopReason::Interrupted),
        // A signal of the driver that arrived after another stop.
        _ if sent => Verdict::GoOn,
        _ if name == "?" => Verdict::UnnamedSignal,
        _ if !stop.in_call && is_left_to_program(gdb, name) => Verdict::GoOn,
        _ => {
            let meaning = last_text(record, "signal-meaning").unwrap_or_default();
            Verdict::Report(StopReason::Signal {
                name: name.to_owned(),
                meaning: meaning.to_owned(),
            })
        }
    }
}

/// True if a handler of the program takes the signal, and the user has not set its handling. If the handler then dies
/// of the signal, that stops the program, as the handler is gone. Crash reporters of MPI or Fortran do not count as
/// the program's handlers.
fn is_left_to_program(gdb: &Gdb, name: &str) -> bool {
    let (pid, number) = {
        let state = gdb.get();
        (state.pid(), state.handling.left_to_program(name))
    };
    let caught = |(pid, number): &(i32, i32)| gdb.host().catches_signal(*pid, *number);
    let Some((pid, _)) = pid.zip(number).filter(caught) else {
        return false;
    };
    // A program that depends on its handler receives the signal thousands of times.
    if !gdb.get().handling.own_handlers {
        let config = gdb.get().config.clone();
        gdb.edit().handling.own_handlers = gdb.host().may_have_own_handlers(pid, &config.fold);
    }
    gdb.get().handling.own_handlers
}

/// Judges a stop at a breakpoint, watchpoint or catchpoint of the front-end, or one with a reason that the driver does
/// not know.
fn judge_point(gdb: &Gdb, stop: &StopRecord, reason: &str) -> Verdict {
    let other = || Verdict::Report(StopReason::Other(reason.replace('-', " ")));
    let Some(Owner::User(number)) = stop.owner else {
        return other();
    };
    let spec = gdb.get().breakpoints.spec(number).cloned();
    match spec {
        Some(PointSpec::Watch(_)) if reason.is_empty() => Verdict::Report(removed_watches(gdb)),
        Some(PointSpec::Watch(spec)) => {
            let expression = spec.expression;
            // Of several gdb gives the values of the first.
            let named = watch_number(&stop.results);
            let named = named.and_then(|named| gdb.get().breakpoints.owner(named));
            let values = stop.results.tuple("value").filter(|_| named == stop.owner);
            let named = |name| Some(value(bare(values?.text(name)?)));
            Verdict::Report(StopReason::Watchpoint(Box::new(WatchHit {
                number,
                expression,
                old: named("old"),
                new: named("new").or_else(|| named("value")),
            })))
        }
        Some(PointSpec::Catch(spec)) => match caught(&spec.event, &stop.results) {
            Some(hit) => Verdict::Report(StopReason::Catch { number, hit }),
            None => Verdict::CaughtSignal(number),
        },
        // A temporary one is deleted already.
        Some(PointSpec::Break(_)) | None if reason == "breakpoint-hit" || spec.is_some() => {
            Verdict::Report(StopReason::Breakpoint { number })
        }
        _ => other(),
    }
}

/// Runs from the dynamic linker's first instruction to the program's entry point. Returns the reason of the stop if the
/// program is there already, or if it cannot be resumed; `None` if it runs on.
async fn go_to_entry(gdb: &Gdb, record: &Results) -> Option<StopReason> {
    let first = || StopReason::Other("stopped at its first instruction".to_owned());
    let pid = gdb.get().pid();
    let Some(entry) = pid.and_then(|pid| gdb.host().entry_address(pid)) else {
        return Some(first());
    };
    let frame = record.tuple("frame");
    if frame.and_then(|frame| frame.address("addr")) == Some(entry) {
        // In a static program the first instruction is the entry point.
        return Some(StopReason::AtEntry);
    }
    let line = format!("-break-insert -t *{entry:#x}");
    if gdb.mi(line).await.is_err() {
        return Some(first());
    }
    let id = gdb.get().activity.run_id();
    let begun = resume_silently(gdb, id, RunKind::StartToEntry).await;
    begun.err().map(|failure| StopReason::Other(failure.text))
}

/// Selects the innermost frame of the user's code, and describes it.
pub(crate) async fn place_stop(gdb: &Gdb, reason: StopReason, record: &Results) -> Stop {
    let innermost = record
        .tuple("frame")
        .map(|frame| GdbFrame::read(gdb, frame));
    let (frame, inside) = match innermost {
        None => (None, None),
        Some(frame) => match find_user_frame(gdb, &frame).await {
            // The caller of a helper thread that has just started may be unknown to gdb.
            Some((user, _)) if is_anywhere(&reason) && !user.is_known() => {
                main_thread(gdb, frame).await
            }
            Some((frame, inside)) => (Some(frame), inside),
            None if is_anywhere(&reason) => main_thread(gdb, frame).await,
            None => (Some(frame), None),
        },
    };
    // The leak check runs after the user's code. The caller of the reporting function then has no name.
    let is_finding = matches!(reason, StopReason::Finding(_));
    let tells = |frame: &GdbFrame| frame.is_known() && !super::valgrind::is_its_own(frame);
    let frame = frame.filter(|frame| !is_finding || tells(frame));
    let place = frame.as_ref().map(|frame| frame.place());
    let inside = match reason {
        StopReason::Finding(ref found) if frame.is_some() => super::findings::inside(found, inside),
        StopReason::Finding(_) => None,
        _ => inside,
    };
    Stop {
        reason,
        inside,
        source: frame.and_then(|frame| frame.source(gdb)),
        frame: place,
    }
}

fn is_user(gdb: &Gdb, frame: &GdbFrame) -> bool {
    let config = gdb.get().config.clone();
    innermost_user_frame(&[frame.raw()], &config.fold).is_some()
}

/// True for stops that are unrelated to the thread that gdb names.
fn is_anywhere(reason: &StopReason) -> bool {
    matches!(reason, StopReason::Interrupted | StopReason::Attached)
}

/// Selects thread 1. Returns its user (or innermost) frame and the runtime function called; on failure, `helper`.
async fn main_thread(gdb: &Gdb, helper: GdbFrame) -> (Option<GdbFrame>, Option<String>) {
    // The first thread may have ended before the others.
    let Ok(results) = gdb.mi(thread_select(gdb, 1)).await else {
        return (Some(helper), None);
    };
    let Some(frame) = results.tuple("frame") else {
        return (Some(helper), None);
    };
    let frame = GdbFrame::read(gdb, frame);
    match find_user_frame(gdb, &frame).await {
        Some((frame, inside)) => (Some(frame), inside),
        None => (Some(frame), None),
    }
}

/// Selects the innermost user frame of the current thread. Returns that frame and the runtime function that it has
/// called; `None` if there is no user frame.
async fn find_user_frame(gdb: &Gdb, innermost: &GdbFrame) -> Option<(GdbFrame, Option<String>)> {
    if is_user(gdb, innermost) && !python::may_be_inside(gdb, innermost) {
        return Some((innermost.clone(), None));
    }
    let config = gdb.get().config.clone();
    let frames = list_frames(gdb, None).await.ok()?;
    let (mut frames, _) = python::replace_frames(gdb, frames).await;
    let raw: Vec<_> = frames.iter().map(GdbFrame::raw).collect();
    let user = innermost_user_frame(&raw, &config.fold)?;
    let frame = frames.swap_remove(user.index);
    if frame.level > 0 {
        let line = format!("-stack-select-frame {}", frame.level);
        gdb.mi(line).await.ok()?;
        gdb.edit().shown_level = frame.level;
    }
    Some((frame, user.inside))
}
