//! Several clients of one session: its owner, and others that debug one task each.

use sdm_core::CommandId;
use sdm_core::message::Health;
use sdm_debug::{Command, Event};
use sdm_idset::{IdSet, TaskId};
use sdm_session::SessionEvent;
use serde_json::{Value, json};

use super::{disconnect, run_control, state};
use crate::action::Action;
use crate::answers::Answers;
use crate::arguments::RankArguments;
use crate::connection::{Connection, Phase, Role};
use crate::error::{Handled, RequestError};
use crate::frame::framed;
use crate::jobs::Purpose;
use crate::launch::Configuration;
use crate::message::Request;
use crate::output::Output;
use crate::thread_ids::Rows;

use sdm_debug::reply::Stop;

/// Handles `sdm/focus`: asks the client to debug one rank in a session of its own.
pub(super) fn focus(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: RankArguments = request.read()?;
    let task = TaskId(arguments.rank);
    if connection.company.role != Role::Owner {
        let text = "this session already shows one rank";
        return Err(RequestError::Tasks(text.to_owned()));
    }
    if !connection.tasks.live().contains(task) {
        let text = format!("rank {} does not exist or has ended", arguments.rank);
        return Err(RequestError::Tasks(text));
    }
    connection
        .company
        .inviting
        .push_back((request.clone(), task));
    connection.act(Action::Invite);
    Ok(None)
}

/// Answers a request for an additional client: with the configuration that contains the address of this session, or
/// with the reason why there is none.
pub(super) fn handle_invited(connection: &mut Connection, invited: Result<String, RequestError>) {
    let Some((request, task)) = connection.company.inviting.pop_front() else {
        return;
    };
    let address = match invited {
        Ok(address) => address,
        Err(why) => return connection.write(request.refusal(&why)),
    };
    let adapter = connection.company.initialize.as_ref();
    let adapter = adapter.and_then(|initialize| initialize.arguments.get("adapterID"));
    let configuration = json!({
        "type": adapter.and_then(Value::as_str).unwrap_or("sdm"),
        "request": "attach",
        "name": format!("rank {}", task.0),
        "rank": task.0,
        "__sdmSession": address,
    });
    if connection.client.supports_start_debugging_request {
        let arguments = json!({"request": "attach", "configuration": &configuration});
        connection.write(json!({
            "type": "request", "command": "startDebugging", "arguments": arguments,
        }));
    }
    // A client without support for `startDebugging` finds here the configuration to start by hand.
    connection.write(request.response(json!({"configuration": configuration})));
}

/// Handles an attach request that names a session which is already open.
pub(super) fn attach(
    connection: &mut Connection,
    request: &Request,
    configuration: Configuration,
) -> Handled {
    let address = configuration.session.unwrap_or_default();
    match &connection.company.role {
        Role::Beside(word) if *word == address => {
            let rank = configuration.rank.ok_or_else(|| {
                RequestError::Configuration("the attribute `rank` is missing".to_owned())
            })?;
            connection.manner.attached = true;
            connection.manner.stop_at_entry = true;
            connection.tasks = crate::tasks::Tasks::new(IdSet::single(TaskId(rank)));
            connection.pending = Some(request.clone());
            connection.act(Action::Join);
        }
        Role::Beside(_) => {
            let text = match address.is_empty() {
                true => {
                    "this adapter already serves an editor: start another `sdm dap` for a new session"
                }
                false => "the session was replaced by another one",
            };
            return Err(RequestError::Opening(text.to_owned()));
        }
        Role::Owner | Role::Relay => {
            let mut said = Vec::new();
            for request in connection.company.initialize.iter().chain([request]) {
                let bytes = json!({
                    "seq": request.seq, "type": "request", "command": request.command,
                    "arguments": request.arguments,
                });
                said.extend(framed(bytes.to_string().as_bytes()));
            }
            connection.company.role = Role::Relay;
            connection.act(Action::Relay { address, said });
        }
    }
    Ok(None)
}

/// Ends the connection, as the other session cannot be reached.
pub(super) fn handle_unreached(connection: &mut Connection, why: &str) {
    let text = format!("sdm: cannot connect to the session, which may have ended: {why}\n");
    connection.say("important", &text);
    connection.event("terminated", Value::Null);
    disconnect::leave(connection);
}

