//! The end of the programs, of the session and of the connection.

use std::time::Duration;

use sdm_debug::{Command, EndPolicy, Reply, TaskState};
use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::{output_events, state};
use crate::action::Action;
use crate::answers::Answers;
use crate::arguments::DisconnectArguments;
use crate::connection::{Connection, Phase, Role};
use crate::error::{Handled, RequestError, early};
use crate::jobs::Purpose;
use crate::message::Request;
use crate::tasks::Condition;

/// Maximum time for which the rest of the output of ended programs is awaited.
const OUTPUT_WAIT: Duration = Duration::from_secs(3);

/// The exit code of a killed task.
const KILLED: i64 = 137;

/// Tells the client of the programs' end, after all their output.
pub(super) fn settle_end(connection: &mut Connection) {
    if connection.phase == Phase::Leaving && connection.pending.is_none() {
        let gone = connection.tasks.left().is_empty() && connection.tasks.live().is_empty();
        if gone {
            close(connection, true);
        }
        return;
    }
    let is_begun = matches!(connection.phase, Phase::Configuring | Phase::Live);
    if !is_begun || !connection.tasks.live().is_empty() || connection.jobs.is_asking_for_stacks() {
        return;
    }
    let until = *connection
        .ending
        .until
        .get_or_insert(connection.now + OUTPUT_WAIT);
    let all = connection.tasks.all();
    let has_come = connection
        .ending
        .ended
        .iter()
        .all(|ended| all.is_subset(ended));
    if !has_come && !connection.manner.attached && connection.now < until {
        return;
    }
    connection.ending.until = None;
    output_events::flush_output(connection, true);
    connection.phase = Phase::Ended;
    let code = connection.tasks.exit_code();
    connection.event("exited", json!({"exitCode": code}));
    connection.event("terminated", Value::Null);
}

/// Handles an end of the session that the client has not requested.
pub(super) fn session_ended(connection: &mut Connection, why: &str) {
    if connection.phase == Phase::Leaving {
        close(connection, true);
    }
    if connection.phase >= Phase::Ended || connection.phase < Phase::Beginning {
        return;
    }
    output_events::flush_output(connection, true);
    refuse_open(connection);
    if let Some(request) = connection.pending.take() {
        let why = RequestError::Opening(why.to_owned());
        connection.write(request.refusal(&why));
    } else {
        connection.say("important", &format!("sdm: the session has ended: {why}\n"));
    }
    connection.phase = Phase::Ended;
    connection.event("terminated", Value::Null);
}

/// Ends the programs. The client is told of that as of any end. For an additional client only its own connection ends.
pub(super) fn end_tasks(connection: &mut Connection) {
    if connection.company.role != Role::Owner {
        connection.phase = Phase::Ended;
        connection.event("terminated", Value::Null);
        return;
    }
    let live = connection.tasks.live();
    if !live.is_empty() && connection.phase < Phase::Ended {
        connection.begin_job(Purpose::Kill, vec![(live, Command::Kill)]);
    }
}

pub(super) fn finish_kill(connection: &mut Connection, answers: &[Answers]) {
    for answers in answers {
        let done = answers.replies();
        let done = done.filter(|(_, reply)| **reply == Reply::Done);
        let done = IdSet::union_all(done.map(|(tasks, _)| tasks));
        if let Some(console) = &connection.prompt.console {
            let ended = TaskState::Signalled("SIGKILL".to_owned());
            console.shell.note_state(&done, ended, None);
        }
        state::ended(connection, &done, Condition::Ended(KILLED));
        if let Some(complaint) = answers
            .complaint()
            .filter(|_| !connection.tasks.live().is_empty())
        {
            connection.say("important", &format!("terminate: {complaint}\n"));
        }
    }
}

