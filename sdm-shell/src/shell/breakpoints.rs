//! `break`, `watch`, `catch`, and the commands that change breakpoints. A breakpoint has one number in the
//! whole session, and a set of tasks.
use sdm_debug::command::{BreakSpec, PointSpec};
use sdm_debug::{Command, Failure, FailureCode, Reply};
use sdm_idset::IdSet;
use sdm_text::printable;
use sdm_view::item::{Gathered, Item};
use sdm_view::render::Names;

use super::define;
use super::invocation::Invocation;
use super::model::dialogue::{Pending, Purpose, Question};
use super::rerun::is_yes;
use super::{SessionHandle, Verdict, ask};

/// Maximum number of command lines of one breakpoint.
const COMMANDS_MAX: usize = 100;

/// Carries out `break`, `watch`, `catch` and their variants.
pub(super) async fn insert_point(
    session: &SessionHandle,
    said: &Invocation<'_>,
    point: PointSpec,
) -> Verdict {
    let point = match point {
        PointSpec::Break(spec) => PointSpec::Break(BreakSpec {
            pending: spec.pending || session.read(|model| model.breaks.pending) == Some(true),
            ..spec
        }),
        point => point,
    };
    let asked = point.clone();
    let number = session.read(|model| model.breaks.next_number());
    let point = point.numbered(number);
    let insertion = point.clone().insertion();
    let (verdict, open) = session.ask_quietly(said.line, &said.to, &insertion).await;
    let Some(mut open) = open else {
        return verdict;
    };
    open.gathered.made = point.made();
    let done = open.done();
    if !done.is_empty() {
        session.edit(|model| model.breaks.add(number, point, done));
    }
    for (tasks, reply) in &open.gathered.ok {
        if let Reply::Breakpoint(place) = reply {
            session.edit(|model| model.breaks.placed(place, tasks));
        }
    }
    let differ = session.read(|model| model.job.only_programs_differ(&open));
    if let PointSpec::Break(spec) = asked
        && session.read(|model| model.asks(said.depth) && model.breaks.pending.is_none())
        && is_nowhere(&open.gathered)
    {
        let (line, to) = (said.line.to_owned(), said.to.clone());
        session.edit(|model| {
            model.dialogue.question = Some(Question::Pending(Pending { line, to, spec }));
        });
    }
    let some = only_some(&open.gathered);
    session.show(&Item::Answer(open.gathered));
    if let Some(have) = some {
        session.say(&format!("breakpoint {number}: only {have} can stop at it; the other ranks have no code at the location"));
    }
    if differ { Verdict::Done } else { verdict }
}

/// Carries out `set breakpoint pending on|off|auto`.
pub(super) fn set_pending(session: &SessionHandle, on: Option<bool>) -> Verdict {
    session.edit(|model| model.breaks.pending = on);
    Verdict::Done
}

/// Handles the answer to the question whether a breakpoint becomes pending.
pub(super) async fn answer_pending(
    session: &SessionHandle,
    asked: Pending,
    answer: &str,
) -> Verdict {
    if !is_yes(answer) {
        return Verdict::Done;
    }
    let said = Invocation {
        line: &asked.line,
        to: asked.to,
        named: false,
        depth: 0,
    };
    let spec = BreakSpec {
        pending: true,
        ..asked.spec
    };
    insert_point(session, &said, PointSpec::Break(spec)).await
}

/// Carries out `condition N [COND]`.
pub(super) async fn set_condition(
    session: &SessionHandle,
    said: &Invocation<'_>,
    number: u32,
    condition: Option<String>,
) -> Verdict {
    let command = |number| Command::BreakCondition {
        number,
        condition: condition.clone(),
    };
    let verdict = change_point(session, said, number, command, |point| {
        point.set_condition(condition.clone());
    })
    .await;
    if condition.is_none() && verdict == Verdict::Done {
        let number = number_meant(session, number);
        session.say(&format!("breakpoint {number} is now unconditional"));
    }
    verdict
}

/// Carries out `ignore N COUNT`.
pub(super) async fn set_ignore(
    session: &SessionHandle,
    said: &Invocation<'_>,
    number: u32,
    count: u32,
) -> Verdict {
    let command = |number| Command::BreakIgnore { number, count };
    let verdict = change_point(session, said, number, command, |point| match point {
        PointSpec::Break(spec) => spec.ignore = count,
        PointSpec::Watch(spec) => spec.ignore = count,
        PointSpec::Catch(_) => {}
    })
    .await;
    if verdict == Verdict::Done {
        let number = number_meant(session, number);
        let crossings = match count {
            0 => "stops at the next hit".to_owned(),
            1 => "ignores the next hit".to_owned(),
            count => format!("ignores the next {count} hits"),
        };
        session.say(&format!("breakpoint {number} {crossings} on each rank"));
    }
    verdict
}

