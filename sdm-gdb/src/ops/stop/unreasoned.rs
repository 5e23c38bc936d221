//! Stops for which gdb gives no reason.

use sdm_debug::reply::StopReason;

use crate::gdb::Gdb;
use crate::state::activity::RunKind;

/// The reason of a stop for which gdb gives none, by the command with which the program was resumed.
pub(super) fn reason_without_word(kind: Option<RunKind>) -> StopReason {
    match kind {
        Some(RunKind::Finish) => StopReason::FunctionFinished { value: None },
        Some(RunKind::Step(..) | RunKind::ReverseStep(..)) => StopReason::StepEnd,
        Some(RunKind::To) => StopReason::LocationReached,
        Some(RunKind::Reverse) => StopReason::NoHistory,
        Some(RunKind::StartToMain) => StopReason::AtMain,
        Some(RunKind::StartToEntry) => StopReason::AtEntry,
        _ => StopReason::Other("stopped".to_owned()),
    }
}

/// The reason of a stop at which gdb has removed watchpoints without a value: their variables are optimized out.
pub(super) fn removed_watches(gdb: &Gdb) -> StopReason {
    let state = gdb.get();
    let removed = state.breakpoints.hit_watches();
    let named = removed.map(|spec| format!("{} ({})", spec.number, spec.expression));
    let named: Vec<String> = named.collect();
    let text = match &named[..] {
        [one] => format!("watchpoint {one} was removed, because its value is optimized out here"),
        all => format!(
            "watchpoints {all} were removed, because their values are optimized out here",
            all = all.join(", ")
        ),
    };
    StopReason::Other(text)
}
