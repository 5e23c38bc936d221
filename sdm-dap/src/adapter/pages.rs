//! Requests of a live page that the client shows: its files, its records, and the lines that are typed there.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{evaluation, prompt};
use crate::connection::{Connection, Phase};
use crate::console::{Console, ConsoleLine};
use crate::error::{Handled, RequestError};
use crate::message::Request;
use crate::repl::{self, LineCommand, LineRequest};

/// The arguments of `sdm/events`.
#[derive(Default, Deserialize)]
struct EventsArguments {
    /// Number of the last record that the page has; 0 for a page without records.
    #[serde(default)]
    after: u64,
    /// The width of the page's console, in columns. `None` until the page has measured it.
    columns: Option<usize>,
}

/// The arguments of `sdm/line`.
#[derive(Default, Deserialize)]
struct LineArguments {
    text: String,
}

/// Handles `sdm/page`: the files of the page, which are the same as in a browser.
pub(super) fn files() -> Handled {
    let files = sdm_web::FILES.iter();
    let files = files.map(|(path, kind, text)| json!({"path": path, "type": kind, "text": text}));
    Ok(Some(json!({"files": files.collect::<Vec<_>>()})))
}

/// Handles `sdm/events`: answered once there is a record that the page does not have.
pub(super) fn events(connection: &mut Connection, request: &Request) -> Handled {
    let EventsArguments { after, columns } = request.read()?;
    if let Some(columns) = columns {
        connection.prompt.pages.news.set_columns(columns);
    }
    if let Some(answer) = connection.prompt.pages.wait(request, after) {
        connection.write(answer);
    }
    Ok(None)
}

/// Handles `sdm/line`: carries out a line as the console does. Its output is in the records.
pub(super) fn line(connection: &mut Connection, request: &Request) -> Handled {
    let LineArguments { text } = request.read()?;
    if !sdm_web::is_line(&text) {
        return Err(RequestError::Arguments {
            command: request.command.clone(),
            why: "the line contains control characters".to_owned(),
        });
    }
    prompt::open(connection);
    let typed = format!("(sdm) {text}\n");
    connection.prompt.pages.take_line(&typed);
    connection.say("console", &typed);
    let read = match prompt::wants(connection, &text) {
        true => Ok(None),
        false => repl::read(&text, &connection.tasks),
    };
    let runs = match read {
        Ok(Some(LineCommand {
            tasks,
            wish: wish @ (LineRequest::Interrupt | LineRequest::Restart(_)),
        })) => return evaluation::carry_out(connection, request, &wish, tasks),
        // The shell has the reason for an error.
        read => matches!(read, Ok(Some(it)) if it.wish == LineRequest::Shell(true)),
    };
    let line = ConsoleLine {
        request: None,
        text,
        runs,
    };
    prompt::add_line(connection, line)?;
    Ok(Some(Value::Null))
}

/// Handles `sdm/interrupt` and `sdm/suspend`, which act as Ctrl-C and Ctrl-Z at the prompt.
pub(super) fn give_up(connection: &mut Connection, request: &Request) -> Handled {
    let console = connection.prompt.console.as_ref();
    if let Some(console) = console.filter(|it| it.shell.is_busy() || it.shell.is_looking()) {
        console.shell.give_up(request.command == "sdm/interrupt");
    }
    Ok(Some(Value::Null))
}

/// Prepares the console for a page that waits for records of it.
pub(super) fn prepare(connection: &mut Connection) {
    let is_begun = matches!(connection.phase, Phase::Configuring | Phase::Live);
    if is_begun && connection.prompt.pages.are_waiting() {
        prompt::open(connection);
        // What a line changes is known once it is done.
        let console = connection.prompt.console.as_ref();
        if console.is_some_and(Console::is_idle) {
            prompt::prepare(connection);
        }
    }
}

/// Sends the pages the records that the pages do not have.
pub(super) fn tell(connection: &mut Connection) {
    let pages = &mut connection.prompt.pages;
    if !pages.are_waiting() {
        return;
    }
    let console = connection.prompt.console.as_ref();
    if let Some(console) = console.filter(|console| console.is_idle()) {
        pages.ask(console.shell.prompt());
    }
    for answer in pages.take_answers() {
        connection.write(answer);
    }
}
