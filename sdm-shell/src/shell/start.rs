//! The start of programs on their tasks, up to `main`.

use sdm_core::CommandId;
use sdm_debug::command::{StartSpec, StopAt};
use sdm_debug::{Command, Failure, FailureCode};
use sdm_idset::IdSet;

use super::model::goal::{Goal, WaitOutcome};
use super::model::job::Stage;
use super::model::open_commands::OpenCommand;
use super::{SessionHandle, ask, memory_estimate, notices, program_input};
use crate::exit_codes::{NOT_FOUND, NOT_RUNNABLE};
use sdm_view::coalesce::join;
use sdm_view::item::Item;

/// Starts programs on their tasks. Waits until the programs run, or are stopped at `main` if they are to stop there.
/// Returns false on failure.
pub(super) async fn start(session: &SessionHandle, programs: Vec<(IdSet, StartSpec)>) -> bool {
    session.edit(|model| {
        let seized = programs.iter().filter(|(_, spec)| spec.gdb_when_needed);
        model.job.seized = IdSet::union_all(seized.map(|(tasks, _)| tasks));
        model.job.programs.clone_from(&programs);
    });
    show_start(session, &programs);
    if let Some(lack) = memory_estimate::lack_of_room(session, &programs).await {
        session.complain(lack, "`sdm run --force` starts the ranks anyway");
        return false;
    }
    let held = programs.iter().any(|(_, spec)| spec.stop == StopAt::Main);
    let ids = send_starts(session, programs);
    let goal = if held {
        Goal::Held(ids.clone())
    } else {
        Goal::Started(ids.clone())
    };
    let waited = session.wait_for(&goal, "start", None).await;
    finish_start(session, &ids, waited)
}

pub(super) fn show_start(session: &SessionHandle, programs: &[(IdSet, StartSpec)]) {
    let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
    let words = |spec: &StartSpec| {
        let words = std::iter::once(&spec.program).chain(&spec.args);
        words.map(text).collect::<Vec<_>>()
    };
    let mut shown = Vec::new();
    for (tasks, spec) in programs {
        join(&mut shown, tasks, words(spec));
    }
    let item = Item::Start {
        session: session.session_name(),
        tasks: session.all(),
        programs: shown,
        pids: Vec::new(),
    };
    session.show(&item);
}

pub(super) fn send_starts(
    session: &SessionHandle,
    programs: Vec<(IdSet, StartSpec)>,
) -> Vec<CommandId> {
    let all = session.all();
    let programs = programs.into_iter();
    let programs = programs.map(|(tasks, spec)| (tasks.intersection(&all), spec));
    let ids = programs
        .filter(|(tasks, _)| !tasks.is_empty())
        .map(|(tasks, spec)| session.send("start", &tasks, &Command::Start(spec)))
        .collect();
    program_input::begin_input(session);
    ids
}

pub(super) fn finish_start(
    session: &SessionHandle,
    ids: &[CommandId],
    waited: WaitOutcome,
) -> bool {
    notices::show_held(session);
    if waited == WaitOutcome::Over {
        return false;
    }
    let mut well = !ids.is_empty();
    let mut all_stand = well;
    let mut one_stands = false;
    let without = session.read(|model| match model.options.partial {
        true => model.tasks.lost(),
        false => IdSet::new(),
    });
    let mut lacks = Vec::new();
    for id in ids {
        if session.edit(|model| model.open.leave_unattended(*id)) {
            well &= waited == WaitOutcome::Reached;
            all_stand = false;
            one_stands = true;
            continue;
        }
        let open = ask::conclude(session, *id);
        lacks.push(open.as_ref().and_then(lack_of_program));
        one_stands |= open.as_ref().is_some_and(|open| !open.done().is_empty());
        well &= open.is_some_and(|open| !open.has_failed_without(&without));
    }
    well &= one_stands;
    let lacks: Option<Vec<u8>> = lacks.into_iter().collect();
    let programless = lacks.and_then(|codes| codes.into_iter().min());
    session.edit(|model| model.job.programless = programless);
    if well && all_stand {
        session.edit(|model| model.job.stage = Stage::Untouched);
    } else if well {
        session.edit(|model| {
            let programs = &mut model.job.programs.iter();
            if programs.all(|(_, spec)| spec.gdb_when_needed) {
                model.job.stage = Stage::Begun;
            }
        });
    }
    if well && !without.is_empty() {
        session.edit(|model| {
            let focus = model.sets.focus.difference(&without);
            model.sets.focus = match focus.is_empty() {
                true => model.all.difference(&without),
                false => focus,
            };
        });
    }
    well
}

/// The exit code of a shell where all tasks of a start lack their program: 127 if none has one, 126 if it
/// cannot be run.
fn lack_of_program(start: &OpenCommand) -> Option<u8> {
    let failed = &start.gathered.failed;
    let who = IdSet::union_all(failed.iter().map(|(tasks, _)| tasks));
    let code = |failure: &Failure| match failure.code {
        FailureCode::NotFound => Some(NOT_FOUND),
        FailureCode::NoProgram => Some(NOT_RUNNABLE),
        _ => None,
    };
    let codes: Option<Vec<u8>> = failed.iter().map(|(_, failure)| code(failure)).collect();
    let codes = codes.filter(|_| who == start.gathered.to);
    codes.and_then(|codes| codes.into_iter().min())
}
