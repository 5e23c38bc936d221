//! The state of the session for the full-screen view. Changes are reported as they come. Stacks, locals and
//! source are queried once after each stop and each command, while no other command waits; those of ranks without a gdb at most every ten
//! seconds.
use std::sync::Arc;
use std::time::{Duration, Instant};

use sdm_core::CommandId;
use sdm_debug::command::{BacktraceSpec, FrameSelect, LookSpec};
use sdm_debug::reply::Frame;
use sdm_debug::{Command, Reply};
use sdm_idset::IdSet;
use sdm_view::item::Gathered;
use sdm_view::overview::{Named, Overview, Sight, SourceSight};

use super::SessionHandle;
use super::model::Model;
use super::model::dialogue::ListFrom;
use super::model::displays::{question, words};
use super::model::goal::Goal;

/// Minimum interval between two updates of the view: more than thirty frames a second are not perceived.
const PERIOD: Duration = Duration::from_millis(33);
/// Time after which the stacks of ranks without a gdb are queried again.
const LOOK_PERIOD: Duration = Duration::from_secs(10);
/// Maximum number of frames of a stack, from the innermost one, in which a caller with source is searched.
const CALLERS_MAX: u32 = 64;
/// Number of source lines to request before the current one, and after it, if the file is not on this machine.
const LINES_AROUND: u32 = 100;
/// The command name that the status line shows while the query is under way.
const SAID: &str = "look";
/// Reason why there are no variables and no source where gdb is attached to no task in focus.
const NOT_ATTACHED: &str = "gdb is not attached: these ranks keep running. A command that needs gdb attaches it; press p to stop them";

/// The time of the view's next update. None while nothing has changed, or if the view shows no overview.
pub(super) fn due(session: &SessionHandle) -> Option<Instant> {
    if !session.shared().view.borrow().wants_board() {
        return None;
    }
    session.read(|model| {
        let glance = &model.glance;
        let next = glance.shown_at.map(|at| at + PERIOD);
        (glance.shown != Some(glance.changes)).then(|| next.unwrap_or(model.news.activity))
    })
}

/// Updates the view if it is due.
pub(super) fn show_due(session: &SessionHandle) {
    let now = session.now();
    if due(session).is_some_and(|due| due <= now) {
        let board = session.edit(|model| {
            model.glance.shown = Some(model.glance.changes);
            model.glance.shown_at = Some(now);
            board(model)
        });
        session.shared().view.borrow_mut().show_board(&board);
    }
}

/// The current state for the view, from the model.
fn board(model: &Model) -> Overview {
    Overview {
        prompt: model.prompt(),
        all: model.all.clone(),
        focus: model.sets.focus.clone(),
        running: model.tasks.running().union(&model.job.unattached),
        ranks: model.rank_rows(&model.all),
        breakpoints: model.breaks.rows().to_vec(),
        sight: Arc::clone(&model.glance.sight),
        is_stale: model.glance.known != Some(model.tasks.moves()),
    }
}

/// Queries the state at the tasks' position, if a view shows it and tasks have moved or a command was
/// carried out since the last query.
pub(super) async fn look(session: &SessionHandle) {
    if !session.shared().view.borrow().wants_board() || session.is_over() {
        return;
    }
    let now = session.read(|model| (model.tasks.moves(), model.glance.lines));
    // While stop notices are collected, the query waits, so that tasks that stop together are queried once.
    let waits = session
        .read(|model| model.glance.seen == Some(now) || model.news.notices.deadline().is_some());
    if waits {
        return;
    }
    // Noted before the query, so that a failed query is not repeated for the same state.
    session.edit(|model| model.glance.seen = Some(now));
    let sight = sight(session).await;
    session.edit(|model| {
        model.glance.sight = Arc::new(sight);
        model.glance.known = Some(now.0);
        model.glance.changes += 1;
    });
}

