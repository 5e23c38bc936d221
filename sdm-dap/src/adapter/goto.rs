//! Targets of `goto`, and the sources of the programs.

use sdm_debug::command::BreakSpec;
use sdm_debug::reply::Stop;
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use serde_json::{Value, json};

use super::{run_control, state};
use crate::answers::Answers;
use crate::arguments::GotoArguments;
use crate::breakpoint_spec::file_line;
use crate::connection::Connection;
use crate::error::{Handled, RequestError};
use crate::jobs::{Purpose, Question};
use crate::locations;
use crate::message::Request;

/// Maximum number of sources in one response.
const SOURCES_MAX: usize = 10_000;

/// Handles `gotoTargets`: asks one task whether a line has code. The other tasks find their code when they jump
/// there.
pub(super) fn goto_targets(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: GotoArguments = request.read()?;
    let path = arguments.source.path.or(arguments.source.name);
    let path = path.unwrap_or_default();
    let line = arguments.line.saturating_sub(connection.line_base());
    let line = line.saturating_add(1);
    let location = file_line(&path, line);
    let command = Command::Console {
        line: format!("info line {location}"),
    };
    let commands = vec![(connection.one()?, command)];
    let question = Question::Target(location);
    connection.ask(request, question, commands);
    Ok(None)
}

/// The targets at a location, from the output of gdb's `info line`.
pub(super) fn targets(connection: &mut Connection, location: &str, answers: &Answers) -> Value {
    let text = answers.replies().find_map(|(_, reply)| match reply {
        Reply::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let Some((line, address)) = text.and_then(locations::code_at) else {
        return json!({"targets": []});
    };
    let file = location.rsplit_once(':').map_or(location, |(file, _)| file);
    let id = connection.references.places.add(format!("{file}:{line}"));
    let label = file.trim_matches('"').rsplit('/').next();
    json!({"targets": [{
        "id": id,
        "label": format!("{}:{line}", label.unwrap_or_default()),
        "line": line - 1 + connection.line_base(),
        "instructionPointerReference": address,
    }]})
}

/// Moves the tasks of a thread to another line without running the code between. Other tasks stay where they are.
pub(super) fn goto(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: GotoArguments = request.read()?;
    let id = arguments.thread_id;
    let row = connection.row(id)?;
    let tasks = row.group.tasks.intersection(&connection.tasks.standing());
    let location = connection.references.places.get(arguments.target_id);
    let location = location.map(str::to_owned);
    let location = location.ok_or_else(|| {
        let id = arguments.target_id;
        RequestError::Tasks(format!("{id} is not the number of a goto target"))
    })?;
    if tasks.is_empty() {
        return Err(RequestError::Runs(format!("thread {id}")));
    }
    connection.write(request.response(Value::Null));
    // gdb's `jump` continues from the location. The breakpoint stops the task there at once.
    let number = connection.points.next_number();
    connection.references.places.arrival = Some(number);
    let arrival = Command::BreakInsert(BreakSpec {
        number,
        location: location.clone(),
        temporary: true,
        ..BreakSpec::default()
    });
    let mut commands = run_control::select(connection, &tasks, Some(id));
    commands.push((tasks.clone(), arrival));
    commands.push((tasks.clone(), Command::Jump { location }));
    let before = run_control::set_running(connection, &tasks);
    let purpose = Purpose::Goto { before, number };
    connection.begin_job(purpose, commands);
    Ok(None)
}

/// Handles the answers of all tasks that were moved.
pub(super) fn finish_goto(
    connection: &mut Connection,
    (before, number): (&[(Stop, IdSet)], u32),
    answers: &[Answers],
) {
    let failed = run_control::finish_run(connection, "goto", before, answers);
    if !failed.is_empty() {
        let commands = vec![(failed, Command::BreakDelete { number })];
        connection.begin_job(Purpose::Nothing, commands);
    }
}

pub(super) fn loaded_sources(connection: &mut Connection, request: &Request) -> Handled {
    let tasks = connection.focused();
    if tasks.is_empty() {
        return Ok(Some(json!({"sources": []})));
    }
    let line = "-file-list-exec-source-files".to_owned();
    let commands = vec![(tasks, Command::Mi { line })];
    connection.ask(request, Question::Sources, commands);
    Ok(None)
}

/// The distinct sources in gdb's answers.
pub(super) fn sources(answers: &Answers) -> Value {
    let mut paths = std::collections::BTreeSet::new();
    for (_, reply) in answers.replies() {
        if let Reply::Mi { result, .. } = reply {
            let found = locations::fields(result, "fullname");
            // The compiler's own sources have a name like `<built-in>` and no file.
            paths.extend(found.filter(|path| path.starts_with('/') && !path.ends_with('>')));
        }
    }
    let sources = paths.iter().take(SOURCES_MAX).map(|path| {
        let name = path.rsplit('/').next();
        json!({"name": name, "path": path})
    });
    json!({"sources": sources.collect::<Vec<_>>()})
}

/// Adds new tasks to the session. They run, and have the breakpoints of task `like`.
pub(super) fn join(connection: &mut Connection, tasks: &IdSet, joined: &sdm_debug::Joined) {
    connection.tasks.join(tasks);
    let like = sdm_idset::TaskId(joined.like);
    connection.points.join(like, tasks);
    connection.output.label();
    connection.settling.changed = true;
    let by = joined.by.map(|by| format!("rank {by}"));
    let by = by.unwrap_or_else(|| "a PMIx tool".to_owned());
    let program = sdm_text::printable(&joined.program);
    state::tell(connection, tasks, &format!("started by {by}: {program}"));
}
