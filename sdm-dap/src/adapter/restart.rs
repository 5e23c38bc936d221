//! The `restart` request: starts or attaches to the same job again.

use sdm_debug::{Command, EndPolicy};
use serde_json::{Value, json};

use super::{breakpoints, output_events, startup};
use crate::action::Action;
use crate::answers::Answers;
use crate::arguments::RestartArguments;
use crate::client_breakpoints;
use crate::connection::{Connection, Phase, Role};
use crate::error::{Handled, RequestError, early};
use crate::jobs::Purpose;
use crate::message::Request;
use crate::stop_coalescing::PendingStops;

/// Ends the programs, or detaches from them, and begins again with the same breakpoints.
pub(super) fn restart(connection: &mut Connection, request: &Request) -> Handled {
    if !matches!(connection.phase, Phase::Configuring | Phase::Live) {
        return Err(early(&request.command, "the programs have ended"));
    }
    if connection.company.role != Role::Owner {
        return Err(early(
            &request.command,
            "the session belongs to another client",
        ));
    }
    let arguments: RestartArguments = request.read()?;
    if let Some(configuration) = arguments.arguments {
        connection.anew.opening = Some(startup::take_configuration(connection, configuration)?);
    }
    connection.pending = Some(request.clone());
    begin_again(connection);
    Ok(None)
}

/// Closes the session, to open it again.
pub(super) fn begin_again(connection: &mut Connection) {
    output_events::flush_output(connection, true);
    connection.close_console();
    for given_up in connection.jobs.clear() {
        connection.write(given_up.refusal(&RequestError::Cancelled));
    }
    let told: Vec<i64> = connection.rows.iter().map(|row| row.id).collect();
    for id in told {
        connection.event("thread", json!({"reason": "exited", "threadId": id}));
    }
    let all = connection.tasks.all().clone();
    connection.references.forget(&all);
    connection.stacks.clear();
    connection.settling = PendingStops::default();
    connection.ending = crate::exit_state::ExitState::default();
    connection.os_threads = crate::os_threads::OsThreads::default();
    connection.anew.restarting = true;
    connection.phase = Phase::Beginning;
    connection.act(Action::Close(match connection.manner.attached {
        true => EndPolicy::Detach,
        false => EndPolicy::KillStarted,
    }));
}

/// Opens the session again after the old one is closed; a failure to close is reported.
pub(super) fn handle_closed(connection: &mut Connection, closed: Result<(), RequestError>) {
    if let Err(why) = closed {
        connection.say("important", &format!("sdm: {why}\n"));
    }
    match connection.anew.opening.clone() {
        Some(opening) => connection.act(Action::Open(opening)),
        None => startup::refuse_begin(
            connection,
            &RequestError::Opening("the session has no program that can be restarted".to_owned()),
        ),
    }
}

/// Sets the breakpoints again once the programs are at `main`, before they run.
pub(super) fn reinsert(connection: &mut Connection) {
    let live = connection.tasks.live();
    let again = connection.points.begin_anew().into_iter();
    let again = again.map(|again| {
        let meant = again.meant.map(|meant| meant.intersection(&live));
        (meant.unwrap_or_else(|| live.clone()), again.off, again.spec)
    });
    // The job may have fewer ranks than before.
    let again: Vec<_> = again.filter(|(meant, _, _)| !meant.is_empty()).collect();
    let numbers = again.iter().map(|(_, _, spec)| spec.number()).collect();
    let switched_off = again.iter().map(|(meant, off, spec)| {
        let number = spec.number();
        let enabled = false;
        (
            meant.intersection(off),
            Command::BreakEnable { number, enabled },
        )
    });
    let switched_off: Vec<_> = switched_off.collect();
    let inserts = again.into_iter();
    let inserts = inserts.map(|(meant, _, spec)| (meant, client_breakpoints::insert(spec)));
    let commands = inserts.chain(switched_off).collect();
    connection.begin_job(Purpose::Reinsert(numbers), commands);
}

/// Continues after the breakpoints are set again, as after the first `configurationDone`.
pub(super) fn finish_reinsert(connection: &mut Connection, numbers: &[u32], answers: &[Answers]) {
    breakpoints::note_places(connection, numbers, answers);
    for number in numbers {
        breakpoints::report_change(connection, *number);
    }
    breakpoints::look_for_lost(connection);
    if !connection.is_restarting() {
        return;
    }
    connection.anew.restarting = false;
    connection.phase = Phase::Live;
    if let Some(request) = connection.pending.take() {
        connection.write(request.response(Value::Null));
    }
    startup::set_off(connection);
}
