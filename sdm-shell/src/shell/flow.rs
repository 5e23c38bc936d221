//! Whole sessions: start, lines, end; and the one that only shows stacks.

use nix::sys::signal::Signal;
use sdm_core::CommandId;
use sdm_debug::command::{AttachSpec, StartSpec, StopAt};
use sdm_debug::{Command, EndPolicy, Failure, FailureCode};
use sdm_idset::IdSet;

use super::controls::{Control, LineSource, ScriptLine};
use super::line;
use super::model::Over;
use super::model::gather::join;
use super::model::goal::{Goal, Waited};
use super::model::job::Stage;
use super::model::open::Open;
use super::run::{self, answer};
use super::{SessionHandle, Verdict, ask, define, held_back, memory_estimate, program_input, wait};
use sdm_view::item::Item;

/// The exit codes of shells, `env` and others for a program that is not there, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;
/// How deep files may name files.
pub(super) const SOURCE_DEPTH_MAX: u32 = 16;

/// Why a look at a job came to nothing, where a person did not wait for it.
const INTERRUPTED: &str = "interrupted; every process was left as it was";

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The exit code of `sdm`.
    pub code: u8,
    /// What becomes of the tasks.
    pub policy: EndPolicy,
    /// Why, where it was not asked for.
    pub reason: Option<String>,
}

/// What `sdm stacks` found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StacksCode {
    /// All are in the same place.
    Agree = 0,
    /// Some differ.
    Differ = 1,
    /// Not all could be looked at.
    Error = 2,
    /// A person has given it up.
    Interrupted = 130,
}

/// The exit code of what a signal ends, and why it does.
pub(super) fn told_to_end(signal: u8) -> (u8, String) {
    let name = Signal::try_from(i32::from(signal)).map_or("", Signal::as_str);
    (128 + signal, format!("signal {signal} ({name})"))
}

impl StacksCode {
    /// Why it is so, where that was not asked for.
    #[must_use]
    pub fn reason(self) -> Option<String> {
        (self == Self::Interrupted).then(|| INTERRUPTED.to_owned())
    }
}

