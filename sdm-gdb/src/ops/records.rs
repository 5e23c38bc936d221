//! Applies gdb's records to the state: answers, notifications, stops and output.

use nix::sys::signal::Signal;
use sdm_debug::{Event, Failure, FailureCode, TaskState};

use super::end::{End, program_ended};
use crate::gdb::Gdb;
use crate::state::activity::OpenRun;
use crate::state::breakpoints::{Owner, watch_number};
use crate::state::commands::Pending;
use crate::state::scope::Stopped;
use crate::state::signals::Sigcont;
use crate::state::{State, StopRecord};
use crate::text::{last_text, reasons};
use crate::wording::{Wording, is_untested, passed_signal, remark, wording};
use sdm_child::SCRIPT_MARK;
use sdm_mi::{AsyncKind, Record, ResultClass, Results, StreamKind};

/// Maximum number of bytes that are kept of gdb's error output.
const COMPLAINT_BYTES_MAX: usize = 4 << 10;

/// Maximum number of stops in the queue. gdb sends no second stop before the program is resumed, except after console
/// commands of the user.
const STOPS_MAX: usize = 16;

pub(crate) fn handle(gdb: &Gdb, record: Record) {
    match record {
        Record::Result {
            token: Some(token),
            class,
            results,
        } => handle_result(gdb, token, class, results),
        Record::TooLong {
            token: Some(token),
            bytes,
        } => {
            let text = format!("gdb's answer of {bytes} bytes is too long");
            gdb.resolve(token, Err(Failure::new(FailureCode::Limit, text)));
        }
        Record::Async {
            kind: AsyncKind::Exec,
            class,
            results,
            ..
        } => handle_exec(gdb, &class, results),
        Record::Async {
            kind: AsyncKind::Notify,
            class,
            results,
            ..
        } => handle_notify(gdb, &class, &results),
        Record::Stream { kind, text } => handle_text(gdb, kind, &text),
        Record::Unknown(line) => {
            tracing::debug!("gdb printed a line that is no MI record: {line}");
            let mut state = gdb.edit();
            let pending = state.commands.pending.values_mut();
            let mut printed = pending.filter_map(|pending| pending.printed.as_mut());
            if let Some(printed) = printed.find(|printed| printed.takes_lines) {
                printed.push(&format!("{line}\n"));
            }
        }
        _ => {}
    }
}

fn handle_result(gdb: &Gdb, token: u64, class: ResultClass, results: Results) {
    let complaint = std::mem::take(&mut gdb.edit().commands.complaint);
    match class {
        ResultClass::Error => {
            let text = results.text("msg").unwrap_or("gdb gave no reason").trim();
            let complained = wording(text) == Some(Wording::Aborted) && !complaint.is_empty();
            let text = if complained {
                &complaint_of(gdb, &complaint)
            } else {
                text
            };
            // The program is no longer where this function has stopped.
            if wording(text) == Some(Wording::ContextRestored) {
                gdb.edit().stops.pop_back();
            }
            let failure = super::registers::meaning(gdb, text)
                .unwrap_or_else(|| Failure::new(FailureCode::Gdb, text).with_hint(hint_for(text)));
            fail_run(gdb, token, &failure);
            gdb.resolve(token, Err(failure));
        }
        ResultClass::Running => {
            gdb.edit().activity.begin_executing();
            gdb.resolve(token, Ok(results));
        }
        _ => gdb.resolve(token, Ok(results)),
    }
}

/// Advice on one of gdb's limits; empty if there is none.
fn hint_for(text: &str) -> &'static str {
    match wording(text) {
        Some(Wording::ValueTooLarge) => {
            "before its declaration is executed, an array of variable size has none: `next`; `print a[0]@100`, in Fortran `a(1:100)`, reads a part; `set max-value-size 100000000` moves the limit"
        }
        Some(Wording::UnknownRows) => {
            "gdb does not know the length of a row: cast the array, as in ((double (*)[3]) a)[1][2]"
        }
        Some(Wording::MemberOfMany) => {
            "name one element of the array; `stats` and `compare` also take several: a[0:9].x, in Fortran a(1:9)%x"
        }
        Some(Wording::NoOperator) => {
            "the program has no such function to call: index the data pointer within the object (`ptype` shows its members)"
        }
        _ => "",
    }
}

/// gdb's error lines from before it aborted a command, with the front-end's breakpoint numbers in place of gdb's.
fn complaint_of(gdb: &Gdb, complaint: &str) -> String {
    let about = |line: &str| {
        let (said, number) = line.trim_end_matches('.').rsplit_once(' ')?;
        let owner = gdb.get().breakpoints.owner(number.parse().ok()?);
        match owner {
            Some(Owner::User(number)) => Some(format!("{said} {number}.")),
            _ => None,
        }
    };
    let lines = complaint.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.ends_with("Warning:"));
    let lines = lines.map(|line| about(line).unwrap_or_else(|| line.to_owned()));
    lines.collect::<Vec<_>>().join("\n")
}

