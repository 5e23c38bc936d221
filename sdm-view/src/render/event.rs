//! Events of tasks as text: one line per distinct place, with the source line below it.

use sdm_debug::event::Phase;
use sdm_debug::reply::{CatchHit, Finding, Stop, StopReason, WatchHit};
use sdm_text::{printable, printable_lines, without_numbers};

use super::place;
use crate::item::Happening;

/// The text that follows the set of tasks: the line, and further lines below it.
pub(crate) struct Sentence {
    pub(crate) line: String,
    pub(crate) below: Vec<String>,
    /// True for an error or crash.
    pub(crate) bad: bool,
}

/// The text of an event.
pub(crate) fn sentence(what: &Happening) -> Sentence {
    let mut below = Vec::new();
    let mut bad = false;
    let line = match what {
        Happening::Stopped(stop) => {
            below.extend(source_line(stop));
            if let StopReason::FunctionFinished { value: Some(value) } = &stop.reason {
                let value = place::value(value);
                below.push(format!("Value returned: {}", printable(value.as_bytes())));
            }
            bad = stop.reason.is_crash() || matches!(stop.reason, StopReason::Finding(_));
            stopped(stop)
        }
        Happening::Exited {
            code,
            before_finalize,
        } => {
            bad = *code != 0 || *before_finalize;
            exited(*code, *before_finalize)
        }
        Happening::Signalled(signal) => {
            bad = true;
            match signal.as_str() {
                "SIGKILL" => "killed (SIGKILL)".to_owned(),
                signal => format!("terminated by signal {}", printable(signal.as_bytes())),
            }
        }
        Happening::Detached => "detached, still running".to_owned(),
        Happening::SignalPassed(name) => {
            format!("received signal {name}, which was passed on to the program")
        }
        Happening::GdbDied(text) => {
            bad = true;
            format!(
                "gdb has ended: {}",
                printable(without_numbers(text).as_bytes())
            )
        }
        Happening::BreakpointPlaced(at) => {
            format!("breakpoint {} {}", at.number, places(&at.places))
        }
        Happening::Progress(Phase::Gdb) => "gdb is ready".to_owned(),
        Happening::Progress(Phase::Symbols) => "symbols were read".to_owned(),
        Happening::Progress(Phase::Running) => "running to main".to_owned(),
        Happening::Notice(text) => printable(without_numbers(text).as_bytes()),
        Happening::Printed { number, text } => {
            let text = printable_lines(text.trim_end());
            below.extend(text.lines().map(|line| format!("  {line}")));
            format!("breakpoint {number} printed")
        }
    };
    Sentence { line, below, bad }
}

/// The text of a stop: `stopped at breakpoint 1, in MPI_Recv, called from exchange () at halo.c:44`.
#[must_use]
pub fn stopped(stop: &Stop) -> String {
    let place = stop.frame.as_ref().map(|frame| {
        let at = place::frame(frame);
        match &stop.inside {
            Some(inside) => format!("in {}, called from {at}", printable(inside.as_bytes())),
            None => at,
        }
    });
    let reason = reason(&stop.reason);
    match (reason, place) {
        (None, None) => "stopped".to_owned(),
        (None, Some(place)) => place,
        (Some(reason), None) => reason,
        (Some(reason), Some(place)) if stop.reason == StopReason::AtMain => {
            format!("{reason} {place}")
        }
        (Some(reason), Some(place)) => format!("{reason}, {place}"),
    }
}

/// The places of a breakpoint: `at a.c:3`, `in main`, or the number of places.
pub(super) fn places(places: &[(String, String, u32)]) -> String {
    match places {
        [] => "has no location yet".to_owned(),
        [(function, file, 0)] => format!("in {function} {file}").trim_end().to_owned(),
        [(_, file, line)] => format!("at {file}:{line}"),
        many => format!("at {} places", many.len()),
    }
}

fn reason(reason: &StopReason) -> Option<String> {
    Some(match reason {
        StopReason::AtMain => "at".to_owned(),
        StopReason::AtEntry => "at the entry point (gdb finds no main)".to_owned(),
        StopReason::Breakpoint { number } => format!("stopped at breakpoint {number}"),
        StopReason::StepEnd => return None,
        StopReason::FunctionFinished { .. } => "finished".to_owned(),
        StopReason::Interrupted => "interrupted".to_owned(),
        StopReason::Signal { name, meaning } => {
            let text = format!("received signal {name}, {meaning}");
            printable(text.trim_end_matches(", ").as_bytes())
        }
        StopReason::Internal { what } => format!("about to call {}", printable(what.as_bytes())),
        StopReason::Finding(finding) => printable(found(finding).as_bytes()),
        StopReason::Attached => "attached".to_owned(),
        StopReason::Other(text) => printable(text.as_bytes()),
        StopReason::Watchpoint(hit) => watched(hit),
        StopReason::WatchpointScope { number, expression } => {
            let expression = printable(expression.as_bytes());
            format!("watchpoint {number} ({expression}) was removed: the frame has returned")
        }
        StopReason::Catch { number, hit } => format!("caught {} ({number})", caught(hit)),
        StopReason::LocationReached => return None,
        StopReason::NoHistory => "the recorded history ends here (reverse execution)".to_owned(),
        StopReason::Core { .. } if !reason.is_crash() => "core file".to_owned(),
        StopReason::Core { signal, meaning } => {
            let text = format!("core file: ended by {signal}, {meaning}");
            printable(text.trim_end_matches(", ").as_bytes())
        }
    })
}

