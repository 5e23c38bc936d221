//! Stops: the time of the client's notification, the grouping into threads, and their places.

use std::collections::BTreeSet;

use sdm_debug::command::BacktraceSpec;
use sdm_debug::reply::{Stop, StopReason, ThreadView};
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_view::render::stopped as stop_text;
use serde_json::{Value, json};

use super::output_events;
use crate::answers::Answers;
use crate::connection::Connection;
use crate::error::Handled;
use crate::group::Group;
use crate::grouping;
use crate::jobs::Purpose;
use crate::message::Request;
use crate::stop_coalescing::WAIT_MAX;
use crate::thread_ids::Row;
use crate::values::set_name;

/// Requests the stacks of newly stopped tasks, once it is time.
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
        let mut commands = vec![(tasks.clone(), Command::Backtrace(spec))];
        if connection.rows.is_single() {
            commands.push((tasks, Command::Threads));
        }
        connection.begin_job(Purpose::Stacks, commands);
    }
}

/// Reports the tasks that a step still waits for, as they may be blocked.
fn say_who_runs(connection: &mut Connection, running: &IdSet) {
    let settling = &mut connection.settling;
    let now = connection.now;
    let late = settling
        .step
        .take_if(|step| !running.is_empty() && now >= step.began + WAIT_MAX);
    let Some(step) = late else {
        return;
    };
    // Tasks that have arrived are reported without further delay.
    settling.first = settling.first.map(|_| step.began);
    let runs = step.moved.intersection(running);
    if runs.is_empty() {
        return;
    }
    let standing = connection.tasks.standing();
    let arrived = step.moved.intersection(&standing);
    let others = standing.difference(&step.moved);
    let mut text = format!("{}: ", step.said);
    if !arrived.is_empty() {
        let arrived = set_name(&arrived);
        text.push_str(&format!("{arrived} have arrived, "));
    }
    let runs = set_name(&runs);
    text.push_str(&format!("{runs} still run"));
    // The tasks for which a step of one class waits may be among those that it does not move.
    if !others.is_empty() {
        let others = set_name(&others);
        text.push_str(&format!(", {others} are stopped and were not stepped"));
    }
    connection.say("console", &format!("{text}\n"));
}

/// Handles the stacks of stopped tasks.
pub(super) fn finish_stacks(connection: &mut Connection, answers: &[Answers]) {
    for answers in answers {
        for (tasks, reply) in answers.replies() {
            match reply {
                Reply::Backtrace(stack) => {
                    connection.stacks.push((tasks.clone(), stack.clone()));
                }
                Reply::Threads(threads) => os_threads_stand(connection, threads.clone()),
                _ => {}
            }
        }
    }
    let fresh = std::mem::take(&mut connection.settling.asked);
    let fresh = fresh.intersection(&connection.tasks.standing());
    output_events::flush_output(connection, true);
    regroup(connection);
    announce(connection, &fresh);
}

/// Sets the threads of the only process, which is stopped.
fn os_threads_stand(connection: &mut Connection, threads: Vec<ThreadView>) {
    let (ended, started) = connection.os_threads.stand(threads);
    tell_threads(connection, &ended, &started);
}

fn tell_threads(connection: &mut Connection, ended: &[i64], started: &[i64]) {
    for (reason, ids) in [("exited", ended), ("started", started)] {
        for id in ids {
            connection.event("thread", json!({"reason": reason, "threadId": id}));
        }
    }
}

/// Divides the tasks into threads again, without telling the client.
pub(super) fn regroup_quietly(connection: &mut Connection) {
    let groups = groups_now(connection);
    connection.rows.regroup(groups);
}

fn groups_now(connection: &Connection) -> Vec<Group> {
    let by_rank = connection.rows.is_by_rank();
    grouping::groups(&connection.tasks, &connection.stacks, by_rank)
}

fn regroup(connection: &mut Connection) {
    let groups = groups_now(connection);
    let changes = connection.rows.regroup(groups);
    let changed = !changes.ended.is_empty() || !changes.started.is_empty();
    tell_threads(connection, &changes.ended, &changes.started);
    if changed && connection.client.supports_invalidated_event {
        connection.event("invalidated", json!({"areas": ["threads"]}));
    }
}

