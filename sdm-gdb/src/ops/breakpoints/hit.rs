//! Decides whether a task stops at the breakpoints that it has hit.
//!
//! Several breakpoints can be at one place, and gdb stops the task if one of them applies. gdb also stops the task if
//! it cannot evaluate a condition: the driver then resumes the task, and reports the failure.
//!
//! A gdb that holds several processes evaluates a condition against the memory of the wrong process, and stops tasks
//! that do not meet it (gdb 13: the variables of a position-independent program). So such a gdb only receives the
//! breakpoint and its inferior. The driver evaluates the condition, in the process that hit the breakpoint. It also
//! does that for a condition that gdb was not given yet, or cannot evaluate (see `given`).

use sdm_debug::command::PointSpec;
use sdm_debug::{Event, Failure, FailureCode};

use super::make;
use crate::gdb::Gdb;
use crate::guards::NewBreakpoints;
use crate::ops::evaluate::{is_known, truth};
use crate::ops::pointers;
use crate::ops::values::evaluated;
use crate::state::breakpoints::{BreakpointHit, Owner};

/// In a gdb of several tasks, makes a new breakpoint stop its task unconditionally, because the driver evaluates the
/// condition. gdb has accepted the condition before.
pub(super) async fn judge_here(
    gdb: &Gdb,
    made: &NewBreakpoints,
    condition: Option<&str>,
) -> Result<(), Failure> {
    match made.first() {
        Some(number) if condition.is_some() && gdb.get().origin.scope().is_some() => {
            set_owner(gdb, number).await
        }
        _ => Ok(()),
    }
}

/// Makes a breakpoint stop this task and no other one.
pub(super) async fn set_owner(gdb: &Gdb, number: u32) -> Result<(), Failure> {
    let own = gdb.get().origin.scope().map(|scope| scope.restrict(None));
    make::set_condition(gdb, number, own.as_deref().unwrap_or_default()).await
}

/// Sets the ignore count of a breakpoint whose hits the driver counts; `None` if gdb counts them.
pub(super) fn pass_by(gdb: &Gdb, number: u32, count: u64) -> Option<()> {
    if !is_judged_here(gdb, number) {
        return None;
    }
    let mut state = gdb.edit();
    let point = state.breakpoints.find(number).ok()?;
    point.judged.ignore = count;
    Some(())
}

/// Moves an ignore count between gdb and the driver, after a change of the condition. `was` is `None` if there was no
/// condition before, else whether gdb had a condition that always holds.
pub(super) async fn move_ignore(gdb: &Gdb, number: u32, was: Option<bool>) -> Result<(), Failure> {
    let is_shared = gdb.get().origin.scope().is_some();
    let was_judged = was.is_some_and(|is_weaker| is_weaker || is_shared);
    let (known, count) = {
        let mut state = gdb.edit();
        let point = state.breakpoints.find(number)?;
        let is_judged =
            point.kept.spec.condition().is_some() && (point.judged.is_guarded || is_shared);
        if is_judged == was_judged || matches!(point.kept.spec, PointSpec::Watch(_)) {
            return Ok(());
        }
        let (known, count) = (
            point.numbers.clone(),
            std::mem::take(&mut point.judged.ignore),
        );
        let in_gdb = known
            .first()
            .map_or(0, |first| state.breakpoints.ignore_of(*first));
        if is_judged {
            state.breakpoints.find(number)?.judged.ignore = in_gdb;
        }
        (known, if is_judged { 0 } else { count })
    };
    for known in known {
        make::set_ignore(gdb, known, count).await?;
    }
    Ok(())
}

/// True if the driver evaluates the condition of a breakpoint. In a gdb of several tasks that is every condition but a
/// watchpoint's, which belongs to a single process. In a gdb of one task it is a condition that gdb was not given.
fn is_judged_here(gdb: &Gdb, number: u32) -> bool {
    let mut state = gdb.edit();
    let is_shared = state.origin.scope().is_some();
    state.breakpoints.find(number).is_ok_and(|point| {
        let is_watch = matches!(point.kept.spec, PointSpec::Watch(_));
        let has_condition = point.kept.spec.condition().is_some();
        has_condition && !is_watch && (point.judged.is_guarded || is_shared)
    })
}

/// The owners of the breakpoints at one place that make the task stop, the front-end's first. `named` is the owner of
/// the breakpoint that gdb has reported. All hits are counted. `None` in the result is a breakpoint that was set at
/// gdb's console.
pub(crate) async fn wanting(
    gdb: &Gdb,
    named: Option<Owner>,
    met: &[BreakpointHit],
) -> Vec<Option<Owner>> {
    let is_named = |it: &&BreakpointHit| it.owner == named;
    let unnamed = BreakpointHit {
        number: 0,
        owner: named,
        is_passed: false,
        ignore: 0,
        untested: None,
        commands: Vec::new(),
    };
    let first = met.iter().find(is_named);
    let first = first.or_else(|| named.map(|_| &unnamed));
    let others = met.iter().filter(|it| !is_named(it));
    let (mut users, mut rest) = (Vec::new(), Vec::new());
    for met in first.into_iter().chain(others) {
        match met.owner {
            Some(Owner::User(number)) if counts(gdb, number, met).await => users.push(met.owner),
            Some(Owner::User(_)) => {}
            None if gdb.get().origin.scope().is_some() => {}
            _ if met.is_passed => {}
            owner => rest.push(owner),
        }
    }
    rest.sort_by_key(Option::is_none);
    users.extend(rest);
    users
}

