//! Creates a breakpoint in gdb such that none is left behind without an owner.

use sdm_debug::command::PointSpec;
use sdm_debug::reply::BreakpointPlace;
use sdm_debug::{Failure, FailureCode, Reply};

use crate::gdb::Gdb;
use crate::guards::NewBreakpoints;
use crate::ops::pointers;
use crate::text::console_line;
use sdm_mi::{Results, quote};

/// The reason why nothing can be inserted under this number; `None` if it can be.
pub(super) fn refusal(gdb: &Gdb, number: u32) -> Option<Failure> {
    let state = gdb.get();
    if state.origin.takes_no_breakpoint() {
        let text = "attached read-only: no breakpoint can be inserted";
        return Some(Failure::new(FailureCode::Unsupported, text));
    }
    state.breakpoints.refusal(number)
}

/// Creates a breakpoint by an MI command; `number` extracts gdb's number from the answer.
pub(super) async fn made_in(
    gdb: &Gdb,
    line: String,
    number: fn(&Results) -> Option<u32>,
) -> Result<(NewBreakpoints, Results), Failure> {
    let maker = gdb.clone();
    gdb.finish(async move {
        let results = maker.mi(line).await?;
        Ok((NewBreakpoints::new(&maker, number(&results)), results))
    })
    .await
}

/// Creates breakpoints by a line for gdb's command line. MI's answer to such a line has no numbers, but gdb sends
/// notifications.
pub(crate) async fn made_by(gdb: &Gdb, line: &str) -> Result<NewBreakpoints, Failure> {
    let (maker, line) = (gdb.clone(), line.to_owned());
    gdb.finish(async move {
        maker.edit().breakpoints.made = Some(Vec::new());
        let result = maker.mi(console_line(&line)).await;
        let numbers = maker.edit().breakpoints.made.take();
        let made = NewBreakpoints::new(&maker, numbers.unwrap_or_default());
        result?;
        if made.first().is_none() {
            let text = format!("gdb did not report the breakpoint of `{line}`");
            return Err(Failure::new(FailureCode::Gdb, text));
        }
        Ok(made)
    })
    .await
}

/// Sets condition and ignore count of new breakpoints: they stop the program from the `ignore + 1`th hit with a true
/// condition on. On failure the caller drops `made`, which deletes the breakpoints, as they are not as requested.
pub(super) async fn restrict(
    gdb: &Gdb,
    made: &NewBreakpoints,
    condition: Option<&str>,
    ignore: u32,
) -> Result<(), Failure> {
    let Some(number) = made.first() else {
        return Ok(());
    };
    if let Some(condition) = condition {
        set_conditional(gdb, number, condition).await?;
    }
    if ignore > 0 {
        set_ignore(gdb, number, ignore.into()).await?;
    }
    Ok(())
}

/// Sets the ignore count that gdb keeps.
pub(super) async fn set_ignore(gdb: &Gdb, number: u32, count: u64) -> Result<(), Failure> {
    gdb.mi(format!("-break-after {number} {count}")).await?;
    gdb.edit().breakpoints.set_ignore(number, count);
    Ok(())
}

/// Sets a condition that gdb evaluates in the selected frame's language, in Fortran with the values of pointers, in Rust
/// with the elements at indices.
pub(super) async fn set_conditional(
    gdb: &Gdb,
    number: u32,
    condition: &str,
) -> Result<(), Failure> {
    if pointers::is_rewritten(condition)
        && let Some(valued) = pointers::condition_here(gdb, condition).await
        && set_condition(gdb, number, &valued).await.is_ok()
    {
        return Ok(());
    }
    set_condition(gdb, number, condition).await
}

/// Sets the condition of one of gdb's breakpoints; an empty one removes it.
pub(super) async fn set_condition(gdb: &Gdb, number: u32, condition: &str) -> Result<(), Failure> {
    let line = match (gdb.get().lacks.is_before_12, condition) {
        (true, _) => console_line(format!("condition {number} {condition}").trim_end()),
        (false, "") => format!("-break-condition {number}"),
        (false, condition) => format!("-break-condition {number} {}", quote(condition.as_bytes())),
    };
    gdb.mi(line).await?;
    Ok(())
}

/// Enters new watchpoints or catchpoints, which have no location, into the driver's state, and returns the reply.
pub(super) fn enter(gdb: &Gdb, point: PointSpec, made: NewBreakpoints) -> Reply {
    let place = BreakpointPlace {
        number: point.number(),
        pending: false,
        places: Vec::new(),
    };
    let numbers = made.keep();
    gdb.edit().breakpoints.add(point, numbers, false);
    Reply::Breakpoint(place)
}
