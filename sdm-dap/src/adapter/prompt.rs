//! Lines of the debug console in the language of `sdm`'s prompt: the commands that they send, and their output.

use std::sync::Arc;

use sdm_core::CommandId;
use sdm_debug::command::PointSpec;
use sdm_debug::{Command, TaskState};
use sdm_idset::IdSet;
use sdm_session::SessionEvent;
use sdm_shell::Verdict;
use sdm_shell::commands::{self, UserCommand};
use serde_json::json;

use super::{breakpoints, disconnect, multi_client, state};
use crate::action::Action;
use crate::answers::Answers;
use crate::client_breakpoints;
use crate::connection::{Connection, Phase, Role};
use crate::console::{Console, ConsoleAction, ConsoleCommand, ConsoleLine, LINES_MAX, NoMachine};
use crate::error::{Handled, RequestError};
use crate::jobs::Purpose;
use crate::message::Request;
use crate::tasks::Condition;

/// Executes a line of the debug console. A line that resumes tasks is answered at once: their stops are events.
pub(super) fn submit(
    connection: &mut Connection,
    request: &Request,
    line: &str,
    runs: bool,
) -> Handled {
    let line = ConsoleLine {
        request: (!runs).then(|| request.clone()),
        text: line.to_owned(),
        runs,
    };
    add_line(connection, line)?;
    let said = json!({"result": "", "variablesReference": 0});
    Ok(runs.then_some(said))
}

/// Adds a line to those that wait.
pub(super) fn add_line(connection: &mut Connection, line: ConsoleLine) -> Result<(), RequestError> {
    open(connection);
    let Some(console) = &mut connection.prompt.console else {
        return Ok(());
    };
    if console.lines.len() >= LINES_MAX {
        return Err(RequestError::Busy(LINES_MAX));
    }
    // Later lines do not wait for a line whose tasks run.
    if console.current.as_ref().is_some_and(|line| line.runs) {
        console.shell.give_up(false);
    }
    console.lines.push_back(line);
    Ok(())
}

/// True if the console takes a line whatever it contains: as an answer, an item of a list, or a user-defined command.
pub(super) fn wants(connection: &Connection, line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    let console = connection.prompt.console.as_ref();
    console.is_some_and(|console| console.shell.wants_a_line() || console.shell.knows(word))
}

/// Creates the console, with the adapter's present knowledge of the session.
pub(super) fn open(connection: &mut Connection) {
    if connection.prompt.console.is_some() {
        return;
    }
    let machine = match &connection.prompt.machines {
        Some(machines) => machines.make(),
        None => Box::new(NoMachine),
    };
    let tasks = connection.tasks.all().clone();
    let attached = connection.manner.attached;
    let news = Arc::clone(&connection.prompt.pages.news);
    let console = Console::new(connection.now, (tasks, attached), machine, news);
    console.shell.show_start(&connection.prompt.programs);
    for (condition, tasks) in connection.tasks.conditions() {
        let (known, stop) = match condition {
            Condition::Starting => (TaskState::Starting, None),
            Condition::Running => (TaskState::Running, None),
            Condition::CommonStop(stop) => (TaskState::Stopped, Some((**stop).clone())),
            Condition::Ended(code) => {
                let code = i32::try_from(*code).unwrap_or(i32::MAX);
                (TaskState::Exited(code), None)
            }
            Condition::Left | Condition::Gone => (TaskState::Detached, None),
        };
        console.shell.note_state(tasks, known, stop);
    }
    let running = connection.tasks.running();
    for id in connection.jobs.moving() {
        console.shell.note_run(id, &running);
    }
    connection.prompt.console = Some(console);
}

/// Passes an event of the session to the console too, except the session's end.
pub(super) fn hear(connection: &mut Connection, event: &SessionEvent) {
    let Some(console) = &mut connection.prompt.console else {
        return;
    };
    let moves = |id: &CommandId| {
        let purpose = connection.jobs.purpose(*id);
        purpose.is_some_and(Purpose::moves)
    };
    let is_known = match event {
        SessionEvent::Answer { id, .. } | SessionEvent::Complete { id } => moves(id),
        // The end of the session is reported to the client elsewhere.
        SessionEvent::Ended(_) => return,
        _ => true,
    };
    console.set_now(connection.now);
    console.handle_event(event.clone(), is_known);
}

/// Tells the console that a command was sent, if it belongs to a console line or resumes tasks.
pub(super) fn note_sent(connection: &mut Connection, id: CommandId) {
    let Some(console) = &mut connection.prompt.console else {
        return;
    };
    match connection.jobs.purpose(id) {
        Some(Purpose::Console(command)) => console.note_sent(id, command.id),
        Some(purpose) if purpose.moves() => {
            let to = connection.jobs.moved(id);
            console.shell.note_run(id, &to);
        }
        _ => {}
    }
}

/// Executes lines as far as that is possible now.
pub(super) fn settle_console(connection: &mut Connection) {
    for _ in 0..LINES_MAX {
        let Some(console) = &mut connection.prompt.console else {
            return;
        };
        console.set_now(connection.now);
        console.shell.show_due();
        if !console.shell.is_busy() {
            let looks = console.shell.is_looking() || console.lines.is_empty();
            if looks && console.shell.look() {
                match send_all(connection) {
                    true => continue,
                    false => break,
                }
            }
            let Some(line) = console.lines.pop_front() else {
                break;
            };
            let text = line.text.clone();
            console.current = Some(line);
            prepare(connection);
            if let Some(console) = &mut connection.prompt.console {
                console.shell.begin_line(&text);
            }
            continue;
        }
        let verdict = console.shell.poll();
        let sent = send_all(connection);
        match verdict {
            Some(verdict) => finish_line(connection, verdict),
            None if !sent => break,
            None => {}
        }
    }
    let shown = connection.prompt.console.as_ref().map(|console| {
        // Output that answers no request: of lines without one, and the values displayed after each stop.
        match &console.current {
            Some(line) if line.request.is_some() => String::new(),
            _ => console.take_text(),
        }
    });
    if let Some(text) = shown.filter(|text| !text.is_empty()) {
        connection.say("console", &text);
    }
}