/// False if the task that hit this breakpoint of the front-end is to continue.
async fn counts(gdb: &Gdb, number: u32, met: &BreakpointHit) -> bool {
    let condition = {
        let state = gdb.get();
        let spec = state.breakpoints.spec(number);
        spec.and_then(|spec| spec.condition().map(str::to_owned))
            .unwrap_or_default()
    };
    let is_judged = is_judged_here(gdb, number);
    let held = match &met.untested {
        _ if is_judged => holds(gdb, &condition).await.map_err(|failure| failure.text),
        Some(why) => {
            let owed = gdb.edit().breakpoints.find(number).map_or(0, |point| {
                point.judged.untested += 1;
                std::mem::take(&mut point.judged.owed)
            });
            pass_owed(gdb, met, owed).await;
            Err(why.clone())
        }
        None if !met.is_passed => {
            let owed = gdb
                .edit()
                .breakpoints
                .find(number)
                .map_or(0, |point| std::mem::take(&mut point.judged.owed));
            pass_owed(gdb, met, owed.saturating_sub(1)).await;
            Ok(owed == 0)
        }
        None => Ok(false),
    };
    if is_judged {
        settle(gdb, number, met.number, &condition).await;
    }
    match held {
        Ok(true) => is_hit(gdb, number, is_judged),
        Ok(false) => false,
        Err(why) => {
            complain(gdb, number, &condition, &why);
            false
        }
    }
}

/// Has gdb ignore `owed` more hits, because it has ignored hits whose condition it could not evaluate.
async fn pass_owed(gdb: &Gdb, met: &BreakpointHit, owed: u64) {
    if owed > 0 {
        // If this fails, fewer hits are passed.
        let _ = make::set_ignore(gdb, met.number, met.ignore + owed).await;
    }
}

/// Gives gdb the condition of a breakpoint that was pending, now that its place and language are known.
async fn settle(gdb: &Gdb, number: u32, known: u32, condition: &str) {
    let is_open = match gdb.edit().breakpoints.find(number) {
        Ok(point) => std::mem::take(&mut point.judged.is_open),
        Err(_) => false,
    };
    if !is_open || known == 0 {
        return;
    }
    if let Some(condition) = pointers::condition_here(gdb, condition).await {
        // If gdb refuses it, the driver still evaluates the user's.
        let _ = make::set_condition(gdb, known, &condition).await;
    }
}

async fn holds(gdb: &Gdb, condition: &str) -> Result<bool, Failure> {
    let value = evaluated(gdb, "", condition).await?;
    match is_known(&value) {
        true => truth(&value.text),
        false => Err(Failure::new(FailureCode::Gdb, value.text)),
    }
}

/// Counts a hit whose condition holds; false if the ignore count covers the hit.
fn is_hit(gdb: &Gdb, number: u32, is_judged: bool) -> bool {
    let breakpoints = &mut gdb.edit().breakpoints;
    let Ok(point) = breakpoints.find(number) else {
        return true;
    };
    point.judged.hits += 1;
    if is_judged && point.judged.ignore > 0 {
        point.judged.ignore -= 1;
        return false;
    }
    if point.kept.spec.is_temporary() {
        breakpoints.ended.push(number);
    }
    true
}

/// Deletes the temporary breakpoints that have stopped the task.
pub(crate) async fn delete_ended(gdb: &Gdb) {
    let ended = std::mem::take(&mut gdb.edit().breakpoints.ended);
    for number in ended {
        // gdb may have deleted it. If the deletion fails, the breakpoint stops the task again.
        let _ = super::delete(gdb, number).await;
    }
}

/// Reports why a condition cannot be evaluated, unless the same reason was reported last.
fn complain(gdb: &Gdb, number: u32, condition: &str, why: &str) {
    let is_new = {
        let mut state = gdb.edit();
        let point = state.breakpoints.find(number);
        point.is_ok_and(|point| {
            let is_new = point.judged.complaint != why;
            why.clone_into(&mut point.judged.complaint);
            is_new
        })
    };
    if is_new {
        let why = why.trim_end_matches('.');
        let text = format!(
            "breakpoint {number} does not stop: its condition `{condition}` cannot be evaluated: {why}"
        );
        gdb.tell(Event::Notice { text });
    }
}
