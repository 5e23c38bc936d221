//! Commands for individual threads: `thread apply`, and `[3.t2]` in front of a command.
use sdm_debug::command::FrameSelect;
use sdm_debug::{Command, Reply, TaskState};
use sdm_idset::IdSet;
use sdm_text::counted;
use sdm_view::item::Item;

use super::invocation::Invocation;
use super::line;
use super::{SessionHandle, Verdict};
use crate::commands::UserCommand;
use sdm_view::coalesce::join;

/// Maximum number of threads that one `thread apply` asks.
const THREADS_MAX: usize = 64;

/// Carries out `thread apply N... COMMAND`. Without numbers: for all threads.
pub(super) async fn thread_apply(
    session: &SessionHandle,
    said: &Invocation<'_>,
    threads: &[u32],
    command: UserCommand,
) -> Verdict {
    let (verdict, open) = session
        .ask_quietly(said.line, &said.to, &Command::Threads)
        .await;
    let Some(mut open) = open else {
        return verdict;
    };
    let mut known: Vec<(IdSet, u32)> = Vec::new();
    for (tasks, reply) in std::mem::take(&mut open.gathered.ok) {
        let Reply::Threads(threads) = reply else {
            continue;
        };
        for thread in threads {
            join(&mut known, &tasks, thread.number);
        }
    }
    known.sort_by_key(|(_, number)| *number);
    let mut verdict = verdict;
    session.show(&Item::Answer(open.gathered));
    for number in threads {
        if !known.iter().any(|(_, known)| known == number) {
            verdict = session.complain(format!("Unknown thread {number}."), "");
        }
    }
    known.retain(|(_, number)| threads.is_empty() || threads.contains(number));
    let more = known.len().saturating_sub(THREADS_MAX);
    for (tasks, number) in known.into_iter().take(THREADS_MAX) {
        session.show(&Item::Text(format!("Thread {number}:")));
        let narrowed = Invocation {
            line: said.line,
            to: tasks,
            named: true,
            depth: said.depth,
        };
        let one = with_thread(session, &narrowed, number, command.clone()).await;
        if one != Verdict::Done {
            verdict = one;
        }
        if one == Verdict::GivenUp || session.is_over() {
            return verdict;
        }
    }
    if more > 0 {
        let threads = counted(more, "more thread");
        session.say(&format!(
            "thread apply: {threads} skipped (the maximum is {THREADS_MAX}); `thread apply N CMD` asks thread N"
        ));
    }
    verdict
}

/// Carries out a command with a thread of each task selected. Restores the previous selection.
pub(super) async fn with_thread(
    session: &SessionHandle,
    said: &Invocation<'_>,
    thread: u32,
    command: UserCommand,
) -> Verdict {
    let before = selected_threads(session, said).await;
    let there = before.iter().filter(|(number, ..)| *number == thread);
    let mut done = IdSet::union_all(there.map(|(.., tasks)| tasks));
    let others = said.to.difference(&done);
    let mut verdict = Verdict::Done;
    if !others.is_empty() {
        let select = Command::SelectThread { number: thread };
        let (one, open) = session.ask_quietly(said.line, &others, &select).await;
        verdict = one;
        let Some(mut open) = open else {
            return verdict;
        };
        done.union_with(&open.done());
        open.gathered.ok.clear();
        session.show(&Item::Answer(open.gathered));
    }
    if done.is_empty() {
        return verdict;
    }
    let narrowed = Invocation {
        line: said.line,
        to: done.clone(),
        named: true,
        depth: said.depth,
    };
    let carried_out = Box::pin(line::carry_out(session, &narrowed, command)).await;
    let standing = session.read(|model| model.tasks.in_state(|state| *state == TaskState::Stopped));
    for (number, level, tasks) in before {
        let tasks = tasks.intersection(&done).intersection(&standing);
        if number == thread || tasks.is_empty() || session.is_over() {
            continue;
        }
        session
            .ask_quietly(said.line, &tasks, &Command::SelectThread { number })
            .await;
        if level > 0 {
            let frame = Command::SelectFrame(FrameSelect::Level(level));
            session.ask_quietly(said.line, &tasks, &frame).await;
        }
    }
    match carried_out {
        Verdict::Done => verdict,
        other => other,
    }
}

/// The selected threads and frames, with their tasks.
async fn selected_threads(
    session: &SessionHandle,
    said: &Invocation<'_>,
) -> Vec<(u32, u32, IdSet)> {
    let (_, open) = session
        .ask_quietly(said.line, &said.to, &Command::Threads)
        .await;
    let answers = open.map(|open| open.gathered.ok).unwrap_or_default();
    let mut selected: Vec<(u32, u32, IdSet)> = Vec::new();
    for (tasks, reply) in answers {
        let Reply::Threads(threads) = reply else {
            continue;
        };
        let Some(current) = threads.iter().find(|thread| thread.current) else {
            continue;
        };
        let level = current.frame.as_ref().map_or(0, |frame| frame.level);
        let same =
            |(number, at, _): &&mut (u32, u32, IdSet)| *number == current.number && *at == level;
        match selected.iter_mut().find(same) {
            Some((_, _, known)) => known.union_with(&tasks),
            None => selected.push((current.number, level, tasks)),
        }
    }
    selected
}

/// `thread`: shows the selected thread, in gdb's words.
pub(super) async fn show_selected(session: &SessionHandle, said: &Invocation<'_>) -> Verdict {
    let (verdict, open) = session
        .ask_quietly(said.line, &said.to, &Command::Threads)
        .await;
    let Some(mut open) = open else {
        return verdict;
    };
    for (tasks, reply) in std::mem::take(&mut open.gathered.ok) {
        let reply = match reply {
            Reply::Threads(threads) => {
                Reply::Threads(threads.into_iter().filter(|one| one.current).collect())
            }
            other => other,
        };
        join(&mut open.gathered.ok, &tasks, reply);
    }
    session.show(&Item::Answer(open.gathered));
    verdict
}
