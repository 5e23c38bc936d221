//! Stops: when the client is told, who is one thread then, and where they stand.

use sdm_debug::command::BacktraceSpec;
use sdm_debug::reply::{Stop, StopReason};
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_view::render::stopped as stop_text;
use serde_json::{Value, json};

use super::printing;
use crate::answers::Answers;
use crate::arguments::ThreadArguments;
use crate::connection::Connection;
use crate::error::Handled;
use crate::error::RequestError;
use crate::jobs::Purpose;
use crate::message::Request;
use crate::rows::Row;
use crate::settling::WAIT_MAX;
use crate::source::stack_frame;
use crate::values::set_name;

/// The most frames of one `stackTrace`.
const FRAMES_MAX: i64 = 1024;

/// Asks where those stand that have stopped, once it is time.
pub(super) fn settle_stops(connection: &mut Connection) {
    let running = connection.tasks.running();
    say_who_runs(connection, &running);
    if connection.jobs.is_asking_for_stacks() {
        return;
    }
    if connection.settling.fresh.is_empty() {
        if std::mem::take(&mut connection.settling.changed) && !connection.tasks.live().is_empty() {
            regroup(connection);
        }
        return;
    }
    let due = connection.settling.stops_due();
    if !running.is_empty() && due.is_some_and(|due| connection.now < due) {
        return;
    }
    let fresh = std::mem::take(&mut connection.settling.fresh);
    connection.settling.begin();
    let tasks = fresh.intersection(&connection.tasks.standing());
    connection.settling.asked = tasks.clone();
    let spec = BacktraceSpec {
        limit: 0,
        args: false,
        full: false,
    };
    if !tasks.is_empty() {
        connection.begin_job(Purpose::Stacks, vec![(tasks, Command::Backtrace(spec))]);
    }
}

/// A step whose peers block says so.
fn say_who_runs(connection: &mut Connection, running: &IdSet) {
    let Some((began, said)) = connection.settling.step else {
        return;
    };
    if running.is_empty() || connection.now < began + WAIT_MAX {
        return;
    }
    let arrived = connection.tasks.standing();
    let runs = set_name(running);
    let text = match arrived.is_empty() {
        true => format!("{said}: {runs} still run\n"),
        false => format!(
            "{said}: {} have arrived, {runs} still run\n",
            set_name(&arrived)
        ),
    };
    connection.settling.step = None;
    // Who has arrived is not kept waiting any longer.
    connection.settling.first = connection.settling.first.map(|_| began);
    connection.say("console", &text);
}

/// It is known where they stand.
pub(super) fn finish_stacks(connection: &mut Connection, answers: &[Answers]) {
    for answers in answers {
        for (tasks, reply) in answers.replies() {
            if let Reply::Backtrace(stack) = reply {
                connection.stacks.push((tasks.clone(), stack.clone()));
            }
        }
    }
    let fresh = std::mem::take(&mut connection.settling.asked);
    let fresh = fresh.intersection(&connection.tasks.standing());
    printing::flush_output(connection, true);
    regroup(connection);
    announce(connection, &fresh);
}

/// Divides the tasks anew; the client does not know any of them yet.
pub(super) fn regroup_quietly(connection: &mut Connection) {
    let groups = connection
        .rows
        .groups(&connection.tasks, &connection.stacks);
    connection.rows.regroup(groups);
}

fn regroup(connection: &mut Connection) {
    let groups = connection
        .rows
        .groups(&connection.tasks, &connection.stacks);
    let changes = connection.rows.regroup(groups);
    let changed = !changes.ended.is_empty() || !changes.started.is_empty();
    for id in changes.ended {
        connection.event("thread", json!({"reason": "exited", "threadId": id}));
    }
    for id in changes.started {
        connection.event("thread", json!({"reason": "started", "threadId": id}));
    }
    if changed && connection.client.supports_invalidated_event {
        connection.event("invalidated", json!({"areas": ["threads"]}));
    }
}

