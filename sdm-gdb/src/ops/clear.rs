//! Keeps what gdb inserts for itself, to hear of libraries for example, out of processes that are only looked at: a gdb that is
//! killed would leave it there.
//!
//! gdb inserts it into every process that runs, whichever it was told of: when it lets one go, and when it has new symbols.

use crate::action::Action;
use crate::gdb::Gdb;

/// What gdb is asked so that its answer says that it has done what it was told before: it costs nothing.
const NOTHING: &str = "-gdb-show confirm";

/// Has the code cleared as soon as gdb has done what it is at: it says `^running` before it inserts anything.
pub(crate) fn when_done(gdb: &Gdb) {
    if !gdb.get().origin.is_read_only_process() {
        return;
    }
    let asked = gdb.clone();
    gdb.post_work(async move {
        let wait = asked.get().config.symbols_wait;
        // Where it is interrupted it has read the question, which is enough.
        let _ = asked.send_within(NOTHING, wait).await;
        now(&asked);
    });
}

/// Has the code cleared, where gdb has answered what could have had it insert something.
pub(crate) fn now(gdb: &Gdb) {
    let mut state = gdb.edit();
    if state.origin.is_read_only_process() {
        state.actions.push_back(Action::ClearCode);
    }
}
