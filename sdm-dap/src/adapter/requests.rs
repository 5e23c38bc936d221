//! The known requests, and their dispatch.

use serde_json::{Value, json};

use super::{
    asking, begin, beside, consoling, end, frames, going, looking, moving, pointing, restarting,
    stopping,
};
use crate::action::Action;
use crate::arguments::InitializeArguments;
use crate::beforehand::Beforehand;
use crate::connection::{Connection, Phase};
use crate::error::{Handled, RequestError, early};
use crate::message::Request;
use crate::points::{ENDING_FILTERS, EXCEPTION_FILTERS};

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
        "disconnect" => return end::disconnect(connection, request),
        "cancel" => return cancel(connection, request),
        _ if connection.phase == Phase::New => {
            return Err(early(name, "`initialize` must come first"));
        }
        "launch" => return begin::launch(connection, request),
        "attach" => return begin::attach(connection, request),
        "terminate" => return Ok(Some(Value::Null)),
        // Editors request the threads at any time.
        "threads" => return stopping::threads(connection, request),
        _ => {}
    }
    let known = HANDLERS.iter().find(|(known, _)| *known == name);
    let Some((_, handler)) = known else {
        return Err(RequestError::Unknown(request.command.clone()));
    };
    match connection.phase {
        Phase::Initialized => Err(early(name, "`launch` or `attach` must come first")),
        Phase::Beginning if Beforehand::takes(name) => {
            connection.anew.beforehand.wait(connection.now, request)
        }
        Phase::Beginning => Err(early(name, "the programs are not at `main` yet")),
        _ => handler(connection, request),
    }
}

/// The function that carries out a request.
type Handler = fn(&mut Connection, &Request) -> Handled;

/// The handlers of requests about tasks.
const HANDLERS: [(&str, Handler); 33] = [
    ("completions", asking::completions_of),
    ("configurationDone", begin::configuration_done),
    ("continue", moving::go_on),
    ("dataBreakpointInfo", pointing::data_breakpoint_info),
    ("disassemble", asking::disassemble),
    ("evaluate", looking::evaluate),
    ("exceptionInfo", asking::exception_info),
    ("goto", going::goto),
    ("gotoTargets", going::goto_targets),
    ("loadedSources", going::loaded_sources),
    ("modules", asking::modules),
    ("next", moving::step),
    ("pause", moving::pause),
    ("readMemory", asking::read_memory),
    ("restart", restarting::restart),
    ("scopes", looking::scopes),
    ("sdm/focus", beside::focus),
    ("sdm/ranks", asking::ranks),
    ("sdm/scope", moving::set_scope),
    ("setBreakpoints", pointing::set_breakpoints),
    ("setDataBreakpoints", pointing::set_data_breakpoints),
    (
        "setExceptionBreakpoints",
        pointing::set_exception_breakpoints,
    ),
    ("setExpression", asking::set_expression),
    ("setFunctionBreakpoints", pointing::set_function_breakpoints),
    (
        "setInstructionBreakpoints",
        pointing::set_instruction_breakpoints,
    ),
    ("setVariable", asking::set_variable),
    ("source", asking::source),
    ("stackTrace", frames::stack_trace),
    ("stepIn", moving::step),
    ("stepOut", moving::step),
    ("threads", stopping::threads),
    ("variables", looking::variables),
    ("writeMemory", asking::write_memory),
];

/// The follow-up once the response to a request is written.
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
        return Err(early("initialize", "allowed once"));
    }
    connection.client = request.read::<InitializeArguments>()?;
    connection.company.initialize = Some(request.clone());
    connection.phase = Phase::Initialized;
    Ok(Some(capabilities()))
}

/// Handles `cancel`: cancels an unanswered request to the tasks, or a start in progress.
fn cancel(connection: &mut Connection, request: &Request) -> Handled {
    let seq = request.arguments.get("requestId").and_then(Value::as_i64);
    let progress = request.arguments.get("progressId").and_then(Value::as_str);
    begin::give_up(connection, seq, progress);
    if let Some((given_up, commands)) = seq.and_then(|seq| connection.jobs.give_up(seq)) {
        for command in commands {
            connection.act(Action::Cancel(command));
        }
        connection.write(given_up.refusal(&RequestError::Cancelled));
    }
    if let Some(given_up) = seq.and_then(|seq| consoling::give_up(connection, seq)) {
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