/// Handles gdb's `^error` after `^running` for one command: the run has not begun after all. If the program is not
/// stopped it runs on, or is about to end, and that will end the run. gdb fails so when threads exit while it resumes
/// them ("Couldn't get registers").
fn fail_run(gdb: &Gdb, token: u64, failure: &Failure) {
    let (waits, open) = {
        let state = gdb.get();
        let pending = state.commands.pending.get(&token);
        let run = state.activity.run();
        let is_its = run.is_some_and(|run| run.token == token);
        (pending.is_some_and(Pending::is_open), is_its)
    };
    // The kernel is asked only about a failed run. Other failures do not need it.
    if waits || !open || !gdb.is_held() {
        return;
    }
    let mut state = gdb.edit();
    state.activity.end_executing();
    if let Some(OpenRun { id: Some(id), .. }) = state.activity.take_run() {
        state.answer(id, Err(failure.clone()));
    }
    if state.activity.is_running() {
        state.set_task(TaskState::Stopped);
    }
}

fn handle_exec(gdb: &Gdb, class: &str, results: Results) {
    match class {
        "running" => {
            let mut state = gdb.edit();
            // Threads that ran beside a refused step are stopped again, without a report.
            let counts = state.origin.scope().is_none_or(|it| !it.runs_for_nothing());
            if counts {
                state.activity.begin_executing();
            }
            if let Some(scope) = state.origin.scope_mut() {
                scope.thread_running(results.number("thread-id"));
            }
            state.forget_stop();
        }
        "stopped" => {
            gdb.edit().processes.mark_event_seen();
            if results.text("thread-id").is_some() {
                handle_thread_stopped(gdb, results);
            } else {
                handle_stopped(gdb, results);
            }
        }
        _ => {}
    }
}

/// Handles a stop record, which in non-stop mode is that of one thread.
fn handle_thread_stopped(gdb: &Gdb, results: Results) {
    let stopped = match gdb.edit().origin.scope_mut() {
        Some(scope) => scope.thread_stopped(results),
        None => Stopped::Whole(results),
    };
    match stopped {
        Stopped::Whole(results) => handle_stopped(gdb, results),
        // The answer to this command is not needed, as the threads' stops show its effect.
        Stopped::StopOthers => gdb.post("-exec-interrupt"),
        Stopped::Wait => {}
    }
}

fn handle_stopped(gdb: &Gdb, results: Results) {
    let (in_call, other_ended) = {
        let mut state = gdb.edit();
        let in_call = !state.activity.is_executing();
        state.activity.end_executing();
        (in_call, state.processes.take_other_end())
    };
    // gdb lists the signals passed since the last stop first. Only the last reason is that of this stop.
    match last_text(&results, "reason") {
        Some(reason) if other_ended && reason.starts_with("exited") => {
            let stop = StopRecord {
                results,
                other_ended,
                ..StopRecord::default()
            };
            gdb.edit().stops.push_back(stop);
        }
        Some("exited-normally") => program_ended(gdb, End::Exited(0)),
        Some("exited") => {
            let code = last_text(&results, "exit-code").and_then(|code| {
                // MI reports exit codes in octal.
                i32::from_str_radix(code, 8).ok()
            });
            program_ended(gdb, End::Exited(code.unwrap_or(0)));
        }
        Some("exited-signalled") => {
            let signal = last_text(&results, "signal-name").unwrap_or("a signal");
            program_ended(gdb, End::Signalled(signal.to_owned()));
        }
        _ => {
            let mut state = gdb.edit();
            let is_scope = reasons(&results).any(|reason| reason == "watchpoint-scope");
            let scope = is_scope.then(|| results.number("wpnum")).flatten();
            let scope = scope.and_then(|number| state.breakpoints.end_scope(number));
            let number = last_text(&results, "bkptno")
                .and_then(|number| number.parse().ok())
                .or_else(|| watch_number(&results));
            let owner = match (number, last_text(&results, "reason")) {
                (Some(number), _) => state.breakpoints.owner(number),
                // gdb does not name the catchpoint.
                (None, None | Some("solib-event")) => state.breakpoints.last_hit(),
                _ => None,
            };
            let met = state.breakpoints.met.clone();
            let name = last_text(&results, "signal-name");
            let mut signal_sent = match name {
                Some("SIGINT") => std::mem::take(&mut state.interrupts.int_sent),
                Some("SIGSTOP") => std::mem::take(&mut state.interrupts.stop_sent),
                // Valgrind's server reports SIGTRAP for an interrupt as for any other stop.
                Some("SIGTRAP") if state.origin.valgrind().is_some() => {
                    std::mem::take(&mut state.interrupts.int_sent)
                }
                _ => false,
            };
            // A gdb in non-stop mode stops the threads itself. After any stop no signal is pending.
            if state.origin.scope().is_some() {
                let asked = std::mem::take(&mut state.interrupts.int_sent);
                signal_sent |= asked && name == Some("0");
            }
            if state.stops.len() < STOPS_MAX {
                state.stops.push_back(StopRecord {
                    results,
                    owner,
                    scope,
                    met,
                    in_call,
                    signal_sent,
                    other_ended: false,
                });
            }
        }
    }
}

