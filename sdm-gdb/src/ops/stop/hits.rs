//! The breakpoints at which a task has stopped, and their commands.

use sdm_debug::Event;

use crate::gdb::Gdb;
use crate::ops::breakpoints::{delete_ended, wanting};
use crate::ops::lines::{self, LinesResult};
use crate::state::StopRecord;
use crate::state::breakpoints::{Owner, watch_number};
use crate::text::last_text;

/// The meaning of a stop.
pub(super) enum Hit {
    /// The task stops: at the breakpoint of this owner. Without an owner it stops for another reason, such as a signal,
    /// or at a breakpoint that was set at gdb's console.
    Stops(Option<Owner>),
    /// No hit breakpoint makes the task stop.
    Passed,
    /// Commands of a breakpoint have resumed the task.
    Resumed,
}

/// The meaning of a stop, by the conditions, counts and commands of the breakpoints that were hit. All commands are
/// carried out. The task stops if one of the breakpoints makes it stop.
pub(super) async fn outcome_of(gdb: &Gdb, stop: &StopRecord) -> Hit {
    let reason = last_text(&stop.results, "reason");
    let is_hit = match reason {
        Some("signal-received") => false,
        _ if stop.scope.is_some() => true,
        // Others that a gdb of several tasks has hit are those of other tasks.
        Some("breakpoint-hit") if gdb.get().origin.scope().is_none() && !stop.met.is_empty() => {
            true
        }
        _ => stop.owner.is_some(),
    };
    if !is_hit {
        return Hit::Stops(stop.owner);
    }
    let changed = watch_number(&stop.results);
    let changed = changed.and_then(|number| gdb.get().breakpoints.owner(number));
    let wanting = wanting(gdb, stop.owner, &stop.met).await;
    let mut stops = stop.scope.as_ref().map(|_| None);
    for owner in wanting {
        let met = stop.met.iter().find(|met| met.owner == owner);
        let commands = met.map_or(&[][..], |met| &met.commands);
        if !commands.is_empty() {
            // The commands may resume the task.
            delete_ended(gdb).await;
        }
        match carry_out(gdb, owner, commands).await {
            Some(true) => {}
            // Its values are shown, which the place of a breakpoint does not tell.
            Some(false) if changed.is_some() && owner == changed && stops != Some(None) => {
                stops = Some(owner);
            }
            Some(false) => stops = stops.or(Some(owner)),
            None => return Hit::Resumed,
        }
    }
    stops.map_or(Hit::Passed, Hit::Stops)
}

/// Carries out the commands of a breakpoint; true if the task is to be resumed. `None` if the commands have resumed it
/// already, or have ended it.
async fn carry_out(gdb: &Gdb, owner: Option<Owner>, lines: &[String]) -> Option<bool> {
    let LinesResult { text, goes_on } = lines::carry_out(gdb, lines).await;
    if let (Some(Owner::User(number)), false) = (owner, text.is_empty()) {
        gdb.tell(Event::Printed { number, text });
    }
    let state = gdb.get();
    let is_resumed = state.activity.is_executing() || !state.activity.is_live();
    (!is_resumed).then_some(goes_on)
}
