//! Watchpoints.

use sdm_debug::command::{PointSpec, WatchKind, WatchSpec};
use sdm_debug::reply::BreakpointPlace;
use sdm_debug::{Failure, FailureCode, Reply};

use super::{made_by, refusal};
use crate::driver::core::Gdb;
use crate::mi::{Results, quote};

/// The names under which MI speaks of watchpoints.
pub(in crate::driver) const NAMES: [&str; 3] = ["wpt", "hw-rwpt", "hw-awpt"];

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
    let number = if spec.location {
        // MI does not have it.
        let line = format!("{word} -l {}", spec.expression);
        made_by(gdb, &line).await?[0]
    } else {
        let expression = quote(spec.expression.as_bytes());
        let results = gdb.mi(format!("-break-watch {option}{expression}")).await?;
        number(&results).ok_or_else(|| {
            let text = format!("gdb did not say which watchpoint {} is", spec.expression);
            Failure::new(FailureCode::Gdb, text)
        })?
    };
    let result = restrict(gdb, number, &spec).await;
    if let Err(failure) = result {
        // Half of what was asked for is not what was asked for.
        let _ = gdb.mi(format!("-break-delete {number}")).await;
        return Err(failure);
    }
    let place = BreakpointPlace {
        number: spec.number,
        pending: false,
        places: Vec::new(),
    };
    let mut state = gdb.edit();
    state
        .breakpoints
        .add(PointSpec::Watch(spec), vec![number], false);
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

/// gdb's number of the watchpoint that a record speaks of.
pub(in crate::driver) fn number(results: &Results) -> Option<u32> {
    let named = NAMES.iter().find_map(|name| results.tuple(name));
    named.and_then(|point| point.number("number"))
}
