//! What each request is, and which are known.

use serde_json::{Value, json};

use super::{begin, end, looking, moving, pointing, stopping};
use crate::action::Action;
use crate::arguments::InitializeArguments;
use crate::connection::{Connection, Phase};
use crate::error::{Handled, RequestError, early};
use crate::message::Request;

pub(super) fn handle_request(connection: &mut Connection, request: Request) {
    if matches!(connection.phase, Phase::Closing | Phase::Over) {
        let why = "the session is at its end";
        let command = request.command.clone();
        connection.write(request.refusal(&RequestError::Order { command, why }));
        return;
    }
    match dispatch(connection, &request) {
        Ok(Some(body)) => {
            connection.write(request.response(body));
            follow(connection, &request);
        }
        Ok(None) => {}
        Err(why) => connection.write(request.refusal(&why)),
    }
}

fn dispatch(connection: &mut Connection, request: &Request) -> Handled {
    let name = request.command.as_str();
    match name {
        "initialize" => return initialize(connection, request),
        "disconnect" => return end::disconnect(connection, request),
        "cancel" => return cancel(connection, request),
        _ if connection.phase == Phase::New => return Err(early(name, "`initialize` comes first")),
        "launch" => return begin::launch(connection, request),
        "attach" => return begin::attach(connection, request),
        "terminate" => return Ok(Some(Value::Null)),
        "threads" => return Ok(Some(stopping::threads(connection))),
        _ => {}
    }
    let handled = dispatch_live(connection, request);
    match (handled, connection.phase) {
        (Err(RequestError::Unknown(name)), _) => Err(RequestError::Unknown(name)),
        (_, Phase::Initialized) => Err(early(name, "`launch` or `attach` comes first")),
        (_, Phase::Beginning) => Err(early(name, "the programs are not at `main` yet")),
        (handled, _) => handled,
    }
}

/// Those that are about tasks.
fn dispatch_live(connection: &mut Connection, request: &Request) -> Handled {
    let begun = connection.phase >= Phase::Configuring;
    match request.command.as_str() {
        "configurationDone" if begun => begin::configuration_done(connection, request),
        "setBreakpoints" if begun => pointing::set_breakpoints(connection, request),
        "setFunctionBreakpoints" if begun => {
            pointing::set_function_breakpoints(connection, request)
        }
        "continue" if begun => moving::go_on(connection, request),
        "next" | "stepIn" | "stepOut" if begun => moving::step(connection, request),
        "pause" if begun => moving::pause(connection, request),
        "stackTrace" if begun => stopping::stack_trace(connection, request),
        "scopes" if begun => looking::scopes(connection, request),
        "variables" if begun => looking::variables(connection, request),
        "evaluate" if begun => looking::evaluate(connection, request),
        "configurationDone"
        | "setBreakpoints"
        | "setFunctionBreakpoints"
        | "continue"
        | "next"
        | "stepIn"
        | "stepOut"
        | "pause"
        | "stackTrace"
        | "scopes"
        | "variables"
        | "evaluate" => Ok(None),
        name => Err(RequestError::Unknown(name.to_owned())),
    }
}

/// What is done once the response to a request was written.
fn follow(connection: &mut Connection, request: &Request) {
    match request.command.as_str() {
        "configurationDone" => begin::set_off(connection),
        "terminate" => end::end_tasks(connection),
        "disconnect" => end::leave(connection),
        _ => {}
    }
}

fn initialize(connection: &mut Connection, request: &Request) -> Handled {
    if connection.phase != Phase::New {
        return Err(early("initialize", "it comes once"));
    }
    connection.client = request.read::<InitializeArguments>()?;
    connection.phase = Phase::Initialized;
    Ok(Some(capabilities()))
}

/// `cancel`: a question that tasks have not answered is given up.
fn cancel(connection: &mut Connection, request: &Request) -> Handled {
    let seq = request.arguments.get("requestId").and_then(Value::as_i64);
    if let Some((given_up, commands)) = seq.and_then(|seq| connection.jobs.give_up(seq)) {
        for command in commands {
            connection.act(Action::Cancel(command));
        }
        connection.write(given_up.refusal(&RequestError::Cancelled));
    }
    Ok(Some(Value::Null))
}

/// What the adapter can do: true to what is there.
fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsLogPoints": true,
        "supportsEvaluateForHovers": true,
        "supportsSteppingGranularity": true,
        "supportsSingleThreadExecutionRequests": true,
        "supportsTerminateRequest": true,
        "supportTerminateDebuggee": true,
        "supportsDelayedStackTraceLoading": true,
        "supportsCancelRequest": true,
    })
}
