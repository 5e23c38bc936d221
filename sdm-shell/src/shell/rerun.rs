//! `run` and `start`: restart of the whole job. The user's state is kept (breakpoints, focus, sets,
//! displays, settings, arguments). The state of the old job is dropped.
use sdm_debug::command::StartSpec;
use sdm_debug::{Command, EndPolicy};
use sdm_idset::IdSet;
use sdm_view::item::Item;

use super::invocation::Invocation;
use super::model::Over;
use super::model::dialogue::{Question, Rerun};
use super::model::goal::Goal;
use super::model::job::Stage;
use super::run;
use super::{SessionHandle, Verdict, memory_estimate, notices, start};
use crate::commands::{JobCommand, UserCommand as C};

/// Carries out a command for the job as a whole.
pub(super) async fn about_the_job(
    session: &SessionHandle,
    said: &Invocation<'_>,
    command: JobCommand,
) -> Verdict {
    match command {
        JobCommand::Run {
            arguments,
            to_main,
            background,
        } => {
            rerun(
                session,
                Rerun {
                    line: said.line.to_owned(),
                    to: said.to.clone(),
                    arguments,
                    to_main,
                    background,
                    depth: said.depth,
                },
            )
            .await
        }
        JobCommand::Arguments(words) => {
            session.edit(|model| model.job.set_arguments(&said.to, &words));
            Verdict::Done
        }
        JobCommand::ShowArguments => show_arguments(session, &said.to),
        JobCommand::Confirm(on) => {
            session.edit(|model| model.options.confirm = on);
            Verdict::Done
        }
    }
}

/// Carries out `run [ARGS]` and `start [ARGS]`.
async fn rerun(session: &SessionHandle, again: Rerun) -> Verdict {
    if session.read(|model| model.options.controlled) {
        let text = "a job started by --control cannot be started again";
        return session.complain(text, "`sdm run` without --control can start it again");
    }
    if session.read(|model| model.options.attached) {
        let text = "attached processes cannot be started again";
        return session.complain(text, "`sdm run` starts a job under the debugger");
    }
    if !session.read(|model| model.job.can_rerun) {
        return session.complain("this session cannot start its job again", "");
    }
    if session.read(|model| model.is_untouched()) && again.arguments.is_none() {
        return run_fresh(session, &again).await;
    }
    if session.read(|model| model.asks(again.depth))
        && !session.read(|model| model.tasks.live().is_empty())
    {
        session.edit(|model| model.dialogue.question = Some(Question::Rerun(again)));
        return Verdict::Done;
    }
    start_anew(session, again).await
}

/// Carries out the first `run` of a job that waits at `main`.
async fn run_fresh(session: &SessionHandle, again: &Rerun) -> Verdict {
    if again.to_main {
        session.say("all ranks are at main");
        return Verdict::Done;
    }
    let said = Invocation {
        line: &again.line,
        to: session.all(),
        named: false,
        depth: again.depth,
    };
    run::run(session, &said, &Command::Continue, again.background).await
}

/// Handles the answer to the question whether to end the job.
pub(super) async fn answer_rerun(session: &SessionHandle, again: Rerun, answer: &str) -> Verdict {
    if is_yes(answer) {
        return start_anew(session, again).await;
    }
    session.say("the job was not started again");
    Verdict::Done
}