/// Tells the shell the existing breakpoints, and reserves their numbers.
pub(super) fn prepare(connection: &mut Connection) {
    let points = connection.points.all();
    let last = connection.points.last_number();
    if let Some(console) = &connection.prompt.console {
        console.shell.note_points(&points);
        console.shell.reserve_numbers(last);
    }
}

/// Finishes the console's current line.
fn finish_line(connection: &mut Connection, verdict: Verdict) {
    let Some(console) = &mut connection.prompt.console else {
        return;
    };
    let is_over = console.shell.is_over();
    if let Some(request) = console.current.take().and_then(|line| line.request) {
        let text = console.take_text();
        let text = text.trim_end_matches('\n').to_owned();
        let answer = match verdict {
            Verdict::Failed if !text.is_empty() => request.refusal(&RequestError::Tasks(text)),
            Verdict::GivenUp => request.refusal(&RequestError::Cancelled),
            _ => request.response(json!({"result": text, "variablesReference": 0})),
        };
        connection.write(answer);
    }
    // `quit` ends what a disconnect would end.
    if is_over && connection.company.role == Role::Owner && connection.phase < Phase::Ended {
        connection.prompt.console = None;
        disconnect::end_tasks(connection);
    }
}

/// Sends the commands of lines; false if there were none.
fn send_all(connection: &mut Connection) -> bool {
    let mut some = false;
    loop {
        let said = connection
            .prompt
            .console
            .as_ref()
            .and_then(Console::next_said);
        let Some(said) = said else {
            return some;
        };
        some = true;
        match said {
            ConsoleAction::Cancel(own) => {
                let console = connection.prompt.console.as_ref();
                let id = console.and_then(|console| console.sent_as(own));
                if let Some(id) = id {
                    connection.act(Action::Cancel(id));
                }
            }
            ConsoleAction::Send(id, to, command, options) => {
                let mut before = Vec::new();
                if command.is_run_control() {
                    before = multi_client::let_run(connection, &to);
                }
                note_point(connection, &to, &command);
                let purpose = Purpose::Console(Box::new(ConsoleCommand {
                    id,
                    command: (*command).clone(),
                    before,
                }));
                let action = connection.jobs.begin_one(purpose, (to, *command), options);
                connection.act(action);
            }
        }
    }
}

/// Records a change of the breakpoints by a console line.
fn note_point(connection: &mut Connection, to: &IdSet, command: &Command) {
    let spec = match command {
        Command::BreakInsert(spec) => PointSpec::Break(spec.clone()),
        Command::WatchInsert(spec) => PointSpec::Watch(spec.clone()),
        Command::CatchInsert(spec) => PointSpec::Catch(spec.clone()),
        Command::BreakDelete { number } => {
            if connection.points.remove(*number, to) {
                breakpoints::tell_gone(connection, *number);
            }
            return;
        }
        Command::BreakCondition { number, condition } => {
            connection.points.set_condition(*number, condition.as_ref());
            return;
        }
        Command::BreakEnable { number, enabled } => {
            connection.points.switch(*number, to, *enabled);
            return;
        }
        Command::BreakIgnore { number, count } => {
            connection.points.set_ignored(*number, *count);
            return;
        }
        Command::BreakCommands { number, lines } => {
            connection.points.set_commands(*number, lines);
            return;
        }
        _ => return,
    };
    let is_of_all = connection.tasks.live().is_subset(to);
    let meant = (!is_of_all).then(|| to.clone());
    connection.points.adopt(spec, meant);
}

/// Completes a command of a console line.
pub(super) fn finish_command(
    connection: &mut Connection,
    command: &ConsoleCommand,
    answers: &[Answers],
) {
    match &command.command {
        Command::Kill => {
            disconnect::finish_kill(connection, answers);
        }
        Command::Detach => {
            let done = answers.iter().flat_map(Answers::replies);
            let done = IdSet::union_all(done.map(|(tasks, _)| tasks));
            state::ended(connection, &done, Condition::Gone);
        }
        command if client_breakpoints::is_insert(command) => {
            breakpoints::finish_console_point(connection, command, answers);
        }
        command if command.is_run_control() => {}
        _ => return,
    }
    multi_client::finish_foreign(connection, &command.before, answers);
}

/// Abandons a console line on the client's request. Returns the request of the line if the line ends at once. `None` if
/// there is no such line, or it ends later.
pub(super) fn give_up(connection: &mut Connection, seq: i64) -> Option<Request> {
    let console = connection.prompt.console.as_mut()?;
    if let Some(line) = console.current.as_mut().filter(|line| line.is_of(seq)) {
        // A command on this machine cannot be interrupted, as it has no terminal.
        if is_of_this_machine(&line.text) {
            console.shell.abandon();
            return console.current.take()?.request;
        }
        console.shell.give_up(true);
        return None;
    }
    let at = console.lines.iter().position(|line| line.is_of(seq))?;
    console.lines.remove(at)?.request
}

fn is_of_this_machine(line: &str) -> bool {
    let parsed = commands::parse(line);
    parsed.is_ok_and(|line| matches!(line.command, UserCommand::System(_)))
}
