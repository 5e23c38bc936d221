//! Decides whether a task stops at a breakpoint with a condition.
//!
//! A gdb that holds several processes evaluates a condition against the memory of the wrong process, and stops tasks
//! that do not meet it (gdb 13: the variables of a position-independent program). So such a gdb only receives the
//! breakpoint and its inferior. The driver evaluates the condition, in the process that hit the breakpoint. Where a
//! condition cannot be evaluated any gdb stops the program; the driver resumes it and reports the failure.
//!
//! A condition with elements of a Fortran array is evaluated twice: gdb receives a weaker one (see `strides`).

use sdm_debug::command::PointSpec;
use sdm_debug::{Event, Failure, FailureCode};

use super::make;
use crate::gdb::Gdb;
use crate::guards::NewBreakpoints;
use crate::ops::evaluate::{is_known, truth};
use crate::ops::values::evaluated;

/// Makes a new breakpoint stop its task unconditionally, as the driver evaluates the condition; only in a gdb of
/// several tasks. gdb has accepted the condition before.
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
    condition_of(gdb, number).filter(|(_, is_in_each)| *is_in_each)?;
    if !is_judged_here(gdb, number) {
        return None;
    }
    let mut state = gdb.edit();
    let point = state.breakpoints.find(number).ok()?;
    point.judged.ignore = count;
    Some(())
}

/// True if the driver evaluates the condition of a breakpoint, should it have one: each one in a gdb of several
/// tasks, else one with elements of a Fortran array.
fn is_judged_here(gdb: &Gdb, number: u32) -> bool {
    let mut state = gdb.edit();
    let is_guarded = match state.breakpoints.find(number) {
        Ok(point) => point.judged.is_guarded,
        Err(_) => false,
    };
    is_guarded || state.origin.scope().is_some()
}

/// The condition of a breakpoint of the front-end, and whether gdb has the breakpoint in each process: a watchpoint
/// belongs to a single one.
fn condition_of(gdb: &Gdb, number: u32) -> Option<(String, bool)> {
    let state = gdb.get();
    let spec = state.breakpoints.spec(number)?;
    let is_in_each = !matches!(spec, PointSpec::Watch(_));
    Some((spec.condition()?.to_owned(), is_in_each))
}

/// The front-end's breakpoint at which a task that hit `number` stops: that one, or another at the same place. `None`
/// if the task is to continue.
pub(crate) async fn stopping_at(gdb: &Gdb, number: u32) -> Option<u32> {
    let beside = gdb.get().breakpoints.met_beside(number);
    for met in std::iter::once(number).chain(beside) {
        if counts(gdb, met).await {
            return Some(met);
        }
    }
    None
}

/// False if the task that hit this breakpoint of the front-end is to continue.
async fn counts(gdb: &Gdb, number: u32) -> bool {
    let untested = gdb.edit().breakpoints.untested.take();
    let Some((condition, is_in_each)) = condition_of(gdb, number) else {
        return true;
    };
    let is_judged_here = is_in_each && is_judged_here(gdb, number);
    let held = match untested {
        Some(why) if !is_judged_here => Err(why),
        _ if !is_judged_here => return true,
        _ => holds(gdb, &condition).await.map_err(|failure| failure.text),
    };
    match held {
        Ok(true) => is_hit(gdb, number).await,
        Ok(false) => false,
        Err(why) => {
            complain(gdb, number, &condition, &why);
            false
        }
    }
}

async fn holds(gdb: &Gdb, condition: &str) -> Result<bool, Failure> {
    let value = evaluated(gdb, "", condition).await?;
    match is_known(&value) {
        true => truth(&value.text),
        false => Err(Failure::new(FailureCode::Gdb, value.text)),
    }
}

/// Counts a hit with a true condition; false if the hit is to be ignored.
async fn is_hit(gdb: &Gdb, number: u32) -> bool {
    let ends = {
        let mut state = gdb.edit();
        let Ok(point) = state.breakpoints.find(number) else {
            return true;
        };
        point.judged.hits += 1;
        if point.judged.ignore > 0 {
            point.judged.ignore -= 1;
            return false;
        }
        point.kept.spec.is_temporary()
    };
    if ends {
        // If the deletion fails, the breakpoint stops the task again, which reports the problem.
        let _ = super::delete(gdb, number).await;
    }
    true
}

/// Reports why a condition cannot be evaluated, once for each reason.
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