pub(super) fn disconnect(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: DisconnectArguments = request.read()?;
    if connection.phase < Phase::Beginning {
        return Ok(Some(Value::Null));
    }
    output_events::flush_output(connection, true);
    let ends = arguments
        .terminate_debuggee
        .unwrap_or(!connection.manner.attached);
    if let Some(earlier) = connection.pending.replace(request.clone()) {
        connection.write(earlier.refusal(&RequestError::Cancelled));
    }
    if connection.company.role != Role::Owner {
        leave_beside(connection);
        return Ok(None);
    }
    match ends || connection.manner.attached || connection.tasks.live().is_empty() {
        true => close(connection, ends),
        false => leave_running(connection),
    }
    Ok(None)
}

/// Detaches from started programs, and stays until they have ended: their output and their launcher need the session.
fn leave_running(connection: &mut Connection) {
    connection.phase = Phase::Leaving;
    let live = connection.tasks.live();
    connection.begin_job(Purpose::Detach, vec![(live, Command::Detach)]);
}

pub(super) fn finish_detach(connection: &mut Connection, answers: &[Answers]) {
    let done = answers.iter().flat_map(Answers::replies);
    let done = IdSet::union_all(done.map(|(tasks, _)| tasks));
    let live = done.intersection(&connection.tasks.live());
    state::ended(connection, &live, Condition::Left);
    if let Some(request) = connection.pending.take() {
        connection.write(request.response(Value::Null));
    }
    // Tasks that could not be detached are not waited for.
    let kept = connection.tasks.live();
    state::ended(connection, &kept, Condition::Gone);
}

fn close(connection: &mut Connection, ends: bool) {
    connection.anew.restarting = false;
    // Attached processes are not the session's, so no policy for the session's end kills them.
    if ends && connection.manner.attached {
        end_tasks(connection);
    }
    connection.phase = Phase::Closing;
    connection.act(Action::Close(match ends {
        true => EndPolicy::KillStarted,
        false => EndPolicy::Detach,
    }));
}

/// Handles the end of the session. An error tells which parts could not be ended.
pub(super) fn handle_closed(connection: &mut Connection, closed: Result<(), RequestError>) {
    refuse_open(connection);
    if let Err(why) = closed {
        connection.say("important", &format!("sdm: {why}\n"));
    }
    if let Some(request) = connection.pending.take() {
        connection.write(request.response(Value::Null));
    }
    leave(connection);
}

/// Refuses requests that can no longer be answered.
fn refuse_open(connection: &mut Connection) {
    connection.close_console();
    refuse_pages(connection);
    for request in connection.jobs.clear() {
        connection.write(request.refusal(&RequestError::Cancelled));
    }
}

/// Handles the leaving of an additional client: its breakpoints are deleted, and nothing else changes.
fn leave_beside(connection: &mut Connection) {
    let live = connection.tasks.live();
    let numbers = connection.points.numbers().into_iter();
    let deletes = numbers.map(|number| (live.clone(), Command::BreakDelete { number }));
    let deletes = deletes.collect();
    connection.begin_job(Purpose::Nothing, deletes);
    refuse_pages(connection);
    if let Some(request) = connection.pending.take() {
        connection.write(request.response(Value::Null));
    }
    leave(connection);
}

/// Refuses the requests of pages for further records.
fn refuse_pages(connection: &mut Connection) {
    for request in connection.prompt.pages.take_waiting() {
        let why = early(&request.command, "the debug session has ended");
        connection.write(request.refusal(&why));
    }
}

pub(super) fn leave(connection: &mut Connection) {
    connection.phase = Phase::Over;
    connection.act(Action::Leave);
}

/// Handles a client that is gone without a message. The owner's started programs are ended, and attached ones are
/// detached. An additional client only leaves.
pub(super) fn handle_gone(connection: &mut Connection) {
    match connection.phase {
        Phase::Leaving | Phase::Closing | Phase::Over => {}
        Phase::New | Phase::Initialized => leave(connection),
        _ if connection.company.role != Role::Owner => leave_beside(connection),
        _ => close(connection, !connection.manner.attached),
    }
}

/// Ends the session, as the adapter itself is being terminated.
pub(super) fn handle_terminated(connection: &mut Connection) {
    match connection.phase {
        Phase::Leaving => close(connection, true),
        _ => handle_gone(connection),
    }
}
