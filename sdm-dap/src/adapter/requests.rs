//! What each request is, and which are known.

use serde_json::{Value, json};

use super::{Adapter, Phase};
use crate::action::Action;
use crate::arguments::InitializeArguments;
use crate::error::RequestError;
use crate::message::Request;

/// What came of a request: the body of its response, or nothing yet.
pub(super) type Handled = Result<Option<Value>, RequestError>;

impl Adapter {
    pub(super) fn handle_request(&mut self, request: Request) {
        if matches!(self.phase, Phase::Closing | Phase::Over) {
            let why = "the session is at its end";
            let command = request.command.clone();
            self.write(request.refusal(&RequestError::Order { command, why }));
            return;
        }
        match self.dispatch(&request) {
            Ok(Some(body)) => {
                self.write(request.response(body));
                self.follow(&request);
            }
            Ok(None) => {}
            Err(why) => self.write(request.refusal(&why)),
        }
    }

    fn dispatch(&mut self, request: &Request) -> Handled {
        let name = request.command.as_str();
        match name {
            "initialize" => return self.initialize(request),
            "disconnect" => return self.disconnect(request),
            "cancel" => return self.cancel(request),
            _ if self.phase == Phase::New => return Err(early(name, "`initialize` comes first")),
            "launch" => return self.launch(request),
            "attach" => return self.attach(request),
            "terminate" => return self.terminate(),
            "threads" => return Ok(Some(self.threads())),
            _ => {}
        }
        let handled = self.dispatch_live(request);
        match (handled, self.phase) {
            (Err(RequestError::Unknown(name)), _) => Err(RequestError::Unknown(name)),
            (_, Phase::Initialized) => Err(early(name, "`launch` or `attach` comes first")),
            (_, Phase::Beginning) => Err(early(name, "the programs are not at `main` yet")),
            (handled, _) => handled,
        }
    }

    /// Those that are about tasks.
    fn dispatch_live(&mut self, request: &Request) -> Handled {
        let begun = self.phase >= Phase::Configuring;
        match request.command.as_str() {
            "configurationDone" if begun => self.configuration_done(request),
            "setBreakpoints" if begun => self.set_breakpoints(request),
            "setFunctionBreakpoints" if begun => self.set_function_breakpoints(request),
            "continue" if begun => self.go_on(request),
            "next" | "stepIn" | "stepOut" if begun => self.step(request),
            "pause" if begun => self.pause(request),
            "stackTrace" if begun => self.stack_trace(request),
            "scopes" if begun => self.scopes(request),
            "variables" if begun => self.variables(request),
            "evaluate" if begun => self.evaluate(request),
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
    fn follow(&mut self, request: &Request) {
        match request.command.as_str() {
            "configurationDone" => self.set_off(),
            "terminate" => self.end_tasks(),
            "disconnect" => self.leave(),
            _ => {}
        }
    }

    fn initialize(&mut self, request: &Request) -> Handled {
        if self.phase != Phase::New {
            return Err(early("initialize", "it comes once"));
        }
        self.client = request.read::<InitializeArguments>()?;
        self.phase = Phase::Initialized;
        Ok(Some(capabilities()))
    }

    /// `cancel`: a question that tasks have not answered is given up.
    fn cancel(&mut self, request: &Request) -> Handled {
        let seq = request.arguments.get("requestId").and_then(Value::as_i64);
        if let Some((given_up, commands)) = seq.and_then(|seq| self.jobs.give_up(seq)) {
            for command in commands {
                self.act(Action::Cancel(command));
            }
            self.write(given_up.refusal(&RequestError::Cancelled));
        }
        Ok(Some(Value::Null))
    }
}

/// A request that comes too early, or too late.
pub(super) fn early(command: &str, why: &'static str) -> RequestError {
    RequestError::Order {
        command: command.to_owned(),
        why,
    }
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
