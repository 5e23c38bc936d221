//! Commands that are passed through to gdb: for its own command line, and of GDB/MI.

use nix::sys::signal::Signal;
use sdm_debug::{Failure, FailureCode, Reply, TaskState};

use super::core::Gdb;
use super::end::{End, program_ended};
use super::history;
use super::values::console_line;
use crate::mi::Results;

pub(super) async fn console(gdb: &Gdb, line: &str) -> Result<Reply, Failure> {
    let line = history::own(gdb, line)?;
    let (result, printed) = pass_through(gdb, console_line(&line)).await;
    history::note(gdb, &printed);
    match result {
        Ok(_) => Ok(Reply::Text(printed)),
        Err(failure) if failure.code == FailureCode::Gdb && !printed.is_empty() => {
            // The error's text is the end of what was printed; what came before it counts too.
            Err(Failure::new(FailureCode::Gdb, printed.trim_end()))
        }
        Err(failure) => Err(failure),
    }
}

/// A GDB/MI command of the person's own.
pub(super) async fn mi(gdb: &Gdb, line: &str) -> Result<Reply, Failure> {
    let line = line.trim();
    let bad = |text: &str| Failure::new(FailureCode::BadCommand, format!("{line:?}: {text}"));
    if line.contains(['\n', '\r', '\0']) {
        return Err(bad("an MI command is one line"));
    }
    let name = line.strip_prefix('-').unwrap_or_default();
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        return Err(bad("an MI command begins with - and its name"));
    }
    if name == "gdb-exit" {
        let hint = "kill or detach the task, or end the session";
        return Err(bad("gdb belongs to the session").with_hint(hint));
    }
    let (result, printed) = pass_through(gdb, line.to_owned()).await;
    let results = result?;
    let class = if gdb.get().executing {
        "running"
    } else {
        "done"
    };
    let comma = if results.0.is_empty() { "" } else { "," };
    let result = format!("^{class}{comma}{results}");
    Ok(Reply::Mi { result, printed })
}

/// Sends what a person has written; gives what gdb answers and prints.
async fn pass_through(gdb: &Gdb, line: String) -> (Result<Results, Failure>, String) {
    let answered = gdb.send(line).capture().printed().await;
    // It can let the program run, or end it: what that does next is an event.
    let (executing, task, pid, core_file) = {
        let state = gdb.get();
        (
            state.executing,
            state.task.clone(),
            state.pid,
            state.core_file,
        )
    };
    if executing && task == TaskState::Stopped {
        gdb.edit().set_task(TaskState::Running);
    } else if pid.is_none() && !core_file && task.is_live() && task != TaskState::Starting {
        program_ended(gdb, End::Signalled(Signal::SIGKILL.as_str().to_owned()));
    }
    let (result, printed) = answered;
    (result, printed.into_text())
}