/// The text of a finding of a sanitizer, of Valgrind or of the MPI check:
/// `AddressSanitizer: heap-buffer-overflow, read of 4 bytes`.
fn found(finding: &Finding) -> String {
    let Finding { tool, kind, access } = finding;
    let access = access.map_or_else(String::new, |access| {
        let what = if access.is_write { "write" } else { "read" };
        match access.size_bytes {
            0 => format!(", {what}"),
            1 => format!(", {what} of 1 byte"),
            bytes => format!(", {what} of {bytes} bytes"),
        }
    });
    format!("{tool}: {kind}{access}")
}

/// The text of a watchpoint's hit: `watchpoint 3 (sum): 4 -> 5`.
fn watched(hit: &WatchHit) -> String {
    let mut text = format!("watchpoint {} ({})", hit.number, hit.expression);
    let values = [&hit.old, &hit.new].map(|value| value.as_ref().map(place::value));
    match values {
        [Some(old), Some(new)] => text.push_str(&format!(": {old} -> {new}")),
        [Some(value), None] | [None, Some(value)] => text.push_str(&format!(": {value}")),
        [None, None] => {}
    }
    printable(text.as_bytes())
}

fn caught(hit: &CatchHit) -> String {
    let text = match hit {
        CatchHit::Fork => "fork".to_owned(),
        CatchHit::Vfork => "vfork".to_owned(),
        CatchHit::Exec { program } => format!("exec of {program}"),
        CatchHit::SyscallEntry { name } => format!("call to {name}"),
        CatchHit::SyscallReturn { name } => format!("return from {name}"),
        CatchHit::Signal { name } => format!("signal {name}"),
        CatchHit::Exception { stage } => format!("exception {stage}"),
        CatchHit::Libraries { loaded, unloaded } => {
            let loaded = loaded.iter().map(|name| format!("load of {name}"));
            let unloaded = unloaded.iter().map(|name| format!("unload of {name}"));
            loaded.chain(unloaded).collect::<Vec<_>>().join(", ")
        }
    };
    printable(text.as_bytes())
}

/// The text of an exit: `exited with code 3`.
#[must_use]
pub fn exited(code: i32, before_finalize: bool) -> String {
    match (code, before_finalize) {
        (0, false) => "exited normally".to_owned(),
        (code, false) => format!("exited with code {code}"),
        (code, true) => format!("exited before MPI_Finalize with code {code}"),
    }
}

/// The source line in gdb's format: number, tab, text. None if the text or the frame is not known.
fn source_line(stop: &Stop) -> Option<String> {
    let text = stop.source.as_deref()?;
    let line = stop.frame.as_ref()?.line;
    Some(format!("{line}\t{}", printable(text.trim_end().as_bytes())))
}

/// The error and the call in the line that MPICH prints before its launcher kills the job for an error, as
/// `MPI_ERR_RANK (invalid rank), in MPI_Send`. `None` for other lines.
///
/// The line is `Abort(CODE) on node 0 (rank 1 in comm 0): Fatal error in internal_Send: Invalid rank, error stack:`.
#[must_use]
pub fn fatal_error_of_mpich(line: &[u8]) -> Option<String> {
    let line = str::from_utf8(line.strip_prefix(b"Abort(")?).ok()?;
    let (code, rest) = line.split_once(')')?;
    let (_, call) = rest.split_once(": Fatal error in ")?;
    let (call, _) = call.split_once(':')?;
    let name = call
        .strip_prefix("internal_")
        .or_else(|| call.strip_prefix("PMPI_"))
        .or_else(|| call.strip_prefix("MPI_"))?;
    Some(format!(
        "{}, in MPI_{name}",
        sdm_mpi::mpich_error(code.parse().ok()?)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fatal_errors_that_mpich_prints_are_named() {
        let check = |line: &str, expect| {
            let found = fatal_error_of_mpich(line.as_bytes());
            assert_eq!(found.as_deref(), expect);
        };
        check(
            "Abort(604119054) on node 0 (rank 0 in comm 0): Fatal error in internal_Recv: Message truncated, error stack:",
            Some("MPI_ERR_TRUNCATE (message truncated), in MPI_Recv"),
        );
        check(
            "Abort(201926150) on node 1 (rank 1 in comm 0): Fatal error in PMPI_Send: Invalid rank, error stack:",
            Some("MPI_ERR_RANK (invalid rank), in MPI_Send"),
        );
        check("Abort(3): Fatal error in main: bad", None);
        check("Fatal error in MPI_Send: Invalid rank", None);
    }
}
