//! The exit code of a batch and of a script, determined from the end of the programs.

use nix::sys::signal::Signal;
use sdm_debug::TaskState;
use sdm_debug::reply::{Stop, StopReason};
use sdm_idset::IdSet;
use sdm_text::counted;
use sdm_view::item::Happening;
use sdm_view::render::Names;

use super::SessionHandle;
use crate::exit_codes::{ABORTED, ISOLATED, LOST, MISUSED, SIGNALLED, UNCHECKED};

/// The exit code at the end of a script, and its reason. It is the exit code of a batch for the tasks as the script has
/// left them. The code is 0 where tasks still run or are stopped without a crash, and where a command has ended them.
pub(super) fn end_of_script(session: &SessionHandle) -> (u8, Option<String>) {
    let (crashed, are_at_end) = session.read(|model| {
        let tasks = &model.tasks;
        let crashed = tasks.crashed().difference(tasks.killed());
        let by_themselves = tasks.ended().difference(tasks.killed());
        // An abort of the job, or the launcher where a rank exits, kills the others.
        let crashed = match model.job.aborted {
            Some(_) => IdSet::new(),
            None => crashed.difference(&tasks.killed_after_an_exit()),
        };
        (crashed, model.all.is_subset(&by_themselves))
    });
    match (crashed.is_empty(), are_at_end) {
        (false, _) => crash(session, &crashed),
        (true, true) => end_of_all(session),
        (true, false) => (0, None),
    }
}

/// The exit code of a program all of whose tasks have ended without a crash, and its reason.
pub(super) fn end_of_all(session: &SessionHandle) -> (u8, Option<String>) {
    match code_of_the_end(session) {
        (0, None) => isolated(session).unwrap_or_else(|| misused(session)),
        code => code,
    }
}

/// The exit code of a crash, and the text that names its tasks.
pub(super) fn crash(session: &SessionHandle, tasks: &IdSet) -> (u8, Option<String>) {
    let rows = session.read(|model| model.tasks.rows_of(tasks));
    let row = rows.first();
    let code = match row.map(|row| (&row.state, &row.last)) {
        Some((TaskState::Signalled(signal), _)) => code_of(signal),
        Some((
            _,
            Some(Happening::Stopped(Stop {
                reason: StopReason::Signal { name, .. },
                ..
            })),
        )) => code_of(name),
        _ => ABORTED,
    };
    let what = match row.and_then(|row| row.last.as_ref()) {
        Some(Happening::Stopped(stop)) => sdm_view::render::stopped(stop),
        _ => "ended by a signal".to_owned(),
    };
    let who = Names::ranks().label(row.map_or(tasks, |row| &row.tasks), 60);
    (code, Some(format!("{who}: {what}")))
}

/// The exit code at the end of all tasks: 0 if all exited with 0, or the status of an abort. 122 if a
/// task's end is unknown. Otherwise the one code that others exited with, or 1.
fn code_of_the_end(session: &SessionHandle) -> (u8, Option<String>) {
    let lost = session.read(|model| model.tasks.lost());
    if !lost.is_empty() {
        let who = Names::ranks().label(&lost, 60);
        return (LOST, Some(format!("sdm-server was lost: {who}")));
    }
    let without_gdb =
        session.read(|model| model.tasks.in_state(|state| *state == TaskState::GdbDead));
    if !without_gdb.is_empty() {
        // The program's own end is unknown: it was killed together with its gdb.
        let who = Names::ranks().label(&without_gdb, 60);
        return (LOST, Some(format!("gdb was killed or failed on {who}")));
    }
    if let Some((rank, status)) = session.read(|model| model.job.aborted) {
        // As a shell has it from a launcher: the lowest byte.
        let code = status.to_le_bytes()[0];
        let text = format!("rank {rank} ended the job with status {status}");
        return (code, Some(text));
    }
    let mut codes = Vec::new();
    for row in session.read(|model| model.tasks.rows_of(&model.all)) {
        match row.state {
            TaskState::Exited(0) => {}
            TaskState::Exited(code) => codes.push(u8::try_from(code).unwrap_or(1)),
            _ => codes.push(1),
        }
    }
    codes.sort_unstable();
    codes.dedup();
    match codes[..] {
        [] => (0, None),
        [code] => (
            code,
            Some(format!("the program ended with exit code {code}")),
        ),
        _ => (
            1,
            Some("the program ended with several exit codes".to_owned()),
        ),
    }
}

/// The exit code of `sdm`, and its reason, for a successful program some of whose ranks did not find the MPI job of
/// their launcher. None for other programs.
fn isolated(session: &SessionHandle) -> Option<(u8, Option<String>)> {
    let isolated = session.read(|model| model.job.isolated.clone());
    let who = Names::ranks().label(&isolated, 60);
    let why = format!("the rank in MPI_COMM_WORLD is not the launcher's rank on {who}");
    (!isolated.is_empty()).then_some((ISOLATED, Some(why)))
}

/// The exit code of `sdm`, with the reason, for a program that ended well but used MPI wrongly, or that was checked but
/// never began MPI. 0 without a reason for other programs.
fn misused(session: &SessionHandle) -> (u8, Option<String>) {
    let count = session.reporting(|reporting| reporting.recorder.mpi_errors().len());
    let unchecked = session.read(|model| {
        let unchecked = &model.job.unchecked;
        !unchecked.is_empty() && model.all.is_subset(unchecked)
    });
    match count {
        0 if unchecked => {
            let why = "--check has checked nothing: no rank has begun MPI";
            (UNCHECKED, Some(why.to_owned()))
        }
        0 => (0, None),
        _ => {
            let errors = counted(count, "error");
            (MISUSED, Some(format!("{errors} in the use of MPI")))
        }
    }
}

/// 128 plus the signal's number, as in a shell; [`ABORTED`] for an unknown signal. Real-time signals are named by
/// their numbers: SIG34.
fn code_of(signal: &str) -> u8 {
    const SIGNAL_MAX: u8 = 64;
    let named = signal.parse::<Signal>().map(|signal| signal as u8).ok();
    let numbered = || signal.strip_prefix("SIG")?.parse().ok();
    let number = named.or_else(numbered).filter(|it| *it <= SIGNAL_MAX);
    number.map_or(ABORTED, |number| SIGNALLED + number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_shell_exit_codes() {
        assert_eq!(code_of("SIGSEGV"), 139);
        assert_eq!(code_of("SIGKILL"), 137);
        assert_eq!(code_of("SIGSTKFLT"), 144);
        assert_eq!(code_of("SIG34"), 162);
        assert_eq!(code_of("SIG64"), 192);
        assert_eq!(code_of("SIG99"), ABORTED);
        assert_eq!(code_of("?"), ABORTED);
    }
}