/// Adds the task to this client too, in the state known to the session's owner.
pub(super) fn handle_joined(connection: &mut Connection, owner: &Connection) {
    let Some(request) = connection.pending.take() else {
        return;
    };
    let wanted = connection.tasks.all().clone();
    let tasks = owner.tasks.among(&wanted);
    if tasks.live().is_empty() || owner.phase != Phase::Live {
        let text = "this rank does not exist or has ended";
        connection.write(request.refusal(&RequestError::Opening(text.to_owned())));
        connection.phase = Phase::Ended;
        connection.event("terminated", Value::Null);
        return;
    }
    connection.tasks = tasks;
    connection.rows = Rows::of_one();
    connection.output = Output::new(false);
    connection.phase = Phase::Configuring;
    super::stopped_events::regroup_quietly(connection);
    for id in owner.jobs.moving() {
        connection.jobs.adopt(id, Purpose::Foreign(Vec::new()));
    }
    connection.write(request.response(Value::Null));
    let name = format!("rank {wanted}");
    connection.event(
        "process",
        json!({"name": name, "startMethod": "attach", "isLocalProcess": false}),
    );
    connection.event("initialized", Value::Null);
}

/// Records a command of another client that kills or resumes tasks; other commands do not concern this client.
pub(super) fn handle_foreign(
    connection: &mut Connection,
    to: &IdSet,
    command: &Command,
    id: CommandId,
) {
    if *command == Command::Kill {
        connection.jobs.adopt(id, Purpose::Kill);
        return;
    }
    if !command.is_run_control() {
        return;
    }
    let tasks = to.intersection(&connection.tasks.standing());
    let before = let_run(connection, &tasks);
    connection.jobs.adopt(id, Purpose::Foreign(before));
    connection.settling.foreign.union_with(&tasks);
    if let Some(console) = &connection.prompt.console {
        console.shell.note_run(id, &tasks);
    }
}

/// Marks tasks as running that no request of this client has resumed, and tells the client; returns their stops from
/// before.
pub(super) fn let_run(connection: &mut Connection, to: &IdSet) -> Vec<(Stop, IdSet)> {
    let standing = connection.tasks.standing();
    let tasks = to.intersection(&standing);
    let rows = connection.rows.iter();
    let moved = rows.filter(|row| {
        let stood = row.group.tasks.intersection(&standing);
        !stood.is_empty() && stood.is_subset(&tasks)
    });
    let moved: Vec<i64> = moved.map(|row| row.id).collect();
    let before = run_control::set_running(connection, &tasks);
    connection.settling.changed = true;
    for thread in moved {
        let all = tasks == standing;
        let body = json!({"threadId": thread, "allThreadsContinued": all});
        connection.event("continued", body);
    }
    before
}

/// Marks the tasks as stopped again that another client failed to resume; called when all have answered.
pub(super) fn finish_foreign(
    connection: &mut Connection,
    before: &[(Stop, IdSet)],
    answers: &[Answers],
) {
    let failed = answers.iter().flat_map(|answers| &answers.all.failed);
    let failed = IdSet::union_all(failed.map(|(tasks, _)| tasks));
    let failed = failed.intersection(&connection.tasks.running());
    state::stand_again(connection, before, &failed);
}

/// The part of an event about the task of an additional client; `None` if it is only for the session's owner.
pub(super) fn own_part(connection: &Connection, event: SessionEvent) -> Option<SessionEvent> {
    if !matches!(connection.company.role, Role::Beside(_)) {
        return Some(event);
    }
    let all = connection.tasks.all();
    match event {
        SessionEvent::Events(events) => {
            let events = events.into_iter().filter_map(|(tasks, event)| {
                let tasks = tasks.intersection(all);
                let is_own = !tasks.is_empty() && !matches!(event, Event::Joined(_));
                is_own.then_some((tasks, event))
            });
            Some(SessionEvent::Events(events.collect()))
        }
        SessionEvent::Health { tasks, health, why } => {
            let tasks = tasks.intersection(all);
            let is_own = !tasks.is_empty() && matches!(health, Health::Lost);
            is_own.then_some(SessionEvent::Health { tasks, health, why })
        }
        SessionEvent::Launcher { .. }
        | SessionEvent::Passed { .. }
        | SessionEvent::LauncherEnded { .. } => None,
        other => Some(other),
    }
}
