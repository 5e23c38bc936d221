//! Commands for gdb's own command line.

use nix::sys::signal::Signal;
use sdm_debug::{Failure, FailureCode, Reply, TaskState};

use super::core::Gdb;
use super::end::{End, program_ended};
use super::values::console_line;

/// What is kept of what gdb prints for one command, in bytes.
pub(super) const PRINTED_BYTES_MAX: usize = 1 << 20;

pub(super) async fn console(gdb: &Gdb, line: &str) -> Result<Reply, Failure> {
    let (result, printed) = gdb.send(console_line(line)).capture().printed().await;
    // A console command can let the program run, or end it: what it does next is an event.
    let (executing, task, pid) = {
        let state = gdb.get();
        (state.executing, state.task.clone(), state.pid)
    };
    if executing && task == TaskState::Stopped {
        gdb.edit().set_task(TaskState::Running);
    } else if pid.is_none() && task.is_live() && task != TaskState::Starting {
        program_ended(gdb, End::Signalled(Signal::SIGKILL.as_str().to_owned()));
    }
    match result {
        Ok(_) => Ok(Reply::Text(printed)),
        Err(failure) if failure.code == FailureCode::Gdb && !printed.is_empty() => {
            // The error's text is the end of what was printed; what came before it counts too.
            Err(Failure::new(FailureCode::Gdb, printed.trim_end()))
        }
        Err(failure) => Err(failure),
    }
}
