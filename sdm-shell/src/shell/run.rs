//! Running, interrupting and ending tasks, waiting for them, and the notices about them that need no query.
use std::collections::BTreeSet;
use std::time::Duration;

use sdm_core::CommandId;
use sdm_debug::command::FrameSelect;
use sdm_debug::{Command, EndPolicy, Reply};
use sdm_idset::{IdSet, set_text};
use sdm_view::item::{Gathered, Happening, Item};
use sdm_view::render::Names;

use super::invocation::Invocation;
use super::model::dialogue::Question;
use super::model::goal::{Goal, WaitOutcome};
use super::model::open_commands::RunEnd;
use super::model::{Model, Over};
use super::{SessionHandle, Verdict, ask, display, notices, save, sets};
use crate::commands::SetExpr;

/// Time limit for interrupted tasks to report their stop.
const INTERRUPT_WAIT: Duration = Duration::from_secs(10);

/// Time that other tasks are waited for after a crash, because they may be about to stop as well.
const CRASH_WAIT: Duration = Duration::from_secs(2);

/// Resumes tasks and waits for the end of the run, unless the command is in the background.
pub(super) async fn run(
    session: &SessionHandle,
    said: &Invocation<'_>,
    command: &Command,
    background: bool,
) -> Verdict {
    let to = sets::not_held(session, said);
    if to.is_empty() {
        return Verdict::Done;
    }
    if *command == Command::Continue && session.edit(|model| model.job.take_begun()) {
        return match background {
            true => Verdict::Done,
            false => wait_command(session, said, None, None).await,
        };
    }
    let id = session.send(said.line, &to, command);
    match command {
        Command::Continue => await_end(session, said.line, &to, &[id], background).await,
        _ => await_run(session, said.line, &to, &[id], background).await,
    }
}

/// As [`await_run`]. In a checked batch, tasks that stop at an error in the use of MPI are continued: others may wait
/// for them.
pub(super) async fn await_end(
    session: &SessionHandle,
    line: &str,
    to: &IdSet,
    ids: &[CommandId],
    background: bool,
) -> Verdict {
    let passes = |model: &Model| model.options.passes_mpi_errors && !model.options.interactive;
    let goal = Goal::StillOrError(to.clone());
    let since = session.interrupts();
    while !background && session.read(passes) {
        let waited = session.wait_for(&goal, line, None).await;
        if let Some(verdict) = not_reached(session, waited) {
            leave_unattended(session, ids);
            return verdict;
        }
        let standing = session.read(|model| model.tasks.at_mpi_errors().intersection(to));
        if standing.is_empty() || session.interrupted_since(since) {
            break;
        }
        session.send_unattended(line, &standing, &Command::Continue, RunEnd::Shown);
    }
    await_run(session, line, to, ids, background).await
}

/// Waits for the end of runs, unless they are in the background, and shows the result.
pub(super) async fn await_run(
    session: &SessionHandle,
    line: &str,
    to: &IdSet,
    ids: &[CommandId],
    background: bool,
) -> Verdict {
    let given_up = if background {
        Some(Verdict::Done)
    } else {
        wait_for_run(session, line, ids).await
    };
    if let Some(verdict) = given_up {
        leave_unattended(session, ids);
        return verdict;
    }
    let ended = session.read(|model| {
        let open = ids.iter().filter_map(|id| model.open.get(*id));
        let stopped = IdSet::union_all(open.flat_map(|open| [&open.stopped, &open.joined]));
        model.tasks.ended_among(&stopped)
    });
    ask::settle(session, &ended).await;
    notices::show_held(session);
    let mut verdict = Verdict::Done;
    for id in ids {
        let one = verdict_of(session, *id);
        if one != Verdict::Done {
            verdict = one;
        }
    }
    display::show_displays(session, to).await;
    verdict
}

fn leave_unattended(session: &SessionHandle, ids: &[CommandId]) {
    for id in ids {
        session.edit(|model| model.open.leave_unattended(*id));
    }
}

/// Waits for the end of runs. Returns the outcome if they have not ended. A rank that waits for a crashed
/// one waits forever, so an interactive user gets the prompt back then.
async fn wait_for_run(session: &SessionHandle, line: &str, ids: &[CommandId]) -> Option<Verdict> {
    let run = Goal::Run(ids.to_vec());
    if !session.read(|model| model.options.interactive || model.options.in_batch) {
        let waited = session.wait_for(&run, line, None).await;
        return not_reached(session, waited);
    }
    let either = Goal::RunOrCrash(ids.to_vec());
    let waited = session.wait_for(&either, line, None).await;
    if let Some(verdict) = not_reached(session, waited) {
        return Some(verdict);
    }
    let until = Some(session.now() + CRASH_WAIT);
    let waited = session.wait_for(&run, line, until).await;
    if waited != WaitOutcome::TimedOut {
        return not_reached(session, waited);
    }
    notices::show_held(session);
    let (crashed, running) = session.read(|model| (model.crashed_of(ids), model.running_of(ids)));
    let (crashed, running) = (set_text(&crashed, 24), set_text(&running, 24));
    session.say(&format!(
        "crashed ranks: {crashed}; running ranks: {running} (`interrupt` stops them, `wait` waits for them)"
    ));
    Some(Verdict::Done)
}

