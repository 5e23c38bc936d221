//! Resumes and stops tasks.

use sdm_debug::Command;
use sdm_debug::command::{FrameSelect, StepKind};
use sdm_debug::reply::Stop;
use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::state;
use crate::answers::Answers;
use crate::arguments::{ScopeArguments, ThreadArguments};
use crate::connection::Connection;
use crate::error::Handled;
use crate::error::RequestError;
use crate::jobs::Purpose;
use crate::launch::Scope;
use crate::message::Request;
use crate::stop_coalescing::Step;
use crate::tasks::Condition;

/// Maximum number of repeated stop requests to tasks for one `pause`.
const PAUSES_MAX: u32 = 1000;

/// The tasks that a request about a thread moves, and whether these are all stopped tasks.
fn moved(
    connection: &mut Connection,
    arguments: &ThreadArguments,
) -> Result<(IdSet, bool), RequestError> {
    let id = arguments.thread_id;
    let row = connection.row(id)?;
    let standing = connection.tasks.standing();
    let class = row.group.tasks.intersection(&standing);
    let alone = arguments.single_thread || connection.manner.scope == Scope::Class;
    let moved = if alone { class } else { standing.clone() };
    if moved.is_empty() {
        return Err(RequestError::Runs(format!("thread {id}")));
    }
    connection.rows.focused = id;
    let all = moved == standing;
    Ok((moved, all))
}

/// Handles `sdm/scope`: sets the tasks that F5 and steps move. Only some editors offer it.
pub(super) fn set_scope(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: ScopeArguments = request.read()?;
    connection.manner.scope = arguments.scope;
    Ok(Some(Value::Null))
}

pub(super) fn go_on(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: ThreadArguments = request.read()?;
    let (tasks, all) = moved(connection, &arguments)?;
    connection.write(request.response(json!({"allThreadsContinued": all})));
    run(connection, "continue", &tasks, &Command::Continue);
    Ok(None)
}

pub(super) fn step(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: ThreadArguments = request.read()?;
    let (tasks, _) = moved(connection, &arguments)?;
    let instruction = arguments.granularity.as_deref() == Some("instruction");
    let step = |kind| Command::Step { kind, count: 1 };
    let (said, command) = match (request.command.as_str(), instruction) {
        ("next", false) => ("next", step(StepKind::Over)),
        ("next", true) => ("nexti", step(StepKind::InstructionOver)),
        ("stepIn", false) => ("step", step(StepKind::Into)),
        ("stepIn", true) => ("stepi", step(StepKind::Instruction)),
        _ => ("finish", Command::Finish),
    };
    connection.write(request.response(Value::Null));
    run(connection, said, &tasks, &command);
    connection.settling.watch_step(Step {
        began: connection.now,
        said,
        moved: tasks,
    });
    Ok(None)
}

/// Resumes these tasks.
pub(super) fn run(
    connection: &mut Connection,
    said: &'static str,
    tasks: &IdSet,
    command: &Command,
) {
    if tasks.is_empty() {
        return;
    }
    let mut commands = Vec::new();
    let is_of_a_thread = matches!(command, Command::Step { .. } | Command::Finish);
    if is_of_a_thread {
        commands = select(connection, tasks, None);
    }
    commands.push((tasks.clone(), command.clone()));
    let before = set_running(connection, tasks);
    connection.begin_job(Purpose::Run { said, before }, commands);
}

/// Resumes the tasks that have stopped where the client does not want a stop.
pub(super) fn pass_by(connection: &mut Connection) {
    let passing = std::mem::take(&mut connection.settling.passing);
    let passing = passing.intersection(&connection.tasks.standing());
    run(connection, "continue", &passing, &Command::Continue);
}

/// Marks these tasks as running; returns their stops from before.
pub(super) fn set_running(connection: &mut Connection, tasks: &IdSet) -> Vec<(Stop, IdSet)> {
    let before = connection.tasks.stops().map(|(stop, standing)| {
        let concerned = standing.intersection(tasks);
        (stop.clone(), concerned)
    });
    let before = before.filter(|(_, set)| !set.is_empty()).collect();
    state::forget(connection, tasks);
    connection.tasks.set(tasks, Condition::Running);
    connection.settling.begin();
    connection.settling.pausing.0.subtract(tasks);
    before
}

/// Selects the thread of a step and its innermost frame, as the client may have examined others. `id` is the client's
/// number of the thread, if it is not the one in focus.
pub(super) fn select(
    connection: &Connection,
    tasks: &IdSet,
    id: Option<i64>,
) -> Vec<(IdSet, Command)> {
    let threads = &connection.os_threads;
    let id = id.unwrap_or(connection.rows.focused);
    let number = threads.number(id).filter(|_| threads.are_several());
    let other = number.filter(|number| Some(*number) != threads.current());
    let thread = number.map(|number| (tasks.clone(), Command::SelectThread { number }));
    if other.is_some() {
        return thread.into_iter().collect();
    }
    let rows = connection.rows.iter();
    let standing = rows.filter_map(|row| row.group.standing.as_ref());
    let bases = standing.flat_map(|standing| &standing.bases);
    let frames = bases.map(|(set, level)| {
        let command = Command::SelectFrame(FrameSelect::Level(*level));
        (set.intersection(tasks), command)
    });
    thread.into_iter().chain(frames).collect()
}

/// Handles the answers of a whole run. Returns the tasks that could not run, which are stopped as before.
pub(super) fn finish_run(
    connection: &mut Connection,
    said: &'static str,
    before: &[(Stop, IdSet)],
    answers: &[Answers],
) -> IdSet {
    let Some(answers) = answers.last() else {
        return IdSet::new();
    };
    let failed = answers.all.failed.iter().map(|(tasks, _)| tasks);
    let failed = IdSet::union_all(failed).intersection(&connection.tasks.running());
    if let Some(complaint) = answers.complaint() {
        connection.say("important", &format!("{said}: {complaint}\n"));
    }
    state::stand_again(connection, before, &failed);
    failed
}

pub(super) fn pause(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: ThreadArguments = request.read()?;
    let running = connection.tasks.running();
    let row = connection.row(arguments.thread_id);
    let tasks = match (row, connection.manner.scope) {
        (Ok(row), Scope::Class) => row.group.tasks.intersection(&running),
        _ => running,
    };
    if tasks.is_empty() {
        return Err(RequestError::Stands);
    }
    connection.write(request.response(Value::Null));
    interrupt(connection, tasks);
    Ok(None)
}

/// Stops these tasks.
pub(super) fn interrupt(connection: &mut Connection, tasks: IdSet) {
    connection.settling.pausing = (tasks.clone(), 0);
    connection.begin_job(Purpose::Interrupt, vec![(tasks, Command::Interrupt)]);
}

pub(super) fn finish_interrupt(connection: &mut Connection, answers: &[Answers]) {
    if let Some(complaint) = answers.first().and_then(Answers::complaint) {
        connection.say("important", &format!("pause: {complaint}\n"));
    }
    // An interrupt overtakes other commands. It may have found a task stopped that an earlier command resumes
    // afterwards. Such a task is interrupted again. If it is stopped, and only its report is outstanding, this has no
    // effect.
    let (pausing, asked) = &mut connection.settling.pausing;
    let again = pausing.intersection(&connection.tasks.running());
    let done = answers.iter().flat_map(Answers::replies);
    let done = IdSet::union_all(done.map(|(tasks, _)| tasks));
    let again = again.intersection(&done);
    if !again.is_empty() && *asked < PAUSES_MAX {
        *asked += 1;
        connection.begin_job(Purpose::Interrupt, vec![(again, Command::Interrupt)]);
    }
}
