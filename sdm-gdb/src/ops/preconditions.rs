//! Refuses commands that are impossible in the task's state, before gdb receives them.

use sdm_debug::{Command, Failure, FailureCode};

use super::{core_file, registers};
use crate::gdb::Gdb;
use crate::state::State;

/// The failure of a command that is impossible in the task's state; `None` if it is possible.
pub(crate) fn why(gdb: &Gdb, command: &Command) -> Option<Failure> {
    let state = gdb.get();
    let refused = in_state(&state, command);
    refused.or_else(|| registers::why_not(&state, command))
}

fn in_state(state: &State, command: &Command) -> Option<Failure> {
    match command {
        Command::SetVariable { .. }
        | Command::MemoryWrite { .. }
        | Command::VarAssign { .. }
        | Command::Call { .. }
        | Command::Return { .. }
        | Command::Jump { .. }
            if state.origin.is_read_only_process() =>
        {
            let text = "attached read-only: the process cannot be changed";
            Some(Failure::new(FailureCode::Unsupported, text))
        }
        _ if state.origin.is_core_file() => {
            core_refusal(command).or_else(|| state.why_not_stopped())
        }
        _ if command.is_run_control() => state.why_not_live().or_else(|| {
            let running = || Failure::new(FailureCode::AlreadyRunning, "already running");
            (!state.activity.is_stopped()).then(running)
        }),
        Command::BreakInsert(_)
        | Command::BreakDelete { .. }
        | Command::BreakEnable { .. }
        | Command::BreakCondition { .. }
        | Command::BreakIgnore { .. }
        | Command::BreakCommands { .. }
        | Command::Breakpoints
        | Command::CatchInsert(_)
        | Command::Console { .. }
        | Command::Mi { .. }
        | Command::Probe(_) => state.why_not_live(),
        _ => state.why_not_stopped(),
    }
}

/// The refusal of a command that a core file does not allow; `None` if it is allowed.
fn core_refusal(command: &Command) -> Option<Failure> {
    match command {
        Command::Call { .. } | Command::Return { .. } => Some(core_file::refusal("call")),
        Command::MemoryWrite { .. } => Some(core_file::refusal("write")),
        Command::Queues => Some(core_file::refusal("queues")),
        command if command.is_run_control() => Some(core_file::refusal(command.name())),
        _ => None,
    }
}