/// The outcome of a command whose wait did not reach its goal. None if the command continues.
fn not_reached(session: &SessionHandle, waited: WaitOutcome) -> Option<Verdict> {
    match waited {
        WaitOutcome::Reached | WaitOutcome::TimedOut => None,
        WaitOutcome::GivenUp => {
            notices::show_held(session);
            Some(Verdict::GivenUp)
        }
        WaitOutcome::Over => {
            notices::show_held(session);
            Some(Verdict::Failed)
        }
    }
}

/// Shows the result of a completed command. Returns its outcome.
fn verdict_of(session: &SessionHandle, id: CommandId) -> Verdict {
    match ask::conclude(session, id) {
        Some(open) if open.has_failed() => Verdict::Failed,
        _ => Verdict::Done,
    }
}

/// Carries out a query of the user. Settings of gdb are recorded for the next job.
pub(super) async fn ask(
    session: &SessionHandle,
    said: &Invocation<'_>,
    command: &Command,
) -> Verdict {
    if matches!(command, Command::Return { .. })
        && session.read(|model| model.asks(said.depth))
        && let Some(what) = left_by_return(session, said).await
        && ask::confirm(
            session,
            said,
            format!("Make {what} return now"),
            "not returned",
        )
    {
        return Verdict::Done;
    }
    if let Some(verdict) = save::one_file_each(session, said, command).await {
        return verdict;
    }
    let (verdict, done) = session.ask(said.line, &said.to, command).await;
    session.edit(|model| model.job.remember_setting(&done, command));
    verdict
}

/// `kill`; the user is asked before a program is lost.
pub(super) async fn kill(session: &SessionHandle, said: &Invocation<'_>) -> Verdict {
    let live = session.read(|model| model.tasks.live().intersection(&said.to));
    let text = || format!("Kill the program on {}", Names::ranks().label(&live, 60));
    if !live.is_empty() && ask::confirm(session, said, text(), "not killed") {
        return Verdict::Done;
    }
    end_tasks(session, said, &Command::Kill).await
}

/// The function that a `return` leaves, and on which tasks. None if it leaves none.
async fn left_by_return(session: &SessionHandle, said: &Invocation<'_>) -> Option<String> {
    let selected = Command::SelectFrame(FrameSelect::Current);
    let answers = session.answers(said.line, &said.to, &selected).await;
    let frames = answers.iter().filter_map(|(tasks, reply)| match reply {
        Reply::Frame(view) => Some((tasks, view.frame.function.as_str())),
        _ => None,
    });
    let (tasks, names): (Vec<_>, BTreeSet<_>) = frames.unzip();
    let name = match names.len() {
        0 => return None,
        1 => names.first().filter(|name| !name.is_empty()),
        _ => None,
    };
    let who = Names::ranks().label(&IdSet::union_all(tasks), 60);
    Some(format!(
        "{} on {who}",
        name.unwrap_or(&"selected stack frame")
    ))
}

/// `more`: shows the last answer in full.
pub(super) fn more(session: &SessionHandle) -> Verdict {
    match session.read(|model| model.dialogue.last_answer.clone()) {
        Some(item) => {
            session.show(&Item::Whole(Box::new(item)));
            Verdict::Done
        }
        None => session.complain("more: no command has given an answer yet", ""),
    }
}

pub(super) async fn interrupt(session: &SessionHandle, said: &Invocation<'_>) -> Verdict {
    let running = session.running().intersection(&said.to);
    let to = if said.named || running.is_empty() {
        said.to.clone()
    } else {
        running
    };
    let (verdict, done) = session.ask(said.line, &to, &Command::Interrupt).await;
    let until = Some(session.now() + INTERRUPT_WAIT);
    let waited = session
        .wait_for(&Goal::Still(done, RunEnd::Shown), said.line, until)
        .await;
    ask::settle(session, &IdSet::new()).await;
    not_reached(session, waited).unwrap_or(verdict)
}

/// Carries out `kill` and `detach`.
pub(super) async fn end_tasks(
    session: &SessionHandle,
    said: &Invocation<'_>,
    command: &Command,
) -> Verdict {
    if *command == Command::Detach && leave_unattached(session, said) {
        return Verdict::Done;
    }
    let live = session.read(|model| model.tasks.live().intersection(&said.to));
    let to = if said.named || live.is_empty() {
        said.to.clone()
    } else {
        live.clone()
    };
    let killed = *command == Command::Kill;
    if killed {
        session.edit(|model| model.tasks.mark_killed(&live));
    }
    let (mut verdict, open) = session.ask_quietly(said.line, &to, command).await;
    let Some(mut open) = open else {
        return verdict;
    };
    let done = open.plainly_done();
    let what = if killed {
        Happening::Signalled("SIGKILL".to_owned())
    } else {
        Happening::Detached
    };
    let known = session.read(|model| model.tasks.in_state(|state| !state.is_live()));
    session.happened(&done.difference(&known), what, RunEnd::Shown);
    if killed {
        let ended = || session.read(|model| model.tasks.ended_among(&live));
        ask::settle(session, &done.union(&ended())).await;
        open.have_ended(&ended());
        if verdict == Verdict::Failed && !open.has_failed() {
            verdict = Verdict::Done;
        }
    }
    notices::show_held(session);
    session.show(&Item::Answer(open.gathered));
    verdict
}