/// `commands [N...]`: the lines up to `end` run at each stop at these breakpoints.
pub(super) fn begin_commands(session: &SessionHandle, numbers: &[u32]) -> Verdict {
    let last = session.read(|model| model.breaks.last_number());
    let numbers = if numbers.is_empty() { &[0] } else { numbers };
    let mut known = Vec::new();
    for number in numbers {
        let number = if *number == 0 { last } else { *number };
        if session.edit(|model| model.breaks.find(number).is_none()) {
            return no_such_breakpoint(session, number);
        }
        known.push(number);
    }
    define::collect_for(session, Purpose::Breakpoints(known));
    Verdict::Done
}

/// Sets the lines between `commands` and `end` as the commands of these breakpoints.
pub(super) async fn set_commands(
    session: &SessionHandle,
    numbers: &[u32],
    lines: &[String],
) -> Verdict {
    if lines.len() > COMMANDS_MAX {
        return session.complain(format!("commands: more than {COMMANDS_MAX} lines"), "");
    }
    let said = Invocation {
        line: "commands",
        to: session.read(|model| model.sets.focus.clone()),
        named: false,
        depth: 0,
    };
    let mut verdict = Verdict::Done;
    for number in numbers {
        let command = |number| Command::BreakCommands {
            number,
            lines: lines.to_vec(),
        };
        let one = change_point(session, &said, *number, command, |point| {
            if let PointSpec::Break(spec) = point {
                spec.commands = lines.to_vec();
            }
        })
        .await;
        if one != Verdict::Done {
            verdict = one;
        }
    }
    verdict
}

async fn change_point(
    session: &SessionHandle,
    said: &Invocation<'_>,
    number: u32,
    command: impl Fn(u32) -> Command,
    change: impl Fn(&mut PointSpec),
) -> Verdict {
    let number = number_meant(session, number);
    let Some(to) = tasks_of(session, said, number) else {
        return no_such_breakpoint(session, number);
    };
    let (verdict, done) = session.ask(said.line, &to, &command(number)).await;
    if !done.is_empty() {
        session.edit(|model| model.breaks.change(number, change));
    }
    verdict
}

/// Resolves `$bpnum`, which is 0 here, to the number of the last breakpoint.
fn number_meant(session: &SessionHandle, number: u32) -> u32 {
    match number {
        0 => session.read(|model| model.breaks.last_number()),
        number => number,
    }
}

/// `delete [N...]`; the user is asked before all are deleted.
pub(super) async fn delete_breakpoints(
    session: &SessionHandle,
    said: &Invocation<'_>,
    numbers: &[u32],
) -> Verdict {
    let is_all = numbers.is_empty() && session.read(|model| !model.breaks.rows().is_empty());
    if is_all && ask::confirm(session, said, "Delete all breakpoints", "not deleted") {
        return Verdict::Done;
    }
    let mut verdict = Verdict::Done;
    for number in numbers_or_all(session, numbers) {
        let Some(to) = tasks_of(session, said, number) else {
            verdict = no_such_breakpoint(session, number);
            continue;
        };
        let (one, open) = session
            .ask_quietly(said.line, &to, &Command::BreakDelete { number })
            .await;
        let Some(mut open) = open else {
            return one;
        };
        // Where the task or its gdb has ended, the breakpoint does not exist any more.
        let gone = |code| {
            matches!(
                code,
                FailureCode::NoSuchThing | FailureCode::NotRunning | FailureCode::GdbDead
            )
        };
        let (gone, failed): (Vec<_>, Vec<_>) = std::mem::take(&mut open.gathered.failed)
            .into_iter()
            .partition(|(_, failure)| gone(failure.code));
        open.gathered.failed = failed;
        let gone = IdSet::union_all(gone.iter().map(|(tasks, _)| tasks));
        session.edit(|model| model.breaks.remove(number, &gone.union(&open.done())));
        if open.gathered.failed.is_empty() && open.gathered.missing.is_empty() {
            continue;
        }
        verdict = one;
        session.show(&Item::Answer(open.gathered));
    }
    verdict
}

/// Carries out `clear LOCATION`: deletes the breakpoints there, and names them as gdb does.
pub(super) async fn clear(session: &SessionHandle, said: &Invocation<'_>, place: &str) -> Verdict {
    let mut numbers = session.read(|model| model.breaks.at(place));
    numbers.retain(|number| tasks_of(session, said, *number).is_some());
    if numbers.is_empty() {
        return session.complain(
            format!("No breakpoint at {}.", printable(place.as_bytes())),
            "`info breakpoints` lists them; `delete N` deletes one by its number",
        );
    }
    let verdict = delete_breakpoints(session, said, &numbers).await;
    if verdict == Verdict::Done {
        let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
        session.say(&format!("deleted: breakpoint {}", numbers.join(", ")));
    }
    verdict
}