/// Sends all queries but those for the source at once, and waits for the answers. The source is queried afterwards.
async fn sight(session: &SessionHandle) -> Sight {
    let silent = session.read(|model| model.tasks.silent().clone());
    let standing = session.standing().difference(&silent);
    let (free, spec) = session.read(|model| model.without_gdb(&model.all.difference(&silent)));
    let focus = session.read(|model| model.sets.focus.intersection(&standing));
    let mut sight = Sight::default();
    let look = LookSpec {
        pids: spec.pids,
        full: false,
        probe: None,
    };
    let send =
        |tasks: &IdSet, command| (!tasks.is_empty()).then(|| session.send(SAID, tasks, &command));
    let stacks = send(&standing, Command::Stacks { full: false });
    let (moves, looked) = looked(session, &free);
    let look = match looked {
        Some(_) => None,
        None => send(&free, Command::Look(look)),
    };
    if focus.is_empty() && !free.is_empty() {
        NOT_ATTACHED.clone_into(&mut sight.missing);
    }
    let mut asked = Vec::new();
    let mut watched = Vec::new();
    if !focus.is_empty() {
        let own = [
            Command::SelectFrame(FrameSelect::Current),
            Command::Arguments,
            Command::Locals,
        ];
        asked.extend(own.map(|command| session.send(SAID, &focus, &command)));
        for (_, display) in session.read(|model| model.displays.all()) {
            let id = session.send(SAID, &focus, &question(&display));
            watched.push((words(&display), id));
        }
    }
    let mut seen = Gathered::default();
    if let Some(id) = stacks {
        seen.absorb(answer(session, id).await.unwrap_or_default());
    }
    seen.absorb(looked.unwrap_or_default());
    if let Some(id) = look {
        let found = answer(session, id).await.unwrap_or_default();
        let is_whole = found.missing.is_empty() && found.failed.is_empty() && found.lost.is_empty();
        let kept = is_whole.then(|| (session.now(), moves, found.clone()));
        session.edit(|model| model.glance.looked = kept);
        seen.absorb(found);
    }
    sight.stacks = seen.stacks();
    let mut answers = Vec::new();
    for id in asked {
        answers.push(answer(session, id).await.unwrap_or_default());
    }
    for (name, id) in watched {
        let gathered = answer(session, id).await.unwrap_or_default();
        sight.watched.push(Named::of_values(name, &gathered));
    }
    if let [frames, arguments, locals] = &answers[..] {
        sight.locals = Named::of_frames(arguments, locals);
        let failed = frames.failed.iter().chain(&locals.failed);
        sight.missing = failed
            .map(|(_, why)| why.text.clone())
            .next()
            .unwrap_or_default();
        sight.frames = selected(frames);
        sight.source = source(session, &sight.frames).await;
    }
    sight
}

/// The number of task moves, and the stacks of ranks without a gdb, if they are not old. A query stops these ranks: a
/// command that follows soon needs no other one.
fn looked(session: &SessionHandle, free: &IdSet) -> (u64, Option<Gathered>) {
    let now = session.now();
    session.read(|model| {
        let moves = model.tasks.moves();
        let known = model.glance.looked.as_ref().filter(|(at, of, found)| {
            *of == moves && found.to == *free && now.saturating_duration_since(*at) < LOOK_PERIOD
        });
        (moves, known.map(|(_, _, found)| found.clone()))
    })
}

/// Waits for the answer to a command that was sent. None if the command is no longer in progress.
async fn answer(session: &SessionHandle, id: CommandId) -> Option<Gathered> {
    let waited = session.wait_for(&Goal::Answered(id), SAID, None).await;
    session.take_answered(id, waited).map(|open| open.gathered)
}

/// The selected frames without their arguments, most tasks first.
fn selected(frames: &Gathered) -> Vec<(IdSet, Frame)> {
    let mut places: Vec<(IdSet, Frame)> = Vec::new();
    for (tasks, reply) in &frames.ok {
        let Reply::Frame(view) = reply else {
            continue;
        };
        let frame = Frame {
            args: Vec::new(),
            ..view.frame.clone()
        };
        match places.iter_mut().find(|(_, known)| *known == frame) {
            Some((known, _)) => known.union_with(tasks),
            None => places.push((tasks.clone(), frame)),
        }
    }
    places.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.first().cmp(&b.first())));
    places
}

