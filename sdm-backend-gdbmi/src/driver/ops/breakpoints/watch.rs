//! Watchpoints: the program stops when a value is written or read.

use sdm_debug::command::{PointSpec, WatchKind, WatchSpec};
use sdm_debug::reply::BreakpointPlace;
use sdm_debug::{Failure, FailureCode, Reply};

use super::make::{made_by, made_in, refusal};
use crate::driver::gdb::Gdb;
use crate::driver::state::points::watch_number;
use crate::mi::quote;

/// Sets a watchpoint.
pub(in crate::driver) async fn insert(gdb: &Gdb, spec: WatchSpec) -> Result<Reply, Failure> {
    if let Some(failure) = refusal(gdb, spec.number) {
        return Err(failure);
    }
    let (option, word) = match spec.kind {
        WatchKind::Write => ("", "watch"),
        WatchKind::Read => ("-r ", "rwatch"),
        WatchKind::Access => ("-a ", "awatch"),
    };
    let made = if spec.location {
        // MI does not have it.
        let line = format!("{word} -l {}", spec.expression);
        made_by(gdb, &line).await?
    } else {
        let expression = quote(spec.expression.as_bytes());
        let line = format!("-break-watch {option}{expression}");
        made_in(gdb, line, watch_number).await?.0
    };
    let number = made.first().ok_or_else(|| {
        let text = format!("gdb did not say which watchpoint {} is", spec.expression);
        Failure::new(FailureCode::Gdb, text)
    })?;
    // Half of what was asked for is not what was asked for: where this fails it is taken out again.
    restrict(gdb, number, &spec).await?;
    let place = BreakpointPlace {
        number: spec.number,
        pending: false,
        places: Vec::new(),
    };
    let numbers = made.keep();
    let mut state = gdb.edit();
    state
        .breakpoints
        .add(PointSpec::Watch(spec), numbers, false);
    Ok(Reply::Breakpoint(place))
}

async fn restrict(gdb: &Gdb, number: u32, spec: &WatchSpec) -> Result<(), Failure> {
    if let Some(condition) = &spec.condition {
        let condition = quote(condition.as_bytes());
        gdb.mi(format!("-break-condition {number} {condition}"))
            .await?;
    }
    if spec.ignore > 0 {
        gdb.mi(format!("-break-after {number} {}", spec.ignore))
            .await?;
    }
    Ok(())
}
