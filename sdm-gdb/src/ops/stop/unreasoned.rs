//! Stops for which gdb gives no reason.

use sdm_debug::reply::StopReason;

use crate::state::activity::RunKind;

/// The reason of such a stop, by the command with which the program was resumed.
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