/// The source at the position of most tasks, or that of the nearest caller with source. None if there is no source.
async fn source(session: &SessionHandle, selected: &[(IdSet, Frame)]) -> Option<SourceSight> {
    let (_, frame) = selected.first()?;
    // Recursion of another depth is the same place.
    let is_same = |other: &Frame| {
        (&frame.path, frame.line, &frame.function) == (&other.path, other.line, &other.function)
    };
    let here = selected.iter().filter(|(_, other)| is_same(other));
    let tasks = IdSet::union_all(here.map(|(tasks, _)| tasks));
    let (frame, is_caller) = match has_source(frame) {
        true => (frame.clone(), false),
        false => (caller(session, &tasks, frame.level).await?, true),
    };
    let (first, lines) = lines(session, &tasks, &frame).await?;
    Some(SourceSight {
        path: frame.path,
        first,
        lines,
        line: frame.line,
        function: frame.function,
        is_caller,
        tasks,
    })
}

fn has_source(frame: &Frame) -> bool {
    frame.line > 0 && !frame.path.is_empty()
}

/// The nearest caller with source of a frame, in the first of these tasks. None if no caller has source.
async fn caller(session: &SessionHandle, tasks: &IdSet, level: u32) -> Option<Frame> {
    let spec = BacktraceSpec {
        limit: CALLERS_MAX,
        args: false,
        full: true,
    };
    let one = tasks.first().map(IdSet::single)?;
    let id = session.send(SAID, &one, &Command::Backtrace(spec));
    let gathered = answer(session, id).await?;
    let frames = gathered.ok.into_iter().find_map(|(_, reply)| match reply {
        Reply::Backtrace(backtrace) => Some(backtrace.frames),
        _ => None,
    })?;
    frames
        .into_iter()
        .find(|frame| frame.level >= level && has_source(frame))
}

/// The lines of a frame's file, and the number of the first one. They come from the file on this machine, or from gdb
/// around the frame's line. None if neither has them.
async fn lines(
    session: &SessionHandle,
    tasks: &IdSet,
    frame: &Frame,
) -> Option<(u32, Arc<Vec<String>>)> {
    let known = session.read(|model| model.glance.sight.source.clone());
    let known = known.filter(|it| it.path == frame.path);
    if let Some(known) = known.filter(|it| covers(it, frame.line)) {
        return Some((known.first, known.lines));
    }
    if let Ok(text) = session.machine(|machine| machine.read_text(frame.path.as_ref())) {
        let lines = text.lines().map(str::to_owned).collect();
        return Some((1, Arc::new(lines)));
    }
    let first = frame.line.saturating_sub(LINES_AROUND).max(1);
    let last = frame.line.saturating_add(LINES_AROUND);
    let command = Command::List {
        what: format!("{}:{first},{last}", frame.path),
    };
    let one = tasks.first().map(IdSet::single)?;
    let id = session.send(SAID, &one, &command);
    // The `list` of gdb would continue after these lines: the next `list` begins at the selected frame
    // again.
    session.edit(|model| model.dialogue.list_from = ListFrom::Selected);
    let gathered = answer(session, id).await?;
    gathered.ok.into_iter().find_map(|(_, reply)| match reply {
        Reply::Source(source) => Some((source.first, Arc::new(source.lines))),
        _ => None,
    })
}

/// True if the known lines contain this one with some lines around it.
fn covers(known: &SourceSight, line: u32) -> bool {
    let last = known
        .first
        .saturating_add(u32::try_from(known.lines.len()).unwrap_or(u32::MAX));
    let is_whole = known.first == 1 && line < last && !known.lines.is_empty();
    is_whole || (known.first + LINES_AROUND / 2 <= line && line + LINES_AROUND / 2 < last)
}
