//! The request `evaluate`, and lines of the debug console.

use std::sync::Arc;

use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_view::render::value_text;
use serde_json::{Value, json};

use super::variables::{one_type, type_of};
use super::{prompt, restart, run_control};
use crate::answers::Answers;
use crate::arguments::EvaluateArguments;
use crate::connection::{Connection, Phase, Role};
use crate::error::{Handled, RequestError, early};
use crate::jobs::Purpose;
use crate::member_expressions::WholeKind;
use crate::memory;
use crate::message::Request;
use crate::references::{FrameHandle, Node};
use crate::repl::{self, LineCommand, LineRequest};
use crate::values::{OneValue, Variables, has_parts};

pub(super) fn evaluate(connection: &mut Connection, request: &Request) -> Handled {
    let arguments: EvaluateArguments = request.read()?;
    let expression = arguments.expression.trim().to_owned();
    let frame = match arguments.frame_id {
        None => None,
        Some(id) => {
            let frame = connection.references.frame(id);
            Some(frame.cloned().ok_or(RequestError::Frame(id))?)
        }
    };
    let standing = connection.tasks.standing();
    let mut tasks = match &frame {
        Some(frame) => frame.tasks.intersection(&standing),
        None => connection.focused(),
    };
    let mut command = Command::Evaluate {
        expression: expression.clone(),
    };
    if arguments.context.as_deref() == Some("repl") {
        if prompt::wants(connection, &expression) {
            return prompt::submit(connection, request, &expression, false);
        }
        match repl::read(&expression, &connection.tasks)? {
            Some(LineCommand { tasks: whom, wish }) => {
                prompt::open(connection);
                tasks = whom.clone().unwrap_or(tasks);
                match wish {
                    LineRequest::Ask(asked) => command = *asked,
                    LineRequest::Shell(runs) => {
                        return prompt::submit(connection, request, &expression, runs);
                    }
                    wish => return carry_out(connection, request, &wish, whom),
                }
            }
            None if expression.is_empty() => return Ok(Some(said(""))),
            None => {}
        }
    }
    let expression = repl::expression(&command).map_or(expression, str::to_owned);
    if tasks.is_empty() {
        return Err(RequestError::Runs("the selected rank".to_owned()));
    }
    let mut commands = frame
        .as_deref()
        .map(FrameHandle::select)
        .unwrap_or_default();
    for (whom, _) in &mut commands {
        whom.intersect_with(&tasks);
    }
    let is_value = matches!(command, Command::Evaluate { .. });
    if connection.client.supports_variable_type && is_value {
        commands.push((tasks.clone(), type_of(&expression)));
    }
    commands.push((tasks, command));
    let purpose = Purpose::Evaluate {
        request: request.clone(),
        expression,
        frame,
    };
    connection.begin_job(purpose, commands);
    Ok(None)
}

/// The reason for which `run` and `start` cannot restart the programs now; `None` if they can.
fn no_restart(connection: &Connection) -> Option<&'static str> {
    if connection.company.role != Role::Owner {
        return Some("the session belongs to another client");
    }
    match connection.phase {
        Phase::Live => None,
        Phase::Beginning => Some("the programs are not at `main` yet"),
        Phase::Configuring => Some("`configurationDone` must come first"),
        _ => Some("the programs have ended"),
    }
}

/// Carries out a line that interrupts tasks or restarts the job. `whom` has the tasks that the line names; `None` for
/// all tasks.
pub(super) fn carry_out(
    connection: &mut Connection,
    request: &Request,
    wish: &LineRequest,
    whom: Option<IdSet>,
) -> Handled {
    match wish {
        LineRequest::Interrupt => {
            let all = connection.tasks.all().clone();
            let running = connection.tasks.running();
            let tasks = whom.unwrap_or(all).intersection(&running);
            run_control::interrupt(connection, tasks);
        }
        LineRequest::Restart(to_main) => {
            if let Some(why) = no_restart(connection) {
                return Err(early(&request.command, why));
            }
            // The restart stops at `main`, or only at breakpoints.
            connection.manner.stop_at_entry = *to_main;
            connection.write(request.response(said("")));
            restart::begin_again(connection);
            return Ok(None);
        }
        LineRequest::Ask(_) | LineRequest::Shell(_) => {}
    }
    Ok(Some(said("")))
}

pub(super) fn finish_evaluate(
    connection: &mut Connection,
    request: &Request,
    expression: &str,
    frame: Option<&Arc<FrameHandle>>,
    answers: &[Answers],
) {
    let Some(last) = answers.last() else {
        connection.write(request.response(said("")));
        return;
    };
    if let Some(console) = &connection.prompt.console {
        console.shell.note_answer(&last.all);
    }
    let values = last.replies().filter_map(|(tasks, reply)| match reply {
        Reply::Value(value) => Some((tasks, value_text(value))),
        _ => None,
    });
    let mut variables = Variables::default();
    for (tasks, text) in values {
        let node = has_parts(&text).then(|| Node::Expression {
            frame: frame.cloned(),
            tasks: tasks.clone(),
            expression: expression.to_owned(),
            object: None,
            kind: WholeKind::of_text(&text),
            type_name: String::new(),
        });
        let tasks = tasks.clone();
        variables.add(expression, 0, OneValue { tasks, text, node });
    }
    if variables.is_empty() {
        match last.complaint().filter(|_| !last.is_done_by_any()) {
            Some(why) => connection.write(request.refusal(&RequestError::Tasks(why))),
            None => {
                let text = repl::text(last);
                let body = json!({"result": text, "variablesReference": 0});
                connection.write(request.response(body));
            }
        }
        return;
    }
    add_failures(&mut variables, expression, last);
    let variables = variables.into_sorted();
    let (text, below) = variables[0].told(&mut connection.references);
    let mut body = json!({"result": text, "variablesReference": below});
    let types = answers.iter().rev().nth(1).and_then(one_type);
    if let Some(of) = types.filter(|_| connection.client.supports_variable_type) {
        body["type"] = json!(of);
    }
    if let Some(address) = memory::pointer(&text) {
        body["memoryReference"] = json!(address);
    }
    connection.write(request.response(body));
}

/// The response to a console line without a value.
fn said(text: &str) -> Value {
    json!({"result": text, "variablesReference": 0})
}

/// Adds the tasks that cannot evaluate the expression, with the failure as value.
fn add_failures(variables: &mut Variables, name: &str, answers: &Answers) {
    for (tasks, failure) in &answers.all.failed {
        let value = OneValue {
            tasks: tasks.clone(),
            text: format!("<{failure}>"),
            node: None,
        };
        variables.add(name, 0, value);
    }
}