async fn start_anew(session: &SessionHandle, again: Rerun) -> Verdict {
    if let Some(arguments) = &again.arguments {
        session.edit(|model| model.job.set_arguments(&again.to, arguments));
    }
    notices::show_held(session);
    let opened = match &mut *session.shared().restart.borrow_mut() {
        Some(restart) => restart(),
        None => return Verdict::Failed,
    };
    forget_job(session);
    session.edit(|model| {
        model.job.stage = match &opened {
            Ok(_) => Stage::Touched,
            Err(_) => Stage::Over,
        }
    });
    match opened {
        Err(why) => {
            let said = format!("{}: {why}", again.line);
            return session.complain(said, "the session has no job now; `run` tries again");
        }
        Ok(Some(left)) => session.say(&format!("the previous job: {left}")),
        Ok(None) => {}
    }
    let programs = session.read(|model| model.programs_again(again.to_main));
    start::show_start(session, &programs);
    say_start(session, &programs);
    if let Some(lack) = memory_estimate::lack_of_room(session, &programs).await {
        return session.complain(
            lack,
            "`run` tries again; `sdm run --force` starts the ranks anyway",
        );
    }
    let ids = start::send_starts(session, programs);
    if again.to_main {
        let waited = session
            .wait_for(&Goal::Held(ids.clone()), &again.line, None)
            .await;
        return match start::finish_start(session, &ids, waited) {
            true => Verdict::Done,
            false => Verdict::Failed,
        };
    }
    let to = session.all();
    run::await_end(session, &again.line, &to, &ids, again.background).await
}

fn say_start(session: &SessionHandle, programs: &[(IdSet, StartSpec)]) {
    const SAID_MAX: usize = 3;
    let mut shown: Vec<String> = Vec::new();
    for (_, start) in programs {
        let words = std::iter::once(&start.program).chain(&start.args);
        let text = shell_words::join(words.map(|word| String::from_utf8_lossy(word)));
        if !shown.contains(&text) {
            shown.push(text);
        }
    }
    if shown.len() > SAID_MAX {
        shown.truncate(SAID_MAX);
        shown.push("...".to_owned());
    }
    session.say(&format!("starting again: {}", shown.join(" : ")));
}

/// Carries out `show args`.
fn show_arguments(session: &SessionHandle, to: &IdSet) -> Verdict {
    if session.read(|model| model.options.attached) {
        return session.complain("sdm did not start these processes", "");
    }
    let values = session.read(|model| model.job.arguments(to));
    session.show_quietly(&Item::Values {
        expression: "args".to_owned(),
        values,
    });
    Verdict::Done
}

/// Resets the state of the old job after another session has replaced the old one.
pub(super) fn forget_job(session: &SessionHandle) {
    let now = session.now();
    let tasks = session.shared().session.borrow().tasks().clone();
    session.edit(|model| model.forget_job(now, &tasks));
}

/// Refuses a command that needs a job while the session has none. None if there is a job or the command needs none.
pub(super) fn refuse_without_job(session: &SessionHandle, command: &C) -> Option<Verdict> {
    let needs = !matches!(
        command,
        C::Nothing { .. }
            | C::Job(_)
            | C::Outside(_)
            | C::Quit
            | C::Help(_)
            | C::Breakpoints { .. }
            | C::Displays
            | C::Define(_)
            | C::ShowDefined(_)
            | C::System(_)
            | C::Echo(_)
            | C::SetPending(_)
            | C::Undisplay(_)
            | C::Focus(_)
            | C::Ranks(_)
            | C::DefineSet { .. }
            | C::ForgetSet(_)
            | C::Hold { .. }
            | C::About(_)
            | C::Output(_)
            | C::Report(_)
            | C::Save(_)
            | C::Source(_)
    );
    (session.read(|model| model.job.stage) == Stage::Over && needs)
        .then(|| session.complain("the session has no job", "`run` starts the job again"))
}

pub(super) fn answer_quit(session: &SessionHandle, answer: &str) -> Verdict {
    let policy = match answer.to_ascii_lowercase().as_str() {
        "y" | "yes" => EndPolicy::KillStarted,
        "d" | "detach" => EndPolicy::Detach,
        _ => {
            session.say("not ended");
            return Verdict::Done;
        }
    };
    session.edit(|model| model.end(Over::Quit(policy)));
    Verdict::Done
}

/// True if the answer to a question is yes.
pub(super) fn is_yes(answer: &str) -> bool {
    matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes")
}
