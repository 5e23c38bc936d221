//! Inserts the breakpoints of an earlier run, or those set before the start, in another gdb.

use sdm_debug::command::PointSpec;
use sdm_debug::{Event, Failure, FailureCode};

use super::{enable, insert, insert_catch, insert_watch};
use crate::gdb::Gdb;
use crate::state::breakpoints::SavedBreakpoint;

/// Inserts breakpoints before the program runs; a failure affects only that breakpoint.
pub(crate) async fn insert_kept(gdb: &Gdb, breakpoints: Vec<SavedBreakpoint>) {
    for kept in breakpoints {
        let number = kept.spec.number();
        if let Err(failure) = insert_again(gdb, kept).await {
            let text = failure.text.trim_end_matches('.').to_owned();
            gdb.tell(Event::BreakpointRefused { number, text });
        }
    }
}

/// Inserts a breakpoint of an earlier run again.
pub(super) async fn insert_again(gdb: &Gdb, kept: SavedBreakpoint) -> Result<(), Failure> {
    let number = kept.spec.number();
    match kept.spec {
        PointSpec::Break(mut spec) => {
            if let Some(thread) = spec.thread {
                let text =
                    format!("the breakpoint was set for thread {thread} of the previous run");
                return Err(Failure::new(FailureCode::NoSuchThing, text));
            }
            spec.pending = true;
            insert(gdb, spec).await?
        }
        PointSpec::Watch(spec) => insert_watch(gdb, spec).await?,
        PointSpec::Catch(spec) => insert_catch(gdb, spec).await?,
    };
    if !kept.enabled {
        enable(gdb, number, false).await?;
    }
    Ok(())
}
