//! The tasks of a job that a diagnosis does not sample, and what is known of them.

use sdm_debug::TaskState;
use sdm_debug::reply::StopReason;
use sdm_diagnose::Observed;
use sdm_idset::{IdSet, TaskId};
use sdm_view::coalesce::join;
use sdm_view::item::Happening;

use super::super::{SessionHandle, attach};
use super::sample::{all_of, free, where_stopped};

/// Notes a rank that has aborted the job.
pub(super) fn note_abort(session: &SessionHandle, to: &IdSet, observed: &mut Observed) {
    let found = session.read(|model| {
        let told = model.job.abort_words.clone();
        let told = told.map(|(rank, how)| (IdSet::single(TaskId(rank)), how));
        told.or_else(|| model.news.output.fatal_error())
    });
    let Some((by, how)) = found else {
        return;
    };
    if by.is_subset(to) && observed.aborting.is_empty() {
        observed.aborting.push((by, how));
    }
}

/// Notes the tasks that have ended or are about to end, those whose gdb has ended, and those that cannot be reached.
pub(super) fn note_absent(session: &SessionHandle, to: &IdSet, observed: &mut Observed) {
    let all_lost = session.read(|model| model.tasks.lost());
    for row in session.read(|model| model.tasks.rows_of(to)) {
        let reachable = row.tasks.difference(&all_lost);
        let what = match &row.state {
            TaskState::Exited(0) => Some("ended with exit code 0".to_owned()),
            TaskState::Exited(code) => Some(format!("ended with exit code {code}")),
            TaskState::Signalled(signal) => Some(format!("ended by {signal}")),
            TaskState::GdbDead => Some("the gdb of this rank has ended".to_owned()),
            _ => None,
        };
        if let Some(what) = what.filter(|_| !reachable.is_empty()) {
            join(&mut observed.gone, &reachable, what);
        }
    }
    let lost = all_lost.intersection(to);
    if !lost.is_empty() {
        join(
            &mut observed.gone,
            &lost,
            "lost: sdm-server has ended".to_owned(),
        );
    }
    let crashed = session.read(|model| model.tasks.about_to_crash());
    // SIGCONT can continue a process that a job-control signal has stopped, so this is no crash.
    let halted = where_stopped(session, is_job_control);
    let crashed = crashed.intersection(to).difference(&all_lost);
    let crashed = crashed.difference(&halted);
    for row in session.read(|model| model.tasks.rows_of(&crashed)) {
        if let Some(Happening::Stopped(stop)) = &row.last {
            let what = sdm_view::render::stopped(stop);
            join(
                &mut observed.gone,
                &row.tasks,
                format!("stopped, and about to end: {what}"),
            );
            if stop.reason.is_crash() {
                join(&mut observed.aborting, &row.tasks, what);
            }
        }
    }
}

/// Notes the tasks that ended or stopped by themselves during the observation.
pub(super) fn note_ended(session: &SessionHandle, looked: &IdSet, observed: &mut Observed) {
    let before = all_of(&observed.gone);
    note_absent(session, &looked.difference(&before), observed);
    let gone = all_of(&observed.gone);
    let stood = looked
        .intersection(&session.standing())
        .difference(&free(session));
    let stood = stood.difference(&gone);
    if !stood.is_empty() {
        let what =
            "stopped by a breakpoint or a signal during the diagnosis, and not resumed".to_owned();
        join(&mut observed.stood, &stood, what);
    }
}

/// Notes the tasks of the job that are not sampled: those outside of `to`, and detached ones. Those that have ended are
/// noted as such. The state of the others is unknown, and sampled tasks can wait for them.
pub(super) fn note_outside(session: &SessionHandle, to: &IdSet, observed: &mut Observed) {
    let detached = session.read(|model| model.tasks.rows_of(to));
    let detached = detached.into_iter();
    let detached = detached.filter(|row| row.state == TaskState::Detached);
    let detached = detached.fold(IdSet::new(), |all, row| all.union(&row.tasks));
    let others = session.all().union(&attach::elsewhere(session));
    let others = observed.outside.union(&others).difference(to);
    observed.outside = IdSet::new();
    note_absent(session, &others.intersection(&session.all()), observed);
    let gone = all_of(&observed.gone);
    observed.outside = others.union(&detached).difference(&gone);
}

/// True for a stop by a job control signal, which would stop the program without a debugger too.
pub(super) fn is_job_control(reason: &StopReason) -> bool {
    match reason {
        StopReason::Signal { name, .. } => {
            matches!(name.as_str(), "SIGSTOP" | "SIGTSTP" | "SIGTTIN" | "SIGTTOU")
        }
        _ => false,
    }
}