/// Carries out `enable [N...]` and `disable [N...]`.
pub(super) async fn enable_breakpoints(
    session: &SessionHandle,
    said: &Invocation<'_>,
    numbers: &[u32],
    enabled: bool,
) -> Verdict {
    let mut verdict = Verdict::Done;
    for number in numbers_or_all(session, numbers) {
        let Some(to) = tasks_of(session, said, number) else {
            verdict = no_such_breakpoint(session, number);
            continue;
        };
        let command = Command::BreakEnable { number, enabled };
        let (one, done) = session.ask(said.line, &to, &command).await;
        if one != Verdict::Done {
            verdict = one;
        }
        session.edit(|model| model.breaks.enable(number, &done, enabled));
    }
    verdict
}

/// Carries out `info breakpoints` and `info watchpoints`.
pub(super) async fn show_breakpoints(session: &SessionHandle, watchpoints: bool) -> Verdict {
    count_crossings(session).await;
    let rows: Vec<_> = session.read(|model| {
        let rows = model.breaks.rows().iter();
        let rows = rows.filter(|row| !watchpoints || model.breaks.is_watchpoint(row.number));
        rows.cloned().collect()
    });
    if watchpoints && rows.is_empty() {
        session.show(&Item::Text("No watchpoints.".to_owned()));
        return Verdict::Done;
    }
    session.show(&Item::Breakpoints(rows));
    Verdict::Done
}

/// Updates the hit counts from gdb, which also counts hits that `continue N` or `ignore` has skipped. Watchpoints that
/// gdb has removed are dropped. Only stopped tasks are asked. The counts of running tasks are kept.
async fn count_crossings(session: &SessionHandle) {
    let asked = session.read(|model| {
        let rows = model.breaks.rows().iter();
        let with = IdSet::union_all(rows.map(|row| &row.tasks));
        with.intersection(&model.tasks.standing())
    });
    if asked.is_empty() {
        return;
    }
    let (_, open) = session
        .ask_quietly("info breakpoints", &asked, &Command::Breakpoints)
        .await;
    for (tasks, reply) in open.into_iter().flat_map(|open| open.gathered.ok) {
        let Reply::Breakpoints(views) = reply else {
            continue;
        };
        session.edit(|model| {
            model.breaks.keep_watchpoints(&tasks, |number| {
                views.iter().any(|view| view.place.number == number)
            });
            for view in views {
                model
                    .breaks
                    .raise_hits(view.place.number, &tasks, view.hits);
            }
        });
    }
}

fn numbers_or_all(session: &SessionHandle, numbers: &[u32]) -> Vec<u32> {
    if numbers.is_empty() {
        return session.read(|model| model.breaks.rows().iter().map(|row| row.number).collect());
    }
    let meant = numbers.iter().map(|number| number_meant(session, *number));
    meant.collect()
}

/// The tasks that a command about a breakpoint goes to: all that have the breakpoint, or those of them that the line
/// names. None if there are none.
fn tasks_of(session: &SessionHandle, said: &Invocation<'_>, number: u32) -> Option<IdSet> {
    let tasks = session.edit(|model| Some(model.breaks.find(number)?.tasks.clone()))?;
    let tasks = if said.named {
        tasks.intersection(&said.to)
    } else {
        tasks
    };
    Some(tasks).filter(|tasks| !tasks.is_empty())
}

fn no_such_breakpoint(session: &SessionHandle, number: u32) -> Verdict {
    session.complain(format!("No breakpoint number {number}."), "")
}

/// Text such as `ranks 0-2 of 8`, if a breakpoint's location exists only in some of the tasks. None if it exists in all
/// or in none.
fn only_some(gathered: &Gathered) -> Option<String> {
    let lacks = |(_, failure): &(IdSet, Failure)| failure.code == FailureCode::NoSuchPlace;
    let set = gathered.done();
    let lacking = gathered.failed.iter().any(lacks);
    (lacking && !set.is_empty()).then(|| {
        let (have, all) = (Names::ranks().label(&set, 60), gathered.to.len());
        format!("{have} of {all}")
    })
}

/// True if no task has a breakpoint's location. The user is then asked whether to make it pending, as gdb does.
fn is_nowhere(gathered: &Gathered) -> bool {
    let mut codes = gathered.failed.iter().map(|(_, failure)| failure.code);
    gathered.ok.is_empty()
        && !gathered.failed.is_empty()
        && codes.all(|code| code == FailureCode::NoSuchPlace)
}
