//! Changes of the state of tasks (stops, resumed runs, ends), and the discarding of data that is no longer valid.

use sdm_debug::Command;
use sdm_debug::reply::{Stop, StopReason, call_of};
use sdm_idset::IdSet;

use super::{breakpoints, output_events};
use crate::connection::{Connection, Phase, Role};
use crate::jobs::Purpose;
use crate::tasks::Condition;
use crate::values::set_name;

/// Notes that these tasks have stopped.
pub(super) fn note_stops(connection: &mut Connection, tasks: &IdSet) {
    if tasks.is_empty() {
        return;
    }
    connection.settling.fresh.union_with(tasks);
    connection.settling.first = connection.settling.first.or(Some(connection.now));
    connection.settling.last = Some(connection.now);
}

/// Discards the frames and variables of these tasks, which are no longer valid.
pub(super) fn forget(connection: &mut Connection, tasks: &IdSet) {
    for (set, _) in &mut connection.stacks {
        set.subtract(tasks);
    }
    connection.os_threads.forget();
    connection.stacks.retain(|(set, _)| !set.is_empty());
    let standing = connection.tasks.standing();
    let objects = connection.references.forget(tasks);
    let deletes = objects.into_iter().map(|(set, name)| {
        let command = Command::VarDelete { name };
        (set.intersection(&standing), command)
    });
    let deletes: Vec<_> = deletes.collect();
    if !deletes.is_empty() {
        connection.begin_job(Purpose::Nothing, deletes);
    }
}

/// Shows a message of tasks, in order with their output.
pub(super) fn tell(connection: &mut Connection, tasks: &IdSet, text: &str) {
    output_events::flush_output(connection, true);
    let text = match connection.tasks.all().len() {
        0 | 1 => format!("{text}\n"),
        _ => format!("{} {text}\n", set_name(tasks)),
    };
    connection.say("console", &text);
}

/// Handles stops; each task occurs once.
pub(super) fn stopped(connection: &mut Connection, stops: Vec<(IdSet, Stop)>) {
    let is_passed = |stop: &Stop| match &stop.reason {
        StopReason::Internal { what } => {
            let mut passed = connection.points.passed.iter();
            passed.any(|known| call_of(what) == &**known)
        }
        _ => false,
    };
    let passes = connection.company.role == Role::Owner;
    let (passed, told): (Vec<_>, Vec<_>) = stops
        .iter()
        .partition(|(_, stop)| passes && is_passed(stop));
    let [passed, told] =
        [passed, told].map(|stops| IdSet::union_all(stops.into_iter().map(|(tasks, _)| tasks)));
    for (tasks, stop) in &stops {
        if let StopReason::Breakpoint { number } = &stop.reason
            && connection.points.hit(*number, tasks)
        {
            breakpoints::tell_gone(connection, *number);
        }
    }
    let stand = stops.into_iter();
    let stand = stand.map(|(tasks, stop)| (tasks, Condition::CommonStop(Box::new(stop))));
    connection.tasks.set_all(stand.collect());
    if connection.phase == Phase::Live {
        connection.settling.passing.union_with(&passed);
        note_stops(connection, &told);
    }
}

/// Marks tasks that could not run as stopped as before.
pub(super) fn stand_again(connection: &mut Connection, before: &[(Stop, IdSet)], failed: &IdSet) {
    if !failed.is_empty() {
        let back = before.iter().map(|(stop, tasks)| {
            let stop = Condition::CommonStop(Box::new(stop.clone()));
            (tasks.intersection(failed), stop)
        });
        connection.tasks.set_all(back.collect());
    }
    note_stops(connection, failed);
}

pub(super) fn ended(connection: &mut Connection, tasks: &IdSet, condition: Condition) {
    // Tasks that have ended keep their exit code.
    let known = connection.tasks.live().union(&connection.tasks.left());
    let tasks = tasks.intersection(&known);
    connection.tasks.set(&tasks, condition);
    forget(connection, &tasks);
    connection.settling.changed = true;
}
