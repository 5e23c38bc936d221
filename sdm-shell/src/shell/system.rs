//! `shell COMMAND`, `make`: local commands. They own the terminal, and the session continues in the background.
use std::time::Duration;

use super::{SessionHandle, Verdict, notices};

/// Polling interval for the end of a local command, while the session continues.
const TURN: Duration = Duration::from_millis(20);

/// `shell COMMAND`. Without a command: an interactive shell for the user.
pub(super) async fn system(session: &SessionHandle, command: &str) -> Verdict {
    notices::show_held(session);
    let started = session.machine(|machine| machine.start(command));
    let mut process = match started {
        Ok(process) => process,
        Err(error) => return session.complain(format!("{command}: {error}"), ""),
    };
    let end = loop {
        match process.poll_end() {
            Ok(Some(end)) => break end,
            Ok(None) => {}
            Err(error) => return session.complain(format!("{command}: {error}"), ""),
        }
        // Ctrl-C is for the process that has the terminal.
        let _ = session.take_break();
        if session.is_over() {
            // The process has lost its terminal, and the shell does not wait for its end.
            process.kill();
            return Verdict::Failed;
        }
        let until = session.now() + TURN;
        session.turn(Some(until)).await;
    };
    if end.success || command.is_empty() {
        return Verdict::Done;
    }
    session.complain(format!("{command}: {}", end.status), "")
}
