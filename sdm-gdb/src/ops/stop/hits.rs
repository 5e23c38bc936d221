//! The breakpoints at which a task has stopped, and their commands.

use sdm_debug::Event;
use sdm_debug::command::PointSpec;
use sdm_debug::reply::StopReason;

use crate::gdb::Gdb;
use crate::ops::breakpoints::{Outcome, outcome};
use crate::ops::broken_steps::go_on_or_end;
use crate::ops::lines::{self, LinesResult};
use crate::ops::run::go_on;
use crate::state::StopRecord;
use crate::state::breakpoints::Owner;
use crate::text::last_text;

/// The meaning of a stop.
pub(super) enum Hit {
    /// It is to be judged as one at the breakpoint of this owner.
    Stops(Option<Owner>),
    /// The run has ended for this reason.
    Ended(StopReason),
    GoesOn,
}

/// The meaning of a stop, by the conditions and counts of the breakpoints that were hit.
pub(super) async fn outcome_of(gdb: &Gdb, stop: &StopRecord) -> Hit {
    let others = ["watchpoint-scope", "signal-received"];
    let reason = last_text(&stop.results, "reason");
    let is_hit = !reason.is_some_and(|reason| others.contains(&reason));
    let Some(owner) = stop.owner.filter(|_| is_hit) else {
        return Hit::Stops(stop.owner);
    };
    match outcome(gdb, owner, &stop.met).await {
        Outcome::Stop(owner) => Hit::Stops(Some(owner)),
        Outcome::GoOn => go_on_or_end(gdb).await.map_or(Hit::GoesOn, Hit::Ended),
    }
}

/// A breakpoint with its commands.
pub(super) fn commands_of(gdb: &Gdb, number: u32) -> Option<(u32, Vec<String>)> {
    match gdb.get().breakpoints.spec(number)? {
        PointSpec::Break(spec) => Some((number, spec.commands.clone())),
        _ => None,
    }
}

/// Carries out the commands of a breakpoint; false if they resume the program.
pub(super) async fn carry_out(gdb: &Gdb, number: u32, lines: &[String]) -> bool {
    let LinesResult { text, goes_on } = lines::carry_out(gdb, lines).await;
    if !text.is_empty() {
        gdb.tell(Event::Printed { number, text });
    }
    let runs = gdb.get().activity.is_executing() || !gdb.get().activity.is_live();
    if runs {
        return false;
    }
    !goes_on || go_on(gdb).await.is_err()
}