/// Starts programs, each on its tasks, and brings them to `main`; false where that failed.
pub(super) async fn start(session: &SessionHandle, programs: Vec<(IdSet, StartSpec)>) -> bool {
    session.edit(|model| model.job.programs.clone_from(&programs));
    show_start(session, &programs);
    if let Some(lack) = memory_estimate::lack_of_room(session, &programs).await {
        session.complain(lack, "`sdm run --force` starts them all the same");
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

pub(super) fn finish_start(session: &SessionHandle, ids: &[CommandId], waited: Waited) -> bool {
    held_back::show_held(session);
    if waited == Waited::Over {
        return false;
    }
    let mut well = !ids.is_empty();
    let mut all_stand = well;
    let mut lacks = Vec::new();
    for id in ids {
        if session.edit(|model| model.open.leave_unattended(*id)) {
            well &= waited == Waited::Reached;
            all_stand = false;
            continue;
        }
        let open = ask::conclude(session, *id);
        lacks.push(open.as_ref().and_then(lack_of_program));
        well &= open.is_some_and(|open| !open.has_failed());
    }
    let lacks: Option<Vec<u8>> = lacks.into_iter().collect();
    let programless = lacks.and_then(|codes| codes.into_iter().min());
    session.edit(|model| model.job.programless = programless);
    if well && all_stand {
        session.edit(|model| model.job.stage = Stage::Untouched);
    }
    well
}

/// Carries out lines until there are none left or the session is over. A script ends at its
/// first line that fails.
pub(super) async fn run_lines(session: &SessionHandle, source: &mut dyn LineSource) -> Ending {
    while !session.is_over() && !session.read(|model| model.requests.warned) {
        let (prompt, is_question) =
            session.read(|model| (model.prompt(), model.dialogue.question.is_some()));
        source.request(&prompt, is_question);
        let line = match wait::next_line(session, prompt, source).await {
            Some(Control::Line(line)) => line,
            Some(Control::Cleared) => {
                define::abandon_input(session);
                continue;
            }
            Some(Control::Eof) if session.read(|model| model.dialogue.collecting.is_some()) => {
                ScriptLine {
                    text: "end".to_owned(),
                    ..ScriptLine::default()
                }
            }
            Some(Control::Eof) if session.read(|model| model.options.interactive) => {
                run::end_of_input(session);
                continue;
            }
            Some(Control::Eof) => break,
            _ => continue,
        };
        let verdict = carry_out_line(session, &line, 0).await;
        if verdict != Verdict::Done
            && !session.read(|model| model.options.interactive)
            && !session.is_over()
        {
            return ending_of_failure(session, verdict, &line);
        }
    }
    held_back::show_held(session);
    held_back::show_gone(session);
    ending(session)
}

/// Carries out a line of a person or of a script; `depth` is how many files and commands of the
/// user's own it stands in.
pub(super) async fn carry_out_line(
    session: &SessionHandle,
    line: &ScriptLine,
    depth: u32,
) -> Verdict {
    let text = line.text.trim();
    if session.read(|model| model.options.echo) && !line.origin.is_empty() && !text.is_empty() {
        let line = text.to_owned();
        session.show(&Item::Echo { line });
    }
    // In a script an empty line is nothing: only a person repeats by it.
    if !line.origin.is_empty() && text.is_empty() {
        return Verdict::Done;
    }
    line::execute(session, &line.text, depth).await
}

fn ending_of_failure(session: &SessionHandle, verdict: Verdict, line: &ScriptLine) -> Ending {
    held_back::show_gone(session);
    let (code, what) = match verdict {
        Verdict::GivenUp => (130, "given up"),
        _ => (123, "failed"),
    };
    let reason = format!("`{}` {what} ({})", line.text.trim(), line.origin);
    Ending {
        code,
        policy: EndPolicy::KillStarted,
        reason: Some(reason),
    }
}

pub(super) fn ending(session: &SessionHandle) -> Ending {
    let (code, policy, reason) = match session.read(|model| model.over.clone()) {
        None => (0, EndPolicy::KillStarted, None),
        Some(Over::Quit(policy)) => (0, policy, None),
        Some(Over::Ended(why)) => (122, EndPolicy::KillStarted, Some(why)),
        Some(Over::Terminated(signal)) => {
            let (code, reason) = told_to_end(signal);
            (code, EndPolicy::KillStarted, Some(reason))
        }
        Some(Over::Unread) => (1, EndPolicy::KillStarted, None),
    };
    Ending {
        code,
        policy,
        reason,
    }
}

/// How a session ends whose start failed.
pub(super) fn failed_start(session: &SessionHandle) -> Ending {
    let not_begun = |code, reason: &str| Ending {
        code,
        policy: EndPolicy::KillStarted,
        reason: Some(reason.to_owned()),
    };
    match session.read(|model| model.over.clone()) {
        Some(Over::Terminated(_) | Over::Quit(_) | Over::Unread) => ending(session),
        Some(Over::Ended(why)) => not_begun(124, &why),
        None => {
            let code = session.read(|model| model.job.programless).unwrap_or(124);
            not_begun(code, "the program could not be started")
        }
    }
}

/// The exit code that a shell has where all whom a start went to lack their program: 127 where none of them has
/// one, 126 where it cannot be run.
fn lack_of_program(start: &Open) -> Option<u8> {
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

/// `source FILE`.
pub(super) async fn source(session: &SessionHandle, file: &str, depth: u32) -> Verdict {
    if depth == SOURCE_DEPTH_MAX {
        return session.complain(format!("{file}: files name files too deep"), "");
    }
    let text = session.machine(|machine| machine.read_text(file.as_ref()));
    let text = match text {
        Ok(text) => text,
        Err(error) => return session.complain(format!("{file}: {error}"), ""),
    };
    let mut verdict = Verdict::Done;
    for line in ScriptLine::of_file(file, &text) {
        verdict = Box::pin(carry_out_line(session, &line, depth + 1)).await;
        if session.is_over() {
            break;
        }
        if verdict != Verdict::Done {
            let said = format!("{}: `{}` failed", line.origin, line.text.trim());
            session.complain(said, "");
            break;
        }
    }
    verdict
}

/// Attaches; says who could not be attached to, and gives those who could.
pub(super) async fn attach_quietly(
    session: &SessionHandle,
    spec: AttachSpec,
    to: &IdSet,
) -> (Verdict, IdSet) {
    let item = Item::Start {
        session: session.session_name(),
        tasks: to.clone(),
        programs: Vec::new(),
        pids: spec.pids.clone(),
    };
    session.show(&item);
    if let Some(lack) = memory_estimate::lack_of_room_to_attach(session, &spec, to).await {
        let verdict = session.complain(lack, "`--force` attaches to them all the same");
        return (verdict, IdSet::new());
    }
    let (verdict, open) = session
        .ask_quietly("attach", to, &Command::Attach(spec))
        .await;
    let attached = match open {
        Some(open) => {
            let attached = open.done();
            show_unless_all_well(session, open);
            attached
        }
        None => IdSet::new(),
    };
    (verdict, attached)
}

/// Attaches to processes without changing them, shows their merged stacks, and leaves them.
pub(super) async fn show_stacks_of(
    session: &SessionHandle,
    spec: AttachSpec,
    full: bool,
) -> StacksCode {
    let all = session.all();
    let since = session.interrupts();
    let (verdict, attached) = attach_quietly(session, spec, &all).await;
    let mut code = if verdict == Verdict::Done {
        StacksCode::Agree
    } else {
        StacksCode::Error
    };
    if attached.is_empty() || session.is_over() {
        return code_of_nothing(session, since);
    }
    if !session.interrupted_since(since) {
        let (verdict, open) = session
            .ask_quietly("stacks", &attached, &Command::Stacks { full })
            .await;
        if verdict != Verdict::Done {
            code = StacksCode::Error;
        }
        if session.is_over() {
            return code_of_nothing(session, since);
        }
        if let Some(open) = open {
            let stacks = open.gathered.stacks();
            if stacks.is_some_and(|stacks| !stacks.agree()) && code == StacksCode::Agree {
                code = StacksCode::Differ;
            }
            session.show(&answer(open.gathered, full));
        }
    }
    let whole = !session.interrupted_since(since);
    let (verdict, open) = session
        .ask_quietly("detach", &attached, &Command::Detach)
        .await;
    if verdict != Verdict::Done {
        code = StacksCode::Error;
    }
    if let Some(open) = open {
        show_unless_all_well(session, open);
    }
    if whole { code } else { StacksCode::Interrupted }
}

/// The exit code where there are no stacks.
pub(super) fn code_of_nothing(session: &SessionHandle, since: u64) -> StacksCode {
    if session.interrupted_since(since) && !session.is_over() {
        StacksCode::Interrupted
    } else {
        StacksCode::Error
    }
}

/// Shows what came of a command where it has failed on some task. Whom a signal has cut off did not fail.
pub(super) fn show_unless_all_well(session: &SessionHandle, open: Open) {
    let cut_off = session.read(|model| matches!(model.over, Some(Over::Terminated(_))));
    if open.has_failed() && !cut_off {
        session.show(&Item::Answer(open.gathered));
    }
}