/// Tells the client of the threads that these are in: one takes the focus, the others leave it there.
fn announce(connection: &mut Connection, fresh: &IdSet) {
    let focused = connection.rows.focused;
    let stopped = |row: &&Row| row.group.standing.is_some() && !row.group.tasks.is_disjoint(fresh);
    let is_crash = |row: &Row| {
        let standing = row.group.standing.as_ref();
        standing.is_some_and(|standing| standing.stop.reason.is_crash())
    };
    let mut rows: Vec<&Row> = connection.rows.iter().filter(stopped).collect();
    rows.sort_by_key(|row| (row.id != focused, !is_crash(row)));
    let all = connection.tasks.running().is_empty();
    let mut events = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let Some(standing) = &row.group.standing else {
            continue;
        };
        let mut body = stop_body(connection, &standing.stop);
        body["threadId"] = json!(row.id);
        body["allThreadsStopped"] = json!(all);
        if at > 0 {
            body["preserveFocusHint"] = json!(true);
        }
        events.push(body);
    }
    if let Some(first) = rows.first() {
        connection.rows.focused = first.id;
    }
    for body in events {
        connection.event("stopped", body);
    }
}

/// Why they stand, as the protocol has it.
fn stop_body(connection: &Connection, stop: &Stop) -> Value {
    let (reason, number) = match &stop.reason {
        StopReason::AtMain | StopReason::AtEntry | StopReason::Attached => ("entry", None),
        StopReason::Breakpoint { number } => match connection.points.is_in_functions(*number) {
            true => ("function breakpoint", Some(*number)),
            false => ("breakpoint", Some(*number)),
        },
        StopReason::StepEnd
        | StopReason::FunctionFinished { .. }
        | StopReason::LocationReached
        | StopReason::NoHistory => ("step", None),
        StopReason::Watchpoint(hit) => ("data breakpoint", Some(hit.number)),
        StopReason::WatchpointScope { number, .. } => ("data breakpoint", Some(*number)),
        StopReason::Signal { .. }
        | StopReason::Internal { .. }
        | StopReason::Finding(_)
        | StopReason::Core { .. }
        | StopReason::Catch { .. } => ("exception", None),
        StopReason::Interrupted | StopReason::Other(_) => ("pause", None),
    };
    let mut body = json!({"reason": reason});
    let text = stop_text(stop);
    if reason == "exception" {
        body["text"] = json!(text);
    }
    body["description"] = json!(text);
    if let Some(number) = number {
        body["hitBreakpointIds"] = json!([number]);
    }
    body
}

pub(super) fn threads(connection: &mut Connection, _request: &Request) -> Handled {
    let running = connection.tasks.running();
    let by_rank = connection.is_by_rank();
    let threads = connection.rows.iter().map(|row| {
        let mut group = row.group.clone();
        if group.tasks.is_subset(&running) {
            group.standing = None;
            group.folded = None;
        }
        json!({"id": row.id, "name": group.name(by_rank)})
    });
    Ok(Some(json!({"threads": threads.collect::<Vec<_>>()})))
}

pub(super) fn stack_trace(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: ThreadArguments = request.read()?;
    let id = arguments.thread_id;
    let row = connection.rows.find(id).ok_or(RequestError::Thread(id))?;
    let name = || format!("thread {id}");
    if !row.group.tasks.is_disjoint(&connection.tasks.running()) && row.group.folded.is_none() {
        return Err(RequestError::Runs(name()));
    }
    let Some(standing) = row.group.standing.clone() else {
        return Err(RequestError::Runs(name()));
    };
    let from = usize::try_from(arguments.start_frame.unwrap_or(0)).unwrap_or(0);
    let count = arguments.levels.filter(|levels| *levels > 0);
    let count = count.unwrap_or(FRAMES_MAX).min(FRAMES_MAX);
    let count = usize::try_from(count).unwrap_or(0);
    let mut frames = Vec::new();
    let handle = |index| standing.frame_handle(index);
    if let Some(inside) = &standing.stop.inside {
        let id = connection.references.add_frame(handle(0));
        let hint = "subtle";
        frames.push(json!({
            "id": id, "name": inside, "line": 0, "column": 0, "presentationHint": hint,
        }));
    }
    let total = standing.frames.len() + frames.len();
    let line_base = connection.line_base();
    for (index, frame) in standing.frames.iter().enumerate() {
        if frames.len() >= from.saturating_add(count) {
            break;
        }
        let id = connection.references.add_frame(handle(index));
        frames.push(stack_frame(id, frame, line_base));
    }
    let frames: Vec<Value> = frames.into_iter().skip(from).take(count).collect();
    Ok(Some(json!({"stackFrames": frames, "totalFrames": total})))
}