fn handle_notify(gdb: &Gdb, class: &str, results: &Results) {
    match class {
        "thread-group-started" if gdb.get().origin.is_core_file() => {}
        "thread-group-started" => {
            let group = results.text("id").unwrap_or_default();
            let by_valgrind = gdb.get().origin.valgrind().is_some();
            let pid = match by_valgrind {
                // gdb reports an invented pid here.
                true => gdb.host().run_by_valgrind(),
                false => results.number("pid"),
            };
            gdb.edit().processes.started(group, pid);
        }
        "thread-created" => {
            if let (Some(scope), Some(id)) = (gdb.edit().origin.scope_mut(), results.number("id")) {
                scope.thread_created(id);
            }
        }
        "thread-exited" => {
            let stop = match (gdb.edit().origin.scope_mut(), results.number("id")) {
                (Some(scope), Some(id)) => scope.thread_exited(id),
                _ => None,
            };
            if let Some(stop) = stop {
                handle_stopped(gdb, stop);
            }
        }
        "breakpoint-created" => {
            if let Some(breakpoint) = results.tuple("bkpt") {
                gdb.edit().breakpoints.created(breakpoint);
            }
        }
        "thread-group-exited" => {
            let mut state = gdb.edit();
            let group = results.text("id").unwrap_or_default();
            state.processes.ended(group);
        }
        "breakpoint-modified" => {
            let Some(breakpoint) = results.tuple("bkpt") else {
                return;
            };
            let mut state = gdb.edit();
            let State {
                breakpoints,
                origin,
                ..
            } = &mut *state;
            let event = breakpoints.modified(breakpoint, origin.scope());
            drop(state);
            if let Some(event) = event {
                gdb.tell(event);
            }
        }
        "breakpoint-deleted" => {
            if let Some(number) = results.number("id") {
                gdb.edit().breakpoints.deleted(number);
            }
        }
        // The library event came before the code was cleared, and gdb has inserted its breakpoints again.
        "library-loaded" | "library-unloaded" if gdb.get().activity.is_executing() => {
            super::uninserted_breakpoints::when_done(gdb);
        }
        _ => {}
    }
}

fn handle_text(gdb: &Gdb, kind: StreamKind, text: &str) {
    if kind == StreamKind::Log
        && let Some(text) = text.strip_prefix(SCRIPT_MARK)
    {
        let text = text.trim_end().to_owned();
        return gdb.tell(Event::Notice { text });
    }
    if kind == StreamKind::Console {
        let name = passed_signal(&gdb.get().handling.passed, text).map(ToOwned::to_owned);
        let unsaid = gdb.get().handling.sigcont == Sigcont::Unsaid;
        if name.as_deref() == Some("SIGINT") {
            // A SIGINT that the driver has sent was passed to the program and will not stop it.
            gdb.edit().interrupts.int_sent = false;
        }
        if let Some(name) = &name {
            gdb.edit().processes.signal_passed(name);
        }
        if let Some(name) = name.filter(|name| !(unsaid && name == "SIGCONT")) {
            gdb.tell(Event::SignalPassed { name });
        }
        tell_remark(gdb, text);
    }
    if kind == StreamKind::Log {
        super::registers::tell(gdb, text);
        if super::valgrind::is_gone(gdb, text) {
            let text = "Valgrind has ended: it was killed, or the program called exec";
            let text = text.to_owned();
            gdb.tell(Event::Notice { text });
            program_ended(gdb, End::Signalled(Signal::SIGKILL.as_str().to_owned()));
        }
        // An error without a command: gdb has dropped an event because the process is dying ("Couldn't get registers:
        // No such process.", "Cannot find user-level thread for LWP 7: generic error").
        let mut state = gdb.edit();
        if state.activity.is_executing() && state.commands.pending.is_empty() {
            state.processes.mark_event_missed();
        }
    }
    if kind == StreamKind::Log {
        let mut state = gdb.edit();
        let untested = &mut state.breakpoints.untested;
        match untested {
            _ if is_untested(text) => *untested = Some(String::new()),
            Some(why) if why.is_empty() => text.trim_end().clone_into(why),
            _ => {}
        }
    }
    if kind == StreamKind::Log
        && gdb.get().commands.complaint.len() + text.len() <= COMPLAINT_BYTES_MAX
    {
        gdb.edit().commands.complaint.push_str(text);
    }
    let wanted = gdb
        .get()
        .commands
        .pending
        .values()
        .any(|pending| pending.printed.is_some());
    if !wanted {
        return;
    }
    let mut state = gdb.edit();
    for printed in state
        .commands
        .pending
        .values_mut()
        .filter_map(|p| p.printed.as_mut())
    {
        let is_warning = kind == StreamKind::Log && text.starts_with("warning: ");
        if !is_warning || printed.takes_warnings {
            printed.push(text);
        }
    }
}

/// Reports a change of the program's processes, once.
fn tell_remark(gdb: &Gdb, text: &str) {
    let started = !gdb.get().activity.is_starting();
    if let Some(text) = remark(text).filter(|_| started)
        && gdb.edit().processes.is_new(&text)
    {
        gdb.tell(Event::Notice { text });
    }
}