/// Marks tasks that were only sampled as detached, so that gdb no longer attaches to them on demand.
/// Returns true if the line has no other live task.
fn leave_unattached(session: &SessionHandle, said: &Invocation<'_>) -> bool {
    let left = session.read(|model| model.job.unattached.intersection(&said.to));
    if left.is_empty() {
        return false;
    }
    session.edit(|model| model.job.unattached.subtract(&left));
    session.happened(&left, Happening::Detached, RunEnd::Shown);
    notices::show_held(session);
    session.read(|model| model.tasks.live().is_disjoint(&said.to))
}

pub(super) fn quit(session: &SessionHandle, depth: u32) -> Verdict {
    session.edit(|model| {
        let ends_tasks = model.options.is_ours() && !model.tasks.live().is_empty();
        if model.asks(depth) && ends_tasks {
            model.dialogue.question = Some(Question::Quit);
        } else {
            model.end(Over::Quit(EndPolicy::KillStarted));
        }
    });
    Verdict::Done
}

/// Handles the end of input like `quit`. A second one confirms it.
pub(super) fn end_of_input(session: &SessionHandle) {
    match session.edit(|model| model.dialogue.question.take()) {
        Some(Question::Quit) => {
            session.edit(|model| model.end(Over::Quit(EndPolicy::KillStarted)));
        }
        Some(Question::Rerun(_)) => session.say("the job was not started again"),
        Some(Question::Confirm(asked)) => session.say(asked.refused),
        Some(Question::Pending(_)) => {}
        None => {
            quit(session, 0);
        }
    }
}

pub(super) async fn show_ranks(
    session: &SessionHandle,
    said: &Invocation<'_>,
    set: Option<&SetExpr>,
) -> Verdict {
    let to = match sets::whom(session, said, set).await {
        Ok(to) => to,
        Err(verdict) => return verdict,
    };
    notices::show_held(session);
    let rows = session.read(|model| model.rank_rows(&to));
    session.show(&Item::Ranks(rows));
    Verdict::Done
}

pub(super) fn switch_output(session: &SessionHandle, on: Option<bool>) -> Verdict {
    match on {
        Some(on) => {
            notices::show_held(session);
            session.edit(|model| model.news.output.on = on);
        }
        None => {
            let word = if session.read(|model| model.news.output.on) {
                "on"
            } else {
                "off"
            };
            session.show(&Item::Notice(format!("output is {word}")));
        }
    }
    Verdict::Done
}

pub(super) async fn wait_command(
    session: &SessionHandle,
    said: &Invocation<'_>,
    set: Option<&SetExpr>,
    seconds: Option<u32>,
) -> Verdict {
    let to = match sets::whom(session, said, set).await {
        Ok(to) => to,
        Err(verdict) => return verdict,
    };
    let still = Goal::Still(to.clone(), RunEnd::Shown);
    let mut until = seconds.map(|s| session.now() + Duration::from_secs(s.into()));
    // Nobody ends the wait for ranks that wait for a crashed one.
    if session.read(|model| model.options.in_batch) {
        let error = Goal::StillOrError(to.clone());
        let waited = session.wait_for(&error, said.line, until).await;
        if let Some(verdict) = not_reached(session, waited) {
            return verdict;
        }
        let soon = session.now() + CRASH_WAIT;
        until = Some(until.map_or(soon, |until| until.min(soon)));
    }
    let waited = session.wait_for(&still, said.line, until).await;
    if let Some(verdict) = not_reached(session, waited) {
        return verdict;
    }
    let ended = session.read(|model| model.tasks.ended_among(&to));
    if waited == WaitOutcome::Reached {
        ask::settle(session, &ended).await;
    }
    notices::show_held(session);
    let running = to.intersection(&session.running());
    if !running.is_empty() {
        let who = Names::ranks().label(&running, 60);
        session.show(&Item::Notice(format!("still running: {who}")));
    }
    Verdict::Done
}

/// An answer as an item. With `whole` it is not folded.
pub(super) fn answer(gathered: Gathered, whole: bool) -> Item {
    let item = Item::Answer(gathered);
    if whole {
        Item::Whole(Box::new(item))
    } else {
        item
    }
}

/// Stops the running tasks among these, and waits until they are stopped.
pub(super) async fn stop(session: &SessionHandle, tasks: &IdSet) {
    let running = session.running().intersection(tasks);
    if running.is_empty() || session.is_over() {
        return;
    }
    session
        .ask_quietly("interrupt", &running, &Command::Interrupt)
        .await;
    let until = Some(session.now() + INTERRUPT_WAIT);
    session
        .wait_for(&Goal::Still(running, RunEnd::Shown), "interrupt", until)
        .await;
    notices::show_held(session);
}
