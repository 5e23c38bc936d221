//! The known requests, and their dispatch.

use serde_json::{Value, json};

use super::{
    breakpoints, disconnect, evaluation, frames, goto, multi_client, pages, prompt, queries,
    restart, run_control, startup, stopped_events, variables,
};
use crate::action::Action;
use crate::arguments::InitializeArguments;
use crate::client_breakpoints::{ENDING_FILTERS, EXCEPTION_FILTERS};
use crate::connection::{Connection, Phase};
use crate::deferred_requests::DeferredRequests;
use crate::error::{Handled, RequestError, early};
use crate::message::Request;

pub(super) fn handle_request(connection: &mut Connection, request: Request) {
    if connection.phase >= Phase::Leaving {
        let why = "the session is ending";
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
        "disconnect" => return disconnect::disconnect(connection, request),
        "cancel" => return cancel(connection, request),
        _ if connection.phase == Phase::New => {
            return Err(early(name, "`initialize` must come first"));
        }
        "launch" => return startup::launch(connection, request),
        "attach" => return startup::attach(connection, request),
        "terminate" => return Ok(Some(Value::Null)),
        // Editors request the threads at any time.
        "threads" => return stopped_events::threads(connection, request),
        // A page may be shown before there is anything on it.
        "sdm/page" => return pages::files(),
        "sdm/events" => return pages::events(connection, request),
        _ => {}
    }
    let known = HANDLERS.iter().find(|(known, _)| *known == name);
    let Some((_, handler)) = known else {
        return Err(RequestError::Unknown(request.command.clone()));
    };
    match connection.phase {
        Phase::Initialized => Err(early(name, "`launch` or `attach` must come first")),
        Phase::Beginning if DeferredRequests::takes(name) => {
            connection.anew.beforehand.wait(connection.now, request)
        }
        Phase::Beginning => Err(early(name, "the programs are not at `main` yet")),
        _ => handler(connection, request),
    }
}

/// The function that carries out a request.
type Handler = fn(&mut Connection, &Request) -> Handled;

/// The handlers of requests about tasks.
const HANDLERS: [(&str, Handler); 36] = [
    ("completions", queries::completions_of),
    ("configurationDone", startup::configuration_done),
    ("continue", run_control::go_on),
    ("dataBreakpointInfo", breakpoints::data_breakpoint_info),
    ("disassemble", queries::disassemble),
    ("evaluate", evaluation::evaluate),
    ("exceptionInfo", queries::exception_info),
    ("goto", goto::goto),
    ("gotoTargets", goto::goto_targets),
    ("loadedSources", goto::loaded_sources),
    ("modules", queries::modules),
    ("next", run_control::step),
    ("pause", run_control::pause),
    ("readMemory", queries::read_memory),
    ("restart", restart::restart),
    ("scopes", variables::scopes),
    ("sdm/focus", multi_client::focus),
    ("sdm/interrupt", pages::give_up),
    ("sdm/line", pages::line),
    ("sdm/ranks", queries::ranks),
    ("sdm/scope", run_control::set_scope),
    ("sdm/suspend", pages::give_up),
    ("setBreakpoints", breakpoints::set_breakpoints),
    ("setDataBreakpoints", breakpoints::set_data_breakpoints),
    (
        "setExceptionBreakpoints",
        breakpoints::set_exception_breakpoints,
    ),
    ("setExpression", queries::set_expression),
    (
        "setFunctionBreakpoints",
        breakpoints::set_function_breakpoints,
    ),
    (
        "setInstructionBreakpoints",
        breakpoints::set_instruction_breakpoints,
    ),
    ("setVariable", queries::set_variable),
    ("source", queries::source),
    ("stackTrace", frames::stack_trace),
    ("stepIn", run_control::step),
    ("stepOut", run_control::step),
    ("threads", stopped_events::threads),
    ("variables", variables::variables),
    ("writeMemory", queries::write_memory),
];

/// Performs the follow-up of a request, once its response is written.
fn follow(connection: &mut Connection, request: &Request) {
    match request.command.as_str() {
        "configurationDone" => startup::set_off(connection),
        "terminate" => disconnect::end_tasks(connection),
        "disconnect" => disconnect::leave(connection),
        _ => {}
    }
}

fn initialize(connection: &mut Connection, request: &Request) -> Handled {
    if connection.phase != Phase::New {
        return Err(early("initialize", "allowed once"));
    }
    connection.client = request.read::<InitializeArguments>()?;
    connection.company.initialize = Some(request.clone());
    connection.phase = Phase::Initialized;
    Ok(Some(capabilities()))
}

/// Handles `cancel`: cancels an unanswered request to the tasks, a line of the console, or a start in progress.
fn cancel(connection: &mut Connection, request: &Request) -> Handled {
    let seq = request.arguments.get("requestId").and_then(Value::as_i64);
    let progress = request.arguments.get("progressId").and_then(Value::as_str);
    startup::give_up(connection, seq, progress);
    if let Some((given_up, commands)) = seq.and_then(|seq| connection.jobs.give_up(seq)) {
        for command in commands {
            connection.act(Action::Cancel(command));
        }
        connection.write(given_up.refusal(&RequestError::Cancelled));
    }
    if let Some(given_up) = seq.and_then(|seq| prompt::give_up(connection, seq)) {
        connection.write(given_up.refusal(&RequestError::Cancelled));
    }
    Ok(Some(Value::Null))
}

/// The adapter's capabilities: exactly those that are implemented.
fn capabilities() -> Value {
    let filters = EXCEPTION_FILTERS.iter().map(
        |(filter, label, _)| json!({"filter": filter, "label": label, "supportsCondition": true}),
    );
    let ending = ENDING_FILTERS
        .iter()
        .map(|(filter, label, _)| json!({"filter": filter, "label": label, "default": true}));
    let filters: Vec<Value> = ending.chain(filters).collect();
    json!({
        "exceptionBreakpointFilters": filters,
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsConditionalBreakpoints": true,
        "supportsHitConditionalBreakpoints": true,
        "supportsLogPoints": true,
        "supportsDataBreakpoints": true,
        "supportsInstructionBreakpoints": true,
        "supportsExceptionFilterOptions": true,
        "supportsExceptionInfoRequest": true,
        "supportsEvaluateForHovers": true,
        "supportsSetVariable": true,
        "supportsSetExpression": true,
        "supportsCompletionsRequest": true,
        "supportsGotoTargetsRequest": true,
        "supportsLoadedSourcesRequest": true,
        "supportsRestartRequest": true,
        "supportsModulesRequest": true,
        "supportsReadMemoryRequest": true,
        "supportsWriteMemoryRequest": true,
        "supportsDisassembleRequest": true,
        "supportsSteppingGranularity": true,
        "supportsSingleThreadExecutionRequests": true,
        "supportsTerminateRequest": true,
        "supportTerminateDebuggee": true,
        "supportsDelayedStackTraceLoading": true,
        "supportsCancelRequest": true,
    })
}