/// Reports the stop to the client by the threads of these tasks. One of them takes the focus, unless another client
/// has caused the stop.
fn announce(connection: &mut Connection, fresh: &IdSet) {
    let focused = connection.rows.focused;
    let stopped = |row: &&Row| row.group.standing.is_some() && !row.group.tasks.is_disjoint(fresh);
    let is_crash = |row: &Row| {
        let standing = row.group.standing.as_ref();
        standing.is_some_and(|standing| standing.stop.reason.is_crash())
    };
    let mut rows: Vec<&Row> = connection.rows.iter().filter(stopped).collect();
    rows.sort_by_key(|row| (row.id != focused, !is_crash(row)));
    // Tasks that have stopped meanwhile are reported next, and the client then asks for their places.
    let standing = connection.tasks.standing();
    let untold = connection.settling.fresh.intersection(&standing);
    let all = connection.tasks.running().is_empty() && untold.is_empty();
    // Some clients resume a thread that stops while another one is stopped. A client that is told of a stop of all
    // threads knows of each. If some run, VS Code shows a stack only for threads that an event has named.
    let names_each = connection.client.client_id == "vscode";
    let mut hit = BTreeSet::new();
    if all || !names_each {
        let stops = rows.iter().filter_map(|row| row.group.standing.as_ref());
        hit.extend(stops.filter_map(|standing| hit_point(connection, &standing.stop)));
        rows.truncate(1);
    }
    // Stops caused by another client do not take the focus.
    let is_foreign = fresh.is_subset(&connection.settling.foreign);
    let mut events = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let Some(standing) = &row.group.standing else {
            continue;
        };
        let mut body = stop_body(connection, &standing.stop);
        let mut hit = hit.clone();
        hit.extend(hit_point(connection, &standing.stop));
        if !hit.is_empty() {
            body["hitBreakpointIds"] = json!(hit);
        }
        let thread = connection.os_threads.current();
        body["threadId"] = json!(thread.map_or(row.id, i64::from));
        body["allThreadsStopped"] = json!(all);
        if at > 0 || is_foreign {
            body["preserveFocusHint"] = json!(true);
        }
        events.push(body);
    }
    if let Some(first) = rows.first().filter(|_| !is_foreign) {
        connection.rows.focused = first.id;
    }
    connection.settling.foreign.subtract(fresh);
    for body in events {
        connection.event("stopped", body);
    }
}

/// The body of a `stopped` event.
fn stop_body(connection: &Connection, stop: &Stop) -> Value {
    let reason = match &stop.reason {
        StopReason::AtMain | StopReason::AtEntry | StopReason::Attached => "entry",
        StopReason::Breakpoint { number }
            if connection.references.places.arrival == Some(*number) =>
        {
            "goto"
        }
        StopReason::Breakpoint { number } => connection.points.reason(*number),
        StopReason::StepEnd
        | StopReason::FunctionFinished { .. }
        | StopReason::LocationReached
        | StopReason::NoHistory => "step",
        StopReason::Watchpoint(_) | StopReason::WatchpointScope { .. } => "data breakpoint",
        StopReason::Signal { .. }
        | StopReason::Internal { .. }
        | StopReason::Finding(_)
        | StopReason::Core { .. }
        | StopReason::Catch { .. } => "exception",
        StopReason::Interrupted | StopReason::Other(_) => "pause",
    };
    let mut body = json!({"reason": reason});
    // A `description` would replace the thread's name, which has the location, in the list of threads.
    if reason == "exception" {
        body["text"] = json!(stop_text(stop));
    }
    body
}

/// The number of this client's breakpoint that caused a stop; `None` if there is none.
fn hit_point(connection: &Connection, stop: &Stop) -> Option<u32> {
    let number = match &stop.reason {
        StopReason::Breakpoint { number } | StopReason::WatchpointScope { number, .. } => *number,
        StopReason::Watchpoint(hit) => hit.number,
        _ => return None,
    };
    // The client does not know another client's breakpoints.
    connection
        .points
        .numbers()
        .contains(&number)
        .then_some(number)
}

pub(super) fn threads(connection: &mut Connection, _request: &Request) -> Handled {
    let running = connection.tasks.running();
    if connection.os_threads.are_several() && running.is_empty() {
        let threads = connection.os_threads.names();
        let threads = threads.map(|(id, name)| json!({"id": id, "name": name}));
        return Ok(Some(json!({"threads": threads.collect::<Vec<_>>()})));
    }
    let by_rank = connection.rows.is_by_rank();
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
