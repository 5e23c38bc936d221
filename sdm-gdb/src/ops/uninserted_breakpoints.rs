//! Removes gdb's own breakpoints, for example those on library loads, from processes that are only inspected. They
//! would stay behind if gdb were killed.
//!
//! At a detach and after new symbols gdb inserts them into every process that it resumes, not only into the process of
//! the command.

use crate::action::Action;
use crate::gdb::Gdb;

/// A cheap command. gdb answers it only after all earlier ones, so that its answer shows that they are done.
const NOTHING: &str = "-gdb-show confirm";

/// Requests the removal once gdb has finished its present command: gdb reports `^running` before it inserts
/// breakpoints.
pub(crate) fn when_done(gdb: &Gdb) {
    if !gdb.get().origin.is_read_only_process() {
        return;
    }
    let asked = gdb.clone();
    gdb.post_work(async move {
        let wait = asked.get().config.symbols_wait;
        // If the question is interrupted, gdb has received it, which is sufficient.
        let _ = asked.send_within(NOTHING, wait).await;
        now(&asked);
    });
}

/// Requests the removal now, after gdb has answered a command that may have inserted breakpoints.
pub(crate) fn now(gdb: &Gdb) {
    let mut state = gdb.edit();
    if state.origin.is_read_only_process() {
        state.actions.push_back(Action::ClearCode);
    }
}
